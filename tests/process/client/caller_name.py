#!/usr/bin/python3
"""Programs in Python and C++ find their session again where the host's user database has another name for their user than the
scheduler: in a container, or while it does not answer."""
import os
import subprocess

from pool import ROOT, Pool
from restartable import library

# The user database of another place; the one of the scheduler is not concerned.
RENAMED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pwd.h>
static char name[] = "renamed";
struct passwd *getpwuid(uid_t uid) {
    struct passwd *(*real)(uid_t) = (struct passwd * (*)(uid_t)) dlsym(RTLD_NEXT, "getpwuid");
    struct passwd *entry = real(uid);
    if (entry) entry->pw_name = name;
    return entry;
}
int getpwuid_r(uid_t uid, struct passwd *to, char *room, size_t size, struct passwd **found) {
    int (*real)(uid_t, struct passwd *, char *, size_t, struct passwd **) =
        (int (*)(uid_t, struct passwd *, char *, size_t, struct passwd **))dlsym(RTLD_NEXT, "getpwuid_r");
    int code = real(uid, to, room, size, found);
    if (code == 0 && *found) to->pw_name = name;
    return code;
}
"""
PYTHON = """
import dcs, pwd, os, sys
assert pwd.getpwuid(os.geteuid()).pw_name == sys.argv[1] and dcs.login_name() == dcs.system().user
session = dcs.Session("name-of-python")
session.submit(1, ["/bin/date", "+%N"])
print(session.number, [result.output for result in session.results()])
session.leave()
"""
CXX = """
#include <iostream>
#include "dcs.hpp"
int main() {
    dcs::session session = dcs::pool().resume("name-of-cxx");
    session.submit(1, {.argv = {"/bin/date", "+%N"}});
    dcs::result result;
    while (session.wait(result)) std::cout << session.number() << ' ' << result.output;
    session.leave();
}
"""


def main():
    with Pool(2, 2, 1.0) as pool:
        for name, text in ("renamed.c", RENAMED), ("named.py", PYTHON), ("named.cc", CXX):
            with open(os.path.join(pool.base, name), "w") as file:
                file.write(text)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", "renamed.so", "renamed.c", "-ldl"], cwd=pool.base, check=True)
        subprocess.run(["g++", "-std=c++20", "-I", os.path.join(ROOT, "libdcs/include"), "named.cc", "-o", "named", "-L", library(), "-ldcs"],
                       cwd=pool.base, check=True)
        env = dict(pool.env, LD_LIBRARY_PATH=library(), DCS_LIBRARY=os.path.join(library(), "libdcs.so.0"),
                   PYTHONPATH=os.path.join(ROOT, "libdcs/python"), PYTHONDONTWRITEBYTECODE="1")
        renamed = dict(env, LD_PRELOAD=os.path.join(pool.base, "renamed.so"))
        user = subprocess.run(["id", "-nu"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        for program in ["/usr/bin/python3", "named.py"], ["./named"]:
            said = []
            for of, name in (env, user), (renamed, "renamed"), (env, user):
                done = subprocess.run([*program, name], env=of, cwd=pool.base, stdout=subprocess.PIPE, text=True, timeout=300, check=True)
                said.append(done.stdout)
                pool.dcs("run", "--", "/bin/true")
                newest = max(session["session"] for session in pool.json("session", "ls")["sessions"])
                if newest > int(said[0].split()[0]):
                    pool.dcs("session", "clean", str(newest))  # new sessions have greater numbers than a removed one
            assert said[0] == said[1] == said[2] != "", (program, said)
    print("2 passed, 0 failed")


if __name__ == "__main__":
    main()
