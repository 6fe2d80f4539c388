#!/usr/bin/python3
"""A real scheduler starts on a session of a million small grains: time until it serves, memory, lookups.

    restart.py [GRAINS]"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from figures import figure

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("DCS_BIN") or os.path.join(ROOT, "build/release/bin")
GRAINS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000000


def resident(pid):
    pages = int(open(f"/proc/{pid}/statm").read().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def start(directory):
    """(process, seconds until it says that it serves)"""
    read, write = os.pipe()
    began = time.monotonic()
    process = subprocess.Popen([os.path.join(BIN, "dcs_scheduler"), "--dir", directory, "--ready-fd", str(write)],
                               pass_fds=(write,), stderr=subprocess.DEVNULL)
    os.close(write)
    said = os.read(read, 100)
    took = time.monotonic() - began
    os.close(read)
    assert said, "the scheduler did not start"
    return process, took


def read_all(directory):
    """Seconds that it takes to read the same files."""
    began = time.monotonic()
    for folder, _, files in os.walk(directory):
        for name in files:
            with open(os.path.join(folder, name), "rb") as file:
                while file.read(1 << 20):
                    pass
    return time.monotonic() - began


def main():
    base = tempfile.mkdtemp(prefix="dcs-perf-", dir="/var/tmp")
    directory = os.path.join(base, "scheduler")
    try:
        os.makedirs(os.path.join(base, "empty"))
        open(os.path.join(base, "empty", "hosts"), "w").close()
        nothing, took = start(os.path.join(base, "empty"))
        before = resident(nothing.pid)
        nothing.terminate()
        nothing.wait()
        print(f"an empty scheduler: {took:.2f} s to serve, {before / 2**20:.0f} MiB")
        subprocess.run([os.path.join(BIN, "perf_million"), str(GRAINS), os.path.join(directory, "state")], check=True)
        open(os.path.join(directory, "hosts"), "w").close()
        reading = read_all(os.path.join(directory, "state"))
        scheduler, took = start(directory)
        figure(f"{GRAINS} finished grains: start of the scheduler, of reading its files", took, reading, "s")
        print(f"{GRAINS} grains, all finished: {took:.2f} s to serve, "
              f"{(resident(scheduler.pid) - before) / GRAINS:.0f} bytes of memory a grain")
        environment = dict(os.environ, DCS_DIR=base)
        times = []
        for i in range(20):
            grain = 7919 * i % GRAINS
            began = time.monotonic()
            answer = subprocess.run([os.path.join(BIN, "dcs"), "grain", "show", f"ann/1:{grain}", "-o", "json"],
                                    env=environment, check=True, stdout=subprocess.PIPE).stdout
            times.append(time.monotonic() - began)
            assert str(grain) in json.dumps(json.loads(answer)), answer
        times.sort()
        figure(f"{GRAINS} finished grains: dcs grain show of one", times[10] * 1e3, None, "ms")
        print(f"`dcs grain show` of one of them, the command's own start included: median {times[10] * 1e3:.1f} ms, "
              f"worst {times[-1] * 1e3:.1f} ms")
        scheduler.kill()
        scheduler.wait()
        reading = read_all(os.path.join(directory, "state"))
        scheduler, took = start(directory)
        figure(f"{GRAINS} finished grains: start after kill -9, of reading its files", took, reading, "s")
        print(f"after kill -9: {took:.2f} s to serve")
        scheduler.terminate()
        scheduler.wait()
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
