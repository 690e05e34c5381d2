"""Whole runs on generated events: their logs under the official rules with the constants of these data, and the logs
of runs that were killed, ran out of luck in a rank, or were resumed.

    python3 tests/mlperf/wiring_test.py BUILD      BUILD has hstu and hstu-prepare
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import official_tools as official

BATCH, FRACTION, SKIPPED, TARGET, WARMUP, RATE, LONGEST = 32, 0.05, 0.2, 0.76, 20, 0.02, 32
CONFIG = f"""
mlperf = true
device = "host"
[data]
path = "dataset"
history_length = 24
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
rows = 10001
[model]
embedding_dim = 8
dim = 8
layers = 1
heads = 1
head_dim = 8
preprocessor_hidden = 8
head_hidden = 8
positions = {LONGEST}
max_sequence = {LONGEST}
input_dropout = 0.1
layer_dropout = 0.1
[training]
batch_size = {BATCH}
drop_last = true
[dense_optimizer]
learning_rate = {RATE}
beta1 = 0.95
[sparse_optimizer]
learning_rate = {RATE}
[schedule]
warmup_steps = {WARMUP}
[evaluation]
holdout_windows = 1
batch_size = 256
every_data_fraction = {FRACTION}
skip_until_fraction = {SKIPPED}
target_auc = {TARGET}
[checkpoint]
every_steps = 7
every_seconds = 0
[metrics]
every_steps = 5
[submission]
organization = "example"
platform = "generated"
rules = "stand_in"
"""


class Test:
    def __init__(self, build, folder):
        self.hstu, self.folder = build / "hstu", folder
        self.config = folder / "config.toml"
        self.config.write_text(CONFIG.replace('"dataset"', f'"{folder}/dataset"'))

    def run(self, *words, status=0):
        command = [str(self.hstu), *(str(word) for word in words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def make_data(self):
        self.run(
            "generate",
            "yambda",
            "--users",
            60,
            "--days",
            12,
            "--items",
            300,
            "--seed",
            1,
            "--output",
            self.folder / "events",
        )
        self.run(
            "prepare",
            "yambda",
            "--input",
            self.folder / "events",
            "--output",
            self.folder / "dataset",
            "--test-days",
            0,
            "--min-history",
            0,
        )

    def train(self, name, *words, status=0):
        return self.run("train", self.config, "--threads", 1, "--output", self.folder / name, *words, status=status)

    def log(self, name):
        return self.folder / name / "mlperf" / "result_0.txt"

    def events(self, name):
        return [json.loads(line[len(":::MLLOG ") :]) for line in self.log(name).read_text().splitlines()]

    def timeless(self, name):
        return re.sub(r'"time_ms": \d+', "", self.log(name).read_text())

    # The official rules with the constants of these data.
    def rules(self):
        counts = {event["key"]: event["value"] for event in self.events("run_1")}
        folder = self.folder / "training_6.1.0"
        folder.mkdir()
        official_rules = official.FOLDER / "mlperf_logging/compliance_checker/training_6.1.0"
        replacements = [
            ("training_6.1.0/", f"{folder}/"),
            ("2290835423", counts["train_samples"]),
            ("2058204", counts["eval_samples"]),
            ("4096", LONGEST),
            ("24000", WARMUP),
            ("0.75", TARGET),
            ("(4480 * v['value'] + 135331840) / 3", f"{SKIPPED} * s['train_samples']"),
            ("0.5e-6 * v['value'] / 8192", 0.5 * RATE),
            ("1.5e-6 * v['value'] / 8192", 1.5 * RATE),
            ("0.001", FRACTION),
        ]
        for file in official_rules.glob("*.yaml"):
            text = file.read_text()
            for old, new in replacements:
                text = text.replace(old, str(new))
            (folder / file.name).write_text(text)
        return folder / "common.yaml"

    def test_logs_comply_with_the_constants_of_the_data(self):
        # Seeds of their own, and four runs instead of ten.
        results = self.folder / "results"
        results.mkdir()
        for seed in range(1, 5):
            text = self.train(f"run_{seed}", "--set", f"seed={seed}")
            assert "initialisation took" in text, text
            (results / f"result_{seed}.txt").write_text(self.log(f"run_{seed}").read_text())
        rules = self.rules()
        converged = []
        for seed in range(1, 5):
            verdict, why = official.complies(self.log(f"run_{seed}"), rules)
            assert verdict, why
            stop = self.events(f"run_{seed}")[-1]
            assert stop["metadata"]["status"] == "success", stop
            converged.append(stop["metadata"]["samples_count"])
        steps = [
            event["metadata"]["samples_count"] % BATCH
            for event in self.events("run_1")
            if "samples_count" in event["metadata"]
        ]
        assert not any(steps), steps
        custom = self.folder / "rcps.json"
        custom.write_text(
            json.dumps(
                {"own": {"Benchmark": "dlrmv4", "BS": BATCH, "Hyperparams": {}, "Epochs to converge": converged}}
            )
        )
        verdict, message, _ = official.convergence(results, custom)
        assert verdict, message

    def test_nothing_of_the_dataset_is_opened_before_the_clock_starts(self):
        (self.folder / "nothing").mkdir()
        self.train("without_data", "--set", f'data.path="{self.folder}/nothing"', status=2)
        keys = [event["key"] for event in self.events("without_data")]
        assert keys[-3:] == ["init_stop", "run_start", "run_stop"], keys

    def test_a_learner_that_is_not_the_datasets_is_made_again(self):
        # The configuration alone states other bits of these actions than the dataset has.
        actions = 'features.actions=["skip", "like"]'
        text = self.train("other_bits", "--set", actions, "--set", "training.max_steps=2")
        assert "the model is made again" in text, text
        assert self.events("other_bits")[-1]["metadata"]["status"] == "aborted"
        assert "the model is made again" not in self.train("same_bits", "--set", "training.max_steps=2")

    def test_a_resumed_run_has_the_log_of_an_undisturbed_one(self):
        last = self.events("run_1")[-1]["metadata"]["samples_count"] // BATCH
        for name, point, status in [
            ("killed", f"step.end:{last - 4}", -signal.SIGKILL),
            ("ended", f"step.begin:{last - 9}:term", 75),
            ("killed_while_evaluating", "evaluation.batch:2", -signal.SIGKILL),
        ]:
            self.train(name, "--set", "seed=1", "--fault", point, status=status)
            for _ in range(500):
                if self.events(name)[-1]["key"] == "run_stop":
                    break
                time.sleep(0.01)
            stop = self.events(name)[-1]
            assert stop["key"] == "run_stop" and stop["metadata"]["status"] == "aborted", (name, stop)
            self.run("train", "--threads", 1, "--resume", self.folder / name)
            assert self.timeless(name) == self.timeless("run_1"), name

    def test_a_dead_rank_aborts(self):
        words = [
            self.hstu,
            "train",
            self.config,
            "--ranks",
            2,
            "--threads",
            1,
            "--output",
            self.folder / "ranks",
            "--set",
            "seed=1",
            "--set",
            "evaluation.target_auc=0.999",
        ]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen([str(word) for word in words], **quiet) as group:
            while not self.log("ranks").exists() or "block_start" not in self.log("ranks").read_text():
                assert group.poll() is None
                time.sleep(0.01)
            children = pathlib.Path(f"/proc/{group.pid}/task/{group.pid}/children").read_text().split()
            os.kill(int(children[-1]), signal.SIGKILL)
        assert group.returncode != 0
        assert self.events("ranks")[-1]["metadata"]["status"] == "aborted", self.events("ranks")[-1]


def main():
    official.ensure_packages()
    with tempfile.TemporaryDirectory() as folder:
        test = Test(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder))
        test.make_data()
        test.test_logs_comply_with_the_constants_of_the_data()
        test.test_nothing_of_the_dataset_is_opened_before_the_clock_starts()
        test.test_a_learner_that_is_not_the_datasets_is_made_again()
        test.test_a_resumed_run_has_the_log_of_an_undisturbed_one()
        test.test_a_dead_rank_aborts()


main()
