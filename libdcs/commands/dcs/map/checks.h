#pragma once
// What is wrong or doubtful about a `dcs map` is found before anything runs.
#include <optional>
#include <string>

#include "commands/dcs/frame/failure.h"
#include "commands/dcs/run/file_options.h"
#include "plan.h"

namespace dcs::commands {

// A note on words of CMD that are placeholders of GNU parallel alone: {2}, {%}, {..}. Empty: there are none.
std::string foreign_placeholder(const MapPlan &plan);
// The first directory of inputs, or above one, that only its owner may pass and grains under `uid` do not; empty: none.
std::string closed_directory(const MapPlan &plan, std::int64_t uid);
// What to say when the first input names a file of the current directory, where grains with files of their own do not
// run; empty: it does not.
std::string left_behind(const MapPlan &plan, const FileWords &files);
// An input that the shell of `sh -c` would read as words of its own, because CMD puts it into the shell's text.
std::string read_by_shell(const MapPlan &plan);
// Of many grains that have taken `cpu_s`, a note where their starts cost nearly as much as they do; else empty.
std::string better_together(const MapPlan &plan, double cpu_s);
// Grains run side by side: each brings its files to a place of its own.
std::optional<Failure> check_outputs(const MapPlan &plan, const FileWords &files);
// What would lose a grain's files.
std::optional<Failure> check_files(const MapPlan &plan, const FileWords &files);
// The directory of --results, which is made and marked as this map's; "": none. That of another map is refused.
std::optional<Failure> make_results(const std::string &directory, const MapPlan &plan);

}  // namespace dcs::commands
