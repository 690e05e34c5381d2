"""The rival of `./dev bench cpu`: the training step of the laptop configuration in plain fp32 PyTorch, as a
careful user writes it. One step: distinct ids of each table, gather, forward with padded dense attention and
dropout, backward, clipping, Adam, row-wise Adagrad on the touched rows. Prints one line of JSON.

    python tools/rival.py --steps 60 --warmup 10 --threads 2
    python tools/rival.py --steps 60 --warmup 10 --threads 2 --batch a.safetensors b.safetensors

A batch file (.safetensors or .npz) contains the arrays of src/hstu/batching/batch.h under their names, with
attributes.<i> and context.<i> for the lists. Without files, the same distribution is drawn from --seed.
"""

import argparse
import json
import platform
import resource
import time

import numpy as np
import torch
import torch.nn.functional as F

import hstu_torch as hstu
import safetensors_io

BATCH = 32
HISTORY = (64, 256)  # shortest and longest, uniform
TABLE_ROWS = 100_000
LEARNING_RATE = 1e-6
CLIP_NORM = 1.0


def draw_batch(random, config):
    """The arrays of one batch: uniform lengths, ids uniform over their tables."""
    lengths = random.integers(HISTORY[0], HISTORY[1] + 1, BATCH)
    ids = random.integers(0, TABLE_ROWS, lengths.sum() + BATCH)
    items, index = np.unique(ids, return_inverse=True)
    gaps = random.integers(5, 6 * 3600, lengths.sum())
    arrays = {
        "history_offsets": np.concatenate([[0], lengths.cumsum()]),
        "history_item": index[:-BATCH],
        "history_action": random.choice([1, 2, 4], lengths.sum(), p=[0.62, 0.02, 0.36]).astype(np.uint8),
        "history_time": np.concatenate([1_000_000 + part.cumsum() for part in np.split(gaps, lengths.cumsum()[:-1])]),
        "candidate_item": index[-BATCH:],
        "label": random.integers(0, 2, BATCH),
        "items": items,
    }
    last = arrays["history_offsets"][1:] - 1
    arrays["candidate_time"] = arrays["history_time"][last] + random.integers(5, 3600, BATCH)
    for i in range(config.attributes):
        arrays[f"attributes.{i}"] = random.integers(0, TABLE_ROWS, items.size)
    for i in range(config.contextual):
        arrays[f"context.{i}"] = random.integers(0, TABLE_ROWS, BATCH)
    return arrays


def read_batch(path):
    arrays = safetensors_io.read(path)[0] if path.endswith(".safetensors") else dict(np.load(path))
    for name, ids in arrays.items():
        if name.startswith(("items", "attributes.", "context.")) and ids.size and int(ids.max()) >= TABLE_ROWS:
            raise SystemExit(f"{path}: expected ids below {TABLE_ROWS} in {name}, found {ids.max()}")
    return arrays


class Table:
    """An embedding table with row-wise Adagrad: one accumulator a row, duplicates of a row summed first."""

    def __init__(self, rows, dim):
        bound = rows**-0.5
        self.weight = torch.empty(rows, dim).uniform_(-bound, bound)
        self.squares = torch.zeros(rows)

    def look_up(self, ids):
        """ids (T); returns (T, E), differentiable with respect to the distinct rows."""
        self.distinct, inverse = torch.unique(ids, return_inverse=True)
        self.rows = self.weight.index_select(0, self.distinct).requires_grad_()
        return F.embedding(inverse, self.rows)

    @torch.no_grad()
    def update(self, learning_rate, epsilon=1e-8):
        gradient = self.rows.grad
        squares = self.squares.index_select(0, self.distinct) + gradient.square().mean(dim=1)
        self.squares.index_copy_(0, self.distinct, squares)
        step = gradient * (-learning_rate / (squares.sqrt_() + epsilon))[:, None]
        self.weight.index_add_(0, self.distinct, step)


class Trainer:
    def __init__(self, config):
        self.ranker = hstu.Ranker(config).train()
        self.parameters = list(self.ranker.parameters())
        # PyTorch's fastest form of Adam on a CPU.
        self.adam = torch.optim.Adam(self.parameters, lr=LEARNING_RATE, betas=(0.95, 0.999), eps=1e-8, fused=True)
        self.tables = [Table(TABLE_ROWS, config.table_dim) for _ in range(1 + config.attributes + config.contextual)]

    def step(self, batch):
        index = batch.token_items()
        ids = [batch.items[index], *(attribute[index] for attribute in batch.attributes), *batch.context]
        rows = [table.look_up(column) for table, column in zip(self.tables, ids, strict=True)]
        first_context = 1 + len(batch.attributes)
        self.adam.zero_grad(set_to_none=True)
        logits = self.ranker(batch, rows[0], rows[1:first_context], rows[first_context:])
        loss = self.ranker.loss(logits, batch.label)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, CLIP_NORM, foreach=True)
        self.adam.step()
        for table in self.tables:
            table.update(LEARNING_RATE)
        return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60, help="timed steps")
    parser.add_argument("--warmup", type=int, default=10, help="steps before the timed ones")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", nargs="+", default=[], metavar="FILE", help="batches to take in rotation")
    parser.add_argument("--json", metavar="FILE", nargs="?", help="write the line to FILE too")
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    config = hstu.laptop_config(attention="padded", input_dropout=0.2, layer_dropout=0.1)
    random = np.random.default_rng(arguments.seed)
    arrays = [read_batch(path) for path in arguments.batch] or [draw_batch(random, config) for _ in range(4)]
    batches = [hstu.Batch.from_arrays(each) for each in arrays]
    trainer = Trainer(config)

    times, losses, samples, tokens = [], [], 0, 0
    for step in range(arguments.warmup + arguments.steps):
        batch = batches[step % len(batches)]
        begin = time.perf_counter()
        loss = trainer.step(batch)
        if step >= arguments.warmup:
            times.append(time.perf_counter() - begin)
            losses.append(loss)
            samples += batch.samples
            tokens += batch.history_item.numel() + batch.samples * (config.contextual + 1)
    p10, median, p90 = np.percentile(times, [10, 50, 90]) * 1e3
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if platform.system() == "Darwin" else 1)
    line = json.dumps(
        {
            "program": f"pytorch {torch.__version__}",
            "threads": torch.get_num_threads(),
            "steps": arguments.steps,
            "batch": batches[0].samples,
            "parameters": sum(parameter.numel() for parameter in trainer.parameters),
            "median_ms": round(median, 2),
            "p10_ms": round(p10, 2),
            "p90_ms": round(p90, 2),
            "samples_per_s": round(samples / len(times) / (median / 1e3), 1),
            "tokens_per_s": round(tokens / len(times) / (median / 1e3)),
            "peak_rss_mib": round(peak_kib / 1024),
            "mean_loss": round(float(np.mean(losses)), 6),
        }
    )
    print(line)
    if arguments.json:
        with open(arguments.json, "w") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    main()
