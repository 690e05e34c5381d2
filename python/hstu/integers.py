"""Whole numbers for C: of one that does not fit, ctypes would take the low bits."""

from __future__ import annotations

import ctypes
import operator
from typing import Any


def integer(value: Any, kind: Any, name: str) -> int:
    """The value as an int; ValueError for another type, and for one that the ctypes type `kind` does not hold."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: expected an integer, found {value!r}") from None
    if kind(number).value != number:
        signed = "" if kind(-1).value < 0 else "u"
        raise ValueError(f"{name}: {number} does not fit into {signed}int{8 * ctypes.sizeof(kind)}")
    return number


def int64(value: Any, name: str) -> int:
    """The value as an int of 64 bits."""
    return integer(value, ctypes.c_int64, name)
