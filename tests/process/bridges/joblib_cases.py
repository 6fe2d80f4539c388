#!/usr/bin/python3
"""joblib with the backend "dcs": what a program sees of it, killed and interrupted ones too; Dask with an executor; and, under --full,
joblib's own cases (Debian's python3-joblib) with this backend in the place of their processes: all pass but those named here.

    joblib_cases [PART]    dask, programs, ended, waits or cases alone"""
import os
import re
import signal
import subprocess
import sys

from cases import counted
from hurry import Hurry
from pool import FULL, ROOT, Pool, wait_for

PYTHON = "/usr/bin/python3"
CASES = "/usr/lib/python3/dist-packages/joblib/test/test_parallel.py"
# Those that fail, and why.
MEMMAP = "arrays are not mapped from files: each batch has its own copy"
APART = {
    "test_dispatch_multiprocessing": "it shares a list of multiprocessing.Manager, which takes children of the program only",
    "test_auto_memmap_on_arrays_from_generator": MEMMAP,
    "test_memmapping_leaks": MEMMAP,
}
PROGRAM = """
import sys, threading, time
import dcs.joblib
from joblib import Parallel, delayed, parallel_backend
from beside import Pair, twice

def inner(n):
    return Parallel(n_jobs=2)(delayed(pow)(n, e) for e in range(3)), Parallel(n_jobs=2, backend="dcs")(delayed(abs)(-n) for _ in range(2))

def processes(n):
    return Parallel(n_jobs=2, backend="loky")(delayed(pow)(n, e) for e in range(3))

def late(n):
    time.sleep(n)
    return n

def gone(n):
    if n == 3:
        raise LookupError(f"no {n}")
    return n

if __name__ == "__main__":
    factor = 3
    with parallel_backend("dcs", **eval(sys.argv[1])):
        print(Parallel()(delayed(lambda n: n * factor)(n) for n in range(5)))
        print(Parallel()(delayed(twice)(Pair(n, n)) for n in range(3)))
        print(Parallel()(delayed(inner)(n) for n in range(2, 4)))
        print(Parallel()(delayed(processes)(n) for n in range(2, 4)))
        print(sum(Parallel(n_jobs=4)(delayed(abs)(-n) for n in range(100))))
        with Parallel() as parallel:
            print(parallel(delayed(abs)(-n) for n in range(3)), parallel(delayed(gone)(n) for n in range(3)))
            try:
                parallel(delayed(gone)(n) for n in range(6))
            except LookupError as error:
                print(error, "in gone" in error.__cause__.traceback, parallel(delayed(abs)(-n) for n in range(3)))
        try:
            Parallel(timeout=0.1)(delayed(late)(1000) for _ in range(3))
        except Exception as error:
            print(type(error).__name__)
        try:
            Parallel()(delayed(late)(3000 // (3 - n)) for n in range(9))
        except ZeroDivisionError as error:
            print(error)
        try:
            Parallel()(delayed(abs)(threading.Lock()) for _ in range(30))
        except TypeError as error:
            print(error)
"""
PRINTED = """[0, 3, 6, 9, 12]
[Pair(a=0, b=0), Pair(a=2, b=2), Pair(a=4, b=4)]
[([1, 2, 4], [2, 2]), ([1, 3, 9], [3, 3])]
[[1, 2, 4], [1, 3, 9]]
4950
[0, 1, 2] [0, 1, 2]
no 3 True [0, 1, 2]
TimeoutError
integer division or modulo by zero
cannot pickle '_thread.lock' object
"""
BESIDE = """
import dataclasses
import further

@dataclasses.dataclass
class Pair:
    a: int
    b: int

def twice(pair):
    return Pair(further.double(pair.a), further.double(pair.b))
"""
SLOW = """
import time
import dcs.joblib
from joblib import Parallel, delayed

if __name__ == "__main__":
    Parallel(n_jobs=-1, backend="dcs")(delayed(time.sleep)(1000) for _ in range(9))
"""
DASK = """
import operator
import dask, dask.bag
import dcs

if __name__ == "__main__":
    with dcs.Executor(encoding="cloudpickle") as executor:
        offset = 5
        parts = [dask.delayed(lambda n: n + offset)(n) for n in range(6)]
        print(dask.compute(dask.delayed(sum)(parts), scheduler=executor)[0])
        with dask.config.set(scheduler=executor):
            print(dask.bag.from_sequence(range(40), npartitions=4).map(lambda n: n * n).filter(lambda n: n % 2).sum().compute())
"""


def run(pool, work, name, *words):
    env = dict(pool.env, PYTHONPATH=os.path.join(ROOT, "libdcs/python"), PYTHONDONTWRITEBYTECODE="1")
    return subprocess.Popen([PYTHON, os.path.join(work, name), *words], env=env, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def said(process, timeout=600):
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    return out, err, process.returncode


def sessions(pool):
    return {row["session"]: row["state"] for row in pool.json("session", "ls")["sessions"]}


def programs(pool, work):
    for options in ("{}", "dict(memory_mb=500, cores=1, inner_max_num_threads=1)"):
        out, err, code = said(run(pool, work, "program.py", options))
        assert (out, code) == (PRINTED, 0), (out, err, code)
        assert sessions(pool) == {}, "sessions of Parallel are left"
    print("a program with joblib: seen", flush=True)


def ended(pool, work):
    """Ctrl-C ends the grains and removes the session; what a kill -9 leaves the next program removes."""
    for how in (signal.SIGINT, signal.SIGKILL):
        process = run(pool, work, "slow.py")
        wait_for("all slots", lambda: [g["state"] for number in sessions(pool) for g in pool.grains(number)].count("running") == 4)
        process.send_signal(how)
        out, err, code = said(process)
        assert code != 0 and ("KeyboardInterrupt" in err) == (how == signal.SIGINT), (out, err, code)
        assert list(sessions(pool).values()) == ([] if how == signal.SIGINT else ["active"])
    out, err, code = said(run(pool, work, "program.py", "{}"))
    assert (out, code) == (PRINTED, 0) and sessions(pool) == {}, (out, err, code, sessions(pool))
    print("interrupted and killed: seen", flush=True)


def waits(pool, work):
    """A pool that is busy: one line says so."""
    other = pool.start([os.path.join(pool.bin, "dcs"), "map", "--cwd", work, "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.1; done", ":::", *"123456"], cwd=work,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for("others on all slots", lambda: [g["state"] for number in sessions(pool) for g in pool.grains(number)].count("running") == 4)
    process = run(pool, work, "program.py", "{}")
    line = process.stderr.readline()
    assert re.fullmatch(r"dcs: call 0 of session (\d+) waits: .* \(`dcs grain explain \1:0`\)\n", line), line
    open(os.path.join(work, "go"), "w").close()
    out, err, code = said(process)
    assert (out, code) == (PRINTED, 0) and "waits:" not in err, (out, err, code)
    assert other.wait(timeout=300) == 0
    print("busy: seen", flush=True)


def dask(pool, work):
    if subprocess.run([PYTHON, "-c", "import dask.bag"], stderr=subprocess.DEVNULL).returncode != 0:
        print("Dask is not here: deploy/install-packages --full installs it")
        return
    out, err, code = said(run(pool, work, "with_dask.py"))
    assert (out, code) == ("45\n10660\n", 0), (out, err, code)
    print("Dask: seen", flush=True)


def cases(pool, work):
    with open(CASES) as file:
        text = file.read()
    assert subprocess.run([PYTHON, "-c", "import numpy"]).returncode == 0, "deploy/install-packages --full installs numpy, without which cases do nothing"
    text, count = re.subn(r"PROCESS_BACKENDS = \['multiprocessing', 'loky'\]\nPARALLEL_BACKENDS = PROCESS_BACKENDS \+ \['threading'\]",
                          "PROCESS_BACKENDS = ['dcs']\nPARALLEL_BACKENDS = ['dcs']", text)
    text, slow = re.subn(r"timeout=1[05]\b", "timeout=600", text)  # of programs that they start: this machine has other work
    assert count == 1 and slow == 4
    with open(os.path.join(work, "test_their_cases.py"), "w") as file:
        file.write(text)
    with open(os.path.join(work, "sitecustomize.py"), "w") as file:  # their cases start programs that know nothing of the backend
        file.write("import dcs.joblib\n")
    env = dict(pool.env, PYTHONPATH=work + ":" + os.path.join(ROOT, "libdcs/python"), PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([PYTHON, "-m", "pytest", "-p", "dcs.joblib", "-p", "no:cacheprovider", "-q", "-rA", "--tb=short", "-k", "dcs",
                           "test_their_cases.py"], env=env, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=3000)
    seen = re.findall(r"^(PASSED|FAILED|XFAIL|XPASS|SKIPPED|ERROR) \S*::(\w+)(\[\S*\])?", done.stdout, re.M)
    failed = {name for how, name, _ in seen if how in ("FAILED", "ERROR")}
    for name in sorted(failed):
        print(f"{name}: {APART.get(name, 'fails')}")
    assert failed == set(APART), (failed ^ set(APART), done.stdout[-20000:])
    assert counted("joblib 1.2, `test_parallel`") == (sum(how in ("PASSED", "XPASS") for how, *_ in seen), len(seen))
    print(f"{sum(how in ('PASSED', 'XPASS') for how, *_ in seen)} of {len(seen)} cases of joblib pass")


def main():
    if not os.path.exists(CASES):
        print("SKIPPED: deploy/install-packages --tests installs python3-joblib")
        return 77
    with Pool(servers=2, slots=2, interval=1) as pool, Hurry(pool):
        work = os.path.join(pool.base, "work")
        os.mkdir(work)
        for name, text in (("program.py", PROGRAM), ("beside.py", BESIDE), ("further.py", "def double(n):\n    return n + n\n"),
                           ("slow.py", SLOW), ("with_dask.py", DASK)):
            with open(os.path.join(work, name), "w") as file:
                file.write(text)
        for part in (dask, programs, ended, waits, *((cases,) if FULL or sys.argv[1:] == ["cases"] else ())):
            if sys.argv[1:] in ([], [part.__name__]):
                part(pool, work)
    print("joblib and Dask run on a pool")
    return 0


if __name__ == "__main__":
    sys.exit(main())
