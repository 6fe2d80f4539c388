#!/usr/bin/python3
"""Every hazard of docs/LOCKS.md has a test that bears its name, unless the page says why it cannot occur; and no test names one
that the page does not know."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KNOWN = {"P": 38, "S": 12, "E": 14, "C": 13}
NAME = r"\b([PSEC])(\d+)(?:-[PSEC]?(\d+))?\b"


def names(text):
    found = set()
    for letter, first, last in re.findall(NAME, text):
        found |= {f"{letter}{n}" for n in range(int(first), int(last or first) + 1)}
    return found


def main():
    page = (ROOT / "docs/LOCKS.md").read_text()
    section = page[page.index("## 6. "):page.index("## 7. ")]
    table, absent = section.split("What cannot occur here", 1)
    listed = names("\n".join(line for line in table.splitlines() if line.startswith("| ")))
    cannot = names(absent)
    tested = set()
    for path in [*ROOT.glob("tests/unit/**/*.cc"), *ROOT.glob("tests/process/locks/*.py")]:
        for title in re.findall(r'TEST_CASE\("([^"]*)"|def test_(\w+)|^def (\w+)\(', path.read_text(), re.M):
            tested |= names("".join(title).replace("_", " "))
    wanted = {f"{letter}{n}" for letter, count in KNOWN.items() for n in range(1, count + 1)}
    bad = [f"{h}: docs/LOCKS.md does not name it" for h in sorted(wanted - listed - cannot)]
    bad += [f"{h}: listed, but no test bears its name" for h in sorted(listed - cannot - tested)]
    print("\n".join(bad) if bad else f"{len(listed | cannot)} hazards, {len(listed & tested)} with tests of their name")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
