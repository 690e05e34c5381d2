"""Safetensors files, and the dense parameters and rows of a run, an export or a checkpoint, as NumPy arrays."""

from __future__ import annotations

import json
import math
import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from hstu.dataset import read_json
from hstu.run import Run, parse_toml, read_toml

Array = NDArray[Any]
PathLike = Union[str, "os.PathLike[str]"]
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1", "BF16": "<u2"}


def read_safetensors(file: PathLike) -> dict[str, Array]:
    """Every tensor by name, as memory maps; BF16 becomes float32, which has all its values. Raises ValueError naming
    the file and the tensor."""
    size = os.path.getsize(file)
    with open(file, "rb") as opened:
        begin = 8 + int.from_bytes(opened.read(8), "little")
        if begin > size:
            raise ValueError(f"{file} is cut, or no safetensors file: {size} bytes, its header alone {begin}")
        text = opened.read(begin - 8)
    data = np.memmap(file, np.uint8, "r", begin) if size > begin else np.empty(0, np.uint8)
    try:
        header = {name: entry for name, entry in json.loads(text).items() if name != "__metadata__"}
    except (AttributeError, RecursionError, ValueError) as error:
        raise ValueError(f"{file} is no safetensors file: its header is no JSON object: {error}") from error
    return {name: _tensor(f"{file}: {name}", entry, data) for name, entry in header.items()}


def _tensor(what: str, entry: Any, data: Array) -> Array:
    try:
        kind, shape, (begin, end) = _TYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        whole = all(type(n) is int and n >= 0 for n in (*shape, begin, end))
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{what}: expected a dtype of {', '.join(_TYPES)}, a shape and data_offsets, found "
                         f"{str(entry)[:200]}") from None  # fmt: skip
    if not whole or len(shape) > 32 or end > data.size or end - begin != math.prod(shape) * np.dtype(kind).itemsize:
        raise ValueError(f"{what}: expected the shape {shape} in bytes {begin} to {end} of {data.size}: the file is "
                         "cut or was altered")  # fmt: skip
    values = data[begin:end].view(kind).reshape(shape)
    return from_bf16(values) if entry["dtype"] == "BF16" else values


def write_safetensors(file: PathLike, tensors: Mapping[str, Array]) -> None:
    """Float32 tensors by name."""
    header, place = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [place, place + 4 * array.size]}
        place += 4 * array.size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(file, "wb") as opened:
        opened.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            opened.write(np.ascontiguousarray(array, "<f4").data)


def plain_name(table: str, where: str) -> str:
    """The name of a table, of which files are named; ValueError if it would name others."""
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", table):
        raise ValueError(f"{where}: the table {table!r}: expected a name of letters, digits, '_', '-' and '.'")
    return table


def from_bf16(bits: Array) -> Array:
    """The float32 values of bfloat16 numbers that are given as uint16."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


@dataclass
class Rows:
    """Rows of an embedding table: ids (n) int64, ascending, and rows (n, D) float32."""

    ids: Array
    rows: Array


@dataclass
class Weights:
    """What a model has learnt: dense parameters and tables by the names of docs/model.md, and the configuration."""

    dense: dict[str, Array]
    tables: dict[str, Rows]
    config: dict[str, Any]
    descriptions: dict[str, dict[str, Any]]  # of the tables, in the manifest of the checkpoint

    def whole(self, table: str, rows: int | None = None) -> Array:
        """Rows 0 to rows - 1 (rows, D) of a table; None: as many as it has. An id that training never saw has its
        initial value, as in a lookup."""
        description, known = self.descriptions[table], self.tables[table]
        count = int(description["rows"]) if rows is None else rows
        if count > 1 << 32:
            raise ValueError(f"table {table}: its ids have no limit, as those of texts: it has no whole array. Take "
                             f"tables[{table!r}].ids and .rows")  # fmt: skip
        if known.ids.size and known.ids[-1] >= count:
            raise ValueError(f"table {table}: expected ids below {count}, found {known.ids[-1]}: give more rows")
        absent = np.setdiff1d(np.arange(count), known.ids, assume_unique=True)
        result = np.empty((count, known.rows.shape[1]), np.float32)
        result[known.ids] = known.rows
        if absent.size:
            initial = self.config.get("tables", {}).get(table, {}).get("initial", {})
            result[absent] = _initial_rows(table, description, initial, absent)
        return result


def read(model: Run | PathLike, checkpoint: str = "") -> Weights:
    """The weights of a run (its newest checkpoint, that of a step, or "best"), of an export, or of a checkpoint's
    folder. Bytes are not compared with their checksums: `hstu inspect` does that."""
    path = model.path if isinstance(model, Run) else Path(model)
    config: dict[str, Any] | None = None
    folder = path
    if (path / "config.toml").exists():
        config = Run(path).config
        checkpoints = Run(path).checkpoints
        if not checkpoints:
            raise ValueError(f"{path} has no checkpoint yet")
        folder = path / "checkpoints/best" if checkpoint == "best" else checkpoints[int(checkpoint or max(checkpoints))]
    elif (path / "model.toml").exists():
        config = read_toml(path / "model.toml")
        folder = path / "weights"
    if not (folder / "manifest.json").exists():
        raise FileNotFoundError(f"{folder}: expected a run, an export or a checkpoint, with a manifest.json")
    manifest = read_json(folder / "manifest.json")
    if "base" in manifest:
        raise ValueError(f"{folder} has only what changed since another checkpoint: name what hstu.export writes, or "
                         "a checkpoint that is whole")  # fmt: skip
    try:
        if config is None:
            config = parse_toml(manifest["state"].get("config", "").encode(), f"{folder}/manifest.json: config")
        descriptions = {plain_name(table["name"], str(folder)): table for table in manifest["tables"]}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{folder}/manifest.json is no manifest of a checkpoint: {error}") from error
    dense = folder / "dense.safetensors"
    return Weights(
        dense=read_safetensors(dense) if dense.exists() else {},
        tables={name: _rows(folder / f"tables/{name}.safetensors") for name in descriptions},
        config=config,
        descriptions=descriptions,
    )


def _rows(file: Path) -> Rows:
    table = read_safetensors(file)
    if not {"ids", "rows"} <= table.keys() or table["ids"].shape != table["rows"].shape[:1] or table["rows"].ndim != 2:
        raise ValueError(f"{file}: expected ids (n) and rows (n, D)")
    return Rows(table["ids"], table["rows"])


def _initial_rows(table: str, description: Mapping[str, Any], initial: Mapping[str, Any], ids: Array) -> Array:
    """docs/model.md, "Initial values": of rows that a table does not have."""
    count, dim = int(description.get("first_rows", description["rows"])), int(description["dim"])
    kind = initial.get("kind", "uniform")
    if kind == "constant":
        return np.full((ids.size, dim), initial.get("value", 0), np.float32)
    if kind not in ("uniform", "xavier") or "key" not in description:
        raise ValueError(f"table {table}: {ids.size} rows do not exist (the first has the id {ids[0]}), and their "
                         f"initial values ({kind}) are not computed here: take the rows that exist")  # fmt: skip
    bound = initial.get("bound", 0) or 1 / np.sqrt(count)
    if kind == "xavier":
        bound = np.sqrt(6 / (count + dim))
    blocks = np.arange((dim + 3) // 4, dtype=np.uint64)
    words = _philox(int(description["key"], 16), ids.astype(np.uint64)[:, None], blocks[None, :])
    unit = (words >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
    return ((2 * unit - 1) * np.float32(bound)).reshape(ids.size, -1)[:, :dim]


def _philox(key: int, low: Array, high: Array) -> Array:
    """Philox4x32-10 of counters (n, 1) and (1, m): four words each, uint64 (n, m, 4)."""
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    low, high = np.broadcast_arrays(low, high)
    c = [low & mask, low >> shift, high & mask, high >> shift]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(b >> shift) ^ c[1] ^ np.uint64(k[0]), b & mask, (a >> shift) ^ c[3] ^ np.uint64(k[1]), a & mask]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, -1)
