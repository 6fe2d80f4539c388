#!/usr/bin/python3
"""Branch coverage of the decoders, by clang's source-based coverage: unit tests, regressions, and the corpora that
run.py left in build/fuzz. Prints a line per file and each branch that one side of was never taken.

  coverage.py [--least PERCENT]   ends with 1 if all files together have less"""
import argparse
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, "build/coverage")
UNIT = ["unit_wire"]
TARGETS = ["message", "frame", "session_text"]
# What turns foreign bytes into values on a wire.
FILES = ["libdcs/wire/message.cc", "libdcs/wire/archives.h", "libdcs/wire/checks.cc",
         "libdcs/wire/session_text.cc", "libdcs/wire/session_head.cc", "libdcs/wire/json.cc", "libdcs/wire/json.h",
         "libdcs/wire/difference.cc", "libdcs/wire/content_calls.cc", "libdcs/base/bytes.h", "libdcs/net/connection.cc"]


def call(*command, **more):
    return subprocess.run(command, cwd=ROOT, check=True, **more)


def program(name):
    found = [p for p in (os.path.join(BUILD, "bin", name), os.path.join(BUILD, "tests", name)) if os.path.exists(p)]
    return found[0]


def inputs(target):
    folders = [os.path.join(HERE, "regressions", target), os.path.join(ROOT, "build/fuzz/corpus", target),
               os.path.join(ROOT, "build/fuzz/seeds", target)]
    return [f for f in folders if os.path.isdir(f)]


def measure():
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        call("cmake", "--preset", "coverage", stdout=subprocess.DEVNULL)
    wanted = UNIT + ["fuzz_" + t for t in TARGETS]
    call("cmake", "--build", "--preset", "coverage", "--", "-j2", *wanted, stdout=subprocess.DEVNULL)
    for old in glob.glob(os.path.join(BUILD, "*.profraw")):
        os.unlink(old)
    for name in wanted:
        target = name[5:] if name.startswith("fuzz_") else None
        arguments = ["-runs=0", *inputs(target)] if target else []
        environment = {**os.environ, "LLVM_PROFILE_FILE": os.path.join(BUILD, name + ".profraw")}
        done = subprocess.run([program(name), *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
        if done.returncode != 0:
            print(f"{name} failed; what it covered counts")
    profile = os.path.join(BUILD, "all.profdata")
    call("llvm-profdata-14", "merge", "-o", profile, *glob.glob(os.path.join(BUILD, "*.profraw")))
    objects = [o for n in wanted[1:] for o in ("-object", program(n))]
    out = call("llvm-cov-14", "export", "-instr-profile", profile, program(wanted[0]), *objects,
               *[os.path.join(ROOT, f) for f in FILES], stdout=subprocess.PIPE).stdout
    return json.loads(out)["data"][0]


def sides_of(data):
    """file -> {(line, column): [taken, not taken]}: the most that any instantiation or copy of it has."""
    files = {}
    for function in data["functions"]:
        for b in function.get("branches", []):
            name = os.path.relpath(function["filenames"][b[6]], ROOT) if b[6] < len(function["filenames"]) else ""
            if name not in FILES:
                continue
            sides = files.setdefault(name, {}).setdefault((b[0], b[1]), [0, 0])
            sides[0], sides[1] = sides[0] + b[4], sides[1] + b[5]
    return files


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--least", type=float, default=0)
    line = parser.parse_args()
    files = sides_of(measure())
    all_taken = all_sides = 0
    for name in FILES:
        sides = files.get(name, {})
        taken = sum((a > 0) + (b > 0) for a, b in sides.values())
        all_taken, all_sides = all_taken + taken, all_sides + 2 * len(sides)
        print(f"{name:34} {taken:>5} of {2 * len(sides):>5} sides of branches  {100 * taken / max(1, 2 * len(sides)):6.2f} %")
        source = open(os.path.join(ROOT, name)).read().splitlines()
        for (row, column), (a, b) in sorted(sides.items()):
            if a == 0 or b == 0:
                print(f"    {row}:{column} never {'true' if a == 0 else 'false'}: {source[row - 1].strip()[:90]}")
    share = 100 * all_taken / max(1, all_sides)
    print(f"all: {all_taken} of {all_sides}, {share:.2f} %")
    return 0 if share >= line.least else 1


if __name__ == "__main__":
    sys.exit(main())
