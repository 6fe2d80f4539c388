#!/usr/bin/python3
"""Sessions of libdrmaa.so.1.0: contact strings, programs that are killed, with and without the scheduler, and find their jobs when
they run again, waits while the scheduler is away, threads."""
import os
import subprocess
import sys
import threading
import time

import drmaa_library as d
from drmaa_library import ALL, ANY, Tour, refused
from hurry import Hurry
from pool import Pool, about

# A program that is killed while it waits for its jobs: it says what it learns, and is not different when it runs again.
PROGRAM = """
import signal, sys
signal.alarm(300)
from drmaa_library import ANY, Library
library = Library()
print(library.init(sys.argv[1]), flush=True)
where = sys.argv[2]
print(library.run(remote_command="sh", v_argv=["-c", "echo run >>runs; echo one"], wd=where, output_path=":one"), flush=True)
print(*library.bulk(1, 3, 1, remote_command="sh", wd=where, v_argv=["-c",
      "echo run >>runs; while [ ! -e go$SGE_TASK_ID ]; do sleep 0.1; done; exit $SGE_TASK_ID"]), flush=True)
for _ in range(4):
    print(*library.wait(ANY)[:2], flush=True)
print(library.run(remote_command="sh", v_argv=["-c", "echo run >>runs"], wd=where), flush=True)
print(*library.wait(ANY)[:2], flush=True)
library.exit()
"""


def sessions(tour):
    lib = tour.lib
    assert about(refused(d.ALREADY, lib.init), "active")
    contact = lib.text("get_contact")
    number = int(contact.split("=")[1])
    job = tour.sh("while [ ! -e end ]; do sleep 0.1; done; exit 7")
    lib.exit()
    state = lambda n: {s["session"]: s["state"] for s in tour.pool.json("session", "ls")["sessions"]}[n]  # noqa: E731
    assert state(number) == "active", "drmaa_exit left the job alone"
    assert lib.init(contact) == contact
    tour.write("end")
    assert lib.wait(job)[1] == ("exited", 7)
    lib.exit()
    assert state(number) == "terminated"
    lib.init(contact)  # also when all was over
    assert lib.wait(ANY)[0] and lib.wait(tour.sh("exit 2"))[1] == ("exited", 2)
    more = tour.sh("while [ ! -e end2 ]; do sleep 0.1; done")
    lib.exit()
    assert lib.init() != contact and state(number) == "active"
    refused(d.TIMEOUT, lib.wait, more, 0)  # a job of another session
    tour.write("end2")
    assert lib.wait(more)[1] == ("exited", 0)
    refused(d.INVALID_JOB, lib.wait, more)
    lib.exit()
    lib.init()
    assert state(number) == "terminated", "drmaa_init closes a session that was left, when it has nothing to do"
    lib.exit()


def start(tour, name):
    path = os.path.join(tour.work, "program.py")
    with open(path, "w") as file:
        file.write(PROGRAM)
    return subprocess.Popen([sys.executable, path, name, tour.work], stdout=subprocess.PIPE, text=True, env=d.environment(DCS_DIR=tour.pool.dir))


def killed(tour, name, kill_scheduler):
    """The program is killed after its second result."""
    first = start(tour, name)
    said = [first.stdout.readline() for _ in range(4)]
    tour.write("go2")
    said.append(first.stdout.readline())
    first.kill()
    first.wait()
    if kill_scheduler:
        tour.pool.kill("scheduler", "scheduler")
        tour.write("go3")
        tour.pool.up()
    again = start(tour, name)
    assert [again.stdout.readline() for _ in range(5)] == said, said
    tour.write("go3")
    said.append(again.stdout.readline())
    tour.write("go1")
    said.append(again.stdout.readline())
    rest = again.stdout.read()
    assert again.wait() == 0
    session = said[1].split(":")[0]
    assert said[2].split() == [f"{session}:{n}" for n in (2, 3, 4)], said
    assert [line.split()[0].split(":")[1] for line in said[3:]] == ["1", "3", "4", "2"], said
    assert rest.split()[0] == f"{session}:5" and tour.read("runs").count("run") == 5, "each job ran once"
    for file in ("go1", "go2", "go3", "runs"):
        os.unlink(os.path.join(tour.work, file))
    return session


def repeated(tour):
    lib = tour.lib
    once = killed(tour, "nightly", False)
    assert killed(tour, "nightly", True) != once, "a program that reached drmaa_exit begins anew"
    assert lib.init("other") == "other"  # this one does not exit: what it repeats has to be the same
    tour.sh("exit 1")
    child = subprocess.run([sys.executable, "-c", "from drmaa_library import *\nlib = Library()\nlib.init('other')\n"
                            "print(refused(DENIED, lib.run, remote_command='sh', v_argv=['-c', 'exit 2']))"], stdout=subprocess.PIPE, text=True)
    assert about(child.stdout, "the session other repeats"), child
    assert refused(d.AUTH, tour.sh, "true"), "the other program has the session now"
    lib.exit()
    os.environ["DCS_DRMAA_SESSION"] = "by-environment"
    assert lib.init() == "by-environment"
    job = tour.sh("while [ ! -e last ]; do sleep 0.1; done")
    lib.exit()  # left on purpose: the next program of this name does not repeat it
    assert lib.init() == "by-environment"
    assert tour.sh("true").split(":")[0] != job.split(":")[0]
    tour.write("last")
    lib.exit()
    del os.environ["DCS_DRMAA_SESSION"]


def away(tour):
    """A wait goes on while the scheduler is away."""
    lib = tour.lib
    lib.init()
    job = tour.sh("while [ ! -e back ]; do sleep 0.1; done; exit 5")
    tour.until(job, d.RUNNING)
    child = subprocess.Popen([sys.executable, "-c", "import sys\nfrom drmaa_library import *\nlib = Library()\nlib.init()\nprint('waits', flush=True)\n"
                              "print(lib.wait(sys.argv[1])[1], flush=True)\nlib.exit()", job], stdout=subprocess.PIPE, text=True,
                             env=d.environment(DCS_PATIENCE_S="10"))
    assert child.stdout.readline() == "waits\n"
    tour.pool.kill("scheduler", "scheduler")
    time.sleep(12)  # longer than its patience
    tour.pool.up()
    tour.write("back")
    assert child.stdout.read() == "('exited', 5)\n" and child.wait() == 0
    assert lib.wait(job)[1] == ("exited", 5)
    lib.exit()


def threads(tour):
    """Each of several threads gets the end of its own job, and no end comes twice to those that wait for any."""
    lib = tour.lib
    lib.init()
    found, own = [], {}

    def one(code):
        own[code] = lib.wait(tour.sh(f"exit {code}"))[1]

    def anything():
        found.append(lib.wait(ANY)[0])

    several([threading.Thread(target=one, args=(code,)) for code in range(1, 9)])
    assert own == {code: ("exited", code) for code in range(1, 9)}, own
    ids = lib.bulk(1, 6, 1, remote_command="true")
    several([threading.Thread(target=anything) for _ in ids])
    assert sorted(found) == sorted(ids), found
    job, errors = tour.sh("while [ ! -e released ]; do sleep 0.1; done"), []

    def left_behind():
        try:
            lib.wait(job)
        except d.Refused as error:
            errors.append(error.code)

    waits = threading.Thread(target=left_behind)
    waits.start()
    lib.exit()  # which ends the wait, begun or not
    waits.join()
    tour.write("released")
    assert errors == [d.NO_SESSION], errors


def several(all_of_them):
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()


def main():
    with Pool(servers=2, slots=2, interval=1) as pool, Hurry(pool):
        tour = Tour(pool)
        tour.lib.init()
        for part in (sessions, repeated, away, threads):
            part(tour)
            print(f"{part.__name__}: seen", flush=True)
    print("programs of DRMAA find their jobs again")
    return 0


if __name__ == "__main__":
    sys.exit(main())
