"""Checks of the PyTorch form itself: what golden values are worth depends on them."""

import dataclasses
import itertools

import torch

import hstu_operations as ops
import hstu_torch as hstu

FULL_PARAMETERS = 15_243_057  # dense parameters of the benchmark's configuration


def random_batch(lengths, config, seed, items=20):
    random = torch.Generator().manual_seed(seed)

    def integers(high, *shape):
        return torch.randint(high, shape, generator=random)

    tokens, samples = sum(lengths), len(lengths)
    offsets = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()])
    return hstu.Batch(
        history_offsets=offsets,
        history_item=integers(items, tokens),
        history_action=integers(8, tokens),
        history_time=1_000_000 + integers(3600, tokens).cumsum(0),
        candidate_item=integers(items, samples),
        candidate_time=200_000_000 + integers(3600, samples),
        label=integers(2, samples).double(),
        items=torch.arange(items),
        attributes=[integers(items, items) for _ in range(config.attributes)],
        context=[integers(items, samples) for _ in range(config.contextual)],
    )


def random_rows(batch, config, seed, dtype, std):
    random = torch.Generator().manual_seed(seed)

    def rows(count):
        return (std * torch.randn(count, config.table_dim, generator=random, dtype=dtype)).requires_grad_()

    count = batch.items.numel()
    return rows(count), [rows(count) for _ in batch.attributes], [rows(batch.samples) for _ in batch.context]


def run(ranker, batch, item, attributes, context):
    return ranker(batch, *hstu.expand_rows(batch, item, attributes), context)


def tiny(**changes):
    sizes = {"dim": 12, "table_dim": 10, "layers": 2, "heads": 2, "qk_dim": 6, "value_dim": 5, "preprocessor_hidden": 9,
             "item_hidden": 11, "head_hidden": 7, "contextual": 2, "positions": 16, "time_buckets": 30,
             "max_sequence_length": 20}  # fmt: skip
    return hstu.Config(**{**sizes, **changes})


def check_full_size():
    config = hstu.Config()
    torch.manual_seed(1)
    ranker = hstu.Ranker(config)
    count = sum(parameter.numel() for parameter in ranker.parameters())
    assert count == FULL_PARAMETERS, f"expected {FULL_PARAMETERS} parameters, found {count}"
    batch = random_batch([40, 0, 100, 7] * 16, config, seed=2)
    with torch.no_grad():
        logits = run(ranker, batch, *random_rows(batch, config, 3, torch.float32, std=3e-4))
        loss = float(ranker.loss(logits, batch.label))
    assert abs(loss - 0.1386) < 0.004, f"expected an initial loss of about 0.1386, found {loss}"
    return f"{count} parameters, initial loss {loss:.4f}"


def check_layout():
    """Two samples with 0 and 2 events behind one contextual token, written out by hand."""
    layout = ops.Layout(torch.tensor([0, 0, 2]), contextual=1)
    # Rows of [2 contextual tokens, 2 events, 2 candidates], in the order of the sequence.
    assert layout.source.tolist() == [0, 4, 1, 2, 3, 5], layout.source
    assert layout.candidates.tolist() == [1, 5], layout.candidates
    assert ops.token_positions(layout, 3).tolist() == [0, 1, 0, 2, 2, 1]
    assert ops.token_positions(layout, 9).tolist() == [0, 1, 0, 3, 2, 1]
    times, query = torch.tensor([0, 60, 239, 240, 500]), torch.tensor(480)
    assert ops.time_buckets(times, query, 9).tolist() == [2, 2, 2, 2, 0]
    assert ops.time_buckets(times, query, 1).tolist() == [1, 1, 1, 1, 0]
    return "as by hand"


def check_attention():
    """Against three loops over the formula."""
    random = torch.Generator().manual_seed(13)
    offsets, alpha, scale = torch.tensor([0, 3, 3, 8]), 0.6, torch.tensor([0.5, 1, 0.25]).double()
    v, q, k = (torch.randn(8, 2, 4, generator=random, dtype=torch.float64) for _ in range(3))
    expected = torch.zeros_like(v)
    for sample, (begin, end) in enumerate(itertools.pairwise(offsets)):
        for i in range(begin, end):
            for j in range(begin, i + 1):
                score = alpha * (q[i] * k[j]).sum(dim=1)
                weight = score / (1 + torch.exp(-score)) * scale[sample]
                expected[i] += weight[:, None] * v[j]
    worst = float((ops.attention_jagged(v, q, k, offsets, alpha, scale) - expected).abs().max())
    assert worst < 1e-14, f"attention differs from its formula by {worst}"
    return f"worst difference {worst:.1e}"


def check_finite_differences():
    """The derivative along a random direction of every parameter and row against a central difference."""
    worst = 0.0
    for config in (tiny(), tiny().with_reference_quirks(), tiny(attributes=0, contextual=0)):
        torch.manual_seed(4)
        ranker = hstu.Ranker(config).double()
        batch = random_batch([0, 1, 6, 13], config, seed=5)
        item, attributes, context = random_rows(batch, config, 6, torch.float64, std=1.0)
        leaves = [*ranker.parameters(), item, *attributes, *context]

        def loss(ranker=ranker, batch=batch, rows=(item, attributes, context)):
            return ranker.loss(run(ranker, batch, *rows), batch.label)

        grads = torch.autograd.grad(loss(), leaves)
        step = 1e-5
        for leaf, grad in zip(leaves, grads, strict=True):
            direction = torch.randn_like(leaf)
            with torch.no_grad():
                leaf += step * direction
                above = loss()
                leaf -= 2 * step * direction
                below = loss()
                leaf += step * direction
            expected = float((above - below) / (2 * step))
            error = abs(expected - float((grad * direction).sum())) / (abs(expected) + 1e-4)
            worst = max(worst, error)
    assert worst < 1e-5, f"gradients differ from finite differences by {worst}"
    return f"worst relative error {worst:.1e}"


def check_padded_equals_jagged():
    worst = 0.0
    for config in (tiny(), tiny().with_reference_quirks()):
        batch = random_batch([0, 1, 6, 13], config, seed=7)
        results = []
        for attention in ("jagged", "padded"):
            torch.manual_seed(8)
            ranker = hstu.Ranker(dataclasses.replace(config, attention=attention)).double()
            item, attributes, context = random_rows(batch, config, 9, torch.float64, std=1.0)
            logits = run(ranker, batch, item, attributes, context)
            loss = ranker.loss(logits, batch.label)
            results.append([logits, *torch.autograd.grad(loss, [*ranker.parameters(), item])])
        for jagged, padded in zip(*results, strict=True):
            worst = max(worst, float((jagged - padded).detach().abs().max()))
    assert worst < 1e-12, f"padded and jagged attention differ by {worst}"
    return f"worst difference {worst:.1e}"


def check_samples_are_independent():
    """By default a sample's logit does not depend on its neighbours; with the reference's scale it does."""
    differences = []
    for config in (tiny(), tiny().with_reference_quirks()):
        torch.manual_seed(10)
        ranker = hstu.Ranker(config).double()
        batch = random_batch([3, 12], config, seed=11)
        item, attributes, context = random_rows(batch, config, 12, torch.float64, std=1.0)
        both = run(ranker, batch, item, attributes, context)
        alone = dataclasses.replace(
            batch, history_offsets=batch.history_offsets[:2], history_item=batch.history_item[:3],
            history_action=batch.history_action[:3], history_time=batch.history_time[:3],
            candidate_item=batch.candidate_item[:1], candidate_time=batch.candidate_time[:1],
            label=batch.label[:1])  # fmt: skip
        single = run(ranker, alone, item, attributes, [rows[:1] for rows in context])
        differences.append(float((both[0] - single[0]).abs().detach()))
    assert differences[0] < 1e-12 and differences[1] > 1e-6, differences
    return f"default {differences[0]:.1e}, longest_in_batch {differences[1]:.1e}"


def main():
    for check in (check_layout, check_attention, check_full_size, check_finite_differences,
                  check_padded_equals_jagged, check_samples_are_independent):  # fmt: skip
        print(f"{check.__name__}: {check()}", flush=True)
    return 0
