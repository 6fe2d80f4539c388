#!/usr/bin/python3
"""The system calls of a grain, number by number, for x86_64, its 32-bit calls and aarch64: the filter is compiled for each, the
one of aarch64 runs under an emulator, and what it refuses is exactly what is written here. So a call that a header brings is
refused until it was looked at."""
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = [os.path.join(HERE, "filter_walk.cc"), *(os.path.join(TOP, "grainserver/files", name)
                                                   for name in ("syscall_filter.cc", "grain_calls_i386.cc"))]
MACHINES = {"x86_64": ("g++", [], "asm/unistd_64.h"), "aarch64": ("aarch64-linux-gnu-g++", ["qemu-aarch64-static"], "asm/unistd.h")}
FIRST_UNKNOWN = 457
# mounts and namespaces; kernels and machines; rare parts of the kernel; clocks and names of the host; dead calls
REFUSED = set("""mount umount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr setns swapon swapoff
    quotactl quotactl_fd acct reboot kexec_load kexec_file_load init_module finit_module delete_module create_module
    get_kernel_syms query_module iopl ioperm vm86 vm86old modify_ldt bpf perf_event_open add_key request_key keyctl userfaultfd io_uring_setup io_uring_enter
    io_uring_register open_by_handle_at fanotify_init fanotify_mark lookup_dcookie syslog vhangup process_mrelease
    sethostname setdomainname settimeofday stime adjtimex clock_settime clock_settime64 clock_adjtime clock_adjtime64
    nfsservctl getpmsg putpmsg afs_syscall tuxcall security vserver uselib ustat sysfs _sysctl epoll_ctl_old epoll_wait_old
    break stty gtty ftime prof lock mpx ulimit profil idle bdflush""".split())
PRIORITIES = ("no_class", "realtime", "best_effort", "idle", "idle_7", "unknown")
TRACING = set("ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp".split())


def names_of(compiler, header):
    text = subprocess.run([compiler, "-E", "-dM", "-include", header, "-x", "c", "/dev/null"], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    values = dict(re.findall(r"^#define (__NR\w+) (\w+)$", text, re.M))
    def number(word):
        while word in values:
            word = values[word]
        return int(word)
    return {name[5:]: number(name) for name in values if re.match(r"__NR_(?!3264)", name)
            and name not in ("__NR_syscalls", "__NR_arch_specific_syscall")}


def walk(compiler, before, base):
    program = os.path.join(base, "walk")
    subprocess.run([compiler, "-std=c++20", "-O1", "-static", "-I", TOP, "-I", os.path.join(TOP, "libdcs"), *SOURCES, "-o", program],
                   check=True)
    answers = {}
    for line in subprocess.run([*before, program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines():
        wish, machine, number, answer = line.split()
        answers.setdefault((wish, machine), {})[int(number)] = answer
    return answers


def refused(answers, names):
    return {name: answers[number] for name, number in names.items() if answers[number] != "allowed"}


def judge(machine, answers, names, own):
    x32 = 0x40000000
    assert {a for n, a in answers["usual", own].items() if n < x32 and n >= FIRST_UNKNOWN} == {"ENOSYS"}
    known = {name: number for name, number in names.items() if number < FIRST_UNKNOWN}
    assert len(known) > 290, (machine, len(known))
    for wish, more in (("usual", TRACING), ("trace", set()), ("no_network", TRACING)):
        found = refused(answers[wish, own], known)
        expected = {name: "EPERM" for name in (REFUSED | more | {"ioprio_set"}) & set(known)} | {"clone3": "ENOSYS"}
        if wish == "no_network":
            expected["socket"] = "EACCES"
        assert found == expected, (machine, own, wish, set(found.items()) ^ set(expected.items()))
    # A grain does not leave the idle class of its input and output.
    of_class = {name: answers[name, own][known["ioprio_set"]] for name in PRIORITIES}
    assert {name for name, answer in of_class.items() if answer == "allowed"} == {"idle", "idle_7"}, (machine, of_class)
    # Numbers that no name has.
    gaps = {n for n, a in answers["usual", own].items() if n < FIRST_UNKNOWN and a == "allowed"} - set(names.values())
    assert all(n > 423 for n in gaps), (machine, gaps)  # newer than the headers here
    print(f"{machine}: {sum(1 for n in known if n not in found)} calls of {len(known)} allowed", flush=True)


def main():
    if subprocess.run(["sh", "-c", "command -v aarch64-linux-gnu-g++ && command -v qemu-aarch64-static"],
                      stdout=subprocess.DEVNULL).returncode != 0:
        print("deploy/install-packages --tests installs the compiler and the emulator for aarch64")
        return 77
    with tempfile.TemporaryDirectory() as base:
        for machine, (compiler, before, header) in MACHINES.items():
            if not before and os.uname().machine != machine:
                continue
            answers = walk(compiler, before, base)
            judge(machine, answers, names_of(compiler, header), "own")
            if machine == "x86_64":
                judge("i386", answers, names_of(compiler, "asm/unistd_32.h"), "i386")
                assert {a for n, a in answers["usual", "own"].items() if n >= 0x40000000} == {"ENOSYS"}  # x32
            assert set(answers["usual", "foreign"].values()) == {"ENOSYS"}
    return 0


if __name__ == "__main__":
    sys.exit(main())
