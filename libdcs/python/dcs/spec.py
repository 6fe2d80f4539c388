"""What is submitted, and what comes back."""
from __future__ import annotations

import ctypes
import os
from ctypes import c_char_p, c_int, c_long, c_size_t, c_void_p
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._fields import (STRUCTURES, Bytes, CString, CStrings, Flag, Int, Many, Path, Unsigned, as_environment, c_bytes,
                      c_bytes_or_none, fields_of, number, structure)
from .errors import GrainFailed

if TYPE_CHECKING:
    from .pool import Pool

TEXT_BYTES = 20 * 1024  # what the waits hand out of each stream


class CFile(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("path", c_char_p), ("binary_class", c_char_p),
                ("executable", c_int)]


@dataclass(frozen=True)
class File:
    """A file that goes with a grain. It is read when the grain is submitted and travels by its digest. `name`: below
    the grain's working directory; not used for programs. `binary_class`: of programs, for hosts of this class."""
    path: Path
    name: Optional[str] = None
    executable: bool = False
    binary_class: Optional[str] = None
    C = CFile


def _rows(files: Sequence[File]) -> Any:
    rows = [CFile(ctypes.sizeof(CFile), c_bytes_or_none(f.name, "name"), c_bytes(f.path, "path"),
                  c_bytes_or_none(f.binary_class, "binary_class"), int(f.executable)) for f in files]
    return (CFile * len(rows))(*rows)


def _files(files: Union[Mapping[str, Path], Sequence[File]]) -> Any:
    return _rows([File(p, n) for n, p in files.items()] if isinstance(files, Mapping) else list(files))


def _programs(programs: Union[Path, Sequence[File]]) -> Any:
    return _rows([File(programs)] if isinstance(programs, (str, bytes, os.PathLike)) else list(programs))


def _words(argv: Sequence[Path]) -> Sequence[Path]:
    if isinstance(argv, (str, bytes)):
        raise TypeError("argv is a list of strings: the program and its arguments")
    return argv


@structure("d_grain")
@dataclass
class Grain:
    """A grain to submit: the fields of `struct d_grain` in dcs.h, in its order. argv[0]: the path of the executable,
    relative ones from the user's DCS home on the host. `input`: standard input (str as UTF-8); or `input_path`, or
    `input_fd` to its end. `env`: a mapping, or "NAME=value". `files`: names to paths, or File. `outputs`: files to bring
    back."""
    argv: Annotated[Sequence[Path], CStrings("gargv", _words)]
    input: Annotated[Union[bytes, str], Bytes()] = b""
    env: Annotated[Union[Mapping[str, str], Sequence[str]], CStrings("genvv", as_environment)] = field(default_factory=dict)
    host_class: Unsigned = 0
    thrash: Int = 0
    urgent: Flag = False
    notice: Int = 0
    attempts: Int = 3
    cores: Int = 0
    memory_mb: Int = 0
    wall_s: Int = 0
    directory: Annotated[Optional[Path], CString()] = None
    label: Annotated[Optional[str], CString()] = None
    files: Annotated[Union[Mapping[str, Path], Sequence[File]], Many("file_count", File, _files)] = field(default_factory=dict)
    programs: Annotated[Union[Path, Sequence[File]], Many("program_count", File, _programs)] = ()
    outputs: Annotated[Sequence[str], CStrings()] = ()
    input_path: Annotated[Optional[Path], CString()] = None
    input_fd: Int = -1

    def fill(self, to: Any) -> List[Any]:
        """As the library wants it. What is returned must live until the call is over."""
        to.struct_size = ctypes.sizeof(to)
        return [how.put(to, name, getattr(self, name)) for name, how in fields_of(Grain)]


class GrainOrder(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("grain_num", c_int), ("reserved", c_int), ("grain", Grain.C)]  # type: ignore[attr-defined]


def orders(grains: Sequence[Tuple[int, Grain]]) -> Tuple[Any, List[Any]]:
    rows, keep = (GrainOrder * len(grains))(), []
    for row, (grain_number, grain) in zip(rows, grains):
        row.struct_size, row.grain_num = ctypes.sizeof(row), number("the grain's number", grain_number)
        keep.append(grain.fill(row.grain))
    return rows, keep


class Timeval(ctypes.Structure):
    _fields_ = [("tv_sec", c_long), ("tv_usec", c_long)]


class Rusage(ctypes.Structure):
    _fields_ = [("ru_utime", Timeval), ("ru_stime", Timeval)] + [
        (name, c_long) for name in ("ru_maxrss", "ru_ixrss", "ru_idrss", "ru_isrss", "ru_minflt", "ru_majflt", "ru_nswap",
                                    "ru_inblock", "ru_oublock", "ru_msgsnd", "ru_msgrcv", "ru_nsignals", "ru_nvcsw",
                                    "ru_nivcsw")]


class CResult(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("grain_num", c_int), ("completed", c_int), ("sent", c_int), ("termsig", c_int),
                ("retcode", c_int), ("reserved", c_int), ("rusage", Rusage), ("outlen", c_size_t), ("errlen", c_size_t),
                ("output", c_void_p), ("error", c_void_p)]


STRUCTURES.update({"d_file": CFile, "d_grain_order": GrainOrder, "d_result": CResult, "rusage": Rusage})


@dataclass(frozen=True)
class Usage:
    """What the grain used, in all of its runs."""
    user_s: float
    system_s: float
    max_rss_kb: int
    ru: Dict[str, int] = field(repr=False)


@dataclass(frozen=True)
class Result:
    """The end of a grain. `signal`, `code`: how it ended. `index`: of this result in the order of finishing, from 0.
    `completed`: results that there are so far."""
    session: int
    grain: int
    index: int
    completed: int
    signal: int
    code: int
    usage: Usage
    output_length: int
    error_length: int
    output_head: bytes = field(repr=False)  # the first 20 KiB
    error_head: bytes = field(repr=False)
    pool: Pool = field(repr=False, compare=False)

    @property
    def ok(self) -> bool:
        return self.signal == 0 and self.code == 0

    @property
    def output(self) -> bytes:
        """The whole standard output; what is longer than the first 20 KiB is fetched now."""
        if self.output_length == len(self.output_head):
            return self.output_head
        with self.open_output() as stream:
            return stream.read()

    @property
    def error(self) -> bytes:
        """The whole standard error."""
        if self.error_length == len(self.error_head):
            return self.error_head
        with self.open_error() as stream:
            return stream.read()

    def open_output(self) -> BinaryIO:
        return self.pool.grain_stream(self.session, self.grain, "out")

    def open_error(self) -> BinaryIO:
        return self.pool.grain_stream(self.session, self.grain, "err")

    def open_file(self, name: str) -> BinaryIO:
        """A file that the grain brought back."""
        return self.pool.grain_file(self.session, self.grain, name)

    def check(self) -> Result:
        """Itself, if the grain ended well; else raises GrainFailed."""
        if not self.ok:
            raise GrainFailed(self)
        return self


def result_of(pool: Pool, session: int, row: CResult) -> Result:
    """Copies everything: the library's strings live until the next call only."""
    usage = row.rusage
    others = {name: getattr(usage, name) for name, kind in usage._fields_ if kind is ctypes.c_long}
    seconds = [t.tv_sec + t.tv_usec / 1e6 for t in (usage.ru_utime, usage.ru_stime)]
    heads = [ctypes.string_at(pointer, min(length, TEXT_BYTES))
             for pointer, length in ((row.output, row.outlen), (row.error, row.errlen))]
    return Result(session, row.grain_num, row.sent - 1, row.completed, row.termsig, row.retcode,
                  Usage(seconds[0], seconds[1], usage.ru_maxrss, others), row.outlen, row.errlen, heads[0], heads[1], pool)
