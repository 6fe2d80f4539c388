#!/usr/bin/python3
"""Host classes by their names: declared in the host table, named by --class, `dcs host set`, C and Python, shown by lists and
JSON, completed; and what is wrong about them is an error that says what was meant."""
import os
import subprocess
import sys

from completion import offered
from pool import ROOT, Pool, program, tells


def table(pool, lines):
    path = os.path.join(pool.dir, "scheduler", "hosts")
    kept = [line for line in open(path).read().splitlines() if line.startswith("local")]
    with open(path, "w") as file:
        file.write(lines + "".join(line.replace("class=0x1", "class=" + name) + "\n" for line, name in zip(kept, ("gpu", "fast,0x8"))))
    return pool.dcs("reload", check=False)


def shown(pool):
    rows = {row["name"]: row for row in pool.json("host", "ls")["hosts"]}
    assert [(rows[n]["class"], rows[n]["class_names"]) for n in ("local1", "local2")] == [(4, "gpu"), (10, "fast,0x8")], rows
    text = pool.dcs("host", "ls").stdout.decode()
    assert " gpu " in text and " fast,0x8 " in text, text
    assert "gpu (0x4)" in pool.dcs("host", "show", "local1").stdout.decode()
    assert offered(pool, "run", "--class", "g") == ["gpu"]
    assert offered(pool, "map", "--class", "gpu,f") == ["gpu,fast"]


def used(pool):
    for name, host in (("gpu", "local1"), ("fast", "local2"), ("0x4", "local1"), ("0x8", "local2")):
        pool.dcs("map", "--new", "--class", name, "--", "true", ":::", "1")
        row = pool.json("grain", "show", "last:1")["grain"]
        assert row["host"] == host and row["host_class"] != 0, (name, row)
        assert row["class_names"] == {"0x4": "gpu", "0x8": ""}.get(name, name), row
    pool.dcs("map", "--new", "--class", "fast,gpu", "--", "true", ":::", "1")
    assert "either (0x6)" in pool.dcs("grain", "show", "last:1").stdout.decode()
    assert pool.dcs("run", "--class", "gpu", "--", "echo", "there").stdout == b"there\n"
    pool.dcs("host", "set", "local2", "--class", "gpu,fast")
    assert {row["name"]: row["class_names"] for row in pool.json("host", "ls")["hosts"]}["local2"] == "either"
    pool.dcs("host", "set", "local2", "--reset")
    code = "import dcs; print(dcs.host_class('gpu,0x1'))\ntry: dcs.host_class('gpus')\nexcept dcs.NotFound as e: print(e.text)"
    env = dict(pool.env, PYTHONPATH=os.path.join(ROOT, "libdcs/python"))
    said = subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, check=True, timeout=120).stdout.decode()
    assert said == "5\nthere is no host class gpus; did you mean gpu?\n", said


def everywhere(pool):
    """Lists over all sessions."""
    sessions = {row["session"] for row in pool.json("session", "ls")["sessions"]}
    rows = pool.json("grain", "ls", "all")["grains"]
    assert len(sessions) > 3 and {row["session"] for row in rows} == sessions, (sessions, rows)
    assert pool.dcs("grain", "ls", rows[0]["user"] + "/all", "-o", "name").stdout.decode().count("\n") == len(rows)
    assert pool.json("grain", "ls", "nemo/all")["grains"] == []
    for words in (("show", "all"), ("ls", "all:1"), ("kill", "all")):
        result = pool.dcs("grain", *words, check=False)
        assert result.returncode == 2 and tells(result.stderr, "does not name grain"), (words, result)


def wrong(pool):
    for words, code in ((("run", "--class", "gpus", "true"), 125), (("map", "--class", "gpus", "true", ":::", "1"), 255),
                        (("host", "set", "local1", "--class", "gpus"), 3)):
        result = pool.dcs(*words, check=False)
        assert result.returncode == code and b"no host class gpus; did you mean gpu?" in result.stderr, result
    result = pool.dcs("run", "--class", "gpu,,fast", "true", check=False)
    assert result.returncode == 125 and b"--class gpu,,fast: " in result.stderr, result
    before = pool.json("host", "ls")["hosts"]
    result = table(pool, "class gpus=0x4 fast=2\n")
    assert result.returncode == 1 and tells(result.stderr, "hosts:2 class no host class gpu did you mean gpus?"), result
    strip = lambda rows: [(row["name"], row["class_names"]) for row in rows]
    assert strip(pool.json("host", "ls")["hosts"]) == strip(before), "the old table stays whole"


def main():
    with Pool(servers=2) as pool:
        result = table(pool, "class gpu=0x4 fast=2\nclass either=gpu,fast   # by names that are declared above\n")
        assert result.returncode == 0, result
        shown(pool)
        used(pool)
        everywhere(pool)
        wrong(pool)
    print("host classes: declared, shown, used and completed by name; errors say what was meant")


if __name__ == "__main__":
    main()
