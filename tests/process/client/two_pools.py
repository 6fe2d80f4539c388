#!/usr/bin/python3
"""Two pools, each of them a `dcs up` of its own, in one process: the handles of dcs.h and the objects of dcs.hpp (two_pools.cc),
and those of the Python package; one after the other and at the same time."""
import os
import pickle
import subprocess
import sys
import threading

from pool import BIN, ROOT, Pool
from restartable import library

sys.path.insert(0, os.path.join(ROOT, "libdcs/python"))
import dcs  # noqa: E402

TOOL = os.path.join(os.path.dirname(BIN), "tests", "two_pools")
GRAINS = 12


def compiled(east, west):
    done = subprocess.run([TOOL, east.dir, west.dir, str(GRAINS)], env=dict(east.env, LD_LIBRARY_PATH=library()),
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and done.stdout == "two pools, each with its own\n", (done.stdout, done.stderr)
    idents = {pool: sorted(s["ident"] for s in pool.json("session", "ls")["sessions"]) for pool in (east, west)}
    assert idents[east] == ["by-default", "east", "east", "east"] and idents[west] == ["from-options", "west", "west"], idents


def in_python(east, west):
    found = {}

    def work(name, pool):
        with dcs.Session(name, 50, pool=pool) as session:
            session.submit_many([(n, dcs.Grain(["/bin/echo", f"{name} {n}"])) for n in range(GRAINS)])
            found[name] = {r.grain: (r.output, r.open_output().read()) for r in session.results(batch=3)}

    with dcs.Pool(east.dir) as one, dcs.Pool(west.dir, patience=10) as other:
        assert one.system().scheduler_pid != other.system().scheduler_pid
        threads = [threading.Thread(target=work, args=pair) for pair in (("python-east", one), ("python-west", other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name in ("python-east", "python-west"):
            texts = {n: (f"{name} {n}\n".encode(),) * 2 for n in range(GRAINS)}
            assert found[name] == texts, (name, found[name])
        assert {s.ident for s in one.sessions()} & {"python-east", "python-west"} == {"python-east"}
        with dcs.Pool(west.dir) as third, dcs.Executor("executor-west", pool=third) as executor:
            assert executor.submit("math:gcd", 12, 18).result() == 6
        assert "executor-west" in {s.ident for s in other.sessions()} - {s.ident for s in one.sessions()}
        again = pickle.loads(pickle.dumps(one))
        assert again.system().scheduler_pid == one.system().scheduler_pid
    for pool in (one, other):
        try:
            pool.system()
        except ValueError as error:
            assert "closed" in str(error)
        else:
            raise AssertionError("a closed pool still answers")
    try:
        dcs.Pool("relative")
    except dcs.Invalid as error:
        assert "absolute" in str(error)
    else:
        raise AssertionError("a relative directory was taken")


def main():
    with Pool(1, 2, 1.0) as east, Pool(1, 2, 1.0) as west:
        compiled(east, west)
        os.environ["DCS_LIBRARY"] = os.path.join(library(), "libdcs.so.0")
        in_python(east, west)
    print("2 passed, 0 failed")


if __name__ == "__main__":
    main()
