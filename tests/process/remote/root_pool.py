#!/usr/bin/python3
"""An administrator's first hour with a pool of root's, typed as the pages and the commands print it: a scheduler with a group,
a grain host that joins, a member of the group, an outsider. Programs that are brought run under made-up accounts and logins, and
no other local user can read them; each peer finds the pool by /etc/dcs/pool.conf; and what is not known is not shown as a
number. In mount and network namespaces of its own: the scheduler's host and the grain host have each their /var/lib."""
import hashlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from pool import BIN, ROOT, bin_directory, lock_holder, tells, wait_for
from remote_world import enter

GROUP = 64331
USERS = {"ann": 61101, "ben": 61102, "eve": 61103}  # eve is not of the group
ROOM = "/room/program/"


class Hour:
    def __init__(self):
        self.base = tempfile.mkdtemp(prefix="dcs-root-")
        os.chmod(self.base, 0o755)
        self.bin = bin_directory(os.path.join(self.base, "bin"), ())
        self.daemons, self.holders = [], {}
        overlay = os.path.join(self.base, "overlay")
        os.mkdir(overlay)
        self.root("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", overlay)
        for name in ("up", "work"):
            os.mkdir(os.path.join(overlay, name))
        self.root("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/etc,upperdir={overlay}/up,workdir={overlay}/work", "/etc")
        self.root("ip", "link", "set", "lo", "up")
        self.users()
        for name in ("sched", "h1"):
            self.host(name)

    @staticmethod
    def root(*words):
        subprocess.run(words, check=True)

    def users(self):
        lines = open("/etc/passwd").read() + "".join(
            f"{name}:x:{uid}:{uid}::{self.base}/home-{name}:/bin/sh\n" for name, uid in USERS.items())
        groups = open("/etc/group").read() + f"dcs:x:{GROUP}:ann,ben\n" + "".join(f"{n}:x:{u}:\n" for n, u in USERS.items())
        for path, text in (("/etc/passwd", lines), ("/etc/group", groups)):
            with open(path + ".new", "w") as file:
                file.write(text)
            os.rename(path + ".new", path)
        for name, uid in USERS.items():
            os.mkdir(f"{self.base}/home-{name}", 0o700)
            os.chown(f"{self.base}/home-{name}", uid, uid)

    def host(self, name):
        """A mount namespace with directories of its own, kept by a process that waits."""
        line = "mount -t tmpfs tmpfs /var/lib && mount -t tmpfs -o mode=755 tmpfs /run && mkdir -p /etc/dcs && mount -t tmpfs -o mode=755 tmpfs /etc/dcs"
        if name == "h1":  # homes are not shared between hosts
            line += "".join(f" && mount -t tmpfs -o mode=755 tmpfs {self.base}/home-{user}" for user in USERS)
        holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", line + " && echo made && cat"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        assert holder.stdout.readline() == "made\n"
        self.holders[name] = holder

    def words(self, host, user, line):
        uid = USERS.get(user, 0)
        groups = f"--groups={GROUP}" if user in ("ann", "ben") else "--clear-groups"
        home = "/root" if user == "root" else f"{self.base}/home-{user}"
        return ["nsenter", "-t", str(self.holders[host].pid), "--mount", "setpriv", f"--reuid={uid}", f"--regid={uid}", groups,
                "env", "-i", f"PATH={self.bin}:/usr/sbin:/usr/bin:/sbin:/bin", f"HOME={home}", "LANG=C.UTF-8", "sh", "-c",
                f"cd / && {line}"]

    def type(self, host, user, line, code=0, data=""):
        """What was typed, and has to end with that code; None: any."""
        ran = subprocess.run(self.words(host, user, line), input=data, text=True, capture_output=True, timeout=300)
        assert code is None or ran.returncode == code, f"{user}@{host}: {line}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran

    def serve(self, host, line):
        log = open(os.path.join(self.base, f"log-{len(self.daemons)}"), "w+")
        daemon = subprocess.Popen(self.words(host, "root", f"exec {line}"), stderr=log, stdin=subprocess.DEVNULL)
        self.daemons.append((daemon, log))
        return daemon

    def inside(self, host, path):
        return f"/proc/{self.holders[host].pid}/root{path}"

    def hosts(self, *words):
        return json.loads(self.type("sched", "root", "dcs host ls -o json").stdout)["hosts"]

    def active(self):
        wait_for("h1 to call", lambda: any(h["name"] == "h1" and h["state"] == "active" and h["connected"] for h in self.hosts()))

    def close(self, failed):
        for daemon, log in self.daemons:
            if failed:
                log.seek(0)
                print(f"---- {daemon.args[-1]}", log.read()[-4000:], sep="\n", flush=True)
        for daemon, _ in reversed(self.daemons):
            if daemon.poll() is None:
                daemon.terminate()
                daemon.wait(timeout=300)
        lock = self.inside("h1", "/var/lib/dcs/server/launcher.lock")
        if os.path.exists(lock) and lock_holder(lock):
            os.kill(lock_holder(lock), signal.SIGTERM)
            wait_for("the end of the launcher", lambda: not lock_holder(lock))
        for holder in self.holders.values():
            holder.stdin.close()
            holder.wait(timeout=300)
        subprocess.run(["umount", "-l", "/etc", os.path.join(self.base, "overlay")], check=False)
        shutil.rmtree(self.base, ignore_errors=True)


def scheduler_starts(hour):
    hour.type("sched", "root", "mkdir -p /var/lib/dcs/scheduler")
    hour.type("sched", "root", "cat >/var/lib/dcs/scheduler/hosts",
              data="h1 class=0x1 slots=4 interval=1 alert=60 limit=120 extended=120 accounts=ann\n"
                   "h9 class=0x1 slots=4 interval=0.1 alert=0.1 limit=0.2 extended=0.2\n")
    hour.type("sched", "root", "echo dir /var/lib/dcs >/etc/dcs/pool.conf")
    hour.serve("sched", "dcs_scheduler --dir /var/lib/dcs/scheduler --tls 127.0.0.1:7001 --group dcs")
    wait_for("the scheduler", lambda: os.path.exists(hour.inside("sched", "/var/lib/dcs/scheduler/server.sock")))


def host_has_not_joined(hour):
    """Where the packages are, and nothing else."""
    hour.type("h1", "root", "mkdir -p /run/systemd/system /etc/systemd/system && touch /etc/systemd/system/dcs-grainserver.service")
    said = hour.type("h1", "root", "dcs doctor", code=5).stderr
    assert tells(said, "hint this host has not joined a pool dcs token create"), said
    hour.type("h1", "root", "rmdir /run/systemd/system && rm /etc/systemd/system/dcs-grainserver.service")
    assert "joined" not in hour.type("h1", "root", "dcs doctor", code=5).stderr


def host_joins(hour):
    """Both lines are typed as they are printed. Join makes /var/lib/dcs, closed to others as an earlier release left it."""
    line = hour.type("sched", "root", "dcs token create --host h1").stdout.strip()
    assert line.startswith("dcs host join 127.0.0.1:7001 "), line
    os.makedirs(hour.inside("h1", "/var/lib/dcs"), 0o700)
    told = hour.type("h1", "root", line).stdout
    start = re.search(r"^start its server: (.*)$", told, re.M)[1]
    first = hour.serve("h1", start)
    hour.active()
    first.terminate()
    first.wait(timeout=300)
    # A library that an earlier release left open; and what the machine does besides is not this test's matter.
    library = hour.inside("h1", "/var/lib/dcs/server/library")
    os.chmod(library, 0o711)
    hour.start = start + " --accounts ann --courtesy priority"
    hour.server = hour.serve("h1", hour.start)
    wait_for("the server", lambda: os.stat(library).st_mode & 0o777 == 0o700)
    hour.active()


def unknown_is_no_number(hour):
    wait_for("h9 to be given up", lambda: any(h["name"] == "h9" and h["state"] == "dead" for h in hour.hosts()))
    h9 = next(h for h in hour.hosts() if h["name"] == "h9")
    assert [h9[k] for k in ("free_memory_kb", "load", "last_call_in_s")] == [None] * 3, h9
    row = next(line for line in hour.type("sched", "root", "dcs host ls").stdout.splitlines() if line.startswith("h9 "))
    assert re.search(r"dead +4 +0 +- +- +- ", row), row
    facts = hour.type("sched", "root", "dcs host show h9").stdout
    assert re.search(r"^memory +- free", facts, re.M) and re.search(r"^last call-in +never$", facts, re.M), facts


def member_calls(hour):
    status = hour.type("sched", "ann", "dcs status").stdout
    assert status.startswith("pool /var/lib/dcs\n") and re.search(r"scheduler +scheduler +- +up\n", status), status
    assert json.loads(hour.type("sched", "ann", "dcs status -o json").stdout)["daemons"][0]["state"] == "up"
    assert hour.type("sched", "ben", "dcs run -- id -u").stdout.strip() >= "2000000000"
    python = (f"PYTHONPATH={ROOT}/libdcs/python DCS_LIBRARY={os.path.dirname(BIN)}/lib/libdcs.so PYTHONDONTWRITEBYTECODE=1 "
              "dcs_begin /usr/bin/python3 -c 'import dcs\nwith dcs.Session(\"first\") as s:\n"
              " s.submit(1, [\"/bin/echo\", \"from\", \"python\"])\n print(s.wait().check().output.decode())'")
    for line in (python, python.replace("dcs_begin ", "")):
        number = "3" if line == python else "4"
        assert hour.type("sched", "ben", line.replace('"first"', f'"first", {number}')).stdout.strip() == "from python"
    hint = hour.type("sched", "root", "dcs backup status", code=5).stderr
    assert "this host has none" in hint and "dcs up" not in hint, hint


def all_means_own(hour):
    """Of whatever a user, or root, orders for all sessions."""
    theirs = hour.type("sched", "ann", "dcs map --detach -- true ::: 1").stdout.strip()
    hour.type("sched", "ann", f"dcs session wait {theirs}")
    for user in ("ben", "root"):
        for verb in ("close", "clean"):
            said = hour.type("sched", user, f"dcs session {verb} all")
            assert "ann" not in said.stdout + said.stderr, (user, verb, said)
    rows = json.loads(hour.type("sched", "ann", "dcs session ls -o json").stdout)["sessions"]
    assert [row["state"] for row in rows if str(row["session"]) == theirs] == ["active"], rows


def all_users_means_everybody(hour):
    """For operators only. Closed sessions go; active ones stay, but with --older those that their command left without work."""
    gate, items = os.path.join(hour.base, "gate-clean"), itertools.count(2)  # the same map once more is the same session

    def begun(user, line="true"):
        return hour.type("sched", user, f"dcs map --detach -- {line} ::: {next(items)}").stdout.strip()

    def over(user, closed=True):
        number = begun(user)
        hour.type("sched", user, f"dcs session wait {number}" + (f" && dcs session close {number}" if closed else ""))
        return f"{user}/{number}"

    def left():
        rows = json.loads(hour.type("sched", "root", "dcs session ls all -o json").stdout)["sessions"]
        return {f"{row['user']}/{row['session']}" for row in rows}

    def clean(words, user="root", code=0):
        return hour.type("sched", user, f"dcs session clean --all-users {words}", code)
    users = ("ann", "ben")
    waiting = f"sh -c 'until test -e {gate}; do sleep 0.1; done'"
    busy = {f"{user}/{begun(user, waiting)}" for user in users}
    try:
        closed, idle = {over(user) for user in users}, {over(user, closed=False) for user in users}
        before = left()
        assert busy | closed | idle <= before, before
        time.sleep(2.1)
        for words in ("", "--older 1s"):
            for user in users:  # whose own are not removed, either
                said = clean(words, user, code=4).stderr
                assert "was not removed" in said and f"{user} may not do this with a session of" in said, said
        assert tells(clean("ann/all", code=2).stderr, "--all-users takes no SEL")
        assert clean("--older 1h").stdout == "" and left() == before, left() ^ before
        told = clean("").stdout
        assert all(f"session {name} removed\n" in told for name in closed), told
        assert busy | idle <= left() <= before - closed, left()
        closed = {over(user) for user in users}
        time.sleep(2.1)
        young = {over(user) for user in users}
        assert clean("--older 1h").stdout == ""
        told = []  # they did not end at the same time

        def removed():
            told.append(clean("--older 2s").stdout)
            return all(f"session {name} removed" in "".join(told) for name in closed | idle)
        wait_for("the older ones", removed)
        assert left() - young == busy, left()
    finally:
        open(gate, "w").close()
    hour.type("sched", "root", "dcs session wait " + " ".join(sorted(busy)))
    hour.type("sched", "root", "dcs session close " + " ".join(sorted(busy)))


def outsider_is_told(hour):
    for line in ("dcs status", "dcs session ls"):
        said = hour.type("sched", "eve", line, code=5).stderr
        assert tells(said, "not member group dcs") and "administrator" in said and "dcs up" not in said, said
    said = hour.type("sched", "eve", "dcs_begin true", code=125).stderr
    assert tells(said, "Permission denied only members group dcs may use"), said


def brought(hour, user, name, data, wish=""):
    """A program of the user's, mode 0700, and the words that run it."""
    path = os.path.join(hour.base, f"home-{user}", name)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, 0o700)
    os.chown(path, USERS[user], USERS[user])
    return f"dcs run {wish} --bring -- {path}"


def running(name):
    """The path and the uid of the grain that runs a brought program of that name."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/cmdline").read().split("\0")
            uid = os.stat(f"/proc/{pid}").st_uid
        except OSError:
            continue
        paths = [w for w in words if w.endswith(ROOM + name)]
        if paths and words[0] != "nsenter":
            return paths[0], uid
    return None


def brought_programs_run(hour):
    binary = open("/usr/bin/id", "rb").read()
    assert int(hour.type("sched", "ben", brought(hour, "ben", "ident", binary) + " -u").stdout) >= 2_000_000_000
    assert int(hour.type("sched", "ann", brought(hour, "ann", "ident", binary) + " -u").stdout) == USERS["ann"]


def closed_homes_are_told(hour):
    """Grains of ben run under an account that may not enter his home."""
    said = hour.type("sched", "ben", "touch ~/a ~/b; dcs map -- cat ::: ~/a ~/b", code=2).stderr
    assert tells(said, f"grains run under uid may not enter {hour.base}/home-ben: --file in={{}}"), said
    assert hour.type("sched", "ben", "dcs map --file in={} -- cat in ::: ~/a ~/b").stderr.count("uid") == 0


def nobody_else_reads_them(hour):
    for user, least in (("ben", 2_000_000_000), ("ann", USERS["ann"])):
        gate, name = os.path.join(hour.base, f"gate-{user}"), f"secret-{user}.sh"
        script = f"#!/bin/sh\nSECRET=of-{user}\nwhile ! test -e {gate}; do sleep 0.1; done\ncat \"$0\"\n".encode()
        line = brought(hour, user, name, script)
        process = subprocess.Popen(hour.words("sched", user, line), stdout=subprocess.PIPE, text=True)
        try:
            path, uid = wait_for("the script to run", lambda: running(name), 120)
            assert uid >= least, uid
            digest = hashlib.sha256(script).hexdigest()
            content = f"/var/lib/dcs/server/library/{digest[:2]}/{digest}/content"
            assert os.path.exists(hour.inside("h1", path)) and os.path.exists(hour.inside("h1", content))
            for where in (path, content):
                for act in (f"cat {where}", where, f"ln {where} /tmp/mine", f"ls {os.path.dirname(where)}"):
                    said = hour.type("h1", "eve", act, code=None)
                    assert said.returncode != 0 and "denied" in said.stderr and "SECRET" not in said.stdout, (act, said)
                other = "ann" if user == "ben" else "ben"  # a grain of another user, on the same host
                said = hour.type("sched", other, f"dcs run -- cat {where}", code=None)
                assert said.returncode == 1 and "Permission denied" in said.stderr, said
            if user == "ben":  # the next server continues with it, whatever became of the library
                hour.server.kill()
                hour.server.wait()
                shutil.rmtree(hour.inside("h1", "/var/lib/dcs/server/library"))
                hour.server = hour.serve("h1", hour.start)
                hour.active()
        finally:
            open(gate, "w").close()
            out = process.communicate(timeout=240)[0]
        assert process.returncode == 0 and out == script.decode(), (process.returncode, out)


def full_disk_is_told(hour):
    """Results that the scheduler's disk has no room for: waiting programs say so, and get them when there is room."""
    gate, size = os.path.join(hour.base, "gate-disk"), 20_000_000
    script = f"while ! test -e {gate}; do sleep 0.1; done; head -c {size} /dev/zero"
    left = hour.type("sched", "ann", f"dcs map --detach -- sh -c '{script}' ::: 1").stdout.strip()
    lines = (f"dcs run -- sh -c '{script}'", f"dcs map --new -- sh -c '{script}' ::: 1 2", f"dcs session wait {left}")
    waiting = [subprocess.Popen(hour.words("sched", "ann", line), stdout=subprocess.PIPE, stderr=subprocess.PIPE) for line in lines]
    try:
        wait_for("their grains", lambda: next(h for h in hour.hosts() if h["name"] == "h1")["running"] == 4)
        used = int(hour.type("sched", "root", "df --output=used -B1 /var/lib | tail -n 1").stdout)
        hour.type("sched", "root", f"mount -o remount,size={used + (2 << 20)} /var/lib")
        open(gate, "w").close()
        for process in waiting:
            assert any(tells(line, "scheduler no room results disk") for line in process.stderr), process.args[-1]
    finally:
        hour.type("sched", "root", "mount -o remount,size=1G /var/lib")
    outs = [process.communicate(timeout=300)[0] for process in waiting]
    assert [process.returncode for process in waiting] == [0, 0, 0]
    assert (len(outs[0]), len(outs[1])) == (size, 2 * size) and outs[2] == b"1 grain finished, 0 failed\n", outs[2]
    hour.type("sched", "ann", f"dcs session close {left}")


def own_pool_goes_first(hour):
    """Who made a pool of their own means that; a word says where the host's is."""
    hour.type("sched", "ann", "dcs up --local 1")
    try:
        assert hour.type("sched", "ann", "dcs status").stdout.startswith(f"pool {hour.base}/home-ann/.local/state/dcs\n")
        assert hour.type("sched", "ann", "dcs run -- id -u").stdout.strip() == str(USERS["ann"])
        assert hour.type("sched", "ann", "DCS_DIR=/var/lib/dcs dcs status").stdout.startswith("pool /var/lib/dcs\n")
    finally:
        hour.type("sched", "ann", "dcs down")
    said = hour.type("sched", "ann", "dcs status", code=5).stderr
    assert tells(said, "hint dcs up starts again DCS_DIR=/var/lib/dcs means pool host"), said
    hour.type("sched", "ann", "rm -r ~/.local/state/dcs")
    assert hour.type("sched", "ann", "dcs status").stdout.startswith("pool /var/lib/dcs\n")


def conf_of_others(hour):
    """A pool.conf that another peer could have written leads no peer anywhere."""
    hour.type("sched", "root", "chmod 666 /etc/dcs/pool.conf")
    for line in ("dcs status", "dcs_begin true"):
        assert "/etc/dcs/pool.conf: users other than root can write it" in hour.type("sched", "ann", line, code=None).stderr
    hour.type("sched", "root", "chmod 644 /etc/dcs/pool.conf; echo nonsense >>/etc/dcs/pool.conf")
    for line in ("dcs status", "dcs_begin true"):
        assert "/etc/dcs/pool.conf, line 2: " in hour.type("sched", "ann", line, code=None).stderr


def main():
    if enter(__file__) is None:
        return 77
    hour, failed = Hour(), True
    try:
        for part in (scheduler_starts, host_has_not_joined, host_joins, unknown_is_no_number, member_calls, all_means_own,
                     all_users_means_everybody, outsider_is_told, brought_programs_run, closed_homes_are_told, nobody_else_reads_them,
                     full_disk_is_told, own_pool_goes_first, conf_of_others):
            part(hour)
        failed = False
    finally:
        hour.close(failed)
    print("an administrator's first hour")
    return 0


if __name__ == "__main__":
    sys.exit(main())
