"""State dictionaries of PyTorch: in memory, in files, in shards of TorchRec's tables."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from hstu.convert_checkpoints import Pieces, read_distributed, read_saved
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
    whose shards are put together. Files run no code: what is no tensor, shard, number, text, list or dictionary is
    refused by its name. trusted: such objects are left out.
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
    result: dict[str, Any] = {}
    for full, value in state.items():
        name = str(full)
        while any(name.startswith(prefix) for prefix in PREFIXES):
            name = name.split(".", 1)[1]
        if hasattr(value, "shape") or hasattr(value, "local_shards"):
            if not name.isprintable():
                raise ValueError(f"the name {name!r} of a tensor has control characters")
            if name in result:
                raise ValueError(f"two tensors are {name}, as prefixes are taken off: give one of them")
            result[name] = value
    return result


def _read_path(path: Path, trusted: bool) -> dict[str, Any]:
    if (path / "non_sparse.ckpt").exists():
        return {**_plain(_read_path(path / "non_sparse.ckpt", trusted)), **_plain(_read_path(path / "sparse", trusted))}
    if path.is_dir():
        return read_distributed(path, trusted)
    state = read_saved(path, trusted)
    if isinstance(state, dict):
        return state
    raise ValueError(f"{path}: expected a dictionary of tensors, found another object")


def _joined(name: str, values: Sequence[Any]) -> Array:
    """One tensor of what ranks have of it: shards, or the same values each."""
    if any(isinstance(value, Pieces) or hasattr(value, "local_shards") for value in values):
        return _whole(name, [value if isinstance(value, Pieces) else _shards_of(name, value) for value in values])
    if any(hasattr(value, "full_tensor") for value in values):
        raise ValueError(f"{name} is a DTensor: give its full_tensor(), or save it by torch.distributed.checkpoint")
    arrays = [_array(name, value) for value in values]
    for array in arrays[1:]:
        if array.shape != arrays[0].shape or array.tobytes() != arrays[0].tobytes():
            raise ValueError(f"{name} differs between ranks: parts of tensor parallel layers are not put together "
                             "here; save with a tensor_model_parallel_size of 1")  # fmt: skip
    return arrays[0]


def _shards_of(name: str, tensor: Any) -> Pieces:
    """Of a ShardedTensor: what this process has."""
    if not hasattr(tensor, "local_shards"):
        raise ValueError(f"{name} is in shards in some files, and whole in others")
    shards = [(tuple(shard.metadata.shard_offsets), shard.tensor) for shard in tensor.local_shards()]
    return Pieces(tuple(tensor.metadata().size), shards)


def _whole(name: str, ranks: Sequence[Any]) -> Array:
    size, parts = ranks[0].shape, [part for rank in ranks for part in rank.parts]
    boxes: list[tuple[Any, Any]] = []
    for begin, tensor in parts:
        end = tuple(b + e for b, e in zip(begin, tensor.shape))
        if len(end) != len(size) or len(begin) != len(size) or any(e > s for e, s in zip(end, size)):
            raise ValueError(f"{name}: a shard of {tuple(tensor.shape)} at {begin} does not fit a table of {size}")
        for other, stop in boxes:
            if all(b < s and o < e for b, e, o, s in zip(begin, end, other, stop)):
                raise ValueError(f"{name}: two shards have the rows at {begin}: give each rank's file once")
        boxes.append((begin, end))
    covered = sum(math.prod(tensor.shape) for _, tensor in parts)
    if covered != math.prod(size) or any(rank.shape != size for rank in ranks):
        raise ValueError(f"{name}: the shards have {covered} of {math.prod(size)} values: give the files of all ranks")
    whole: Array | None = None
    for (begin, tensor), (_, end) in zip(parts, boxes):
        array = _array(name, tensor)
        if whole is None:
            whole = np.empty(size, array.dtype)  # after the checks: what the shards have bounds it
        if array.dtype != whole.dtype:
            raise ValueError(f"{name}: a shard of {whole.dtype} and one of {array.dtype}")
        whole[tuple(slice(b, e) for b, e in zip(begin, end))] = array
    return np.empty(size, np.float32) if whole is None else whole


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
