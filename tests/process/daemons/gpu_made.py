"""Device files of GPUs that are none: no driver has their numbers, so to open one that is allowed fails with ENXIO."""
import fcntl
import os
import stat
import sys

MAJOR, FIRST_MINOR = 240, 70  # a major of those for local use
OFFERED, NOT_OFFERED = (60000, 60001, 60003), 60002
ALL = sorted((*OFFERED, NOT_OFFERED))


def path(index):
    return f"/dev/nvidia{index}"


class MadeDevices:
    """And one of them by another name, elsewhere. One test at a time makes them."""

    def __init__(self, folder):
        self.alias, self.made = os.path.join(folder, "alias"), []

    def __enter__(self):
        self.turn = os.open("/dev", os.O_RDONLY)
        fcntl.flock(self.turn, fcntl.LOCK_EX)
        names = [(path(index), number) for number, index in enumerate(ALL)] + [(self.alias, 0)]
        try:
            for name, number in names:
                if os.path.exists(name) and os.stat(name).st_rdev == os.makedev(MAJOR, FIRST_MINOR + number):
                    os.unlink(name)  # of a test that was killed
                os.mknod(name, 0o666 | stat.S_IFCHR, os.makedev(MAJOR, FIRST_MINOR + number))
                self.made.append(name)
                os.chmod(name, 0o666)
        except OSError as error:
            self.__exit__()
            print(f"SKIPPED: {error}")
            sys.exit(77)
        return self

    def __exit__(self, *_):
        for name in self.made:
            os.unlink(name)
        os.close(self.turn)
