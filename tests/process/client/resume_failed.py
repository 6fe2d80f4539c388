#!/usr/bin/python3
"""Control programs with DCS_RESUME_FAILED: grains that failed begin again as they are submitted then, the others keep their results, and
later runs repeat what that run did."""
import os
import subprocess
import sys

from pool import tells
from python_calls import PYTHON, dcs, pool_of_python, said

IN_ORDER = """
import dcs, os, sys
with dcs.Session(os.path.basename(sys.argv[0])[:-3]) as session:
    for n in range(4):
        session.submit(n, ["/bin/sh", "-c", "echo >>$0.$1; test $1 != 2 -o -e $0.go", os.path.abspath(sys.argv[0]), str(n), *sys.argv[3:]],
                       attempts=1, memory_mb=int(sys.argv[1]))
    seen = [(result.grain, result.code) for result in session.results()]
    if sys.argv[2] == "more":
        session.submit(9, ["/bin/echo", "more"])
        seen += [(result.grain, result.code) for result in session.results()]
    print(sorted(seen))
"""
GOOD, FAILED = "[(0, 0), (1, 0), (2, 0), (3, 0)]\n", "[(0, 0), (1, 0), (2, 1), (3, 0)]\n"


def number_of(ident):
    return next(row.session for row in dcs.sessions() if row.ident == ident)


def ran(name, grains):
    return [open(f"{name}.{n}").read().count("\n") for n in range(grains)]


def refused(env, program, *words):
    done = subprocess.run([PYTHON, program, *words], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done
    return done.stderr


def all_at_once(pool, env, again):
    """Of a closed session, with other demands. A replay-check and an export take it afterwards."""
    assert said(env, "all.py", IN_ORDER, "10", "") == said(env, "all.py", IN_ORDER, "20", "") == FAILED
    assert tells(refused(env, "all.py", "10", "", "other"), "grain 0"), "an unchanged result does not take other arguments"
    open("all.py.go", "w").close()
    assert said(again, "all.py", IN_ORDER, "20", "") == GOOD
    for environment in env, again:
        assert said(environment, "all.py", IN_ORDER, "10", "") == GOOD
    assert ran("all.py", 4) == [1, 1, 2, 1]
    number = str(number_of("all"))
    pool.env.update(env)
    done = pool.dcs("replay-check", number, "--", PYTHON, "all.py", "20", "", check=False)
    assert done.returncode == 0 and tells(done.stdout, "the program repeats its record"), done
    pool.dcs("session", "export", number, "exported")


def with_more(pool, env, again):
    """Grains that were submitted behind the failure may depend on it: refused, until it is forgotten with them."""
    said(env, "more.py", IN_ORDER, "10", "more")
    open("more.py.go", "w").close()
    assert tells(refused(again, "more.py", "10", "more"), "--and-after --when-submitted` forgets it with them")
    assert tells(refused({**env, "DCS_RESUME_FAILED": "yes"}, "more.py", "10", "more"), "DCS_RESUME_FAILED is `yes`: it must be 1")
    number = number_of("more")
    pool.dcs("grain", "restart", f"{number}:2", "--and-after", "--when-submitted")
    assert {row.grain for row in dcs.grains(number)} == {0, 1, 3}
    assert said(env, "more.py", IN_ORDER, "30", "more") == GOOD.replace("]", ", (9, 0)]")
    assert [dcs.grain_row(number, grain).memory_mb for grain in (1, 2)] == [10, 30]
    assert ran("more.py", 4) == [1, 1, 2, 1]


CALLED = """
import dcs, sys
with dcs.Executor("called", attempts=1, memory_mb=int(sys.argv[1])) as run:
    first = [run.submit_command(["/bin/sh", "-c", "echo >>$0.$1; test $(($1 % 10)) != 3 -o -e $0.go", "called", str(n)]) for n in range(40)]
    print([n for n, future in enumerate(first) if future.exception() is not None])
    print(run.submit_command(["/bin/echo", *sys.argv[2:], "after"]).result().output)
"""


def by_numbers(env, again):
    """An executor's futures get no failure of before, whenever the recorded results arrive; what follows stays."""
    failed = "[3, 13, 23, 33]\nb'after\\n'\n"
    assert said(env, "called.py", CALLED, "10") == said(env, "called.py", CALLED, "20") == failed
    assert said(again, "called.py", CALLED, "20") == failed
    open("called.go", "w").close()
    for environment in again, env, again:
        assert said(environment, "called.py", CALLED, "20") == "[]\nb'after\\n'\n"
    assert ran("called", 40) == [3 if n % 10 == 3 else 1 for n in range(40)]
    told = refused(again, "called.py", "20", "other")
    assert tells(told, f"dcs grain restart {number_of('called')}:40 --and-after --when-submitted` forgets with what followed"), told


LEAVES = """
import dcs, sys
with dcs.Session("leaves") as session:
    session.submit(0, ["/bin/sh", "-c", "until test -e $0; do sleep 0.05; done", sys.argv[1]])
    if len(sys.argv) == 2:
        session.leave()
    else:
        print(session.wait().code)
"""
STOPS = """
import dcs, os
with dcs.Session("stops") as session:
    for n in range(9):
        session.submit(n, ["/bin/sh", "-c", "echo >>$0; exec sleep $1", os.path.abspath("stops.ran"), "0" if n == 0 else "1000"])
    print(session.wait().grain)
    session.close()
"""
CORRECTED = """
import dcs, sys
with dcs.Session("corrected") as session:
    session.submit(0, ["/bin/test", *sys.argv[1:]], attempts=1)
    print(session.wait().code)
"""


def others(env, again):
    said(env, "leaves.py", LEAVES, os.path.abspath("left"))
    open("left", "w").close()
    assert said(env, "leaves.py", LEAVES, os.path.abspath("left"), "waits") == "0\n"
    # What a search that stopped early has left does not run again.
    for environment in env, again, again:
        assert said(environment, "stops.py", STOPS) == "0\n"
    assert next(row.state for row in dcs.sessions() if row.ident == "stops") == "terminated"
    begun = open("stops.ran").read().count("\n")
    assert said(again, "stops.py", STOPS) == "0\n" and open("stops.ran").read().count("\n") == begun
    # Other arguments of a grain that failed.
    assert said(env, "corrected.py", CORRECTED, "1", "-gt", "2") == "1\n"
    assert tells(refused(env, "corrected.py", "3", "-gt", "2"), "grain 0 failed: with DCS_RESUME_FAILED=1 begins again as it is now")
    assert said(again, "corrected.py", CORRECTED, "3", "-gt", "2") == said(env, "corrected.py", CORRECTED, "3", "-gt", "2") == "0\n"


def main():
    with pool_of_python() as (pool, env):
        again = {**env, "DCS_RESUME_FAILED": "1"}
        all_at_once(pool, env, again)
        with_more(pool, env, again)
        by_numbers(env, again)
        others(env, again)
        print("failed grains begin again, and nothing else does")


if __name__ == "__main__":
    sys.exit(main())
