#!/usr/bin/python3
"""dcs_sim as a test: the same seed is the same history; each planted bug is found at its seed (pinned.txt); as many other
seeds as fit into the time are without fault, each a day of 50 hosts with all faults; some more where grains have files
in the library, where there is a passive backup, where users forget results, where grains end in a second, where launchers
have queues as well, and where grains demand named resources. DCS_SIM_SECONDS: wall time for those (default 110); DCS_SIM_SEED: the first. With DCS_TESTS_FULL 20,000 seeds,
however long they take."""
import os
import subprocess
import sys

SIM = os.path.join(os.environ["DCS_BIN"], "dcs_sim")
HERE = os.path.dirname(os.path.abspath(__file__))
FOUND = 1  # exit status of a run in which something was wrong; 3: an assertion of the program itself


def run(*words):
    done = subprocess.run([SIM, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def die(what, output):
    print(f"FAILED: {what}\n{output}")
    sys.exit(1)


def same_seed_same_history(*words):
    hashes = [run("--seed", "1", "--seeds", "10", "--hosts", "12", "--hash", *words) for _ in range(2)]
    if hashes[0][0] != 0 or hashes[0] != hashes[1]:
        die("two runs of the same ten seeds differ", hashes[0][1] + hashes[1][1])
    if len(set(line.split()[-1] for line in hashes[0][1].splitlines() if " hash " in line)) != 10:
        die("different seeds have the same history", hashes[0][1])


def pinned():
    lines = [line.split() for line in open(os.path.join(HERE, "pinned.txt")) if line.strip() and line[0] != "#"]
    for name, seed, *words in lines:
        code, output = run("--plant", name, "--seed", seed, "--quiet", *words)
        if code not in (FOUND, 3):
            die(f"the planted bug {name} is not found with seed {seed} any more: find another with "
                f"dcs_sim --plant {name} --seeds 1000 {' '.join(words)}", output)
    return len(lines)


def sweep(*kind):
    words = ["--seed", os.environ.get("DCS_SIM_SEED", "1"), "--hosts", "50", "--days", "1", "--faults", "all", "--jobs", "2",
             "--quiet"]
    seconds, seeds = int(os.environ.get("DCS_SIM_SECONDS", "110")), 20000
    if kind:  # fewer of these
        words += kind
        seconds, seeds = max(1, seconds // 6), 2000
    words += ["--seeds", str(seeds)] if os.environ.get("DCS_TESTS_FULL") else ["--seeds", "1000000", "--seconds", str(seconds)]
    code, output = run(*words)
    if code != 0:
        die("a seed went wrong", output)
    return output.split()[0]


if __name__ == "__main__":
    same_seed_same_history()
    same_seed_same_history("--backup")
    same_seed_same_history("--forget")
    bugs = pinned()
    print(f"{bugs} planted bugs found, {sweep()} seeds without fault, {sweep('--contents')} whose grains have files, "
          f"{sweep('--backup')} with a backup, {sweep('--forget')} where users forget results, "
          f"{sweep('--brief')} with grains that take a second at most, {sweep('--brief', '--queues')} whose launchers have "
          f"queues, {sweep('--resources')} whose grains demand resources, equal histories of equal seeds")
