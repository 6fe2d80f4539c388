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

from pool import BIN, wait_for

REFUSE = os.path.join(os.path.dirname(BIN), "tests", "librefuse.so")
NOBODY = pwd.getpwnam("nobody").pw_uid


class Case:
    """One start. `words`: what is said on standard error, each a part of it; `code`: the exit code, or None if it serves;
    `at_end`: what is said besides when it is told to stop, with that exit code; `poke`: what is done to it when it serves,
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
            return all(words.replace("@", place + "/d") in text() for words in self.words)

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
SERVER = ("--name", "a", "--dir", "@", "--scheduler", "@/none.sock", "--log-level", "info")
BACKUP = ("--dir", "@", "--scheduler", "@/none.sock", "--log-level", "info")


def scheduler_cases():
    def case(name, more, words, **options):
        return Case("scheduler_" + name, "dcs_scheduler", SCHEDULER + tuple(more), words, **options)

    return [
        case("manager", [], "cannot reach the service manager: No such file or directory", code=None,
             environment=lambda place: {"NOTIFY_SOCKET": place + "/none.sock"}),
        case("manager_name", [], "NOTIFY_SOCKET is neither a path nor an abstract name", code=None,
             environment=lambda place: {"NOTIFY_SOCKET": "manager"}),
        case("master", ["--master", "a b"], "--master: `a b` is not a login name", code=2),
        case("mirror", ["--mirror", "often"], "dcs_scheduler: --mirror often: sync, lagging or off", code=2),
        case("few_files", [], ["this process may open 256 files", "raise ulimit -Hn"], code=None, preexec=few_files),
        case("no_loop", [], "no descriptors left for an event loop: raise ulimit -n", refuse="epoll_create1::EMFILE"),
        case("no_landlock", [], "this kernel has no Landlock, so the scheduler keeps its account's rights to files; see SECURITY.md",
             code=None, refuse="landlock_create_ruleset::ENOSYS"),
        case("no_seccomp", [], "this kernel cannot filter system calls (seccomp); see SECURITY.md", code=None,
             refuse="seccomp::ENOSYS"),
        case("group", ["--group", "daemon"], ["opening @/", "to the group daemon: Operation not permitted"],
             refuse="chmod::EPERM"),
        case("suspect", [], "opening @/suspect: Is a directory", files={"d/suspect": None}),
        case("no_room", [], "mapping @/suspect: No space left on device", refuse="posix_fallocate:suspect:ENOSPC"),
        case("attached", [], "opening @/attached: Is a directory", files={"d/attached": None}),
        case("doubt", [], ["the backing store is in doubt: sync", "; the scheduler ends without replying: restart it, and it recovers"], refuse="fdatasync:applied.tmp:EIO:1"),
        case("late", [], "the backing store delays its syncs: write", at_end="last flush: write", code=0,
             refuse="pwrite:applied.tmp:ENOSPC:1"),
        case("late_doubt", [], "the backing store delays its syncs: write", at_end="the backing store is in doubt: sync",
             refuse="pwrite:applied.tmp:EIO:1:1 fdatasync:applied.tmp:EIO:1"),
        case("contents", [], "the library of contents: ", refuse="openat2:library:EIO openat:library:EIO"),
        case("keeper", [], "prctl PR_SET_DUMPABLE: Operation not permitted", refuse="prctl:=4=:EPERM", code=None),
        case("addresses", [], "check has more than 8 addresses", files={"d/hosts": "a check=a,b,c,d,e,f,g,h,i\n"}),
        case("share", [], "stored_share must be a percentage from 0 to 100; 0 means no limit",
             files={"d/policy": "stored_share 101\n"}),
        case("grains", [], "sessions_per_user must be a number; 0 means no limit",
             files={"d/policy": "sessions_per_user x\n"}),
    ]


def server_cases():
    def case(name, more, words, **options):
        return Case("server_" + name, "dcs_grainserver", SERVER + tuple(more), words, **options)

    far = "grains under accounts of their own cannot reach"
    return [
        case("root", ["--run-as", "users"], "--run-as users needs root; an ordinary user can run grains only under their own account",
             code=2, preexec=as_nobody),
        case("cgroups", ["--cgroups", "some"], "--cgroups some: auto or none", code=2),
        case("network", ["--grain-network", "some"], "--grain-network some: yes or none", code=2),
        case("launcher", ["--launcher", "nobody"], "--launcher nobody: self or service", code=2),
        case("no_launcher", ["--launcher", "service"], "and with --launcher service this server starts none: see its unit",
             code=None),
        case("accounts", ["--accounts", "a,,b"], "--accounts must be login names separated by commas, or none", code=2),
        case("writable", ["--writable", "here"], "--writable must be a list of absolute paths separated by commas", code=2),
        case("backup", ["--backup", "h:7002"], "--backup HOST:PORT requires a scheduler at HOST:PORT, but --scheduler is a socket"),
        case("closed", ["--run-as", "users"], [far, "is closed to others: chmod o+x "],
             prepare=mode("", 0o700)),
        case("open", ["--run-as", "users"], ["can be written by other users, who could replace files that root trusts. Choose another"],
             prepare=mode("", 0o777)),
        case("foreign", [], "@/grains has grains of server b, not of a; start that server here, or remove @/grains/b,ann,1,1,1",
             files={"d/grains/b,ann,1,1,1": None}),
        case("confine", ["--confine", "files"], ["this host cannot confine grains by", "--confine auto uses what the host supports"],
             refuse="landlock_create_ruleset::ENOSYS"),
    ]


def backup_cases():
    def case(name, more, words, **options):
        return Case("backup_" + name, "dcs_backupd", BACKUP + tuple(more), words, **options)

    return [
        Case("backup_scheduler", "dcs_backupd", ("--dir", "@"), "dcs_backupd: --scheduler is missing: the scheduler's socket, "
             "or its TLS port HOST:PORT", code=2),
        case("name", [], "cannot generate a name for the store: Input/output error", refuse="getrandom::EIO"),
        case("full", [], "cannot name the store: ", refuse="pwrite:/turns/journal:ENOSPC:1"),
        case("doubt", [], ["the backup's store is in doubt: sync", "; the backup ends without replying: restart it, and it recovers"], refuse="fdatasync:applied.tmp:EIO:1"),
        case("late", [], "the backup's store postpones its syncs: write", at_end="last flush: write", code=0,
             refuse="pwrite:applied.tmp:ENOSPC:1"),
        case("late_doubt", [], "the backup's store postpones its syncs: write", at_end="the backup's store is in doubt: sync",
             refuse="pwrite:applied.tmp:EIO:1:1 fdatasync:applied.tmp:EIO:1"),
        case("no_loop", [], "no descriptors left for an event loop: raise ulimit -n", refuse="epoll_create1::EMFILE"),
        case("one_loop", [], "no descriptors left for an event loop: raise ulimit -n",
             refuse="epoll_create1::EMFILE:2"),  # a loop has two of them
        case("no_landlock", [], "this kernel has no Landlock, so the backup keeps its account's rights to files", code=None,
             refuse="landlock_create_ruleset::ENOSYS"),
        case("no_seccomp", [], "this kernel does not filter system calls (seccomp)", code=None, refuse="seccomp::ENOSYS"),
        case("members", [], "@/members is damaged; remove it, the scheduler will send it again", files={"d/members": "h1 x\n"}),
        case("epoch", [], "@/epoch is damaged: it records the epoch to which the copy here was promoted", files={"d/epoch": "x\n"}),
        case("mirror", [], "making the directory @/mirror: Read-only file system", refuse="mkdir:/mirror:EROFS"),
        case("nothing", ["--promote", "@/state"], "dcs_backupd: there is no complete copy here", code=4),
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
