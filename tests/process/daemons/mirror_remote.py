#!/usr/bin/python3
"""The backup on a host of its own keeps a running copy of the scheduler's store, over TLS, in mode sync. No process but the
backup of the host table gets it. The scheduler's state directory is deleted while sessions are at work; the copy is promoted
on the backup's host and carried back, and nothing is missing that was acknowledged. The old one that comes back is refused."""
import os
import shutil
import signal
import subprocess

from backup_remote import BackupPool, backup_joins_by_code
from hurry import Hurry
from pool import BIN, program, tells, wait_for

STEPS = os.path.join(BIN, "../tests/steps")


class MirroredPool(BackupPool):
    options = ("--mirror", "sync")

    def start(self, name, what, *arguments):
        # The test build: DCS_PLANTED=mirror.any process gives the copy to a process that has a certificate for the role.
        super().start(name, "../tests/dcs_scheduler_test" if what == "dcs_scheduler" else what, *arguments)

    def state(self):
        return os.path.join(self.directory, "state")

    def copy(self):
        return (self.backup() or {}).get("copy", {})

    def current(self):
        wait_for("a copy that is as far as the store", lambda: (lambda c: c.get("state") == "current" and c["attached"] and
                                                                c["turn"] == c["scheduler_turn"])(self.copy()), timeout=300)

    def promote(self, state, check=True):
        return subprocess.run([program("dcs_backupd"), "--dir", os.path.join(self.base, "backup"), "--promote", state],
                              check=check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300).stdout

    def finished(self):
        return {s["session"]: s["finished"] for s in self.json("session", "ls")["sessions"]}


def nobody_else_gets_the_copy(pool):
    """A certificate of the role, but of another key or another host; a grain server's is no backup's at all."""
    for name, why in (("bk", "certificate backup bk revoked"),
                      ("b2", "host b2 not backup scheduler's host table")):
        directory = os.path.join(pool.base, "thief-" + name)
        os.makedirs(directory)
        pool.start(f"thief-{name}", "dcs_backupd", "--dir", directory, "--tls", "127.0.0.1:0", "--scheduler",
                   pool.proxy.address, "--pki", pool.forge(f"thief-pki-{name}", "backup", name))
        pool.logged("scheduler.log", f"audit copy store refused host {name}: {why}")
        pool.logged(f"thief-{name}.log", "copy scheduler's store scheduler refuses " + why)
        pool.stop(f"thief-{name}")
        there = os.listdir(os.path.join(directory, "mirror"))
        assert "current" not in there, there
    pool.current()  # the right one was not disturbed


def commits_wait_for_it(pool):
    assert pool.dcs("run", "--", "/bin/echo", "one").stdout == "one\n"
    copy = pool.copy()
    assert copy["turn"] == copy["scheduler_turn"], copy
    pool.stop("backup", signal.SIGKILL)
    caller = pool.popen(program("dcs"), "run", "--", "/bin/echo", "two")
    pool.logged("scheduler.log", "commits wait backup's copy store")
    assert caller.poll() is None
    pool.start_backup()
    out, err = caller.communicate(timeout=300)
    assert caller.returncode == 0 and out == "two\n", (out, err)
    pool.current()


def steps(pool, name, count):
    path = os.path.join(pool.base, name)
    with open(path, "w") as file:
        file.write(f"1 {count} 40\n")
    return pool.popen(program("dcs"), "run", "--", STEPS, data=open(path).read()), count


def the_scheduler_loses_its_state(pool):
    """What is secret and the operator's, `pki` and the tables beside the state directory, is not lost with it."""
    runs = [steps(pool, f"input{i}", 300) for i in range(2)]
    wait_for("two grains with a checkpoint", lambda: sum(
        g["state"] == "running" and g["checkpoint_length"] > 0 for s in pool.finished()
        for g in pool.json("grain", "ls", str(s))["grains"]) == 2, timeout=300)
    gate = os.path.join(pool.base, "gate")
    script = f'test "$0" != c || while [ ! -e {gate} ]; do sleep 0.2; done; echo "$0"'
    mapped = pool.popen(program("dcs"), "map", "--new", "--", "/bin/sh", "-c", script, "{}", data="a\nb\nc\n")
    wait_for("finished grains", lambda: 2 in pool.finished().values() and len(pool.grain_processes()) == 3)
    grains = {(pid, start) for _, _, pid, start in pool.grain_processes()}
    before = pool.finished()
    assert len(grains) == 3 and len(before) == 3, (grains, before)
    pool.stop("scheduler", signal.SIGKILL)
    old = os.path.join(pool.base, "old-state")
    os.rename(pool.state(), old)
    pool.stop("backup")
    made = os.path.join(pool.base, "promoted", "state")
    said = pool.promote(made)
    assert "in epoch 2" in said, said
    shutil.copytree(made, pool.state(), symlinks=True)
    os.unlink(os.path.join(pool.directory, "attached"))
    pool.start_backup()
    pool.start_scheduler()
    pool.wait_active("h1", "h2")
    assert pool.json("status")["epoch"] == 2
    after = pool.finished()
    missing = [s for s, finished in before.items() if after.get(s, -1) < finished]
    assert not missing, f"acknowledged and missing: {missing}"
    assert {(pid, start) for _, _, pid, start in pool.grain_processes()} <= grains, "a grain started again"
    for process, count in runs:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
        assert out == "".join(f"step {i}\n" for i in range(1, count + 1)), out[:200]
    open(gate, "w").close()
    out, err = mapped.communicate(timeout=300)
    assert mapped.returncode == 0 and sorted(out.split()) == ["a", "b", "c"], (out, err)
    pool.current()  # a new copy, of the new scheduler
    return old


def the_old_one_is_refused(pool, old):
    pool.stop("scheduler")
    kept = os.path.join(pool.base, "promoted-state")
    os.rename(pool.state(), kept)
    os.rename(old, pool.state())
    before = len(pool.text("scheduler.log"))
    pool.start("scheduler", "dcs_scheduler", "--dir", pool.directory, "--tls", f"127.0.0.1:{pool.port_number}", *pool.options)
    assert pool.running.pop("scheduler").wait(timeout=300) != 0
    text = pool.text("scheduler.log")[before:]
    assert "(epoch 2, here 1)" in text and "ends without answering" in text, text
    shutil.rmtree(pool.state())
    os.rename(kept, pool.state())
    pool.start_scheduler()
    pool.wait_active("h1", "h2")
    pool.current()
    assert pool.dcs("run", "--", "/bin/echo", "three").stdout == "three\n"


def who_is_taken_out_gets_no_more(pool):
    """In mode sync the removal detaches the copy too: no commit waits for what is not fed any more."""
    before = len(pool.text("scheduler.log"))  # of a thief who called itself bk, too, it says that it was refused
    removal = pool.popen(program("dcs"), "host", "rm", "bk")
    out, err = removal.communicate(timeout=300)
    assert removal.returncode == 0, (out, err)
    log = pool.text("scheduler.log")[before:]
    assert tells(log, "copy store refused host bk"), log
    assert tells(log, "audit removal host detached backup's copy store"), log
    doctor = pool.dcs("doctor", check=False).stdout
    assert tells(doctor, "detached commits do not wait") and "let a backup join" in doctor, doctor
    assert "start the backup" not in doctor, doctor
    assert pool.dcs("run", "--", "/bin/echo", "four").stdout == "four\n"


def main():
    with MirroredPool() as pool, Hurry(pool):
        for part in (backup_joins_by_code, MirroredPool.current, nobody_else_gets_the_copy, commits_wait_for_it):
            part(pool)
            print(part.__name__.replace("_", " "), flush=True)
        old = the_scheduler_loses_its_state(pool)
        print("the scheduler loses its state", flush=True)
        the_old_one_is_refused(pool, old)
        print("the old one is refused", flush=True)
        who_is_taken_out_gets_no_more(pool)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
