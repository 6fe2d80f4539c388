"""What dcs_begin does by its system calls: while any of its group ids is that of the host's key, it names paths of
root's only, opens no connection, writes nothing and starts nothing; afterwards that group is gone permanently."""
import os
import re
import shutil
import subprocess

from begin_world import KEY_GROUP

# What the loader, and dcs_begin itself, may name with privileges.
ROOTS_PATHS = re.compile(r"^(|/|etc|dcs|pki|pool\.conf|(key|certificate|authority)\.pem|/dev/null|/dev/full|"
                         r"/etc/suid-debug|/etc/ld\.so\.(cache|preload)|(/usr)?/lib(64|/x86_64-linux-gnu|/aarch64-linux-gnu)?/[\w.-]+\.so[.\d]*)$")
DATA = {"read", "pread64", "recvfrom", "getrandom", "uname", "memfd_create", "prctl"}  # strings that are no paths
NOT_AS_ROOT = {"socket", "connect", "bind", "sendto", "sendmsg", "write", "pwrite64", "writev", "clone", "clone3", "fork", "vfork",
               "kill", "unlink", "rename", "chmod", "chown", "mkdir", "memfd_create", "chdir", "fchdir", "ptrace"}
OTHER_WAYS = {"setuid", "setreuid", "setfsuid", "setgid", "setregid", "setfsgid", "capset", "unshare", "setns"}
CALL = re.compile(r"^(?:\d+\s+)?(\w+)\((.*)\)\s+=\s+(-?\w+)")


def trace(world, argv, user="ann", env=None):
    """The calls of `argv` run by the user, and of nothing before it."""
    path = os.path.join(world.base, "trace")
    as_user = ["-u", user] if user != "root" else []
    values = {"PATH": "/usr/bin:/bin", "HOME": f"{world.base}/home-61001/HOSTILE", **(env or {})}
    if world.plant:
        values["DCS_PLANTED"] = world.plant
    given = [word for k, v in values.items() for word in ("-E", f"{k}={v}")]
    subprocess.run(["strace", "-qq", "-f", "-s", "300", "-o", path, *given, *as_user, *argv], env={"PATH": "/usr/bin:/bin"},
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=world.patience,
                   cwd=world.base + "/home-61001")
    calls = [CALL.match(line) for line in open(path, errors="replace")]
    calls = [c.groups() for c in calls if c]
    begins = [i for i, c in enumerate(calls) if c[0] == "execve" and ("dcs_begin" in c[1].split(",")[0] or "/plain" in c[1].split(",")[0]) and c[2] == "0"]
    assert begins, f"dcs_begin does not run: {open(path).read()[:500]}"
    return calls[begins[0]:]


def follow(calls, gid):
    """What is wrong with the calls of a setgid dcs_begin that a user runs."""
    ids, wrong = [gid, KEY_GROUP, KEY_GROUP], []
    for name, arguments, result in calls[1:]:
        had_key = KEY_GROUP in ids
        if name == "setresgid" and result == "0":
            for i, word in enumerate(arguments.split(",")):
                if int(word) != -1:
                    ids[i] = int(word)
            if not had_key and KEY_GROUP in ids:
                wrong.append("the key's group is back")
        if name in OTHER_WAYS or (name in NOT_AS_ROOT and had_key):
            wrong.append(f"as {ids}: {name}({arguments})")
        if name == "execve":
            break
        if had_key and name not in DATA:
            wrong += [f"as {ids}: {name} of {path}" for path in re.findall(r'"((?:[^"\\]|\\.)*)"', arguments)
                      if not ROOTS_PATHS.match(path)]
    if ids != [gid] * 3:
        wrong.append(f"at the end the ids are {ids}")
    return wrong


def run_traces(world):
    world.peer()
    program, bad = world.program, []
    hostile = {"HOSTALIASES": world.base + "/evil.cnf", "OPENSSL_CONF": world.base + "/evil.cnf", "TMPDIR": "/HOSTILE",
               "LD_LIBRARY_PATH": world.base, "XDG_CONFIG_HOME": "/HOSTILE", "LOCPATH": "/HOSTILE", "OPENSSL_MODULES": "/HOSTILE"}
    private = f"{world.base}/home-61001/state"
    os.makedirs(private + "/dcs/scheduler", exist_ok=True)
    subprocess.run(["chown", "-R", "61001:61001", private], check=True)
    runs = [("a remote host", [program, "/bin/true"], hostile, "/bin/true"),
            ("DCS_DIR", [program, "/bin/true"], {"DCS_DIR": "/HOSTILE"}, "/HOSTILE/scheduler"),
            ("a private pool", [program, "/bin/true"], {"XDG_STATE_HOME": private, "DCS_PATIENCE_S": "0"}, "user.sock"),
            ("under its lock", [program, "-n", "/bin/true"], hostile, "dcs_lock"),
            ("wrong usage", [program, "--HOSTILE"], hostile, "usage")]
    for name, argv, env, last in runs:
        calls = trace(world, argv, env=env)
        bad += [f"trace of {name}: {wrong}" for wrong in follow(calls, 61001)]
        bad += [f"trace of {name}: it reads OpenSSL's configuration" for c in calls if "openssl.cnf" in c[1]]
        if not any(last in c[1] for c in calls):
            bad.append(f"trace of {name}: it does not come to {last}")
    return bad + root_trusts_nothing(world, hostile) + closed_streams(world)


def plain_of_root(world):
    """A copy without setgid, with a key for root alone: the loader and the C library take no precautions of their own."""
    plain = shutil.copyfile(world.program, world.base + "/bin/plain")
    os.chmod(plain, 0o755)
    os.chmod("/etc/dcs/pki/key.pem", 0o600)
    return plain


def root_trusts_nothing(world, hostile):
    """Run by root the loader keeps its hands off the environment, so dcs_begin has to."""
    world.configure("scheduler nohost:7001\n")
    try:
        calls = trace(world, [plain_of_root(world), "/bin/true"], user="root",
                      env={**hostile, "DCS_PATIENCE_S": "0", "LD_LIBRARY_PATH": "/nowhere"})
        if not any("resolv.conf" in c[1] for c in calls):
            return ["trace of root: the name was not looked up"]
        return [f"trace of root: {c[0]}({c[1]})" for c in calls[1:] if "evil.cnf" in c[1]]
    finally:
        world.configure()


def closed_streams(world):
    """Without setgid the C library does not fill the places of closed streams."""
    try:
        words = f"exec {plain_of_root(world)} /bin/true 0<&- 1>&- 2>&-"
        calls = trace(world, ["/bin/sh", "-c", words], user="root")
    finally:
        world.configure()
    sockets = [int(c[2]) for c in calls if c[0] == "socket"]
    bad = [] if sockets else ["trace of closed streams: it opens no socket"]
    return bad + [f"trace of closed streams: a socket is descriptor {fd}" for fd in sockets if 0 <= fd < 3]
