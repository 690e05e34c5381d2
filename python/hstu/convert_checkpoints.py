"""Tensors in files of PyTorch: torch.save and torch.distributed.checkpoint (DCP). Without PyTorch, whose pickles run
code; hstu.pickles reads them."""

from __future__ import annotations

import io
import math
import os
import re
import struct
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hstu.pickles import Call, Name, read_pickle
from hstu.tensors import from_bf16

Array = NDArray[Any]
_STORAGES = {
    "BFloat16Storage": "<u2", "BoolStorage": "?", "ByteStorage": "u1", "CharStorage": "i1", "DoubleStorage": "<f8",
    "FloatStorage": "<f4", "HalfStorage": "<f2", "IntStorage": "<i4", "LongStorage": "<i8", "ShortStorage": "<i2",
}  # fmt: skip
_WRAPPED = ("Buffer", "Parameter", "Tensor")  # classes of one tensor


@dataclass
class Pieces:
    """A tensor in parts: its shape, and arrays with the index of the first element of each."""

    shape: tuple[int, ...]
    parts: list[tuple[tuple[int, ...], Any]]


@dataclass
class _Storage:
    """`count` numbers in a file, from the byte `begin` on."""

    file: Path
    begin: int
    kind: str
    count: int


@dataclass
class StoredTensor:
    """A tensor in a file, which numpy.asarray() reads."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # elements
    span: int  # elements from the first to the last

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        kind = np.dtype(_STORAGES[self.storage.kind])
        begin = self.storage.begin + self.offset * kind.itemsize
        values = np.fromfile(self.storage.file, kind, self.span, offset=begin)
        if values.size != self.span:
            raise ValueError(f"{self.storage.file} became shorter while it was read")
        strides = [stride * kind.itemsize for stride in self.strides]
        array = np.ascontiguousarray(np.lib.stride_tricks.as_strided(values, self.shape, strides)).reshape(self.shape)
        array = from_bf16(array) if self.storage.kind == "BFloat16Storage" else array
        return array if dtype is None else array.astype(dtype)


class _Part(io.RawIOBase):
    """A part of a file, for zipfile."""

    def __init__(self, file: BinaryIO, begin: int, length: int) -> None:
        self._file, self._begin, self._length, self._at = file, begin, length, 0

    def read(self, size: int = -1) -> bytes:
        left = max(self._length - self._at, 0)
        self._file.seek(self._begin + self._at)
        data = self._file.read(left if size < 0 else min(size, left))
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        if at < 0:
            raise OSError("before the first byte")
        self._at = at
        return at

    def tell(self) -> int:
        return self._at

    def seekable(self) -> bool:
        return True


def read_saved(file: Path, others: bool, begin: int = 0, length: int | None = None) -> Any:
    """What torch.save wrote into a file or a part of it. `others`: as of read_pickle()."""
    try:
        with open(file, "rb") as opened:
            length = os.fstat(opened.fileno()).st_size if length is None else length
            archive = _Archive(file, opened, begin, length)
            if "byteorder" in archive.entries and archive.read("byteorder").strip() != b"little":
                raise ValueError("its numbers are not little-endian: save it on another machine")
            return read_pickle(archive.read("data.pkl"), others, archive.made, archive.storage)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


@dataclass
class _Archive:
    """The zip file of torch.save: data.pkl, and the numbers of each storage as they are in memory."""

    file: Path
    opened: BinaryIO
    begin: int
    length: int
    entries: dict[str, zipfile.ZipInfo] = field(default_factory=dict)
    elements: int = 0  # of all tensors so far

    def __post_init__(self) -> None:
        self._part = _Part(self.opened, self.begin, self.length)
        try:
            with zipfile.ZipFile(self._part) as archive:
                found = archive.infolist()
        except Exception as error:  # bytes of others: any
            raise ValueError(f"it is cut, or torch.save of PyTorch 1.6 or later has not written it: {error}") from error
        self.entries = {entry.filename.partition("/")[2]: entry for entry in found}

    def _place(self, name: str) -> tuple[int, int]:
        """Where the entry is in the part, and its bytes."""
        entry = self.entries.get(name)
        if entry is None or entry.header_offset < 0:
            raise ValueError(f"a zip file without {name[:50]!r}: torch.save has not written it")
        self._part.seek(entry.header_offset)
        head = self._part.read(30)
        begin = entry.header_offset + 30 + sum(struct.unpack("<HH", head[26:30])) if len(head) == 30 else self.length
        if entry.compress_type != zipfile.ZIP_STORED or begin + entry.file_size > self.length:
            raise ValueError(f"its entry {name} is compressed or cut")
        return begin, entry.file_size

    def read(self, name: str) -> bytes:
        begin, size = self._place(name)
        self._part.seek(begin)
        return self._part.read(size)

    def storage(self, stored: Any) -> _Storage:
        """Of the persistent id ("storage", class, key, device, elements)."""
        fields: Any = stored if isinstance(stored, tuple) and len(stored) == 5 else (None,) * 5
        _, kind, key, _, count = fields
        known = isinstance(kind, Name) and kind.module == "torch" and kind.name in _STORAGES
        if not known or not isinstance(key, str) or not isinstance(count, int):
            raise ValueError("a storage of an unknown type, without a key or without a number of elements")
        begin, size = self._place(f"data/{key}")
        if not 0 <= count * np.dtype(_STORAGES[kind.name]).itemsize <= size:
            raise ValueError(f"data/{key} has {size} bytes, which are not {count} numbers")
        return _Storage(self.file, self.begin + begin, kind.name, count)

    def made(self, call: Call) -> Any:
        """The tensors, shards and shapes among the calls of a pickle."""
        name = call.name.name if isinstance(call.name, Name) and call.name.module.startswith("torch") else ""
        arguments = call.arguments
        if name == "Size":
            return _shape(*arguments)
        if name == "_rebuild_tensor_v2":
            return self._tensor(*arguments[:4])
        if name.startswith("_rebuild_parameter"):
            return arguments[0]
        if name == "_rebuild_from_type_v2":
            function, kind, inner, state = arguments
            of = kind.name if isinstance(kind, Name) else ""
            if of in _WRAPPED:
                return self.made(Call(function, inner))
            if of == "ShardedTensor":
                return _shards(state)
            raise ValueError(f"it has a tensor of the class {of!r}: save its full_tensor(), or by "
                             "torch.distributed.checkpoint")  # fmt: skip
        return call

    def _tensor(self, storage: _Storage, offset: int, size: Any, strides: Any) -> StoredTensor:
        shape, strides = _shape(size), _shape(strides)
        elements = math.prod(shape)
        span = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides)) if elements else 0
        if len(shape) != len(strides) or not 0 <= offset <= storage.count - span:
            raise ValueError(f"a tensor {shape} with the strides {strides} from number {offset} on does not fit "
                             f"{storage.count} numbers")  # fmt: skip
        self.elements += elements
        if self.elements > self.length:  # they repeat numbers, so that the file does not bound their memory
            raise ValueError("its tensors have more numbers than it has bytes: save contiguous tensors")
        return StoredTensor(storage, offset, shape, strides, span)


def _shape(size: Any) -> tuple[int, ...]:
    if not isinstance(size, (tuple, list)) or not all(isinstance(n, int) and 0 <= n < 1 << 48 for n in size):
        raise ValueError("a shape is no tuple of sizes")
    return tuple(map(int, size))


def _shards(state: Any) -> Pieces:
    """Of a ShardedTensor: the shards of one rank."""
    parts = []
    for shard in state[0]:
        fields = shard.fields("Shard")
        where = fields["metadata"].fields("ShardMetadata")
        if fields["tensor"].shape != _shape(where["shard_sizes"]):
            raise ValueError(f"a shard of {fields['tensor'].shape} is said to have {where['shard_sizes']}")
        parts.append((_shape(where["shard_offsets"]), fields["tensor"]))
    return Pieces(_shape(state[1].fields("ShardedTensorMetadata")["size"]), parts)


def _size(call: Call) -> Any:
    """torch.Size of .metadata."""
    return _shape(*call.arguments) if call.name == Name("torch", "Size") else call


def read_distributed(folder: Path, others: bool) -> dict[str, Any]:
    """The tensors of a checkpoint of torch.distributed.checkpoint by name, whatever number of ranks wrote it."""
    file = folder / ".metadata"
    if not file.exists():
        raise FileNotFoundError(f"{folder}: expected a folder of torch.distributed.checkpoint, with a file .metadata")
    try:
        fields = read_pickle(file.read_bytes(), others, _size).fields("Metadata")
        stored = {}
        for index, info in fields["storage_data"].items():
            where = index.fields("MetadataIndex")
            if isinstance(where["fqn"], str) and where.get("offset") is not None:  # objects have no offset
                stored[where["fqn"], _shape(where["offset"])] = info.fields("_StorageInfo")
        tensors = {}
        for name, kept in fields["state_dict_metadata"].items():
            if kept.name.name == "TensorStorageMetadata":
                of = kept.fields("TensorStorageMetadata")
                chunks = [tuple(map(_shape, map(chunk.fields("ChunkStorageMetadata").get, ("offsets", "sizes"))))
                          for chunk in of["chunks"]]  # fmt: skip
                tensors[name] = _shape(of["size"]), [(at, extent, stored[name, at]) for at, extent in chunks]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} is no metadata of torch.distributed.checkpoint: {error}") from error
    used: dict[str, int] = {}
    return {name: Pieces(size, [(at, _chunk(folder, name, extent, info, used, others)) for at, extent, info in chunks])
            for name, (size, chunks) in tensors.items()}  # fmt: skip


def _chunk(folder: Path, name: str, extent: Any, info: Any, used: dict[str, int], others: bool) -> StoredTensor:
    path, begin, length = (info.get(key) for key in ("relative_path", "offset", "length"))
    if not isinstance(path, str) or not re.fullmatch(r"[^/\0]+", path) or path in (".", ".."):
        found = repr(path) if isinstance(path, str) else type(path).__name__
        raise ValueError(f"{folder}/.metadata: {name} is in {found}: expected the name of a file in the folder")
    if info.get("transform_descriptors"):
        raise ValueError(f"{folder}: {name} is compressed: save it without extensions")
    file = folder / path
    if not isinstance(begin, int) or not isinstance(length, int) or begin < 0 or length < 0:
        raise ValueError(f"{folder}/.metadata: {name}: expected an offset and a length in {path}")
    used[path] = used.get(path, 0) + length
    if max(begin + length, used[path]) > file.stat().st_size:
        raise ValueError(f"{file} is cut: {name} ends at byte {begin + length}")
    tensor = read_saved(file, others, begin, length)
    if not isinstance(tensor, StoredTensor) or tensor.shape != extent:
        raise ValueError(f"{file}: {name}: expected a tensor of {extent} at byte {begin}")
    return tensor
