#pragma once
#include <string>

#include "base/status.h"
#include "grainserver/files/grain_record.h"
#include "base/files.h"

namespace dcs::files {

// Opens a program by a path from a user, for reading, with the rights of the account; devices are not opened.
// Code::refused: it is not executable for any user.
Result<Fd> open_program(const std::string &path, const Account &account);

}  // namespace dcs::files
