#!/usr/bin/python3
"""Programs with dcs.Executor that are edited, not guarded, in a virtual environment, or have several executors."""
import contextlib
import os
import re
import subprocess
import sys

from hurry import Hurry
from pool import ROOT, Pool, tells, wait_for

PACKAGE = os.path.join(ROOT, "libdcs/python")
PYTHON = "/usr/bin/python3"
sys.path.insert(0, PACKAGE)
import dcs  # noqa: E402


@contextlib.contextmanager
def pool_of_python():
    """A pool in which grains hurry, with the environment of its Python programs, in a directory of their own."""
    with Pool(2, 2, 1.0) as pool, Hurry(pool):
        os.environ.update(DCS_DIR=pool.dir, DCS_LIBRARY=os.path.join(os.path.dirname(pool.bin), "lib/libdcs.so.0"))
        env = dict(os.environ, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1")
        os.mkdir(os.path.join(pool.base, "work"))
        os.chdir(os.path.join(pool.base, "work"))
        yield pool, env
        os.chdir("/")


def said(env, name, program, *words):
    with open(name, "w") as file:
        file.write(program)
    done = subprocess.run([PYTHON, name, *words], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


EDITED = """
import sys, dcs
from edited_module import double

if __name__ == "__main__":
    try:
        with dcs.Executor("edited", argv=sys.argv[:1], fresh="fresh" in sys.argv) as run:
            print(list(run.map(double, range(int(sys.argv[1])))))
    except dcs.GrainDiffers as error:
        print(error)
"""


def edited(env):
    """The loop of who writes a program: run, edit, run."""
    def run(*words):
        done = subprocess.run([PYTHON, "edited.py", *words], env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout
    for name, text in (("edited.py", EDITED), ("edited_module.py", "def double(n): return n + n\n")):
        with open(name, "w") as file:
            file.write(text)
    assert run("3") == run("3") == "[0, 2, 4]\n"
    with open("edited_module.py", "a") as file:
        file.write("def other(n): return n\n")
    said = run("3")
    assert said.startswith("edited_module.py has changed since session") and "keeps its results" in said, said
    assert "dcs.Executor('edited-2') runs" in said and "dcs.Executor('edited', fresh=True) removes" in said, said
    with open("edited.py", "a") as file:
        file.write("    print('more')\n")
    with open("edited_module.py", "w") as file:
        file.write("def double(n): return n + n\n")
    assert run("3") == "[0, 2, 4]\nmore\n", "the program around the functions is none of their files"
    with open("edited.py", "w") as file:
        file.write(EDITED)
    with open("edited_module.py", "a") as file:
        file.write("def other(n): return n\n")
    assert run("3", "fresh") == run("3") == "[0, 2, 4]\n"
    assert run("2", "fresh") + run("3") == "[0, 2]\n[0, 2, 4]\n"
    assert len([s for s in dcs.sessions() if s.ident == "edited"]) == 1


def unguarded(env):
    """A control program without `if __name__ == "__main__"`: the error says so."""
    with open("unguarded.py", "w") as file:
        file.write("import dcs\ndef cube(n): return n ** 3\nwith dcs.Executor('unguarded', attempts=1) as run: print(run.submit(cube, 3).result())\n")
    done = subprocess.run([PYTHON, "unguarded.py"], env=env, capture_output=True, text=True, timeout=300)
    said = done.stderr
    assert done.returncode == 1 and tells(said, "unguarded.py calls DCS while host loads"), done
    assert 'if __name__ == "__main__":' in said, done
    with open("unguarded.py", "w") as file:
        file.write("import dcs\ndef cube(n): return n ** 3\nif __name__ == '__main__':\n  with dcs.Executor('unguarded', attempts=1) as run: run.submit(cube, 3)\n")
    done = subprocess.run([PYTHON, "unguarded.py"], env=env, capture_output=True, text=True, timeout=300)
    assert tells(done.stderr, "unguarded.py has changed all its calls failed fresh=True removes it") and "unguarded-2" not in done.stderr, done


def virtual_environment(env):
    """In a pool of `dcs up` functions run by the program's own interpreter, with what is installed there."""
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", "--symlinks", "venv"], check=True, timeout=300)
    program = "import sys, dcs\ndef prefix(): return sys.prefix\nif __name__ == '__main__':\n" \
              "  with dcs.Executor('venv', attempts=1) as run: print(run.submit(prefix).result() == sys.prefix != sys.base_prefix)\n"
    with open("in_venv.py", "w") as file:
        file.write(program)
    done = subprocess.run(["venv/bin/python", "in_venv.py"], env=env, capture_output=True, text=True, timeout=300)
    assert done.stdout == "True\n", (done.stdout, done.stderr)


UNCAUGHT = """
import dcs, sys
def call():
    if "refused" in sys.argv:
        dcs.Session("uncaught-refused").submit(-1, ["/bin/true"])
    if "kind" in sys.argv:
        dcs.Session("uncaught-refused").submit("1", ["/bin/true"])
    if "field" in sys.argv:
        dcs.Executor(memory=5)
    if "failed" in sys.argv:
        session = dcs.Session("uncaught-failed", 90)
        session.submit(1, ["/bin/false"], attempts=1)
        session.wait().check()
    if "future" in sys.argv:
        with dcs.Executor("uncaught-future", attempts=1) as run:
            run.submit_command(["/bin/false"]).result()
    raise dcs.Internal(22, "INTERNAL", "a fault", "report it") if "fault" in sys.argv else ZeroDivisionError
if "caught" in sys.argv:
    try:
        dcs.Pool("/no/pool", patience=0.1).hosts()
    except dcs.Error as error:
        print(error.__traceback__.tb_next is not None)
sys.excepthook = (lambda before: lambda *what: (print("hooked"), before(*what)))(sys.excepthook)
call()
"""


def uncaught(env):
    """The traceback of an error that the program does not catch ends where the program called; who catches it has all of it."""
    with open("uncaught.py", "w") as file:
        file.write(UNCAUGHT)
    for word, error in (("refused", "Invalid: grain_num is -1"), ("failed", "GrainFailed: grain 1 of session 90 ended with status 1"),
                        ("future", "GrainFailed: grain 0 of session"), ("fault", "Internal: a fault"),
                        ("kind", "TypeError: the grain's number takes a whole number, not str"),
                        ("field", "TypeError: Executor has no argument memory"), ("caught", "ZeroDivisionError")):
        done = subprocess.run([PYTHON, "uncaught.py", word], env=env, capture_output=True, text=True, timeout=300)
        files = {os.path.basename(name) for name in re.findall(r'^  File "([^"]+)", line', done.stderr, re.M)}
        assert done.returncode == 1 and files == {"uncaught.py"} and error in "".join(done.stderr.splitlines()[-2:]), done
        assert done.stdout == ("True\n" if word == "caught" else "") + "hooked\n", done


PREPARED = """
import dcs

known = []

def prepare(*words):
    known.extend(words)

def words(n):
    return [*known, n]

def wrong():
    raise LookupError("no table")

if __name__ == "__main__":
    for encoding in dcs.executor._encoding.ENCODINGS:
        with dcs.Executor(encoding=encoding, initializer=prepare, initargs="ab") as run:
            print(list(run.map(words, range(3), chunksize=2)), run.submit("operator:neg", 4).result())
    with dcs.Executor(initializer="sys:setrecursionlimit", initargs=(7777,)) as run:
        print(run.submit("sys:getrecursionlimit").result())
    with dcs.Executor(initializer=wrong) as run:
        for _ in range(2):
            print(repr(run.submit(abs, -1).exception()))
"""


def prepared(env):
    """An initialiser is called before the calls of each grain, and its value is none of theirs."""
    with open("prepared.py", "w") as file:
        file.write(PREPARED)
    done = subprocess.run([PYTHON, "prepared.py"], env=env, capture_output=True, text=True, timeout=300)
    assert done.stdout == "[['a', 'b', 0], ['a', 'b', 1], ['a', 'b', 2]] -4\n" * 3 + "7777\n" + "LookupError('no table')\n" * 2, (done.stdout, done.stderr)


TWO = """
import dcs

def cube(n):
    return n ** 3

if __name__ == "__main__":
    for count in (2, 3):
        with dcs.Executor("two") as run:
            print(list(run.map(cube, range(count))), run.session.number)
"""


def twice(env):
    """The second executor of a program has a session of its own, in each run the same."""
    with open("two.py", "w") as file:
        file.write(TWO)
    before, said = {s.session for s in dcs.sessions()}, []
    for _ in range(2):
        done = subprocess.run([PYTHON, "two.py"], env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    own = sorted({s.session for s in dcs.sessions()} - before)
    assert said[0] == said[1] == f"[0, 1] {own[0]}\n[0, 1, 8] {own[1]}\n" and len(own) == 2, (said, own)


def nameless(env):
    """Beside another one of any ident; nothing is left of it."""
    with open("nameless.py", "w") as file:
        file.write("import dcs\ndef cube(n): return n ** 3\nif __name__ == '__main__':\n"
                   "  with dcs.Executor('named') as named, dcs.Executor() as run, dcs.Executor() as other:\n"
                   "    print(run.submit(cube, 2).result(), other.submit(cube, 3).result(), named.submit(cube, 4).result())\n")
    before = len(dcs.sessions())
    for _ in range(2):
        done = subprocess.run([PYTHON, "nameless.py"], env=env, capture_output=True, text=True, timeout=300)
        assert done.stdout == "8 27 64\n", done.stderr
    assert len(dcs.sessions()) == before + 1, dcs.sessions()


def unseen(env):
    """A program whose process another one does not see, as from a container, keeps its session."""
    if os.getuid() != 0:
        return
    with open("unseen.py", "w") as file:
        file.write("import dcs\nwith dcs.Executor() as run:\n"
                   "    print(run.submit(abs, -3).result(), flush=True), input(), print(run.submit(abs, -4).result())\n")
    with subprocess.Popen([PYTHON, "unseen.py"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "3\n"
        other = ["unshare", "--pid", "--fork", "--mount-proc", PYTHON, "unseen.py"]
        assert subprocess.run(other, env=env, input="\n", capture_output=True, text=True, timeout=300).stdout == "3\n4\n"
        assert first.communicate("\n", timeout=300) == ("4\n", None)


CANCELLED = """
import concurrent.futures, dcs, time

if __name__ == "__main__":
    with dcs.Executor("cancelled") as run:
        first = run.submit(abs, -1).result()
        futures = [run.submit(time.sleep, 1000) for _ in range(5)]
        print(first, {future.cancel() for future in futures}, len(concurrent.futures.wait(futures, timeout=100).done))
        print(len(list(concurrent.futures.as_completed(futures, timeout=100))), {future.cancelled() for future in futures})
        try:
            futures[0].result(100)
        except concurrent.futures.CancelledError:
            print(run.submit(abs, -2).result())
"""


def cancelled(env):
    """wait() and as_completed() return for cancelled calls; a rerun cancels them, too."""
    for _ in range(2):
        assert said(env, "cancelled.py", CANCELLED) == "1 {True} 5\n5 {True}\n2\n"


GROWN = """
import dcs, sys, time

def ran(n):
    with open("ran.txt", "a") as file:
        file.write(f"{n} ")
    while n < 0:
        time.sleep(0.1)
    return n

if __name__ == "__main__":
    with dcs.Executor("grown", argv=[]) as run:
        futures = [run.submit(ran, int(word)) for word in sys.argv[1:]]
        print(*[future.result() for future in futures])
"""


def grown(pool, env):
    """Calls behind those of a session that was closed run in it, and so do those that had not ended."""
    for words in "0 1 2", "0 1 2 3 4", "0 1", "0 1 2 3 4 5":
        assert said(env, "grown.py", GROWN, *words.split()) == words + "\n"
    assert sorted(open("ran.txt").read().split()) == list("012345")
    waits = subprocess.Popen([PYTHON, "grown.py", *"012345", "-1"], env=env)
    session = next(row.session for row in dcs.sessions() if row.ident == "grown")
    wait_for("the call", lambda: open("ran.txt").read().endswith("-1 "))
    pool.dcs("session", "close", str(session))
    waits.kill()
    waits.wait()
    going_on = subprocess.Popen([PYTHON, "grown.py", *"012345", "-1"], env=env, stdout=subprocess.DEVNULL)
    wait_for("the call again", lambda: open("ran.txt").read().endswith("-1 -1 "))
    pool.dcs("grain", "kill", f"{session}:6")
    going_on.kill()
    going_on.wait()


def appended():
    """So do further grains of a session, if the program asks for it."""
    for mode, count in ("resume", 1), ("reopen", 2), ("reopen", 2), ("resume", 2), ("resume", 3), ("reopen", 4):
        try:
            with dcs.Session("appended", mode=mode) as session:
                for number in range(count):
                    session.submit(number, ["/bin/true"])
                assert sorted(result.grain for result in session.results()) == list(range(count)), (mode, count)
            assert count != 3
        except dcs.ReplayEnd as error:
            assert count == 3 and "dcs.Session('appended', mode=\"reopen\") goes on in it" in str(error), error


OPENED = """
import dcs, threading, time

def slow(pool, name, *arguments, call=dcs.Pool.call):
    time.sleep(0.1)
    call(pool, name, *arguments)

def opening(told, *what):
    try:
        told.append(dcs.Session(*what).number)
    except ValueError as error:
        told.append(str("already" in str(error)))

def together(words):
    told = []
    threads = [threading.Thread(target=opening, args=(told, *word)) for word in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told

dcs.Pool.call = slow
told = together([(f"opened{n}",) for n in range(5)])
number = next(one for one in told if one != "True")
ident = next(row.ident for row in dcs.sessions() if row.session == number)
print(told.count("True"), sorted(together([(ident, n) for n in range(201, 205)])), len({number, *together([(ident,)] * 4)}))
"""


def opened(env):
    """Sessions opened by several threads are different ones, as when one opens them after another."""
    told = said(env, "opened.py", OPENED)
    assert told == "4 [201, 202, 203, 204] 5\n", told


SEARCH = """
import dcs, warnings
warnings.simplefilter("error")
with dcs.Session("search") as session:
    session.submit_many([(n, dcs.Grain(["/bin/sh", "-c", f"test {n} = 0 && echo found || sleep 1000"])) for n in range(3)])
    for result in session.results():
        if result.output:
            print(result.output.decode(), end="")
            break
    session.close()
"""


def search(env):
    """Who closes a session before its end is not warned, in a rerun neither."""
    for _ in range(2):
        assert said(env, "search.py", SEARCH) == "found\n"


def refused(env):
    """An executor without an ident that an exception leaves has nothing that goes on."""
    program = """import dcs
try:
    with dcs.Executor() as run: run.submit_command(["sleep", "1000"]), run.submit("no module", 1)
except ValueError as error:
    print(getattr(error, "__notes__", []))
"""
    assert said(env, "refused.py", program) == "[]\n"


def ends():
    """What the pool knows of a call that was ended is in the exception."""
    with dcs.Executor(memory_mb=200, python=PYTHON) as run:
        error = run.submit("builtins:bytearray", 10**10).exception(timeout=300)
        assert isinstance(error, MemoryError) or "memory" in str(error), error
    with dcs.Executor(wall_s=1, attempts=1, python=PYTHON) as run:
        error = run.submit("time:sleep", 1000).exception(timeout=300)
        assert isinstance(error, dcs.GrainFailed) and str(error).count("longer than") == 1 and str(error).endswith("longer wall_s"), error
    with dcs.Executor(attempts=1, python=PYTHON) as run:
        error = run.submit("no_such_module:f").exception(timeout=300)
        assert isinstance(error, dcs.GrainFailed) and "No module named 'no_such_module'" in str(error), error
        assert "Traceback" in error.__cause__.traceback
    with dcs.Executor(python=PYTHON) as run:
        error = run.submit("os:_exit", 0).exception(timeout=300)
        assert isinstance(error, dcs.GrainFailed) and str(error).endswith("with status 0 before the function returned"), error


def main():
    with pool_of_python() as (pool, env):
        for what in (edited, unguarded, uncaught, virtual_environment, prepared, twice, nameless, unseen, cancelled, opened, search, refused):
            what(env)
        grown(pool, env)
        ends()
        appended()
    print("15 passed, 0 failed")


if __name__ == "__main__":
    main()
