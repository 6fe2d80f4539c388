#!/usr/bin/python3
"""What people type on their first day, and the outcomes that they did not want: commands run again after an edit, shell lines,
programs that are not there, the same map twice at once, a pool that is busy, away, or an administrator's."""
import os
import re
import signal
import subprocess
import time

from pool import Pool, program, tells, wait_for


class Shell:
    def __init__(self, pool, directory):
        self.pool, self.directory = pool, directory
        pool.env["PATH"] = os.path.dirname(program("dcs")) + ":" + pool.env["PATH"]

    def start(self, line, **options):
        return self.pool.start(["/bin/sh", "-c", line], cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True, text=True, **options)

    def run(self, line, code=0):
        """(standard output, standard error)"""
        process = self.start(line, stdin=subprocess.DEVNULL)
        out, err = process.communicate(timeout=300)
        assert process.returncode == code, (line, process.returncode, out, err)
        return out, err

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def sessions(self):
        return self.pool.json("session", "ls")["sessions"]

    def until(self, what, process, text):
        """Reads standard error up to this text."""
        said = ""
        while not re.search(text, said):
            line = process.stderr.readline()
            assert line, f"{what}: it ended after {said!r}"
            said += line
        return said


def again_means_anew(shell):
    shell.write("data", "one\n")
    assert shell.run("dcs map -- cat ::: data")[0] == "one\n"
    shell.write("data", "two\n")
    out, err = shell.run("dcs map -- cat ::: data")
    assert out == "two\n" and tells(err, "last run session 1 complete --replay prints"), (out, err)
    out, err = shell.run("dcs map --replay -- cat ::: data")
    assert out == "two\n" and "its results again" in err and "changed" not in err, (out, err)
    out, err = shell.run("dcs map --session 1 -- cat ::: data")
    assert out == "one\n" and tells(err, "warning data changed since session 1 began"), (out, err)
    assert tells(shell.run("dcs map --replay -- cat ::: data data", 255)[1], "not run yet")
    assert len(shell.sessions()) == 2
    assert "runs nothing" in shell.run("dcs map --replay --new -- cat ::: data", 255)[1]


def shell_lines(shell):
    before = shell.sessions()
    _, err = shell.run("dcs map 'echo {} | wc -c' ::: a b", 255)
    hint = re.search(r"without a shell: (dcs map -- sh -c .*)", err).group(1)
    assert shell.run(hint + " ::: a bb")[0] == "2\n3\n", hint
    _, err = shell.run("dcs run 'echo \"it'\\''s\" | wc -c'", 127)
    assert shell.run(re.search(r"without a shell: (dcs run -- sh -c .*)", err).group(1))[0] == "5\n", err
    assert len(shell.sessions()) == len(before) + 1, "a line that was refused leaves a session"


def habits(shell):
    """Of other tools: their words for commands, their placeholders, and a loop around a command that reads its input."""
    for word, hint in (("kill", "dcs session close SES"), ("ls", "dcs session ls"), ("logs", "dcs session cat SES"),
                       ("sbatch", "dcs map --detach"), ("nodes", "dcs host ls"), ("version", "dcs --version"), ("stop", "dcs down"),
                       ("wait", "dcs session wait SES"), ("watch", "dcs session watch SES"), ("clean", "dcs session clean SES"),
                       ("requeue", "dcs grain restart SES:G"), ("retry", "dcs grain restart SES:G"), ("sesion", "did you mean"),
                       ("drain", "dcs host drain")):
        err = shell.run(f"dcs {word} 1", code=2)[1]
        assert tells(err, f"no command dcs {word}`") and hint in err, (word, err)
    out, err = shell.run("dcs map -- echo {2} {} x{2} ::: a")
    assert out == "{2} a x{2}\n" and "{2} is passed on as it is" in err, (out, err)
    assert "passed on" not in shell.run("dcs map -- echo a{2} {} ::: a")[1]
    assert tells(shell.run("dcs map -- sh -c 'echo <{}' ::: /dev/null 'a b' 2>&1 || true")[0], "note shell reads input 'a b words own")
    for line in ("dcs map -- sh -c 'echo {}' ::: a-b.c 3", """dcs map -- sh -c 'echo "$1"' sh {} ::: 'a b'"""):
        assert "note: the shell" not in shell.run(line)[1], line
    for verb, done in (("close", "closed"), ("clean", "removed")):
        assert tells(shell.run(f"dcs session {verb} nosuchuser/all")[1], f"no such session nothing was {done}"), verb
    options(shell)
    out, err = shell.run("seq 3 >list; while read x; do dcs run -- echo got $x; done <list")
    assert out == "got 1\n" and tells(err, "warning command gets all that is left of standard input 4 of 6 bytes needs -n"), (out, err)
    waits = "while ! grep -q 'with -n' said; do sleep 0.1; done 2>/dev/null | dcs run -- echo got 2>said; cat said"
    assert shell.run(waits)[0] == "got\ndcs run: reading standard input to its end; with -n it is not read\n"
    for line in ("dcs run -- cat <list", "while read x; do dcs run -n -- echo $x; done <list", "cat list | { read x; echo $x; dcs run -- cat; }"):
        assert shell.run(line) == ("1\n2\n3\n", ""), line


def options(shell):
    """GNU parallel's and Slurm's: what is typed here instead, and no other option that only looks like it."""
    for verb, code in (("map", 255), ("run", 125)):
        for typed, hint in (("-0", "--null"), ("-k", "in the order of the inputs"), ("--retries 3", "--attempts N"),
                            ("--resume", "the same command again"), ("--chdir=/", "--cwd DIR"), ("-c 2", "--cores N"),
                            ("--mem=4G", "--memory MB"), ("--dependency=afterok:1", "dcs session wait"), ("-p long", "--class CLASS")):
            if verb == "map" and typed in ("-0", "-k", "--retries 3"):
                continue  # has them
            err = shell.run(f"dcs {verb} {typed} -- true", code)[1]
            assert "unknown option" in err and hint in err and "did you mean" not in err, (verb, typed, err)
    for typed, hint, code in (("session cancel 1", "dcs session close SES", 2), ("grain log 1:1", "dcs grain cat SES:G", 2), ("close 1", "dcs session close SES", 2),
                              ("status --json", "hint: -o json", 2), ("ssh -l ann any true", "dcs ssh HOST CMD", 255)):
        err = shell.run(f"dcs {typed}", code)[1]
        assert hint in err, (typed, err)
    assert "-n is --no-input" in shell.run("dcs run -n 4 -- true", 127)[1] and shell.run("dcs run --memory 64m -- echo fits")[0] == "fits\n"


def script_of_slurm(shell):
    shell.write("job.sh", "#!/bin/sh\n#SBATCH --array=1-9\necho once\n")
    for line in ("dcs run -- ./job.sh", "dcs map -- ./job.sh ::: 1"):
        out, err = shell.run(line)
        assert out == "once\n" and err.count("job.sh: its lines #SBATCH are ignored; DCS has an sbatch") == 1, (line, out, err)
    err = shell.run("dcs session clean 4-8", 2)[1]
    assert "$(seq 4 8)" in err, err


def ended_by_a_signal(shell):
    """As a shell says it; of a reader that went away there is nothing to say."""
    said = "dcs run: the command was ended by signal 11 (Segmentation fault)\n"
    assert shell.run("dcs run -- sh -c 'kill -SEGV $$'", 128 + signal.SIGSEGV)[1] == said
    assert shell.run("dcs run -- sh -c 'kill -PIPE $$'", 128 + signal.SIGPIPE)[1] == ""


def drained(shell):
    """A pool whose hosts all are drained is not well; a closed session has nothing that waits."""
    shell.run("dcs host drain local1 local2")
    out = shell.run("dcs doctor", 1)[0]
    assert out.startswith("pool: no host takes grains: 2 drained, 0 without slots\n") and "dcs host undrain NAME" in out, out
    number = shell.run("dcs map --detach -- echo ::: never run")[0].strip()
    shell.run(f"dcs session close {number}")
    row = next(line.split() for line in shell.run("dcs session ls")[0].splitlines() if line.split()[:1] == [number])
    assert row[1] == "terminated" and row[row.index("dcs") - 4] == "0", row
    assert tells(shell.run(f"dcs session show {number}")[0], "2 did not finish")
    listed = shell.run(f"dcs grain ls {number}")[0]
    assert listed.count("  not run  ") == 2 and tells(listed, "2 grains 0 ready 0 finished 0 killed 2 did not run"), listed
    assert tells(shell.run(f"dcs session ls {number}")[0], "0 ready 0 finished 0 killed 2 did not finish")
    assert tells(shell.run(f"dcs session wait {number}", 10)[0], "0 grains finished 2 did not finish session was closed")
    went_on(shell)
    shell.run("dcs host undrain local1; dcs host set local2 --slots 0")
    assert shell.run("dcs doctor")[0] == "all is well\n"
    shell.run("dcs host undrain local2; dcs host set local2 --reset")


def went_on(shell):
    """A grain that had started when its session was closed is withdrawn; a session that is still open, and has no work left, is done."""
    number = shell.run("dcs host undrain local1; dcs map --detach -- sh -c 'test $1 = go || sleep 1000' sh {} ::: go stay")[0].split()[-1]
    ready = f"dcs grain ls {number} --state"
    shell.run(f"until {ready} running -o name | grep -qx {number}:2 && {ready} finished -o name | grep -qx {number}:1; do sleep 0.1; done")
    state = lambda: next(line.split()[1] for line in shell.run("dcs session ls")[0].splitlines() if line.split()[:1] == [number])
    assert state() == "active", "a grain runs"
    shell.run(f"dcs session close {number}; while {ready} running -o name | grep -q .; do sleep 0.1; done")
    listed = shell.run(f"dcs grain ls {number}")[0]
    assert tells(listed, f"{number}:2 withdrawn") and tells(listed, "2 grains 0 ready 0 running 1 finished 0 killed 1 withdrawn"), listed
    assert tells(shell.run(f"dcs grain show {number}:2")[0], "state withdrawn"), number
    number = shell.run("dcs map --detach -- sh -c 'exit $1' sh ::: 0 3")[0].strip()
    shell.run(f"dcs session wait {number}", 10)
    listed = shell.run("dcs session ls")[0]
    assert state() == "done" and tells(listed, "done 2 (1 failed)") and tells(listed, "1 done but not closed"), listed
    assert tells(shell.run(f"dcs session show {number}")[0], "state done"), number
    assert number in shell.run("dcs session ls --state done -o name")[0].split()
    assert number in shell.run("dcs session ls --state active -o name")[0].split()
    assert f'"session":{number},' in shell.run("dcs session ls --state active -o json")[0]
    shell.run(f"dcs session close {number}; dcs host drain local1")


def not_there(shell):
    """As parallel does: what is there runs, each that is not has failed; mended, the same line does the rest."""
    line = "dcs map --joblog log -- {} ::: true ./later echo"
    out, err = shell.run(line, 1)
    assert out == "\n" and tells(err, "no program ./later"), (out, err)
    log = {row.split("\t")[0]: row.split("\t")[6] for row in open(os.path.join(shell.directory, "log")).read().splitlines()[1:]}
    assert log == {"1": "0", "2": "127", "3": "0"}, log
    number = re.search(r"session (\d+)", err).group(1)
    shell.write("later", "#!/bin/sh\necho later\n")
    out, err = shell.run("dcs map --session " + number + line[7:])
    assert out == "later\n\n", (out, err)


def mended(shell):
    """A script without #! that gets one; and a host that has tried it is not held against it."""
    before = len(shell.sessions())
    shell.write("s.sh", "echo x $1\n")
    for line, code in (("dcs map -- ./s.sh ::: 1 2", 2), ("dcs run -- ./s.sh", 126)):
        out, err = shell.run(line, code)
        assert out == "" and "#! line" in err, (line, out, err)
    assert len(shell.sessions()) == before, shell.sessions()
    shell.write("s.sh", "#!/bin/sh\necho x $1\n")
    assert shell.run("dcs map -- ./s.sh ::: 1 2")[0] == "x 1\nx 2\n"


def only_what_failed(shell):
    shell.write("f.sh", "#!/bin/sh\necho run >>runs-$1; echo x $1; test -e ok-$1\n")
    shell.write("ok-1", "")
    line = "dcs map -- ./f.sh ::: 1 2"
    assert shell.run(line, 1)[0] == "x 1\nx 2\n"
    shell.write("ok-2", "")
    out, err = shell.run(line)
    assert out == "x 1\nx 2\n" and tells(err, "1 2 grains failed last run runs again") and "--new" in err, (out, err)

    def runs():
        return [open(os.path.join(shell.directory, f"runs-{n}")).read().count("run") for n in (1, 2)]
    assert runs() == [1, 2], runs()
    os.unlink(os.path.join(shell.directory, "ok-2"))
    shell.run(line, 1)
    shell.write("f.sh", "#!/bin/sh\necho run >>runs-$1; echo y $1\n")
    out, err = shell.run(line)
    assert out == "y 1\ny 2\n" and tells(err, "1 failed ./f.sh changed since all run"), (out, err)
    assert runs() == [3, 4], runs()


def interrupted(shell):
    """Twice at once; killed, run again; interrupted from the keyboard, edited, run again; ended by a reader that had enough."""
    shell.write("g.sh", "#!/bin/sh\nuntil test -e go; do sleep 0.1; done; echo $1\n")
    shell.write("four", "1\n2\n3\n4\n")
    line = "exec dcs map -a four -- ./g.sh"
    first = shell.start(line)
    number = re.search(r"session (\d+): 4 grains", shell.until("map", first, "4 grains")).group(1)
    out, err = shell.run(line, 255)
    assert out == "" and "runs already since" in err and f"as process {first.pid}, in session {number}" in err, err
    os.killpg(first.pid, signal.SIGKILL)
    second = shell.start(line)
    shell.until("the second", second, f"session {number}: resumed, 0 of 4")
    os.killpg(second.pid, signal.SIGINT)
    out, err = second.communicate(timeout=300)
    assert second.returncode == -signal.SIGINT and tells(err, f"session {number} continues pool") and f"close {number}` stops it" in err, err
    shell.write("g.sh", "#!/bin/sh\necho new $1\n")
    _, err = shell.run(line, 255)
    assert tells(err, f"/g.sh changed since session {number} began"), err
    assert f"--session {number} continues" in err and "--new starts over" in err and f"dcs session close {number}" in err, err
    shell.write("go", "")
    out, err = shell.run(f"dcs map -a four --session {number} -- ./g.sh")
    assert sorted(out.split()) == ["1", "2", "3", "4"] or "new" in out, out  # those that had begun ran the old text
    assert tells(err, "warning ./g.sh changed since"), err
    assert shell.run(line)[0] == "".join(f"new {n}\n" for n in range(1, 5))
    # Its session ends when all is written, not when all has run.
    line = "dcs map -- seq ::: 100000 5"
    shell.run(line + " | head -n 1")
    out, err = shell.run(line)
    assert "2 of 2 grains finished already" in err or "resumed" in err, err
    assert out.count("\n") == 100005, out.count("\n")
    _, err = shell.run("dcs map -j 2 -- echo ::: $(seq 100) | head -n 1")
    assert "outputs cannot be written: Broken pipe" in err and "of its 100 grains: run the same command again" in err, err
    shell.run(f"dcs session close {re.search(r'session ([0-9]+) continues', err).group(1)}")
    for line, code in ("dcs run -- seq 10000", 125), ("dcs map --new -- seq ::: 10000", 255):
        _, err = shell.run(f"ulimit -f 1; {line} >seq.out", code)
        assert "File too large" in err, err  # and no signal ends it


def waiting(shell):
    """A run that waits says for what, one that is killed by what; orders for `all` mean one's own."""
    many = shell.start("seq 1500 >many; exec dcs map -a many -- sh -c 'until test -e finish; do sleep 0.2; done' sh {}")
    number = re.search(r"session (\d+): ", shell.until("map", many, "1500 grains")).group(1)
    wait_for("busy slots", lambda: sum(h["running"] for h in shell.pool.json("host", "ls")["hosts"]) == 2)
    queued = shell.start("exec dcs run -- echo hi")
    said = shell.until("run", queued, "waits for a host")
    assert tells(said, "2 hosts no free slot") and f"session {number} with 1," in said and "goes first" in said, said
    waits = shell.start("exec dcs session wait last")
    assert "none runs" in (said := shell.until("wait", waits, "wait: session")) or "waits for a host" in said, said
    shell.run(f"dcs session close {number}")
    assert queued.communicate(timeout=300)[0] == "hi\n"
    os.killpg(many.pid, signal.SIGKILL)
    many.communicate()
    waits.communicate(timeout=300)
    sleeps = shell.start("exec dcs run -- sleep 1000")
    wait_for("the grain", lambda: [s for s in shell.sessions() if s["running"] == 1])
    last = str(max(s["session"] for s in shell.sessions()))
    shell.run(f"dcs grain kill {last}:1")
    _, err = sleeps.communicate(timeout=300)
    assert sleeps.returncode == 125 and "was killed" in err and "submit" not in err, err
    shell.run("dcs session close all")
    assert all(s["state"] == "terminated" for s in shell.sessions())
    away = shell.start("exec dcs run -- sleep 1000")
    wait_for("the grain", lambda: [s for s in shell.sessions() if s["running"] == 1])
    shell.pool.kill("scheduler", "scheduler")
    said = shell.until("run", away, "does not answer")
    assert tells(said, "dcs up starts again") and "--local" not in said, said
    os.killpg(away.pid, signal.SIGKILL)
    away.communicate()


def interrupted_run(shell):
    """Ctrl-C on `dcs run` says what became of the grain."""
    run = shell.start("exec dcs run -- sh -c 'touch begun; sleep 1000'")
    wait_for("the grain", lambda: os.path.exists(os.path.join(shell.directory, "begun")))
    os.killpg(run.pid, signal.SIGINT)
    _, err = run.communicate(timeout=300)
    assert run.returncode == -signal.SIGINT and "the grain was killed" in err, (run.returncode, err)


def last_stays(shell):
    """What ends or removes something never slides to the session before; what only looks does."""
    before, last = (int(shell.run("dcs map --detach --label " + word + " -- echo ::: " + word)[0]) for word in ("one", "two"))
    assert shell.run("dcs session ls --label two -o name")[0] == f"{last}\n" and shell.run("dcs session ls --label tw -o name")[0] == ""
    shell.run("dcs session wait last; dcs session close last; dcs session clean last")
    for words in ("session clean", "session close", "session set --label x"):
        err = shell.run(f"dcs {words} last", code=4)[1]
        assert tells(err, f"session {last} was removed `last` would now be session {before}") and f"write {before} in" in err, (words, err)
    for words in ("grain kill last:1", "grain restart last:all", "grain restart --and-after --yes last:1"):
        assert f"session {last} was removed" in shell.run(f"dcs {words}", code=4)[1], words
    for words in ("session show", "session show last", "session wait", "session ls last", "session cat last", "grain ls", "grain show last:1"):
        assert (err := shell.run(f"dcs {words}")[1]).count("was removed") == 1 and tells(err, f"session {last} was removed `last` is now session {before}"), (words, err)
    assert f"session   {before}\n" in shell.run("dcs session show last")[0]
    shell.run(f"dcs session wait last; dcs session close {before}; dcs session clean {before}")


def terminal(shell):
    """At a terminal a map says that it reads from there."""
    master, slave = os.openpty()
    process = shell.start("dcs map -- echo", stdin=slave)
    os.close(slave)
    shell.until("map", process, "from the terminal")
    os.write(master, b"typed\n\x04")
    assert process.communicate(timeout=300)[0] == "typed\n"
    os.close(master)


def administrators(pool):
    """A pool that `dcs up` did not make is none of its business, and no hint says otherwise."""
    directory = os.path.join(pool.base, "administrator")
    os.makedirs(os.path.join(directory, "scheduler"), 0o700)
    table = os.path.join(directory, "scheduler", "hosts")
    text = "g1 class=0x1 binary=x86_64-linux-gnu slots=1\n"
    with open(table, "w") as file:
        file.write(text)
    scheduler = pool.start([program("dcs_scheduler"), "--dir", os.path.join(directory, "scheduler"), "--hosts", table],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for("the scheduler", lambda: os.path.exists(os.path.join(directory, "scheduler", "user.sock")))
        for words in (["up", "--local", "1"], ["up"], ["down"]):
            done = pool.dcs(*words, "--dir", directory, check=False)
            assert done.returncode == 4 and b"did not make" in done.stderr and b"--local" not in done.stderr, (words, done)
        assert scheduler.poll() is None and open(table).read() == text and os.listdir(directory) == ["scheduler"]
    finally:
        scheduler.terminate()
        scheduler.wait()
    for words in (["status"], ["session", "ls"], ["run", "true"], ["map", "true", ":::", "1"], ["doctor"]):
        done = pool.dcs("--dir", directory, *words, check=False)
        assert done.returncode != 0 and b"dcs up" not in done.stderr, (words, done)
    nowhere = pool.dcs("--dir", os.path.join(pool.base, "nowhere"), "session", "ls", check=False)
    assert tells(nowhere.stderr, "dcs up starts private pool"), nowhere
    # What was made by an interrupted `dcs up`, before its last file was written, is its own.
    os.unlink(os.path.join(pool.dir, "pool"))
    again = pool.dcs("up", check=False)
    assert again.returncode == 2 and b"--local N" in again.stderr, again
    pool.up()


def smaller(pool):
    """A pool that has fewer servers than before says which have gone, also when none ran."""
    pool.down()
    fewer = pool.dcs("up", "--local", "1").stdout.decode()
    assert tells(fewer, "No longer pool local2"), fewer
    assert "No longer" not in pool.dcs("up").stdout.decode()


def ends_what_runs(pool):
    """dcs down says how many running grains it ends; they begin again. A list of sessions can be cut to a state."""
    session = pool.dcs("run", "--detach", "--", "sleep", "1000").stdout.decode().strip()
    wait_for("its grain", lambda: pool.grain_processes("local1"))
    down = pool.down().stdout.decode()
    assert tells(down, "Ended 1 running grain: dcs up continue checkpoints"), down
    assert "Ended" not in pool.down().stdout.decode()
    pool.dcs("up")
    wait_for("its grain again", lambda: pool.grain_processes("local1"))
    every = {str(s["session"]): s["state"] for s in pool.json("session", "ls")["sessions"]}
    for word, state in (("active", "active"), ("terminated", "terminated"), ("closed", "terminated"), ("damaged", "damaged")):
        listed = pool.dcs("session", "ls", "--state", word, "-o", "name").stdout.decode().split()
        assert listed == [number for number in every if every[number] == state], (word, listed, every)
    assert every[session] == "active" and "terminated" in every.values(), every
    wrong = pool.dcs("session", "ls", "--state", "open", check=False)
    assert wrong.returncode == 2 and tells(wrong.stderr, "--state open active terminated closed damaged"), wrong
    pool.dcs("session", "close", session)


def main():
    with Pool(servers=2, slots=1) as pool:
        directory = os.path.join(pool.base, "work")
        os.mkdir(directory)
        shell = Shell(pool, directory)
        for part in (again_means_anew, shell_lines, habits, not_there, mended, only_what_failed, ended_by_a_signal, drained,
                     interrupted, interrupted_run, last_stays, terminal, waiting):
            began = time.monotonic()
            part(shell)
            print(f"{part.__name__}: {time.monotonic() - began:.1f} s", flush=True)
        administrators(pool)
        smaller(pool)
        ends_what_runs(pool)
    print("twelve first mistakes end as one would wish")


if __name__ == "__main__":
    main()
