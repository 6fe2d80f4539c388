#!/usr/bin/python3
"""Processor time that checkpoints saved: a grain is evicted and killed, and each time begins at its checkpoint. What the grain's
row, the session, `dcs top` and the bar of `dcs map` say of it grows with each beginning, and a killed scheduler knows it still."""
import os
import pty
import re
import select
import shutil
import signal

from pool import BIN, ROOT, Pool, wait_for

GRAIN = """#!/usr/bin/python3
import os, sys
import dcs_grain
dcs_grain.handler()
rounds = int(dcs_grain.text.readline() or 0)
while not os.path.exists(sys.argv[1]):
    sum(range(100000))
    rounds += 1
    if dcs_grain.time_to_checkpoint():
        with dcs_grain.checkpoint("round %d" % rounds) as state:
            state.write("%d\\n" % rounds)
print("done")
"""


class Map:
    """dcs map on a terminal of its own."""

    def __init__(self, pool, directory, gate):
        self.master, slave = pty.openpty()
        self.seen = ""
        pool.env = dict(pool.env, PATH=BIN + ":" + pool.env["PATH"], TERM="xterm", PYTHONDONTWRITEBYTECODE="1")
        self.process = pool.start([os.path.join(BIN, "dcs"), "map", "--attempts", "100", "--", "./grain", "{}", ":::", gate],
                                  cwd=directory, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)

    def read(self):
        while select.select([self.master], [], [], 0.05)[0]:
            try:
                some = os.read(self.master, 65536)
            except OSError:
                return
            if not some:
                return
            self.seen += some.decode()

    def says(self, pattern):
        self.read()
        return re.search(pattern, self.seen)


def row(pool):
    rows = pool.grains(1)
    return rows[0] if rows else {"state": "", "checkpoint_length": 0, "cpu_s": 0, "incarnation": 0, "saved_cpu_s": 0}


def begins_again(pool, bag, disturb):
    """After `disturb` another incarnation of the grain saves more than all before it, and then has a checkpoint of its own."""
    before = row(pool)
    disturb()

    def again():
        pool.hurry()
        bag.read()
        now = row(pool)
        return now["incarnation"] > before["incarnation"] and now["state"] == "running" and now["cpu_s"] > before["cpu_s"] and now
    now = wait_for("the next incarnation", again, timeout=300)
    assert now["saved_cpu_s"] > before["saved_cpu_s"], (before, now)
    # No checkpoint holds more than was spent until then.
    assert now["saved_cpu_s"] <= before["saved_cpu_s"] + now["cpu_s"] - now["run_cpu_s"] + 1e-6, (before, now)
    wait_for("its checkpoint", lambda: pool.hurry() or row(pool)["checkpoint_age_s"] < row(pool)["last_contact_s"] + 2, timeout=300)


def kill_grain(pool):
    for _, _, pid, _ in pool.grain_processes():
        os.kill(pid, signal.SIGKILL)


def main():
    with Pool(2, 1, 0.5) as pool:
        directory = os.path.join(pool.base, "work")
        os.mkdir(directory)
        shutil.copy(os.path.join(ROOT, "libdcs/python/dcs_grain.py"), directory)
        with open(os.path.join(directory, "grain"), "w") as file:
            file.write(GRAIN)
        os.chmod(os.path.join(directory, "grain"), 0o755)
        gate = os.path.join(directory, "gate")
        bag = Map(pool, directory, gate)
        wait_for("a checkpoint after seconds of work", lambda: pool.hurry() or bag.read() or (
            row(pool)["checkpoint_length"] > 0 and row(pool)["cpu_s"] > 3), timeout=300)
        assert row(pool)["saved_cpu_s"] == 0 and "saved" not in pool.dcs("session", "show", "1").stdout.decode()
        host = row(pool)["host"]
        begins_again(pool, bag, lambda: pool.dcs("host", "drain", "--evict", host))
        pool.dcs("host", "undrain", host)
        wait_for("the bar to say so", lambda: bag.says(r"0/1  1 running  [0-9.]+ m?s CPU saved"), timeout=300)
        saved = row(pool)["saved_cpu_s"]
        assert pool.json("session", "show", "1")["session"]["saved_cpu_s"] == saved
        assert re.search(r"^saved +[0-9.]+ s of CPU time", pool.dcs("session", "show", "1").stdout.decode(), re.M)
        assert re.search(r"^cpu .*; checkpoints saved another [0-9.]+ s$", pool.dcs("grain", "show", "1:1").stdout.decode(), re.M)
        assert re.search(r" 0 +[0-9.]+ s  ", pool.dcs("top", "--once").stdout.decode(), re.M)
        pool.kill("scheduler", "scheduler")
        pool.up()
        assert row(pool)["saved_cpu_s"] == saved, (row(pool), saved)
        begins_again(pool, bag, lambda: kill_grain(pool))
        saved = row(pool)["saved_cpu_s"]
        open(gate, "w").close()
        wait_for("the end", lambda: pool.hurry() or bag.read() or bag.process.poll() is not None, timeout=300)
        assert bag.process.returncode == 0 and bag.says(r"done\r"), bag.seen
        assert row(pool)["state"] == "finished" and row(pool)["saved_cpu_s"] == saved, (row(pool), saved)
        print(f"saved {saved:.1f} s of CPU time, spent {row(pool)['cpu_s']:.1f} s")
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
