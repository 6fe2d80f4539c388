"""The futures of an executor."""
from __future__ import annotations

import concurrent.futures
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Optional

from .errors import GrainUnknown
from .result import GrainFailed, Result

if TYPE_CHECKING:
    from .executor import Executor


class Future(concurrent.futures.Future):  # type: ignore[type-arg]
    """The result of a grain to come. `grain`: its number in the executor's session."""

    def __init__(self, executor: Executor, grain: int, unpack: Callable[[Result], Any]):
        super().__init__()
        self.grain, self._executor, self._unpack = grain, executor, unpack
        self._cancelling = False

    def cancel(self) -> bool:
        """Withdraws the grain, also a running one. Not when asyncio gives up the wait for it, as it does on Ctrl-C and at timeouts, and a
        rerun can take its result: the grain goes on, until shutdown(cancel_futures=True) or the end of the session."""
        if self.done():
            return self.cancelled()
        if self._executor._kept and sys._getframe(1).f_globals.get("__name__") == "asyncio.futures":
            self._executor._given_up.add(self.grain)
            return self._drop()
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
        if dropped:
            self._wanted()
        self._executor._gone(self)
        return dropped

    def _wanted(self) -> bool:
        """False for a cancelled future; the first call makes wait() and as_completed() return for it."""
        with self._condition:
            return self._state != "CANCELLED_AND_NOTIFIED" and self.set_running_or_notify_cancel()

    def _finish(self, result: Result) -> None:
        if not self._wanted():
            return
        try:
            value = self._unpack(result)
        except BaseException as error:  # also SystemExit, if a call raised it
            if self._executor._kept and not isinstance(error, GrainFailed) and hasattr(error, "add_note"):  # since Python 3.11
                error.add_note(f"dcs: so it ends in each run; `dcs grain restart {result.session}:{self.grain} --and-after` lets the call run again, "
                               "with --when-submitted also with other arguments")
            self.set_exception(error)
        else:
            self.set_result(value)

    def add_done_callback(self, fn: Callable[[Any], Any]) -> None:
        """As that of concurrent.futures. A callback that exits, as by sys.exit(), ends no thread of the executor: this is logged."""
        def call(future: Any) -> None:
            try:
                fn(future)
            except Exception:
                raise
            except BaseException as error:
                if threading.current_thread() is not self._executor._collector:
                    raise
                raise RuntimeError(f"a callback of call {self.grain} exits") from error
        super().add_done_callback(call)


def in_order(futures: List[Future], end: Optional[float]) -> Iterator[Any]:
    futures.reverse()
    while futures:
        values = futures.pop().result(None if end is None else end - time.monotonic())
        values.reverse()
        while values:  # no value stays alive for those that follow
            yield values.pop()
