#!/usr/bin/python3
"""The adaptive lock: killed at each of its points, stopped in the middle of a takeover, with each planted bug; and the C calls."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BIN = os.environ.get("DCS_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../build/release/bin"))
TESTS = os.path.join(BIN, "../tests")
HOLDER = os.path.join(TESTS, "locks_holder")


class Place:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="dcs-locks-")
        self.env = dict(os.environ, DCS_LOCK_DIR=self.dir)
        self.started = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(self.dir)

    def ask(self, *arguments, failpoint=None):
        env = dict(self.env, DCS_FAILPOINTS=failpoint) if failpoint else self.env
        out = subprocess.run([HOLDER, "x", *arguments], env=env, capture_output=True, text=True, timeout=300)
        return out.returncode, out.stdout.split()

    def hold(self, *arguments):
        process = subprocess.Popen([HOLDER, "x", *arguments], env=self.env, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.started.append(process)
        return process, process.stdout.readline().split()

    def log(self):
        path = os.path.join(self.dir, "run.log")
        with open(path) as log:
            return [line.split()[2] for line in log]


def P3_P4_killed_at_each_point():
    """P3, P4: whatever point the killed one had come to, the next request is granted at once, with a higher token."""
    points = {"locks.get.begin": 0, "locks.get.locked": 0, "locks.get.before_record": 0, "locks.get.after_record": 1,
              "locks.release.before_record": 1, "locks.release.after_record": 0}
    for point, crashed in points.items():
        with Place() as place:
            _, first = place.ask("0", "3600")
            code, said = place.ask("0", "3600", failpoint=f"{point}=kill@1")
            assert code == -signal.SIGKILL, f"{point} was not visited"
            code, after = place.ask("0", "3600")
            assert code == 0 and after[0] == "granted", f"{point}: {after}"
            assert int(after[1]) > int((said or first)[1]), f"{point}: tokens {first} {said} {after}"
            assert int(after[2]) == crashed, f"{point}: {after}"
            assert place.log().count("crashed") == crashed, f"{point}: {place.log()}"


def P3_reaper_killed():
    """P3: the one who ended an expired holder dies before it has taken over."""
    for point, victim_lives in (("locks.reap.locked", True), ("locks.reap.killed", False)):
        with Place() as place:
            victim, said = place.hold("0", "3600", "hold")
            assert said[0] == "granted"
            time.sleep(0.05)
            code, _ = place.ask("0", "0.01", failpoint=f"{point}=kill@1")
            assert code == -signal.SIGKILL, f"{point} was not visited"
            assert (victim.poll() is None) == victim_lives, point
            code, after = place.ask("0", "0.01")
            assert after[0] == "granted" and int(after[1]) > int(said[1]), f"{point}: {after}"
            assert int(after[3]) == victim_lives, f"{point}: {after}"
            log = place.log()
            assert log.count("expired") + log.count("crashed") == 1, f"{point}: {log}"
            assert ("crashed" in log) != victim_lives, f"{point}: {log}"
            assert victim.wait(timeout=300) == -signal.SIGINT


def reaper_stopped():
    """A reaper that is stopped with the holder dead keeps no process out, and finds the atom taken when it goes on."""
    with Place() as place:
        victim, said = place.hold("0", "3600", "hold")
        time.sleep(0.05)
        env = dict(place.env, DCS_FAILPOINTS="locks.reap.killed=stop@1")
        reaper = subprocess.Popen([HOLDER, "x", "0", "0.01"], env=env, stdout=subprocess.PIPE, text=True)
        place.started.append(reaper)
        os.waitid(os.P_PID, reaper.pid, os.WSTOPPED | os.WNOWAIT)
        assert victim.wait(timeout=300) == -signal.SIGINT
        new, after = place.hold("0", "3600", "hold")
        assert after[0] == "granted" and int(after[1]) > int(said[1]), after
        assert place.log().count("expired") == 1, place.log()  # not crashed: a process ended it
        other, answer = place.ask("0", "0.001")
        assert other == 0 and answer[0] == "busy", answer      # one reaper at a time
        assert new.poll() is None
        new.kill()
        new.wait()
        reaper.send_signal(signal.SIGCONT)
        assert reaper.wait(timeout=300) == 0
        last = reaper.stdout.readline().split()
        assert last[0] == "granted" and int(last[1]) > int(after[1]), last


def released_meanwhile():
    """A holder that releases an expired lock just before it would be ended lives on, and the requester gets the lock."""
    with Place() as place:
        holder, said = place.hold("0", "3600", "leave")
        time.sleep(0.05)
        env = dict(place.env, DCS_FAILPOINTS="locks.reap.judged=stop@1")
        reaper = subprocess.Popen([HOLDER, "x", "0", "0.01"], env=env, stdout=subprocess.PIPE, text=True)
        place.started.append(reaper)
        os.waitid(os.P_PID, reaper.pid, os.WSTOPPED | os.WNOWAIT)
        holder.stdin.close()
        assert holder.stdout.readline() == "released\n"
        reaper.send_signal(signal.SIGCONT)
        answer = reaper.stdout.readline().split()
        assert answer[0] == "granted" and int(answer[1]) > int(said[1]) and answer[3] == "0", answer
        assert holder.poll() is None


def P27_deleted_while_held():
    """P27: the holder of a removed file keeps what it has, and expiry of the new file does not reach it."""
    with Place() as place:
        old, first = place.hold("0", "3600", "hold")
        for name in os.listdir(place.dir):
            if name.endswith(".lock"):
                os.unlink(os.path.join(place.dir, name))
        time.sleep(0.05)
        code, after = place.ask("0", "0.01")
        assert after[0] == "granted" and int(after[1]) > int(first[1]), after
        assert old.poll() is None


def c_calls():
    for program in ("locks_api", "locks_api_cxx"):
        with Place() as place:
            out = subprocess.run([os.path.join(TESTS, program)], env=place.env, capture_output=True, text=True, timeout=120)
            assert out.returncode == 0, f"{program}: {out.stderr}"


def planted_bugs():
    """Each bug on purpose turns a test red."""
    tests = {"locks.check_outside": "P2 of many*", "locks.no_reread": "P2 of many*", "locks.no_still_named": "C6 a file*",
             "locks.generation": "tokens grow*"}
    for bug, test in tests.items():
        for name, red in (("", False), (bug, True)):
            out = subprocess.run([os.path.join(BIN, "unit_locks"), test], capture_output=True, text=True, timeout=300,
                                 env=dict(os.environ, DCS_PLANTED=name))
            assert (out.returncode != 0) == red, f"{bug}: {test} is {'green' if red else 'red'}\n{out.stdout[-2000:]}"


def main():
    P3_P4_killed_at_each_point()
    P3_reaper_killed()
    reaper_stopped()
    released_meanwhile()
    P27_deleted_while_held()
    c_calls()
    planted_bugs()
    print("killed, stopped and planted: the adaptive lock holds")


if __name__ == "__main__":
    sys.exit(main())
