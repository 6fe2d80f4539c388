#!/usr/bin/python3
"""Grains in containers on a host of root's, where each user's grains have an account of their own: the image is unpacked for
each account alone, a container has the device files of its grain's GPUs and no others, checkpoints and kills work. The GPUs
are made up: to open one fails with ENXIO. Needs root and podman."""
import fcntl
import glob
import os
import subprocess
import sys

import containers
from gpu_made import MadeDevices, path
from hurry import Hurry, family
from pool import program, tells, wait_for
from users_host import FIRST, LAST, UsersHost, need_root

USER, OTHER = 7, 5


def uids_of(host):
    """Of all processes of its grains, on the host, when the program in the container runs; else none."""
    found, sleeps = set(), False
    for pid in (pid for _, _, leader, _ in host.grain_processes() for pid in family(leader)):
        try:
            sleeps = sleeps or b"sleep\x00600\x00" == open(f"/proc/{pid}/cmdline", "rb").read()
            found |= {int(uid) for line in open(f"/proc/{pid}/status") if line.startswith("Uid:") for uid in line.split()[1:]}
        except OSError:
            pass  # it has just ended
    return found if sleeps else set()


def sees_of_a_grain(host, image, uid, seen):
    """What `seen` returns of one that is killed then."""
    grain = subprocess.Popen([program("dcs"), "run", "--image", image, "--", "sleep", "600"], env=host.env, cwd="/",
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, user=uid, group=60, extra_groups=[])
    found = wait_for("a grain", lambda: seen(host))
    grain.terminate()
    grain.wait()
    wait_for("the end of the grain", lambda: not host.grain_processes())
    return found


def account_of_a_grain(host, image, uid):
    """And that all its processes have it."""
    uids = sees_of_a_grain(host, image, uid, uids_of)
    assert len(uids) == 1 and FIRST <= min(uids) <= LAST, uids
    return uids.pop()


def run(host, image, *words, uid=USER, options=(), code=0):
    done = host.run(*words, uid=uid, options=["--image", image, *options], check=False)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def left_in(store, uid):
    return sorted(name[64:] for name in os.listdir(os.path.join(store, str(uid))))  # after the digest


def each_account_has_its_own(host, image):
    accounts = {uid: account_of_a_grain(host, image, uid) for uid in (USER, OTHER)}
    assert accounts[USER] != accounts[OTHER], accounts
    store = os.path.join(host.server_dir, "images")
    assert sorted(os.listdir(store)) == sorted(map(str, accounts.values())), os.listdir(store)
    for uid in accounts.values():
        st = os.stat(os.path.join(store, str(uid)))
        assert (st.st_uid, st.st_mode & 0o777) == (uid, 0o700), st
        assert left_in(store, uid) == ["", ".lock"], os.listdir(os.path.join(store, str(uid)))
    [lock] = glob.glob(os.path.join(store, str(accounts[USER]), "*.lock"))
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        sees_of_a_grain(host, image, USER, UsersHost.grain_processes)  # it waits for the image
    assert left_in(store, accounts[USER]) == ["", ".lock"], os.listdir(os.path.dirname(lock))
    library = os.path.join(host.server_dir, "library")
    assert os.stat(library).st_mode & 0o077 == 0, "contents are not for other accounts"


def it_works_as_for_other_grains(host, image, folder):
    assert run(host, image, "cat", "/image").stdout == b"of a root file system\n"
    assert run(host, image, "sh", "-c", "id -u; touch /tmp/x && echo made", code=0).stdout == b"0\nmade\n"
    assert tells(run(host, image, "nothing", code=127).stderr, "nothing cannot be started in the container")
    status = run(host, image, "cat", "/proc/self/status").stdout.decode().split("\n")
    assert "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status, status
    os.chmod(folder, 0o777)
    made = os.path.join(folder, "made")
    run(host, image, "sh", "-c", "cat table > made", options=["--file", "table=" + os.path.join(folder, "table"), "--output", "made=" + made])
    assert open(made).read() == "in\n" and os.stat(made).st_uid == USER
    data, expected = containers.ticks(300, 50)
    grain = subprocess.Popen([program("dcs"), "run", "--image", image, "--", "/opt/ticks"], env=host.env, cwd="/", user=USER, group=60,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, extra_groups=[])
    grain.stdin.write(data)
    grain.stdin.close()
    wait_for("a checkpoint", lambda: any(g["checkpoint_age_s"] >= 0 for g in host.json("grain", "ls", "all")["grains"]) or
             grain.poll() is not None)
    assert grain.poll() is None, "no checkpoint was seen before its end"
    leaders = [pid for _, _, pid, _ in host.grain_processes()]
    os.kill(host.launcher(), 9)
    for pid in leaders:
        try:
            os.killpg(pid, 9)
        except ProcessLookupError:
            pass
    assert grain.stdout.read() == expected
    assert grain.wait() == 0


def gpus_in_containers(host, image):
    look = "for f in /dev/nvidia*; do echo $f; done; cat /dev/nvidia60000 || true; echo $DCS_RESOURCE_GPU $CUDA_VISIBLE_DEVICES"
    done = run(host, image, "sh", "-c", look, options=["--resource", "gpu=1"])
    assert done.stdout.decode().splitlines() == [path(60000), "60000 0"], done.stdout
    assert tells(done.stderr, "nvidia60000 No such device or address"), done.stderr  # it was opened, but there is no driver
    done = run(host, image, "sh", "-c", look, options=["--resource", "gpu=3"])
    assert done.stdout.decode().splitlines() == [path(60000), path(60001), path(60003), "60000,60001,60003 0,1,2"], done.stdout
    done = run(host, image, "sh", "-c", look)
    assert done.stdout.decode().splitlines() == ["/dev/nvidia*", ""], done.stdout


def main():
    need_root("containers of several accounts")
    if not os.access("/usr/bin/podman", os.X_OK) or not os.access("/bin/busybox", os.X_OK):
        print("/usr/bin/podman or /bin/busybox is missing: deploy/install-packages --tests installs both")
        sys.exit(77)
    if subprocess.run(["unshare", "--user", "--mount", "--map-root-user", "true"], user=65534, stderr=subprocess.DEVNULL).returncode != 0:
        print("this host refuses user namespaces")
        sys.exit(77)
    with UsersHost("--resources", "gpu=[60000,60001,60003],container=4") as host, MadeDevices(host.base), \
            Hurry(host, lambda: [pid for _, _, pid, _ in host.grain_processes()]):
        folder = os.path.join(host.base, "work")
        os.mkdir(folder, 0o755)
        image = os.path.join(folder, "rootfs.tar.gz")
        containers.make_rootfs(image)
        with open(os.path.join(folder, "table"), "w") as file:
            file.write("in\n")
        each_account_has_its_own(host, image)
        gpus_in_containers(host, image)
        it_works_as_for_other_grains(host, image, folder)
    print("1 passed, 0 failed")


main()
