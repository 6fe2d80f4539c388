#pragma once
// Names of atoms and the paths of their lock files. The paper ("Implementation") replaces every byte that is not a
// letter or a digit by '_', so that different atoms may share a lock. The names here are injective.
#include <string>

#include "base/status.h"

namespace dcs::locks {

struct Atom {
    std::string operation;  // the paper's operator: "edit"
    std::string operand;    // "/etc/motd"; may be empty
    std::string host;       // empty: this host
    bool operator==(const Atom &) const = default;
};

constexpr std::size_t name_part_max = 16 * 1024;  // bytes of each part; longer ones are refused

// "HOST,OPERATION,OPERAND": bytes outside [A-Za-z0-9._+-] are written as %XX, so the name is reversible and independent
// of the locale. A name over 200 bytes is shortened to its first 160, '~' and a hash of 128 bits; the lock file stores
// the whole name, which is compared at open. Code::invalid: the operation is empty, or a part is too long or has a NUL.
Result<std::string> encoded_name(const Atom &atom);
// The same, never shortened, as stored in the file; the parts must be valid.
std::string full_name(const Atom &atom);
// The inverse; Code::invalid if the text is not an encoded name, or is a shortened one.
Result<Atom> decoded_name(const std::string &text);

// The user's directory of named locks, created with mode 0700 if missing: $DCS_LOCK_DIR, else /var/lib/dcs-lock for
// root, else $XDG_STATE_HOME/dcs-lock, else $HOME/.local/state/dcs-lock. It survives a reboot, because elapsed times
// must; the boot id in the record tells that a holder did not. Refused if it belongs to a user other than the caller
// or root.
Result<std::string> lock_directory();

// A NAME of a command line: a path if it contains a '/', else an atom in lock_directory().
struct Place {
    std::string path;       // of the lock file
    std::string directory;  // of the run log: lock_directory(); empty: no log
    Atom atom;              // for a path: operation = the path, as given
    bool named = true;      // false: a path, whose file may have been created under another spelling of it
    bool adopt = true;      // an empty file may be made a lock file. For a path only if the caller sets it, as
                            // an empty file may be another program's data
    bool one_kind = false;  // no file is created if the name is in use as the other kind, ".lock" or ".slots"
};
// `suffix`, ".lock" or ".slots", is appended to a name, never to a path.
Result<Place> place_of(const std::string &name, const std::string &suffix);
Result<Place> place_of(const Atom &atom, const std::string &suffix);

}  // namespace dcs::locks
