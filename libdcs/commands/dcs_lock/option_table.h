#pragma once
// Every option: its row, where it may stand, and what it does to the Options.
#include <string>

#include "base/option_table.h"
#include "options.h"

namespace dcs::lock_command {

struct OptionKind {
    OptionRow row;
    unsigned verbs;  // that it goes with
    Status (*apply)(Options &found, const std::string &value);
};

const OptionTable &option_rows();
const OptionKind &kind_of(const OptionRow &row);  // one of option_rows()

}  // namespace dcs::lock_command
