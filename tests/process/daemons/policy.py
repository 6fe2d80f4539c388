#!/usr/bin/python3
"""The scheduler's policy in a real pool of six servers with a host table of its own, as people and programs see it:
each fact through `dcs ... -o json` and through d_query. Usurpation, order of classes, urgent grains, missing programs,
failures counted, late and dead and returning hosts, drained and evicted hosts, restarts by command, limits."""
import json
import os
import re
import signal
import subprocess
import time

from hurry import Hurry
from pool import Pool, program, tells, wait_for

SLICE = 1.0
QUERY = os.path.join(os.path.dirname(os.path.dirname(program("dcs"))), "tests", "query")
# Each kind of scenario has hosts of its own, so that none of them waits for another.
CLASSES = {"local1": 0x1, "local2": 0x2, "local3": 0x4, "local4": 0x8, "local5": 0x10, "local6": 0x20}
TIMES = {"local6": (0.5, 4, 600)}  # late soon; dead soon in one scenario, which says so


class World:
    def __init__(self, pool):
        self.pool, self.failures = pool, 0
        table = "".join(f"{name} class={bit:#x} slots=1 interval={i} alert={a} limit={l} extended={l}\n"
                        for name, bit in CLASSES.items() for i, a, l in [TIMES.get(name, (SLICE, 600, 600))])
        with open(os.path.join(pool.dir, "scheduler", "hosts"), "w") as file:
            file.write(table)
        os.kill(pool.pid("scheduler", "scheduler"), signal.SIGHUP)
        wait_for("the host table", lambda: self.hosts(None)["local6"]["class"] == 0x20)

    def query(self, *arguments, check=True):
        result = subprocess.run([QUERY, *map(str, arguments)], env=self.pool.env, timeout=60, stdout=subprocess.PIPE)
        assert result.returncode == 0 or not check, f"query {arguments}"
        return json.loads(result.stdout) if result.stdout else None

    def submit(self, session, grain, classes, *command, attempts=1, urgent=0):
        self.query("submit", f"policy{session}", session, grain, classes, attempts, urgent, *command)

    def hosts(self, state):
        return {h["name"]: h for h in self.query("hosts", *([state] if state else []))}

    def grain(self, session, grain, expect, what):
        """Both rows of the grain, once they say what is expected; the command's is returned."""
        def seen():
            row = self.pool.json("grain", "show", f"{session}:{grain}")["grain"]
            return row if expect(row) and expect(self.query("grain", session, grain)) else None
        return self.wait(what, seen, f"{session}:{grain}")

    def host(self, name, expect, what):
        def seen():
            row = self.pool.json("host", "show", name)["host"]
            return row if expect(row) and expect(self.hosts(None)[name]) else None
        return self.wait(what, seen, None)

    def reasons(self, session, grain, expect, what):
        """Words of the reasons and the hosts that they name, by `dcs grain explain` and d_explain."""
        def words(answer):
            return {r["reason"]: r["names"] for r in answer["reasons"]}

        def seen():
            row = self.pool.json("grain", "explain", f"{session}:{grain}")
            assert row["schema"] == "dcs.grain.explain/1" and row["session"] == session and row["grain"] == grain
            return row if expect(words(row)) and expect(words(self.query("explain", session, grain))) else None
        return self.wait(what, seen, f"{session}:{grain}")

    def wait(self, what, seen, selector):
        try:
            return wait_for(what, seen, timeout=240)
        except AssertionError:
            if selector:
                print(self.pool.dcs("grain", "show", selector).stdout.decode())
                print(self.pool.dcs("grain", "explain", selector).stdout.decode())
            print(self.pool.dcs("host", "ls").stdout.decode())
            raise

    def gate(self, name):
        """A command that runs until the gate is opened."""
        path = os.path.join(self.pool.base, name)
        return path, ["/bin/sh", "-c", 'while [ ! -e "$0" ]; do sleep 0.05; done', path]

    def open(self, path):
        open(path, "w").close()

    def running(self, session, grain, host, what, incarnation=None):
        return self.grain(session, grain, lambda g: g["state"] == "running" and g["host"] == host and
                          incarnation in (None, g["incarnation"]), what)

    def stays(self, session, grain, state, what, seconds=2.5 * SLICE):
        """Over two slices it neither starts nor leaves."""
        before = self.pool.json("grain", "show", f"{session}:{grain}")["grain"]
        time.sleep(seconds)
        after = self.pool.json("grain", "show", f"{session}:{grain}")["grain"]
        before, after = ([row[k] for k in ("state", "host", "incarnation")] for row in (before, after))
        assert before == after and after[0] == state, f"{what}: {before} became {after}"


def last_move(g):
    return (g["moves"][-1]["reason"], g["moves"][-1]["host"]) if g["moves"] else None


def classes_and_usurpation(w):
    """Sessions 10 (older) and 20 on local2 and local3."""
    gate, loop = w.gate("ten")
    w.submit(10, 1, 0x1, "/bin/true")  # session 10 is the older one
    first, command = w.gate("twenty")
    w.submit(20, 1, 0x6, *command)
    w.running(20, 1, "local2", "the first grain on the host of the lowest class bit")
    w.submit(20, 2, 0x6, *command)
    w.running(20, 2, "local3", "the second grain on the host of the next class bit")
    w.submit(20, 3, 0x6, *command)
    row = w.reasons(20, 3, lambda r: len(r.get("busy", [])) == 2 and len(r.get("other_class", [])) == 4,
                    "a third one that finds both hosts busy and four of another class")
    assert row["state"] == "ready" and row["can_run"] and row["ahead"] == 0, row
    w.stays(20, 3, "ready", "a grain of the same session usurps nothing")

    w.submit(10, 2, 0x2, *loop)
    w.running(10, 2, "local2", "the older session's grain in the place of the younger one's", 1)
    w.grain(20, 1, lambda g: g["state"] == "ready" and last_move(g) == ("usurped", "local2") and g["failures"] == 0,
            "the usurped grain back in its queue, without a failure")
    w.reasons(20, 3, lambda r: "earlier_first" in r, "the usurped grain in front of its session's queue")
    w.stays(10, 2, "running", "a younger session's grains usurp nothing")
    w.open(gate)
    w.grain(10, 2, lambda g: g["state"] == "finished" and g["exit_code"] == 0, "the end of the older session's grain")
    w.running(20, 1, "local2", "the usurped grain before the others of its session", 2)
    w.grain(20, 3, lambda g: g["state"] == "ready" and g["incarnation"] == 0, "the other one still waiting")
    w.open(first)
    for number in (1, 2, 3):
        w.grain(20, number, lambda g: g["state"] == "finished" and g["exit_code"] == 0, "the end of all grains")


def urgent(w):
    gate, loop = w.gate("urgent-1")
    second, more = w.gate("urgent-2")
    w.submit(30, 1, 0x8, *loop)
    w.running(30, 1, "local4", "a grain that occupies local4")
    w.submit(30, 2, 0x8, *more)
    w.submit(30, 3, 0x8, *more, urgent=1)
    w.open(gate)
    w.running(30, 3, "local4", "the urgent grain first", 1)
    w.grain(30, 2, lambda g: g["state"] == "ready" and g["incarnation"] == 0, "the one that came before it still waiting")
    w.open(second)
    for number in (2, 3):
        w.grain(30, number, lambda g: g["state"] == "finished", "the end of both")


def missing_program(w):
    path = os.path.join(w.pool.base, "installed-later")
    w.submit(40, 1, 0x18, path)
    w.grain(40, 1, lambda g: sorted(g["nogo"]) == ["local4", "local5"] and g["state"] == "ready" and g["failures"] == 0,
            "both hosts avoided, and no failure counted")
    row = w.reasons(40, 1, lambda r: sorted(r.get("no_program", [])) == ["local4", "local5"],
                    "the missing program named as the reason")
    assert not row["can_run"], row
    w.pool.json("grain", "explain", "40:1")
    assert w.query("take", "policy40", 40)["error"] == "D_E_CANNOT_RUN"
    with open(path, "w") as file:
        file.write("#!/bin/sh\nexit 0\n")
    os.chmod(path, 0o755)
    w.stays(40, 1, "ready", "a host that is to be avoided is not tried again by itself")
    assert w.pool.json("host", "set", "local5", "--clear-nogo", "40:1")["host"]["name"] == "local5"
    row = w.grain(40, 1, lambda g: g["state"] == "finished" and g["host"] == "local5" and g["nogo"] == ["local4"],
                  "it runs where it may be tried again, and only there")
    assert row["exit_code"] == 0, row
    assert w.query("take", "policy40", 40) == {"error": "NO_ERROR", "grain": 1, "signal": 0, "code": 0}


def failures(w):
    """Fails everywhere: again on the same host, then elsewhere, then it is a result."""
    count = os.path.join(w.pool.base, "runs")
    w.submit(50, 1, 0x18, "/bin/sh", "-c", f"echo $PPID >>{count}; exit 3", attempts=3)
    row = w.grain(50, 1, lambda g: g["state"] == "finished" and g["failures"] == 3, "three failures as a result")
    moves = [(m["reason"], m["host"]) for m in row["moves"]]
    assert moves == [("failed", "local4"), ("failed", "local4")], moves
    assert row["host"] == "local5" and row["exit_code"] == 3 and row["nogo"] == ["local4"], row
    parents = open(count).read().split()
    assert len(parents) == 3 and parents[0] == parents[1] != parents[2], f"launchers that ran it: {parents}"
    assert w.query("take", "policy50", 50) == {"error": "NO_ERROR", "grain": 1, "signal": 0, "code": 3}
    for name, failed in (("local4", 2), ("local5", 1)):
        w.host(name, lambda h: h["state"] == "active", "a host that still serves")
        assert w.pool.json("host", "show", name)["host"]["failed"] == failed, name
    gate, loop = w.gate("signalled")
    w.submit(50, 2, 0x10, "/bin/sh", "-c", "kill -9 $$")
    w.grain(50, 2, lambda g: g["state"] == "finished" and g["signal"] == 9 and g["exit_code"] == 0, "a signal as a result")


def drained(w):
    gate, loop = w.gate("drained")
    w.submit(60, 1, 0x8, *loop)
    w.running(60, 1, "local4", "a grain on the host to be drained")
    assert w.pool.json("host", "drain", "local4")["host"]["drained"] is True
    w.submit(60, 2, 0x8, *loop)
    w.reasons(60, 2, lambda r: r.get("drained") == ["local4"], "the drained host as the reason")
    w.stays(60, 1, "running", "what runs on a drained host runs on")
    w.open(gate)
    w.grain(60, 1, lambda g: g["state"] == "finished" and g["exit_code"] == 0, "it ends by itself")
    os.unlink(gate)
    w.stays(60, 2, "ready", "nothing new starts on a drained host, though its slot is free")
    w.host("local4", lambda h: h["state"] == "active" and h["drained"] and h["running"] == 0, "a drained, idle host")
    row = w.pool.json("host", "undrain", "local4")["host"]
    assert row["drained"] is False and row["settings"] == "", row
    w.running(60, 2, "local4", "the waiting grain once the host accepts grains again", 1)

    w.pool.json("host", "set", "local4", "--class", "0x48")
    row = w.pool.json("host", "drain", "--evict", "local4")["host"]
    assert row["slots"] == 0 and row["drained"] is True, row
    w.grain(60, 2, lambda g: g["state"] == "ready" and last_move(g) == ("host_closed", "local4") and g["failures"] == 0,
            "the grain given back at once, without a failure")
    w.host("local4", lambda h: h["running"] == 0 and h["slots"] == 0, "an evicted host")
    row = w.pool.json("host", "undrain", "local4")["host"]
    assert row["slots"] == 1 and row["drained"] is False and row["settings"] == "class=72", row
    w.running(60, 2, "local4", "the evicted grain on the host that is back", 2)
    w.pool.json("host", "set", "local4", "--reset")
    w.host("local4", lambda h: h["class"] == 8 and h["settings"] == "", "the host as its table has it")

    w.submit(60, 3, 0x8, *loop)
    w.reasons(60, 3, lambda r: r.get("busy") == ["local4"], "one slot, and it is busy")
    w.pool.json("host", "set", "local4", "--slots", "2")
    w.running(60, 3, "local4", "a second slot, at once")
    refused = w.pool.dcs("host", "set", "local4", "--alert", "1000", check=False)
    assert refused.returncode == 2, refused
    assert w.pool.dcs("host", "drain", "nowhere", check=False).returncode == 3


def restarted(w):
    """Continues with the two grains of the drained host."""
    w.pool.json("grain", "restart", "60:2")
    w.grain(60, 2, lambda g: g["state"] == "running" and g["incarnation"] == 3 and last_move(g) == ("restarted", "local4"),
            "the restarted grain running again")
    row = w.pool.json("grain", "restart", "60:all")
    assert row == {"schema": "dcs.grain.restart/1", "restarted": ["60:2", "60:3"]}, row
    w.open(os.path.join(w.pool.base, "drained"))
    for number in (2, 3):
        w.grain(60, number, lambda g: g["state"] == "finished" and g["exit_code"] == 0, "their ends")
    refused = w.pool.dcs("grain", "restart", "60:2", check=False)
    assert refused.returncode == 4, refused
    assert w.pool.json("grain", "kill", "60:all")["killed"] == []


def late_and_dead(w):
    """local6 is stopped, once for a moment and once permanently as it seems; its grain may also run on local5. Only the
    server is stopped: the grain goes on. It computes until the file "burnt" is there, which is before the second copy
    starts, so that the older one has run longer on a machine of any load."""
    gate, burnt = os.path.join(w.pool.base, "late"), os.path.join(w.pool.base, "burnt")
    w.submit(70, 1, 0x30, "/bin/sh", "-c", 'while [ ! -e "$0" ]; do [ ! -e "$1" ] || sleep 0.1; done', gate, burnt)
    w.pool.json("host", "drain", "local5")
    w.pool.json("grain", "restart", "70:1")
    w.running(70, 1, "local6", "the grain on local6")
    start = w.pool.json("grain", "show", "70:1")["grain"]["incarnation"]
    w.pool.json("host", "undrain", "local5")
    pid = w.pool.pid("grainserver", "local6")
    os.kill(pid, signal.SIGSTOP)
    try:
        w.host("local6", lambda h: h["state"] == "delinquent", "a silent host that is late")
        assert list(w.hosts("delinquent")) == ["local6"] and "local6" not in w.hosts("active")
        assert sorted(w.hosts("active")) == ["local1", "local2", "local3", "local4", "local5"]
        os.kill(pid, signal.SIGCONT)
        w.host("local6", lambda h: h["state"] == "active", "forgiven as soon as it reports")
        w.running(70, 1, "local6", "its grain undisturbed", start)
        with Hurry(w.pool):
            w.wait("some processor time", lambda: w.pool.json("grain", "show", "70:1")["grain"]["run_cpu_s"] >= 0.5, "70:1")
        w.open(burnt)

        os.kill(pid, signal.SIGSTOP)
        w.pool.json("host", "set", "local6", "--limit", "6", "--extended", "6")
        w.host("local6", lambda h: h["state"] == "dead", "a host that is silent for its limit")
        assert w.hosts("delinquent") == {} and "local6" not in w.hosts("active")
        w.grain(70, 1, lambda g: g["state"] == "running" and g["host"] == "local5" and g["incarnation"] == start + 1 and
                last_move(g) == ("host_dead", "local6"), "its grain moved to another host")
        wait_for("two copies: the host only seems to be dead", lambda: len(copies(w)) == 2, timeout=240)
    finally:
        os.kill(pid, signal.SIGCONT)
        w.pool.json("host", "set", "local6", "--reset")
    w.host("local6", lambda h: h["state"] == "active" and h["connected"], "the host that returned")
    w.grain(70, 1, lambda g: g["state"] == "running" and g["host"] == "local6" and last_move(g) == ("longer_copy", "local5"),
            "the older copy, which has run longer, as the one that counts again")
    wait_for("one copy of the grain", lambda: [p[0] for p in copies(w)] == ["local6"], timeout=240)
    w.open(gate)
    w.grain(70, 1, lambda g: g["state"] == "finished" and g["exit_code"] == 0 and g["failures"] == 0,
            "its end, once, and no failure of it")
    assert not copies(w)
    assert w.query("take", "policy70", 70) == {"error": "NO_ERROR", "grain": 1, "signal": 0, "code": 0}


def copies(w):
    return [p for host in ("local5", "local6") for p in w.pool.grain_processes(host)]


def limits(w):
    over = w.pool.dcs("run", "--class", "0x1", "--wall", "1", "--", "sleep", "60", check=False)
    assert over.returncode == 128 + signal.SIGXCPU, over
    assert tells(over.stderr, "dcs: ended on") and tells(over.stderr, "ran longer 1 s"), over
    never = w.pool.dcs("run", "--class", "0x1", "--cores", "64", "-o", "json", "--", "true", check=False)
    assert never.returncode == 126 and json.loads(never.stderr)["error"]["code"] == "cannot_run", never


def settings_outlive(w):
    w.pool.json("host", "set", "local1", "--slots", "3")
    w.pool.kill("scheduler", "scheduler")
    w.pool.up()
    row = w.host("local1", lambda h: h["slots"] == 3 and h["settings"] == "slots=3", "what was set, after a kill -9")
    assert row["name"] == "local1"


def operated(w):
    """dcs reload takes the host table whole or not at all; dcs log-level is felt at once."""
    table = os.path.join(w.pool.dir, "scheduler/hosts")
    good = open(table).read()
    open(table, "a").write("local7 slots=many\n")
    broken = w.pool.dcs("reload", check=False)
    assert broken.returncode == 1 and b"the old settings remain" in broken.stderr and b"slots" in broken.stderr, broken
    assert len(w.pool.json("host", "ls")["hosts"]) == 6
    open(table, "w").write(good + "local7 class=0x80 slots=2\n")
    w.pool.dcs("reload")
    w.host("local7", lambda h: h["state"] == "unknown" and h["slots"] == 2, "a new line of the host table")
    open(table, "w").write(good)
    w.pool.dcs("reload")
    assert len(w.pool.json("host", "ls")["hosts"]) == 6
    log = open(os.path.join(w.pool.dir, "scheduler/log")).read()
    assert re.findall("audit: the host table was reread: (.*)", log)[-2:] == ["added local7", "removed local7"], log[-2000:]
    rules = os.path.join(w.pool.dir, "scheduler/policy")
    before = open(rules).read() if os.path.exists(rules) else ""
    for text in (before + "stored_mb_per_user  5000 # for a while\n", before):
        open(rules, "w").write(text)
        w.pool.dcs("reload")
    log = open(os.path.join(w.pool.dir, "scheduler/log")).read()
    said = re.findall("audit: policy and limits were reread: (.*)", log)[-2:]
    assert said == ["added `stored_mb_per_user 5000`", "removed `stored_mb_per_user 5000`"], log[-2000:]
    # A host that runs a grain leaves on purpose only.
    number = w.pool.dcs("run", "--detach", "--", "sleep", "1000").stdout.decode().strip()
    host = w.grain(number, 1, lambda g: g["state"] == "running", "a grain that runs somewhere")["host"]
    without = "".join(line for line in good.splitlines(True) if not line.startswith(host + " "))
    assert without != good
    open(table, "w").write(without)
    said = w.pool.dcs("reload", check=False)
    assert said.returncode == 4 and tells(said.stderr, f"old settings remain no longer lists {host} (1) dcs reload --move-grains"), said
    assert len(w.pool.json("host", "ls")["hosts"]) == 6
    assert tells(w.pool.dcs("reload", "--move-grains").stderr, f"left the pool {host}"), "it leaves now"
    w.pool.dcs("session", "close", number)
    open(table, "w").write(good)
    w.pool.dcs("reload")
    w.host(host, lambda h: h["state"] == "active", "the host again")
    # What a mistake in the policy would remove is counted, and stays for a day.
    def warned():
        open(rules, "w").write(before)
        w.pool.dcs("reload")
        open(rules, "w").write(before + "session_age 1m\n")
        return tells(w.pool.dcs("reload").stderr, "warning: policy session_age removes closed session 24 h correct the policy")
    wait_for("a closed session to be a minute old", warned, timeout=200, step=2)
    said = w.pool.dcs("doctor", check=False)
    assert said.returncode == 1 and tells(said.stdout, "policy session_age: removes closed session 24 h"), said
    open(rules, "w").write(before)
    w.pool.dcs("reload")
    assert b"session_age" not in w.pool.dcs("doctor", check=False).stdout
    for name, arguments in (("scheduler/log", ()), ("servers/local1/log", ("local1",))):
        size = os.path.getsize(os.path.join(w.pool.dir, name))
        w.pool.dcs("log-level", "debug", *arguments)
        w.pool.dcs("run", "--class", "0x1", "--", "true")
        wait_for(f"more in {name}", lambda: b" debug: " in open(os.path.join(w.pool.dir, name), "rb").read()[size:])
        w.pool.dcs("log-level", "off", *arguments)
    for words, hint in ((("loud",), "dcs log-level debug"), (("local1", "debug"), "dcs log-level debug local1"),
                        (("scheduler", "debug"), "dcs log-level debug")):
        said = w.pool.dcs("log-level", *words, check=False)
        assert said.returncode == 2 and tells(said.stderr, f"{words[0]} is not a log level") and tells(said.stderr, "hint: " + hint), said
    patient = dict(w.pool.env, DCS_PATIENCE_S="abc")
    said = subprocess.run([program("dcs"), "host", "ls"], env=patient, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, timeout=300)
    assert said.returncode == 0 and tells(said.stderr, "warning: DCS_PATIENCE_S abc not number of seconds no effect"), said


def main():
    scenarios = (classes_and_usurpation, urgent, missing_program, failures, drained, restarted, late_and_dead, limits,
                 settings_outlive, operated)
    with Pool(6, 1, SLICE, patient=False) as pool:
        world = World(pool)
        old = pool.dcs("run", "--detach", "--class", "0x1", "--", "true").stdout.decode().strip()
        pool.dcs("session", "wait", old)
        pool.dcs("session", "close", old)  # `operated` needs a session that was closed a minute ago
        for scenario in scenarios:
            begin = time.monotonic()
            scenario(world)
            print(f"{scenario.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
    print(f"{len(scenarios)} passed, 0 failed")


if __name__ == "__main__":
    main()
