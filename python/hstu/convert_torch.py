"""State dictionaries in files of PyTorch: torch.save, distributed checkpoints (DCP), shards of TorchRec's tables."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from hstu.convert_layout import exact_float32

Array = NDArray[Any]
PathLike = Union[str, "os.PathLike[str]"]
Source = Union[Mapping[str, Any], PathLike, Sequence[Union[Mapping[str, Any], PathLike]]]
# What trainers put around a state dictionary, in a file and in the name of a tensor.
WRAPPERS = ("dense_dict", "model_state_dict", "state_dict", "sparse_dict", "model")
PREFIXES = ("sparse_dict.", "model_state_dict.", "state_dict.", "_dmp_wrapped_module.", "module.")


def read_state(source: Source, trusted: bool = False) -> dict[str, Array]:
    """A state dictionary as arrays by name: floats as float32, integers as they are.

    source: a dictionary of tensors or arrays; a file of torch.save; a folder of torch.distributed.checkpoint; a folder
    of generative-recommenders' trainer, with sparse/ and non_sparse.ckpt; or a list with one of these for each rank,
    whose shards are put together. trusted: the files may run code as they are read, which files with shards of tables
    (ShardedTensor) need; never for files of strangers.
    """
    parts = [source] if isinstance(source, (Mapping, str, os.PathLike)) else list(source)
    states = [_plain(part if isinstance(part, Mapping) else _read_path(Path(part), trusted)) for part in parts]
    result: dict[str, Array] = {}
    for name in dict.fromkeys(name for state in states for name in state):
        values = [state[name] for state in states if name in state]
        result[name] = _joined(name, values)
    return result


def _plain(state: Mapping[str, Any]) -> dict[str, Any]:
    """Without wrappers; what is no tensor is left out."""
    for wrapper in WRAPPERS:
        if isinstance(state.get(wrapper), Mapping):
            state = state[wrapper]
    result = {}
    for name, value in state.items():
        while any(name.startswith(prefix) for prefix in PREFIXES):
            name = name.split(".", 1)[1]
        if hasattr(value, "shape") or hasattr(value, "local_shards"):
            result[name] = value
    return result


def _read_path(path: Path, trusted: bool) -> dict[str, Any]:
    if (path / "non_sparse.ckpt").exists():
        return {**_plain(_read_path(path / "non_sparse.ckpt", trusted)), **_plain(_read_path(path / "sparse", trusted))}
    if path.is_dir():
        return _read_distributed(path)
    import torch

    try:
        if not trusted:
            return dict(torch.load(path, map_location="cpu", weights_only=True))
        return dict(torch.load(path, map_location="cpu", weights_only=False, pickle_module=_ShardPickle))
    except pickle.UnpicklingError as error:
        raise ValueError(f"{path} has more than tensors, such as shards of tables: trusted=True reads them, if you "
                         "know where the file is from, as it may run code") from error


def _read_distributed(path: Path) -> dict[str, Any]:
    """A checkpoint of torch.distributed.checkpoint, in one process and whatever number of ranks wrote it."""
    if not (path / ".metadata").exists():
        raise FileNotFoundError(f"{path}: expected a folder of torch.distributed.checkpoint, with a file .metadata")
    from torch.distributed.checkpoint import filesystem
    from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata
    from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

    reader = filesystem.FileSystemReader(path)
    names = [name for name, kept in reader.read_metadata().state_dict_metadata.items()
             if isinstance(kept, TensorStorageMetadata)]  # fmt: skip
    state: dict[str, Any] = {}
    planner = _EmptyStateDictLoadPlanner(keys=set(names))  # type: ignore[no-untyped-call]
    _load_state_dict(state, storage_reader=reader, planner=planner, no_dist=True)
    return _flat(state)


def _flat(state: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in state.items():
        result.update(_flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value})
    return result


class _Shards:
    """What a file has of a ShardedTensor: the shards of one rank. PyTorch's class needs a process group for it."""

    class ProcessGroupState:
        pass

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._local, self._metadata = state[0], state[1]

    def local_shards(self) -> Any:
        return self._local

    def metadata(self) -> Any:
        return self._metadata


def _rebuilt(function: Any, kind: Any, arguments: Any, state: Any) -> Any:
    """torch._tensor._rebuild_from_type_v2, by which tensors of other classes are read."""
    if kind is _Shards:
        shards = _Shards()
        shards.__setstate__(state)
        return shards
    import torch

    return torch._tensor._rebuild_from_type_v2(function, kind, arguments, state)  # type: ignore[no-untyped-call]


class _ShardPickle:
    """For torch.load: the pickle module with _Shards for ShardedTensor."""

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            replaced = {"ShardedTensor": _Shards, "_rebuild_from_type_v2": _rebuilt}
            return replaced[name] if name in replaced else super().find_class(module, name)

    load = staticmethod(pickle.load)


def _joined(name: str, values: Sequence[Any]) -> Array:
    """One tensor of what ranks have of it: shards, or the same values each."""
    if any(hasattr(value, "local_shards") for value in values):
        return _of_shards(name, values)
    if any(hasattr(value, "full_tensor") for value in values):
        raise ValueError(f"{name} is a DTensor: give its full_tensor(), or save it by torch.distributed.checkpoint")
    arrays = [_array(name, value) for value in values]
    for array in arrays[1:]:
        if array.shape != arrays[0].shape or array.tobytes() != arrays[0].tobytes():
            raise ValueError(f"{name} differs between ranks: parts of tensor parallel layers are not put together "
                             "here; save with a tensor_model_parallel_size of 1")  # fmt: skip
    return arrays[0]


def _of_shards(name: str, values: Iterable[Any]) -> Array:
    whole: Array | None = None
    covered = 0
    boxes: list[tuple[Any, Any]] = []
    for value in values:
        size = tuple(value.metadata().size)
        whole = np.empty(size, np.float32) if whole is None else whole
        for shard in value.local_shards():
            begin, extent = tuple(shard.metadata.shard_offsets), tuple(shard.metadata.shard_sizes)
            array = exact_float32(name, shard.tensor)
            end = tuple(b + e for b, e in zip(begin, extent))
            if array.shape != extent or any(e > s for e, s in zip(end, size)) or whole.shape != size:
                raise ValueError(f"{name}: a shard of {array.shape} at {begin} does not fit a table of {size}")
            for other, stop in boxes:
                if all(b < s and o < e for b, e, o, s in zip(begin, end, other, stop)):
                    raise ValueError(f"{name}: two shards have the rows at {begin}: give each rank's file once")
            boxes.append((begin, end))
            whole[tuple(slice(b, e) for b, e in zip(begin, end))] = array
            covered += array.size
    assert whole is not None
    if covered != whole.size:
        raise ValueError(f"{name}: the shards have {covered} of {whole.size} values: give the files of all ranks")
    return whole


def _array(name: str, value: Any) -> Array:
    if not hasattr(value, "detach"):
        array = np.asarray(value)
        return exact_float32(name, array) if array.dtype.kind == "f" else array
    return exact_float32(name, value) if value.is_floating_point() else np.asarray(value.detach().cpu().numpy())


def save_state(state: Mapping[str, Array], file: PathLike, dtype: str = "float32") -> None:
    """Writes a state dictionary by torch.save. dtype: of floats, "float32", "bfloat16" or "float16"; a value that it
    does not have is rounded."""
    import torch

    kind = getattr(torch, dtype)
    tensors = {}
    for name, array in state.items():
        tensor = torch.from_numpy(np.array(array))
        tensors[name] = tensor.to(kind) if tensor.is_floating_point() else tensor
    torch.save(tensors, file)
