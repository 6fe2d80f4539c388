#!/usr/bin/python3
"""The backup on a host of its own keeps a lagging copy of the scheduler's store, over TLS: no process waits for it. Its
wire is cut and parted: each process is answered meanwhile, and it is said by how much the copy is behind; it catches up
by itself. Then the scheduler is lost while the copy is behind. The promotion says as of which turn the copy is and
what is lost; what was acknowledged up to there is in it, what was acknowledged later is as if it had never been, and
its control program learns it."""
import os
import re
import shutil
import signal

from backup_remote import backup_joins_by_code
from hurry import Hurry
from mirror_remote import MirroredPool
from pool import program, tells, wait_for
from tls import Proxy

LONG = 600
BEHIND = r"as of turn (\d+), lagging, (?:behind|away): (\d+) turns?, .*, .* behind"


class LaggingPool(MirroredPool):
    options = ("--mirror", "lagging")

    def __init__(self):
        super().__init__()
        self.wire = Proxy(lambda: self.port_number)  # the backup's own
        self.far = os.path.join(self.base, "far")    # the scheduler's host, as it is where there is no backup
        os.mkdir(self.far)
        os.symlink(self.directory, os.path.join(self.far, "scheduler"))

    def start_backup(self, directory="backup"):
        self.start("backup", "dcs_backupd", "--dir", os.path.join(self.base, directory), "--log-level", "debug",
                   "--scheduler", self.wire.address, "--tls", f"127.0.0.1:{self.port}")

    def current(self):
        wait_for("a copy that is as far as the store", lambda: (lambda c: c.get("state") == "current" and
                                                                c["turn"] == c["scheduler_turn"])(self.copy()), LONG)
        assert not self.copy()["attached"], "commits wait for a lagging copy"

    def map(self, *words):
        """The session's number: what it says is acknowledged. It is kept."""
        done = self.dcs("map", "--new", "--", "/bin/echo", "{}", ":::", *words)
        assert done.stdout.split() == list(words), done
        return int(re.search(r"session (\d+)", done.stderr).group(1))

    def behind(self):
        """Both ways to say it. The turn of the copy, and how many it lacks."""
        table = self.dcs("backup", "status", "--dir", self.far).stdout
        assert table.startswith("backup     not on this host\n"), table
        found = re.search(BEHIND, table)
        assert found, table
        copy = self.copy()
        assert copy["mode"] == "lagging" and copy["state"] in ("behind", "away"), copy
        assert copy["lag_turns"] > 0 and copy["lag_bytes"] > 0 and copy["lag_s"] > 0, copy
        assert copy["turn"] == int(found.group(1)) and copy["turn"] < copy["scheduler_turn"], (copy, table)
        assert copy["lag_turns"] == copy["scheduler_turn"] - copy["turn"], copy
        return copy

    def held(self, words, gate):
        """A control program whose grain waits for the gate."""
        return self.popen(program("dcs"), "run", "--", "/bin/sh", "-c",
                          f"echo begun >{gate}.begun; while [ ! -e {gate} ]; do sleep 0.1; done; echo {words}")


def parted(pool):
    """Nothing comes through; the connection is open. Then it is broken, and what comes again hangs too."""
    pool.current()
    pool.wire.part()
    pool.map("a", "b")
    first = pool.behind()
    pool.map("c", "d")
    second = pool.behind()
    assert second["turn"] == first["turn"] and second["lag_turns"] > first["lag_turns"], (first, second)
    pool.wire.cut()
    wait_for("the scheduler to miss the backup", lambda: pool.copy()["state"] == "away", LONG)
    assert pool.map("e") and pool.behind()["turn"] == first["turn"]
    doctor = pool.dcs("doctor", check=False)
    assert doctor.returncode == 1, doctor
    said = f"if this disk is lost, so is all work acknowledged since turn {first['turn']}"
    assert said in doctor.stdout, doctor.stdout
    pool.wire.whole.set()
    pool.current()
    assert "behind" not in pool.dcs("backup", "status", "--dir", pool.far).stdout


def killed(pool):
    """The backup is away; it goes on where it was."""
    pool.stop("backup", signal.SIGKILL)
    pool.map("f")
    table = pool.dcs("backup", "status", "--dir", pool.far).stdout
    assert re.search(BEHIND, table) and "away" in table, table
    pool.start_backup()
    pool.current()


def promoted_while_behind(pool):
    known, gate = pool.map("g", "h"), os.path.join(pool.base, "gate")
    old = pool.held("old", gate)
    wait_for("its grain", lambda: os.path.exists(gate + ".begun"), LONG)
    os.unlink(gate + ".begun")
    pool.current()
    before = pool.finished()
    pool.wire.part()
    lost, new = pool.map("i", "j"), pool.held("new", gate)
    wait_for("another grain", lambda: os.path.exists(gate + ".begun"), LONG)
    wait_for("both grains", lambda: len(pool.grain_processes()) == 2, LONG)
    assert lost in pool.finished()
    behind = pool.behind()
    pool.stop("scheduler", signal.SIGKILL)
    shutil.rmtree(pool.state())
    pool.stop("backup")
    made = os.path.join(pool.base, "promoted", "state")
    said = pool.promote(made)
    turn = behind["turn"]
    assert f"as of turn {turn}," in said and "in epoch 2" in said, said
    assert tells(said, "If commits did not wait copy"), said
    assert tells(said, f"what acknowledged after turn {turn} lost"), said
    shutil.copytree(made, pool.state(), symlinks=True)
    pool.wire.whole.set()
    pool.start_backup()
    pool.start_scheduler()
    pool.wait_active("h1", "h2")
    after = pool.finished()
    assert known in after and lost not in after, (known, lost, after)
    assert {s: after.get(s) for s in before} == before, (before, after)
    out, err = new.communicate(timeout=LONG)
    assert new.returncode != 0 and out == "", (new.returncode, out, err)
    assert tells(err, "authorization token unknown"), err
    wait_for("the lost one's grain to be ended", lambda: len(pool.grain_processes()) == 1, LONG)
    open(gate, "w").close()
    out, err = old.communicate(timeout=LONG)
    assert old.returncode == 0 and out == "old\n", (old.returncode, out, err)
    pool.map("k")
    pool.current()


def main():
    with LaggingPool() as pool, Hurry(pool):
        for part in (backup_joins_by_code, parted, killed, promoted_while_behind):
            part(pool)
            print(part.__name__.replace("_", " "), flush=True)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
