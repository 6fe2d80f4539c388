"""Sessions: where grains are submitted and results taken."""
from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import threading
import time
import warnings
from collections import deque
from typing import Any, Collection, Deque, Iterator, List, Optional, Sequence, Set, Tuple, Union

from ._fields import Path
from ._waiting import AT_THE_END_S, interruptible
from .errors import CannotRun, Error, GrainDiffers, NothingLeft, NothingYet, Refused, ReplayEnd, SessionActive, SessionClosed, SessionUnknown
from .pool import Pool, default_pool, with_threads
from .result import CResult, Result, result_of
from .spec import Grain, check_names, orders

_MANY = 1024  # results that come at a time at most


class Session:
    """A session of this program, which calls itself `ident`, in a pool.

    Without `number` it is the session of that ident which is there from an earlier run, else a new one under a free
    number: a plain rerun finds its own. While a session is open, another one of the program is not the same, and none is that of an
    executor: each run finds them in the order of opening. `mode`: "resume" opens it if there is none and takes it over if there is,
    "open" wants a new one, "reopen" is "resume" that makes a closed one active again, for further grains. `sent_reset`: results come again from the first.
    `skip`: sessions of this ident that are not meant; a new one then has a greater number than they.

    As a context manager it is closed at the end of the block, with a warning if that ends grains; close() in the block ends
    them without one, such as those of a search that has found something. When an exception leaves the block it stays open,
    and a rerun goes on in it; one in which nothing was ever submitted is removed. All methods may be called from several
    threads. Waiting can be interrupted (Ctrl-C): a result that arrives later is kept for the next call. In the child of a fork
    all methods continue with the same session; only the process that opened it ends it with the block."""

    def __init__(self, ident: str, number: Optional[int] = None, *, mode: str = "resume", sent_reset: bool = True,
                 skip: Collection[int] = (), pool: Pool = default_pool, _of_executor: bool = False):
        if mode not in ("resume", "open", "reopen"):
            raise ValueError(f'mode is {mode!r}: it must be "resume", "open" or "reopen"')
        self.ident, self.pool = ident, pool
        pool.call("set_new_demands", 1)
        with pool.opening:
            pool.authorize(ident)
            others = pool.had if _of_executor else pool.in_use
            self.number: int = (_find(pool, ident, mode, sent_reset, skip, others) if number is None else
                                _open(pool, number, mode, sent_reset))
            pool.had[self.number] = number is None
            pool.in_use.add(self.number)
        self._of_executor = _of_executor
        self._resume_by_numbers()
        self._process, self._submitted, self._closed, self._left = os.getpid(), 0, False, False  # _submitted: how often
        self._ready: Deque[Result] = deque()
        self._with_outputs: Set[int] = set()
        self._error: Optional[Exception] = None
        self._submitted_when_asked = 0
        self._without_threads()
        with_threads.add(self)

    def _without_threads(self) -> None:
        """As at the beginning, and in the child of a fork, where those of its parent are not."""
        self._changed = threading.Condition()
        self._asked: "queue.SimpleQueue[Optional[int]]" = queue.SimpleQueue()
        self._taker: Optional[threading.Thread] = None
        self._taking = False

    def _is_of_parent(self) -> bool:
        return self._process != os.getpid()

    def __repr__(self) -> str:
        return f"<dcs.Session {self.number} of {self.ident}>"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if self._is_of_parent():
            return
        if self._left:
            return
        if kind is None:
            if self._submitted and not self._closed:
                self._warn_of_unfinished()
            self.close()
        else:
            self._say_what_goes_on(value)
            self._leave_no_trace()

    def submit(self, number: int, argv: Union[Sequence[Path], Grain], **fields: Any) -> None:
        """Submits a grain, durably; `fields` are those of Grain, unless one is given. The same call again changes nothing; with other
        demands, such as memory_mb or cores, a grain that has not started takes these."""
        check_names("submit()", fields, {})
        self.submit_grain(number, argv if isinstance(argv, Grain) and not fields else Grain(argv, **fields))

    def submit_grain(self, number: int, grain: Grain) -> None:
        self._note_outputs([(number, grain)])
        order = Grain.C()  # type: ignore[attr-defined]
        keep = grain.fill(order)
        try:
            self.pool.call("gexec_grain", self.number, number, ctypes.byref(order))
        except (GrainDiffers, Refused, ReplayEnd) as error:
            raise self._explained(error, number) from None
        self._count(1)
        del keep

    def submit_many(self, grains: Sequence[Tuple[int, Grain]]) -> None:
        """Many (number, Grain) at once: a thousand cost about as much as a few. An error says in `taken` how many from
        the beginning are submitted, and in `refused` on account of which one it ended."""
        if not grains:
            return
        self._note_outputs(grains)
        rows, keep = orders(grains)
        taken, refused = ctypes.c_size_t(), ctypes.c_size_t()
        try:
            self.pool.call("gexec_many", self.number, rows, len(grains), ctypes.byref(taken), ctypes.byref(refused))
        except Error as error:
            told = (self._explained(error, grains[min(refused.value, len(grains) - 1)][0]) if isinstance(error, (GrainDiffers, Refused, ReplayEnd)) else
                    error)
            told.taken, told.refused = taken.value, refused.value
            raise told from None
        finally:
            self._count(taken.value)
            del keep

    def _note_outputs(self, grains: Sequence[Tuple[int, Grain]]) -> None:
        with self._changed:
            self._with_outputs.update(number for number, grain in grains if grain.outputs)

    def _count(self, submitted: int) -> None:
        with self._changed:
            self._submitted += submitted

    def _explained(self, error: Error, grain: Optional[int] = None) -> Error:
        """With what a program that was edited does about it."""
        if isinstance(error, Refused):
            return type(error)(error.code, error.name, error.text, "")
        again = self._about_failures(grain) if isinstance(error, GrainDiffers) else ""
        new = (f"dcs.Session({self.ident!r}, skip=[{self.number}]) begins a new one, and so does this program after `dcs session close "
               f"{self.number}` and `dcs session clean {self.number}`")
        hint = again + (f"dcs.Session({self.ident!r}, mode=\"reopen\") goes on in it, {new}" if isinstance(error, ReplayEnd) else
                f"session {self.number} is of the program as it was, or of another program of this ident: {new}" if isinstance(error, GrainDiffers) else
                f"Correct that, or what the grains demand, then run this program again, or wait again. With other commands: {new}")
        return type(error)(error.code, error.name, error.text, hint)

    def _about_failures(self, grain: Optional[int]) -> str:
        """Why a grain may differ from the recorded one in the run after a failure, and what helps."""
        if os.environ.get("DCS_RESUME_FAILED") == "1" and grain is not None:
            return (f"if it depends on a failure that begins again, `dcs grain restart {self.number}:{grain} --and-after --when-submitted` forgets "
                    "it with what followed; otherwise: ")
        with contextlib.suppress(Error):
            row = None if grain is None else self.pool.grain_row(self.number, grain)
            if row is not None and row.state == "finished" and (row.exit_code or row.signal):
                return f"grain {grain} failed: with DCS_RESUME_FAILED=1 in the environment of this program it begins again as it is now; otherwise: "
        return ""

    def wait(self, timeout: Optional[float] = None) -> Result:
        """The next result, in the order in which grains finished. NothingLeft when no more will come, ReplayEnd when the
        session was closed before all of its grains had ended;
        TimeoutError after `timeout` seconds, after which it may be called again."""
        return self._next_explained(timeout, 1)

    def poll(self) -> Optional[Result]:
        """The next result if there is one, else None; NothingLeft as wait()."""
        with contextlib.suppress(NothingYet), self._explaining():
            interruptible(self._take_one)
        with self._changed:
            return self._ready.popleft() if self._ready else None

    def _take_one(self) -> None:
        with self._changed:
            if self._ready or self._taking:
                return
            self._taking = True
        results: List[Result] = []
        try:
            results = self._take(0, 1)
        finally:
            self._took(results, self._error)

    def _took(self, results: List[Result], error: Optional[Exception]) -> None:
        with self._changed:
            self._ready.extend(results)
            self._error, self._taking = error, False
            self._changed.notify_all()

    def results(self, batch: int = 64) -> Iterator[Result]:
        """All results that are left, in the order in which grains finished, waiting for each. They are taken up to
        `batch` at a time; a batch counts as sent when the next one is asked for. In the replay of a session that was
        closed before all of its grains had ended, ReplayEnd follows the recorded results."""
        while True:
            try:
                result = self._next_explained(None, batch)
            except NothingLeft:
                return
            yield result

    def kill(self, number: int) -> None:
        """The grain will not run again, and no result of it comes that was not handed out."""
        self.pool.call("gkill", self.number, number)
        with self._changed:  # those that results() has taken ahead
            self._ready = deque(result for result in self._ready if result.grain != number)

    def close(self) -> None:
        """Terminates the session: what runs is withdrawn, results stay and can be replayed by a rerun."""
        self.pool.call("close_ses", self.number)
        self._closed = True
        self.leave()

    def _close_by_numbers(self) -> None:
        """Of a program that asks for the results of its grains by their numbers: others do not matter to it."""
        try:
            self.close()
        except GrainDiffers:
            self.pool.close_session(self.pool.login_name(), self.number)
            self._closed = True
            self.leave()

    def leave(self) -> None:
        """Goes without closing the session; a rerun goes on in it. In a block, too."""
        self._left = True
        if not self._closed:
            self.pool.had.pop(self.number, None)
        if not self._closed or not self._of_executor:
            self.pool.in_use.discard(self.number)
        with self._changed:
            if self._taker is not None:
                self._asked.put(None)
                self._taker = None

    def _reopen(self) -> None:
        _open(self.pool, self.number, "reopen", True)
        self._resume_by_numbers()

    def _resume_by_numbers(self) -> None:
        """What the library has from the environment, for a program that does not decide by the order of results."""
        if self._of_executor and os.environ.get("DCS_RESUME_FAILED") == "1":
            with contextlib.suppress(SessionClosed):  # of a session without failures: it is replayed
                self.pool.call("resume_failed", self.number, 1)

    def clean(self) -> None:
        """Removes the data of the closed session."""
        self.pool.call("clean_ses", self.number)

    def _leave_no_trace(self) -> None:
        """Leaves a session in which nothing was ever submitted, and removes it: a rerun has nothing to go on with."""
        self.leave()
        if self._submitted or self._is_of_parent():
            return
        try:
            if all(row.session != self.number or row.ready + row.running + row.finished + row.killed == 0
                   for row in self.pool.sessions(self.pool.login_name())):
                self.pool.call("close_ses", self.number)
                self.pool.call("clean_ses", self.number)
        except Error:
            pass  # the error that is on its way matters more

    def _say_what_goes_on(self, leaving: BaseException) -> None:
        """In a note at the exception that leaves the program, such as that of Ctrl-C."""
        try:
            left = interruptible(lambda: self._unfinished("active"), AT_THE_END_S)
        except (Error, TimeoutError):
            return  # the error that is on its way matters more
        if left > 0 and hasattr(leaving, "add_note"):  # since Python 3.11
            grains, it, goes, is_left = ("grain", "it", "goes on", "is left") if left == 1 else ("grains", "them", "go on", "are left")
            also = ", also with other demands," if isinstance(leaving, CannotRun) else ""
            leaving.add_note(f"dcs: {left} {grains} of session {self.number} {is_left if also else goes}: the same program{also} continues with "
                             f"{it} when it is run again; `dcs session close {self.number}` ends {it}")

    def _unfinished(self, state: str = "") -> int:
        """Grains that have not ended. -1: the session is not there, or not in that state."""
        return next((row.ready + row.running for row in self.pool.sessions(self.pool.login_name())
                     if row.session == self.number and state in ("", row.state)), -1)

    def _warn_of_unfinished(self) -> None:
        if (left := self._unfinished("active")) > 0:
            warnings.warn(f"session {self.number} is closed, which ends {left} of its grains: dcs.Session({self.ident!r}, mode=\"reopen\") runs "
                          "them; in the block, results() waits for them, close() ends them without a warning, leave() leaves them",
                          RuntimeWarning, stacklevel=3)
        elif (left := self._unfinished("terminated")) > 0:
            warnings.warn(f"session {self.number} was closed before {left} of its grains had run; "
                          f"dcs.Session({self.ident!r}, mode=\"reopen\") runs them", RuntimeWarning, stacklevel=3)

    def _take(self, block: int, most: int) -> List[Result]:
        rows, count = (CResult * min(most, _MANY))(), ctypes.c_int()
        rows[0].struct_size = ctypes.sizeof(CResult)
        with self.pool.used():
            self.pool.call("gwait_many", block, self.number, len(rows), rows, ctypes.byref(count))
            return [result_of(self.pool, self.number, row, row.grain_num in self._with_outputs) for row in rows[:count.value]]

    def _next_explained(self, timeout: Optional[float], most: int) -> Result:
        with self._explaining():
            return self._next(timeout, most)

    @contextlib.contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except (CannotRun, ReplayEnd) as error:
            if isinstance(error, ReplayEnd) and self._unfinished() == 0:
                raise NothingLeft(NothingLeft.code, "D_E_NOTHING_LEFT", error.text, error.hint) from None
            raise self._explained(error) from None

    def _next(self, timeout: Optional[float], most: int) -> Result:
        if most < 1:
            raise ValueError(f"batch is {most}: it must be at least 1")
        end = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while True:
                if self._ready:
                    return self._ready.popleft()
                error, self._error = self._error, None
                if error is not None and not self._is_outdated(error):
                    raise error
                if not self._taking:
                    self._ask(most)
                # The library's own wait cannot be interrupted, this one can.
                if not self._changed.wait(None if end is None else min(max(0.0, end - time.monotonic()), threading.TIMEOUT_MAX)):
                    raise TimeoutError(f"no grain of session {self.number} finished within {timeout} s")

    def _wake(self) -> None:
        """A wait under way times out now."""
        with self._changed:
            self._error = self._error or TimeoutError("woken")
            self._changed.notify_all()

    def _is_outdated(self, error: Exception) -> bool:
        """It says what the session had when it was asked, and there is more by now."""
        return isinstance(error, (CannotRun, NothingLeft, ReplayEnd)) and self._submitted_when_asked != self._submitted

    def _ask(self, most: int) -> None:
        if self._taker is None:
            # One thread for all waits, as each thread has a connection of its own.
            self._taker = threading.Thread(target=self._run_taker, daemon=True, name=f"dcs-session-{self.number}")
            self._taker.start()
        self._taking, self._submitted_when_asked = True, self._submitted
        self._asked.put(most)

    def _run_taker(self) -> None:
        while True:
            most = self._asked.get()
            if most is None:
                return
            results: List[Result] = []
            error: Optional[Exception] = None
            try:
                results = self._take(1, most)
            except Exception as failure:
                error = failure.with_traceback(None)
            self._took(results, error)


def _open(pool: Pool, number: int, mode: str, sent_reset: bool) -> int:
    if mode == "open":
        pool.call("open_ses", number)
        return number
    try:
        pool.call(f"{mode}_ses", number, int(sent_reset))
    except (SessionActive, SessionUnknown):  # it can be made active only when it was closed
        pool.call("resume_ses", number, int(sent_reset))
    return number


def _find(pool: Pool, ident: str, mode: str, sent_reset: bool, skip: Collection[int], others: Collection[int]) -> int:
    """The first session of this ident, behind those to skip and none of the program's others; else a new one, behind these, too."""
    own = [row for row in pool.sessions() if row.user == pool.login_name()]
    first = max(skip, default=0)
    mine = sorted(row.session for row in own if row.ident == ident and row.session > first and row.session not in others)
    if mine and mode != "open":
        return _open(pool, mine[0], mode, sent_reset)
    used = {row.session for row in own}
    while True:
        number = pool.free_number(used, max(first, *(number for number in list(others) if pool.had.get(number)), 0))
        try:
            return _open(pool, number, "resume" if mode == "reopen" else mode, sent_reset)
        except Error as error:
            # Another program of this user took the number since the query: the next one will do.
            if error.name not in ("D_E_SESSION_TAKEN", "D_E_SESSION_ACTIVE", "D_E_SESSION_CLOSED"):
                raise
        used.add(number)
