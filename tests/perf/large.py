#!/usr/bin/python3
"""One large file as a grain's input and as its output, durable at the scheduler, in turns with `cp` and sync of the same file.

    large.py [--rounds R] [--mb N]

Each round has new contents: what the scheduler has already is not sent again."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "process"))
from figures import figure  # noqa: E402
from pool import Pool  # noqa: E402

PIECE = 1 << 20


def write(path, megabytes):
    """Bytes that do not compress and are not those of the round before."""
    with open(path, "wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(PIECE))
        os.fsync(file.fileno())


def timed(act):
    began = time.monotonic()
    act()
    return time.monotonic() - began


def copy(source, target):
    subprocess.run(["cp", source, target], check=True)
    subprocess.run(["sync", target], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mb", type=int, default=1024, help="MiB, at most 1024")
    options = parser.parse_args()
    place = tempfile.mkdtemp(prefix="dcs-perf-", dir=os.environ.get("TMPDIR", "/var/tmp"))
    source, target = os.path.join(place, "source"), os.path.join(place, "target")
    try:
        with Pool(1, 2, 10.0, patient=False, modest=True) as pool:
            for _ in range(options.rounds):
                for name, line in (("input of", ("run", "--file", f"in={source}", "--", "/bin/true")),
                                   ("output of", ("run", "--output", f"out={target}", "--", "/bin/cp", source, "out"))):
                    write(source, options.mb)
                    plain = timed(lambda: copy(source, target))
                    os.unlink(target)
                    ours = timed(lambda: pool.dcs(*line, timeout=3600))
                    if name == "output of":
                        subprocess.run(["cmp", source, target], check=True)
                        os.unlink(target)
                    size = options.mb * PIECE / 1e6
                    figure(f"{name} {options.mb} MiB, of cp and sync", size / ours, size / plain, "MB/s")
                    print(f"{name} {options.mb} MiB: {size / ours:.0f} MB/s, cp and sync {size / plain:.0f}: {plain / ours:.3f}",
                          flush=True)
                pool.dcs("session", "close", "all")
                pool.dcs("session", "clean", "all")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
