#!/usr/bin/python3
"""Durable submission through the C library, and one grain from its submission to its result, in turns with what the same costs
without DCS: a log with fdatasync, beanstalkd -b -f0 if Debian's package is installed.

    submit.py [--rounds R] [--grains N] PART...

batches: N grains by d_gexec_many, beside a log of groups of 1,024. callers: 64 threads, one grain a call, N / 100 in all.
one: a grain of /bin/true, submitted when the pool is at rest; the median of N / 3000."""
import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "process"))
from figures import figure, missing  # noqa: E402
from pool import BIN, Pool, wait_for  # noqa: E402

SUBMIT, CALLERS, GROUP = os.path.join(BIN, "perf_submit"), 64, 1024


def seconds(*words, env=None):
    return float(subprocess.run([SUBMIT, *map(str, words)], env=env, check=True, stdout=subprocess.PIPE).stdout)


class Beanstalkd:
    """With a worker that starts /bin/true. None if it is not installed."""

    def __init__(self, place):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        os.mkdir(os.path.join(place, "beanstalkd"))
        self.running = [subprocess.Popen([shutil.which("beanstalkd"), "-l", "127.0.0.1", "-p", str(self.port), "-b",
                                          os.path.join(place, "beanstalkd"), "-f0"])]
        wait_for("beanstalkd", self.answers)
        self.running.append(subprocess.Popen([SUBMIT, "work", str(self.port)], stderr=subprocess.DEVNULL))

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        except OSError:
            return False

    def end(self):
        for process in self.running:
            process.kill()
            process.wait()


class Trial:
    def __init__(self, pool, place, grains, beanstalkd):
        self.pool, self.log, self.grains, self.beanstalkd, self.session = pool, os.path.join(place, "log"), grains, beanstalkd, 0

    def dcs(self, what, *words):
        """Of a session of its own, which is removed again."""
        self.session += 1
        took = seconds(what, self.session, *words, env=self.pool.env)
        self.pool.dcs("session", "close", str(self.session))
        self.pool.dcs("session", "clean", str(self.session))
        return took

    def tell(self, name, value, yardstick, unit):
        figure(name, value, yardstick, unit)
        print(f"{name}: {value:.4g} and {yardstick:.4g} {unit}: {value / yardstick:.3f}", flush=True)

    def batches(self):
        log, ours = seconds("log", self.log, self.grains, GROUP), self.dcs("batches", self.grains)
        self.tell("submissions by d_gexec_many, of a log in groups of 1,024", self.grains / ours, self.grains / log, "/s")

    def callers(self):
        each = max(1, self.grains // 100 // CALLERS)
        count = each * CALLERS
        log, ours = seconds("log", self.log, count, 1), self.dcs("callers", CALLERS, each)
        self.tell("submissions, one a call, 64 callers, of a log with a sync for each", count / ours, count / log, "/s")
        if self.beanstalkd:
            theirs = seconds("put", self.beanstalkd.port, CALLERS, each)
            self.tell("submissions, one a call, 64 callers, of beanstalkd -f0", count / ours, count / theirs, "/s")

    def one(self):
        count = max(3, self.grains // 3000)
        bare, ours = seconds("start", self.log, count) * 1e3, self.dcs("one", count) * 1e3
        self.tell("one grain to its result, of sync, /bin/true, sync", ours, bare, "ms")
        if self.beanstalkd:
            self.tell("one grain to its result, of beanstalkd -f0", ours, seconds("job", self.beanstalkd.port, count) * 1e3, "ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="+", choices=("batches", "callers", "one"), metavar="PART")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--grains", type=int, default=300_000)
    options = parser.parse_args()
    place = tempfile.mkdtemp(prefix="dcs-perf-", dir=os.environ.get("TMPDIR", "/var/tmp"))
    beanstalkd = None
    try:
        if not shutil.which("beanstalkd"):
            missing("submissions and one grain beside beanstalkd -f0", "Debian's package beanstalkd is not installed")
        for part in options.parts:
            with Pool(1, 2, 10.0, patient=False, modest=True) as pool:
                if part != "one":
                    pool.dcs("host", "drain", "local1")  # these run nowhere
                beanstalkd = Beanstalkd(tempfile.mkdtemp(dir=place)) if shutil.which("beanstalkd") else None
                trial = Trial(pool, place, options.grains, beanstalkd)
                for _ in range(options.rounds):
                    getattr(trial, part)()
                if beanstalkd:
                    beanstalkd.end()
    finally:
        if beanstalkd:
            beanstalkd.end()
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
