#!/usr/bin/python3
"""docs/RESTARTABLE_PROGRAMS.md cannot rot: its programs are built as it says; those that keep to the rules are killed before
each of their library calls in turn and run again, and end as the undisturbed run did; the one that does not is reported
what the page says; and dcs replay-check agrees."""
import json
import os
import re
import signal
import subprocess

from pool import BIN, ROOT, Pool

PAGE = open(os.path.join(ROOT, "docs/RESTARTABLE_PROGRAMS.md")).read()
BLOCKS = re.findall(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", PAGE, re.M | re.S)
SESSIONS = {"squares": "101", "clock": "102", "bisect": "103", "files": "104", "rounds": "118"}
# Between a program and libdcs: the n-th call kills the program before it, or after.
INTERPOSER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include "dcs.h"
static int count;
static void die(int half)
{
    const char *at = getenv("KILL_AT");
    if (at && atoi(at) == 2 * count + half) kill(getpid(), SIGKILL);
}
#define CALL(name, parameters, arguments)                        \
    int name parameters                                          \
    {                                                            \
        int (*real) parameters = dlsym(RTLD_NEXT, #name), error; \
        die(0);                                                  \
        error = real arguments;                                  \
        die(1);                                                  \
        count++;                                                 \
        return error;                                            \
    }
CALL(d_get_auth, (const char *i), (i))
CALL(d_resume_ses, (int n, int r), (n, r))
CALL(d_close_ses, (int n), (n))
CALL(d_gexec, (int s, int g, char *const a[], char *const e[], const char *i, unsigned c, int t, int u, int n),
     (s, g, a, e, i, c, t, u, n))
CALL(d_gwait, (int b, int s, int *g, int *c, int *se, int *t, int *r, struct rusage *u, size_t *ol, char **o, size_t *el,
               char **e), (b, s, g, c, se, t, r, u, ol, o, el, e))
"""


def build(directory):
    env = dict(os.environ, CPATH=os.path.join(ROOT, "libdcs/include"), LIBRARY_PATH=library())
    command = next(text for kind, _, text in BLOCKS if kind == "build").strip()
    for kind, name, text in BLOCKS:
        if kind == "c":
            with open(os.path.join(directory, name), "w") as file:
                file.write(text)
            words = command.replace("squares", name[:-2]).split() + ["-std=c99", "-Wall", "-Wextra", "-Werror"]
            subprocess.run(words, cwd=directory, env=env, check=True)
    with open(os.path.join(directory, "interposer.c"), "w") as file:
        file.write(INTERPOSER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "interposer.so", "interposer.c"], cwd=directory, env=env, check=True)


def library():
    for root, _, files in os.walk(os.path.dirname(BIN)):
        if "libdcs.so" in files and os.path.basename(root) != "planted":
            return root
    raise AssertionError("there is no libdcs.so")


def run(pool, directory, name, kill_at=None):
    env = dict(pool.env, LD_LIBRARY_PATH=library())
    if kill_at is not None:
        env.update(KILL_AT=str(kill_at), LD_PRELOAD=os.path.join(directory, "interposer.so"))
    done = subprocess.run(["./" + name], cwd=directory, env=env, capture_output=True, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def written(directory):
    return {n: open(os.path.join(directory, n)).read() for n in os.listdir(directory) if n.startswith("result-")}


def start_over(pool, name):
    pool.dcs("session", "close", SESSIONS[name], check=False)
    pool.dcs("session", "clean", SESSIONS[name])


def meaning(name, out):
    """What must be the same in each history: results come in another order where a session began again."""
    return sorted(out.split("\n")) if name == "squares" else out


def killed_everywhere(pool, directory, name):
    """Killed at each call, each time going on with the same session: one run ends it, whatever happened before."""
    code, out, err = run(pool, directory, name)
    assert code == 0 and not err, (name, code, out, err)
    undisturbed, files = meaning(name, out), written(directory)
    assert run(pool, directory, name) == (0, out, ""), f"{name}: a replay prints the same"
    start_over(pool, name)
    kills = 0
    while True:
        code, out, err = run(pool, directory, name, kills)
        if code == 0:
            break
        assert code == -signal.SIGKILL, (name, kills, code, out, err)
        kills += 1
    assert meaning(name, out) == undisturbed and written(directory) == files, (name, out, undisturbed)
    assert kills > 12, f"{name} was killed only {kills} times"
    replay = pool.dcs("replay-check", "-o", "json", SESSIONS[name], "--", os.path.join(directory, name), cwd=directory)
    assert json.loads(replay.stdout)["replay"]["same"], replay
    return kills


def told(pool, directory):
    code, out, _ = run(pool, directory, "clock")
    assert code == 0, out
    code, _, err = run(pool, directory, "clock")
    page = next(text for kind, name, text in BLOCKS if kind == "told" and name == "clock.c")
    pattern = re.sub(r'"\d+"', r'"\\d+"', re.escape(page).replace('\\"', '"').replace("ann", r"\S+"))
    assert code == 1 and re.fullmatch(pattern, err), (pattern, err)
    result = pool.dcs("replay-check", SESSIONS["clock"], "--", os.path.join(directory, "clock"), check=False)
    assert result.returncode == 1 and b"departs from its record" in result.stdout, result


def says_why(pool, directory):
    """Without a scheduler none of them ends in silence."""
    pool.down()
    for name in SESSIONS:
        done = subprocess.run([os.path.join(directory, name)], env=dict(pool.env, DCS_PATIENCE_S="1"), cwd=directory,
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 1 and "no scheduler answers" in done.stderr, (name, done)


def main():
    with Pool(1, 4, 1.0) as pool:
        pool.env["LD_LIBRARY_PATH"] = library()
        directory = os.path.join(pool.base, "programs")
        os.mkdir(directory)
        build(directory)
        kills = {name: killed_everywhere(pool, directory, name) for name in ("squares", "bisect", "files", "rounds")}
        told(pool, directory)
        says_why(pool, directory)
    print(f"1 passed, 0 failed; killed and run again: {kills}")


if __name__ == "__main__":
    main()
