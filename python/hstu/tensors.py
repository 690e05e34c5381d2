"""Safetensors files, and the dense parameters and rows of a run, an export or a checkpoint, as NumPy arrays."""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from hstu.run import Run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Array = NDArray[Any]
PathLike = Union[str, "os.PathLike[str]"]
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1", "BF16": "<u2"}


def read_safetensors(file: PathLike) -> dict[str, Array]:
    """Every tensor by name, as memory maps; BF16 becomes float32, which has all its values."""
    with open(file, "rb") as opened:
        (length,) = struct.unpack("<Q", opened.read(8))
        header = json.loads(opened.read(length))
    data = np.memmap(file, np.uint8, "r", 8 + length) if os.path.getsize(file) > 8 + length else np.empty(0, np.uint8)
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = data[begin:end].view(_TYPES[entry["dtype"]]).reshape(entry["shape"])
            tensors[name] = from_bf16(values) if entry["dtype"] == "BF16" else values
    return tensors


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
        config = tomllib.loads((path / "model.toml").read_text())
        folder = path / "weights"
    if not (folder / "manifest.json").exists():
        raise FileNotFoundError(f"{folder}: expected a run, an export or a checkpoint, with a manifest.json")
    manifest = json.loads((folder / "manifest.json").read_text())
    if "base" in manifest:
        raise ValueError(f"{folder} has only what changed since another checkpoint: name what hstu.export writes, or "
                         "a checkpoint that is whole")  # fmt: skip
    if config is None:
        config = tomllib.loads(manifest["state"].get("config", ""))
    dense = folder / "dense.safetensors"
    descriptions = {table["name"]: table for table in manifest["tables"]}
    tables = {name: read_safetensors(folder / f"tables/{name}.safetensors") for name in descriptions}
    return Weights(
        dense=read_safetensors(dense) if dense.exists() else {},
        tables={name: Rows(table["ids"], table["rows"]) for name, table in tables.items()},
        config=config,
        descriptions=descriptions,
    )


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
