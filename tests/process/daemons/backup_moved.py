#!/usr/bin/python3
"""The backup moves to other hosts, in mode sync: `dcs reload` and `dcs doctor` say what waits and what to type, and which
dcs_backupd on the scheduler's host is the pool's, and which one was left behind. One that was left behind with a socket of the
scheduler's host does not take the place of the new one."""
import os

from backup_remote import backup_joins_by_code
from hurry import Hurry
from mirror_remote import MirroredPool
from pool import free_port, tells, wait_for


class MovingPool(MirroredPool):
    def doctor(self):
        return self.dcs("doctor", check=False).stdout

    def name_backup(self, name):
        """What `dcs reload` warns of."""
        self.far_port = free_port()
        self.backup_line = f"{name} role=backup address=127.0.0.1:{self.far_port}\n"
        self.table("h1", "h2")
        return self.dcs("reload").stderr

    def join_backup(self, name):
        directory = os.path.join(self.base, name)
        words = self.dcs("token", "create", "--role", "backup", "--host", name).stdout.split()
        words[3] = self.proxy.address
        self.dcs(*words[1:], "--dir", directory)
        self.start(name, "dcs_backupd", "--dir", directory, "--scheduler", self.proxy.address, "--tls", f"127.0.0.1:{self.far_port}")
        wait_for(f"{name} to have the copy", lambda: f"{name}, connected; copy of the store: sync, current" in
                 self.dcs("status").stdout)


def it_moves_when_it_has_ended(pool):
    """Nothing has run: no commit waits already, so that calls that change nothing are answered."""
    assert "backup: is on the disk of the scheduler" in pool.doctor(), pool.doctor()
    pool.stop("backup")
    what = "backup's copy of the store: commits wait for it host table names b2 not joined"
    how = "dcs backup detach dcs token create --host b2 --role backup"
    said = pool.name_backup("b2")
    assert tells(said, f"warning {what} {how}"), said
    assert tells(pool.doctor(), what) and tells(pool.doctor(), "do: " + how), pool.doctor()
    pool.logged("scheduler.log", "warning: backup's copy of the store: commits wait for it calls not answered")
    pool.dcs("backup", "detach")
    assert tells(pool.doctor(), "do: let a backup join dcs token create --host b2 --role backup attached again"), pool.doctor()


def the_old_one_runs_again(pool):
    pool.start_backup()
    left = f"dcs_backupd (pid {pool.running['backup'].pid}) runs in {pool.base}/backup scheduler does not use it: "
    wait_for("it to answer", lambda: "scheduler" in (pool.backup() or {}))
    assert tells(pool.doctor(), left + "host table names host b2 has not joined"), pool.doctor()
    pool.join_backup("b2")
    assert tells(pool.doctor(), left + "backup of the pool is host b2"), pool.doctor()
    assert tells(pool.doctor(), "do: left behind end it") and "is on the disk" not in pool.doctor(), pool.doctor()
    pool.stop("backup")


def it_moves_while_it_runs(pool):
    said = pool.name_backup("b3")
    assert tells(said, "warning: backup's copy detached commits do not wait b2 not backup dcs token create"), said
    assert pool.dcs("run", "--", "/bin/echo", "one").stdout == "one\n"


def one_with_a_socket_is_left(pool):
    """It serves until the other one has joined."""
    pool.stop("b2")
    old = os.path.join(pool.base, "backup")
    os.rename(old, old + ".bk")
    os.mkdir(old)
    pool.start("backup", "dcs_backupd", "--dir", old, "--scheduler", os.path.join(pool.directory, "server.sock"))
    wait_for("it to be connected", lambda: (pool.backup() or {}).get("scheduler"))
    pool.join_backup("b3")
    pool.logged("backup.log", "refuses backup of this pool is host b3 end this")
    pool.current()
    assert tells(pool.doctor(), "dcs_backupd scheduler does not use it backup of the pool is host b3"), pool.doctor()
    log = pool.text("scheduler.log")
    assert tells(log, "audit copy store refused a process of this host: backup pool host b3"), log
    assert log.count("the backup is connected, host b3") == 1, log


def main():
    with MovingPool() as pool, Hurry(pool):
        for part in (backup_joins_by_code, MovingPool.current, it_moves_when_it_has_ended, the_old_one_runs_again,
                     it_moves_while_it_runs, one_with_a_socket_is_left):
            part(pool)
            print(part.__name__.replace("_", " "), flush=True)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
