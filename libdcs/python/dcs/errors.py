"""What can go wrong, a class for each code of dcs.h."""
from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Type

from ._fields import printable

if TYPE_CHECKING:
    from .result import Result


class Error(Exception):
    """A call failed. `code` and `name` as in dcs.h, `text`: what happened here, `hint`: what to do about it.

    After Session.submit_many: `taken` grains from the beginning are submitted; `refused` is the index of the grain on
    account of which the call ended, or the number of grains when it was not about one of them."""
    code = 0

    def __init__(self, code: int, name: str, text: str, hint: str):
        super().__init__(printable(text if hint in text else f"{text} ({hint})"))
        self.code, self.name, self.text, self.hint = code, name, text, hint
        self.taken, self.refused = 0, 0

    def __reduce__(self):
        return _remade, (self.code, self.name, self.text, self.hint, self.taken, self.refused)


class Unreachable(Error, ConnectionError):
    """No scheduler answers; nothing happened."""
    code = 1


class Broken(Error, ConnectionError):
    """The connection broke and could not be made again in time."""
    code = 2


class NoAuth(Error):
    """The scheduler no longer knows this program's token."""
    code = 3


class Refused(Error, PermissionError):
    """Not permitted."""
    code = 4


class Invalid(Error, ValueError):
    """A wrong argument."""
    code = 5


class SessionActive(Error):
    """The session number is in use."""
    code = 6


class SessionClosed(Error):
    """The session is terminated."""
    code = 7


class SessionUnknown(Error):
    """There is no such session, or it was not opened by this program."""
    code = 8


class SessionTaken(Error):
    """The session is bound to another ident, or another program took it over."""
    code = 9


class GrainExists(Error):
    """The grain's number is in use."""
    code = 10


class GrainDiffers(Error):
    """A resumed program submits something else under the same number; `text` names what differs."""
    code = 11


class GrainUnknown(Error):
    """There is no such grain."""
    code = 12


class NothingYet(Error):
    """Nothing finished that was not handed out."""
    code = 13


class NothingLeft(Error):
    """The session has no grain that could still give a result."""
    code = 14


class CannotRun(Error):
    """No configured host could ever run what remains."""
    code = 15


class NoSpace(Error):
    """The scheduler's disk is full; the call may be repeated."""
    code = 16


class IoError(Error):
    """Reading or writing failed, here or there."""
    code = 17


class Limit(Error):
    """A limit of the installation."""
    code = 18


class Protocol(Error):
    """Library and scheduler do not understand each other."""
    code = 19


class ReplayEnd(Error):
    """The replay of a closed session met something that is not in its record."""
    code = 20


class NotFound(Error, LookupError):
    """There is no such thing."""
    code = 21


class Internal(Error):
    """A fault in DCS."""
    code = 22


_CLASSES: Dict[int, Type[Error]] = {kind.code: kind for kind in Error.__subclasses__()}


def error_of(code: int, name: str, text: str, hint: str) -> Error:
    return _CLASSES.get(code, Error)(code, name, text, hint)


def _remade(code: int, name: str, text: str, hint: str, taken: int, refused: int) -> Error:
    error = error_of(code, name, text, hint)
    error.taken, error.refused = taken, refused
    return error


class GrainFailed(Exception):
    """A grain ended by a signal or with an exit status other than 0. `result` has everything about it, `why`: how the pool ended it."""

    def __init__(self, result: Result, why: str = ""):
        self.result, self.why = result, why
        how = f"was ended by signal {result.signal}" if result.signal else f"ended with status {result.code}"
        said = result.error_head.decode(errors="replace").strip().splitlines()
        super().__init__(f"grain {result.grain} of session {result.session} {how}" + (f" {why}" if why else "") +
                         (f": {said[-1][:300]}" if said else ""))


class CallFailed(Exception):
    """A function that an Executor called on the pool raised an exception. With the encoding "pickle" this is the
    `__cause__` of that exception, with "json" it comes instead of it. `kind`: its class; `traceback`: as printed there."""

    def __init__(self, kind: str, text: str, traceback: str):
        super().__init__(f"{kind}: {text}\n\n{traceback}")
        self.kind, self.text, self.traceback = kind, text, traceback

    def __reduce__(self):
        return CallFailed, (self.kind, self.text, self.traceback)
