"""The hostile environments, a line each: name, what is wanted (None: the program runs, else words of the message), how the
world is made, how dcs_begin is started, and what else is to hold."""
import fcntl
import itertools
import os
import resource
import shutil
import signal
import subprocess
import time

from begin_world import DCS_GROUP, LIBC, PORT, REPORT_FD, USERS, Hole, Stranger, shared

CASES = []
ROOT_NEEDED = "mode 2755"
KILLED = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)


def case(name, want=None, world=None, check=None, judge=None, **start):
    """world(w) may return what undoes it; start values that are functions of the world are called."""
    CASES.append({"name": name, "want": want, "world": world, "check": check, "judge": judge or {}, "start": start})


def environment(name, want=None, **variables):
    case("environment: " + name, want, env=lambda w: {k: v(w) if callable(v) else v for k, v in variables.items()})


def library(w):
    return os.path.join(w.base, "evil.so")


def evil_file(w):
    return os.path.join(w.base, "evil.cnf")


def close_descriptors(which):
    return lambda: [os.close(fd) for fd in which]


def all_signals(how):
    def set_them():
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            try:
                signal.signal(number, how)
            except (OSError, ValueError):
                pass
    return set_them


# --- descriptors
for n in (1, 2, 3):
    for closed in itertools.combinations(range(3), n):
        case(f"closed descriptors {closed}", after=close_descriptors(closed), judge={"stds": False})
def many_descriptors():
    for fd in range(100, 160):
        os.dup2(0, fd)
case("60 descriptors of the user's", after=many_descriptors, judge={"own_fds": False},
     check=lambda o: len(o.all("fd")) > 60 or "the program lost descriptors")
def only_descriptors():
    while True:
        try:
            fcntl.fcntl(0, fcntl.F_DUPFD, 3)
        except OSError:
            break
case("every descriptor taken", ("Too many open files", "loading shared"), limits=[(resource.RLIMIT_NOFILE, 100, 100)],
     after=lambda: (resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)), only_descriptors()))
def fifo_input():
    os.mkfifo("pipe")
    os.dup2(os.open("pipe", os.O_RDWR), 0)
case("standard input is a FIFO", after=fifo_input, judge={"own_fds": False})
def broken_pipe():
    ends = os.pipe()
    os.dup2(ends[1], 1)
    os.dup2(ends[1], 2)
    os.close(ends[0])
    os.close(ends[1])
case("output is a broken pipe", after=broken_pipe)
case("output is a broken pipe, and there is something to say", "", after=broken_pipe, argv=["dcs_begin", "/nonexistent"],
     judge={"killed": [signal.SIGPIPE]})
def full_device():
    full = os.open("/dev/full", os.O_WRONLY)
    for fd in (1, 2):
        os.dup2(full, fd)
case("output is full", "", after=full_device, argv=["dcs_begin", "/nonexistent"])

# --- limits: first both at nothing, then the soft one alone
for name in sorted(n for n in dir(resource) if n.startswith("RLIMIT_")):
    which = getattr(resource, name)
    # Under these the kernel or the loader gives up before main().
    fatal = which in (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_STACK, resource.RLIMIT_NOFILE,
                      resource.RLIMIT_CPU)
    want = {resource.RLIMIT_FSIZE: "cannot keep the credentials: File too large", resource.RLIMIT_NPROC: None,
            resource.RLIMIT_NOFILE: ("open shared object", "Too many open files", "Invalid argument")}.get(which)
    case(f"{name} 0", want, limits=[(which, 0, 0)], judge={"killed": KILLED, "loader": fatal, "limits": False})
for which in (resource.RLIMIT_FSIZE, resource.RLIMIT_CPU, resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK):
    hard = resource.RLIM_INFINITY if which != resource.RLIMIT_MEMLOCK else resource.getrlimit(which)[1]
    case(f"soft limit {which} 0", limits=[(which, 0 if which != resource.RLIMIT_CPU else 600, hard)])
case("soft limit of descriptors 12", limits=[(resource.RLIMIT_NOFILE, 12, resource.getrlimit(resource.RLIMIT_NOFILE)[1])],
     judge={"own_fds": False})

# --- signals
case("SIGCHLD ignored", after=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN), judge={"ignored": 1 << 16})
case("all signals ignored", after=all_signals(signal.SIG_IGN), judge={"ignored": -1})
case("all signals blocked", after=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()), judge={"blocked": -1})
def pending():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGQUIT])
    for number in (signal.SIGTERM, signal.SIGQUIT):
        os.kill(os.getpid(), number)
case("signals pending", after=pending, judge={"blocked": (1 << 14) | (1 << 2)})
case("an alarm of the user's", after=lambda: signal.setitimer(signal.ITIMER_REAL, 500), judge={"timer": True})
case("SIGALRM blocked", after=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]), judge={"blocked": 1 << 13})
case("SIGALRM blocked and pending", after=lambda: (
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]), os.kill(os.getpid(), signal.SIGALRM)),
     want="looking up the scheduler's address")

# --- arguments
usage = "usage: dcs_begin"
case("no arguments, not even a name", usage, argv=[])
case("a name only", usage, argv=["dcs_begin"])
case("an empty name", argv=["", "{witness}", str(REPORT_FD)])
case("a name with an escape", usage, argv=["\x1b[2J\n"])
case("a name of 100000 letters", argv=["x" * 100000, "{witness}", str(REPORT_FD)])
case("20000 arguments", argv=["dcs_begin", "{witness}", str(REPORT_FD)] + ["y"] * 20000)
case("options that it does not have", usage, argv=["dcs_begin", "--config=/etc/shadow", "x"])
case("a program that is not there", "/nonexistent No such file", argv=["dcs_begin", "/nonexistent"])
case("a program that only root may read", "Permission denied", argv=["dcs_begin", "/etc/dcs/pki/key.pem"])

# --- environment
environment("LD_PRELOAD", LD_PRELOAD=library)
environment("LD_AUDIT", LD_AUDIT=library)
environment("LD_LIBRARY_PATH", LD_LIBRARY_PATH=lambda w: w.base)
environment("LD_DEBUG", LD_DEBUG="all", LD_DEBUG_OUTPUT=lambda w: w.base + "/home-61001/debug")
environment("LD_PROFILE", LD_PROFILE="libcrypto.so.3", LD_PROFILE_OUTPUT=lambda w: w.base)
environment("LD_ORIGIN_PATH, LD_BIND_NOW, LD_SHOW_AUXV", LD_ORIGIN_PATH=lambda w: w.base, LD_SHOW_AUXV="1", LD_BIND_NOW="1")
environment("GLIBC_TUNABLES", GLIBC_TUNABLES="glibc.malloc.mxfast=glibc.malloc.mxfast=A" + "B" * 2000)
environment("GLIBC_TUNABLES for malloc", GLIBC_TUNABLES="glibc.malloc.check=3:glibc.malloc.perturb=255")
environment("OPENSSL_CONF", OPENSSL_CONF=evil_file)
environment("OPENSSL_CONF is a FIFO", OPENSSL_CONF=lambda w: w.base + "/fifo")
environment("SSL_CERT_FILE and SSL_CERT_DIR", SSL_CERT_FILE="/dev/zero", SSL_CERT_DIR="/")
environment("OPENSSL_MODULES and OPENSSL_ENGINES", OPENSSL_MODULES=lambda w: w.base, OPENSSL_ENGINES=lambda w: w.base)
environment("OPENSSL_ia32cap", OPENSSL_ia32cap="~0x200000200000000")
environment("OPENSSL_MALLOC_FAILURES", OPENSSL_MALLOC_FAILURES="0@99", OPENSSL_MALLOC_FD="2")
environment("SSLKEYLOGFILE", SSLKEYLOGFILE=lambda w: w.base + "/home-61001/keys")
environment("http_proxy", http_proxy="http://127.0.0.1:1", ALL_PROXY="socks5://127.0.0.1:1")
environment("PATH with . in front", PATH=".:/usr/bin")
environment("no PATH", PATH=None)
environment("PATH of 100000 colons", PATH=":" * 100000)
environment("IFS", IFS="/t", ENV="/tmp/x", BASH_ENV="/tmp/x")
environment("TZ", TZ="../../../../proc/self/environ", TZDIR="/proc")
environment("LOCPATH", LOCPATH=lambda w: w.base, LC_ALL="xx_YY", LANGUAGE="../../x", NLSPATH="%N" * 1000)
environment("MALLOC_", MALLOC_CHECK_="3", MALLOC_PERTURB_="165", MALLOC_TRACE=lambda w: w.base + "/home-61001/trace")
environment("GCONV_PATH", GCONV_PATH=lambda w: w.base, CHARSET="EVIL")
environment("name service", HOSTALIASES=evil_file, RES_OPTIONS="timeout:30 attempts:5", LOCALDOMAIN="evil", NIS_PATH="evil",
            RESOLV_HOST_CONF="/etc/shadow", GETCONF_DIR="/tmp")
environment("TMPDIR", TMPDIR="../../etc")
environment("HOME relative", HOME="../../x")
environment("HOME with newlines", HOME="/x\n/y\n\x1b[2J")
environment("HOME of 100000 letters", HOME="/" + "h" * 100000)
environment("no HOME", HOME=None)
environment("XDG_STATE_HOME hostile", XDG_STATE_HOME="/proc/self/fd/../../1/root")
environment("XDG_STATE_HOME a FIFO", XDG_STATE_HOME=lambda w: w.base + "/fifo")
environment("USER and LOGNAME of another user", USER="root", LOGNAME="ben", SUDO_USER="ben", SUDO_UID="61002")
environment("DCS_AUTH_FD of others", DCS_AUTH_FD="0")
environment("DCS_AUTH_FD nonsense", DCS_AUTH_FD="/etc/shadow\n99999999999999999999")
environment("DCS_PATIENCE_S nonsense", DCS_PATIENCE_S="1e99999")
environment("DCS_PATIENCE_S nan", DCS_PATIENCE_S="nan")
environment("DCS_DIR relative", "absolute path", DCS_DIR="etc")
environment("DCS_DIR huge", "absolute path", DCS_DIR="/" + "d" * 100000)
environment("DCS_DIR with escapes", "No such file", DCS_DIR="/x\x1b[2J\ny")
environment("DCS_DIR a link to root's", ("scheduler: ", "Permission denied"), DCS_DIR=lambda w: w.base + "/link")
environment("DCS_DIR a FIFO", "Not a directory", DCS_DIR=lambda w: w.base + "/fifo")
environment("DCS_DIR in /proc", "No such file", DCS_DIR="/proc/self/root/proc/self/cwd")
environment("DCS_DIR empty", DCS_DIR="")
case("environment: none", raw_env=[])
case("environment: 1.9 MiB", raw_env=[b"V%d=" % i + b"v" * 65000 for i in range(29)])
case("environment: 100000 variables", raw_env=[b"V%d=" % i for i in range(100000)])
case("environment: entries without a name or value", raw_env=[b"", b"=", b"NOTHING", b"=x=", b"\xff\xfe", b"A=1", b"A=2"])
case("environment: DCS_AUTH_FD three times", raw_env=[b"DCS_AUTH_FD=5", b"X=1", b"DCS_AUTH_FD=6", b"DCS_AUTH_FD=7"])

# --- where, and how
case("folder removed", before=lambda: os.rmdir(os.getcwd()))
case("folder closed", after=lambda: os.chmod(".", 0))
def own_etc():
    os.makedirs("etc/dcs/pki")
    for name in ("pool.conf", "pki/key.pem"):
        open("etc/dcs/" + name, "w").write("scheduler 127.0.0.1:9\n")
case("a folder with an etc of the user's", after=own_etc)
case("umask 0777", after=lambda: os.umask(0o777), check=lambda o: o["Umask"] == "0777" or "the umask is another")
case("umask 0", after=lambda: os.umask(0), check=lambda o: o["Umask"] == "0000" or "the umask is another")
case("nice 19", after=lambda: os.nice(19))
case("parent death signal", after=lambda: LIBC.prctl(1, signal.SIGKILL, 0, 0, 0))
case("no new privileges", ROOT_NEEDED, after=lambda: LIBC.prctl(38, 1, 0, 0, 0))
case("a subreaper, not dumpable", after=lambda: (LIBC.prctl(36, 1, 0, 0, 0), LIBC.prctl(4, 0, 0, 0, 0)))
case("traced by the user", ROOT_NEEDED, program="/usr/bin/strace",
     argv=["strace", "-f", "-o", "/dev/null", "{program}", "{witness}", str(REPORT_FD)])
case("debugged by the user", ROOT_NEEDED, program="/usr/bin/setarch",
     argv=["setarch", "-R", "strace", "-qqq", "-D", "-o", "/dev/null", "{program}", "{witness}", str(REPORT_FD)])
case("a personality without random addresses", program="/usr/bin/setarch",
     argv=["setarch", "-R", "-X", "{program}", "{witness}", str(REPORT_FD)])
case("in a user namespace", "directory one above", program="/usr/bin/unshare",
     argv=["unshare", "-Ur", "{program}", "{witness}", str(REPORT_FD)])
case("by a symbolic link", program=lambda w: w.base + "/home-61001/linked",
     world=lambda w: os.symlink(w.program, w.base + "/home-61001/linked"))
case("by a hard link", program=lambda w: w.base + "/home-61001/hard",
     world=lambda w: os.link(w.program, w.base + "/home-61001/hard"))
def script(w):
    w.write(w.base + "/script", f"#!{w.program} --help\n", 0o755)
case("as an interpreter", usage, program=lambda w: w.base + "/script", world=script, argv=["script"])
def copied(w):
    shutil.copy(w.program, w.base + "/copy")
    os.chown(w.base + "/copy", USERS["ann"], USERS["ann"])
    os.chmod(w.base + "/copy", 0o4755)
case("a copy that is setuid for its user", ROOT_NEEDED, world=copied, program=lambda w: w.base + "/copy")
def without_suid(w):
    subprocess.run(["mount", "--bind", w.base + "/bin", w.base + "/bin"], check=True)
    subprocess.run(["mount", "-o", "remount,bind,nosuid", w.base + "/bin"], check=True)
    return lambda: subprocess.run(["umount", w.base + "/bin"], check=True)
case("a file system without setuid", ROOT_NEEDED, world=without_suid)
def few_processes(w):
    group = f"/sys/fs/cgroup/pids/dcs-begin-{os.getpid()}"
    if not os.path.isdir("/sys/fs/cgroup/pids"):
        return None
    os.mkdir(group)
    open(group + "/pids.max", "w").write("1")
    w.control_group = group
    return lambda: os.rmdir(group)
def join_few():
    path = f"/sys/fs/cgroup/pids/dcs-begin-{os.getppid()}"
    if os.path.isdir(path):
        open(path + "/cgroup.procs", "w").write(str(os.getpid()))
case("a control group for one process", world=few_processes, before=join_few)

# --- who
def membership(**how):
    def make(w):
        w.users(**how)
        return w.users
    return make
case("not of the group", "eve not member group dcs", user="eve")
case("of the group in the file only", groups=[], judge={"groups": []})
case("of the group until a moment ago", "ann not member group dcs", world=membership(members=("ben",)))
case("of a group that lost its name", "no group dcs", world=membership(group="dcs2"))
case("an account that is gone", "no login name", world=membership(names={"ben": 61002}))
case("an account of another name now", world=membership(names={"anna": 61001}, members=("anna",)),
     check=lambda o: "asked anna witness" in o.heard or f"asked as {o.heard!r}")
case("an account whose name cannot be used", "login name cannot used", user="od+d")
case("a user who gave a group up", groups=[DCS_GROUP], judge={"groups": [DCS_GROUP]})
case("root himself", uid=0, user="root", groups=[0], judge={"groups": [0], "uid": 0})


# --- what root's files say
def conf(text, mode=0o644):
    def make(w):
        w.configure(text)
        os.chmod("/etc/dcs/pool.conf", mode)
        return w.configure
    return make
def change(function, name="/etc/dcs/pki/key.pem"):
    def make(w):
        function(name)
        return w.configure
    return make
def replace(make_new):
    return lambda name: (os.rename(name, name + ".old"), make_new(name))
GOOD = f"scheduler 127.0.0.1:{PORT}\n"
case("no pool.conf", "`dcs up` makes", world=change(os.unlink, "/etc/dcs/pool.conf"))
case("pool.conf with nonsense", "line 2", world=conf(GOOD + "user root\n"))
case("pool.conf empty", "names no scheduler", world=conf("# nothing\n"))
case("pool.conf with a relative path", "line 2", world=conf(GOOD + "pki pki"))
case("pool.conf without a port", "HOST:PORT is required", world=conf("scheduler here\n"))
case("pool.conf with two schedulers", "line 2", world=conf(GOOD + GOOD))
case("pool.conf too long", "too long", world=conf(GOOD + "#" * 9000))
case("pool.conf without a pki", world=conf(GOOD))
case("pool.conf writable", "users other root can write", world=conf(GOOD, 0o666))
case("pool.conf of the user", "users other root can write", world=change(lambda n: os.chown(n, 61001, 0), "/etc/dcs/pool.conf"))
case("pool.conf a link", "symbolic links", world=change(replace(lambda n: os.symlink(n + ".old", n)), "/etc/dcs/pool.conf"))
case("pool.conf a FIFO", "not regular file", world=change(replace(lambda n: os.mkfifo(n, 0o644)), "/etc/dcs/pool.conf"))
case("its folder writable", "directory one above", world=change(lambda n: os.chmod(n, 0o777), "/etc/dcs"))
case("its folder the user's", "directory one above", world=change(lambda n: os.chown(n, 61001, 0), "/etc/dcs"))
case("pool.conf names a directory", "No such file", world=conf("dir /nonexistent\n"))
case("key readable by others", "users can read key", world=change(lambda n: os.chmod(n, 0o644)))
case("key readable by another group", "users can read key",
     world=change(lambda n: (os.chown(n, 0, 61777), os.chmod(n, 0o640))))
case("key of the user", "users other root can write", world=change(lambda n: os.chown(n, 61001, 0)))
case("key a link", "symbolic links", world=change(replace(lambda n: os.symlink(n + ".old", n))))
case("key of two names", "regular file one link", world=change(lambda n: os.link(n, n + ".2")))
case("key a FIFO", "not regular file", world=change(replace(lambda n: (os.mkfifo(n), shared(n)))))
case("joined before the group was made", "root repeat dcs host join",
     world=change(lambda n: (os.chown(n, 0, 0), os.chmod(n, 0o600)), "/etc/dcs/pki/certificate.pem"))
case("no key", "No such file", world=change(os.unlink))
def foreign_text(name):
    with open(name, "w") as file:
        file.write("root:$6$a-secret-of-root-that-nobody-may-see:1:0:::::\n" * 3)
case("key that is none", "key.pem does not contain private key", world=change(foreign_text))
case("certificate that is none", "certificate.pem does not contain", world=change(foreign_text, "/etc/dcs/pki/certificate.pem"))
case("key of another certificate", "not key", world=lambda w: (
    shutil.copy(w.base + "/other/key.pem", "/etc/dcs/pki/key.pem"), shared("/etc/dcs/pki/key.pem"), w.configure)[2])
def identity(name, authority="authority"):
    def make(w):
        w.configure(identity=name)
        shutil.copy(f"{w.base}/{authority}/authority.pem", "/etc/dcs/pki/authority.pem")
        shared("/etc/dcs/pki/authority.pem")
        return w.configure
    return make
case("certificate that has expired", "host's certificate expired", world=identity("old"))
case("certificate of a grain server", "host's certificate another role", world=identity("server"))
case("certificate of another pool", "host's certificate issued another", world=identity("other"))
case("pki below a folder of the user's", "directory one above", world=lambda w: (
    os.mkdir(w.base + "/home-61001/pki"), w.configure(GOOD + f"pki {w.base}/home-61001/pki\n"), w.configure)[2])
case("a private pool of the user's comes first", "no scheduler answers", env=lambda w: {"DCS_PATIENCE_S": "0"},
     after=lambda: os.makedirs(os.environ["HOME_OF_TEST"] + "/.local/state/dcs/scheduler", exist_ok=True), user="ben")


# --- who answers
def peer(*how):
    return lambda w: (w.peer(*how), w.peer)[1]
def stranger(talk):
    return lambda w: Stranger(w, talk).close
def junk(text, pause):  # byte after byte; what is not read, or not waited for, would be lost with the connection
    def talk(peer):
        peer.recv(1 << 16)
        for i in range(len(text)):
            peer.sendall(text[i:i + 1])
            time.sleep(pause)
        if text:
            peer.recv(1 << 16)
    return stranger(talk)
hurry = {"env": lambda w: {"DCS_PATIENCE_S": "0.1"}}
case("peer: hangs up again and again", "waiting for the scheduler: ", world=junk(b"", 0), env=lambda w: {"DCS_PATIENCE_S": "6"})
case("peer: of another role", "not a scheduler's", world=peer("client"), **hurry)
case("peer: of another pool", "issued another authority", world=peer("serve", "foreign"), **hurry)
case("peer: refuses", "scheduler refuses not today", world=peer("refuse"), **hurry)
case("peer: refuses with control characters", "refuses [2J go away", world=peer("rude"), **hurry)
case("peer: certifies another key", "certificate another key", world=peer("other-key"), **hurry)
case("peer: sends half a token", "no token no certificate", world=peer("short"), **hurry)
case("peer: says nothing", "does not answer", world=peer("silent"), **hurry)
case("peer: nonsense", "does not speak TLS", world=junk(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 10, 0), **hurry)
case("peer: hangs up", "closed the connection", world=junk(b"", 0), **hurry)
case("peer: a byte now and then", "does not answer", world=junk(b"\x16\x03\x03\x40\x00" + b"x" * 16000, 0.05), **hurry)
case("peer: nobody", "no scheduler answers", world=lambda w: ([w.end_peer(n) for n in list(w.peers)], None)[1], **hurry)
def behind_a_hole(first, scheduler):  # which has half of the time
    def make(w):
        hole = Hole(first)
        w.peer()
        w.write("/etc/hosts", "::1 twice\n127.0.0.1 twice\n")
        w.configure(f"scheduler {scheduler}\n")
        return lambda: (hole.close(), w.configure())
    return make
patient = {"env": lambda w: {"DCS_PATIENCE_S": "16"}}
case("peer: the first of two does not answer", world=behind_a_hole("127.0.0.2", f"127.0.0.2:{PORT},127.0.0.1:{PORT}"), **patient)
case("peer: the first address of a name does not answer", world=behind_a_hole("::1", f"twice:{PORT}"), **patient)
case("peer: an unknown name", "address not known", world=conf("scheduler no.such.host.invalid:7001\n"), **hurry)
