#!/usr/bin/python3
"""What the child of a fork does to the sessions and executors of its parent, and waits that outlive what they ask for."""
import os

from pool import wait_for
from python_calls import dcs, pool_of_python, said

# A child ends, having had nothing to do with DCS or an executor of its own; then the calls of its parent end.
EXECUTORS = """
import dcs, os, sys, time

def waits(path):
    while not os.path.exists(path):
        time.sleep(0.05)
    return path

def forked(child):
    pid = os.fork()
    if pid == 0:
        child()
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0

def refused():
    try:
        run.submit(waits, "refused")
    except RuntimeError as error:
        assert "another here" in str(error), error
        run.leave()
        with dcs.Executor() as own:
            assert own.submit(abs, -5).result() == 5
        return
    sys.exit(1)

if __name__ == "__main__":
    for ident in None, "forks":
        for child in int, refused:
            go = os.path.abspath(f"go-{ident}-{child.__name__}")
            run = dcs.Executor(ident, fresh=ident is not None)
            future = run.submit(waits, go)
            forked(child)
            open(go, "w").close()
            assert future.result(timeout=240) == go
            run.shutdown()
            run = dcs.Executor(ident, fresh=ident is not None)
            with run:
                future = run.submit(waits, go + "-with")
                forked(child)
                open(go + "-with", "w").close()
                assert future.result(timeout=240) == go + "-with"
    print("all results came")
"""

SESSIONS = """
import dcs, os, sys

def child_of(body):
    pid = os.fork()
    if pid == 0:
        body()
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0, body

def waits():
    assert session.wait(timeout=240).grain == 1

def opens():
    with dcs.Session("forks-session", 71) as own:
        own.submit(1, ["/bin/true"])
        assert [result.grain for result in own.results()] == [1]

with dcs.Session("forks-session", 70) as session:
    session.submit(1, ["/bin/sh", "-c", "while [ ! -e $1 ]; do sleep 0.05; done", "sh", os.path.abspath("gone-on")])
    try:
        session.wait(timeout=0.2)
        sys.exit("it ended")
    except TimeoutError:
        pass  # a thread waits on
    child_of(int)  # leaves the block by SystemExit
    child = os.fork()
    if child > 0:
        assert os.waitpid(child, 0)[1] == 0
        assert {row.session: row.state for row in dcs.sessions()}[70] == "active"
        open("gone-on", "w").close()
        assert [result.grain for result in session.results()] == [1]
if child == 0:
    os._exit(0)  # at the end of the block
with dcs.Session("forks-session", 72) as session:
    session.submit(1, ["/bin/sh", "-c", "while [ ! -e $1 ]; do sleep 0.05; done", "sh", os.path.abspath("gone-on-2")])
    try:
        session.wait(timeout=0.2)
    except TimeoutError:
        pass
    open("gone-on-2", "w").close()
    child_of(waits)
    child_of(opens)
    states = {row.session: row.state for row in dcs.sessions()}
    assert (states[71], states[72]) == ("terminated", "active"), states
    assert [result.grain for result in session.results()] == [1]
print("the sessions are of their processes")
"""


def outlived():
    """A wait in the background that has heard that nothing is left says so only if nothing was submitted since."""
    with dcs.Session("outlived") as session:
        session.submit(1, ["/bin/sleep", "1000"])
        for killed, next_one in (1, 2), (3, 4):
            try:
                session.wait(timeout=0.2)
                raise AssertionError("it sleeps")
            except TimeoutError:
                pass
            session.kill(killed)
            wait_for("the answer to the thread that waits", lambda: session._error is not None, 240)
            session.submit(next_one, ["/bin/echo", "more"])
            assert [result.grain for result in session.results()] == [next_one]
            session.submit(next_one + 1, ["/bin/sleep", "1000"])
        session.kill(5)
        try:
            raise AssertionError(session.wait(timeout=240))
        except dcs.NothingLeft:
            pass


def closed(folder):
    """A pool that is closed under an executor: each future has its result, or ends with that error."""
    pool = dcs.Pool()
    run = dcs.Executor("closed", pool=pool, fresh=True)
    go = os.path.join(folder, "go-closed")
    futures = [run.submit_command(["sh", "-c", f"until test -e {go}; do sleep 0.1; done"]) for _ in range(6)]
    wait_for("the wait for a result", lambda: run.session._taking, 240)
    pool.close()
    with open(go, "w"):
        pass
    for future in futures:
        error = future.exception(timeout=240)
        assert error is None or (isinstance(error, ValueError) and "closed" in str(error)), repr(error)


def main():
    with pool_of_python() as (pool, env):
        assert said(env, "executors.py", EXECUTORS) == "all results came\n"
        assert said(env, "sessions.py", SESSIONS) == "the sessions are of their processes\n"
        outlived()
        closed(pool.base)
    print("4 passed, 0 failed")


if __name__ == "__main__":
    main()
