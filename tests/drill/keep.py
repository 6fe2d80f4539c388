"""A control program of the drill with long grains that take checkpoints, some short ones, and a memory of its own: keep.py ROUND LEDGER
DIRECTORY. Each result is written down before the next one is asked for, and a rerun asks only for what it has not had
yet: if one was missed it would never come. It takes its time over each, so that it is often killed in between."""
import hashlib
import os
import sys
import time

import dcs

LONG, GRAINS = 6, 30
LINES, PAUSE, EVERY = 1200, 1, 60  # a hundredth of a second for each line


def text_of(number):
    lines = LINES if number <= LONG else 20 * (number - LONG)
    return "".join(f"{number} line {line} of a long input {'x' * (line % 37)}\n" for line in range(lines))


def taken(directory):
    return [name for name in os.listdir(directory) if not name.endswith(".new")]


def work(number_of_round, ledger, directory):
    with dcs.Session(f"keep-{number_of_round}", sent_reset=False) as session:
        for number in range(1, GRAINS + 1):
            session.submit(number, [ledger, str(PAUSE), str(EVERY)], input=text_of(number))
        while len(taken(directory)) < GRAINS:
            result = session.wait().check()
            path = os.path.join(directory, str(result.grain))
            with open(path + ".new", "wb") as file:
                file.write(result.output + b"--\n" + result.error)
            time.sleep(0.2)
            os.rename(path + ".new", path)


def main():
    number_of_round, ledger, directory = sys.argv[1:]
    os.makedirs(directory, exist_ok=True)
    try:
        work(number_of_round, ledger, directory)
    except dcs.SessionClosed:  # by an earlier run, which has had everything
        assert len(taken(directory)) == GRAINS
    for number in range(1, GRAINS + 1):
        with open(os.path.join(directory, str(number)), "rb") as file:
            print(number, hashlib.sha256(file.read()).hexdigest())


if __name__ == "__main__":
    main()
