"""Files of PyTorch, written without it: what torch.save and torch.distributed.checkpoint write, or what an attacker
would."""

import io
import pickle
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np

STORAGES = {"f4": "Float", "f8": "Double", "f2": "Half", "i8": "Long", "i4": "Int", "i2": "Short", "i1": "Char",
            "u1": "Byte", "b1": "Bool"}  # fmt: skip


@dataclass(frozen=True)
class Name:
    module: str
    name: str


@dataclass(eq=False)
class Call:
    function: Any
    arguments: Any
    state: Any = None


@dataclass
class Stored:
    """A persistent id."""

    id: Any


@dataclass
class Operations:
    """Bytes of a pickle as they are."""

    data: bytes


class Pickler(pickle._Pickler):
    def __init__(self, file):
        super().__init__(file, 2)
        self.storages = []

    def persistent_id(self, obj):
        return obj.id if isinstance(obj, Stored) else None

    def save_name(self, name):
        self.write(pickle.GLOBAL + f"{name.module}\n{name.name}\n".encode())

    def save_call(self, call):
        self.save(call.function)
        self.save(call.arguments)
        self.write(pickle.REDUCE)
        if call.state is not None:
            self.save(call.state)
            self.write(pickle.BUILD)

    def save_operations(self, operations):
        self.write(operations.data)

    def save_array(self, array):
        self.save(tensor(array, self.storages))


Pickler.dispatch = {**pickle._Pickler.dispatch, Name: Pickler.save_name, Call: Pickler.save_call,
                    Operations: Pickler.save_operations, np.ndarray: Pickler.save_array}  # fmt: skip


def tensor(array, storages):
    """A tensor that is the whole array, in the order in which it is in memory; its storage is added to the list."""
    base = array if array.base is None else array.base
    kind = Name("torch", f"{STORAGES[array.dtype.str[1:]]}Storage")
    storages.append(base.tobytes("A"))
    storage = Stored(("storage", kind, str(len(storages) - 1), "cpu", base.size))
    strides = tuple(stride // array.itemsize for stride in array.strides)
    hooks = Call(Name("collections", "OrderedDict"), ())
    return Call(Name("torch._utils", "_rebuild_tensor_v2"), (storage, 0, array.shape, strides, False, hooks))


def pickled(value):
    """The bytes, and those of the storages."""
    file = io.BytesIO()
    pickler = Pickler(file)
    pickler.dump(value)
    return file.getvalue(), pickler.storages


def saved(value, byteorder=b"little", **options):
    """The bytes that torch.save writes."""
    data, storages = pickled(value)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/byteorder", byteorder)
        for number, storage in enumerate(storages):
            archive.writestr(f"archive/data/{number}", storage)
    return file.getvalue()


def size(*extents):
    return Call(Name("torch", "Size"), (extents,))


def of_checkpoint(name, **state):
    module = "filesystem" if name == "_StorageInfo" else "metadata"
    return Call(Name(f"torch.distributed.checkpoint.{module}", name), (), state)


def save_distributed(folder, tensors, **changed):
    """tensors: by name, the shape and the chunks, [(offsets, array)]. changed: fields of each _StorageInfo."""
    folder.mkdir()
    described, places = {}, {}
    for number, (name, (shape, chunks)) in enumerate(tensors.items()):
        file = f"__{number}_0.distcp"
        data = b""
        for offsets, array in chunks:
            part = saved(array)
            info = {"relative_path": file, "offset": len(data), "length": len(part), **changed}
            index = of_checkpoint("MetadataIndex", fqn=name, offset=size(*offsets), index=0)
            places[index] = of_checkpoint("_StorageInfo", **info)
            data += part
        (folder / file).write_bytes(data)
        chunk_list = [of_checkpoint("ChunkStorageMetadata", offsets=size(*offsets), sizes=size(*array.shape))
                      for offsets, array in chunks]  # fmt: skip
        described[name] = of_checkpoint("TensorStorageMetadata", size=size(*shape), chunks=chunk_list)
    described["step"] = Call(Name("torch.distributed.checkpoint.metadata", "BytesStorageMetadata"), ())
    metadata = of_checkpoint("Metadata", state_dict_metadata=described, planner_data={}, storage_data=places)
    (folder / ".metadata").write_bytes(pickled(metadata)[0])
