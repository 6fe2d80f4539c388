"""libdcs.so: where it is, its calls, and how its errors become exceptions."""
from __future__ import annotations

import ctypes
import glob
import os
import re
import sys
import threading
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint, c_void_p
from typing import Any, BinaryIO, List, Optional, Sequence

from ._caller import CALL
from ._fields import number, text
from .errors import error_of


class _Session(c_int):
    name = "the session's number"


class _Grain(c_int):
    name = "the grain's number"


_POOL = c_void_p
_CALLS = {"get_auth": [c_char_p], "open_ses": [_Session], "resume_ses": [_Session, c_int], "reopen_ses": [_Session, c_int],
          "close_ses": [_Session], "clean_ses": [_Session], "gexec_grain": [_Session, _Grain, c_void_p],
          "gexec_many": [_Session, c_void_p, c_size_t, POINTER(c_size_t), POINTER(c_size_t)],
          "gwait_many": [c_int, _Session, c_int, c_void_p, POINTER(c_int)], "gkill": [_Session, _Grain],
          "query_sized": [c_void_p, c_int, c_char_p, _Session, _Grain, c_void_p],
          "grain_stream": [c_char_p, _Session, _Grain, c_char_p, POINTER(c_void_p)],
          "host_class": [c_char_p, POINTER(c_uint)],
          "grain_file": [c_char_p, _Session, _Grain, c_char_p, POINTER(c_void_p)],
          "explain_sized": [c_void_p, c_char_p, _Session, _Grain, c_void_p],
          "grestart": [c_char_p, _Session, _Grain], "sethost": [c_char_p, c_void_p],
          "clear_nogo": [c_char_p, _Session, _Grain, c_char_p], "close_ses_of": [c_char_p, _Session],
          "gkill_of": [c_char_p, _Session, _Grain], "set_new_demands": [c_int],
          "resume_failed": [_Session, c_int]}

# What the words of the library name, in Python.
_NAMES = {"d_get_auth": "dcs.Session", "d_resume_ses": 'dcs.Session(mode="resume")', "d_reopen_ses": 'dcs.Session(mode="reopen")',
          "d_clean_ses": "Session.clean()", "D_BLOCK": "Session.wait()"}

_lock = threading.Lock()
_loaded: Optional[Any] = None


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
    if os.path.exists(os.path.join(os.path.dirname(__file__), "..", "..", CALL)):
        raise ImportError("a call of dcs.Executor does not reach the pool that runs it: let the program submit what follows from its "
                          "results; with cores=N it has N processors for a ProcessPoolExecutor(N) of concurrent.futures")
    raise ImportError("libdcs.so cannot be loaded; build or install DCS, or name the library by DCS_LIBRARY: " +
                      "; ".join(said))


def _declare(library: Any) -> Any:
    for name, arguments in _CALLS.items():
        call = getattr(library, "d_pool_" + name)
        call.argtypes, call.restype = [_POOL, *arguments], c_int
    for name, arguments, result in (("d_strerror", [c_int], c_char_p), ("d_errorname", [c_int], c_char_p),
                                    ("d_errortext", [], c_char_p), ("d_errornumber", [], c_int),
                                    ("d_pool_open", [c_void_p], _POOL), ("d_pool_close", [_POOL], None),
                                    ("d_query_free", [c_void_p], None), ("d_explanation_free", [c_void_p], None)):
        call = getattr(library, name)
        call.argtypes, call.restype = arguments, result
    library.libc = ctypes.CDLL(None)
    library.libc.fileno.argtypes, library.libc.fileno.restype = [c_void_p], c_int
    library.libc.fclose.argtypes, library.libc.fclose.restype = [c_void_p], c_int
    return library


def library() -> Any:
    global _loaded
    program = getattr(sys.modules.get("__main__"), "dcs_loads", None)  # in a grain of an executor, before its function is called
    if program is not None:
        raise RuntimeError(f"{program} calls DCS while a host loads it to call one of its functions: put what only the control "
                           'program does below `if __name__ == "__main__":`')
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def call(name: str, handle: Optional[int], arguments: Sequence[Any]) -> None:
    """d_pool_NAME. ctypes takes what does not fit into 32 bits for another number."""
    function = getattr(library(), "d_pool_" + name)
    for kind, value in zip(function.argtypes[1:], arguments):
        if kind in (_Session, _Grain):
            number(kind.name, value)
    check(function(handle, *arguments))


def check(code: int) -> None:
    """Raises this thread's last failure."""
    if code:
        lib = library()
        hint = re.sub("|".join(_NAMES), lambda found: _NAMES[found[0]], text(lib.d_strerror(code)))
        raise error_of(code, text(lib.d_errorname(code)), text(lib.d_errortext()), hint)


def open_stream(stream: c_void_p) -> BinaryIO:
    """A FILE * of the library as a Python file."""
    lib = library()
    descriptor = os.dup(lib.libc.fileno(stream))
    lib.libc.fclose(stream)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.fdopen(descriptor, "rb")
