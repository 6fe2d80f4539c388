#!/usr/bin/python3
"""A scheduler with a door for grain servers and another for control programs: each kind of host gets the address of its
own door, works through it, and is refused at the other."""
import os
import re

from pool import tells, wait_for
from remote_peer import Credentials, RemotePool, WELCOME
from tls import Proxy

USERS = re.compile(r"control programs of other hosts are served at 127.0.0.1:(\d+)")


class TwoDoors(RemotePool):
    options = ("--group", "none", "--tls-users", "127.0.0.1:0")


def several_codes_at_once(pool):
    """A line for each, whose address others may not know as the scheduler's, and that is said."""
    before = len(pool.json("token", "ls")["tokens"])
    made = pool.dcs("token", "create", "--count", "3", "--ttl", "60")
    lines = made.stdout.splitlines()
    assert len(set(lines)) == 3 and all(line.startswith("dcs host join 127.0.0.1:") for line in lines), lines
    assert made.stderr.count("note:") == 1 and tells(made.stderr, "127.0.0.1 means this host alone in its place"), made.stderr
    told = pool.json("token", "create", "--count", "2", "--ttl", "60")["tokens"]
    assert len({code["token"] for code in told}) == 2 and all(code["command"].endswith(code["ca_hash"]) for code in told), told
    ids = pool.dcs("token", "create", "--count", "1", "--ttl", "60", "-o", "name").stdout.split()
    assert len(pool.json("token", "ls")["tokens"]) == before + 6
    assert pool.dcs("token", "create", "--count", "2", "--host", "h1", check=False).returncode == 2
    for code in ids + [code["id"] for code in told]:
        pool.dcs("token", "revoke", code)


def main():
    with TwoDoors() as pool:
        users = int(wait_for("the users' door", lambda: USERS.search(pool.text("scheduler.log"))).group(1))
        assert users != pool.port_number
        pool.join("h1")  # asserts that its code names --tls
        pool.start_server("h1")
        pool.wait_active("h1")
        told = pool.dcs("token", "create", "--role", "client", "--host", "desk1").stdout.split()
        assert told[3] == f"127.0.0.1:{users}", told

        servers, pool.proxy = pool.proxy, Proxy(lambda: users)
        pool.join_client("desk1")
        ann = pool.begin("desk1", "ann")
        assert pool.run(ann, "run", "--", "/bin/echo", "by the users' door").stdout == "by the users' door\n"

        # A program and dcs_begin at the servers' door, a grain server at the users'.
        astray = Credentials(servers.address, ann.directory, ann.token, ann.authority).line(hello=False)
        reply = astray.hello(ann.token)
        assert reply[0] is None, reply
        pool.proxy, users_proxy = servers, pool.proxy
        key = pool.new_key()[1]
        reply = pool.ask_begin("desk1", "ann", "dcs", key)
        assert reply[0] is None, reply
        pool.proxy = users_proxy
        main_port, pool.port_number = pool.port_number, users
        heard = pool.call(os.path.join(pool.base, "h1", "pki"), "h1")
        assert "Configure" not in heard and "closed" in heard, heard
        pool.port_number = main_port
        assert ann.line(hello=False).hello(ann.token)[0] == WELCOME
        assert pool.host("h1")["connected"]
        several_codes_at_once(pool)
    print("two doors: each for its own")


if __name__ == "__main__":
    main()
