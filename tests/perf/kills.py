#!/usr/bin/python3
"""Many small grains from a file to an output file, while the scheduler and the grain server with its launcher are killed in turn,
beside xargs without any kill; each output must be there once.

    kills.py [--grains N] [--kills K] [--together M]: a grain for each M of the N inputs"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "process"))
from figures import figure  # noqa: E402
from pool import Pool, program, wait_for  # noqa: E402


def killed(pool, number):
    if number % 2 == 0:
        pool.kill("scheduler", "scheduler")
    else:
        pool.kill("grainserver", "local1")
        pool.kill("launcher", "local1")
    pool.up()


def map_through_kills(pool, inputs, output, kills, together):
    """Seconds; a kill comes whenever a further part of the output is there."""
    whole = os.path.getsize(inputs)
    began = time.monotonic()
    with open(output, "wb") as out:
        grain = ["/bin/echo", "{}"] if together == 1 else ["-n", str(together), "sh", "-c", "for i do /bin/echo $i; done", "sh"]
        run = pool.start([program("dcs"), "map", "--new", "-a", inputs, *grain], stdout=out)
    try:
        for number in range(kills):
            due = whole * (number + 1) // (kills + 1)
            wait_for("outputs", lambda: os.path.getsize(output) >= due or run.poll() is not None, timeout=36000, step=0.02)
            if run.poll() is None:
                killed(pool, number)
        assert run.wait() == 0, "the map failed"
        return time.monotonic() - began
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--grains", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--together", type=int, default=1)
    options = parser.parse_args()
    place = tempfile.mkdtemp(prefix="dcs-perf-", dir=os.environ.get("TMPDIR", "/var/tmp"))
    inputs, output, plain = (os.path.join(place, name) for name in ("inputs", "output", "plain"))
    try:
        with open(inputs, "w") as file:
            file.writelines(f"{i}\n" for i in range(options.grains))
        with Pool(1, 2, 10.0, patient=False, modest=True) as pool:
            began = time.monotonic()
            with open(plain, "wb") as out:
                subprocess.run(["xargs", "-a", inputs, "-P2", "-n1", "/bin/echo"], stdout=out, check=True)
            yardstick = time.monotonic() - began
            ours = map_through_kills(pool, inputs, output, options.kills, options.together)
        subprocess.run(["cmp", inputs, output], check=True)
        what = "grains" if options.together == 1 else f"inputs, {options.together} to a grain,"
        figure(f"{options.grains} {what} to a file through {options.kills} kills, of xargs", options.grains / ours,
               options.grains / yardstick, "/s")
        print(f"{options.grains} {what} through {options.kills} kills: {ours:.0f} s, xargs {yardstick:.0f} s: "
              f"{ours / yardstick:.2f} times that; each output is there once, in order")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
