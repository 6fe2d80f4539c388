#pragma once
// --file and --output of `dcs run` and `dcs map`.
#include <optional>
#include <string>
#include <vector>

#include "commands/dcs/frame/arguments.h"
#include "dcs.h"
#include "commands/dcs/frame/failure.h"

namespace dcs::commands {

struct FileWords {
    struct Pair {
        std::string name, path;
    };
    std::vector<Pair> files;    // name in the grain's directory, path here
    std::vector<Pair> outputs;  // the same, after the run
    std::string program;        // CMD's file, if it goes along

    bool any() const { return !files.empty() || !outputs.empty(); }
    // The grain then runs in a directory of its own. This outlives the d_gexec_grain call.
    void put_into(d_grain &grain);

private:
    std::vector<d_file> list_;
    d_file program_{};
    std::vector<const char *> names_;
};

// What the command line says; a usage error otherwise.
std::optional<Failure> take_file_words(const Arguments &arguments, FileWords &words);
// Writes one output that came back where it is wanted, whole or not at all.
std::optional<Failure> write_output(int session, int grain, const FileWords::Pair &output);
// The same for its stream "out" or "err"; `text`: what it holds, if that is known.
std::optional<Failure> write_stream(int session, int grain, const char *stream, const std::string *text,
                                    const std::string &path);

}  // namespace dcs::commands
