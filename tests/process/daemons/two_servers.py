#!/usr/bin/python3
"""Two grain servers with the name of one host: the one that is connected keeps its connection and works, the other is
refused and says why, `dcs doctor` and the audit log name the host; when the first is killed, the refused one serves."""
import os
import subprocess

from pool import Pool, program, tells, wait_for


def problems(pool):
    return [p for p in pool.json("doctor", check=False)["problems"] if p["entity"] == "host local1"]


def refusals(pool):
    return open(os.path.join(pool.dir, "scheduler", "log")).read().count("grain server refused")


def main():
    with Pool(servers=1, slots=1) as pool:
        own = os.path.join(pool.base, "second.log")
        second = pool.start([program("dcs_grainserver"), "--name", "local1", "--dir", os.path.join(pool.base, "second"), "--scheduler",
                             os.path.join(pool.dir, "scheduler", "server.sock"), "--run-as", "self"], stderr=open(own, "w"))
        wait_for("the word of the second server", lambda: tells(open(own).read(), "refuses this server another grain server local1"))
        found = wait_for("the doctor's word", lambda: problems(pool))
        assert tells(found[0]["problem"], "two grain servers") and "dcs token create" in found[0]["advice"], found
        times = refusals(pool)
        for i in range(5):  # the one that is connected works, and stays
            assert pool.dcs("run", "--", "echo", str(i)).stdout == f"{i}\n".encode()
            assert pool.json("host", "show", "local1")["host"]["connected"]
        assert pool.json("host", "show", "local1")["host"]["state"] == "active"
        assert open(own).read().count("another grain server") == 1, "it is said once"
        print("refused so far:", times, refusals(pool))
        log = open(os.path.join(pool.dir, "scheduler", "log")).read()
        assert log.count("audit: two grain servers have the key of host local1") == 1, log
        pool.kill("server", "local1")
        wait_for("the second server to serve", lambda: pool.json("host", "show", "local1")["host"]["connected"], timeout=300)
        assert pool.dcs("run", "--", "echo", "again").stdout == b"again\n"
        second.terminate()
        second.wait()
        pool.dcs("up")  # which does not wait for what is gone
        assert pool.dcs("run", "--", "echo", "own").stdout == b"own\n"
        wait_for("the end of its problem", lambda: not problems(pool), timeout=120)


main()
