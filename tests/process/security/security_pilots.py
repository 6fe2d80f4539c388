#!/usr/bin/python3
"""Pilots of a pool with several users. What an ordinary login gains by a grain on a pilot: with root's, an account of its own
and nothing of root's; with those of a master, nothing before the host table says whose grains may run under that account."""
import json
import os
import pwd
import signal
import subprocess
import sys

from pool import about, program, wait_for
from users_host import GAMES, UsersHost, need_root

LAST_LOGIN = 65535


class PilotPool(UsersHost):
    of_scheduler = ("--tls", "127.0.0.1:0")

    def __init__(self):
        super().__init__(table="\npilot1 pilot=yes slots=2 class=0x2", top="/var/tmp")
        self.pilot = None

    def __exit__(self, kind, value, trace):
        if kind is not None:
            print("---- pilot.log", self.text("pilot.log")[-6000:], sep="\n", flush=True)
        self.end_pilot()
        super().__exit__(kind, value, trace)

    def join(self):
        code = json.loads(self.dcs("token", "create", "--host", "pilot1", "-o", "json").stdout)["token"]
        self.address = code["address"]
        self.dcs("host", "join", self.address, "--token", code["token"], "--ca-hash", code["ca_hash"], "--host", "pilot1", "--dir",
                 os.path.join(self.base, "joined"))

    def serve(self, *options):
        node = os.path.join(self.base, "node")
        os.makedirs(node, exist_ok=True)
        os.chmod(node, 0o711)
        log = open(os.path.join(self.base, "pilot.log"), "ab")
        self.pilot = subprocess.Popen([program("dcs"), "pilot", "serve", "pilot1", "--scheduler", self.address, "--pki",
                                       os.path.join(self.base, "joined/pki"), "--limit", "36000", "--base", node, *options], stderr=log)
        wait_for("the pilot", lambda: self.json("host", "show", "pilot1")["host"]["connected"])

    def end_pilot(self):
        if self.pilot and self.pilot.poll() is None:
            self.pilot.send_signal(signal.SIGTERM)
            self.pilot.wait(timeout=120)


def a_grain_on_a_pilot_of_root_is_nothing_of_roots(pool):
    pool.serve()
    key = os.path.join(pool.base, "joined/pki/key.pem")
    told = pool.run("/bin/sh", "-c", f"id -u; cat {key} /etc/shadow; grep CapEff /proc/self/status", uid=GAMES,
                    options=("--class", "0x2"), check=False)
    lines = told.stdout.decode().splitlines()
    assert len(lines) == 2 and int(lines[0]) > LAST_LOGIN and int(lines[1].split()[1], 16) == 0, told
    # And two users are two accounts.
    other = pool.run("id", "-u", uid=GAMES + 1, options=("--class", "0x2")).stdout
    assert int(other) not in (int(lines[0]), 0), (other, lines)
    pool.end_pilot()
    assert os.listdir(os.path.join(pool.base, "node")) == [], "the pilot removes what it made"


def a_pilot_takes_grains_of_its_users_only(pool):
    """The host table may change while its job runs, and names no users here."""
    login = pwd.getpwuid(GAMES).pw_name
    pool.serve("--users", login)
    assert pool.run("echo", "its", uid=GAMES, options=("--class", "0x2")).stdout == b"its\n"
    other = subprocess.Popen([program("dcs"), "run", "--class", "0x2", "--", "echo", "other"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env=pool.env, user=GAMES + 1, group=GAMES + 1, cwd="/")
    try:
        wait_for("the refusal", lambda: about(pool.text("pilot.log"), "no grains of --users login") or other.poll() is not None)
        assert other.poll() is None, other.stdout.read()
    finally:
        other.terminate()
        other.wait()
    pool.end_pilot()


def an_ordinary_account_is_not_for_all(pool):
    def said(uid):
        done = pool.dcs("pilot", "slurm", "--time", "1h", uid=uid, check=False, env={"HOME": "/nonexistent"})
        return done.returncode, done.stderr.decode()
    code, text = said(GAMES)
    assert code == 4 and about(text, "all users account pilot1") and "users=" in text, (code, text)
    pool.write_table("\npilot1 pilot=yes slots=2 class=0x2 users=games")
    wait_for("the host table", lambda: pool.json("host", "show", "pilot1")["host"].get("users"))
    code, text = said(GAMES)
    assert "all users" not in text, text


def main():
    need_root("a pool of several users")
    with PilotPool() as pool:
        pool.join()
        a_grain_on_a_pilot_of_root_is_nothing_of_roots(pool)
        a_pilot_takes_grains_of_its_users_only(pool)
        an_ordinary_account_is_not_for_all(pool)


if __name__ == "__main__":
    sys.exit(main())
