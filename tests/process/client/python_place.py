#!/usr/bin/python3
"""What the calls of a dcs.Executor find: the program's arguments, directory and environment; in a rerun, too. What it says, and
that it can be interrupted, while the scheduler is away."""
import importlib
import os
import signal
import subprocess
import sys

from pool import raises, tells
from python_calls import PYTHON, dcs, pool_of_python, said


ARGUED = """
import dcs, sys
SCALE = int(sys.argv[2]) if len(sys.argv) > 2 else 1
def scaled(n): return n * SCALE
if __name__ == "__main__":
    try:
        with dcs.Executor("argued") as run:
            print(list(run.map(scaled, range(3))), run.submit(eval, "__import__('sys').argv").result() == sys.argv)
    except dcs.GrainDiffers as error:
        print(error)
"""


def argued(env):
    """Calls find the program's arguments, and with others they are others."""
    assert said(env, "argued.py", ARGUED, "x", "5").startswith("[0, 5, 10] ")
    assert said(env, os.path.abspath("argued.py"), ARGUED, "x", "5") == "[0, 5, 10] True\n"
    text = said(env, "argued.py", ARGUED, "x", "6")
    assert tells(text, 'sys.argv[2]: recorded "5", now "6"') and "argv=[...] names the arguments" in text, text
    elsewhere = "import dcs, os, sys\nos.chdir(sys.argv[1])\nwith dcs.Executor('elsewhere', argv=[]) as run: print(run.submit('os:getcwd').result())\n"
    assert said(env, "elsewhere.py", elsewhere, "/usr") == "/usr\n"
    moved = subprocess.run([PYTHON, "elsewhere.py", "/"], env=env, capture_output=True, text=True, timeout=300).stderr
    assert tells(moved, 'directory recorded "/usr", now "/" directory=... names') and "PWD" not in moved, moved


SURROUNDED = """
import dcs, os, sys

def copied(name):
    with open("in.txt") as source, open(name, "w") as copy:
        copy.write(source.read() + os.environ["MARK"])
    return os.getcwd(), "DCS_PATIENCE_S" in os.environ

def marks(run):
    return [run.submit(os.getenv, "MARK").result(), run.submit_command(["/bin/sh", "-c", "echo $MARK"]).result().output.decode().strip()]

def same(run):
    return run.submit(os.getcwd).result() == os.getcwd()

if __name__ == "__main__":
    os.umask(0o027)
    if "again" in sys.argv:
        with dcs.Executor("surrounded", argv=[], env={"MARK2": "other"} if "other" in sys.argv else {}) as run:
            print(marks(run))
        sys.exit()
    with open("in.txt", "w") as file:
        file.write("text ")
    with dcs.Executor() as run:
        print(run.submit(copied, "out.txt").result() == (os.getcwd(), False), open("out.txt").read(), oct(os.stat("out.txt").st_mode & 0o777))
        run.submit_command(["sh", "-c", "cat in.txt >command.txt"]).result()
        print(open("command.txt").read())
    for fields in ({"files": {"in.txt": "in.txt"}}, {"directory": None}, {"outputs": ["o"]}):
        with dcs.Executor(**fields) as run:
            print(same(run), run.submit_command(["sh", "-c", "pwd; >o"]).result().output.decode().strip() == os.getcwd())
    with dcs.Executor(directory="/usr") as run:
        print(run.submit(os.getcwd).result(), run.submit_command(["pwd"]).result().output)
    os.mkdir("gone")
    os.chdir("gone")
    with dcs.Executor(attempts=1) as run, dcs.Executor(attempts=1, directory=os.getcwd()) as other:
        os.rmdir(os.getcwd())
        os.chdir("..")
        print(run.submit(abs, -1).result())
        for failed in (run.submit(copied, "out.txt"), run.submit(os.mkdir, "made"), other.submit(abs, -1)):
            print(str(failed.exception()).replace(os.getcwd(), "").replace(os.uname().nodename, "HOST"))
"""


def surrounded(env):
    """Calls run in the program's directory and environment; those of a rerun keep the environment; a lost file is an error."""
    lines = said(dict(env, MARK="m", DCS_PATIENCE_S="9"), "surrounded.py", SURROUNDED).splitlines()
    assert lines[:7] == ["True text m 0o640", "text ", *3 * ["False False"], "/usr b'/usr\\n'", "1"], lines
    assert tells(lines[7], "HOST has no directory /gone 'in.txt'") and tells(lines[8], "made left call would lost HOST no directory /gone"), lines
    assert tells(lines[9], "grain 0 FileNotFoundError '/gone'"), lines
    for mark, path, other in ("one", env["PATH"], ""), ("two", "/bin:" + env["PATH"], ""), ("one", env["PATH"], "other"):
        done = subprocess.run([PYTHON, "surrounded.py", "again", *other.split()], env=dict(env, MARK=mark, PATH=path), capture_output=True,
                              text=True, timeout=300)
        if other:
            assert done.returncode == 1 and tells(done.stderr, "GrainDiffers call 0") and tells(done.stderr, "env recorded"), done
        else:
            assert done.stdout == "['one', 'one']\n" and tells(done.stderr, "environment differs MARK, PATH keep fresh=True") == (mark == "two"), done


FOUND = """
import subprocess, sys, time
import dcs
from dcs._encoding import label_of

def tool(_):
    return subprocess.run(["factor", "6"], stdout=subprocess.PIPE, text=True).stdout

if __name__ == "__main__":
    with dcs.Executor() as run:
        print(run.submit(tool, 0).result(), end="")
        print(run.submit_command(["bin/factor"]).result().output)
        calls = [run.submit_command(["/bin/true"], **wants) for wants in ({"host_class": 1 << 30}, {"memory_mb": 10**7})]
        for call in calls:
            print(call.exception())
    with dcs.Executor(encoding="json") as run:
        for call in (len, {1: 2}), ("collections:Counter", [1]), (dict, {"a": [1]}):
            try:
                print(run.submit(*call).result())
            except (dcs.CallFailed, TypeError) as error:
                print(str(error).split("\\n")[0])
    session = dcs.Session("found")
    session.close()
    try:
        session.submit(1, ["/bin/true"])
    except dcs.SessionClosed as error:
        print(error)
    try:
        dcs.Executor(4)
    except TypeError as error:
        print(error)
    left = dcs.Executor()
    [left.submit(time.sleep, 60) for _ in range(3)]
"""


def programs(env):
    """A command is found as the program finds it; errors are those of each call, in words of Python; calls that no shutdown() waits
    for are withdrawn, and that is said."""
    os.mkdir("bin")
    with open("bin/factor", "w") as file:
        file.write("#!/bin/sh\necho mine\n")
    os.chmod("bin/factor", 0o755)
    with open("found.py", "w") as file:
        file.write(FOUND)
    done = subprocess.run([PYTHON, "found.py"], env=dict(env, PATH=os.getcwd() + "/bin:" + env["PATH"]), capture_output=True, text=True,
                          timeout=300)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[:2] == ["mine", "b'mine\\n'"], done
    assert tells(lines[2], "call 2 of session no host other_class") and tells(lines[3], "call 3 of session no host too_little_memory"), lines
    assert all("key 1 would be a string" in line for line in lines[4:6]) and lines[6] == "{'a': [1]}", lines
    assert "Session.clean() removes it" in lines[7] and "d_" not in lines[7] and tells(lines[8], "takes an ident 4 slots say how many"), lines
    assert tells(done.stderr, "3 calls withdrawn without shutdown()"), done


AWAY = """
import dcs, sys

if __name__ == "__main__":
    with dcs.Executor("away") as run:
        first = run.submit_command(["sh", "-c", "until test -e come; do sleep 0.05; done"])
        print("runs", flush=True)
        sys.stdin.readline()
        try:
            run.submit_command(["/bin/echo", "second"])
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        sys.stdin.readline()
        third = run.submit_command(["/bin/echo", "third"])
        print(first.result().ok, third.grain, third.result().output)
"""


def away(pool, env):
    """While no scheduler answers the executor says so, and Ctrl-C ends what waits for it."""
    with open("away.py", "w") as file:
        file.write(AWAY)
    program = subprocess.Popen([PYTHON, "away.py"], env=dict(env, DCS_PATIENCE_S="100000"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline() == "runs\n"
        assert pool.kill("scheduler", "scheduler")
        program.stdin.write("\n")
        program.stdin.flush()
        said_in(program.stderr, "dcs: scheduler does not answer; waiting `dcs up` nothing is lost")
        program.send_signal(signal.SIGINT)
        assert program.stdout.readline() == "interrupted\n"
        pool.up()
        said_in(program.stderr, "dcs: scheduler is back")
        open("come", "w").close()
        out, err = program.communicate("\n", timeout=300)
        assert (out, program.returncode) == ("True 2 b'third\\n'\n", 0), (out, err)
    finally:
        program.kill()
        program.communicate()


def said_in(stream, words):
    for line in stream:
        if tells(line, words):
            return
    raise AssertionError(words)


DEMANDING = """import dcs, sys
def square(n): return n * n
def fails(n): raise LookupError(n)
if __name__ == "__main__":
    if sys.argv[2] == "session":
        try:
            with dcs.Session("demanding") as session:
                session.submit(1, ["/bin/echo", "fits"], memory_mb=int(sys.argv[1]))
                print(session.wait().output)
        except dcs.CannotRun as error:
            print("CannotRun", *getattr(error, "__notes__", []))
        sys.exit()
    try:
        with dcs.Executor("demanding.calls", memory_mb=int(sys.argv[1]), argv=[]) as run:
            print(run.submit(square, int(sys.argv[2])).result(), repr(run.submit(fails, 1).exception()))
            print(*getattr(run.submit(fails, 1).exception(), "__notes__", []))
    except dcs.Error as error:
        print(type(error).__name__, error)
"""


def demanding(env):
    """What no host can run is corrected in the program, and run again; another argument is named."""
    first = said(env, "demanding.py", DEMANDING, "90000000", "session")
    assert tells(first, "CannotRun 1 grain is left same program with other demands continues") or sys.version_info < (3, 11), first
    assert said(env, "demanding.py", DEMANDING, "100", "session") == "b'fits\\n'\n"
    first = said(env, "demanding.py", DEMANDING, "90000000", "5")
    assert first.startswith("CannotRun call 0"), first
    second = said(env, "demanding.py", DEMANDING, "100", "5")
    number = next(row.session for row in dcs.sessions() if row.ident == "demanding.calls")
    assert second.startswith("25 LookupError(1)\n"), second
    assert f"dcs grain restart {number}:2 --and-after" in second or sys.version_info < (3, 11), second
    third = said(env, "demanding.py", DEMANDING, "100", "6")
    assert "recorded square(5), now square(6)." in third and "\\x" not in third, third
    assert dcs.grain_row(number, 0).label == "square(5)"
    big = 10 ** 5000  # Python refuses to print it
    label_of = importlib.import_module("dcs._encoding").label_of
    assert label_of(abs, [((big, {1: big}), {"x": b"ab"})]) == "abs(<int>, <dict>, x=b'ab')"


def lacking():
    """A grain that ends without one of its outputs has failed."""
    with dcs.Session("lacking") as session:
        for number, outputs in enumerate((["made", "left"], ["made"])):
            session.submit(number, ["/bin/sh", "-c", "echo >made"], outputs=outputs, attempts=1)
            result = session.wait()
            if number == 0:
                raises(dcs.GrainFailed, result.check, "grain 0", "ended with status 0 without making left")
            else:
                assert result.check().ok
    with dcs.Executor(attempts=1) as run:
        assert "without making left" in str(run.submit_command(["true"], outputs=["left"]).exception(timeout=300))


def main():
    with pool_of_python() as (pool, env):
        argued(env)
        surrounded(env)
        programs(env)
        demanding(env)
        lacking()
        away(pool, env)
    print("6 passed, 0 failed")


if __name__ == "__main__":
    main()
