#!/usr/bin/python3
"""Hosts with different limits: `dcs host show` lists them, a grain that demands more memory than one permits waits for another,
a grain that exceeds a limit of its host starts again where more is permitted, and a host without control groups says so."""
import os
import subprocess

from pool import Pool, program, tells, wait_for


def row(pool, host):
    return pool.json("host", "show", host)["host"]


def started_again_with_limits(pool):
    pool.kill_host("local1")
    with open(os.path.join(pool.base, "local1.log"), "wb") as log:
        pool.start([program("dcs_grainserver"), "--name", "local1", "--dir", os.path.join(pool.dir, "servers", "local1"),
                    "--scheduler", os.path.join(pool.dir, "scheduler", "server.sock"), "--run-as", "self", "--cgroups", "none",
                    "--courtesy", "priority", "--max-memory-mb", "64", "--max-file-mb", "1", "--log-level", "info"], stderr=log)
    limits = "memory_mb=64,processes=512,file_mb=1"
    wait_for("its limits", lambda: row(pool, "local1")["connected"] and row(pool, "local1")["limits"] == limits)
    assert tells(pool.dcs("host", "show", "local1").stdout, f"limits of each grain {limits}")


def unusable_control_groups_are_told(pool):
    """Nothing is mounted there that the launcher can use."""
    if os.geteuid() != 0:
        return
    server = [program("dcs_grainserver"), "--name", "local2", "--dir", os.path.join(pool.dir, "servers", "local2"), "--scheduler",
              os.path.join(pool.dir, "scheduler", "server.sock"), "--run-as", "self", "--courtesy", "priority", "--max-memory-mb", "64"]
    words = "note its launcher cannot use control groups"
    for extra in ([], ["--cgroups", "none"]):
        pool.kill_host("local2")
        with open(os.path.join(pool.base, "local2.log"), "wb") as log:
            pool.start(["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh", *server, *extra], stderr=log)
        wait_for("its limits", lambda: tells(pool.dcs("host", "show", "local2").stdout, words) != bool(extra)
                 and row(pool, "local2")["connected"] and row(pool, "local2")["limits"])
        said = [p for p in pool.json("doctor", check=False)["problems"] if "control groups" in p["problem"]]
        assert [p["entity"] for p in said] == ([] if extra else ["host local2"]), said


def a_demand_is_kept_away(pool):
    pool.dcs("host", "drain", "local2")
    pool.dcs("run", "--detach", "--memory", "300M", "--", "true")
    waiting = wait_for("the grain", lambda: next((g for g in pool.json("grain", "ls", "all")["grains"] if g["state"] == "ready"), None))
    why = pool.json("grain", "explain", f"{waiting['session']}:{waiting['grain']}")
    found = {r["reason"]: r["names"] for r in why["reasons"]}
    assert found.get("memory_limited") == ["local1"] and found.get("drained") == ["local2"], why
    pool.dcs("host", "undrain", "local2")
    wait_for("its end", lambda: [g["state"] for g in pool.json("grain", "ls", "all")["grains"]] == ["finished"])


def a_limit_of_one_host_is_not_the_end(pool):
    pool.dcs("host", "drain", "local2")
    gate = os.path.join(pool.base, "gate")
    command = f"while ! [ -e {gate} ]; do sleep 0.1; done; exec head -c 2000000 /dev/zero"
    grain = pool.start([pool.bin + "/dcs", "run", "--", "sh", "-c", command], stdout=subprocess.PIPE)
    wait_for("the grain on local1", lambda: row(pool, "local1")["running"] == 1)
    pool.dcs("host", "undrain", "local2")
    with open(gate, "w", encoding="ascii"):
        pass
    out, _ = grain.communicate(timeout=600)
    assert grain.returncode == 0 and out == bytes(2000000), (grain.returncode, len(out))


def main():
    with Pool(servers=2, slots=1) as pool:
        for part in (started_again_with_limits, a_demand_is_kept_away, a_limit_of_one_host_is_not_the_end,
                     unusable_control_groups_are_told):
            part(pool)
            print(part.__name__.replace("_", " "), flush=True)


main()
