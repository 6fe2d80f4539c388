"""Which command it is, by the name of the file that was started, and how errors are said."""
from __future__ import annotations

import importlib
import os
import sqlite3
from typing import List

from ..errors import Error, Unreachable
from .words import Wrong, leave

COMMANDS = {"sbatch": "slurm", "srun": "slurm", "squeue": "slurm_show", "sacct": "slurm_show", "scancel": "slurm_show",
            "sinfo": "slurm_control", "scontrol": "slurm_control",
            "qsub": "sge", "qstat": "sge_show", "qacct": "sge_show", "qdel": "sge_show",
            "submit": "snakemake", "status_of_pool": "snakemake", "cancel": "snakemake"}


def main(argv: List[str]) -> int:
    name, words = os.path.basename(argv[0]), argv[1:]
    try:
        if words == ["keep"] and name not in COMMANDS:
            from .holding import keep
            from .registry import Registry
            return keep(Registry())
        if name not in COMMANDS:
            leave(name, "call it by one of the names " + ", ".join(COMMANDS))
        return int(getattr(importlib.import_module("." + COMMANDS[name], __package__), name)(words))
    except BrokenPipeError:
        return 1
    except Unreachable as error:
        leave(name, f"error: {error.text}")
    except (Wrong, Error, ImportError, OSError, sqlite3.Error) as error:
        leave(name, f"error: {error}")
    except KeyboardInterrupt:
        return 130
