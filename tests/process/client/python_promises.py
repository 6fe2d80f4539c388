#!/usr/bin/python3
"""What the Python package promises where it is easily broken: a descriptor's input that is submitted again, numbers that do not fit, words
that are no lists, waits beside polls and without an end, callbacks that exit, failures that travel, and results of killed grains."""
import ctypes
import logging
import os
import pickle
import sys
import threading

from pool import raises, wait_for
from python_calls import dcs, pool_of_python, said


# Behind what an earlier run recorded, and in another environment, submissions are repeated.
INPUTS = """
import dcs, os, sys
with dcs.Executor("inputs", argv=[""]) as run:
    futures = []
    for n in range(int(sys.argv[1])):
        reading, writing = os.pipe()
        os.write(writing, f"{n} of a pipe\\n".encode())
        os.close(writing)
        with open(f"input-{n}", "w+") as file:
            file.write(f"{n} of a file\\n")
            file.flush()
            file.seek(0)
            futures += [run.submit_command(["cat"], input_fd=fd) for fd in (reading, file.fileno())]
        os.close(reading)
    print(*(future.result().output for future in futures))
"""


def inputs(env):
    for count, more in (1, {}), (3, {}), (3, {"ANOTHER": "1"}):
        wanted = " ".join(str(f"{n} of a {kind}\n".encode()) for n in range(count) for kind in ("pipe", "file"))
        assert said({**env, **more}, "inputs.py", INPUTS, str(count)) == wanted + "\n"


def numbers():
    """One that does not fit into 32 bits reaches no other grain, session or host."""
    far, big = 2**32, "does not fit into 32 bits"
    with dcs.Session("promises", 50) as session:
        session.submit(0, ["/bin/echo", "first"])
        assert session.wait().grain == 0
        pool = dcs.default_pool
        for call in (lambda: session.kill(far), lambda: session.submit(far + 1, ["/bin/true"]), lambda: dcs.Session("promises", far + 51),
                     lambda: dcs.grain_row(50, far), lambda: dcs.grain_row(far + 50, 0), lambda: dcs.grain_stream(50, far, "out"),
                     lambda: dcs.grain_file(far + 50, 0, "x"), lambda: dcs.grains(far + 50), lambda: pool.explain(50, far),
                     lambda: dcs.restart(50, far), lambda: dcs.kill_grain("root", 50, far), lambda: dcs.close_session("root", far + 50),
                     lambda: pool.clear_nogo("local1", far + 50, 0), lambda: dcs.set_host("local1", slots=far + 1),
                     lambda: dcs.set_host("local1", host_class=far + 1), lambda: dcs.Pool(auth_fd=far)):
            raises(ValueError, call, big)
        assert "the session's number is 4294967346" in str(raises(ValueError, lambda: dcs.grain_row(far + 50, 0)))
        raises(TypeError, lambda: session.kill("0"), "the grain's number takes a whole number, not str")
        assert dcs.grain_row(50, 0).state == "finished" and {row.session: row.state for row in dcs.sessions()}[50] == "active"
        assert not [host for host in dcs.hosts() if host.slots == 1]
        dcs.set_host("local1", slots=-1, host_class=0xffffffff)
        dcs.set_host("local1", reset=True)


def words():
    """A string is no list of names, and a variable's name has no = in it."""
    with dcs.Session("promises", 60) as session:
        for name in ("outputs", "env"):
            raises(TypeError, lambda field=name: session.submit(1, ["/bin/true"], **{field: "table"}), f"{name} is a list of strings", "'table'")
        raises(TypeError, lambda: session.submit(1, "/bin/true"), "argv is a list of strings")
        for name in ("A=B", ""):
            raises(ValueError, lambda variable=name: session.submit(1, ["/bin/true"], env={variable: "x"}), f"variable {name!r}")
        session.submit(1, ["/bin/sh", "-c", "echo rows >table; echo $A"], env={"A": "B=x"}, outputs=["table"])
        result = session.wait()
        assert result.output == b"B=x\n" and result.open_file("table").read() == b"rows\n"


def waits():
    """A timed wait ends in its time beside a poll that gets no answer; one without an end waits; killed grains give no results."""
    with dcs.Session("promises", 70) as session:
        session.submit(1, ["/bin/sleep", "1000"])
        asked, answer, take = threading.Event(), threading.Event(), session._take

        def taken(block, most):
            if not block:
                asked.set()
                assert answer.wait(240)
            return take(block, most)
        session._take = taken
        poller = threading.Thread(target=session.poll)
        poller.start()
        assert asked.wait(240)
        raises(TimeoutError, lambda: session.wait(timeout=0.2))
        assert poller.is_alive()
        answer.set()
        poller.join()
        for timeout, number in (float("inf"), 2), (1e10, 3):
            session.submit(number, ["/bin/echo", str(number)])
            assert session.wait(timeout=timeout).grain == number
        session.kill(1)
    with dcs.Session("promises", 71) as session:
        for number in range(4):
            session.submit(number, ["/bin/true"])
        wait_for("all to finish", lambda: all(row.state == "finished" for row in dcs.grains(71)), 240)
        found = []
        for result in session.results():
            found.append(result.grain)
            if len(found) == 1:
                session.kill(killed := (result.grain + 1) % 4)
        assert sorted([*found, killed]) == [0, 1, 2, 3], (found, killed)


class Records(logging.Handler):
    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(str(record.exc_info[1]))


def exits(_):
    sys.exit("out of a callback")


def callbacks():
    """One that exits ends no other future, and shutdown() closes the session."""
    records = Records()
    logging.getLogger("concurrent.futures").addHandler(records)
    go = os.path.abspath("go-callbacks")
    with dcs.Executor("promises", 90) as run:
        futures = [run.submit_command(["sh", "-c", f"until test -e {go}; do sleep 0.1; done"]) for _ in range(3)]
        called = []
        futures[0].add_done_callback(exits)
        futures[0].add_done_callback(called.append)
        with open(go, "w"):
            pass
        assert all(future.result(timeout=240).ok for future in futures)
    assert called == [futures[0]] and records.texts == ["a callback of call 0 exits"], (called, records.texts)
    assert {row.session: row.state for row in dcs.sessions()}[run.session.number] == "terminated"
    raises(SystemExit, lambda: futures[1].add_done_callback(exits), "out of a callback")  # where the program calls it
    with dcs.Executor("promises", 91) as run:
        run._values = exits  # such as a pickle of a host can do
        assert isinstance(run.submit(abs, -1).exception(timeout=240), SystemExit)


def pickled():
    """A GrainFailed leaves a process as it is, as that of a pool of processes."""
    with dcs.Session("promises", 80) as session:
        session.submit(1, ["/bin/sh", "-c", "echo reason >&2; exit 3"], attempts=1)
        error = raises(dcs.GrainFailed, session.wait().check, "status 3")
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.result, again.why) == (str(error), error.result, error.why)
        assert again.result.error == b"reason\n"


def main():
    assert ctypes.sizeof(ctypes.c_int) == 4
    with pool_of_python() as (_, env):
        for what in (lambda: inputs(env), numbers, words, waits, callbacks, pickled):
            what()
    print("6 passed, 0 failed")


if __name__ == "__main__":
    main()
