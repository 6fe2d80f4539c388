#!/usr/bin/python3
"""README.md and docs/TUTORIAL.md, typed as they stand: every ```sh block, in order, in one shell, in a directory that looks
like the project's; what a ```output block says must be what the block before it printed (`...` matches anything). A
```c NAME or ```python NAME block is written into that file. Blocks of kind text are not for typing."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from hurry import Hurry
from pool import BIN, ROOT, Pool

PAGES = ("README.md", "docs/TUTORIAL.md")
BUILD = os.path.dirname(BIN)
KINDS = {"sh", "output", "c", "python", "text"}
LIMIT_S = 600


class Shell:
    """One bash to which the blocks are typed one after the other."""

    def __init__(self, directory, env):
        self.directory = directory
        self.process = subprocess.Popen(["bash", "--norc", "--noprofile"], cwd=directory, env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)

    def type(self, number, block):
        """What it printed on standard output, its input being at its end; the end is not waited for where it put something into the background."""
        base = os.path.join(self.directory, f".block{number}")
        with open(base, "w") as file:
            file.write(block)
        self.process.stdin.write(f"set -e; . {base} </dev/null >{base}.out 2>{base}.err; set +e; echo typed\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        out, err = open(base + ".out").read(), open(base + ".err").read()
        assert line == "typed\n", f"the block\n{block}failed: {line!r}\n{out}\n{err}"
        return out

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=300)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def blocks(page):
    text = open(os.path.join(ROOT, page)).read()
    found = re.findall(r"^```(\S*)(?: (\S+))?\n(.*?)^```$", text, re.M | re.S)
    assert text.count("\n```") == 2 * len(found), f"{page}: a block is not closed"
    for kind, name, _ in found:
        assert kind in KINDS, f"{page}: a block of kind {kind!r}"
        assert bool(name) == (kind in ("c", "python")), f"{page}: the block {kind} {name}"
    return found


def check(page, typed, printed, expected):
    pattern = re.escape(expected).replace(re.escape("..."), ".*")
    assert re.fullmatch(pattern, printed, re.S), f"{page}:\n{typed}printed\n{printed}\nand the page says\n{expected}"


def directory_like_the_project(base):
    """Only what a page may refer to; the build may have another preset's name."""
    os.makedirs(os.path.join(base, "build"))
    os.symlink(BUILD, os.path.join(base, "build/release"))
    for name in ("libdcs", "control-examples", "docs"):
        os.symlink(os.path.join(ROOT, name), os.path.join(base, name))


def says_what_is_wrong(program, env):
    """A control program of the page whose pool is stopped."""
    done = subprocess.run([program], env=dict(env, DCS_PATIENCE_S="1"), capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode != 0 and done.stdout == "" and "no scheduler answers" in done.stderr, (program, done)


def page_is_true(page):
    base = tempfile.mkdtemp(prefix="dcs-test-")
    directory_like_the_project(base)
    state = os.path.join(base, "home/.local/state/dcs")
    env = dict(os.environ, HOME=os.path.join(base, "home"), LC_ALL="C.UTF-8")
    for name in ("DCS_DIR", "XDG_STATE_HOME", "DCS_AUTH_FD", "PYTHONPATH"):
        env.pop(name, None)
    os.mkdir(env["HOME"])
    shell, printed, typed, count = Shell(base, env), None, "", 0
    pool = Pool(directory=state)  # which the page starts
    signal.alarm(LIMIT_S)
    try:
        with Hurry(pool):
            for number, (kind, name, text) in enumerate(blocks(page)):
                if kind in ("c", "python"):
                    open(os.path.join(base, name), "w").write(text)
                elif kind == "sh":
                    typed, printed = text, shell.type(number, text)
                    count += 1
                elif kind == "output":
                    check(page, typed, printed, text)
        for kind, name, text in blocks(page):
            if kind == "c" and "d_get_auth" in text:
                says_what_is_wrong(os.path.join(base, name[:-2]), env)
        left = [d for d in pool.daemons().values() if d["state"] == "up"]
        assert not left, f"{page} leaves its pool: {left}"
    finally:
        signal.alarm(0)
        shell.end()
        pool.down()
        for directory in (base, pool.base):
            shutil.rmtree(directory, ignore_errors=True)
    return count


def main():
    counts = {page: page_is_true(page) for page in PAGES}
    assert all(count >= 5 for count in counts.values()), counts
    print(f"1 passed, 0 failed; blocks typed: {counts}")


if __name__ == "__main__":
    sys.exit(main())
