"""Embedding tables of hstu alone, in the memory of the CPU: rows by 64-bit ids, their optimizer, and limits.

    table = hstu.Table(rows=1 << 40, dim=64, bound=0.05, optimizer="adam", capacity=1_000_000, evict="lru")
    values = table.lookup(ids)                            # (n, 64)
    table.update(ids, gradients, learning_rate=0.01)      # a step
    table.save("table.1")

A row exists from its first update on; until then a lookup gives its initial value, a function of seed, name, id and
column. docs/tables.md has the limits. `table.module()` is a layer of PyTorch.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from numpy.typing import NDArray

from hstu.integers import finite, int64, integer
from hstu.process import OfOneProcess
from hstu.tree import load_library

if TYPE_CHECKING:
    from hstu.tables_torch import TableModule

Array = NDArray[Any]
PathLike = Union[str, "os.PathLike[str]"]
_VERSION = 1


class Options(ctypes.Structure):
    """include/hstu/tables.h: hstu_table_options, field by field."""

    _fields_ = [
        ("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("rows", ctypes.c_int64), ("dim", ctypes.c_int64),
        ("seed", ctypes.c_uint64), ("optimizer", ctypes.c_char_p), ("epsilon", ctypes.c_double),
        ("beta1", ctypes.c_double), ("beta2", ctypes.c_double), ("weight_decay", ctypes.c_double),
        ("initial", ctypes.c_char_p), ("bound", ctypes.c_double), ("mean", ctypes.c_double),
        ("deviation", ctypes.c_double), ("value", ctypes.c_double), ("capacity", ctypes.c_int64),
        ("evict", ctypes.c_char_p), ("half_life", ctypes.c_int64), ("admit_after", ctypes.c_int64),
        ("ttl", ctypes.c_int64),
    ]  # fmt: skip


_library: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    """libhstu_tables of the wheel."""
    global _library
    if _library is None:
        c = load_library("hstu_tables")
        table, count, array = ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
        for name, result, arguments in [
            ("tables_version", ctypes.c_int32, []),
            ("table_error", ctypes.c_char_p, []),
            ("table_options_init", None, [ctypes.POINTER(Options)]),
            ("table_open", table, [ctypes.POINTER(Options)]),
            ("table_close", None, [table]),
            ("table_lookup", ctypes.c_int32, [table, array, count, array]),
            ("table_update", ctypes.c_int32, [table, array, count, array, ctypes.c_double, count]),
            ("table_rows", count, [table]),
            ("table_state_width", count, [table]),
            ("table_export", ctypes.c_int32, [table, count, array, array, array, ctypes.POINTER(count)]),
            ("table_save", ctypes.c_int32, [table, ctypes.c_char_p]),
            ("table_load", ctypes.c_int32, [table, ctypes.c_char_p]),
        ]:
            function = getattr(c, f"hstu_{name}")
            function.restype, function.argtypes = result, arguments
        if c.hstu_tables_version() != _VERSION:
            raise RuntimeError(f"libhstu_tables has version {c.hstu_tables_version()}, this package needs {_VERSION}")
        _library = c
    return _library


class Table(OfOneProcess):
    """A table of rows for the ids 0 to rows - 1, with `dim` values each. Others read zeros and take no gradient.

    options: those of hstu_table_options in include/hstu/tables.h, with its defaults: name, seed, optimizer, epsilon,
    beta1, beta2, weight_decay, initial, bound, mean, deviation, value, capacity, evict, half_life, admit_after, ttl.
    Threads may share a table. Raises ValueError for what a table cannot have.
    """

    def __init__(self, rows: int, dim: int, **options: Any) -> None:
        super().__init__()
        self._c = library()
        self._settings = Options()
        self._c.hstu_table_options_init(ctypes.byref(self._settings))
        known = dict(Options._fields_[1:])
        for name, value in {**options, "rows": rows, "dim": dim}.items():
            if name not in known:
                raise TypeError(f"Table: unknown option {name!r}; there are {', '.join(known)}")
            if known[name] in (ctypes.c_int64, ctypes.c_uint64):
                setattr(self._settings, name, integer(value, known[name], name))
            elif known[name] is ctypes.c_double:
                setattr(self._settings, name, finite(value, name))
            elif isinstance(value, str):
                setattr(self._settings, name, value.encode())
            else:
                raise ValueError(f"{name}: expected a text, found {value!r}")
        self.rows, self.dim = self._settings.rows, self._settings.dim
        self._table = self._new()

    def _new(self) -> Any:
        table = self._c.hstu_table_open(ctypes.byref(self._settings))
        if not table:
            raise ValueError(self._error())
        return table

    def __repr__(self) -> str:
        return f"<hstu.Table {self._settings.name.decode()}: {self._described()}>"

    def _described(self) -> str:
        rows = len(self) if self._table and self._is_ours() else "closed"
        return f"rows={self.rows}, dim={self.dim}, optimizer={self._settings.optimizer.decode()!r}, len={rows}"

    def lookup(self, ids: Any) -> Array:
        """The rows of ids of any shape, which may repeat, or their initial values: (*shape, dim) float32."""
        ids = _array(ids, np.int64, "ids")
        values = np.empty((*ids.shape, self.dim), np.float32)
        self._check(self._c.hstu_table_lookup(self._open(), _place(ids), ids.size, _place(values)))
        return values

    def update(self, ids: Any, gradients: Any, learning_rate: float, time: int = 0) -> None:
        """A step: gradients (*shape, dim) of ids are summed by id, rows that are missing are created, each is updated
        once, and then rows beyond the limits leave. time: seconds of event time, for `ttl`."""
        ids, gradients = _array(ids, np.int64, "ids"), _array(gradients, np.float32, "gradients")
        if gradients.shape != (*ids.shape, self.dim):
            raise ValueError(f"gradients: expected {(*ids.shape, self.dim)} of ids {ids.shape}, found "
                             f"{gradients.shape}")  # fmt: skip
        self._check(self._c.hstu_table_update(self._open(), _place(ids), ids.size, _place(gradients),
                                              finite(learning_rate, "learning_rate"),
                                              int64(time, "time")))  # fmt: skip

    def __len__(self) -> int:
        """Rows that exist."""
        return int(self._c.hstu_table_rows(self._open()))

    def export(self) -> tuple[Array, Array, Array]:
        """Every row that exists: ids (n), ascending, values (n, dim), and the optimizer's state (n, its width)."""
        table, found = self._open(), ctypes.c_int64(-1)
        width, room = self._c.hstu_table_state_width(table), len(self)
        while True:
            ids = np.empty(room, np.int64)
            values, state = np.empty((room, self.dim), np.float32), np.empty((room, width), np.float32)
            self._check(self._c.hstu_table_export(table, room, _place(ids), _place(values), _place(state),
                                                  ctypes.byref(found)))  # fmt: skip
            if found.value <= room:
                return ids[: found.value], values[: found.value], state[: found.value]
            room = found.value  # another thread has added rows

    def save(self, folder: PathLike) -> None:
        """Writes everything into a new folder: a checkpoint, for load(), `hstu inspect` and --warm-start."""
        self._check(self._c.hstu_table_save(self._open(), os.fsencode(folder)))

    def load(self, folder: PathLike) -> None:
        """Takes what save() of a table with the same options wrote, into an empty table; it continues to the bit."""
        self._check(self._c.hstu_table_load(self._open(), os.fsencode(folder)))

    def to_bytes(self) -> bytes:
        """Everything as save() writes it, for from_bytes(); it is in a temporary folder for a while."""
        with tempfile.TemporaryDirectory(prefix="hstu-table") as folder:
            self.save(Path(folder, "table"))
            manifest, rows = (Path(folder, "table", name).read_bytes() for name in self._files())
        return len(manifest).to_bytes(8, "little") + manifest + rows

    def from_bytes(self, data: bytes) -> None:
        """Replaces everything by what to_bytes() of a table with the same options gave; ValueError if the bytes do not
        fit, and then the table stays as it is. No other thread may be using it."""
        old, end = self._open(), 8 + int.from_bytes(data[:8], "little")
        with tempfile.TemporaryDirectory(prefix="hstu-table") as folder:
            for name, part in zip(self._files(), (data[8:end], data[end:])):
                Path(folder, name).parent.mkdir(exist_ok=True)
                Path(folder, name).write_bytes(part)
            self._table = self._new()
            try:
                self.load(folder)
            except BaseException:
                old, self._table = self._open(), old
                raise
            finally:
                self._c.hstu_table_close(old)

    def _files(self) -> list[str]:
        return ["manifest.json", f"tables/{self._settings.name.decode()}.safetensors"]

    def module(self) -> TableModule:
        """A layer of PyTorch that looks up this table, and collects gradients for its step()."""
        from hstu.tables_torch import TableModule

        return TableModule(self)

    def close(self) -> None:
        """Frees the rows. No other thread may be using the table. In a forked process it does nothing."""
        table, self._table = getattr(self, "_table", None), None
        if table and self._is_ours():
            self._c.hstu_table_close(table)

    def __enter__(self) -> Table:  # noqa: PYI034
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    __del__ = close

    def _open(self) -> int:
        self._check_process()
        if not self._table:
            raise ValueError("the table is closed")
        return int(self._table)

    def _check(self, status: int) -> None:
        if status != 0:
            raise ValueError(self._error())

    def _error(self) -> str:
        return str(self._c.hstu_table_error().decode())


def _array(x: Any, kind: type, name: str) -> Array:
    """x in host memory, of NumPy or by DLPack, without a copy where its type and order are right."""
    if not isinstance(x, np.ndarray) and hasattr(x, "__dlpack__"):
        x = np.from_dlpack(x)
    array = np.asarray(x)
    if array.dtype.kind not in ("iu" if kind is np.int64 else "fiu") and array.size > 0:
        raise ValueError(f"{name}: expected {'integers' if kind is np.int64 else 'numbers'}, found {array.dtype}")
    if kind is np.int64 and array.dtype == np.uint64 and (array >> 63).any():
        raise ValueError(f"{name}: {array.max()} does not fit into int64")
    return np.ascontiguousarray(array, kind).reshape(array.shape)


def _place(array: Array) -> int:
    return int(array.ctypes.data)
