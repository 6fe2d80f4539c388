#!/usr/bin/python3
"""The same command with other limits or in another environment: what failed and what never ran takes them, what finished stays. A failed attempt that is
repeated leaves the last line of its standard error."""
import os
import shutil
import subprocess

from pool import ROOT, Pool, program, tells, wait_for


def runs_of(folder, item):
    with open(os.path.join(folder, "runs-" + item)) as file:
        return len(file.readlines())


def other_limits(pool, folder):
    """The same command with other limits: failed grains and those that never ran take them, finished ones stay."""
    script = ["--", "sh", "-c", "echo run >>runs-$1; test $1 = good || test -e longer || sleep 600", "sh", "{}", ":::", "good", "long"]
    done = pool.dcs("map", "--time", "20", *script, check=False, cwd=folder)
    assert done.returncode == 1 and tells(done.stderr, "submit it with a longer --time"), done
    session = pool.json("session", "ls")["sessions"][-1]["session"]
    with open(os.path.join(folder, "longer"), "w"):
        pass
    done = pool.dcs("map", "--time", "600", *script, cwd=folder)
    assert tells(done.stderr, f"session {session}: 1 of 2 grains failed last run runs again"), done
    assert runs_of(folder, "good") == 1 and runs_of(folder, "long") == 2
    limits = [pool.json("grain", "show", f"{session}:{grain}")["grain"]["wall_s"] for grain in (1, 2)]
    assert limits == [20, 600], limits
    pool.dcs("map", "--replay", "--time", "7", *script, cwd=folder)  # it runs nothing, so nothing has this limit
    assert runs_of(folder, "good") == 1 and runs_of(folder, "long") == 2

    never = ["--", "echo", ":::", "one", "two"]
    done = pool.dcs("map", "--memory", "900000G", *never, check=False, cwd=folder)
    assert done.returncode == 255 and tells(done.stderr, "change limits hosts run the same command again"), done
    done = pool.dcs("map", "--memory", "50M", *never, cwd=folder)
    assert done.stdout == b"one\ntwo\n" and tells(done.stderr, "resumed, 0 of 2 grains"), done
    pool.dcs("map", "--new", "--memory", "900000G", *never, check=False, cwd=folder)
    pool.dcs("session", "close", "last")
    assert pool.dcs("map", "--memory", "50M", *never, cwd=folder).stdout == b"one\ntwo\n"


def other_limits_in_a_file(pool, folder):
    text = """[[grain]]
name = "good"
command = ["sh", "-c", "echo run >>runs-first"]
[[grain]]
name = "long"
command = ["sh", "-c", "echo run >>runs-second; test -e more || sleep 600"]
time = "%s"
after = "good"
[[grain]]
command = ["sh", "-c", "echo run >>runs-third"]
memory = "%s"
after = "long"
"""
    def submit(time, memory, check=True):
        with open(os.path.join(folder, "limits.toml"), "w") as file:
            file.write(text % (time, memory))
        return pool.dcs("submit", "--wait", "limits.toml", check=check, cwd=folder)
    assert submit("20", "900000G", check=False).returncode == 10
    with open(os.path.join(folder, "more"), "w"):
        pass
    done = submit("600", "900000G", check=False)
    assert done.returncode == 1 and tells(done.stderr, "change limits file run the same command again"), done
    done = submit("600", "50M")
    assert tells(done.stdout, "3 grains, 0 failed, 0 did not run"), done
    assert [runs_of(folder, item) for item in ("first", "second", "third")] == [1, 2, 1]


def the_last_line_of_a_failed_attempt(pool, folder):
    script = "if test -e tried; then exit 0; fi; touch tried; echo working >&2; echo no licence >&2; exit 4"
    pool.dcs("map", "--attempts", "2", "--", "sh", "-c", script, ":::", "a", cwd=folder)
    shown = pool.dcs("grain", "show", "last:1").stdout
    assert tells(shown, "failed on local1 code 4: no licence"), shown
    assert tells(pool.dcs("session", "log", "last").stdout, "code 4: no licence")


def other_environment(pool, folder):
    """What failed runs again in the environment of now, also with other limits; what succeeded stays, and no value is shown."""
    def map_of(*inputs, colour, options=(), code=0):
        pool.env["COLOUR"] = colour
        done = pool.dcs("map", *options, "--", "sh", "-c", 'echo $1$COLOUR >>ran; test $1 = good || test "$COLOUR" = blue', "sh", ":::",
                        *inputs, cwd=folder, check=False)
        assert done.returncode == code, done
        assert b"blue" not in done.stderr and b"red" not in done.stderr, done
        return done.stderr

    def ran():
        with open(os.path.join(folder, "ran")) as file:
            return sorted(file.read().split())
    differs = "environment differs (COLOUR): grains that run again new others keep theirs"
    assert b"environment" not in map_of("good", "bad", colour="red", code=1) + map_of("good", "bad", colour="red", code=1)
    told = map_of("good", "bad", colour="blue", options=["--time", "600", "--resume-failed"])
    assert tells(told, "resumed, 1 of 2 grains finished") and tells(told, differs) and told.count(b"COLOUR") == 1, told
    assert ran() == ["badblue", "badred", "badred", "goodred"]
    assert pool.json("grain", "show", "last:2")["grain"]["wall_s"] == 600
    assert "COLOUR=red" in pool.json("grain", "show", "last:1")["grain"]["env"]
    map_of("one", "two", colour="red", code=2)
    assert tells(map_of("one", "two", colour="red", options=["--env", "COLOUR=blue", "--session", "last", "--resume-failed"]), differs)
    assert ran()[-4:] == ["oneblue", "onered", "twoblue", "twored"]
    pool.dcs("session", "close", "last", check=False)
    assert tells(map_of("one", "two", colour="red", options=["--replay"]), "the environment (COLOUR) has changed whose results these are")


def interrupted_and_other(pool, folder):
    """In a session that is still open what begins again does so with what is new, also while other grains run."""
    path = lambda name: os.path.join(folder, name)
    words = ["map", "--", "sh", "-c", "test $1 = waits || exec test \"$COLOUR\" = blue; until test -e go; do sleep 0.05; done", "sh", ":::", "fails"]
    for more in (["waits"], []):
        pool.env["COLOUR"] = "red"
        with pool.start([program("dcs"), *words, *more], cwd=folder, stderr=subprocess.DEVNULL) as running:
            session = wait_for("a failure", lambda: (rows := pool.json("session", "ls")["sessions"]) and rows[-1]["failed"] == 1 and
                               rows[-1]["running"] == len(more) and rows[-1]["session"])
            running.kill()
        pool.env["COLOUR"] = "blue"
        with pool.start([program("dcs"), words[0], "--time", "600", "--resume-failed", *words[1:], *more], cwd=folder, stderr=subprocess.PIPE) as again:
            wait_for("its success", lambda: pool.json("session", "show", str(session))["session"]["failed"] == 0)
            with open(path("go"), "w"):
                pass
            told = again.communicate(timeout=300)[1]
        assert again.returncode == 0 and tells(told, "environment differs (COLOUR)"), told
        assert pool.json("grain", "show", f"{session}:1")["grain"]["wall_s"] == 600
        assert not more or pool.json("grain", "show", f"{session}:2")["grain"]["wall_s"] == 0
        os.remove(path("go"))


def other_environment_of_a_file(pool, folder):
    with open(os.path.join(folder, "job.toml"), "w") as file:
        file.write("""[[grain]]
name = "first"
command = ["sh", "-c", "echo first$COLOUR >>ran"]
[[grain]]
name = "second"
command = ["sh", "-c", "echo second$COLOUR >>ran; exit 1"]
after = "first"
[[grain]]
command = ["sh", "-c", "echo third$COLOUR >>ran"]
after = "second"
""")

    def submit(colour, code, *options):
        pool.env["COLOUR"] = colour
        done = pool.dcs("submit", *options, "job.toml", cwd=folder, check=False)
        assert done.returncode == code, done
        return done
    number = 1 + max(row["session"] for row in pool.json("session", "ls")["sessions"])
    submit("red", 10, "--wait")
    refused = f"environment (COLOUR) has changed since session {number} began has finished 2 of 3 grains"
    done = submit("blue", 4, "--wait")
    assert tells(done.stderr, refused) and tells(done.stderr, f"--session {number} continues with the new values"), done
    assert tells(submit("blue", 10, "--wait", "--session", str(number)).stderr, "environment differs (COLOUR)")
    submit("green", 4, "--session", "1")
    submit("green", 10, "--new", "--wait")
    submit("blue", 10, "--wait")  # each finds its own, which is that of the latest run
    submit("green", 0, "--session", "last")
    assert tells(submit("red", 4, "--wait").stderr, f"since session {number + 1} began")
    assert pool.dcs("session", "wait", "last", check=False).returncode == 10
    with open(os.path.join(folder, "ran")) as file:
        assert (ran := file.read().split()) == ["firstred", "secondred", "secondblue", "firstgreen", "secondgreen", "secondblue", "secondgreen"], ran


def longer_array(pool, folder):
    """A file with other contents is other work, which is said."""
    def submit(array, *options, place=folder, cwd=folder):
        with open(os.path.join(place, "grows.toml"), "w") as file:
            file.write(f'[[grain]]\ncommand = ["echo", "{{}}"]\narray = "1-{array}"\n')
        done = pool.dcs("submit", "--wait", *options, "grows.toml" if place == cwd else os.path.join(place, "grows.toml"), cwd=cwd)
        assert tells(done.stdout, f"{array} grains 0 failed"), done
        return done.stderr
    assert b"other contents" not in submit(2)
    number = pool.json("session", "show", "last")["session"]["session"]
    assert tells(submit(3), f"session {number} ran this file with other contents all run")
    assert b"other contents" not in submit(4, "--new")
    elsewhere = os.path.join(folder, "elsewhere")
    os.mkdir(elsewhere)
    assert b"other contents" not in submit(5, place=elsewhere, cwd=elsewhere), "a file of that name in another directory"
    assert tells(submit(6, cwd=elsewhere), "ran this file with other contents"), "the same file in other words"


GRAIN = """#!/usr/bin/python3
import sys, time
import dcs_grain
dcs_grain.handler()
rounds = int(dcs_grain.text.readline() or 0)
print("round", rounds, flush=True)
if rounds < 2:
    with dcs_grain.checkpoint("on the way") as state:
        state.write("%d\\n" % (rounds + 1))
    print("behind the checkpoint", flush=True)
    time.sleep(600 * (sys.argv[1] == "long"))
    sys.exit(3)
"""


def from_the_checkpoint(pool, folder):
    """What failed after a checkpoint, or came to its limit of time, goes on from it when the same command runs again, also after a
    kill of the scheduler; what it wrote behind it goes. --and-after lets one begin at its beginning."""
    with open(os.path.join(folder, "grain"), "w") as file:
        file.write(GRAIN)
    os.chmod(os.path.join(folder, "grain"), 0o755)
    shutil.copy(os.path.join(ROOT, "libdcs/python/dcs_grain.py"), folder)
    with open(os.path.join(folder, "job.toml"), "w") as file:
        file.write('[[grain]]\ncommand = ["./grain", "short"]\n')
    words = {"map": ["--time", "20", "--", "./grain", ":::", "short", "long"], "submit": ["--wait", "job.toml"]}
    for command, failed in (("map", 2), ("submit", 10)):
        for end in ("round 0\nbehind the checkpoint\n", "round 0\nround 1\nbehind the checkpoint\n", "round 0\nround 1\nround 2\n"):
            last = end.endswith("2\n")
            if not last:
                assert pool.kill("scheduler", "scheduler")
                pool.up()
            done = pool.dcs(command, *words[command], cwd=folder, check=False)
            assert done.returncode == (0 if last else failed), done
            assert end.startswith("round 0\nb") or tells(done.stderr, "again from the last checkpoint where there is one"), done
            for grain in ((1, 2) if command == "map" else (1,)):
                assert pool.dcs("grain", "cat", f"last:{grain}").stdout.decode() == end
    # With other data, or in another environment, it begins at its beginning.
    with open(os.path.join(folder, "other.toml"), "w") as file:
        file.write('[[grain]]\ncommand = ["./grain", "two"]\n')
    for name, command in (("one", ["map", "--resume-failed", "--", "./grain", ":::", "one"]), ("two", ["submit", "--wait", "other.toml"])):
        for data, end in (("old", "round 0\n"), ("", "round 1\n"), ("T=1", "round 0\n"), ("T=1", "round 1\n"), ("new", "round 0\n")):
            if data in ("old", "new"):
                with open(os.path.join(folder, name), "w") as file:
                    file.write(data)
            pool.env.update({"T": "1"} if data == "T=1" else {})
            assert pool.dcs(*command, cwd=folder, check=False).returncode != 0
            out = pool.dcs("grain", "cat", "last:1").stdout.decode()
            assert out.endswith(end + "behind the checkpoint\n"), (name, data, end, out)
        del pool.env["T"]
    pool.dcs("map", "--new", "--", "./grain", ":::", "one", cwd=folder, check=False)
    pool.dcs("grain", "restart", "last:1", "--and-after")
    wait_for("its end", lambda: pool.json("grain", "show", "last:1")["grain"]["state"] == "finished")
    assert pool.dcs("grain", "cat", "last:1").stdout.decode() == "round 0\nbehind the checkpoint\n"


def main():
    with Pool(servers=1, slots=2) as pool:
        for part in (other_limits, other_limits_in_a_file, other_environment, interrupted_and_other, other_environment_of_a_file, longer_array,
                     the_last_line_of_a_failed_attempt, from_the_checkpoint):
            folder = os.path.join(pool.base, part.__name__)
            os.mkdir(folder)
            part(pool, folder)
            print(part.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    main()
