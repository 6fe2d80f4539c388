"""A terminal for a program under test, and what a person sees on it."""
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time


class Terminal:
    def __init__(self, rows=24, columns=80):
        self.master, self.slave = pty.openpty()
        self.before = termios.tcgetattr(self.slave)
        self.sent = ""  # by the program, as it came
        self.rest, self.lines, self.row, self.column = "", {}, 1, 1
        self.resize(rows, columns)

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.rows, self.columns = rows, columns

    def type(self, keys):
        os.write(self.master, keys.encode())

    def read(self, seconds=0.2):
        if select.select([self.master], [], [], seconds)[0]:
            data = os.read(self.master, 65536).decode()
            self.sent += data
            self.rest += data
            self._draw()

    def _draw(self):
        while self.rest:  # a character or a sequence
            match = re.match(r"\x1b\[([?0-9;]*)([A-Za-z])", self.rest)
            if match:
                self.rest = self.rest[match.end():]
                self._obey(match[1], match[2])
            elif self.rest[0] == "\x1b":
                assert len(self.rest) < 20, f"not understood: {self.rest!r}"
                return  # the rest of it is on its way
            else:
                character, self.rest = self.rest[0], self.rest[1:]
                assert character.isprintable(), f"{character!r} drives the terminal"
                assert self.column <= self.columns and self.row <= self.rows, f"out of the screen: {self.row}, {self.column}"
                line = self.lines.get(self.row, "").ljust(self.column - 1)
                self.lines[self.row] = line[:self.column - 1] + character + line[self.column:]
                self.column += 1

    def _obey(self, numbers, letter):
        if letter == "H":
            self.row, self.column = (int(n) for n in numbers.split(";"))
        elif letter == "K":
            self.lines[self.row] = self.lines.get(self.row, "")[:self.column - 1]
        elif letter == "J":
            self.lines = {}
        else:
            assert letter in "mhl", f"unknown sequence {numbers}{letter}"

    def screen(self):
        return "\n".join(self.lines.get(row, "").rstrip() for row in range(1, self.rows + 1))

    def shows(self, pattern, timeout=300):
        """Waits until the screen has it; returns the screen."""
        end = time.monotonic() + timeout
        while not re.search(pattern, self.screen(), re.S | re.M):
            assert time.monotonic() < end, f"no {pattern} in\n{self.screen()}"
            self.read()
        return self.screen()

    def close(self):
        """The program has ended: has it left the terminal as it was?"""
        end = time.monotonic() + 300
        while "\x1b[?1049l" not in self.sent:
            assert time.monotonic() < end, "the other screen is not left"
            self.read()
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is not as it was"
        os.close(self.master)
        os.close(self.slave)
