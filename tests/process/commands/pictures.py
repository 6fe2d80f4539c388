#!/usr/bin/python3
"""The pictures of docs/pictures: find_factor, whose grains move with their checkpoints when their hosts die, and the branch
and bound, which decides by results. Each run draws them again and looks whether they show what happened; times differ, so
the pictures in the docs are compared by what they are made of. DCS_REWRITE=1 puts the new ones into the docs."""
import collections
import os
import re
import shutil
import subprocess
import xml.dom.minidom

from hurry import Hurry
from pool import ROOT, Pool, program, wait_for

PICTURES = os.path.join(ROOT, "docs/pictures")
REWRITE = "DCS_REWRITE" in os.environ  # then with grains so long that some move
FACTORS = (10**30 + 57 if REWRITE else 10**17 + 3, 10**25 + 13)
OPTIONS = ("--b1", "50000:2000" if REWRITE else "20000:400", "--curves-per-grain", "8" if REWRITE else "4", "--window", "6")


def parts(path):
    """How many shapes of which class."""
    found = collections.Counter()
    for kind in ("rect", "line", "path", "polygon", "text"):
        for node in xml.dom.minidom.parse(path).getElementsByTagName(kind):
            if node.getAttribute("class"):
                found[node.getAttribute("class")] += 1
    return found


def session_of(pool, ident):
    return next(s["session"] for s in pool.json("session", "ls")["sessions"] if s["ident"].startswith(ident))


def draw(pool, name, session):
    svg, graph = (os.path.join(pool.base, f"{name}-{kind}.svg") for kind in ("time", "flow"))
    pool.dcs("trace", str(session), "--svg", svg, "--graph", graph)
    return svg, graph


def check(pool, session, svg, graph):
    events = pool.json("session", "log", str(session))["events"]
    count = collections.Counter(e["event"] for e in events)
    time, flow = parts(svg), parts(graph)
    assert time["box stay"] == count["started"], (time, count)
    assert time["checkpoint"] == count["checkpoint"] + 1, (time, count)  # and one in the legend
    runs = collections.Counter(e["grain"] for e in events if e["event"] == "started")
    assert time["moved"] == sum(runs.values()) - len(runs) + 1, (time, runs)
    assert flow["box decision"] >= 2 and flow["flow"] >= 2, flow
    return count


def compare(path):
    """What is in the docs is made of the same."""
    name = os.path.basename(path)
    if REWRITE:
        os.makedirs(PICTURES, exist_ok=True)
        shutil.copy(path, os.path.join(PICTURES, name))
    old, new = parts(os.path.join(PICTURES, name)), parts(path)
    always = {"title", "text", "small", "legend"} | ({"flow", "start", "box grains"} if "flow" in name else {"box stay", "mark"})
    assert always <= set(old) and always <= set(new), (name, old, new)
    style = [re.search(r"<style>.*</style>", open(p).read()).group() for p in (path, os.path.join(PICTURES, name))]
    assert style[0] == style[1], f"{name} was drawn by an older version: DCS_REWRITE=1 draws it again"


def find_factor(pool):
    """A host dies as soon as one of its grains has a checkpoint, and the grain goes on elsewhere; on a machine so fast that none
    ever has one, nothing moves."""
    run = pool.start([program("find_factor"), *OPTIONS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                     stderr=subprocess.DEVNULL)
    run.stdin.write(f"{FACTORS[0] * FACTORS[1]}\n".encode())
    run.stdin.close()
    session = wait_for("a session", lambda: [s["session"] for s in pool.json("session", "ls")["sessions"]])[0]

    def host_with_checkpoint():
        if run.poll() is not None:
            return [None]
        events = pool.json("session", "log", str(session))["events"]
        over = {e["grain"] for e in events if e["event"] in ("finished", "killed", "left")}
        with_one = {e["grain"] for e in events if e["event"] == "checkpoint"} - over
        return [e["host"] for e in events if e["event"] == "started" and e["grain"] in with_one]
    host = wait_for("a checkpoint of a grain that runs", host_with_checkpoint, timeout=300)[0]
    if host:
        pool.kill_host(host)
    out = run.stdout.read().decode()
    assert run.wait(timeout=300) == 0 and all(str(f) in out for f in FACTORS), out
    return session


def golomb(pool):
    out = subprocess.run([program("golomb"), "6"], env=pool.env, stdout=subprocess.PIPE, timeout=300, check=True).stdout
    assert out.startswith(b"17:"), out
    return session_of(pool, "golomb")


def main():
    for name, work, servers in (("golomb", golomb, 3), ("find_factor", find_factor, 3)):
        with Pool(servers=servers, slots=2) as pool:
            with Hurry(pool):
                session = work(pool)
            svg, graph = draw(pool, name, session)
            count = check(pool, session, svg, graph)
            print(f"{name}: {dict(count)}")
            for path in (svg, graph):
                compare(path)


if __name__ == "__main__":
    main()
