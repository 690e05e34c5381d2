"""Ten tiny runs whose package the unmodified official checkers of MLPerf accept: a rehearsal of the whole way.

    tools/mlperf_rehearsal.py BUILD [--output FOLDER]

Each run trains a small model on generated events. A step counts as one of 32,768 samples in its log, and the lines of
hyperparameters have the benchmark's values (submission.rules = "rehearsal"): that is what the checkers are given, and
why this is never a result. The AUC is that of the run.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "mlperf"))
import official_tools as official  # noqa: E402

RUNS = 10
CONFIG = """# A rehearsal: the AUC rises slowly enough to reach 0.75 where the benchmark's does.
mlperf = true
seed = "random"
device = "host"
[data]
path = "DATASET"
history_length = 16
history_strategy = "last_n"
min_history = 0
window_seconds = 86400
shuffle_fraction = 1.0
[features]
item_rows = 301
actions = ["listen_plus", "like", "skip"]
[[features.context]]
name = "user"
keys = ["user"]
hashed = false
rows = 100001
[model]
embedding_dim = 16
dim = 16
layers = 1
heads = 1
head_dim = 16
preprocessor_hidden = 16
head_hidden = 16
positions = 32
max_sequence = 32
input_dropout = 0.0
layer_dropout = 0.0
[training]
batch_size = 8
drop_last = true
[dense_optimizer]
learning_rate = 1.5e-3
beta1 = 0.95
[sparse_optimizer]
learning_rate = 0.01
[schedule]
warmup_steps = 6000
[evaluation]
holdout_windows = 1
batch_size = 512
every_data_fraction = 0.001
target_auc = 0.75
[checkpoint]
every_seconds = 0
final = false
[metrics]
every_steps = 50
[submission]
organization = "rehearsal"
platform = "tiny"
rules = "rehearsal"
"""


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def make_data(hstu, folder):
    for words in (
        [
            "generate",
            "yambda",
            "--users",
            400,
            "--days",
            30,
            "--items",
            300,
            "--seed",
            1,
            "--output",
            folder / "events",
        ],
        [
            "prepare",
            "yambda",
            "--input",
            folder / "events",
            "--output",
            folder / "dataset",
            "--test-days",
            0,
            "--min-history",
            0,
        ],
    ):
        status, text = run(hstu, *words)
        assert status == 0, text


def train(hstu, folder, number):
    began = time.monotonic()
    name = folder / f"run_{number}"
    status, text = run(hstu, "train", folder / "config.toml", "--output", name)
    assert status == 0, text
    last = json.loads((name / "summary.json").read_text())
    auc = last["eval"]["auc"] if last["eval"] else float("nan")
    print(
        f"run {number}: {last['reason']} at step {last['step']} (evaluation {last['step'] / 70:.2f}), "
        f"AUC {auc:.4f}, {time.monotonic() - began:.0f} s",
        flush=True,
    )
    return name


def main():
    official.ensure_packages()
    parser = argparse.ArgumentParser(prog="./dev mlperf-rehearsal", description=__doc__.split("\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build" / "mlperf-rehearsal")
    parser.add_argument("--runs", type=int, default=RUNS)
    words = parser.parse_args()
    hstu, folder = words.build.resolve() / "hstu", words.output.resolve()
    if folder.exists():
        sys.exit(f"{folder} exists: remove it, or choose another --output")
    folder.mkdir(parents=True)
    make_data(hstu, folder)
    (folder / "config.toml").write_text(CONFIG.replace("DATASET", str(folder / "dataset")))
    runs = [train(hstu, folder, number) for number in range(words.runs)]
    status, text = run(hstu, "mlperf", "pack", *runs, "--output", folder / "rehearsal", "--status", "Preview")
    print(f"\nhstu mlperf pack:\n{text}")
    results = folder / "rehearsal/results/tiny/dlrmv4"
    verdicts = [official.complies(log)[0] for log in sorted(results.glob("result_*.txt"))]
    print(f"mlperf_logging.compliance_checker: {sum(verdicts)} of {len(verdicts)} logs comply")
    accepted, why = official.package(folder / "rehearsal")
    line = next((line for line in why.splitlines() if line.startswith("PACKAGE CHECKER")), why)
    print(f"mlperf_logging.package_checker: {line}")
    passes, message, factor = official.convergence(results)
    print(f"mlperf_logging.rcp_checker: {message}, {'PASSED' if passes else 'FAILED'}, factor {factor:.4f}")
    repository = "ALL CHECKS PASSED" if official.repository(folder / "rehearsal") else "FAILED"
    print(f"mlperf_logging.repo_checker: {repository}")
    minutes = official.score(folder / "rehearsal", folder / "summary.csv")
    print(f"mlperf_logging.result_summarizer: {minutes:.4f} minutes")
    sys.exit(0 if accepted and status == 0 else 1)


main()
