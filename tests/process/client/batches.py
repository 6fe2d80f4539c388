#!/usr/bin/python3
"""Batch calls on 2 servers x 2 slots: a control program that is killed by -9 in mid-batch, as is the scheduler, and run again with
batches of other sizes, gets every result once, in one order that never changes; and every error that a pool gives."""
import os
import time

from pool import FULL, Pool, program, seeded

BATCHES = os.path.join(os.path.dirname(program("dcs")), "../tests/batches")
COUNT = 200


def lines_of(path):
    """Whole lines only: a killed program may have left half of one."""
    return [line.split(" ") for line in open(path).read().split("\n")[:-1]]


def kill_storm(pool, rng, session):
    order = {}
    kills = {"program": 0, "scheduler": 0}
    for attempt in range(1000):
        path = os.path.join(pool.base, f"out{session}.{attempt}")
        with open(path, "w") as out:
            process = pool.start([BATCHES, "run", str(session), str(COUNT), str(attempt)], stdout=out)
        while sum(kills.values()) < (60 if FULL else 8) and process.poll() is None:
            time.sleep(rng.random() * 0.15)
            what = rng.choice(list(kills))
            kills[what] += 1
            if what == "program":
                process.kill()
                break
            pool.kill("scheduler", "scheduler")
            pool.up()
        code = process.wait(timeout=600)
        assert code in (0, -9), f"run {attempt} ended with {code}"
        for index, grain, exit_code, output in lines_of(path):
            assert exit_code == "0" and output == grain, (index, grain, exit_code, output)
            assert order.setdefault(int(index), int(grain)) == int(grain), f"result {index} was another grain's before"
        if code == 0:
            break
    last = lines_of(path)
    assert [int(line[0]) for line in last] == list(range(COUNT)), "the last run has not all results in their order"
    assert sorted(int(line[1]) for line in last) == list(range(COUNT)), "not every grain has one result"
    return kills


def main():
    rng = seeded(5)
    with Pool(2, 2, 1.0) as pool:
        out = os.path.join(pool.base, "errors")
        with open(out, "w") as file:
            assert pool.start([BATCHES, "errors", "9"], stdout=file).wait(timeout=300) == 0
        assert open(out).read() == "every error came\n"
        kills = kill_storm(pool, rng, 1)
        print(f"killed and run again: {kills}")
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
