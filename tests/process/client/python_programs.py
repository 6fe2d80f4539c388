#!/usr/bin/python3
"""The program as the calls of a dcs.Executor find it: started by -m, its flags, what lies beside it; and what errors name."""
import os
import subprocess

from pool import tells
from python_calls import PACKAGE, PYTHON, pool_of_python

FILES = {
    "package/__init__.py": "",
    "package/data.txt": "beside",
    "package/helper.py": """
import os
with open(os.path.join(os.path.dirname(__file__), "data.txt")) as file:
    DATA = file.read()
""",
    "package/program.py": """
import importlib, os, pkgutil, sys
import dcs
from . import helper
import lone

class Odd(Exception):
    def __init__(self, place, fault):
        super().__init__(f"{fault} at {place}")

def found(name):
    with open(os.path.join(os.path.dirname(__file__), name), "w") as file:
        file.write("left")
    return helper.DATA, pkgutil.get_data("package", "data.txt").decode(), __file__, helper.__file__, lone.__file__

def named(module):
    return importlib.import_module(module)

def odd():
    raise Odd("line 7", "a hole")

def nested():
    return dcs.Executor()

def many(data):
    return len(data)

if __name__ == "__main__":
    import package.helper
    with dcs.Executor(attempts=1, encoding=sys.argv[1]) as run:
        print(tuple(run.submit(found, "out.txt").result()) == ("beside", "beside", __file__, package.helper.__file__, lone.__file__))
        for call in (named, "computed"), (odd,), (nested,), (many, b"0" * (17 << 20)) if sys.argv[1] == "pickle" else (named, "other"):
            try:
                print(run.submit(*call).result())
            except Exception as error:
                print(type(error).__name__, str(error).replace("\\n", " "))
    with dcs.Executor(attempts=1, modules=["computed"]) as run:
        print(run.submit("computed:f").result())
""",
    "lone.py": "",
    "computed.py": "def f(): return 6\n",
}
FLAGS = """
import dcs, sys

def flags():
    return sys.flags.optimize, sys.flags.isolated, "error::FutureWarning" in sys.warnoptions, sys._xoptions

if __name__ == "__main__":
    with dcs.Executor("flags", argv=[]) as run:
        print(*run.submit(flags).result())
"""
MOVED = """
import dcs, math, multiprocessing, os, time

def started(n):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.map(math.factorial, [n])

def left():
    with open(__file__ + ".txt", "w"):
        pass

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    os.chdir(here)
    with dcs.Executor(attempts=1) as run:
        waits = [run.submit_command(["/bin/sh", "-c", "until test -e ../go; do sleep 0.05; done"]) for _ in range(4)]
        calls = [run.submit(started, 4), run.submit(left), run.submit(open, here + "/data.txt")]
        while sum(row.state == "running" for row in dcs.grains(run.session.number)) < 4:
            time.sleep(0.05)
        os.rename(here, here + "-moved")
        open("../go", "w").close()
        print(calls[0].result(), *[str(call.exception()) for call in calls[1:]], sep="\\n")
"""
SEVERAL = """
import dcs, sys
if __name__ == "__main__":
    for ident in "several-2", "one":
        with dcs.Pool() as pool:
            for value in 1, 2:
                with dcs.Executor(ident, argv=[], pool=pool) as run:
                    try:
                        print(run.submit(abs, -value * len(sys.argv)).result())
                    except dcs.GrainDiffers as error:
                        print(error.hint)
                if ident == "one":
                    break
"""

MIXED = """
import dcs, importlib, sys, versions

def own(n):
    return versions.f(n), "old"

def rewritten(path, old, new):
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace(old, new, 1))

def refused(run, call):
    try:
        print(run.submit(call, 9).result())
    except RuntimeError as error:
        print(error)

if __name__ == "__main__":
    with dcs.Executor("mixed", argv=[]) as run:
        print(list(run.map(versions.f, range(2))), run.submit(own, 2).result())
        if sys.argv[1:] == ["module"]:
            rewritten(versions.__file__, '"old"', '"new"')
            refused(run, versions.f)
            importlib.reload(versions)
            refused(run, versions.f)
            with dcs.Executor() as other:
                refused(other, versions.f)
                rewritten(versions.__file__, '"new"', '"odd"')
                with dcs.Executor() as third:
                    refused(third, versions.f)
        elif sys.argv[1:] == ["program"]:
            rewritten(__file__, '"old"', '"odd"')
            refused(run, own)
        else:
            print(run.submit(versions.f, 3).result())
"""

GRAINS = """
import dcs, dcs.grain

def served(what):
    with getattr(dcs.grain, what)() or open("/dev/null", "w") as state:
        state.write("state")

if __name__ == "__main__":
    with dcs.Executor() as run:
        for what in "handler", "time_to_checkpoint", "checkpoint":
            print(repr(run.submit(served, what).exception()))
"""


def python(env, *words):
    done = subprocess.run([PYTHON, *words], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done


def module_started(env):
    """A program of `python -m` in a package: its relative imports, and the files beside the modules, which are the originals' places."""
    os.mkdir("package")
    for name, text in FILES.items():
        with open(name, "w") as file:
            file.write(text)
    env = {name: value for name, value in env.items() if name != "DCS_LIBRARY"}
    for encoding in "pickle", "json":
        told = python(env, "-m", "package.program", encoding).stdout.splitlines()
        assert told[0] == "True" and open("package/out.txt").read() == "left", told
        os.remove("package/out.txt")
        assert tells(told[1], "No module named 'computed' installed modules=['computed']"), told
        assert tells(told[2], "CallFailed Odd a hole at line 7 package/program.py raise Odd") and ("again from its pickle" in told[2]) == (
            encoding == "pickle"), told
        assert tells(told[3], "ImportError a call does not reach the pool cores=N ProcessPoolExecutor(N)"), told
        assert tells(told[4], 'Limit length of the input larger data files={"data": ' if encoding == "pickle" else "modules=['other']"), told
        assert told[5] == "6", told
    os.rename("package/program.py", "package/__main__.py")
    assert python(env, "-m", "package", "pickle").stdout.splitlines()[0] == "True"


def flags(env):
    """Calls have the interpreter's flags; a rerun with others keeps those of the first, and says so."""
    with open("flags.py", "w") as file:
        file.write(FLAGS)
    first = "1 0 True {'dev': True}\n"
    assert python(env, "-O", "-W", "error::FutureWarning", "-X", "dev", "flags.py").stdout == first
    again = python(env, "flags.py")
    assert again.stdout == first and tells(again.stderr, "environment differs -O, -Werror::FutureWarning keep theirs"), again
    isolated = FLAGS.replace("import dcs, sys", f"import sys\nsys.path[:0] = [{PACKAGE!r}]\nimport dcs").replace('"flags", argv=[]', "")
    with open("isolated.py", "w") as file:
        file.write(isolated)
    assert python(env, "-I", "isolated.py").stdout == "0 1 False {}\n"


def moved(env):
    """On a host without the program's directory calls may start processes, and what they look for or leave there is an error."""
    os.mkdir("place")
    with open("place/moved.py", "w") as file:
        file.write(MOVED)
    told = python(env, "place/moved.py").stdout.splitlines()
    assert told[0] == "[24]" and tells(told[1], "moved.py.txt, left by call, would be lost no directory /place") and tells(
        told[2], "no directory /place data.txt"), told


def several(env):
    """The advice after an edit: another ident is one of all executors of the program."""
    with open("several.py", "w") as file:
        file.write(SEVERAL)
    assert python(env, "several.py").stdout == "1\n2\n1\n"
    told = python(env, "several.py", "other").stdout.splitlines()
    assert tells(told[0], "dcs.Executor('several-3'), as the ident of all executors of this program, runs") and told[1] == told[0], told
    assert tells(told[2], "dcs.Executor('one-2') runs all calls"), told


def mixed(env):
    """A file that changes while the program runs: what it calls is of one version, and a rerun with that version goes on."""
    def write():
        for name, text in ("versions.py", 'def f(n): return n, "old"\n'), ("mixed.py", MIXED):
            with open(name, "w") as file:
                file.write(text)
    before = "[(0, 'old'), (1, 'old')] ((2, 'old'), 'old')"
    write()
    told = python(env, "mixed.py", "module").stdout.splitlines()
    assert told[0] == before and tells(told[1], "/versions.py has changed not submitted: run the program again") and tells(
        told[2], "/versions.py loaded again make another executor") and told[3] == "(9, 'new')" and tells(
        told[4], "/versions.py not submitted"), told
    again = subprocess.run([PYTHON, "mixed.py"], env=env, capture_output=True, text=True, timeout=300)
    assert again.returncode == 1 and tells(again.stderr, "GrainDiffers: versions.py has changed since session"), again
    write()
    told = python(env, "mixed.py", "program").stdout.splitlines()
    assert told[0] == before and tells(told[1], "/mixed.py has changed not submitted"), told
    write()
    assert python(env, "mixed.py").stdout == before + "\n(3, 'old')\n"


def grains(env):
    """A call is no grain that takes checkpoints, and dcs.grain says so there."""
    with open("grains.py", "w") as file:
        file.write(GRAINS)
    told = python(env, "grains.py").stdout.splitlines()
    assert len(told) == 3 and all(tells(line, "RuntimeError call takes no checkpoints submit_command()") for line in told), told


def main():
    with pool_of_python() as (_, env):
        module_started(env)
        flags(env)
        moved(env)
        several(env)
        mixed(env)
        grains(env)
    print("6 passed, 0 failed")


if __name__ == "__main__":
    main()
