#!/usr/bin/python3
"""Files that go with grains and come back, by digest: a real scheduler, real programs, kills."""
import hashlib
import os
import subprocess
import time

from pool import Pool, program, wait_for

HELPER = os.path.join(os.path.dirname(program("dcs")), "../tests/contents")


def submit(pool, session, grain, *words, data=None):
    done = subprocess.run([HELPER, str(session), str(grain), *words], env=pool.env, capture_output=True, timeout=300, input=data)
    return done.stdout.decode().strip(), done.stderr.decode()


def fine(pool, session, grain, *words, data=None):
    name, text = submit(pool, session, grain, *words, data=data)
    assert name == "NO_ERROR", (name, text)


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)
    return path


def library(pool):
    """{digest: path} of what the scheduler has; and what is on its way in."""
    top = os.path.join(pool.dir, "scheduler/state/library")
    found, incoming = {}, []
    for directory, _, names in os.walk(top):
        for name in names:
            if os.path.basename(directory) == "incoming":
                incoming.append(name)
            else:
                found[os.path.basename(directory) + name] = os.path.join(directory, name)
    return found, incoming


def hex_of(data):
    return hashlib.sha256(data).hexdigest()


def brought_once(pool):
    """What the scheduler has is not sent again; other files are other grains; a changed file is named."""
    data = os.urandom(3_000_000)
    path = write(os.path.join(pool.base, "data"), data)
    fine(pool, 1, 1, "file", "in/data", path, "output", "made", "--", "/bin/true")
    found, incoming = library(pool)
    assert set(found) == {hex_of(data)} and not incoming, (found, incoming)
    assert open(found[hex_of(data)], "rb").read() == data
    before = os.stat(found[hex_of(data)]).st_mtime_ns
    fine(pool, 1, 1, "file", "in/data", path, "output", "made", "--", "/bin/true")
    fine(pool, 1, 2, "file", "in/data", path, "--", "/bin/true")
    assert os.stat(found[hex_of(data)]).st_mtime_ns == before
    write(path, data[:-1] + b"!" if data[-1:] != b"!" else data[:-1] + b"?")
    name, text = submit(pool, 1, 1, "file", "in/data", path, "output", "made", "--", "/bin/true")
    assert name == "D_E_GRAIN_DIFFERS" and "files[0]" in text and hex_of(data)[:16] in text, (name, text)
    facts = pool.dcs("grain", "show", "1:1").stdout.decode()
    assert "made, not yet" in facts, facts


def refused(pool):
    path = write(os.path.join(pool.base, "small"), b"small")
    for words in (["file", "../x", path], ["file", "/x", path], ["file", "a//b", path], ["file", "a", path, "file", "a/b", path],
                  ["file", "a", path, "file", "a", path], ["output", "a", "file", "a", path],
                  ["program", "", path, "program", "", path], ["file", "x", pool.base], ["file", "x", "/dev/zero"]):
        name, text = submit(pool, 1, 50, *words, "--", "/bin/true")
        assert name == "D_E_INVALID" and len(text) > 20, (words, name, text)
    name, text = submit(pool, 1, 50, "file", "x", "/nowhere/at/all", "--", "/bin/true")
    assert name == "D_E_NOT_FOUND" and "/nowhere/at/all" in text, (name, text)
    grains = [g["grain"] for g in pool.grains(1)]
    assert 50 not in grains, grains


def large_input(pool):
    """Beyond 16 MiB the input goes by content, also from a pipe; and comes back by dcs grain cat."""
    data = os.urandom(1 << 20) * 40
    path = write(os.path.join(pool.base, "large"), data)
    fine(pool, 1, 3, "input", path, "--", "/bin/true")
    fine(pool, 1, 4, "stdin", "--", "/bin/true", data=data)
    found, incoming = library(pool)
    assert hex_of(data) in found and not incoming, (found, incoming)
    for grain in ("1:3", "1:4"):
        assert pool.dcs("grain", "cat", "--input", grain).stdout == data
    fine(pool, 1, 5, "stdin", "--", "/bin/true", data=data[:1000])
    assert pool.dcs("grain", "cat", "--input", "1:5").stdout == data[:1000]


def killed(pool):
    """The scheduler dies while a content comes: the program brings it again, and nothing is left of the first time."""
    data = os.urandom(1 << 20) * 100
    path = write(os.path.join(pool.base, "killed"), data)
    running = pool.start([HELPER, "1", "6", "file", "x", path, "--", "/bin/true"], stdout=subprocess.PIPE)
    wait_for("a content on its way", lambda: library(pool)[1] or running.poll() is not None, step=0.005)
    pool.kill("scheduler", "scheduler")
    pool.up()
    assert running.communicate(timeout=300)[0].strip() == b"NO_ERROR", running.returncode
    found, incoming = library(pool)
    assert hex_of(data) in found and not incoming, (found, incoming)
    assert hex_of(open(found[hex_of(data)], "rb").read()) == hex_of(data)
    # What rotted meanwhile is not handed out, and is brought again.
    with open(found[hex_of(data)], "r+b") as file:
        file.seek(1 << 20)
        file.write(b"rot")
    pool.kill("scheduler", "scheduler")
    pool.up()
    fine(pool, 1, 7, "input", path, "--", "/bin/true")
    result = pool.dcs("grain", "cat", "--input", "1:7", check=False)
    assert result.returncode != 0 and b"any longer" in result.stderr, result.stderr
    fine(pool, 1, 8, "input", path, "--", "/bin/true")
    assert pool.dcs("grain", "cat", "--input", "1:7").stdout == data


def large_at_once(pool):
    """More large contents at one time than the scheduler writes past its cache: all come whole."""
    running, wanted = [], set()
    for grain in range(10, 16):
        data = os.urandom((64 << 20) + grain)
        wanted.add(hex_of(data))
        path = write(os.path.join(pool.base, f"large{grain}"), data)
        running.append((path, pool.start([HELPER, str(grain), "1", "file", "x", path, "--", "/bin/true"], stdout=subprocess.PIPE)))
    for path, one in running:
        assert one.communicate(timeout=300)[0].strip() == b"NO_ERROR", (path, one.returncode)
        os.unlink(path)
    found, incoming = library(pool)
    assert wanted <= set(found) and not incoming, (wanted, found, incoming)
    for digest in wanted:
        assert hex_of(open(found[digest], "rb").read()) == digest, digest


def moved(pool):
    """To another pool: inputs travel with the export, programs and staged files must be there."""
    data = os.urandom(1 << 20) * 17
    path, small = write(os.path.join(pool.base, "moving"), data), write(os.path.join(pool.base, "tool"), b"#!/bin/sh\nexit 0\n")
    fine(pool, 2, 1, "input", path, "tool", "bin/tool", small, "output", "made", "--", "bin/tool")
    pool.dcs("session", "close", "2")
    directory = os.path.join(pool.base, "exported")
    pool.dcs("session", "export", "2", directory)
    assert os.listdir(os.path.join(directory, "files")) == ["content-" + hex_of(data)]
    with Pool(servers=1) as other:
        lost = other.dcs("session", "import", directory, check=False)
        named = "content-" + hex_of(open(small, "rb").read())
        assert lost.returncode != 0 and named.encode() in lost.stderr, lost.stderr
        assert not other.json("session", "ls")["sessions"]
        write(os.path.join(directory, "files", named), open(small, "rb").read())
        other.dcs("session", "import", directory)
        assert other.dcs("grain", "cat", "--input", "2:1").stdout == data
        other.dcs("session", "export", "2", directory + "-again")
        for name in ("session", "grains"):
            assert open(os.path.join(directory, name)).read() == open(os.path.join(directory + "-again", name)).read(), name


def main():
    began = time.monotonic()
    with Pool(servers=1) as pool:
        pool.dcs("host", "drain", "local1")  # nothing of it runs
        for part in (brought_once, refused, large_input, killed, large_at_once, moved):
            part(pool)
    print(f"contents: all well, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
