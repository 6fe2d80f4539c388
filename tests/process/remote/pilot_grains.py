"""Grains for tests of pilots: each counts, takes checkpoints, and notes every step that it makes."""
import os
import subprocess

from pool import ROOT

COUNTER = """import os, sys, time
sys.path.insert(0, %r)
import dcs_grain
dcs_grain.handler()
n, last, name = dcs_grain.text.readline().split()
n, last = int(n), int(last)
trace = os.open(os.path.join(%r, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while n < last:
    os.write(trace, b"%%d\\n" %% n)
    print(name, n, flush=True)
    time.sleep(%g)
    n += 1
    if dcs_grain.time_to_checkpoint():
        with dcs_grain.checkpoint("at %%d" %% n) as state:
            state.write("%%d %%d %%s\\n" %% (n, last, name))
"""
SUBMIT = """import sys
sys.path.insert(0, {library!r})
import dcs
with dcs.Session("pilots") as session:
    for i in range({grains}):
        session.submit(i + 1, ["/usr/bin/python3", {program!r}], input="0 {steps} g%d\\n" % i, env={{"PATH": "/usr/bin:/bin"}},
                       directory="/tmp", attempts=1)
    for i in range({grains}):
        result = session.wait()
        print(result.grain, result.ok, result.output.decode().replace("\\n", ","), flush=True)
"""


class Work:
    def __init__(self, pool, grains, steps, step=0.1):  # seconds
        self.pool, self.grains, self.steps = pool, grains, steps
        self.library = os.path.join(ROOT, "libdcs/python")
        self.trace = os.path.join(pool.base, "trace")
        os.mkdir(self.trace)
        self.program = os.path.join(pool.base, "counter.py")
        with open(self.program, "w") as out:
            out.write(COUNTER % (self.library, self.trace, step))

    def start(self):
        """Submits the grains; their outputs come to its standard output."""
        path = os.path.join(self.pool.base, "submit.py")
        with open(path, "w") as out:
            out.write(SUBMIT.format(**vars(self)))
        env = dict(self.pool.env, LD_LIBRARY_PATH=os.path.join(os.path.dirname(self.pool.bin), "lib"))
        return subprocess.Popen(["/usr/bin/python3", "-B", path], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def processes(self):
        """Of the grains, whose servers have their directories in jobs."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = open(f"/proc/{pid}/cmdline").read().split("\0")
            except OSError:
                continue
            if words[:2] == ["/usr/bin/python3", self.program]:
                found.append(int(pid))
        return found

    def check(self, out):
        """All outputs are those of an undisturbed run; steps that ran, and those of them that had run before."""
        lines = sorted((line.split(" ", 2) for line in out.decode().splitlines()), key=lambda words: int(words[0]))
        assert len(lines) == self.grains, lines
        for number, (grain, good, text) in enumerate(lines):
            wanted = "".join(f"g{number} {n}," for n in range(self.steps))
            assert (int(grain), good, text) == (number + 1, "True", wanted), (grain, good, text[:200])
        steps = sum(len(open(os.path.join(self.trace, name)).readlines()) for name in os.listdir(self.trace))
        again = steps - self.grains * self.steps
        print(f"{steps} steps, {again} of them ({100 * again / steps:.1f} %) had run before")
        return steps, again
