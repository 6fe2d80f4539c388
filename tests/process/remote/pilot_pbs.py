"""Grain servers as jobs of OpenPBS, whose command line programs are played (batch_engine.py)."""
import os

import batch_world
from pool import wait_for


def words(world):
    """Options that the command sets itself, commands of another engine, a queue that is none, and jobs of another engine."""
    world.refused(2, "--time", "pbs")
    world.refused(2, "-N of qsub", "pbs", "--time", "4h", "--", "-Nname")
    for line in (["-l", "walltime=1:00:00"], ["-l", "ncpus=1,walltime=1:00:00"], ["-lwalltime=60"]):
        world.refused(2, "give --time", "pbs", "--time", "4h", "--", *line)
    sleeper = world.a_grain()
    wait_for("a grain that waits", lambda: any(s["ready"] for s in world.pool.json("session", "ls")["sessions"]))
    world.refused(4, "Unknown queue", "pbs", "--time", "60", "--", "-q", "none")
    world.begin_control()
    wait_for("a job", world.listed)
    world.refused(4, "already kept", "pbs", "--time", "60")
    world.control.kill()
    world.control.wait()
    condor = batch_world.Engine("condor")
    usual = world.pool.env["PATH"]
    world.pool.env["PATH"] = condor.base + "/bin:" + usual
    world.refused(4, "PBS still has 1 job", "condor", "--time", "60")
    world.pool.env["PATH"] = os.path.join(os.path.dirname(world.pool.bin), "libexec/dcs/sge") + ":" + usual
    world.refused(4, "not that of PBS", "pbs", "--time", "60")
    world.pool.env["PATH"] = usual
    batch_world.shutil.rmtree(condor.base)
    world.pool.dcs("pilot", "stop")
    batch_world.end(sleeper)
    world.pool.dcs("session", "close", "all")


batch_world.run("openpbs", words)
