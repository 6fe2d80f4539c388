#!/usr/bin/python3
"""A host that is removed ends the grains that run there: at once if it is connected, else when it calls again. What was set of
it is forgotten, and `dcs doctor` says why it is refused. And an authority whose key is gone is not replaced by a new one."""
import os
import signal
import socket
import ssl
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
    wrong = pool.dcs("host", "rm", "h2", "h22", check=False)
    assert wrong.returncode == 3 and tells(wrong.stderr, "no host was removed h22 not in host table"), wrong
    assert pool.host("h2")["connected"]
    busy = pool.dcs("host", "rm", "h2", check=False)
    assert busy.returncode == 4 and tells(busy.stderr, "h2 not removed runs 1 grain last checkpoint dcs host drain h2 --move-grains"), busy
    assert pool.host("h2")["connected"] and not ended(there)
    said = pool.dcs("host", "rm", "h2", "--move-grains").stdout
    assert tells(said, "host h2 removed from pool 1 grain ended starts again elsewhere"), said
    wait_for("its end on h2", lambda: ended(there))
    pool.table("h1", "h2")
    pool.dcs("reload")
    line, key = pool.code("--host", "h2"), os.path.join(pool.base, "h2", "pki", "key.pem")
    old = open(key).read()
    again = pool.join("h2", *line, check=False)  # as an administrator does who removed it by mistake
    assert again.returncode != 0 and tells(again.stderr, "key host removed stays refused repeat --new-key"), again
    assert open(key).read() == old  # which the server still has
    unheard = pool.join("h2", "host", "join", "127.0.0.1:1", *line[3:], "--new-key", check=False)  # it may have been heard
    kept = open(key.replace("key.pem", "next-key.pem")).read()
    assert unheard.returncode != 0 and open(key).read() == old, unheard
    said = pool.join("h2", *line, "--new-key").stdout
    assert tells(said, "daemon takes new certificate by itself") and "restart" not in said, said
    own = socket.gethostname().partition(".")[0]
    assert tells(said, f"own name is {own} h2 another machine join there new code here with one for {own} and --new-key"), said
    assert open(key).read() == kept and not os.path.exists(key.replace("key.pem", "next-key.pem"))
    pool.wait_active("h2")  # its server reads the new certificate by itself
    assert (pool.host("h2")["slots"], pool.host("h2")["settings"]) == (1, ""), pool.host("h2")


def one_that_is_away_does_it_when_it_calls(pool):
    there = wait_for("the grain, again on h2", lambda: running_on(pool, "h2"))
    pool.stop("h2", signal.SIGKILL)
    wait_for("its link to end", lambda: not pool.host("h2")["connected"])
    pool.dcs("host", "rm", "h2", "--move-grains")
    assert not ended(there)
    pool.start_server("h2")
    wait_for("its end on h2", lambda: ended(there))


def doctor_says_why_it_is_refused(pool):
    """By the scheduler itself, and at the TLS door by the name that a certificate claims."""
    pool.table("h1", "h2")
    pool.dcs("reload")
    for identity, why, advice in (
            (os.path.join(pool.base, "h2", "pki"), "certificate host h2 revoked", "do: let it join again dcs token create --host h2"),
            (pool.forge("late", "grainserver", "h2", 30, 10), "certificate h2 expired", "do: set clocks right"),
            (pool.forge("theirs", "grainserver", "h2", authority=os.path.join(pool.base, "other-authority")),
             "certificate h2 issued another authority", "do: let it join again")):
        def doctor_says_why():  # its server calls in between
            pool.call(identity, "h2", os.path.join(pool.directory, "pki"))
            said = pool.dcs("doctor", check=False).stdout
            return tells(said, "host h2: call in its name from 127.0.0.1 refused: " + why) and tells(said, advice)
        wait_for(f"doctor to say why h2 is silent: {why}", doctor_says_why)

    def clocks_differ():  # a certificate that is not valid yet is called bad, as one of another name is
        trust = ssl.create_default_context(cafile=os.path.join(pool.directory, "pki", "authority.pem"))
        try:
            with socket.create_connection(("127.0.0.1", pool.port_number)) as plain:
                trust.wrap_socket(plain, server_hostname="elsewhere")
        except ssl.SSLError:
            pass
        said = pool.dcs("doctor", check=False).stdout
        return tells(said, "certificate scheduler: peer refuses our certificate not valid yet peer at 127.0.0.1")
    wait_for("doctor to say that clocks may differ", clocks_differ)


def an_authority_keeps_its_name(pool):
    key = os.path.join(pool.directory, "pki", "authority-key.pem")
    pool.stop("scheduler")
    os.rename(key, key + ".away")
    done = subprocess.run([program("dcs_scheduler"), "--dir", pool.directory, "--tls", f"127.0.0.1:{pool.port_number}"], env=pool.env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=300)
    assert done.returncode == 4 and tells(done.stderr, "authority-key.pem missing restore new authority remove files"), done
    os.rename(key + ".away", key)
    pool.start_scheduler()
    pool.wait_active("h1")


def main():
    with TlsPool() as pool, Hurry(pool):
        for part in (a_connected_host_ends_its_grains, one_that_is_away_does_it_when_it_calls,
                     doctor_says_why_it_is_refused, an_authority_keeps_its_name):
            part(pool)
            print(part.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    main()
