#!/usr/bin/python3
"""A map whose list of inputs has grown at its end: what maps of shorter lists have finished does not run again, and what has changed
since does."""
import contextlib
import os
import signal
import subprocess

from pool import Pool, program, tells, wait_for

RUNS = ["--", "sh", "-c", 'echo "$1" >>ran; test "$1" != 2 || test -e mended || exit 1; echo "<$1"; echo "$1>" >&2', "sh"]
WAITS = ["-j1", "--", "sh", "-c", 'echo "$1" >>ran; test "$1" != b || until test -e go; do sleep 0.05; done; echo "$1"', "sh"]


class Folder:
    def __init__(self, pool):
        self.pool, self.path = pool, os.path.join(pool.base, "work")
        os.mkdir(self.path)

    def write(self, name, text=""):
        with open(os.path.join(self.path, name), "w") as file:
            file.write(text)

    def ran(self):
        """The inputs that ran since this was asked last."""
        try:
            with open(os.path.join(self.path, "ran")) as file:
                return "".join(sorted(file.read().split()))
        except FileNotFoundError:
            return ""
        finally:
            self.write("ran")

    def map(self, inputs, *words, code=0, **options):
        done = self.pool.dcs("map", *words, data="".join(f"{one}\n" for one in inputs).encode(), cwd=self.path, check=False, **options)
        assert done.returncode == code, done
        return done


def results(folder):
    """Failed ones run again; outputs, job log and files are those of all inputs."""
    with_all = ["--results", "R", "--joblog", "log", *RUNS]
    folder.map("123", *with_all, code=1)
    assert folder.ran() == "123"
    done = folder.map("12345", *with_all, code=1)
    assert tells(done.stderr, "5 grains, of which 2 finished with a shorter list (session 1); other 3 run, --new") and folder.ran() == "245", done
    folder.write("mended")
    assert tells(folder.map("12345", *with_all).stderr, "1 of 5 grains failed last run runs again") and folder.ran() == "2"
    done = folder.map("123456", *with_all)
    assert tells(done.stderr, "5 finished with a shorter list (session 1, session 2); other 1 runs") and folder.ran() == "6", done
    with open(os.path.join(folder.path, "log")) as log:
        assert sorted(int(line.split()[0]) for line in log.readlines()[1:]) == [1, 2, 3, 4, 5, 6]
    for number in "123456":
        for end, text in ("out", f"<{number}\n"), ("err", f"{number}>\n"):
            with open(os.path.join(folder.path, f"R/{number}.{end}")) as file:
                assert file.read() == text, (number, end)
    assert folder.map("1234567", *RUNS).stdout == b"<1\n<2\n<3\n<4\n<5\n<6\n<7\n" and folder.ran() == "7"
    for again in ("--replay", *RUNS), ("--replay", "--session", "last", *RUNS):
        assert folder.map("1234567", *again).stdout.count(b"<") == 7 and folder.ran() == ""
    assert tells(folder.map("1234567", *RUNS).stderr, "is complete: all run") and folder.ran() == "1234567"
    assert folder.map("12345678", "--new", *RUNS).stdout.count(b"<") == 8 and folder.ran() == "12345678"
    folder.map("21345678", *RUNS), folder.map("1234567", "--results", "other", *RUNS)
    assert folder.ran() == "1" * 2 + "2" * 2 + "3" * 2 + "4" * 2 + "5" * 2 + "6" * 2 + "7" * 2 + "8", "other lists are other maps"
    assert folder.map("12", "--results", "R", *RUNS, code=255).stdout == b""


def changes(folder):
    """A changed file among the inputs, another environment and other outputs: what they concern runs again."""
    for name in "fgh":
        folder.write(name, name)
    count = ["--", "sh", "-c", 'echo "$1" >>ran; cat "$1"', "sh"]
    assert folder.map("f", *count).stdout + folder.map("fg", *count).stdout == b"ffg" and folder.ran() == "fg"
    folder.write("g", "G")
    done = folder.map("fgh", *count)
    assert done.stdout == b"fGh" and folder.ran() == "gh" and tells(done.stderr, "ran a shorter list, but g has changed since"), done
    folder.pool.env["COLOUR"] = "red"
    done = folder.map("fghf", *count)
    assert done.stdout == b"fGhf" and folder.ran() == "ffgh" and tells(done.stderr, "but the environment or --output differs, so all run"), done
    copy = ["--", "sh", "-c", 'echo "$1" >copy', "sh"]
    folder.map("f", "--output", "copy=c/{}", *copy)
    os.remove(os.path.join(folder.path, "c/f"))
    folder.map("fg", "--output", "copy=c/{}", *copy)
    assert sorted(os.listdir(os.path.join(folder.path, "c"))) == ["f", "g"], "an output that a shorter list made"


def mended(folder):
    """The failed input of a shorter list is mended: it and what is new run, whatever comes first."""
    def begins(own):
        words = ["--", "sh", "-c", 'echo "$1" >>ran; ! grep -q BAD "$1"', own]
        for name in "uvw":
            folder.write(name, "BAD" if name == "v" else name)
        folder.map("uvw", *words, code=1)
        assert folder.ran() == "uvw"
        return words
    of_list = begins("together")
    folder.write("v"), folder.write("x")
    done = folder.map("uvwx", *of_list)
    assert folder.ran() == "vx" and tells(done.stderr, "2 finished with a shorter list other 2 run"), done
    of_list = begins("one by one")
    folder.write("v")
    assert tells(folder.map("uvw", *of_list).stderr, "runs again") and folder.ran() == "v"
    folder.write("x")
    assert tells(folder.map("uvwx", *of_list).stderr, "3 finished with a shorter list other 1 runs") and folder.ran() == "x"
    of_list = begins("first grown")
    folder.write("x")
    folder.map("uvwx", *of_list, code=1)
    assert folder.ran() == "vx"
    folder.write("v")
    assert tells(folder.map("uvwx", *of_list).stderr, "runs again") and folder.ran() == "v"
    folder.write("u", "another")
    folder.map("uvwxu", *of_list)
    assert folder.ran() == "uuw", "what a session has of a file that has changed since does not count, nor what else succeeded there"


def lost(folder):
    """The map of a longer list is complete; what a shorter one had was removed, or was in another environment."""
    count = ["--", "sh", "-c", 'echo "$1" >>ran; echo "$1$COLOUR"', "sh"]
    folder.ran(), folder.map("pq", *count)
    shorter = folder.pool.json("session", "show", "last")["session"]["session"]
    folder.map("pqr", *count)
    folder.pool.env["COLOUR"] = "green"
    assert folder.ran() == "pqr"
    done = folder.map("pqr", *count)
    assert folder.ran() == "pqr" and done.stdout.count(b"green") == 3 and tells(done.stderr, "is complete: all run again"), done
    folder.map("pqrs", *count)
    last = folder.pool.json("session", "show", "last")["session"]["session"]
    for session in range(shorter, last):
        folder.pool.dcs("session", "clean", str(session))
    assert folder.ran() == "s"
    done = folder.map("pqrs", "--replay", *count, code=255)
    assert folder.ran() == "" and tells(done.stderr, "nothing to replay: 3 of 4 grains have no result"), done
    done = folder.map("pqrs", *count)
    assert folder.ran() == "pqr" and done.stdout.count(b"green") == 4 and tells(done.stderr, "3 of 4 grains had no result"), done


def killed(pool, folder):
    """Killed maps of a list that grows meanwhile: what one of them runs does not run in the next. And one whose shorter list's session is
    removed then."""
    def kill(inputs, last):
        process = subprocess.Popen([program("dcs"), "map", *WAITS], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   cwd=folder.path, env=pool.env)
        process.stdin.write("".join(f"{one}\n" for one in inputs).encode())
        process.stdin.close()
        wait_for(last, lambda: last in open(os.path.join(folder.path, "ran")).read())
        process.send_signal(signal.SIGKILL)
        process.wait()
        return pool.json("session", "show", "last")["session"]["session"]
    folder.ran()
    first = kill("abc", "b")
    second = kill("abcd", "d")
    assert folder.ran() == "abcd", "the first runs b, and had not submitted c"
    folder.write("go")
    done = folder.map("abcd", *WAITS)
    assert done.stdout == b"a\nb\nc\nd\n" and tells(done.stderr, f"session {second}: resumed of 4 grains finished"), done
    assert folder.ran() == ""
    os.remove(os.path.join(folder.path, "go"))
    third = kill("abcdbe", "b")
    folder.write("go")
    for session in first, second:
        pool.dcs("session", "close", str(session), check=False)
        pool.dcs("session", "clean", str(session))
    assert folder.map("abcdbe", *WAITS).stdout == b"a\nb\nc\nd\nb\ne\n" and folder.ran() == "abbcde", third


def goes_on_elsewhere(pool, folder):
    """What was taken of a shorter list stays when the map goes on in another environment; after a change of its files it is refused."""
    script = 'echo "$1$COLOUR" >>ran; test "$1" != 3 || until test -e free; do sleep 0.05; done; echo "$1$COLOUR"; cat "$1"'
    for name in "1234":
        folder.write(name)
    for turn in ("environment", "input"):
        words = ["--", "sh", "-c", script, turn]
        pool.env["COLOUR"] = "red"
        folder.map("12", "--new", *words)
        folder.map("1234", "--detach", *words)
        wait_for("3", lambda: "3red" in open(os.path.join(folder.path, "ran")).read())
        if turn == "environment":
            pool.env["COLOUR"] = "blue"
            folder.write("free")
            assert tells(folder.map("1234", *words, code=255).stderr, "the environment (COLOUR) has changed")
            done = folder.map("1234", "--session", "last", *words)
            assert done.stdout.split()[:3] == [b"1red", b"2red", b"3red"], done
            os.remove(os.path.join(folder.path, "free"))
            folder.ran()
        else:
            folder.write("1", "new\n")
            done = folder.map("1234", *words, code=255)
            assert tells(done.stderr, "ran a shorter list goes on with its results"), done
            pool.dcs("session", "close", "last", "--yes")
    del pool.env["COLOUR"]
    folder.ran()


def settings(pool, folder):
    """Another --env, --file or --input makes another map: none takes results of the other, also while that one runs."""
    for name in ("x", "y"):
        folder.write(name, name + "\n")
    words = ["--", "sh", "-c", "echo $S$T"]
    folder.map("1", "--env", "S=1", "--env", "T=2", *words)
    assert tells(folder.map("1", "--env", "T=2", "--env", "S=1", *words).stderr, "is complete")
    assert folder.map("1", "--env", "T=2", "--env", "S=1", "--env", "S=3", *words).stdout == b"32\n"
    waits = "until test -e {}/free; do sleep 0.05; done; echo $S; cat".format(folder.path)
    for option, shown in (("--env", "{0}\n"), ("--input", "\n{0}\n"), ("--file", "\n{0}\n")):
        said = {"--env": "S={}", "--input": "{}", "--file": "f={}"}[option]
        words = ["--", "sh", "-c", waits + (" f" if option == "--file" else "")]
        numbers = [folder.map("1", "--detach", option, said.format(name), *words).stdout for name in ("x", "y", "x")]
        assert numbers[0] == numbers[2] != numbers[1], numbers
        folder.write("free")
        for name in ("x", "y"):
            done = folder.map("1", option, said.format(name), *words)
            assert done.stdout.decode() == shown.format(name), done
            assert folder.map("1", "--resume-failed", option, said.format(name), *words).stdout == done.stdout
        os.remove(os.path.join(folder.path, "free"))


def still_running(pool, folder):
    """A map of a longer list waits for what that of the shorter one still runs, and runs what fails there or is closed with it."""
    script = 'echo "$1" >>ran; until test -e "go-$1"; do sleep 0.05; done; test "$1" != 2 || test -e tried || { touch tried; exit 1; }; echo "$1"'

    @contextlib.contextmanager
    def begin(inputs, *words, name="sh"):
        with pool.start([program("dcs"), "map", *words, "--", "sh", "-c", script, name, ":::", *inputs], cwd=folder.path,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                yield process
            finally:
                process.kill()
    folder.ran()
    with begin("123"):
        wait_for("two grains", lambda: sorted(open(os.path.join(folder.path, "ran")).read().split()) == ["1", "2"])
    with begin("1234", "--joblog", "lines") as longer:
        told = longer.stderr.readline()
        assert tells(told, "4 grains, of which 3 still run with a shorter list other 1 runs, --new runs all"), told
    with begin("1234", "--joblog", "lines") as longer:
        told = longer.stderr.readline()
        assert tells(told, "resumed, 0 of 4 grains finished already"), told
        for number in "1234":
            folder.write("go-" + number)
        assert longer.communicate(timeout=300)[0] == b"1\n2\n3\n4\n" and longer.returncode == 0
    assert folder.ran() == "12234"
    with open(os.path.join(folder.path, "lines")) as log:
        assert sorted(int(line.split()[0]) for line in log.readlines()[1:]) == [1, 2, 3, 4]
    for number in "123":
        os.remove(os.path.join(folder.path, "go-" + number))
    with begin("12", name="other"):
        session = wait_for("two grains", lambda: (row := pool.json("session", "show", "last")["session"])["running"] == 2 and row["session"])
    with begin("123", name="other") as longer:
        assert tells(longer.stderr.readline(), f"of which 2 still run with a shorter list (session {session})")
        pool.dcs("session", "close", str(session), "--yes")
        for number in "123":
            folder.write("go-" + number)
        assert longer.communicate(timeout=300)[0] == b"1\n2\n3\n"


def main():
    with Pool(2, 1) as pool:
        folder = Folder(pool)
        results(folder)
        changes(folder)
        mended(folder)
        lost(folder)
        killed(pool, folder)
        goes_on_elsewhere(pool, folder)
        settings(pool, folder)
        still_running(pool, folder)
    print("8 passed, 0 failed")


if __name__ == "__main__":
    main()
