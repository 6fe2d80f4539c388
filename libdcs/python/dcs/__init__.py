"""DCS for Python: control programs that submit grains to a pool and take their results, and survive every kill.

    import dcs

    with dcs.Session("squares") as session:          # opens a session, or resumes that of an earlier run
        for number in range(100):
            session.submit(number, ["/usr/bin/factor"], input=f"{number ** 2 + 1}\\n")
        for result in session.results():             # in the order in which grains finished
            print(result.output.decode(), end="")

Run again after any kill it makes the same calls, which change nothing, gets the same results in the same order, and
goes on. `dcs.Executor` does the same for functions in the way of concurrent.futures, `dcs.hosts()`, `dcs.grains()` and
the like ask what the pool knows; `dcs.Pool(directory)` is another pool than the one of the environment. `dcs.grain` is for the other side: Python programs that are grains.

Standard library only, Python 3.9 or later; needs libdcs.so, which is loaded at the first call.
"""
from .errors import (Broken, CallFailed, CannotRun, Error, GrainDiffers, GrainExists, GrainUnknown, Internal, Invalid,
                     IoError, Limit, NoAuth, NoSpace, NotFound, NothingLeft, NothingYet, Protocol, Refused, ReplayEnd,
                     SessionActive, SessionClosed, SessionTaken, SessionUnknown, Unreachable)
from .executor import Executor, Future
from .pool import Pool, default_pool, login_name
from .query import Explanation, HostRow, Reason, SessionRow, System
from .result import GrainFailed, Result, Usage
from .session import Session
from .spec import File, FileRow, Grain, GrainRow, Move

# Of the default pool.
clear_nogo, close_session, explain, grain_file = (default_pool.clear_nogo, default_pool.close_session, default_pool.explain,
                                                  default_pool.grain_file)
grain_row, grain_stream, grains = default_pool.grain_row, default_pool.grain_stream, default_pool.grains
host_class, hosts = default_pool.host_class, default_pool.hosts
kill_grain, restart, sessions, set_host, system = (default_pool.kill_grain, default_pool.restart, default_pool.sessions,
                                                   default_pool.set_host, default_pool.system)

__all__ = ["Broken", "CallFailed", "CannotRun", "Error", "Executor", "Explanation", "File", "FileRow", "Future", "Grain", "GrainDiffers",
           "GrainExists", "GrainFailed", "GrainRow", "GrainUnknown", "HostRow", "Internal", "Invalid", "IoError", "Limit",
           "Move", "NoAuth", "NoSpace", "NotFound", "NothingLeft", "NothingYet", "Pool", "Protocol", "Reason", "Refused",
           "ReplayEnd", "Result", "Session", "SessionActive", "SessionClosed", "SessionRow", "SessionTaken",
           "SessionUnknown", "System", "Unreachable", "Usage", "clear_nogo", "close_session", "default_pool", "explain", "grain_file", "grain_row",
           "grain_stream", "grains", "host_class", "hosts", "kill_grain", "login_name", "restart", "sessions", "set_host", "system"]
