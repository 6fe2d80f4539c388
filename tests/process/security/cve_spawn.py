#!/usr/bin/python3
"""What went wrong in other systems where they started programs of users, and does not here: one test each, against a real
scheduler and a grain server that is root. docs/SECURITY.md lists them. Names of users come from an /etc/passwd of this test,
in a mount namespace of its own."""
import ctypes
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time

from hurry import Hurry
from pool import grain_directories, program, wait_for
from users_host import FIRST, LAST, UsersHost, need_root, tool

ANN, EVE = 61001, 61005
NAMES = {ANN: "ann", 61011: "../../../../srv/x", 61012: "-rf", 61013: "u" * 300, 61014: "a b\tc%n%s{}{0}", 61015: ".", EVE: "eve"}
NUMBERS = {"x86_64": (117, 119, 116), "aarch64": (147, 149, 159)}  # setresuid setresgid setgroups


class Names:
    """/etc/passwd and /etc/group as this test wants them, for a peer that asks in this mount namespace."""

    def __init__(self, base):
        self.base = base
        for name in ("passwd", "group"):
            shutil.copy(f"/etc/{name}", f"{base}/{name}")
            subprocess.run(["mount", "--bind", f"{base}/{name}", f"/etc/{name}"], check=True)
        self.plain = {name: open(f"{base}/{name}").read() for name in ("passwd", "group")}
        self.write()

    def write(self, eve=EVE):
        users = {uid: name for uid, name in NAMES.items() if uid != EVE}
        lines = [f"{name}:x:{uid}:{uid}::/nonexistent:/bin/sh\n" for uid, name in users.items()]
        lines.append(f"eve:x:{eve}:{eve}::/nonexistent:/bin/sh\n")
        open(f"{self.base}/passwd", "w").write(self.plain["passwd"] + "".join(lines))
        open(f"{self.base}/group", "w").write(self.plain["group"] + "more:x:61777:eve\n")


def made_up(text):
    return FIRST <= int(text.split()[0]) <= LAST


def alive(host):
    assert host.server.poll() is None and host.scheduler.poll() is None and host.launcher()
    assert host.run("/bin/echo", "fine", uid=ANN).stdout == b"fine\n"


def answer_instead(number, errno):
    """From now on the kernel answers this call so, without doing anything. 0 says that it was done."""
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | errno), (0x06, 0, 0, 0x7fff0000)]
    program_ = b"".join(struct.pack("HBBI", *line) for line in code)
    buffer = ctypes.create_string_buffer(program_)
    class Fprog(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(22, 2, ctypes.byref(Fprog(len(code), ctypes.addressof(buffer))), 0, 0) != 0:
        os._exit(99)


def cve_2012_3490(base):
    """Condor: what setuid() answered was not looked at. Where an identity call fails, or only says that it was done, the
    program is never executed."""
    calls = NUMBERS.get(os.uname().machine)
    if not calls:
        return print("SKIPPED: numbers of calls of this machine")
    shared = os.path.join(base, "shared-3490")
    os.mkdir(shared)
    os.chmod(shared, 0o1777)
    for number in calls:
        for errno in (1, 0):
            with_it = UsersHost(slots=1)
            with_it.preexec = lambda: (os.setgroups([0, 4]), answer_instead(number, errno))  # groups that are to go
            with with_it as host, Hurry(host):
                grain = subprocess.Popen([program("dcs"), "run", "--", "/bin/sh", "-c", f"id > {shared}/ran"], env=host.env, cwd="/",
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                def words():
                    return "account of the grain" in host.text("scheduler.log")
                wait_for("the failed start", words)
                grain.kill()
                grain.wait()
            assert not os.listdir(shared), (number, errno, open(f"{shared}/ran").read())


def cve_2009_2084(host, names):
    """Slurm: supplementary groups were not set. The server has some itself; a grain has its user's, exactly."""
    assert "4" in open(f"/proc/{host.server.pid}/status").read().split("Groups:")[1].split("\n")[0].split()
    own = host.confined("id", uid=ANN)["id"].split()
    assert len(own) in (2, 3) and len(set(own)) == 1 and made_up(own[0]), own
    login = host.confined("id", uid=EVE)["id"].split()
    assert login[:2] == [str(EVE)] * 2 and set(login[2:]) == {str(EVE), "61777"}, login


def cve_2010_3380_2021_31215(host, names):
    """Slurm: users' environments in programs of root. No library of theirs is ever loaded by uid 0."""
    folder = os.path.join(host.base, "witness")
    os.mkdir(folder)
    os.chmod(folder, 0o1777)
    library = shutil.copy2(tool("libpreload_witness.so"), host.tools)
    os.chmod(library, 0o755)
    hostile = {"LD_PRELOAD": library, "LD_AUDIT": library, "LD_LIBRARY_PATH": f".:{host.tools}", "GCONV_PATH": ".", "DCS_WITNESS": folder,
               "BASH_ENV": f"{folder}/env", "ENV": f"{folder}/env", "IFS": "/", "PATH": ".:/usr/bin:/bin", "LOCPATH": ".",
               "GLIBC_TUNABLES": "glibc.malloc.mxfast=99999", "MALLOC_CHECK_": "3", "DCS_GRAIN_DIR": "/", "TMPDIR": folder}
    result = host.run("/usr/bin/env", uid=ANN, env=hostile, options=("--file", "x=/etc/hostname", "--output", f"none={folder}/back"),
                      check=False)
    seen = dict(line.split("=", 1) for line in result.stdout.decode().splitlines() if "=" in line)
    assert seen["LD_PRELOAD"] == library and seen["IFS"] == "/", result  # it is the grain's, whole
    assert seen["DCS_GRAIN_DIR"].startswith(host.server_dir), seen
    wait_for("the end", lambda: not grain_directories(host.server_dir))
    users = {int(name[4:]) for name in os.listdir(folder) if name.startswith("uid-")}
    assert 0 not in users and any(FIRST <= uid <= LAST for uid in users), users
    for pid in (host.server.pid, host.launcher(), host.scheduler.pid):
        assert library.encode() not in open(f"/proc/{pid}/environ", "rb").read() + open(f"/proc/{pid}/maps", "rb").read()


def cve_2018_10995(host, names):
    """Slurm: names of users and groups mishandled. Whatever a user is called, his grains have an account of their own and
    no file of that user lies where it should not; and a login whose uid changes meanwhile makes no user root."""
    seen = {}
    for uid in (ANN, 61011, 61012, 61013, 61014, 61015, 61099):
        result = host.run("/usr/bin/id", "-u", uid=uid, check=False)
        if result.returncode == 0:
            assert made_up(result.stdout.decode()), (uid, result.stdout)
            assert result.stdout not in seen.values(), (uid, seen)
            seen[uid] = result.stdout
        else:
            assert uid != ANN and len(result.stderr) > 20, result
    assert not os.path.exists("/srv/x"), seen
    shared = os.path.join(host.base, "shared")
    os.mkdir(shared)
    os.chmod(shared, 0o1777)
    for uid in (0, 1):
        host.dcs("host", "drain", "h1")
        names.write()
        path = os.path.join(shared, f"as-{uid}")
        waiting = subprocess.Popen([program("dcs"), "run", "--", "/bin/sh", "-c", f"id -u > {path}.new; mv {path}.new {path}"],
                                   env=host.env, cwd="/", preexec_fn=lambda: os.setresuid(EVE, EVE, EVE), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("the grain", lambda: any(s["user"] == "eve" and s["ready"] for s in host.json("session", "ls", "all")["sessions"]))
        names.write(eve=uid)
        host.dcs("host", "undrain", "h1")
        wait_for("the grain's word", lambda: os.path.exists(path))
        names.write()
        assert made_up(open(path).read()), (uid, open(path).read())
        waiting.kill()
        waiting.wait()
        wait_for("its end", lambda: not host.grain_processes())


def cve_2021_25311(host, names):
    """HTCondor: a path led out of the directory that it was meant for. Names of files do not; a program's path may, and has
    its user's rights there."""
    for name in ("../x", "/x", "a/../../x", ".", "a//b"):
        refused = host.run("/bin/true", uid=ANN, options=("--file", f"{name}=/etc/hostname"), check=False)
        assert refused.returncode != 0 and not os.path.exists("/x"), (name, refused)
    closed = os.path.join(host.base, "closed")
    os.mkdir(closed, 0o700)
    shutil.copy2("/usr/bin/id", f"{closed}/id")
    refused = host.run(f"{host.tools}/../closed/id", uid=ANN, check=False, options=("--attempts", "1"))
    nothing = host.run(f"{host.tools}/../closed/none", uid=ANN, check=False, options=("--attempts", "1"))
    def words(result):
        return result.stderr.decode().replace("closed/id", "closed/?").replace("closed/none", "closed/?")
    told = words(refused), words(nothing)
    assert refused.returncode != 0 and nothing.returncode != 0, told
    assert not any("no such" in t.lower() or "not executable for this user" in t for t in told), told  # what is there stays unsaid
    out = host.run(f"{host.tools}/../../../../../../../../usr/bin/id", "-u", uid=ANN).stdout.decode()
    assert made_up(out), out


def cve_2026_65109(host, names):
    """Slurm: rm outside of the spool. What a grain leaves behind goes, and nothing that it points to."""
    victim = os.path.join(host.base, "precious")
    os.makedirs(f"{victim}/below")
    for name in ("a", "below/b"):
        open(f"{victim}/{name}", "w").write("kept")
    before = sorted(os.walk(victim)), os.stat(victim).st_mode
    script = (f"ln -s {victim} v; mkdir -p deep/er; ln -s {victim}/below deep/er/v; mkdir closed; ln -s {victim} closed/v; "
              "chmod 0 closed; mkdir 'a\nb'; ln -s ../../../../.. up; d=.; i=0; while [ $i -lt 150 ]; do d=$d/n; i=$((i+1)); done; "
              "mkdir -p $d; mkfifo f; cd ..; rm -rf tmp; ln -s /etc tmp; echo > announce")
    host.run("/bin/sh", "-c", script, uid=ANN, options=("--file", "x=/etc/hostname"))
    wait_for("its directory to go", lambda: not grain_directories(host.server_dir))
    assert (sorted(os.walk(victim)), os.stat(victim).st_mode) == before
    assert open(f"{victim}/a").read() == open(f"{victim}/below/b").read() == "kept"


def cve_2011_4930(host, names):
    """Condor: users' words as formats. They come out as they went in."""
    words = "%n%s%p{}{0}{:x}"
    path = os.path.join(host.tools, words)
    open(path, "w").write(f"#!/nowhere/{words}\n")
    os.chmod(path, 0o755)
    for command in ([path], ["/bin/sh", "-c", "exit 3", words], ["/bin/echo", words]):
        host.run(*command, uid=ANN, check=False, options=("--attempts", "1"))
    assert host.run("/bin/echo", words, uid=ANN).stdout.decode() == words + "\n"
    assert words in host.text("scheduler.log") and words in host.text("server.log")


def cve_2014_8126(host, names):
    """HTCondor: the scheduler executed something with users' data. Ours executes nothing at all."""
    if not shutil.which("strace"):
        return print("SKIPPED: strace is not installed")
    trace = os.path.join(host.base, "trace")
    tracer = subprocess.Popen(["strace", "-qq", "-f", "-e", "trace=execve,execveat,fork,vfork", "-o", trace, "-p", str(host.scheduler.pid)],
                              stderr=subprocess.DEVNULL)
    try:
        wait_for("strace", lambda: f"TracerPid:\t{tracer.pid}" in open(f"/proc/{host.scheduler.pid}/status").read())
        cve_2011_4930(host, names)
        host.run("/bin/false", uid=ANN, check=False)
        host.dcs("doctor", check=False)
        host.scheduler.send_signal(signal.SIGHUP)
        alive(host)
    finally:
        tracer.terminate()
        tracer.wait()
    calls = [line for line in open(trace) if "exec" in line or "fork" in line]
    assert not calls, calls


def cve_2024_6387(host, names):
    """OpenSSH: a handler of signals did what it may not. A storm of them, and all work is done."""
    over = threading.Event()

    def storm():
        while not over.is_set():
            for pid in (host.scheduler.pid, host.server.pid, host.launcher()):
                for number in (signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGWINCH, signal.SIGCONT, signal.SIGURG):
                    os.kill(pid, number)
            time.sleep(0.001)
    thread = threading.Thread(target=storm)
    thread.start()
    try:
        for i in range(8):
            assert host.run("/bin/echo", str(i), uid=ANN).stdout == f"{i}\n".encode()
    finally:
        over.set()
        thread.join()


def cve_2024_21626(host, names):
    """runc: a descriptor of the host reached the program. A grain has its three streams, and its present directory is below
    its room; no signal is blocked or ignored for it, whatever the server came with."""
    out = host.run("/bin/sh", "-c", "ls -l /proc/self/fd; readlink /proc/self/cwd; grep -E 'Sig(Blk|Ign)|NoNewPrivs' /proc/self/status",
                   uid=ANN, options=("--file", "x=/etc/hostname")).stdout.decode()
    links = [line.split(" -> ")[1] for line in out.splitlines() if " -> " in line]
    assert len(links) == 4 and "/proc/" in links[-1], out  # the last is of ls itself
    room = os.path.join(host.server_dir, "grains")
    assert all(link.startswith(room) for link in links[:3]), out
    assert f"\n{room}" in out and "/room/work" in out, out
    for word in ("SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000", "NoNewPrivs:\t1"):
        assert word in out, out


def cve_2023_41914(host, names):
    """Slurm, PMIx: files of users that become root's, or the other way round. The last word has file_races.py; here, that a
    set-uid program gives a grain nothing and its room holds nothing of another user."""
    path = shutil.copy2("/usr/bin/id", os.path.join(host.tools, "rootly"))
    os.chown(path, 0, 0)
    os.chmod(path, 0o4755)
    assert os.stat(path).st_mode & stat.S_ISUID
    assert made_up(host.run(path, "-u", uid=ANN).stdout.decode())
    out = host.run("/bin/sh", "-c", "find .. ! -user $(id -u); echo end", uid=ANN, options=("--file", "d/x=/etc/hostname")).stdout
    assert out == b"end\n", out


def prepare():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGINT, signal.SIGALRM})
    for number in (signal.SIGUSR2, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.setgroups([0, 4, 24])


def main():
    need_root("to be another user")
    if os.environ.get("DCS_CVE_NAMESPACE") is None:
        os.environ["DCS_CVE_NAMESPACE"] = "1"
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])
    cases = [cve_2009_2084, cve_2010_3380_2021_31215, cve_2018_10995, cve_2021_25311, cve_2026_65109, cve_2011_4930, cve_2014_8126,
             cve_2024_6387, cve_2024_21626, cve_2023_41914]
    with_it = UsersHost("--accounts", "eve", table="accounts=eve")
    with_it.preexec = prepare
    names = Names(with_it.base)
    wanted = sys.argv[1:]
    with with_it as host, Hurry(host):
        for case in cases:
            if wanted and case.__name__ not in wanted:
                continue
            began = time.monotonic()
            case(host, names)
            alive(host)
            print(f"{case.__name__}: {time.monotonic() - began:.1f} s", flush=True)
    if not wanted or "cve_2012_3490" in wanted:  # with servers of its own, of the same range of uids
        with tempfile.TemporaryDirectory(prefix="dcs-cve-", dir="/var/lib") as base:
            os.chmod(base, 0o711)
            cve_2012_3490(base)
        print("cve_2012_3490", flush=True)
    for name in ("passwd", "group"):
        subprocess.run(["umount", f"/etc/{name}"], check=True)


if __name__ == "__main__":
    main()
