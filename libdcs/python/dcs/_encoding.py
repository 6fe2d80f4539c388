"""How calls and their results are written for the way: pickle, cloudpickle or JSON."""
from __future__ import annotations

import importlib
import io
import json
import pickle
import reprlib
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Dict, Sequence, Set, Tuple

from ._staging import MAIN
from .call import PICKLE_PROTOCOL, as_json
from .errors import CallFailed
from .result import GrainFailed, Result

ENCODINGS = ("pickle", "cloudpickle", "json")


def cloudpickle_name() -> str:
    """The package by which functions travel as they are; joblib has a copy of it."""
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):
        try:
            importlib.import_module(name)
            return name
        except ImportError:
            continue
    raise ImportError('encoding="cloudpickle" needs the package cloudpickle, here and on the hosts: python3-cloudpickle of Debian')


def name_of(fn: Any) -> Tuple[str, str]:
    """The module and name by which a host finds it; empty: it has none there."""
    if isinstance(fn, str):
        module, _, name = fn.partition(":")
        if not module or not name:
            raise ValueError(f'{fn!r} is not of the form "module:name"')
        return module, name
    module, name = getattr(fn, "__module__", None) or "", getattr(fn, "__qualname__", None) or ""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return (module, name) if found is fn else ("", "")


def shown(value: Any) -> str:
    """Its repr, cut; of what has none, as an integer of thousands of digits, the type."""
    try:
        return reprlib.repr(value[:40] if isinstance(value, (bytes, bytearray)) else value)
    except Exception:  # noqa: BLE001 - whatever a class of the program raises
        return f"<{type(value).__name__}>"


def label_of(fn: Any, calls: Sequence[Tuple[Sequence[Any], Dict[str, Any]]]) -> str:
    """For people: "totient(3)"; of several "totient(3), ... (5 calls)"."""
    name = fn.partition(":")[2] if isinstance(fn, str) else getattr(fn, "__qualname__", None) or type(fn).__qualname__
    args, named = calls[0]
    words = [shown(arg) for arg in args] + [f"{key}={shown(value)}" for key, value in named.items()]
    text = " ".join(f"{name}({', '.join(words)})".split()).encode("ascii", "backslashreplace").decode()
    text = "".join(c if c.isprintable() else "?" for c in text)
    return (text if len(text) <= 100 else text[:97] + "...") + (f", ... ({len(calls)} calls)" if len(calls) > 1 else "")


def write(calls: Any, encoding: str, cloud: str) -> Tuple[bytes, Set[str]]:
    """And the modules of functions and classes in it, which the host has to import."""
    if encoding == "json":
        return as_json(calls), set()
    modules: Set[str] = set()
    by_name = encoding == "pickle"
    base: Any = pickle.Pickler if by_name else importlib.import_module(cloud).CloudPickler  # type: ignore[attr-defined]

    class Pickler(base):  # type: ignore[misc]
        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, ModuleType):
                modules.add(thing.__name__)
            elif isinstance(thing, (type, FunctionType, BuiltinFunctionType)):
                modules.add(getattr(thing, "__module__", None) or "builtins")
            return NotImplemented if by_name else super().reducer_override(thing)

    stream = io.BytesIO()
    try:
        Pickler(stream, PICKLE_PROTOCOL).dump(calls)
    except (pickle.PicklingError, AttributeError) as error:
        if not by_name:
            raise
        raise ValueError(f'{error}: a host finds functions and classes by module and name; encoding="cloudpickle" sends those that '
                         "cannot be found so, such as a lambda or one within another function") from error
    if not by_name:
        modules -= set(MAIN)  # it sends them as they are
    return stream.getvalue(), {name for name in modules if name in sys.modules}


def read(result: Result, encoding: str) -> Any:
    """What the calls returned; raises what they raised, with the traceback of the host as its cause."""
    if not result.ok:  # not each call makes all outputs of the executor
        raise _with_traceback(GrainFailed(result, result._why()))
    if not result.output:  # sys.exit(0) or os._exit(0) in the function, or in what it called
        raise GrainFailed(result, "before the function returned")
    if encoding == "json":
        answer = json.loads(result.output)
        if "failure" in answer:
            raise CallFailed(**answer["failure"])
        return answer["values"]
    done, answer = pickle.loads(result.output)
    if done:
        return answer
    error, told = answer
    if error is None:
        raise CallFailed(**told)
    error.__cause__ = CallFailed(**told)
    raise error


def _with_traceback(failed: GrainFailed) -> GrainFailed:
    """That of the interpreter on the host, if it wrote one before it came to the function."""
    said = failed.result.error_head.decode(errors="replace").strip()
    if "Traceback (most recent call last)" in said:
        kind, _, text = said.splitlines()[-1].partition(": ")
        failed.__cause__ = CallFailed(kind, text, said)
    return failed
