"""Programs of the last release, built once from this repository's history, beside those of this tree."""
import fcntl
import os
import subprocess

from cluster import Release
from pool import BIN, ROOT

LAST, COMMIT = "0.1", "ed0ac33"
BUILD = os.path.dirname(BIN)


def release_at(name, tree, build):
    return Release(name, os.path.join(build, "bin"), os.path.join(tree, "libdcs/python"), os.path.join(build, "lib/libdcs.so"))


def this_one():
    return release_at("this tree", ROOT, BUILD)


def last_one():
    """None: this clone has no such commit. DCS_LAST_RELEASE names a tree of it with a build in build/release, if there is one."""
    tree = os.environ.get("DCS_LAST_RELEASE") or os.path.join(BUILD, "release-" + LAST)
    with open(os.path.join(BUILD, "release.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(tree, "build/release/bin/dcs_scheduler")) and not build(tree):
            return None
    return release_at(LAST, tree, os.path.join(tree, "build/release"))


def build(tree):
    if subprocess.run(["git", "-C", ROOT, "cat-file", "-e", COMMIT + "^{commit}"], stderr=subprocess.DEVNULL).returncode != 0:
        return False
    os.makedirs(tree, exist_ok=True)
    archive = subprocess.Popen(["git", "-C", ROOT, "archive", COMMIT], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", tree], stdin=archive.stdout, check=True)
    assert archive.wait() == 0
    with open(os.path.join(tree, "build.log"), "wb") as log:
        for command in (["cmake", "--preset", "release"], ["cmake", "--build", "build/release", "--target", "programs"]):
            subprocess.run(command, cwd=tree, check=True, stdout=log, stderr=log)
    return True
