"""The grain of dcs.Executor: calls a function and answers with what it returned or raised. It travels to the host as one
file beside the modules that it needs (below `modules`), so it uses nothing but the standard library.

Standard input: a line of JSON {"module", "function", "encoding", "main", "places", "pickler"}, then the encoded calls, a list of
pairs of arguments and keyword arguments; without a module, the first argument is the function. With "initializer", a module and a
name, the first pair is of that function, whose value is not sent. "main": the program's copy, its path, and its name as a module,
if it was started by that. "places": the paths of top modules and packages. Arguments: the program's directory, or none; its
sys.argv. With "anywhere" hosts need not have the directory. Standard output: the encoded answer. What the function prints goes to
standard error.
"""
import importlib
import importlib.machinery
import importlib.util
import json
import os
import pickle
import sys
import traceback
import types

PICKLE_PROTOCOL = 4  # known to every Python that this may run under


class Copied(importlib.machinery.SourceFileLoader):
    """Of a copy, under the path of the original: __file__ and tracebacks name that, and what lies beside it is found."""

    def __init__(self, name, path, copy):
        super().__init__(name, path)
        self.copy = copy

    def get_data(self, path):
        return super().get_data(self.copy if path == self.path else path)

    def path_stats(self, path):
        raise OSError("the bytecode beside the original may be of another text")


class Finder:
    """Of the modules that travel with the grain, below `root`."""

    def __init__(self, root, places):
        self.root, self.places = root, places

    def find_spec(self, name, path=None, target=None):
        top, _, below = name.replace(".", "/").partition("/")
        for end in ("/__init__.py", ".py") if top in self.places else ():
            copy = os.path.join(self.root, top, below).rstrip("/") + end
            if os.path.exists(copy):
                path = self.places[top] + copy[len(os.path.join(self.root, top)):] * (below != "" or end != ".py")
                folders = [os.path.dirname(file) for file in (copy, path)] if end != ".py" else None
                return importlib.util.spec_from_file_location(name, path, loader=Copied(name, path, copy), submodule_search_locations=folders)
        return None


def load_main(copy, path, name):
    """The control program as a module: its `if __name__ == "__main__"` does not run. On a host without the original it is the copy:
    processes that a call starts may load it."""
    path = path if os.path.exists(path) else copy
    module = types.ModuleType("__dcs_main__")
    sys.modules["__dcs_main__"] = sys.modules["__main__"] = module
    module.__loader__ = Copied("__dcs_main__", path, copy)
    module.__file__, module.__package__ = path, name.rpartition(".")[0]
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, origin=path) if name else None
    module.dcs_loads = os.path.basename(path)  # while it exists, the package refuses to call a pool
    exec(module.__loader__.get_code("__dcs_main__"), module.__dict__)
    del module.dcs_loads
    return module


def apply(function, *args, **named):
    return function(*args, **named)


def find(module, name):
    if not module:
        return apply
    found = sys.modules["__dcs_main__"] if module in ("__main__", "__dcs_main__") else importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def go_to(directory, anywhere):
    """An empty directory instead, if the host has none of this name."""
    try:
        os.chdir(directory)
        return ""
    except OSError as error:
        if not anywhere:
            raise
        os.makedirs("empty", exist_ok=True)
        os.chdir("empty")
        return f"{os.uname().nodename} has no directory {directory}, where the program runs: {error.strerror}"


def told_apart(function, why, *places):
    """The function, on a host without the program's directory: a file of it that a call looks for or leaves is an error."""
    before = [set(os.listdir(place)) for place in places]

    def call(*args, **named):
        try:
            value = function(*args, **named)
        except FileNotFoundError as error:
            raise FileNotFoundError(error.errno, f"{error.strerror or error} ({why})", error.filename) from error
        left = sorted(name for place, known in zip(places, before) for name in {*os.listdir(place)} - known)
        if left:
            raise FileNotFoundError(f"{', '.join(left)}, left by the call, would be lost: {why}")
        return value
    return call


def values_of(function, prepare, calls):
    if prepare is not None:
        args, named = calls.pop(0)
        prepare(*args, **named)
    return [function(*args, **named) for args, named in calls]


def say_what_helps(error):
    if isinstance(error, ModuleNotFoundError) and error.name:
        error.msg = (f"{error.msg} on {os.uname().nodename}: what is installed has to be installed there, and a file of the program that "
                     f"no import statement names travels by dcs.Executor(modules=[{error.name!r}])")
        error.args = (error.msg,)


def failure(error):
    say_what_helps(error)
    kind, printed = type(error).__qualname__, "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {"kind": kind, "text": str(error), "traceback": printed}


def answer_pickle(function, prepare, data, pickler):
    try:
        return pickler.dumps((True, values_of(function, prepare, pickle.loads(data))), PICKLE_PROTOCOL)
    except Exception as error:
        told = failure(error)
        error.__traceback__ = error.__cause__ = error.__context__ = None
        try:
            answer = pickler.dumps((False, (error, told)), PICKLE_PROTOCOL)
            pickle.loads(answer)  # fails for a class whose constructor takes other arguments than the exception keeps
            return answer
        except Exception as why:
            told["note"] = (f"It is not raised as {told['kind']} because that cannot be made again from its pickle ({why}): it can if its "
                            "__init__ hands all its arguments to super().__init__, or by a __reduce__.")
            return pickle.dumps((False, (None, told)), PICKLE_PROTOCOL)


def as_json(value):
    """Of what JSON can say: it would turn keys into strings without a word. A tuple becomes a list."""
    check_keys(value)
    return json.dumps(value).encode()


def check_keys(value):
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} would be a string in JSON: use strings as keys, or another encoding")
            check_keys(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            check_keys(item)


def answer_json(function, prepare, data):
    try:
        return as_json({"values": values_of(function, prepare, json.loads(data))})
    except Exception as error:
        return json.dumps({"failure": failure(error)}).encode()


def main():
    sys.modules["dcs_call"] = sys.modules["__main__"]  # dcs_grain refuses checkpoints where it is
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    safe = sys.flags.isolated or getattr(sys.flags, "safe_path", False)  # without the directory of this file
    sys.path[:0 if safe else 1] = [os.path.abspath("modules")]
    os.environ["PATH"] = os.environ["PATH"].partition(":")[2]  # before it is the interpreter's directory, for its start
    head = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    sys.meta_path.insert(0, Finder(os.path.abspath("modules"), head["places"]))
    main = head["main"] and [os.path.abspath(head["main"][0]), *head["main"][1:]]
    directory, sys.argv[:] = sys.argv[1], sys.argv[2:]
    lost = directory and go_to(directory, head["anywhere"])
    if main:
        load_main(*main)
    function = find(head["module"], head["function"])
    if lost:
        function = told_apart(function, lost, os.getcwd(), *[os.path.dirname(copy) for copy in (main or [])[:1]])
    prepare = find(*head["initializer"]) if "initializer" in head else None
    if head["encoding"] == "json":
        answers.write(answer_json(function, prepare, data))
    else:
        answers.write(answer_pickle(function, prepare, data, importlib.import_module(head["pickler"])))
    sys.stdout.flush()
    answers.close()


if __name__ == "__main__":
    try:
        main()
    except ModuleNotFoundError as error:
        say_what_helps(error)
        raise
