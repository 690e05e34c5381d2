"""Numbers for C: of an integer that does not fit, ctypes would take the low bits, and its errors name no argument."""

from __future__ import annotations

import ctypes
import math
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


def finite(value: Any, name: str) -> float:
    """The value as a float; ValueError for another type, NaN and infinity."""
    try:
        number = float(value) if not isinstance(value, (str, bytes)) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name}: expected a finite number, found {value!r}")
    return number
