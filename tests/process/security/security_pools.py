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


def give(place):
    for folder, names, files in os.walk(place):
        for path in (folder, *(os.path.join(folder, name) for name in names + files)):
            os.chown(path, OWNER, OWNER, follow_symlinks=False)


def look_alikes(base, name, fill):
    """Where root finds what the owner has made look like a pool, with the word of its refusal: a directory of the owner, one of root in
    which all may write, and the owner's link to that."""
    own, around, home = (os.path.join(base, name + end) for end in ("-own", "-root", "-home"))
    for place in own, around:
        os.mkdir(place)
        with open(os.path.join(place, "pool"), "w") as file:
            file.write("servers 1\n")
        fill(place)
    os.mkdir(home)
    os.symlink(around, os.path.join(home, "pool"))
    for place in own, around, home:
        give(place)
    os.chown(around, 0, 0)
    os.chmod(around, 0o1777)
    return ((own, "another user"), (around, "other users"), (os.path.join(home, "pool"), "another user"))


def a_pid_file_ends_no_other_process(base):
    victim = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)

    def fill(place):
        os.makedirs(os.path.join(place, SERVERS))
        os.mkdir(os.path.join(place, "scheduler"))
        with open("/proc/sys/kernel/random/boot_id") as boot, open(os.path.join(place, SERVERS, "pid"), "w") as file:
            file.write(f"{victim.pid} {start_time(victim.pid)} {boot.read().strip()}\n")

    try:
        for place, _ in look_alikes(base, "pids", fill):
            done = as_root("down", "--dir", place)
            assert victim.poll() is None and start_time(victim.pid), ("a process of root was ended", place, done)
    finally:
        victim.kill()
        victim.wait()


def a_link_stops_no_other_pool(base, pool):
    def fill(place):
        for name in ("scheduler", "backup", "servers"):
            os.symlink(os.path.join(pool.dir, name), os.path.join(place, name))

    daemons = pool.daemons()
    for place, word in look_alikes(base, "links", fill):
        mode = os.stat(place).st_mode
        for words in (("down",), ("up", "--local", "1", "--mirror", "sync"), ("backup", "promote", "--yes")):
            done = as_root(*words, "--dir", place)
            assert pool.daemons() == daemons and os.stat(place).st_mode == mode, (place, words, done)
        assert done.returncode == 4 and word in done.stderr, (place, done)
    beyond = os.path.join(base, "links-home", "pool", "scheduler", "beyond")
    done = as_root("up", "--local", "1", "--dir", beyond)
    assert done.returncode == 4 and not os.path.exists(beyond), done


def root_stops_its_own_pool(base):
    """Below a directory of root in which all may write and none may rename what is root's, as /tmp; also by a link of root."""
    around, link = os.path.join(base, "all"), os.path.join(base, "link")
    os.mkdir(around)
    os.chmod(around, 0o1777)
    os.symlink(os.path.join(around, "pool"), link)
    assert "Nothing was running" in as_root("down", "--dir", link).stdout
    for name in (os.path.join(around, "pool"), link):
        up = as_root("up", "--local", "1", "--dir", os.path.join(around, "pool"))
        done = as_root("down", "--dir", name)
        assert up.returncode == 0 and done.returncode == 0 and "Stopped the scheduler" in done.stdout, (up, done)


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
    assert done.returncode == 0 and "Stopped the scheduler, the backup and 1 grain server" in done.stdout, done


def what_is_no_file_holds_no_command(base):
    """A FIFO, opened as a file, holds root's command until its owner lets it go on."""
    for number, name in enumerate(("pool", "scheduler/hosts", f"{SERVERS}/pid")):
        place = os.path.join(base, f"fifo{number}")
        os.makedirs(os.path.join(place, SERVERS))
        os.mkdir(os.path.join(place, "scheduler"))
        if name == f"{SERVERS}/pid":
            with open(os.path.join(place, "pool"), "w") as file:
                file.write("servers 1\n")
        os.mkfifo(os.path.join(place, name))
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
        root_stops_its_own_pool(base)
        with Pool(servers=1) as pool:
            a_link_stops_no_other_pool(base, pool)
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    sys.exit(main())
