"""What can go wrong, a class for each code of dcs.h."""
from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any, Callable, Dict, Optional, Type

from ._fields import printable


class Error(Exception):
    """A call failed. `code` and `name` as in dcs.h, `text`: what happened here, `hint`: what to do about it.

    After Session.submit_many: `taken` grains from the beginning are submitted; `refused` is the index of the grain on
    account of which the call ended, or the number of grains when it was not about one of them."""
    code = 0

    def __init_subclass__(cls, code: int = 0) -> None:
        cls.code = code or cls.code

    def __init__(self, code: int, name: str, text: str, hint: str):
        more = "" if hint in text else f". {hint}" if "(" in text + hint else f" ({hint})"
        super().__init__(printable(text + more))
        self.code, self.name, self.text, self.hint = code, name, text, hint
        self.taken, self.refused = 0, 0

    def __reduce__(self):
        return _remade, (self.code, self.name, self.text, self.hint, self.taken, self.refused)


class Unreachable(Error, ConnectionError, code=1):
    """No scheduler answers; nothing happened."""


class Broken(Error, ConnectionError, code=2):
    """The connection broke and could not be made again in time."""


class NoAuth(Error, code=3):
    """The scheduler no longer knows this program's token."""


class Refused(Error, PermissionError, code=4):
    """Not permitted."""


class Invalid(Error, ValueError, code=5):
    """A wrong argument."""


class SessionActive(Error, code=6):
    """The session number is in use."""


class SessionClosed(Error, code=7):
    """The session is terminated."""


class SessionUnknown(Error, code=8):
    """There is no such session, or it was not opened by this program."""


class SessionTaken(Error, code=9):
    """The session is bound to another ident, or another program took it over."""


class GrainExists(Error, code=10):
    """The grain's number is in use."""


class GrainDiffers(Error, code=11):
    """A resumed program submits something else under the same number; `text` names what differs."""


class GrainUnknown(Error, code=12):
    """There is no such grain."""


class NothingYet(Error, code=13):
    """Nothing finished that was not handed out."""


class NothingLeft(Error, code=14):
    """The session has no grain that could still give a result."""


class CannotRun(Error, code=15):
    """No configured host could ever run what remains."""


class NoSpace(Error, code=16):
    """The scheduler's disk is full; the call may be repeated."""


class IoError(Error, code=17):
    """Reading or writing failed, here or there."""


class Limit(Error, code=18):
    """A limit of the installation."""


class Protocol(Error, code=19):
    """Library and scheduler do not understand each other."""


class ReplayEnd(Error, code=20):
    """The replay of a closed session met something that is not in its record."""


class NotFound(Error, LookupError, code=21):
    """There is no such thing."""


class Internal(Error, code=22):
    """A fault in DCS."""


_CLASSES: Dict[int, Type[Error]] = {kind.code: kind for kind in Error.__subclasses__()}


def error_of(code: int, name: str, text: str, hint: str) -> Error:
    return _CLASSES.get(code, Error)(code, name, text, hint)


def _remade(code: int, name: str, text: str, hint: str, taken: int, refused: int) -> Error:
    error = error_of(code, name, text, hint)
    error.taken, error.refused = taken, refused
    return error


class CallFailed(Exception):
    """A function that an Executor called on the pool raised an exception. With the encoding "pickle" this is the
    `__cause__` of that exception. With "json", and for an exception that cannot be made again from its pickle, it comes
    instead. `kind`: its class; `traceback`: as printed there; `note`: why it comes instead."""

    def __init__(self, kind: str, text: str, traceback: str, note: str = ""):
        super().__init__(f"{kind}: {text}\n\n{traceback}" + (note and f"\n{note}"))
        self.kind, self.text, self.traceback, self.note = kind, text, traceback, note

    def __reduce__(self):
        return CallFailed, (self.kind, self.text, self.traceback, self.note)


# Of frames that say nothing about the program: of this package, and of what Executor and Future inherit from.
_INNER = (os.path.join(os.path.dirname(__file__), ""), os.path.join(os.path.dirname(os.__file__), "concurrent", ""))


def _in_program(trace: Optional[TracebackType]) -> Optional[TracebackType]:
    """The traceback up to the program's call of this package; all of it if no frame is the program's."""
    steps = []
    while trace is not None:
        steps.append(trace)
        trace = trace.tb_next
    last = max((i for i, step in enumerate(steps) if not step.tb_frame.f_code.co_filename.startswith(_INNER)), default=len(steps) - 1)
    for step in reversed(steps[:last + 1]):
        trace = TracebackType(trace, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return trace


def _found_here(trace: Optional[TracebackType]) -> bool:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(_INNER[0])


def _hook(show: Callable[..., Any]) -> Callable[..., Any]:
    """Shows an exception of this package that the program did not catch, other than a fault in DCS, where the program
    called: the text says what happened here. So it does with a wrong argument that this package found."""
    def shown(kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]) -> None:
        whole = error.__traceback__
        own = any(of.__module__.startswith(f"{__package__}.") for of in kind.__mro__) and not issubclass(kind, Internal)
        if own or (kind in (TypeError, ValueError) and _found_here(trace)):
            trace = error.__traceback__ = _in_program(trace)
        try:
            show(kind, error, trace)
        finally:
            error.__traceback__ = whole
    return shown


sys.excepthook = _hook(sys.excepthook)
