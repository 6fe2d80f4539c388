#pragma once
// The first 512 bytes of a lock file: text that says what the file is, so that `head -3 FILE` tells a person.
#include "base/status.h"
#include "locks/atom.h"
#include "locks/file_layout.h"

namespace dcs::locks {

// 0, or -1 with errno. The name goes to long_names_at when it is long.
int write_header(int fd, FileKind kind, const Atom &atom);

// What the file is: of a header of ours the kind and the atom; otherwise foreign, or broken where something of
// ours is left or an empty file may be adopted.
FileKind recognise(int fd, bool adopt, Atom *atom);

// The same for somebody who opens the file at `place` in order to use it as `wanted`; errors as LockFile::open.
Status judge(int fd, const Place &place, FileKind wanted, FileKind *kind);

}  // namespace dcs::locks
