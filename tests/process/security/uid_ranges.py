#!/usr/bin/python3
"""Two grain servers of one machine that are root and have uids in common: the second does not start and says which range to
choose, as long as the first, its launcher or a grain of it lives. Servers with a common --slots-dir share the uids. Needs root."""
import os
import signal
import subprocess
import sys

from pool import program, tells, wait_for
from users_host import FIRST, LAST, UsersHost, need_root


class Second:
    """Another grain server on the machine of `host`, of another directory, that finds no scheduler."""

    def __init__(self, host, *options, name="other"):
        self.host, self.directory = host, os.path.join(host.base, name)
        self.words = [program("dcs_grainserver"), "--name", name, "--dir", self.directory, "--scheduler", host.base + "/none.sock",
                      "--run-as", "users", "--launcher", "service", *options]

    def start(self):
        """What it says if it does not start; else "", and it is ended again."""
        read, write = os.pipe()
        server = subprocess.Popen([*self.words, "--ready-fd", str(write)], pass_fds=[write], stderr=subprocess.PIPE, text=True)
        os.close(write)
        ready = os.read(read, 16)
        os.close(read)
        server.terminate()
        text = server.communicate(timeout=300)[1]
        assert ready or server.returncode == 1, text
        return "" if ready else text


def held_by(host, pid, first=FIRST, last=LAST):
    text = Second(host, "--anonymous-uids", f"{first}-{last}").start()
    assert tells(text, f"--anonymous-uids {first}-{last} overlaps {FIRST}-{LAST} of process ( the next free uids are "
                          f"{LAST + 1}-{LAST + 1 + last - first} a range of its own --slots-dir"), text
    assert pid is None or f"process {pid} (" in text, (pid, text)


def free(host):
    return Second(host, "--anonymous-uids", f"{FIRST}-{LAST}").start() == ""


def without_server_and_launcher(host):
    host.server.kill()
    host.server.wait()
    launcher = host.launcher()
    held_by(host, launcher)
    os.kill(launcher, signal.SIGKILL)
    wait_for("the launcher to end", lambda: not host.launcher())
    assert host.grain_processes()
    held_by(host, None)
    host.start_server()  # which may have what is its own
    host.wait_active()
    held_by(host, None)


def stays_with_what_runs(host):
    """Server, launcher and grain end one after another, each by kill -9."""
    held_by(host, host.server.pid)
    held_by(host, host.server.pid, LAST, LAST + 1)
    assert Second(host, "--anonymous-uids", f"{LAST + 1}-{LAST + 100}").start() == ""
    grain = subprocess.Popen([program("dcs"), "run", "--", "sleep", "1000"], env=host.env, cwd="/", stderr=subprocess.DEVNULL)
    try:
        wait_for("the grain", lambda: host.grain_processes())
        without_server_and_launcher(host)
    finally:
        for _, _, pid, _ in host.grain_processes():
            os.kill(pid, signal.SIGKILL)
        grain.kill()
        grain.wait()
    host.stop_server()
    host.end_launcher()
    wait_for("the uids to be free", lambda: free(host))


def shared_slots(host):
    """A server that shares the slots shares the uids; one that does not has others."""
    slots = os.path.join(host.base, "slots")
    with UsersHost("--slots-dir", slots) as first:
        assert first.run("id", "-u").stdout.decode().strip() == str(FIRST)
        sharing = ("--anonymous-uids", f"{FIRST}-{LAST}", "--slots-dir")
        assert Second(first, *sharing, slots, name="sharing").start() == ""
        assert Second(first, *sharing, slots + "2", name="alone").start()


def a_lost_file_is_told(host):
    """If the file is removed, all claims end: the scheduler's administrators read it, and a restart makes them anew."""
    problems = lambda: subprocess.run([program("dcs"), "doctor"], env=host.env, stdout=subprocess.PIPE, text=True, check=False).stdout
    assert "uids.lock" not in problems()
    os.remove("/run/dcs/uids.lock")
    wait_for("the warning", lambda: tells(problems(), "h1 /run/dcs/uids.lock removed must be restarted"))
    host.stop_server()
    host.end_launcher()
    host.start_server()
    host.wait_active()
    wait_for("no warning", lambda: "uids.lock" not in problems())


def main():
    need_root("a server with uids for its users")
    if sys.argv[1:] != ["inside"]:  # with a /run of its own
        os.execv("/usr/bin/unshare", ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                                      'mount -t tmpfs -o mode=755 tmpfs /run && exec "$@"', "sh", sys.executable, "-B",
                                      os.path.join(os.path.dirname(sys.modules["pool"].__file__), "__main__.py"), "uid_ranges", "inside"])
    with UsersHost() as host:
        stays_with_what_runs(host)
        shared_slots(host)
        host.start_server()
        host.wait_active()
        a_lost_file_is_told(host)


if __name__ == "__main__":
    main()
