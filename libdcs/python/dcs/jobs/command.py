"""Which command it is, by the name of the file that was started, and how errors are said."""
from __future__ import annotations

import importlib
import os
import signal
import sqlite3
from typing import List

from ..errors import Error, Unreachable
from ..pool import Pool
from .words import Wrong, leave, say

COMMANDS = {"sbatch": "slurm", "srun": "slurm", "squeue": "slurm_show", "sacct": "slurm_show", "scancel": "slurm_show",
            "sinfo": "slurm_control", "scontrol": "slurm_control",
            "qsub": "sge", "qstat": "sge_show", "qacct": "sge_show", "qdel": "sge_show",
            "submit": "snakemake", "status_of_pool": "snakemake", "cancel": "snakemake"}


PATIENCE_S = 3
START = "`dcs up` starts a private pool again"
WAIT = {"sbatch", "srun", "qsub", "submit", "status_of_pool", "cancel"}  # whose failure would end a script or a workflow
ABOUT = {"--help", "--usage", "--version", "-V", "-help"}


def look_for_scheduler(name: str, words: List[str]) -> None:
    """Says soon that it is away; calls alone wait for it much longer and in silence."""
    if ABOUT.intersection(words):
        return
    try:
        with Pool(patience=PATIENCE_S) as pool:
            pool.system()
    except Unreachable as error:
        if name not in WAIT:
            raise
        say(name, f"waiting for the scheduler, nothing is lost: {error.text}; {START}")


def main(argv: List[str]) -> int:
    name, words = os.path.basename(argv[0]), argv[1:]
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # while modules were imported
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if words == ["keep"] and name not in COMMANDS:
            from .holding import keep
            from .registry import Registry
            return keep(Registry())
        if words == ["resume"] and name not in COMMANDS:  # by `dcs up`
            from .holding import keep_going
            from .registry import Registry
            keep_going(Registry())
            return 0
        if words[:1] == ["note"] and name not in COMMANDS:  # by `dcs session clean`, before how these jobs ended is lost
            from .registry import Registry, folder
            if os.path.exists(os.path.join(folder(), "jobs.db")):
                registry = Registry()
                registry.look(registry.jobs("state = 'sent' and session = ?", int(words[1])))
            return 0
        if name not in COMMANDS:
            leave(name, "call it by one of the names " + ", ".join(COMMANDS))
        look_for_scheduler(name, words)
        return int(getattr(importlib.import_module("." + COMMANDS[name], __package__), name)(words))
    except BrokenPipeError:
        return 1
    except Unreachable as error:
        leave(name, f"error: {error.text}; {START}")
    except (Wrong, Error, ImportError, OSError, sqlite3.Error) as error:
        leave(name, f"error: {error}")
    except KeyboardInterrupt:
        return 130
