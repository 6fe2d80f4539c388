"""Clocks of hosts that can be set, though all hosts are one machine: see stepped_clock.c."""
import os
import struct

from pool import BIN

LIBRARY = os.path.join(os.path.dirname(BIN), "tests/libstepped_clock.so")
HOUR, YEARS = 3600, 10 * 365 * 24 * 3600
STEPS = [HOUR, -HOUR, YEARS, -YEARS]


class Clocks:
    """Their files lie in `directory`."""
    exist = os.path.exists(LIBRARY)

    def __init__(self, directory):
        self.directory, self.steps = directory, {}

    def path(self, name):
        return os.path.join(self.directory, name + ".clock")

    def variables(self, name):
        """Of the environment of a process on the host of that name."""
        if not self.exist:
            return {}
        if name not in self.steps:
            self.steps[name] = [0, 0]
            with open(self.path(name), "wb") as file:
                file.write(bytes(16))
        return {"LD_PRELOAD": LIBRARY, "DCS_STEPPED_CLOCK": self.path(name)}

    def set(self, name, wall, slept=0):
        """The wall clock is wrong by `wall` seconds from now on, and the boot clock has gone on by `slept`."""
        step = self.steps[name]
        step[0], step[1] = wall, step[1] + slept
        with open(self.path(name), "r+b") as file:
            file.write(struct.pack("qq", *step))
