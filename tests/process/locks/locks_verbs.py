#!/usr/bin/python3
"""The verbs of dcs_lock, and dcs_lock under the name of flock."""
import json
import os
import re
import signal
import socket
import subprocess

from lock_box import LOCK, TEST_LOCK, Box, cases, runs, state_of, wait_for


def test_get_and_put():
    with Box() as box:
        script = """
        dcs_lock get -i 0 -e 1h edit /etc/motd; echo $?
        dcs_lock get -i 0 -e 1h edit /etc/motd; echo $?
        dcs_lock check -a edit:/etc/motd >/dev/null; echo $?
        sh -c 'dcs_lock put edit /etc/motd; echo $?'
        dcs_lock put edit /etc/motd; echo $?
        dcs_lock check -a edit:/etc/motd >/dev/null; echo $?
        dcs_lock put edit /etc/motd; echo $?
        dcs_lock get -i 1h edit /etc/motd; echo $?
        : $(dcs_lock get --holder $$ edit other); echo $?
        dcs_lock put --failed edit other; echo $?
        """
        result = subprocess.run(["sh", "-c", script], env=box.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert result.stdout.split() == ["0", "75", "75", "125", "0", "0", "125", "79", "0", "0"], result
        assert {lock["name"]: lock["last"]["result"] for lock in box.list()} == {"edit:/etc/motd": "done", "edit:other": "failed"}


def test_a_script_that_ends_frees_what_it_got():
    with Box() as box:
        script = subprocess.Popen(["sh", "-c", "dcs_lock get a b && echo got && read line"], env=box.env,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert script.stdout.readline() == "got\n"
        holder = box.list("a")[0:] or box.list()
        assert json.loads(box.run("check", "-a", "a:b", "-o", "json", code=75).stdout)["holder"]["pid"] == script.pid, holder
        script.kill()
        script.wait()
        assert script.stdout.read() == ""  # the keeper has no copy of the script's pipe
        box.run("-w", "60", "-a", "a:b", "true", code=0)
        events = [line["event"] for line in json.loads(box.run("log", "-a", "a:b", "-o", "json").stdout)["events"]]
        assert "crashed" in events, events


def test_process_1_of_a_container_gets_no_lock():
    with Box() as box:
        script = "dcs_lock get a b; echo $?; sh -c 'dcs_lock get a b; echo $?'; echo"
        done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script], env=box.env, capture_output=True, text=True)
        if "unshare" in done.stderr:
            return print("skipped: no namespace of processes")
        assert done.stdout.split() == ["125", "0"] and "process 1 of a container" in done.stderr and "--init" in done.stderr, done


def test_a_keeper_that_dies_at_once_leaves_no_lock():
    with Box() as box:
        result = box.run("get", "a", "b", program=TEST_LOCK, env={"DCS_FAILPOINTS": "lock_command.keeper.ready=kill@1"}, code=125)
        assert "keeper" in result.stderr
        box.run("-n", "-a", "a:b", "true", code=0)


def test_a_script_is_ended_at_its_limit():
    with Box() as box:
        script = subprocess.Popen(["sh", "-c", "dcs_lock get -e 0.3s a b && sleep 600; true"], env=box.env)
        assert script.wait(60) != 0
        wait_for("the record", lambda: box.list()[0]["state"] == "free")
        assert box.list()[0]["last"]["result"] == "expired"


def test_list_check_wait_break():
    with Box() as box:
        assert box.list() == []
        assert "never" in box.run("check", "a", code=0).stdout
        box.run("wait", "a", code=0)
        process, pid = box.hold("-e", "2h", "a")
        lock = box.list("a")[0]
        assert lock["state"] == "held" and lock["holder"]["pid"] == pid and lock["expire_after_s"] == 7200, lock
        assert lock["holder"]["supervisor"] == process.pid and lock["token"] > 0 and lock["age_s"] >= 0
        text = box.run("list", code=0).stdout
        assert re.search(rf"^a +held +{pid} ", text, re.M), text
        assert f"pid {pid}" in box.run("check", "a", code=75).stdout
        box.run("wait", "-w", "0.05", "a", code=75)
        waiter = box.start("wait", "a")
        assert waiter.poll() is None
        result = box.run("break", "--grace=5", "a", code=0)
        assert f"pid {pid}" in result.stderr and not runs(pid)
        assert process.wait(60) == 124 and waiter.wait(60) == 0
        assert "it is not held" in box.run("break", "a", code=0).stderr
        slot, pid = box.hold("-j", "3", "s")
        assert "--slot" in box.run("break", "s", code=125).stderr
        box.run("break", "--slot", "0", "s", code=0)
        assert not runs(pid) and slot.wait(60) == 124


def test_a_name_is_one_lock_or_a_set_of_counted_slots():
    with Box() as box:
        process, pid = box.hold("lock")
        slot, slot_pid = box.hold("-j", "1", "slots")
        for words in (["-n", "-j", "1", "lock", "true"], ["-l", "lock:1", "true"], ["check", "-j", "1", "lock"],
                      ["wait", "-j", "1", "lock"]):
            assert "without -j" in box.run(*words, code=125).stderr, words
        for words in (["-n", "slots", "true"], ["-i", "1m", "slots", "true"], ["--fail-open", "slots", "true"],
                      ["-a", "slots:", "true"], ["check", "slots"], ["wait", "-w", "1", "slots"]):
            assert "with -j N" in box.run(*words, code=125).stderr, words
        assert {lock["name"] for lock in box.list()} == {"lock", "slots"}
        for number in (pid, slot_pid):
            os.kill(number, signal.SIGKILL)
        process.wait(60), slot.wait(60)
        # An adaptive lock has its slots beside it.
        for words in (["-i", "0", "-j", "2", "both"], ["-i", "0", "-j", "2", "lock"], ["-j", "2", "-a", "slots:x"]):
            box.run(*words, "true", code=0)
        box.hold("-j", "2", "both")
        assert "free, but 1 of its counted slots" in box.run("check", "both", code=0).stdout


def test_what_an_ended_command_left_running_is_shown_and_ended():
    with Box() as box:
        for words, row in ((["a"], "held"), (["-j", "1", "s"], "slot 0")):
            strays = box.path(f"strays-{words[-1]}")
            box.run(*words, "sh", "-c", f"for i in 1 2; do sleep 600 >/dev/null 2>&1 & echo $! >>{strays}; done", code=0)
            pids = [int(pid) for pid in open(strays)]
            refusal = box.run("-n", *words, "true", code=75).stderr
            assert f"process {pids[0]} (sleep 600)" in refusal, refusal
            if row == "held":
                assert "left running; `dcs_lock break a` ends it" in refusal
                assert re.search(rf"process {pids[0]} \(sleep 600\).*`dcs_lock break a` ends it",
                                 box.run("check", "a", code=75).stdout)
                assert box.list("a")[0]["holder"]["pid"] == pids[0]
            assert re.search(rf"^{words[-1]} +{row} +{pids[0]} ", box.run("list", code=0).stdout, re.M)
            for _ in pids if row != "held" else pids[:1]:
                box.run("break", "--grace=0.1,5,5", *(["--slot", "0"] if row != "held" else []), words[-1], code=0)
            assert not [pid for pid in pids if runs(pid)], words
            box.run("-n", *words, "true", code=0)
        flock = box.start(box.path("file"), "sleep", "600", program="/usr/bin/flock")
        wait_for("flock", lambda: box.list(box.path("file")) and box.list(box.path("file"))[0]["state"] == "held")
        assert f"process {flock.pid} (" in box.run("-n", box.path("file"), "true", code=75).stderr
        box.run("break", "--grace=5", box.path("file"), code=0)
        flock.wait(60)
        box.run("-n", box.path("file"), "true", code=0)
        shared = box.start("-s", "shared", "sleep", "600")
        wait_for("the sharer", lambda: "shared" in box.run("list", "shared").stdout)
        assert f"{shared.pid} (" in box.run("break", "shared", code=125).stderr
        assert shared.poll() is None


def test_words_that_are_no_verbs():
    with Box() as box:
        for line, hint in (("unlock x-y", "ends with its command"), ("release x-y", "dcs_lock put"), ("status x-y", "list"),
                           ("status", "`dcs_lock list`"), ("lst", "`dcs_lock list`"), ("brek", "`dcs_lock break`"),
                           ("chek x-y", "no command x-y; did you mean `dcs_lock check`"), ("gett x-y z", "`dcs_lock get`")):
            assert hint in box.run(*line.split(), code=125).stderr, line
        assert box.list() == []
        box.run("release", "true", code=0)
        for name in ("unlock", "chek"):
            box.run("--", name, "x-y", code=127)


def test_list_shows_no_claims_of_maps():
    with Box() as box:
        box.run("-a", "dcs-map:/pool", "true", code=0)
        box.run("mine", "true", code=0)
        assert [lock["name"] for lock in box.list()] == ["mine"] and "dcs-map" not in box.run("list").stdout
        assert "dcs-map:/pool" in box.run("list", "-a", "dcs-map:/pool").stdout


def test_break_head():
    with Box() as box:
        process, pid = box.hold("-q", "a")
        head = box.start("-q", "a", "true")
        wait_for("the head to queue", lambda: box.waiting("a") == 1)
        second = box.start("-q", "a", "true")
        wait_for("the second to queue", lambda: box.waiting("a") == 2)
        head.send_signal(signal.SIGSTOP)
        wait_for("the stop to show", lambda: box.list("a")[0]["waiting"][0]["state"] == "T")
        findings = json.loads(box.run("doctor", "-o", "json", code=1).stdout)["findings"]
        assert [f["finding"] for f in findings] == ["stopped-head"], findings
        box.run("break", "--head", "a", code=0)
        assert head.wait(60) == -signal.SIGTERM
        os.kill(pid, signal.SIGKILL)
        assert second.wait(60) == 0
        process.wait(60)


def test_log_and_advise():
    with Box() as box:
        for _ in range(3):
            box.run("-i", "0", "a", "true", code=0)
        box.run("-i", "1h", "a", "true", code=79)
        box.run("b", "false", code=1)
        events = json.loads(box.run("log", "-o", "json", code=0).stdout)["events"]
        assert [(e["name"], e["event"]) for e in events] == [("a", "done")] * 3 + [("a", "too-soon"), ("b", "failed")], events
        assert [e["name"] for e in json.loads(box.run("log", "--last", "1", "--json").stdout)["events"]] == ["b"]
        assert len(box.run("log", "b", code=0).stdout.splitlines()) == 1
        assert "evidence" in box.run("advise", "a", code=0).stdout
        advice = json.loads(box.run("advise", "-o", "json", code=0).stdout)
        assert advice["schema"] == "dcs_lock.advise/1" and {a["name"]: a["runs"] for a in advice["atoms"]} \
            == {"a": 3, "b": 0}  # only what completed shows how long it takes


def test_doctor():
    with Box() as box:
        box.run("-i", "0", "a", "true", code=0)
        assert "no problems found" in box.run("doctor", code=0).stdout
        holder, pid = box.hold("gone")
        os.remove(box.list("gone")[0]["path"])
        with open(box.list("a")[0]["path"], "r+b") as file:
            file.seek(512)
            file.write(b"\xff" * 1024)
        os.chmod(box.locks, 0o777)
        stopped, stopped_pid = box.hold("halted")
        os.kill(stopped_pid, signal.SIGSTOP)
        wait_for("the stop", lambda: state_of(stopped_pid) == "T")
        os.symlink("/etc/passwd", os.path.join(box.locks, f"{socket.gethostname()},link,.lock"))
        result = json.loads(box.run("doctor", "-o", "json", code=1).stdout)
        found = {f["finding"] for f in result["findings"]}
        assert {"mode", "damaged", "replaced", "stopped-holder", "kind"} <= found, result
        assert f"pid {holder.pid}" in str(result["findings"])
        os.chmod(box.locks, 0o700)
        for process, number in ((holder, pid), (stopped, stopped_pid)):
            os.kill(number, signal.SIGKILL)
            process.wait(60)


def test_doctor_names_starving_and_spammed_atoms():
    with Box() as box:
        for _ in range(4):
            box.run("-e", "0.1s", "--grace=5", "slow", "sleep", "600", code=124)
        box.run("-i", "1h", "asked", "true", code=0)
        for _ in range(20):
            box.run("-i", "1h", "asked", "true", code=79)
        found = {(f["finding"], f["name"]) for f in json.loads(box.run("doctor", "-o", "json", code=1).stdout)["findings"]}
        assert found == {("starving", "slow"), ("spam", "asked")}, found


def test_pass():
    with Box() as box:
        now = dict(line.split("=", 1) for line in box.run("pass").stdout.split("; ")[:1])["DCS_LOCK_NOW"]
        assert re.fullmatch(r"\d+,\d+,\d+,[0-9a-f]{32}", now), now
        # What was done after the pass began is done for this pass, however short -i is.
        box.run("-i", "0", "a", "true", code=0)
        box.run("-i", "0.000001s", "a", "true", env={"DCS_LOCK_NOW": now}, code=79)
        box.run("-i", "0.000001s", "a", "true", code=0)
        assert box.run("pass", "sh", "-c", "echo $DCS_LOCK_NOW").stdout.count(",") == 3
        box.run("pass", "no-such-program", code=127)
        for bad in ("x", now[:-1], now[:-1] + "g", "1,2,3", now.replace(",", ";")):
            assert "DCS_LOCK_NOW" in box.run("-i", "5", "a", "true", env={"DCS_LOCK_NOW": bad}, code=125).stderr


def test_flock_by_name():
    with Box() as box:
        flock = box.path("flock")
        os.symlink(LOCK, flock)
        file = box.path("file")
        run = lambda *words: subprocess.run([flock, *words], env=box.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert run(file, "sh", "-c", "exit 7").returncode == 7
        assert run(file, "-c", "echo $((6*7))").stdout == "42\n"
        assert run(box.base, "true").returncode == 0  # a directory
        process, pid = box.hold(file)
        assert run("-n", file, "true").returncode == 1 and run("-w", "0.05", file, "true").returncode == 1
        assert run("-n", "-E", "9", file, "true").returncode == 9
        assert run("--verbose", "-n", file, "true").stderr
        os.kill(pid, signal.SIGKILL)
        process.wait(60)
        theirs = lambda *words: subprocess.run(["/usr/bin/flock", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for words in (["-n", "88"], ["-n"], ["-Q", file, "true"], ["-E", "999", file, "true"], [file, "no-such-program"],
                      ["/nonexistent/file", "true"], [file, "-c"], [file, "sh", "-c", "kill $$"], ["-F", file, "false"],
                      ["-o", file, "true"], ["-s", file, "true"], ["abc"]):
            assert run(*words).returncode == theirs(*words).returncode, (words, run(*words), theirs(*words))
        script = f"exec 9>>{file}; {flock} 9; {flock} -n {file} true; echo $?; {flock} -u 9; {flock} -n {file} true; echo $?"
        assert subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, text=True, env=box.env).stdout == "1\n0\n"


if __name__ == "__main__":
    cases(globals())
