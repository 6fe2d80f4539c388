#!/usr/bin/python3
"""A command that waits for its scheduler says for what; session numbers do not come again; a private pool is not for others."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading

from pool import Pool, program, tells, wait_for


def tells_while_it_waits(pool):
    """The scheduler is connected and says nothing: after a second there is a word, and the answer is still taken. Of the 20
    seconds after which the command gives up, the word tells how many are left; a busy machine may need several tries."""
    left = [told_left(pool)]
    while left[-1] < 17:
        assert len(left) < 6, left
        left.append(told_left(pool))


def told_left(pool):
    pid = pool.pid("scheduler", "scheduler")
    os.kill(pid, signal.SIGSTOP)
    child = pool.start([os.path.join(pool.bin, "dcs"), "session", "ls"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = []
    reader = threading.Thread(target=lambda: said.extend(child.stderr))
    reader.start()
    try:
        wait_for("a word about the wait, and a hint", lambda: len(said) == 2 or child.poll() is not None)
    finally:
        os.kill(pid, signal.SIGCONT)
    out = child.stdout.read()
    reader.join()
    assert child.wait() == 0 and "0 sessions" in out, (child.returncode, out, said)
    words = f"dcs: waiting: the scheduler of {pool.dir} is connected, but does not answer; gives up in "
    assert len(said) == 2 and said[0].startswith(words) and tells(said[1], f"hint process {pid} is stopped"), said
    return int(said[0].split()[-2])


def is_not_started_again(pool):
    """A scheduler that runs and says nothing is not to be started."""
    pid = pool.pid("scheduler", "scheduler")
    os.kill(pid, signal.SIGSTOP)
    pool.env["DCS_PATIENCE_S"] = "1"
    try:
        said = pool.dcs("session", "ls", check=False)
    finally:
        os.kill(pid, signal.SIGCONT)
        del pool.env["DCS_PATIENCE_S"]
    assert said.returncode == 5 and tells(said.stderr, f"hint process {pid} is stopped kill -CONT {pid}"), said


def up_does_not_take_it_for_well(pool):
    """At once: it is certain that it does not answer."""
    pid = pool.pid("scheduler", "scheduler")
    os.kill(pid, signal.SIGSTOP)
    try:
        said = pool.up(check=False)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert said.returncode == 5 and b"waiting" not in said.stderr and said.stdout == b"", said
    assert tells(said.stderr, "scheduler does not answer") and tells(said.stderr, f"hint kill -CONT {pid}"), said


def ends_when_it_is_told_to(pool):
    """Also before it has a session."""
    pid = pool.pid("scheduler", "scheduler")
    os.kill(pid, signal.SIGSTOP)
    child = pool.start([os.path.join(pool.bin, "dcs"), "run", "--", "true"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def waits_for_signals():
        status = open(f"/proc/{child.pid}/status").read()
        blocked = int([line for line in status.splitlines() if line.startswith("SigBlk:")][0].split()[1], 16)
        return blocked & 1 << (signal.SIGTERM - 1) and len(os.listdir(f"/proc/{child.pid}/task")) > 1
    try:
        wait_for("the command to begin", waits_for_signals)
        child.terminate()
        _, said = child.communicate(timeout=300)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert child.returncode == 128 + signal.SIGTERM and b"interrupted: nothing was submitted" in said, (child.returncode, said)


def sleeps(pid):
    """As what follows does between its questions, of which it has asked one."""
    with open(f"/proc/{pid}/wchan") as where:
        return where.read() == "hrtimer_nanosleep"


def followers_say_that_it_is_away(pool):
    """What follows a session or a grain waits for the next scheduler, and says so."""
    go = os.path.join(pool.base, "go")
    number = pool.dcs("run", "--detach", "--", "sh", "-c", f"echo here; until test -e {go}; do sleep 0.1; done; echo there").stdout.decode().strip()
    wait_for("the grain", lambda: pool.json("grain", "show", number + ":1")["grain"]["state"] == "running")
    followers = [pool.start([os.path.join(pool.bin, "dcs"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                 for words in (["session", "cat", "--wait", number], ["session", "watch", number], ["grain", "tail", "-f", number + ":1"])]
    assert followers[2].stdout.readline() == "here\n"
    wait_for("the others to follow", lambda: all(sleeps(child.pid) for child in followers[:2]))
    pool.kill("scheduler", "scheduler")
    said = [child.stderr.readline() for child in followers]
    pool.up()
    open(go, "w").close()
    assert all(tells(line, "waiting no answer from scheduler gives up in") for line in (said[0], said[2])), said
    assert tells(said[1], "dcs session watch: scheduler does not answer; waiting for it"), said
    ends = [child.communicate(timeout=300)[0] for child in followers]
    assert (ends[0], ends[2]) == ("here\nthere\n", "there\n") and "1 finished" in ends[1], ends
    assert [child.returncode for child in followers] == [0, 0, 0], followers


def runs_say_that_it_is_silent(pool):
    """So does what waits for many grains, and says when it answers again."""
    go = os.path.join(pool.base, "go_on")
    waits = f"until test -e {go}; do sleep 0.1; done"
    job = os.path.join(pool.base, "job.toml")
    with open(job, "w") as file:
        file.write(f'[[grain]]\nname = "wait"\ncommand = ["sh", "-c", "{waits}"]\n')
    runs = [pool.start([os.path.join(pool.bin, "dcs"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for words in (["map", "--", "sh", "-c", waits, "{}", ":::", "a"], ["submit", "--wait", job])]
    for run in runs:
        assert "session " in run.stderr.readline(), "it has begun"
    pid = pool.pid("scheduler", "scheduler")
    os.kill(pid, signal.SIGSTOP)
    try:
        silent = [run.stderr.readline() for run in runs]
    finally:
        os.kill(pid, signal.SIGCONT)
    back = [run.stderr.readline() for run in runs]
    open(go, "w").close()
    assert all(tells(line, f"scheduler does not answer waiting process {pid} is stopped") for line in silent), silent
    assert all(tells(line, "scheduler is back") for line in back), back
    assert [run.communicate(timeout=300) and run.returncode for run in runs] == [0, 0], runs


def numbers_do_not_come_again(pool):
    def session_of(*words):
        pool.dcs("map", *words, "--", "true", ":::", *"ab")
        return json.loads(pool.dcs("session", "ls", "last", "-o", "json").stdout)["sessions"][0]["session"]
    first = session_of()
    pool.dcs("session", "clean", str(first))
    second = session_of("--new")
    assert second > first, (first, second)
    pool.dcs("run", "--", "true", data=b"")  # its session is removed when it has ended
    third = session_of("--new")
    assert third > second + 1, (second, third)
    pool.dcs("session", "clean", str(third), str(second))
    pool.kill("scheduler", "scheduler")
    pool.up()
    fourth = session_of("--new")
    assert fourth > third, (third, fourth)
    # Who names one gets it; and --session takes `last`.
    words = ("map", "--session", str(first), "--", "echo", ":::", "x")
    assert tells(pool.dcs(*words).stderr, f"session {first}: 1 grain; there was no session {first} all run")
    assert not tells(pool.dcs(*words).stderr, "there was no session"), "it is there"
    again = pool.dcs("map", "--session", "last", "--", "echo", ":::", "x")
    assert again.stdout == b"x\n" and f"session {first}: " in again.stderr.decode(), again
    wrong = pool.dcs("map", "--session", "lost", "--", "echo", ":::", "x", check=False)
    assert wrong.returncode == 255 and "must be a session's number, or last" in wrong.stderr.decode(), wrong


def of_another_user(pool):
    """A private pool refuses other users, and says how a pool is shared."""
    if os.geteuid() != 0:
        return
    place = tempfile.mkdtemp(prefix="dcs-words-")
    try:
        os.chmod(place, 0o755)
        shutil.copy(program("dcs"), place)
        done, status, detach = (
            subprocess.run([os.path.join(place, "dcs"), *words, "--dir", pool.dir], env=pool.env, cwd="/", user=65534,
                           group=65534, extra_groups=[], capture_output=True, text=True, timeout=300)
            for words in (("session", "ls"), ("backup", "status"), ("backup", "detach")))
    finally:
        shutil.rmtree(place)
    assert done.returncode == 5 and tells(done.stderr, "hint another account own pool several root docs/OPERATING.md"), done
    for refused in (status, detach):
        assert refused.returncode == 4 and tells(refused.stderr, "only root account daemons may ask"), refused


def main():
    with Pool(servers=1) as pool:
        tells_while_it_waits(pool)
        is_not_started_again(pool)
        up_does_not_take_it_for_well(pool)
        ends_when_it_is_told_to(pool)
        followers_say_that_it_is_away(pool)
        runs_say_that_it_is_silent(pool)
        numbers_do_not_come_again(pool)
        of_another_user(pool)
    print("8 passed, 0 failed, 0 skipped")


if __name__ == "__main__":
    main()
