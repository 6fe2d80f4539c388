#!/usr/bin/python3
"""A scheduler's directory that is copied over an older one of the same pool: sessions that were removed since would be active
again, so no scheduler starts there. The copy alone serves, in an empty place and in one with its own state."""
import os
import shutil
import subprocess

from pool import Pool, tells


def copy(what, where):
    """As tar unpacks it: over what is there."""
    os.makedirs(where, exist_ok=True)
    subprocess.run(["cp", "-a", what + "/.", where], check=True)


def main():
    with Pool(servers=1) as pool:
        place, old, new = (os.path.join(pool.dir, "scheduler"), *(os.path.join(pool.base, name) for name in ("old", "new")))
        gone = pool.dcs("run", "--detach", "--", "/bin/true").stdout.decode().strip()
        pool.down()
        copy(place, old)
        pool.up()
        pool.dcs("session", "close", gone)
        pool.dcs("session", "clean", gone)
        kept = pool.dcs("run", "--detach", "--", "/bin/true").stdout.decode().strip()
        pool.down()
        copy(place, new)

        def serves(*states):
            """The scheduler's directory made of these, one unpacked over the other."""
            shutil.rmtree(place)
            for state in states:
                copy(state, place)
            up = pool.up(check=False)
            if up.returncode != 0:
                return up.stderr
            return sorted(str(s["session"]).split("/")[-1] for s in pool.json("session", "ls", "all")["sessions"])

        mixed = serves(old, new)
        assert isinstance(mixed, bytes) and tells(mixed, "files of two states one copied over other directory away empty"), mixed
        pool.down()
        assert serves(new) == [kept] and pool.down().returncode == 0
        assert serves(new, new) == [kept] and pool.down().returncode == 0  # unpacked twice
        assert serves(old) == [gone]


if __name__ == "__main__":
    main()
