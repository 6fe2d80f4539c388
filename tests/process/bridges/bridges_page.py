#!/usr/bin/python3
"""docs/BRIDGES.md from nothing: an ordinary user who has neither a pool nor jobs types each section's first blocks in an empty directory.
Those of clients that are not installed here are left out; under --full all are typed."""
import os
import re
import shutil
import subprocess
import sys
import threading

import login_pool
from hurry import Hurry
from login_pool import accounts, as_login
from pool import BIN, FULL, ROOT, grains_of_server, program
from remote_world import enter

STATE = login_pool.HOME + "/.local/state/dcs"
NEEDS = {"": ("/bin/sh",), "snakemake": ("/usr/bin/snakemake",), "toil": ("/usr/lib/python3/dist-packages/toil",), "parallel": ("/usr/bin/env_parallel",),
         "drmaa": ("/usr/lib/python3/dist-packages/drmaa",)}


class Stranger:
    @staticmethod
    def grain_processes():
        servers = STATE + "/servers"
        return [grain for name in (os.listdir(servers) if os.path.isdir(servers) else ()) for grain in grains_of_server(name, f"{servers}/{name}")]


def page():
    with open(os.path.join(ROOT, "docs/BRIDGES.md")) as file:
        return file.read()


def sections(text):
    """What is typed for each client, and what it prints. Without a name: the first block of the page, and all that follow it there."""
    beginning = re.search(r"```text\n(export PATH=.*?)```", text, re.S)[1]
    found = {"": [beginning, ""]}
    for kind, commands, wanted in re.findall(r"```run ?(\w*)\n(.*?)```\n\n```output\n(.*?)```", text, re.S):
        typed = found.setdefault(kind, ["", ""])
        typed[0] += commands
        typed[1] += wanted
    assert set(found) == set(NEEDS), set(found) ^ set(NEEDS)
    return found


def types(kind, commands, wanted):
    work = f"{login_pool.HOME}/first-{kind or 'jobs'}"
    os.mkdir(work)
    os.chown(work, login_pool.UID, login_pool.UID)
    os.mkdir(work + "/build")
    os.symlink(os.path.dirname(BIN), work + "/build/release")  # the clone that the page speaks of
    assert commands.count("dcs up --local 2\n") == 1, commands
    commands, said = commands.replace("dcs up --local 2\n", "dcs up --local 2 >said-by-up\n"), work + ".err"
    with open(said, "w") as errors:
        child = as_login(["/bin/sh", "-c", f"cd {work} && export PWD={work}\n{commands}"], {"PYTHONDONTWRITEBYTECODE": "1"}, stdout=subprocess.PIPE,
                         stderr=errors, text=True)
        ending = threading.Timer(900, child.kill)
        ending.start()
        out = child.communicate()[0]
        ending.cancel()
    assert as_login([program("dcs"), "down"], {}).wait() == 0
    assert out == wanted, f"{kind}:\n{commands}\n---- printed\n{out}\n---- has to print\n{wanted}\n---- errors\n{open(said).read()[-5000:]}"
    shutil.rmtree(STATE)
    print(f"{kind or 'jobs of Slurm, Grid Engine and PBS'}: typed", flush=True)


def main():
    if enter(__file__) is None:
        return 77
    accounts()
    if as_login(["/bin/sh", "-c", f"test -x {program('dcs')} && test -r {ROOT}/libdcs/python/dcs/pool.py"], {}).wait() != 0:
        print(f"SKIPPED: other users cannot read {ROOT} and run {BIN}")
        return 77
    with Hurry(Stranger()):
        for kind, (commands, wanted) in sections(page()).items():
            if all(os.path.exists(path) for path in NEEDS[kind]) and (FULL or kind in ("", "parallel", "drmaa")):
                types(kind, commands, wanted)
            else:
                print(f"{kind}: not typed; tests/run --full does")
    print("an ordinary user begins with each bridge")
    return 0


if __name__ == "__main__":
    sys.exit(main())
