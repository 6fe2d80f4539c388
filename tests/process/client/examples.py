#!/usr/bin/python3
"""The example programs of docs/EXAMPLES.md: their grains stopped at checkpoints and continued; each control program killed by -9
in mid-run, as is the scheduler, and run again, until its published answer is there; the page's own commands; and what
they say when an answer is wrong."""
import os
import re
import signal
import subprocess
import tempfile
import time

from hurry import Hurry
from pool import FULL, ROOT, Pool, program, seeded, wait_for

# A grain's input, and its answer. As long as it takes to be stopped three times.
GRAINS = [("primes_between", "0 {} 0\n", [10**8, 10**9, 10**10], [5761455, 50847534, 455052511]),
          ("queens_below", "{} 0\n0 0\n", [12, 13, 14, 15, 16], [14200, 73712, 365596, 2279184, 14772512]),
          ("golomb_below", "{} 1 200\n1 0\n1\n0\n", [9, 10, 11, 12], [44, 55, 72, 85]),
          ("lucas_lehmer", "{} 0 4\n", [9689, 11213, 21701, 44497], ["prime"] * 4)]

# A control program, and how to look at what it prints.
PROGRAMS = {"count_primes": (["--grains", "1000000", "10000000000"] if FULL else ["--grains", "1000", "10000000"],
                             lambda text: text == ("455052511\n" if FULL else "664579\n")),
            "golomb": (["11"] if FULL else ["8"], lambda text: is_ruler(text, 11 if FULL else 8, 72 if FULL else 34)),
            "queens": (["14"] if FULL else ["9"], lambda text: text == ("365596\n" if FULL else "352\n")),
            "mersenne": (["11239", "21701", "44497"] if FULL else ["2203", "2207", "4423"],
                         lambda text: mersenne(text) == ("CPP" if FULL else "PCP"))}


def is_ruler(text, marks, length):
    """A party that says that this is a ruler need not be believed."""
    told, places = text.split(":")
    places = list(map(int, places.split()))
    distances = {b - a for i, a in enumerate(places) for b in places[i + 1:]}
    return int(told) == length == places[-1] - places[0] and len(places) == marks and len(distances) == marks * (marks - 1) // 2


def mersenne(text):
    """P or C for each exponent, in ascending order."""
    lines = sorted(text.splitlines(), key=lambda line: int(re.match(r"2\^(\d+)", line)[1]))
    assert "11239" not in text or "2^11239-1 is composite 5E5E10BA351BC87A" in lines, lines
    return "".join("P" if line.endswith("prime") else "C" for line in lines)


def run_once(directory, name, data, sequence):
    """Runs a grain as a server would, asks for a checkpoint as soon as it can and kills it. What it is to go on with, or
    None and its output if it was faster."""
    with open(os.path.join(directory, "input"), "w") as file:
        file.write(data)
    env = dict(os.environ, DCS_GRAIN_DIR=directory, DCS_GRAIN_SEQUENCE=str(sequence))
    out = os.path.join(directory, f"out.{sequence}")
    announced = os.path.join(directory, "announce")
    if os.path.exists(announced):
        os.unlink(announced)
    process = subprocess.Popen([program(name)], stdin=open(os.path.join(directory, "input")), stdout=open(out, "w"),
                               env=env, start_new_session=True)
    wait_for("the grain's first words", lambda: os.path.exists(announced) or process.poll() is not None, step=0.001)
    time.sleep(0.02)
    process.send_signal(signal.SIGUSR1)
    path = os.path.join(directory, f"checkpoint.{sequence}")
    wait_for("a checkpoint", lambda: os.path.exists(path) or process.poll() is not None, step=0.001)
    if os.path.exists(path):
        process.kill()
    code = process.wait(timeout=600)
    if not os.path.exists(path):
        assert code == 0, f"{name} ended with {code}, its input was {data!r}"
        return None, open(out).read()
    head, _, rest = open(path).read().partition("\n\n")
    fields = dict(line.split(" ", 1) for line in head.splitlines())
    state = rest[int(fields["message"]) + 1:rest.rindex("dcs-end ")]
    assert open(out).read() == "", "these grains say nothing before their end"
    return state + data[int(fields["input_offset"]):], None


def grain_goes_on(name, form, sizes, answers):
    for size, answer in zip(sizes, answers):
        with tempfile.TemporaryDirectory(prefix="dcs-test-") as directory:
            data, output, stops = form.format(size), None, 0
            while output is None:
                if stops == 3:  # now to its end
                    done = subprocess.run([program(name)], input=data.encode(), stdout=subprocess.PIPE, check=True, timeout=600)
                    output = done.stdout.decode()
                    break
                data_next, output = run_once(directory, name, data, stops)
                data, stops = data_next or data, stops + (output is None)
        assert output.split(" ")[0].strip() == str(answer), f"{name} {size}: {output!r}, not {answer}"
        if stops == 3:
            return print(f"{name} {size}: stopped {stops} times, {output.strip()[:60]}")
    raise AssertionError(f"{name} was too fast to be stopped, also with {sizes[-1]}")


class Run:
    def __init__(self, pool, name):
        self.pool, self.name, self.kills = pool, name, 0
        self.path = os.path.join(pool.base, name)
        self.process = None

    def start(self):
        env = dict(self.pool.env, PYTHONPATH=os.path.join(ROOT, "libdcs/python"), PYTHONDONTWRITEBYTECODE="1")
        self.process = subprocess.Popen([program(self.name), *PROGRAMS[self.name][0]], stdout=open(self.path, "w"),
                                        stderr=open(self.path + ".log", "a"), env=env)

    def kill(self):
        self.process.kill()
        self.kills += 1
        self.process.wait()

    def text(self):
        return open(self.path).read()

    def told(self):
        return open(self.path + ".log").read()[-3000:]


def storm(pool, rng):
    """All of them at once; now and then one or the scheduler is killed, and started again."""
    runs = [Run(pool, name) for name in PROGRAMS]
    try:
        until_all_are_done(pool, rng, runs)
    finally:
        for run in runs:
            if run.process is not None:
                run.process.kill()
    return runs


def until_all_are_done(pool, rng, runs):
    for run in runs:
        run.start()
    kills, most = 0, 40 if FULL else 3
    while any(run.process.poll() is None for run in runs) or any(run.kills == 0 for run in runs):
        time.sleep(0.1 + rng.random())
        if kills < most:
            kills += pool.kill("scheduler", "scheduler")
            pool.up()
        for run in runs:
            if run.process.poll() is None and run.kills < (10 if FULL else 2):
                run.kill()
            assert run.process.returncode in (None, 0, -signal.SIGKILL), f"{run.name}: exit {run.process.returncode}\n{run.told()}"
            ended = run.process.poll()
            if ended == -signal.SIGKILL or run.kills == 0:
                run.start()
            if ended == 0 and run.kills == 0:  # before it was killed, and its replay is faster: now at once
                run.kill()
    for run in runs:
        assert run.process.returncode == 0, f"{run.name}: exit {run.process.returncode}\n{run.told()}"
        assert PROGRAMS[run.name][1](run.text()), f"{run.name} says {run.text()!r}"
    print("killed:", {run.name: run.kills for run in runs}, f"and the scheduler {kills} times")


def replays(pool, runs):
    """Once more after their end: the same words, and not a grain more."""
    before = {s["session"]: s for s in pool.json("session", "ls")["sessions"]}
    assert len(before) == len(PROGRAMS), f"a rerun made a session of its own: {before}"
    for run in runs:
        said = run.text()
        run.start()
        assert run.process.wait(timeout=300) == 0, run.told()
        assert sorted(run.text().splitlines()) == sorted(said.splitlines()), f"{run.name}: {run.text()!r}, before {said!r}"
    after = {s["session"]: s for s in pool.json("session", "ls")["sessions"]}
    assert after == before, (before, after)


def wrong_answers(pool):
    """A grain that lies, and one that fails."""
    env = dict(pool.env, PYTHONPATH=os.path.join(ROOT, "libdcs/python"), PYTHONDONTWRITEBYTECODE="1")
    for command, lie in ((["count_primes", "--grains", "2", "100"], "7"), (["queens", "6"], "1"), (["mersenne", "607"], "composite"),
                         (["golomb", "6"], "18 0 1 4 10 12 18")):
        for text, code in ((f"echo {lie}", 1), ("echo no >&2; exit 9", 1)):
            path = os.path.join(pool.base, f"liar-{command[0]}-{len(text)}")
            with open(path, "w") as file:
                file.write(f"#!/bin/sh\n{text}\n")
            os.chmod(path, 0o755)
            done = subprocess.run([program(command[0]), "--grain", path, *command[1:]], env=env, capture_output=True, timeout=300)
            told = done.stderr.decode()
            wanted = "the published" if "exit" not in text and command[0] != "mersenne" else "published as" if "exit" not in text else "status 9"
            assert done.returncode == code and wanted in told, f"{command} with a grain that says {text!r}: {done.returncode}, {told}"
            session = max(s["session"] for s in pool.json("session", "ls")["sessions"])
            if "exit" not in text:  # the next one is another computation
                pool.dcs("session", "clean", str(session))


def page(pool):
    text = open(os.path.join(ROOT, "docs/EXAMPLES.md")).read()
    env = dict(pool.env, PATH=os.path.dirname(program("dcs")) + ":" + pool.env["PATH"], PYTHONDONTWRITEBYTECODE="1",
               PYTHONPATH=os.path.join(ROOT, "libdcs/python"))
    commands = re.findall(r"^```run\n(.*?)^```\n(?:\n```output\n(.*?)^```)?", text, re.M | re.S)
    assert len(commands) == 4, commands
    for command, output in commands:
        done = subprocess.run(["sh", "-ec", command], env=env, capture_output=True, timeout=300)
        assert done.returncode == 0, f"{command}: {done.returncode}, {done.stderr.decode()}"
        assert not output or done.stdout.decode() == output, f"{command}: {done.stdout.decode()!r}"


def main():
    rng = seeded(7)
    for grain in GRAINS:
        grain_goes_on(*grain)
    with Pool(2, 4, 1.0) as pool, Hurry(pool):
        replays(pool, storm(pool, rng))
        wrong_answers(pool)
        page(pool)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
