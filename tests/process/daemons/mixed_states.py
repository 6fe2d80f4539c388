#!/usr/bin/python3
"""A scheduler's directory that is copied over an older one of the same pool: sessions that were removed since would be active
again, so no scheduler starts there. The copy alone serves, in an empty place and in one with its own state. Nor does one start
whose state is missing, as on a disk that is not mounted: its grains run on until the state is there again."""
import os
import shutil
import subprocess

from pool import Pool, tells, wait_for


def copy(what, where):
    """As tar unpacks it: over what is there."""
    os.makedirs(where, exist_ok=True)
    subprocess.run(["cp", "-a", what + "/.", where], check=True)


def main():
    with Pool(servers=1) as pool:
        place, old, new = (os.path.join(pool.dir, "scheduler"), *(os.path.join(pool.base, name) for name in ("old", "new")))
        gone = pool.dcs("run", "--detach", "--", "/bin/true").stdout.decode().strip()
        pool.dcs("session", "wait", gone)
        pool.down()
        copy(place, old)
        pool.up()
        pool.dcs("session", "close", gone)
        pool.dcs("session", "clean", gone)
        kept = pool.dcs("run", "--detach", "--", "/bin/true").stdout.decode().strip()
        pool.dcs("session", "wait", kept)
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

        def serves_inside(state):
            """The newer directory, and over its state/ another one."""
            shutil.rmtree(place)
            copy(new, place)
            copy(os.path.join(state, "state"), os.path.join(place, "state"))
            return pool.up(check=False)

        refused = serves_inside(old)
        assert refused.returncode != 0, refused
        assert tells(refused.stderr, "/state files of two states one copied over other directory away empty"), refused
        assert serves_inside(new).returncode == 0 and pool.down().returncode == 0
        mixed = serves(old, new)
        assert isinstance(mixed, bytes) and tells(mixed, "files of two states one copied over other directory away empty"), mixed
        pool.down()
        assert serves(new) == [kept] and pool.down().returncode == 0
        assert serves(new, new) == [kept] and pool.down().returncode == 0  # unpacked twice
        assert serves(old) == [gone]
        number = pool.dcs("run", "--detach", "--", "sleep", "1000").stdout.decode().strip()
        running = wait_for("the grain", lambda: pool.grain_processes())
        state = os.path.join(place, "state")
        pool.stop_scheduler()
        os.rename(state, state + ".away")
        for _ in range(2):
            empty = pool.up(check=False).stderr
            assert tells(empty, "state empty directory has served pool restore promote new pool empty directory"), empty
            assert not [name for name in os.listdir(state) if name != "lock"], os.listdir(state)
        shutil.rmtree(state)
        os.rename(state + ".away", state)
        pool.up()
        wait_for("the host", lambda: pool.json("host", "ls")["hosts"][0]["state"] == "active")
        assert pool.grain_processes() == running, (pool.grain_processes(), running)
        pool.dcs("session", "close", number.split(":")[0])


if __name__ == "__main__":
    main()
