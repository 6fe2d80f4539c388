#!/usr/bin/python3
"""A real scheduler starts on a session of a million small grains: time until it serves, memory, lookups.

    restart.py [GRAINS [SESSIONS]]     SESSIONS: so many like it, copies of the first one's files"""
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
SESSIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 1
ALL = GRAINS * SESSIONS


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


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def var(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_var(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def with_seniority(record, more):
    """A session's record (docs/STATE_FORMAT.md), so much younger."""
    _, at = read_var(record, 0)
    body = record[at + 4:]
    at = 1  # behind the version
    tag, value = read_var(body, at)
    while tag != 2 * 8:  # field 2, a natural number; before it there are only such
        assert tag % 8 == 0 and tag < 2 * 8, "the record of a session has another form"
        _, at = read_var(body, value)
        tag, value = read_var(body, at)
    seniority, behind = read_var(body, value)
    body = body[:value] + var(seniority + more) + body[behind:]
    return var(len(body)) + crc32c(body).to_bytes(4, "little") + body


def copy_session(state):
    """Sessions 2 to SESSIONS of session 1: their files are the same ones, for the scheduler only reads them here."""
    first = os.path.join(state, "sessions/ann/1")
    for number in range(2, SESSIONS + 1):
        to = os.path.join(state, "sessions/ann", str(number))
        shutil.copytree(first, to, copy_function=os.link)
        os.remove(os.path.join(to, "status"))
        with open(os.path.join(first, "status"), "rb") as file, open(os.path.join(to, "status"), "wb") as copy:
            copy.write(with_seniority(file.read(), number))


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
        copy_session(os.path.join(directory, "state"))
        open(os.path.join(directory, "hosts"), "w").close()
        reading = read_all(os.path.join(directory, "state"))
        scheduler, took = start(directory)
        figure(f"{ALL} finished grains: start of the scheduler, of reading its files", took, reading, "s")
        print(f"{ALL} grains, all finished: {took:.2f} s to serve, "
              f"{(resident(scheduler.pid) - before) / ALL:.0f} bytes of memory a grain")
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
        figure(f"{ALL} finished grains: dcs grain show of one", times[10] * 1e3, None, "ms")
        print(f"`dcs grain show` of one of them, the command's own start included: median {times[10] * 1e3:.1f} ms, "
              f"worst {times[-1] * 1e3:.1f} ms")
        scheduler.kill()
        scheduler.wait()
        reading = read_all(os.path.join(directory, "state"))
        scheduler, took = start(directory)
        figure(f"{ALL} finished grains: start after kill -9, of reading its files", took, reading, "s")
        print(f"after kill -9: {took:.2f} s to serve")
        scheduler.terminate()
        scheduler.wait()
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
