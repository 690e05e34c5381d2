"""The encoders of retrieval in plain PyTorch, written from their formulas (docs/model.md): the source of golden
values. A loop over samples, no padding; any floating-point type.

Alphabet of the shapes: B samples, T tokens in all, n tokens of a sample, E width, H heads, d head size, w = H d,
P rows of the position table. Weights have shape (in, out): y = x W + b.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = ("meta", "nvidia", "sasrec")


@dataclass(frozen=True)
class Sizes:
    dim: int  # E
    layers: int
    heads: int  # H
    head_dim: int  # d
    longest: int  # N
    positions: int  # P


def time_buckets(distances, buckets=128):
    """Meta's bucket of a distance in seconds (int64), in fp32 as there."""
    logarithms = torch.log(distances.abs().clamp(min=1).to(torch.float32))
    return (logarithms / 0.301).to(torch.int64).clamp(0, buckets)


def parameter(*shape):
    return nn.Parameter(torch.empty(*shape, dtype=torch.float64))


class Norm(nn.Module):
    def __init__(self, width, epsilon, affine):
        super().__init__()
        self.epsilon = epsilon
        self.weight = parameter(width) if affine else None
        self.bias = parameter(width) if affine else None

    def forward(self, x):
        return F.layer_norm(x, (x.shape[-1],), self.weight, self.bias, self.epsilon)


class Linear(nn.Module):
    def __init__(self, inputs, outputs, bias=True):
        super().__init__()
        self.weight = parameter(inputs, outputs)
        self.bias = parameter(outputs) if bias else None

    def forward(self, x):
        y = x @ self.weight
        return y if self.bias is None else y + self.bias


class RelativeBias(nn.Module):
    def __init__(self, positions, buckets=128):
        super().__init__()
        self.position = parameter(1, 2 * positions - 1)
        self.time = parameter(1, buckets + 1)

    def forward(self, query_time, key_time):
        """(n, n): of query i and key j."""
        n = len(key_time)
        order = torch.arange(n)
        middle = self.position.shape[1] // 2
        by_place = self.position[0, middle + order[None, :] - order[:, None]]
        return by_place + self.time[0, time_buckets(query_time[:, None] - key_time[None, :])]


class HstuLayer(nn.Module):
    """Meta's (`meta` true) or NVIDIA's layer."""

    def __init__(self, sizes, meta):
        super().__init__()
        self.sizes, width = sizes, sizes.heads * sizes.head_dim
        self.alpha = 1 if meta else 1 / math.sqrt(sizes.head_dim)
        self.input_norm = Norm(sizes.dim, 1e-6, affine=not meta)
        self.uvqk = Linear(sizes.dim, 4 * width, bias=not meta)
        self.output_norm = Norm(width, 1e-6, affine=not meta)
        self.output = Linear(width, sizes.dim, bias=meta)
        if meta:
            self.bias = RelativeBias(sizes.longest)

    def forward(self, x, query_time, key_time):
        """x (n, E), of one sample."""
        s = self.sizes
        u, v, q, k = F.silu(self.uvqk(self.input_norm(x))).chunk(4, dim=1)
        v, q, k = (part.unflatten(1, (s.heads, s.head_dim)) for part in (v, q, k))
        scores = self.alpha * torch.einsum("ihd,jhd->hij", q, k)
        if hasattr(self, "bias"):
            scores = scores + self.bias(query_time, key_time)
        weights = torch.tril(F.silu(scores)) / s.longest
        o = torch.einsum("hij,jhd->ihd", weights, v).flatten(1)
        return self.output(u * self.output_norm(o)) + x


class SasrecBlock(nn.Module):
    """PyTorch's own multi-head attention, with the parameters of ours."""

    def __init__(self, sizes):
        super().__init__()
        self.heads, e = sizes.heads, sizes.dim
        self.query, self.key_value, self.output = Linear(e, e), Linear(e, 2 * e), Linear(e, e)
        self.mlp = nn.ModuleList([Linear(e, e), Linear(e, e)])

    def forward(self, x, query_time, key_time):
        n, e = x.shape
        normed = F.layer_norm(x, (e,), eps=1e-8)
        future = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)
        attended, _ = F.multi_head_attention_forward(
            normed[:, None], x[:, None], x[:, None], e, self.heads,
            torch.cat([self.query.weight.T, self.key_value.weight.T]),
            torch.cat([self.query.bias, self.key_value.bias]), None, None, False, 0.0,
            self.output.weight.T, self.output.bias, need_weights=False, attn_mask=future)  # fmt: skip
        z = F.layer_norm(normed + attended[:, 0], (e,), eps=1e-8)
        return z + self.mlp[1](F.relu(self.mlp[0](z)))


class Encoder(nn.Module):
    """Item rows to unit vectors. preset: meta, nvidia or sasrec."""

    def __init__(self, preset, sizes):
        super().__init__()
        self.sizes = sizes
        self.encoder = nn.Module()
        self.encoder.position = parameter(sizes.positions, sizes.dim)
        self.layers = nn.ModuleList(
            SasrecBlock(sizes) if preset == "sasrec" else HstuLayer(sizes, preset == "meta")
            for _ in range(sizes.layers)
        )

    def forward(self, items, item, offsets, query_time, key_time):
        """items (I, E) rows of the distinct items, item (T) which of them; offsets (B + 1); times (T). (T, E)."""
        outputs = []
        for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            x = items[item[begin:end]] * math.sqrt(self.sizes.dim) + self.encoder.position[: end - begin]
            for layer in self.layers if end > begin else []:
                x = layer(x, query_time[begin:end], key_time[begin:end])
            outputs.append(x / torch.linalg.vector_norm(x, dim=1, keepdim=True).clamp(min=1e-6))
        return torch.cat(outputs)
