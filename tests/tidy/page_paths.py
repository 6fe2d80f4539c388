#!/usr/bin/python3
"""Checks what the pages refer to: a path in backticks must be in the tree, a linked page must be there, and "section N" beside a link
must be a heading of that page. And no two C programs of the pages have the same session, so that all can be tried in one pool."""
import os
import re
import sys
from fnmatch import fnmatch

ROOT = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOPS = ("libdcs", "scheduler", "grainserver", "backupd", "grains", "control-examples", "deploy", "docs", "tests")
SOURCE = re.compile(r"\.(h|hpp|cc|c|cmake)$")
# Files that a reader writes, and headers of the C library.
FOREIGN = {"main.c", "count.c", "grain.c", "unistd.h", "fcntl.h", "time.h"}


def tree():
    """Every file and folder, by its path from the root."""
    paths = set()
    for where, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in ("build", ".git", "__pycache__")]
        paths |= {os.path.relpath(os.path.join(where, name), ROOT) for name in folders + files}
    return paths


def is_path(text):
    """Whether a text in backticks is meant as a path of the tree."""
    if not re.fullmatch(r"[\w.+*-]+(/[\w.+*-]+)*/?", text) or re.search(r"(^|/)[A-Z]+[/._]", text):
        return False  # words in capitals are placeholders
    first = text.split("/", 1)[0]
    return ("/" in text and first in TOPS) or (SOURCE.search(text) is not None and text not in FOREIGN)


def is_there(text, paths):
    """A path may begin at a folder of the tree (`turn/turn.h`), and hold `*`. Tests are named without .py and .cc."""
    text = text.rstrip("/")
    if text in paths or any(path.endswith("/" + text) for path in paths):
        return True
    if "*" in text:
        return any(fnmatch(path, text) or fnmatch(path, "*/" + text) for path in paths)
    return text.startswith("tests/") and any(text + ending in paths for ending in (".py", ".cc", ".sh"))


def headings(page):
    return set(re.findall(r"^## (\d+)\.", page, re.M))


def references(name, page, pages):
    """Links and sections that lead nowhere."""
    for target, section in re.findall(r"\]\(([\w/.-]+)(?:#[\w-]+)?\)(?:,? section (\d+))?", page):
        path = os.path.normpath(os.path.join(os.path.dirname(name), target))
        if not os.path.exists(os.path.join(ROOT, path)):
            yield f"the link {target} leads nowhere"
        elif section and path in pages and section not in headings(pages[path]):
            yield f"{target} has no section {section}"


def shared_sessions(pages):
    """Session numbers that programs with different idents name."""
    owners = {}
    for name, page in pages.items():
        for program in re.findall(r"^```c \S+\n(.*?)^```", page, re.M | re.S):
            for ident in re.findall(r'd_get_auth\("([^"]+)"', program):
                for number in re.findall(r"d_(?:open|resume|reopen)_ses\((\d+)", program):
                    owners.setdefault(number, set()).add(f"{name} ({ident})")
    assert len(owners) > 4, f"no C programs with sessions were found in the pages: {owners}"
    return [f"session {number} is used by {' and '.join(sorted(users))}" for number, users in owners.items() if len(users) > 1]


def main():
    paths = tree()
    names = sorted(path for path in paths if path.endswith(".md") and not path.startswith("tests/golden"))
    pages = {name: open(os.path.join(ROOT, name), encoding="utf-8").read() for name in names}
    bad, seen = [], 0
    for name, page in pages.items():
        prose = re.sub(r"^```.*?^```", "", page, flags=re.M | re.S)
        for text in re.findall(r"`([^`\n]+)`", prose):
            if is_path(text):
                seen += 1
                if not is_there(text, paths):
                    bad.append(f"{name}: `{text}` is not in the tree")
        bad += [f"{name}: {what}" for what in references(name, page, pages)]
    bad += shared_sessions(pages)
    assert seen > 100, "no paths were found in the pages"
    print("\n".join(bad) if bad else f"{seen} paths in {len(pages)} pages are in the tree")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
