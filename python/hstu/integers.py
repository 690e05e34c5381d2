"""Whole numbers for C: of one that does not fit, ctypes would take the low bits."""

from __future__ import annotations

import operator
from typing import Any


def int64(value: Any, name: str) -> int:
    """The value as an int of 64 bits; ValueError for another type, and for one that does not fit."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: expected an integer, found {value!r}") from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{name}: {number} does not fit into int64")
    return number
