"""`dcs submit`: files with dependencies, items, inputs and outputs; killed repeatedly it runs each grain once, in order;
what comes after a failed or a killed grain does not run, and says so; without --wait a process in the background goes on."""
import json
import os
import random
import re
import signal
import subprocess

from pool import Pool, about, wait_for

STAGE = """#!/bin/sh
# name, seconds
echo "$1" >>{trace}
sleep "$2"
echo "done $1"
"""


class Desk:
    def __init__(self, pool):
        self.pool, self.folder = pool, os.path.join(pool.base, "desk")
        os.mkdir(self.folder)
        self.trace = os.path.join(self.folder, "trace")
        pool.env["XDG_STATE_HOME"] = os.path.join(pool.base, "state")
        with open(os.path.join(self.folder, "stage"), "w") as out:
            out.write(STAGE.format(trace=self.trace))
        os.chmod(os.path.join(self.folder, "stage"), 0o755)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as out:
            out.write(text)
        return name

    def submit(self, *line, check=True):
        return self.pool.dcs("submit", *line, check=check, cwd=self.folder)

    def ran(self):
        return open(self.trace).read().split() if os.path.exists(self.trace) else []

    def forget(self):
        if os.path.exists(self.trace):
            os.remove(self.trace)


def grain(name, after=(), seconds=0, more=""):
    return f'[[grain]]\nname = "{name}"\ncommand = ["./stage", "{name}", "{seconds}"]\nafter = {json.dumps(list(after))}\n{more}\n'


def killed_again_and_again(desk, rng):
    """A chain with a fan in it: killed at chance moments, every stage runs once, after those before it."""
    fan = "".join(grain(f"fan{i}", ["first"], 0.2) for i in range(6))
    desk.write("chain.toml", grain("first", (), 1) + fan + grain("last", [f"fan{i}" for i in range(6)], 1) +
               grain("end", ["last"]))
    kills = 0
    while True:
        run = subprocess.Popen([desk.pool.bin + "/dcs", "submit", "--wait", "chain.toml"], env=desk.pool.env, cwd=desk.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = run.communicate(timeout=rng.uniform(0.02, 0.4) if kills < 12 else 300)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            run.communicate()
            kills += 1
            continue
        assert run.returncode == 0 and about(out.decode(), "9 grains 0 failed 0"), (run.returncode, out, err)
        break
    ran = desk.ran()
    assert kills > 0 and sorted(ran) == sorted(set(ran)) and len(ran) == 9, (kills, ran)
    assert ran[0] == "first" and ran[-2:] == ["last", "end"], ran
    sessions = desk.pool.json("session", "ls")["sessions"]
    assert len(sessions) == 1 and sessions[0]["state"] == "terminated", sessions
    again = desk.submit("--wait", "chain.toml")
    assert about(again.stdout.decode(), "9 grains 0 failed 0") and about(again.stderr.decode(), "complete --new"), again
    assert len(desk.ran()) == 9
    print(f"{kills} kills")
    desk.submit("--wait", "--new", "chain.toml")
    assert len(desk.ran()) == 18
    desk.forget()


def failures(desk):
    desk.write("bad.toml", grain("good") + '[[grain]]\nname = "bad"\ncommand = ["false"]\nafter = "good"\n' +
               grain("next", ["bad"]) + grain("far", ["next", "good"]) + grain("other", ["good"]))
    done = desk.submit("--wait", "bad.toml", check=False)
    assert done.returncode == 10, done
    assert about(done.stdout.decode(), "5 grains 1 failed 2"), done
    assert about(done.stderr.decode(), "next bad failed") and about(done.stderr.decode(), "far next"), done
    assert sorted(desk.ran()) == ["good", "other"], desk.ran()
    told = json.loads(desk.submit("--wait", "bad.toml", "-o", "json", check=False).stdout)
    assert told["schema"] == "dcs.submit/1" and told["failed"] == 1, told
    assert [n["name"] for n in told["not_run"]] == ["next", "far"], told
    desk.forget()
    desk.write("slow.toml", grain("slow", (), 1000) + grain("then", ["slow"]))
    run = subprocess.Popen([desk.pool.bin + "/dcs", "submit", "--wait", "slow.toml"], env=desk.pool.env, cwd=desk.folder,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for("the slow one", lambda: desk.ran() == ["slow"])
    desk.pool.dcs("grain", "kill", "last:1")
    out, err = run.communicate(timeout=120)
    assert run.returncode == 10 and about(err.decode(), "killed then slow failed"), (run.returncode, out, err)
    assert about(err.decode(), "grain ls lists what failed") and not about(err.decode(), "state failed"), "it is killed"
    desk.forget()


def mended(desk):
    """The same command again runs what failed and what did not run, and nothing else."""
    desk.write("mend.toml", grain("good") + """[[grain]]
name = "fit"
command = ["sh", "-c", "echo $1 >>fits; test $1 != 2 || test -e mended || { echo no $1 >&2; exit 7; }", "sh", "{}"]
array = "1-3"
after = "good"
""" + grain("plot", ["fit"]))
    done = desk.submit("--wait", "mend.toml", check=False)
    text = done.stderr.decode()
    assert done.returncode == 10 and about(text, "fit 2 grain : 3 failed exit code 7 : no 2"), done
    assert about(text, "plot fit failed") and about(text, "grain ls --state failed same command again"), done
    desk.write("mended", "")
    done = desk.submit("mend.toml")  # in the background
    assert done.stdout.strip() and about(done.stderr.decode(), "submits the rest"), done
    done = desk.submit("--wait", "mend.toml")
    assert about(done.stdout.decode(), "5 grains 0 failed 0"), done
    fits = open(os.path.join(desk.folder, "fits")).read().split()
    assert sorted(fits) == ["1", "2", "2", "3"] and desk.ran() == ["good", "plot"], (fits, desk.ran())
    assert about(desk.submit("--wait", "mend.toml").stderr.decode(), "is complete"), "nothing is left"
    number = desk.submit("mend.toml").stdout.decode()  # whether complete or not
    assert re.fullmatch(r"\d+\n", number), number
    desk.forget()


def lost_outputs(desk):
    """What comes after a grain needs its outputs: made, and in their places."""
    desk.write("outputs.toml", """[[grain]]
name = "fit"
command = ["sh", "-c", "test $1 = 3 && exit; echo $1 >result; rm -rf $2; echo >$2", "sh", "{}", "%s/bad.{}"]
array = "1-3"
output = ["result=bad.{}/result"]
""" % desk.folder + grain("plot", ["fit"]))
    done = desk.submit("--wait", "outputs.toml", check=False)
    text = done.stderr.decode()
    assert done.returncode == 10 and about(done.stdout.decode(), "4 grains 3 failed 1") and not desk.ran(), done
    assert text.count("cannot be written") == 2 and about(text, "fit 3 without making the file result"), done
    for number in 1, 2:
        os.remove(os.path.join(desk.folder, f"bad.{number}"))
    desk.write("places.toml", """[[grain]]
name = "make"
command = ["sh", "-c", "echo $1 >result", "sh", "{}"]
array = "1-2"
output = ["result=new place/{}/result"]
[[grain]]
name = "use"
command = ["cat", "in"]
array = "1-2"
file = "in=new place/{}/result"
after = "make"
""")
    desk.submit("--dry-run", "places.toml")
    assert not os.path.exists(os.path.join(desk.folder, "new place"))
    desk.submit("--wait", "places.toml")
    desk.write("new file", "")
    desk.write("refused.toml", '[[grain]]\nname = "a"\ncommand = ["true"]\noutput = "x=new file/x"\n')
    done = desk.submit("--wait", "refused.toml", check=False)
    assert done.returncode == 2 and about(done.stderr.decode(), "refused.toml a new file/x cannot be written"), done


def what_is_missing(desk):
    """In a wrong directory: it is said before there is a session. What a grain makes for another cannot be missing yet."""
    before = desk.pool.json("session", "ls")["sessions"]
    desk.write("inputs.toml", '[[grain]]\nname = "a"\ncommand = ["cat", "in"]\narray = "1-2"\nfile = "in=in.{}"\n' +
               '[[grain]]\nname = "b"\ncommand = ["true"]\nimage = "no.tar"\n' +
               '[[grain]]\nname = "c"\ncommand = ["true"]\nfile = "made"\nafter = "a"\n')
    desk.write("in.1", "one")
    refused = desk.submit("inputs.toml", check=False)
    told = refused.stderr.decode()
    assert refused.returncode == 2 and about(told, "grain a: file in.2 cannot be read No such") and about(told, "grain b: image no.tar"), refused
    assert "made" not in told and desk.pool.json("session", "ls")["sessions"] == before, told
    desk.write("input.toml", '[[grain]]\ncommand = ["cat", "in"]\nfile = "in=in.1"\n')
    desk.submit("--wait", "input.toml")
    os.remove(os.path.join(desk.folder, "in.1"))
    assert about(desk.submit("--wait", "input.toml").stderr.decode(), "is complete"), "it has run"


def items_and_files(desk):
    desk.write("list", "a b\nc\n")
    desk.write("items.toml", """[[grain]]
name = "lines"
command = ["echo", "<{}>", "{#}"]
each-line = "list"
[[grain]]
name = "count"
command = ["wc", "-w"]
input = "one two three"
after = "lines"
[[grain]]
name = "make"
command = ["sh", "-c", "echo $WHO $1 >result", "sh", "{}"]
array = "7-8"
env = { WHO = "made" }
output = "result=out.{}"
""")
    plan = desk.submit("--dry-run", "items.toml").stdout.decode()
    assert plan.count("\n") == 5 and "/echo '<a b>' 1" in plan, plan
    desk.submit("--wait", "items.toml")
    assert desk.pool.dcs("session", "cat", "last").stdout.startswith(b"<a b> 1\n<c> 2\n3\n")
    for n in (7, 8):
        assert open(os.path.join(desk.folder, f"out.{n}")).read() == f"made {n}\n"
    desk.write("in.1", "b\na\n")
    desk.write("in.2", "d\nc\n")
    both = '[[grain]]\ncommand = ["sort"]\narray = "1-2"\ninput-file = "in.{}"\n[[grain]]\ncommand = ["cat"]\narray = "1-2"\ninput = "{}:{#} "\n'
    desk.submit("--wait", desk.write("inputs.toml", both))
    assert desk.pool.dcs("session", "cat", "last").stdout == b"a\nb\nc\nd\n1:1 2:2 "
    desk.submit("--wait", "--array", "1-1000", desk.write("one.toml", '[[grain]]\ncommand = ["echo", "n{}"]\n'))
    assert desk.pool.dcs("session", "cat", "last").stdout.decode().split() == [f"n{i}" for i in range(1, 1001)]


def in_the_background(desk):
    desk.write("back.toml", grain("early", (), 0.5) + grain("late", ["early"]))
    done = desk.submit("back.toml")
    number = done.stdout.decode().strip()
    assert number.isdigit() and about(done.stderr.decode(), "background log"), done
    both = desk.submit("--wait", "back.toml")  # takes the session from it
    assert about(both.stdout.decode(), "2 grains 0 failed"), both
    assert desk.ran() == ["early", "late"], desk.ran()
    desk.forget()
    done = desk.submit("--new", "back.toml")
    number = done.stdout.decode().strip()
    printed = desk.pool.dcs("session", "cat", "--wait", number)  # the late one, too, which is submitted after the early one
    assert printed.stdout == b"done early\ndone late\n", printed
    wait_for("the late one", lambda: desk.ran() == ["early", "late"])
    wait_for("the end of its session", lambda: any(
        str(s["session"]) == number and s["state"] == "terminated" for s in desk.pool.json("session", "ls")["sessions"]))
    log = os.path.join(desk.pool.dir, "submit", number + ".log")
    assert about(open(log).read(), "2 grains 0 failed"), open(log).read()
    for verb in "session", "grain":
        assert log not in desk.pool.dcs(verb, "show" if verb == "session" else "ls", number).stdout.decode(), "all is well"
    desk.forget()
    names_its_log(desk)


def names_its_log(desk):
    """Where a session of a file has failed grains, the commands name the log that says what did not run."""
    desk.write("worse.toml", '[[grain]]\nname = "bad"\ncommand = ["false"]\n' + grain("next", ["bad"]))
    number = desk.submit("worse.toml").stdout.decode().strip()
    desk.pool.dcs("session", "wait", number, check=False)
    log = os.path.join(desk.pool.dir, "submit", number + ".log")
    wait_for("the log's last words", lambda: about(open(log).read(), "2 grains 1 failed 1 did not run"))
    for words in ("session", "show", number), ("grain", "ls", number), ("grain", "show", number + ":1"):
        assert log in desk.pool.dcs(*words).stdout.decode(), words
    printed = desk.pool.dcs("session", "cat", number, check=False)
    assert printed.returncode == 10 and about(printed.stderr.decode(), "1 grain was not submitted comes before failed"), printed
    never = desk.pool.dcs("grain", "show", number + ":2", check=False)
    assert log in never.stderr.decode(), never
    os.remove(log)
    assert log not in desk.pool.dcs("session", "show", number).stdout.decode(), "there is no log"
    desk.forget()


def without_its_process(desk):
    """The process in the background is killed: the session says what is missing, and the same command goes on."""
    go = os.path.join(desk.folder, "go")
    desk.write("lone.toml", f'''[[grain]]
name = "early"
command = ["sh", "-c", "until test -e {go}; do sleep 0.1; done"]
''' + grain("late", ["early"]) + grain("last", ["late"]))
    number = desk.submit("lone.toml").stdout.decode().strip()
    log = os.path.join(desk.pool.dir, "submit", number + ".log")
    # its standard output is its log
    wait_for("the first to run", lambda: about(desk.pool.dcs("grain", "ls", number).stdout.decode(),
                                               "1 running 2 more grains not yet submitted dcs submit"))
    assert "not yet" not in desk.pool.dcs("grain", "ls", number, "--state", "running").stdout.decode()
    waits = desk.pool.dcs("grain", "explain", number + ":2", check=False)
    assert waits.returncode == 3 and about(waits.stderr.decode(), f"grain {number}:2 is not submitted yet dcs submit comes after"), waits
    assert about(desk.pool.dcs("grain", "explain", number + ":4", check=False).stderr.decode(), "there is no grain"), "three"
    process = next(int(p) for p in os.listdir("/proc") if p.isdigit() and reads(f"/proc/{p}/fd/1") == log)
    os.kill(process, signal.SIGKILL)
    desk.write("go", "")
    waited = desk.pool.dcs("session", "wait", number, check=False)
    assert waited.returncode == 10 and about(waited.stdout.decode(), "1 grain 0 failed 2 did not run command that submits them has ended"), waited
    wait_for("the doctor to say so", lambda: about(desk.pool.dcs("doctor", check=False).stdout.decode(),
                                                   f"session {number} 2 of its 3 grains not submitted same command"))
    printed = desk.pool.dcs("session", "cat", number, check=False)
    assert printed.returncode == 10 and about(printed.stderr.decode(), "2 grains not been submitted --wait"), printed
    printed = desk.pool.dcs("session", "cat", "--wait", number, check=False)
    assert printed.returncode == 10 and about(printed.stderr.decode(), "2 grains not been submitted command that submits them has ended same command"), printed
    shown = desk.pool.dcs("session", "show", number).stdout.decode()
    assert about(shown, "missing 2 grains not submitted"), shown
    desk.submit("--wait", "lone.toml")
    assert desk.ran() == ["late", "last"], desk.ran()
    assert "not submitted" not in desk.pool.dcs("doctor", check=False).stdout.decode()
    waited = desk.pool.dcs("session", "wait", number)
    assert about(waited.stdout.decode(), "3 grains finished") and b"did not run" not in waited.stdout, waited
    assert "missing" not in desk.pool.dcs("session", "show", number).stdout.decode()
    desk.forget()


def interrupted(desk):
    """Ctrl-C says what goes on, and that the rest is submitted by the same command again."""
    go = os.path.join(desk.folder, "go-on")
    desk.write("two.toml", f'[[grain]]\nname = "a"\ncommand = ["sh", "-c", "until test -e {go}; do sleep 0.1; done"]\n' + grain("b", ["a"]))
    run = subprocess.Popen([desk.pool.bin + "/dcs", "submit", "--wait", "two.toml"], env=desk.pool.env, cwd=desk.folder, stderr=subprocess.PIPE)
    wait_for("its grain", lambda: [row for row in desk.pool.json("grain", "ls", "last", check=False).get("grains", []) if row["state"] == "running"])
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=300)[1].decode()
    assert run.returncode == -signal.SIGINT and about(said, "interrupted session continues with 1 of its 2 grains same command again session close"), said
    desk.write("go-on", "")
    desk.submit("--wait", "two.toml")
    assert desk.ran() == ["b"], desk.ran()
    desk.forget()


def results_before_their_turn(desk):
    """The command is killed while one grain runs and others have ended, of which one comes after another."""
    go = os.path.join(desk.folder, "go-on-slowly")
    desk.write("early.toml", f'[[grain]]\nname = "a"\ncommand = ["sh", "-c", "until test -e {go}; do sleep 0.1; done"]\n' +
               grain("c") + grain("d", ["c"]))
    words = [desk.pool.bin + "/dcs", "submit", "--wait", "early.toml"]
    run = subprocess.Popen(words, env=desk.pool.env, cwd=desk.folder, stderr=subprocess.DEVNULL)
    wait_for("two of three", lambda: [row["state"] for row in desk.pool.json("grain", "ls", "last", check=False).get("grains", [])] ==
             ["running", "finished", "finished"])
    run.kill()
    run.wait()
    desk.write("go-on-slowly", "")
    assert about(desk.submit("--wait", "early.toml").stdout.decode(), "3 grains 0 failed")
    assert desk.ran() == ["c", "d"], desk.ran()
    desk.forget()


def reads(link):
    try:
        return os.readlink(link)
    except OSError:
        return ""


def wrong_files(desk):
    desk.write("wrong.toml", '[[grain]]\nname = "a"\ncommand = ["./stage"]\nafter = "b"\nmemroy = 1\n')
    done = desk.submit("wrong.toml", check=False)
    assert done.returncode == 2 and about(done.stderr.decode(), "wrong.toml:5:1 memroy memory wrong.toml:4:9 b"), done
    done = desk.submit(desk.write("lost.toml", '[[grain]]\nname = "a"\ncommand = ["no-such-program"]\n'), check=False)
    assert done.returncode == 2 and about(done.stderr.decode(), "lost.toml:1:1 a no-such-program"), done
    assert desk.submit("none.toml", check=False).returncode == 3


def main():
    rng = random.Random(int(os.environ.get("DCS_SEED", "1")))
    with Pool(servers=2, slots=4) as pool:
        desk = Desk(pool)
        killed_again_and_again(desk, rng)
        failures(desk)
        mended(desk)
        lost_outputs(desk)
        what_is_missing(desk)
        items_and_files(desk)
        in_the_background(desk)
        without_its_process(desk)
        interrupted(desk)
        results_before_their_turn(desk)
        wrong_files(desk)


if __name__ == "__main__":
    main()
