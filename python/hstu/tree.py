"""Where the programs and libraries are: hstu/tree has what `cmake --install` wrote."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import NoReturn

TREE = Path(__file__).resolve().parent / "tree"


def program(name: str) -> str:
    """The path of "hstu" or "hstu-prepare"."""
    return str(TREE / "bin" / name)


def load_library(name: str, path: str | os.PathLike[str] | None = None) -> ctypes.CDLL:
    """libNAME of the wheel, or the library at `path`."""
    if path is None:
        found = sorted((TREE / "lib").glob(f"lib{name}.so*"))
        if not found:
            why = "has no GPU kernels" if name == "hstu_attention" else "is not complete"
            raise RuntimeError(f"lib{name}.so is not in {TREE / 'lib'}: this installation of hstu {why}")
        path = found[0]
    try:
        return ctypes.CDLL(os.fspath(path))
    except OSError as error:
        raise RuntimeError(f"cannot load {path}: {error}") from error


# The console scripts: this process becomes the program, which gets its signals and its terminal.
def hstu() -> NoReturn:
    os.execv(program("hstu"), ["hstu", *sys.argv[1:]])


def hstu_prepare() -> NoReturn:
    os.execv(program("hstu-prepare"), ["hstu-prepare", *sys.argv[1:]])
