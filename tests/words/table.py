"""texts.txt: each text of an error and a test that provokes it, one a line: TEST, a tab, FILE: WORDS. The TEST is `-` for
those that no test provokes yet. cannot.txt: those that no test can provoke, and why."""
import os

import sources

HERE = os.path.dirname(os.path.abspath(__file__))
NONE = "-"


def rows(name):
    with open(os.path.join(HERE, name)) as file:
        return [tuple(line.rstrip("\n").split("\t", 1)) for line in file if line.strip() and not line.startswith("#")]


def read():
    """Key -> test."""
    try:
        found = rows("texts.txt")
    except FileNotFoundError:
        return {}
    return {key: test for test, key in found}


def cannot():
    """Key -> why. A key that ends in `: *` is every text of its file."""
    return {key: why for why, key in rows("cannot.txt")}


def excused(key, reasons):
    return key in reasons or key.split(": ", 1)[0] + ": *" in reasons


def note(recorded, test, made):
    """Writes down what a test has provoked; what it provokes no more is left to others."""
    for key in [k for k, t in recorded.items() if t == test and k not in made]:
        recorded[key] = NONE
    for key in made:
        if recorded.get(key, NONE) == NONE:
            recorded[key] = test
    return []


def differences(recorded, test, made):
    return [f"is not provoked by it: {key}" for key, t in sorted(recorded.items()) if t == test and key not in made]


def write(recorded):
    reasons = cannot()
    lines = []
    for text in sources.all_texts():
        test = recorded.get(text.key, NONE)
        if test != NONE or not excused(text.key, reasons):
            lines.append(f"{test}\t{text.key}\n")
    with open(os.path.join(HERE, "texts.txt.new"), "w") as file:
        file.writelines(lines)
    os.rename(os.path.join(HERE, "texts.txt.new"), os.path.join(HERE, "texts.txt"))
