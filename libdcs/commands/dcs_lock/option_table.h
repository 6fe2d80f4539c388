#pragma once
// All options: the row, the verbs it is valid with, and its effect on Options.
#include <string>

#include "base/option_table.h"
#include "options.h"

namespace dcs::lock_command {

struct OptionKind {
    OptionRow row;
    unsigned verbs;  // with which it is valid
    Status (*apply)(Options &found, const std::string &value);
};

const OptionTable &option_rows();
const OptionKind &kind_of(const OptionRow &row);  // one of option_rows()

// `line` without argv[0]. `found.json` is valid even after an error.
Status parse(const std::vector<std::string> &line, Options &found);

}  // namespace dcs::lock_command
