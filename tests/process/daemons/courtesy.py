#!/usr/bin/python3
"""A host's owner comes first, with real daemons: a grain that fills a small control group is given back before the
kernel kills any process and goes on elsewhere; grains that an owner's work leaves no processor are given back and their
hosts take none until it is calm again; children that begin sessions of their own keep the lowest weight."""
import json
import os
import signal
import subprocess
import sys
import time

from pool import Pool, lock_holder, process_cpu, program, start_time, wait_for

QUERY = os.path.join(os.path.dirname(os.path.dirname(program("dcs"))), "tests", "query")
HUNGRY = os.path.join(os.path.dirname(QUERY), "hungry")
LIMIT = 256 << 20  # so large that what is left when it is short of memory gives time for a checkpoint
MB = 1 << 20
skipped = []


def skip(what, why):
    skipped.append(what)
    print(f"SKIPPED: {what}: {why}", flush=True)


def numbers(path):
    return {name: int(value) for name, value in (line.split()[:2] for line in open(path) if len(line.split()) > 1)}


class Group:
    """A memory control group of the test's own, v1 or v2."""

    def __init__(self):
        self.path, self.second = None, False
        lines = [line.strip().split(":", 2) for line in open("/proc/self/cgroup")]
        for _, controllers, path in lines:
            for second, root in ((False, "/sys/fs/cgroup/memory"), (True, "/sys/fs/cgroup")):
                if (controllers == "") != second or (not second and "memory" not in controllers.split(",")):
                    continue
                try:
                    folder = f"{root}{path.rstrip('/')}/dcs-test-{os.getpid()}"
                    os.mkdir(folder)
                    self.path, self.second = folder, second
                    self.write("memory.max" if second else "memory.limit_in_bytes", LIMIT)
                    return
                except OSError as error:
                    self.why = str(error)
                    self.remove()

    def write(self, name, value):
        with open(os.path.join(self.path, name), "w") as file:
            file.write(str(value))

    def used(self):
        usage = int(open(os.path.join(self.path, "memory.current" if self.second else "memory.usage_in_bytes")).read())
        stat = numbers(os.path.join(self.path, "memory.stat"))
        return usage - sum(stat.get(prefix + "active_file", 0) for prefix in (["", "in"] if self.second
                                                                             else ["total_", "total_in"]))

    def kills(self):
        name = "memory.events" if self.second else "memory.oom_control"
        return numbers(os.path.join(self.path, name)).get("oom_kill", 0)

    def enter(self):
        self.write("cgroup.procs", os.getpid())

    def remove(self):
        if self.path and os.path.isdir(self.path):
            wait_for("the control group to empty", lambda: not open(f"{self.path}/cgroup.procs").read(), timeout=120)
            os.rmdir(self.path)
        self.path = None


class World:
    def __init__(self, pool):
        self.pool = pool

    def query(self, *arguments):
        return json.loads(subprocess.run([QUERY, *map(str, arguments)], env=self.pool.env, timeout=300, check=True,
                                         stdout=subprocess.PIPE).stdout)

    def submit(self, session, grain, *command):
        subprocess.run([QUERY, "submit", f"courtesy{session}", str(session), str(grain), "0", "1", "0", *command],
                       env=self.pool.env, timeout=300, check=True)

    def grain(self, session, grain, expect, what, timeout=120):
        """Both rows of the grain, by the command and by d_query, once they say what is expected."""
        def seen():
            row = self.pool.json("grain", "show", f"{session}:{grain}")["grain"]
            return row if expect(row) and expect(self.query("grain", session, grain)) else None
        try:
            return wait_for(what, seen, timeout=timeout)
        except AssertionError:
            print(self.pool.dcs("grain", "show", f"{session}:{grain}").stdout.decode())
            print(self.pool.dcs("host", "show", "all").stdout.decode())
            raise

    def shut(self, name):
        by_query = next(h["shut"] for h in self.query("hosts") if h["name"] == name)
        note = self.pool.json("host", "show", name)["host"]["note"]
        listed = self.pool.dcs("host", "ls", name).stdout.decode()
        return note if by_query and note.startswith("shut: ") and ", shut" in listed else None


def moves(row):
    return [(m["reason"], m["host"]) for m in row["moves"]]


def only(w, name):
    """New grains go to this host."""
    for other in ("local1", "local2"):
        w.pool.json("host", "undrain" if other == name else "drain", other)


def end(w, name):
    """Its server, launcher and grains."""
    w.pool.kill_host(name)
    folder = os.path.join(w.pool.dir, "servers", name)
    wait_for(f"the end of {name}", lambda: not any(lock_holder(os.path.join(folder, lock))
                                                   for lock in ("lock", "launcher.lock")))


def short_of_memory(w, group):
    """local1 lives in the small group and watches; local2 does neither. With such an interval it takes a minute until
    an owner, who may be there, shuts grains out."""
    pool = w.pool
    end(w, "local1")
    subprocess.run([program("dcs"), "up", "--courtesy", "watch", "--dir", pool.dir], env=pool.env, check=True, stdout=subprocess.DEVNULL,
                   preexec_fn=group.enter)
    only(w, "local1")
    warned = os.path.join(pool.base, "warned")
    ticks = 220
    base = (LIMIT - group.used()) // MB - 30
    assert base > 10, f"only {base} MB are left for a grain"
    # 14 MB more than the group has left, at 2 MB a second
    text = f"1 {ticks} {base} 200 100\n"
    run = pool.start([program("dcs"), "run", "--", HUNGRY, warned], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    run.stdin.write(text.encode())
    run.stdin.close()
    session = wait_for("the session of dcs run", lambda: [s["session"] for s in pool.json("session", "ls")["sessions"]
                                                          if s["running"] == 1])[0]
    number = pool.grains(session)[0]["grain"]
    w.grain(session, number, lambda g: g["state"] == "running" and g["host"] == "local1", "the grain on local1")
    pool.json("host", "undrain", "local2")  # which takes grains however busy this machine is
    row = w.grain(session, number, lambda g: ("thrashed", "local1") in moves(g), "the grain returned by local1")
    detail = next(m["detail"] for m in row["moves"] if m["reason"] == "thrashed")
    assert "memory is short" in detail and "control group" in detail, detail
    assert os.path.exists(warned), f"the grain was not warned before: {row}"
    assert row["failures"] == 0, row
    wait_for("local1 to say that it is shut", lambda: w.shut("local1") or moves(row)[-1][0] != "thrashed")
    checkpointed = row["checkpoint_length"] > 0
    output = run.stdout.read()
    assert run.wait() == 0
    assert output == "".join(f"tick {i}\n" for i in range(1, ticks + 1)).encode(), output[-200:]
    assert group.kills() == 0, f"the kernel killed {group.kills()}"
    assert checkpointed, "no checkpoint arrived, though there was time"
    print("a grain that filled its control group went on elsewhere, line by line as if undisturbed")


class Owner:
    """A process's programs: more of them than cores, of ordinary priority, in a session of their own."""

    def __enter__(self):
        self.programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
                         for _ in range(2 * os.cpu_count())]
        return self

    def __exit__(self, *_):
        for process in self.programs:
            process.kill()
            process.wait()


def idle_cores(seconds):
    """Cores that no process of ordinary priority wants."""
    def read():
        fields = list(map(int, open("/proc/stat").readline().split()[1:9]))
        return fields[1] + fields[3] + fields[4], sum(fields)
    before = read()
    time.sleep(seconds)
    after = read()
    return os.cpu_count() * (after[0] - before[0]) / max(1, after[1] - before[1])


def shut_out(w):
    end(w, "local1")
    w.pool.dcs("up", "--interval", "1", "--courtesy", "watch")
    only(w, "local1")
    gate = os.path.join(w.pool.base, "gate")
    w.submit(20, 1, "/bin/sh", "-c", 'while [ ! -e "$0" ]; do :; done', gate)
    w.grain(20, 1, lambda g: g["state"] == "running", "a grain that computes", timeout=300)
    with Owner():
        row = w.grain(20, 1, lambda g: g["state"] == "ready" and moves(g)[-1][0] == "shut_out", "the grain shut out")
        assert row["failures"] == 0 and moves(row)[-1] == ("shut_out", "local1"), row
        assert "other work" in row["moves"][-1]["detail"], row
        note = wait_for("local1 to be shut", lambda: w.shut("local1"))
        assert "processors busy" in note, note
        why = w.pool.json("grain", "explain", "20:1")
        assert [r["names"] for r in why["reasons"] if r["reason"] == "host_shut"] == [["local1"]], why
    until = time.monotonic() + 30
    while not w.query("grain", 20, 1)["state"] == "running" and time.monotonic() < until:
        time.sleep(0.2)
    if w.query("grain", 20, 1)["state"] != "running" and idle_cores(5) < 1.0:
        skip("the return of a shut out grain", "other work keeps this machine busy")
        w.pool.dcs("grain", "kill", "20:1")
        return
    open(gate, "w").close()
    row = w.grain(20, 1, lambda g: g["state"] == "finished" and g["exit_code"] == 0, "its end after the owner left")
    assert row["failures"] == 0 and row["incarnation"] >= 2, row
    print("a grain that was shut out came back when the owner had left")


def new_sessions(w):
    """A grain's child in a session of its own, and one whose parent has gone."""
    only(w, "local2")
    if not os.path.exists("/proc/self/autogroup"):
        return skip("weights of sessions", "this kernel has no autogroup")
    pids = os.path.join(w.pool.base, "pids")
    script = 'setsid sh -c "echo \\$\\$ >>$0; exec sleep 600" & (setsid sh -c "echo \\$\\$ >>$0; exec sleep 600" &); wait'
    w.submit(30, 1, "/bin/sh", "-c", script, pids)
    children = wait_for("two sessions", lambda: (lambda p: p if len(p) == 2 else None)(
        open(pids).read().split() if os.path.exists(pids) else []), timeout=180)
    for pid in children:
        wait_for(f"the weight of session {pid}", lambda: open(f"/proc/{pid}/autogroup").read().strip().endswith("nice 19"))
    w.pool.dcs("grain", "kill", "30:1")
    for pid in children:
        wait_for(f"the end of {pid}", lambda: start_time(int(pid)) is None)
    print("sessions that a grain begins get the lowest weight")


def main():
    if os.geteuid() != 0:
        skip("memory control groups", "they need root")
    group = Group() if os.geteuid() == 0 else None
    try:
        with Pool(servers=2, slots=1, interval=30.0, modest=True) as pool:
            w = World(pool)
            if group and group.path:
                short_of_memory(w, group)
            elif group:
                skip("memory control groups", group.why)
            shut_out(w)
            new_sessions(w)
    finally:
        if group:
            group.remove()
    print(f"{len(skipped)} parts skipped")


if __name__ == "__main__":
    main()
