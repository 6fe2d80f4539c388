#!/usr/bin/python3
"""The directory service of the scheduler's host does not answer about names: about users who call from other hosts, and those
whom the policy names. `dcs doctor` says so, also where the users of that host are found. Exit code 77: no such library in this
build, or no root."""
import errno
import json
import os
import subprocess
import sys
import tempfile

from hurry import Hurry
from remote_world import Desk, enter
from slow_users import LIBRARY, SAID, turn


def problems(pool):
    rows = json.loads(pool.dcs("doctor", "-o", "json", check=False).stdout)["problems"]
    return [row for row in rows if row["entity"] == "users"]


def main():
    arguments = enter(__file__)
    if arguments is None or not os.path.exists(LIBRARY):
        return 77
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.NamedTemporaryFile() as file:
        turn(file.name, 0)
        os.environ.update(LD_PRELOAD=LIBRARY, DCS_SLOW_NAMES=file.name)
        with Desk() as desk, Hurry(desk.pool):
            desk.join()
            desk.run("ann", "dcs", "session", "ls")
            assert not problems(desk.pool), problems(desk.pool)
            turn(file.name, errno.EIO)
            asked = desk.run("ann", "dcs", "session", "ls", check=False, env={"DCS_PATIENCE_S": "2"})
            assert asked.returncode != 0 and SAID in asked.stderr, asked
            (row,) = problems(desk.pool)
            assert SAID in row["problem"] and "on ann" in row["problem"], row
            with open(os.path.join(desk.pool.directory, "policy"), "w") as policy:
                policy.write("deny no-such-login\n")
            desk.pool.dcs("reload")
            (row,) = problems(desk.pool)
            assert SAID in row["problem"] and "no-such-login" in row["problem"], row
            turn(file.name, 0)
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
