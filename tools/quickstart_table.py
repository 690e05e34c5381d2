"""Prints what ./dev quickstart reached: the model between the baseline and the generator's own probabilities."""

import json
import pathlib
import sys


def main(folder: pathlib.Path) -> None:
    summary = json.loads((folder / "run" / "summary.json").read_text())
    oracle = json.loads((folder / "events" / "truth.json").read_text())["oracle"]
    model = summary["eval"]
    print(f"\n{'listens of the last day':<32} {'AUC':>8} {'NE':>8} {'samples':>8}")
    for name, auc, ne, samples in [
        ("baseline (running rates)", model["baseline_auc"], model["baseline_ne"], model["n"]),
        ("model", model["auc"], model["ne"], model["n"]),
        ("oracle (the generator itself)", oracle["auc"], oracle["ne"], oracle["n"]),
    ]:
        print(f"{name:<32} {auc:8.4f} {ne:8.4f} {samples:8d}")
    closed = 100 * (model["auc"] - model["baseline_auc"]) / (oracle["auc"] - model["baseline_auc"])
    speed = summary["samples_per_s"]
    print(f"The model closes {closed:.0f} % of the gap from baseline to oracle, at {speed:.0f} samples/s.")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
