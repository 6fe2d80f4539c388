#!/usr/bin/python3
"""The tests of the bridges as an ordinary user, who is neither root nor has rights of any daemon: in pools of that user's own, and as a
login of a pool of root's, in a program that dcs_begin started. Under --full with the clients of Debian and their own cases.

    ordinary_user [own|login] [NAME[:ARGUMENT...]...]    only these, such as snakemake_steps:30:10"""
import glob
import os
import runpy
import socket
import sys

import folders
import login_pool
from hurry import Hurry
from login_pool import RootPool, accounts, as_login
from pool import BIN, FULL, ROOT, grains_of_server, program
from remote_world import enter

# Each of them says by 77 what is not installed here.
CLIENTS = ("drmaa_jobs", "drmaa_sessions", "joblib_cases", "parallel_jobs", "snakemake_steps", "nextflow_jobs")
OF_FULL = ("drmaa_clients", "toil_jobs", "executor_cases")


class OwnPools:
    """The grains of all pools that the user made."""

    @staticmethod
    def grain_processes():
        return [grain for path in glob.glob(login_pool.HOME + "/tmp/dcs-test-*/pool/servers/*") for grain in grains_of_server("", path)]


def words_of(kind, name):
    words = ["/usr/bin/python3", "-B", os.path.abspath(__file__), "as", kind, name]
    return words if kind == "own" else [program("dcs_begin"), *words]


def run(kind, name):
    env = {key: value for key, value in os.environ.items() if key.startswith("DCS_TESTS") or key in ("PYTHONPATH", "DCS_SEED")}
    env.update(DCS_BIN=BIN, PYTHONDONTWRITEBYTECODE="1")
    print(f"==== {name}, {'pool of the user' if kind == 'own' else 'login of a pool of root'}", flush=True)
    if kind == "own":
        with Hurry(OwnPools()):
            return as_login(words_of(kind, name), env).wait()
    ours, theirs = socket.socketpair()
    pool = RootPool()
    with Hurry(pool), ours:
        pool.begin()
        env[login_pool.WIRE] = str(theirs.fileno())
        child = as_login(words_of(kind, name), env, pass_fds=[theirs.fileno()])
        theirs.close()
        try:
            pool.answer(ours)
        finally:
            pool.down()
        return child.wait()


def inside(kind, name):
    """In the process of the user."""
    login_pool.be_the_login() if kind == "login" else login_pool.leave_the_pace()
    name, *arguments = name.split(":")
    path = folders.find(name)
    sys.argv[:] = [path, *arguments]
    runpy.run_path(path, run_name="__main__")


def main():
    if sys.argv[1:2] == ["as"]:
        return inside(*sys.argv[2:4])
    arguments = enter(__file__)
    if arguments is None:
        return 77
    accounts()
    if as_login(["/bin/sh", "-c", f"test -x {program('dcs')} && test -r {ROOT}/libdcs/python/dcs/pool.py"], {}).wait() != 0:
        print(f"SKIPPED: other users cannot read {ROOT} and run {BIN}")
        return 77
    kinds = [word for word in arguments if word in ("own", "login")] or ["own", "login"]
    names = [word for word in arguments if word not in kinds] or CLIENTS + (OF_FULL if FULL else ())
    ends = {(kind, name): run(kind, name) for kind in kinds for name in names}
    for (kind, name), code in ends.items():
        print(f"{name}, {kind}: {'passes' if code == 0 else 'cannot run here' if code == 77 else f'fails with {code}'}")
    assert all(code in (0, 77) for code in ends.values())
    print("an ordinary user has all bridges")
    return 0


if __name__ == "__main__":
    sys.exit(main())
