#!/usr/bin/python3
"""What a command says about how to go on: after a restart of a closed session's grain, without the last host, with another
environment and other limits, with an edited program, and with a descriptor that is not open."""
import os
import signal
import subprocess
import sys

from pool import ROOT, Pool, program, tells, wait_for

PROGRAM = """import dcs, sys
with dcs.Session("halving") as session:
    session.submit(1, ["/bin/echo", sys.argv[1]])
    session.wait()
    raise SystemExit(7)
"""


def closed_map(pool, folder):
    command = ["map", "--", "sh", "-c", "test -e mended || exit $1", "sh", ":::", "0", "3"]
    typed = "dcs map -- sh -c 'test -e mended || exit $1' sh ::: 0 3"
    assert pool.dcs(*command, check=False, cwd=folder).returncode == 1
    done = pool.dcs("grain", "restart", "last:2", check=False)
    assert tells(done.stderr, f"hint: run `{typed}` again: runs failed"), done
    done = pool.dcs("grain", "restart", "last:1", check=False)
    assert tells(done.stderr, f"`dcs grain restart 1:1 --and-after` discards run `{typed}` again"), done
    with open(os.path.join(folder, "mended"), "w"):  # before the restart, which runs the grain at once
        pass
    done = pool.dcs("grain", "restart", "last:2", "--and-after")
    assert tells(done.stderr, f"Run `{typed}` again: continues") and b"map-" not in done.stderr, done
    pool.dcs(*command, cwd=folder)


def failed_in_an_open_session(pool):
    number = pool.dcs("run", "--detach", "--", "false").stdout.decode().strip()
    wait_for("its end", lambda: pool.json("grain", "show", number + ":1")["grain"]["state"] == "finished")
    done = pool.dcs("grain", "restart", number + ":1", check=False)
    assert done.returncode != 0 and tells(done.stderr, "hint: run `dcs run --detach -- false` again same input another session"), done
    pool.dcs("session", "close", number)
    done = pool.dcs("run", "--image", "debian:12", "--", "true", data=b"", check=False)
    assert tells(done.stderr, "hint: an image is a file `podman save -o FILE debian:12`"), done


def environment_and_limits(pool, folder):
    command = ["--", "sh", "-c", "test -e well || exit 1", "sh", ":::", "1"]
    pool.env["COLOUR"] = "red"
    assert pool.dcs("map", "--time", "500", *command, check=False, cwd=folder).returncode == 1
    pool.env["COLOUR"] = "blue"
    with open(os.path.join(folder, "well"), "w"):
        pass
    pool.dcs("map", "--time", "600", "--resume-failed", *command, cwd=folder)
    row = pool.json("grain", "show", "last:1")["grain"]
    assert row["wall_s"] == 600 and "COLOUR=blue" in row["env"], row


def killed_and_changed(pool, folder):
    """Killed when a part had run, and again in another environment: refused, unless the session is named. Then what the first run
    submitted keeps its own, the rest has the new one, and a run to the end closes the session."""
    dcs = [f"{pool.bin}/dcs", "map", "-j2"]
    command = ["--", "sh", "-c", "until test -e $1; do sleep 0.05; done; echo $1 $COLOUR", "sh", ":::",
               *(f"{folder}/go-{number}" for number in range(1, 7))]

    def begun(colour, ended, *options):
        """A run in this environment that is killed when so many grains have ended."""
        for number in range(1, ended + 1):
            with open(f"{folder}/go-{number}", "a"):
                pass
        run = subprocess.Popen([*dcs, *options, *command], env=dict(pool.env, COLOUR=colour), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("grains that have ended", lambda: pool.json("session", "show", "last")["session"]["finished"] >= ended and
                 len(pool.json("grain", "ls", "last")["grains"]) >= ended + 2)
        run.kill()
        run.wait()
    pool.dcs("map", "--", "true", ":::", "1", cwd=folder)  # `last` is another one
    begun("red", 1)
    done = subprocess.run([*dcs, *command], env=dict(pool.env, COLOUR="blue"), cwd=folder, capture_output=True, timeout=300)
    session = pool.json("session", "show", "last")["session"]["session"]
    assert done.returncode != 0 and tells(done.stderr, f"the environment (COLOUR) has changed since session {session} began"), done
    assert tells(done.stderr, f"--session {session} continues --new starts over"), done
    begun("blue", 2, "--session", str(session))
    for number in range(3, 7):
        with open(f"{folder}/go-{number}", "w"):
            pass
    done = subprocess.run([*dcs, "--session", "last", *command], env=dict(pool.env, COLOUR="blue"), cwd=folder, capture_output=True, timeout=300)
    assert done.returncode == 0 and tells(done.stderr, "environment differs (COLOUR) others keep theirs"), done
    colours = [line.split()[1] for line in done.stdout.decode().splitlines()]
    assert colours == ["red"] * 3 + ["blue"] * 3, colours
    assert pool.json("session", "show", "last")["session"]["state"] == "terminated"


def swept(pool, folder):
    """A sweep by an exported variable that was killed and begins again: each map goes on in its own session. Ctrl-C ends the shell's
    loop, too."""
    with open(f"{folder}/sweep.sh", "w") as file:
        file.write(f"""for T in 1 2 3; do
    export T
    {program("dcs")} map -- sh -c 'until test "$T" = 1 || test -e go-on; do sleep 0.05; done; echo "$T$1"' sh ::: a >out.$T
    echo $T >>passed
done""")
    for ending in signal.SIGKILL, signal.SIGINT:
        with pool.start(["bash", "sweep.sh"], cwd=folder, start_new_session=True, stderr=subprocess.DEVNULL) as sweep:
            wait_for("the second map", lambda: os.path.exists(f"{folder}/out.2") and [
                row for row in pool.json("session", "ls")["sessions"] if row["running"] > 0])
            os.killpg(sweep.pid, ending)
        assert not os.path.exists(f"{folder}/out.3"), "the loop went on"
        os.remove(f"{folder}/out.2")
    with open(f"{folder}/go-on", "w"):
        pass
    subprocess.run(["bash", "sweep.sh"], env=pool.env, cwd=folder, check=True, timeout=300)
    outs = ["".join(open(f"{folder}/out.{t}").read().split()) for t in (1, 2, 3)]
    assert outs == ["1a", "2a", "3a"], outs


def swept_with_a_failure(pool, folder):
    """What failed for one value does not run with the next one beside that one's results; detached passes do not share a session."""
    def swept(t, *options, check=True):
        words = ["--", "sh", "-c", 'echo $T$1; test $T$1 != 1b || exit 1; until test -e go; do sleep 0.05; done', "sh", ":::", "a", "b"]
        return subprocess.run([program("dcs"), "map", *options, *words], env=dict(pool.env, T=t), cwd=folder, capture_output=True,
                              timeout=300, check=check)
    with open(f"{folder}/go", "w"):
        pass
    assert swept("1", check=False).stdout == b"1a\n1b\n"
    done = swept("2", check=False)
    assert done.returncode != 0 and not done.stdout and tells(done.stderr, "had 1 that failed and the environment (T) has changed"), done
    assert tells(done.stderr, "--resume-failed runs what failed --new runs all"), done
    assert swept("2", "--new").stdout == b"2a\n2b\n"
    os.remove(f"{folder}/go")
    swept("3", "--detach")
    done = swept("4", "--detach", check=False)
    assert done.returncode != 0 and tells(done.stderr, "the environment (T) has changed"), done
    swept("4", "--detach", "--new")
    with open(f"{folder}/go", "w"):
        pass
    assert [swept(t).stdout for t in "43"] == [b"4a\n4b\n", b"3a\n3b\n"]


JOB = """[[grain]]
name = "reads"
command = ["cat", "data"]
file = "data"
[[grain]]
name = "goes"
command = ["sh", "-c", "until test -e goes; do sleep 0.05; done"]
after = "reads"
"""


def killed_submission(pool, folder):
    """Killed when the first grain had succeeded, whose file is another one then: it stays, the rest runs, the session is closed."""
    def write(name, text=""):
        with open(os.path.join(folder, name), "w") as out:
            out.write(text)
    write("job.toml", JOB)
    write("data", "before")
    run = subprocess.Popen([f"{pool.bin}/dcs", "submit", "--wait", "job.toml"], env=pool.env, cwd=folder, stderr=subprocess.DEVNULL)
    wait_for("the second grain", lambda: [g["state"] for g in pool.json("grain", "ls", "last")["grains"]] == ["finished", "running"])
    run.kill()
    run.wait()
    write("data", "after")
    write("goes")
    done = pool.dcs("submit", "--wait", "job.toml", cwd=folder)
    assert tells(done.stdout, "2 grains 0 failed"), done
    assert pool.json("session", "show", "last")["session"]["state"] == "terminated"


def program_that_went(pool, folder):
    """A map of programs is killed when one has given its result, whose file is gone then: the result counts."""
    for name, text in (("gives", "echo one"), ("waits", "until test -e came; do sleep 0.1; done; echo two")):
        with open(os.path.join(folder, name), "w") as out:
            out.write("#!/bin/sh\n" + text + "\n")
        os.chmod(os.path.join(folder, name), 0o755)
    command = ["map", "--", "{}", ":::", "./gives", "./waits"]
    run = subprocess.Popen([f"{pool.bin}/dcs", *command], env=pool.env, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for("the second grain", lambda: [g["state"] for g in pool.json("grain", "ls", "last")["grains"]] == ["finished", "running"])
    run.kill()
    run.wait()
    os.remove(os.path.join(folder, "gives"))
    with open(os.path.join(folder, "came"), "w"):
        pass
    done = pool.dcs(*command, cwd=folder)
    assert done.stdout == b"one\ntwo\n", done


def mended_file(pool, folder):
    """A file that goes with the grains was the cause of a failure, and is another one now: all run with it, in a new session."""
    command = ["map", "--file", "rule=rule", "--", "sh", "-c", "grep $1 rule", "sh", ":::", "a", "b"]

    def run(text, code):
        with open(os.path.join(folder, "rule"), "w") as out:
            out.write(text)
        done = pool.dcs(*command, check=False, cwd=folder)
        assert done.returncode == code, done
        return done
    run("a\n", 1)
    first = pool.json("session", "show", "last")["session"]["session"]
    done = run("a\nb\n", 0)
    assert done.stdout == b"a\nb\n" and tells(done.stderr, f"session {first} had 1 that failed rule has changed since: all run"), done
    pool.dcs("session", "reopen", str(first), check=False)
    done = pool.dcs("map", "--session", str(first), *command[1:], check=False, cwd=folder)
    assert done.returncode == 1 and done.stdout == b"a\n" and tells(done.stderr, "rule changed since results before the change are kept"), done


def other_inputs(pool, folder):
    """A list with other inputs is another map, and all of it runs: said when it begins."""
    first = pool.dcs("map", "--", "echo", data=b"1\n2\n", cwd=folder).stderr
    assert b"all run" not in first, first
    said = pool.dcs("map", "--", "echo", data=b"1\n3\n2\n", cwd=folder).stderr
    assert tells(said, "3 grains session ran the same words with other inputs all run"), said


def edited_program(pool, folder):
    path = os.path.join(folder, "s.py")
    with open(path, "w") as file:
        file.write(PROGRAM)
    environment = dict(pool.env, PYTHONPATH=os.path.join(ROOT, "libdcs/python"))

    def run(text, word):
        with open(path, "w") as file:
            file.write(text)
        return subprocess.run([sys.executable, "-B", path, word], env=environment, stderr=subprocess.PIPE, check=False)
    assert run(PROGRAM, "a").returncode == 7
    said = run(PROGRAM, "b")
    session = pool.json("session", "show", "last")["session"]["session"]
    assert tells(said.stderr, f"dcs.Session('halving', skip=[{session}]) begins a new one session close {session}"), said
    assert run(PROGRAM.replace('"halving"', f'"halving", skip=[{session}]'), "b").returncode == 7
    pool.dcs("session", "close", str(session))
    assert b"GrainDiffers" in run(PROGRAM.replace(".submit(1, ", ".submit_grain(1, dcs.Grain(").replace("])\n", "]))\n", 1),
                                  "c").stderr


def detached_again(pool, folder):
    """A detached map of which a grain has failed: the same command again runs that one."""
    def run():
        number = pool.dcs("map", "--detach", "--", "sh", "-c", 'test "$1" != 2 || test -e right', "sh", ":::", "1", "2", "3",
                          cwd=folder).stdout.decode().strip()
        return number, pool.dcs("session", "wait", number, check=False).returncode
    number, code = run()
    assert code == 10, code
    open(os.path.join(folder, "right"), "w").close()
    assert run() == (number, 0) == run(), "what failed runs again, in its session"


def last_host(pool):
    done = pool.dcs("host", "rm", "local1")
    assert done.stderr == b"", done
    done = pool.dcs("host", "rm", "local2")
    assert done.stdout == b"host local2 removed from the pool\n", done
    assert tells(done.stderr, "no host is left in the pool `dcs up` brings back"), done
    pool.dcs("up")
    assert pool.dcs("run", "--", "echo", "back").stdout == b"back\n"
    done = pool.dcs("up", "--courtesy", "none")
    assert tells(done.stdout, "local1, local2: courtesy applies when started again dcs down"), done
    for words in (("--courtesy", "none"), ()):  # for as long as they run with another
        again = pool.dcs("up", *words)
        assert tells(again.stdout, "local1, local2: courtesy none applies when started again dcs down"), again
    assert b"courtesy" not in pool.dcs("up", "--courtesy", "priority").stdout
    cores = len(os.sched_getaffinity(0))
    if 8 * cores <= 1024:
        many = pool.dcs("up", "--slots", str(8 * cores))
        assert tells(many.stderr, f"note 2 grain servers {8 * cores} slots up to {16 * cores} grains at a time on {cores}"), many
    assert b"at a time" not in pool.dcs("up", "--slots", "1").stderr


def closed_descriptor(pool):
    folder = os.path.join(pool.base, "other")
    os.mkdir(folder)
    with open(os.path.join(folder, "hosts"), "w") as hosts:
        hosts.write("a slots=1\n")
    for daemon, options in (("dcs_scheduler", []), ("dcs_backupd", ["--scheduler", "./none"]),
                            ("dcs_grainserver", ["--name", "a", "--scheduler", "./none"])):
        done = subprocess.run([program(daemon), "--dir", folder, "--ready-fd", "9", *options], stderr=subprocess.PIPE, check=False)
        assert 0 < done.returncode < 10 and tells(done.stderr, "--ready-fd 9 descriptor is not open"), done


def done_ones_are_closed_at_once(pool):
    """A script that starts one after another, and closes none, comes to the limit: what has ended is closed and keeps its outputs."""
    def done():
        number = pool.dcs("run", "--detach", "--", "echo", "kept").stdout.decode().strip()
        wait_for("its end", lambda: pool.dcs("session", "ls", "--state", "done", "-o", "name").stdout.decode().split() == [number])
        return number
    pool.dcs("session", "close", "all")
    cleaned = done()
    assert pool.dcs("session", "clean", "done", "-o", "name").stdout.decode().split() == [cleaned]
    over = done()
    session = pool.dcs("run", "--detach", "--", "sleep", "1000").stdout.decode().strip()
    assert tells(pool.dcs("status").stdout, "sessions 1 active, 1 done but not closed")
    status = pool.json("status")
    assert (status["sessions_active"], status["sessions_done"]) == (1, 1), status
    with open(os.path.join(pool.dir, "scheduler/policy"), "w") as file:
        file.write("sessions_per_user 2\n")
    pool.dcs("reload")
    pool.dcs("run", "--", "true", data=b"")
    state = lambda number: pool.json("session", "show", number)["session"]["state"]
    assert (state(over), state(session)) == ("terminated", "active") and pool.dcs("session", "cat", over).stdout == b"kept\n"
    assert state(done()) == "active", "it is not closed earlier"
    another = pool.dcs("run", "--detach", "--", "sleep", "1000").stdout.decode().strip()
    refused = pool.dcs("run", "--", "true", data=b"", check=False)
    assert tells(refused.stderr, "2 active sessions allows 2: close one (dcs session close done"), refused
    os.remove(os.path.join(pool.dir, "scheduler/policy"))
    pool.dcs("reload")
    pool.dcs("session", "close", session, another)


def side_by_side(pool, folder):
    """Maps that differ in an exported variable and begin at the same time: none prints the outputs of another one."""
    command = [program("dcs"), "map", "--", "sh", "-c", 'echo "$T$1"', "side", ":::", "x", "y"]
    for _ in range(2):
        runs = {t: subprocess.Popen(command, env=dict(pool.env, T=t), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for t in "567"}
        for t, run in runs.items():
            out, told = run.communicate(timeout=300)
            assert out == f"{t}x\n{t}y\n".encode() if run.returncode == 0 else not out, (t, out, told)


def submitted_side_by_side(pool, folder):
    """The same file, submitted twice at the same time, is one session: what comes second takes it over, or finds it complete."""
    for n in range(3):
        with open(os.path.join(folder, "pair.toml"), "w") as file:
            file.write(f"""[[grain]]
command = ["sh", "-c", "echo >>pair.{n}; echo $1", "pair", "{{}}"]
array = "1-4"
""")
        runs = [subprocess.Popen([program("dcs"), "submit", "--wait", "pair.toml"], env=pool.env, cwd=folder, stderr=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL) for _ in range(2)]
        assert {run.wait(timeout=300) for run in runs} <= {0, 4}
        with open(os.path.join(folder, f"pair.{n}")) as file:
            assert file.read() == "\n" * 4


def swept_and_grown(pool, folder):
    """A list that has grown at its end, with another value: also refused, as its map has a value of its own."""
    def swept(t, *inputs):
        return subprocess.run([program("dcs"), "map", "--", "sh", "-c", 'echo $T$1; test $1 != w', "grown", ":::", *inputs],
                              env=dict(pool.env, T=t), cwd=folder, capture_output=True, timeout=300)
    assert swept("1", "q").stdout == b"1q\n"
    assert swept("1", "q", "w", "e").stdout == b"1q\n1w\n1e\n"
    done = swept("2", "q", "w", "e")
    assert done.returncode != 0 and not done.stdout and tells(done.stderr, "the environment (T) has changed"), done


def own_environment_first(pool, folder):
    """Beside a newer session without a variable, a run goes on in the one that had it."""
    with open(os.path.join(folder, "own.toml"), "w") as file:
        file.write("""[[grain]]
command = ["sh", "-c", "echo $1$W; test -e $1.go", "own", "{}"]
array = "1-2"
""")
    for command in (["map", "--", "sh", "-c", "echo $1$W; test -e $1.go", "own", ":::", "1", "2"], ["submit", "--wait", "own.toml"]):
        def run(w, *options, command=command):
            return subprocess.run([program("dcs"), command[0], *options, *command[1:]], env=dict(pool.env, **w), cwd=folder, capture_output=True, timeout=300)
        for w in ({}, {"W": "a"}, {}):
            assert run(w, "--new").returncode in (1, 2, 10)
        for n in "12":
            open(os.path.join(folder, n + ".go"), "w").close()
        done = run({"W": "a"})
        assert done.returncode == 0 and not tells(done.stderr, "environment differs"), done
        number = max(row["session"] for row in pool.json("session", "ls")["sessions"]) - 1
        outputs = [pool.dcs("grain", "cat", f"{number}:{grain}").stdout for grain in (1, 2)]
        assert outputs == [b"1a\n", b"2a\n"], outputs
        for n in "12":
            os.remove(os.path.join(folder, n + ".go"))


def last_beside_a_high_number(pool, folder):
    """A removed session with a number of a program's own choice, far above those in a row, does not hold up `last`."""
    pool.dcs("map", "--session", "2026112801", "--", "true", ":::", "high", cwd=folder)
    pool.dcs("session", "clean", "2026112801")
    pool.dcs("map", "--", "true", ":::", "low", cwd=folder)
    done = pool.dcs("session", "close", "last")
    assert b"2026112801" not in done.stderr, done


def main():
    with Pool(2, 1) as pool:
        folder = os.path.join(pool.base, "work")
        os.mkdir(folder)
        closed_map(pool, folder)
        failed_in_an_open_session(pool)
        environment_and_limits(pool, folder)
        killed_and_changed(pool, folder)
        killed_submission(pool, folder)
        program_that_went(pool, folder)
        mended_file(pool, folder)
        other_inputs(pool, folder)
        detached_again(pool, folder)
        edited_program(pool, folder)
        swept(pool, folder)
        swept_with_a_failure(pool, folder)
        side_by_side(pool, folder)
        submitted_side_by_side(pool, folder)
        swept_and_grown(pool, folder)
        own_environment_first(pool, folder)
        last_beside_a_high_number(pool, folder)
        done_ones_are_closed_at_once(pool)
        last_host(pool)
        closed_descriptor(pool)


main()
