"""The operations of the ranker on jagged rows, written from their formulas, and the layout of a sequence.

Alphabet of the shapes: B samples, T history tokens in all, s_i tokens of sample i, S = sum of s_i,
C contextual tokens a sample, D model width, E width of a table row, H heads, d head size.
A sample is [C contextual tokens, its history oldest first, 1 candidate]: s_i = C + history + 1.
Weights have shape (in, out): y = x W + b.
"""

import math

import torch
import torch.nn.functional as F


class Layout:
    """The positions of the tokens of a batch in the sequence of S rows."""

    def __init__(self, history_offsets, contextual):
        samples = history_offsets.numel() - 1
        sample = torch.arange(samples)
        self.contextual = contextual
        self.offsets = history_offsets + torch.arange(samples + 1) * (contextual + 1)  # (B + 1)
        self.lengths = self.offsets.diff()  # (B), s_i
        self.sample = sample.repeat_interleave(self.lengths)  # (S)
        self.index = torch.arange(int(self.offsets[-1])) - self.offsets[self.sample]  # (S), n: 0 .. s_i - 1
        self.longest = int(self.lengths.max()) if samples else 0
        # Sequence row -> row of [contextual (B * C); history (T); candidates (B)].
        history_base = samples * contextual + history_offsets[:-1] - contextual
        source = self.index + history_base[self.sample]
        source = torch.where(self.index < contextual, self.sample * contextual + self.index, source)
        self.candidates = self.offsets[1:] - 1  # (B), sequence row of the candidate
        source[self.candidates] = samples * contextual + int(history_offsets[-1]) + sample
        self.source = source
        self.padded_row = self.sample * self.longest + self.index  # (S), row in a (B * longest) matrix


def linear(x, weight, bias):
    return torch.addmm(bias, x, weight)


def layer_norm(x, weight, bias, epsilon):
    return F.layer_norm(x, (x.shape[-1],), weight, bias, epsilon)


def swish_layer_norm(x, weight, bias, epsilon):
    return x * torch.sigmoid(layer_norm(x, weight, bias, epsilon))


def attention_jagged(v, q, k, offsets, alpha, scale):
    """O_i = sum over j <= i of silu(alpha <q_i, k_j>) scale_sample v_j, for every sample and head.

    v (S, H, d_v), q and k (S, H, d), offsets (B + 1), scale (B); returns (S, H, d_v).
    """
    outputs = []
    for sample in range(offsets.numel() - 1):
        rows = slice(int(offsets[sample]), int(offsets[sample + 1]))
        scores = alpha * torch.einsum("ihd,jhd->hij", q[rows], k[rows])
        weights = torch.tril(F.silu(scores)) * scale[sample]
        outputs.append(torch.einsum("hij,jhd->ihd", weights, v[rows]))
    return torch.cat(outputs)


def attention_padded(v, q, k, layout, alpha, scale):
    """The same with every sample padded to the longest: what batched dense products can do."""
    samples, longest = layout.lengths.numel(), layout.longest

    def pad(x):  # (S, H, d) -> (B, H, longest, d)
        heads, size = x.shape[1:]
        padded = x.new_zeros(samples * longest, heads, size).index_copy_(0, layout.padded_row, x)
        return padded.view(samples, longest, heads, size).transpose(1, 2)

    # Padding comes after every real token, so the causal mask hides it too.
    mask = torch.ones(longest, longest, dtype=v.dtype).tril_() * scale[0]
    scores = pad(q * alpha) @ pad(k).transpose(2, 3)
    weights = F.silu(scores).mul_(mask)
    output = (weights @ pad(v)).transpose(1, 2).reshape(samples * longest, *v.shape[1:])
    return output.index_select(0, layout.padded_row)


def gate(u, o, weight, bias, epsilon):
    """u (S, E) before its silu, o (S, E) attention output; returns [silu(u), o, silu(u) LN(o)] (S, 3 E)."""
    u = F.silu(u)
    return torch.cat([u, o, u * layer_norm(o, weight, bias, epsilon)], dim=1)


def token_positions(layout, positions):
    """Row of the position table: contextual token n at n, the candidate at C, older events further up."""
    c = layout.contextual
    last = (layout.lengths - 1)[layout.sample]
    age = (last - layout.index + c).clamp(max=positions - 1)
    return torch.where(layout.index < c, layout.index, age)


def time_buckets(times, query_times, buckets):
    """Row of the time table: floor(sqrt(minutes before the query)), at most `buckets`. Seconds in, in fp64."""
    seconds = (query_times - times).to(torch.float64).clamp(min=1e-6)
    return torch.sqrt(seconds / 60).floor().to(torch.int64).clamp(0, buckets)


def position_time(x, positions, buckets, position_table, time_table):
    rows = F.embedding(positions, position_table) + F.embedding(buckets, time_table)
    return x * math.sqrt(x.shape[1]) + rows


def action_features(actions, bits, table, target, candidates):
    """(T, bits * 8) of the history's action bits, then `candidates` copies of the target row."""
    active = (actions[:, None] & torch.tensor(bits)) > 0  # (T, bits)
    history = (active[:, :, None] * table).flatten(1)
    return torch.cat([history, target.expand(candidates, -1)])


def contextual_tokens(rows, weight, bias):
    """rows (C, B, E), weight (C, E, D), bias (C, D); returns (B, C, D)."""
    return torch.baddbmm(bias[:, None, :], rows, weight).transpose(0, 1)


def clock_features(times, pi, dtype):
    """(B, 4): cos and sin of the hour of the day, cos and sin of the day of the week."""
    hour = (times // 3600 % 24).to(dtype) / 24 * 2 * pi
    day = (times // 86400 % 7).to(dtype) / 7 * 2 * pi
    return torch.stack([hour.cos(), hour.sin(), day.cos(), day.sin()], dim=1)
