#pragma once
// The files that commands name, and a map's inputs and --file: whether they have changed since an earlier run, by a
// fingerprint that the session's ident carries.
//
// What counts: the program; each further word of CMD, or what it has behind a `=`, and each input that as a whole is
// the path of a regular file; and what --file brings. Of inputs the first 10,000 are looked at. Contents count for
// files up to 16 MiB, and up to 64 MiB of all together, in that order; of the others size and time of modification do.
#include <cstdint>
#include <string>
#include <vector>

#include "commands/dcs/run/file_options.h"
#include "plan.h"

namespace dcs::commands {

struct MapFile {
    enum Part { program, word_odd, word_even, input };
    Part part = program;
    std::string name;    // as written on the command line
    std::string digest;  // of its place there and its contents
    std::int64_t modified_ns = 0;
};

// `program`: path of the command's program; empty where it depends on the input. Of several, all of one directory, each
// file counts once.
struct PlannedFiles {
    const MapPlan &plan;  // of a million inputs, perhaps: not copied
    std::string program;
    const FileWords &brought;
    std::size_t inputs = SIZE_MAX;  // as if its list ended after so many
};
std::vector<MapFile> files_of(const std::vector<PlannedFiles> &planned);

// Where it is for a program in the plan's directory: --file and --input are paths from the current one.
std::string place_brought(const MapPlan &plan, const std::string &path);

// 24 hex digits. Each part has some of them, so that a message can name the changed file.
std::string fingerprint_of(const std::vector<MapFile> &files);

// What has changed since `recorded` was the fingerprint, in words for people: "work.py"; empty: nothing, or
// `recorded` is empty. Of CMD a file that was not there then does not count, as grains may
// have made it; if two share a part this is unknown.
std::string changed_in_command(const std::string &recorded, const std::vector<MapFile> &files);
std::string changed_in_inputs(const std::string &recorded, const std::vector<MapFile> &files);
// Of either, as the ident of a session of `base` has recorded it.
std::string changed_since(const std::string &ident, const std::string &base, const std::vector<MapFile> &files);

}  // namespace dcs::commands
