"""The grain of dcs.Executor: calls a function and answers with what it returned or raised. It travels to the host as one
file beside the modules that it needs (below `modules`), so it uses nothing but the standard library.

Standard input: a line of JSON {"module", "function", "encoding", "main", "pickler"}, then the encoded calls, a list of pairs of
arguments and keyword arguments; without a module, the first argument is the function. With "initializer", a module and a name, the
first pair is of that function, whose value is not sent. Arguments: the program's directory, or none; its sys.argv. With
"anywhere" hosts need not have the directory. Standard output: the encoded answer. What the function prints goes to standard error.
"""
import importlib
import json
import os
import pickle
import runpy
import sys
import traceback
import types

PICKLE_PROTOCOL = 4  # known to every Python that this may run under


def load_main(path):
    """The control program as a module: its `if __name__ == "__main__"` does not run."""
    module = types.ModuleType("__dcs_main__")
    sys.modules["__dcs_main__"] = sys.modules["__main__"] = module
    module.dcs_loads = os.path.basename(path)  # while it exists, the package refuses to call a pool
    module.__dict__.update(runpy.run_path(path, run_name="__dcs_main__"))
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


def told_apart(function, why):
    """The function, in a directory that is not the program's: a file of it that a call looks for or leaves is an error."""
    place = os.getcwd()

    def call(*args, **named):
        try:
            value = function(*args, **named)
        except FileNotFoundError as error:
            raise FileNotFoundError(error.errno, f"{error.strerror or error} ({why})", error.filename) from error
        left = os.listdir(place)
        if left:
            raise FileNotFoundError(f"{', '.join(sorted(left))}, left by the call, would be lost: {why}")
        return value
    return call


def values_of(function, prepare, calls):
    if prepare is not None:
        args, named = calls.pop(0)
        prepare(*args, **named)
    return [function(*args, **named) for args, named in calls]


def failure(error):
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
        except Exception:
            return pickle.dumps((False, (None, told)), PICKLE_PROTOCOL)


def answer_json(function, prepare, data):
    try:
        return json.dumps({"values": values_of(function, prepare, json.loads(data))}).encode()
    except Exception as error:
        return json.dumps({"failure": failure(error)}).encode()


def main():
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path[0:1] = [os.path.abspath("modules")]
    os.environ["PATH"] = os.environ["PATH"].partition(":")[2]  # before it is the interpreter's directory, for its start
    head = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    main = head["main"] and os.path.abspath(head["main"])
    directory, sys.argv[:] = sys.argv[1], sys.argv[2:]
    lost = directory and go_to(directory, head["anywhere"])
    if main:
        load_main(main)
    function = find(head["module"], head["function"])
    if lost:
        function = told_apart(function, lost)
    prepare = find(*head["initializer"]) if "initializer" in head else None
    if head["encoding"] == "json":
        answers.write(answer_json(function, prepare, data))
    else:
        answers.write(answer_pickle(function, prepare, data, importlib.import_module(head["pickler"])))
    sys.stdout.flush()
    answers.close()


if __name__ == "__main__":
    main()
