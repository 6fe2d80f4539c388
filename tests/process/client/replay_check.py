#!/usr/bin/python3
"""dcs replay-check: a program that decides by results is held against its record, without hosts and without a change to
the pool. One that repeats it passes, whole or killed in the middle, from the pool or from an export; each that
departs learns where, with both values; and what is not asked right is reported, too."""
import json
import os
import signal
import subprocess
import sys

from pool import ROOT, Pool, program, start_time, tells, wait_for

DECIDE = os.path.join(os.path.dirname(program("dcs")), "../tests/decide")


def check(pool, records, *command, form="json", code=None):
    words = [*map(str, records), "--", DECIDE, *map(str, command)]
    result = pool.dcs("replay-check", "-o", form, *words, check=False)
    if code is not None:
        assert result.returncode == code, (words, result.returncode, result.stdout, result.stderr)
    if form != "json":
        return result.stdout.decode()
    return json.loads(result.stdout)["replay"], result.stderr.decode()


def run(pool, *words):
    return pool.start([DECIDE, *map(str, words)], stdout=subprocess.PIPE).communicate(timeout=300)[0].decode()


def repeats(pool):
    whole = run(pool, 1, "same")
    assert len(whole.split("\n")) == 9
    replay, output = check(pool, [1], 1, "same", code=0)
    assert output == whole, "the program saw the same results in the same order"
    assert replay["same"] and replay["departure"] is None and replay["exit_code"] == 0
    assert replay["sessions"] == [{"session": 1, "ident": "decide", "grains": 8, "repeated": 8, "handed_out": 8, "taken": 8,
                                   "past_end": False}], replay
    assert check(pool, ["last"], 1, "same", form="name", code=0) == "same\n"
    text = check(pool, [1], 1, "same", form="table", code=0)
    assert tells(text, "session 1 decide 8 8 grains submitted recorded 8 8 results taken"), text
    assert text.endswith("the program repeats its record (exit code 0)\n") and whole in text, "its output passes through"
    return whole


def departs(pool):
    for how, words in (("argument", [":3 was submitted with other", 'argv[1]: recorded "grain3", now "other3"']), ("early", ["grain 9"]),
                       ("less", ["it ended without submitting grain 4"]),
                       ("none", ["without submitting grain 1, 2, 3, 4, 11, ... (8 in all) and taking result 1 of 8 that"]), ("reset", ["closed", "sent_reset"])):
        replay, _ = check(pool, [1], 1, how, code=1)
        assert not replay["same"] and replay["departure"]["session"] == 1, replay
        for word in words:
            assert word in replay["departure"]["what"], (how, replay)
    replay, _ = check(pool, [1], 1, "same", 3, code=1)  # ends before the fourth result decides
    assert "grain 1" in replay["departure"]["what"] and replay["exit_code"] == 3, replay
    assert replay["failed"] and check(pool, [1], 1, "same", 3, form="name", code=1) == "failed\n", replay
    assert tells(check(pool, [1], 1, "same", 3, form="table", code=1), "program failed before end record session 1 exit code 3")
    replay, _ = check(pool, [1], 2, "same", code=1)
    assert replay["departure"]["session"] == 2 and "is not recorded here" in replay["departure"]["what"], replay
    assert check(pool, [1], 1, "argument", form="name", code=1) == "departs\n"
    assert tells(check(pool, [1], 1, "argument", form="table", code=1), "departs record session 1")


def middle(pool, whole):
    """Killed after two results had decided: what it did not do yet is no part of the record."""
    run(pool, 3, "same", 2)
    wait_for("what it began to end", lambda: pool.json("session", "show", "3")["session"]["running"] == 0, timeout=120)
    before = pool.json("session", "show", "3")
    replay, output = check(pool, [3], 3, "same", code=0)
    assert replay["same"] and replay["sessions"][0]["past_end"] and replay["exit_code"] == 1, replay
    assert output.split("\n")[:3] != [""] and "D_E_REPLAY_END" in output or "REPLAY_END" in output, output
    assert pool.json("session", "show", "3") == before, "the pool is as it was"
    assert sorted(run(pool, 3, "same").split("\n")) == sorted(whole.split("\n")), "and the program goes on for real"


TAKES = """
import dcs, itertools, sys
with dcs.Session("takes", 9) as session:
    session.submit_many([(n, dcs.Grain(["/bin/true"])) for n in range(6)])
    for result in itertools.islice(session.results(batch=int(sys.argv[1])), 2):
        pass
    raise SystemExit(7)
"""


def more_had_ended(pool):
    """An exception left the loop over the results; a rerun whose batch is larger takes what had ended by then, too."""
    takes = [sys.executable, "-B", "-c", TAKES]
    pool.env["PYTHONPATH"] = os.path.join(ROOT, "libdcs/python")
    assert pool.start([*takes, "1"]).wait(timeout=300) == 7
    wait_for("the others", lambda: pool.json("session", "show", "9")["session"]["finished"] == 6)
    said = pool.dcs("replay-check", "-o", "json", "9", "--", *takes, "6")
    (row,) = json.loads(said.stdout)["replay"]["sessions"]
    assert row["taken"] == row["handed_out"] < 6 and row["past_end"], row


def exported(pool):
    directory = os.path.join(pool.base, "exported")
    pool.dcs("session", "export", "1", directory)
    replay, _ = check(pool, [directory, "3"], 1, "same", code=1)
    assert replay["departure"]["session"] == 3 and "without opening" in replay["departure"]["what"], replay
    pool.down()
    assert check(pool, [directory], 1, "same", code=0)[0]["same"], "an export needs no pool"


def asked_to_end(pool):
    """Its scheduler, its directory and the program go with it."""
    place = os.path.join(pool.base, "temporary")
    os.mkdir(place)
    marker = os.path.join(pool.base, "started")
    for number in (signal.SIGTERM, signal.SIGHUP):
        check = subprocess.Popen([program("dcs"), "replay-check", "1", "--", "sh", "-c", f"echo $$ >{marker}; exec sleep 1000"],
                                 env=dict(pool.env, TMPDIR=place), stdout=subprocess.DEVNULL)
        wait_for("the program", lambda: os.path.exists(marker) and open(marker).read().endswith("\n"))
        child = int(open(marker).read())
        os.unlink(marker)
        check.send_signal(number)
        assert check.wait(timeout=300) == -number, check.returncode
        assert os.listdir(place) == [] and start_time(child) is None, (os.listdir(place), child)


def wrong(pool):
    for words, code, hint in ((["replay-check"], 2, "is missing"), (["replay-check", "1"], 2, "PROGRAM is missing"),
                              (["replay-check", "99", "--", "true"], 3, "99")):
        result = pool.dcs(*words, check=False)
        assert result.returncode == code and hint in result.stderr.decode(), (words, result)
    result = pool.dcs("replay-check", "1", "--", "/no/such/program", check=False)
    assert result.returncode == 1 and "/no/such/program" in result.stderr.decode(), result


def main():
    before = set(os.listdir("/tmp"))
    with Pool(1, 4, 1.0) as pool:
        whole = repeats(pool)
        departs(pool)
        middle(pool, whole)
        more_had_ended(pool)
        asked_to_end(pool)
        wrong(pool)
        exported(pool)
    left = [name for name in set(os.listdir("/tmp")) - before if name.startswith("dcs-replay-")]
    assert not left, left
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
