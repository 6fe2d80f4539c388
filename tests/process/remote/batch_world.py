"""Pilots under an engine that batch_engine.py plays: grains with checkpoints that outlive the limit of a job, a job that is held,
one that is deleted, `dcs pilot` killed and started again, jobs that are asked to end. All grains finish with the output of an
undisturbed run, few steps run twice, and neither a job nor a process nor a file is left."""
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

from pilot_grains import Work
from pool import Pool, free_port, start_time, wait_for

PROGRAMS = {"condor": ("condor_submit", "condor_q", "condor_rm"), "openpbs": ("qsub", "qselect", "qstat", "qdel"),
            "torque": ("qsub", "qselect", "qstat", "qdel")}
PILOTS, INTERVAL, LIMIT, MARGIN, IDLE = 2, 2, 60, 30, 5
GRAINS, STEPS, STEP = 3, 72, 0.5  # longer than a job has before it leaves; with few steps, for grains are niced


class Engine:
    def __init__(self, flavour):
        self.flavour, self.base = flavour, tempfile.mkdtemp(prefix="dcs-batch-")
        self.verb = "condor" if flavour == "condor" else "pbs"
        os.makedirs(self.base + "/bin")
        os.makedirs(self.base + "/spool")
        for name, text in (("capacity", str(PILOTS)), ("first", "100"), ("jobs.json", "{}"), ("events", "")):
            self.put(name, text)
        player = os.path.join(os.path.dirname(os.path.abspath(__file__)), "batch_engine.py")
        for program in PROGRAMS[flavour]:
            line = shlex.join(["exec", sys.executable, "-B", player, self.base, flavour, program]) + ' "$@"'
            with open(os.open(f"{self.base}/bin/{program}", os.O_WRONLY | os.O_CREAT, 0o755), "w") as out:
                out.write(f"#!/bin/sh\n{line}\n")

    def put(self, name, text=""):
        with open(f"{self.base}/{name}", "w") as out:
            out.write(text)

    def jobs(self):
        return json.load(open(self.base + "/jobs.json"))

    def release(self):
        os.unlink(self.base + "/hold")
        subprocess.run(["/usr/bin/python3", "-B", "-c",
                        f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\n"
                        f"import batch_engine as e; e.HERE = {self.base!r}\n"
                        "with e.jobs() as known: [j.update(state='Q') for j in known.values() if j['state'] == 'H']"], check=True)

    def events(self):
        return [tuple(line.split()) for line in open(self.base + "/events")]

    def delete(self, job):
        """False: it has ended."""
        return subprocess.run([f"{self.base}/bin/{'condor_rm' if self.flavour == 'condor' else 'qdel'}", job], check=False,
                              stdout=subprocess.DEVNULL).returncode == 0

    def processes(self):
        """Of its jobs, also those that have left their session."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                text = open(f"/proc/{pid}/environ", "rb").read() + open(f"/proc/{pid}/cmdline", "rb").read()
            except OSError:
                continue
            if (self.base + "/spool").encode() in text and int(pid) != os.getpid() and start_time(int(pid)):
                found.append((pid, open(f"/proc/{pid}/cmdline").read().replace("\0", " ")))
        return found

    def scratch(self):
        return [name for number in os.listdir(self.base + "/spool") for name in os.listdir(f"{self.base}/spool/{number}/tmp")]


class World:
    def __init__(self, flavour):
        self.engine, self.pool, self.control = Engine(flavour), Pool(), None
        self.work = Work(self.pool, GRAINS, STEPS, STEP)
        self.pool.env["PATH"] = self.engine.base + "/bin:" + os.environ["PATH"]
        self.pool.dcs("up", "--local", "0", "--pilots", str(PILOTS), "--listen", f"127.0.0.1:{free_port()}",
                      "--interval", str(INTERVAL), "--dir", self.pool.dir)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            self.show()
        if self.control and self.control.poll() is None:
            self.control.kill()
            self.control.wait()
        if kind is not None:
            for job in list(self.engine.jobs()):
                subprocess.run([self.engine.base + "/bin/" + PROGRAMS[self.engine.flavour][-1], job], check=False)
            wait_for("the end of the engine's jobs", lambda: not self.engine.processes(), timeout=100)
        self.pool.__exit__(kind, value, trace)
        shutil.rmtree(self.engine.base)

    def show(self):
        self.pool.show_logs()
        print("---- events", self.engine.events(), self.engine.jobs(), sep="\n")
        for folder in (self.pool.dir + "/pilots", self.engine.base):
            for where, _, files in os.walk(folder):
                for name in files:
                    if name in ("log", "output", "runner.log") or name.startswith("log."):
                        print(f"---- {where}/{name}", open(os.path.join(where, name), errors="replace").read()[-4000:], sep="\n")
        print("---- dcs pilot", self.said(), sep="\n")

    def begin_control(self, limit=LIMIT):
        with open(self.pool.base + "/control.out", "ab") as out:
            self.control = self.pool.start([self.pool.bin + "/dcs", "pilot", self.engine.verb, "--time", str(limit), "--margin",
                                            str(MARGIN), "--idle", str(IDLE), "--every", "1"], stdout=out, stderr=out)

    def said(self):
        path = self.pool.base + "/control.out"
        return open(path).read() if os.path.exists(path) else ""

    def listed(self):
        return self.pool.json("pilot", "ls")["pilots"]

    def serving(self):
        """The pilots whose job runs and whose server is connected, as {name: job}."""
        return {p["pilot"]: p["job"] for p in self.listed() if p["connected"] and p["state"] == "RUNNING"}

    def a_grain(self, *options):
        return subprocess.Popen([self.pool.bin + "/dcs", "run", *options, "--", "sleep", "100000"], env=self.pool.env,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def refused(self, code, what, *line):
        done = self.pool.dcs("pilot", *line, check=False)
        assert done.returncode == code and what in done.stderr.decode(), (line, done)


def end(process):
    process.kill()
    process.wait()


def held(world):
    """A held job serves no grain and is shown with its reason; the other pilots are not held up by it."""
    world.engine.put("hold")
    world.begin_control()
    job = wait_for("a held job", lambda: next((p for p in world.listed() if p["state"] == "HELD"), None))
    assert "by user" in job["reason"] and job["left_s"] < 0, job
    world.engine.release()


def checkpoints_are_there(world):
    rows = [g for g in world.pool.json("grain", "ls", "all")["grains"] if g["state"] == "running"]
    return len(rows) == PILOTS and all(g["checkpoint_age_s"] >= 0 for g in rows)


def delete_at_work(world):
    """Their jobs; None: a job has just ended at its limit."""
    if not checkpoints_are_there(world):
        return None
    rows = {p["pilot"]: p for p in world.listed() if p["connected"] and p["state"] == "RUNNING"}
    if len(rows) < PILOTS:
        return None
    assert rows["pilot2"]["node"].startswith("node7") and 0 <= rows["pilot2"]["left_s"] <= LIMIT, rows
    world.control.kill()
    world.control.wait()
    if world.engine.delete(rows["pilot1"]["job"]):
        return {name: row["job"] for name, row in rows.items()}
    world.begin_control()
    return None


def disturb(world):
    """A job is deleted while nothing submits another; the other one ends by itself before its limit."""
    jobs = wait_for("all pilots at work, with checkpoints, and one deleted", lambda: delete_at_work(world), timeout=300)
    print("at work:", jobs)
    number = jobs["pilot1"].split(".")[0]
    wait_for("the end of the deleted job", lambda: ("ended", number) in world.engine.events(), timeout=120)
    wait_for("no file of it", lambda: os.listdir(f"{world.engine.base}/spool/{number}/tmp") == [], timeout=120)
    assert world.serving().get("pilot2") in (jobs["pilot2"], None), jobs
    world.begin_control()
    wait_for("another job of pilot1", lambda: world.serving().get("pilot1") not in (None, jobs["pilot1"]), timeout=120)
    assert [p["pilot"] for p in world.listed()].count("pilot2") <= 1, "the job that was there is found again"
    return number


def stopping(world):
    """`dcs pilot stop` returns when grains have left, long before the limit; the job was not killed, and the other command ends."""
    end(world.control)
    world.begin_control(3600)
    sleeper = world.a_grain("--class", "pilots")
    jobs = wait_for("a job for one grain", world.serving, timeout=120)
    world.pool.dcs("pilot", "stop")
    for job in jobs.values():
        assert ("killed", job.split(".")[0]) not in world.engine.events(), (job, world.engine.events())
    wait_for("the end of dcs pilot", lambda: world.control.poll() is not None)
    assert world.control.returncode == 0 and "stop" in world.said(), world.said()
    assert world.pool.dcs("pilot", "ls", "-o", "name").stdout == b""
    end(sleeper)
    world.pool.dcs("session", "close", "all")


def missing(world, program):
    usual = world.pool.env["PATH"]
    world.pool.env["PATH"] = world.pool.base
    world.refused(3, program, world.engine.verb, "--time", "60")
    world.pool.env["PATH"] = usual


def run(flavour, before=lambda world: None):
    with World(flavour) as world:
        missing(world, PROGRAMS[flavour][0] if flavour == "condor" else "qstat")
        before(world)
        worker = world.work.start()
        held(world)
        deleted = disturb(world)
        out, err = worker.communicate(timeout=800)
        assert worker.returncode == 0, (out[-2000:], err)
        steps, again = world.work.check(out)
        assert 0 <= again < steps / 5, (steps, again)
        wait_for("no job without grains", lambda: not world.engine.jobs(), timeout=IDLE + 120)
        events = world.engine.events()
        print(events)
        assert {number for what, number in events if what in ("killed", "limit")} <= {deleted}, events
        stopping(world)
        wait_for("no process of a job", lambda: not world.engine.processes(), timeout=300)
        assert world.engine.scratch() == [], world.engine.scratch()
        wait_for("hosts without a job to be no problem", lambda: not any(
            p["entity"].startswith("host pilot") for p in world.pool.json("doctor", check=False)["problems"]))
