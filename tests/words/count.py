#!/usr/bin/python3
"""Counts the words of the pages (prose; blocks of code and commands, which tests run; parts that a program writes or a test compares
with the code) and filler words (docs/STYLE.md) in comments and texts. Figures for people; no test judges by them.
    count.py            the sums
    count.py pages      each page
    count.py product|tests|pages-filler    each filler word there"""
import collections
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Page: headings of the sections whose tables and lists a test compares with the code.
COMPARED = {"SECURITY.md": ("9. ", "10. "), "AUTHORISATION.md": ("2. ", "3. "), "SCHEDULING.md": ("8. ", "9. "),
            "ARCHITECTURE.md": ("2. ",), "CONFIGURATION.md": ("",)}
FILLER = re.compile(
    r"\b(somebody|nobody|whoever|someone|anybody|everybody|(?:is|are|was|were|be|been) told|told what|it is looked|"
    r"stands? (?:there|in|beside|at|above|below|here)|stood there|for good|simply|of course|as it were|again and again|anew|really|"
    r"actually|quite|obviously|clearly|turned away|comes? to nothing|wish(?:es|ed)?|lets? go|thereby|what came|it is there|"
    r"goes? on with)\b", re.I)
TEXTS = re.compile(r"\.(cc|h|c|hpp|js|css|py|sh|cmake|md|1)$")
SLASHED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|R"\(.*?\)"', re.S)
HASHED = re.compile(r'#[^\n]*|""".*?"""|"(?:[^"\\\n]|\\.)*"', re.S)


def words_of(path):
    """Prose, blocks, written by a program or compared."""
    count, heading, made, fenced = [0, 0, 0], "", False, False
    compared = COMPARED.get(os.path.basename(path), ()) if "/docs/" in path else ()
    for line in open(path):
        made = made or (line.startswith("<!-- ") and "made by" in line)
        if line.startswith("## "):
            heading = line[3:]
        row = line.startswith(("|", "`")) and any(heading.startswith(start) for start in compared)
        fence = line.startswith("```")
        count[2 if made or row and not fenced and not fence else 1 if fenced or fence or line.startswith("    ") else 0] += len(line.split())
        fenced ^= fence and not made
        made = made and not line.startswith("<!-- end")
    return count


def fillers():
    """(kind, word, place)"""
    for name in subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        if not TEXTS.search(name) or name.startswith(("tests/golden", "docs/STYLE")) or name.endswith("words/count.py"):
            continue
        text = open(os.path.join(ROOT, name), errors="replace").read()
        pages = name.endswith((".md", ".1"))
        pattern = SLASHED if name.endswith((".cc", ".h", ".c", ".hpp", ".js", ".css")) else HASHED
        for part in [re.match(r".*", text, re.S)] if pages else pattern.finditer(text):
            for found in FILLER.finditer(part.group()):
                at = part.start() + found.start()
                if found.group().lower() == "nobody" and re.search(r"[\"'`]nobody|nobody[\"'`:-]", text[at - 1:at + 7]):
                    continue  # the account
                yield "tests" if name.startswith("tests") else "pages-filler" if pages else "product", found.group(), \
                    f"{name}:{text.count(chr(10), 0, at) + 1}"


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    sums = [0, 0, 0]
    for path in [os.path.join(ROOT, name) for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")] + \
            sorted(glob.glob(os.path.join(ROOT, "docs/*.md"))):
        count = words_of(path)
        sums = [a + b for a, b in zip(sums, count)]
        if wanted == "pages":
            print(*(f"{number:7}" for number in count), os.path.relpath(path, ROOT))
    print(f"pages: {sums[0]} words of prose, {sums[1]} in blocks, {sums[2]} written or compared by programs; {sum(sums)} in all")
    kinds = collections.Counter()
    for kind, word, place in fillers():
        kinds[kind] += 1
        if kind == wanted:
            print(f"{place}: {word}")
    print("filler words:", ", ".join(f"{number} in {kind.split('-')[0]}" for kind, number in sorted(kinds.items())))


if __name__ == "__main__":
    main()
