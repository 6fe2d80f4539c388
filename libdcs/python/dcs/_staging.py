"""What travels with a call: the files of the modules that it needs, below main/ and modules/ of the grain's directory."""
from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import os
import sys
import sysconfig
import time
from types import ModuleType
from typing import Any, Dict, Iterable, Iterator, List, Tuple, Union

from ._caller import CALL
from .spec import File

_HERE = os.path.dirname(os.path.realpath(__file__))
MAIN = ("__main__", "__dcs_main__")
_used: Dict[Tuple[str, int], Tuple[Any, bytes]] = {}  # by file and loaded module: what keeps its number, and the digest


class Staging:
    """The files of modules, and of what these import, as far as it does not belong to the Python installation."""

    def __init__(self, modules: Iterable[Union[str, ModuleType]]):
        self._extra = [file for module in modules for file in _with_imports(_sources(_module(module)))]
        self._found: Dict[str, List[File]] = {}
        self._sent: Dict[str, Tuple[Any, bytes]] = {}  # by file: how it looked, and its digest

    def files(self, modules: Iterable[str], imports_of_main: bool = False) -> List[File]:
        found = [File(os.path.join(_HERE, "call.py"), CALL)]
        for name in modules:
            if name not in self._found:
                self._found[name] = _with_imports(_sources(sys.modules[name]) if name in MAIN else _tree(name.split(".")[0]))
            found += self._found[name]
        if imports_of_main:
            if "" not in self._found:
                path = getattr(sys.modules["__main__"], "__file__", None)
                self._found[""] = _with_imports([File(path, "main"), *_around_main()])[1:] if path and os.path.exists(path) else []
            found += self._found[""]
        return list({file.name: file for file in found + self._extra}.values())

    def check_unchanged(self) -> None:
        """One version of each file in one run: the hosts get the files as they are now, and this process has loaded them before."""
        for file in {file.name: file for part in (*self._found.values(), self._extra) for file in part}.values():
            path = os.fspath(file.path)
            looks, before = _looks(path), self._sent.get(path)
            if before and before[0] == looks is not None:
                continue
            digest, spec = _digest(path), _loaded(str(file.name))
            _, first = _used.setdefault((path, id(spec)), (spec, digest))
            if digest != first:
                raise RuntimeError(f"{path} has changed since this program began to call functions with it. The program still runs what it "
                                   "was, so this call is not submitted: run the program again, or restore the file")
            if before and digest != before[1]:
                raise RuntimeError(f"{path} has changed, and was loaded again, since this executor began to call functions with it. Its calls "
                                   "are of one version: make another executor, or restore the file")
            self._sent[path] = looks, digest


def _looks(path: str) -> Any:
    """What changes with the file. None: it was written just now, and a write at the same tick of the clock would show nothing."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    same = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return same if abs(time.time() - status.st_ctime) > 1 else None


def _digest(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).digest()
    except OSError:
        return b""  # the submission says it


def _loaded(name: str) -> Any:
    """Of the module in this process; another one after importlib.reload()."""
    folder, _, below = name.partition("/")
    dotted = below[:-len(".py")].replace("/", ".").removesuffix(".__init__")
    return getattr(sys.modules.get(dotted), "__spec__", None) if folder == "modules" else None


def main_of(files: Iterable[File]) -> Any:
    spec = getattr(sys.modules["__main__"], "__spec__", None)  # of `python -m`
    return next(([file.name, file.path, spec.name if spec else ""] for file in files if str(file.name).startswith("main/")), None)


def places_of(files: Iterable[File]) -> Dict[str, str]:
    """The paths of the top modules and packages among them."""
    found = {}
    for file in files:
        folder, _, name = str(file.name).partition("/")
        top, _, below = name.partition("/")
        if folder == "modules" and top not in ("dcs", "dcs_grain.py"):
            path = os.fspath(file.path)
            found[top if below else top[:-len(".py")]] = path[:-len(below) - 1] if below else path
    return found


def _module(module: Union[str, ModuleType]) -> ModuleType:
    return importlib.import_module(module) if isinstance(module, str) else module


def _sources(module: ModuleType) -> List[File]:
    if module.__name__ not in MAIN:
        return _tree(module.__name__.split(".")[0])
    path = getattr(module, "__file__", None)
    if path is None or not os.path.exists(path):
        raise ValueError("functions of a program that is not a file cannot be called on other hosts, unless "
                         'dcs.Executor(..., encoding="cloudpickle") sends them as they are')
    return [File(os.path.abspath(path), "main/" + os.path.basename(path)), *_around_main(), *_package()]


def _around_main() -> List[File]:
    """The package of a program that `python -m` has started."""
    package = getattr(sys.modules["__main__"], "__package__", None)
    return _tree(package.split(".")[0]) if package else []


def _tree(top: str) -> List[File]:
    """A module that is one file, or all of a package."""
    if top in ("dcs", "dcs_grain"):
        return _package()
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    module = sys.modules.get(top)
    path = spec.origin if spec else getattr(module, "__file__", None)
    folders = list((spec.submodule_search_locations if spec else getattr(module, "__path__", None)) or [])
    if folders:
        root = os.path.abspath(folders[0])
        return [] if _installed(root + os.sep) else [
            File(os.path.join(where, name), os.path.join("modules", top, os.path.relpath(os.path.join(where, name), root)))
            for where, _, names in _sorted_walk(root) for name in names if name.endswith(".py")]
    if path is None or not path.endswith(".py") or not os.path.exists(path) or _installed(path):
        return []
    return [File(os.path.abspath(path), f"modules/{top}.py")]


def _package() -> List[File]:
    """This package, which the control program imports on the hosts as well. Nothing there calls libdcs.so."""
    names = sorted(name for name in os.listdir(_HERE) if name.endswith(".py") and name != "_installed.py")
    return [File(os.path.join(_HERE, name), "modules/dcs/" + name) for name in names] + [
        File(os.path.join(os.path.dirname(_HERE), "dcs_grain.py"), "modules/dcs_grain.py")]


def _with_imports(files: List[File]) -> List[File]:
    found, seen = list(files), {"dcs", "dcs_grain"} if any(file.name == "modules/dcs_grain.py" for file in files) else set()
    for file in found:  # which grows meanwhile
        if str(file.name).startswith(("modules/dcs/", "modules/dcs_grain.py")):
            continue
        for top in _imported(os.fspath(file.path)):
            if top not in seen:
                seen.add(top)
                found += _tree(str(top))
    return found


def _imported(path: Any) -> Iterator[str]:
    """The modules that a file imports, at its beginning or later; without running it."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def _installed(path: str) -> bool:
    library = [sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "platstdlib")]
    return {"site-packages", "dist-packages"} & set(path.split(os.sep)) != set() or path.startswith(tuple(library))


def _sorted_walk(root: str) -> Iterator[Tuple[str, List[str], List[str]]]:
    """In one order on every run: the files of a grain must not change."""
    for where, folders, names in os.walk(root):
        folders.sort()
        yield where, folders, sorted(names)
