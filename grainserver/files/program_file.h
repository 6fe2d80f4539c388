#pragma once
#include <string>

#include "base/status.h"
#include "grainserver/files/grain_record.h"
#include "base/files.h"

namespace dcs::files {

// A program by a path that is a user's word, open for reading: what the account may not read is not read for it, and no
// device hears of it. Code::refused: nobody may execute it.
Result<Fd> open_program(const std::string &path, const Account &account);

}  // namespace dcs::files
