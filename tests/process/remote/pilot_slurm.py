"""Grain servers as jobs of a real Slurm: grains with checkpoints that outlive the limit of a job, a job cancelled and one
whose slurmstepd is killed, slurmd killed and started again, `dcs pilot slurm` killed and started again. All grains finish
with the output of an undisturbed run, few steps run twice, and no job is left when no grain waits. 2,000 grains with --full."""
import os
import re
import signal
import subprocess
import sys
import time

import slurm_world
from hurry import Hurry
from pilot_grains import Work
from pool import FULL, Pool, free_port, wait_for

PILOTS, SLOTS, INTERVAL = 6 if FULL else 3, 2, 2
GRAINS, STEPS = (2000, 100) if FULL else (6, 320)  # of a tenth of a second each
LIMIT, MARGIN, IDLE = 60, 20 if FULL else 30, 5


class World:
    def __init__(self, slurm, pool):
        self.slurm, self.pool, self.control = slurm, pool, None
        self.work = Work(pool, GRAINS, STEPS)
        pool.env.update(PATH=slurm_world.ENGINE_PATH, SLURM_CONF=slurm.env["SLURM_CONF"])
        port = free_port()
        pool.dcs("up", "--local", "0", "--pilots", str(PILOTS), "--pilot-slots", str(SLOTS), "--listen", f"127.0.0.1:{port}",
                 "--interval", str(INTERVAL), "--dir", pool.dir)

    def begin_control(self):
        with open(os.path.join(self.pool.base, "control.out"), "ab") as out:
            self.control = self.pool.start([self.pool.bin + "/dcs", "pilot", "slurm", "--time", str(LIMIT), "--margin", str(MARGIN),
                                            "--idle", str(IDLE), "--every", "1"], stdout=out, stderr=subprocess.STDOUT)

    def end_control(self, number):
        self.control.send_signal(number)
        self.control.wait()

    def said(self):
        return open(os.path.join(self.pool.base, "control.out")).read()

    def serving(self):
        """The pilots that have a job and are connected, as {name: job}."""
        return {p["pilot"]: p["job"] for p in self.pool.json("pilot", "ls")["pilots"]
                if p["connected"] and p["state"] == "RUNNING"}


def checkpoint_is_there(world):
    rows = [g for g in world.pool.json("grain", "ls", "all")["grains"] if g["state"] == "running"]
    return len(rows) == PILOTS * SLOTS and all(g["checkpoint_age_s"] >= 0 for g in rows)


def disturb(world):
    """One job of each kind of end; the rest reach their limit."""
    wait_for("all pilots at work, with checkpoints", lambda: checkpoint_is_there(world), timeout=120)
    jobs = world.serving()
    print("at work:", jobs)
    connected = lambda: {h["name"] for h in world.pool.json("host", "ls")["hosts"] if h["connected"]}  # noqa: E731
    world.end_control(signal.SIGKILL)  # no new job until the next one
    world.slurm.say("scancel", jobs["pilot1"])
    # A slurmd that is killed before it has the order, or has said that the job has ended, never gets or says it, and Slurm
    # counts the CPUs as in use for minutes.
    wait_for("pilot1 to leave", lambda: "pilot1" not in connected(), timeout=120)
    wait_for("Slurm to know of it", lambda: jobs["pilot1"] not in [job[0] for job in world.slurm.jobs()], timeout=120)
    registered = lambda: re.search(r"SlurmdStartTime=(\S+)", world.slurm.say("scontrol", "show", "node").decode())[1]  # noqa: E731
    earlier = registered()
    world.slurm.stop("slurmd", signal.SIGKILL)
    before = world.serving()
    assert "pilot2" in before and "pilot3" in before, before  # they run without slurmd
    world.slurm.start_slurmd()
    # A job that Slurm sends to a slurmd that has just begun may be sent back, for minutes.
    wait_for("the new slurmd", lambda: registered() != earlier, timeout=400)
    world.begin_control()
    (stepd,) = [pid for pid in slurm_world.children_of("slurmstepd", world.slurm.base)
                if f"[{jobs['pilot2']}." in open(f"/proc/{pid}/cmdline").read()]
    os.kill(stepd, signal.SIGKILL)
    wait_for("another job of pilot1", lambda: world.serving().get("pilot1") not in (None, jobs["pilot1"]), timeout=400)
    wait_for("pilot2 to leave, though Slurm believes that its job runs", lambda: "pilot2" not in connected(), timeout=120)
    world.slurm.say("scancel", jobs["pilot2"])  # else Slurm notices at its limit


def nothing_left(world):
    wait_for("no job without grains", lambda: not world.slurm.jobs(), timeout=IDLE + 120)
    assert "Time limit exhausted" not in open(f"{world.slurm.base}/slurmctld.out").read()  # each job has ended by itself
    assert world.pool.json("pilot", "ls")["pilots"] == []
    problems = [p["entity"] for p in world.pool.json("doctor", check=False)["problems"]]
    assert not any(p.startswith("host pilot") for p in problems), problems
    left = [name for name in os.listdir("/tmp") if name.startswith("dcs-pilot.")]
    assert not [name for name in left if open_by_us(world, name)], left


def open_by_us(world, name):
    path = os.path.join("/tmp", name, "log")
    return os.path.exists(path) and world.pool.dir in open(path, errors="replace").read()


def stopping(world):
    """`dcs pilot stop` returns when grains have left with their checkpoints, and ends the other command."""
    sleeper = subprocess.Popen([world.pool.bin + "/dcs", "run", "--class", "pilots", "--", "sleep", "100000"], env=world.pool.env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for("a job for one grain", world.serving, timeout=120)
    world.pool.dcs("pilot", "stop")
    assert world.slurm.jobs() == [], world.slurm.jobs()
    wait_for("the end of dcs pilot slurm", lambda: world.control.poll() is not None)
    assert world.control.returncode == 0 and "stop" in world.said()
    again = world.pool.dcs("pilot", "ls", "-o", "name").stdout
    assert again == b"", again
    sleeper.kill()
    sleeper.wait()


def words(world):
    """What is wrong with a command line, a pool without pilots, and a Slurm that refuses."""
    def refused(code, what, *line):
        done = world.pool.dcs("pilot", *line, check=False)
        assert done.returncode == code and what in done.stderr.decode(), (line, done)
    refused(2, "--time", "slurm", "--time", "4h", "--", "--time=1")
    refused(2, "-J", "slurm", "--time", "4h", "--", "-Jname")
    refused(2, "--margin", "slurm", "--time", "60", "--margin", "50")
    refused(2, "--time", "slurm")
    sleeper = subprocess.Popen([world.pool.bin + "/dcs", "run", "--", "sleep", "100000"], env=world.pool.env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for("a grain that waits", lambda: any(s["ready"] for s in world.pool.json("session", "ls")["sessions"]))
    refused(4, "sbatch", "slurm", "--time", "60", "--", "--partition=none")
    sleeper.kill()
    sleeper.wait()
    world.pool.dcs("session", "close", "all")
    usual = world.pool.env["PATH"]
    world.pool.env["PATH"] = world.pool.base
    refused(3, "sbatch", "slurm", "--time", "60")
    with open(os.open(world.pool.base + "/sbatch", os.O_WRONLY | os.O_CREAT, 0o755), "w") as out:
        out.write("#!/bin/sh\necho 'slurm 22.05 (a pool of DCS)'\n")
    refused(4, "of DCS", "slurm", "--time", "60")
    world.pool.env["PATH"] = usual


def main():
    if os.geteuid() != 0:
        print("needs root: slurmd starts jobs only as root")
        sys.exit(77)
    if lacking := slurm_world.missing():
        print(f"needs Slurm (deploy/install-packages --tests): {', '.join(lacking)}")
        sys.exit(77)
    pool = Pool()
    with slurm_world.Slurm(cpus=PILOTS * SLOTS) as slurm:
        try:
            world = World(slurm, pool)
            words(world)
            began = time.monotonic()
            worker = world.work.start()
            world.begin_control()
            with Hurry(pool, world.work.processes):  # else they get no checkpoint within a job on a busy machine
                disturb(world)
                out, err = worker.communicate(timeout=14400)
            assert worker.returncode == 0, (out[-2000:], err)
            steps, again = world.work.check(out)
            assert 0 <= again < steps / 5, (steps, again)
            nothing_left(world)
            print(f"grains and jobs gone after {time.monotonic() - began:.0f} s")
            stopping(world)
        except BaseException:
            pool.show_logs()
            for folder, _, files in os.walk(os.path.join(pool.dir, "pilots")):
                for name in files:
                    if name == "log":
                        print(f"---- {folder}/log", open(os.path.join(folder, name), errors="replace").read()[-6000:], sep="\n")
            print("---- dcs pilot slurm", world.said() if "world" in locals() else "", sep="\n")
            raise
        finally:
            if "world" in locals() and world.control and world.control.poll() is None:
                world.end_control(signal.SIGKILL)
            pool.__exit__(None if sys.exc_info()[0] is None else sys.exc_info()[0], None, None)


main()
