"""What renames, transposes and checks tensors: a list of pairs, which is read in both directions.

A pair has the name of a parameter here and there, and the letters of its shape here. A letter is a size that the first
tensor with it sets and every other one must have; sizes are found, not given, but for those that no shape shows.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Sizes = dict[str, int]


@dataclass(frozen=True)
class Pair:
    ours: str
    theirs: str
    shape: tuple[str, ...]  # here: "D", "4 H d", "E + X"
    form: str = "same"  # of theirs: "transposed": (out, in); "heads": so too, its rows by head and then U, V, Q, K
    fill: float | None = None  # the value here where they have no such tensor

    def letters(self, side: str) -> tuple[str, ...]:
        return self.shape if side == "ours" or self.form == "same" else self.shape[::-1]


@dataclass(frozen=True)
class Group:
    """Pairs of which all or, if it is optional, none are there. absent: sizes that are then known."""

    pairs: Sequence[Pair]
    optional: bool = False
    absent: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Moved:
    tensors: dict[str, Array]
    sizes: Sizes
    matched: list[tuple[str, str]]  # (here, there)
    filled: list[str]  # here, where they have none
    unused: list[str]  # given, of no use here


def move(groups: Sequence[Group], given: Mapping[str, Array], side: str, sizes: Sizes, allow: Iterable[str]) -> Moved:
    """The tensors of the other side. `side`: of `given`, "ours" or "theirs". `allow`: patterns of names that may be
    left over. Raises ValueError naming what is missing, left over, or of another shape."""
    result = Moved({}, dict(sizes), [], [], [])
    known = {letter: "given" for letter in sizes}
    missing, used = [], set()
    for group in groups:
        names = {getattr(pair, side): pair for pair in group.pairs}
        if group.optional and not any(name in given for name in names):
            for letter, size in group.absent.items():
                result.sizes[letter], known[letter] = size, "as none of its tensors is there"
            continue
        for name, pair in names.items():
            if name in given:
                used.add(name)
                _check(name, pair.letters(side), given[name].shape, result.sizes, known)
                target = pair.theirs if side == "ours" else pair.ours
                result.tensors[target] = _in_form(pair.form, given[name], side, result.sizes)
                result.matched.append((pair.ours, pair.theirs))
            elif pair.fill is not None and side == "theirs":
                shape = tuple(_value(letters, result.sizes) for letters in pair.shape)
                result.tensors[pair.ours] = np.full(shape, pair.fill, np.float32)
                result.filled.append(pair.ours)
            else:
                missing.append(name)
    over = [name for name in given if name not in used]
    result.unused = [name for name in over if any(fnmatch.fnmatchcase(name, pattern) for pattern in allow)]
    over = [name for name in over if name not in result.unused]
    problems = [f"{what}: {', '.join(names)}" for what, names in (("missing", missing), ("left over", over)) if names]
    if problems:
        hint = " Names that may be left over are given as allow=[..], with * for any text." if over else ""
        raise ValueError(f"the tensors are not those of this model: {'; '.join(problems)}.{hint}")
    return result


def _in_form(form: str, array: Array, side: str, sizes: Sizes) -> Array:
    if form == "transposed":
        return np.ascontiguousarray(array.T)
    if form == "heads":
        heads, width = sizes["H"], sizes["d"]
        rest = array.shape[1:] if side == "theirs" else array.shape[:-1]
        if side == "theirs":  # (H 4 d, D) -> (D, 4 H d)
            parts = array.reshape(heads, 4, width, *rest).swapaxes(0, 1).reshape(4 * heads * width, *rest)
            return np.ascontiguousarray(parts.T)
        parts = np.ascontiguousarray(array.T).reshape(4, heads, width, *rest).swapaxes(0, 1)
        return np.ascontiguousarray(parts).reshape(4 * heads * width, *rest)
    return array


def _terms(letters: str) -> list[list[str]]:
    return [term.split() for term in letters.split("+")]


def _value(letters: str, sizes: Sizes) -> int:
    return sum(math.prod(sizes[f] if f in sizes else int(f) for f in term) for term in _terms(letters))


def _check(name: str, letters: tuple[str, ...], shape: tuple[int, ...], sizes: Sizes, known: dict[str, str]) -> None:
    """Sets sizes that are not known yet, and compares the others."""
    fits = len(letters) == len(shape)
    for expression, extent in zip(letters, shape):
        terms = _terms(expression)
        unknown = [(term, f) for term in terms for f in term if not f.isdigit() and f not in sizes]
        if len(unknown) == 1 and fits:
            (term, letter), others = unknown[0], [t for t in terms if t is not unknown[0][0]]
            rest = sum(_value(" ".join(t), sizes) for t in others)
            factor = _value(" ".join(f for f in term if f != letter), sizes) if len(term) > 1 else 1
            if extent >= rest and factor > 0 and (extent - rest) % factor == 0:
                sizes[letter], known[letter] = (extent - rest) // factor, f"of {name}"
                continue
        fits = fits and not unknown and _value(expression, sizes) == extent
    if fits:
        return
    used = dict.fromkeys(f for letter in letters for f in re.findall(r"[A-Za-z]\w*", letter) if f in sizes)
    expected = ", ".join(str(_value(e, sizes)) if all(f.isdigit() or f in sizes for t in _terms(e) for f in t) else e
                         for e in letters)  # fmt: skip
    raise ValueError(
        f"{name}: expected the shape ({expected}), which is ({', '.join(letters)}), found {tuple(shape)}. Sizes: "
        + ", ".join(f"{letter} = {sizes[letter]} ({known[letter]})" for letter in used)
        + ". One of these tensors is of another model, or a size that was given is wrong"
    )


def exact_float32(name: str, value: Any) -> Array:
    """A tensor of torch or NumPy as float32. Raises ValueError where that would lose bits."""
    if hasattr(value, "detach"):  # of torch
        value = value.detach().cpu()
        value = value.float().numpy() if str(value.dtype) in ("torch.bfloat16", "torch.float16") else value.numpy()
    array = np.asarray(value)
    if array.dtype == np.float32:
        return array
    with np.errstate(over="ignore"):
        result = array.astype(np.float32)
    if not np.array_equal(result.astype(array.dtype), array):
        raise ValueError(f"{name}: expected float32, found {array.dtype} with values that float32 does not have: round "
                         "them first, with .astype(numpy.float32)")  # fmt: skip
    return result


def count_layers(names: Iterable[str], pattern: str) -> int:
    """The layers of tensors named by a regular expression whose first group is the layer's number."""
    matches = (re.match(pattern, name) for name in names)
    return 1 + max((int(match[1]) for match in matches if match), default=-1)


def mlp(ours: str, theirs: str, widths: tuple[str, str, str]) -> list[Pair]:
    """The MLP of DLRMv4: linear, swish layer norm, linear, layer norm."""
    a, b, c = widths
    pairs = [Pair(f"{ours}.0.weight", f"{theirs}.0.weight", (a, b), "transposed")]
    pairs += [Pair(f"{ours}.0.bias", f"{theirs}.0.bias", (b,))]
    pairs += [Pair(f"{ours}.swish.{x}", f"{theirs}.1.{x}", (b,)) for x in ("weight", "bias")]
    pairs += [Pair(f"{ours}.1.weight", f"{theirs}.2.weight", (b, c), "transposed")]
    pairs += [Pair(f"{ours}.1.bias", f"{theirs}.2.bias", (c,))]
    return pairs + [Pair(f"{ours}.norm.{x}", f"{theirs}.3.{x}", (c,)) for x in ("weight", "bias")]
