#!/usr/bin/python3
"""A host that is removed ends the grains that run there: at once if it is connected, else when it calls again. What was set of
it is forgotten. And an authority whose key is gone is not replaced by a new one."""
import os
import signal
import subprocess

from hurry import Hurry
from pool import program, tells, wait_for
from tls import TlsPool


def running_on(pool, host):
    return [pid for name, _, pid, _ in pool.grain_processes() if name == host and os.path.exists(f"/proc/{pid}")]


def ended(pids):
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def hosts_join(pool):
    for name in ("h1", "h2"):
        pool.join(name)
        pool.start_server(name)
    pool.wait_active("h1", "h2")
    for _ in ("h1", "h2"):
        pool.dcs("run", "--detach", "--", "/bin/sleep", "1000")
    return wait_for("both grains", lambda: running_on(pool, "h1")) + wait_for("the other", lambda: running_on(pool, "h2"))


def a_connected_host_ends_its_grains(pool):
    hosts_join(pool)
    there = running_on(pool, "h2")
    pool.dcs("host", "set", "h2", "--slots", "3")
    said = pool.dcs("host", "rm", "h2").stdout
    assert tells(said, "host h2 removed from pool 1 grain ended starts again elsewhere"), said
    wait_for("its end on h2", lambda: ended(there))
    pool.table("h1", "h2")
    pool.dcs("reload")
    pool.join("h2")
    pool.wait_active("h2")  # its server reads the new certificate by itself
    assert (pool.host("h2")["slots"], pool.host("h2")["settings"]) == (1, ""), pool.host("h2")


def one_that_is_away_does_it_when_it_calls(pool):
    there = wait_for("the grain, again on h2", lambda: running_on(pool, "h2"))
    pool.stop("h2", signal.SIGKILL)
    wait_for("its link to end", lambda: not pool.host("h2")["connected"])
    pool.dcs("host", "rm", "h2")
    assert not ended(there)
    pool.start_server("h2")
    wait_for("its end on h2", lambda: ended(there))


def an_authority_keeps_its_name(pool):
    key = os.path.join(pool.directory, "pki", "authority-key.pem")
    pool.stop("scheduler")
    os.rename(key, key + ".away")
    done = subprocess.run([program("dcs_scheduler"), "--dir", pool.directory, "--tls", f"127.0.0.1:{pool.port_number}"], env=pool.env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 4 and tells(done.stderr, "authority-key.pem missing restore new authority move"), done
    os.rename(key + ".away", key)
    pool.start_scheduler()
    pool.wait_active("h1")


def main():
    with TlsPool() as pool, Hurry(pool):
        for part in (a_connected_host_ends_its_grains, one_that_is_away_does_it_when_it_calls, an_authority_keeps_its_name):
            part(pool)
            print(part.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    main()
