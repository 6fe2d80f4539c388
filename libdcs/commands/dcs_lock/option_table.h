#pragma once
// Every option: its names, where it may stand, and what it does to the Options.
#include <string>

#include "options.h"

namespace dcs::lock_command {

struct OptionKind {
    const char *name;
    char letter;  // 0: none
    bool takes_value;
    unsigned verbs;  // that it goes with
    Status (*apply)(Options &found, const std::string &value);
};

const OptionKind *option_by_name(const std::string &name);
const OptionKind *option_by_letter(char letter);
std::string shown(const OptionKind &kind);  // "-j", or "--report"

}  // namespace dcs::lock_command
