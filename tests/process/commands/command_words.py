#!/usr/bin/python3
"""dcs up, down and backup on a host that refuses them something, with daemons that do not start, do not end, or answer
what no party has asked: each says so in words that this table expects. Refusals are made as in daemon_words.py."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from daemon_words import NOBODY, REFUSE, Case, as_nobody, chosen, complaints
from pool import Pool, about, program, tells, wait_for
from remote_peer import frame
from speakers import OTHER, SpeakersPool

LIST_TOKENS = 52  # a message that no daemon answers with
NO_SIGNALS = "syscall:=424=:EPERM"  # pidfd_send_signal
NUMBERS = {"d/p/pool": "servers 1\nslots 1\ninterval 10\n"}
HOSTS = {"d/p/scheduler/hosts": "# Written by `dcs up`\nlocal1 slots=1\n"}
BY_HAND = {"d/p/scheduler/hosts": "local1 slots=1\n"}
started = []


class Command(Case):
    """dcs with these words and --dir @/p; own: a folder of programs in which it is dcs, and no other program but these
    scripts."""

    def __init__(self, name, words, said, code=1, own=None, slow=False, **options):
        super().__init__(name, "@/own/dcs" if own is not None else "dcs", ("--dir", "@/p", *words), said, code, **options)
        self.own, self.slow, self.inner, self.prepare = own, slow, self.prepare, self.ready

    def ready(self, place):
        # By another process: what this one has open for writing, a program that another thread just begins has as well.
        for name, text in (self.own or {}).items():
            path = os.path.join(place, "d/own", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            subprocess.run(["tee", path], input=text.encode(), stdout=subprocess.DEVNULL, check=True)
            os.chmod(path, 0o755)
        if self.own is not None:
            os.makedirs(os.path.join(place, "d/own"), exist_ok=True)
            subprocess.run(["cp", program("dcs"), os.path.join(place, "d/own/dcs")], check=True)
        if self.inner:
            self.inner(place)


def serving(path, *words):
    """A daemon that is up before the command begins."""
    def prepare(place):
        words_here = [word.replace("@", place + "/d") for word in words]
        log = os.path.join(place, "daemon.log")
        with open(log, "wb") as file:
            process = subprocess.Popen(words_here, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        started.append(process)
        socket_path = os.path.join(place, path)
        wait_for(f"{socket_path}", lambda: os.path.exists(socket_path) or process.poll() is not None, timeout=120)
        assert process.poll() is None, open(log).read()
    return prepare


def peer(path, answer):
    """A party at that socket who gives every caller the same answer, or none."""
    def prepare(place):
        os.makedirs(os.path.dirname(os.path.join(place, path)), exist_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(place, path))
        listener.listen()
        callers = []

        def serve():
            while True:
                caller, _ = listener.accept()
                callers.append(caller)
                if answer and caller.recv(4096):
                    caller.sendall(answer)
        threading.Thread(target=serve, daemon=True).start()
    return prepare


def owner(path, uid):
    return lambda place: os.chown(os.path.join(place, path), uid, uid)


def no_lock(place):
    os.symlink("/nowhere", os.path.join(place, "d/p/up.lock"))


SCHEDULER = serving("d/p/scheduler/server.sock", program("dcs_scheduler"), "--dir", "@/p/scheduler", "--hosts",
                    "@/p/scheduler/hosts")
BACKUP = serving("d/p/backup/backup.sock", program("dcs_backupd"), "--dir", "@/p/backup", "--scheduler", "@/none.sock")
SERVER = serving("d/p/servers/local2/launcher.lock", program("dcs_grainserver"), "--name", "local2", "--dir",
                 "@/p/servers/local2", "--scheduler", "@/none.sock", "--run-as", "self")
UP = ("up", "--local", "1")
PROMOTE = ("backup", "promote", "--yes")
NOTHING_PROMOTED = "hint nothing promoted"


def up_cases():
    did_not = "dcs: the scheduler did not start: "
    return [
        Command("mirror", (*UP, "--mirror", "never"), ["dcs --mirror never"], code=2),
        Command("mkdir", UP, "dcs @/p Permission denied", refuse="mkdir:/p:EACCES"),
        Command("mkdir_above", ("--dir", "@/q/b", *UP), "dcs @/q/b Permission denied",
                refuse="mkdir:/q/b:EACCES:1"),
        Command("owner", UP, ["dcs @/p belongs", "hint directory --dir DIR"], code=4,
                files={"d/p": None}, prepare=owner("d/p", NOBODY)),
        Command("private", UP, "dcs @/p not permitted", files={"d/p": None},
                refuse="chmod:/p:EPERM"),
        Command("up_lock", UP, "dcs up: @/p/up.lock is a symbolic link, not a lock file\n", files=NUMBERS, code=2, prepare=no_lock),
        Command("surplus", UP, "dcs local2 local2", refuse=NO_SIGNALS, slow=True,
                files={**NUMBERS, "d/p/servers/local2": None}, prepare=SERVER),
        Command("other_mirror", ("up", "--mirror", "sync"), "dcs not --mirror", refuse=NO_SIGNALS, slow=True, files={**NUMBERS, **HOSTS}, prepare=SCHEDULER),
        Command("no_program", UP, did_not + "program @/own/dcs_scheduler cannot such file",
                code=3, own={}),
        Command("no_pipe", UP, did_not + "dcs_scheduler many open files", refuse="pipe2::EMFILE"),
        Command("no_shell", UP, did_not + "@/own/dcs_scheduler cannot be started: No such file or directory\n",
                own={"dcs_scheduler": "#!/no/such/shell\n"}),
        Command("killed", UP, did_not + "ended signal 9", own={"dcs_scheduler": "#!/bin/sh\nkill -9 $$\n"}),
        Command("exits", UP, did_not + "it ended with exit code 3; the end of its log:\nwhy not\n", own={
            "dcs_scheduler": "#!/bin/sh\necho why not >&2\nexit 3\n"}),
        Command("children", UP, did_not + "it ended with exit code 3\n", own={"dcs_scheduler": "#!/bin/sh\nexit 3\n"},
                preexec=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)),
        Command("late", UP, ["dcs dcs_scheduler pid still starting log: @/p/scheduler/log", did_not + "ended exit code 3"], slow=True,
                own={"dcs_scheduler": "#!/bin/sh\nsleep 26; exit 3\n"}),
    ]


def down_cases():
    return [
        Command("down_owner", ("down",), ["dcs @/p pool",
                                          "--dir DIR DCS_DIR"], code=4, files={"d/p": None},
                preexec=as_nobody),
        Command("down_lock", ("down",), "dcs down @/p/up.lock symbolic not", files=HOSTS, code=2, prepare=no_lock),
        Command("down_held", ("down",), ["dcs not stop scheduler scheduler", "hint `dcs down` process answers"],
                refuse=NO_SIGNALS, slow=True, files={**NUMBERS, **HOSTS}, prepare=SCHEDULER),
    ]


def backup_cases():
    status = ("backup", "status")
    return [
        Command("no_loop", status, "dcs @/p no",
                refuse="epoll_create1::EMFILE"),
        Command("dead", status, ["dcs: the backup of @/p: ", "hint: `dcs up` starts it again"], code=5,
                files={**NUMBERS, "d/p/backup": None}),
        Command("dead_without", status, ["dcs: the backup of @/p: ", "hint: there is none; `dcs up` starts one"], code=5, files=NUMBERS),
        Command("dead_no_pool", status, ["dcs: the backup of @/p: ", "hint: `dcs up` starts a private pool"], code=5),
        Command("dead_elsewhere", status, ["dcs: the backup of @/p: ", "hint: this host has none"], code=5, files=BY_HAND),
        Command("dead_by_hand", status, ["dcs: the backup of @/p: ", "dcs_backupd --dir @/p/backup"],
                code=5, files={**BY_HAND, "d/p/backup": None}),
        Command("silent", status, "dcs backup @/p not answer", code=5, slow=True,
                prepare=peer("d/p/backup/backup.sock", None)),
        Command("other_answer", status, "dcs @/p unexpected",
                prepare=peer("d/p/backup/backup.sock", frame(LIST_TOKENS, b""))),
        Command("detach_words", ("backup", "detach", "now"), ["dcs backup detach no arguments"], code=2),
        Command("detach_nobody", ("backup", "detach"),
                ["dcs: the scheduler of @/p: ", "hint `dcs up --dir @/p` starts detach"], code=5, files=NUMBERS),
        Command("detach_by_hand", ("backup", "detach"), ["dcs: the scheduler of @/p: ", "start dcs_scheduler again with the options that it had"],
                code=5, files=BY_HAND),
        Command("promote_words", ("backup", "promote", "now"), ["dcs promote no arguments"], code=2),
        Command("promote_lock", PROMOTE, "dcs promote @/p/up.lock symbolic not", files=NUMBERS, code=2, prepare=no_lock),
        Command("promote_scheduler", PROMOTE, ["dcs backup promote scheduler pid", ") could not be stopped\n",
                                               "hint run `dcs down` try"],
                refuse=NO_SIGNALS, slow=True, files={**NUMBERS, **HOSTS}, prepare=SCHEDULER),
        Command("promote_backup", PROMOTE, ["dcs backup promote backup", ") could not be stopped\n",
                                            "hint run `dcs down` try"],
                refuse=NO_SIGNALS, slow=True, files={**NUMBERS, "d/p/backup": None}, prepare=BACKUP),
        Command("no_copy", PROMOTE, ["dcs dcs_backupd no", NOTHING_PROMOTED],
                code=4, files={**NUMBERS, "d/p/backup": None}),
        Command("no_copy_here", PROMOTE, ["dcs dcs_backupd no",
                                          "hint: nothing was promoted\n"], code=4, files={"d/p/backup": None}),
        # A caller that ignores SIGCHLD gets the same messages.
        Command("no_copy_ignored", PROMOTE, ["dcs dcs_backupd no",
                                             NOTHING_PROMOTED], code=4, files={**NUMBERS, "d/p/backup": None},
                preexec=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)),
        Command("promote_pipe", PROMOTE, ["dcs_backupd many open files",
                                          NOTHING_PROMOTED], files=NUMBERS, refuse="memfd_create::EMFILE"),
        Command("promote_no_program", PROMOTE, ["promote @/own/dcs_backupd cannot started",
                                                NOTHING_PROMOTED], files=NUMBERS, own={}),
        Command("promote_no_up", PROMOTE, ["promoted not start @/own/dcs_scheduler cannot", "hint: `dcs up`\n"], files=NUMBERS,
                own={"dcs_backupd": "#!/bin/sh\necho promoted\n"}),
    ]


def copy_of_the_store():
    """What dcs backup status says of it; the scheduler may be away."""
    def copy():
        return pool.dcs("backup", "status").stdout.decode().partition("\ncopy ")[2].strip()
    with Pool(1) as pool:
        assert about(copy(), "no whole --mirror"), copy()
        pool.dcs("up", "--mirror", "lagging")
        wait_for("a copy of the store", lambda: pool.json("backup", "status")["copy"]["whole"], timeout=120)
        pool.stop_scheduler()
        assert re.fullmatch(r"copy of the store as of turn \d+; the scheduler does not answer", copy()), copy()
        pid = pool.json("backup", "status")["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            silent = pool.dcs("backup", "status", check=False)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert silent.returncode == 5 and tells(silent.stderr, f"hint runs as process {pid} may answer later"), silent


def nowhere_to_say_it(base):
    """A party that calls has closed his standard streams. The pool starts as ever, and the exit code tells what cannot be said."""
    directory = os.path.join(base, "closed")
    call = [program("dcs"), "--dir", directory]
    try:
        for stream, code in (("", 0), ("<&-", 0), ("2>&-", 0), (">&-", 1), ("<&- >&- 2>&-", 1)):
            up = subprocess.run(["/bin/sh", "-c", f'exec "$@" {stream}', "sh", *call, "up", "--local", "1"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
            assert up.returncode == code, (stream, up)
            state = subprocess.run([*call, "status", "-o", "json"], check=True, timeout=300, stdout=subprocess.PIPE).stdout
            daemons = json.loads(state)["daemons"]
            assert len(daemons) >= 3 and all(d["state"] == "up" for d in daemons), (stream, daemons)
            subprocess.run([*call, "down"], check=True, timeout=300, stdout=subprocess.DEVNULL)
    finally:
        subprocess.run([*call, "down"], timeout=300, stdout=subprocess.DEVNULL)


def pool_of_another_host(base):
    """The pool is elsewhere, and the way there is missing: an /etc of its own says so to this one process."""
    own = os.path.join(base, "alone")
    os.mkdir(own)
    shutil.copy(program("dcs"), own)
    script = ("mount -t tmpfs none /etc && mkdir /etc/dcs && echo scheduler pool.example:7001 >/etc/dcs/pool.conf && "
              'exec env -i HOME=/ "$0/dcs" status')
    result = subprocess.run(["unshare", "-m", "/bin/sh", "-c", script, own], cwd="/", text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, timeout=300)
    assert result.returncode == 3 and result.stderr.startswith(
        f"dcs: the pool's scheduler is on another host, pool.example:7001, and {own}/dcs_begin is needed to reach it: No such "
        "file or directory\n"), result


def packaged_hosts(base):
    """What lies on hosts with the packages, seen by this one process: what is next there is a service or another host."""
    own = os.path.join(base, "packaged")
    os.mkdir(own)
    shutil.copy(program("dcs"), own)

    def seen(made, *words):
        script = ("for d in /etc /run /usr/local/lib /var/lib; do mount -t tmpfs none $d; done; mkdir -p /run/systemd/system "
                  f"/usr/local/lib/systemd/system /var/lib/dcs/scheduler /etc/dcs; {made}; exec env -i HOME=/ \"$0/dcs\" "
                  + " ".join(words))
        return subprocess.run(["unshare", "-m", "/bin/sh", "-c", script, own], cwd="/", text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=300)

    unit = "touch /usr/local/lib/systemd/system/dcs-scheduler.service"
    pool = "echo dir /var/lib/dcs >/etc/dcs/pool.conf; touch /var/lib/dcs/scheduler/lock"
    for words in (["status"], ["doctor"], ["host", "ls"]):
        result = seen(f"{unit}; {pool}", *words)
        assert result.returncode == 5 and "hint: `systemctl start dcs-scheduler` starts it, `journalctl -u dcs-scheduler` " \
               "says why it ended\n" in result.stderr, (words, result)
        result = seen(pool, *words)
        assert "hint: start dcs_scheduler again with the options that it had\n" in result.stderr, (words, result)
        result = seen(f"{unit}; {pool}; echo 'ended   ' >/var/lib/dcs/scheduler/attached", *words)
        assert about(result.stderr, "hint backup's copy scheduler of this pool do not start this one") \
            and "systemctl" not in result.stderr, (words, result)
    closed = seen(f"{pool}; chmod 700 /var/lib/dcs; setpriv --reuid 65534 --regid 65534 --clear-groups env -i HOME=/run "
                  '"$0/dcs" session ls')
    assert about(closed.stderr, "/var/lib/dcs cannot be entered chmod 711 /var/lib/dcs"), closed
    # A pool of the user's own comes before it, and says so.
    for conf, way in (("dir /var/lib/dcs", "DCS_DIR=/var/lib/dcs means the pool of this host"),
                      ("scheduler sched:7001", "commands use the pool of this host, at sched:7001")):
        result = seen(f"echo {conf} >/etc/dcs/pool.conf; mkdir -p /run/home/.local/state/dcs/scheduler; "
                      'exec env -i HOME=/run/home "$0/dcs" status')
        assert re.search("^your own; .*" + re.escape(way), result.stdout, re.M), result
        refused = seen(f"echo {conf} >/etc/dcs/pool.conf; mkdir /run/home; "
                       'HOME=/run/home "$0/dcs" up; echo $?; ls -A /run/home; exec true')
        assert refused.stdout.split() == ["4"] and about(refused.stderr, "this host pool root commands no longer reach up --dir"), \
            refused
    told = seen("mkdir -p /var/lib/dcs/backup; touch /var/lib/dcs/backup/service", "backup", "status", "--dir", "/home/none")
    assert told.returncode == 5 and "hint: the backup of this host: dcs backup status --dir /var/lib/dcs\n" in told.stderr, told
    promotes = "printf '#!/bin/sh\\necho promoted\\n' >\"$0/dcs_backupd\"; chmod +x \"$0/dcs_backupd\""
    for made, then in ((f"{promotes}; {unit}", "then systemctl start dcs-scheduler dcs-backupd"),
                       (promotes, "then start dcs_scheduler --dir /var/lib/dcs/scheduler --hosts /etc/dcs/hosts --tls")):
        done = seen(made, "backup", "promote", "--dir", "/var/lib/dcs")
        assert done.returncode == 0 and about(done.stdout, "promoted Next: authority into /var/lib/dcs/scheduler/pki host table "
                                              f"into /etc/dcs/hosts {then}"), done
    for role, part in (("server", "runs grains for"), ("backup", "has the backup of")):
        result = seen(f"mkdir /var/lib/dcs/{role}; printf 'DCS_NAME=h1\\nDCS_SCHEDULER=sched:7001\\n' "
                      f">/var/lib/dcs/{role}/service", "host", "ls")
        assert result.returncode == 5 and f"this host {part} the pool at sched:7001: run dcs on the scheduler's host" \
            in result.stderr, result


def not_for_anybody():
    """A party who may call gives an order that is for the pool's owner."""
    with SpeakersPool() as pool:
        result = subprocess.run([program("dcs"), "host", "set", "h1", "--clear-nogo"], env=dict(os.environ, DCS_DIR=pool.base),
                                user=OTHER, group=OTHER, extra_groups=[pool.gid], cwd="/", text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, timeout=300)
        assert result.returncode == 4 and about(result.stderr, "host h1 still avoided"), result


def main():
    if not os.path.exists(REFUSE) or os.geteuid() != 0:
        print("it needs root, and programs without sanitizers")
        return 77
    cases = chosen(up_cases() + down_cases() + backup_cases())
    base = tempfile.mkdtemp(prefix="dcs-words-", dir="/var/tmp")
    os.chmod(base, 0o755)
    wrong = []

    def judge(case):
        wrong.extend(complaints(case, base))
    try:
        for case in cases:
            if not case.slow:
                judge(case)
        # The patience of most is twenty seconds and more: they have it at the same time.
        threads = [threading.Thread(target=judge, args=(case,)) for case in cases if case.slow]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(sys.argv) == 1:
            for part in (copy_of_the_store, not_for_anybody):
                part()
            pool_of_another_host(base)
            packaged_hosts(base)
            nowhere_to_say_it(base)
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()
        shutil.rmtree(base, ignore_errors=True)
    print("\n".join(wrong) if wrong else f"{len(cases)} commands said what was wrong")
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
