#!/usr/bin/python3
"""The Python package: every program of docs/PYTHON.md; its structures against dcs.h; what goes well, what goes wrong, what is
interrupted; and an executor whose program and scheduler are killed by -9 and started again."""
import ctypes
import dataclasses
import inspect
import os
import re
import signal
import subprocess
import sys
import threading
import warnings

from hurry import Hurry
from pool import FULL, ROOT, Pool, seeded, tells, wait_for

PACKAGE = os.path.join(ROOT, "libdcs/python")
PYTHON = "/usr/bin/python3"
sys.path.insert(0, PACKAGE)
import dcs  # noqa: E402
from dcs import _caller as caller  # noqa: E402
from dcs._fields import STRUCTURES  # noqa: E402

# Waits for a grain that never ends until it is interrupted; then for one that ends.
WAITER = """
import sys, dcs
session = dcs.Session("waiter", 50)
session.submit(1, ["/bin/sh", "-c", "while [ ! -e $1 ]; do sleep 0.1; done; echo late", "sh", sys.argv[1]])
try:
    print("waiting", flush=True)
    session.wait()
except KeyboardInterrupt:
    print("interrupted", flush=True)
open(sys.argv[1], "w")
print(session.wait().output.decode(), end="")
session.close()
"""

# Sums of squares by an executor; says the sum of each chunk as it comes.
SUMS = """
import dcs

def square(n):
    return n * n

if __name__ == "__main__":
    with dcs.Executor("sums") as executor:
        print(sum(executor.map(square, range(COUNT), chunksize=3)), flush=True)
        a, b = executor.submit(square, 7), executor.submit_command(["echo", "hello"])
        print(a.result(), b.result().output)
"""


def layout():
    """The structures of the package are those of dcs.h, to the byte."""
    def fields(kind):
        return [(name, ) for name, _ in kind._fields_]
    lines = []
    for name, kind in STRUCTURES.items():
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        lines += [f'printf("{name}.{field} %zu %zu\\n", offsetof(struct {name}, {field}), sizeof(((struct {name} *)0)->{field}));'
                  for field, in fields(kind)]
    source = "#include <stdio.h>\n#include <stddef.h>\n#include \"dcs.h\"\n#include \"dcs_lock.h\"\nint main(void) {\n" + "\n".join(lines) + "\n}\n"
    with open("layout.c", "w") as file:
        file.write(source)
    subprocess.run(["cc", "-I", os.path.join(ROOT, "libdcs/include"), "-o", "layout", "layout.c"], check=True)
    told = subprocess.run(["./layout"], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    mine = []
    for name, kind in STRUCTURES.items():
        mine.append(f"{name} {ctypes.sizeof(kind)}")
        mine += [f"{name}.{field} {getattr(kind, field).offset} {getattr(kind, field).size}" for field, in fields(kind)]
    assert mine == told, [pair for pair in zip(mine, told) if pair[0] != pair[1]]
    demands = re.findall(r"^    demand\([\w:]+, (\w+), ", open(os.path.join(ROOT, "libdcs/wire/demands.h")).read(), re.M)
    assert len(demands) >= 8, demands
    for kind in (dcs.Grain, dcs.GrainRow):
        missing = set(demands) - {field.name for field in dataclasses.fields(kind)}
        assert not missing, f"{kind.__name__} has no {missing}"
    fields = [field.name for field in dataclasses.fields(dcs.Grain)]
    untold = [name for name in fields if not re.search(rf"\b{name}\b", dcs.Grain.__doc__)]
    assert not untold and "wall_s=0, " in str(inspect.signature(dcs.Grain)), (untold, inspect.signature(dcs.Grain))
    commands = open(os.path.join(ROOT, "libdcs/commands/dcs/run/caller_environment.cc")).read()
    for variables in (caller.VOLATILE, caller.FAMILIES):
        assert f'("{variables}")' in re.sub(r'"\s+"|(?<=\()\s+', "", commands), "variables that calls do not get are not those of dcs map"
    header = open(os.path.join(ROOT, "libdcs/include/dcs.h")).read()
    for name, code in re.findall(r"^    (D_E_\w+) = (\d+)", header, re.M):
        error = dcs.errors.error_of(int(code), name, "", "")
        assert type(error) is not dcs.Error and type(error).__name__.lower() == name[4:].lower().replace("_", ""), (name, error)


def raises(kind, call, *words):
    try:
        call()
    except kind as error:
        for word in words:
            assert tells(str(error), word), f"{word!r} is not in {error}"
        return error
    raise AssertionError(f"no {kind.__name__}")


def successes():
    with dcs.Session("api") as session:
        session.submit_many([(n, dcs.Grain(["/bin/sh", "-c", "cat; echo $X >&2"], input=bytes([n, 0, 255]), env={"X": f"x{n}"}))
                             for n in range(20)])
        session.submit(20, ["/bin/sh", "-c", "head -c 100000 /dev/zero | tr '\\0' z; head -c 30000 /dev/zero >&2"])
        read, write = os.pipe()
        os.write(write, b"through a pipe")
        os.close(write)
        session.submit(21, ["/bin/cat"], input_fd=read, label="piped")
        os.close(read)
        first = session.wait(timeout=300)
        found = {r.grain: r for r in [first, *session.results(batch=5)]}
        assert sorted(found) == list(range(22)) and [r.index for r in found.values()] == list(range(22)), found
        for n in range(20):
            assert found[n].output == bytes([n, 0, 255]) and found[n].error == f"x{n}\n".encode() and found[n].ok, found[n]
        assert found[20].output == b"z" * 100000 and found[20].error == bytes(30000) and len(found[20].output_head) == 20480
        with found[20].open_output() as stream:
            assert stream.read(3) == b"zzz" and len(stream.read()) == 99997
        assert found[21].output == b"through a pipe" and found[21].usage.max_rss_kb > 0 and found[21].usage.ru["ru_maxrss"] > 0
        row = dcs.grain_row(session.number, 21)
        assert (row.label, row.state, row.argv, row.exit_code) == ("piped", "finished", ("/bin/cat",), 0), row
        assert dcs.grain_stream(session.number, 21, "input").read() == b"through a pipe"
        assert [s.ident for s in dcs.sessions(dcs.login_name()) if s.session == session.number] == ["api"]
        assert dcs.system().hosts_total == 2 and len(dcs.grains(session.number)) == 22
    return session.number


def failures(number):
    """In a replay of the closed session, and in a new one."""
    session = dcs.Session("api")
    assert session.number == number, "the ident's own session was not found"
    again = dcs.Grain(["/bin/sh", "-c", "cat; echo $X >&2"], input=bytes([1, 0, 255]), env={"X": "x1"})
    session.submit(1, again)
    error = raises(dcs.ReplayEnd, lambda: session.submit_many([(1, again), (99, again)]))
    assert (error.taken, error.refused, error.code, error.name) == (0, 1, 20, "D_E_REPLAY_END"), vars(error)
    assert error.text and error.hint and error.hint != error.text
    raises(dcs.GrainDiffers, lambda: session.submit(1, ["/bin/cat"]), "argv")
    assert len(list(session.results())) == 22
    raises(dcs.NothingLeft, session.wait)
    raises(dcs.GrainDiffers, session.close, "took the result of grain 0 has not submitted")
    session.leave()
    raises(ValueError, lambda: dcs.Session("another"), "'api' already")
    raises(dcs.SessionClosed, lambda: dcs.Session("api", number, sent_reset=False))
    raises(dcs.SessionClosed, lambda: dcs.Session("api", number, mode="open"))
    raises(ValueError, lambda: dcs.Session("api", 5, mode="begin"))
    with dcs.Session("api", 30) as session:
        raises(dcs.NothingLeft, session.wait)
        raises(dcs.NothingLeft, session.poll)
        raises(ValueError, lambda: session.submit(1, ["/bin/echo", "a\0b"]), "NUL")
        raises(ValueError, lambda: session.submit(1, ["/bin/echo"], memory_mb=2**31), "32 bits")
        raises(TypeError, lambda: session.submit(1, "/bin/echo"), "list")
        raises(TypeError, lambda: session.submit(1, ["/bin/echo"], wishes=3), "submit() no argument wishes help(dcs.Grain)")
        for word, field in (("cwd", "directory"), ("time", "wall_s"), ("memory", "memory_mb")):
            raises(TypeError, lambda word=word: session.submit(1, ["/bin/echo"], **{word: 1}), f"argument {word} is {field}")
            raises(TypeError, lambda word=word: dcs.Executor(**{word: 1}), f"Executor argument {word} is {field}")
        raises(TypeError, lambda: dcs.Executor(max_workers=2), "max_workers", "slots")
        raises(TypeError, lambda: session.submit(1, ["/bin/cat"], input=5), "str or bytes")
        raises(dcs.Invalid, lambda: session.submit(1, ["/bin/echo"], notice=-1), "notice is -1")
        raises(ValueError, lambda: next(session.results(batch=0)), "batch 0 must least 1")
        raises(ValueError, lambda: session.submit(-5, ["/bin/echo"]))
        raises(dcs.NotFound, lambda: session.submit(1, ["/bin/echo"], files={"x": "/nowhere"}), "/nowhere")
        raises(dcs.GrainUnknown, lambda: session.kill(77))
        session.submit(1, ["/bin/sleep", "1000"])
        assert session.poll() is None
        raises(TimeoutError, lambda: session.wait(timeout=0.2))
        session.submit(2, ["/bin/sh", "-c", "echo bad luck >&2; exit 4"], attempts=1)
        result = session.wait()
        failed = raises(dcs.GrainFailed, result.check, "status 4", "bad luck")
        assert failed.result is result and not result.ok
        session.kill(1)
        raises(dcs.NothingLeft, session.wait)
        session.submit(3, ["/bin/true"], host_class=1 << 31)
        raises(dcs.CannotRun, session.wait, "With other commands: dcs.Session('api', skip=[30]) begins a new one")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with dcs.Session("api", 32) as left:
            left.submit_many([(n, dcs.Grain(["/bin/sleep", "1000"])) for n in range(3)])
        with dcs.Session("api", 32) as again:
            again.submit_many([(n, dcs.Grain(["/bin/sleep", "1000"])) for n in range(3)])
        with dcs.Session("api", 33) as all_taken:
            all_taken.submit(1, ["/bin/true"])
            assert len(list(all_taken.results())) == 1
    told = [str(warning.message) for warning in told if warning.category is RuntimeWarning]
    raises(dcs.ReplayEnd, dcs.Session("api", 32).wait, "no further result", "dcs.Session('api', mode=\"reopen\") goes on in it")
    assert len(told) == 2 and tells(told[0], "session 32 closed ends 3 of its grains Session('api', mode=\"reopen\") runs them results()"), told
    assert tells(told[1], "session 32 was closed before 3 of its grains had run Session('api', mode=\"reopen\")"), told
    raises(dcs.SessionClosed, lambda: session.submit(4, ["/bin/true"]))
    raises(dcs.NotFound, lambda: dcs.grain_file(30, 2, "x"))
    raises(dcs.GrainUnknown, lambda: dcs.grain_row(30, 1234))
    raises(ValueError, lambda: dcs.grains(30, "sleepy"), "sleepy")
    try:
        with dcs.Session("api", 31):
            raise KeyError("so")
    except KeyError:
        assert [s.state for s in dcs.sessions() if s.session in (30, 31)] == ["terminated"]  # nothing was in 31
    try:
        with dcs.Session("api", 34) as session:
            session.submit(1, ["/bin/sleep", "1000"])
            raise KeyboardInterrupt
    except KeyboardInterrupt as left:
        assert tells(left.__notes__[0], "1 grain of session 34 goes on dcs session close 34 ends it"), left.__notes__
    session.close()
    with dcs.Session("api", 30) as session:  # closed before grain 3 ended: not all results are there
        results = session.results()
        assert next(results).grain == 2
        raises(dcs.ReplayEnd, lambda: next(results))


def threads():
    """Grains submitted and taken by several threads at once: each result once."""
    found, lock = [], threading.Lock()
    with dcs.Session("api", 40) as session:
        def submit(part):
            for n in range(part, 60, 3):
                session.submit(n, ["/bin/echo", str(n)])

        def take():
            for result in session.results(batch=4):
                with lock:
                    found.append((result.grain, result.output))
        for target in (submit, take):
            workers = [threading.Thread(target=target, args=(i,) if target is submit else ()) for i in range(3)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
    assert sorted(found) == [(n, f"{n}\n".encode()) for n in range(60)], found


HELPER = """
import dataclasses
import deeper_module

def deep(n):
    return deeper_module.double(n)

def called(function):
    return function()

@dataclasses.dataclass
class Pair:
    a: int
    b: int
    def swapped(self):
        return Pair(self.b, self.a)

def add(a, b=0):
    print("this is not the answer")
    return a + b

def fail(word):
    raise LookupError(word)

class Odd(Exception):
    def __init__(self, place, fault):
        super().__init__(f"{fault} at {place}")

def odd():
    raise Odd("line 7", "a hole")
"""


def wrong_programs():
    """A program that is no file, and one that finds no library."""
    env = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(os.path.abspath(dcs.__file__))))
    program = "import dcs\ndef here(): pass\nwith dcs.Executor('words', attempts=1) as run:\n  run.submit(here)\n"
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=300)
    assert tells(done.stderr, "functions program not file cannot called other hosts"), done.stderr
    assert "words" not in [s.ident for s in dcs.sessions()], "a session in which nothing was ever submitted is left"
    lost = subprocess.run([sys.executable, "-c", "import dcs; dcs.sessions()"], capture_output=True, text=True, timeout=300,
                          env=dict(env, DCS_LIBRARY="/no/such/libdcs.so"))
    assert tells(lost.stderr, "libdcs.so cannot loaded build install DCS name library DCS_LIBRARY /no/such"), \
        lost.stderr
    raises(ValueError, lambda: dcs.Executor("api", encoding="xml"), "encoding is 'xml'", '"cloudpickle" or "json"')


def executor():
    import beside_module
    import helper_module
    from helper_module import add, fail
    with dcs.Executor("api", 60, encoding="json", attempts=1, python=PYTHON) as run:
        assert run.submit(add, 2, b=3).result(timeout=300) == 5
        assert run.submit("math:gcd", 12, 18).result() == 6
        assert "LookupError" in str(raises(dcs.CallFailed, run.submit(fail, "gone").result, "gone", "Traceback"))
    with dcs.Executor("api", 61, modules=["json.tool"], attempts=1, python=PYTHON) as run:
        error = raises(LookupError, run.submit(fail, "gone").result, "gone")
        assert isinstance(error.__cause__, dcs.CallFailed) and "in fail" in error.__cause__.traceback
        raises(dcs.CallFailed, run.submit(helper_module.odd).result, "Odd", "a hole at line 7")  # pickle cannot make it again
        assert run.submit(helper_module.Pair.swapped, helper_module.Pair(1, 2)).result() == helper_module.Pair(2, 1)
        assert list(run.map(add, range(7), range(7), chunksize=3)) == [0, 2, 4, 6, 8, 10, 12]
        raises(ValueError, lambda: run.submit(lambda: 1), "lambda", 'encoding="cloudpickle"')
        assert run.submit(helper_module.Pair(3, 4).swapped).result() == helper_module.Pair(4, 3)
        assert run.submit(helper_module.called, beside_module.seven).result() == 7, "the module of an argument does not travel"
        assert run.submit(helper_module.deep, 3).result() == 6, "an imported module does not travel"
        raises(ValueError, lambda: run.submit("gcd", 1), "'gcd' is not of the form", '"module:name"')
        raises(ValueError, lambda: run.map(add, [1], chunksize=0), "chunksize 0 must least 1")
        raises(dcs.GrainFailed, run.submit_command(["/bin/sh", "-c", "exit 3"]).result, "status 3")
        slow = run.submit_command(["/bin/sleep", "1000"])
        assert not slow.done()
        assert slow.cancel(), slow.exception()
        assert slow.cancelled() and dcs.grain_row(61, slow.grain).state == "killed"
    raises(RuntimeError, lambda: run.submit(add, 1))
    assert {s.session: s.state for s in dcs.sessions()}[61] == "terminated"
    try:
        with dcs.Executor("api", 62, python=PYTHON) as run:
            future = run.submit_command(["/bin/sleep", "1000"])
            raise KeyError("so")
    except KeyError:
        assert future.cancelled() and dcs.grain_row(62, 0).state in ("ready", "running")


def interrupted(pool, env):
    with open("waiter.py", "w") as file:
        file.write(WAITER)
    process = subprocess.Popen([PYTHON, "waiter.py", os.path.join(pool.base, "go")], env=env, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"waiting\n"
    wait_for("the grain", lambda: pool.grains(50)[0]["state"] == "running")
    process.send_signal(signal.SIGINT)
    try:
        said = process.communicate(timeout=300)[0]
    finally:
        process.kill()
    assert said == b"interrupted\nlate\n" and process.returncode == 0, (said, process.returncode)


def killed(pool, env, rng):
    count = 3000 if FULL else 90
    with open("sums.py", "w") as file:
        file.write(SUMS.replace("COUNT", str(count)))
    kills = 0
    while True:
        process = subprocess.Popen([PYTHON, "sums.py"], env=env, stdout=subprocess.PIPE)
        if kills < (20 if FULL else 4):
            try:
                process.wait(timeout=0.5 + rng.random() * 2)
            except subprocess.TimeoutExpired:
                pass
            kills += 1
            if kills % 2 == 0:
                pool.kill("scheduler", "scheduler")
                pool.up()
            process.kill()
            process.wait()
            process.stdout.close()
            continue
        try:
            output, code = process.communicate(timeout=600)[0], process.returncode
        finally:
            process.kill()
        assert code == 0 and output.decode() == f"{sum(n * n for n in range(count))}\n49 b'hello\\n'\n", (code, output)
        break
    own = [s for s in pool.json("session", "ls")["sessions"] if s["ident"] == "sums"]
    assert len(own) == 1 and own[0]["finished"] == count // 3 + 2, own
    print(f"killed {kills} times, then the right sums")


def page(env):
    text = open(os.path.join(ROOT, "docs/PYTHON.md")).read()
    programs = re.findall(r"^```python (\S+)\n(.*?)^```", text, re.M | re.S)
    outputs = dict(re.findall(r"^```output (\S+)\n(.*?)^```", text, re.M | re.S))
    assert len(programs) == 9 and len(outputs) == 8, (programs, outputs)
    for name, source in programs:
        with open(name, "w") as file:
            file.write(source)
        for _ in range(2):  # and once more: a replay says the same
            done = subprocess.run([PYTHON, name], env=env, capture_output=True, timeout=300)
            if name == "look.py":
                break
            if name == "errors.py":  # whose replay is a closed session
                assert b"D_E_GRAIN_DIFFERS" in done.stdout and b"status 3, b'so not\\n'" in done.stdout, done
                break
            assert done.returncode == 0, f"{name}: {done.stderr.decode()}"
            assert done.stdout.decode() == outputs[name], f"{name}: {done.stdout.decode()}"
        assert done.returncode == 0, f"{name}: {done.stderr.decode()}"
        assert done.stdout.decode() == outputs.get(name, done.stdout.decode()), f"{name}: {done.stdout.decode()}"


def main():
    rng = seeded(11)
    with Pool(2, 2, 1.0) as pool, Hurry(pool):
        os.environ.update(DCS_DIR=pool.dir, DCS_LIBRARY=os.path.join(os.path.dirname(pool.bin), "lib/libdcs.so.0"),
                          DCS_LOCK_DIR=os.path.join(pool.base, "locks"))
        env = dict(os.environ, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1")
        os.mkdir(os.path.join(pool.base, "work"))
        os.chdir(os.path.join(pool.base, "work"))
        for name, text in (("helper_module", HELPER), ("deeper_module", "def double(n): return n + n\n"),
                           ("beside_module", "def seven(): return 7\n")):
            with open(name + ".py", "w") as file:
                file.write(text)
        sys.path.insert(0, os.getcwd())
        layout()
        for what in (lambda: page(env), lambda: failures(successes()), threads, wrong_programs, executor,
                     lambda: interrupted(pool, env), lambda: killed(pool, env, rng)):
            what()
        os.chdir("/")
    print("7 passed, 0 failed")


if __name__ == "__main__":
    main()
