#pragma once
// What launcher and starter tell: lines of launcher.log, or of the service's journal, with their time.
#include <string>

namespace dcs::files {

void say(const std::string &text);

}  // namespace dcs::files
