#pragma once
// Names of files below a grain's working directory, such as "a/b.txt", resolved component by component: no symbolic
// link is followed, and no name leads out of the directory.
#include <string>

#include "base/files.h"

namespace dcs::server {

// Opens the directory of `name`; `last` receives the last component. `make`: creates missing directories, mode 0755.
// Code::invalid for a name with empty parts, "." or "..".
Result<Fd> enter_folders(const Fd &work, const std::string &name, bool make, std::string &last);

}  // namespace dcs::server
