#!/usr/bin/python3
"""dcs ssh as GNU parallel calls it; under --full parallel itself, which keeps its order, its job log and its ends while the scheduler
and a host are killed, and whose jobs end with it."""
import os
import signal
import subprocess
import sys

from hurry import Hurry
from pool import BIN, FULL, Pool, about, wait_for

PARALLEL = "/usr/bin/parallel"


class World:
    def __init__(self, pool):
        self.pool, self.work = pool, os.path.join(pool.base, "work")
        os.mkdir(self.work)
        self.env = dict(pool.env, HOME=self.work, PWD=self.work, PATH=f"{BIN}:/usr/bin:/bin")

    def run(self, *words, code=0, data=""):
        done = subprocess.run(words, cwd=self.work, env=self.env, input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
        assert done.returncode == code, (words, done)
        self.said = done.stderr
        return done.stdout

    def parallel(self, *words):
        return [PARALLEL, "--will-cite", "--ssh", "dcs ssh", *words]

    def count(self, name):
        try:
            with open(os.path.join(self.work, name)) as file:
                return len(file.read().splitlines())
        except FileNotFoundError:
            return 0


def transport(world):
    run = world.run
    assert run("dcs", "ssh", "any", "--", "exec", "sh", "-c", "'echo $0 $PWD; cat; echo err >&2; exit 3'", "word", code=3, data="in\n") == \
        f"word {world.work}\nin\n" and world.said == "err\n"
    assert run("dcs", "ssh", "local2", "echo a  b;", "echo c", data="unread") == "a b\nc\n"
    assert run("dcs", "ssh", "-n", "0x1", "cat", data="unread") == ""
    run("dcs", "ssh", "0x80000000", "true", code=255)
    assert about(world.said, "class"), world.said
    run("dcs", "ssh", "any", "kill -TERM $$", code=128 + 15)
    run("dcs", "ssh", "nowhere", "true", code=255)
    assert about(world.said, "no host and no class of hosts nowhere") and about(world.said, "any means all hosts")
    bare = {name: value for name, value in world.env.items() if name != "SHELL"}  # as a service has it; sshd sets the variable, too
    assert subprocess.run(["dcs", "ssh", "any", "echo $SHELL"], cwd=world.work, env=bare, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout == b"/bin/sh\n"
    for rsync in ("rsync --server -logDtpre.iLsfxCIvu . .", "/usr/bin/rsync --server --sender -e. . out"):  # it would wait for ever
        run("dcs", "ssh", "any", rsync, code=255)
        assert about(world.said, "rsync --transferfile dcs map --file"), world.said
    for words, missing in ((("any",), "CMD"), ((), "HOST"), (("--memory", "1G"), "HOST")):
        run("dcs", "ssh", *words, code=255)
        assert about(world.said, missing + " is missing"), world.said
    child = subprocess.Popen(["dcs", "ssh", "any", "echo begun >begun; sleep 1000"], cwd=world.work, env=world.env, stdin=subprocess.DEVNULL)
    wait_for("the grain", lambda: world.count("begun"), timeout=300)
    child.send_signal(signal.SIGTERM)  # as parallel ends a job
    assert child.wait() == 128 + 15
    wait_for("the end of its grain", lambda: not world.pool.grain_processes(), timeout=300)


def parallel(world):
    run = world.run
    numbers = "".join(f"{n}\n" for n in range(1, 21))
    assert run(*world.parallel("-k", "-S", "2/local1,2/any", "echo {} $(({} * {}))"), data=numbers) == \
        "".join(f"{n} {n * n}\n" for n in range(1, 21))
    run(*world.parallel("-S", "4/any", "--joblog", "log", "exit $(({} % 2))"), code=10, data=numbers)
    ends = [line.split("\t")[6] for line in open(os.path.join(world.work, "log")).read().splitlines()[1:]]
    assert sorted(ends) == ["0"] * 10 + ["1"] * 10, ends
    assert sum(map(int, run(*world.parallel("--pipe", "-N5", "-S", "2/any", "wc -l"), data=numbers).split())) == 20
    run(*world.parallel("-S", "4/any", "--halt", "now,fail=1", "echo {} >>tried; [ {} != 1 ] && sleep 1000"), code=1, data=numbers)
    wait_for("the end of the others", lambda: not world.pool.grain_processes(), timeout=300)
    assert 1 <= world.count("tried") < 20
    run(*world.parallel("-S", "2/any", "--transferfile", "{}", "--return", "{}.out", "--cleanup", "cp {} {}.out"), code=1, data="log\n")
    assert about(world.said, "rsync --transferfile dcs map --file"), world.said
    assert run(*world.parallel("-k", "-S", "any", "echo {}"), data="1\n2\n") == "1\n2\n"  # parallel asks for the cores by itself


def kills(world):
    """The scheduler dies, then a host; outputs are complete and in order."""
    numbers = "".join(f"{n}\n" for n in range(1, 41))
    child = subprocess.Popen(world.parallel("-k", "-S", "4/any", "sleep 0.5; echo {}; echo {} >>done"), cwd=world.work, env=world.env,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child.stdin.write(numbers)
    child.stdin.close()
    wait_for("eight jobs", lambda: world.count("done") >= 8, timeout=300)
    world.pool.kill("scheduler", "scheduler")
    world.pool.up()
    wait_for("twenty jobs", lambda: world.count("done") >= 20, timeout=300)
    world.pool.kill_host("local1")
    world.pool.up()
    assert child.stdout.read() == numbers and child.wait() == 0


def main():
    with Pool(servers=2, slots=2, interval=1) as pool, Hurry(pool):
        world = World(pool)
        transport(world)
        if FULL and not os.path.exists("/usr/bin/env_parallel"):
            print("SKIPPED: parallel; deploy/install-packages --full installs it")
            return 77
        for part in (parallel, kills) if FULL else ():
            part(world)
            print(f"{part.__name__}: seen", flush=True)
    print("dcs ssh is a transport for GNU parallel")
    return 0


if __name__ == "__main__":
    sys.exit(main())
