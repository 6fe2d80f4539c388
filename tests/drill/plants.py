#!/usr/bin/python3
"""Bugs on purpose, in the backup, the hand-over, the replay and the cursor: the drill must be red with each of them, and green
with none. A line for each says by which words it was found. plants.py [NAME ...]; all by default. Exit code 77: no network
namespaces here, or not asked for the long tests (DCS_TESTS_FULL) and no name was given."""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TRIES = 3  # seeds; faults meet a bug by chance
WORDS = ["--settle", "150", "--small", "600"]
AGAIN = "run more than once"
PLANTS = {  # the bug: minutes of faults before the calm part, and what the checker may say of it
    "backup.forget_when_sent": (0.2, AGAIN),
    "backup.answer_without_holding": (0.2, AGAIN),
    "core.believe_before_backup": (0.2, AGAIN),
    "server.hide_the_backup": (0.2, AGAIN),
    "turn.effects_before_commit": (1, ""),
    "turn.input_from_the_start": (1, "keep, round|stuck.*keep"),
    "record.order_by_number": (0.2, "order of results changed|came twice|exit code|output differs|stuck"),
    "core.sent_too_early": (1, "keep, round|stuck.*keep"),
    "client.resume_one_ahead": (1, "keep, round|stuck.*keep"),
    "client.forget_request": (0.2, "stuck"),
}


def run(seed, minutes, plant=""):
    """What the drill says was wrong; None: nothing."""
    words = [sys.executable, "-B", os.path.join(HERE, "drill.py"), "--seed", str(seed), "--minutes", str(minutes), *WORDS]
    done = subprocess.run(words + (["--plant", plant] if plant else []), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", env={k: v for k, v in os.environ.items() if k != "DCS_TESTS_FULL"})
    if done.returncode == 77:
        print(done.stdout)
        sys.exit(77)
    if done.returncode == 0:
        return None
    wrong = re.search(r"^WRONG: (.*)", done.stdout, re.MULTILINE | re.DOTALL)
    if done.returncode != 1 or not wrong:
        sys.exit(f"the drill itself went wrong, seed {seed}, planted {plant or 'nothing'}:\n{done.stdout[-5000:]}")
    text = " ".join(wrong.group(1).split())
    return text if len(text) < 300 else f"{text[:120]} ... {text[-180:]}"


def find(plant):
    minutes, words = PLANTS[plant]
    for seed in range(1, TRIES + 1):
        wrong = run(seed, minutes, plant)
        if wrong is None:
            continue
        if not re.search(words, wrong, re.DOTALL):
            print(f"{plant}: with seed {seed} something else is wrong: {wrong}", flush=True)
            continue
        print(f"{plant}: caught with seed {seed}: {wrong}", flush=True)
        return True
    print(f"{plant}: NOT CAUGHT with {TRIES} seeds", flush=True)
    return False


def main():
    names = sys.argv[1:]
    if not names and not os.environ.get("DCS_TESTS_FULL"):
        print("SKIPPED: this takes half an hour: tests/run --full, or tests/drill/plants.py NAME")
        return 77
    wrong = run(1, 1)
    if wrong:
        print(f"without any planted bug: {wrong}")
        return 1
    missed = [plant for plant in names or PLANTS if not find(plant)]
    print(f"{len(names or PLANTS) - len(missed)} planted bugs caught, {len(missed)} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
