#!/usr/bin/python3
"""Runs the checks of .clang-tidy over the product, each folder as one translation unit where its files can be joined. Without
arguments the folders of FIRST, under DCS_TESTS_FULL all; or the named ones. Exit code 77: clang-tidy 14 is not installed."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOPS = ("libdcs", "scheduler", "grainserver", "backupd", "grains", "control-examples")
PROGRAM = "clang-tidy-14"
# What decides, what reads foreign bytes, and what runs with root's rights or in users' grains.
FIRST = ("scheduler/core", "scheduler/state", "grainserver/core", "backupd/core", "libdcs/grain", "libdcs/commands/dcs_begin")
# Clang 14 refuses std::optional of a nested class with initialisers of its fields.
NOT_FOR_CLANG = ("scheduler/shell/tls_door.cc",)
FLAGS = ("-I.", "-Ilibdcs", "-Ilibdcs/include", '-DDCS_VERSION="0"', "-D_GNU_SOURCE", "-w")


def folders():
    """Folder and ending -> its files, as paths from the root."""
    found = {}
    for top in TOPS:
        for where, _, files in os.walk(os.path.join(ROOT, top)):
            for name in sorted(files):
                ending = name.rsplit(".", 1)[-1]
                if ending in ("cc", "c") and os.path.relpath(os.path.join(where, name), ROOT) not in NOT_FOR_CLANG:
                    found.setdefault((os.path.relpath(where, ROOT), ending), []).append(os.path.join(where, name))
    return found


def said(files, standard):
    """What clang-tidy says about these translation units; empty: nothing."""
    done = subprocess.run([PROGRAM, "--quiet", f"--config-file={ROOT}/.clang-tidy", *files, "--", standard, *FLAGS],
                          cwd=ROOT, capture_output=True, text=True)
    lines = sorted({line for line in done.stdout.splitlines() if re.search(r": (warning|error): ", line)})
    if done.returncode and not lines:
        lines = done.stderr.splitlines()[-5:] or [f"exit code {done.returncode}"]
    return lines


def checked(unit, files, directory):
    folder, ending = unit
    if ending == "c":
        lines = said(files, "-std=gnu11")
    else:
        joined = os.path.join(directory, folder.replace("/", "_") + ".cc")
        with open(joined, "w") as file:
            file.writelines(f'#include "{name}"\n' for name in files)
        lines = said([joined], "-std=c++20")
        if any("[clang-diagnostic-error" in line for line in lines):  # files that a release build does not join either
            lines = said(files, "-std=c++20")
    return [f"{folder}: {line.replace(ROOT + '/', '')}" for line in lines]


def main():
    if shutil.which(PROGRAM) is None:
        print(f"{PROGRAM} is not installed")
        return 77
    all_folders = folders()
    wanted = sys.argv[1:] or (None if os.environ.get("DCS_TESTS_FULL") else FIRST)
    units = {unit: files for unit, files in all_folders.items() if wanted is None or unit[0] in wanted}
    assert units, "no such folder"
    bad = []
    with tempfile.TemporaryDirectory(prefix="dcs-test-") as directory, ThreadPoolExecutor(2) as pool:
        for lines in pool.map(lambda unit: checked(unit, units[unit], directory), units):
            bad += lines
            print("".join(line + "\n" for line in lines), end="", flush=True)
    print(f"{sum(len(files) for files in units.values())} files in {len(units)} folders, {len(bad)} findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
