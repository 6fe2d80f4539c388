"""When jobs began and ended, from the event logs of their sessions, by the scheduler's clock."""
from __future__ import annotations

import json
import subprocess
import time
from typing import Dict, Iterable, Optional, Tuple

from .registry import Job
from .words import Wrong, dcs_command


class Times:
    """Asked once for all jobs that a command shows."""

    def __init__(self, jobs: Iterable[Job]):
        self.found: Dict[Tuple[int, int], Tuple[Optional[float], Optional[float]]] = {}
        for session in sorted({job.session for job in jobs if job.session and job.now != "PENDING"}):
            self._read(session)

    def of(self, job: Job) -> Tuple[Optional[float], Optional[float]]:
        """The beginning of its last run and the end, in seconds since 1970; None: not yet, or not known any more."""
        began, ended = self.found.get((job.session, job.number), (None, None))
        return began, ended if job.over else None

    def _read(self, session: int) -> None:
        done = subprocess.run([dcs_command(), "session", "log", str(session), "-o", "json"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:  # the session was removed, or is damaged
            return
        for event in json.loads(done.stdout)["events"]:
            key, began, at = (session, event.get("grain", -1)), None, event["time_s"]
            if event["event"] == "started":
                self.found[key] = (at, None)
            elif event["event"] in ("finished", "killed", "left"):
                began = self.found.get(key, (None, None))[0]
                self.found[key] = (began, at)


def since(text: Optional[str]) -> float:
    """sacct -S and -E; without a time, today's beginning."""
    if text == "now":
        return time.time()
    if text in (None, "today", "midnight"):
        today = time.localtime()
        return time.mktime(today[:3] + (0, 0, 0) + today[6:8] + (-1,))
    assert text is not None
    found = text.replace("now-", "")
    if text.startswith("now-") and found.rstrip("adehinorstuy").isdigit():
        unit = found.lstrip("0123456789")[:1] or "s"
        return time.time() - int(found.rstrip("adehinorstuy")) * {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}[unit]
    for form in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%m/%d/%y"):
        try:
            return time.mktime(time.strptime(text, form))
        except ValueError:
            continue
    raise Wrong(f"{text}: not a time such as 2026-03-01, 2026-03-01T06:00 or now-2days")
