"""Orders of those who run the pool: its owner, root, scheduler_master. Each is durable when it returns."""
from __future__ import annotations

import ctypes
from typing import Optional

from . import _library as lib


def set_host(host: str, *, slots: int = -1, interval_s: float = -1, alert_s: float = -1, limit_s: float = -1,
             extended_s: float = -1, host_class: int = 0, drained: Optional[bool] = None, reset: bool = False) -> None:
    """Changes what a host may do, against the host table, until `reset`. What is not said stays. slots=0 gives back at once
    what runs there."""
    change = lib.HostChange(slots, interval_s, alert_s, limit_s, extended_s, host_class,
                            -1 if drained is None else int(drained), int(reset))
    lib.call("d_sethost", lib.c_bytes(host, "host"), ctypes.byref(change))


def clear_nogo(host: str, session: int = -1, number: int = -1, user: Optional[str] = None) -> None:
    """The grain may be tried on the host again; without a session and number every grain may."""
    lib.call("d_clear_nogo", lib.c_bytes_or_none(user, "user"), session, number, lib.c_bytes(host, "host"))


def close_session(user: str, session: int) -> None:
    """Closes somebody's session: what runs is withdrawn, results stay."""
    lib.call("d_close_ses_of", lib.c_bytes(user, "user"), session)


def kill_grain(user: str, session: int, number: int) -> None:
    """Kills somebody's grain."""
    lib.call("d_gkill_of", lib.c_bytes(user, "user"), session, number)
