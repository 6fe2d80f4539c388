"""The words of a command: its options, and which of them DCS has, accepts without effect, or refuses."""
from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from typing import Callable, Dict, List, NoReturn, Optional, Sequence, Tuple

from .._fields import printable

Values = Dict[str, List[str]]


class Wrong(Exception):
    """The command cannot do what it is asked to."""


def say(command: str, text: str) -> None:
    print(f"{command}: {printable(text)}", file=sys.stderr)


def leave(command: str, text: str) -> NoReturn:
    say(command, text)
    sys.exit(1)


@dataclass(frozen=True)
class Option:
    """`names`: all spellings, the last one is its key. `value`: "": it takes none; "[X]": it may take one. `note`: it is
    accepted, and this says why it has no effect. `refusal`: what there is instead; `firm`: and the user cannot ignore it."""
    names: str
    value: str = ""
    note: str = ""
    refusal: str = ""
    firm: bool = False

    @property
    def key(self) -> str:
        return self.names.split()[-1].lstrip("-")


class Options:
    """The options of one command. DCS_JOBS_IGNORE names refused ones that are to be ignored all the same."""

    def __init__(self, command: str, options: Sequence[Option], long_dash: str = "--"):
        self.command, self.options, self.long_dash = command, options, long_dash
        self.ignored = set(os.environ.get("DCS_JOBS_IGNORE", "").replace(",", " ").split())
        self.noted: Dict[str, str] = {}

    def take(self, words: Sequence[str], values: Values) -> List[str]:
        """Adds the options to `values`; returns what follows them."""
        rest = list(words)
        while rest and rest[0].startswith("-") and rest[0] != "-":
            word = rest.pop(0)
            if word == "--":
                break
            name, given, glued = self._split(word)
            option = self._find(name)
            if option.value and given is None and not option.value.startswith("["):
                if not rest:
                    raise Wrong(f"option {name} needs a value: {name} {option.value}")
                given = rest.pop(0)
            if not option.value and given is not None:
                if not glued:
                    raise Wrong(f"option {name} takes no value")
                rest.insert(0, "-" + given)  # -hr is -h -r
                given = None
            self._judge(option, name, given)
            values.setdefault(option.key, []).append(given or "")
        return rest

    def take_all(self, words: Sequence[str], values: Values) -> List[str]:
        """The same, with options before and behind the other words."""
        found: List[str] = []
        while rest := self.take(words, values):
            found.append(rest[0])
            words = rest[1:]
        return found

    def read(self, words: Sequence[str], usage: str, about: str, no_word: str = "") -> Tuple[List[str], Values]:
        """All words of a command, which ends here after --help. `no_word`: why there are no words but options."""
        values: Values = {}
        rest = self.take(words, values) if no_word else self.take_all(words, values)
        if "help" in values:
            print(self.help(usage, about))
            sys.exit(0)
        if rest and no_word:
            raise Wrong(f"{rest[0]}: {no_word.format(rest[0])}")
        return rest, values

    def say_notes(self) -> None:
        for note in dict.fromkeys(self.noted.values()):
            names = [name for name, why in self.noted.items() if why == note]
            say(self.command, f"{', '.join(names)} {'has' if len(names) == 1 else 'have'} no effect: {note}")

    def _split(self, word: str) -> Tuple[str, Optional[str], bool]:
        if word.startswith("--") and "=" in word:
            name, value = word.split("=", 1)
            return name, value, False
        if self.long_dash == "-" or word.startswith("--") or len(word) == 2:
            return word, None, False
        return word[:2], word[2:], True

    def _find(self, name: str) -> Option:
        for option in self.options:
            if name in option.names.split():
                return option
        if name.startswith("--"):
            near = [option for option in self.options if any(n.startswith(name) for n in option.names.split())]
            if len(near) == 1:
                return near[0]
            if near:
                raise Wrong(f"option {name} may be " + " or ".join(option.names.split()[-1] for option in near))
        raise Wrong(f"unknown option {name}; `{self.command} --help` lists the options" if self.long_dash == "--"
                    else f"unknown option {name}; `{self.command} -help` lists the options")

    def _judge(self, option: Option, name: str, value: Optional[str]) -> None:
        if option.refusal:
            if option.key not in self.ignored or option.firm:
                said = name if value is None else f"{name}={value}" if name.startswith("--") else f"{name} {value}"
                ignores = "" if option.firm else f" (DCS_JOBS_IGNORE={option.key} ignores the option)"
                raise Wrong(f"{said}: {option.refusal}{ignores}")
            self.noted[name] = "DCS_JOBS_IGNORE names it"
        elif option.note:
            self.noted[name] = option.note

    def help(self, usage: str, about: str) -> str:
        lines = [f"Usage: {usage}", about, ""]
        kinds = (("Options:", lambda o: not o.note and not o.refusal), ("Accepted, without effect:", lambda o: bool(o.note)),
                 ("Refused:", lambda o: bool(o.refusal)))
        for title, belongs in kinds:
            rows = [option for option in self.options if belongs(option)]
            if rows:
                lines.append(title)
            for option in rows:
                names = ", ".join(option.names.split()) + (" " + option.value if option.value else "")
                text = option.note or option.refusal
                lines.append(f"  {names}" + (f"\n      {text}" if text else ""))
        return "\n".join(lines)


def directives(script: bytes, prefix: bytes, everywhere: bool) -> List[str]:
    """The words of the lines #SBATCH, #$ or #PBS of a script: everywhere in it, or before its first command."""
    words: List[str] = []
    for number, line in enumerate(script.split(b"\n")):
        stripped = line.strip()
        if stripped.startswith(prefix) and (len(stripped) == len(prefix) or stripped[len(prefix):][:1].isspace()):
            text = stripped[len(prefix):].decode("utf-8", "surrogateescape")
            try:
                words += shlex.split(text, comments=True)
            except ValueError as error:
                raise Wrong(f"line {number + 1} of the script: {stripped.decode(errors='replace')}: {error}") from error
        elif stripped and not stripped.startswith(b"#") and not everywhere:
            break
    return words


def last(values: Values, key: str) -> Optional[str]:
    return values[key][-1] if key in values else None


def whole(text: str, what: str, least: int = 0) -> int:
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < least:
        raise Wrong(f"{what}: {text!r} is not a whole number" + (f" of at least {least}" if least else ""))
    return int(text)


def megabytes(text: str, what: str, unit: str = "M") -> int:
    """A size such as 500, 4G, 1.5gb, as megabytes, rounded up."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([bkmgt]?)(?:i?b)?", text.strip().lower())
    if not found:
        raise Wrong(f"{what}: {text!r} is not a size such as 500M or 4G")
    scale = {"b": 1 / 1048576, "k": 1 / 1024, "m": 1, "g": 1024, "t": 1048576}[found[2] or unit.lower()]
    return max(1, -int(-float(found[1]) * scale // 1))


def task_list(text: str, what: str) -> List[int]:
    """1-10:2,15 as numbers, the lowest first: in this order they start."""
    numbers: List[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", part.strip())
        if not found or (found[3] and int(found[3]) == 0):
            raise Wrong(f"{what}: {text!r} is not a list of tasks such as 1-10, 0-20:5 or 1,3,5")
        first, end = int(found[1]), int(found[2] or found[1])
        if end < first:
            raise Wrong(f"{what}: {part!r} ends before it begins")
        if end - first > 1_000_000:
            raise Wrong(f"{what}: {part!r} is not a range of at most a million tasks")
        numbers += range(first, end + 1, int(found[3] or 1))
    if len(set(numbers)) != len(numbers):
        raise Wrong(f"{what}: {text!r} names a task twice")
    return sorted(numbers)


def ranges(numbers: Sequence[int]) -> str:
    """The reverse: 1-3,7."""
    parts: List[List[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] + 1 == number:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def expand(pattern: str, percent: Callable[[str, int], Optional[str]]) -> str:
    """%j, %4a: `percent` gives the text of a letter, None for one that means nothing."""
    def one(found: "re.Match[str]") -> str:
        if found[2] == "%":
            return "%"
        text = percent(found[2], int(found[1] or 0))
        return found[0] if text is None else text
    return re.sub(r"%(\d*)([A-Za-z%])", one, pattern)


def dcs_command() -> str:
    """dcs of this installation: bin/dcs beside libexec/dcs, else of PATH."""
    here = os.path.dirname(os.path.realpath(sys.argv[0]))
    for path in (os.path.join(here, "../../bin/dcs"), os.environ.get("DCS_BIN", "") + "/dcs"):
        if os.access(path, os.X_OK):
            return path
    return shutil.which("dcs") or "dcs"
