"""What the pool knows: itself, hosts, sessions and why grains wait. A class for each struct of dcs_query.h, with its fields in its
order: they are read from it."""
from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_size_t, c_uint
from dataclasses import dataclass
from typing import Annotated, Tuple

from ._fields import (OF_LIBRARY, STRUCTURES, Double, Int, Int64, Many, Text, Unsigned, Unsigned64, c_fields_of, structure)
from .spec import FileRow, GrainRow, Move


@dataclass(frozen=True)
class System:
    """The scheduler. `user`: the caller, by the name that it has there."""
    epoch: Unsigned64
    turn: Unsigned64
    scheduler_pid: Int64
    up_s: Int64
    ready: Int64
    running: Int64
    hosts_total: Int
    hosts_active: Int
    sessions_active: Int
    last_session: Int
    version: Text
    user: Text


@structure("d_host_row")
@dataclass(frozen=True)
class HostRow:
    """A host. Seconds end in _s; -1: not known, or never."""
    name: Text
    state: Text
    binary_class: Text
    host_class: Unsigned
    slots: Int
    running: Int
    cores: Int
    cores_used: Int
    connected: Int
    drained: Int
    blamed_lately: Int
    last_call_in_s: Double
    interval_s: Double
    alert_s: Double
    limit_s: Double
    extended_s: Double
    load: Double
    free_memory_kb: Int64
    memory_mb: Int64
    memory_used_mb: Int64
    settings: Text
    note: Text
    users: Annotated[Tuple[str, ...], Many("user_count")]
    blamed: Int64
    launched: Int64
    finished: Int64
    failed: Int64
    given_back: Int64
    cpu_s: Double
    confinement: Text
    class_names: Text
    time_zone_offset: Int
    resources: Text
    resources_used: Text
    drain_reason: Text


@structure("d_session_row")
@dataclass(frozen=True)
class SessionRow:
    """A session, with the numbers of its grains by state."""
    user: Text
    ident: Text
    state: Text
    session: Int
    ready: Int
    running: Int
    finished: Int
    killed: Int
    sent: Int
    saved_cpu_s: Double
    stored_bytes: Unsigned64


@structure("d_reason")
@dataclass(frozen=True)
class Reason:
    """Why a grain is where it is. `hosts`: for how many it holds; 0: it is about the grain itself."""
    reason: Text
    text: Text
    hint: Text
    hosts: Int
    names: Annotated[Tuple[str, ...], Many("name_count")]


@structure("d_explanation", OF_LIBRARY)
@dataclass(frozen=True)
class Explanation:
    """`can_run`: 0 when no configured host could ever run it. `ahead`: grains before it in its session's queue, or -1."""
    state: Text
    summary: Text
    can_run: Int
    ahead: Int
    reasons: Annotated[Tuple[Reason, ...], Many("reason_count", Reason)]


class Info(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), OF_LIBRARY, *c_fields_of(System)[:-1], ("host_count", c_size_t),
                ("session_count", c_size_t), ("grain_count", c_size_t), ("hosts", POINTER(HostRow.C)),
                ("sessions", POINTER(SessionRow.C)), ("grains", POINTER(GrainRow.C)), ("user", c_char_p)]


class HostChange(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("slots", c_int), ("host_class", c_uint), ("interval_s", c_double),
                ("alert_s", c_double), ("limit_s", c_double), ("extended_s", c_double), ("drained", c_int), ("reset", c_int),
                ("drain_reason", c_char_p)]


class RowSizes(ctypes.Structure):
    """How long the structures of answers are here."""
    _fields_ = [(name, c_size_t) for name in ("struct_size", "info", "host_row", "session_row", "grain_row", "move_row",
                                              "file_row", "explanation", "reason")]


STRUCTURES.update({"d_info": Info, "d_host_change": HostChange, "d_row_sizes": RowSizes})
ROW_SIZES = RowSizes(*[ctypes.sizeof(kind) for kind in (RowSizes, Info, HostRow.C, SessionRow.C, GrainRow.C, Move.C, FileRow.C,
                                                        Explanation.C, Reason.C)])
