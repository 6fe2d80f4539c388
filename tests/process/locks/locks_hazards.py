#!/usr/bin/python3
"""What goes wrong with lock commands elsewhere, tried on dcs_lock. The letter and number in a test's name say which of
the hazards of docs/LOCKS.md it is."""
import json
import os
import shutil
import signal
import subprocess
import sys

from lock_box import LOCK, TEST_LOCK, Box, cases, later, runs, skip, wait_for

ROOT_USER = os.geteuid() == 0
NOBODY = 65534

# A leader with a plain child, a child in a session of its own, one that was forked twice and ignores INT and TERM, and
# one that is stopped. Their pids go to a file.
TREE = """
import os, signal, sys, time
def child(*steps):
    if os.fork(): return
    for step in steps: step()
    with open(sys.argv[1], "a") as out: out.write(f"{os.getpid()}\\n")
    while True: time.sleep(600)
def again():
    if os.fork(): os._exit(0)
def deaf():
    for s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)
child(); child(os.setsid); child(os.setsid, again, deaf)
def stopped():
    with open(sys.argv[1], "a") as out: out.write(f"{os.getpid()}\\n")
    os.kill(os.getpid(), signal.SIGSTOP)
if not os.fork(): stopped(); os._exit(0)
with open(sys.argv[1], "a") as out: out.write(f"{os.getpid()}\\n")
while True: time.sleep(600)
"""


def tree(box):
    file = box.path("tree")
    return ["python3", "-c", TREE, file], lambda: [int(p) for p in open(file).read().split()] if os.path.exists(file) else []


def as_nobody(command, box, **options):
    return subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command],
                          env=dict(box.env, **options.pop("env", {})), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=120, **options)


def test_P8_expiry_ends_the_whole_tree():
    with Box() as box:
        command, pids = tree(box)
        process = box.start("-e", "1h", "--grace=0.2,0.2,10", "a", *command)
        wait_for("five processes", lambda: len(pids()) == 5)
        witness = subprocess.Popen(["sleep", "600"], env=box.env)  # an innocent
        box.run("-e", "30m", "--grace=5", "a", "true", program=TEST_LOCK, env=later(3000), code=0)
        assert process.wait(60) == 124
        assert [pid for pid in pids() if runs(pid)] == []
        assert witness.poll() is None
        witness.kill()
        witness.wait()


def test_P9_a_run_inside_an_expired_run_of_the_same_atom_ends_nobody():
    with Box() as box:
        inner = f"{LOCK} -o json -e 1s a true; echo $?"
        result = box.run("-e", "1h", "a", "sh", "-c", f"sleep 1.1; {inner}", code=0)
        assert result.stdout == "75\n" and json.loads(result.stderr)["result"] == "own-ancestor", result
        script = f"{LOCK} get a b; sleep 1.1; {LOCK} -e 1s -a a:b true; echo $?; {LOCK} put a b"
        result = subprocess.run(["sh", "-c", script], env=box.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert result.stdout == "75\n", result


def test_P10_a_stopped_holder_is_ended():
    with Box() as box:
        process, pid = box.hold("-e", "1h", "a")
        os.kill(pid, signal.SIGSTOP)
        box.run("-e", "30m", "--grace=5", "a", "true", program=TEST_LOCK, env=later(3000), code=0)
        assert process.wait(60) == 124 and not runs(pid)
        process, pid = box.hold("-e", "1h", "a")  # and with a supervisor that cannot answer
        process.send_signal(signal.SIGSTOP)
        box.run("-e", "30m", "--grace=0.2,0.2,10", "a", "true", program=TEST_LOCK, env=later(3000), code=0)
        assert not runs(pid) and not runs(process.pid)


def test_P11_a_holder_that_cannot_be_ended_keeps_the_lock():
    group = f"/sys/fs/cgroup/freezer/dcs-lock-test-{os.getpid()}"
    try:
        os.mkdir(group)
        open(f"{group}/freezer.state")
    except OSError as error:
        return skip("P11", f"needs a freezer control group: {error}")
    try:
        with Box() as box:
            process, pid = box.hold("-e", "1h", "a")
            for frozen in (pid, process.pid):
                with open(f"{group}/cgroup.procs", "w") as file:
                    file.write(str(frozen))
            with open(f"{group}/freezer.state", "w") as file:
                file.write("FROZEN")
            wait_for("the freeze", lambda: open(f"{group}/freezer.state").read().strip() == "FROZEN")
            box.aged()
            result = box.run("-o", "json", "-e", "1s", "--grace=0.1", "a", "touch", box.path("ran"), code=75)
            assert json.loads(result.stderr)["result"] == "unkillable", result
            assert not os.path.exists(box.path("ran")) and runs(pid)
            with open(f"{group}/freezer.state", "w") as file:
                file.write("THAWED")
            process.wait(60)
            box.run("-e", "1h", "-w", "60", "a", "true", code=0)
    finally:
        with open(f"{group}/freezer.state", "w") as file:
            file.write("THAWED")
        wait_for("the control group to empty", lambda: not open(f"{group}/cgroup.procs").read())
        os.rmdir(group)


def test_P12_a_holder_that_ends_at_the_first_signal_gets_no_other():
    with Box() as box:
        seen = box.path("signals")
        deaf = box.path("ready")
        program = ("import signal,sys,time\n"
                   "def note(n, f):\n open(sys.argv[1], 'a').write(f'{n}\\n')\n if n == signal.SIGINT: sys.exit(0)\n"
                   "for n in (signal.SIGINT, signal.SIGTERM): signal.signal(n, note)\n"
                   "open(sys.argv[2], 'w').close()\nwhile True: time.sleep(600)\n")
        process = box.start("-e", "1h", "a", "python3", "-c", program, seen, deaf)
        wait_for("the handlers", lambda: os.path.exists(deaf))
        box.run("-e", "30m", "--grace=3600", "a", "true", program=TEST_LOCK, env=later(3000), code=0)  # would take hours if the waits had a fixed length
        assert open(seen).read().split() == ["2"]
        process.wait(60)


def test_P28_E8_links_and_pipes_are_no_lock_files():
    with Box() as box:
        target, link, pipe = box.path("target"), box.path("link"), box.path("pipe")
        os.symlink(target, link)
        os.mkfifo(pipe)
        assert "symbolic link" in box.run(link, "touch", box.path("ran"), code=125).stderr
        box.run("-i", "5", link, "touch", box.path("ran"), code=125)
        assert not os.path.exists(target) and not os.path.exists(box.path("ran"))
        box.run("-n", "-i", "5", pipe, "touch", box.path("ran"), code=125)
        assert not os.path.exists(box.path("ran"))
        old = os.umask(0)
        try:
            box.run("a", "true", code=0)
            box.run("--mode=0660", "-i", "0", "b", "true", code=0)
            box.run("-j", "2", "s", "true", code=0)
            box.run(box.path("by-path"), "true", code=0)
        finally:
            os.umask(old)
        modes = {lock["name"]: os.stat(lock["path"]).st_mode & 0o7777 for lock in box.list()}
        assert modes == {"a": 0o600, "b": 0o660, "s": 0o600}, modes
        assert os.stat(box.path("by-path")).st_mode & 0o7777 == 0o600


def test_P29_a_file_that_is_there_is_opened_without_creating_it():
    """With fs.protected_regular the kernel refuses O_CREAT of a file of another user in a sticky directory."""
    if not ROOT_USER or not shutil.which("strace"):
        return skip("P29", "needs root and strace")
    with Box(mode=0o1777) as box:
        file = box.path("shared")
        box.run("--mode=0666", "-i", "0", file, "true", code=0)
        for words in (["-n", file, "true"], ["-n", "-i", "0", file, "true"]):
            result = as_nobody(["strace", "-f", "-e", "trace=open,openat", LOCK, *words], box,
                               env={"DCS_LOCK_DIR": box.path("other")})
            opens = [line for line in result.stderr.splitlines() if file in line]
            assert opens and not any("O_CREAT" in line for line in opens), result


def test_P34_a_command_is_ended_though_nobody_asks_for_its_lock():
    with Box() as box:
        ran = box.path("ran")
        box.run("-e", "0.3s", "--grace=0.2,0.2,10", "a", "sh", "-c", f"trap '' INT TERM; touch {ran}; while :; do sleep 600; done",
                code=124)
        assert os.path.exists(ran)


def test_P35_all_or_none_before_the_command_begins():
    with Box() as box:
        process, pid = box.hold("-l", "second:1")
        box.run("-n", "-l", "first:1", "-l", "second:1", "-a", "edit:x", "touch", box.path("ran"), code=75)
        assert not os.path.exists(box.path("ran"))
        box.run("-n", "-l", "first:1", "true", code=0)
        box.run("-n", "-a", "edit:x", "true", code=0)
        os.kill(pid, signal.SIGKILL)
        process.wait(60)
        process, pid = box.hold("-e", "1h", "-a", "edit:x")
        box.run("-n", "-l", "first:1", "-l", "second:1", "-a", "edit:x", "touch", box.path("ran"), code=75)
        assert all(not lock["slots"] for lock in box.list() if lock["kind"] == "slots")
        os.kill(pid, signal.SIGKILL)
        process.wait(60)


def test_P36_killing_the_supervisor_does_not_free_the_lock():
    with Box() as box:
        for words in (["a"], ["-j", "1", "s"], ["-e", "1h", "-a", "edit:x"], ["--keep=tree", "t"]):
            process, pid = box.hold(*words)
            process.kill()
            process.wait()
            assert runs(pid)
            box.run("-n", *words, "true", code=75)
            os.kill(pid, signal.SIGKILL)
            box.run("-w", "60", *words, "true", code=0)
        process, pid = box.hold("--keep=leader", "l")  # here the command dies with it
        process.kill()
        process.wait()
        box.run("-w", "60", "l", "true", code=0)
        wait_for("the command to die with its supervisor", lambda: not runs(pid))


def test_P37_somebody_elses_holder_is_not_ended():
    if not ROOT_USER:
        return skip("P37", "needs root, to be two users")
    with Box(mode=0o777) as box:
        file = box.path("shared")
        process, pid = box.hold("--mode=0666", "-e", "1h", file)
        box.aged(file)
        result = as_nobody([LOCK, "-o", "json", "-e", "1s", "--grace=0.1", file, "true"], box,
                           env={"DCS_LOCK_DIR": box.path("nobody")})
        assert result.returncode == 77 and json.loads(result.stderr)["result"] == "not-permitted", result
        assert runs(pid) and process.poll() is None and os.path.exists(file)
        result = as_nobody([LOCK, "break", file], box, env={"DCS_LOCK_DIR": box.path("nobody")})
        assert result.returncode == 77 and runs(pid), result
        result = as_nobody([LOCK, "get", "--holder", str(pid), "edit", "x"], box, env={"DCS_LOCK_DIR": box.path("nobody")})
        assert result.returncode != 0 and "belongs to another user" in result.stderr, result  # nor does it hold for others
        os.kill(pid, signal.SIGKILL)
        process.wait(60)


def test_P38_when_locking_fails_nothing_runs_unlocked():
    with Box(mode=0o755) as box:
        ran = box.path("ran")

        def refused(result, what):
            assert result.returncode == 125 and not os.path.exists(ran), (what, result)
            assert result.stderr.startswith("dcs_lock: ") and result.stderr.count("\n") == 1, (what, result)
        for words in (["a"], ["-i", "5", "a"], ["-j", "2", "a"], ["-l", "x:1"]):
            refused(box.run(*words, "touch", ran, env={"DCS_LOCK_DIR": "/proc/none/such"}), "no directory")
            refused(box.run(*words, "touch", ran, env={"DCS_LOCK_DIR": "relative"}), "relative")
            limited = subprocess.run(["sh", "-c", 'ulimit -n 3; exec "$@"', "sh", LOCK, *words, "touch", ran], env=box.env,
                                     stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            refused(limited, "too many open files")
            if ROOT_USER:
                refused(as_nobody([LOCK, *words, "touch", ran], box), "not permitted")
        wrong = box.run("--fail-open", "a", "touch", ran, env={"DCS_LOCK_DIR": "/proc/none/such"}, code=0)
        assert os.path.exists(ran) and "without the lock" in wrong.stderr
        process, pid = box.hold("a")
        box.run("--fail-open", "-n", "a", "true", code=75)  # busy is no failure
        box.run("--fail-open", "-i", "5", "b", "true", env={"DCS_LOCK_NOW": "nonsense"}, code=125)  # nor is wrong use
        os.symlink("/nonexistent", box.path("link"))
        box.run("--fail-open", box.path("link"), "true", code=125)
        os.kill(pid, signal.SIGKILL)
        process.wait(60)


def test_P38_a_full_disk_and_one_that_is_read_only():
    if not ROOT_USER:
        return skip("P38 full disk", "needs root")
    with Box() as box:
        disk = box.path("disk")
        os.mkdir(disk)
        script = f"""
            mount -t tmpfs -o size=64k,nr_inodes=20 none {disk} || exit 99
            export DCS_LOCK_DIR={disk}
            head -c 70000 /dev/zero >{disk}/fill 2>/dev/null
            {LOCK} -i 0 a touch {box.path("full")}; echo $?
            {LOCK} -j 3 b touch {box.path("full")}; echo $?
            rm {disk}/fill
            {LOCK} -i 0 a true; echo $?
            mount -o remount,ro {disk}
            {LOCK} -i 0 a touch {box.path("ro")}; echo $?
            {LOCK} -i 0 c touch {box.path("ro")}; echo $?
        """
        result = subprocess.run(["unshare", "-m", "sh", "-c", script], env=box.env, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        if result.returncode == 99 or "unshare" in result.stderr:
            return skip("P38 full disk", "no mount namespace")
        assert result.stdout.split() == ["125", "125", "0", "125", "125"], result
        assert not os.path.exists(box.path("full")) and not os.path.exists(box.path("ro"))


def test_E5_C2_C4_what_a_command_leaves_behind_keeps_the_lock():
    with Box() as box:
        for words in (["a"], ["-j", "1", "s"], ["-i", "0", "-a", "edit:x"]):
            out = box.path("stray")
            box.run(*words, "sh", "-c", f"setsid sleep 600 >/dev/null 2>&1 & echo $! >{out}", code=0)  # returns at once
            stray = int(open(out).read())
            box.run("-n", *words, "true", code=75)
            os.kill(stray, signal.SIGKILL)
            box.run("-w", "60", *words, "true", code=0)
        box.run("--keep=leader", "l", "sh", "-c", f"setsid sleep 600 >/dev/null 2>&1 & echo $! >{out}", code=0)
        stray = int(open(out).read())
        box.run("-n", "l", "true", code=0)
        os.kill(stray, signal.SIGKILL)
        process = box.start("--keep=tree", "t", "sh", "-c", f"setsid sleep 600 >/dev/null 2>&1 & echo $! >{out}.t")
        wait_for("the stray", lambda: os.path.exists(f"{out}.t") and open(f"{out}.t").read().strip())
        wait_for("the leader's end", lambda: not [p for p in box.own_processes() if p not in (
            process.pid, int(open(f"{out}.t").read()))])
        assert process.poll() is None
        box.run("-n", "t", "true", code=75)
        os.kill(int(open(f"{out}.t").read()), signal.SIGKILL)
        assert process.wait(60) == 0


def test_E6_E7_C3_a_command_cannot_drop_its_lock_by_accident():
    with Box() as box:
        closes = "import os,sys,time\nos.closerange(3, 4096)\nopen(sys.argv[1], 'w').close()\ntime.sleep(600)\n"
        for number, words in enumerate((["a"], ["-j", "1", "s"], ["--keep=exec", "a"], ["-e", "1h", "--keep=exec", "b"])):
            ready = box.path(f"ready{number}")
            process = box.start(*words, "python3", "-c", closes, ready)
            wait_for("the command", lambda: os.path.exists(ready))
            for lock in box.list():
                open(lock["path"]).close()  # a process opens and closes the file
            box.run("-n", *[w for w in words if not w.startswith("--keep")], "true", code=75)
            for pid in box.own_processes():
                if b"python3" in open(f"/proc/{pid}/cmdline", "rb").read():
                    os.kill(pid, signal.SIGKILL)
            process.wait(60)
            box.run("-w", "60", *[w for w in words if not w.startswith("--keep")], "true", code=0)


def test_C8_a_time_limit_of_waiting_is_never_missed():
    with Box() as box:
        process, pid = box.hold("a")
        for wait in ("0.000001", "0.001", "0.005", "0.02"):
            waiters = [box.start("-w", wait, "a", "true", stderr=subprocess.DEVNULL) for _ in range(10)]
            assert [w.wait(60) for w in waiters] == [75] * 10
        os.kill(pid, signal.SIGKILL)
        process.wait(60)


def test_C9_the_lock_of_a_holder_that_takes_long_to_die_comes_free():
    with Box() as box:
        ready = box.path("ready")
        big = box.start("a", "python3", "-c", f"import time\nb=bytearray(200<<20)\nb[::4096]=b'x'*len(b[::4096])\n"
                                              f"open('{ready}','w').close()\ntime.sleep(600)")
        wait_for("the big process", lambda: os.path.exists(ready))
        waiter = box.start("-w", "60", "a", "true")
        for pid in box.own_processes():
            if b"bytearray" in open(f"/proc/{pid}/cmdline", "rb").read() and pid != big.pid:
                os.kill(pid, signal.SIGKILL)
        assert waiter.wait(60) == 0
        big.wait(60)


def test_a_record_of_another_host_or_namespace_or_boot_leads_to_no_signal():
    """P6 and P7 as the command meets them."""
    for variable, value, code in (("HOST", "elsewhere", 75), ("PIDNS", "4711", 75), ("BOOT_ID", "0123456789abcdef" * 2, 75)):
        with Box() as box:
            file = box.path("lock")  # by path, as a name has the host in it
            process, pid = box.hold("-e", "1h", file, program=TEST_LOCK, env={"DCS_LOCK_TEST_" + variable: value})
            box.run("-e", "1h", "--grace=0.1", file, "true", program=TEST_LOCK, env=later(7200), code=code)
            assert runs(pid) and process.poll() is None, variable
            os.kill(pid, signal.SIGKILL)
            process.wait(60)


def test_planted_bugs_are_found():
    for bug, test in (("lock_command.strays_lose_it", "test_E5_C2_C4_what_a_command_leaves_behind_keeps_the_lock"),
                      ("lock_command.fails_open", "test_P38_when_locking_fails_nothing_runs_unlocked"),
                      ("lock_command.first_limit_only", "test_P35_all_or_none_before_the_command_begins"),
                      ("locks.no_copy_for_command", "test_P36_killing_the_supervisor_does_not_free_the_lock"),
                      ("locks.no_keeper", "test_E6_E7_C3_a_command_cannot_drop_its_lock_by_accident")):
        for planted in ("", bug):
            result = subprocess.run([sys.executable, os.path.abspath(__file__), test], env=dict(os.environ, DCS_PLANTED=planted),
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=300)
            assert (result.returncode != 0) == bool(planted), (bug, planted, result.stderr)
            assert not planted or "AssertionError" in result.stderr, result.stderr


if __name__ == "__main__":
    cases(globals())
