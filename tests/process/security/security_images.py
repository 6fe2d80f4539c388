#!/usr/bin/python3
"""What an image may unpack to. dcs_container is run as the launcher runs it, without a pool: beyond the host's size of unpacked
images by bytes or by names it ends tar, and says so; older images go by size, and what a killed grain has begun goes too; what fails
by this host's fault is given back. And what podman reads: no other process of the account reaches it, so that podman starts no programs of others."""
import fcntl
import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import tempfile

import containers
from pool import about, program, wait_for

MB = 1 << 20
NOT_EXECUTABLE, GIVEN_BACK = 126, 74
FIEMAP, NOT_PLACED = 0xC020660B, 0x6  # unknown place, or delayed allocation
PODMAN = "/usr/bin/podman"
# In podman's place: says how it was called and what its configuration is, and waits.
MADE_PODMAN = """#!/bin/sh
{{ env; for word; do echo "WORD=$word"; done; cat $CONTAINERS_CONF $CONTAINERS_STORAGE_CONF $CONTAINERS_REGISTRIES_CONF; }} >{base}/said.new && mv {base}/said.new {base}/said
while [ -d {base} ] && [ ! -e {base}/go ]; do sleep 0.02; done
exit 1
"""
WITH_MOUNT = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", 'mount $0 && exec "$@"']


def rootfs(path, files=1, size=0):
    """Compressed, it is small."""
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for i in range(files):
            member = tarfile.TarInfo(f"file{i}")
            member.size = size
            archive.addfile(member, io.BytesIO(bytes(size)))
    return path


class Host:
    def __init__(self, base):
        self.base, self.store = base, os.path.join(base, "images")
        self.grains = os.path.join(base, "grains")
        os.makedirs(os.path.join(self.grains, "g/room/work"))

    def run(self, image, images_mb):
        """Exit status and words. An image that unpacks has no program here, so podman or the look-up of the program fails."""
        grain = self.start(image, images_mb)
        said, _ = grain.communicate(timeout=600)
        return grain.returncode, said.decode()

    def start(self, image, images_mb, by=(), argv=("/none",)):
        with open(image, "rb") as archive:
            words = [program("dcs_container"), "run", str(archive.fileno()), self.store, self.name(image), self.grains, "0", str(images_mb),
                     "", "", "", argv[0]]
            return subprocess.Popen([*by, *words, *argv], env=dict(os.environ, DCS_GRAIN_DIR=os.path.join(self.grains, "g/room")),
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                    pass_fds=[archive.fileno()])

    def given_back(self):
        """Whether the grain has asked for it, since it was asked last."""
        try:
            os.remove(os.path.join(self.grains, "g/room/announce"))
            return True
        except FileNotFoundError:
            return False

    @staticmethod
    def name(image):
        return hashlib.sha256(os.path.basename(image).encode()).hexdigest()

    def has(self, image, end=""):
        return os.path.isdir(os.path.join(self.store, self.name(image) + end))


def too_large(host):
    for image in (rootfs(os.path.join(host.base, "bytes.tar.gz"), files=3, size=40 * MB),
                  rootfs(os.path.join(host.base, "names.tar.gz"), files=8000)):  # each name counts as 16 KiB
        code, text = host.run(image, 60)
        assert code == NOT_EXECUTABLE and about(text, "image unpacks to more than 60 MB --images-mb"), (code, text)
        assert not host.has(image) and not host.has(image, ".new"), os.listdir(host.store)
        code, text = host.run(image, 600)
        assert not about(text, "unpacks to more"), text
        assert host.has(image), (text, os.listdir(host.store))


def older_ones_go_by_size(host):
    images = [rootfs(os.path.join(host.base, f"old{i}.tar.gz"), size=20 * MB) for i in range(4)]
    for at, image in enumerate(images):
        host.run(image, 50)
        assert host.has(image), at
        os.utime(os.path.join(host.store, host.name(image) + ".lock"), (at, at))  # the order in which they were used
    assert [host.has(image) for image in images] == [False, False, True, True], os.listdir(host.store)


def what_was_begun_goes(host):
    begun, other = os.path.join(host.store, "0" * 64), rootfs(os.path.join(host.base, "other.tar.gz"))
    os.makedirs(begun + ".new/root/deep")
    open(begun + ".lock", "w").close()
    host.run(other, 600)
    assert host.has(other) and not os.path.exists(begun + ".new")


def opened_or_made(path):
    """By another process of the account, before podman reads it, or in its place."""
    for attempt in (lambda: os.close(os.open(path, os.O_RDONLY)), lambda: os.makedirs(path, exist_ok=True)):
        try:
            attempt()
            return True
        except OSError:
            pass
    return False


def extents_not_on_disk(path):
    """How many parts of the file the file system has not placed yet; None: it does not say."""
    fields = struct.Struct("=QQLLLL"), struct.Struct("=QQQQQLLLL")
    asked = bytearray(fields[0].pack(0, MB, 0, 0, 16, 0).ljust(fields[0].size + 16 * fields[1].size, b"\0"))
    with open(path, "rb") as file:
        try:
            fcntl.ioctl(file, FIEMAP, asked)
        except OSError:
            return None
    found = fields[0].unpack_from(asked)[3]
    return sum(bool(fields[1].unpack_from(asked, fields[0].size + i * fields[1].size)[5] & NOT_PLACED) for i in range(found))


def whole_on_the_disk(host):
    """What has the image's name is whole after a power failure, too."""
    image = rootfs(os.path.join(host.base, "synced.tar.gz"), size=MB // 2)
    host.run(image, 600)
    assert extents_not_on_disk(os.path.join(host.store, host.name(image), "file0")) in (0, None)


def at_fault(host, image, by):
    """Who is, if the image is not unpacked."""
    host.given_back()
    out, _ = (grain := host.start(image, 600, by)).communicate(timeout=300)
    assert not host.has(image) and not host.has(image, ".new"), out
    assert grain.returncode == (GIVEN_BACK if (back := host.given_back()) else NOT_EXECUTABLE), (grain.returncode, out)
    return ("host" if back else "image"), out.decode()


def whose_fault_it_is(host):
    """A full disk or a program that is killed says nothing about the image."""
    image, broken = rootfs(os.path.join(host.base, "fault.tar.gz"), size=4 * MB), os.path.join(host.base, "broken.tar")
    with open(broken, "wb") as file:
        file.write(b"no archive" * 1000)
    killed = os.path.join(host.base, "killed")
    with open(killed, "w") as file:
        file.write("#!/bin/sh\nkill -9 $$\n")
    os.chmod(killed, 0o755)
    who, said = at_fault(host, broken, [])
    assert who == "image" and about(said, "tar cannot unpack"), (who, said)
    who, said = at_fault(host, image, ["prlimit", "--fsize=100000"])
    assert who == "image" and about(said, "tar cannot unpack File size limit"), (who, said)
    for full in (image, rootfs(os.path.join(host.base, "faults.tar.gz"), files=3, size=4 * MB)):
        who, said = at_fault(host, full, [*WITH_MOUNT, "-t tmpfs -o size=1m none " + host.store])
        assert who == "host" and about(said, "tar cannot unpack"), (who, said)
    who, said = at_fault(host, image, [*WITH_MOUNT, f"--bind {killed} /bin/tar"])
    assert who == "host" and about(said, "tar cannot list"), (who, said)
    if not os.access(PODMAN, os.X_OK):
        return
    layers = os.path.join(host.base, "no_layers.tar")
    with tarfile.open(layers, "w") as archive:
        archive.addfile(tarfile.TarInfo("manifest.json"))
    who, said = at_fault(host, layers, [])
    assert who == "image" and about(said, "podman cannot load"), (who, said)
    who, said = at_fault(host, layers, [*WITH_MOUNT, f"--bind {killed} {PODMAN}"])
    assert who == "host" and about(said, "podman cannot load"), (who, said)


def add(archive, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))
    return {"digest": "sha256:" + name[-64:], "size": len(data)}


def make_oci(path, compressed):
    """As `podman save --format oci-archive` writes it: one layer with one file."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        add(archive, "of_oci", b"x")
    name = lambda data: "blobs/sha256/" + hashlib.sha256(data).hexdigest()
    of = "application/vnd.oci.image."
    with tarfile.open(path, "w:gz" if compressed else "w") as archive:
        def blob(value, kind):
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            return {"mediaType": of + kind, **add(archive, name(data), data)}
        layers = [blob(layer.getvalue(), "layer.v1.tar")]
        config = blob({"architecture": "amd64", "os": "linux", "config": {},
                       "rootfs": {"type": "layers", "diff_ids": [layers[0]["digest"]]}}, "config.v1+json")
        index = {"schemaVersion": 2, "manifests": [blob({"schemaVersion": 2, "config": config, "layers": layers}, "manifest.v1+json")]}
        add(archive, "index.json", json.dumps(index).encode())
        add(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')


def nothing_unpacks_elsewhere():
    """All that an archive of OCI takes while it is unpacked is where it is measured."""
    with tempfile.TemporaryDirectory(prefix="dcs-images-", dir="/tmp") as base:
        host = Host(base)
        for compressed in (False, True):
            image = os.path.join(base, f"oci{compressed}.tar")
            make_oci(image, compressed)
            out, _ = host.start(image, 600, [*WITH_MOUNT, "-t tmpfs -o ro none /var/tmp"]).communicate(timeout=300)
            assert host.has(image), out
            assert os.listdir(os.path.join(host.store, host.name(image))) == ["of_oci"]


def podman_reads_only_its_own(host):
    """While it unpacks an image, and while it starts a container."""
    made, said, go = (os.path.join(host.base, name) for name in ("podman", "said", "go"))
    with open(made, "w") as file:
        file.write(MADE_PODMAN.format(base=host.base))
    os.chmod(made, 0o755)
    layers, plain = os.path.join(host.base, "layers.tar"), rootfs(os.path.join(host.base, "plain.tar.gz"))
    with tarfile.open(layers, "w") as archive:
        archive.addfile(tarfile.TarInfo("manifest.json"))
    for image, expected in ((layers, "podman cannot load"), (plain, "podman:")):
        grain = host.start(image, 600, [*WITH_MOUNT, f"--bind {made} {PODMAN}"])
        wait_for("podman", lambda: os.path.exists(said) or grain.poll() is not None)
        assert grain.poll() is None, grain.communicate()
        text = open(said).read()
        assert "cgroup_manager" in text and "[storage]" in text, text
        read = dict(line.split("=", 1) for line in text.splitlines() if line.startswith(("CONTAINERS_", "HOME=", "XDG_RUNTIME_DIR=")))
        assert len(read) == 5, read
        words = [line[5:] for line in text.splitlines() if line.startswith("WORD=")]
        if image == plain:
            read["--rootfs"] = words[words.index("--rootfs") + 1]
        for name, path in read.items():
            assert not opened_or_made(path), (name, path)
        open(go, "w").close()
        out, _ = grain.communicate(timeout=300)
        assert expected in out.decode(), out
        os.remove(said)
        os.remove(go)


def the_first_process_is_closed(host):
    """It has no filter. Without a rung that keeps the grain from other processes, it is the kernel that keeps it from this one."""
    image = os.path.join(host.base, "busybox.tar")
    with tarfile.open(image, "w") as archive:
        for path in ("/bin/busybox", *containers.libraries_of("/bin/busybox")):
            archive.add(os.path.realpath(path), path[1:])
    look = "for p in 1 self; do if (: </proc/$p/environ); then echo $p open; else echo $p closed; fi; done"
    out, _ = host.start(image, 600, argv=["/bin/busybox", "sh", "-c", look]).communicate(timeout=300)
    assert b"1 closed" in out and b"self open" in out, out
    names = os.listdir(os.path.join(host.store, host.name(image)))
    assert set(names) <= {"bin", "lib", "lib64", "usr"}, names  # nothing is written in the image


def main():
    with tempfile.TemporaryDirectory(prefix="dcs-images-", dir="/var/tmp") as base:
        host = Host(base)
        code, text = host.run(rootfs(os.path.join(base, "first.tar.gz")), 600)
        if about(text, "refuses a user namespace"):
            print("SKIPPED: this host has no user namespaces")
            sys.exit(77)
        assert host.has(os.path.join(base, "first.tar.gz")), (code, text)
        too_large(host)
        older_ones_go_by_size(host)
        what_was_begun_goes(host)
        whose_fault_it_is(host)
        whole_on_the_disk(host)
        if os.access(PODMAN, os.X_OK):
            podman_reads_only_its_own(host)
            nothing_unpacks_elsewhere()
            if os.access("/bin/busybox", os.X_OK):
                the_first_process_is_closed(host)


if __name__ == "__main__":
    sys.exit(main())
