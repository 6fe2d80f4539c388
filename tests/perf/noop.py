#!/usr/bin/python3
"""No-op grains end to end, beside xargs in the same minute: what one grain costs besides its process.

    noop.py [--grains N] [--rounds R] [--count] [--bin DIR]

In turns `seq N | xargs -P2 -n1 /bin/true` and `seq N | dcs map -- /bin/true {}` on `dcs up --local 1 --slots 2`. Prints the
ratio of each round, the median of the ratios, and the processor time of each daemon per grain. With --count it then runs
one more map under `strace -f -c` and prints syncs, renames and system calls per grain and daemon."""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DAEMONS = ("dcs_scheduler", "dcs_grainserver", "dcs_launcher", "dcs_backupd")
SYNCS = ("fsync", "fdatasync", "syncfs", "sync_file_range")


def words(count):
    return "".join(f"{i}\n" for i in range(1, count + 1)).encode()


def below(directory):
    """The pool's daemons, by program: those that have its directory in their command line."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
        except OSError:
            continue
        name = os.path.basename(line[0].decode(errors="replace"))
        if name in DAEMONS and any(directory.encode() in part for part in line[1:]):
            found.setdefault(name, []).append(int(pid))
    return found


def cpu_of(pid):
    """Seconds of the process itself, without children that ended."""
    try:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_by_daemon(directory):
    return {name: sum(cpu_of(pid) for pid in pids) for name, pids in below(directory).items()}


class Pool:
    def __init__(self, binary, directory):
        self.dcs, self.directory = os.path.join(binary, "dcs"), directory
        self.env = dict(os.environ, DCS_DIR=directory, PATH=binary + ":" + os.environ["PATH"])

    def run(self, *line, **more):
        return subprocess.run([self.dcs, *line], env=self.env, check=True, stdout=subprocess.DEVNULL, **more)

    def __enter__(self):
        self.run("up", "--local", "1", "--slots", "2")
        return self

    def __exit__(self, *_):
        self.run("down")

    def map(self, count):
        self.run("map", "--new", "--", "/bin/true", "{}", input=words(count))


def timed(act):
    began = time.monotonic()
    act()
    return time.monotonic() - began


def count_calls(pool, count, directory):
    """Calls of each daemon while one map runs, per grain."""
    tracers = {}
    for name, pids in below(pool.directory).items():
        out = os.path.join(directory, name + ".calls")
        line = ["strace", "-f", "-c", "-o", out]
        for pid in pids:
            line += ["-p", str(pid)]
        tracers[name] = (subprocess.Popen(line, stderr=subprocess.DEVNULL), out)
    time.sleep(1)
    pool.map(count)
    for tracer, _ in tracers.values():
        tracer.terminate()
        tracer.wait()
    for name, (_, out) in tracers.items():
        calls = {}
        for line in open(out):
            found = re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", line)
            if found and found[2] != "total":
                calls[found[2]] = int(found[1])
        syncs = sum(calls.get(call, 0) for call in SYNCS)
        often = sorted(calls.items(), key=lambda item: -item[1])[:8]
        print(f"  {name:16} {sum(calls.values()) / count:7.1f} calls, {syncs / count:6.3f} syncs, "
              f"{sum(n for call, n in calls.items() if call.startswith('rename')) / count:6.3f} renames; "
              + ", ".join(f"{call} {n / count:.1f}" for call, n in often))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--grains", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", action="store_true", help="system calls and syncs as well (strace)")
    parser.add_argument("--bin", default=os.environ.get("DCS_BIN") or os.path.join(ROOT, "build/release/bin"))
    options = parser.parse_args()
    base = tempfile.mkdtemp(prefix="dcs-noop-", dir="/var/tmp")
    try:
        with Pool(options.bin, os.path.join(base, "pool")) as pool:
            pool.map(50)  # what is done once is done now
            before = cpu_by_daemon(pool.directory)
            ratios, rates = [], []
            for _ in range(options.rounds):
                yardstick = timed(lambda: subprocess.run(["xargs", "-P2", "-n1", "/bin/true"], input=words(options.grains),
                                                         check=True))
                ours = timed(lambda: pool.map(options.grains))
                ratios.append(yardstick / ours)
                rates.append(options.grains / ours)
                print(f"xargs {options.grains / yardstick:7.0f} a second   dcs {rates[-1]:7.0f} a second   "
                      f"{ratios[-1]:5.3f} of xargs", flush=True)
            spent = cpu_by_daemon(pool.directory)
            print(f"{options.grains} no-op grains, median of {options.rounds} rounds: {statistics.median(ratios):.3f} of xargs, "
                  f"{statistics.median(rates):.0f} a second")
            all_grains = options.grains * options.rounds
            print("  processor time a grain: " + ", ".join(
                f"{name} {(spent[name] - before.get(name, 0)) * 1e6 / all_grains:.0f} us" for name in sorted(spent)))
            if options.count:
                count_calls(pool, min(options.grains, 500), base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
