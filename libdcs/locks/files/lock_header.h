#pragma once
// The first 512 bytes of a lock file: text that identifies the file, readable with `head -3 FILE`.
#include "base/status.h"
#include "locks/files/atom.h"
#include "locks/files/file_layout.h"

namespace dcs::locks {

// 0, or -1 with errno. A long name is stored at long_names_at.
int write_header(int fd, FileKind kind, const Atom &atom);

// The kind of the file, and the atom if its header is valid; otherwise foreign, or broken if part of a header is left
// or an empty file may be adopted.
FileKind recognise(int fd, bool adopt, Atom *atom);

// The same for a caller that opens the file at `place` to use it as `wanted`; errors as LockFile::open.
Status judge(int fd, const Place &place, FileKind wanted, FileKind *kind);

}  // namespace dcs::locks
