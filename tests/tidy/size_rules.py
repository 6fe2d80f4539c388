#!/usr/bin/python3
"""Size of files, functions and lines, and words that promise something for later. The exceptions in
size_exceptions.txt (path and limit) may only shrink: one that is not needed any more fails the test too."""
import os
import re
import sys

ROOT = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILE_LINES, FUNCTION_LINES, COLUMNS = 400, 70, 120
PROMISES = re.compile(r"\b(" + "|".join(["to" + "do", "fix" + "me", "x" * 3, "not imple" + "mented", "unimple" + "mented"]) + r")\b", re.I)


def functions(lines):
    """(first line, length) of every function body that opens at the end of a line in column 0 or in a namespace."""
    start = None
    for number, line in enumerate(lines):
        if start is None and re.match(r"^(?!namespace|struct|class|enum|union|extern|static const|constexpr|using|typedef|\s|#|\}|//)", line) and line.rstrip().endswith("{"):
            start = number
        elif start is None and re.match(r"^\{", line):
            start = number
        elif start is not None and re.match(r"^\}", line):
            yield start + 1, number - start + 1
            start = None


def main():
    path = os.path.join(ROOT, "tests/tidy/size_exceptions.txt")
    allowed = dict((p, int(n)) for p, n in (l.split() for l in open(path) if l.strip() and l[0] != "#"))
    bad, needed, count = [], set(), 0
    for top in ("libdcs", "scheduler", "grainserver", "backupd", "control-examples", "grains", "tests", "deploy"):
        for where, _, files in os.walk(os.path.join(ROOT, top)):
            for file in sorted(files):
                source = file.endswith((".h", ".cc", ".c", ".py", ".sh")) or where.endswith("deploy")
                if not source:
                    continue
                name = os.path.relpath(os.path.join(where, file), ROOT)
                lines = open(os.path.join(ROOT, name), errors="replace").read().splitlines()
                count += 1
                if len(lines) > allowed.get(name, FILE_LINES):
                    bad.append(f"{name}: {len(lines)} lines, at most {allowed.get(name, FILE_LINES)}")
                elif name in allowed and len(lines) > FILE_LINES:
                    needed.add(name)
                for number, line in enumerate(lines, 1):
                    if len(line) > COLUMNS and not (name.endswith("calls.h") or name.endswith(".py")):
                        bad.append(f"{name}:{number}: {len(line)} columns")
                    if PROMISES.search(line):
                        bad.append(f"{name}:{number}: promises something for later")
                if file.endswith((".cc", ".c")) and not name.startswith("tests/"):
                    for number, length in functions(lines):
                        if length > FUNCTION_LINES:
                            bad.append(f"{name}:{number}: a function of {length} lines, at most {FUNCTION_LINES}")
    for name in sorted(set(allowed) - needed):
        bad.append(f"size_exceptions.txt: {name} is not needed any more")
    print("\n".join(bad) if bad else f"{count} files keep to the sizes")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
