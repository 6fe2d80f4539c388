"""Calls of the main thread, made by another one: its wait for that can be interrupted (Ctrl-C), the library's own cannot."""
from __future__ import annotations

import os
import queue
import threading
from typing import Any, Callable, List, Optional, Tuple

Work = Callable[[], Any]
AT_THE_END_S = 10.0  # for what a program that ends by an exception has to ask: the scheduler may be gone


class _Thread:
    def __init__(self) -> None:
        self.asked: "queue.SimpleQueue[Optional[Work]]" = queue.SimpleQueue()
        self.answers: "queue.SimpleQueue[Tuple[Any, Optional[BaseException]]]" = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True, name="dcs-calls").start()

    def _run(self) -> None:
        for work in iter(self.asked.get, None):
            try:
                answer = work(), None
            except BaseException as error:
                answer = None, error.with_traceback(None)
            self.answers.put(answer)
            del work, answer  # nothing of the program stays alive


_idle: List[_Thread] = []  # a signal's handler that calls meanwhile has another one
os.register_at_fork(after_in_child=_idle.clear)


def interruptible(work: Work, timeout: Optional[float] = None) -> Any:
    """work(). One that is interrupted, or takes longer than `timeout` seconds, still ends on its thread. Other threads than the main
    one do it themselves."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    try:
        thread = _idle.pop() if _idle else _Thread()
    except RuntimeError:  # the interpreter ends: no thread begins
        return work()
    thread.asked.put(work)
    try:
        value, error = thread.answers.get(timeout=timeout)
    except queue.Empty:
        thread.asked.put(None)
        raise TimeoutError from None
    except BaseException:
        thread.asked.put(None)
        raise
    _idle.append(thread)
    if error is not None:
        raise error
    return value
