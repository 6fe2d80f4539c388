"""Pools: what they know, and orders to them."""
from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_size_t, c_uint, c_void_p
from typing import Any, BinaryIO, Collection, Dict, Iterator, List, Optional, Set, Type, TypeVar

from . import _library as lib
from ._fields import STRUCTURES, c_bytes, c_bytes_or_none, read
from ._fields import number as number_of
from ._waiting import interruptible
from .query import ROW_SIZES, Explanation, HostChange, HostRow, Info, SessionRow, System
from .spec import GrainRow

_SYSTEM, _HOSTS, _SESSIONS, _GRAINS, _GRAIN = 0, 1, 2, 3, 8
_STATES = {None: _GRAINS, "ready": 4, "running": 5, "finished": 6, "killed": 7}
_HOST_STATES = {None: _HOSTS, "active": 9, "delinquent": 10}
Row = TypeVar("Row")


class PoolOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("directory", c_char_p), ("ident", c_char_p), ("patience_s", c_double), ("auth_fd", c_int)]


STRUCTURES["d_pool_options"] = PoolOptions

with_threads: "weakref.WeakSet[Any]" = weakref.WeakSet()  # pools and sessions of this process


def _after_fork() -> None:
    for one in with_threads:
        one._without_threads()


os.register_at_fork(after_in_child=_after_fork)


class Pool:
    """A pool to work with; several may be open at a time. `directory`: of the pool; without it the environment says which
    one it is. `patience`: seconds for which a broken request is repeated; without it the environment says it. `auth_fd`: a
    descriptor as dcs_begin leaves it, for a scheduler on another host.

    The functions of the package act on the default pool, `dcs.default_pool`. As a context manager a pool is closed at the end
    of the block. All methods may be called from several threads."""

    def __init__(self, directory: Optional[Any] = None, *, patience: Optional[float] = None, auth_fd: int = -1):
        self._words = (directory, patience)
        self.had: Dict[int, bool] = {}  # sessions of this program, but those that it left; True: found by its ident
        self.keeps = True  # sessions for a rerun
        self.in_use: Set[int] = set()  # those that are open, and all of executors
        self._closed = False
        self._without_threads()
        with_threads.add(self)
        self._ident: Optional[str] = None
        self._user: Optional[str] = None
        self._handle: Optional[int] = None
        if self.__class__ is not _Default:
            options = PoolOptions(ctypes.sizeof(PoolOptions), c_bytes_or_none(directory, "directory"), None,
                                  -1.0 if patience is None else patience, number_of("auth_fd", auth_fd))
            self._handle = lib.library().d_pool_open(byref(options))
            if not self._handle:
                lib.check(lib.library().d_errornumber())

    def _without_threads(self) -> None:
        """As at the beginning, and in the child of a fork, where those of its parent are not."""
        self._lock, self._calls = threading.Lock(), 0
        self.opening = threading.RLock()  # held while a session is looked for and opened: threads open them one by one

    def __repr__(self) -> str:
        return f"<dcs.Pool {self._words[0] or 'of the environment'}>"

    def __reduce__(self) -> Any:
        return _opened, self._words  # another process opens its own

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_calls"):
            self.close()

    def again(self) -> Pool:
        """The same pool, opened once more, so that the program can have another ident in it."""
        return Pool(self._words[0], patience=self._words[1])

    def close(self) -> None:
        """Closes the connections; sessions stay as they are. A call that another thread makes just now still ends."""
        with self._lock:
            self._closed = True
            self._release()

    def _release(self) -> None:
        if self._closed and self._calls == 0 and self._handle:
            lib.library().d_pool_close(self._handle)
            self._handle = None

    def call(self, name: str, *arguments: Any) -> None:
        """d_pool_NAME of dcs.h."""
        interruptible(lambda: self._call(name, arguments))

    def _call(self, name: str, arguments: Any) -> None:
        with self.used():
            lib.call(name, self._handle, arguments)

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """What calls give stays until the block ends, also if another thread closes the pool."""
        with self._lock:
            if self._closed:
                raise ValueError("the pool is closed")
            self._calls += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1
                self._release()

    def authorize(self, ident: str) -> None:
        """A program has one ident in a pool: the library keeps one token."""
        with self.opening:
            if self._ident is not None and self._ident != ident:
                raise ValueError(f"this program calls itself {self._ident!r} already and cannot be {ident!r} as well; "
                                 "use one ident for all sessions in a pool")
            self.call("get_auth", c_bytes(ident, "ident"))
            self._ident = ident

    def on_this_host(self) -> bool:
        """Did `dcs up` make it for this user? Then all its hosts are this one."""
        if "DCS_AUTH_FD" in os.environ:
            return False
        state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        directory = os.fsdecode(self._words[0] or os.environ.get("DCS_DIR") or os.path.join(state, "dcs"))
        return os.access(os.path.join(directory, "pool"), os.R_OK)

    def _query(self, what: int, user: Optional[str], session: int, number: int, kind: Type[Row], rows: str) -> List[Row]:
        info = POINTER(Info)()
        self.call("query_sized", byref(ROW_SIZES), what, c_bytes_or_none(user, "user"), session, number, byref(info))
        try:
            if not rows:
                return [read(kind, info.contents)]
            found = getattr(info.contents, rows)
            return [read(kind, found[i]) for i in range(getattr(info.contents, rows[:-1] + "_count"))]
        finally:
            lib.library().d_query_free(info)

    def system(self) -> System:
        return self._query(_SYSTEM, None, -1, -1, System, "")[0]

    def login_name(self) -> str:
        """The name by which the scheduler knows this user."""
        if self._user is None:
            self._user = self.system().user
        return self._user

    def hosts(self, state: Optional[str] = None) -> List[HostRow]:
        """All hosts, or those that are "active" or "delinquent"."""
        return self._query(_known(state, _HOST_STATES), None, -1, -1, HostRow, "hosts")

    def sessions(self, user: Optional[str] = None) -> List[SessionRow]:
        """The sessions of all users, or one user's."""
        return self._query(_SESSIONS, user, -1, -1, SessionRow, "sessions")

    def free_number(self, taken: Collection[int] = (), above: int = 0) -> int:
        """The caller's first number for a session above those of removed sessions: no number means two sessions."""
        removed = self._query(_SESSIONS, None, -1, -1, System, "")[0].last_session
        number = max(removed if removed < 2**30 else 0, above) + 1
        while number in taken:
            number += 1
        return number

    def grains(self, session: int = -1, state: Optional[str] = None, user: Optional[str] = None) -> List[GrainRow]:
        """The grains of a session, or of all sessions of the user; all, or those that are ready, running, finished, killed."""
        return self._query(_known(state, _STATES), user, session, -1, GrainRow, "grains")

    def grain_row(self, session: int, number: int, user: Optional[str] = None) -> GrainRow:
        """Everything about one grain."""
        return self._query(_GRAIN, user, session, number, GrainRow, "grains")[0]

    def grain_stream(self, session: int, number: int, stream: str, user: Optional[str] = None) -> BinaryIO:
        """A grain's "out", "err", "checkpoint", "message" or "input", whole."""
        file = c_void_p()
        self.call("grain_stream", c_bytes_or_none(user, "user"), session, number, c_bytes(stream, "stream"), byref(file))
        return lib.open_stream(file)

    def grain_file(self, session: int, number: int, name: str, user: Optional[str] = None) -> BinaryIO:
        """A file that a finished grain brought back."""
        file = c_void_p()
        self.call("grain_file", c_bytes_or_none(user, "user"), session, number, c_bytes(name, "name"), byref(file))
        return lib.open_stream(file)

    def host_class(self, names: str) -> int:
        """The mask for Grain.host_class: names that the host table declares, or masks, with commas, such as "gpu,0x8"."""
        mask = c_uint()
        self.call("host_class", c_bytes(names, "names"), byref(mask))
        return mask.value

    def explain(self, session: int, number: int, user: Optional[str] = None) -> Explanation:
        """Why a grain is where it is: above all, why it does not run yet."""
        answer = POINTER(Explanation.C)()
        self.call("explain_sized", byref(ROW_SIZES), c_bytes_or_none(user, "user"), session, number, byref(answer))
        try:
            return read(Explanation, answer.contents)
        finally:
            lib.library().d_explanation_free(answer)

    def restart(self, session: int, number: int, user: Optional[str] = None) -> None:
        """Restarts the grain from its last checkpoint, wherever it may run."""
        self.call("grestart", c_bytes_or_none(user, "user"), session, number)

    # Orders of those who run the pool: its owner, root, scheduler_master. Each is durable when it returns.

    def set_host(self, host: str, *, slots: int = -1, interval_s: float = -1, alert_s: float = -1, limit_s: float = -1,
                 extended_s: float = -1, host_class: int = 0, drained: Optional[bool] = None, reset: bool = False,
                 drain_reason: Optional[str] = None) -> None:
        """Changes what a host may do, against the host table, until `reset`. What is not said stays. slots=0 gives back
        at once what runs there."""
        change = HostChange(ctypes.sizeof(HostChange), number_of("slots", slots), number_of("host_class", host_class, c_uint), interval_s, alert_s, limit_s, extended_s,
                            -1 if drained is None else int(drained), int(reset), c_bytes_or_none(drain_reason, "drain_reason"))
        self.call("sethost", c_bytes(host, "host"), byref(change))

    def clear_nogo(self, host: str, session: int = -1, number: int = -1, user: Optional[str] = None) -> None:
        """The grain may be tried on the host again; without a session and number every grain may."""
        self.call("clear_nogo", c_bytes_or_none(user, "user"), session, number, c_bytes(host, "host"))

    def close_session(self, user: str, session: int) -> None:
        """Closes a user's session: what runs is withdrawn, results stay."""
        self.call("close_ses_of", c_bytes(user, "user"), session)

    def kill_grain(self, user: str, session: int, number: int) -> None:
        """Kills a user's grain."""
        self.call("gkill_of", c_bytes(user, "user"), session, number)


class _Default(Pool):
    """The pool that the environment names; it is never closed."""

    def close(self) -> None:
        pass

    def __reduce__(self) -> Any:
        return _default, ()


default_pool = _Default()
login_name = default_pool.login_name


def _default() -> Pool:
    return default_pool


def _opened(directory: Any, patience: Optional[float]) -> Pool:
    return Pool(directory, patience=patience)


def _known(state: Optional[str], states: Any) -> int:
    if state not in states:
        raise ValueError(f"state is {state!r}: it must be None or one of {', '.join(s for s in states if s)}")
    return states[state]
