"""What the grains of an executor get from the program: what `dcs map` gives to its commands, and to functions sys.argv."""
from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ._fields import as_environment
from .spec import Grain, GrainRow

CALL = "dcs_call.py"  # by which a host calls functions

# Of DCS itself, and what differs between two terminals of one user though nothing is meant by it, as in the commands.
_OURS = "DCS_AUTH_FD DCS_PATIENCE_S DCS_GRAIN_DIR DCS_GRAIN_SEQUENCE DCS_UMASK DCS_REPLAY_OF DCS_RESUME_FAILED"
_REPLAYED = "DCS_REPLAY_OF"  # dcs replay-check: what DCS_DIR was
VOLATILE = ("_ OLDPWD PWD SHLVL LINES COLUMNS WINDOWID GPG_TTY TMUX TMUX_PANE STY WINDOW INVOCATION_ID JOURNAL_STREAM "
            "XDG_VTNR XDG_SEAT XDG_SEAT_PATH VTE_VERSION DESKTOP_STARTUP_ID XDG_ACTIVATION_TOKEN ITERM_SESSION_ID "
            "WT_SESSION PYTEST_CURRENT_TEST")
FAMILIES = ("SSH_ DBUS_ XDG_SESSION_ TERM_SESSION_ KONSOLE_ GNOME_TERMINAL_ KITTY_ WEZTERM_ ALACRITTY_ VSCODE_")
_DROPPED, _FAMILIES = {*_OURS.split(), *VOLATILE.split()}, tuple(FAMILIES.split())


class Caller:
    """The program as it is when an executor is made."""

    def __init__(self, argv: Optional[Sequence[str]], pool_directory: Any):
        self.argv = _arguments() if argv is None else list(argv) or [""]
        self.directory, self._followed = os.getcwd(), False
        self.flags: List[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        self.env = {name: value for name, value in os.environ.items() if name not in _DROPPED and not name.startswith(_FAMILIES)}
        self.env["DCS_UMASK"] = _umask()
        if pool_directory:
            self.env["DCS_DIR"] = os.fsdecode(pool_directory)
        elif _REPLAYED in os.environ:
            self.env["DCS_DIR"] = os.environ[_REPLAYED]
        if not self.env.get("DCS_DIR"):
            self.env.pop("DCS_DIR", None)

    def placed(self, fields: Mapping[str, Any]) -> Dict[str, Any]:
        """With the directory of a grain of these fields; one with files has its own."""
        own = fields.get("files") or fields.get("outputs") or fields.get("image")
        fields = {"directory": None if own else self.directory, **fields}
        inherited = {}
        if fields["directory"]:
            inherited["PWD"] = fields["directory"] = os.path.join(self.directory, os.fsdecode(fields["directory"]))
        return {**fields, "env": {**inherited, **as_mapping(fields.get("env", {}))}}

    def with_environment(self, grain: Grain) -> Grain:
        """And with the flags of the interpreter."""
        env, argv = {**self.env, **as_mapping(grain.env)}, grain.argv
        if is_call(grain):  # by it an interpreter finds itself and its virtual environment; then call.py takes it out
            env["PATH"] = _bin(grain) + env.get("PATH", "/usr/bin:/bin")
            argv = [argv[0], *self.flags, *argv[1:]]
        return dataclasses.replace(grain, argv=argv, env=dict(sorted(env.items())))

    def follow(self, grain: Grain, recorded: GrainRow) -> List[str]:
        """Takes over the environment and the flags that an earlier run gave to this grain, for all of the session; once. Says which
        are not as they were."""
        if self._followed:
            return []
        self._followed = True
        env, named, flags = as_mapping(recorded.env), as_mapping(grain.env), self.flags
        if is_call(grain) and CALL in recorded.argv:
            env["PATH"] = env.get("PATH", "").removeprefix(_bin(grain))
            self.flags = list(recorded.argv[1:recorded.argv.index(CALL)])
        now, self.env = self.env, {**{name: value for name, value in env.items() if name not in named},
                                   **{name: value for name, value in self.env.items() if name in named}}
        return sorted(name for name in {*now, *self.env} if now.get(name) != self.env.get(name)) + sorted({*flags} ^ {*self.flags})


def is_call(grain: Grain) -> bool:
    return list(grain.argv[1:2]) == [CALL]


def _bin(grain: Grain) -> str:
    return os.path.dirname(os.fsdecode(grain.argv[0])) + ":"


def as_mapping(env: Any) -> Dict[str, str]:
    return {name: value for name, _, value in (entry.partition("=") for entry in as_environment(env))}


def _arguments() -> List[str]:
    """sys.argv; what an interactive interpreter was started with, such as a notebook's, is none of the program."""
    first, *others = getattr(sys, "argv", None) or [""]
    return [os.path.abspath(first) if os.path.exists(first) else first, *([] if hasattr(sys, "ps1") else others)]


def _umask() -> str:
    with open("/proc/self/status") as status:
        found = re.search(r"^Umask:\s*(\d+)", status.read(), re.M)
    return found[1] if found else "0022"
