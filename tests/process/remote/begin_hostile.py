#!/usr/bin/python3
"""dcs_begin, installed setgid, in the hands of hostile users: whatever they set up, a program runs with exactly their
own rights, or a message says why not. A trace of its system calls shows that nothing is done with its group's rights that a user
had a say in, and bugs planted into it are found by the same cases."""
import os
import re
import resource
import shutil
import subprocess
import sys

from begin_cases import CASES
from begin_trace import run_traces
from begin_waiting import run_waiting
from begin_world import PORT, TOOLS, World

IGNORED = int(re.search(r"SigIgn:\s*(\w+)", open("/proc/self/status").read())[1], 16) & ~((1 << 12) | (1 << 24))
# Bug, or bugs together; and what finds it: words of the names of cases, "trace" or "waiting".
PLANTS = [("drop_nothing,lie", "umask 0"), ("drop_nothing", "umask 0"), ("drop_effective", "umask 0"),
          ("drop_effective,lie", "trace"), ("environment_kept", "trace"), ("openssl_config", "trace"),
          ("standard_descriptors", "trace"), ("looks_before_drop", "trace"), ("dumpable", "waiting"),
          ("limits_not_raised", "soft limit 1 0"), ("limits_not_restored", "soft limit 1 0"), ("not_sealed", "umask 0"),
          ("signals_not_restored", "umask 0"), ("mask_not_restored", "SIGALRM blocked"),
          ("own_variable_kept", "DCS_AUTH_FD of others"), ("owner_not_checked", "pool.conf of the user"),
          ("mode_not_checked", "pool.conf writable"), ("mode_not_checked", "key readable by others"),
          ("names_not_counted", "key of two names"), ("kind_not_checked", "pool.conf a FIFO"),
          ("links_followed", "pool.conf a link"), ("group_not_checked", "of the group until a moment ago"),
          ("peer_not_checked", "peer: of another role"), ("key_not_compared", "peer: certifies another key"),
          ("no_deadline", "peer: says nothing")]


def fill_in(world, start):
    start = {k: v(world) if callable(v) and k in ("env", "program") else v for k, v in start.items()}
    if start.get("argv"):
        words = {"{witness}": world.witness, "{program}": world.program}
        start["argv"] = [words.get(w, w) for w in start["argv"]]
    return start


def more_checks(case, start, o):
    """What the program finds besides its rights is what the user had set up."""
    judge, wrong = case["judge"], []
    if "raw_env" in start:
        given = start["raw_env"]
    else:
        given = [f"{k}={v}".encode() for k, v in (start.get("env") or {}).items() if v is not None] + [b"KEPT=as it was"]
    kept = [v for v in given if not v.startswith(b"DCS_AUTH_FD=")]
    if not set(kept) <= set(o.environment) or ("raw_env" in start and len(o.environment) != len(kept) + 1):
        wrong.append(f"environment: {sorted(set(kept) - set(o.environment))[:3]} are lost, or there is more")
    for name, mine in (("SigBlk", judge.get("blocked", 0)), ("SigIgn", judge.get("ignored", IGNORED))):
        is_ = int(o[name], 16)
        if mine == -1 and bin(is_).count("1") < 58 or mine != -1 and is_ != mine:
            wrong.append(f"{name} is {is_:x}")
    changed = {which: (soft, hard) for which, soft, hard in start.get("limits", ())}
    for which in range(16):
        want = changed.get(which, resource.getrlimit(which) if which != resource.RLIMIT_CORE else (-1, -1))
        if o[f"limit{which}"] != "%d %d" % tuple(want):
            wrong.append(f"limit {which}: {o[f'limit{which}']}, not {want}")
    if (int(o["timer"]) > 0) != judge.get("timer", False):
        wrong.append(f"the user's timer: {o['timer']}")
    if case["check"]:
        result = case["check"](o)
        wrong += [] if result is True else [result]
    return "; ".join(wrong)


def run_case(world, case):
    undo = case["world"](world) if case["world"] else None
    if not case["world"]:
        world.peer()
    start = fill_in(world, case["start"])
    try:
        if not case["name"].startswith("peer: "):
            world.peer()
        o = world.run(**start)
        o.heard = world.heard()
        judge = {k: v for k, v in case["judge"].items() if k in ("uid", "groups", "stds", "killed")}
        wanted = case["want"] if isinstance(case["want"], tuple) else (case["want"],)
        user = start.get("user", "ann")
        if o.code == 96 and "exit 96" in wanted:
            return None
        if case["judge"].get("loader") and not o.started and ("loading shared libraries" in o.text or o.code in (125, 127)):
            return None if o.text else f"not a word: {o}"
        answers = [world.judge(o, want, user=user, own_fds=case["judge"].get("own_fds", True), **judge) or
                   (more_checks(case, start, o) if want is None and o.started else None) for want in wanted]
        return None if any(not a for a in answers) else answers[0]
    finally:
        if undo:
            undo()


def run_cases(world, names=None):
    bad = []
    for case in CASES:
        if names is None or any(n in case["name"] for n in names):
            wrong = run_case(world, case)
            if wrong:
                bad.append(f"{case['name']}: {wrong}")
    return bad


def credentials_work(world):
    """Key and certificates that the program gets open the scheduler's door, and the token is the scheduler's."""
    world.peer()
    text = bytes.fromhex(world.run()["credentials"]).decode()
    blocks = re.findall(r"-----BEGIN.*?-----END[^\n]*\n", text, re.DOTALL)
    place = world.base + "/credentials"
    os.mkdir(place)
    for name, block in zip(("key.pem", "certificate.pem", "authority.pem"), blocks):
        world.write(f"{place}/{name}", block, 0o600)
    said = subprocess.run([os.path.join(TOOLS, "tls_call"), f"127.0.0.1:{PORT}", place, "x"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300).stdout
    shutil.rmtree(place)
    good = "opened" in said and "token " + (b"T" * 32).hex() in text
    return [] if good else [f"the credentials do not work: {said!r}"]


def look(world, what):
    return run_traces(world) if what == "trace" else run_waiting(world) if what == "waiting" else run_cases(world, [what])


def run_plants(world):
    world.install(os.path.join(TOOLS, "dcs_begin_test"))
    bad = [f"test build: {wrong}" for what in sorted({what for _, what in PLANTS}) for wrong in look(world, what)]
    world.patience = 9
    for plant, what in PLANTS:
        world.plant = plant
        if not look(world, what):
            bad.append(f"the planted bug {plant} is not found by: {what}")
    return bad


def main():
    if os.getuid() != 0:
        print("only root can install a setgid program")
        return 77
    if not shutil.which("strace"):
        print("strace is missing: deploy/install-packages --tests")
        return 77
    if sys.argv[1:2] != ["inside"]:
        os.execv("/usr/bin/unshare", ["unshare", "--mount", "--net", "--propagation", "private", sys.executable,
                                      os.path.abspath(__file__), "inside", *sys.argv[1:]])
    world = World()
    try:
        prepare_evil(world)
        parts = [lambda word=word: look(world, word) for word in sys.argv[2:]] or [
            lambda: run_cases(world), lambda: credentials_work(world), lambda: run_traces(world),
            lambda: run_waiting(world), lambda: run_plants(world)]
        bad = [wrong for part in parts for wrong in part()]
        print("\n".join(bad) or f"{len(CASES)} hostile environments, {len(PLANTS)} planted bugs")
        return 1 if bad else 0
    finally:
        world.close()


def prepare_evil(world):
    """What hostile variables name: a library that tells as whom it runs, a configuration that loads it."""
    os.environ["HOME_OF_TEST"] = f"{world.base}/home-61002"
    source = world.base + "/evil.c"
    with open(source, "w") as file:
        file.write("#include <unistd.h>\n__attribute__((constructor)) static void here(void) "
                   "{ if (geteuid() == 0) (void)!write(2, \"EVIL AS ROOT\\n\", 13); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", world.base + "/evil.so", source], check=True)
    for name in ("libcrypto.so.3", "libssl.so.3", "libc.so.6", "legacy.so"):
        os.symlink("evil.so", f"{world.base}/{name}")
    with open(world.base + "/evil.cnf", "w") as file:
        file.write(f"openssl_conf = a\n[a]\nengines = e\n[e]\nx = y\n[y]\ndynamic_path = {world.base}/evil.so\ninit = 1\n")
    os.mkfifo(world.base + "/fifo", 0o666)
    os.chmod(world.base + "/fifo", 0o666)
    os.symlink("/root", world.base + "/link")


if __name__ == "__main__":
    sys.exit(main())
