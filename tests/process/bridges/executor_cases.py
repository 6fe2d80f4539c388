#!/usr/bin/python3
"""CPython's own cases of concurrent.futures (Debian's libpython3.11-testsuite) with dcs.Executor in the place of theirs, under
--full: all pass but those named here, each with its reason."""
import json
import os
import subprocess
import sys

from cases import counted
from hurry import Hurry
from pool import FULL, ROOT, Pool

CASES = "/usr/lib/python3.11/test/test_concurrent_futures.py"
# Those that fail, and why.
APART = {
    "test_max_workers_negative": "the pool decides how many run: there is no max_workers",
    "test_interpreter_shutdown": "the program names the executor's class in concurrent.futures; the grain's output is not the program's",
    "test_submit_after_interpreter_shutdown": "the program names the executor's class in concurrent.futures",
    "test_hang_gh83386": "the program names the executor's class in concurrent.futures; the grain's output is not the program's",
}
# It counts on some calls that run to their end; cancel() here ends running ones, too, so it depends on the machine's pace.
EITHER = {"test_cancel_futures"}
DRIVER = """
import json, sys, unittest
import dcs
from test import support, test_concurrent_futures as theirs
support.verbose = 0
sys.modules["__main__"].__file__ = None  # not a program whose functions are called

def executor(max_workers=None):
    return dcs.Executor("cases", fresh=True)
executor.__name__ = "Executor"

class Mixin(theirs.ExecutorMixin):
    executor_type = staticmethod(executor)

def outcome(kind, name):
    case = type(kind.__name__, (Mixin, kind, theirs.BaseTestCase), {})(name)
    found = unittest.TestResult()
    case.run(found)
    wrong = [text for _, text in found.failures + found.errors]
    return wrong[0] if wrong else ""

for kind in (theirs.WaitTests, theirs.AsCompletedTests, theirs.ExecutorTest, theirs.ExecutorShutdownTest):
    for name in sorted(name for name in dir(kind) if name.startswith("test_")):
        if len(sys.argv) == 1 or name in sys.argv:
            print(json.dumps([kind.__name__, name, outcome(kind, name)]), flush=True)
"""


def run(pool, *names):
    env = dict(pool.env, PYTHONPATH=os.path.join(ROOT, "libdcs/python"), PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(["/usr/bin/python3", "-c", DRIVER, *names], env=env, cwd=pool.base, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True, timeout=3000)
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    if not FULL:
        print("SKIPPED: tests/run --full runs it")
        return 77
    if not os.path.exists(CASES):
        print("SKIPPED: deploy/install-packages --full installs libpython3.11-testsuite")
        return 77
    with Pool(servers=2, slots=4, interval=1) as pool, Hurry(pool):
        seen = run(pool)
        late = [name for _, name, wrong in seen if wrong and name not in APART and name not in EITHER]
        if late:  # many compare seconds, and this machine has other work
            again = {name: wrong for _, name, wrong in run(pool, *late)}
            seen = [[kind, name, again.get(name, wrong)] for kind, name, wrong in seen]
    for kind, name, wrong in seen:
        print(f"{kind}.{name}: {APART.get(name, 'fails') if wrong else 'passes'}")
    failed = {name: wrong for _, name, wrong in seen if wrong and name not in EITHER}
    assert len(seen) >= 20 and set(failed) == set(APART), (sorted(failed), [text for name, text in failed.items() if name not in APART])
    assert counted("CPython 3.11, `test_concurrent_futures`") == (len([kind for kind, name, _ in seen if name not in APART]), len(seen))
    print(f"{sum(not wrong for _, _, wrong in seen)} of {len(seen)} cases of CPython pass")
    return 0


if __name__ == "__main__":
    sys.exit(main())
