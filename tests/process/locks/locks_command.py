#!/usr/bin/python3
"""dcs_lock as people use it: every option, exit code and refusal, with real processes."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from lock_box import LOCK, TEST_LOCK, Box, cases, later, runs, wait_for

SELF = os.path.abspath(__file__)


def test_the_commands_own_exit_code():
    with Box() as box:
        for code in (0, 1, 7, 75, 255):
            box.run("a", "sh", "-c", f"exit {code}", code=code)
        box.run("a", "sh", "-c", "kill -TERM $$", code=128 + 15)
        box.run("a", "sh", "-c", "kill -KILL $$", code=128 + 9)
        assert "no-such-program" in box.run("a", "no-such-program", code=127).stderr
        assert "/etc/passwd" in box.run("a", "/etc/passwd", code=126).stderr
        result = box.run("a", "cat", data="through", code=0)
        assert result.stdout == "through" and result.stderr == ""
        box.run("--", "list", "true", code=0)  # a verb as a name
        assert [lock["name"] for lock in box.list("list")] == ["list"]


def test_busy():
    with Box() as box:
        process, pid = box.hold("a")
        line = box.run("-n", "a", "true", code=75).stderr
        assert line.count("\n") == 1 and f"process {pid} (sh -c" in line and line.startswith("dcs_lock: a has been held by"), line
        box.run("-w", "0.05", "a", "true", code=75)
        box.run("-n", "-E", "9", "a", "true", code=9)
        assert box.run("-n", "-x", "a", "touch", box.path("ran"), code=0).stderr == ""
        assert not os.path.exists(box.path("ran"))
        other = box.run("-n", "b", "echo", "free", code=0)
        assert other.stdout == "free\n"
        waiter = box.start("a", "touch", box.path("waited"))
        assert waiter.poll() is None and not os.path.exists(box.path("waited"))
        os.kill(pid, signal.SIGTERM)
        assert process.wait(60) == 128 + 15 and waiter.wait(60) == 0
        assert os.path.exists(box.path("waited"))


def test_standard_descriptors_that_are_closed():
    with Box() as box:
        process, pid = box.hold("a")
        before = open(box.list("a")[0]["path"], "rb").read(512)
        out = box.path("fds")
        for closed in ("2>&-", "1>&-", "<&-", "<&- 1>&- 2>&-"):
            subprocess.run(["sh", "-c", f"{LOCK} -n a true {closed}"], env=box.env)
            subprocess.run(["sh", "-c", f"{LOCK} -v b no-such-program {closed}"], env=box.env)
            assert open(box.list("a")[0]["path"], "rb").read(512) == before
            assert open(box.list("b")[0]["path"], "rb").read(16) == b"dcs_lock 1 atom\n"
        subprocess.run(["sh", "-c", f"{LOCK} c sh -c 'ls /proc/$$/fd >{out}' <&- 2>&-"], env=box.env)
        assert {"0", "2"}.isdisjoint(open(out).read().split()), open(out).read()  # for the command they are closed too
        os.kill(pid, signal.SIGKILL)
        process.wait(60)


def test_too_soon_and_the_limits_of_if_elapsed():
    with Box() as box:
        box.run("-i", "15m", "a", "true", code=0)
        line = box.run("-i", "15m", "a", "true", code=79).stderr
        assert line.startswith("dcs_lock: a was run") and "again in 14 min" in line, line
        box.run("-i", "15m", "-x", "-E", "3", "a", "true", code=79)  # that is not busy
        box.run("-i", "0", "a", "true", code=0)
        box.run("-i", "15m", "a", "true", program=TEST_LOCK, env=later(901), code=0)


def test_since_start_and_end():
    with Box() as box:
        for verb in (["check"], []):
            command, codes, seconds = [] if verb else ["true"], [], 3.0
            while seconds > 2.9:  # that the answer takes, since the latest start at which it can be expected; again if it is late
                begun = time.monotonic()
                box.run("-i", "0", "a", "sleep", "3", code=0)
                codes = [box.run(*verb, "-i", "3s", "--since=end", "a", *command).returncode]
                seconds = time.monotonic() - begun - 3
            codes += [box.run(*verb, "-i", "3s", "--since=start", "a", *command).returncode]
            assert codes == [79, 0], (verb, codes)
        box.run("-i", "1h", "b", "true", code=0)
        box.run("-i", "1h", "b", "true", program=TEST_LOCK, env=later(3580), code=0)  # a cron job may come half a minute early


def test_expiry_of_the_own_command():
    with Box() as box:
        result = box.run("-e", "0.3s", "a", "sleep", "600", code=124)
        assert "its limit" in result.stderr, result.stderr
        assert box.list("a")[0]["last"]["result"] == "expired"
        box.run("-e", "never", "a", "true", code=0)
        box.run("-e", "10m", "a", "true", code=0)


def test_signals_are_passed_on():
    with Box() as box:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            process, pid = box.hold("a")
            process.send_signal(number)
            assert process.wait(60) == 128 + number and not runs(pid)


def test_takeover_of_an_expired_holder():
    with Box() as box:
        process, pid = box.hold("-e", "1h", "a")
        result = box.run("-w", "60", "-e", "1h", "--grace=5", "a", "echo", "mine", program=TEST_LOCK, env=later(3597), code=0)  # waits
        assert result.stdout == "mine\n" and not runs(pid), result
        assert process.wait(60) == 124
        events = [line["event"] for line in json.loads(box.run("log", "a", "-o", "json", code=0).stdout)["events"]]
        assert "expired" in events and events[-1] == "done", events


def test_takeovers_in_a_row_have_an_end():
    with Box() as box:
        words = ["-e", "1s", "--grace=5", "--max-kills=2", "a"]
        holders = [box.hold("-e", "1h", "a")]
        box.aged("a")
        for _ in range(2):
            holder = box.start("-e", "1s", "--grace=5", "--max-kills=2", "a", "sleep", "600", stderr=subprocess.DEVNULL)
            assert holder.wait(60) == 124  # by its own limit, which counts too
        process, pid = box.hold("-e", "1h", "-w", "60", "a")
        box.aged("a")
        result = box.run("-o", "json", *words, "true", code=75)
        assert json.loads(result.stderr)["result"] == "giving-up" and runs(pid), result
        os.kill(pid, signal.SIGKILL)
        process.wait(60)
        holders[0][0].wait(60)


def test_learned_limits():
    with Box() as box:
        for _ in range(3):
            box.run("-i", "0", "-e", "auto", "a", "true", code=0)
        process, pid = box.hold("-i", "0", "-e", "auto", "a")
        lock = box.list("a")[0]
        assert 10 <= lock["expire_after_s"] <= 86400, lock  # within the bounds that --help names
        os.kill(pid, signal.SIGKILL)
        process.wait(60)
        box.run("-i", "auto", "a", "true", code=79)
        box.hold("-i", "0", "-e", "auto", "--max-expire=20s", "a")
        assert box.list("a")[0]["expire_after_s"] <= 20


def test_the_papers_arithmetic():
    with Box() as box:
        box.run("--paper", "-i", "60", "a", "true", code=0)
        almost = later(3575)
        box.run("--paper", "-i", "60", "a", "true", program=TEST_LOCK, env=almost, code=79)  # 59 min and 35 s are 59 minutes
        box.run("-i", "60", "a", "true", program=TEST_LOCK, env=almost, code=0)  # and less than 2 % early
        process, pid = box.hold("-e", "1h", "b")
        box.run("--paper", "-e", "0", "--grace=5", "b", "true", code=0)  # Table 3: exclusion is off
        assert process.wait(60) == 124


def test_queue_is_in_order_of_arrival():
    with Box() as box:
        process, pid = box.hold("-q", "a")
        out = box.path("order")
        waiters = []
        for i in range(5):
            waiters.append(box.start("-q", "a", "sh", "-c", f"echo {i} >>{out}"))
            wait_for("the waiter to queue", lambda: box.waiting("a") == i + 1)
        box.run("-q", "-n", "a", "true", code=75)
        os.kill(pid, signal.SIGKILL)
        assert [w.wait(60) for w in waiters] == [0] * 5
        assert open(out).read().split() == ["0", "1", "2", "3", "4"]
        process.wait(60)


def test_shared():
    with Box() as box:
        one, two = box.hold("-s", "a"), box.hold("-s", "a")
        box.run("-n", "a", "true", code=75)
        box.run("-n", "-s", "a", "true", code=0)
        assert box.list("a")[0]["state"] == "shared"
        for process, pid in (one, two):
            os.kill(pid, signal.SIGKILL)
            process.wait(60)
        box.run("-n", "a", "true", code=0)


def test_at_most_n():
    with Box() as box:
        holders = [box.hold("-j", "2", "a") for _ in range(2)]
        line = box.run("-n", "-j", "2", "a", "true", code=75).stderr
        assert str(holders[0][1]) in line and str(holders[1][1]) in line, line
        box.run("-n", "-j", "1", "a", "true", code=75)
        box.run("-n", "-j", "3", "a", "true", code=0)
        box.run("-n", "-j", "0", "a", "true", code=75)
        with open(box.path("limit"), "w") as file:
            file.write("3\n")
        box.run("-n", "-j", f"@{box.path('limit')}", "a", "true", code=0)
        slots = box.list("a")[0]["slots"]
        assert sorted(s["holder"]["pid"] for s in slots) == sorted(pid for _, pid in holders), slots
        waiter = box.start("-j", "2", "a", "true")
        wait_for("the waiter to queue", lambda: box.waiting("a") == 1)
        os.kill(holders[0][1], signal.SIGKILL)
        assert waiter.wait(60) == 0
        box.run("check", "-j", "2", "a", code=0)
        box.run("check", "-j", "1", "a", code=75)
        assert "-j N" in box.run("check", "a", code=125).stderr
        box.run("wait", "-j", "2", "a", code=0)
        box.run("wait", "-j", "1", "-w", "0.05", "a", code=75)


def test_keep_exec_and_fd_become_the_command():
    with Box() as box:
        for keep in ("exec", "fd"):
            for words in (["a"], ["-j", "1", "s"]):
                process, pid = box.hold(f"--keep={keep}", *words)
                assert process.pid == pid
                box.run("-n", *words, "true", code=75)
                os.kill(pid, signal.SIGTERM)
                assert process.wait(60) == -signal.SIGTERM
                box.run("-w", "60", *words, "true", code=0)
                box.run(f"--keep={keep}", *words, "no-such-program", code=127)
                box.run("-w", "60", *words, "true", code=0)
        process = box.start("-e", "0.5s", "--keep=exec", "b", "sleep", "600")
        assert process.wait(60) == -signal.SIGINT  # the keeper's doing
        wait_for("the keeper's record", lambda: box.list("b")[0]["state"] == "free")
        assert box.list("b")[0]["last"]["result"] == "expired"


def test_several_limits_all_or_nothing():
    with Box() as box:
        limits = ["-l", "total:2", "-l", "user-%u:1"]
        process, pid = box.hold(*limits)
        assert {lock["name"] for lock in box.list()} == {"total", f"user-{os.geteuid()}"}
        box.run("-n", *limits, "true", code=75)
        assert sum(len(lock["slots"]) for lock in box.list()) == 2  # the refused one kept nothing
        box.run("-n", "-l", "total:2", "true", code=0)
        assert "twice" in box.run("-l", "total:2", "-l", "total:1", "true", code=125).stderr
        assert "%x" in box.run("-l", "total%x:2", "true", code=125).stderr
        os.kill(pid, signal.SIGKILL)
        process.wait(60)


def test_cap_on_the_instances_of_an_operator():
    with Box() as box:
        holders = [box.hold("-e", "1h", "-j", "2", "-a", f"edit:{i}") for i in range(2)]
        box.run("-e", "1h", "-j", "2", "-a", "edit:2", "true", code=75)  # the operator's places are taken
        box.run("-e", "1h", "-j", "3", "-a", "edit:1", "true", code=75)  # the atom is held
        box.run("-e", "1h", "-j", "3", "-a", "edit:2", "true", code=0)
        box.run("-e", "1h", "-j", "2", "-a", "print:2", "true", code=0)  # another operator
        box.run("-i", "1h", "-j", "3", "-a", "edit:2", "true", code=79)
        assert len([s for lock in box.list("edit") for s in lock.get("slots", [])]) == 2
        for process, pid in holders:
            os.kill(pid, signal.SIGKILL)
            process.wait(60)


def test_descriptor():
    with Box() as box:
        file = box.path("data")
        script = f"exec 9>>{file}; {LOCK} -n 9 || exit 1; {LOCK} -n {file} true; echo $?; flock -n {file} true; echo $?"
        result = subprocess.run(["sh", "-c", script], env=box.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert result.stdout == "75\n1\n", result
        box.run("-n", file, "true", code=0)
        assert open(file).read() == ""  # a process's data is locked and never written
        assert "not open" in box.run("-n", "77", code=125).stderr
        with open(file) as held:
            import fcntl
            fcntl.flock(held, fcntl.LOCK_EX)
            box.run("-n", file, "true", code=75)
            shell = subprocess.run(["sh", "-c", f"exec 9>>{file}; exec {LOCK} -w 0.05 9"], env=box.env, stderr=subprocess.PIPE)
            assert shell.returncode == 75, shell


def test_report_and_json():
    with Box() as box:
        def report(*arguments):
            with tempfile.TemporaryFile() as file:
                os.set_inheritable(file.fileno(), True)
                code = subprocess.run([LOCK, "--report", str(file.fileno()), *arguments], env=box.env, pass_fds=[file.fileno()],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode
                file.seek(0)
                return code, json.loads(file.read())
        code, told = report("a", "sh", "-c", "exit 75")  # the command's own 75 is distinguished from ours
        assert code == 75 and told["ran"] and told["result"] == "failed" and told["exit_code"] == 75, told
        process, pid = box.hold("a")
        code, told = report("-n", "a", "true")
        assert code == 75 and not told["ran"] and told["result"] == "busy" and told["holder"]["pid"] == pid, told
        assert told["schema"] == "dcs_lock.result/1"
        result = box.run("-n", "-o", "json", "a", "true", code=75)
        assert json.loads(result.stderr)["result"] == "busy" and result.stdout == ""
        os.kill(pid, signal.SIGKILL)
        process.wait(60)
        first, second = report("a", "sh", "-c", "env >" + box.path("env"))[1], report("a", "true")[1]
        assert second["token"] > first["token"] > 0
        seen = dict(line.rstrip("\n").split("=", 1) for line in open(box.path("env")) if "=" in line)
        assert int(seen["DCS_LOCK_TOKEN"]) == first["token"] and re.search("[0-9a-f]{16}", seen["DCS_LOCK_ID"]), seen
        wrong = json.loads(box.run("-o", "json", "--bogus", code=125).stderr)
        assert wrong["result"] == "error" and "--bogus" in wrong["message"] and wrong["exit_code"] == 125
        assert "not open" in box.run("--report", "88", "a", "true", code=125).stderr
        verbose = box.run("-v", "a", "true", code=0).stderr
        assert "a: taken, token" in verbose and "exit code 0" in verbose, verbose


def test_names_do_not_drive_a_terminal():
    """The command and the name of a lock are texts of other users: escape sequences and line ends do not get through."""
    with Box() as box:
        evil = box.path("\x1b]t\x07\u009b\nFAKE")
        shutil.copy("/bin/sleep", evil)
        process = box.start("a\x1b[2Jb", evil, 600)
        wait_for("the lock", lambda: any("holder" in lock for lock in box.list()))
        shown = box.run("list", code=0).stdout + box.run("-n", "a\x1b[2Jb", "true", code=75).stderr + box.run("doctor").stdout
        box.run("break", "a\x1b[2Jb", code=0)
        process.wait(60)
        shown += box.run("log", code=0).stdout + box.run("advise").stdout
        assert "FAKE" in shown and not any(c in shown for c in "\x1b\x07\u009b"), shown.encode()
        assert not any(line.startswith("FAKE") for line in shown.splitlines()), shown


def test_help_names_every_option_and_the_man_page_too():
    page = open(os.path.join(os.path.dirname(SELF), "../../../docs/man/dcs_lock.1")).read().replace("\\-", "-")
    with Box() as box:
        text = box.run("--help", code=0).stdout
        assert box.run("list", "--help", code=0).stdout == text
        assert box.run("--version", code=0).stdout.startswith("dcs_lock ")
        assert "--help" in box.run(code=125).stderr
    options = re.findall(r"^  (?:-(.), )?--([a-z-]+)", text, re.M)
    assert len(options) >= 28, options
    for letter, name in options:
        assert f"--{name}" in page, f"--{name} is not in the man page"
        assert not letter or re.search(rf"-{letter}\b", page), letter


if __name__ == "__main__":
    cases(globals())
