"""The definition of docs/attention.md in plain PyTorch, sample by sample: what hstu.attention computes on a CPU.

It holds the scores of all pairs of a sample. float64 stays float64, other types are computed in float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

Tensor = torch.Tensor
Settings = dict[str, Any]  # the arguments of hstu.attention.hstu_attention by name


def forward(q: Tensor, k: Tensor, v: Tensor, settings: Settings) -> Tensor:
    o = torch.zeros_like(q, memory_format=torch.contiguous_format)
    for rows, keys, scale, mask, scores, _ in _samples(q, k, settings):
        weights = scale * torch.nn.functional.silu(scores) * mask
        o[rows] = torch.einsum("hij,jhd->ihd", weights, _exact(v[keys])).to(o.dtype)
    return o


def backward(
    d_o: Tensor, q: Tensor, k: Tensor, v: Tensor, settings: Settings, tables: list[Tensor]
) -> tuple[Tensor, ...]:
    """dq, dk, dv, and `tables`, to which the gradients of position_table and time_table are added."""
    dq, dk, dv = (torch.zeros_like(x, memory_format=torch.contiguous_format) for x in (q, k, v))
    for rows, keys, scale, mask, scores, bias in _samples(q, k, settings):
        gate, outer = torch.sigmoid(scores), _exact(d_o[rows])
        dv[keys] = torch.einsum("hij,ihd->jhd", scale * scores * gate * mask, outer).to(dv.dtype)
        slope = gate * (1 + scores * (1 - gate))
        d_scores = scale * torch.einsum("ihd,jhd->hij", outer, _exact(v[keys])) * slope * mask
        dq[rows] = (settings["alpha"] * torch.einsum("hij,jhd->ihd", d_scores, _exact(k[keys]))).to(dq.dtype)
        dk[keys] = (settings["alpha"] * torch.einsum("hij,ihd->jhd", d_scores, _exact(q[rows]))).to(dk.dtype)
        for table, places in zip(tables, bias):
            if places is not None:
                of_table = d_scores.flatten(1) if table.shape[0] > 1 else d_scores.sum(0).flatten()[None]
                table.index_add_(1, places.flatten(), of_table.to(table.dtype))
    return (dq, dk, dv, *tables)


def _samples(
    q: Tensor, k: Tensor, settings: Settings
) -> Iterator[tuple[slice, slice, float, Tensor, Tensor, list[Any]]]:
    """Of each sample: rows of q and o, rows of k and v, the factor of its output, the mask (m, n), the scores
    (H, m, n), and where the pairs are in the two tables of the bias, (m, n) or None."""
    offsets = settings["offsets"].tolist()
    query_offsets = offsets if settings["query_offsets"] is None else settings["query_offsets"].tolist()
    for b in range(len(offsets) - 1):
        rows, keys = slice(*query_offsets[b : b + 2]), slice(*offsets[b : b + 2])
        n = keys.stop - keys.start
        i = torch.arange(n - (rows.stop - rows.start), n)[:, None]
        j = torch.arange(n)[None]
        places = [_positions(settings, i, j), _buckets(settings, rows, keys)]
        scores = settings["alpha"] * torch.einsum("ihd,jhd->hij", _exact(q[rows]), _exact(k[keys]))
        for table, at in zip((settings["position_table"], settings["time_table"]), places):
            if at is not None:
                scores = scores + table[:, at]
        factor = 1.0 if settings["sample_scale"] is None else float(settings["sample_scale"][b])
        yield rows, keys, settings["scale"] * factor, _mask(settings, b, n, i, j), scores, places


def _exact(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _positions(settings: Settings, i: Tensor, j: Tensor) -> Tensor | None:
    if settings["position_table"] is None:
        return None
    positions: int = (settings["position_table"].shape[1] + 1) // 2
    return positions - 1 + (j - i).clamp(1 - positions, positions - 1)


def _buckets(settings: Settings, rows: slice, keys: slice) -> Tensor | None:
    if settings["time_table"] is None:
        return None
    distance = (settings["query_time"][rows, None] - settings["key_time"][None, keys]).abs()
    return torch.bucketize(distance, settings["thresholds"], right=True)


def _mask(settings: Settings, b: int, n: int, i: Tensor, j: Tensor) -> Tensor:
    """Which keys j a query i sees: contexts [0, c), history [c, h) and targets [h, n)."""
    left, right = (n if settings[side] < 0 else settings[side] for side in ("window_left", "window_right"))
    h = n - (0 if settings["targets"] is None else min(max(int(settings["targets"][b]), 0), n))
    c = 0 if settings["contexts"] is None else min(max(int(settings["contexts"][b]), 0), h)
    group = (i - h) // settings["target_group"] == (j - h) // settings["target_group"]
    of_context = j < h
    of_history = (j < c) | (j < h) & (j >= i - left) & (j <= i + right)
    of_target = (j < c) | (j < h) & (j >= h - left) | (j >= h) & group & (j <= i + right)
    return torch.where(i < c, of_context, torch.where(i < h, of_history, of_target))
