#!/usr/bin/python3
"""The scheduler is killed and stays away for six call-in intervals: grains go on, the backup takes their reports,
nothing restarts from zero when it returns, and the outputs are complete."""
import os
import time

from hurry import Hurry
from pool import Pool, process_cpu, program, wait_for

STEPS = os.path.join(os.path.dirname(program("dcs")), "../tests/steps")


def main():
    interval = 1.0
    with Pool(2, 1, interval) as pool, Hurry(pool):
        runs = []
        for _ in range(2):
            path = os.path.join(pool.base, f"input{len(runs)}")
            with open(path, "w") as file:
                file.write("1 400 40\n")  # 16 s of CPU
            out = open(os.path.join(pool.base, f"out{len(runs)}"), "w+")
            runs.append((pool.start([program("dcs"), "run", "--", STEPS], stdin=open(path), stdout=out), out))
        wait_for("two running grains with a checkpoint", lambda: sum(
            r["state"] == "running" and r["checkpoint_length"] > 0 for s in pool.json("session", "ls")["sessions"]
            for r in pool.grains(s["session"])) == 2)
        before = {(e, pid, start): process_cpu(pid, start) for _, e, pid, start in pool.grain_processes()}
        assert len(before) == 2, before
        pool.kill("scheduler", "scheduler")
        time.sleep(6 * interval)
        for (entry, pid, start), cpu in before.items():
            now = process_cpu(pid, start)
            assert now is not None and now > cpu, f"grain {entry} did not go on while the scheduler was away"
        held = wait_for("reports with the backup", lambda: pool.json("backup", "status")["reports"])
        pool.up()
        wait_for("the backup to hand over", lambda: pool.json("backup", "status")["reports"] == 0)
        assert pool.json("backup", "status")["handed_over"] >= held
        for process, out in runs:
            assert process.wait(timeout=300) == 0
            out.seek(0)
            text = out.read()
            assert text == "".join(f"step {i}\n" for i in range(1, 401)), f"output differs: {text[:200]!r}"
        for (entry, pid, start) in before:
            # the directory name ends in the incarnation: both stayed the first one to the end
            assert entry.endswith(",1"), entry
        logs = open(os.path.join(pool.dir, "scheduler/log")).read()
        assert ",2" not in "".join(os.listdir(os.path.join(pool.dir, "servers/local1/grains"))), logs
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
