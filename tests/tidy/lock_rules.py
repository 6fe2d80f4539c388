#!/usr/bin/python3
"""Nothing takes a lock, and nothing commits to a store, but what the table of atoms lists (libdcs/locks/dcs_atoms.cc): each atom
that a lock file keeps is taken in one place, and the calls that could go past the table occur only where they belong."""
import os
import re
import sys

ROOT = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLE = "libdcs/locks/dcs_atoms.cc"
# What is sought, and where it may be. A folder ends with a slash.
RULES = [
    (r"\b(F_OFD_SETLKW?|F_SETLKW?)\b", ["libdcs/locks/"]),
    (r"(?<![\w.])(::)?flock\s*\(\s*\w+(\.get\(\))?\s*,\s*LOCK_", ["libdcs/locks/"]),
    (r"\blockf\s*\(", []),
    (r"\bAdaptiveLock::get\s*\(", ["libdcs/locks/", "libdcs/commands/dcs_lock/"]),
    (r"\bSlots::take\s*\(", ["libdcs/locks/", "libdcs/commands/dcs_lock/", "grainserver/launcher/start_grain.cc"]),
    (r"\bLockFile::(open|around)\s*\(", ["libdcs/locks/", "libdcs/commands/dcs_lock/"]),
    (r"\bKernelLock::take\s*\(", ["libdcs/locks/"]),
    (r"\bStore::open\s*\(", ["libdcs/store/", "scheduler/shell/main.cc", "backupd/shell/main.cc",
                             "backupd/mirror/copy.cc",
                             "scheduler/shell/lost_authority.cc"]),  # in a child of main.cc, which holds the lock
    (r"\bstore_?(\.|->)commit\s*\(", ["libdcs/storage/storage_thread.cc", "scheduler/shell/main.cc",
                                           "backupd/shell/main.cc", "backupd/mirror/copy.cc"]),
]


def sources():
    for top in ("libdcs", "scheduler", "grainserver", "backupd", "control-examples", "grains"):
        for where, _, files in os.walk(os.path.join(ROOT, top)):
            for file in sorted(files):
                if file.endswith((".h", ".cc", ".c")):
                    name = os.path.relpath(os.path.join(where, file), ROOT)
                    yield name, re.sub(r"//[^\n]*|/\*.*?\*/", "", open(os.path.join(ROOT, name)).read(), flags=re.S)


def main():
    bad, taken = [], {}
    for name, text in sources():
        for pattern, allowed in RULES:
            found = re.search(pattern, text)
            if found and not any(name == a or (a.endswith("/") and name.startswith(a)) for a in allowed):
                line = text[:found.start()].count("\n") + 1
                bad.append(f"{name}: {found.group(0)!r} (about line {line}) goes past {TABLE}")
        for atom in re.findall(r"DcsAtom::(\w+)", text) if name not in (TABLE, "libdcs/locks/dcs_atoms.h") else []:
            taken.setdefault(atom, set()).add(name)
    rows = dict(re.findall(r"\{DcsAtom::(\w+),[^{}]*?KeptBy::(\w+)", open(os.path.join(ROOT, TABLE)).read(), re.S))
    for atom, kept in rows.items():
        places = sorted(taken.pop(atom, []))
        if len(places) != (1 if kept == "lock" else 0):
            bad.append(f"{TABLE}: {atom} is taken in {places or 'no place'}, not in {'one' if kept == 'lock' else 'none'}")
    bad += [f"{place}: {atom} has no row in {TABLE}" for atom, places in taken.items() for place in places]
    for place in ("scheduler/shell/main.cc", "backupd/shell/main.cc"):
        if "still_alone" not in open(os.path.join(ROOT, place)).read():
            bad.append(f"{place}: the store is not told whether it is guarded")
    print("\n".join(bad) if bad else f"{len(rows)} atoms, and nothing else locks or commits")
    return 1 if bad or len(rows) < 5 else 0


if __name__ == "__main__":
    sys.exit(main())
