#!/usr/bin/python3
"""What the owner of a pool's directory gains when root stops the pool: no process of another account by a pid file, and no pool
of another account by a link. Needs root."""
import os
import shutil
import subprocess
import sys
import tempfile

from pool import Pool, bin_directory, program, start_time
from users_host import need_root

OWNER = 65534
SERVERS = "servers/local1/grains/a"


def as_root(*words):
    return subprocess.run([program("dcs"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)


def owned(base, name, servers=True):
    """A directory that the owner has made look like a pool."""
    place = os.path.join(base, name)
    os.makedirs(os.path.join(place, SERVERS if servers else "."))
    with open(os.path.join(place, "pool"), "w") as file:
        file.write("servers 1\n")
    return place


def give(place):
    for folder, names, files in os.walk(place):
        for path in (folder, *(os.path.join(folder, name) for name in names + files)):
            os.chown(path, OWNER, OWNER, follow_symlinks=False)


def a_pid_file_ends_no_other_process(base):
    place = owned(base, "pids")
    os.mkdir(os.path.join(place, "scheduler"))
    victim = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
    try:
        with open("/proc/sys/kernel/random/boot_id") as boot, open(os.path.join(place, SERVERS, "pid"), "w") as file:
            file.write(f"{victim.pid} {start_time(victim.pid)} {boot.read().strip()}\n")
        give(place)
        done = as_root("down", "--dir", place)
        assert victim.poll() is None and start_time(victim.pid), ("a process of root was ended", done)
    finally:
        victim.kill()
        victim.wait()


def a_link_stops_no_other_pool(base, pool):
    place = owned(base, "links", servers=False)
    for name in ("scheduler", "backup", "servers"):
        os.symlink(os.path.join(pool.dir, name), os.path.join(place, name))
    give(place)
    daemons = pool.daemons()
    for words in (("down",), ("backup", "promote", "--yes")):
        done = as_root(*words, "--dir", place)
        assert pool.daemons() == daemons, (words, done)
    assert done.returncode == 4 and "is the pool of another user" in done.stderr, done


def root_stops_the_pool_of_a_user(base):
    programs, place = bin_directory(os.path.join(base, "bin"), ()), os.path.join(base, "real")
    os.mkdir(place)
    os.chown(place, OWNER, OWNER)
    up = subprocess.run([os.path.join(programs, "dcs"), "up", "--local", "1", "--dir", place], user=OWNER, group=OWNER, extra_groups=[],
                        env={"HOME": place, "PATH": "/usr/bin:/bin"}, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert up.returncode == 0, up
    finally:
        done = as_root("down", "--dir", place)
    assert done.returncode == 0 and "Stopped the scheduler and 1 grain server" in done.stdout, done


def what_is_no_file_holds_no_command(base):
    """A FIFO is no regular file, nor is a link to a device; opened as a file, either would hold root's command until its owner lets
    it go on."""
    for number, name in enumerate(("pool", "scheduler/hosts", f"{SERVERS}/pid")):
        place = owned(base, f"fifo{number}")
        os.mkdir(os.path.join(place, "scheduler"))
        if name.startswith("scheduler"):
            os.remove(os.path.join(place, "pool"))
        path = os.path.join(place, name)
        if os.path.lexists(path):
            os.remove(path)
        os.mkfifo(path)
        give(place)
        for words in (("status",), ("down",)):
            done = as_root(*words, "--dir", place)
            assert done.returncode in (0, 4, 5), (name, words, done)


def main():
    need_root("to own pools as two accounts")
    base = tempfile.mkdtemp(prefix="dcs-pools-")
    try:
        os.chmod(base, 0o755)
        a_pid_file_ends_no_other_process(base)
        what_is_no_file_holds_no_command(base)
        root_stops_the_pool_of_a_user(base)
        with Pool(servers=1) as pool:
            a_link_stops_no_other_pool(base, pool)
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    sys.exit(main())
