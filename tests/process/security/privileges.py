#!/usr/bin/python3
"""The processes that read strangers' bytes have no power but what their work takes: a scheduler and a grain server, as root and as
an ordinary user, try from inside what they should not be able to; what they ask of keeper, warden and launcher is what the
tables say; and when the process beside them dies they say so and end."""
import ctypes
import itertools
import os
import shutil
import signal
import subprocess
import tempfile

from pool import Pool, lock_holder, wait_for
from tls import TOOLS, TlsPool, program
from users_host import FIRST

FULL = bool(os.environ.get("DCS_TESTS_FULL"))
USER = 54321  # no peer's
LANDLOCK = ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1)
# CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_NET_RAW: docs/SECURITY.md says what for.
KEEPER_POWER = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 13

# By Landlock and the file's mode, or by the filter.
FILES = "shadow resolver new_file file_read file_write unlink rename link sysctl procmem ".split()
CALLS = ("file_cut file_cut2 truncate chmod chown setxattr mknod setuid setresuid setgroups capset unshare mount bpf keyctl dumpable "
         "io_uring unheard_of exec fork ptrace readmem kill_beside kill_init kill_all prlimit renice socketpair raw packet "
         "uevent low_port int80").split()
NO = {"EPERM", "EACCES", "ENOSYS", "EXDEV"}
KEEPER_ANSWERS = {"look_up": "ok", "ask_scheduler": "INVALID", "ask_authority": "INVALID", "ask_name": "INVALID", "ask_longer": "INVALID", "ask_huge": "INVALID",
           "ask_hidden": "INVALID", "ask_unknown": "INVALID", "ask_own": "REFUSED", "ask_good": "ok"}
# DAC_OVERRIDE and FOWNER: what a root's grain server keeps.
SERVER_POWER = 1 << 1 | 1 << 3
WARDEN_ANSWERS = {"look_up": "ok", "ask_as_root": "REFUSED", "ask_as_login": "REFUSED", "ask_as_other": "REFUSED", "ask_shadow": "IO_ERROR",
                  "ask_device": "IO_ERROR", "ask_room_outside": "INVALID", "ask_room_to_root": "REFUSED", "ask_home_outside": "INVALID",
                  "ask_login": "REFUSED", "ask_huge": "INVALID", "ask_unknown": "INVALID", "ask_good": "ok",
                  "ask_launcher": "ok", "launch_root": "refused", "launch_daemon": "refused", "launch_made_up_daemon": "refused",
                  "launch_server": "refused", "launch_bare": "refused"}
# By a starter that runs as root. Where the launcher's account is that of the grains, the kernel says what it may touch.
STARTER_ANSWERS = {"start_root": "IO_ERROR", "start_daemon": "IO_ERROR", "start_made_up_daemon": "IO_ERROR", "start_server": "IO_ERROR",
                   "start_bare": "IO_ERROR", "signal_foreign": "REFUSED", "signal_starter": "REFUSED", "group_foreign": "REFUSED",
                   "lower_foreign": "REFUSED", "clear_root": "REFUSED", "clear_foreign": "REFUSED", "orphan_foreign": "REFUSED",
                   "start_outside": "INVALID", "disk_outside": "INVALID", "orphan_outside": "INVALID", "leaf_outside": "INVALID",
                   "seal_outside": "INVALID", "remove_outside": "INVALID", "ask_huge": "INVALID", "ask_unknown": "INVALID"}
SELF_ANSWERS = {"signal_foreign": "ok", "signal_starter": "ok", "lower_foreign": "ok"}
NEEDED = "kept_new kept_read kept_rename kept_unlink thread own_signal inet"


def status(pid, name):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(name + ":"):
            return line.split()[1]
    raise AssertionError(f"no {name} of {pid}")


def beside(pid, name):
    found = {open(f"/proc/{child}/comm").read().strip(): child
             for child in open(f"/proc/{pid}/task/{pid}/children").read().split()}
    assert name in found, found
    return int(found[name])


def keeper_of(pid):
    return beside(pid, "dcs_keeper")


def has_no_power(pid, kept=0, bounded=True):
    threads = os.listdir(f"/proc/{pid}/task")
    for thread in threads:
        of = f"{pid}/task/{thread}"
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb") + (("CapBnd",) if bounded and status(pid, "Uid") == "0" else ()):
            assert int(status(of, name), 16) == (kept if name in ("CapPrm", "CapEff", "CapBnd") else 0), (of, name, status(of, name))
        assert status(of, "NoNewPrivs") == "1" and status(of, "Seccomp") == "2", of
    return len(threads)


UIDS = itertools.count(FIRST, 10)  # for each pool others: the launcher of the one before may still be there


class Private(TlsPool):
    """One whose scheduler runs as an ordinary user, if there is a choice, and is one that pries."""
    uid = 0

    def __init__(self):
        self.outside = tempfile.mkdtemp(prefix="dcs-pry-")
        self.report, self.file = os.path.join(self.outside, "report"), os.path.join(self.outside, "file")
        self.first_uid = next(UIDS)
        super().__init__()

    def owned(self):
        return (self.outside, self.file, self.report, self.base, self.directory, os.path.join(self.directory, "hosts"))

    def table(self, *hosts):
        with open(self.file, "w") as file:
            file.write("kept")
        open(self.report, "w").close()
        super().table(*hosts)
        for path in self.owned():
            os.chown(path, self.uid, self.uid)

    def start(self, name, what, *arguments):
        if what != "dcs_scheduler":
            return super().start(name, what, *arguments)
        env = dict(self.env, DCS_PRY_LOG=self.report, DCS_PRY_FILE=self.file, DCS_PRY_DIR=self.directory)
        with open(os.path.join(self.base, name + ".log"), "a") as log:
            self.running[name] = subprocess.Popen([os.path.join(TOOLS, "dcs_scheduler_pry"), *arguments], stderr=log, env=env,
                                                  user=self.uid, group=self.uid, extra_groups=[], cwd="/")

    def __exit__(self, *what):
        super().__exit__(*what)
        shutil.rmtree(self.outside)


class Users(Private):
    uid = USER


class PryingServer(Private):
    """Its grain server is the one that pries."""
    programs = ("dcs_grainserver_pry", "dcs_launcher")

    def owned(self):
        return (self.outside, self.file, self.report)

    def start(self, name, what, *arguments):
        if what != "dcs_grainserver":
            return TlsPool.start(self, name, what, *arguments)
        home = os.path.join(self.base, name)
        for folder, _, files in os.walk(home):
            for path in (folder, *(os.path.join(folder, file) for file in files)):
                os.chown(path, self.uid, self.uid)
        for path in (self.base, home):
            os.chmod(path, 0o711)
        env = dict(self.env, DCS_PRY_LOG=self.report, DCS_PRY_FILE=self.file, DCS_PRY_DIR=home, DCS_PRY_UID=str(self.first_uid))
        words = list(arguments)
        if self.uid == 0:
            words = ["users" if word == "self" else word for word in arguments] + \
                ["--anonymous-uids", f"{self.first_uid}-{self.first_uid + 9}"]
        for source, target in zip(self.programs, ("pry", "dcs_launcher")):
            if not os.path.exists(os.path.join(self.outside, target)):
                shutil.copy(os.path.join(TOOLS, source) if source.endswith("_pry") else program(source), os.path.join(self.outside, target))
        os.chmod(self.outside, 0o755)
        with open(os.path.join(self.base, name + ".log"), "a") as log:
            self.running[name] = subprocess.Popen([os.path.join(self.outside, "pry"), *words, "--confine", "filter"], stderr=log,
                                                  env=env, user=self.uid, group=self.uid, extra_groups=[], cwd="/")


class PryingUsersServer(PryingServer):
    uid = USER


class PryingLauncher(PryingServer):
    """Its launcher is the one that pries, among other things at a process of another account."""
    programs = ("dcs_grainserver", "dcs_launcher_pry")

    def __init__(self):
        self.foreign = subprocess.Popen(["sleep", "600"], user=0 if self.uid else USER, group=0, extra_groups=[])
        super().__init__()
        self.env["DCS_PRY_PID"] = str(self.foreign.pid)

    def __exit__(self, *what):
        super().__exit__(*what)
        self.foreign.kill()
        self.foreign.wait()


class PryingUsersLauncher(PryingLauncher):
    uid = USER


def judge(pool, files, calls, answers):
    got = dict(line.split() for line in open(pool.report))
    if os.uname().machine != "x86_64":
        got["int80"] = "ENOSYS"
    refused = list(calls)
    if LANDLOCK >= 2:
        refused += files
    else:
        print("SKIPPED: this kernel has no Landlock of version 2: what a daemon can open is not looked at")
    assert {name: got.get(name) for name in refused if got.get(name) not in NO} == {}, got
    assert {name: got[name] for name in answers} == answers, got
    assert {got[name] for name in NEEDED.split()} == {"ok"}, got
    known = {*files, *calls, *answers, *NEEDED.split(), "int80"}
    assert set(got) <= known | {"unix"}, set(got) - known
    assert open(pool.file).read() == "kept" and os.stat(pool.file).st_mode & 0o7777 == 0o644


def pries(kind):
    with kind() as pool:
        pool.join("h1")
        pid = pool.running["scheduler"].pid
        assert int(status(pid, "Uid")) == kind.uid
        assert has_no_power(pid) >= 3  # the loop, storage, the library, probes
        power = int(status(keeper_of(pid), "CapPrm"), 16)
        assert power == (KEEPER_POWER if kind.uid == 0 else 0), hex(power)
        assert status(keeper_of(pid), "NoNewPrivs") == "1"
        assert os.stat(f"/proc/{keeper_of(pid)}/mem").st_uid == 0  # no peer may look into it
        pool.stop("scheduler")
        judge(pool, FILES + "key pki hosts hosts_write".split(), CALLS + ["unix"], KEEPER_ANSWERS)
        pool.start_scheduler()  # it has spoilt nothing
        pool.join("h2")


def server_pries(kind):
    with kind() as pool:
        pool.join("h1")
        pool.start_server("h1")
        wait_for("the end of prying", lambda: "launch_bare" in open(pool.report).read(), 300)
        pid = pool.running["h1"].pid
        has_no_power(pid, SERVER_POWER if kind.uid == 0 else 0)
        assert status(beside(pid, "dcs_warden"), "Uid") == str(kind.uid)
        judge(pool, FILES + "rules_write rules_unlink rules_rename lock_write".split(),
              CALLS + "fchmod_open fchmod_setuid fchown_open".split(), WARDEN_ANSWERS | {"grain_user": "ok"})
        shutil.rmtree(os.path.join(pool.base, "h1/grains/h1,eve,1,1,1"))
        assert pool.dcs("run", "--", "/bin/echo", "works").stdout == "works\n"  # it has spoilt nothing
        warden = beside(pid, "dcs_warden")
        os.kill(warden, signal.SIGKILL)
        assert pool.running.pop("h1").wait(timeout=120) == 1
        pool.logged("h1.log", "the grain server's warden was killed by signal 9, so the grain server stops: restart it")
        open(pool.report, "w").close()
        pool.start_server("h1")
        pool.stop("h1", signal.SIGKILL)
        pool.start_server("h1")
        assert pool.dcs("run", "--", "/bin/echo", "works").stdout == "works\n"


def launcher_pries(kind):
    with kind() as pool:
        pool.join("h1")
        pool.start_server("h1")
        wait_for("the end of prying", lambda: "done ok" in open(pool.report).read(), 300)
        launcher = lock_holder(os.path.join(pool.base, "h1/launcher.lock"))
        has_no_power(launcher, bounded=False)  # it executes nothing
        assert status(beside(launcher, "dcs_starter"), "Uid") == str(kind.uid)
        answers = STARTER_ANSWERS if kind.uid == 0 else STARTER_ANSWERS | SELF_ANSWERS
        judge(pool, FILES + "rules_write rules_unlink rules_rename lock_write server_file group".split(), CALLS + ["unix"],
              answers | {"done": "ok"})
        assert pool.foreign.poll() is None
        shutil.rmtree(os.path.join(pool.base, "h1/grains/h1,eve,1,1,1"))
        assert pool.dcs("run", "--", "/bin/echo", "works").stdout == "works\n"  # it has spoilt nothing


def dies_in_words(how):
    """SIGKILL; SIGSTOP: it is silent; SIGALRM: it hangs, over a file as it would over a name service."""
    words = {signal.SIGKILL: "was killed by signal 9", signal.SIGSTOP: "does not answer", signal.SIGALRM: "was killed by signal 14"}
    with TlsPool() as pool:
        pool.join("h1")
        pool.start_server("h1")
        pool.wait_active("h1")
        scheduler = pool.running["scheduler"]
        keeper = keeper_of(scheduler.pid)
        authority = open(os.path.join(pool.directory, "pki", "authority.pem")).read()
        hosts = os.path.join(pool.directory, "hosts")
        if how == signal.SIGALRM:
            os.rename(hosts, hosts + ".away")
            os.mkfifo(hosts)
        else:
            os.kill(keeper, how)
        if how != signal.SIGKILL:  # a peer that calls now waits with the scheduler, and not for ever
            result = pool.dcs("reload", check=False)
            assert result.returncode != 0, result
        assert scheduler.wait(timeout=120) == 1
        del pool.running["scheduler"]
        pool.logged("scheduler.log", f"the scheduler's keeper {words[how]}, so the scheduler stops: restart it")
        if how == signal.SIGSTOP:
            os.kill(keeper, signal.SIGCONT)
        if how == signal.SIGALRM:
            os.rename(hosts + ".away", hosts)
        wait_for("the end of the keeper", lambda: not os.path.exists(f"/proc/{keeper}"))
        pool.start_scheduler()
        assert open(os.path.join(pool.directory, "pki", "authority.pem")).read() == authority
        pool.wait_active("h1")
        pool.join("h2")
        assert pool.dcs("run", "--", "/bin/echo", "works").stdout == "works\n"


def ends_with_its_scheduler():
    with TlsPool() as pool:
        for how in (signal.SIGKILL, signal.SIGTERM):
            keeper = keeper_of(pool.running["scheduler"].pid)
            for harmless in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # they are meant for the whole group
                os.kill(keeper, harmless)
            assert pool.json("host", "ls")["hosts"]
            pool.stop("scheduler", how)
            wait_for("the end of the keeper", lambda: not os.path.exists(f"/proc/{keeper}"))
            pool.start_scheduler()


def rereads_and_removes():
    with TlsPool() as pool:
        pool.join("h1")
        path = os.path.join(pool.directory, "hosts")
        with open(path + ".fresh", "w") as file:
            file.write(open(path).read() + "h3 slots=1\n")
        os.rename(path + ".fresh", path)
        pool.dcs("reload")
        assert pool.host("h3")
        pool.dcs("host", "rm", "h1")
        assert "h1 " not in open(path).read() and "h3 " in open(path).read() and not pool.host("h1")
        os.rename(path, path + ".away")
        result = pool.dcs("reload", check=False)
        assert result.returncode != 0 and f"the host table {path}: No such file" in result.stderr, result
        assert pool.host("h3")


def private_pool():
    with Pool(servers=1) as pool:
        for role in ("scheduler", "backup"):
            assert pool.pid(role, role), role
            has_no_power(pool.pid(role, role))
        server = pool.pid("grainserver", "local1")
        has_no_power(server, SERVER_POWER)
        beside(server, "dcs_warden")
        assert pool.dcs("run", "--", "/bin/echo", "works").stdout == b"works\n"


def main():
    if os.getuid() != 0:
        print("only root can show that it gives up what it has")
        return 77
    for kind in (Private, Users):
        pries(kind)
    for kind in (PryingServer, PryingUsersServer):
        server_pries(kind)
    for kind in (PryingLauncher, PryingUsersLauncher):
        launcher_pries(kind)
    ends_with_its_scheduler()
    rereads_and_removes()
    dies_in_words(signal.SIGKILL)
    if FULL:
        dies_in_words(signal.SIGSTOP)
        dies_in_words(signal.SIGALRM)
    private_pool()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
