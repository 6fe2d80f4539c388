"""A grain: as it is submitted, and as the pool knows it."""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import shutil
import tempfile
from ctypes import c_char_p, c_int, c_size_t
from dataclasses import dataclass, field
from typing import Annotated, Any, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._fields import (STRUCTURES, Bytes, CString, CStrings, Double, Flag, Int, Int64, Many, Path, Text, Unsigned, Unsigned64, Words,
                      as_environment, c_bytes, c_bytes_or_none, fields_of, number, structure)


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


def as_files(files: Union[Mapping[str, Path], Sequence[File]]) -> List[File]:
    if isinstance(files, Mapping):
        return [File(path, name) for name, path in files.items()]
    found = [files] if isinstance(files, (str, bytes, os.PathLike)) else list(files)
    if not all(isinstance(file, File) for file in found):
        raise TypeError(f"{files!r} is no list of dcs.File, and no mapping of names to paths such as {{'data.csv': '/home/ann/data.csv'}}")
    return found


def _files(files: Union[Mapping[str, Path], Sequence[File]]) -> Any:
    return _rows(as_files(files))


def _programs(programs: Union[Path, Sequence[File]]) -> Any:
    return _rows([File(programs)] if isinstance(programs, (str, bytes, os.PathLike)) else as_files(programs))


# By the options of `dcs` for them, which the pool's words name.
FIELDS = {"bring": "programs", "class": "host_class", "cwd": "directory", "file": "files", "memory": "memory_mb", "output": "outputs",
          "time": "wall_s"}


def check_names(what: str, fields: Iterable[str], also: Mapping[str, str]) -> None:
    for name in fields:
        if name not in Grain.__dataclass_fields__:
            told = f": it is {FIELDS[name]} of dcs.Grain" if name in FIELDS else also.get(name, "; help(dcs.Grain) has them")
            raise TypeError(f"{what} has no argument {name}{told}")


class Resources(CString):
    """A mapping of names to amounts, or "gpu=1,scratch_gb=20"."""

    def put(self, to: Any, name: str, value: Any) -> Any:
        text = ",".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, Mapping) else value
        return super().put(to, name, text)


@structure("d_grain")
@dataclass
class Grain:
    """A grain to submit.

    argv        the program and its arguments. argv[0]: its path, a relative one from the user's DCS home on the host
    input       standard input, str as UTF-8; or input_path, a file, or input_fd, a descriptor that is read to its end
    env         the environment, all of it: a mapping, or a list of "NAME=value"
    directory   working directory on the host, an absolute path; None: one of its own
    files       in a directory of its own: a mapping of names to paths here, or a list of File
    outputs     names of files that come back from there, see Result.open_file
    programs    the executable, a path here: a host runs a copy of it; or a list of File, one for each binary class
    image       a file here with the image of the container in which it runs
    attempts    runs until a failure is its result, 1 to 255
    cores       that it keeps busy; 0 counts as 1
    memory_mb   megabytes that have to be free, and that it may use: a run that uses more has failed
    wall_s      seconds that a run may take; a longer one has failed
    resources   named ones that it uses, {"gpu": 1} or "gpu=1"
    host_class  mask of the hosts that may run it, see dcs.host_class; 0: all
    urgent      to the front of the queue
    label       for display
    notice      minutes of warning before a checkpoint
    thrash      expected memory in half megabytes

    0 for cores, memory_mb, wall_s, notice and thrash: not said. All but the label and what it demands of hosts (cores, memory_mb and the like) count for the rerun."""
    argv: Annotated[Sequence[Path], CStrings("gargv")]
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
    resources: Annotated[Union[Mapping[str, int], str, None], Resources()] = None
    image: Annotated[Optional[Path], CString()] = None

    def fill(self, to: Any) -> List[Any]:
        """As the library wants it. What is returned must live until the call is over."""
        to.struct_size = ctypes.sizeof(to)
        return [how.put(to, name, getattr(self, name)) for name, how in fields_of(Grain)]


@contextlib.contextmanager
def repeatable(grain: Grain) -> Iterator[Grain]:
    """With what a descriptor gives in a file, so that each submission of the grain reads the same."""
    if grain.input_fd == -1 or grain.input or grain.input_path is not None:
        yield grain
        return
    with os.fdopen(os.dup(grain.input_fd), "rb") as given, tempfile.NamedTemporaryFile() as copy:
        shutil.copyfileobj(given, copy)
        copy.flush()
        yield dataclasses.replace(grain, input_fd=-1, input_path=copy.name)


@structure("d_move_row")
@dataclass(frozen=True)
class Move:
    """One of the latest times that a grain changed places."""
    reason: Text
    host: Text
    detail: Text
    age_s: Double
    incarnation: Unsigned


@structure("d_file_row")
@dataclass(frozen=True)
class FileRow:
    """A file that a grain was to bring back; `digest` is empty when it did not."""
    name: Text
    size: Unsigned64
    digest: Text


@structure("d_grain_row")
@dataclass(frozen=True)
class GrainRow:
    """A grain. `argv`, `nogo`, `moves`, `files`, `class_names`, `directory` and `env` are there after grain_row(), empty after
    grains()."""
    user: Text
    state: Text
    host: Text
    label: Text
    message: Text
    session: Int
    grain: Int
    starts: Int
    restarts: Int
    failures: Int
    exit_code: Int
    signal: Int
    result_index: Int
    incarnation: Unsigned
    host_class: Unsigned
    cpu_s: Double
    run_cpu_s: Double
    saved_cpu_s: Double
    last_contact_s: Double
    checkpoint_age_s: Double
    out_length: Unsigned64
    err_length: Unsigned64
    checkpoint_length: Unsigned64
    thrash: Int
    notice: Int
    attempts: Int
    cores: Int
    memory_mb: Int
    wall_s: Int
    urgent: Int
    argv: Words
    nogo: Annotated[Tuple[str, ...], Many("nogo_count")]
    moves: Annotated[Tuple[Move, ...], Many("move_count", Move)]
    files: Annotated[Tuple[FileRow, ...], Many("file_count", FileRow)]
    user_s: Double
    system_s: Double
    max_rss_kb: Int64
    minor_faults: Int64
    major_faults: Int64
    in_blocks: Int64
    out_blocks: Int64
    class_names: Text
    directory: Text
    env: Words
    resources: Text


class GrainOrder(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("grain_num", c_int), ("reserved", c_int), ("grain", Grain.C)]  # type: ignore[attr-defined]


def orders(grains: Sequence[Tuple[int, Grain]]) -> Tuple[Any, List[Any]]:
    rows, keep = (GrainOrder * len(grains))(), []
    for row, (grain_number, grain) in zip(rows, grains):
        row.struct_size, row.grain_num = ctypes.sizeof(row), number("the grain's number", grain_number)
        keep.append(grain.fill(row.grain))
    return rows, keep


STRUCTURES.update({"d_file": CFile, "d_grain_order": GrainOrder})
