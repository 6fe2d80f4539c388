"""docs/OPERATING.md as a test reads it: ```sh blocks to be typed, whose first line is `# USER@MACHINE`, each with the ```output block behind it, if there is one."""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs/OPERATING.md")
MACHINES = ("sched", "h1", "h2", "vault", "desk1")
USERS = ("root", "ann", "eve")  # of the group, and not


class Block:
    def __init__(self, section, where, text):
        self.section, self.text, self.output = section, text, None
        self.user, _, self.machine = where.partition("@")

    def __str__(self):
        return f"{self.section}: {self.user}@{self.machine}:\n{self.text}"


def blocks(text=None):
    """Of the page, in order. An assertion says what is wrong with it."""
    text = open(PAGE).read() if text is None else text
    found, section, opened = [], "", 0
    for heading, info, body in re.findall(r"^## ([^\n]*)$|^```([^\n]*)\n(.*?)^```$", text, re.M | re.S):
        if heading:
            section = heading
            continue
        opened += 1
        if info == "output":
            assert found and found[-1].output is None, f"{section}: an output without the commands that print it"
            found[-1].output = body
            continue
        where, _, body = body.partition("\n")
        block = Block(section, where.removeprefix("# "), body)
        assert info == "sh" and where[:2] == "# " and block.machine in MACHINES and block.user in USERS, f"{section}: a block of kind {info!r} for {where!r}"
        found.append(block)
    assert text.count("\n```") == 2 * opened, "a block is not closed"
    return found


def agrees(printed, expected):
    """Is `printed` what the page shows, where ... matches anything?"""
    parts = [re.escape(part) for part in expected.strip().split("...")]
    return re.fullmatch(".*".join(parts), printed.strip(), re.S) is not None


def commands(block):
    """Lines that are typed one by one."""
    return [line for line in block.text.splitlines() if line]
