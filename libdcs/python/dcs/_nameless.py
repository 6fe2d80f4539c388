"""Sessions of executors without an ident: nothing of them is kept for a rerun."""
from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import itertools
import os
import re
import weakref
from typing import Any, Collection, Dict, Iterable, List, Optional, Tuple

from ._waiting import AT_THE_END_S, interruptible
from .errors import Error
from .pool import Pool

_counter = itertools.count(1)
# Executors that have ended, and the words of their pools: their results may still be read. Unused: when none is left.
_ended: Dict[str, Tuple[Any, Optional[float]]] = {}
_unused: List[str] = []


def _remove(idents: Iterable[str]) -> None:
    for ident in list(idents):
        directory, patience = _ended.pop(ident)
        with contextlib.suppress(Error, TimeoutError), Pool(directory, patience=patience) as pool:  # else the next program tries again
            interruptible(functools.partial(forget, pool, ident, ()), AT_THE_END_S)


atexit.register(_remove, _ended)
os.register_at_fork(after_in_child=_ended.clear)


def ended(pool: Pool, ident: str) -> None:
    """The session goes when no result of this pool, which is the executor's own, is left; then or at the end of the program."""
    _ended[ident] = pool._words
    weakref.finalize(pool, _unused.append, ident).atexit = False


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
    spent, _unused[:] = [one for one in _unused if one in _ended], []
    _remove(spent)
    pool, place = pool.again(), f"{os.uname().nodename.replace('_', '-')[:24]}.{_processes()}"
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
