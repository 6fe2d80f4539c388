"""concurrent.futures on a pool of hosts."""
from __future__ import annotations

import concurrent.futures
import importlib
import itertools
import json
import os
import pickle
import re
import shutil
import sys
import sysconfig
import threading
import time
from types import ModuleType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from ._fields import Path
from .call import PICKLE_PROTOCOL
from .errors import CallFailed, Error, GrainDiffers, GrainUnknown, NothingLeft, ReplayEnd
from .pool import Pool, default_pool
from .session import Session, _forget
from .result import Result
from .spec import File, Grain

_HERE = os.path.dirname(os.path.realpath(__file__))
_SYSTEM_PYTHON = "/usr/bin/python3"
_BATCH = 256
Calls = List[Tuple[Sequence[Any], Dict[str, Any]]]


class Future(concurrent.futures.Future):  # type: ignore[type-arg]
    """The result of a grain to come. `grain`: its number in the executor's session."""

    def __init__(self, executor: Executor, grain: int, unpack: Callable[[Result], Any]):
        super().__init__()
        self.grain, self._executor, self._unpack = grain, executor, unpack
        self._cancelling = False

    def cancel(self) -> bool:
        """Withdraws the grain, also a running one."""
        if self.done():
            return self.cancelled()
        self._cancelling = True  # when the grain is killed the session may have nothing left: no failure of this future
        try:
            self._executor.session.kill(self.grain)
        except GrainUnknown:
            pass
        except BaseException:
            self._cancelling = False
            raise
        return self._drop()

    def _drop(self) -> bool:
        dropped = super().cancel()
        self._executor._gone(self)
        return dropped

    def _finish(self, result: Result) -> None:
        if not self.set_running_or_notify_cancel():
            return
        try:
            self.set_result(self._unpack(result))
        except Exception as error:
            self.set_exception(error)


class Executor(concurrent.futures.Executor):
    """Calls functions on the pool: submit(), map(), as_completed() and shutdown() as in concurrent.futures.

    Each call is a grain, numbered in the order of submission. A killed program that is run again and submits the same
    calls in the same order gets the results that are there, and continues with the rest. So let the order, the functions and
    their arguments depend on nothing that changes from run to run (sets of strings have another order in each): a call
    that differs raises GrainDiffers. When the last grain is done and the executor is shut down its session is closed; a
    rerun after that gives the same results again. Leaving `with` by an exception leaves the session open.

    `fresh`: what earlier runs of this ident left is closed and removed first, and nothing of it comes again. That is for
    the time in which functions and arguments still change; without it a program whose text has changed since an earlier
    run is refused (GrainDiffers), as that run's results are of the old one.

    Functions are found on the hosts by module and name. The module's file travels with the grain unless it belongs to the
    Python installation, and so do `modules` (names or modules) that it imports. `python` is the interpreter on the hosts: by default
    this program's own in a pool of `dcs up`, whose hosts are this one, and /usr/bin/python3 in others.
    `encoding`: "pickle", or "json" for arguments and results that JSON can say; a pickle from a host can do anything in
    this program, JSON cannot. `fields` are those of Grain, for all grains."""

    def __init__(self, ident: str, number: Optional[int] = None, *, fresh: bool = False,
                 modules: Iterable[Union[str, ModuleType]] = (), python: Optional[str] = None, encoding: str = "pickle",
                 pool: Pool = default_pool, **fields: Any):
        if encoding not in ("pickle", "json"):
            raise ValueError(f'encoding is {encoding!r}: it must be "pickle" or "json"')
        here = sys.executable if sys.executable and pool.on_this_host() else _SYSTEM_PYTHON
        self._python, self._encoding, self._fields = python or here, encoding, fields
        self._extra = [f for module in modules for f in _sources(_module(module))]
        self._staged: Dict[str, List[File]] = {}
        sys.modules.setdefault("__dcs_main__", sys.modules["__main__"])  # what call.py calls the control program
        self._ident = ident
        if fresh:
            _forget(pool, ident)
        self.session = Session(ident, number, pool=pool)
        self._submitting = threading.Lock()
        self._next_number = 0
        self._changed = threading.Condition()
        self._outstanding: Dict[int, Future] = {}
        self._early: Dict[int, Result] = {}  # of grains that an earlier run submitted and this one not yet
        self._shutdown = self._abandoned = False
        self._close_error: Optional[Exception] = None
        self._collector = threading.Thread(target=self._collect, daemon=True, name="dcs-executor")
        self._collector.start()

    def submit(self, fn: Union[Callable[..., Any], str], /, *args: Any, **kwargs: Any) -> Future:
        """Calls fn(*args, **kwargs) on some host. fn: a function that a module has under its name, or "module:name"."""
        return self._submit([(self._call_grain(fn, [(args, kwargs)]), lambda result: self._values(result)[0])])[0]

    def submit_command(self, argv: Sequence[Path], **fields: Any) -> Future:
        """Runs a program. A name without a slash is looked up in PATH here, as subprocess does; one that is not found
        there, and a relative path, are looked up in the user's DCS home on the host. The future's result is a Result;
        GrainFailed if it did not end with status 0."""
        if argv and not isinstance(argv, (str, bytes)) and not os.path.dirname(argv[0]):
            argv = [shutil.which(argv[0]) or argv[0], *argv[1:]]
        return self._submit([(Grain(argv, **{**self._fields, **fields}), Result.check)])[0]

    def map(self, fn: Union[Callable[..., Any], str], *iterables: Iterable[Any], timeout: Optional[float] = None,
            chunksize: int = 1) -> Iterator[Any]:
        """fn of each, in order. Calls go `chunksize` to a grain; all are submitted before map returns."""
        if chunksize < 1:
            raise ValueError(f"chunksize is {chunksize}: it must be at least 1")
        calls: Iterator[Any] = ((arguments, {}) for arguments in zip(*iterables))
        chunks = iter(lambda: list(itertools.islice(calls, chunksize)), [])
        futures = self._submit([(self._call_grain(fn, chunk), self._values) for chunk in chunks])
        return _in_order(futures, None if timeout is None else time.monotonic() + timeout)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """No more submissions; when all futures are done the session is closed. `wait`: returns after that."""
        with self._changed:
            self._shutdown = True
            waiting = list(self._outstanding.values())
            self._changed.notify_all()
        if cancel_futures:
            for future in waiting:
                future.cancel()
        if wait:
            self._collector.join()
            if self._close_error is not None:
                raise self._close_error

    def leave(self) -> None:
        """Goes without closing the session: its grains go on, a rerun takes their results."""
        with self._changed:
            self._shutdown = self._abandoned = True
            waiting = list(self._outstanding.values())
            self._changed.notify_all()
        for future in waiting:
            future._drop()
        self.session._leave_no_trace()

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.shutdown()
        else:
            self.leave()

    def _call_grain(self, fn: Union[Callable[..., Any], str], calls: Calls) -> Grain:
        module, name = _name_of(fn)
        files = self._staged.get(module)
        if files is None:
            files = [File(os.path.join(_HERE, "call.py"), "dcs_call.py")]
            files += _unique(_sources(_module(module)) + self._extra)
            self._staged[module] = files
        main = next((f.name for f in files if f.name and f.name.startswith("main/")), None)
        head = {"module": module, "function": name, "encoding": self._encoding, "main": main}
        data = pickle.dumps(calls, PICKLE_PROTOCOL) if self._encoding == "pickle" else json.dumps(calls).encode()
        fields = dict(self._fields)
        fields["files"] = files + _as_files(fields.get("files", ()))
        if self._python != _SYSTEM_PYTHON:  # by the PATH an interpreter finds its virtual environment, as argv[0] is a name there
            fields.setdefault("env", {"PATH": os.path.dirname(self._python) + ":/usr/bin:/bin"})
        return Grain([self._python, "dcs_call.py"], input=json.dumps(head).encode() + b"\n" + data, **fields)

    def _submit(self, grains: Sequence[Tuple[Grain, Callable[[Result], Any]]]) -> List[Future]:
        futures: List[Future] = []
        with self._submitting:  # numbers are given out in the order of the calls
            if self._shutdown:
                raise RuntimeError("the executor was shut down")
            for at in range(0, len(grains), _BATCH):
                part = grains[at:at + _BATCH]
                numbered = [(self._next_number + i, grain) for i, (grain, _) in enumerate(part)]
                try:
                    self.session.submit_many(numbered)
                except (GrainDiffers, ReplayEnd) as error:
                    raise self._explained(error, numbered) from None
                for _, unpack in part:
                    futures.append(self._expect(Future(self, self._next_number, unpack)))
                    self._next_number += 1
        return futures

    def _explained(self, error: Error, grains: Sequence[Tuple[int, Grain]]) -> Error:
        """The same in the words of a program that was edited: which file or which call, and what to do."""
        number, grain = grains[min(error.refused, len(grains) - 1)]
        staged = _as_files(grain.files)
        lines = re.findall(r"^\s*files\[(\d+)\]", error.text, re.M)
        changed = dict.fromkeys(os.path.basename(os.fspath(staged[int(at)].path)) for at in lines if int(at) < len(staged))
        session = f"session {self.session.number} of {self._ident!r}"
        if isinstance(error, ReplayEnd):
            text = f"call {number} is not among those of {session}, which is complete"
        elif changed:
            text = f"{' and '.join(changed)} {'have' if len(changed) > 1 else 'has'} changed since {session} began: its " \
                   "results are those of the program as it was"
        else:
            text = f"call {number} is not as it was when {session} began: {error.text}"
        told = type(error)(error.code, error.name, text, f"dcs.Executor({self._ident!r}, fresh=True) removes that session and "
                           "starts over; under another ident it stays")
        told.taken, told.refused = error.taken, error.refused
        return told

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

    def _values(self, result: Result) -> List[Any]:
        output = result.check().output
        if self._encoding == "json":
            answer = json.loads(output)
            if "failure" in answer:
                raise CallFailed(**answer["failure"])
            return answer["values"]
        done, answer = pickle.loads(output)
        if done:
            return answer
        error, told = answer
        raise CallFailed(**told) if error is None else _caused(error, CallFailed(**told))

    def _collect(self) -> None:
        while True:
            with self._changed:
                while not self._outstanding and not self._shutdown:
                    self._changed.wait()
                before = set(self._outstanding)
                if self._abandoned or not before:
                    break
            try:
                result = self.session._next(None, 64)
            except NothingLeft as error:
                self._fail(before, error)  # killed by another program: they have no results
            except Error as error:
                self._fail(set(self._outstanding), error)
            else:
                self._take(result)
        if not self._abandoned:
            try:
                self.session.close()
            except Exception as error:
                self._close_error = error

    def _take(self, result: Result) -> None:
        with self._changed:
            future = self._outstanding.pop(result.grain, None)
            if future is None:
                self._early[result.grain] = result
        if future is not None:
            future._finish(result)

    def _fail(self, numbers: Iterable[int], error: Exception) -> None:
        for number in numbers:
            with self._changed:
                future = self._outstanding.get(number)
                if future is None or future._cancelling:
                    continue
                del self._outstanding[number]
            if future.set_running_or_notify_cancel():
                future.set_exception(error)


def _in_order(futures: List[Future], end: Optional[float]) -> Iterator[Any]:
    futures.reverse()
    while futures:
        values = futures.pop().result(None if end is None else end - time.monotonic())
        values.reverse()
        while values:  # no value stays alive for those that follow
            yield values.pop()


def _caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def _name_of(fn: Union[Callable[..., Any], str]) -> Tuple[str, str]:
    if isinstance(fn, str):
        module, _, name = fn.partition(":")
        if not module or not name:
            raise ValueError(f'{fn!r} is not of the form "module:name"')
        return module, name
    module, name = getattr(fn, "__module__", None) or "", getattr(fn, "__qualname__", None) or ""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not fn:
        raise ValueError(f"{fn!r} cannot be found on another host: it must be a function that a module has under its name, "
                         "not a lambda or one within another function")
    return module, name


def _module(module: Union[str, ModuleType]) -> ModuleType:
    return importlib.import_module(module) if isinstance(module, str) else module


def _sources(module: ModuleType) -> List[File]:
    """The files by which a module goes to the hosts; none when it is a part of the Python installation."""
    path = getattr(module, "__file__", None)
    if module.__name__ in ("__main__", "__dcs_main__"):
        if path is None or not os.path.exists(path):
            raise ValueError("functions of a program that is not a file cannot be called on other hosts")
        return [File(os.path.abspath(path), "main/" + os.path.basename(path)), *_package()]
    if path is None or not path.endswith(".py") or _installed(path):
        return []
    top = module.__name__.split(".")[0]
    if top == module.__name__ and not hasattr(module, "__path__"):
        return [File(os.path.abspath(path), f"modules/{top}.py")]
    root = os.path.dirname(os.path.abspath(_module(top).__file__ or path))
    return [File(os.path.join(where, name), "modules/" + os.path.join(top, os.path.relpath(os.path.join(where, name), root)))
            for where, folders, names in _sorted_walk(root) for name in names if name.endswith(".py")]


def _package() -> List[File]:
    """This package, which the control program imports on the hosts as well. Nothing there calls libdcs.so."""
    names = sorted(name for name in os.listdir(_HERE) if name.endswith(".py") and name != "_installed.py")
    return [File(os.path.join(_HERE, name), "modules/dcs/" + name) for name in names] + [
        File(os.path.join(os.path.dirname(_HERE), "dcs_grain.py"), "modules/dcs_grain.py")]


def _installed(path: str) -> bool:
    library = [sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "platstdlib")]
    return {"site-packages", "dist-packages"} & set(path.split(os.sep)) != set() or path.startswith(tuple(library))


def _sorted_walk(root: str) -> Iterator[Tuple[str, List[str], List[str]]]:
    """In one order on every run: the files of a grain must not change."""
    for where, folders, names in os.walk(root):
        folders.sort()
        yield where, folders, sorted(names)


def _unique(files: List[File]) -> List[File]:
    return list({file.name: file for file in files}.values())


def _as_files(files: Any) -> List[File]:
    return [File(path, name) for name, path in files.items()] if isinstance(files, dict) else list(files)
