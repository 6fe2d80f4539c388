#!/usr/bin/python3
"""Daemons that are configured by files: started from them with drop-ins and flags, read again with good and bad files while a
grain runs, refused what is no file of theirs; what `dcs config check`, `dcs config show` and `dcs status` say of it."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from pool import ROOT, program, tells, wait_for

DAEMONS = {"scheduler": "dcs_scheduler", "backupd": "dcs_backupd", "grainserver": "dcs_grainserver"}


class World:
    def __init__(self):
        self.base = tempfile.mkdtemp(prefix="dcs-test-")
        self.etc, self.pool = os.path.join(self.base, "etc"), os.path.join(self.base, "pool")
        self.env = dict(os.environ, DCS_DIR=self.pool)
        self.env.pop("DCS_AUTH_FD", None)
        self.running = {}
        for folder in ("etc/scheduler.toml.d", "pool/servers", "pool/scheduler"):
            os.makedirs(os.path.join(self.base, folder))
        self.hosts("h1 class=0x1 slots=2 interval=1 alert=10 limit=20 extended=40\n")
        sock = f"{self.pool}/scheduler/server.sock"
        self.write("scheduler.toml", f'dir = "{self.pool}/scheduler"\nlog-level = "warn"\nmaster = ["daemon", "bin"]\n')
        self.write("scheduler.toml.d/10-site.toml", 'log-level = "info"\n')
        self.write("grainserver.toml", f'name = "h1"\ndir = "{self.pool}/servers/h1"\nscheduler = "{sock}"\nlog-level = "info"\n'
                   'library-mb = "1 GiB"\nconfine = "limits"\ncourtesy = "priority"\nrun-as = "self"\n')
        self.write("backupd.toml", f'dir = "{self.pool}/backup"\nscheduler = "{sock}"\nhold-mb = 100\n')

    def path(self, name):
        return os.path.join(self.etc, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def text(self, name):
        return open(self.path(name)).read()

    def hosts(self, text):
        with open(os.path.join(self.pool, "scheduler", "hosts"), "w") as file:
            file.write(text)

    def log(self, daemon):
        return open(os.path.join(self.base, daemon + ".log"), errors="replace").read()

    def start(self, daemon, *flags):
        read_end, write_end = os.pipe()
        with open(os.path.join(self.base, daemon + ".log"), "ab") as log:
            process = subprocess.Popen([program(DAEMONS[daemon]), "--config", self.path(daemon + ".toml"), "--ready-fd",
                                        str(write_end), *flags], stderr=log, pass_fds=[write_end], env=self.env)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as ready:
            assert ready.read() == b"ready\n", f"{daemon} is not ready:\n{self.log(daemon)}"
        self.running[daemon] = process

    def stop(self, daemon):
        process = self.running.pop(daemon)
        process.terminate()
        assert process.wait(60) == 0, self.log(daemon)

    def hang_up(self, daemon, words):
        """SIGHUP, until the log says so."""
        known = len(self.log(daemon))
        self.running[daemon].send_signal(signal.SIGHUP)
        wait_for(f"{daemon} to say {words}", lambda: tells(self.log(daemon)[known:], words))
        return self.log(daemon)[known:]

    def dcs(self, *arguments, code=0):
        done = subprocess.run([program("dcs"), *arguments], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=120)
        assert code is None or done.returncode == code, f"dcs {arguments}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def shown(self, daemon):
        """name -> (value, origin) of a daemon, and its whole row."""
        rows = json.loads(self.dcs("config", "show", daemon, "--from", self.etc, "--origin", "-o", "json").stdout)["daemons"]
        assert len(rows) == 1, rows
        return {o["name"]: (o["value"], o["origin"]) for o in rows[0]["options"]}, rows[0]

    def status(self, role):
        return [d for d in json.loads(self.dcs("status", "-o", "json").stdout)["daemons"] if d["role"] == role][0]

    def close(self):
        for process in self.running.values():
            process.kill()
            process.wait()
        pid = launcher_of(os.path.join(self.pool, "servers", "h1"))
        if pid:
            os.kill(pid, signal.SIGTERM)
            wait_for("the launcher to end", lambda: not launcher_of(os.path.join(self.pool, "servers", "h1")))
        shutil.rmtree(self.base)


def launcher_of(directory):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"dcs_launcher") and os.fsencode(directory) in words:
            return int(pid)
    return None


def child_called(pid, name):
    for child in open(f"/proc/{pid}/task/{pid}/children").read().split():
        if open(f"/proc/{child}/comm").read().strip() == name:
            return int(child)
    return None


def starts_from_files(world):
    world.start("scheduler", "--mirror", "off")
    world.start("backupd")
    world.start("grainserver", "--library-mb", "512")
    options, row = world.shown("scheduler")
    assert row["running"] and row["pid"] == world.running["scheduler"].pid, row
    assert options["log-level"] == ("info", world.path("scheduler.toml.d/10-site.toml") + ":1"), options
    assert options["master"] == ("daemon,bin", world.path("scheduler.toml") + ":3"), options
    assert options["mirror"] == ("off", "command line") and options["tls"] == ("", "default"), options
    options, _ = world.shown("grainserver")
    assert options["library-mb"] == ("512", "command line"), options
    options, _ = world.shown("backupd")
    assert options["hold-mb"] == ("100", world.path("backupd.toml") + ":3"), options
    table = world.dcs("config", "show", "scheduler", "--from", world.etc, "--origin").stdout
    assert "runs, pid" in table and "FROM" in table and world.path("scheduler.toml") + ":1" in table, table
    assert "FROM" not in world.dcs("config", "show", "scheduler", "--from", world.etc).stdout
    wait_for("h1", lambda: json.loads(world.dcs("host", "show", "h1", "-o", "json").stdout)["host"]["state"] == "active")
    assert world.dcs("run", "--", "/bin/echo", "configured").stdout == "configured\n"


def reads_again(world):
    """A grain runs on through good and bad files; a bad one changes nothing, also not the host table."""
    go_on = os.path.join(world.base, "go-on")
    grain = subprocess.Popen([program("dcs"), "run", "--", "/bin/sh", "-c",
                              f"while [ ! -e {go_on} ]; do sleep 0.1; done; echo over"], env=world.env, stdout=subprocess.PIPE)
    wait_for("the grain to run", lambda: json.loads(world.dcs("host", "show", "h1", "-o", "json").stdout)["host"]["running"] == 1)
    pids = {daemon: process.pid for daemon, process in world.running.items()}

    good = world.text("scheduler.toml")
    world.write("scheduler.toml", good.replace('"bin"', '"sys"') + 'tls = "127.0.0.1:0"\n')
    world.hosts("h1 class=0x1 slots=3 interval=1 alert=10 limit=20 extended=40\n")
    world.dcs("reload")
    options, row = world.shown("scheduler")
    assert options["master"][0] == "daemon,sys" and options["tls"] == ("", "default"), options
    assert [o["name"] for o in row["after_restart"]] == ["tls"] and row["refused"] is None, row
    assert world.status("scheduler")["needs_restart_for"] == ["tls"]
    assert tells(world.dcs("status").stdout, "applies change tls after restart")
    assert tells(world.log("scheduler"), "these changes take effect only after restart tls")
    assert "changed: master" in world.log("scheduler")
    assert json.loads(world.dcs("host", "show", "h1", "-o", "json").stdout)["host"]["slots"] == 3

    # Everything is wrong but the host table, which is not taken either.
    world.write("scheduler.toml", good + 'logg-level = "debug"\nmirror = 3\n')
    world.write("scheduler.toml.d/20.toml", 'log-level = "loud"\n')
    world.hosts("h1 class=0x1 slots=4 interval=1 alert=10 limit=20 extended=40\n")
    said = world.dcs("reload", code=1).stderr
    wrong = [world.path("scheduler.toml") + ":4: unknown option `logg-level`; did you mean `log-level`?",
             world.path("scheduler.toml") + ":5: mirror: it must be a string, in quotes, but this is a whole number",
             world.path("scheduler.toml.d/20.toml") + ":1: log-level: \"loud\" is not off, error, warn, info or debug"]
    for text in wrong:
        assert text in said and text in world.log("scheduler"), said
        assert text in world.status("scheduler")["configuration_refused"]
        assert text in world.dcs("status").stdout and text in world.dcs("config", "show", "--from", world.etc).stdout
    assert tells(world.log("scheduler"), "old configuration host table policy limits remain effect")
    assert world.shown("scheduler")[0]["master"][0] == "daemon,sys"
    assert json.loads(world.dcs("host", "show", "h1", "-o", "json").stdout)["host"]["slots"] == 3

    # A good one again, by signal.
    os.unlink(world.path("scheduler.toml.d/20.toml"))
    world.write("scheduler.toml", good)
    world.write("scheduler.toml.d/10-site.toml", 'log-level = "debug"\n')
    world.hang_up("scheduler", "changed: master, log-level")
    wait_for("debug lines", lambda: "debug: " in world.log("scheduler") or not world.dcs("status"))
    assert "configuration_refused" not in world.status("scheduler")
    assert json.loads(world.dcs("host", "show", "h1", "-o", "json").stdout)["host"]["slots"] == 4

    # A bad table is reported likewise.
    world.hosts("h1 slots=many\n")
    assert tells(world.dcs("reload", code=1).stderr, ":1 slots must number")
    assert tells(world.status("scheduler")["configuration_refused"], ":1 slots must number")
    problems = json.loads(world.dcs("doctor", "-o", "json", code=1).stdout)["problems"]
    assert [p for p in problems if p["entity"] == "settings of the scheduler" and ":1: slots must be" in p["problem"]], problems
    line = next(line for line in reversed(world.log("scheduler").splitlines()) if tells(line, "settings read again"))
    assert "read again: INVALID, " in line and tells(line, "1 slots must number"), line
    world.hosts("h1 class=0x1 slots=4 interval=1 alert=10 limit=20 extended=40\n")
    world.dcs("reload")

    servers_read_again(world)
    assert pids == {daemon: process.pid for daemon, process in world.running.items() if process.poll() is None}
    open(go_on, "w").close()
    assert grain.communicate(timeout=120)[0] == b"over\n" and grain.returncode == 0


def servers_read_again(world):
    good = world.text("grainserver.toml")
    world.write("grainserver.toml", good.replace('"info"', '"debug"') + "max-processes = 100\n")
    said = world.hang_up("grainserver", "these changes take effect only after restart max-processes")
    assert "changed: log-level" in said, said  # library-mb is the command line's
    assert world.shown("grainserver")[0]["max-processes"] == ("512", "default")
    assert world.status("grainserver")["needs_restart_for"] == ["max-processes"]
    world.write("grainserver.toml", good + 'run-as = "users"\n')
    world.hang_up("grainserver", "old configuration remains effect")
    refused = world.status("grainserver")["configuration_refused"]
    assert "redefine" in refused and "required" not in refused, refused  # what was not read is not said to be missing
    world.write("grainserver.toml", good)
    world.hang_up("grainserver", "changed: log-level")

    good = world.text("backupd.toml")
    world.write("backupd.toml", good.replace("100", '"2 GiB"'))
    world.hang_up("backupd", "changed: hold-mb")
    assert world.shown("backupd")[0]["hold-mb"] == ("2048", world.path("backupd.toml") + ":3")
    world.write("backupd.toml", good + 'tls = "0.0.0.0:1"\n')
    world.hang_up("backupd", f"old configuration remains effect {world.path('backupd.toml')}:2, {world.path('backupd.toml')}:4: --tls needs --scheduler")
    # What is no file is refused at once, and what reads it lives on.
    os.unlink(world.path("backupd.toml"))
    os.mkfifo(world.path("backupd.toml"))
    world.hang_up("backupd", "backupd.toml not regular file")
    os.unlink(world.path("backupd.toml"))
    world.write("backupd.toml", good)
    os.truncate(world.path("backupd.toml"), 100 << 20)
    world.hang_up("backupd", "backupd.toml larger 1 MiB")
    world.write("backupd.toml", good)
    world.hang_up("backupd", "changed: hold-mb")
    # Without what reads the files the daemon goes on.
    os.kill(child_called(world.running["backupd"].pid, "dcs_config"), signal.SIGKILL)
    world.hang_up("backupd", "what reads configuration dcs_backupd gone")
    assert "is gone" in world.status("backup")["configuration_refused"]
    assert world.running["backupd"].poll() is None


def restart_takes_the_rest(world):
    world.write("scheduler.toml", world.text("scheduler.toml") + 'tls = "127.0.0.1:0"\n')
    world.stop("scheduler")
    options, row = world.shown("scheduler")
    assert not row["running"] and row["pid"] is None and options["tls"][0] == "127.0.0.1:0", row
    assert tells(world.dcs("config", "show", "scheduler", "--from", world.etc).stdout, "does not run files contain")
    world.start("scheduler")
    assert world.shown("scheduler")[0]["tls"] == ("127.0.0.1:0", world.path("scheduler.toml") + ":4")


def does_not_start(world):
    """Nothing of these is waited for, and all errors are reported."""
    bad = os.path.join(world.base, "bad")
    os.mkdir(bad)
    file = os.path.join(bad, "scheduler.toml")

    def start(*flags):
        return subprocess.run([program("dcs_scheduler"), "--config", file, *flags], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120)

    def refused(*words, code=2):
        done = start()
        assert done.returncode == code and not done.stdout, done
        for text in words:
            assert tells(done.stderr, text), done.stderr
        checked = world.dcs("config", "check", file, code=1)
        for text in words:
            assert tells(checked.stderr, text.removeprefix("dcs_scheduler").lstrip(": ")), checked.stderr
        return done

    def put(text):
        with open(file, "w") as out:
            out.write(text)

    done = start()
    assert done.returncode == 2 and tells(done.stderr, f"{file}: no such file no {file}.d/*.toml"), done
    put('dirr = "x"\nmirror = "often"\n[tls]\nport = 1\n')
    refused(f"dcs_scheduler {file}:1: unknown option dirr did you mean dir",
            f"dcs_scheduler: {file}:2: mirror: \"often\" is not sync, lagging or off",
            f"dcs_scheduler {file}:3: tls must string quotes but table")
    put('dir = "x\n')
    refused(f"dcs_scheduler: {file}:1: ")
    put(f'dir = "{bad}/d"\nmaster = "a b"\n')
    refused(f"{file}:2: --master a b not login name")
    os.truncate(file, 100 << 20)
    refused(f"{file} larger 1 MiB")
    os.unlink(file)
    os.mkfifo(file)
    refused(f"{file} not regular file")
    os.unlink(file)
    put("")
    os.chmod(file, 0o666)
    refused(f"{file} can written other users not trusted chmod go-w {file}")
    os.chmod(file, 0o644)
    assert start("--help").returncode == 0 and start("--version").returncode == 0
    done = start()
    assert done.returncode == 2 and "--dir DIR is required" in done.stderr, done
    # The files that are named are checked too, not before it would start.
    put(f'dir = "{bad}/d"\n')
    os.mkdir(f"{bad}/d")
    for name, text in (("hosts", "h1 slots=x\n" * 8), ("policy", "rule 1\n"), ("limits", "limit 1\n")):
        with open(f"{bad}/d/{name}", "w") as out:
            out.write(text)
    said = world.dcs("config", "check", file, code=1).stderr
    for text in (f"{bad}/d/hosts:1: slots must be", f"{bad}/d/hosts:8: slots must be",
                 f"{bad}/d/policy:1: unknown rule", f"{bad}/d/limits:1: unknown limit",
                 "the configuration has 10 errors"):
        assert text in said, said
    rows = json.loads(world.dcs("config", "check", file, "-o", "json", code=1).stdout)["files"]
    assert len(rows) == 1 and rows[0]["daemon"] == "scheduler" and not rows[0]["good"] and len(rows[0]["errors"]) == 10, rows


def for_units(world):
    """Files that leave what their daemons' units give are checked whole."""
    folder = os.path.join(world.base, "units")
    os.mkdir(folder)

    def put(**texts):
        for name, text in texts.items():
            with open(os.path.join(folder, name + ".toml"), "w") as out:
                out.write(text)
    put(scheduler='tls = "0.0.0.0"\n', backupd='tls = "0.0.0.0"\n', grainserver='confine = "all"\n')
    said = world.dcs("config", "check", "--from", folder, code=1).stderr
    assert all(tells(said, f"{folder}/{name}.toml:1 {option}") for name, option in (
        ("scheduler", "--tls"), ("backupd", "--tls"), ("grainserver", "--confine"))), said
    assert "has 3 errors" in said, said
    put(scheduler='tls = "0.0.0.0:7001"\n', backupd='tls = "0.0.0.0:7002"\n', grainserver='confine = "filter"\n')
    assert world.dcs("config", "check", "--from", folder).stdout.count(": good\n") == 3


def checks(world):
    for_units(world)
    said = world.dcs("config", "check", "--from", world.etc).stdout.splitlines()
    assert said == [world.path(name + ".toml") + ": good" for name in ("scheduler", "backupd", "grainserver")], said
    assert world.dcs("config", "check", world.path("scheduler.toml.d/10-site.toml")).stdout.endswith("10-site.toml: good\n")
    nowhere = os.path.join(world.base, "nowhere")
    assert tells(world.dcs("config", "check", "--from", nowhere, code=3).stderr, f"no configuration files {nowhere}")
    named = os.path.join(world.base, "x.toml")
    shutil.copy(world.path("backupd.toml"), named)
    assert tells(world.dcs("config", "check", named, code=2).stderr, "add --daemon scheduler --daemon grainserver --daemon backupd")
    world.dcs("config", "check", "--daemon", "backupd", named)
    assert "unknown option `hold-mb`" in world.dcs("config", "check", "--daemon", "grainserver", named, code=1).stderr
    # The tables beside them, which the packages' scheduler reads.
    os.mkdir(nowhere)
    for name, text in (("hosts", "h1 slots=x\n"), ("policy", "fair_shares on\n"), ("limits", "connections 12\n")):
        with open(os.path.join(nowhere, name), "w") as out:
            out.write(text)
    said = world.dcs("config", "check", "--from", nowhere, code=1).stderr
    assert tells(said, f"{nowhere}/hosts:1: slots must") and f"{nowhere}/policy:1: unknown rule `fair_shares`" in said, said
    with open(os.path.join(nowhere, "hosts"), "w") as out:
        out.write("h1 slots=1\n")
    os.unlink(os.path.join(nowhere, "policy"))
    for name in ("schedular.toml", "sheduler.d"):  # which no daemon reads
        os.mkdir(os.path.join(nowhere, name))
    done = world.dcs("config", "check", "--from", nowhere)
    assert done.stdout == f"{nowhere}/hosts: good\n", done
    assert done.stderr == f"warning: no daemon reads {nowhere}/schedular.toml\nwarning: no daemon reads {nowhere}/sheduler.d\n", done
    shutil.rmtree(nowhere)
    empty = dict(world.env, DCS_DIR=nowhere)
    done = subprocess.run([program("dcs"), "config", "show", "--from", nowhere], env=empty, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 3 and tells(done.stderr, "no configuration file one"), done
    names = world.dcs("config", "show", "--from", world.etc, "-o", "name").stdout.split()
    assert sorted(names) == ["backup", "h1", "scheduler"], names


def page(world):
    """What docs/CONFIGURATION.md shows is what daemons take."""
    folder = os.path.join(world.base, "page")
    os.mkdir(folder)
    with open(os.path.join(ROOT, "docs/CONFIGURATION.md")) as text:
        blocks = re.findall(r"^```toml (\S+)\n(.*?)^```", text.read(), re.M | re.S)
    assert [name for name, _ in blocks] == ["scheduler.toml", "grainserver.toml"], blocks
    for name, text in blocks:
        with open(os.path.join(folder, name), "w") as file:
            file.write(text.replace("/var/lib/dcs", world.pool).replace('group = "dcs"', 'group = "root"'))
    assert world.dcs("config", "check", "--from", folder).stdout.count(": good\n") == 2


def main():
    world = World()
    try:
        does_not_start(world)
        starts_from_files(world)
        reads_again(world)
        restart_takes_the_rest(world)
        checks(world)
        page(world)
    except BaseException:
        for daemon in DAEMONS:
            if os.path.exists(os.path.join(world.base, daemon + ".log")):
                print(f"---- {daemon}", world.log(daemon)[-4000:], sep="\n", flush=True)
        raise
    finally:
        world.close()


if __name__ == "__main__":
    main()
