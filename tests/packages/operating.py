#!/usr/bin/python3
"""docs/OPERATING.md, typed from its first command to its last on five machines with systemd, from packages: as root, as a member of the group,
as an outsider. Around its blocks happens what they are about: grains run while daemons are restarted and upgraded, a host and the scheduler's
host lose their power, a disk is full, a record is damaged, and at the end nothing of DCS is left. Under --full; DCS_PACKAGES_NOW=1 too."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import events
import page
from machines import CLEAN, PACKAGES, ROOT, Machines, clean_root, inside, wait_for

DCS_LEFT = r"find / -xdev \( -iname '*dcs*' \) -not -path '/root/*' -not -path '/proc/*' -not -path '/sys/*' " \
           r"-not -path '/var/log/*' -not -path '/var/cache/*' -not -path '/home/*' -not -path '/var/lib/apt/*'"


def newer(packages, folder):
    """The same packages under a higher version."""
    os.makedirs(folder, exist_ok=True)
    for path in packages:
        with tempfile.TemporaryDirectory() as tree:
            subprocess.run(["dpkg-deb", "-R", path, tree], check=True)
            control = os.path.join(tree, "DEBIAN/control")
            text = open(control).read()
            version = re.search(r"^Version: (.*)$", text, re.M).group(1)
            with open(control, "w") as file:
                file.write(text.replace(version, version + "+next"))
            name = os.path.basename(path).replace(version, version + "+next")
            subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "-b", tree, os.path.join(folder, name)], check=True,
                           stdout=subprocess.DEVNULL)
    return folder


# The hosts of this test may have no control groups, of which the doctor has a row for each; no other row is right.
DOCTOR = """rows=$(dcs doctor) || test -z "$(echo "$rows" | grep -E '^[a-z]+ [^ ]+: ' | grep -v 'cannot use control groups')"
echo "$rows" """


class Pool:
    def __init__(self, machines, packages, upgrade):
        self.m, self.line = machines, None
        for machine in machines.all.values():
            target = machine.path("/root/dcs")
            shutil.copytree(upgrade, target + "/new")
            for path in packages:
                shutil.copy(path, target)
        for name in ("sched", "desk1"):
            machines[name].type("useradd -m -s /bin/bash -u 61101 ann; useradd -m -s /bin/bash -u 61102 eve")

    def type(self, block):
        """The block as a person types it, who copies the line that `dcs token create` printed."""
        text = block.text
        if "dcs host join" in text:
            assert self.line, f"{block}: no line was printed before"
            text = re.sub(r"^dcs host join .*$", lambda m: self.line, text, flags=re.M)
        text = re.sub("^dcs doctor$", lambda m: DOCTOR, text, flags=re.M)
        printed = self.m[block.machine].type("set -e\n" + text, block.user)
        lines = re.findall(r"^dcs host join .*$", printed, re.M)
        if "dcs token create" in text:
            assert len(lines) == 1, printed
            self.line = lines[0]
            shown = re.search(r"^dcs host join .*$", "\n".join(b.text for b in page.blocks() if b.section.startswith("3.")), re.M)
            assert page.agrees(self.line.split(" --")[0], shown.group(0).split(" --")[0])
        assert block.output is None or page.agrees(printed, block.output), f"{block}\nprinted:\n{printed}\nshown:\n{block.output}"
        return printed

    def wait_host(self, name, state="active", timeout=60):
        wait_for(f"{name} to be {state}", lambda: re.search(rf"^{name} .* {state}", self.m["sched"].type("dcs host ls", code=None), re.M),
                 timeout=timeout)


class Command(threading.Thread):
    """A command that runs while others are typed."""

    def __init__(self, machine, user, line):
        super().__init__(daemon=True)
        self.words, self.done = machine.words(line, user), None
        self.start()

    def run(self):
        self.done = subprocess.run(self.words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, timeout=300):
        self.join(timeout)
        assert self.done is not None, f"still runs: {self.words[-1]}"
        assert self.done.returncode == 0, f"{self.words[-1]}\nexit {self.done.returncode}\n{self.done.stdout}{self.done.stderr}"
        return self.done.stdout


def main():
    if not (os.environ.get("DCS_TESTS_FULL") or os.environ.get("DCS_PACKAGES_NOW")):
        print("only under --full: it builds the packages")
        return 77
    if sys.argv[1:2] != ["inside"]:
        subprocess.run([os.path.join(ROOT, "deploy/packages")], check=True)
        packages = sorted(glob.glob(PACKAGES + "/*.deb"))
        subprocess.run(["lintian", "--fail-on", "error", "--tag-display-limit", "0", *packages], check=True,
                       stdout=subprocess.DEVNULL)
        if os.getuid() == 0 and shutil.which("mmdebstrap"):
            clean_root(packages)
    why = inside(__file__)
    if why:
        print("skipped: " + why)
        return 77
    packages = sorted(glob.glob(PACKAGES + "/*.deb"))
    assert len(packages) == 10, packages
    assert os.path.isdir(CLEAN)
    with tempfile.TemporaryDirectory(prefix="dcs-packages-") as upgrade, Machines(page.MACHINES) as machines:
        pool = Pool(machines, packages, newer(packages, upgrade))
        before = {name: machines[name].type(DCS_LEFT) for name in page.MACHINES}
        around = events.Events(pool, Command)
        for number, block in enumerate(page.blocks()):
            around.before(block)
            printed = pool.type(block)
            around.after(block, printed)
            print(f"{number}: {block.section}: {block.user}@{block.machine}", flush=True)
        around.check_all_happened()
        for name in ("h1", "desk1", "vault"):
            left = machines[name].type(DCS_LEFT)
            assert left == before[name], f"{name}: left of DCS:\n{left}"
            assert not machines[name].type("ps -eo args | grep '[d]cs_' || true"), name
    print("the page works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
