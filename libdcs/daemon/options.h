#pragma once
// A daemon's command line: options (base/option_table.h) that go into the fields of a struct.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/instant.h"

namespace dcs {

// Kind of an option = type of the field it goes into. bool: no value. int: 0 and up. Duration: seconds,
// "2.5", or "5m". vector: one entry each time the option is given; otherwise the last one counts.
struct Option {
    const char *name;  // without the dashes
    std::variant<bool *, int *, std::string *, Duration *, std::vector<std::string> *> into;
    const char *value;  // shown by --help: "DIR"
    const char *help;
    bool required = false;
};

struct CommandLine {
    const char *program;
    const char *purpose;  // one sentence
    std::vector<Option> options;
};

struct ParsedOptions {
    bool proceed = false;  // else: print and exit
    int exit_code = 0;     // 0 after --help and --version, 2 after an error
    std::string out;       // for standard output
    std::string error;     // for standard error
};

// Fills the fields. Fields of options that were not given keep their values. --help and --version are
// known to every program; arguments that are no options are an error.
ParsedOptions parse_options(const CommandLine &line, const std::vector<std::string> &arguments);

// The same for main(), which begins with it: cleans up after the caller (base/clean_start.h), prints what there is to
// print and exits unless the program is to go on.
void take_options(const CommandLine &line, int argc, char **argv);

}  // namespace dcs
