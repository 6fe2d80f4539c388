#pragma once
// --file, --input, --output and --image of `dcs run` and `dcs map`, and the same of `dcs submit`.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "commands/dcs/frame/arguments.h"
#include "dcs.h"
#include "commands/dcs/frame/failure.h"
#include "wire/demands.h"

namespace dcs::commands {

struct FileWords {
    struct Pair {
        std::string name, path;
    };
    std::vector<Pair> files;    // name in the grain's directory (empty: that of the path), path here
    std::vector<Pair> outputs;  // the same, after the run
    std::string input;          // standard input; empty: none of these
    std::string program;        // CMD's file, if it goes along
    std::string image;          // of the container in which CMD runs; empty: none
    bool in_room = false;       // of the container, if no directory in it is named

    bool any() const { return !files.empty() || !outputs.empty(); }
    // The grain then runs in a directory of its own. This outlives the d_gexec_grain call.
    void put_into(d_grain &grain);
    // Is a file found by the input? It is then not appended to a command without placeholders.
    bool by_input(bool columns) const;
    // Those of the grain for one input of the map, which takes the places of {} and the like.
    FileWords for_input(const std::string &item, std::int32_t number) const;

private:
    std::vector<d_file> list_;
    d_file program_{};
    std::vector<const char *> names_;
};

// What a grain is submitted with and its d_grain points to, until the call is over.
struct GrainTexts {
    std::vector<std::string> words;
    std::string label, input;
    FileWords files;
    void put_into(d_grain &grain, const std::vector<char *> &environment, const wire::Demands &demands,
                  const std::string &directory);

private:
    std::vector<char *> argv_;
};

// --image, for the table of a verb.
OptionRow image_option();
// CMD's path, as find_program() does; of a container, in which it is looked up later, the word itself.
Result<std::string> program_of(const FileWords &words, bool brought, const std::string &name,
                               const std::string &directory);
// What the command line says; a usage error otherwise. `per_input`: for_input() follows.
std::optional<Failure> take_file_words(const Arguments &arguments, FileWords &words, bool per_input = false);
// Before a grain with these is submitted: its files can be read, and the directories of its outputs can be written to;
// missing ones are made. `seen`: directories that earlier calls have checked.
std::optional<Failure> check_places(const FileWords &words, std::set<std::string> &seen);
// The path of an output that one before has, of the same grain or of another that runs beside it; "": none. `seen`:
// what earlier calls have found.
std::string written_twice(const FileWords &words, std::set<std::string> &seen);
// Writes one output that came back where it is wanted, whole or not at all.
std::optional<Failure> write_output(int session, int grain, const FileWords::Pair &output);
// The same for its stream "out" or "err"; `text`: what it holds, if that is known.
std::optional<Failure> write_stream(int session, int grain, const char *stream, const std::string *text,
                                    const std::string &path);

}  // namespace dcs::commands
