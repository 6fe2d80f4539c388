"""The folders of tests/process on the path of this program and of those that it starts: a module of the tests is imported by
its name, whichever folder it lies in."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = [HERE] + sorted(entry.path for entry in os.scandir(HERE) if entry.is_dir() and entry.name != "__pycache__")
sys.path[:0] = FOLDERS
os.environ["PYTHONPATH"] = os.pathsep.join(FOLDERS + [p for p in [os.environ.get("PYTHONPATH")] if p])


def find(name):
    """The file of the test NAME."""
    for folder in FOLDERS:
        path = os.path.join(folder, name + ".py")
        if os.path.exists(path):
            return path
    sys.exit(f"{name}: there is no such test in the folders of {HERE}")
