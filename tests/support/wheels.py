"""Packages of others for tests in Python: pinned wheels in .deps/, and packages of the distribution."""

import importlib
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEM_PYTHON = "/usr/bin/python3"  # has the packages of deps/packages.txt, which another Python in PATH may lack
SKIPPED = 77  # exit status; SKIP_RETURN_CODE in tests/CMakeLists.txt


def folder(name):
    return ROOT / ".deps" / name


def use(name, *of_system):
    """Lets this program import the wheels of deps/NAME.txt, which need these modules of the distribution.

    Starts the program again with the system's Python if this one lacks them; skips its tests if wheels are missing.
    """
    if not (folder(name) / "stamp").is_file():
        # As GoogleTest says it: tools/check-skips reads this.
        print(f"{sys.argv[0]}:1: Skipped\nno wheels of deps/{name}.txt in .deps/{name}: ./dev deps unpacks them")
        sys.exit(SKIPPED)
    sys.path.insert(0, str(folder(name)))
    try:
        for module in of_system:
            importlib.import_module(module)
    except ImportError:
        if sys.executable == SYSTEM_PYTHON:
            raise
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, "-B", *sys.argv])
