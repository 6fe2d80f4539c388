#!/usr/bin/python3
"""What running grains write can be read while they run: dcs grain tail -f and cat, dcs run --live and on a terminal. What is
shown comes once, and where a grain begins again that is said; the outputs that stay hold everything once."""
import os
import pty
import select
import signal
import subprocess

from pool import Pool, program, tells, wait_for

DCS = program("dcs")
WAITS = 'echo "begin $$"; echo wrong >&2; until [ -e go ]; do sleep 0.05; done; echo end'


class Reader:
    """Reads a descriptor as it fills."""

    def __init__(self, fd):
        self.fd, self.text = fd, ""

    def more(self, seconds=0.0):
        while select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # the other side of a terminal is gone
                break
            if not data:
                break
            self.text += data.decode()
        return self.text

    def until(self, words):
        return wait_for(words, lambda: words in self.more() and self.text, timeout=120)


class Grain:
    """A grain that waits for the file go, and a party that shows it."""

    def __init__(self, pool, name):
        self.pool, self.directory = pool, os.path.join(pool.base, name)
        os.mkdir(self.directory)

    def start(self, *words, **options):
        streams = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return self.pool.start([DCS, *words], cwd=self.directory, **dict(streams, **options))

    def go(self):
        open(os.path.join(self.directory, "go"), "w").close()


def whole(process, reader):
    assert process.wait(timeout=120) == 0
    return reader.more()


def runs(pool):
    rows = pool.dcs("grain", "ls", "last", "-o", "json", check=False).stdout
    return b'"state":"running"' in rows


def of_a_pipe(pool):
    grain = Grain(pool, "pipe")
    run = grain.start("run", "--", "sh", "-c", WAITS)
    wait_for("a running grain", lambda: runs(pool))
    follower, errors = grain.start("grain", "tail", "-f", "last:1"), grain.start("grain", "tail", "-f", "--err", "last:1")
    shown, wrong, output = Reader(follower.stdout.fileno()), Reader(errors.stdout.fileno()), Reader(run.stdout.fileno())
    begin = shown.until("begin")
    assert wrong.until("wrong") == "wrong\n"
    assert pool.dcs("grain", "cat", "last:1").stdout.decode() == begin
    assert pool.dcs("grain", "cat", "--err", "last:1").stdout.decode() == "wrong\n"
    assert output.more() == "", "dcs run into a pipe is silent until the end"
    grain.go()
    assert whole(run, output) == begin + "end\n"
    # The session is gone by now, and so may be what the follower asks for.
    follower.wait(timeout=120), errors.wait(timeout=120)
    assert shown.more() in (begin, begin + "end\n"), shown.text


def live(pool):
    grain = Grain(pool, "live")
    run = grain.start("run", "--live", "--", "sh", "-c", WAITS)
    output, errors = Reader(run.stdout.fileno()), Reader(run.stderr.fileno())
    begin = output.until("begin")
    errors.until("wrong")
    grain.go()
    assert whole(run, output) == begin + "end\n" and errors.more() == "wrong\n", (output.text, errors.text)


def of_a_terminal(pool):
    grain = Grain(pool, "terminal")
    ours, theirs = pty.openpty()
    run = grain.start("run", "--", "sh", "-c", WAITS, stdout=theirs)
    os.close(theirs)
    output = Reader(ours)
    output.until("begin")
    grain.go()
    assert run.wait(timeout=120) == 0
    assert output.more(0.2).replace("\r", "").split("\n")[1:] == ["end", ""], output.text
    os.close(ours)
    grain = Grain(pool, "silent")
    ours, theirs = pty.openpty()
    run = grain.start("run", "--no-live", "--", "sh", "-c", WAITS, stdout=theirs)
    os.close(theirs)
    wait_for("a running grain", lambda: runs(pool))
    wait_for("its output", lambda: pool.dcs("grain", "cat", "last:1").stdout)
    output = Reader(ours)
    assert output.more() == ""
    grain.go()
    assert run.wait(timeout=120) == 0 and output.more(0.2).count("begin") == 1, output.text
    os.close(ours)


def much(pool):
    """More than goes into one answer, while it runs and at the end."""
    grain = Grain(pool, "much")
    run = grain.start("run", "--live", "--", "sh", "-c", "seq 100000; until [ -e go ]; do sleep 0.05; done; seq 100000")
    output = Reader(run.stdout.fileno())
    output.until("\n100000\n")
    numbers = "".join(f"{n}\n" for n in range(1, 100001))
    assert output.text == numbers
    assert pool.dcs("grain", "tail", "-n", "50000", "last:1").stdout.decode() == numbers[numbers.index("\n50000\n") + 7:]
    grain.go()
    wait_for("the end", lambda: output.more() and run.poll() is not None, timeout=120)
    assert whole(run, output) == 2 * numbers


def begins_again(pool):
    grain = Grain(pool, "again")
    number = grain.start("map", "--detach", "--", "sh", "-c", WAITS, ":::", "x").communicate(timeout=120)[0].decode().strip()
    follower = grain.start("grain", "tail", "-f", number + ":1")
    shown, said = Reader(follower.stdout.fileno()), Reader(follower.stderr.fileno())
    first = shown.until("begin")
    pool.dcs("grain", "restart", number + ":1")
    wait_for("the second beginning", lambda: shown.more().count("begin") == 2, timeout=120)
    assert tells(said.until("\n"), f"last {len(first)} bytes shown above void"), said.text
    grain.go()
    end = whole(follower, shown)
    assert end.startswith(first) and end.endswith("\nend\n") and end.count("begin") == 2, end
    assert pool.dcs("grain", "cat", number + ":1").stdout.decode() == end[len(first):], "what stays is of one run"

    grain = Grain(pool, "run-again")
    run = grain.start("run", "--live", "--", "sh", "-c", WAITS)
    output, errors = Reader(run.stdout.fileno()), Reader(run.stderr.fileno())
    first = output.until("begin")
    errors.until("wrong")
    pool.dcs("grain", "restart", "last:1")
    wait_for("the second beginning", lambda: output.more().count("begin") == 2, timeout=120)
    grain.go()
    assert whole(run, output).endswith("\nend\n") and output.text.count("begin") == 2
    assert tells(errors.more(0.2), f"last {len(first)} bytes shown above void"), errors.text


def host_is_silent(pool):
    """A grain server that is suspended has nothing to say, and no party hangs because of it."""
    grain = Grain(pool, "stopped")
    run = grain.start("run", "--", "sh", "-c", WAITS)
    wait_for("a running grain", lambda: runs(pool))
    wait_for("its output", lambda: pool.dcs("grain", "cat", "last:1").stdout)
    server = pool.pid("grainserver", "local1")
    os.kill(server, signal.SIGSTOP)
    try:
        assert pool.dcs("grain", "cat", "last:1", timeout=300).stdout == b""
    finally:
        os.kill(server, signal.SIGCONT)
    grain.go()
    assert run.wait(timeout=120) == 0


def main():
    with Pool(1, 2, 10.0) as pool:
        of_a_pipe(pool)
        live(pool)
        of_a_terminal(pool)
        much(pool)
        begins_again(pool)
        host_is_silent(pool)
    print("6 passed, 0 failed")


if __name__ == "__main__":
    main()
