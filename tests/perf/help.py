#!/usr/bin/python3
"""How long --help of each command takes where no daemon runs, beside an empty C program's start: the CPU time of the process, which
a busy machine hardly changes, and the time on the clock. The least of several runs each; the slowest commands are printed."""
import os
import re
import resource
import subprocess
import tempfile
import time

BIN = os.environ.get("DCS_BIN") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/bin")
RUNS = 7


def cost(command, env):
    best_cpu = best_clock = 1e9
    for _ in range(RUNS):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True)
        best_clock = min(best_clock, time.monotonic() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best_cpu = min(best_cpu, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
        assert done.returncode == 0 and done.stdout, (command, done)
    return best_cpu * 1000, best_clock * 1000


def commands(env):
    """dcs, each noun, each verb, and the other programs of the directory that know --help."""
    dcs = os.path.join(BIN, "dcs")
    found = [[dcs]]
    words = subprocess.run([dcs, "--help"], env=env, capture_output=True, check=True).stdout.decode()
    for first, second in re.findall(r"^  (?:dcs )?([a-z][a-z-]*)(?: ([a-z][a-z-]*))?  ", words, re.M):
        line = [dcs, first] + ([second] if second else [])
        if subprocess.run(line + ["--help"], env=env, capture_output=True).returncode == 0:
            found.append(line)
    for name in sorted(os.listdir(BIN)):
        path = os.path.join(BIN, name)
        if name != "dcs" and re.match(r"dcs_(scheduler|grainserver|backupd|lock|begin|checkpoint|launcher)$", name):
            if b"sage" in subprocess.run([path, "--help"], env=env, capture_output=True, stdin=subprocess.DEVNULL).stdout:
                found.append([path])
    return found


def main():
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": "/usr/bin:/bin", "HOME": home, "DCS_DIR": os.path.join(home, "nothing")}
        source = os.path.join(home, "empty.c")
        with open(source, "w") as file:
            file.write('#include <stdio.h>\nint main(void) { return puts("") < 0; }\n')
        subprocess.run(["cc", "-O2", source, "-o", os.path.join(home, "empty")], check=True)
        empty_cpu, empty_clock = cost([os.path.join(home, "empty")], env)
        rows = sorted(((*cost(command + ["--help"], env), command) for command in commands(env)), reverse=True)
    print(f"{len(rows)} commands; an empty C program: {empty_cpu:.1f} ms of CPU, {empty_clock:.1f} ms")
    for cpu, clock, command in rows[:5]:
        name = " ".join([os.path.basename(command[0]), *command[1:]])
        print(f"{name:28} {cpu:6.1f} ms of CPU ({cpu / empty_cpu:.1f} times), {clock:6.1f} ms ({clock / empty_clock:.1f} times)")


if __name__ == "__main__":
    main()
