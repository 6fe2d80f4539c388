"""Runs one test: python3 tests/process NAME [ARGUMENT ...]"""
import runpy
import sys

import folders

if len(sys.argv) < 2:
    sys.exit(__doc__)
path = folders.find(sys.argv[1])
sys.argv[:] = [path, *sys.argv[2:]]
runpy.run_path(path, run_name="__main__")
