#!/usr/bin/python3
"""An upgrade puts another dcs_launcher in place. A server that is started then leaves the old launcher its grain, and replaces it
when no grain runs; a launcher of release 0.1, which does not say what it was started from, likewise; and never one of the same
file."""
import os
import shutil
import signal
import subprocess
import sys

from pool import Pool, bin_directory, lock_holder, wait_for


def main():
    pool = Pool(servers=1, slots=1, interval=60)  # while a killed server is started again its grain is not given up
    pool.bin = bin_directory(os.path.join(pool.base, "bin"), ())
    with pool:
        [name] = os.listdir(os.path.join(pool.dir, "servers"))
        place = os.path.join(pool.dir, "servers", name)
        gate, journal = os.path.join(pool.base, "gate"), os.path.join(pool.base, "journal")

        def launcher():
            return lock_holder(os.path.join(place, "launcher.lock"))

        def restart_server():
            os.kill(lock_holder(os.path.join(place, "lock")), signal.SIGKILL)
            pool.up()

        def works():
            assert pool.dcs("map", "--new", "--", "echo", data=b"1\n2\n").stdout == b"1\n2\n"

        script = f"echo $$ >>{journal}; while ! test -e {gate}; do sleep 0.1; done; echo by $$"
        program = pool.start([os.path.join(pool.bin, "dcs"), "run", "--", "/bin/sh", "-c", script], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, text=True)
        wait_for("the grain to run", lambda: os.path.exists(journal))
        first = wait_for("the launcher", launcher)
        fresh = os.path.join(pool.bin, "fresh")
        shutil.copy2(os.path.join(pool.bin, "dcs_launcher"), fresh)
        os.rename(fresh, os.path.join(pool.bin, "dcs_launcher"))
        restart_server()
        assert launcher() == first, "the launcher of a running grain was replaced"
        open(gate, "w").close()
        out = program.communicate(timeout=120)[0]
        [pid] = open(journal).read().split()
        assert program.returncode == 0 and out == f"by {pid}\n", (program.returncode, out, pid)
        second = wait_for("another launcher", lambda: (now := launcher()) and now != first and now)
        works()

        restart_server()
        works()
        assert launcher() == second, "a launcher of the same file was replaced"

        os.unlink(os.path.join(place, "launcher.program"))
        restart_server()
        wait_for("a launcher in place of one of release 0.1", lambda: launcher() not in (None, 0, second))
        works()
    print("an upgraded launcher was replaced when no grain ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
