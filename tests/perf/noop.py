#!/usr/bin/python3
"""No-op grains end to end, beside xargs in the same minute: what one grain costs besides its process.

    noop.py [--case NAME] [--grains N] [--rounds R] [--count] [--bin DIR]

In turns `seq N | xargs -P2 -n1 /bin/true` and `seq N | dcs map -- /bin/true {}` on `dcs up --local 1 --slots 2`, or as another
case (CASES) has it: with outputs, over TLS, under uids of their own. Prints the ratio of each round, the median of the ratios,
and the processor time of each daemon per grain. With --count it then runs one more map under `strace -f -c` and prints syncs,
renames and system calls per grain and daemon."""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from figures import figure, missing
from pools import JoinedPool, wait_for

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
    """Of `dcs up`, with more options of its own."""

    def __init__(self, binary, place, *options):
        self.dcs, self.options = os.path.join(binary, "dcs"), options
        self.base = tempfile.mkdtemp(prefix="dcs-noop-", dir=place)
        self.directory = os.path.join(self.base, "pool")
        self.env = dict(os.environ, DCS_DIR=self.directory, PATH=binary + ":" + os.environ["PATH"])

    def run(self, *line, **more):
        return subprocess.run([self.dcs, *line], env=self.env, check=True, **{"stdout": subprocess.DEVNULL, **more})

    def __enter__(self):
        self.run("up", "--local", "1", "--slots", "2", *self.options)
        if "lagging" in self.options:
            wait_for("the copy", lambda: b'"current"' in self.run("backup", "status", "-o", "json", stdout=subprocess.PIPE).stdout)
        return self

    def __exit__(self, *_):
        self.run("down")
        shutil.rmtree(self.base, ignore_errors=True)


class Case:
    """One way to run grains that do nothing: the words of the program for both (or those of grains), options of the map, and
    the pool."""

    def __init__(self, program=("/bin/true",), options=(), pool=Pool, root=False, grain=None):
        self.program, self.options, self.pool, self.root, self.grain = program, options, pool, root, grain or program

    def map(self, pool, count, out=subprocess.DEVNULL):
        pool.run("map", "--new", *self.options, "--", *self.grain, "{}", input=words(count), stdout=out)

    def xargs(self, count, out=subprocess.DEVNULL):
        subprocess.run(["xargs", "-P2", "-n1", *self.program], input=words(count), stdout=out, check=True)


PRINTF = "/usr/bin/printf"
CASES = {
    "plain": Case(),
    "100_bytes": Case((PRINTF, "%099d\\n")),
    "10_kB": Case((PRINTF, "%09999d\\n")),
    "attempts": Case(options=("--attempts", "3")),
    "together": Case(options=("-n", "100"), grain=("sh", "-c", "for i do /bin/true $i; done", "sh")),
    "mirror": Case(pool=lambda binary, place: Pool(binary, place, "--mirror", "lagging")),
    "tls": Case(pool=lambda binary, place: JoinedPool(binary, place, "self")),
    # Below /tmp and /var/tmp a server cannot confine its grains to namespaces, the default.
    "uids": Case(pool=lambda binary, place: JoinedPool(binary, "/var/lib", "users"), root=True),
}


def timed(act):
    began = time.monotonic()
    act()
    return time.monotonic() - began


def own_cpu():
    """Seconds of the children that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def count_calls(case, pool, count, directory):
    """Calls of each daemon while one map runs, per grain."""
    tracers = {}
    for name, pids in below(pool.directory).items():
        out = os.path.join(directory, name + ".calls")
        line = ["strace", "-f", "-c", "-o", out]
        for pid in pids:
            line += ["-p", str(pid)]
        tracers[name] = (subprocess.Popen(line, stderr=subprocess.DEVNULL), out)
    time.sleep(1)
    case.map(pool, count)
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
        figure(f"noop plain: system calls of {name} a grain", sum(calls.values()) / count, None, "calls")
        figure(f"noop plain: syncs of {name} a grain", syncs / count, None, "syncs")
        print(f"  {name:16} {sum(calls.values()) / count:7.1f} calls, {syncs / count:6.3f} syncs, "
              f"{sum(n for call, n in calls.items() if call.startswith('rename')) / count:6.3f} renames; "
              + ", ".join(f"{call} {n / count:.1f}" for call, n in often))


def measure(name, options, place):
    case = CASES[name]
    with case.pool(options.bin, place) as pool, open(os.path.join(place, "out"), "wb") as out:
        case.map(pool, min(50, options.grains))  # what is done once is done now
        first = cpu_by_daemon(pool.directory)
        ratios, rates = [], []
        for _ in range(options.rounds):
            before, used = own_cpu(), sum(cpu_by_daemon(pool.directory).values())
            yardstick = timed(lambda: case.xargs(options.grains, out))
            own = own_cpu() - before
            ours = timed(lambda: case.map(pool, options.grains, out))
            used = sum(cpu_by_daemon(pool.directory).values()) - used
            ratios.append(yardstick / ours)
            rates.append(options.grains / ours)
            figure(f"noop {name}: dcs map, of xargs -P2", rates[-1], options.grains / yardstick, "/s")
            figure(f"noop {name}: processor time of the daemons a grain, of all of xargs", used * 1e6 / options.grains,
                   own * 1e6 / options.grains, "us")
            print(f"xargs {options.grains / yardstick:7.0f} a second   dcs {rates[-1]:7.0f} a second   "
                  f"{ratios[-1]:5.3f} of xargs", flush=True)
        spent = cpu_by_daemon(pool.directory)
        print(f"{options.grains} no-op grains, {name}, median of {options.rounds} rounds: {statistics.median(ratios):.3f} of "
              f"xargs, {statistics.median(rates):.0f} a second")
        all_grains = options.grains * options.rounds
        print("  processor time a grain: " + ", ".join(
            f"{daemon} {(spent[daemon] - first.get(daemon, 0)) * 1e6 / all_grains:.0f} us" for daemon in sorted(spent)))
        if options.count:
            count_calls(case, pool, min(options.grains, 500), place)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--case", choices=CASES, default="plain")
    parser.add_argument("--grains", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", action="store_true", help="system calls and syncs as well (strace)")
    parser.add_argument("--bin", default=os.environ.get("DCS_BIN") or os.path.join(ROOT, "build/release/bin"))
    options = parser.parse_args()
    if CASES[options.case].root and os.geteuid() != 0:
        print("only root gives grains uids of their own")
        return 77
    if options.count and not shutil.which("strace"):
        missing("noop plain: system calls a grain", "Debian's package strace is not installed")
        options.count = False
    place = tempfile.mkdtemp(prefix="dcs-noop-", dir=os.environ.get("TMPDIR", "/var/tmp"))
    os.chmod(place, 0o755)
    try:
        measure(options.case, options, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
