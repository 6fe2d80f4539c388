"""The end of a grain."""
from __future__ import annotations

import ctypes
import re
from ctypes import c_int, c_long, c_size_t, c_void_p
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Dict, Sequence

from ._fields import STRUCTURES
from .errors import Error
from .spec import FIELDS, FileRow

if TYPE_CHECKING:
    from .pool import Pool

TEXT_BYTES = 20 * 1024  # what the waits hand out of each stream


class Timeval(ctypes.Structure):
    _fields_ = [("tv_sec", c_long), ("tv_usec", c_long)]


class Rusage(ctypes.Structure):
    _fields_ = [("ru_utime", Timeval), ("ru_stime", Timeval)] + [
        (name, c_long) for name in ("ru_maxrss", "ru_ixrss", "ru_idrss", "ru_isrss", "ru_minflt", "ru_majflt", "ru_nswap",
                                    "ru_inblock", "ru_oublock", "ru_msgsnd", "ru_msgrcv", "ru_nsignals", "ru_nvcsw",
                                    "ru_nivcsw")]


class CResult(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("grain_num", c_int), ("completed", c_int), ("sent", c_int), ("termsig", c_int),
                ("retcode", c_int), ("result_index", c_int), ("rusage", Rusage), ("outlen", c_size_t), ("errlen", c_size_t),
                ("output", c_void_p), ("error", c_void_p)]


STRUCTURES.update({"d_result": CResult, "rusage": Rusage})


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
    has_outputs: bool = field(default=False, repr=False, compare=False)  # was submitted with some by this program

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
        """Itself, if the grain ended well and made its outputs; else raises GrainFailed."""
        if not self.ok:
            raise GrainFailed(self, self._why())
        if missing := [row.name for row in self._outputs() if not row.digest]:
            raise GrainFailed(self, f"without making {', '.join(missing)}")
        return self

    def _outputs(self) -> Sequence[FileRow]:
        return self.pool.grain_row(self.session, self.grain).files if self.has_outputs else ()

    def _why(self) -> str:
        """What the pool knows of an end that it brought about itself: a limit, or the last of too many attempts."""
        try:
            moves = self.pool.grain_row(self.session, self.grain).moves
        except (Error, ValueError):
            return ""
        if not moves or moves[-1].reason not in ("over_limit", "given_up"):
            return ""
        return f"on {moves[-1].host}: {moves[-1].detail}"


def result_of(pool: Pool, session: int, row: CResult, has_outputs: bool) -> Result:
    """Copies everything: the library's strings live until the next call only."""
    usage = row.rusage
    others = {name: getattr(usage, name) for name, kind in usage._fields_ if kind is ctypes.c_long}
    seconds = [t.tv_sec + t.tv_usec / 1e6 for t in (usage.ru_utime, usage.ru_stime)]
    heads = [ctypes.string_at(pointer, min(length, TEXT_BYTES))
             for pointer, length in ((row.output, row.outlen), (row.error, row.errlen))]
    return Result(session, row.grain_num, row.result_index, row.completed, row.termsig, row.retcode,
                  Usage(seconds[0], seconds[1], usage.ru_maxrss, others), row.outlen, row.errlen, heads[0], heads[1], pool, has_outputs)


class GrainFailed(Exception):
    """A grain ended by a signal, with an exit status other than 0, or without one of its outputs. `result` has everything about it, `why`: how the pool ended it.
    Each rerun of the program gets it again, but for one with DCS_RESUME_FAILED=1 in its environment, in which it begins again."""

    def __init__(self, result: Result, why: str = ""):
        self.result, self.why = result, re.sub(r"(?<!\S)--(\w+)", lambda option: FIELDS.get(option[1], option[0]), why)
        how = f"was ended by signal {result.signal}" if result.signal else f"ended with status {result.code}"
        said = result.error_head.decode(errors="replace").strip().splitlines()
        super().__init__(f"grain {result.grain} of session {result.session} {how}" + (f" {self.why}" if why else "") +
                         (f": {said[-1][:300]}" if said and not (why and why in said[-1]) else ""))
        if result.pool.keeps and hasattr(self, "add_note"):  # since Python 3.11
            self.add_note("dcs: so it ends in each run; with DCS_RESUME_FAILED=1 in the environment of the program, grains that failed begin "
                          "again, with the demands that the program has then")

    def __reduce__(self) -> Any:
        return GrainFailed, (self.result, self.why)
