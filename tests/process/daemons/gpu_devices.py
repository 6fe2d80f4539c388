#!/usr/bin/python3
"""Grains of a host that offers GPUs open the device files of their own ones and of no other, by control groups of version 1
and of version 2, under anonymous uids and under the server's account. The devices are made up: no driver has their numbers,
so to open one that is allowed fails with ENXIO, and one that is denied with EPERM. Needs root."""
import os
import subprocess
import sys

from gpu_made import ALL, OFFERED, MadeDevices, path
from hurry import Hurry
from pool import BIN, bin_directory, program, wait_for
from users_host import UsersHost, need_root

OPEN = """import errno, os, sys
for name in sys.argv[1:]:
    try:
        os.close(os.open(name, os.O_RDWR))
        print("open", end=" ")
    except OSError as error:
        print(errno.errorcode[error.errno], end=" ")
print(os.environ.get("DCS_RESOURCE_GPU"), os.environ.get("CUDA_VISIBLE_DEVICES"))
"""
V2_ONLY = ["unshare", "--mount", "sh", "-c", 'umount /sys/fs/cgroup/devices && exec "$@"', "sh"]


def tried(host, demand, *paths, options=()):
    words = ["--resource", demand] if demand else []
    said = host.run("/usr/bin/python3", "-c", OPEN, *paths, "/dev/null", options=[*words, *options]).stdout.decode().split()
    assert said[len(paths)] == "open", said  # /dev/null
    return said[:len(paths)], said[-2], said[-1]


def others(paths):
    """Devices of GPUs that a machine of this test may really have, in the order of their numbers."""
    numbers = sorted(int(name[6:]) for name in os.listdir("/dev") if name.startswith("nvidia") and name[6:].isdigit())
    return [n for n in numbers if n not in paths]


def opens_its_own_only(host):
    """What the grain of each demand could open, as the filter must have it."""
    all_paths, real = [path(i) for i in ALL], len(others(ALL))
    said, indices, cuda = tried(host, "gpu=1", *all_paths)
    assert said == ["ENXIO", "EPERM", "ENXIO", "EPERM"], said  # the third is not offered
    assert (indices, cuda) == ("60000", str(real)), (indices, cuda)
    said, indices, cuda = tried(host, "gpu=3", *all_paths)
    assert said == ["ENXIO"] * 4 and indices == "60000,60001,60003", (said, indices)
    assert cuda == "60000,60001,60003", cuda  # nothing is kept from it
    assert tried(host, "", *all_paths)[0] == ["EPERM", "EPERM", "ENXIO", "EPERM"]
    assert tried(host, "", host.alias)[0] == ["EPERM"]
    assert tried(host, "gpu=1", host.alias)[0] == ["ENXIO"]
    # Its leaf goes to the next grain only if that may open the same.
    for demand, first in (("gpu=1", "ENXIO"), ("", "EPERM"), ("gpu=1", "ENXIO"), ("gpu=2", "ENXIO"), ("", "EPERM")):
        assert tried(host, demand, path(60000))[0] == [first], demand


def two_at_a_time(host):
    """The second one has other GPUs, and CUDA's number 0 is its first, too."""
    first = subprocess.Popen([program("dcs"), "run", "--resource", "gpu=1", "--", "/bin/sleep", "600"], env=host.env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wait_for("the first", lambda: any(open(f"/proc/{pid}/comm").read() == "sleep\n" for _, _, pid, _ in host.grain_processes()))
    said, indices, cuda = tried(host, "gpu=2", *[path(i) for i in ALL])
    first.terminate()
    first.wait()
    real = len(others(ALL))
    assert said == ["EPERM", "ENXIO", "ENXIO", "ENXIO"] and indices == "60001,60003", (said, indices)
    assert cuda == f"{real},{real + 2}", cuda  # the one between them is not offered


def host_with(run_as="users", wrapped=(), plant="", bin=BIN):
    class Host(UsersHost):
        def start_server(self, *options):
            real = subprocess.Popen
            if wrapped:
                subprocess.Popen = lambda words, **more: real([*wrapped, *words], **more)
            try:
                super().start_server(*options)
            finally:
                subprocess.Popen = real

    host = Host("--resources", f"gpu=[{','.join(map(str, OFFERED))},60009]", run_as=run_as, bin=bin)
    host.env.pop("CUDA_VISIBLE_DEVICES", None)
    if plant:
        host.env["DCS_PLANTED"] = plant
    return host


def hurried(host):
    return Hurry(host, lambda: [pid for _, _, pid, _ in host.grain_processes()])


def controllers(host):
    wait_for("the launcher's word", lambda: "control groups" in host.text("h1/launcher.log"))
    return next(line for line in host.text("h1/launcher.log").splitlines() if "control groups" in line)


def main():
    need_root("device files")
    seen = 0
    for version, wrapped, run_as in (("v1", [], "users"), ("v1", [], "self"), ("v2", V2_ONLY, "users")):
        if version == "v2" and not os.path.ismount("/sys/fs/cgroup/devices"):
            wrapped = []
        with host_with(run_as, wrapped) as host, MadeDevices(host.base) as made, hurried(host):
            host.alias = made.alias
            words = [word for word in controllers(host).split(", ") if "devices" in word.split(" in ")[0]]
            if not words or version not in words[0]:
                print(f"not here: devices by control groups of {version}: {controllers(host)}")
                continue
            opens_its_own_only(host)
            two_at_a_time(host)
            seen += 1
            print(f"{version}, --run-as {run_as}: as it should be", flush=True)
    # Where the server was given CUDA's numbers, or without control groups, the indices are advice.
    for name, options, variables in (("none", ["--cgroups", "none"], {}), ("CUDA", [], {"CUDA_VISIBLE_DEVICES": "60000,60001"})):
        host = host_with("users")
        host.options = (*host.options, *options)
        host.env.update(variables)
        with host, MadeDevices(host.base), hurried(host):
            said, indices, cuda = tried(host, "gpu=1", *[path(i) for i in ALL])
            assert said == ["ENXIO"] * 4 and (indices, cuda) == ("60000", "60000"), (name, said, indices, cuda)
    if seen == 0:
        print("SKIPPED: no control groups here deny devices")
        sys.exit(77)
    # This test finds a launcher that denies nothing.
    made_bin = os.path.join("/var/lib", f"dcs-gpu-bin-{os.getpid()}")
    bin_directory(made_bin, ["dcs_launcher"])
    try:
        with host_with("users", plant="launcher.devices_open", bin=made_bin) as host, MadeDevices(host.base) as made, hurried(host):
            host.alias = made.alias
            try:
                opens_its_own_only(host)
            except AssertionError as found:
                assert "ENXIO" in str(found), found
            else:
                raise AssertionError("a launcher without the filter was not found")
    finally:
        subprocess.run(["rm", "-r", made_bin], check=True)


main()
