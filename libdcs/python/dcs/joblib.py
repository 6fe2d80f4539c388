"""joblib on a pool: `import dcs.joblib` registers the backend "dcs".

    import dcs.joblib
    from joblib import Parallel, delayed, parallel_backend

    with parallel_backend("dcs", memory_mb=500):
        print(Parallel()(delayed(pow)(n, 2) for n in range(10)))

A batch of calls is a grain. Options beside n_jobs are those of Grain, and `pool`, `python` and `modules` of dcs.Executor.
joblib and cloudpickle must be installed on the hosts."""
from __future__ import annotations

import concurrent.futures
import functools
import multiprocessing
import os
import time
from typing import Any, Callable, Optional, Tuple

import joblib
from joblib._parallel_backends import AutoBatchingMixin, FallbackToBackend, ParallelBackendBase, SequentialBackend
from joblib.my_exceptions import WorkerInterrupt

from .executor import Executor
from .pool import Pool, default_pool


class _Batch:
    """What a grain calls. That the host loads it registers the backend there, for calls that name it themselves."""

    def __init__(self, calls: Callable[[], Any]):
        self.calls = calls

    def __call__(self) -> Tuple[float, Any]:
        began = time.monotonic()
        try:
            values = self.calls()
            return time.monotonic() - began, values
        except KeyboardInterrupt as error:
            raise WorkerInterrupt() from error


class Backend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Each Parallel has a session of its own, which goes with it."""
    supports_timeout = True
    supports_inner_max_num_threads = True
    # Seconds of calls in a batch; the grain itself costs some tenths of a second.
    MIN_IDEAL_BATCH_DURATION = 1.0
    MAX_IDEAL_BATCH_DURATION = 20.0

    def __init__(self, nesting_level: Optional[int] = None, inner_max_num_threads: Optional[int] = None, pool: Pool = default_pool,
                 **fields: Any):
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        self._pool_of_hosts, self._fields = pool, fields
        self._workers: Optional[Executor] = None
        self._took = 0.0  # the batch that has just ended, without its way and its turn

    def __reduce__(self) -> Any:
        return type(self), (self.nesting_level, self.inner_max_num_threads)

    def effective_n_jobs(self, n_jobs: Optional[int]) -> int:
        """So many batches are given to the pool at a time. -1: as many as the pool has slots."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None or _in_a_grain():
            return 1
        if n_jobs > 0:
            return n_jobs
        slots = sum(host.slots for host in self._pool_of_hosts.hosts("active"))
        return max(slots + 1 + n_jobs, 2)  # one would mean: in this program

    def configure(self, n_jobs: Optional[int] = 1, parallel: Any = None, prefer: Any = None, require: Any = None, **_: Any) -> int:
        self.parallel = parallel
        if _in_a_grain():  # it has a slot, not a pool
            raise FallbackToBackend(self.get_nested_backend()[0])
        number = self.effective_n_jobs(n_jobs)
        if number == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self._start()
        return number

    def _start(self) -> None:
        fields = dict(self._fields)
        threads = str(self.inner_max_num_threads or fields.get("cores") or 1)
        fields["env"] = {**{name: threads for name in self.MAX_NUM_THREADS_VARS}, **dict(fields.get("env", {}))}
        self._workers = Executor(pool=self._pool_of_hosts, encoding="cloudpickle", **fields)

    def apply_async(self, func: Callable[[], Any], callback: Optional[Callable[[Any], None]] = None) -> Any:
        future: Any
        try:
            assert self._workers is not None
            future = self._workers.submit(_Batch(func))
        except Exception as error:  # joblib asks the future; in its callback, an exception would only be printed
            future, callback = concurrent.futures.Future(), None
            future.set_exception(error)
        future.get = functools.partial(_get, future)
        if callback is not None:
            future.add_done_callback(functools.partial(self._done, callback))
        return future

    def _done(self, callback: Callable[[Any], None], future: Any) -> None:
        self._took = 0.0 if future.cancelled() or future.exception() else future.result()[0]
        callback(future)

    def batch_completed(self, batch_size: int, duration: float) -> None:
        super().batch_completed(batch_size, max(self._took, 1e-6))

    def compute_batch_size(self) -> int:
        size, took = self._effective_batch_size, self._smoothed_batch_duration
        if took > 0 and not self.MIN_IDEAL_BATCH_DURATION <= took <= self.MAX_IDEAL_BATCH_DURATION:
            self.reset_batch_stats()
            self._effective_batch_size = max(1, min(8 * size, int(size * 2 * self.MIN_IDEAL_BATCH_DURATION / took)))
        return int(self._effective_batch_size)

    submit = apply_async  # its name since joblib 1.4

    def abort_everything(self, ensure_ready: bool = True) -> None:
        if self._workers is not None:
            self._workers.leave()
        self._workers = None
        if ensure_ready:
            self._start()

    def terminate(self) -> None:
        """All results are there, or an exception was raised while calls were submitted."""
        if self._workers is not None:
            self._workers.leave()
        self._workers = None
        self.reset_batch_stats()


def _get(future: "concurrent.futures.Future[Any]", timeout: Optional[float] = None) -> Any:
    try:
        return future.result(timeout)[1]
    except concurrent.futures.TimeoutError as error:
        if future.done():  # of the function itself
            raise
        raise multiprocessing.TimeoutError() from error


def _in_a_grain() -> bool:
    return "DCS_GRAIN_DIR" in os.environ


joblib.register_parallel_backend("dcs", Backend)
