#!/usr/bin/python3
"""What the bridges cost: the same work by a client alone, with two processes, and by the same client on a pool of two slots.

    bridges.py [--items 200] [--seconds 0.2] [--rounds 1] [--hurry] [snakemake] [snakemake-groups] [parallel] [joblib] [executor]

In turns; medians of the rounds. Each item sleeps for that time, so the ratio is what a client and the pool add. With --hurry grains
have the priority of other programs: on a busy machine they would wait for those."""
import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../process"))
import folders  # noqa: E402, F401
from facade import LIBEXEC  # noqa: E402
from hurry import Hurry  # noqa: E402
from pool import BIN, ROOT, Pool  # noqa: E402

SNAKEFILE = """
rule all:
    input: expand("part/{{n}}.txt", n=range({items}))
rule part:
    output: "part/{{n}}.txt"
    {group}
    shell: "sleep {seconds}; echo {{wildcards.n}} >{{output}}"
"""
JOBLIB = """
import sys, time
import dcs.joblib
from joblib import Parallel, delayed
if __name__ == "__main__":
    how, items, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    Parallel(n_jobs=2, backend=how)(delayed(time.sleep)(seconds) for _ in range(items))
"""
EXECUTOR = """
import concurrent.futures, sys, time
import dcs
if __name__ == "__main__":
    how, items, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    with dcs.Executor() if how == "dcs" else concurrent.futures.ProcessPoolExecutor(2) as executor:
        list(executor.map(time.sleep, [seconds] * items))
"""


class Work:
    def __init__(self, pool, items, seconds):
        self.pool, self.items, self.seconds, self.turn = pool, str(items), str(seconds), 0
        self.env = dict(pool.env, PYTHONPATH=os.path.join(ROOT, "libdcs/python"), PYTHONDONTWRITEBYTECODE="1", PATH=f"{BIN}:{pool.env['PATH']}")

    def run(self, words, files=(), data="", env=()):
        """Each run in a directory of its own."""
        self.turn += 1
        work = os.path.join(self.pool.base, f"turn-{self.turn}")
        os.mkdir(work)
        for name, text in dict(files).items():
            with open(os.path.join(work, name), "w") as file:
                file.write(text)
        began = time.monotonic()
        done = subprocess.run(words, cwd=work, env=dict(self.env, PWD=work, **dict(env)), input=data, text=True, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE)
        seconds = time.monotonic() - began
        if done.returncode != 0:
            sys.exit(f"{words}: exit {done.returncode}\n{done.stderr[-3000:]}")
        return seconds

    def snakemake(self, group="", more=()):
        files = {"Snakefile": SNAKEFILE.format(items=self.items, seconds=self.seconds, group=group)}
        return (lambda: self.run(["/usr/bin/snakemake", "--quiet", "--cores", "2"], files),
                lambda: self.run(["/usr/bin/snakemake", "--quiet", "--profile", f"{LIBEXEC}/snakemake", *more], files))

    def snakemake_groups(self):
        """Twenty steps are one job, of one core: they run one after another."""
        return self.snakemake('group: "twenty"', ("--group-components", "twenty=20", "--cores", "1"))

    def parallel(self):
        numbers = "".join(f"{n}\n" for n in range(int(self.items)))
        words = ["/usr/bin/parallel", "--will-cite"]
        return (lambda: self.run([*words, "-j2", "sleep", self.seconds, ";", "echo"], data=numbers),
                lambda: self.run([*words, "--ssh", "dcs ssh", "-S", "2/any", "sleep", self.seconds, ";", "echo"], data=numbers))

    def python(self, text, alone):
        words = ["/usr/bin/python3", "work.py"]
        return (lambda: self.run([*words, alone, self.items, self.seconds], {"work.py": text}),
                lambda: self.run([*words, "dcs", self.items, self.seconds], {"work.py": text}))

    def joblib(self):
        return self.python(JOBLIB, "loky")

    def executor(self):
        return self.python(EXECUTOR, "processes")


CLIENTS = ("snakemake", "snakemake-groups", "parallel", "joblib", "executor")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--hurry", action="store_true")
    parser.add_argument("clients", nargs="*", metavar="CLIENT")
    words = parser.parse_args()
    if unknown := set(words.clients) - set(CLIENTS):
        parser.error(f"no such client: {', '.join(sorted(unknown))}; there are {', '.join(CLIENTS)}")
    with Pool(servers=1, slots=2, interval=10.0, patient=False, modest=True) as pool, Hurry(pool) if words.hurry else contextlib.nullcontext():
        work = Work(pool, words.items, words.seconds)
        print(f"{words.items} items of {words.seconds} s, {words.rounds} rounds; load {os.getloadavg()[0]:.1f} at the beginning", flush=True)
        for name in words.clients or CLIENTS:
            alone, here = getattr(work, name.replace("-", "_"))()
            turns = [(alone(), here()) for _ in range(words.rounds)]
            a, b = (statistics.median(turn[i] for turn in turns) for i in (0, 1))
            print(f"{name:18} alone {a:7.1f} s   on the pool {b:7.1f} s   ratio {b / a:5.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
