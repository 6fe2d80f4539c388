#!/usr/bin/python3
"""Confinement of grains as owner, user and grain see it: at each level a grain tries what it should not, what works goes on,
the host says what it has, a host table that demands more keeps grains away and explain says so."""
import os
import subprocess
import time

from hurry import Hurry
from pool import Pool, lock_holder, program, tells, wait_for
from users_host import FIRST, GAMES, UsersHost, need_root, tool

UNSHARE, KEYCTL, MOUNT = "unshare:0x10000000", "call:250", "call:165"  # x86_64's numbers; elsewhere other harmless calls
LEVELS = ["limits", "filter", "scope", "files", "namespaces"]


def can(level):
    """What this host has up to the level; the rest is skipped aloud."""
    landlock = subprocess.run(["/usr/bin/python3", "-c", "import ctypes;"
                               "print(ctypes.CDLL(None).syscall(444, None, 0, 1))"], capture_output=True, text=True)
    if level in ("scope", "files", "namespaces") and int(landlock.stdout) < 6:
        print(f"SKIPPED: level {level}: this kernel has no Landlock of version 6")
        return False
    return True


def private_pool():
    """What each peer has without a word: a filter, and where the kernel can, a scope."""
    with Pool(servers=1) as pool, Hurry(pool):
        host = pool.json("host", "show", "local1")["host"]
        words = host["confinement"].split(",")
        assert "filter" in words and "accounts" not in words and "files" not in words, host
        assert host["confinement"] in pool.dcs("host", "show", "local1").stdout.decode()
        top = os.path.join(pool.base, "caller")
        os.mkdir(top)
        done = subprocess.run([program("dcs"), "run", "--", "/bin/sh", "-c", "echo made > here; mkdir d; mv here d; cat d/here; id -u"], env=pool.env,
                              capture_output=True, stdin=subprocess.DEVNULL, cwd=top)
        assert done.stdout.decode().split() == ["made", str(os.geteuid())], done
        text = subprocess.run([program("dcs"), "run", "--", tool("confined"), UNSHARE, KEYCTL, MOUNT, "own_child", "socket:2"],
                              env=pool.env, capture_output=True, stdin=subprocess.DEVNULL).stdout.decode()
        assert text.split()[1::2] == ["EPERM", "EPERM", "EPERM", "ok", "ok"], text
        if "scope" in words:  # of one account, and yet: not its server, not its launcher, not another grain
            launcher = lock_holder(os.path.join(pool.dir, "servers/local1/launcher.lock"))
            for role, pid in (("grainserver", pool.pid("grainserver", "local1")), ("launcher", launcher)):
                assert pid, role
                text = pool.dcs("run", "--", tool("confined"), f"kill:{pid}", f"readmem:{pid}", f"trace:{pid}").stdout.decode()
                assert text.split()[1::2] == ["EPERM"] * 3, (role, text)


def each_level():
    for number, level in enumerate(LEVELS):
        if not can(level):
            continue
        with UsersHost("--confine", level, "--writable", "/srv") as host, Hurry(host):
            words = host.host()["confinement"].split(",")
            assert words == ["accounts", *LEVELS[1:number + 1]], words
            sleeper = subprocess.Popen([program("dcs"), "run", "--", os.path.join(host.tools, "confined"), "sleep"], env=host.env, cwd="/",
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                tries(host, level, number)
            finally:
                sleeper.terminate()
                sleeper.wait(timeout=120)
        print(f"level {level}: as it should be", flush=True)


def tries(host, level, number):
    def neighbour():  # past its exec
        return [pid for _, _, pid, _ in host.grain_processes() if os.readlink(f"/proc/{pid}/exe").endswith("/confined")]
    other = wait_for("a neighbour", neighbour)[0]
    shared = os.path.join(host.base, "shared")
    os.mkdir(shared)
    os.chmod(shared, 0o1777)
    mark = f"/tmp/dcs-mark-{os.getpid()}"
    open(mark, "w").close()
    acts = [KEYCTL, "own_child", "socket:2", f"kill:{other}", f"trace:{other}", f"readmem:{other}",
            f"make:{shared}/file", "make:here", "make:/var/tmp/dcs-mine", "remove:/var/tmp/dcs-mine", f"read:{mark}",
            f"see:{os.getpid()}", UNSHARE]  # the last, as it changes what the others may
    is_ = host.confined(*acts)
    os.unlink(mark)
    assert (is_[UNSHARE], is_[KEYCTL] == "EPERM") == (("ok", False) if number < 1 else ("EPERM", True)), is_
    fenced = number >= 2
    assert is_[f"kill:{other}"] == ("EPERM" if fenced else "ok"), is_
    assert is_[f"trace:{other}"] == is_[f"readmem:{other}"] == ("EPERM" if number >= 1 else "ok"), is_
    assert is_[f"make:{shared}/file"] in (("EACCES", "EROFS") if number >= 3 else ("ok",)), is_
    assert is_[f"read:{mark}"] == is_[f"see:{os.getpid()}"] == ("ENOENT" if number >= 4 else "ok"), is_
    for act in ("own_child", "socket:2", "make:here", "make:/var/tmp/dcs-mine", "remove:/var/tmp/dcs-mine"):
        assert is_[act] == "ok", (act, is_)
    # Two users have two accounts, and nothing of each other.
    answers = host.confined("id", f"kill:{other}", f"trace:{other}", f"list:{host.server_dir}/grains", uid=GAMES)
    own = host.confined("id")["id"]
    assert answers["id"] != own and len(set(answers["id"].split())) == 1, (answers, own)
    assert answers[f"kill:{other}"] == answers[f"trace:{other}"] == "EPERM", answers
    assert answers[f"list:{host.server_dir}/grains"] == "EACCES", answers
    # And what grains are there for: input, files, outputs, exit status, a program that is not there.
    done = host.run("/bin/sh", "-c", "cat; cat > out < in; exit 7", data=b"text", check=False,
                    options=("--file", "in=/etc/hostname", "--output", f"out={host.base}/back-{level}"))
    assert done.returncode == 7 and done.stdout == b"text", done
    assert open(f"{host.base}/back-{level}").read() == open("/etc/hostname").read()


def no_network():
    with UsersHost("--grain-network", "none") as host, Hurry(host):
        assert host.host()["confinement"].endswith(",no_network"), host.host()
        is_ = host.confined("socket:1", "socket:2", "socket:10", "socket:16")
        assert list(is_.values()) == ["ok", "EACCES", "EACCES", "EACCES"], is_


def demanded():
    """The table demands what the host has not: nothing runs there, and each peer learns why."""
    with UsersHost("--confine", "limits", "--accounts", "root", table="require_confinement=filter,accounts") as host, Hurry(host):
        wait_for("a warning", lambda: tells(host.text("server.log"), "--accounts root system account anonymous uid"))
        running = subprocess.Popen([program("dcs"), "run", "--", "/bin/echo", "at last"], env=host.env, cwd="/", stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            session = wait_for("its session", lambda: host.json("session", "ls")["sessions"])[-1]["session"]
            wait_for("its grain", lambda: host.json("grain", "ls", str(session))["grains"])
            def why():
                row = host.json("grain", "explain", f"{session}:1")
                return [r for r in row["reasons"] if r["reason"] == "too_open"]
            reasons = wait_for("the reason", why)
            assert reasons[0]["names"] == ["h1"], reasons
            text = host.dcs("grain", "explain", f"{session}:1").stdout.decode()
            assert tells(text, "confines grains less host table requires") and "require_" not in text, text
            note = host.host()["note"]
            assert "too open" in note and "filter" in note, note
            doctor = host.dcs("doctor", check=False).stdout.decode()
            assert "too open" in doctor and "--confine" in doctor, doctor
            host.stop_server()
            host.start_server("--confine", "filter")
            assert running.communicate(timeout=300)[0] == b"at last\n"
            assert "too open" not in host.host()["note"]
            # And when the table asks for more while it runs.
            host.write_table("require_confinement=namespaces")
            wait_for("the new table", lambda: "too open" in host.host()["note"])
        finally:
            if running.poll() is None:
                running.kill()
        host.write_table("require_confinement=moat")
        wait_for("the complaint", lambda: "`moat` is not a kind of confinement" in host.text("scheduler.log"))


def older_layout():
    """What a server of an earlier version left beside its directories still counts: a user keeps the uid of then."""
    host = UsersHost()
    os.makedirs(host.server_dir)
    with open(os.path.join(host.server_dir, "anonymous-uids"), "w") as file:
        file.write(f"{FIRST} ann\n{FIRST + 1} bob\n{FIRST + 2} root\nend\n")
    with host, Hurry(host):
        assert host.run("/usr/bin/id", "-u").stdout.decode() == f"{FIRST + 2}\n"
        left = [name for name in os.listdir(host.server_dir) if name == "anonymous-uids"]
        assert not left and os.path.exists(os.path.join(host.server_dir, "server", "anonymous-uids")), os.listdir(host.server_dir)


def main():
    cases = [private_pool]
    if os.geteuid() == 0:
        cases += [each_level, no_network, demanded, older_layout]
    for case in cases:
        began = time.monotonic()
        case()
        print(f"{case.__name__}: {time.monotonic() - began:.1f} s", flush=True)
    if os.geteuid() != 0:
        need_root("the rest of this")


if __name__ == "__main__":
    main()
