#pragma once
// Names of files below a grain's working directory, such as "a/b.txt", walked part by part: no symbolic link is
// followed, and nothing leads out of it.
#include <string>

#include "base/files.h"

namespace dcs::server {

// The folder that `name` is in, and its last part. `make`: folders that are missing are made, mode 0755.
// Code::invalid for a name with empty parts, "." or "..".
Result<Fd> enter_folders(const Fd &work, const std::string &name, bool make, std::string &last);

}  // namespace dcs::server
