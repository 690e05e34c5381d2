"""Pickles of others, read without running them.

A class or a function of a pickle stays a Name, and what its call would make a Call: nothing is imported and nothing is
called. What is left are numbers, texts, lists and dictionaries.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_SHARD = "torch.distributed._shard."
_CHECKPOINT = "torch.distributed.checkpoint."
# What files of PyTorch name, by module. Anything else is refused: a pickle of others may name what it likes.
KNOWN = {
    "builtins": "getattr set",  # of ShardedTensor.ProcessGroupState and sets of texts; nothing here calls them
    "_codecs": "encode",
    "collections": "Counter OrderedDict defaultdict",
    "pathlib": "Path PosixPath WindowsPath",
    "pathlib._local": "Path PosixPath WindowsPath",
    "torch": "Size Tensor device bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 "
             "uint16 uint32 uint64 uint8 BFloat16Storage BoolStorage ByteStorage CharStorage DoubleStorage "
             "FloatStorage HalfStorage IntStorage LongStorage ShortStorage",
    "torch._tensor": "_rebuild_from_type_v2",
    "torch._utils": "_rebuild_parameter _rebuild_parameter_with_state _rebuild_tensor_v2 _rebuild_wrapper_subclass",
    "torch.nn.parameter": "Buffer Parameter",
    "torch.serialization": "_get_layout",
    "torch.distributed.remote_device": "_remote_device",
    _SHARD + "metadata": "ShardMetadata",
    _SHARD + "sharded_tensor.api": "ShardedTensor",
    _SHARD + "sharded_tensor.metadata": "MEM_FORMAT_ENCODING ShardedTensorMetadata TensorProperties",
    _SHARD + "sharded_tensor.shard": "Shard",
    _SHARD + "sharding_spec.api": "DevicePlacementSpec EnumerableShardingSpec",
    _SHARD + "sharding_spec.chunk_sharding_spec": "ChunkShardingSpec",
    _CHECKPOINT + "filesystem": "_StorageInfo _StoragePrefix",
    _CHECKPOINT + "metadata": "BytesStorageMetadata ChunkStorageMetadata Metadata MetadataIndex StorageMeta "
                              "TensorProperties TensorStorageMetadata _MEM_FORMAT_ENCODING",
}  # fmt: skip


@dataclass(frozen=True)
class Name:
    """A class or a function that a pickle names."""

    module: str
    name: str


@dataclass(eq=False, repr=False)
class Call:
    """What a call of `name` would make, and the state that it would get."""

    name: Any
    arguments: tuple[Any, ...]
    state: Any = None

    def fields(self, of: str) -> dict[str, Any]:
        """The attributes of an object of the class `of`; ValueError for what is none."""
        parts = self.state if isinstance(self.state, tuple) else (self.state,)  # those of slots are apart
        result = {key: part[key] for part in parts if isinstance(part, dict) for key in part}
        if not isinstance(self.name, Name) or self.name.name != of or not result:
            raise ValueError(f"expected a {of}, found another object")
        return result

    def take(self, _: Any) -> None:
        """What an object of another class would contain has no use here."""

    append = extend = update = take


def read_pickle(
    data: bytes,
    others: bool,
    made: Callable[[Call], Any] = lambda call: call,
    persistent: Callable[[Any], Any] | None = None,
) -> Any:
    """The object of a pickle. ValueError, without the file's name, for what is none or has a name that is not known.

    others: unknown names are let through, as names. made: what becomes of a call. persistent: of an object that is
    stored outside of the pickle.
    """
    reader = _Unpickler(io.BytesIO(data))
    reader.others, reader.made, reader.persistent = others, made, persistent
    try:
        return reader.load()
    except (ValueError, pickle.UnpicklingError) as error:
        raise ValueError(str(error)) from error
    except Exception as error:  # bytes of others: any
        raise ValueError(f"it is cut, or no pickle of PyTorch: {type(error).__name__} {error}") from error


# Python's own, as the one in C makes room for any index and any length that a pickle names. Operations that would do so
# here, and those that hash values of others, are left out.
_LEFT_OUT = {"ADDITEMS", "BYTEARRAY8", "DICT", "EMPTY_SET", "EXT1", "EXT2", "EXT4", "FROZENSET", "INST", "NEXT_BUFFER",
             "OBJ", "PERSID", "READONLY_BUFFER"}  # fmt: skip


_Python: Any = pickle._Unpickler


class _Unpickler(_Python):  # type: ignore[misc]
    others: bool
    made: Callable[[Call], Any]
    persistent: Callable[[Any], Any] | None

    def find_class(self, module: str, name: str) -> Name:
        module = {"__builtin__": "builtins", "copy_reg": "copyreg"}.get(module, module)  # of Python 2
        if not self.others and name not in KNOWN.get(module, "").split():
            raise pickle.UnpicklingError(
                f"it names {f'{module}.{name}'[:100]!r}, which is no part of a state dictionary; nothing of it was "
                "run. trusted=True leaves such objects out"
            )
        return Name(module, name)

    def persistent_load(self, stored: Any) -> Any:
        if self.persistent is None:
            raise pickle.UnpicklingError("it refers to objects outside of it")
        return self.persistent(stored)

    def _call(self, name: Any, arguments: Any) -> Any:
        if not isinstance(arguments, tuple):
            raise pickle.UnpicklingError("a call has no arguments")
        if isinstance(name, Name) and name.module == "collections":
            return _dictionary(list(arguments[0]) if name.name == "OrderedDict" and arguments else [])
        return self.made(Call(name, arguments))

    def _reduce(self) -> None:
        arguments = self.stack.pop()
        self.stack[-1] = self._call(self.stack[-1], arguments)

    def _reduce_keywords(self) -> None:
        keywords = self.stack.pop()
        arguments = self.stack.pop()
        self.stack[-1] = self._call(self.stack[-1], (arguments, keywords))

    def _build(self) -> None:
        state = self.stack.pop()
        if isinstance(self.stack[-1], Call):
            self.stack[-1].state = state
        elif not isinstance(self.stack[-1], dict):  # a state dictionary has attributes without a use here
            raise pickle.UnpicklingError(f"a {type(self.stack[-1]).__name__} has no state")

    def _set_item(self) -> None:
        value = self.stack.pop()
        key = self.stack.pop()
        self.stack[-1].update(_dictionary([(key, value)]))

    def _set_items(self) -> None:
        items = self.pop_mark()
        self.stack[-1].update(_dictionary(list(zip(items[::2], items[1::2]))))


_Unpickler.dispatch = {
    **{key: function for key, function in _Python.dispatch.items()
       if key not in {getattr(pickle, name)[0] for name in _LEFT_OUT}},
    pickle.REDUCE[0]: _Unpickler._reduce, pickle.NEWOBJ[0]: _Unpickler._reduce,
    pickle.NEWOBJ_EX[0]: _Unpickler._reduce_keywords, pickle.BUILD[0]: _Unpickler._build,
    pickle.SETITEM[0]: _Unpickler._set_item, pickle.SETITEMS[0]: _Unpickler._set_items,
}  # fmt: skip


def _dictionary(items: list[Any]) -> dict[Any, Any]:
    for key, _ in items:
        if isinstance(key, tuple):  # the hash of tuples in tuples in tuples would take for ever
            raise pickle.UnpicklingError("a dictionary has a tuple as a key")
    return dict(items)
