#!/usr/bin/python3
"""The backup keeps a running copy of the scheduler's store, in mode sync. Commits wait for it: while the backup is away
no process is answered, until the operator detaches it. Then the scheduler is killed and its state directory deleted, the copy
is promoted, and everything goes on: the control programs that wait, the running grains, what was acknowledged. The old
scheduler, with the state directory that was kept aside, is refused."""
import json
import os
import shutil
import signal
import subprocess

from hurry import Hurry
from pool import Pool, lock_holder, program, start_time, tells, wait_for

STEPS = os.path.join(os.path.dirname(program("dcs")), "../tests/steps")


class Test:
    def __init__(self, pool):
        self.pool = pool
        self.scheduler = os.path.join(pool.dir, "scheduler")
        self.state = os.path.join(self.scheduler, "state")

    def copy(self):
        return self.pool.json("backup", "status")["copy"]

    def current(self):
        wait_for("a copy that is as far as the store", lambda: (lambda c: c["state"] == "current" and c["attached"] and
                                                                c["turn"] == c["scheduler_turn"])(self.copy()), timeout=120)

    def kill(self, folder):
        pid = lock_holder(os.path.join(self.pool.dir, folder, "lock"))
        os.kill(pid, signal.SIGKILL)
        wait_for(f"the end of the {folder}", lambda: start_time(pid) is None)

    def log(self, folder="scheduler"):
        with open(os.path.join(self.pool.dir, folder, "log")) as file:
            return file.read()

    def steps(self, name, count):
        """A control program and its grain, which leaves checkpoints: `count` steps."""
        path = os.path.join(self.pool.base, name)
        with open(path, "w") as file:
            file.write(f"1 {count} 40\n")
        out = open(path + ".out", "w+")
        return self.pool.start([program("dcs"), "run", "--", STEPS], stdin=open(path), stdout=out), out, count

    def check_steps(self, run):
        process, out, count = run
        assert process.wait(timeout=600) == 0
        out.seek(0)
        text = out.read()
        assert text == "".join(f"step {i}\n" for i in range(1, count + 1)), f"output differs: {text[:200]!r}"

    def refusals(self, *commands):
        """What they say, asked at once, as each tries for long, when they get no answer."""
        asked = [self.pool.start([program("dcs"), command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for command in commands]
        said = [process.communicate(timeout=300)[1] for process in asked]
        assert all(process.returncode == 5 for process in asked), said
        return said

    def session(self, words):
        return self.pool.dcs("map", "--", "/bin/echo", "{}", ":::", *words).stdout.decode().split()


BACKUP_POINTS = ["mirror.page.before", "mirror.page.after", "mirror.page.answered", "mirror.whole.before",
                 "mirror.whole.founded", "mirror.whole.after", "mirror.current.before_rename", "mirror.current.after_rename",
                 "mirror.turn.before", "mirror.turn.after"]
SCHEDULER_POINTS = ["mirror.send.before", "mirror.send.after", "mirror.send.whole", "mirror.attached.before_write",
                    "mirror.attached.after_write"]
PROMOTE_POINTS = ["mirror.promote.set_aside", "mirror.promote.noted", "mirror.promote.committed", "mirror.promote.library",
                  "mirror.promote.moved"]


def killed_at_points(test):
    """Backup and scheduler die around what they do for the copy; a process that called is answered in the end, and it is whole."""
    pool, reached = test.pool, 0
    for role, points in (("backup", BACKUP_POINTS), ("scheduler", SCHEDULER_POINTS)):
        for point in points:
            test.kill("backup")
            if ".turn." not in point and ".page." not in point:  # a new copy is made
                shutil.rmtree(os.path.join(pool.dir, "backup/mirror"))
            if role == "scheduler":
                test.kill("scheduler")
                with open(os.path.join(test.scheduler, "attached"), "w") as file:
                    file.write("never   \n")
            visits = os.path.join(pool.base, point)
            environment = dict(pool.env, DCS_FAILPOINTS=f"{point}=kill@1", DCS_FAILPOINT_LOG=visits, DCS_PATIENCE_S="2")
            up = subprocess.Popen([os.path.join(pool.bin, "dcs"), "up", "--dir", pool.dir], env=environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if role == "scheduler":  # it dies before servers call in, for which `up` waits
                wait_for(f"a visit of {point}", lambda: os.path.exists(visits) and f"{point} kill" in open(visits).read(), timeout=120)
                up.kill()
            up.wait(timeout=300)
            caller = pool.start([program("dcs"), "run", "--", "/bin/echo", point], stdout=subprocess.PIPE)
            lock = os.path.join(pool.dir, role, "lock")
            wait_for(f"the {role} to die at {point}", lambda: lock_holder(lock) is None, timeout=120)
            reached += 1
            wait_for("the pool", lambda: pool.up(check=False).returncode == 0, timeout=300)
            out, _ = caller.communicate(timeout=300)
            assert caller.returncode == 0 and out.decode().strip() == point, (caller.returncode, out)
            test.current()
    print(f"killed at {reached} points")


def killed_while_it_removes(test):
    """`dcs run` cleans its session in the end, and the backup dies around removing it from the copy."""
    pool = test.pool
    for point in ("store.apply_remove.before", "store.apply_remove.after"):
        test.kill("backup")
        environment = dict(pool.env, DCS_FAILPOINTS=f"dcs_backupd:{point}=kill@1", DCS_PATIENCE_S="2")
        subprocess.run([os.path.join(pool.bin, "dcs"), "up", "--dir", pool.dir], env=environment, timeout=300,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        caller = pool.start([program("dcs"), "run", "--", "/bin/echo", point], stdout=subprocess.PIPE)
        lock = os.path.join(pool.dir, "backup/lock")
        wait_for(f"the backup to die at {point}", lambda: lock_holder(lock) is None, timeout=120)
        wait_for("the pool", lambda: pool.up(check=False).returncode == 0, timeout=300)
        out, _ = caller.communicate(timeout=300)
        assert caller.returncode == 0 and out.decode().strip() == point, (caller.returncode, out)
        test.current()


def promotion_interrupted(test):
    """A copy of the backup's directory is promoted, which is killed at each of its steps and begun again."""
    pool = test.pool
    sessions = [(s["session"], s["finished"]) for s in pool.json("session", "ls")["sessions"]]
    for n, point in enumerate(PROMOTE_POINTS):
        base = os.path.join(pool.base, f"promotion{n}")
        scheduler = os.path.join(base, "scheduler")
        os.makedirs(os.path.join(scheduler, "state", "left"))
        open(os.path.join(scheduler, "hosts"), "w").close()
        shutil.copytree(os.path.join(pool.dir, "backup"), os.path.join(base, "backup"),
                        ignore=lambda _, names: [x for x in names if x.endswith(".sock")])
        promote = [os.path.join(pool.bin, "dcs_backupd"), "--dir", os.path.join(base, "backup"), "--promote",
                   os.path.join(scheduler, "state")]
        dead = subprocess.run(promote, env=dict(pool.env, DCS_FAILPOINTS=f"{point}=kill@1"), stdout=subprocess.DEVNULL)
        assert dead.returncode == -signal.SIGKILL, (point, dead)
        done = subprocess.run(promote, env=pool.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0 and b"epoch" in done.stdout, (point, done)
        read, write = os.pipe()
        served = subprocess.Popen([program("dcs_scheduler"), "--dir", scheduler, "--ready-fd", str(write)], pass_fds=(write,),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(write)
        try:
            assert os.read(read, 16) == b"ready\n", point
            rows = json.loads(subprocess.run([program("dcs"), "session", "ls", "-o", "json"], check=True, timeout=120,
                                             env=dict(pool.env, DCS_DIR=base), stdout=subprocess.PIPE).stdout)["sessions"]
            assert [(s["session"], s["finished"]) for s in rows] == sessions, (point, rows, sessions)
        finally:
            os.close(read)
            served.kill()
            served.wait()
        shutil.rmtree(base)


def blocking(test):
    """What has an answer is in the copy; without the backup there is no answer until it is detached."""
    pool = test.pool
    test.current()
    assert test.session(["a", "b"]) == ["a", "b"]
    copy = test.copy()
    assert copy["turn"] == copy["scheduler_turn"], copy
    test.kill("backup")
    caller = pool.start([program("dcs"), "run", "--", "/bin/true"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for("commits that wait", lambda: tells(test.log(), "commits wait backup's copy store"), timeout=120)
    assert caller.poll() is None
    caller.kill()
    caller.wait()
    for said in test.refusals("doctor", "status"):
        assert tells(said, "commits waited backup's copy store"), said
        assert b"dcs backup detach" in said and b"promoted elsewhere" in said, said
    caller = pool.start([program("dcs"), "run", "--", "/bin/true"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    result = pool.dcs("backup", "detach")
    assert b"do not wait" in result.stdout
    assert caller.wait(timeout=120) == 0, caller.stderr.read()
    doctor = pool.dcs("doctor", check=False)
    assert doctor.returncode == 1 and b"detached" in doctor.stdout, doctor.stdout
    assert pool.dcs("backup", "detach", check=False).returncode == 4  # nothing to detach
    # Over a restart, too.
    test.kill("scheduler")
    pool.up()
    test.current()
    assert pool.dcs("doctor").returncode == 0
    assert "audit: " in test.log() and "detach" in test.log()
    # Before the backup's maintenance, while its copy is current.
    assert tells(pool.dcs("backup", "detach").stdout, "do not wait Stop the backup")
    assert tells(pool.dcs("doctor", check=False).stdout, "detached")
    test.kill("backup")
    pool.dcs("run", "--", "/bin/true")
    pool.up()
    test.current()
    assert pool.dcs("doctor").returncode == 0


def damaged(test):
    """The file that says which directory is the copy is cut off. The whole one goes on; where that is not certain, everybody who
    asks reads the reason, and it goes on when the operator has decided."""
    pool, mirror = test.pool, os.path.join(test.pool.dir, "backup/mirror")
    test.current()
    turn = test.copy()["turn"]
    test.kill("backup")
    open(os.path.join(mirror, "current"), "w").close()
    pool.up()
    test.current()
    assert test.copy()["turn"] >= turn and tells(test.log("backup"), "`current` damaged; copy complete turn")
    test.kill("backup")
    with open(os.path.join(mirror, "current")) as file:
        other = os.path.join(mirror, "ba"["ab".index(file.read(1))])
    open(os.path.join(mirror, "current"), "w").close()
    os.makedirs(os.path.join(other, "turns"))
    with open(os.path.join(other, "turns/applied"), "w") as file:  # it was once complete, and could be the later one
        file.write("?")
    caller = pool.start([program("dcs"), "run", "--", "/bin/true"], stderr=subprocess.DEVNULL)  # it may give up
    up = pool.start([program("dcs"), "up", "--dir", pool.dir], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for("the backup", lambda: lock_holder(os.path.join(pool.dir, "backup/lock")), timeout=120)
    reason = "backup cannot keep copy `current` damaged"
    for said in wait_for("the reason in both", lambda: (lambda both: all(tells(said, reason) for said in both) and both)(
            test.refusals("doctor", "status")), timeout=120):
        assert tells(said, "hint: remove cause backup's host") and b"start the backup" not in said, said
    status = pool.dcs("backup", "status").stdout
    assert tells(status, "copy `current` damaged") and b"not connected (" not in status, status
    shutil.rmtree(other)
    test.current()
    up.wait(timeout=300)
    caller.kill()
    caller.wait()
    assert pool.dcs("run", "--", "/bin/echo", "late").stdout == b"late\n"


def promoted(test):
    """The scheduler's disk is lost in the middle of it all."""
    pool = test.pool
    before = sorted((s["user"], s["session"]) for s in pool.json("session", "ls")["sessions"])
    runs = [test.steps(f"input{i}", 300) for i in range(2)]
    wait_for("two running grains with a checkpoint", lambda: sum(
        r["state"] == "running" and r["checkpoint_length"] > 0 for s in pool.json("session", "ls")["sessions"]
        for r in pool.grains(s["session"])) == 2, timeout=300)
    grains = {(e, pid, start) for _, e, pid, start in pool.grain_processes()}
    assert len(grains) == 2, grains
    known = {(s["session"], r["grain"]): r["checkpoint_length"] for s in pool.json("session", "ls")["sessions"]
             for r in pool.grains(s["session"])}
    refused = pool.dcs("backup", "promote", check=False)
    assert refused.returncode == 4 and b"is running" in refused.stderr, refused.stderr
    test.kill("scheduler")
    old = os.path.join(pool.base, "old-state")
    shutil.copytree(test.state, old)
    shutil.rmtree(test.state)
    refused = pool.dcs("up", check=False)  # would begin an empty store
    assert refused.returncode == 4 and b"the backup has a copy of it" in refused.stderr and b"backup promote" in refused.stderr, refused
    said = pool.dcs("backup", "promote").stdout.decode()
    assert "epoch 2" in said, said
    assert {(e, pid, start) for _, e, pid, start in pool.grain_processes()} == grains, "a grain did not go on"
    status = pool.json("status")
    assert status["epoch"] == 2, status
    after = sorted((s["user"], s["session"]) for s in pool.json("session", "ls")["sessions"])
    assert set(before) <= set(after), (before, after)
    now = {(s["session"], r["grain"]): r for s in pool.json("session", "ls")["sessions"] for r in pool.grains(s["session"])}
    for key in known:
        assert key in now, f"grain {key} was acknowledged and is missing"
    test.current()  # the new scheduler's copy is made again
    return runs, old


def old_one_comes_back(test, old):
    """On the disk that was lost and found again: it ends by itself, and the servers do not work for it."""
    pool = test.pool
    test.kill("scheduler")
    promoted_state = os.path.join(pool.base, "promoted-state")
    os.rename(test.state, promoted_state)
    shutil.copytree(old, test.state)
    said = os.path.join(pool.base, "old.log")
    with open(said, "wb") as log:
        back = subprocess.Popen([os.path.join(pool.bin, "dcs_scheduler"), "--dir", test.scheduler, "--mirror", "sync"], env=pool.env,
                                stdout=log, stderr=log)
    assert back.wait(timeout=120) != 0
    text = open(said).read()
    assert "epoch 2" in text and "ends without answering" in text, text
    shutil.rmtree(test.state)
    os.rename(promoted_state, test.state)
    pool.up()
    test.current()


class MirroredPool(Pool):
    def up(self, check=True):
        return self.dcs("up", "--local", str(self.servers), "--slots", str(self.slots), "--interval", str(self.interval),
                        "--mirror", "sync", "--dir", self.dir, check=check)


def main():
    with MirroredPool(2, 1, 1.0, test_builds=("dcs_scheduler", "dcs_backupd")) as pool, Hurry(pool):
        test = Test(pool)
        blocking(test)
        damaged(test)
        killed_at_points(test)
        killed_while_it_removes(test)
        test.kill("backup")  # nothing changes there
        promotion_interrupted(test)
        pool.up()
        test.current()
        runs, old = promoted(test)
        old_one_comes_back(test, old)
        for run in runs:
            test.check_steps(run)
        assert sorted(test.session(["x", "y"])) == ["x", "y"]
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
