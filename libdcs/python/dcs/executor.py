"""concurrent.futures on a pool of hosts."""
from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import itertools
import json
import logging
import os
import shutil
import sys
import threading
import time
from types import ModuleType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, Union

from . import _encoding, _nameless
from ._caller import CALL, Caller, is_call
from ._edited import explained
from ._fields import Path, printable
from ._future import Future, in_order
from ._staging import Staging, main_of, places_of
from ._waiting import AT_THE_END_S, interruptible
from .errors import Broken, CannotRun, Error, GrainDiffers, Limit, NothingLeft, ReplayEnd, Unreachable
from .pool import Pool, default_pool
from .session import Session
from .result import Result
from .spec import Grain, as_files, check_names, repeatable

_SYSTEM_PYTHON = "/usr/bin/python3"
_BATCH = 256
_SILENT_S = 5.0
_log = logging.getLogger("dcs")
Calls = List[Tuple[Sequence[Any], Dict[str, Any]]]


class Executor(concurrent.futures.Executor):
    """Calls functions on the pool: submit(), map(), as_completed() and shutdown() as in concurrent.futures.

    Each call is a grain, numbered in the order of submission. A killed program that is run again and submits the same
    calls in the same order gets the results that are there, and continues with the rest. So let the order, the functions and
    their arguments depend on nothing that changes from run to run (sets of strings have another order in each): a call
    that differs raises GrainDiffers; what calls demand of hosts, such as memory_mb, may differ. When the last grain is done and the executor is shut down its session is closed; a
    rerun after that gives the same results again, and what it submits behind them runs. Leaving `with` by an exception leaves the session open.

    `fresh`: what earlier runs of this ident left is closed and removed first, and nothing of it comes again. That is for
    the time in which functions and arguments still change; without it a program whose text has changed since an earlier
    run is refused (GrainDiffers), and that run's results stay. Functions in a module of their own, with nothing else that
    changes, keep theirs when the program around them is edited.

    Without an ident nothing is kept for a rerun: at the end what the session runs is withdrawn, and it goes with the last result.
    A program that was killed leaves such a session until the next one on this host begins. An executor and its futures are of
    the process that made it: a forked child makes its own.

    Calls run in the current directory and the environment of the program as they were when the executor was made, as grains
    of `dcs map` do, and find its sys.argv, or `argv` instead, and the flags of its interpreter. With `files`, `outputs` or
    `image`, and with `directory=None`, each grain has a directory of its own, which goes with it. A call that needs a file of
    the current directory, or leaves one, on a host without this directory raises FileNotFoundError; a command, and a call
    with `directory` named, runs only where that is. Directory and arguments belong to a call as those of the function do. In
    another environment a rerun warns which variables differ, and all calls of the session keep that of its first run.

    Functions and classes are found on the hosts by module and name. Files of modules travel with the grain, with those that
    they import and `modules` (names or modules), unless they belong to the Python installation; `__file__` is that of the
    original nevertheless. `python` is the interpreter on the hosts: by default this program's own in a pool of `dcs up`,
    whose hosts are this one, and /usr/bin/python3 in others. `encoding`: "pickle"; "cloudpickle", which sends functions of
    the program itself, closures and lambdas as they are; or "json" for arguments and results that JSON can say; a pickle from
    a host can do anything in this program, JSON cannot. `fields` are those of Grain, for all grains. `initializer` is called
    with `initargs` before the calls of each grain; an exception of it is that of their futures.

    When nothing of it has run for some seconds because of other work, the logger "dcs" says once what it waits for, and when the
    scheduler does not answer, that; on standard error unless the program configures logging."""

    def __init__(self, ident: Optional[str] = None, number: Optional[int] = None, *, fresh: bool = False,
                 modules: Iterable[Union[str, ModuleType]] = (), python: Optional[str] = None, encoding: str = "pickle",
                 pool: Pool = default_pool, initializer: Union[Callable[..., Any], str, None] = None, initargs: Iterable[Any] = (),
                 argv: Optional[Sequence[str]] = None, **fields: Any):
        check_names("Executor", fields, {"max_workers": ": the pool's slots say how many calls run at a time"})
        if not isinstance(ident, (str, type(None))):
            raise TypeError(f"Executor takes an ident, such as 'study', not {ident!r}: the pool's slots say how many calls run at a time")
        if encoding not in _encoding.ENCODINGS:
            raise ValueError(f'encoding is {encoding!r}: it must be "pickle", "cloudpickle" or "json"')
        self._cloud = _encoding.cloudpickle_name() if encoding == "cloudpickle" else "pickle"
        here = sys.executable if sys.executable and pool.on_this_host() else _SYSTEM_PYTHON
        self._python, self._encoding, self._fields = python or here, encoding, fields
        self._first = None if initializer is None else (initializer, tuple(initargs))
        self._staging = Staging(modules)
        self._caller = Caller(argv, pool._words[0])
        sys.modules.setdefault("__dcs_main__", sys.modules["__main__"])  # what call.py calls the control program
        self._kept = ident is not None
        if ident is None:
            pool, ident = _nameless.pool_of(pool)
            atexit.register(self._withdraw)
        self._ident = ident
        with pool.opening:
            if fresh:
                _nameless.forget(pool, ident, pool.had)
            self.session = Session(ident, number, pool=pool, _of_executor=True)
        self._submitting = threading.Lock()
        self._next_number = 0
        self._changed = threading.Condition()
        self._outstanding: Dict[int, Future] = {}
        self._given_up: Set[int] = set()  # calls that go on though asyncio waits for them no more
        self._early: Dict[int, Result] = {}  # of grains that an earlier run submitted and this one not yet
        self._shutdown = self._abandoned = self._told = self._away = False
        self._close_error: Optional[Exception] = None
        self._collector = threading.Thread(target=self._collect, daemon=True, name="dcs-executor")
        self._collector.start()

    def submit(self, fn: Union[Callable[..., Any], str], /, *args: Any, **kwargs: Any) -> Future:
        """Calls fn(*args, **kwargs) on some host. fn: what the encoding can send, or "module:name"."""
        return self._submit([(self._call_grain(fn, [(args, kwargs)]), lambda result: self._values(result)[0])])[0]

    def submit_command(self, argv: Sequence[Path], **fields: Any) -> Future:
        """Runs a program, in the directory and environment of calls, with `fields` of Grain. It is looked up here, as subprocess
        does: a name without a slash in PATH, a relative path in the program's directory; what is not found, in the user's DCS home on
        the host. The future's result is a Result; GrainFailed if it did not end with status 0."""
        check_names("submit_command()", fields, {})
        fields = {**self._fields, **fields}
        if argv and not isinstance(argv, (str, bytes)) and not fields.get("image") and not fields.get("programs"):
            name = os.fsdecode(argv[0])
            argv = [shutil.which(os.path.join(self._caller.directory, name) if "/" in name else name) or name, *argv[1:]]
        with repeatable(Grain(argv, **self._caller.placed(fields))) as grain:
            return self._submit([(grain, Result.check)])[0]

    def map(self, fn: Union[Callable[..., Any], str], *iterables: Iterable[Any], timeout: Optional[float] = None,
            chunksize: int = 1) -> Iterator[Any]:
        """fn of each, in order. Calls go `chunksize` to a grain, which starts a Python for them; all are submitted before map returns."""
        if chunksize < 1:
            raise ValueError(f"chunksize is {chunksize}: it must be at least 1")
        calls: Iterator[Any] = ((arguments, {}) for arguments in zip(*iterables))
        chunks = iter(lambda: list(itertools.islice(calls, chunksize)), [])
        futures = self._submit([(self._call_grain(fn, chunk), self._values) for chunk in chunks])
        return in_order(futures, None if timeout is None else time.monotonic() + timeout)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """No more submissions; when all futures are done the session is closed. `wait`: returns after that."""
        waiting = self._stop()
        for future in waiting if cancel_futures else ():
            future.cancel()
        for grain in sorted(self._given_up) if cancel_futures else ():
            self.session.kill(grain)
        if wait:
            self._collector.join()
            if self._close_error is not None:
                raise self._close_error

    def _stop(self, abandoned: bool = False) -> List[Future]:
        with self._changed:
            self._shutdown, self._abandoned = True, abandoned or self._abandoned
            self._changed.notify_all()
            self.session._wake()
            return list(self._outstanding.values())

    def leave(self) -> None:
        """Goes without closing the session: its grains go on, a rerun takes their results. Without an ident, they end."""
        for future in self._stop(abandoned=True):
            future._drop()
        if self._kept:
            self.session._leave_no_trace()
        else:
            self._remove()

    def _withdraw(self) -> None:
        if self._outstanding and not self.session._is_of_parent():
            _log.warning("dcs: %d calls are withdrawn, as the program ends without shutdown()", len(self._outstanding))
        self._remove()

    def _remove(self) -> None:
        """Of an executor without an ident: its session, with all that is in it."""
        atexit.unregister(self._withdraw)
        if self.session._is_of_parent():
            return
        with contextlib.suppress(Error, TimeoutError):  # the next one on this host tries again
            interruptible(lambda: (self.session._close_by_numbers(), self.session.clean()), AT_THE_END_S)
        self.session.pool.close()

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if self.session._is_of_parent():
            return
        if kind is None:
            self.shutdown()
            return
        if self._kept:
            self.session._say_what_goes_on(value)
        self.leave()

    @property
    def _max_workers(self) -> int:
        """Dask asks for it: so many calls it submits at a time. A few more than can run, as there is a way to the hosts."""
        return 2 + sum(host.slots for host in self.session.pool.hosts("active"))

    def _call_grain(self, fn: Union[Callable[..., Any], str], calls: Calls) -> Grain:
        label = _encoding.label_of(fn, calls)
        module, name, calls = self._named(fn, calls)
        head: Dict[str, Any] = {"module": module, "function": name, "encoding": self._encoding}
        functions, of = [fn], ""
        if self._first is not None:
            of, first, before = self._named(self._first[0], [(self._first[1], {})])
            head["initializer"], calls, functions = (of, first), before + calls, [fn, self._first[0]]
        data, modules = _encoding.write(calls, self._encoding, self._cloud)
        named = [name for name in dict.fromkeys((module, of)) if name]
        by_value = self._encoding == "cloudpickle" and not all(isinstance(function, str) for function in functions)
        staged = self._staging.files(named + sorted(modules - set(named)), imports_of_main=by_value)
        head.update(main=main_of(staged), places=places_of(staged), pickler=self._cloud, anywhere="directory" not in self._fields)
        fields = self._caller.placed({"label": label, **self._fields})
        directory, fields["directory"] = fields["directory"], None  # it starts where its files are
        fields["files"] = staged + as_files(fields.get("files", ()))
        return Grain([self._python, CALL, directory or "", *self._caller.argv], input=json.dumps(head).encode() + b"\n" + data, **fields)

    def _named(self, fn: Union[Callable[..., Any], str], calls: Calls) -> Tuple[str, str, Calls]:
        """The module and name by which a host finds the function; empty: it travels before its arguments."""
        by_value = self._encoding == "cloudpickle" and not isinstance(fn, str)
        module, name = ("", "") if by_value else _encoding.name_of(fn)
        if not module:
            if self._encoding == "json":
                raise ValueError(f"{fn!r} cannot be found on another host: it must be a function that a module has under its name, "
                                 "not a lambda or one within another function")
            calls = [((fn, *args), named) for args, named in calls]
        return module, name, calls

    def _submit(self, grains: Sequence[Tuple[Grain, Callable[[Result], Any]]]) -> List[Future]:
        futures: List[Future] = []
        if self.session._is_of_parent():
            raise RuntimeError("the executor is of the process that forked this one: make another here")
        with self._submitting:  # numbers are given out in the order of the calls
            if self._shutdown:
                raise RuntimeError("the executor was shut down")
            for at in range(0, len(grains), _BATCH):
                part = grains[at:at + _BATCH]
                numbered = [(self._next_number + i, grain) for i, (grain, _) in enumerate(part)]
                if any(is_call(grain) for grain, _ in part):
                    self._staging.check_unchanged()
                try:
                    self._submit_numbered(numbered)
                except KeyboardInterrupt:
                    self._next_number += len(part)  # their submission still ends
                    raise
                for _, unpack in part:
                    futures.append(self._expect(Future(self, self._next_number, unpack)))
                    self._next_number += 1
        return futures

    def _submit_numbered(self, grains: Sequence[Tuple[int, Grain]]) -> None:
        try:
            self.session.submit_many([(number, self._caller.with_environment(grain)) for number, grain in grains])
        except ReplayEnd:
            self._go_on()
            self._submit_numbered(grains)
        except (GrainDiffers, Limit) as error:
            number, grain = grains[min(error.refused, len(grains) - 1)]
            row = self.session.pool.grain_row(self.session.number, number) if isinstance(error, GrainDiffers) else None
            differ = self._caller.follow(grain, row) if row else []
            if not differ:
                raise explained(error, grains, self.session, self._ident, len(self._caller.flags), row.label if row else "") from None
            self._submit_numbered(grains)
            _log.warning("dcs: the environment differs from that with which session %d of %r began (%s): its calls keep theirs; "
                         "fresh=True begins it anew", self.session.number, self._ident, printable(", ".join(differ)))

    def _go_on(self) -> None:
        """In a session that an earlier run has closed: what is not in its record runs. Results come again from the first."""
        self.session._reopen()

    def _expect(self, future: Future) -> Future:
        with self._changed:
            early = self._early.pop(future.grain, None)
            if early is None:
                self._outstanding[future.grain] = future
                self._changed.notify_all()
        if early is not None:
            future._finish(early)
        return future

    def _gone(self, future: Future) -> None:
        with self._changed:
            self._outstanding.pop(future.grain, None)
            self._changed.notify_all()
            self.session._wake()

    def _values(self, result: Result) -> Any:
        return _encoding.read(result, self._encoding)

    def _collect(self) -> None:
        while True:
            with self._changed:
                while not self._outstanding and not self._shutdown:
                    self._changed.wait()
                before = set(self._outstanding)
                if self._abandoned or not before:
                    break
            try:
                result = self._next_recorded()
            except (NothingLeft, ReplayEnd) as error:
                self._fail(before, error)
            except Exception as error:  # ValueError: the pool is closed
                self._fail(set(self._outstanding), error)
            else:
                self._take(result)
        if self._abandoned:
            return
        try:
            self.session._close_by_numbers()
        except Exception as error:
            self._close_error = error
        if not self._kept:
            atexit.unregister(self._withdraw)
            _nameless.ended(self.session.pool, self._ident)

    def _next_recorded(self) -> Result:
        while True:
            try:
                return self._next_result()
            except ReplayEnd:
                if self.session._unfinished() < 1:
                    raise
                self._go_on()

    def _next_result(self) -> Result:
        pause = _SILENT_S
        while True:
            try:
                result = self.session._next(pause, 64)
                self._tell_if_away(False)
                return result
            except TimeoutError:
                if self._shutdown and not self._outstanding:  # what is left was given up
                    raise NothingLeft(NothingLeft.code, "D_E_NOTHING_LEFT", "no call is left", "") from None
                self._look()
                pause = _SILENT_S if self._away else min(2 * pause, 30.0)

    def _look(self) -> None:
        """Whether the scheduler answers, on a connection of its own: the wait for results asks again without end."""
        try:
            with Pool(self.session.pool._words[0], patience=_SILENT_S) as pool:
                pool.system()
        except (Unreachable, Broken):
            self._tell_if_away(True)
            return
        except Error:
            return
        self._tell_if_away(False)
        if not self._told:
            self._tell_what_waits()

    def _tell_if_away(self, away: bool) -> None:
        if away != self._away:
            start = " (`dcs up` starts that of a private pool)" if self.session.pool.on_this_host() else ""
            _log.warning("dcs: the scheduler does not answer; waiting for it%s; nothing is lost" if away else "dcs: the scheduler is back%s",
                         start if away else "")
        self._away = away

    def _tell_what_waits(self) -> None:
        """Once, and only if nothing of this executor runs. The program may go meanwhile, and the pool with it."""
        with self._changed:
            first = min(self._outstanding, default=None)
        if first is None:
            return
        try:
            why = self.session.pool.explain(self.session.number, first)
        except (Error, ValueError):
            return
        if why.state == "ready" and not any(reason.reason == "takes_it" for reason in why.reasons):
            self._told = True
            _log.warning("dcs: call %d of session %d waits: %s (`dcs grain explain %d:%d`)", first, self.session.number, printable(why.summary),
                         self.session.number, first)

    def _take(self, result: Result) -> None:
        with self._changed:
            future = self._outstanding.pop(result.grain, None)
            if future is None and result.grain >= self._next_number:
                self._early[result.grain] = result
        if future is not None:
            future._finish(result)

    def _fail(self, numbers: Iterable[int], error: Exception) -> None:
        killed = self._killed() if isinstance(error, (NothingLeft, ReplayEnd)) else set()
        for number in numbers:
            with self._changed:
                future = self._outstanding.get(number)
                if future is None or future._cancelling:
                    continue
                del self._outstanding[number]
            if number in killed:
                future._drop()
            elif future._wanted():
                future.set_exception(self._of_call(number, error) if isinstance(error, CannotRun) else error)

    def _of_call(self, number: int, error: Error) -> Error:
        """With the reason of its own, for one of all calls that no host can run."""
        with contextlib.suppress(Error, ValueError):
            why = self.session.pool.explain(self.session.number, number).summary
            return type(error)(error.code, error.name, f"call {number} of session {self.session.number}: {why}", error.hint)
        return error

    def _killed(self) -> Set[int]:
        """Grains that an earlier run cancelled, or a user killed: they have no results."""
        with contextlib.suppress(Error):
            return {row.grain for row in self.session.pool.grains(self.session.number, "killed")}
        return set()
