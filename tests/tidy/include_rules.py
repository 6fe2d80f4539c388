#!/usr/bin/python3
"""Checks every #include of the tree against the table of docs/ARCHITECTURE.md, section 2."""
import os
import re
import sys

ROOT = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
POSIX = re.compile(r"^(sys/|linux/|netinet/|arpa/|unistd\.h|fcntl\.h|poll\.h|sched\.h|pwd\.h|grp\.h|spawn\.h|signal\.h|time\.h|ctime|csignal|"
                   r"dirent\.h|pthread\.h|thread|mutex|condition_variable|atomic|chrono|random|fstream|iostream|filesystem|future|termios\.h|limits\.h|errno\.h|getopt\.h|strings\.h)")
PURE_C = {"limits.h", "errno.h", "strings.h", "atomic"}
LIBRARIES = {"isa-l": "isa-l", "boost/serialization": "boost/serialization", "boost/archive": "boost/archive", "boost/mpl": "boost/mpl",
             "boost/json": "boost/json", "boost/asio": "boost/asio", "boost/system": "boost/asio", "boost/beast": "boost/beast", "openssl": "openssl", "spdlog": "spdlog",
             "fmt": "spdlog", "toml++": "toml++", "gmp": "gmp", "pari": "pari", "ecm": "ecm"}
CORE_FORBIDDEN = {"unordered_map", "unordered_set"}


def read_table(page):
    rules = {}
    section = page.split("## 2.", 1)[1].split("\n## ", 1)[0]
    for line in section.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) == 2 and "/" in cells[0] + "/" and cells[0] not in ("folder", "---"):
            rules[cells[0]] = {w.strip() for w in cells[1].split(",")}
    return rules


def owner(path, folders):
    best = ""
    for folder in folders:
        if (path == folder or path.startswith(folder + "/")) and len(folder) > len(best):
            best = folder
    return best


def classify(name, quoted, folder):
    """The word of the table that an include needs; None for what is always allowed."""
    if name in ("dcs.h", "dcs.hpp", "dcs_lock.h", "grainlib.h", "grainlib.hpp"):
        return "installed"
    for prefix, word in LIBRARIES.items():
        if name == prefix or name.startswith((prefix + "/", prefix + ".")):
            return word
    if name.startswith("boost/"):
        return name
    if name.startswith(("scheduler/", "grainserver/", "backupd/")):
        return os.path.dirname(name)
    if quoted and "/" in name:
        return "libdcs/" + os.path.dirname(name)
    if quoted:
        return folder
    if POSIX.match(name):
        return None if name in PURE_C else "posix"
    return None


def main():
    rules = read_table(open(os.path.join(ROOT, "docs/ARCHITECTURE.md")).read())
    assert len(rules) > 15, "the table of docs/ARCHITECTURE.md was not found"
    bad, seen, used = [], 0, set()
    for top in ("libdcs", "scheduler", "grainserver", "backupd", "control-examples", "grains"):
        for where, _, files in os.walk(os.path.join(ROOT, top)):
            for file in files:
                if not file.endswith((".h", ".cc", ".c", ".hpp")) or "/include" in where[len(ROOT):]:
                    continue
                path = os.path.relpath(os.path.join(where, file), ROOT)
                folder = owner(os.path.dirname(path), rules)
                if not folder:
                    bad.append(f"{path}: its folder has no line in the table")
                    continue
                used.add(folder)
                for number, line in enumerate(open(os.path.join(ROOT, path)), 1):
                    match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)', line)
                    if not match:
                        continue
                    seen += 1
                    word = classify(match[2], match[1] == '"', folder)
                    core = folder.endswith("/core")
                    if core and match[2] in CORE_FORBIDDEN:
                        bad.append(f"{path}:{number}: {match[2]} has no fixed order; a core needs one")
                    elif word is not None and word != folder and word not in rules[folder]:
                        bad.append(f"{path}:{number}: {folder} may not include {match[2]} ({word})")
    for folder in sorted(set(rules) - used):
        bad.append(f"docs/ARCHITECTURE.md: {folder} has a line but no sources")
    print("\n".join(bad) if bad else f"{seen} includes keep to the table")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
