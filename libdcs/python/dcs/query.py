"""What the pool knows: itself, hosts, sessions and grains. None of these calls changes anything but restart()."""
from __future__ import annotations

import ctypes
import os
import pwd
from dataclasses import dataclass, fields
from typing import Any, BinaryIO, List, Optional, Tuple, Type, TypeVar

from . import _library as lib

_SYSTEM, _HOSTS, _SESSIONS, _GRAINS, _GRAIN = 0, 1, 2, 3, 8
_STATES = {None: _GRAINS, "ready": 4, "running": 5, "finished": 6, "killed": 7}
_HOST_STATES = {None: _HOSTS, "active": 9, "delinquent": 10}


@dataclass(frozen=True)
class System:
    """The scheduler."""
    epoch: int
    turn: int
    scheduler_pid: int
    up_s: int
    ready: int
    running: int
    hosts_total: int
    hosts_active: int
    sessions_active: int
    version: str


@dataclass(frozen=True)
class HostRow:
    """A host, as `struct d_host_row` of dcs.h. Seconds end in _s; -1: not known, or never."""
    name: str
    state: str
    binary_class: str
    host_class: int
    slots: int
    running: int
    last_call_in_s: float
    interval_s: float
    alert_s: float
    limit_s: float
    extended_s: float
    load: float
    free_memory_kb: int
    cores: int
    cores_used: int
    memory_mb: int
    memory_used_mb: int
    connected: int
    drained: int
    settings: str
    note: str
    users: Tuple[str, ...]
    blamed: int
    blamed_lately: int
    launched: int
    finished: int
    failed: int
    given_back: int
    cpu_s: float
    confinement: str


@dataclass(frozen=True)
class SessionRow:
    """A session, with the numbers of its grains by state."""
    user: str
    ident: str
    state: str
    session: int
    ready: int
    running: int
    finished: int
    killed: int
    sent: int
    saved_cpu_s: float


@dataclass(frozen=True)
class Move:
    """One of the latest times that a grain changed places."""
    reason: str
    host: str
    detail: str
    incarnation: int
    age_s: float


@dataclass(frozen=True)
class FileRow:
    """A file that a grain was to bring back; `digest` is empty when it did not."""
    name: str
    size: int
    digest: str


@dataclass(frozen=True)
class GrainRow:
    """A grain. `argv`, `nogo`, `moves` and `files` are there after grain_row(), empty after grains()."""
    user: str
    state: str
    host: str
    label: str
    message: str
    session: int
    grain: int
    starts: int
    restarts: int
    failures: int
    exit_code: int
    signal: int
    result_index: int
    incarnation: int
    host_class: int
    cpu_s: float
    run_cpu_s: float
    saved_cpu_s: float
    last_contact_s: float
    checkpoint_age_s: float
    out_length: int
    err_length: int
    checkpoint_length: int
    thrash: int
    notice: int
    attempts: int
    cores: int
    memory_mb: int
    wall_s: int
    urgent: int
    argv: Tuple[str, ...]
    nogo: Tuple[str, ...]
    moves: Tuple[Move, ...]
    files: Tuple[FileRow, ...]


@dataclass(frozen=True)
class Reason:
    """Why a grain is where it is. `hosts`: for how many it holds; 0: it is about the grain itself."""
    reason: str
    text: str
    hint: str
    hosts: int
    names: Tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """`can_run`: 0 when no configured host could ever run it. `ahead`: grains before it in its session's queue, or -1."""
    state: str
    summary: str
    can_run: int
    ahead: int
    reasons: Tuple[Reason, ...]


Row = TypeVar("Row")
_COUNTS = {"users": "user_count", "nogo": "nogo_count", "moves": "move_count", "files": "file_count", "names": "name_count",
           "reasons": "reason_count"}


def _row(kind: Type[Row], row: Any) -> Row:
    values = {}
    for field in fields(kind):  # type: ignore[arg-type]
        value = getattr(row, field.name)
        if field.name == "argv":
            values["argv"] = _until_null(value)
        elif field.name in _COUNTS:
            count = getattr(row, _COUNTS[field.name])
            values[field.name] = tuple(_item(value[i]) for i in range(count)) if value else ()
        else:
            values[field.name] = lib.text(value) if value is None or isinstance(value, bytes) else value
    return kind(**values)


def _item(value: Any) -> Any:
    kinds = {lib.MoveRow: Move, lib.FileRow: FileRow, lib.Reason: Reason}
    return lib.text(value) if value is None or isinstance(value, bytes) else _row(kinds[type(value)], value)


def _until_null(strings: Any) -> Tuple[str, ...]:
    found: List[str] = []
    while strings and strings[len(found)] is not None:
        found.append(lib.text(strings[len(found)]))
    return tuple(found)


def _query(what: int, user: Optional[str], session: int, grain_number: int, kind: Type[Row], rows: str, count: str) -> List[Row]:
    info = ctypes.POINTER(lib.Info)()
    lib.call("d_query", what, lib.c_bytes_or_none(user, "user"), session, grain_number, ctypes.byref(info))
    try:
        if not rows:
            return [_row(kind, info.contents)]
        return [_row(kind, getattr(info.contents, rows)[i]) for i in range(getattr(info.contents, count))]
    finally:
        lib.library().d_query_free(info)


def login_name() -> str:
    """The name by which the scheduler knows this user."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid{os.geteuid()}"


def system() -> System:
    return _query(_SYSTEM, None, -1, -1, System, "", "")[0]


def hosts(state: Optional[str] = None) -> List[HostRow]:
    """All hosts, or those that are "active" or "delinquent"."""
    return _query(_known(state, _HOST_STATES), None, -1, -1, HostRow, "hosts", "host_count")


def sessions(user: Optional[str] = None) -> List[SessionRow]:
    """Everybody's sessions, or one user's."""
    return _query(_SESSIONS, user, -1, -1, SessionRow, "sessions", "session_count")


def grains(session: int = -1, state: Optional[str] = None, user: Optional[str] = None) -> List[GrainRow]:
    """The grains of a session, or of all sessions of the user; all, or those that are ready, running, finished, killed."""
    return _query(_known(state, _STATES), user, session, -1, GrainRow, "grains", "grain_count")


def grain_row(session: int, number: int, user: Optional[str] = None) -> GrainRow:
    """Everything about one grain."""
    return _query(_GRAIN, user, session, number, GrainRow, "grains", "grain_count")[0]


def grain_stream(session: int, number: int, stream: str, user: Optional[str] = None) -> BinaryIO:
    """A grain's "out", "err", "checkpoint", "message" or "input", whole."""
    file = ctypes.c_void_p()
    lib.call("d_grain_stream", lib.c_bytes_or_none(user, "user"), session, number, lib.c_bytes(stream, "stream"),
             ctypes.byref(file))
    return lib.open_stream(file)


def grain_file(session: int, number: int, name: str, user: Optional[str] = None) -> BinaryIO:
    """A file that a finished grain brought back."""
    file = ctypes.c_void_p()
    lib.call("d_grain_file", lib.c_bytes_or_none(user, "user"), session, number, lib.c_bytes(name, "name"), ctypes.byref(file))
    return lib.open_stream(file)


def explain(session: int, number: int, user: Optional[str] = None) -> Explanation:
    """Why a grain is where it is: above all, why it does not run yet."""
    answer = ctypes.POINTER(lib.Explanation)()
    lib.call("d_explain", lib.c_bytes_or_none(user, "user"), session, number, ctypes.byref(answer))
    try:
        return _row(Explanation, answer.contents)
    finally:
        lib.library().d_explanation_free(answer)


def restart(session: int, number: int, user: Optional[str] = None) -> None:
    """The grain begins anew from its last checkpoint, wherever it may run."""
    lib.call("d_grestart", lib.c_bytes_or_none(user, "user"), session, number)


def _known(state: Optional[str], states: Any) -> int:
    if state not in states:
        raise ValueError(f"state is {state!r}: it must be None or one of {', '.join(s for s in states if s)}")
    return states[state]
