#!/usr/bin/python3
"""Grains in containers, under the host's podman, as root and as a user without privileges: checkpoints, a host that is killed,
signals, exit codes, limits, files; archives of docker; hosts without containers. The images are made of this machine's files.
The image and the killed host always, all with tests/run --full or the argument `whole`."""
import glob
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile

from hurry import Hurry
from pool import BIN, FULL, ROOT, Pool, grains_of_server, program, tells, wait_for

TICKS = os.path.join(os.path.dirname(BIN), "tests", "ticks")
LAST = 60
APPLETS = ("sh", "cat", "dd", "echo", "env", "id", "ls", "pwd", "sleep", "touch", "true")


def libraries_of(path):
    words = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode().split()
    return sorted({word for word in words if word.startswith("/")})


def add_bytes(archive, name, data):
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), 0o644
    archive.addfile(member, io.BytesIO(data))


def add_programs(archive):
    archive.add("/bin/busybox", "bin/busybox")
    for applet in APPLETS:
        link = tarfile.TarInfo("bin/" + applet)
        link.type, link.linkname = tarfile.SYMTYPE, "busybox"
        archive.addfile(link)
    archive.add(TICKS, "opt/ticks")
    for library in sorted(set(libraries_of(TICKS) + libraries_of("/bin/busybox"))):
        archive.add(os.path.realpath(library), library[1:])


def make_rootfs(path):
    with tarfile.open(path, "w:gz") as archive:
        add_programs(archive)
        add_bytes(archive, "image", b"of a root file system\n")
        for name in ("proc", "dev", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(folder)


def make_docker(path, compressed):
    """As `docker save` writes it, and as its users compress it; the second layer removes a file of the first."""
    layers = []
    for fill in (lambda a: (add_programs(a), add_bytes(a, "gone", b"x"), add_bytes(a, "image", b"old\n")),
                 lambda a: (add_bytes(a, ".wh.gone", b""), add_bytes(a, "image", b"of layers\n"))):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as archive:
            fill(archive)
        layers.append(data.getvalue())
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {
        "type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest() for layer in layers]}}).encode()
    manifest = [{"Config": "config.json", "RepoTags": None, "Layers": [f"{i}/layer.tar" for i in range(len(layers))]}]
    with tarfile.open(path, "w:gz" if compressed else "w") as archive:
        add_bytes(archive, "config.json", config)
        for i, layer in enumerate(layers):
            add_bytes(archive, f"{i}/layer.tar", layer)
        add_bytes(archive, "manifest.json", json.dumps(manifest).encode())


def run(pool, image, *words, options=(), data=None, code=0):
    done = pool.dcs("run", "--image", image, *options, "--", *words, data=data, check=False)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def ticks(last=LAST, pause=50):
    return f"1 {last} {pause}\n".encode(), "".join(f"tick {i}\n" for i in range(1, last + 1)).encode()


def the_container_is_the_image(pool, image):
    assert run(pool, image, "/bin/cat", "/image").stdout == b"of a root file system\n"
    assert run(pool, image, "cat", "/image").stdout == b"of a root file system\n"  # found by PATH in the image
    listed = run(pool, image, "ls", "-a", "/").stdout.split()
    assert b"home" not in listed and b"image" in listed, listed
    assert run(pool, image, "sh", "-c", "touch /new || echo refused").stdout == b"refused\n"
    assert run(pool, image, "sh", "-c", "touch /tmp/new; ls /tmp").stdout.endswith(b"new\n")
    assert run(pool, image, "pwd", options=["--cwd", "/opt"]).stdout == b"/opt\n"
    assert run(pool, image, "sh", "-c", "echo $A $DCS_RESOURCE_CONTAINER; pwd", options=["--env", "A=b c"]).stdout.startswith(
        b"b c 1\n" + pool.dir.encode())


def ends_are_exact(pool, image):
    for code in (0, 7, 126, 137, 255):
        said = run(pool, image, "sh", "-c", f"exit {code}", code=code).stderr
        assert not tells(said, "signal"), said
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
        said = run(pool, image, "sh", "-c", f"kill -{int(number)} $$", code=128 + number).stderr
        assert tells(said, f"signal {int(number)}"), said
    assert tells(run(pool, image, "nothing", code=127).stderr, "nothing cannot be started in the container")
    assert tells(run(pool, image, "/image", code=126).stderr, "/image cannot be started in the container")
    assert run(pool, image, "sh", "-c", "cat; echo two >&2", data=b"one\n").stdout == b"one\n"


def limits_hold(pool, image):
    said = run(pool, image, "sleep", "600", options=["--wall", "3"], code=128 + signal.SIGXCPU).stderr
    assert tells(said, "3 s"), said
    run(pool, image, "dd", "if=/dev/zero", "of=/dev/null", "bs=400M", "count=500", options=["--memory", "150"],
        code=128 + signal.SIGKILL)
    # Nothing but the container's own: no mounts, no namespaces, though the process outside may make them.
    status = run(pool, image, "cat", "/proc/self/status").stdout.decode().split("\n")
    confined = pool.json("host", "show", "local1")["host"]["confinement"]
    assert "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status, status
    assert ("Seccomp:\t2" in status) == ("filter" in confined), (confined, status)


def files_go_in_and_out(pool, image, folder):
    with open(os.path.join(folder, "table"), "w") as file:
        file.write("in\n")
    out = os.path.join(folder, "out")
    run(pool, image, "sh", "-c", "cat table > made; echo out >> made",
        options=["--file", os.path.join(folder, "table"), "--output", "made=" + out])
    assert open(out).read() == "in\nout\n"
    data, expected = ticks(3, 1)
    assert run(pool, image, TICKS, options=["--bring"], data=data).stdout == expected  # a program that is not in the image
    mapped = pool.dcs("map", "--image", image, "--", "cat", "{}", ":::", "/image", "/image").stdout
    assert mapped == b"of a root file system\n" * 2, mapped


PYTHON = """import sys
import dcs
with dcs.Session("containers") as session:
    session.submit(1, ["cat", "/image"], env={"PATH": "/bin"}, image=sys.argv[1])
    print(next(iter(session.results())).check().output.decode(), end="")
"""


def every_way_in(pool, image, folder):
    with open(os.path.join(folder, "job.toml"), "w") as file:
        file.write(f'[defaults]\nimage = "{image}"\n[[grain]]\nname = "one"\n'
                   'command = ["sh", "-c", "cat /image > made"]\noutput = "made=from_submit"\n')
    pool.env["XDG_STATE_HOME"] = os.path.join(folder, "state")
    pool.dcs("submit", "--wait", "job.toml", cwd=folder)
    assert open(os.path.join(folder, "from_submit")).read() == "of a root file system\n"
    env = dict(pool.env, PYTHONPATH=os.path.join(ROOT, "libdcs/python"), DCS_LIBRARY=os.path.join(os.path.dirname(BIN), "lib/libdcs.so"))
    done = subprocess.run([sys.executable, "-c", PYTHON, image], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    assert done.stdout == b"of a root file system\n", (done.stdout, done.stderr)


def processes_that_name(directory):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = open(f"/proc/{pid}/cmdline", "rb").read() + open(f"/proc/{pid}/environ", "rb").read()
        except OSError:
            continue  # it has just ended, or is another account's
        if directory.encode() + b"/" in text:
            found.append(pid)
    return found


def it_goes_on_elsewhere(pool, image, folder):
    """The host is killed with all its processes after a checkpoint; the output is that of the program outside."""
    data, expected = ticks()
    with open(os.path.join(folder, "input"), "wb") as file:
        file.write(data)
    assert pool.dcs("run", "--", TICKS, data=ticks(3, 1)[0]).stdout == ticks(3, 1)[1]
    grain = pool.start([program("dcs"), "run", "--image", image, "--", "/opt/ticks"],
                       stdin=open(os.path.join(folder, "input")), stdout=subprocess.PIPE)

    def saved():
        rows = [row for row in pool.json("grain", "ls", "all")["grains"] if row["state"] == "running"]
        return rows and rows[0]["checkpoint_length"] > 0 and rows[0]
    row = wait_for("a checkpoint of the grain in its container", saved)
    assert pool.kill_host(row["host"]), "the grain was killed"
    here = os.path.join(pool.dir, "servers", row["host"])
    wait_for("the end of all processes of the container", lambda: not processes_that_name(here))
    out, _ = grain.communicate(timeout=300)
    assert grain.returncode == 0 and out == expected, (grain.returncode, out)
    pool.up()
    starts = [move for move in pool.json("host", "ls")["hosts"] if move["name"] != row["host"]]
    assert starts[0]["launched"] > 0, starts


def withdrawn_with_a_checkpoint(pool, image, folder):
    """A drain signals the grain inside: it takes its checkpoint and goes to the other host."""
    data, expected = ticks()
    with open(os.path.join(folder, "input"), "wb") as file:
        file.write(data)
    grain = pool.start([program("dcs"), "run", "--image", image, "--", "/opt/ticks"],
                       stdin=open(os.path.join(folder, "input")), stdout=subprocess.PIPE)

    def begun():
        rows = [row for row in pool.json("grain", "ls", "all")["grains"] if row["state"] == "running"]
        return rows and rows[0]["checkpoint_length"] > 0 and rows[0]
    row = wait_for("a checkpoint", begun)
    pool.dcs("host", "drain", "--evict", row["host"])
    out, _ = grain.communicate(timeout=300)
    assert grain.returncode == 0 and out == expected, (grain.returncode, out)
    pool.dcs("host", "undrain", row["host"])


def unpacked(pool):
    found = {}
    for name in pool.host_names():
        store = os.path.join(pool.dir, "servers", name, "images")
        for entry in os.listdir(store) if os.path.isdir(store) else ():
            if os.path.isdir(os.path.join(store, entry)) and "." not in entry:
                found[name, entry] = os.stat(os.path.join(store, entry)).st_ino
    return found


def archives_of_docker_work(pool, folder):
    image = os.path.join(folder, "docker.tar")
    make_docker(image, False)
    make_docker(image + ".gz", True)
    for one in (image, image + ".gz"):
        assert run(pool, one, "cat", "/image").stdout == b"of layers\n"
        assert b"gone" not in run(pool, one, "ls", "/").stdout.split()
    once = unpacked(pool)
    for _ in range(3):
        run(pool, image, "true")
    again = unpacked(pool)
    assert all(again[key] == inode for key, inode in once.items()), (once, again)
    broken = os.path.join(folder, "broken.tar")
    with open(broken, "w") as file:
        file.write("no archive")
    assert tells(run(pool, broken, "true", code=126).stderr, "tar cannot unpack the image")


HIDDEN = ["unshare", "--mount", "sh", "-c", 'mount --bind /dev/null /usr/bin/podman && exec "$@"', "sh"]


def hosts_without_are_explained(folder, image):
    with Pool(servers=1, slots=1, directory=os.path.join(folder, "without")) as pool:
        pool.down()
        hidden = HIDDEN if os.geteuid() == 0 else []
        up = [program("dcs"), "up", "--local", "1", "--dir", pool.dir, *([] if hidden else ["--resources", "container=0"])]
        subprocess.run([*hidden, *up], env=pool.env, stdout=subprocess.DEVNULL, check=True)
        session = pool.dcs("run", "--detach", "--image", image, "--", "true").stdout.decode().strip()
        said = wait_for("the reason", lambda: (lambda text: b"container" in text and text)(
            pool.dcs("grain", "explain", session + ":1", check=False).stdout))
        assert tells(said, "no host offers container, which needs podman"), said
        pool.dcs("session", "close", session)
        said = pool.dcs("run", "--image", os.path.join(folder, "none"), "--", "true", check=False).stderr
        assert tells(said, "none No such file"), said


def all_of_it(whole):
    with Pool(servers=2, slots=2, interval=0.5) as pool, Hurry(pool):
        folder = os.path.join(pool.base, "work")
        os.mkdir(folder)
        image = os.path.join(folder, "rootfs.tar.gz")
        make_rootfs(image)
        the_container_is_the_image(pool, image)
        it_goes_on_elsewhere(pool, image, folder)
        if whole:
            every_way_in(pool, image, folder)
            ends_are_exact(pool, image)
            limits_hold(pool, image)
            files_go_in_and_out(pool, image, folder)
            withdrawn_with_a_checkpoint(pool, image, folder)
            archives_of_docker_work(pool, folder)
            hosts_without_are_explained(folder, image)
        for host in pool.host_names():
            store = os.path.join(pool.dir, "servers", host, "images")
            assert len(os.listdir(store) if os.path.isdir(store) else ()) < 20, os.listdir(store)


class PoolsBelow:
    """Those of another account: what Hurry needs of them."""

    def __init__(self, folder):
        self.folder = folder

    def grain_processes(self):
        return [grain for server in glob.glob(self.folder + "/*/pool/servers/*") for grain in grains_of_server("", server)]


def once_more_without_root():
    drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs"]
    if subprocess.run([*drop, "test", "-x", program("dcs")]).returncode != 0:
        print(program("dcs") + " is closed to other accounts: not tried without root")
        return
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    env = {name: value for name, value in os.environ.items() if name != "DCS_TESTS_FULL"}
    with tempfile.TemporaryDirectory(prefix="dcs-test-") as folder:
        os.chown(folder, 65534, 65534)
        with Hurry(PoolsBelow(folder)):
            subprocess.run([*drop, sys.executable, "-B", here, "containers"], env=dict(env, HOME=folder, TMPDIR=folder), check=True)


def main():
    if not os.access("/usr/bin/podman", os.X_OK) or not os.access("/bin/busybox", os.X_OK):
        print("/usr/bin/podman or /bin/busybox is missing: deploy/install-packages --tests installs both")
        sys.exit(77)
    if subprocess.run(["unshare", "--user", "--mount", "--map-root-user", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("this host refuses user namespaces")
        sys.exit(77)
    whole = FULL or "whole" in sys.argv[1:]
    all_of_it(whole)
    if whole and os.geteuid() == 0:
        once_more_without_root()
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
