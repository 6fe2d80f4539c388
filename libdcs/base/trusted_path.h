#pragma once
// Whether root may believe what lies at a path, by the owners and modes of everything on the way to it.
#include <string>

#include <sys/types.h>

#include "base/status.h"

namespace dcs {

// A daemon of root trusts the content of its directory: ok unless this process is root and another user could replace
// `path` or something on the way to it. Each directory from / on, and `path` itself, belongs to root and is writable
// for root alone (for the group root, too). In a directory with the sticky bit, as /tmp, only what belongs to root
// counts. Links are followed and judged likewise. Code::refused names what is wrong and what to do; a path that does
// not exist is judged as far as it does.
Status trusted_path(const std::string &path);

// The account with whose rights this process may work in a directory: its own. For root, that of the first owner on the
// way to the directory, links included, who is not root: that account decides what the path names and what lies there.
// Root itself only if root alone may write the directory and could have exchanged it. Code::refused names a directory
// of root on the way, or at the end, in which other users may write; what such a directory with the sticky bit holds is
// judged by its owner. not_found: the directory does not exist.
Result<uid_t> account_of_path(const std::string &path);

}  // namespace dcs
