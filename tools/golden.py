"""Writes the golden values of the C++ tests: fp64 inputs, outputs and gradients of every operation and of a
tiny whole model, one safetensors file each. tests/golden/README.md names the tensors.

    python tools/golden.py --output tests/golden
    python tools/golden.py --self-test
"""

import argparse
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F

import hstu_operations as ops
import hstu_torch as hstu
import retrieval_torch as retrieval
import safetensors_io
import self_test


class Numbers:
    """Reproducible inputs, multiples of 1/4096: exact in fp32 too, so that both precisions start equal."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def normal(self, *shape, mean=0.0, std=1.0):
        values = mean + std * self.random.standard_normal(shape)
        return torch.from_numpy(np.round(values * 4096) / 4096)

    def leaf(self, *shape, **parameters):
        return self.normal(*shape, **parameters).requires_grad_()

    def integers(self, low, high, size):
        return torch.from_numpy(self.random.integers(low, high, size))


def gradients(outputs, upstream, leaves):
    """{"d<name>": gradient of sum(outputs * upstream)} of the leaves {name: tensor}."""
    return {"d" + name: grad for name, grad in zip(
        leaves, torch.autograd.grad(outputs, list(leaves.values()), upstream), strict=True)}  # fmt: skip


def with_output(numbers, leaves, y, output="y"):
    """Leaves, output, a random gradient of the output, and from it the gradients of the leaves."""
    dy = numbers.normal(*y.shape)
    return {**leaves, output: y, "d" + output: dy, **gradients(y, dy, leaves)}


def offsets_of(lengths):
    return torch.tensor([0, *np.cumsum(lengths)])


def scalar(value):
    return torch.tensor([value], dtype=torch.int64 if isinstance(value, int) else torch.float64)


def linear():
    n = Numbers(1)
    leaves = {"x": n.leaf(7, 5), "weight": n.leaf(5, 6), "bias": n.leaf(6)}
    return with_output(n, leaves, ops.linear(**leaves))


def norm_leaves(n, rows=6, columns=24):
    return {"x": n.leaf(rows, columns, mean=0.5, std=2), "weight": n.leaf(columns, mean=1, std=0.3),
            "bias": n.leaf(columns, std=0.3)}  # fmt: skip


def layer_norm():
    n = Numbers(2)
    leaves = norm_leaves(n)
    return with_output(n, leaves, ops.layer_norm(**leaves, epsilon=1e-5)) | {"eps": scalar(1e-5)}


def swish_layer_norm():
    n = Numbers(3)
    leaves = norm_leaves(n)
    return with_output(n, leaves, ops.swish_layer_norm(**leaves, epsilon=1e-5)) | {"eps": scalar(1e-5)}


def attention():
    n = Numbers(4)
    heads, size, lengths = 2, 8, [5, 0, 36, 1, 9]
    offsets, width = offsets_of(lengths), heads * size
    uvqk = n.leaf(sum(lengths), 4 * width)
    scale = 1 / torch.tensor([16.0, 8, 40, 1, 16], dtype=torch.float64)
    _, v, q, k = uvqk.split(width, dim=1)
    v, q, k = (part.unflatten(1, (heads, size)) for part in (v, q, k))
    alpha = 1 / math.sqrt(size)
    o = ops.attention_jagged(v, q, k, offsets, alpha, scale).flatten(1)
    d_o = n.normal(*o.shape)
    (duvqk,) = torch.autograd.grad(o, uvqk, d_o)
    _, dv, dq, dk = duvqk.split(width, dim=1)
    return {"uvqk": uvqk, "offsets": offsets, "scale": scale, "alpha": scalar(alpha), "heads": scalar(heads),
            "o": o, "d_o": d_o, "dv": dv, "dq": dq, "dk": dk}  # fmt: skip


def gate():
    n = Numbers(5)
    columns = 16
    leaves = {"u_pre": n.leaf(6, columns), "o": n.leaf(6, columns, std=0.1),
              "weight": n.leaf(columns, mean=1, std=0.3), "bias": n.leaf(columns, std=0.3)}  # fmt: skip
    cat = ops.gate(leaves["u_pre"], leaves["o"], leaves["weight"], leaves["bias"], 1e-6)
    values = with_output(n, leaves, cat, output="cat")
    values["d_o"] = values.pop("do")
    return values | {"eps": scalar(1e-6)}


def set_parameters(n, module):
    """Values that leave no gradient zero: norm weights around 1, biases around 0, products of about unit size."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            inputs = parameter.shape[-2] if parameter.dim() > 1 else 1
            if parameter.dim() == 1:
                is_norm_weight = name.endswith(("norm.weight", "swish.weight"))
                value = n.normal(*parameter.shape, mean=float(is_norm_weight), std=0.3)
            elif name.endswith(("position", "time", "table", "target")):
                value = n.normal(*parameter.shape, std=0.5)
            else:
                value = n.normal(*parameter.shape, std=math.sqrt(1 / inputs))
            parameter.copy_(value)


def module_case(n, module, y, leaves):
    """Adds all parameters of the module, under their names, to the leaves."""
    return with_output(n, {**leaves, **dict(module.named_parameters())}, y)


def hstu_layer():
    n = Numbers(6)
    config = hstu.Config(dim=12, heads=2, qk_dim=8, value_dim=8)
    layer = hstu.HstuLayer(config).double()
    set_parameters(n, layer)
    history_lengths = torch.tensor([2, 0, 9])  # one candidate each and no contextual token: lengths 3, 1, 10
    layout = ops.Layout(offsets_of(history_lengths), contextual=0)
    x = n.leaf(int(layout.offsets[-1]), config.dim)
    scale = 1 / torch.full((3,), 10.0, dtype=torch.float64)
    values = module_case(n, layer, layer(x, layout, scale), {"x": x})
    return values | {"offsets": layout.offsets, "scale": scale, "alpha": scalar(1 / math.sqrt(8)),
                     "heads": scalar(2), "eps": scalar(1e-6)}  # fmt: skip


def position_time():
    n = Numbers(7)
    contextual, dim, positions, buckets = 2, 8, 9, 20
    layout = ops.Layout(offsets_of([0, 3, 11]), contextual)
    times, query_times = [], [1200, 700_000, 50_000]
    for sample, query in enumerate(query_times):
        events = int(layout.lengths[sample]) - contextual - 1
        # Ages in seconds: on the edges of buckets, far beyond the last one, and one event "later" than the query.
        ages = [60 * 20**2 + 59, 60 * 21**2, 30_000, 60 * 13**2, 60 * 13**2 - 1, 4000, 241, 240, 239, 60, -5]
        times += [0] * contextual + [query - age for age in ages[len(ages) - events:]] + [query]  # fmt: skip
    times, query_times = torch.tensor(times), torch.tensor(query_times)
    position_rows = ops.token_positions(layout, positions)
    time_rows = ops.time_buckets(times, query_times[layout.sample], buckets)
    leaves = {"x": n.leaf(len(times), dim), "position": n.leaf(positions, dim), "time": n.leaf(buckets + 1, dim)}
    y = ops.position_time(leaves["x"], position_rows, time_rows, leaves["position"], leaves["time"])
    return with_output(n, leaves, y) | {
        "offsets": layout.offsets, "contextual": scalar(contextual), "times": times,
        "query_times": query_times, "positions": position_rows, "buckets": time_rows}  # fmt: skip


def action_encoder():
    n = Numbers(8)
    bits = (1, 2, 4)
    module = hstu.ActionEncoder(bits, 8, hidden=10, outputs=12).double()
    set_parameters(n, module)
    actions = torch.tensor([1, 0, 2, 4, 5, 7, 1, 3])
    candidates = 3
    values = module_case(n, module, module(actions, candidates), {})
    features = ops.action_features(actions, bits, module.table, module.target, candidates)
    return values | {"actions": actions.to(torch.uint8), "bits": torch.tensor(bits), "features": features,
                     "candidates": scalar(candidates), "eps": scalar(1e-5)}  # fmt: skip


def contextual():
    n = Numbers(9)
    features, samples, inputs, dim = 3, 4, 6, 5
    leaves = {"rows": n.leaf(features, samples, inputs), "weight": n.leaf(features, inputs, dim),
              "bias": n.leaf(features, dim)}  # fmt: skip
    return with_output(n, leaves, ops.contextual_tokens(**leaves))


def timestamp_postprocessor():
    n = Numbers(10)
    times = torch.tensor([0, 3599, 3600, 86_399, 86_400, 13_371_337, 25_999_995])
    module = hstu.Postprocessor(hstu.Config(dim=12)).double()
    set_parameters(n, module)
    x = n.leaf(len(times), 12)
    values = module_case(n, module, module(x, times), {"x": x})
    values["features"] = ops.clock_features(times, math.pi, torch.float64)
    values["features_3.14"] = ops.clock_features(times, 3.14, torch.float64)
    return values | {"times": times, "eps": scalar(1e-5)}


def head_and_loss():
    n = Numbers(11)
    samples, dim = 7, 12
    head = hstu.Mlp(dim, 10, 1, norm=False).double()
    set_parameters(n, head)
    leaves = {"user": n.leaf(samples, dim), "item": n.leaf(samples, dim), **dict(head.named_parameters())}
    label = torch.tensor([1.0, 0, 0, 1, 1, 0, 1], dtype=torch.float64)
    logits = head(leaves["user"] * leaves["item"]).squeeze(1)
    weight = 0.2
    loss_sum = F.binary_cross_entropy_with_logits(logits, label, reduction="sum")
    loss = weight * loss_sum / samples
    values = {**leaves, "label": label, "loss_weight": scalar(weight), "eps": scalar(1e-5), "logits": logits,
              "loss_sum": loss_sum[None], "loss_mean": loss_sum[None] / samples, "loss": loss[None],
              **gradients(loss, None, {"logits": logits, **leaves})}  # fmt: skip
    # The loss alone, where exp() over- or underflows.
    extreme = torch.tensor([0.0, 1, -1, 30, -30, 40, -40, 1000, -1000], dtype=torch.float64).repeat(2)
    extreme.requires_grad_()
    extreme_label = torch.tensor([0.0, 1], dtype=torch.float64).repeat_interleave(9)
    losses = F.binary_cross_entropy_with_logits(extreme, extreme_label, reduction="none")
    (slope,) = torch.autograd.grad(losses.sum(), extreme)
    return values | {"extreme.logits": extreme, "extreme.label": extreme_label, "extreme.loss": losses,
                     "extreme.dlogits": slope}  # fmt: skip


def tiny_config():
    return hstu.Config(dim=16, table_dim=16, layers=2, heads=2, qk_dim=8, value_dim=8, preprocessor_hidden=12,
                       item_hidden=12, head_hidden=12, contextual=3, positions=20, time_buckets=32,
                       max_sequence_length=32)  # fmt: skip


def tiny_batch(n):
    """Four samples with 0, 1, 7 and 20 events; repeated items, all action bits, one sample near time 0."""
    lengths, distinct = [0, 1, 7, 20], 12
    offsets = offsets_of(lengths)
    candidate_time = torch.tensor([13_371_337, 25_000_000, 40_000, 7_654_321])
    history_time = []
    for sample, length in enumerate(lengths):
        gaps = np.maximum(1, n.random.lognormal(6.0, 2.0, length)).astype(np.int64) % 9000
        # The pause before the candidate moves buckets and hours when the query time is the last event's.
        ages = [0, 5000, 400, 20_000][sample] + np.cumsum(gaps[::-1])[::-1]
        history_time.append(candidate_time[sample] - torch.from_numpy(ages))
    return hstu.Batch(
        history_offsets=offsets,
        history_item=n.integers(0, distinct, sum(lengths)),
        history_action=n.integers(0, 8, sum(lengths)),
        history_time=torch.cat(history_time),
        candidate_item=torch.tensor([3, 11, 3, 7]),
        candidate_time=candidate_time,
        label=torch.tensor([1.0, 0, 0, 1], dtype=torch.float64),
        items=torch.sort(n.integers(0, 1000, distinct)).values,
        attributes=[n.integers(0, 50, distinct) for _ in range(2)],
        context=[n.integers(0, 1000, 4) for _ in range(3)],
    )


def model():
    """{file name: tensors}: the inputs, and what the default and the quirky model make of them."""
    n = Numbers(12)
    config, batch = tiny_config(), tiny_batch(n)
    ranker = hstu.Ranker(config).double()
    set_parameters(n, ranker)
    distinct = batch.items.numel()
    rows = {"item_rows": n.leaf(distinct, config.table_dim, std=0.5)}
    rows |= {f"attribute_rows.{i}": n.leaf(distinct, config.table_dim, std=0.5) for i in range(2)}
    rows |= {f"context_rows.{i}": n.leaf(batch.samples, config.table_dim, std=0.5) for i in range(3)}
    leaves = {**dict(ranker.named_parameters()), **rows}

    def outputs(used):
        used_ranker = hstu.Ranker(used).double()
        used_ranker.load_state_dict(ranker.state_dict())
        parameters = dict(used_ranker.named_parameters())
        item, attributes = hstu.expand_rows(batch, rows["item_rows"], [rows[f"attribute_rows.{i}"] for i in (0, 1)])
        logits = used_ranker(batch, item, attributes, [rows[f"context_rows.{i}"] for i in range(3)])
        loss = used_ranker.loss(logits, batch.label)
        grads = torch.autograd.grad(loss, [*parameters.values(), *rows.values()])
        return {"logits": logits, "loss": loss[None],
                **{"gradient." + name: grad for name, grad in zip(leaves, grads, strict=True)}}  # fmt: skip

    many = {f"attributes.{i}": ids for i, ids in enumerate(batch.attributes)}
    many |= {f"context.{i}": ids for i, ids in enumerate(batch.context)}
    single = {name: value for name, value in vars(batch).items() if torch.is_tensor(value)}
    single["history_action"] = single["history_action"].to(torch.uint8)
    return {"model_inputs": {**leaves, **single, **many}, "model": outputs(config),
            "model_quirks": outputs(config.with_reference_quirks())}  # fmt: skip


def random_encoder(n, preset, sizes):
    module = retrieval.Encoder(preset, sizes)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            mean = float(name.endswith("norm.weight"))
            deviation = 1 / math.sqrt(parameter.shape[0]) if name.endswith("weight") and parameter.dim() > 1 else 0.3
            parameter.copy_(n.normal(*parameter.shape, mean=mean, std=deviation))
    return module


def times_of(n, events):
    """Ascending seconds with distances from none to years, and equal times."""
    gaps = torch.exp(n.normal(events, mean=6, std=5)).to(torch.int64) % 40_000_000
    gaps[1::3] = 0
    return gaps.cumsum(0)


def sequence_encoder(preset, seed):
    """An encoder of retrieval: its parameters, the rows of its items, a batch, and a step's gradients."""
    n = Numbers(seed)
    # SASRec's heads share out the width; those of HSTU are of their own size, odd here.
    head_dim = 5 if preset == "sasrec" else 7
    sizes = retrieval.Sizes(dim=10, layers=2, heads=2, head_dim=head_dim, longest=12, positions=12)
    module = random_encoder(n, preset, sizes)
    lengths, items = [6, 0, 1, 12], 9
    item, offsets = n.integers(0, items, sum(lengths)), offsets_of(lengths)
    key_time, query_time = [], []
    for length in lengths:
        times = 1_000_000_000 + times_of(n, length + 1)
        key_time.append(times[:-1])
        query_time.append(times[1:])
    key_time, query_time = torch.cat(key_time), torch.cat(query_time)
    leaves = {"items": n.leaf(items, sizes.dim, std=0.5)}
    y = module(leaves["items"], item, offsets, query_time, key_time)
    batch = {"item": item, "offsets": offsets, "key_time": key_time, "query_time": query_time}
    return module_case(n, module, y, leaves) | batch


# AdamW's update of an element is near the learning rate whatever its gradient, unless epsilon is not small against it:
# with this one an update depends on its gradient's size, and a gradient that is 0 but for rounding changes nothing.
STEP = {"lr": 1e-3, "betas": (0.9, 0.98), "eps": 1e-2, "weight_decay": 0.1}
TEMPERATURE = 0.05


def retrieval_step(preset, seed):
    """A step of training of a retrieval model from a log: losses over all items, and over given negatives."""
    n = Numbers(seed)
    sizes = retrieval.Sizes(dim=8, layers=2, heads=2, head_dim=4, longest=12, positions=12)
    module = random_encoder(n, preset, sizes)
    history, items, negatives, lengths = 10, 12, 4, [7, 1, 2, 11, 14]
    events = n.integers(0, items, sum(lengths))
    events[torch.from_numpy(n.random.permutation(sum(lengths)))[:items]] = torch.arange(items)  # none is missing
    users = list(events.split(lengths))
    times = [1_000_000_000 + times_of(n, length) for length in lengths]
    tokens = [min(length - 1, history) for length in lengths]
    rows = n.leaf(items, sizes.dim, std=0.5)
    drawn = n.integers(0, items, (sum(tokens), negatives))
    item, target, key_time, query_time = (
        torch.cat([of_user[len(of_user) - count - 1 + first : len(of_user) - 1 + first]
                   for of_user, count in zip(of_users, tokens, strict=True)])
        for of_users, first in ((users, 0), (users, 1), (times, 0), (times, 1)))  # fmt: skip
    log = {"user": torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths)), "item": events,
           "time": torch.cat(times), "negatives": drawn, "history_length": scalar(history)}  # fmt: skip
    leaves = {"items": rows, **dict(module.named_parameters())}
    tensors = log | leaves | {key: scalar(STEP[key]) for key in ("lr", "eps", "weight_decay")}
    for kind in ("full", "drawn"):
        vectors = module(rows, item, offsets_of(tokens), query_time, key_time)
        unit = rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp(min=1e-6)
        logits = vectors @ unit.T / TEMPERATURE
        if kind == "drawn":
            positive, others = logits.gather(1, target[:, None]), logits.gather(1, drawn)
            logits = torch.cat([positive, others.masked_fill(drawn == target[:, None], -5e4)], dim=1)
        loss = F.cross_entropy(logits, target if kind == "full" else torch.zeros_like(target))
        grads = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
        after = {name: leaf.detach().clone().requires_grad_() for name, leaf in leaves.items()}
        for name, leaf in after.items():
            leaf.grad = grads[name]
        torch.optim.AdamW(after.values(), **STEP).step()
        tensors |= {f"{kind}.loss": loss[None]} | {f"{kind}.d{name}": grad for name, grad in grads.items()}
        tensors |= {f"{kind}.after.{name}": leaf for name, leaf in after.items()}
    return tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, help="folder for the .safetensors files")
    parser.add_argument("--self-test", action="store_true", help="check the PyTorch form itself, write nothing")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test.main()
    if arguments.output is None:
        parser.error("give --output FOLDER or --self-test")
    operations = [linear, layer_norm, swish_layer_norm, attention, gate, hstu_layer, position_time, action_encoder,
                  contextual, timestamp_postprocessor, head_and_loss]  # fmt: skip
    files = {operation.__name__: operation() for operation in operations} | model()
    for seed, preset in enumerate(retrieval.PRESETS, start=13):
        files[f"sequence_{preset}"] = sequence_encoder(preset, seed)
    for seed, preset in enumerate(retrieval.PRESETS, start=17):
        files[f"retrieval_step_{preset}"] = retrieval_step(preset, seed)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, tensors in files.items():
        path = arguments.output / f"{name}.safetensors"
        metadata = {"made_by": "tools/golden.py"}
        safetensors_io.write(path, {key: value.detach().numpy() for key, value in tensors.items()}, metadata)
        print(f"{path} {path.stat().st_size} bytes, {len(tensors)} tensors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
