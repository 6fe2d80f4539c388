#!/usr/bin/python3
"""Grains that no host can take: dcs doctor, session show and the progress of dcs submit say so, and no time left is promised. A
limit that ends a grain is the last line of its standard error, wherever that goes. Hosts have a version."""
import json
import os
import subprocess

from pool import Pool, about, program, tells, wait_for

JOBS = """
[[grain]]
name = "few"
command = ["true"]
array = "1-3"
[[grain]]
name = "odd"
command = ["true"]
array = "1-2"
class = "0x40000000"
[[grain]]
name = "long"
command = ["sh", "-c", "until test -e go; do sleep 0.1; done"]
"""


def no_host_can_take(pool, folder):
    with open(os.path.join(folder, "jobs.toml"), "w") as file:
        file.write(JOBS)
    job = subprocess.Popen([program("dcs"), "submit", "--wait", "--progress", "json", "jobs.toml"], cwd=folder, env=pool.env,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    session = wait_for("the session", lambda: [s for s in pool.json("session", "ls")["sessions"] if s["finished"] == 3])[0]["session"]
    shown = pool.json("session", "show", str(session))["session"]
    assert shown["stuck"] == 2, shown
    assert tells(pool.dcs("session", "show", str(session)).stdout, "stuck 2 grains that no host can take dcs doctor")
    rows = pool.json("doctor", check=False)["problems"]
    row = [r for r in rows if r["entity"].endswith(f"/{session}")][0]
    first = f"{session}:4"
    assert about(row["problem"], "2 grains no host can take 1 host of a class that the grain does not accept"), row
    assert about(row["affects"], f"grain {first} dcs grain explain {first}"), row
    assert about(row["advice"], f"dcs session close {session}"), row
    with open(os.path.join(folder, "go"), "w"):
        pass
    err = job.communicate(timeout=300)[1].decode()
    assert job.returncode != 0 and tells(err, "change limits hosts run the same command again"), err
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert not [line for line in lines if line.get("stuck") and "left_s" in line], lines
    pool.dcs("session", "close", str(session))
    assert not [r for r in pool.json("doctor", check=False)["problems"] if r["entity"].endswith(f"/{session}")]


def a_limit_is_said(pool, folder):
    words = "dcs: ended on local1: the grain ran longer than its 1 s; submit it with a longer --time"
    script = ["sh", "-c", "echo begun; printf half >&2; sleep 600"]
    done = pool.dcs("run", "--time", "1", "--", *script, check=False, cwd=folder)
    assert done.stdout == b"begun\n" and done.stderr.decode().splitlines()[-2:] == ["half", words], done
    done = pool.dcs("map", "--time", "1", "--results", "out", "--", *script, ":::", "a", check=False, cwd=folder)
    assert done.returncode == 1, done
    with open(os.path.join(folder, "out", "1.err")) as file:
        assert file.read() == f"half\n{words}\n"
    with open(os.path.join(folder, "long.toml"), "w") as file:
        file.write('[[grain]]\ncommand = ["sleep", "600"]\ntime = "1"\n')
    done = pool.dcs("submit", "--wait", "long.toml", check=False, cwd=folder)
    assert tells(done.stderr, "failed with signal 24: " + words), done
    assert about(pool.dcs("grain", "explain", "last:1").stdout.decode(), "failed ran longer than its 1 s submit --time")


def hosts_have_a_version(pool, _):
    version = pool.dcs("--version").stdout.decode().split()[1]
    host = pool.json("host", "show", "local1")["host"]
    assert host["version"] == version and host["address"] == "", host
    assert tells(pool.dcs("host", "show", "local1").stdout, f"version {version}")
    assert tells(pool.dcs("host", "ls").stdout, "CONFINEMENT VERSION")


def main():
    with Pool(servers=1, slots=2) as pool:
        for part in (hosts_have_a_version, no_host_can_take, a_limit_is_said):
            folder = os.path.join(pool.dir, "..", part.__name__)
            os.makedirs(folder, exist_ok=True)
            part(pool, os.path.realpath(folder))
            print(part.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    main()
