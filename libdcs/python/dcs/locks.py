"""The locks of dcs_lock.h: adaptive locks for jobs that are started repeatedly, a first-come-first-served lock, and counted
slots. They need no scheduler. The command dcs_lock and programs in C use the same locks under the same names.

    from dcs import locks

    with locks.get("backup", "/home", if_elapsed=15 * 60, expire_after=90 * 60):
        make_the_backup()                   # an exception that leaves the block records the run as failed

    with locks.enter("ledger"):             # one at a time, in order of arrival
        ...
    with locks.slots({"licences": 4}):      # at most four holders at a time
        ...

All times are seconds. A lock belongs to the process: when it ends, however it ends, its locks are free. docs/LOCKS.md describes them.
"""
from __future__ import annotations

import ctypes
import os
import threading
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, Callable, ClassVar, List, Mapping, Optional, Tuple, TypeVar, Union, cast

from ._fields import STRUCTURES, c_bytes, c_bytes_or_none, number, text
from ._library import library

AUTO = "auto"  # a limit that is learned from the runs and denials of this atom
Limit = Union[float, str, None]
Held = TypeVar("Held")

_NANOSECONDS = 10**9
_FOREVER = 2**63 - 1
_calls: Optional[Any] = None


def _structure(name: str, *fields: Tuple[str, Any]) -> Any:
    STRUCTURES[name] = type(name, (ctypes.Structure,), {"_fields_": [("struct_size", c_size_t), *fields]})
    return STRUCTURES[name]


_HOLDER = (("holder", c_int), ("holder_uid", c_uint32), ("holder_host", c_char * 64), ("holder_command", c_char * 64))
_Request = _structure(
    "d_lock_request", ("operator_", c_char_p), ("operand", c_char_p), ("host", c_char_p), ("path", c_char_p),
    *((name, c_int64) for name in ("if_elapsed", "expire_after", "expire_max", "interval", "now", "wait")),
    ("grace", c_int64 * 3),
    *((name, c_int) for name in ("max_kills", "since_start", "queue", "shared", "instances", "literal")))
_Answer = _structure(
    "d_lock_answer", *((name, c_int) for name in ("reason", "took_over", "after_crash", "clock_stepped", "done_since")),
    ("token", c_uint64), *((name, c_int64) for name in ("elapsed", "age", "again_in", "soft", "hard")), *_HOLDER)
_State = _structure(
    "d_lock_state", *((name, c_int) for name in ("exists", "held", "shared", "waiting")), ("token", c_uint64), *_HOLDER,
    ("outcome", c_char * 16), ("started", c_int64), ("ended", c_int64))
_SlotHolder = _structure("d_slot_holder", ("number", c_int), ("pid", c_int), ("uid", c_uint32), ("since", c_int64),
                         ("command", c_char * 64), ("note", c_char * 72))


class Denied(Exception):
    """The lock was not granted; str() says why. `reason`: the word of d_lock_reason_word, such as "busy". `again_in`: seconds
    until the request would be granted, None if that is not known. `holder`: its process id, 0 if it is not known."""

    def __init__(self, said: str, reason: str, again_in: Optional[float] = None, holder: int = 0):
        super().__init__(said)
        self.reason, self.again_in, self.holder = reason, again_in, holder

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.reason, self.again_in, self.holder)


class Failed(Denied, OSError):
    """The request or the lock itself failed: a wrong argument, no permission, a full disk. Nothing is locked."""


def _library() -> Any:
    global _calls
    if _calls is None:
        calls = library()
        for name, arguments, result in (
                ("lock_init_sized", [c_void_p, c_size_t], None), ("lock_get", [c_void_p, c_void_p, c_void_p], c_int),
                ("lock_release", [c_void_p, c_int], c_int), ("lock_abandon", [c_void_p], None), ("lock_adopt", [c_void_p], c_int),
                ("lock_fd", [c_void_p], c_int), ("lock_token", [c_void_p], c_uint64),
                ("lock_look", [c_char_p, c_char_p, c_char_p, c_void_p], c_int), ("lock_reason_word", [c_int], c_char_p),
                ("lock_errortext", [], c_char_p), ("lock_enter", [c_char_p, c_int64, c_void_p], c_int), ("lock_leave", [c_void_p], c_int),
                ("slot_take", [POINTER(c_char_p), POINTER(c_int), c_size_t, c_int64, c_char_p, c_void_p], c_int),
                ("slot_number", [c_void_p, c_size_t], c_int), ("slot_fd", [c_void_p, c_size_t], c_int), ("slot_release", [c_void_p], c_int),
                ("slot_list", [c_char_p, c_void_p, c_size_t, POINTER(c_size_t)], c_int)):
            call = getattr(calls, "d_" + name)
            call.argtypes, call.restype = arguments, result
        _calls = calls
    return _calls


def _nanoseconds(what: str, seconds: Limit) -> int:
    """None is without limit."""
    if seconds is None:
        return _FOREVER
    if seconds == AUTO and what in ("if_elapsed", "expire_after"):
        return -1
    if isinstance(seconds, (str, bool)) or not seconds >= 0:
        raise ValueError(f"{what} is {seconds!r}: it takes seconds, 0 or more, None for no limit" +
                         (", or locks.AUTO" if what in ("if_elapsed", "expire_after") else ""))
    return min(round(seconds * _NANOSECONDS), _FOREVER) if seconds != float("inf") else _FOREVER


def _seconds(nanoseconds: int) -> Optional[float]:
    return None if nanoseconds in (-1, _FOREVER) else nanoseconds / _NANOSECONDS


def _check(reason: int, answer: Any = None) -> None:
    if reason:
        lib = _library()
        word = text(lib.d_lock_reason_word(reason))
        kind = Failed if word == "failed" else Denied
        raise kind(text(lib.d_lock_errortext()), word, _seconds(answer.again_in) if answer else None, answer.holder if answer else 0)


def _wait(take: Callable[[], Held], wait: Optional[float]) -> Held:
    """What take() returns or raises. A wait of the library does not end at a signal, and one in a queue cannot be made of short
    ones, so it runs in a thread that is left behind by an interrupt (Ctrl-C) and gives back what it is granted then."""
    if wait == 0 or threading.current_thread() is not threading.main_thread():
        return take()
    guard, ended = threading.Lock(), threading.Event()
    outcome: List[Any] = []
    abandoned: List[bool] = []

    def run() -> None:
        try:
            held: Any = take()
        except BaseException as error:
            held = error
        with guard:
            outcome.append(held)
            if abandoned and not isinstance(held, BaseException):
                held.release()
        ended.set()
    try:
        threading.Thread(target=run, daemon=True).start()
        while not ended.wait(1):
            pass
    except BaseException:
        with guard:
            abandoned.append(True)
            if outcome and not isinstance(outcome[0], BaseException):
                outcome[0].release()
        raise
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return cast(Held, outcome[0])


class Lock:
    """A lock that was granted. It is released by release(), or at the end of its `with` block; otherwise it is held until the
    process and the processes forked from it have ended. A forked child that leaves the block, without adopt(), abandons it. `token` increases with each grant of the atom. `took_over`: an expired
    holder was ended for it; `after_crash`: the run before ended without releasing it; `elapsed`: seconds since the last run ended,
    None if there was none; `expires_in`: seconds until it may be taken over, None for never."""

    _leave: ClassVar[bool] = False

    def __init__(self, handle: c_void_p, answer: Any = None):
        self._handle: Optional[c_void_p] = handle
        self._process = os.getpid()
        self.token: int = _library().d_lock_token(handle)
        self.took_over, self.after_crash = bool(answer and answer.took_over), bool(answer and answer.after_crash)
        self.elapsed = _seconds(answer.elapsed) if answer else None
        self.expires_in = _seconds(answer.soft) if answer else None

    def _held(self) -> c_void_p:
        if self._handle is None:
            raise ValueError("the lock was released before")
        return self._handle

    def fileno(self) -> int:
        """The descriptor that holds the lock, to be passed on to a program (`pass_fds`)."""
        return int(_library().d_lock_fd(self._held()))

    def adopt(self) -> None:
        """In a child after os.fork(): it is the holder now, the process that is ended when the lock expires."""
        _check(_library().d_lock_adopt(self._held()))
        self._process = os.getpid()

    def release(self, succeeded: bool = True) -> None:
        """At once, also for forked children. Not succeeded: the run is recorded as failed."""
        handle, self._handle = self._held(), None
        lib = _library()
        _check(lib.d_lock_leave(handle) if self._leave else lib.d_lock_release(handle, succeeded))

    def abandon(self) -> None:
        """Closes this process's share; forked children keep the lock."""
        handle, self._handle = self._held(), None
        _library().d_lock_abandon(handle)

    def __enter__(self) -> Lock:
        self._held()
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self._handle is not None and self._process == os.getpid():
            self.release(kind is None)
        elif self._handle is not None:
            self.abandon()


class _Entered(Lock):
    _leave = True


def get(operator: str = "", operand: Optional[str] = None, host: Optional[str] = None, *, path: Any = None, if_elapsed: Limit = 0,
        expire_after: Limit = None, expire_max: float = 0, interval: float = 0, now: float = 0, wait: Optional[float] = 0,
        grace: Tuple[float, float, float] = (2, 5, 10), max_kills: int = 3, since_start: bool = False, queue: bool = False,
        shared: bool = False, instances: int = 0) -> Lock:
    """Requests the atom (operator, operand, host), or the file `path`; see struct d_lock_request of dcs_lock.h. None for
    expire_after: a holder is never ended; for wait: no limit. Raises Denied."""
    lib = _library()
    request, answer, handle = _Request(), _Answer(), c_void_p()
    lib.d_lock_init_sized(byref(request), ctypes.sizeof(request))
    answer.struct_size = ctypes.sizeof(answer)
    request.operator_, request.operand, request.host = (c_bytes(operator, "operator"), c_bytes_or_none(operand, "operand"),
                                                        c_bytes_or_none(host, "host"))
    request.path = None if path is None else c_bytes(os.path.join(".", os.fspath(path)), "path")
    for name, value in (("if_elapsed", if_elapsed), ("expire_after", expire_after), ("expire_max", expire_max),
                        ("interval", interval), ("now", now), ("wait", wait)):
        setattr(request, name, _nanoseconds(name, value))
    request.grace = (c_int64 * 3)(*(_nanoseconds("grace", pause) for pause in grace))
    request.max_kills, request.instances = number("max_kills", max_kills), number("instances", instances)
    request.since_start, request.queue, request.shared = since_start, queue, shared

    def take() -> Lock:
        _check(lib.d_lock_get(byref(request), byref(answer), byref(handle)), answer)
        return Lock(handle, answer)
    return _wait(take, wait)


def enter(name: str, wait: Optional[float] = None) -> Lock:
    """The first-come-first-served lock of that name; `wait`: seconds, None for no limit. Raises Denied ("busy")."""
    lib, handle, encoded, limit = _library(), c_void_p(), c_bytes(name, "name"), _nanoseconds("wait", wait)

    def take() -> Lock:
        _check(lib.d_lock_enter(encoded, limit, byref(handle)))
        return _Entered(handle)
    return _wait(take, wait)


class Slots:
    """Slots that were taken. A forked child that leaves the `with` block does not release them. `numbers`: of each limit's name, the number of the slot in it, from 0."""

    def __init__(self, handle: c_void_p, names: List[str]):
        self._handle: Optional[c_void_p] = handle
        self._process = os.getpid()
        self.numbers = {name: int(_library().d_slot_number(handle, i)) for i, name in enumerate(names)}

    def release(self) -> None:
        if self._handle is None:
            raise ValueError("the slots were released before")
        handle, self._handle = self._handle, None
        _check(_library().d_slot_release(handle))

    def __enter__(self) -> Slots:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._handle is not None and self._process == os.getpid():
            self.release()


def slots(limits: Mapping[str, int], wait: Optional[float] = None, note: Optional[str] = None) -> Slots:
    """One slot in each limit, all or none: {"licences": 4} is the limit of that name, of which 4 are held at most. Waiters are
    served in order of arrival; `wait`: seconds, None for no limit. Raises Denied ("limit")."""
    names, lib, handle, limit = list(limits), _library(), c_void_p(), _nanoseconds("wait", wait)
    encoded = (c_char_p * len(names))(*(c_bytes(name, "name") for name in names))
    most = (c_int * len(names))(*(number(name, limits[name]) for name in names))
    shown = c_bytes_or_none(note, "note")

    def take() -> Slots:
        _check(lib.d_slot_take(encoded, most, len(names), limit, shown, byref(handle)))
        return Slots(handle, names)
    return _wait(take, wait)


@dataclass(frozen=True)
class State:
    """Of an atom. Times are seconds since 1970, 0: never."""
    exists: bool
    held: bool
    shared: bool
    waiting: int
    token: int
    holder: int
    holder_uid: int
    holder_host: str
    holder_command: str
    outcome: str
    started: float
    ended: float


def look(operator: str, operand: Optional[str] = None, host: Optional[str] = None) -> State:
    """The holder of an atom and its last run. Takes no lock and creates no file."""
    state = _State(struct_size=ctypes.sizeof(_State))
    _check(_library().d_lock_look(c_bytes(operator, "operator"), c_bytes_or_none(operand, "operand"), c_bytes_or_none(host, "host"),
                                  byref(state)))
    return State(bool(state.exists), bool(state.held), bool(state.shared), state.waiting, state.token, state.holder,
                 state.holder_uid, text(state.holder_host), text(state.holder_command), text(state.outcome),
                 state.started / _NANOSECONDS, state.ended / _NANOSECONDS)


@dataclass(frozen=True)
class SlotHolder:
    number: int
    pid: int
    uid: int
    since: float
    command: str
    note: str


def slot_holders(name: str) -> List[SlotHolder]:
    """Who holds slots of the limit of that name."""
    room, count = 16, c_size_t(0)
    while True:
        rows = (_SlotHolder * room)(*(_SlotHolder(struct_size=ctypes.sizeof(_SlotHolder)) for _ in range(room)))
        _check(_library().d_slot_list(c_bytes(name, "name"), rows, room, byref(count)))
        if count.value <= room:
            return [SlotHolder(r.number, r.pid, r.uid, r.since / _NANOSECONDS, text(r.command), text(r.note))
                    for r in rows[:count.value]]
        room = count.value * 2
