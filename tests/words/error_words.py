#!/usr/bin/python3
"""Every text of an error is provoked by a test. texts.txt says for each by which, as measure.py saw it; here it is checked
that it knows every text of the sources, that the tests which it names are there, and that none is without one.
A new text needs a test: write it, then `measure.py build` and `measure.py run TEST` write it down."""
import os
import sys

import sources
import table


def known_tests():
    """The programs and scripts that tests/CMakeLists.txt and its folders make tests of."""
    here = os.path.join(sources.ROOT, "tests")
    found = {f"process/{name[:-3]}" for name in os.listdir(os.path.join(here, "process")) if name.endswith(".py")}
    found |= {"process/locks_kill_storm", "words/transcripts", "paper_scheduling", "crash_calls"}
    for kind in ("unit", "paper", "crash"):
        for name in os.listdir(os.path.join(here, kind)):
            found.add(f"{kind}_{name}")
    return found


def main():
    recorded, reasons, tests = table.read(), table.cannot(), known_tests()
    texts = sources.all_texts()
    keys = {text.key for text in texts}
    wrong = []
    for text in texts:
        if recorded.get(text.key, table.NONE) == table.NONE and not table.excused(text.key, reasons):
            wrong.append(f"{text.path}:{text.line}: no test provokes the text \"{text.words}\"")
    wrong += [f"texts.txt: there is no such text any more: {key}" for key in recorded if key not in keys]
    wrong += [f"texts.txt: there is no test {test}" for test in sorted(set(recorded.values()) - tests - {table.NONE})]
    paths = {key.split(": ", 1)[0] for key in keys}
    wrong += [f"cannot.txt: there is no such text any more: {key}" for key in reasons
              if key not in keys and not (key.endswith(": *") and key[:-3] in paths)]
    wrong += [f"cannot.txt: {recorded[key]} does provoke it: {key}" for key in reasons
              if recorded.get(key, table.NONE) != table.NONE]
    excused = sum(table.excused(text.key, reasons) for text in texts)
    print("\n".join(wrong) if wrong else f"{len(texts)} texts of errors: {len(texts) - excused} are provoked by a test, "
          f"{excused} cannot be, for the reasons in cannot.txt")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
