#!/usr/bin/python3
"""Queues and slots under storms of kills, with planted bugs that must be seen, and side by side with other lock tools.

Usage: locks_queue.py [SECONDS]   of each storm; 2, or 30 with DCS_TESTS_FULL
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from pool import program

STORM = os.path.join(os.path.dirname(program("dcs")), "../tests/locks_storm")

# Family, processes, kills. What they do: locks_storm.cc.
STORMS = [("queue", 64, True), ("readers", 16, True), ("counter", 16, True), ("slots", 32, True), ("several", 24, True),
          ("lowered", 16, True), ("inherited", 16, True), ("damaged", 16, True), ("shrunk", 16, True),
          ("suicides", 16, False), ("wide", 100, True)]
# A bug, and the storm that must see it.
PLANTED = [("locks.queue_no_range", "queue", True), ("locks.queue_trusts_counter", "counter", False),
           ("locks.slots_hints_only", "slots", False), ("locks.slots_no_bell", "slots", False),
           ("locks.slots_no_watch", "suicides", False), ("locks.slots_death_unseen", "suicides", False),
           ("locks.slots_damage_is_empty", "shrunk", False)]


def storm(family, seconds, processes, kills, bug=None):
    words = [STORM, family, str(seconds), str(processes), str(random.randrange(1 << 30))]
    words += ["kill"] if kills else []
    words += ["plant=" + bug] if bug else []
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)
    return result.returncode, " ".join(words[1:]) + ": " + result.stdout.decode().strip()


def storms(seconds):
    for family, processes, kills in STORMS:
        code, text = storm(family, seconds, processes, kills)
        print(text, flush=True)
        assert code == 0, text


def planted():
    for bug, family, kills in PLANTED:
        code, text = storm(family, 300, 16, kills, bug)
        print(text.splitlines()[-1], flush=True)
        assert code == 1, f"the bug {bug} was not seen: {text}"


class Ours:
    """A process that takes our lock of a file, as locks_storm's `hold` does, and keeps it until it is ended."""

    def __init__(self, path, wait=False):
        self.process = subprocess.Popen([STORM, "wait" if wait else "try", path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def answer(self):
        return self.process.stdout.readline().decode().strip()

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


# How each tool is ordered not to wait, what it says when it is refused, and how it is ordered to wait.
TOOLS = {
    "flock": (["flock", "-n", "-E", "75", "FILE"], 75, ["flock", "FILE"]),
    "chpst": (["chpst", "-L", "FILE"], 111, ["chpst", "-l", "FILE"]),
    "setlock": (["setlock", "-n", "FILE"], 111, ["setlock", "FILE"]),
    "lckdo": (["lckdo", "FILE"], 75, ["lckdo", "-w", "FILE"]),
    "with-lock-ex": (["with-lock-ex", "-f", "FILE"], 255, ["with-lock-ex", "-w", "FILE"]),
    "runlock": (["runlock", "-t", "1", "-f", "FILE"], 73, ["runlock", "-t", "60", "-f", "FILE"]),
}


def command(words, path):
    return [path if word == "FILE" else word for word in words]


def they_exclude_us(tool, path):
    """The tool holds the file: we are refused, and get it at once when the tool's command ends."""
    _, _, waiting = TOOLS[tool]
    inside = path + ".inside"
    theirs = subprocess.Popen(command(waiting, path) + ["sh", "-c", f"echo > {inside}; read line"], stdin=subprocess.PIPE)
    while not os.path.exists(inside):
        assert theirs.poll() is None, f"{tool} ended with {theirs.returncode}"
        time.sleep(0.005)
    refused = Ours(path)
    assert refused.answer() == "busy", f"{tool} does not exclude us"
    refused.end()
    ours = Ours(path, wait=True)
    time.sleep(0.05)
    assert ours.process.poll() is None
    theirs.stdin.close()
    theirs.wait()
    assert ours.answer() == "got it", f"we were not woken by the end of {tool}"
    ours.end()
    os.unlink(inside)


def we_exclude_them(tool, path):
    """We hold the file: the tool refuses to run its command, and runs it when we are killed."""
    trying, refusal, waiting = TOOLS[tool]
    ours = Ours(path)
    assert ours.answer() == "got it"
    ran = path + ".ran"
    result = subprocess.run(command(trying, path) + ["touch", ran], stderr=subprocess.DEVNULL, timeout=60, check=False)
    assert result.returncode == refusal, f"{tool}: exit {result.returncode}, not {refusal}"
    assert not os.path.exists(ran), f"we do not exclude {tool}"
    waiter = subprocess.Popen(command(waiting, path) + ["touch", ran], stderr=subprocess.DEVNULL)
    time.sleep(0.05)
    assert not os.path.exists(ran)
    ours.process.kill()
    ours.end()
    assert waiter.wait(60) == 0
    assert os.path.exists(ran), f"{tool} did not run after our death"
    os.unlink(ran)


def other_tools(directory):
    missing = []
    for tool in TOOLS:
        if shutil.which(tool) is None:
            missing.append(tool)
            continue
        for made_by_us in (False, True):
            path = os.path.join(directory, f"{tool}.{made_by_us}.lock")
            if made_by_us:
                ours = Ours(path)
                assert ours.answer() == "got it"
                ours.end()
            else:
                open(path, "w", encoding="utf-8").close()
            they_exclude_us(tool, path)
            we_exclude_them(tool, path)
        print(f"C13 {tool} excludes us and we exclude it", flush=True)
    if missing:
        print("SKIPPED, not installed (deploy/install-packages --tests): " + ", ".join(missing), flush=True)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30 if os.environ.get("DCS_TESTS_FULL") else 2
    with tempfile.TemporaryDirectory() as directory:
        other_tools(directory)
    planted()
    storms(seconds)


if __name__ == "__main__":
    main()
