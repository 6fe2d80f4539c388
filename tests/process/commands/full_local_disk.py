#!/usr/bin/python3
"""Disks that fill, and limits on the size of files: what was computed is not computed again, a message names the disk that is
full, and daemons take a limit on the size of files as a full disk."""
import os
import resource
import shutil
import subprocess
import sys

from pool import Pool, tells, wait_for


def runs_of(folder):
    with open(os.path.join(folder, "runs")) as file:
        return len(file.readlines())


def filler(disk, leave):
    """Fills the disk but for so many bytes."""
    path = os.path.join(disk, "filler")
    space = os.statvfs(disk)
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize - leave)
    return path


def outputs(pool, disk):
    """The map computed all, could copy one: the same command copies the others, and computes nothing."""
    script = f"echo run >>{pool.base}/runs; head -c 600000 /dev/zero >o; echo $1"
    command = ["map", "--output", "o=oo/{}", "--", "sh", "-c", script, "sh", "{}", ":::", "1", "2", "3"]
    full = filler(disk, 1 << 20)
    done = pool.dcs(*command, check=False, cwd=disk)
    assert done.returncode == 2 and done.stdout == b"1\n2\n3\n", done
    assert tells(done.stderr, "output oo/2 cannot be written No space left on device"), done
    assert tells(done.stderr, "2 of 3 grains succeeded not all outputs correct same command copies session close"), done
    (row,) = [s for s in pool.json("session", "ls")["sessions"] if s["session"] == 1]
    assert row["state"] == "active", row
    os.unlink(full)
    full = filler(disk, 300_000)  # what is here is not copied again
    done = pool.dcs(*command, check=False, cwd=disk)
    assert done.returncode == 2 and tells(done.stderr, "2 of 3 grains succeeded not all outputs"), done
    assert os.listdir(os.path.join(disk, "oo")) == ["1"], os.listdir(os.path.join(disk, "oo"))
    with open(os.path.join(disk, "oo", "1"), "r+b") as file:
        file.write(b"changed")
    os.unlink(full)
    done = pool.dcs(*command, cwd=disk)
    assert open(os.path.join(disk, "oo", "1"), "rb").read() == bytes(600000), "a changed output was not copied again"
    assert done.stdout == b"1\n2\n3\n" and tells(done.stderr, "session 1 resumed, 3 of 3 grains finished"), done
    assert [os.path.getsize(os.path.join(disk, "oo", str(n))) for n in (1, 2, 3)] == [600000] * 3
    assert runs_of(pool.base) == 3, runs_of(pool.base)
    assert pool.json("session", "show", "1")["session"]["state"] == "terminated"
    shutil.rmtree(os.path.join(disk, "oo"))


def results(pool, disk):
    """--results that is no directory, or one without rights, is refused before anything runs."""
    with open(os.path.join(disk, "afile"), "w"):
        pass
    before = len(pool.json("session", "ls")["sessions"])
    done = pool.dcs("map", "--results", "afile", "--", "echo", ":::", "1", check=False, cwd=disk)
    assert tells(done.stderr, "--results afile Not a directory"), done
    assert len(pool.json("session", "ls")["sessions"]) == before and done.returncode not in (0, 2), done


def results_without_room(pool, disk):
    """What to type when there is room again; it computes nothing twice."""
    runs = os.path.join(pool.base, "result-runs")
    command = ["map", "--results", "res", "--", "sh", "-c", f"echo run >>{runs}; head -c 600000 /dev/zero", "sh", "{}", ":::", "1", "2", "3"]
    full = filler(disk, 1 << 20)
    done = pool.dcs(*command, check=False, cwd=disk)
    assert done.returncode == 255 and tells(done.stderr, "res/2.out cannot be written No space left on device"), done
    assert tells(done.stderr, "hint session continues same command again session close"), done
    os.unlink(full)
    pool.dcs(*command, cwd=disk)
    assert [os.path.getsize(os.path.join(disk, "res", f"{n}.out")) for n in (1, 2, 3)] == [600000] * 3
    with open(runs) as file:
        assert len(file.readlines()) == 3
    shutil.rmtree(os.path.join(disk, "res"))


def exports(pool, disk):
    """An active session: the disk is full, no grain changes."""
    done = pool.dcs("map", "--detach", "--", "sh", "-c", "head -c 300000 /dev/urandom", ":::", "1", "2")
    session = done.stdout.decode().strip()
    pool.dcs("session", "wait", session)
    assert pool.json("session", "show", session)["session"]["state"] == "active"
    full = filler(disk, 100000)
    done = pool.dcs("session", "export", session, check=False, cwd=disk)
    assert tells(done.stderr, "was not exported cannot write No space left on device"), done
    assert b"changes" not in done.stderr and b"scheduler's disk" not in done.stderr, done
    os.unlink(full)
    pool.dcs("session", "export", session, cwd=disk)
    words = f"session {session} removed (it was not closed)"
    wait_for("its removal", lambda: words.encode() in pool.dcs("session", "clean", "--older", "1s", "--yes").stdout)


def limited(base):
    """A pool whose daemons may write no file of more than 12 MB."""
    pool = Pool(1, 1)
    big = os.path.join(base, "big")
    with open(big, "wb") as file:
        file.write(os.urandom(13 << 20))
    up = [pool.bin + "/dcs", "up", "--local", "1", "--slots", "1", "--dir", pool.dir]
    limit = 12 << 20
    try:
        subprocess.run(up, env=pool.env, check=True, stdout=subprocess.DEVNULL,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        scheduler = pool.pid("scheduler", "scheduler")
        with open(os.path.join(pool.dir, "scheduler", "log")) as log:
            assert tells(log.read(), f"files are limited to {limit} bytes `ulimit -f`")
        done = pool.dcs("run", "--file", big, "--", "md5sum", "big", check=False)
        assert done.returncode == 125 and tells(done.stderr, "library File too large `ulimit -f`"), done
        # A grain meets the limit as every program does.
        done = pool.dcs("run", "--", "sh", "-c", f"head -c {13 << 20} /dev/zero >f; echo $?", cwd=base)
        assert done.stdout == b"153\n", done
        done = pool.dcs("run", "--output", "made=" + os.path.join(base, "made"), "--", "sh", "-c", "echo made >made")
        assert pool.pid("scheduler", "scheduler") == scheduler, "the scheduler ended"
    finally:
        pool.down()
        shutil.rmtree(pool.base)


def main():
    if os.geteuid() != 0:
        print("needs root, to mount a small file system")
        sys.exit(77)
    with Pool(1, 1) as pool:
        disk = os.path.join(pool.base, "disk")
        os.mkdir(disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", disk], check=False).returncode != 0:
            print("file systems cannot be mounted here")
            sys.exit(77)
        try:
            outputs(pool, disk)
            results(pool, disk)
            results_without_room(pool, disk)
            exports(pool, disk)
        finally:
            subprocess.run(["umount", "-l", disk], check=True)
        limited(pool.base)


main()
