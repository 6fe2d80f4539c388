"""Errors of a program that runs again under an ident after an edit or with other arguments."""
from __future__ import annotations

import os
import re
from typing import Sequence, Tuple

from ._caller import is_call
from .spec import as_files
from .errors import Error, Limit
from .session import Session
from .spec import Grain


def explained(error: Error, grains: Sequence[Tuple[int, Grain]], session: Session, ident: str, flags: int, recorded: str) -> Error:
    """The refusal of these grains of an executor, in words of the program: which file or which call, and what to do. `recorded`: the
    label of the grain that is there."""
    if isinstance(error, Limit):
        return _larger(error)
    number, grain = grains[min(error.refused, len(grains) - 1)]
    staged = as_files(grain.files)
    lines = re.findall(r"^\s*files\[(\d+)\]", error.text, re.M)
    changed = dict.fromkeys(os.path.basename(os.fspath(staged[int(at)].path)) for at in lines if int(at) < len(staged))
    which = f"session {session.number} of {ident!r}"
    if changed and recorded in ("", grain.label or ""):  # another call may bring other files
        text = f"{' and '.join(changed)} {'have' if len(changed) > 1 else 'has'} changed since {which} began, which keeps its results"
    else:
        said = _difference(error.text, flags, recorded, grain.label or "") if is_call(grain) else error.text
        text = f"call {number} is not as it was when {which} began: {said}"
    told = type(error)(error.code, error.name, text, session._about_failures(number) + _what_helps(text, session, ident))
    told.taken, told.refused = error.taken, error.refused
    return told


def _what_helps(text: str, session: Session, ident: str) -> str:
    ended = session.pool.grains(session.number, "finished")
    if ended and all(row.exit_code or row.signal for row in ended):
        return f"all its calls that have ended failed: dcs.Executor({ident!r}, fresh=True) removes it and runs all calls anew"
    stem, _, number = ident.rpartition("-")
    other = f"{stem}-{int(number) + 1}" if stem and number.isdigit() else f"{ident}-2"
    several = sum(row.ident == ident for row in session.pool.sessions(session.pool.login_name())) > 1
    return (f"dcs.Executor({other!r}){', as the ident of all executors of this program,' if several else ''} runs all calls anew beside it, "
            f"dcs.Executor({ident!r}, fresh=True) removes it first" +
            ("; argv=[...] names the arguments on which results depend" if "sys.argv" in text else "") +
            ("; directory=... names the one in which it runs" if "\ndirectory: " in text else ""))


def _larger(error: Limit) -> Limit:
    helps = 'larger data goes as a file, files={"data": "/path/of/data"} of the executor or of submit_command(), or lies where the hosts see it'
    told = Limit(error.code, error.name, error.text, helps if "length of the input" in error.text else error.hint)
    told.taken, told.refused = error.taken, error.refused
    return told


def _difference(text: str, flags: int, recorded: str, label: str) -> str:
    """With the names that the words of a call's command have in the program, behind so many flags of the interpreter; of the input,
    which is a pickle, the calls by their labels."""
    calls = f"recorded {recorded}, now {label}" if label != recorded != "" else f"the arguments of {label} differ"
    text = re.sub(r"^input: .*", lambda _: calls, text, flags=re.M)
    names = {0: "python", 2 + flags: "directory"}
    text = re.sub(r"\nargv: .*|\nenv PWD: .*", "", text)
    return re.sub(r"^argv\[(\d+)\]", lambda at: names.get(int(at[1]), f"sys.argv[{int(at[1]) - 3 - flags}]"), text, flags=re.M)
