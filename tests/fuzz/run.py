#!/usr/bin/python3
"""Builds and runs the fuzz targets. For each: all regressions, then fuzzing from the seeds that it makes itself.

  run.py [--repeat] [--seconds S] [--executions N] [--keep DIR] [TARGET...]

Without options 5 seconds each; with DCS_TESTS_FULL 100 million executions in all, spread by speed. --repeat only runs
what is known, regressions and seeds, by the programs of the ordinary build (replay.cc): so it is in the ordinary tests, which
shall say the same each time, and need no build of their own. With --full, or if it is not --repeat, clang builds the targets. What a target
finds is a file in build/fuzz/found/TARGET; mend the code, then keep the file in tests/fuzz/regressions/TARGET under
a name that says what it was. Ends with 1 if anything was found, with 77 where there is no clang to build with."""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, "build/fuzz")
REPLAY = os.path.join(os.path.dirname(os.environ.get("DCS_BIN", os.path.join(ROOT, "build/release/bin"))), "tests/fuzz")
WORKERS = 2
# One input may take so long, allocate so much at once, and so much in all. (The weighing of inputs by rare features costs more
# than running them, in targets with many features.)
LIMITS = ["-timeout=10", "-malloc_limit_mb=64", "-rss_limit_mb=1024", "-entropic=0"]
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:handle_abort=1:allocator_may_return_null=0",
               "UBSAN_OPTIONS": "print_stacktrace=1"}


def build():
    began = time.monotonic()
    log = os.path.join(ROOT, "build/fuzz-build.log")
    os.makedirs(os.path.dirname(log), exist_ok=True)
    with open(log, "w") as out:
        def call(*command):
            if subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT).returncode != 0:
                print("".join(open(log).readlines()[-40:]), f"fuzz: the build failed; the whole log is {log}", sep="\n")
                sys.exit(1)
        if not os.path.exists(os.path.join(BUILD, "build.ninja")):
            call("cmake", "--preset", "fuzz")
        call("cmake", "--build", "--preset", "fuzz", "--", f"-j{WORKERS}", "fuzz")
    print(f"built in {time.monotonic() - began:.0f} s")


def targets():
    return sorted(f[:-3] for f in os.listdir(os.path.join(HERE, "targets")) if f.endswith(".cc"))


def program(target):
    return os.path.join(BUILD, "bin", "fuzz_" + target)


def regressions(target):
    folder = os.path.join(HERE, "regressions", target)
    return [os.path.join(folder, f) for f in sorted(os.listdir(folder))] if os.path.isdir(folder) else []


def fresh(*parts):
    folder = os.path.join(BUILD, *parts)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def figure(text, pattern):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


class Result:
    def __init__(self, target):
        self.target, self.executions, self.speed, self.edges, self.crashes, self.words = target, 0, 0, 0, 0, ""

    def failed(self, output):
        self.crashes += 1
        self.words += f"--- {self.target}\n" + "\n".join(output.splitlines()[-60:]) + "\n"

    def line(self):
        return f"{self.target:18} {self.executions:>12} {self.speed:>9} {self.edges:>9} {self.crashes:>8}"


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENVIRONMENT)
    return done.returncode, done.stdout.decode(errors="replace")


def fuzz(target, seconds, executions, corpus):
    result = Result(target)
    for file in regressions(target):
        code, output = run([program(target), *LIMITS, file])
        result.executions += 1
        if code != 0:
            result.failed(output)
    seeds = fresh("seeds", target)
    code, output = run([program(target), "--seeds", seeds])
    if code != 0 or not os.listdir(seeds):
        result.failed(output + "\nthe target makes no seeds")
        return result
    grown = os.path.join(corpus, target) if corpus else fresh("corpus", target)
    os.makedirs(grown, exist_ok=True)
    found = fresh("found", target)
    end = [f"-runs={executions}"] if executions else [f"-max_total_time={seconds}"] if seconds else ["-runs=0"]
    began = time.monotonic()
    code, output = run([program(target), *LIMITS, *end, "-print_final_stats=1", f"-artifact_prefix={found}/", grown, seeds])
    result.executions += figure(output, r"stat::number_of_executed_units: (\d+)")
    result.speed = int(result.executions / max(time.monotonic() - began, 0.01))
    result.edges = figure(output, r"cov: (\d+)")
    if code != 0:
        result.failed(output)
    return result


def repeat(target):
    """By the program of the ordinary build."""
    result = Result(target)
    code, output = run([os.path.join(REPLAY, "fuzz_" + target), *regressions(target)])
    result.executions = figure(output, r"(\d+) inputs")
    if code != 0:
        result.failed(output)
    return result


def repeat_all(names):
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(repeat, names))
    return end(results)


def end(results):
    print(f"{len(results)} targets, {sum(r.executions for r in results)} executions, "
          f"{sum(len(regressions(r.target)) for r in results)} regressions, {sum(r.crashes for r in results)} crashes")
    for result in results:
        print(result.words, end="")
    return 1 if any(r.crashes for r in results) else 0


def spread(results, executions):
    """So many of each that all of them take the same time."""
    speed = sum(r.speed for r in results)
    return {r.target: max(1000, int(executions * r.speed / speed)) for r in results}


def all_of(names, seconds, shares, corpus):
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        jobs = [pool.submit(fuzz, name, seconds, shares.get(name, 0), corpus) for name in names]
        results = []
        for job in concurrent.futures.as_completed(jobs):
            results.append(job.result())
            print(results[-1].line(), flush=True)
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--executions", type=int, default=100_000_000 if os.environ.get("DCS_TESTS_FULL") else 0)
    parser.add_argument("--repeat", action="store_true")
    parser.add_argument("--keep", help="a corpus that grows from run to run")
    parser.add_argument("targets", nargs="*")
    line = parser.parse_args()
    if line.repeat and not line.executions:
        return repeat_all(line.targets or targets())
    if shutil.which("clang++-14") is None:
        print("skipped: there is no clang++-14 (deploy/install-packages --tests)")
        return 77
    build()
    names = line.targets or targets()
    print(f"{'target':18} {'executions':>12} {'exec/s':>9} {'coverage':>9} {'crashes':>8}")
    results = all_of(names, line.seconds, {}, line.keep)
    if line.executions and not any(r.crashes for r in results):
        results = all_of(names, 0, spread(results, line.executions), line.keep)
    return end(results)


if __name__ == "__main__":
    sys.exit(main())
