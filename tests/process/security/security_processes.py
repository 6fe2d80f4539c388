#!/usr/bin/python3
"""Prints what each process of a pool of root's may still do, by the kernel's words, and how much of the source runs with root's
rights; and compares both with the tables of docs/SECURITY.md, section 10. Needs root."""
import glob
import os
import re
import subprocess

from pool import program, wait_for
from users_host import UsersHost, need_root

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
NAMES = {0: "CHOWN", 1: "DAC_OVERRIDE", 3: "FOWNER", 5: "KILL", 6: "SETGID", 7: "SETUID", 13: "NET_RAW", 19: "SYS_PTRACE", 21: "SYS_ADMIN",
         24: "SYS_RESOURCE"}
# Folders whose code runs in a process that has capabilities, without what other folders also link.
WITH_POWER = {
    "dcs_keeper": ("scheduler/keeper", "libdcs/pki"),
    "dcs_warden": ("grainserver/warden", "grainserver/files"),
    "dcs_starter, dcs_slot_keeper": ("grainserver/starter", "grainserver/files", "libdcs/process"),
}


def status(pid, name):
    return re.search(rf"^{name}:\t(.*)$", open(f"/proc/{pid}/status").read(), re.M).group(1)


def all_filtered(pid):
    """Whether each thread has a filter: the starter has one on in the thread from which grains inherit it."""
    return all(re.search(r"^Seccomp:\t2$", open(f"/proc/{pid}/task/{task}/status").read(), re.M)
               for task in os.listdir(f"/proc/{pid}/task"))


def child(pid, name):
    for task in os.listdir(f"/proc/{pid}/task"):
        for other in open(f"/proc/{pid}/task/{task}/children").read().split():
            if open(f"/proc/{other}/comm").read() == name + "\n":
                return int(other)
    return None


def words(pid):
    effective, of_init = (int(status(p, "CapEff"), 16) for p in (pid, os.getpid()))
    names = ", ".join(name for bit, name in NAMES.items() if effective >> bit & 1)
    assert effective == of_init or effective == sum(1 << bit for bit, name in NAMES.items() if name in names), hex(effective)
    core = re.search(r"^Max core file size +\S+ +(\S+)", open(f"/proc/{pid}/limits").read(), re.M).group(1)
    return ["all" if effective == of_init else names or "none", "no" if status(pid, "NoNewPrivs") == "1" else "yes",
            "a list" if all_filtered(pid) else "all", "no" if core in ("0", "1") else "yes"]


def rows_of(text, title):
    """The rows of the table that begins with that heading of its first column, by the first column."""
    lines = text[text.index(f"| {title} |"):].splitlines()
    found = {}
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        first, *rest = [cell.strip() for cell in line.strip("|").split("|")]
        found[first] = rest
    return found


def lines_of(folders):
    files = [path for folder in folders for path in glob.glob(os.path.join(TOP, folder, "*.*")) if path.endswith((".cc", ".h", ".c"))]
    return sum(sum(1 for _ in open(path)) for path in files)


def main():
    need_root("accounts of their own")
    page = open(os.path.join(TOP, "docs/SECURITY.md")).read()
    with UsersHost() as host:
        backup_dir = os.path.join(host.base, "backup")
        os.mkdir(backup_dir, 0o700)
        backup = subprocess.Popen([program("dcs_backupd"), "--dir", backup_dir, "--scheduler",
                                   os.path.join(host.scheduler_dir, "server.sock")], stderr=subprocess.DEVNULL, env=host.env)
        grain = subprocess.Popen([program("dcs"), "run", "--", "/bin/sleep", "600"], env=host.env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=7, group=60, extra_groups=[])
        try:
            running = wait_for("a grain to run", lambda: [pid for _, _, pid, _ in host.grain_processes()
                                                          if open(f"/proc/{pid}/comm").read() == "sleep\n"])
            wait_for("the backup to serve", lambda: status(backup.pid, "Seccomp") == "2")
            launcher = host.launcher()
            pids = {"dcs_scheduler": host.scheduler.pid, "dcs_keeper": child(host.scheduler.pid, "dcs_keeper"),
                    "dcs_reader": child(host.scheduler.pid, "dcs_reader"),
                    "dcs_resolver": child(host.scheduler.pid, "dcs_resolver"),
                    "dcs_grainserver": host.server.pid, "dcs_warden": child(host.server.pid, "dcs_warden"),
                    "dcs_launcher": launcher, "dcs_starter": child(launcher, "dcs_starter"),
                    "dcs_slot_keeper": child(launcher, "dcs_slot_keeper"), "a grain": running[0], "dcs_backupd": backup.pid}
            found = {name: words(pid) for name, pid in pids.items()}
        finally:
            grain.terminate()
            grain.wait()
            backup.terminate()
            backup.wait()
    for name, row in found.items():
        print(f"| {name} | {' | '.join(row)} |", flush=True)
    said = rows_of(page, "by the kernel")
    # What this machine's own root lacks, as in a container, no process of it has.
    lacked = {name for bit, name in NAMES.items() if not int(status(os.getpid(), "CapEff"), 16) >> bit & 1}
    for row in said.values():
        row[0] = ", ".join(name for name in row[0].split(", ") if name not in lacked)
    assert said == found, {name: (said.get(name), found.get(name)) for name in {*said, *found} if said.get(name) != found.get(name)}
    said = rows_of(page, "with capabilities")
    for name, folders in WITH_POWER.items():
        lines = lines_of(folders)
        print(f"{name}: {lines} lines in {', '.join(folders)}")
        told = int(said[name][0].replace(",", ""))
        assert 0.9 * told <= lines <= 1.1 * told, (name, f"{lines} lines, the page says {told}")


if __name__ == "__main__":
    main()
