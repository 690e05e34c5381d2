"""The DLRMv4 ranker in plain PyTorch, written from its formulas: the source of golden values and the
rival of the speed comparison. Any floating-point type, no padding outside the padded form of attention.

Alphabet of the shapes: B samples, T history tokens in all, s_i tokens of sample i, S = sum of s_i,
C contextual tokens a sample, D model width, E width of a table row, H heads, d head size.
A sample is [C contextual tokens, its history oldest first, 1 candidate]: s_i = C + history + 1.
Weights have shape (in, out): y = x W + b.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import hstu_operations as ops

NORM_EPSILON = 1e-5  # norms of the preprocessor, item network, head and postprocessor
LAYER_NORM_EPSILON = 1e-6  # both norms of an HSTU layer


@dataclass(frozen=True)
class Config:
    dim: int = 512  # D
    table_dim: int = 512  # E
    layers: int = 3
    heads: int = 4  # H
    qk_dim: int = 128  # d of queries and keys
    value_dim: int = 128  # d of U and V
    preprocessor_hidden: int = 256
    item_hidden: int = 512
    head_hidden: int = 512
    action_bits: tuple = (1, 2, 4)
    action_dim: int = 8
    attributes: int = 2  # item attributes with a table of their own
    contextual: int = 8  # C
    positions: int = 8192
    time_buckets: int = 2048  # the time table has one row more
    max_sequence_length: int = 4096
    loss_weight: float = 0.2
    input_dropout: float = 0.0
    layer_dropout: float = 0.0
    # What attention is divided by: "length_limit" = max_sequence_length, so that a sample's result depends on
    # the sample alone; "longest_in_batch" = the longest sample of the batch, the reference's habit.
    attention_scale: str = "length_limit"
    # Time of the candidate token: "candidate" = its own; "last_event" = the last event of the history.
    query_time: str = "candidate"
    pi: float = math.pi  # the reference has 3.14
    attention: str = "jagged"  # "jagged" (a loop over samples) or "padded" (one dense square a head)

    def with_reference_quirks(self):
        return Config(**{**vars(self), "attention_scale": "longest_in_batch", "query_time": "last_event", "pi": 3.14})


@dataclass
class Batch:
    """The arrays of src/hstu/batching/batch.h as torch tensors."""

    history_offsets: torch.Tensor  # (B + 1)
    history_item: torch.Tensor  # (T) index into items
    history_action: torch.Tensor  # (T) action bits
    history_time: torch.Tensor  # (T) seconds
    candidate_item: torch.Tensor  # (B) index into items
    candidate_time: torch.Tensor  # (B) seconds
    label: torch.Tensor  # (B) 0 or 1
    items: torch.Tensor  # (I) ids of the distinct items
    attributes: list = field(default_factory=list)  # [attribute](I) ids
    context: list = field(default_factory=list)  # [feature](B) ids

    @staticmethod
    def from_arrays(arrays):
        """arrays: {name: numpy array}; the lists are named attributes.<i> and context.<i>."""

        def many(prefix):
            count = sum(name.startswith(prefix + ".") for name in arrays)
            return [torch.from_numpy(arrays[f"{prefix}.{i}"].astype(np.int64)) for i in range(count)]

        names = ["history_offsets", "history_item", "history_action", "history_time", "candidate_item",
                 "candidate_time", "items"]  # fmt: skip
        return Batch(
            **{name: torch.from_numpy(arrays[name].astype(np.int64)) for name in names},
            label=torch.from_numpy(arrays["label"].astype(np.float64)),
            attributes=many("attributes"),
            context=many("context"),
        )

    @property
    def samples(self):
        return self.candidate_item.numel()

    def token_items(self):
        """(T + B): index into items of every history token, then of every candidate."""
        return torch.cat([self.history_item, self.candidate_item])


class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return ops.linear(x, self.weight, self.bias)


class LayerNorm(nn.Module):
    def __init__(self, size, epsilon=NORM_EPSILON):
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, x):
        return ops.layer_norm(x, self.weight, self.bias, self.epsilon)


class SwishLayerNorm(LayerNorm):
    def forward(self, x):
        return ops.swish_layer_norm(x, self.weight, self.bias, self.epsilon)


class Mlp(nn.Sequential):
    """Linear "0", SwishLayerNorm "swish", Linear "1" and, if asked for, LayerNorm "norm"."""

    def __init__(self, inputs, hidden, outputs, norm=True):
        super().__init__()
        self.add_module("0", Linear(inputs, hidden))
        self.add_module("swish", SwishLayerNorm(hidden))
        self.add_module("1", Linear(hidden, outputs))
        if norm:
            self.add_module("norm", LayerNorm(outputs))


class ActionEncoder(Mlp):
    def __init__(self, bits, size, hidden, outputs):
        super().__init__(len(bits) * size, hidden, outputs)
        self.bits = bits
        self.table = nn.Parameter(torch.empty(len(bits), size))
        self.target = nn.Parameter(torch.empty(1, len(bits) * size))

    def forward(self, actions, candidates):
        return super().forward(ops.action_features(actions, self.bits, self.table, self.target, candidates))


class Contextual(nn.Module):
    def __init__(self, features, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(features, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(features, outputs))

    def forward(self, rows):
        return ops.contextual_tokens(rows, self.weight, self.bias)


class Preprocessor(nn.Module):
    def __init__(self, config):
        super().__init__()
        c, hidden = config, config.preprocessor_hidden
        self.content = Mlp(c.table_dim, hidden, c.dim)
        self.additional = Mlp(c.attributes * c.table_dim, hidden, c.dim) if c.attributes else None
        self.action = ActionEncoder(c.action_bits, c.action_dim, hidden, c.dim)
        self.contextual = Contextual(c.contextual, c.table_dim, c.dim) if c.contextual else None

    def forward(self, batch, layout, item, attributes, context):
        """item (T + B, E), attributes [(T + B, E)], context [(B, E)]; returns the sequence (S, D)."""
        tokens = self.content(item)
        if self.additional:
            tokens = tokens + self.additional(torch.cat(attributes, dim=1))
        tokens = tokens + self.action(batch.history_action, batch.samples)
        if self.contextual:
            tokens = torch.cat([self.contextual(torch.stack(context)).flatten(0, 1), tokens])
        return tokens.index_select(0, layout.source)


class Encoder(nn.Module):
    """Adds position and time; drops inputs while training."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.position = nn.Parameter(torch.empty(config.positions, config.dim))
        self.time = nn.Parameter(torch.empty(config.time_buckets + 1, config.dim))

    def forward(self, x, batch, layout, query_times):
        times = torch.cat([batch.history_time.new_zeros(batch.samples * layout.contextual),
                           batch.history_time, query_times])[layout.source]  # fmt: skip
        positions = ops.token_positions(layout, self.config.positions)
        buckets = ops.time_buckets(times, query_times[layout.sample], self.config.time_buckets)
        x = ops.position_time(x, positions, buckets, self.position, self.time)
        return F.dropout(x, self.config.input_dropout, self.training)


class HstuLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        values, keys = config.heads * config.value_dim, config.heads * config.qk_dim
        self.input_norm = LayerNorm(config.dim, LAYER_NORM_EPSILON)
        self.uvqk = Linear(config.dim, 2 * values + 2 * keys)
        self.output_norm = LayerNorm(values, LAYER_NORM_EPSILON)
        self.output = nn.Module()
        self.output.weight = nn.Parameter(torch.empty(3 * values, config.dim))

    def forward(self, x, layout, scale):
        """x (S, D), scale (B) what the attention of a sample is multiplied by; returns (S, D)."""
        c = self.config
        values, keys = c.heads * c.value_dim, c.heads * c.qk_dim
        u, v, q, k = self.uvqk(self.input_norm(x)).split([values, values, keys, keys], dim=1)
        v, q, k = (part.unflatten(1, (c.heads, -1)) for part in (v, q, k))
        alpha = 1 / math.sqrt(c.qk_dim)
        if c.attention == "padded":
            o = ops.attention_padded(v, q, k, layout, alpha, scale)
        else:
            o = ops.attention_jagged(v, q, k, layout.offsets, alpha, scale)
        cat = ops.gate(u, o.flatten(1), self.output_norm.weight, self.output_norm.bias, LAYER_NORM_EPSILON)
        # One draw over the three blocks: every element has a mask of its own.
        cat = F.dropout(cat, c.layer_dropout, self.training)
        return torch.addmm(x, cat, self.output.weight)


class Postprocessor(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.pi = config.pi
        self.linear = Linear(config.dim + 4, config.dim)
        self.norm = LayerNorm(config.dim)

    def forward(self, x, times):
        return self.norm(self.linear(torch.cat([x, ops.clock_features(times, self.pi, x.dtype)], dim=1)))


class Ranker(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.preprocessor = Preprocessor(config)
        self.encoder = Encoder(config)
        self.layers = nn.ModuleList(HstuLayer(config) for _ in range(config.layers))
        self.postprocessor = Postprocessor(config)
        self.item = Mlp((1 + config.attributes) * config.table_dim, config.item_hidden, config.dim)
        self.head = Mlp(config.dim, config.head_hidden, 1, norm=False)
        self.initialise()

    @torch.no_grad()
    def initialise(self):
        """Norm weights 1 and biases 0 are set already."""
        for name, module in self.named_modules():
            if isinstance(module, Linear):
                xavier_normal = name.startswith(("preprocessor", "postprocessor"))
                (nn.init.xavier_normal_ if xavier_normal else nn.init.xavier_uniform_)(module.weight)
            elif isinstance(module, HstuLayer):
                nn.init.xavier_uniform_(module.output.weight)
            elif isinstance(module, Contextual):
                nn.init.normal_(module.weight, std=math.sqrt(2 / sum(module.weight.shape[1:])))
            elif isinstance(module, ActionEncoder):
                nn.init.normal_(module.table, std=0.1)
                nn.init.normal_(module.target, std=0.1)
        for table, rows in ((self.encoder.position, self.config.positions),
                            (self.encoder.time, self.config.time_buckets)):  # fmt: skip
            nn.init.uniform_(table, -math.sqrt(1 / rows), math.sqrt(1 / rows))

    def query_times(self, batch):
        """(B): the time of the candidate token."""
        if self.config.query_time == "candidate":
            return batch.candidate_time
        begin, end = batch.history_offsets[:-1], batch.history_offsets[1:]
        last = torch.cat([batch.history_time, batch.history_time.new_zeros(1)])[end - 1]
        return torch.where(end > begin, last, batch.candidate_time)

    def forward(self, batch, item, attributes, context):
        """item (T + B, E) and attributes [(T + B, E)]: rows of every history token, then of every candidate;
        context [(B, E)]. Returns the logits (B)."""
        c = self.config
        layout = ops.Layout(batch.history_offsets, c.contextual)
        query_times = self.query_times(batch)
        longest = c.max_sequence_length if c.attention_scale == "length_limit" else layout.longest
        scale = item.new_full((batch.samples,), 1 / longest)
        x = self.preprocessor(batch, layout, item, attributes, context)
        x = self.encoder(x, batch, layout, query_times)
        for layer in self.layers:
            x = layer(x, layout, scale)
        user = self.postprocessor(x.index_select(0, layout.candidates), query_times)
        candidates = slice(batch.history_item.numel(), None)
        item = self.item(torch.cat([rows[candidates] for rows in (item, *attributes)], dim=1))
        return self.head(user * item).squeeze(1)

    def loss(self, logits, label):
        return self.config.loss_weight * F.binary_cross_entropy_with_logits(logits, label.to(logits.dtype))


def expand_rows(batch, item_rows, attribute_rows):
    """Rows of distinct items (I, E) to the rows of all history tokens and candidates (T + B, E)."""
    index = batch.token_items()
    return F.embedding(index, item_rows), [F.embedding(index, rows) for rows in attribute_rows]


def laptop_config(**changes):
    """The small configuration of the speed comparison: reference preprocessor, encoder and heads."""
    return Config(**{"dim": 64, "table_dim": 64, "layers": 2, "heads": 2, "qk_dim": 32, "value_dim": 32, **changes})
