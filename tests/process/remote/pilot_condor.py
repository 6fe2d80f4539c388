"""Grain servers as jobs of HTCondor, whose command line programs are played (batch_engine.py)."""
import os

import batch_world
from pool import wait_for


def ends_while_the_engine_is_silent(world):
    """condor_q answers when SIGTERM has come long ago: nothing more is submitted, and the command does not wait for the answer."""
    real, asked, answer = (world.engine.base + name for name in ("/bin/condor_q", "/asked", "/answer"))
    os.rename(real, real + ".real")
    with open(os.open(real, os.O_WRONLY | os.O_CREAT, 0o755), "w") as out:
        out.write(f'#!/bin/sh\n>{asked}\nwhile [ ! -e {answer} ]; do sleep 0.1; done\nexec {real}.real "$@"\n')
    world.begin_control()
    wait_for("condor_q to be asked", lambda: os.path.exists(asked))
    world.control.terminate()
    wait_for("the end of dcs pilot", lambda: world.control.poll() is not None)
    world.engine.put("answer")
    assert world.control.returncode == 0 and "ended; jobs go on" in world.said(), (world.control.returncode, world.said())
    os.rename(real + ".real", real)
    assert not world.engine.jobs() and not world.listed(), world.engine.jobs()


def words(world):
    """Options that would take jobs out of sight, and a job that condor_submit refuses."""
    world.refused(2, "--time", "condor")
    world.refused(2, "-remote of condor_submit", "condor", "--time", "4h", "--", "-remote", "far")
    sleeper = world.a_grain()
    wait_for("a grain that waits", lambda: any(s["ready"] for s in world.pool.json("session", "ls")["sessions"]))
    world.refused(4, "request_gpus", "condor", "--time", "60", "--", "-append", "request_gpus = many")
    ends_while_the_engine_is_silent(world)
    batch_world.end(sleeper)
    world.pool.dcs("session", "close", "all")


batch_world.run("condor", words)
