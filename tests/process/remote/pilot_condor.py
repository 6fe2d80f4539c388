"""Grain servers as jobs of HTCondor, whose command line programs are played (batch_engine.py)."""
import batch_world
from pool import wait_for


def words(world):
    """Options that would take jobs out of sight, and a job that condor_submit refuses."""
    world.refused(2, "--time", "condor")
    world.refused(2, "-remote of condor_submit", "condor", "--time", "4h", "--", "-remote", "far")
    sleeper = world.a_grain()
    wait_for("a grain that waits", lambda: any(s["ready"] for s in world.pool.json("session", "ls")["sessions"]))
    world.refused(4, "request_gpus", "condor", "--time", "60", "--", "-append", "request_gpus = many")
    batch_world.end(sleeper)
    world.pool.dcs("session", "close", "all")


batch_world.run("condor", words)
