"""libdcs.so: where it is, its structures as in dcs.h, and how its errors become exceptions."""
from __future__ import annotations

import ctypes
import glob
import os
import threading
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_int64, c_long, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, BinaryIO, List, Optional

from .errors import error_of

TEXT_BYTES = 20 * 1024  # what d_gwait and d_gwait_many hand out of each stream


class File(Structure):
    _fields_ = [("name", c_char_p), ("path", c_char_p), ("binary_class", c_char_p), ("executable", c_int)]


class Grain(Structure):
    _fields_ = [("gargv", POINTER(c_char_p)), ("genvv", POINTER(c_char_p)), ("input", c_char_p),
                ("input_length", c_size_t), ("host_class", c_uint), ("thrash", c_int), ("urgent", c_int),
                ("notice", c_int), ("attempts", c_int), ("directory", c_char_p), ("label", c_char_p), ("cores", c_int),
                ("memory_mb", c_int), ("wall_s", c_int), ("files", POINTER(File)), ("file_count", c_size_t),
                ("programs", POINTER(File)), ("program_count", c_size_t), ("outputs", POINTER(c_char_p)),
                ("input_path", c_char_p), ("input_fd", c_int)]


class GrainOrder(Structure):
    _fields_ = [("grain_num", c_int), ("grain", Grain)]


class Timeval(Structure):
    _fields_ = [("tv_sec", c_long), ("tv_usec", c_long)]


class Rusage(Structure):
    _fields_ = [("ru_utime", Timeval), ("ru_stime", Timeval)] + [
        (name, c_long) for name in ("ru_maxrss", "ru_ixrss", "ru_idrss", "ru_isrss", "ru_minflt", "ru_majflt", "ru_nswap",
                                    "ru_inblock", "ru_oublock", "ru_msgsnd", "ru_msgrcv", "ru_nsignals", "ru_nvcsw",
                                    "ru_nivcsw")]


class Result(Structure):
    _fields_ = [("grain_num", c_int), ("completed", c_int), ("sent", c_int), ("termsig", c_int), ("retcode", c_int),
                ("rusage", Rusage), ("outlen", c_size_t), ("errlen", c_size_t), ("output", c_void_p), ("error", c_void_p)]


class HostRow(Structure):
    _fields_ = [("name", c_char_p), ("state", c_char_p), ("binary_class", c_char_p), ("host_class", c_uint),
                ("slots", c_int), ("running", c_int), ("last_call_in_s", c_double), ("interval_s", c_double),
                ("alert_s", c_double), ("limit_s", c_double), ("extended_s", c_double), ("load", c_double),
                ("free_memory_kb", c_int64), ("cores", c_int), ("cores_used", c_int), ("memory_mb", c_int64),
                ("memory_used_mb", c_int64), ("connected", c_int), ("drained", c_int), ("settings", c_char_p),
                ("note", c_char_p), ("user_count", c_size_t), ("users", POINTER(c_char_p)), ("blamed", c_int64),
                ("blamed_lately", c_int), ("launched", c_int64), ("finished", c_int64), ("failed", c_int64),
                ("given_back", c_int64), ("cpu_s", c_double), ("confinement", c_char_p)]


class SessionRow(Structure):
    _fields_ = [("user", c_char_p), ("ident", c_char_p), ("state", c_char_p), ("session", c_int), ("ready", c_int),
                ("running", c_int), ("finished", c_int), ("killed", c_int), ("sent", c_int), ("saved_cpu_s", c_double)]


class MoveRow(Structure):
    _fields_ = [("reason", c_char_p), ("host", c_char_p), ("detail", c_char_p), ("incarnation", c_uint), ("age_s", c_double)]


class FileRow(Structure):
    _fields_ = [("name", c_char_p), ("size", c_uint64), ("digest", c_char_p)]


class GrainRow(Structure):
    _fields_ = [("user", c_char_p), ("state", c_char_p), ("host", c_char_p), ("label", c_char_p), ("message", c_char_p),
                ("session", c_int), ("grain", c_int), ("starts", c_int), ("restarts", c_int), ("failures", c_int),
                ("exit_code", c_int), ("signal", c_int), ("result_index", c_int), ("incarnation", c_uint), ("host_class", c_uint),
                ("cpu_s", c_double), ("run_cpu_s", c_double), ("saved_cpu_s", c_double), ("last_contact_s", c_double),
                ("checkpoint_age_s", c_double), ("out_length", c_uint64), ("err_length", c_uint64), ("checkpoint_length", c_uint64), ("thrash", c_int),
                ("notice", c_int), ("attempts", c_int), ("cores", c_int), ("memory_mb", c_int), ("wall_s", c_int),
                ("urgent", c_int), ("argv", POINTER(c_char_p)), ("nogo_count", c_size_t), ("nogo", POINTER(c_char_p)),
                ("move_count", c_size_t), ("moves", POINTER(MoveRow)), ("file_count", c_size_t), ("files", POINTER(FileRow))]


class Info(Structure):
    _fields_ = [("epoch", c_uint64), ("turn", c_uint64), ("scheduler_pid", c_int64), ("up_s", c_int64),
                ("ready", c_int64), ("running", c_int64), ("hosts_total", c_int), ("hosts_active", c_int),
                ("sessions_active", c_int), ("version", c_char_p), ("host_count", c_size_t), ("session_count", c_size_t),
                ("grain_count", c_size_t), ("hosts", POINTER(HostRow)), ("sessions", POINTER(SessionRow)),
                ("grains", POINTER(GrainRow))]


class Reason(Structure):
    _fields_ = [("reason", c_char_p), ("text", c_char_p), ("hint", c_char_p), ("hosts", c_int), ("name_count", c_size_t),
                ("names", POINTER(c_char_p))]


class Explanation(Structure):
    _fields_ = [("state", c_char_p), ("summary", c_char_p), ("can_run", c_int), ("ahead", c_int),
                ("reason_count", c_size_t), ("reasons", POINTER(Reason))]


class HostChange(Structure):
    _fields_ = [("slots", c_int), ("interval_s", c_double), ("alert_s", c_double), ("limit_s", c_double),
                ("extended_s", c_double), ("host_class", c_uint), ("drained", c_int), ("reset", c_int)]


# The name of each structure in dcs.h.
STRUCTURES = {"d_file": File, "d_grain": Grain, "d_grain_order": GrainOrder, "d_result": Result, "d_host_row": HostRow,
              "d_session_row": SessionRow, "d_move_row": MoveRow, "d_file_row": FileRow, "d_grain_row": GrainRow,
              "d_info": Info, "d_reason": Reason, "d_explanation": Explanation, "d_host_change": HostChange,
              "rusage": Rusage}

_CALLS = {"d_get_auth": [c_char_p], "d_open_ses": [c_int], "d_resume_ses": [c_int, c_int], "d_reopen_ses": [c_int, c_int],
          "d_close_ses": [c_int], "d_clean_ses": [c_int], "d_gexec_grain": [c_int, c_int, POINTER(Grain)],
          "d_gexec_many": [c_int, POINTER(GrainOrder), c_size_t, POINTER(c_size_t), POINTER(c_size_t)],
          "d_gwait_many": [c_int, c_int, c_int, POINTER(Result), POINTER(c_int)], "d_gkill": [c_int, c_int],
          "d_query": [c_int, c_char_p, c_int, c_int, POINTER(POINTER(Info))],
          "d_grain_stream": [c_char_p, c_int, c_int, c_char_p, POINTER(c_void_p)],
          "d_grain_file": [c_char_p, c_int, c_int, c_char_p, POINTER(c_void_p)],
          "d_explain": [c_char_p, c_int, c_int, POINTER(POINTER(Explanation))],
          "d_grestart": [c_char_p, c_int, c_int], "d_sethost": [c_char_p, POINTER(HostChange)],
          "d_clear_nogo": [c_char_p, c_int, c_int, c_char_p], "d_close_ses_of": [c_char_p, c_int],
          "d_gkill_of": [c_char_p, c_int, c_int]}

_lock = threading.Lock()
_loaded: Optional[Any] = None
_ident: Optional[str] = None


def _candidates() -> List[str]:
    """Where it may lie: where the environment says, where the installation put it, in the build tree, on the system."""
    told = os.environ.get("DCS_LIBRARY")
    if told:
        return [told]
    here = os.path.dirname(os.path.realpath(__file__))
    try:
        from ._installed import LIBRARY
        return [os.path.normpath(os.path.join(here, LIBRARY))]
    except ImportError:
        pass
    build = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(here))), "build")
    others = sorted(glob.glob(os.path.join(build, "*", "lib", "libdcs.so.0")), key=os.path.getmtime, reverse=True)
    return [os.path.join(build, "release", "lib", "libdcs.so.0"), *others, "libdcs.so.0"]


def _load() -> Any:
    said = []
    for path in _candidates():
        if "/" in path and not os.path.exists(path):
            said.append(f"{path}: no such file")
            continue
        try:
            return _declare(ctypes.CDLL(path, use_errno=True))
        except OSError as error:
            said.append(str(error))
    raise ImportError("libdcs.so cannot be loaded; build or install DCS, or name the library by DCS_LIBRARY: " +
                      "; ".join(said))


def _declare(library: Any) -> Any:
    for name, arguments in _CALLS.items():
        call = getattr(library, name)
        call.argtypes, call.restype = arguments, c_int
    for name, arguments, result in (("d_strerror", [c_int], c_char_p), ("d_errorname", [c_int], c_char_p),
                                    ("d_errortext", [], c_char_p), ("d_grain_init", [POINTER(Grain)], None),
                                    ("d_query_free", [POINTER(Info)], None),
                                    ("d_explanation_free", [POINTER(Explanation)], None)):
        call = getattr(library, name)
        call.argtypes, call.restype = arguments, result
    library.libc = ctypes.CDLL(None)
    library.libc.fileno.argtypes, library.libc.fileno.restype = [c_void_p], c_int
    library.libc.fclose.argtypes, library.libc.fclose.restype = [c_void_p], c_int
    return library


def library() -> Any:
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def text(value: Optional[bytes]) -> str:
    return (value or b"").decode("utf-8", "surrogateescape")


def check(code: int) -> None:
    """Raises this thread's last failure."""
    if code:
        lib = library()
        raise error_of(code, text(lib.d_errorname(code)), text(lib.d_errortext()), text(lib.d_strerror(code)))


def call(name: str, *arguments: Any) -> None:
    check(getattr(library(), name)(*arguments))


def authorize(ident: str) -> None:
    """A process has one ident: the library keeps one token."""
    global _ident
    with _lock:
        if _ident is not None and _ident != ident:
            raise ValueError(f"this program calls itself {_ident!r} already and cannot be {ident!r} as well; "
                             "use one ident for all sessions of a process")
    call("d_get_auth", c_bytes(ident, "ident"))
    _ident = ident


def c_bytes(value: Any, what: str) -> bytes:
    """A C string; str as the file system's encoding has it."""
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ValueError(f"{what} has a NUL byte in it: {value!r}")
    return encoded


def c_bytes_or_none(value: Any, what: str) -> Optional[bytes]:
    return None if value is None else c_bytes(value, what)


def open_stream(stream: c_void_p) -> BinaryIO:
    """A FILE * of the library as a Python file."""
    lib = library()
    descriptor = os.dup(lib.libc.fileno(stream))
    lib.libc.fclose(stream)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.fdopen(descriptor, "rb")
