#pragma once
// The command line of a daemon, from a small table to values. Never asked by string afterwards.
#include <string>
#include <vector>

#include "base/status.h"

namespace dcs::daemon {

// One option "--name VALUE" or "--name=VALUE". `value` is where the word goes; what stands there
// before is the default. Exactly one of the three is set.
struct Option {
    std::string name;            // without "--"
    std::string placeholder;     // "DIR"; shown in --help
    std::string help;            // one line
    std::string *text = nullptr;
    int *number = nullptr;
    bool *flag = nullptr;        // takes no value
    bool required = false;
};

struct Usage {
    std::string program, summary;
    std::vector<Option> options;
};

// What to do next: go on, or exit with this code after printing `text` (to stdout if code is 0).
struct Parsed {
    bool go_on = false;
    int exit_code = 0;
    std::string text;
};

// --help and --version are always there. An unknown option, a missing or a bad value: exit code 2.
Parsed parse_options(const Usage &usage, int argc, char **argv);

}  // namespace dcs::daemon
