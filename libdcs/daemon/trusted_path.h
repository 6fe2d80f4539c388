#pragma once
// A daemon of root trusts the content of its directory, so no other user may have been able to write there.
#include <string>

#include "base/status.h"

namespace dcs {

// Ok unless this process is root and another user could replace `path` or something on the way to it: each
// directory from / on, and `path` itself, belongs to root and is writable for root alone (for the group root, too). In
// a directory with the sticky bit, as /tmp, only what belongs to root counts. Links are followed and judged likewise.
// Code::refused names what is wrong and what to do; a path that does not exist is judged as far as it does.
Status trusted_path(const std::string &path);

}  // namespace dcs
