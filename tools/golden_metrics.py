"""Writes tests/golden/metrics.json: metrics by scikit-learn on small, awkward sets of samples.

For developers: python tools/golden_metrics.py (needs numpy and scikit-learn). The tests only read the file.
"""

import json
import pathlib

import numpy as np
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

BINS = 100_000


def draw(seed, n, n_groups, rate, signal, decimals, low=0.0, high=1.0):
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < rate).astype(int)
    logits = rng.normal(size=n) + signal * labels + np.log(rate / (1 - rate))
    scores = low + (high - low) * np.round(1 / (1 + np.exp(-logits)), decimals)
    groups = np.minimum(rng.geometric(2.0 / n_groups, size=n), n_groups) - n_groups // 2
    return scores.astype(np.float32), labels, groups


def measure(scores, labels, groups):
    p = scores.astype(np.float64)
    clamped = np.clip(p, 1e-12, 1 - 1e-12)
    cross_entropy = log_loss(labels, clamped, labels=[0, 1])
    mean = np.full(len(labels), labels.mean())
    by_group = []
    for group in np.unique(groups):
        chosen = groups == group
        if len(set(labels[chosen])) == 2:
            by_group.append((roc_auc_score(labels[chosen], p[chosen]), chosen.sum()))
    values, sizes = np.array(by_group).T
    bins = np.minimum((scores * np.float32(BINS)).astype(np.int64), BINS - 1)
    return {
        "auc": roc_auc_score(labels, p),
        "binned_auc": roc_auc_score(labels, bins),
        "ne": cross_entropy / log_loss(labels, mean, labels=[0, 1]),
        "accuracy": accuracy_score(labels, p >= 0.5),
        "gauc": np.average(values, weights=sizes),
        "gauc_mean": values.mean(),
        "log_loss": cross_entropy,
        "calibration": p.mean() / labels.mean(),
        "n": len(labels),
        "n_pos": int(labels.sum()),
        "n_groups": len(values),
    }


def main():
    cases = {
        "plain": draw(1, 300, 12, 0.4, 1.0, 6),
        "many_ties": draw(2, 300, 12, 0.4, 1.0, 1),
        "few_positives": draw(3, 400, 8, 0.03, 1.5, 5),
        "certain_and_wrong": draw(4, 200, 6, 0.5, 0.3, 0),
        "worse_than_chance": draw(5, 150, 5, 0.6, -1.0, 4),
        "near_one": draw(6, 200, 9, 0.5, 1.0, 7, low=0.9999),
    }
    written = []
    for name, (scores, labels, groups) in cases.items():
        expected = measure(scores, labels, groups)
        written.append(
            {
                "name": name,
                # The shortest digits of each float32, which read back to the same float32.
                "probabilities": [float(str(score)) for score in scores],
                "labels": labels.tolist(),
                "groups": groups.tolist(),
                "expected": {key: v if isinstance(v, int) else float(v) for key, v in expected.items()},
            }
        )
    path = pathlib.Path(__file__).parent.parent / "tests/golden/metrics.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in written) + "\n]\n")


if __name__ == "__main__":
    main()
