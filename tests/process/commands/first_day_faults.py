#!/usr/bin/python3
"""What a newcomer types wrong on the first day, and what that does to the next command: a fault of one grain is reported as
that grain's fault, with its reason, and nothing else is in the way of what is right."""
import os
import subprocess

from pool import Pool, program, tells, wait_for
from users_host import FIRST, GAMES, UsersHost


def expect(result, code, out=None, *words):
    err = result.stderr.decode()
    assert result.returncode == code, (result.returncode, result.stdout, err)
    assert out is None or result.stdout == out, (result.stdout, err)
    for word in words:
        assert word in err, f"{word!r} is not in {err!r}"
    return err


def innocent(pool):
    """Another command with the same program."""
    expect(pool.dcs("run", "--", "sh", "-c", "echo I am innocent", data=b""), 0, b"I am innocent\n")


def argument_too_long(pool):
    inputs = b"short\n" + b"a" * 200_000 + b"\nfine\n"
    result = pool.dcs("map", "--", "sh", "-c", "echo ${#1}", "sh", data=inputs, check=False)
    expect(result, 1, b"5\n4\n", "Argument list too long")
    innocent(pool)
    shown = pool.dcs("grain", "show", "last:2").stdout.decode()
    assert "starts       0; " in shown and "Argument list too long" in shown, shown
    explained = pool.dcs("grain", "explain", "last:2").stdout.decode()
    assert "Argument list too long" in explained and "take the result" not in explained, explained


def fixed_and_run_again(pool):
    """The program is there, and cannot be executed; then it can."""
    work = os.path.join(pool.base, "work")
    os.mkdir(work)
    script = os.path.join(work, "s.sh")

    def write(text):
        with open(script, "w") as file:
            file.write(text)
        os.chmod(script, 0o755)

    def twice():
        return (pool.dcs("map", "--", "./s.sh", ":::", *map(str, range(20)), data=b"", check=False, cwd=work),
                pool.dcs("run", "--", "./s.sh", data=b"", check=False, cwd=work))
    write("echo x\n")
    by_map, by_run = twice()
    expect(by_map, 20, b"", "#! line", "20 of 20 grains failed")
    expect(by_run, 126, b"", "#! line", "on local1", "on local2")
    innocent(pool)
    write("#!/bin/sh\necho x\n")
    by_map, by_run = twice()
    expect(by_map, 0, b"x\n" * 20)
    expect(by_run, 0, b"x\n")


def codes_pass(pool):
    for code in (74, 85):
        expect(pool.dcs("run", "--", "sh", "-c", f"exit {code}", data=b"", check=False), code, b"")
    expect(pool.dcs("map", "--", "sh", "-c", "exit $1", "sh", "{}", ":::", "0", "1", "74", data=b"", check=False), 2)
    rows = pool.json("grain", "ls", "last")["grains"]
    assert [(row["exit_code"], row["starts"], row["restarts"]) for row in rows] == [(0, 1, 0), (1, 1, 0), (74, 1, 0)], rows


def starts_are_starts(pool):
    for _ in range(5):
        pool.dcs("run", "--", "true", data=b"")
    pool.dcs("map", "--", "echo", ":::", "starts", "count", data=b"")
    shown = pool.dcs("grain", "show", "last:1").stdout.decode()
    assert tells(shown, "starts 1 0 1 attempt failed moved restarted 0 times"), shown
    listed = pool.dcs("grain", "ls", "last").stdout.decode().splitlines()
    column = listed[0].split().index("STARTS")
    assert [line.split()[column] for line in listed[1:3]] == ["1", "1"], listed
    assert "incarnation" not in pool.dcs("session", "log", "last").stdout.decode()


def round_and_round(pool):
    """A grain that says each time that it is not its fault: it rests, and who waits hears of it."""
    command = subprocess.Popen([program("dcs"), "run", "--", "sh", "-c", ': >"$DCS_GRAIN_DIR/announce"; echo no room here >&2; exit 74'], env=pool.env,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    named = wait_for("dcs doctor to name it", lambda: [p for p in pool.json("doctor", check=False)["problems"]
                                                      if p["entity"].startswith("grain ")])
    assert "could not write its output on this host: no room here" in named[0]["problem"] and "attempt" in named[0]["affects"], named
    grain = named[0]["entity"].split("/")[1]
    said = b"could not write its output on this host: no room here; it is started again automatically"
    assert any(said in line for line in command.stderr), "dcs run ended without a word of it"
    explained = pool.dcs("grain", "explain", grain).stdout.decode()
    assert "times in a row" in explained, explained
    pool.dcs("grain", "kill", grain)
    err = command.communicate(timeout=300)[1].decode()
    assert command.returncode == 125 and tells(err, "killed another command") and "submit more" not in err, err


def too_long_a_run(pool):
    pool.dcs("map", "--wall", "1", "--", "sleep", ":::", "600", data=b"", check=False)
    explained = pool.dcs("grain", "explain", "last:1").stdout.decode()
    assert tells(explained, "ran longer 1 s") and "dcs grain cat" in explained, explained


def shared_pool():
    with UsersHost() as host:
        private, public = os.path.join(host.base, "private"), os.path.join(host.base, "public")
        os.mkdir(private, 0o700)
        os.mkdir(public, 0o755)
        os.chown(private, GAMES, GAMES)
        for uid in (None, GAMES):
            result = host.run("sh", "-c", "echo hi", cwd=private, uid=uid, check=False)
            expect(result, 126, b"", "working directory " + private, f"Permission denied for uid {FIRST // 100}", "--cwd DIR")
            expect(host.run("sh", "-c", "echo B works", cwd=public, uid=uid, check=False), 0, b"B works\n")
        expect(host.dcs("map", "--", "sh", "-c", "echo $1", "sh", "{}", ":::", "a", "b", cwd=private, check=False, data=b""), 2, b"",
               "Permission denied")
        expect(host.run("sh", "-c", "echo B works", check=False), 0, b"B works\n")


def killed_too_late(pool):
    pool.dcs("map", "--", "echo", ":::", "a")
    expect(pool.dcs("grain", "kill", "last:1", check=False), 4, b"", "was not killed: it has finished")


def no_host_is_so_large(pool):
    """Said also by a command that does not wait for the grain."""
    for words in (("map", "--detach", "--memory", "900T", "--", "true", ":::", "1"), ("run", "--detach", "--memory", "900T", "--", "true")):
        said = pool.dcs(*words)
        assert tells(said.stderr, "grain 1 no host can take it memory"), said
        pool.dcs("session", "close", "last")
    for option, what in (("--memory=900T", "less memory"), ("--cores=1000", "fewer cores")):
        said = pool.dcs("run", option, "--", "true", check=False)
        expect(said, 126, b"", "the command was not run: no host can take it: 2 hosts", what, "dcs host show local1")
    assert tells(pool.dcs("host", "show", "local1").stdout, "cores grains demand 0 of 1"), "the hint leads to the figures"
    assert not tells(pool.dcs("run", "--detach", "--", "true").stderr, "no host can"), "one can"


def run_again_is_no_move(pool):
    for _ in range(2):
        pool.dcs("map", "--", "sh", "-c", "false # again", ":::", "1", "2", check=False)
    picture = pool.dcs("trace", "last", "--svg", "-").stdout.decode()
    assert picture.count('class="box stay"') == 4, picture
    assert picture.count('class="moved"') == 1, "in the legend only"


def outputs_have_a_place(pool):
    """Their directories are looked at before the run; what cannot be written after it stays in the pool."""
    work = os.path.join(pool.base, "outputs")
    os.mkdir(work)
    expect(pool.dcs("run", "--output", "f=made/below/g", "--", "sh", "-c", "echo precious >f", data=b"", cwd=work), 0)
    assert open(os.path.join(work, "made/below/g")).read() == "precious\n"
    with open(os.path.join(work, "file"), "w"):
        pass
    gone = pool.dcs("run", "--output", "f=file/g", "--", "sh", "-c", f"echo ran >{work}/ran", data=b"", check=False, cwd=work)
    expect(gone, 125, b"", "file/g cannot be written")
    assert not os.path.exists(os.path.join(work, "ran"))
    gone = pool.dcs("run", "--output", "f=away/g", "--", "sh", "-c", f"rmdir {work}/away; echo precious >f", data=b"", check=False, cwd=work)
    expect(gone, 125, b"", "away/g cannot be written", "dcs grain cat ")
    name = gone.stderr.decode().split("`dcs grain cat ")[1].split("`")[0]
    assert pool.dcs("grain", "cat", name, "--file", "f").stdout == b"precious\n"
    pool.dcs("session", "clean", name.split(":")[0])


def main():
    with Pool(2, 1, 2.0) as pool:
        parts = (argument_too_long, fixed_and_run_again, codes_pass, starts_are_starts, too_long_a_run, round_and_round, killed_too_late, no_host_is_so_large, run_again_is_no_move, outputs_have_a_place)
        for part in parts:
            part(pool)
            print(part.__name__, "ok", flush=True)
    if os.geteuid() == 0:
        shared_pool()
        print("shared_pool ok")
    print(f"{len(parts) + (os.geteuid() == 0)} passed, 0 failed, {int(os.geteuid() != 0)} skipped")


if __name__ == "__main__":
    main()
