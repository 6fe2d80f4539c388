#!/usr/bin/python3
"""Daemons that are started wrongly, find damaged files, or are refused something by their host: each says what is wrong in
words that this table expects. A host's refusals are made by build/.../tests/librefuse.so (tests/support/refuse.h)."""
import os
import pwd
import resource
import shutil
import subprocess
import sys
import tempfile

from pool import BIN, about, wait_for
from users_host import FIRST, LAST

REFUSE = os.path.join(os.path.dirname(BIN), "tests", "librefuse.so")
NOBODY = pwd.getpwnam("nobody").pw_uid


class Case:
    """One start. `words`: key words of what is said on standard error; `code`: the exit code, or None if it serves;
    `at_end`: what is said besides when it is ordered to stop, with that exit code; `poke`: what is done to it when it serves,
    called with its place, the process, and a function for what it has said."""

    def __init__(self, name, daemon, arguments, words, code=1, at_end=None, refuse="", files=(), prepare=None, preexec=None,
                 poke=None, environment=None):
        self.name, self.daemon, self.arguments = name, daemon, arguments
        self.words = [words] if isinstance(words, str) else words
        self.at_end, self.poke, self.environment = at_end, poke, environment
        self.code, self.refuse, self.files, self.prepare, self.preexec = code, refuse, dict(files), prepare, preexec

    def run(self, base):
        place = os.path.join(base, self.name)
        os.makedirs(os.path.join(place, "d"))
        for path, text in {"d/hosts": "h1 slots=1\n", **self.files}.items():
            path = os.path.join(place, path)
            if text is None:
                os.makedirs(path)
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
        if self.prepare:
            self.prepare(place)
        arguments = [word.replace("@", place + "/d") for word in self.arguments]
        environment = dict(os.environ, **(self.environment(place) if self.environment else {}))
        if self.refuse:
            environment.update(LD_PRELOAD=REFUSE, DCS_REFUSE=self.refuse)
        said = os.path.join(place, "said")
        with open(said, "wb") as log:
            program = os.path.join(BIN, self.daemon.replace("@", place + "/d"))
            daemon = subprocess.Popen([program, *arguments], cwd=place, env=environment, stdout=log,
                                      stderr=log, stdin=subprocess.DEVNULL, preexec_fn=self.preexec)
        try:
            self.judge(daemon, said, place)
        finally:
            daemon.kill()
            daemon.wait()

    def judge(self, daemon, said, place):
        def text():
            return open(said, errors="replace").read()

        def complete():
            return all(about(text(), words.replace("@", place + "/d")) for words in self.words)

        if self.poke:
            wait_for(f"{self.name} to serve", lambda: "serving in" in text() or daemon.poll() is not None, timeout=120)
            self.poke(place, daemon, text)
        if self.code is None or self.at_end:
            wait_for(f"{self.name}: {self.words}", lambda: complete() or daemon.poll() is not None, timeout=120)
        if self.at_end:
            self.words.append(self.at_end)
            daemon.terminate()
        if self.code is not None:
            wait_for(f"the end of {self.name}", lambda: daemon.poll() is not None, timeout=120)
        assert complete(), f"{self.name} said\n{text()}and not {self.words}"
        assert self.code is None or daemon.returncode == self.code, f"{self.name}: exit {daemon.returncode}\n{text()}"


def chosen(cases):
    """Those that the command line names; all, if it names none."""
    return [case for case in cases if len(sys.argv) == 1 or case.name in sys.argv[1:]]


def complaints(case, base):
    """Of one case: none, if it said what it should."""
    try:
        case.run(base)
    except (AssertionError, OSError, subprocess.SubprocessError) as error:
        return [f"{case.name}: {error}"]
    return []


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))


def as_nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def mode(path, bits):
    return lambda place: os.chmod(os.path.join(place, path), bits)


SCHEDULER = ("--dir", "@", "--log-level", "info")
SERVER = ("--name", "a", "--dir", "@", "--scheduler", "@/none.sock", "--log-level", "info", "--anonymous-uids", f"{FIRST}-{LAST}")
BACKUP = ("--dir", "@", "--scheduler", "@/none.sock", "--log-level", "info")


def scheduler_cases():
    def case(name, more, words, **options):
        return Case("scheduler_" + name, "dcs_scheduler", SCHEDULER + tuple(more), words, **options)

    return [
        case("manager", [], "cannot service such file", code=None,
             environment=lambda place: {"NOTIFY_SOCKET": place + "/none.sock"}),
        case("manager_name", [], "NOTIFY_SOCKET neither abstract", code=None,
             environment=lambda place: {"NOTIFY_SOCKET": "manager"}),
        case("master", ["--master", "a b"], "--master b` not", code=2),
        case("mirror", ["--mirror", "often"], "dcs_scheduler --mirror lagging", code=2),
        case("few_files", [], ["process 256 files", "raise ulimit -Hn"], code=None, preexec=few_files),
        case("no_loop", [], "no descriptors ulimit", refuse="epoll_create1::EMFILE"),
        case("no_landlock", [], "no scheduler SECURITY.md",
             code=None, refuse="landlock_create_ruleset::ENOSYS"),
        case("no_seccomp", [], "cannot seccomp SECURITY.md", code=None,
             refuse="seccomp::ENOSYS"),
        case("group", ["--group", "daemon"], ["open @ ", "group daemon not permitted"],
             refuse="chmod::EPERM"),
        case("suspect", [], "open @/suspect: Is a directory", files={"d/suspect": None}),
        case("no_room", [], "map @/suspect space left", refuse="posix_fallocate:suspect:ENOSPC"),
        case("attached", [], "open @/attached: Is a directory", files={"d/attached": None}),
        case("replaced", [], ["epoch 2, here 1", "new scheduler Keep @ aside", "remove @/attached"], code=4,
             files={"d/attached": f"ended   \n{2:020}\n{1:020}\n"}),
        case("doubt", [], ["backing store doubt", "scheduler without replying"], refuse="fdatasync:applied.tmp:EIO:1"),
        case("late", [], "backing store delays", at_end="last flush: write", code=0,
             refuse="pwrite:applied.tmp:ENOSPC:1"),
        case("late_doubt", [], "backing store delays", at_end="backing store doubt",
             refuse="pwrite:applied.tmp:EIO:1:1 fdatasync:applied.tmp:EIO:1"),
        case("contents", [], "the library of contents: ", refuse="openat2:library:EIO openat:library:EIO"),
        case("keeper", [], "prctl PR_SET_DUMPABLE: Operation not permitted", refuse="prctl:=4=:EPERM", code=None),
        case("addresses", [], "check 8 addresses", code=2, files={"d/hosts": "a check=a,b,c,d,e,f,g,h,i\n"}),
        case("share", [], "stored_share 100 no", code=2,
             files={"d/policy": "stored_share 101\n"}),
        case("grains", [], "sessions_per_user 0 no", code=2,
             files={"d/policy": "sessions_per_user x\n"}),
    ]


def server_cases():
    def case(name, more, words, **options):
        return Case("server_" + name, "dcs_grainserver", SERVER + tuple(more), words, **options)

    far = "grains accounts cannot"
    return [
        case("root", ["--run-as", "users"], "--run-as ordinary account",
             code=2, preexec=as_nobody),
        case("cgroups", ["--cgroups", "some"], "--cgroups some: auto or none", code=2),
        case("network", ["--grain-network", "some"], "--grain-network some: yes or none", code=2),
        case("launcher", ["--launcher", "nobody"], "--launcher nobody: self or service", code=2),
        case("no_launcher", ["--launcher", "service"], "--launcher service none",
             code=None),
        case("accounts", ["--accounts", "a,,b"], "--accounts separated none", code=2),
        case("writable", ["--writable", "here"], "--writable absolute separated", code=2),
        case("backup", ["--backup", "h:7002"], "--backup HOST:PORT --scheduler"),
        case("closed", ["--run-as", "users"], [far, "closed others chmod"],
             prepare=mode("", 0o700)),
        case("open", ["--run-as", "users"], ["written replace trusts"],
             prepare=mode("", 0o777)),
        case("foreign", [], "@/grains not @/grains/b,ann,1,1,1",
             files={"d/grains/b,ann,1,1,1": None}),
        case("confine", ["--confine", "files"], ["cannot confine grains", "--confine auto supports"],
             refuse="landlock_create_ruleset::ENOSYS"),
    ]


def backup_cases():
    def case(name, more, words, **options):
        return Case("backup_" + name, "dcs_backupd", BACKUP + tuple(more), words, **options)

    return [
        Case("backup_scheduler", "dcs_backupd", ("--dir", "@"), "dcs_backupd --scheduler HOST:PORT", code=2),
        case("name", [], "cannot generate store Input/output", refuse="getrandom::EIO"),
        case("full", [], "cannot name the store: ", refuse="pwrite:/turns/journal:ENOSPC:1"),
        case("doubt", [], ["backup's store doubt", "backup without replying restart recovers"], refuse="fdatasync:applied.tmp:EIO:1"),
        case("late", [], "backup's store postpones", at_end="last flush: write", code=0,
             refuse="pwrite:applied.tmp:ENOSPC:1"),
        case("late_doubt", [], "backup's store postpones", at_end="backup's store doubt",
             refuse="pwrite:applied.tmp:EIO:1:1 fdatasync:applied.tmp:EIO:1"),
        case("no_loop", [], "no descriptors ulimit", refuse="epoll_create1::EMFILE"),
        case("one_loop", [], "no descriptors ulimit",
             refuse="epoll_create1::EMFILE:2"),  # a loop has two of them
        case("no_landlock", [], "kernel no Landlock backup account's", code=None,
             refuse="landlock_create_ruleset::ENOSYS"),
        case("no_seccomp", [], "kernel cannot seccomp", code=None, refuse="seccomp::ENOSYS"),
        case("members", [], "@/members damaged scheduler", files={"d/members": "h1 x\n"}),
        case("epoch", [], "@/epoch damaged promoted", files={"d/epoch": "x\n"}),
        case("mirror", [], "make directory @/mirror Read-only", refuse="mkdir:/mirror:EROFS"),
        case("nothing", ["--promote", "@/state"], "dcs_backupd no complete", code=4),
    ]


def main():
    if not os.path.exists(REFUSE) or os.geteuid() != 0:
        print("it needs root, and programs without sanitizers")
        return 77
    cases = chosen(scheduler_cases() + server_cases() + backup_cases())
    base = tempfile.mkdtemp(prefix="dcs-words-", dir="/var/tmp")
    os.chmod(base, 0o755)
    wrong = [complaint for case in cases for complaint in complaints(case, base)]
    shutil.rmtree(base, ignore_errors=True)
    print("\n".join(wrong) if wrong else f"{len(cases)} starts said what was wrong")
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
