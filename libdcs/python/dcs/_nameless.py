"""Sessions of executors without an ident: nothing of them is kept for a rerun."""
from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import hashlib
import itertools
import os
import re
import weakref
from typing import Any, Collection, Dict, Iterable, Optional, Tuple

from ._waiting import AT_THE_END_S, interruptible
from .errors import Error
from .pool import Pool

_counter = itertools.count(1)
# Executors that have ended: the words of their pools, each of which is an executor's own, and whether results of it are left.
_ended: Dict[str, Tuple[Any, Optional[float], "weakref.ref[Pool]"]] = {}


def _remove(idents: Iterable[str]) -> None:
    for ident in list(idents):
        words = _ended.pop(ident, None)
        if words is None:
            continue  # another thread has removed it
        directory, patience, _ = words
        with contextlib.suppress(Error, TimeoutError), Pool(directory, patience=patience) as pool:  # else the next program tries again
            interruptible(functools.partial(forget, pool, ident, ()), AT_THE_END_S)


atexit.register(_remove, _ended)
os.register_at_fork(after_in_child=_ended.clear)


def ended(pool: Pool, ident: str) -> None:
    """The session goes when no result of this pool is left, at the next executor, or at the end of the program."""
    _ended[ident] = (*pool._words, weakref.ref(pool))


def forget(pool: Pool, ident: str, skip: Collection[int]) -> None:
    """Closes and removes what earlier runs of this ident left."""
    pool.authorize(ident)
    for row in pool.sessions(pool.login_name()):
        if row.ident != ident or row.session in skip:
            continue
        if row.state != "terminated":
            pool.call("resume_ses", row.session, 1)
            pool.call("close_ses", row.session)
        pool.call("clean_ses", row.session)


def pool_of(pool: Pool) -> Tuple[Pool, str]:
    """For an executor without an ident: one of its own, for which the pool is opened once more. What programs of this host
    that were killed left of this kind is removed."""
    if _ended:
        gc.collect()  # an executor refers to itself
    _remove([ident for ident, (_, _, results) in list(_ended.items()) if results() is None])
    pool, place = pool.again(), f"{os.uname().nodename.replace('_', '-')[:24]}.{_processes()}"
    pool.keeps = False
    for row in pool.sessions(pool.login_name()):
        found = re.fullmatch(rf"executor\.{re.escape(place)}\.(\d+)\.\d+", row.ident)
        if found and not os.path.exists(f"/proc/{found[1]}"):
            with contextlib.suppress(Error), pool.again() as theirs:  # another program may do it at this moment
                forget(theirs, row.ident, ())
    return pool, f"executor.{place}.{os.getpid()}.{next(_counter)}"


def _processes() -> str:
    """Which /proc this is. A program in a container, or on another host of the same name, is not there and may live."""
    seen = os.uname().nodename
    with contextlib.suppress(OSError):
        seen += os.readlink("/proc/self/ns/pid")
    with contextlib.suppress(OSError), open("/etc/machine-id", encoding="utf-8") as file:
        seen += file.read()
    return hashlib.sha256(seen.encode()).hexdigest()[:12]
