"""Jagged HSTU attention for PyTorch 2.4 and newer: custom operators with gradients, which torch.compile and
torch.export trace without a GPU. On NVIDIA GPUs they are the kernels of libhstu_attention.so; on a CPU plain PyTorch,
for tests.

docs/attention.md defines the operation, its masks and its bias.
"""

from __future__ import annotations

import os
from typing import Any

from hstu.attention_library import BF16, FP16, FP32, Library, Rows

try:
    import torch
    from torch.library import custom_op
except ImportError as error:
    raise ImportError("hstu.attention needs PyTorch 2.4 or newer: pip install torch") from error
from hstu import attention_cpu

Tensor = torch.Tensor
_TYPES = {torch.bfloat16: BF16, torch.float16: FP16, torch.float32: FP32}
# Fields of hstu_attention_problem by name, in the operators' order, and the types of their tensors.
_TENSORS = {
    "offsets": torch.int64, "query_offsets": torch.int64, "contexts": torch.int32, "targets": torch.int32,
    "sample_scale": torch.float32, "position_table": torch.float32, "time_table": torch.float32,
    "thresholds": torch.int64, "query_time": torch.int64, "key_time": torch.int64,
}  # fmt: skip
_SCALARS = ["alpha", "scale", "window_left", "window_right", "target_group", "longest", "deterministic"]
_ARGUMENTS = (
    "Tensor q, Tensor k, Tensor v, Tensor offsets, "
    + ", ".join(f"Tensor? {name}" for name in list(_TENSORS)[1:])
    + ", float alpha, float scale, int window_left, int window_right, int target_group, int longest, bool deterministic"
)
_library: Library | None = None


def load(path: str | os.PathLike[str] | None = None) -> Library:
    """The library that is used, loaded at its first use: the wheel's, or the one at `path`."""
    global _library
    if _library is None or path is not None:
        _library = Library(path)
    return _library


def hstu_attention(
    q: Any,
    k: Any,
    v: Any,
    offsets: Any,
    *,
    query_offsets: Any = None,
    contexts: Any = None,
    targets: Any = None,
    sample_scale: Any = None,
    position_table: Any = None,
    time_table: Any = None,
    thresholds: Any = None,
    query_time: Any = None,
    key_time: Any = None,
    alpha: float | None = None,
    scale: float = 1.0,
    window_left: int = -1,
    window_right: int = 0,
    target_group: int = 1,
    longest: int = 0,
    deterministic: bool = False,
) -> Tensor:
    """O (T, H, D) = scale * sum over the keys that a query sees of silu(alpha q . k + bias) * v.

    q, k, v: (T, H, D), bfloat16, float16 or float32; sample b has the rows offsets[b] to offsets[b + 1] of offsets
    (B + 1), int64. Rows of no sample are zeros. query_offsets (B + 1) divides the rows of q instead: the last tokens of
    each sample. contexts, targets, sample_scale: (B), int32 and float32. position_table (1 or H, 2 P - 1) and
    time_table (1 or H, K + 1) are the bias, float32, with thresholds (K), query_time and key_time (rows), int64.
    alpha: 1 / sqrt(D) without it. Tensors of other libraries are taken by DLPack, without a copy. Gradients are those
    of q, k, v and the tables; `deterministic`: the same bits every time.
    """
    arrays = [q, k, v, offsets, query_offsets, contexts, targets, sample_scale, position_table, time_table, thresholds,
              query_time, key_time]  # fmt: skip
    q, *rest = map(_tensor, arrays)
    alpha = q.shape[-1] ** -0.5 if alpha is None else alpha
    return torch.ops.hstu.attention(  # type: ignore[no-any-return]
        q, *rest, alpha, scale, window_left, window_right, target_group, longest, deterministic
    )


def _tensor(x: Any) -> Tensor | None:
    return x if x is None or isinstance(x, Tensor) else torch.utils.dlpack.from_dlpack(x)


def _check(q: Tensor, k: Tensor, v: Tensor, *settings: Any) -> None:
    if q.dim() != 3 or k.dim() != 3 or k.shape != v.shape or q.shape[1:] != k.shape[1:]:
        raise ValueError(
            f"q, k, v: expected (tokens, heads, D), found {tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}"
        )
    for name, x in [("k", k), ("v", v), *zip(_TENSORS, settings)]:
        wanted = _TENSORS.get(name, q.dtype)
        if q.dtype == torch.float64 and wanted == torch.float32:  # on a CPU alone
            wanted = q.dtype
        if x is not None and (x.device != q.device or x.dtype != wanted):
            raise ValueError(f"{name}: expected {wanted} on {q.device}, found {x.dtype} on {x.device}")


def _rows(x: Tensor) -> Rows:
    return Rows(x.data_ptr(), x.stride(0), x.stride(1))


def _inner(x: Tensor) -> Tensor:
    """T and H may have any strides, D has none."""
    return x if x.stride(2) == 1 and x.stride(0) >= 0 and x.stride(1) > 0 else x.contiguous()


def _problem(library: Library, q: Tensor, k: Tensor, v: Tensor, *settings: Any) -> Any:
    if q.dtype not in _TYPES:
        raise ValueError(f"q: expected bfloat16, float16 or float32, found {q.dtype}")
    p = library.problem()
    p.type, p.samples, p.tokens, p.queries = _TYPES[q.dtype], settings[0].numel() - 1, k.shape[0], q.shape[0]
    p.heads, p.head_dim = q.shape[1:]
    p.q, p.k, p.v = _rows(q), _rows(k), _rows(v)
    tensors = dict(zip(_TENSORS, settings))
    for name, x in tensors.items():
        setattr(p, name, None if x is None else x.data_ptr())
    for name, value in zip(_SCALARS, settings[len(_TENSORS) :]):
        setattr(p, name, value)
    tables = [x for x in (tensors["position_table"], tensors["time_table"]) if x is not None]
    p.bias_tables = tables[0].shape[0] if tables else 1
    if tensors["position_table"] is not None:
        p.positions = (tensors["position_table"].shape[1] + 1) // 2
    p.buckets = 0 if tensors["thresholds"] is None else tensors["thresholds"].numel()
    return p


def _contiguous(settings: tuple[Any, ...]) -> list[Any]:
    return [x.contiguous() if isinstance(x, Tensor) else x for x in settings]


@custom_op("hstu::attention", mutates_args=(), device_types="cuda", schema=f"({_ARGUMENTS}) -> Tensor")
def _forward(q: Tensor, k: Tensor, v: Tensor, *settings: Any) -> Tensor:
    _check(q, k, v, *settings)
    library, stream = load(), torch.cuda.current_stream(q.device).cuda_stream
    q, k, v, settings = _inner(q), _inner(k), _inner(v), _contiguous(settings)  # type: ignore[assignment]
    p, o = _problem(library, q, k, v, *settings), torch.zeros(q.shape, dtype=q.dtype, device=q.device)
    with torch.cuda.device(q.device):
        scratch = torch.empty(library.workspace(p)[0], dtype=torch.uint8, device=q.device)
        library.forward(p, _rows(o), scratch.data_ptr(), scratch.numel(), stream)
    return o


@custom_op(
    "hstu::attention_backward",
    mutates_args=(),
    device_types="cuda",
    schema=f"(Tensor d_o, {_ARGUMENTS}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def _backward(d_o: Tensor, q: Tensor, k: Tensor, v: Tensor, *settings: Any) -> tuple[Tensor, ...]:
    """dq, dk, dv and the gradients of the two tables, empty for a table that is not there."""
    library, stream = load(), torch.cuda.current_stream(q.device).cuda_stream
    q, k, v, settings = _inner(q), _inner(k), _inner(v), _contiguous(settings)  # type: ignore[assignment]
    p, d_o = _problem(library, q, k, v, *settings), d_o.contiguous()
    grads = [torch.zeros(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v)]
    tables = _like_tables(q, settings)
    p.d_position_table, p.d_time_table = (x.data_ptr() if x.numel() else None for x in tables)
    with torch.cuda.device(q.device):
        scratch = torch.empty(library.workspace(p)[1], dtype=torch.uint8, device=q.device)
        dq, dk, dv = map(_rows, grads)
        library.backward(p, _rows(d_o), dq, dk, dv, scratch.data_ptr(), scratch.numel(), stream)
    return (*grads, *tables)


def _like_tables(q: Tensor, settings: Any) -> list[Tensor]:
    named = dict(zip(_TENSORS, settings))
    found = (named["position_table"], named["time_table"])
    return [q.new_empty(0) if x is None else torch.zeros_like(x, memory_format=torch.contiguous_format) for x in found]


@_forward.register_kernel("cpu")
def _forward_cpu(q: Tensor, k: Tensor, v: Tensor, *settings: Any) -> Tensor:
    _check(q, k, v, *settings)
    return attention_cpu.forward(q, k, v, dict(zip([*_TENSORS, *_SCALARS], settings)))


@_backward.register_kernel("cpu")
def _backward_cpu(d_o: Tensor, q: Tensor, k: Tensor, v: Tensor, *settings: Any) -> tuple[Tensor, ...]:
    return attention_cpu.backward(d_o, q, k, v, dict(zip([*_TENSORS, *_SCALARS], settings)), _like_tables(q, settings))


@_forward.register_fake
def _forward_fake(q: Tensor, k: Tensor, v: Tensor, *settings: Any) -> Tensor:
    _check(q, k, v, *settings)
    return torch.empty(q.shape, dtype=q.dtype, device=q.device)


@_backward.register_fake
def _backward_fake(d_o: Tensor, q: Tensor, k: Tensor, v: Tensor, *settings: Any) -> tuple[Tensor, ...]:
    grads = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    return (*grads, *_like_tables(q, settings))


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    tensors = 3 + len(_TENSORS)
    ctx.save_for_backward(*inputs[:tensors])
    ctx.scalars = inputs[tensors:]


def _gradients(ctx: Any, d_o: Tensor) -> tuple[Tensor | None, ...]:
    dq, dk, dv, d_position, d_time = torch.ops.hstu.attention_backward(d_o, *ctx.saved_tensors, *ctx.scalars)
    named = dict(zip(_TENSORS, ctx.saved_tensors[3:]))
    of = {"position_table": d_position, "time_table": d_time}
    rest = [of[name] if name in of and named[name] is not None else None for name in _TENSORS]
    return (dq, dk, dv, *rest, *(None for _ in _SCALARS))


_forward.register_autograd(_gradients, setup_context=_setup_context)
