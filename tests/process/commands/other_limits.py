#!/usr/bin/python3
"""The same command with other limits: what failed and what never ran takes them, what finished stays. A failed attempt that is
repeated leaves the last line of its standard error."""
import os

from pool import Pool, tells


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


def longer_array(pool, folder):
    """A file with other contents is other work, which is said."""
    def submit(array, *options):
        with open(os.path.join(folder, "grows.toml"), "w") as file:
            file.write(f'[[grain]]\ncommand = ["echo", "{{}}"]\narray = "1-{array}"\n')
        done = pool.dcs("submit", "--wait", *options, "grows.toml", cwd=folder)
        assert tells(done.stdout, f"{array} grains 0 failed"), done
        return done.stderr
    assert b"other contents" not in submit(2)
    number = pool.json("session", "show", "last")["session"]["session"]
    assert tells(submit(3), f"session {number} ran this file with other contents all run")
    assert b"other contents" not in submit(4, "--new")


def main():
    with Pool(servers=1, slots=2) as pool:
        for part in (other_limits, other_limits_in_a_file, longer_array, the_last_line_of_a_failed_attempt):
            folder = os.path.join(pool.base, part.__name__)
            os.mkdir(folder)
            part(pool, folder)
            print(part.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    main()
