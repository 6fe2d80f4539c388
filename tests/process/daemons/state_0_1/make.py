#!/usr/bin/python3
"""Made state.tar.xz, expected.json and replay.txt, once, with the programs of release 0.1:
    DCS_BIN=<its bin> PYTHONPATH=<its libdcs/python> DCS_LIBRARY=<its libdcs.so> python3 make.py
They stay as they are: what a release wrote is read as long as any process may have it. For the next release's state, copy this."""
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from pool import Pool, program, wait_for  # noqa: E402
from state_0_1.asked import asked, serving  # noqa: E402

WORK = "/tmp/dcs-state"  # is in the parameters of grains
COUNTER = """import sys, time
import dcs_grain
dcs_grain.handler()
n, last = map(int, dcs_grain.text.readline().split())
while n < last:
    print(n, flush=True)
    time.sleep(0.05)
    n += 1
    if dcs_grain.time_to_checkpoint():
        with dcs_grain.checkpoint("at %d" % n) as state:
            state.write("%d %d\\n" % (n, last))
"""
OPEN = """import sys, time
import dcs
env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "%s"}
session = dcs.Session("second", 2)
session.submit(1, ["/usr/bin/python3", "%s/counter.py"], input="0 100000\\n", env=env, directory="/tmp")
session.submit(2, ["/bin/sleep", "4"], env=env, directory="/tmp")
session.submit(3, ["/bin/echo", "done"], env=env, directory="/tmp", urgent=True)
session.submit(4, ["/bin/sh", "-c", "sleep 1; exit 5"], env=env, directory="/tmp", attempts=3)
session.submit(5, ["/bin/echo", "no host has this class"], env=env, directory="/tmp", host_class=0x80, memory_mb=5)
session.submit(6, ["/bin/sleep", "100000"], env=env, directory="/tmp", notice=2)
for number in range(10, 30):
    session.submit(number, ["/bin/sleep", "100000"], env=env, directory="/tmp", wall_s=86400, cores=1)
session.kill(10)
print(session.wait().grain, flush=True)
time.sleep(100000)
"""


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    for name, text in (("counter.py", COUNTER), ("open.py", OPEN % (WORK, WORK))):
        with open(os.path.join(WORK, name), "w") as file:
            file.write(text)
    library = os.environ["PYTHONPATH"].split(":")[0]
    shutil.copy(os.path.join(library, "dcs_grain.py"), WORK)
    pool = Pool(servers=2, slots=2, interval=1, directory=os.path.join(WORK, "pool"))
    with pool:
        replay = subprocess.run([sys.executable, os.path.join(HERE, "control.py")], env=pool.env,
                                stdout=subprocess.PIPE, check=True).stdout
        with subprocess.Popen([sys.executable, os.path.join(WORK, "open.py")], env=pool.env,
                              stdout=subprocess.PIPE) as control:
            assert control.stdout.readline() == b"3\n"
            wait_for("a checkpoint", lambda: any(g["checkpoint_length"] for g in pool.grains(2) if g["grain"] == 1), 120)
            pool.dcs("host", "set", "local2", "--slots", "3", "--interval", "2")
            pool.dcs("host", "set", "local1", "--class", "0x5")
            pool.kill("scheduler", "scheduler")  # and grain 2 ends meanwhile: the backup has its report
            time.sleep(8)
            pool.up()
            wait_for("grain 2", lambda: any(g["state"] == "finished" for g in pool.grains(2) if g["grain"] == 2))
            pool.dcs("host", "drain", "local1")
            wait_for("packing", lambda: not os.path.exists(os.path.join(pool.dir, "state/sessions",
                                                                        os.environ.get("USER", "root"), "1/g/7")), 120)
            time.sleep(15)  # statistics of hosts are written, and turns applied
            pool.kill("scheduler", "scheduler")
            away = os.path.join(WORK, "away/scheduler")
            os.makedirs(away)
            for name in ("state", "hosts", "attached"):
                path = os.path.join(pool.dir, "scheduler", name)
                (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, os.path.join(away, name))
            control.kill()
    trust(os.path.dirname(away))
    with tarfile.open(os.path.join(HERE, "state.tar.xz"), "w:xz") as archive:
        archive.add(away, "scheduler", filter=small)
    with open(os.path.join(HERE, "replay.txt"), "wb") as file:
        file.write(replay)
    with serving(os.path.dirname(away), os.environ["DCS_BIN"]) as dcs, open(os.path.join(HERE, "expected.json"), "w") as file:
        file.write(lines(asked(dcs)))


def trust(directory):
    """Codes for two hosts: only a scheduler with a TLS door makes them."""
    daemon = subprocess.Popen([program("dcs_scheduler"), "--dir", os.path.join(directory, "scheduler"), "--tls",
                               "127.0.0.1:0"], stderr=subprocess.DEVNULL)
    environment = dict(os.environ, DCS_DIR=directory)
    for host in ("local1", "local2"):
        wait_for("a code", lambda: subprocess.run([program("dcs"), "token", "create", "--host", host, "--ttl", "720h"],
                                                  env=environment, stdout=subprocess.DEVNULL, check=False).returncode == 0)
    daemon.kill()  # -9: turns are left to be applied
    daemon.wait()


def lines(answers):
    return "{\n" + ",\n".join(f"{json.dumps(question)}: {json.dumps(answer, sort_keys=True)}"
                              for question, answer in answers.items()) + "\n}\n"


def small(entry):
    """Not the reserve, which is made again; nor what else is no state."""
    name = os.path.basename(entry.name)
    return None if name in ("reserve", "lock", "pki", "suspect") or name.endswith(".sock") else entry


main()
