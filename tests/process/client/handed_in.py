#!/usr/bin/python3
"""Work that is handed in and left: dcs map and dcs run --detach, dcs session wait and cat; and the options of both that people
expect: -j, --cwd, --env, --bring, --dry-run, --output, --results, --time."""
import os
import re
import stat

from pool import Pool, program, tells, wait_for
from live_output import Grain

DCS = program("dcs")


def run(grain, *words, code=0):
    """(standard output, standard error)"""
    process = grain.start(*words)
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, (words, process.returncode, out, err)
    return out.decode(), err.decode()


def handed_in(pool):
    grain = Grain(pool, "left")
    line = ["sh", "-c", "until [ -e go$1 ]; do sleep 0.05; done; echo out $1; echo err $1 >&2; exit $(($1 == 2))", "sh", "{}"]
    out, err = run(grain, "map", "--detach", "--", *line, ":::", "1", "2", "3")
    number = out.strip()
    assert out == number + "\n" and f"`dcs session wait {number}`" in err and f"dcs session cat {number}" in err, (out, err)
    assert run(grain, "session", "wait", number, "--timeout", "0", code=6)[0] == ""
    out, err = run(grain, "session", "cat", number, code=10)
    assert out == "" and tells(err, "3 grains not finished --wait waits"), (out, err)
    follower = grain.start("session", "cat", number, "--wait")
    for n in ("3", "2"):  # in the order of the inputs, whatever ends first
        open(os.path.join(grain.directory, "go" + n), "w").close()
        wait_for("grain " + n, lambda: pool.json("grain", "show", f"{number}:{n}")["grain"]["state"] == "finished")
    out, err = run(grain, "session", "cat", number, code=10)
    assert out == "out 2\nout 3\n" and "1 grain has not finished" in err, (out, err)
    open(os.path.join(grain.directory, "go1"), "w").close()
    out, err = follower.communicate(timeout=120)
    assert out == b"out 1\nout 2\nout 3\n" and follower.returncode == 10, (out, err)
    assert err.decode() == "err 1\nerr 2\nerr 3\n", err
    assert tells(run(grain, "session", "wait", number, code=10)[0], "3 grains finished 1 failed")
    # The same command takes the session up, prints, and closes it.
    out, err = run(grain, "map", "--", *line, ":::", "1", "2", "3", code=1)
    assert out == "out 1\nout 2\nout 3\n" and f"session {number}: resumed" in err, (out, err)
    assert pool.json("session", "show", number)["session"]["state"] == "terminated"

    out, err = run(grain, "run", "--detach", "--label", "one", "--", "sh", "-c", "cat go1; echo done")
    assert tells(err, f"dcs session cat {out.strip()}`")
    assert run(grain, "session", "wait", out.strip())[0] == "1 grain finished, 0 failed\n"
    assert run(grain, "session", "cat")[0] == "done\n"
    out, err = run(grain, "run", "--detach", "--output", "made=to", "--", "sh", "-c", "echo x >made")
    assert f"made stays in the pool; `dcs grain cat --file made {out.strip()}:1 >to` copies it" in err, err
    assert run(grain, "session", "wait", out.strip()) and run(grain, "grain", "cat", "--file", "made", out.strip() + ":1")[0] == "x\n"
    for option in (["-j", "2"], ["--joblog", "x"], ["--results", "r"], ["--output", "a=b{#}"]):
        err = run(grain, "map", "--detach", *option, "--", "true", ":::", "1", code=255)[1]
        assert "--detach excludes" in err, err


def killed_ones(pool):
    """What was killed has not succeeded: `dcs session wait ... && next step` does not take the next step, and the map says why."""
    grain = Grain(pool, "killed_ones")
    line = ["--", "sh", "-c", "[ $1 = 1 ] || exec sleep 3600", "sh", "{}", ":::", "1", "2", "3"]
    number = run(grain, "map", "--detach", *line)[0].strip()
    wait_for("grain 1", lambda: pool.json("grain", "show", f"{number}:1")["grain"]["state"] == "finished")
    run(grain, "grain", "kill", f"{number}:2-3")
    assert run(grain, "session", "wait", number, code=10)[0] == "1 grain finished, 0 failed, 2 killed\n"
    assert run(grain, "session", "watch", number, code=10)[0].endswith("1 grain finished, 0 failed, 2 killed\n")
    assert "2 grains were killed" in run(grain, "session", "cat", number, code=10)[1]
    err = run(grain, "map", "--session", number, *line, code=2)[1]
    assert "2 of 3 grains failed, because they were killed; the same command runs them again" in err, err
    restarted = grain.start("map", "--resume-failed", *line)
    wait_for("those that were killed", lambda: pool.json("session", "show", number)["session"]["killed"] == 0)
    run(grain, "grain", "kill", f"{number}:2-3")
    restarted.communicate(timeout=300)
    assert restarted.returncode == 2


def places_and_variables(pool):
    grain = Grain(pool, "start")
    os.mkdir(os.path.join(grain.directory, "sub"))
    sub = os.path.join(grain.directory, "sub")
    show = 'pwd; echo "$PWD $A $B"'
    for words, end in ((["run"], []), (["map"], [":::", "x"])):
        out, _ = run(grain, *words, "--cwd", "sub", "--env", "A=1", "--env", "B=two words", "--", "sh", "-c", show, *end)
        assert out == f"{sub}\n{sub} 1 two words\n", out
        assert "--env A: a name and a value" in run(grain, *words, "--env", "A", "--", "true", *end,
                                                    code=125 if words == ["run"] else 255)[1]
        assert "No such file" in run(grain, *words, "--cwd", "nowhere", "--", "/bin/pwd", *end,
                                     code=126 if words == ["run"] else 255)[1]
    before = pool.json("session", "ls")
    assert run(grain, "map", "--dry-run", "--", "echo", "{#}", "a b", "{}", ":::", "x", "it's")[0] == \
        "echo 1 'a b' x\necho 2 'a b' 'it'\\''s'\n"
    assert re.fullmatch(r"/\S*/echo 'a b'\n", run(grain, "run", "--dry-run", "--", "echo", "a b")[0])
    assert pool.json("session", "ls") == before, "a dry run leaves nothing"


def so_many_at_a_time(pool):
    """Four slots, two at a time: each grain looks how many run beside it."""
    grain = Grain(pool, "jobs")
    look = 'mkdir run$1; ls -d run* | wc -l; sleep 0.3; rmdir run$1'
    out, _ = run(grain, "map", "-j", "2", "--", "sh", "-c", look, "sh", "{}", ":::", *"12345678")
    counts = [int(n) for n in out.split()]
    assert len(counts) == 8 and max(counts) <= 2, counts
    grain = Grain(pool, "killed")  # those that a party kills make room, too
    process = grain.start("map", "-j", "1", "--session", "900", "--", "sh", "-c", "until [ -e go ]; do sleep 0.05; done", "sh",
                          "{}", ":::", "1", "2")
    wait_for("the first grain", lambda: pool.dcs("grain", "kill", "900:1", check=False).returncode == 0)
    grain.go()
    assert process.communicate(timeout=120) and process.returncode == 1


def files(pool):
    grain = Grain(pool, "files")
    written = ["map", "--results", "out", "--", "sh", "-c", "echo $1; test $1 = b || test -e quiet || echo wrong >&2", "sh", "{}",
               ":::", "a", "b"]
    out, _ = run(grain, *written)
    read = {name: open(os.path.join(grain.directory, "out", name)).read() for name in os.listdir(os.path.join(grain.directory, "out"))}
    assert read.pop(".dcs-map").startswith("map-")
    assert out == "" and read == {"1.out": "a\n", "1.err": "wrong\n", "2.out": "b\n"}, read
    err = run(grain, "map", "--results", "out", "--", "echo", ":::", "c", code=255)[1]
    assert tells(err, "--results out has results of a map with other words") and "another directory" in err, err
    assert open(os.path.join(grain.directory, "out/1.out")).read() == "a\n"
    open(os.path.join(grain.directory, "quiet"), "w").close()
    run(grain, *written)
    assert sorted(os.listdir(os.path.join(grain.directory, "out"))) == [".dcs-map", "1.out", "2.out"], "errors of the run before"
    run(grain, "map", "--output", "made=made-{}.{#}", "--", "sh", "-c", "echo $1 >made", "sh", "{}", ":::", "x", "y")
    assert open(os.path.join(grain.directory, "made-x.1")).read() == "x\n"
    assert open(os.path.join(grain.directory, "made-y.2")).read() == "y\n"
    err = run(grain, "map", "--output", "made", "--", "true", ":::", "1", "2", code=255)[1]
    assert tells(err, "all grains would write made") and "--output made=made.{#}" in err, err
    _, err = run(grain, "map", "--output", "made=no-{}", "--", "true", ":::", "1", "2", code=2)
    assert err.count("ended without making the file made") == 2 and "2 of 2 grains" in err and "copies" not in err, err
    path = os.path.join(grain.directory, "tool")
    with open(path, "w") as file:
        file.write("#!/bin/sh\necho brought $1\n")
    os.chmod(path, stat.S_IRWXU)
    assert run(grain, "map", "--bring", "--", "./tool", ":::", "1", "2")[0] == "brought 1\nbrought 2\n"
    assert tells(run(grain, "map", "--bring", "--", "{}", ":::", "true", code=255)[1], "--bring takes program's name")


def one_output(pool):
    """Grains of two tables of a job file write one file only if one comes after the other."""
    grain = Grain(pool, "twice")
    x, between, y = ('[[grain]]\nname = "%s"\ncommand = ["sh", "-c", "echo %s >o"]\noutput = ["o=made/%s"]\n' % (n, n, p)
                     for n, p in (("x", "same"), ("between", "other"), ("y", "./same")))

    def submit(text, code=0):
        with open(os.path.join(grain.directory, "twice.toml"), "w") as file:
            file.write(text)
        return run(grain, "submit", "--wait", "twice.toml", code=code)[1]
    refused = submit(x + between + y, code=2)
    assert tells(refused, "two outputs would be written to made/same other by x"), refused
    submit(x + between + 'after = "x"\n' + y + 'after = "between"\n')
    with open(os.path.join(grain.directory, "made/same")) as made:
        assert made.read() == "y\n"


def files_of_each(pool):
    """Each input's own file; outputs that cannot be kept are found before, and those that were not are not forgotten."""
    grain = Grain(pool, "each")
    for name in ("a b", "c"):
        with open(os.path.join(grain.directory, name), "w") as file:
            file.write(name.upper())
    out, _ = run(grain, "map", "--file", "in={}", "--output", "out=made/of {}/{#}", "--", "sh", "-c", "cat in; cp in out", "sh", "{}",
                 ":::", "a b", "c")
    assert out == "A BC" and open(os.path.join(grain.directory, "made", "of a b", "1")).read() == "A B", out
    path = os.path.join(grain.directory, "a b")
    assert run(grain, "map", "--file", "{}", "--", "sh", "-c", 'cat "$1"', "sh", "{/}", ":::", path)[0] == "A B"
    run(grain, "map", "--input", "{}", "--joblog", "log", "--", "cat", ":::", "a b", "c")
    with open(os.path.join(grain.directory, "log")) as log:
        assert sorted(line.rstrip("\n").split("\t")[-1] for line in log)[1:] == ["cat <'a b'", "cat <c"]
    before = pool.json("session", "ls")
    for words, wanted in ((["--file", "in={}"], "input 2: the file nowhere cannot be read"), (["--output", "x=c/{}"], "c/a b"),
                          (["--output", "x=made/of {}"], "Is a directory")):
        err = run(grain, "map", *words, "--", "true", ":::", "a b", "nowhere", code=255)[1]
        assert wanted in err, err
    for output, words in (("x=o/{/}", ("d1/f", "d2/f")), ("x=o/{.}", ("p.txt", "p.csv")), ("x=o/./{/}", ("f", "d/f"))):
        err = run(grain, "map", "--output", output, "--", "true", ":::", *words, code=255)[1]
        assert tells(err, "input 2 two outputs would written") and "{#}" in err, err
    os.makedirs(os.path.join(grain.directory, "real"))
    os.symlink("real", os.path.join(grain.directory, "link"))  # one directory has two names
    err = run(grain, "map", "--output", "x={}", "--", "true", ":::", "real/q", "link/q", code=255)[1]
    assert tells(err, "input 2 two outputs would written link/q"), err
    assert tells(run(grain, "run", "--output", "x=y", "--output", "z=./y", "--", "true", code=125)[1], "two outputs would written ./y")
    assert pool.json("session", "ls") == before, "what cannot go well leaves no session"
    line = ["map", "--output", "out={}/kept", "--", "sh", "-c", "rmdir \"$2/$1\"; echo $1 >out", "sh", "{}", grain.directory,
            ":::", "d", "e"]
    err = run(grain, *line, code=2)[1]
    assert err.count("cannot be written") == 2 and tells(err, "2 of 2 grains same command again copies"), err
    run(grain, *line)
    assert open(os.path.join(grain.directory, "e", "kept")).read() == "e\n"


def times(pool):
    grain = Grain(pool, "times")
    for limit in ("1", "1s", "0:01", "0:00:01"):
        assert tells(run(grain, "run", "--time", limit, "--", "sleep", "60", code=152)[1], "ran longer 1 s")
    assert run(grain, "run", "--time", "1:30:00", "--", "echo", "x")[0] == "x\n"
    assert run(grain, "run", "--time", "1-00:00:00", "--", "echo", "x")[0] == "x\n"
    for limit in ("1:60", "1:2:3:4", ":1", "1:", "x"):
        err = run(grain, "run", "--time", limit, "--", "true", code=125)[1]
        assert tells(err, "such 90s 5m 2h 7d 1:30:00"), err


def up_alone(pool):
    directory = os.path.join(pool.base, "alone")
    try:
        said = pool.dcs("up", "--dir", directory, "--interval", "1").stdout.decode()
        assert f"  export DCS_DIR={directory}\n" in said, said
        hosts = pool.json("--dir", directory, "host", "ls")["hosts"]
        assert [host["slots"] for host in hosts] == [len(os.sched_getaffinity(0))], hosts
    finally:
        pool.dcs("down", "--dir", directory)


def main():
    with Pool(1, 4, 10.0) as pool:
        handed_in(pool)
        killed_ones(pool)
        places_and_variables(pool)
        so_many_at_a_time(pool)
        files(pool)
        one_output(pool)
        files_of_each(pool)
        times(pool)
        up_alone(pool)
    print("7 passed, 0 failed")


if __name__ == "__main__":
    main()
