#!/usr/bin/python3
"""What an image may unpack to. dcs_container is run as the launcher runs it, without a pool: beyond the host's size of unpacked
images by bytes or by names it ends tar, and says so; older images go by size, and what a killed grain has begun goes too."""
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile

from pool import about, program

MB = 1 << 20
NOT_EXECUTABLE = 126


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
        os.makedirs(os.path.join(self.grains, "g/room"))

    def run(self, image, images_mb):
        """Exit status and words. An image that unpacks has no program here, so podman or the look-up of the program fails."""
        words = [program("dcs_container"), "run", image, self.store, self.name(image), self.grains, "0", str(images_mb), "", "", "", "/none",
                 "none"]
        done = subprocess.run(words, env=dict(os.environ, DCS_GRAIN_DIR=os.path.join(self.grains, "g/room")), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=600)
        return done.returncode, done.stdout.decode()

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


if __name__ == "__main__":
    sys.exit(main())
