#!/usr/bin/python3
"""Checks that the whole tree obeys .clang-format; `--write` formats it. Another version of clang-format than Debian 12's breaks
some lines elsewhere, so only that version decides; without it the test is skipped (exit code 77)."""
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOPS = ("libdcs", "scheduler", "grainserver", "backupd", "control-examples", "grains", "tests")
ENDINGS = (".h", ".hpp", ".cc", ".c")
VERSION = "clang-format-14"


def sources():
    for top in TOPS:
        for where, _, files in os.walk(os.path.join(ROOT, top)):
            yield from (os.path.join(where, name) for name in sorted(files) if name.endswith(ENDINGS))


def main():
    program = shutil.which(VERSION)
    if program is None:
        print(f"{VERSION} is not installed")
        return 77
    files = list(sources())
    assert len(files) > 1000, "no sources were found"
    how = ["-i"] if sys.argv[1:] == ["--write"] else ["--dry-run", "-Werror", "--ferror-limit=1"]
    bad = 0
    for first in range(0, len(files), 100):
        done = subprocess.run([program, *how, *files[first:first + 100]], stderr=subprocess.PIPE, text=True)
        sys.stdout.write("".join(line + "\n" for line in done.stderr.splitlines() if "error:" in line))
        bad += done.returncode != 0
    print(f"{len(files)} files obey .clang-format" if not bad else "tests/tidy/format.py --write mends that")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
