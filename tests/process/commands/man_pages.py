#!/usr/bin/python3
"""The manual: everything has a page, groff has nothing to say against any, and man finds and shows them from an installation."""
import os
import re
import subprocess
import sys
import tempfile

from pool import BIN, ROOT

BUILD = os.path.dirname(BIN)
MANUAL = os.path.join(BUILD, "man")
SECTIONS = ("1", "3", "5", "7", "8")


def pages():
    folders = [os.path.join(MANUAL, "man" + section) for section in SECTIONS]
    return [(name[:-2], os.path.join(folder, name)) for folder in folders for name in sorted(os.listdir(folder))]


def expected():
    """Verbs, functions, daemons and pages of docs/, each from where it is written down."""
    text = subprocess.run([os.path.join(BIN, "dcs"), "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    names = {"dcs-" + verb.replace(" ", "-") for verb in re.findall(r"^  ([a-z-]+(?: [a-z-]+)?)  +\S", text.split("Usage:")[1], re.M)}
    assert len(names) > 30, names
    for header in ("dcs.h", "dcs_query.h", "dcs_lock.h", "grainlib.h"):
        code = re.sub(r"/\*.*?\*/", "", open(os.path.join(ROOT, "libdcs/include", header)).read(), flags=re.S)
        names |= set(re.findall(r"^[a-z][^(\n]*?\b\*?(d_\w+)\(", code, re.M)) | {header.replace(".", "_")}
    names |= {"dcs-" + n[:-3].lower().replace("_", "-") for n in os.listdir(os.path.join(ROOT, "docs")) if n.endswith(".md")}
    return names | {"dcs", "dcs_begin", "dcs_lock", "dcs_scheduler", "dcs_grainserver", "dcs_backupd", "dcs_checkpoint", "find_factor"}


def formatted(path):
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", path], cwd=MANUAL, capture_output=True, text=True,
                          env=dict(os.environ, MANWIDTH="80"))
    assert done.returncode == 0 and not done.stderr, f"{path}: {done.stderr}"
    return re.sub(r".\x08|\x1b\[[0-9;]*m", "", done.stdout)


def check_page(name, path):
    text = formatted(path)
    named = re.search(r"^NAME\n((?: .*\n)+)", text, re.M)
    assert named and re.search(r"\S \s*[-\u2010\u2212]\s+\S", named.group(1)), f"{path} has no line of what it is:\n{text[:600]}"
    assert re.search(r"^(DESCRIPTION|SYNOPSIS)", text, re.M), f"{path} says nothing"
    for left in re.findall(r"\]\([\w/]+\.md|\]\(http|^```|^\|", text, re.M):
        raise AssertionError(f"{path} still has {left!r} in it")


def check_programs():
    """What the target of users makes is what an installation takes, also from a tree that was built for nothing else."""
    made = subprocess.run(["ninja", "-C", BUILD, "-t", "query", "programs"], capture_output=True, text=True, check=True).stdout
    assert {"completion_scripts", "manual"} <= set(made.split()), made


def check_installation():
    with tempfile.TemporaryDirectory(prefix="dcs-test-") as prefix:
        subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        manual = os.path.join(prefix, "share/man")
        for name, words in (("d_gwait", "D_E_NOTHING_LEFT"), ("dcs-map", "--arg-file"), ("d_result_init", "struct d_result"), ("d_query", "d_pool_query"),
                            ("dcs_scheduler", "--policy"), ("dcs-state-format", "root")):
            shown = subprocess.run(["man", "-M", manual, name], capture_output=True, text=True,
                                   env=dict(os.environ, MANPAGER="cat", MANWIDTH="80"))
            assert shown.returncode == 0 and words in re.sub(r".\x08|\x1b\[[0-9;]*m|\u2010\n +", "", shown.stdout), (name, shown)


def main():
    subprocess.run(["man", "--version"], check=True, stdout=subprocess.DEVNULL)
    made, wanted = pages(), expected()
    missing = wanted - {name for name, _ in made}
    assert not missing, f"without a page: {sorted(missing)}"
    for name, path in made:
        check_page(name, path)
    check_programs()
    check_installation()
    print(f"1 passed, 0 failed; {len(made)} pages")


if __name__ == "__main__":
    sys.exit(main())
