#!/usr/bin/python3
"""Python programs that run again: after Ctrl-C under asyncio, after their session was closed, with a session that is not there yet, and
under dcs replay-check."""
import os
import signal
import subprocess
import sys

from pool import raises, tells, wait_for
from python_calls import PYTHON, dcs, pool_of_python, said

WAITS = """
import os, time

def until(name, n):
    with open(f"begun-{n}", "a") as file:
        file.write("x")
    while not os.path.exists(name):
        time.sleep(0.02)
    return n * n
"""
GATHERED = """
import asyncio, dcs
from waits import until

async def main():
    loop = asyncio.get_running_loop()
    with dcs.Executor("gathered") as run:
        print(await asyncio.gather(*(loop.run_in_executor(run, until, "go", n) for n in range(3))))

asyncio.run(main())
"""


def gathered(pool, env):
    """Ctrl-C ends the wait of asyncio, and not the calls: a rerun has their results, of the first time that they ran."""
    for name, text in (("waits.py", WAITS), ("gathered.py", GATHERED)):
        with open(name, "w") as file:
            file.write(text)
    with subprocess.Popen([PYTHON, "gathered.py"], env=env, stderr=subprocess.PIPE, text=True) as program:
        wait_for("its calls", lambda: all(os.path.exists(f"begun-{n}") for n in range(3)))
        program.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in program.communicate(timeout=300)[1]
    assert {row.state for row in dcs.grains(1)} == {"running"}
    with open("go", "w"):
        pass
    assert said(env, "gathered.py", GATHERED) == "[0, 1, 4]\n"
    assert [open(f"begun-{n}").read() for n in range(3)] == ["x"] * 3


TO_THE_END = """
import dcs
with dcs.Session("to-the-end", mode="reopen", number=77) as session:
    for n in range(3):
        session.submit(n, ["/bin/echo", str(n)])
    seen = []
    while True:
        try:
            seen.append(session.wait().grain)
        except dcs.NothingLeft:
            break
    try:
        print(session.poll())
    except dcs.NothingLeft:
        print(sorted(seen))
"""


def to_the_end(env):
    """A rerun after the end gets NothingLeft where the first run did; the first run of "reopen" opens the session."""
    for mode in ("reopen", "resume"):
        for _ in range(2):
            assert said(env, "to_the_end.py", TO_THE_END.replace('"reopen"', repr(mode))) == "[0, 1, 2]\n"


WITH_FILES = """
import dcs, sys
with dcs.Session("with-files", 78) as session:
    session.submit(1, ["/bin/cat", "data"], files={"data": sys.argv[1]})
    print(session.wait().output)
"""
CALLS = """
import dcs
with dcs.Executor("calls", 79) as run:
    print(list(run.map(abs, [-1, -2])))
"""


def replayed(pool, env):
    """Programs whose grains have files repeat their record, as executors do; one with another file does not."""
    for name, text in (("one", "first\n"), ("two", "second\n")):
        with open(name, "w") as file:
            file.write(text)
    said(env, "with_files.py", WITH_FILES, "one")
    said(env, "calls.py", CALLS)
    pool.env.update(env)

    def check(session, *program):
        return pool.dcs("replay-check", session, "--", PYTHON, *program, check=False)
    for done in check("78", "with_files.py", "one"), check("79", "calls.py"):
        assert done.returncode == 0 and tells(done.stdout, "the program repeats its record"), done
        assert b"differs" not in done.stderr, done
    done = check("78", "with_files.py", "two")
    assert done.returncode == 1 and tells(done.stdout, "departs from its record"), done


TWO = """
import dcs
with dcs.Session("two") as one:
    one.submit(0, ["/bin/echo", "4"])
    n = int(one.wait().output)
    with dcs.Executor("two") as calls:
        future = calls.submit(abs, -n)
        with dcs.Session("two") as inner:
            inner.submit(1, ["/bin/echo", "inner"])
            print(inner.wait().output, future.result())
with dcs.Session("two") as last:
    last.submit(0, ["/bin/echo", "4"])
    print(one.number < calls.session.number < inner.number, last.number == one.number, last.wait().output)
with dcs.Executor("two") as more:
    print(more.submit(abs, -5).result(), more.session.number > inner.number)
"""


def two(env):
    """Sessions and executors of one program are different ones, in each run the same."""
    for _ in range(2):
        assert said(env, "two.py", TWO) == "b'inner\\n' 4\nTrue True b'4\\n'\n5 True\n"


NAMELESS = """
import dcs
with dcs.Executor() as run:
    future = run.submit_command(["sh", "-c", "seq 100000; echo made >table"], outputs=["table"])
print(len(future.result().output), future.result().open_file("table").read())
number = run.session.number
del run, future
for _ in range(1000):  # the thread that took the results may have them a little longer
    with dcs.Executor() as run:
        value = run.submit(abs, -1).result()
    if all(row.session != number for row in dcs.sessions()):
        print(value)
        break
"""


def nameless(env):
    """Results of an executor without an ident can be read behind its end; then its session is removed."""
    before = {row.session for row in dcs.sessions()}
    assert said(env, "nameless.py", NAMELESS) == "588895 b'made\\n'\n1\n"
    assert {row.session for row in dcs.sessions()} == before


UNLOADED = """
import _ctypes, ctypes, os, threading
lib, ready, go = ctypes.CDLL(os.environ["DCS_LIBRARY"]), threading.Event(), threading.Event()

def calls():
    lib.d_errornumber()
    ready.set()
    go.wait()

thread = threading.Thread(target=calls)
thread.start()
ready.wait()
_ctypes.dlclose(lib._handle)
go.set()
thread.join()
print("well")
"""


CANCELLED = """
import asyncio, dcs

async def main(ident):
    loop = asyncio.get_running_loop()
    with dcs.Executor(ident) as run:
        calls = [loop.run_in_executor(run, __import__("time").sleep, 1000) for _ in range(5)]
        await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        run.shutdown(cancel_futures=True)
        print({row.state for row in dcs.grains(run.session.number)} - {"killed"} if ident else "ended")

asyncio.run(main("cancelled-calls"))
asyncio.run(main(None))
"""


def cancelled(env):
    """Calls that asyncio gave up end with shutdown(cancel_futures=True), and at once where no rerun could have their results."""
    assert said(env, "cancelled.py", CANCELLED) == "set()\nended\n"


def files():
    with dcs.Session("rerun-files") as session:
        for wrong in ("/etc/hostname", ["/etc/hostname"], [("name", "/etc/hostname")]):
            raises(TypeError, lambda wrong=wrong: session.submit(1, ["/bin/true"], files=wrong), "mapping of names to paths")
        for n, some in enumerate(({"host": "/etc/hostname"}, [dcs.File("/etc/hostname", "host")], (dcs.File(path, "host") for path in ["/etc/hostname"]))):
            session.submit(n, ["/bin/cat", "host"], files=some)
        assert {result.output for result in session.results()} == {open("/etc/hostname", "rb").read()}


def main():
    with pool_of_python() as (pool, env):
        gathered(pool, env)
        to_the_end(env)
        replayed(pool, env)
        two(env)
        nameless(env)
        cancelled(env)
        assert said(env, "unloaded.py", UNLOADED) == "well\n"
        files()
        print("programs that run again do what they did")


if __name__ == "__main__":
    sys.exit(main())
