#!/usr/bin/python3
"""Commands that texts of the programs name can be pasted: every `dcs ...` in backticks, and every hint of `dcs grain explain`
that begins with dcs, names a verb that there is, and options that it has."""
import functools
import os
import re
import subprocess

from pool import ROOT, program

FOLDERS = ("libdcs/commands/dcs", "libdcs/client", "libdcs/python/dcs", "scheduler", "grainserver", "backupd")


def literals(text, python):
    """String literals, adjacent ones joined."""
    if not python:
        text = re.sub(r'"\s*\n\s*"', "", text)
        return re.findall(r'"((?:[^"\\\n]|\\.)*)"', text) + re.findall(r'R"\((.*?)\)"', text, re.S)
    return re.findall(r'"((?:[^"\\\n]|\\.)*)"', text) + re.findall(r"'((?:[^'\\\n]|\\.)*)'", text)


def named_in_sources():
    """(file, command line) of each."""
    for folder in FOLDERS:
        for where, _, files in os.walk(os.path.join(ROOT, folder)):
            for file in sorted(files):
                if not file.endswith((".cc", ".h", ".py")):
                    continue
                with open(os.path.join(where, file)) as source:
                    text = source.read()
                for literal in literals(text, file.endswith(".py")):
                    for line in re.findall(r"`dcs ([^`]*)(?:`|$)", literal):
                        yield file, line
                if file == "reasons.cc":
                    for line in re.findall(r"\bdcs ([a-z]+(?: [a-z-]+)?(?: [A-Z]+| --[a-z-]+)*)", text):
                        yield file, line


@functools.lru_cache(None)
def help_of(*verb):
    done = subprocess.run([program("dcs"), *verb, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    return done.stdout.decode() if done.returncode == 0 else None


def verb_of(words):
    """The longest beginning that is a command."""
    for length in (2, 1):
        if len(words) >= length and all(re.fullmatch("[a-z][a-z-]*", word) for word in words[:length]) and help_of(*words[:length]):
            return words[:length]
    return None



def wrong_with(line):
    command = line.split(" -- ")[0]
    words = command.split()
    if not words or words[0].startswith(("-", ".", "%", "VERB")):
        return None
    verb = verb_of(words)
    if verb is None or (len(words) > 1 and "Usage: dcs " + verb[0] + " VERB" in help_of(*verb)):
        return "no such command"
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", command):
        if option != "--help" and not re.search(re.escape(option) + r"(?![\w-])", help_of(*verb)):
            return f"dcs {' '.join(verb)} has no {option}"
    return None


def groups_have_help():
    """Each group of commands has words of its own, its commands, and examples of these; not what all commands share."""
    verbs = [line.split()[:2] for line in help_of().splitlines() if re.match(r"  [a-z]+ [a-z]+  ", line) and line[2:6] != "dcs "]
    nouns = {noun for noun, _ in verbs}
    assert {"session", "grain", "host", "backup", "pilot", "token", "config"} <= nouns, nouns
    texts = [help_of(noun) for noun in sorted(nouns)]
    for noun, text in zip(sorted(nouns), texts):
        assert all(f"  {noun} {verb} " in text for of, verb in verbs if of == noun), text
        examples = re.findall(r"^  dcs (\S+)", text, re.M)
        assert examples and set(examples) == {noun} and "Exit codes" not in text and f"dcs {noun} VERB --help" in text, text
    assert len({text.split("\n")[0] for text in texts}) == len(nouns), texts


def main():
    groups_have_help()
    lines = sorted(set(named_in_sources()))
    assert len(lines) > 100, lines
    wrong = [f"{file}: dcs {line}: {why}" for file, line in lines for why in [wrong_with(line)] if why]
    assert not wrong, "\n".join(wrong)
    assert wrong_with("session clos 3") and wrong_with("grain ls 3 --stat failed") and not wrong_with("up --dir /a")
    print(f"{len(lines)} commands are named in texts")


if __name__ == "__main__":
    main()
