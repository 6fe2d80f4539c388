#!/usr/bin/python3
"""The installed headers: none clashes with a header of the system, before or behind it, in C and C++, with every warning an
error; the paper's names can be left out; their version is the project's; the library exports what they declare, with a
version, and nothing else."""
import os
import re
import shutil
import subprocess
import tempfile

from pool import ROOT
from restartable import library

INCLUDE = os.path.join(ROOT, "libdcs/include")
HEADERS = ("dcs.h", "dcs_query.h", "dcs_lock.h", "grainlib.h")
SYSTEM = """aio.h argp.h argz.h arpa/ftp.h arpa/inet.h arpa/nameser.h arpa/telnet.h assert.h complex.h cpio.h ctype.h dirent.h
    dlfcn.h elf.h endian.h envz.h err.h errno.h error.h execinfo.h fcntl.h features.h fenv.h float.h fmtmsg.h fnmatch.h fstab.h
    fts.h ftw.h getopt.h glob.h grp.h iconv.h ifaddrs.h inttypes.h langinfo.h libgen.h limits.h link.h linux/limits.h
    linux/fs.h locale.h malloc.h math.h mntent.h monetary.h mqueue.h net/if.h netdb.h netinet/in.h netinet/ip.h
    netinet/tcp.h netinet/udp.h nl_types.h paths.h poll.h protocols/routed.h pthread.h pty.h pwd.h regex.h resolv.h
    sched.h search.h semaphore.h setjmp.h sgtty.h shadow.h signal.h spawn.h stdarg.h stdbool.h stddef.h stdint.h stdio.h stdlib.h
    string.h strings.h sys/acct.h sys/auxv.h sys/epoll.h sys/eventfd.h sys/file.h sys/inotify.h sys/ioctl.h sys/ipc.h sys/mman.h
    sys/mount.h sys/msg.h sys/param.h sys/personality.h sys/poll.h sys/prctl.h sys/ptrace.h sys/quota.h sys/reboot.h
    sys/resource.h sys/select.h sys/sem.h sys/sendfile.h sys/shm.h sys/signalfd.h sys/socket.h sys/stat.h sys/statfs.h sys/statvfs.h
    sys/swap.h sys/syscall.h sys/sysinfo.h sys/syslog.h sys/time.h sys/timerfd.h sys/times.h sys/timex.h sys/types.h sys/ucontext.h
    sys/uio.h sys/un.h sys/user.h sys/utsname.h sys/wait.h sys/xattr.h syslog.h tar.h termios.h tgmath.h thread_db.h time.h ucontext.h
    ulimit.h unistd.h utime.h utmp.h utmpx.h wait.h wchar.h wctype.h wordexp.h""".split()
PAPER = ("NO_ERROR", "NOERROR", "TRUE", "FALSE", "BLOCK")
LANGUAGES = (("c99", "c"), ("c11", "c"), ("c++17", "c++"), ("c++20", "c++"))


def compilers():
    found = [c for c in ("cc", "clang", "clang-14") if shutil.which(c)]
    assert found
    return found


def compile(compiler, standard, language, text, *more, fails=False):
    done = subprocess.run([compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only",
                           "-I", INCLUDE, *more, "-"], input=text, text=True, capture_output=True, timeout=300)
    assert (done.returncode != 0) == fails, f"{compiler} -std={standard} {more}: {done.stderr[:2000]}\n{text[-300:]}"
    return done.stderr


def included(names, bracket="<>"):
    return "".join(f"#include {bracket[0]}{name}{bracket[1]}\n" for name in names)


def clashes():
    system = [name for name in SYSTEM if os.path.exists(os.path.join("/usr/include", name)) or
              not name.startswith(("linux", "sys/"))]
    assert "arpa/nameser.h" in system
    for compiler in compilers():
        for standard, language in LANGUAGES:
            usable = [n for n in system if not (language == "c++" and n in ("tgmath.h", "complex.h"))]
            theirs = included([n for n in usable if exists(compiler, standard, language, n)])
            for ours in (included(HEADERS, '""'), included(reversed(HEADERS), '""')):
                compile(compiler, standard, language, theirs + ours, "-DDCS_NO_PAPER_NAMES")
                compile(compiler, standard, language, ours + theirs, "-DDCS_NO_PAPER_NAMES")
                compile(compiler, standard, language, theirs + ours)
            for name in HEADERS:  # each by itself
                compile(compiler, standard, language, included([name], '""'))
        compile(compiler, "c++20", "c++", included(system_of_cpp()) + included(["dcs.hpp", "grainlib.hpp"], '""'))


_known = {}


def exists(compiler, standard, language, name):
    key = (compiler, language, name)
    if key not in _known:
        done = subprocess.run([compiler, "-x", language, f"-std={standard}", "-fsyntax-only", "-"], input=f"#include <{name}>\n",
                              text=True, capture_output=True, timeout=300)
        _known[key] = done.returncode == 0
    assert _known[key] or name != "arpa/nameser.h"
    return _known[key]


def system_of_cpp():
    return ["arpa/nameser.h", "algorithm", "filesystem", "iostream", "map", "thread", "sys/wait.h"]


def names():
    """The paper's, with the switch and without."""
    taken = "".join(f"#ifdef {name}\n#error {name}\n#endif\n" for name in PAPER) + "int GetLock, ReleaseCurrentLock;\n"
    ours = included(HEADERS, '""')
    compile("cc", "c11", "c", ours + taken, "-DDCS_NO_PAPER_NAMES")
    compile("cc", "c++20", "c++", included(["dcs.hpp"], '""') + taken.split("int GetLock")[0])
    said = compile("cc", "c11", "c", ours + taken, fails=True)
    assert all(f"#error {name}" in said for name in PAPER) and "GetLock" in said, said
    uses = "int main(void) { return d_gwait(BLOCK, TRUE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) == NOERROR ? NO_ERROR : FALSE; }\n"
    for standard, language in LANGUAGES:
        compile("cc", standard, language, included(["dcs.h"], '""') + uses)
        compile("cc", standard, language, included(["arpa/nameser.h"]) + included(["dcs.h"], '""') + uses)
    # After dcs.hpp a program still gets them from dcs.h.
    compile("cc", "c++20", "c++", included(["dcs.hpp", "dcs.h"], '""') + uses)


def version():
    project = re.search(r'^#define DCS_VERSION "(.*)"', open(os.path.join(ROOT, "libdcs/base/version.h")).read(), re.M).group(1)
    major, minor, patch = (int(part) for part in project.split("."))
    with tempfile.TemporaryDirectory(prefix="dcs-test-") as base:
        program = os.path.join(base, "version")
        source = ('#include <stdio.h>\n#include "dcs.h"\nint main(void) { printf("%d %s %d %s %d %d %d\\n", D_VERSION, D_VERSION_STRING, '
                  "d_version(), d_version_string(), D_VERSION_MAJOR, D_VERSION_MINOR, D_VERSION_PATCH); }\n")
        subprocess.run(["cc", "-x", "c", "-I", INCLUDE, "-", "-o", program, "-L", library(), "-ldcs"], input=source.encode(), check=True)
        said = subprocess.run([program], env=dict(os.environ, LD_LIBRARY_PATH=library()), stdout=subprocess.PIPE, text=True, check=True)
    number = str(10000 * major + 100 * minor + patch)
    assert said.stdout.split() == [number, project] * 2 + project.split("."), said.stdout
    return project


def symbols(project):
    """Each function of the headers, under a version of the project's, and no other symbol."""
    declared = {"d_" + name for header in HEADERS for name in functions(header)} | {"GetLock", "ReleaseCurrentLock"}
    listed = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", os.path.join(library(), "libdcs.so")],
                            stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
    found = {line.split()[2] for line in listed if line and line.split()[1] != "A"}
    version = "DCS_" + ".".join(project.split(".")[:2])
    wrong = {name for name in found if not name.endswith("@@" + version)}
    assert not wrong, f"without the version {version}: {sorted(wrong)}"
    exported = {name.partition("@")[0] for name in found}
    assert exported == declared, f"exported or declared, not both: {sorted(exported ^ declared)}"


def made_by_threads():
    """Nothing that several threads may need first is made under a lock, which the child of a fork could find held, but what is made at
    load. `own` is of each thread."""
    listed = subprocess.run(["nm", "-C", os.path.join(library(), "libdcs.so")], stdout=subprocess.PIPE, text=True, check=True).stdout
    locked = set(re.findall(r"guard variable for dcs::(.*)", listed))
    at_load = {"client::(anonymous namespace)::process()::p", "client::default_pool()::pool"}
    assert at_load <= locked <= at_load | {"locks::own_owner(dcs::locks::World const&)::own"}, locked


def functions(header):
    text = re.sub(r"/\*.*?\*/", "", open(os.path.join(INCLUDE, header)).read(), flags=re.S)
    text = re.sub(r"^static inline [^{}]*\{(?:[^\n]*\}$|\n.*?^\})", "", text, flags=re.S | re.M)
    return re.findall(r"^(?!typedef|struct \w+ \{)[a-zA-Z].*?\bd_(\w+)\(", text, re.M)


def main():
    clashes()
    names()
    symbols(version())
    made_by_threads()
    print("4 passed, 0 failed")


if __name__ == "__main__":
    main()
