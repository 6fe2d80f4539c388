#!/usr/bin/python3
"""Mistakes in the host table and the policy that are no errors of form: a table that was emptied, a line that was away for a
while, logins that this host does not know."""
import json
import os
import shutil
import subprocess

from config import DAEMONS, World
from pool import Pool, about, program, tells, wait_for


def hosts_of(world):
    return [h["name"] for h in json.loads(world.dcs("host", "ls", "-o", "json").stdout)["hosts"]]


def an_empty_table_is_refused(world):
    world.hosts("h1 slots=2\nh2 slots=1\n")
    world.dcs("reload")
    world.hosts("")
    said = world.dcs("reload", code=1).stderr
    assert tells(said, "lists no host remove h1, h2 put lines back dcs host rm"), said
    world.hang_up("scheduler", "remain in effect lists no host remove h1, h2")
    assert tells(world.status("scheduler")["configuration_refused"], "lists no host remove h1, h2")
    problems = json.loads(world.dcs("doctor", "-o", "json", code=1).stdout)["problems"]
    assert [p for p in problems if p["entity"] == "settings of the scheduler" and "lists no host" in p["problem"]], problems
    assert hosts_of(world) == ["h1", "h2"]
    world.hosts("h1 slots=2\n")  # one that stays
    assert tells(world.dcs("reload").stderr, "warning: 1 of 2 hosts left the pool: h2")
    assert hosts_of(world) == ["h1"] and "configuration_refused" not in world.status("scheduler")


def all_are_removed_one_by_one(world):
    """On purpose, also where the table was emptied before."""
    world.hosts("h1 slots=2\nh2 slots=1\n")
    world.dcs("reload")
    world.hosts("")
    world.dcs("reload", code=1)
    world.dcs("host", "rm", "h1")
    assert hosts_of(world) == ["h2"]
    assert tells(world.status("scheduler")["configuration_refused"], "lists no host remove h2")
    world.dcs("host", "rm", "h2")
    assert hosts_of(world) == [] and "configuration_refused" not in world.status("scheduler")
    world.dcs("reload")
    world.hosts("h1 slots=2\n")
    world.dcs("reload")


def unknown_logins(world):
    problems = json.loads(world.dcs("doctor", "-o", "json", code=None).stdout)["problems"]
    return [(p["entity"], p["file"]) for p in problems if p["entity"].startswith("login ")]


def unknown_logins_are_named(world):
    """They count as they are written; the log, dcs reload, dcs doctor and dcs config check say where."""
    table, policy = (os.path.join(world.pool, "scheduler", name) for name in ("hosts", "policy"))
    world.hosts("h1 slots=2 users=root,no-such-user\n")
    with open(policy, "w") as file:
        file.write("fair_share on\ndeny no-such-login\ndeny nobody\n")
    said = world.dcs("reload").stderr
    assert said.count("\n") == 2 and about(said, f"{table}:1 users=no-such-user {policy}:2 deny no-such-login no effect"), said
    log = world.log("scheduler")
    assert about(log, f"{table}:1: users=no-such-user knows no login {policy}:2: deny no-such-login knows no login"), log
    known = [("login no-such-user", table + ":1"), ("login no-such-login", policy + ":2")]
    assert unknown_logins(world) == known
    done = world.dcs("config", "check", world.path("scheduler.toml"))
    assert done.stderr.count("warning: ") == 2 and tells(done.stderr, f"{policy}:2: deny no-such-login"), done
    world.hosts("h1 slots=2\n")
    with open(policy, "w") as file:
        file.write("user no-such-login\n")
    assert tells(world.dcs("reload").stderr, f"{policy}:1 user no-such-login no login of the list is known"), "it shuts all out"
    assert tells(world.dcs("config", "check", world.path("scheduler.toml")).stderr, "only root and masters")
    world.hosts("h1 slots=2 users=root,no-such-user\n")
    with open(policy, "w") as file:
        file.write("fair_share on\ndeny no-such-login\ndeny nobody\n")
    world.dcs("reload")
    world.stop("scheduler")
    before = len(world.log("scheduler"))
    world.start("scheduler", "--master", "daemon,no-such-master")
    known.append(("login no-such-master", "option --master"))
    assert unknown_logins(world) == known, "after a start, too"
    wait_for("the log to name them", lambda: tells(world.log("scheduler")[before:], "option --master: no-such-master knows no login"))
    world.stop("scheduler")
    world.start("scheduler")
    world.hosts("h1 slots=2\n")
    with open(policy, "w") as file:
        file.write("fair_share on\ndeny nobody\nsession_age 30m\n")
    check = world.dcs("config", "check", world.path("scheduler.toml"))
    assert tells(check.stderr, f"warning: {policy}: session_age removes sessions day closed m minutes d days"), check
    with open(policy, "w") as file:
        file.write("fair_share on\ndeny nobody\n")
    assert world.dcs("reload").stderr == "" and unknown_logins(world) == []
    os.unlink(policy)


def what_is_wrong_is_so_at_check_and_start(world):
    """The daemon says the same as the check, with the place, and ends with an exit code that a service does not repeat."""
    folder = os.path.join(world.base, "wrong")
    os.mkdir(folder)
    hosts, policy = os.path.join(folder, "hosts"), os.path.join(folder, "policy")
    with open(hosts, "w") as file:
        file.write("h1 slots=1\n")
    for name, lines, words in (
            ("scheduler", ['tls = "0.0.0.0"'], "{file}:2: --tls 0.0.0.0 is not an address"),
            ("scheduler", ['tls = "0.0.0.0:99999"'], "{file}:2: --tls 0.0.0.0:99999 is not an address"),
            ("scheduler", ['tls = "0.0.0.0:7001"', 'tls-users = "here"'], "{file}:3: --tls-users here is not an address"),
            ("scheduler", ['group = "no-such-group"'], "{file}:2: --group no group no-such-group"),
            ("grainserver", ['name = "h1"', 'scheduler = "sched.example"'], "{file}:3: --scheduler sched.example is not an address"),
            ("backupd", ['scheduler = "sched.example"', 'tls = "0.0.0.0:0"'], "{file}:2: --scheduler sched.example is not"),
            ("backupd", ['scheduler = "sched.example:7001"', 'tls = "0"'], "{file}:3: --tls 0 is not an address"),
            ("backupd", ['tls = "0.0.0.0:0"'], "{file}: --scheduler is missing")):
        file = os.path.join(folder, name + ".toml")
        with open(file, "w") as config:
            config.write("\n".join([f'dir = "{folder}"', *lines]) + "\n")
        started = subprocess.run([program(DAEMONS[name]), "--config", file], env=world.env, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        expected = words.format(file=file)
        assert tells(world.dcs("config", "check", file, code=1).stderr, expected), (lines, expected)
        at_start = expected.removeprefix(f"{file}: ")
        assert started.returncode == 2 and tells(started.stderr, at_start), (lines, started)
        os.unlink(file)
    # All errors of the files at once.
    with open(hosts, "w") as file:
        file.write("h1 slot=1\nh2 slots=x\n")
    with open(policy, "w") as file:
        file.write("fair_share maybe\n")
    started = subprocess.run([program("dcs_scheduler"), "--dir", folder], env=world.env, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    places = [f"{hosts}:1: ", f"{hosts}:2: ", f"{policy}:1: "]
    assert started.returncode == 2 and all(place in started.stderr for place in places), started
    checked = world.dcs("config", "check", "--from", folder, code=1).stderr
    assert all(place in checked for place in places), checked
    shutil.rmtree(folder)
    # The short form of a reload names the check that works for this pool.
    table = os.path.join(world.pool, "scheduler", "hosts")
    before = open(table).read()
    world.hosts("h1 slot=1\nh2 slots=x\n")
    refused = world.dcs("reload", code=None).stderr
    place = os.path.dirname(table)
    assert tells(refused, f"dcs config check --from {place} shows 1 more error"), refused
    assert f"{table}:2: " in world.dcs("config", "check", "--from", place, code=1).stderr
    world.hosts(before)
    world.dcs("reload")


def a_check_warns(world):
    folder = os.path.join(world.base, "checked")
    os.mkdir(folder)
    table = os.path.join(folder, "hosts")
    for text, words in (("h1 slots=1\n", None), ("# none yet\n", f"warning {table} lists no host refuses")):
        with open(table, "w") as file:
            file.write(text)
        done = world.dcs("config", "check", "--from", folder)
        assert done.stdout == f"{table}: good\n" and (tells(done.stderr, words) if words else done.stderr == ""), done
        row = json.loads(world.dcs("config", "check", "--from", folder, "-o", "json").stdout)["files"][0]
        assert row["good"] and len(row["warnings"]) == bool(words) and row["errors"] == [], row


def unknown_accounts_are_named(world):
    """Of the daemons' own files, where the units give the rest."""
    folder = os.path.join(world.base, "accounts")
    os.mkdir(folder)
    for name, text in (("hosts", "h1 slots=1\n"), ("scheduler.toml", 'master = "no-such-master"\n'),
                       ("grainserver.toml", 'confine = "filter"\naccounts = ["daemon", "no-such-user"]\n')):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    said = world.dcs("config", "check", "--from", folder).stderr
    assert said.count("warning: ") == 3 and all(tells(said, f"warning: {folder}/{words}") for words in (
        "grainserver.toml:2: --accounts: no-such-user no such login", "grainserver.toml:2: --accounts: daemon system account",
        "scheduler.toml:1: option --master no login no-such-master")), said


def names_in_other_case(world):
    """Host names of the network have none: it is named at the reload, by the doctor and at the check."""
    world.hosts("N1 slots=2\nh1 slots=1\nn1 slots=1\n")
    alike = "lists N1 and n1 differ in upper and lower case"
    assert tells(world.dcs("reload").stderr, f"warning: host table: it {alike} take one of the lines"), "at the reload"
    assert tells(world.dcs("doctor", code=None).stdout, f"host table: it {alike}"), "by the doctor"
    assert tells(world.dcs("config", "check", world.path("scheduler.toml")).stderr, f"warning: scheduler/hosts: it {alike}")
    world.hosts("N1 slots=2\nh1 slots=1\n")
    assert "case" not in world.dcs("reload").stderr + world.dcs("doctor", code=None).stdout


def a_line_that_comes_back_brings_its_host_back(pool):
    """Within seconds, and not after an interval of the host."""
    path = os.path.join(pool.dir, "scheduler", "hosts")

    def table(*lines):
        with open(path, "w") as file:
            file.write("".join(line + "\n" for line in lines))
        pool.dcs("reload")

    def connected():
        return {h["name"]: h["connected"] for h in pool.json("host", "ls")["hosts"]}

    table("local1", "local2 interval=300")
    table("local1")
    assert connected() == {"local1": True}
    log = os.path.join(pool.dir, "servers", "local2", "log")
    wait_for("local2 to be refused", lambda: tells(open(log, errors="replace").read(), "removed table asking again"))
    table("local1", "local2 interval=300")
    wait_for("local2 to be back", lambda: connected()["local2"])
    assert pool.dcs("reload", check=False).returncode == 0
    table("local2", "local3")
    assert connected() == {"local2": True, "local3": False}
    with open(path, "w") as file:
        file.write("local1\nlocal3\n")
    refused = pool.dcs("reload", check=False)
    assert refused.returncode == 1 and tells(refused.stderr, "none of the connected hosts, remove local2"), refused
    assert connected()["local2"]


def a_start_refuses_an_empty_table(pool):
    """While grains are on hosts; with the table as it was, they continue there."""
    go = os.path.join(pool.dir, "go")
    session = pool.dcs("run", "--detach", "--", "sh", "-c", f"echo begun; until test -e {go}; do sleep 0.1; done").stdout.decode().strip()
    wait_for("the grain to run", lambda: pool.json("grain", "show", session + ":1")["grain"]["state"] == "running")
    path = os.path.join(pool.dir, "scheduler", "hosts")
    with open(path) as file:
        table = file.read()
    with open(path, "w") as file:
        file.write("# none\n")
    pool.kill("scheduler", "scheduler")
    socket = os.path.join(pool.dir, "scheduler")
    done = subprocess.run([program("dcs_scheduler"), "--dir", socket], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    said = done.stdout.decode()
    assert done.returncode == 4 and tells(said, "lists no host 1 grain started on local1 put lines back dcs host rm"), said
    with open(path, "w") as file:
        file.write(table)
    pool.dcs("up")
    with open(go, "w"):
        pass
    pool.dcs("session", "wait", session)
    assert pool.json("grain", "show", session + ":1")["grain"]["incarnation"] == 1, "it was not started a second time"


def main():
    world = World()
    try:
        world.hosts("h1 slots=2\n")
        world.start("scheduler")
        for part in (an_empty_table_is_refused, all_are_removed_one_by_one, unknown_logins_are_named, a_check_warns,
                     names_in_other_case, unknown_accounts_are_named,
                     what_is_wrong_is_so_at_check_and_start):
            part(world)
            print(part.__name__.replace("_", " "), flush=True)
    finally:
        world.close()
    with Pool(servers=1) as pool:
        a_start_refuses_an_empty_table(pool)
    with Pool(servers=2) as pool:
        a_line_that_comes_back_brings_its_host_back(pool)


if __name__ == "__main__":
    main()
