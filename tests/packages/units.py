#!/usr/bin/python3
"""What of the packages can be looked at without building them: systemd finds nothing wrong with the units and their level of exposure is what
docs/OPERATING.md says; each file of an installation is in one package; the page's blocks are of known users and machines, and a pool takes
as few commands as it promises."""
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile

import page
from page import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests/process"))
from pool import BIN  # noqa: E402

BUILD = os.path.dirname(BIN)
DEBIAN = os.path.join(ROOT, "deploy/debian")
SERVICES = ("dcs-scheduler", "dcs-grainserver", "dcs-launcher", "dcs-backupd")


def check_page():
    found = page.blocks()
    assert len(found) > 20, len(found)
    first = [page.commands(b) for b in found if b.section.startswith("2.")]
    assert sum(map(len, first)) <= 5, first
    further = [page.commands(b) for b in found if b.section.startswith("3.") and b.machine in ("h1", "h2")]
    assert len(further) == 2 and all(len(lines) <= 2 for lines in further), further
    for wrong in ("```sh\n# root@nowhere\nls\n```\n", "```sh\nls\n```\n", "```output\nx\n```\n", "```sh\n# root@sched\nls\n",
                  "```python\n1\n```\n"):
        try:
            page.blocks("\n## 1\n\n" + wrong)
        except AssertionError:
            continue
        raise AssertionError("taken for right:\n" + wrong)
    assert page.agrees("a\nb c\n", "a\n...c") and not page.agrees("a\nb\n", "a\n...c")


def installed(prefix):
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    return [os.path.relpath(os.path.join(where, name), prefix) for where, _, names in os.walk(prefix) for name in names]


def patterns():
    """package -> what it takes of an installation."""
    taken = {}
    for name in sorted(os.listdir(DEBIAN)):
        package, _, kind = name.rpartition(".")
        if kind in ("install", "manpages"):
            lines = open(os.path.join(DEBIAN, name)).read().split("\n")
            taken.setdefault(package, []).extend(line.split()[0].replace("debian/tmp/", "") for line in lines if line)
    return taken


def takes(pattern, path):
    return fnmatch.fnmatch("usr/" + path, pattern) or fnmatch.fnmatch("usr/" + path, pattern + "/*")


def check_lists(files):
    # A build of the clone's own finds Python's folder by itself, and has what a package of Debian does without.
    files = [re.sub(r"^lib/python3[\d.]*/(site|dist)-packages", "lib/python3/dist-packages", f) for f in files]
    assert any("_installed.py" in f for f in files)
    files = [f.replace("lib/libdcs", "lib/any/libdcs") if f.startswith("lib/libdcs") else f for f in files]
    for folder in ("pkgconfig", "cmake", "dcs"):
        files = [f.replace(f"lib/{folder}/", f"lib/any/{folder}/") for f in files]
    own = patterns()
    for path in files:
        at = [package for package, several in own.items() if any(takes(pattern, path) for pattern in several)]
        expected = 0 if path.endswith("LOCK_RECIPES.md") else 1
        assert len(at) == expected, f"{path} is in {at or 'no package'}"
    for package, several in own.items():
        for pattern in several:
            assert any(takes(pattern, path) for path in files), f"{package}: nothing is {pattern}"


def check_units(prefix):
    units = os.path.join(prefix, "lib/systemd/system")
    said = open(page.PAGE).read()
    for name in sorted(os.listdir(units)):
        path = os.path.join(units, name)
        text = open(path).read()
        assert "@" not in text.replace("@system-service", "").replace("@resources", "").replace("@privileged", "") \
            .replace("@chown", "").replace("@mount", ""), f"{name}: a name was not replaced"
        with open(path, "w") as file:
            file.write(re.sub(r"/\S*/bin/(dcs\w*)", lambda m: os.path.join(BIN, m[1]), text))
    paths = [os.path.join(units, name) for name in sorted(os.listdir(units))]
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *paths], capture_output=True, text=True)
    assert done.returncode == 0 and "dcs" not in done.stderr, done.stderr
    for service in SERVICES:
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", os.path.join(units, service + ".service")],
                              capture_output=True, text=True)
        level = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
        assert level, done
        assert f"| `{service}` | {level.group(1)} |" in said, f"OPERATING.md does not say that {service} has the level {level.group(1)}"


def main():
    check_page()
    with tempfile.TemporaryDirectory(prefix="dcs-test-") as prefix:
        check_lists(installed(prefix))
        if not shutil.which("systemd-analyze"):
            print("systemd is not installed: its units were not looked at")
            return 77
        check_units(prefix)
    print("units, lists of files and the page are in order")
    return 0


if __name__ == "__main__":
    sys.exit(main())
