"""What is submitted, and what comes back."""
from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _library as lib
from .errors import GrainFailed

Path = Union[str, bytes, "os.PathLike[str]"]


@dataclass(frozen=True)
class File:
    """A file that goes with a grain. It is read when the grain is submitted and travels by its digest. `name`: below
    the grain's working directory; not used for programs. `binary_class`: of programs, for hosts of this class."""
    path: Path
    name: Optional[str] = None
    executable: bool = False
    binary_class: Optional[str] = None


@dataclass
class Grain:
    """A grain to submit; the fields are those of `struct d_grain` in dcs.h. argv[0]: the path of the executable, relative
    ones from the user's DCS home on the host. `input`: standard input (str as UTF-8); or `input_path`, or `input_fd` to
    its end. `env`: a mapping, or "NAME=value". `files`: names to paths, or File. `outputs`: files to bring back."""
    argv: Sequence[Path]
    input: Union[bytes, str] = b""
    env: Union[Mapping[str, str], Sequence[str]] = field(default_factory=dict)
    host_class: int = 0
    thrash: int = 0
    urgent: bool = False
    notice: int = 0
    attempts: int = 3
    directory: Optional[Path] = None
    label: Optional[str] = None
    cores: int = 0
    memory_mb: int = 0
    wall_s: int = 0
    files: Union[Mapping[str, Path], Sequence[File]] = field(default_factory=dict)
    programs: Union[Path, Sequence[File]] = ()
    outputs: Sequence[str] = ()
    input_path: Optional[Path] = None
    input_fd: int = -1

    def fill(self, to: lib.Grain) -> List[Any]:
        """As the library wants it. What is returned must live until the call is over."""
        if isinstance(self.argv, (str, bytes)):
            raise TypeError("argv is a list of strings: the program and its arguments")
        lib.library().d_grain_init(ctypes.byref(to))
        env = [f"{k}={v}" for k, v in self.env.items()] if isinstance(self.env, Mapping) else list(self.env)
        data = self.input.encode() if isinstance(self.input, str) else bytes(self.input)
        to.input, to.input_length = data, len(data)
        to.gargv, to.genvv = _strings(self.argv, "argv"), _strings(env, "env")
        for name in ("host_class", "thrash", "notice", "attempts", "cores", "memory_mb", "wall_s", "input_fd"):
            setattr(to, name, _number(name, getattr(self, name)))
        to.urgent = int(bool(self.urgent))
        to.directory = lib.c_bytes_or_none(self.directory, "directory")
        to.label = lib.c_bytes_or_none(self.label, "label")
        to.input_path = lib.c_bytes_or_none(self.input_path, "input_path")
        files = [File(p, n) for n, p in self.files.items()] if isinstance(self.files, Mapping) else list(self.files)
        programs = [File(self.programs)] if isinstance(self.programs, (str, bytes, os.PathLike)) else list(self.programs)
        keep = [_files(files), _files(programs)]
        to.files, to.file_count = keep[0], len(files)
        to.programs, to.program_count = keep[1], len(programs)
        to.outputs = _strings(self.outputs, "outputs") if self.outputs else None
        return keep + [data]


def _number(name: str, value: int) -> int:
    if not -2**31 <= value < (2**32 if name == "host_class" else 2**31) or (name == "host_class" and value < 0):
        raise ValueError(f"{name} is {value}: it does not fit into 32 bits")
    return value


def _strings(values: Sequence[Any], what: str) -> Any:
    return (ctypes.c_char_p * (len(values) + 1))(*[lib.c_bytes(value, what) for value in values], None)


def _files(files: Sequence[File]) -> Any:
    rows = [lib.File(lib.c_bytes_or_none(f.name, "name"), lib.c_bytes(f.path, "path"),
                     lib.c_bytes_or_none(f.binary_class, "binary_class"), int(f.executable)) for f in files]
    return (lib.File * len(rows))(*rows)


def orders(grains: Sequence[Tuple[int, Grain]]) -> Tuple[Any, List[Any]]:
    rows, keep = (lib.GrainOrder * len(grains))(), []
    for row, (number, grain) in zip(rows, grains):
        row.grain_num = _number("the grain's number", number)
        keep.append(grain.fill(row.grain))
    return rows, keep


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
        return self._open("out")

    def open_error(self) -> BinaryIO:
        return self._open("err")

    def open_file(self, name: str) -> BinaryIO:
        """A file that the grain brought back."""
        stream = ctypes.c_void_p()
        lib.call("d_grain_file", None, self.session, self.grain, lib.c_bytes(name, "name"), ctypes.byref(stream))
        return lib.open_stream(stream)

    def check(self) -> Result:
        """Itself, if the grain ended well; else raises GrainFailed."""
        if not self.ok:
            raise GrainFailed(self)
        return self

    def _open(self, which: str) -> BinaryIO:
        stream = ctypes.c_void_p()
        lib.call("d_grain_stream", None, self.session, self.grain, which.encode(), ctypes.byref(stream))
        return lib.open_stream(stream)


def result_of(session: int, row: lib.Result) -> Result:
    """Copies everything: the library's strings live until the next call only."""
    usage = row.rusage
    others = {name: getattr(usage, name) for name, kind in usage._fields_ if kind is ctypes.c_long}
    seconds = [t.tv_sec + t.tv_usec / 1e6 for t in (usage.ru_utime, usage.ru_stime)]
    heads = [ctypes.string_at(pointer, min(length, lib.TEXT_BYTES))
             for pointer, length in ((row.output, row.outlen), (row.error, row.errlen))]
    return Result(session, row.grain_num, row.sent - 1, row.completed, row.termsig, row.retcode,
                  Usage(seconds[0], seconds[1], usage.ru_maxrss, others), row.outlen, row.errlen, heads[0], heads[1])
