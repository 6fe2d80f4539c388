#!/usr/bin/python3
"""dcs.locks, with the command dcs_lock as the other party: what is granted and denied, an exception in the block, slots, wrong
arguments, children of forks, and a wait that an interrupt ends."""
import os
import signal
import subprocess
import sys
import tempfile

from pool import BIN, ROOT, program, raises, wait_for

PACKAGE = os.path.join(ROOT, "libdcs/python")
PYTHON = "/usr/bin/python3"
sys.path.insert(0, PACKAGE)
from dcs import locks  # noqa: E402

LOCK_WAITER = """
import sys
from dcs import locks
try:
    print("asks", flush=True)
    with locks.enter("ledger"):
        print("inside", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    assert sys.stdin.readline() == "go on\\n"
with locks.enter("ledger", wait=60):
    print("entered after it", flush=True)
"""


def lock_calls(base, env):
    command = [program("dcs_lock")]
    with locks.get("backup", "/home", expire_after=3600) as lock:
        assert lock.elapsed is None and 3590 < lock.expires_in <= 3600 and not lock.after_crash and os.fstat(lock.fileno())
        busy = raises(locks.Denied, lambda: locks.get("backup", "/home"), "has been held by process")
        assert busy.reason == "busy" and busy.holder == os.getpid(), vars(busy)
        held = locks.look("backup", "/home")
        assert held.held and held.holder == os.getpid() and held.outcome == "running" and held.token == lock.token
        with locks.get("backup", "/srv") as other:
            assert other.token
    assert locks.look("backup", "/home").outcome == "done"
    soon = raises(locks.Denied, lambda: locks.get("backup", "/home", if_elapsed=3600))
    assert soon.reason == "too-soon" and 3000 < soon.again_in <= 3600, vars(soon)
    try:
        with locks.get("backup", "/home") as lock:
            raise KeyError("of the block")
    except KeyError:
        assert locks.look("backup", "/home").outcome == "failed"
    raises(ValueError, lock.release, "released before")

    with locks.slots({"licences": 2, "disk": 1}, note="of the test") as slots:
        assert set(slots.numbers) == {"licences", "disk"} and slots.numbers["disk"] == 0
        assert [(h.pid, h.note) for h in locks.slot_holders("licences")] == [(os.getpid(), "of the test")]
        assert raises(locks.Denied, lambda: locks.slots({"licences": 2, "disk": 1}, wait=0)).reason == "limit"
        with locks.slots({"licences": 2}, wait=0):
            assert len(locks.slot_holders("licences")) == 2
    assert locks.slot_holders("licences") == []

    lock_file = os.path.join(base, "of_the_command")
    with locks.get(path=lock_file):
        refused = subprocess.run([*command, "-n", lock_file, "true"], capture_output=True)
        assert refused.returncode == 75, refused
    assert subprocess.run([*command, "-n", lock_file, "true"]).returncode == 0

    raises(ValueError, lambda: locks.get("a", if_elapsed=-1), "if_elapsed is -1: it takes seconds")
    raises(ValueError, lambda: locks.get("a", wait=locks.AUTO), "wait is 'auto'")
    for name in "max_kills", "instances":
        raises(ValueError, lambda field=name: locks.get("a", **{field: 2**32 + 1}), f"{name} is 4294967297: it does not fit into 32 bits")
    raises(ValueError, lambda: locks.slots({"licences": 2**32 + 1}), "licences is 4294967297")
    raises(locks.Failed, lambda: locks.get(""), "the name of a lock is empty")
    assert raises(OSError, lambda: locks.get(path="/proc/none/lock")).reason == "failed"

    # An interrupt ends a wait; what is granted after it is given back.
    lock = locks.enter("ledger")
    waiter = subprocess.Popen([PYTHON, "-c", LOCK_WAITER], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert waiter.stdout.readline() == "asks\n"
    wait_for("the waiter to be in the queue", lambda: locks.look("ledger").waiting == 1)
    waiter.send_signal(signal.SIGINT)
    assert waiter.stdout.readline() == "interrupted\n"
    lock.release()
    wait_for("what came too late to be given back", lambda: not locks.look("ledger").held)
    assert waiter.communicate("go on\n", timeout=300)[0] == "entered after it\n" and waiter.returncode == 0


FORKED = """
import os, sys
from dcs import locks
kind, way = sys.argv[1:]
take = {"get": lambda wait=None: locks.get("forked", wait=wait), "enter": lambda wait=None: locks.enter("forked", wait=wait),
        "slots": lambda wait=None: locks.slots({"forked-slots": 1}, wait=wait)}[kind]
with take():
    child = os.fork()
    if child == 0:
        if way == "raise":
            raise LookupError("of the child")
        if way == "exit":
            sys.exit(0)
    else:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == (1 if way == "raise" else 0), status
        try:
            with take(wait=0):
                sys.exit("another holder is in the block")
        except locks.Denied:
            pass
        if kind == "get":
            assert locks.look("forked").outcome == "running", locks.look("forked")
if child == 0:
    os._exit(0)  # at the end of the block
with take(wait=0):
    pass  # it is free now
"""

ADOPTED = """
import os, sys
from dcs import locks
lock = locks.get("adopted")
child = os.fork()
if child == 0:
    lock.adopt()
    with lock:
        pass
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert locks.look("adopted").outcome == "done" and not locks.look("adopted").held
"""


def forks(env):
    """The child of a fork that leaves the block, in whichever way, leaves the lock to its parent, unless it has adopted it."""
    for kind in "get", "enter", "slots":
        for way in "end", "exit", "raise":
            done = subprocess.run([PYTHON, "-c", FORKED, kind, way], env=env, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, (kind, way, done.stderr)
    done = subprocess.run([PYTHON, "-c", ADOPTED], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def main():
    with tempfile.TemporaryDirectory(prefix="dcs-test-") as base:
        os.environ.update(DCS_LIBRARY=os.path.join(os.path.dirname(BIN), "lib/libdcs.so.0"), DCS_LOCK_DIR=os.path.join(base, "locks"))
        env = dict(os.environ, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1")
        lock_calls(base, env)
        forks(env)


if __name__ == "__main__":
    main()
