#pragma once
// Names of atoms, and where their lock files are. In the paper ("Implementation") every byte that is not a
// letter or a digit becomes '_', so that different atoms share a lock. Here names are injective.
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

// "HOST,OPERATION,OPERAND": bytes outside [A-Za-z0-9._+-] as %XX, so reversible and the same in every
// locale. Over 200 bytes: the first 160, '~' and a hash of 128 bits; the lock file has the whole name and
// who opens it compares. Code::invalid: the operation is empty, or a part is too long or holds a NUL.
Result<std::string> encoded_name(const Atom &atom);
// The same, never shortened, for inside the file; the parts must be usable.
std::string full_name(const Atom &atom);
// The opposite; Code::invalid if the text is no encoded name, or a shortened one.
Result<Atom> decoded_name(const std::string &text);

// A lock of the user by name. Made (0700) if missing: $DCS_LOCK_DIR, else /var/lib/dcs-lock for root, else
// $XDG_STATE_HOME/dcs-lock, else $HOME/.local/state/dcs-lock. It outlives a boot, so that elapsed times
// do; that a holder does not outlive a boot is known from the record. Refused if it belongs to somebody else.
Result<std::string> lock_directory();

// What a command line calls NAME: with a '/' a path, else an atom in lock_directory().
struct Place {
    std::string path;       // of the lock file
    std::string directory;  // of the run log: lock_directory(); empty: no log
    Atom atom;              // for a path: operation = the path, as given
    bool named = true;      // false: a path. Its file may have been made under another spelling of the path
    bool adopt = true;      // an empty file may be made a lock file. For a path only if the caller sets it, as
                            // an empty file may be somebody's data
};
// `suffix` ".lock" or ".slots" is put behind a name, never behind a path.
Result<Place> place_of(const std::string &name, const std::string &suffix);
Result<Place> place_of(const Atom &atom, const std::string &suffix);

}  // namespace dcs::locks
