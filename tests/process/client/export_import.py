#!/usr/bin/python3
"""Sessions out and in again: edited by hand, moved to another pool, and killed in the middle of it."""
import json
import os
import signal
import subprocess
import time

from pool import FULL, ROOT, Pool, program, seeded, wait_for

TESTS = os.path.join(os.path.dirname(program("dcs")), "../tests")
USAGE = dict.fromkeys(("user_us", "system_us", "max_rss_kb", "minor_faults", "major_faults", "in_blocks", "out_blocks"), 0)


def read_grains(directory):
    return [json.loads(line) for line in open(os.path.join(directory, "grains"))]


def write_grains(directory, grains):
    with open(os.path.join(directory, "grains"), "w") as file:
        file.writelines(json.dumps(g) + "\n" for g in grains)
    path = os.path.join(directory, "session")
    lines = [line for line in open(path) if not line.startswith("grains: ")]
    open(path, "w").writelines(lines + [f"grains: {len(grains)}\n"])


def control(pool, name, *arguments):
    return subprocess.run([os.path.join(TESTS, name), *map(str, arguments)], env=pool.env, capture_output=True, timeout=300)


def outputs(result):
    """{grain: output} of a run of `reopen`."""
    assert result.returncode == 0, result.stderr.decode()
    found = {}
    for line in result.stdout.decode().splitlines(keepends=True):
        if line.startswith("grain "):
            number, code = int(line.split()[1]), int(line.split()[3])
            assert code == 0, line
            found[number] = ""
        else:
            found[number] += line
    return found


def session_state(pool, number):
    for row in pool.json("session", "ls")["sessions"]:
        if row["session"] == number:
            return row["state"]
    return None


def half_done(pool, number):
    """A closed session: one `steps` grain with a checkpoint, and ready grains behind it."""
    steps = os.path.join(TESTS, "steps")
    first = pool.start([program("dcs"), "run", "--", steps], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    first.stdin.write(b"1 400 30\n")
    first.stdin.close()

    def checkpointed():
        for row in pool.json("session", "ls")["sessions"]:
            for g in pool.grains(row["session"]):
                if g["state"] == "running" and g["checkpoint_length"] > 0:
                    return row
        return None
    row = wait_for("a grain with a checkpoint", checkpointed)
    first.send_signal(signal.SIGKILL)
    first.wait()
    pool.dcs("session", "close", str(row["session"]))
    return row["session"]


def edited(pool):
    """Exported, edited by hand (a program, a checkpoint, a new grain), put in its own place, reopened, finished."""
    number = half_done(pool, 1)
    directory = os.path.join(pool.base, "edited")
    pool.dcs("session", "export", str(number), directory)
    grains = read_grains(directory)
    assert grains[0]["state"] == "ready" and grains[0]["input_position"] > 0, grains[0]
    step, last, milliseconds = grains[0]["checkpoint"].split()
    assert grains[0]["out"] == "".join(f"step {i}\n" for i in range(1, int(step))), grains[0]["out"]
    grains[0]["checkpoint"] = f"{step} {int(step) + 2} 1\n"
    fresh = dict(grains[0], grain=grains[0]["grain"] + 5, argv=["/bin/cat"], input="typed by hand\n", input_position=0,
                 checkpoint="", message="", out="", err="", queue=None, sequence=0)
    write_grains(directory, grains + [fresh])
    refused = pool.dcs("session", "import", directory, check=False)
    assert refused.returncode == 1 and b"--replace" in refused.stderr, refused.stderr
    pool.dcs("session", "import", directory, "--replace")
    ident = next(r for r in pool.json("session", "ls")["sessions"] if r["session"] == number)["ident"]
    found = outputs(control(pool, "reopen", number, ident))
    assert found[grains[0]["grain"]] == "".join(f"step {i}\n" for i in range(1, int(step) + 3)), found
    assert found[fresh["grain"]] == "typed by hand\n", found
    pool.dcs("session", "clean", str(number), "--yes")


def broken(pool):
    number = half_done(pool, 1)
    directory = os.path.join(pool.base, "broken")
    pool.dcs("session", "export", str(number), directory)
    again = pool.dcs("session", "export", str(number), directory, check=False)
    assert again.returncode == 4 and b"not an empty directory" in again.stderr, again.stderr
    grains = read_grains(directory)
    write_grains(directory, grains + [dict(grains[0], grain=grains[0]["grain"] + 1, attempts="three")])
    result = pool.dcs("session", "import", directory, "--number", "99", check=False)
    assert result.returncode == 1 and b'grains:2: "attempts" is a string, but it must be a number' in result.stderr, result.stderr
    assert session_state(pool, 99) is None
    lost = pool.dcs("session", "import", os.path.join(pool.base, "nowhere"), check=False)
    assert lost.returncode == 3, lost.stderr
    pool.dcs("session", "clean", str(number), "--yes")


def moved(pool):
    """To another pool, with results that were there already."""
    ready = control(pool, "fill", 40, 0, 20, 10, "/usr/bin/wc")
    assert ready.returncode == 0, ready.stderr
    done = control(pool, "fill", 40, "wait", 20)
    assert done.returncode == 0, done.stderr
    pool.dcs("session", "close", "40")
    directory = os.path.join(pool.base, "moved")
    pool.dcs("session", "export", "40", directory, "--files")
    assert os.path.exists(os.path.join(directory, "files/7.out"))
    with Pool(1, 1, 1.0) as other:
        other.dcs("session", "import", directory)
        back = os.path.join(other.base, "back")
        other.dcs("session", "export", "40", back, "--files")
        for name in ("session", "grains"):
            here, there = (open(os.path.join(d, name)).read() for d in (directory, back))
            # Which hosts a pool has is its own affair.
            assert here.replace('"local2"', '""') == there.replace('"local2"', '""'), name
        found = outputs(control(other, "reopen", 40, "fill"))
        assert sorted(found) == list(range(20)) and all(len(text.split()) == 3 for text in found.values()), found
    pool.dcs("session", "clean", "40", "--yes")


def made_export(directory, number, count, program_path):
    os.mkdir(directory)
    with open(os.path.join(directory, "session"), "w") as file:
        file.write(f"dcs session export 1\nuser: x\nnumber: {number}\nident: fill\nstate: terminated\nresults: 0\n"
                   f"acknowledged: 0\nhanded out: 0\ngrains: {count}\n")
    with open(os.path.join(directory, "grains"), "w") as file:
        for i in range(count):
            file.write(json.dumps(dict(
                grain=i, state="ready", argv=[program_path], env=[], directory="", label="", thrash=0, urgent=False, notice=0,
                attempts=3, cores=0, memory_mb=0, wall_s=0, failures=0, incarnation=0, sequence=0, queue=i, result=None, exit_code=0, signal=0, host="",
                nogo=[], usage=USAGE, input_position=0, input=f"{i}\n", checkpoint="", message="", out="", err="",
                **{"class": 0})) + "\n")


def argv_of(pool, number):
    """argv[0] of the first and the last grain, from the scheduler; None if there is no such session."""
    if session_state(pool, number) is None:
        return None
    rows = pool.grains(number)
    return len(rows), *(pool.json("grain", "show", f"{number}:{g}")["grain"]["argv"][0] for g in (0, len(rows) - 1))


def kills(pool, random):
    """kill -9 of the scheduler, and of the importing client, at any moment: the old session or the new one, whole."""
    count = 100000 if FULL else 30000
    for which in ("old", "new"):
        made_export(os.path.join(pool.base, which), 50, count, f"/bin/{which}")
    old, new = (count, "/bin/old", "/bin/old"), (count, "/bin/new", "/bin/new")
    start = time.monotonic()
    pool.dcs("session", "import", os.path.join(pool.base, "old"))
    needed = time.monotonic() - start
    assert argv_of(pool, 50) == old
    seen = {"scheduler": [0, 0], "client": [0, 0]}
    hits = {"scheduler": 0, "client": 0}  # kills that met an import that was not over
    for turn in range(200):
        victim = min(hits, key=hits.get)
        if hits[victim] >= (10 if FULL else 4):
            break
        client = pool.start([program("dcs"), "session", "import", os.path.join(pool.base, "new"), "--replace"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(random.random() * needed)
        hits[victim] += client.poll() is None
        if victim == "client":
            client.kill()
        else:
            pool.kill("scheduler", "scheduler")
            pool.up()
        error = client.communicate(timeout=300)[1].decode()
        what = argv_of(pool, 50)
        assert what in (old, new), f"after the kill of the {victim}: {what}"
        if victim == "scheduler":  # the client begins again by itself
            assert client.returncode == 0 and what == new, error
        seen[victim][what == new] += 1
        if what == new:
            pool.dcs("session", "import", os.path.join(pool.base, "old"), "--replace")
        assert pool.json("doctor", check=False)["problems"] is not None
    print(f"kills in mid-import: {hits}; after all of them (old, new): {seen}")
    assert min(hits.values()) >= 4, hits
    pool.dcs("session", "clean", "50", "--yes")


def flip_while_stopped(pool, path):
    """A clean stop syncs everything into its place; what is damaged then stays damaged."""
    os.kill(pool.pid("scheduler", "scheduler"), signal.SIGTERM)
    wait_for("the scheduler's end", lambda: pool.pid("scheduler", "scheduler") is None)
    data = bytearray(open(path, "rb").read())
    data[30] ^= 0x40
    open(path, "wb").write(data)


def damaged(pool):
    """A session that was set aside is named by doctor and ls, and can be removed."""
    assert control(pool, "fill", 60, 0, 3, 10, "/usr/bin/wc").returncode == 0
    assert control(pool, "fill", 60, "wait", 3).returncode == 0
    pool.dcs("session", "close", "60")
    user = pool.json("session", "ls")["sessions"][0]["user"]
    path = os.path.join(pool.dir, "scheduler/state/sessions", user, "60/grains")
    wait_for("the session's files", lambda: os.path.exists(path))
    pool.dcs("session", "export", "60", os.path.join(pool.base, "saved"))
    flip_while_stopped(pool, path)
    down = pool.dcs("doctor", check=False)
    assert down.returncode == 5 and b"dcs up" in down.stderr, down.stderr
    pool.up()
    assert session_state(pool, 60) == "damaged"
    sick = pool.dcs("doctor", "-o", "json", check=False)
    assert sick.returncode == 1, sick.stdout
    problem = next(p for p in json.loads(sick.stdout)["problems"] if p["entity"].startswith("session"))
    assert problem["file"].endswith("60/grains") and "dcs session clean" in problem["advice"], problem
    pool.dcs("session", "import", os.path.join(pool.base, "saved"), "--replace")
    assert session_state(pool, 60) == "terminated"
    flip_while_stopped(pool, path)
    pool.up()
    assert session_state(pool, 60) == "damaged"
    assert b"was damaged" in pool.dcs("session", "clean", "60", "--yes").stdout
    assert session_state(pool, 60) is None
    wait_for("a doctor without a complaint", lambda: pool.dcs("doctor", check=False).returncode == 0)


def document():
    """The listing in docs/SESSION_EXPORT.md is one that the programs take."""
    text = open(os.path.join(ROOT, "docs/SESSION_EXPORT.md")).read()
    blocks = text.split("```")[1::2]
    head = next(b for b in blocks if b.startswith("\ndcs session export 1")).lstrip("\n")
    lines = next(b for b in blocks if b.startswith('\n{"grain"')).strip().replace("\n ", "")
    with Pool(1, 1, 1.0) as pool:
        directory = os.path.join(pool.base, "document")
        os.makedirs(os.path.join(directory, "files"))
        open(os.path.join(directory, "session"), "w").write(head)
        open(os.path.join(directory, "grains"), "w").write(lines + "\n")
        open(os.path.join(directory, "files/2.out"), "wb").write(bytes(range(8)))
        pool.dcs("session", "import", directory)
        back = os.path.join(pool.base, "back")
        pool.dcs("session", "export", "7", back)
        user = pool.json("session", "ls")["sessions"][0]["user"]
        assert open(os.path.join(back, "session")).read() == head.replace("user: ann", "user: " + user)
        assert open(os.path.join(back, "grains")).read() == lines + "\n"
        assert open(os.path.join(back, "files/2.out"), "rb").read() == bytes(range(8))


def main():
    random = seeded()
    with Pool(2, 1, 1.0) as pool:
        for part in (edited, broken, moved, damaged):
            part(pool)
            print(part.__name__, "ok", flush=True)
        kills(pool, random)
        print("kills ok", flush=True)
    document()
    print("6 passed, 0 failed")


if __name__ == "__main__":
    main()
