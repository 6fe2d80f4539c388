#!/usr/bin/python3
"""A state directory that release 0.1 left, its scheduler killed by kill -9, is taken over: everything has the values that release
0.1 told of it, the control program of the closed session repeats to its end, the state is written on, and nothing is found
damaged. state_0_1/make.py made what is here, with the programs of that release."""
import getpass
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile


from pool import BIN, ROOT, wait_for
from state_0_1.asked import asked, lasting, serving

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "state_0_1")
MADE_BY = "root"


def unpack(base):
    with tarfile.open(os.path.join(HERE, "state.tar.xz")) as archive:
        archive.extractall(base)
    os.chmod(os.path.join(base, "scheduler"), 0o700)


def is_waiting(problem):
    """Grains that no host can take, which the release did not name."""
    return "no host can take" in problem["problem"]


def same(now, then, where=""):
    """What a newer program adds to its answers is no difference; what it leaves out or says otherwise is."""
    if isinstance(then, dict):
        assert isinstance(now, dict), f"{where}: {now!r}, was {then!r}"
        for key in then:
            assert key in now, f"{where}: {key} is not told any more"
            same(now[key], then[key], f"{where}.{key}")
    elif isinstance(then, list):
        if where.endswith(".problems"):
            now = [p for p in now if not is_waiting(p)]
        assert isinstance(now, list) and len(now) == len(then), f"{where}: {now!r}, was {then!r}"
        for i, (a, b) in enumerate(zip(now, then)):
            same(a, b, f"{where}[{i}]")
    else:
        assert now == then, f"{where}: {now!r}, was {then!r}"


def replay(base):
    environment = dict(os.environ, DCS_DIR=base, PYTHONPATH=os.path.join(ROOT, "libdcs/python"),
                       DCS_LIBRARY=os.path.join(os.path.dirname(BIN), "lib/libdcs.so"))
    environment.pop("DCS_AUTH_FD", None)
    result = subprocess.run([sys.executable, os.path.join(HERE, "control.py")], env=environment, timeout=300, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert result.returncode == 0, result.stderr.decode()
    with open(os.path.join(HERE, "replay.txt"), "rb") as file:
        assert result.stdout == file.read(), result.stdout.decode()


def change(dcs):
    """Every kind of entity is written in today's form."""
    for line in (("grain", "kill", "2:12"), ("host", "set", "local1", "--slots", "5"), ("session", "close", "2")):
        result = dcs(*line)
        assert result.returncode == 0, result.stderr.decode()


def damage(dcs):
    """Of the problems, not that the pool's hosts are away, and not what waits for them."""
    problems = json.loads(dcs("doctor", "-o", "json").stdout)["problems"]
    return [p for p in problems if not p["entity"].startswith("host ") and not is_waiting(p)]


def all_was_read(base):
    """All contents are read through after the start. When the last one, damaged here, is named, nothing else may be."""
    with open(os.path.join(base, "scheduler/state/sessions", MADE_BY, "2/g/1/out"), "r+b") as file:
        file.write(b"x")
    with serving(base, BIN) as dcs:
        found = wait_for("the look at all contents", lambda: damage(dcs))
        assert len(found) == 1 and "2/g/1/out" in json.dumps(found), found


def hostless(answers):
    """Without what is said of hosts only after a while: that they are away."""
    for name, answer in answers.items():
        for document in answer["documents"] if name.startswith("host ") else []:
            for host in document.get("hosts", [document.get("host", {})]):
                host.pop("state", None)
    for document in answers["doctor"]["documents"]:
        document["problems"] = [p for p in document["problems"] if not p["entity"].startswith("host ")]
    answers["doctor"].pop("exit")
    return answers


def main():
    if getpass.getuser() != MADE_BY:
        print(f"the state's sessions are those of {MADE_BY}: only that user can be served with them")
        return 77
    base = tempfile.mkdtemp(prefix="dcs-test-")
    try:
        unpack(base)
        with open(os.path.join(HERE, "expected.json")) as file:
            expected = hostless(lasting(json.load(file)))
        with serving(base, BIN) as dcs:
            same(hostless(asked(dcs)), expected)
            replay(base)
            same(hostless(asked(dcs)), expected)
            change(dcs)
            after = hostless(asked(dcs))
        with serving(base, BIN) as dcs:
            same(hostless(asked(dcs)), after)
            assert not damage(dcs)
        shutil.rmtree(os.path.join(base, "scheduler"))
        unpack(base)
        all_was_read(base)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
