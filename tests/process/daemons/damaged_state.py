#!/usr/bin/python3
"""A real pool on a damaged disk: the scheduler starts, names what is damaged, serves the rest. And a session over which
the scheduler aborts twice is set aside, so that the third start serves the others."""
import json
import os
import random
import shutil
import subprocess

from pool import Pool, program, wait_for

SEED = int(os.environ.get("DCS_SEED", "1"))
BLOCK = 4096


def doctor(pool):
    result = pool.dcs("doctor", "-o", "json", check=False)
    assert result.returncode in (0, 1), result.stderr.decode()
    return result.returncode, json.loads(result.stdout)["problems"]


def outputs(pool, session, count):
    """What `dcs grain cat` gives for each grain, or None where it is an error."""
    texts = []
    for grain in range(1, count + 1):
        result = pool.dcs("grain", "cat", f"{session}:{grain}", check=False)
        texts.append(result.stdout.decode() if result.returncode == 0 else None)
    return texts


def test_damaged_files():
    """Each file of one session in turn loses a block or a bit; the other session goes on."""
    rng = random.Random(SEED)
    with Pool(servers=1, slots=2) as pool:
        pool.dcs("map", "--new", "--", "sh", "-c", "echo small {}; echo err {} >&2", data=b"1\n2\n3\n4\n")
        pool.dcs("map", "--new", "--", "sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x; echo {}", data=b"1\n2\n")
        right = {1: outputs(pool, 1, 4), 2: outputs(pool, 2, 2)}
        assert None not in right[1] + right[2]
        pool.stop_scheduler()
        state = os.path.join(pool.dir, "scheduler/state")
        copy = os.path.join(pool.base, "state")
        shutil.copytree(state, copy)
        files = []
        for where, _, names in os.walk(copy):
            files += [os.path.relpath(os.path.join(where, n), copy) for n in names
                      if n not in ("lock", "reserve") and not n.startswith("start-")]
        assert len(files) >= 9, files
        for name in sorted(files):
            zero = rng.random() < 0.5
            shutil.rmtree(state)
            shutil.copytree(copy, state)
            path = os.path.join(state, name)
            size = os.path.getsize(path)
            at = rng.randrange(size)
            with open(path, "r+b") as file:
                if zero:
                    at -= at % BLOCK
                    file.seek(at)
                    file.write(bytes(min(BLOCK, size - at)))
                else:
                    file.seek(at)
                    byte = file.read(1)[0]
                    file.seek(at)
                    file.write(bytes([byte ^ 0x10]))
            pool.up()
            owner = int(name.split("/")[2]) if name.startswith("sessions/") else None
            what = f"{name} {'zeroed' if zero else 'flipped'} at {at}"
            for session, texts in right.items():
                now = outputs(pool, session, len(texts))
                for before, after in zip(texts, now):
                    assert after in (before, None), f"{what}: wrong output served"
                if session != owner:
                    assert now == texts, f"{what}: session {session} suffers"
            if owner is not None:
                found = wait_for(f"the doctor to name {what}", lambda: [
                    p for p in doctor(pool)[1] if name in p["file"] or f"/{owner}" in p["entity"]])
                assert doctor(pool)[0] == 1 and found
            pool.stop_scheduler()
        print(f"{len(files)} files damaged one after the other: named, and the rest served")


def test_aborts():
    """A launch of session 1 makes the scheduler abort, at every start. Session 2 must be served all the same."""
    with Pool(servers=1, slots=2, test_builds=("dcs_scheduler",)) as pool:
        pool.dcs("map", "--new", "--session", "2", "--", "echo", data=b"before\n")
        pool.stop_scheduler()
        pool.env["DCS_FAILPOINTS"] = "turn.launch.before_send=abort@1"
        pool.up()
        client = subprocess.Popen([program("dcs"), "map", "--session", "1", "--new", "--", "echo"],
                                  env=dict(pool.env, DCS_PATIENCE_S="600"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        client.stdin.write(b"poison\n")
        client.stdin.close()
        for aborts in range(2):
            wait_for("the scheduler to abort", lambda: pool.pid("scheduler", "scheduler") is None)
            if aborts == 1:
                del pool.env["DCS_FAILPOINTS"]
            pool.up(check=False)
        problems = wait_for("the doctor", lambda: [p for p in doctor(pool)[1] if p["entity"].endswith("/1")])
        assert "aborted twice" in problems[0]["problem"], problems
        assert client.wait(timeout=300) != 0
        said = client.stderr.read().decode()
        assert "set aside" in said, said
        assert pool.dcs("map", "--session", "3", "--new", "--", "echo", data=b"after\n").stdout == b"after\n"
        assert pool.dcs("grain", "cat", "2:1").stdout == b"before\n"
        states = {s["session"]: s["state"] for s in pool.json("session", "ls")["sessions"]}
        assert states[1] == "damaged" and states[2] == "terminated", states
        # It stays so, until it is removed.
        pool.stop_scheduler()
        pool.up()
        assert [p for p in doctor(pool)[1] if p["entity"].endswith("/1")]
        pool.dcs("session", "clean", "1")
        wait_for("a healthy pool", lambda: doctor(pool)[0] == 0)
        print("a session that made the scheduler abort twice was set aside, the others were served")


if __name__ == "__main__":
    test_damaged_files()
    test_aborts()
