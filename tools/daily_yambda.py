"""The daily loop on generated Yambda events: 30 days by append against one prepare, and a run that goes on day by day
against one over all days (docs/daily.md has the figures).

    tools/daily_yambda.py FOLDER [--users 200] [--items 600] [--days 30] [--seeds 3] [--threads 1] [--programs build]

FOLDER must not exist. Exits with 1 if an event differs.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable

DAY = 86_400
CONFIG = """
[data]
history_length = 48
history_strategy = "last_n"
min_history = 0
window_seconds = 86400
[features]
[[features.attributes]]
name = "artist_id"
rows = 1000
[[features.context]]
name = "user"
keys = ["user"]
hashed = false
rows = 100_000
[[features.context]]
name = "user_x_artist"
keys = ["user", "artist_id"]
rows = 100_000
[model]
embedding_dim = 32
dim = 32
layers = 2
heads = 2
head_dim = 16
preprocessor_hidden = 64
head_hidden = 64
positions = 128
max_sequence = 128
input_dropout = 0.2
layer_dropout = 0.2
[training]
batch_size = 32
[dense_optimizer]
learning_rate = 2e-3
[sparse_optimizer]
learning_rate = 0.05
[schedule]
warmup_steps = 50
[evaluation]
holdout_seconds = 86400
batch_size = 256
[metrics]
every_steps = 1000
"""


class Loop:
    """One folder with the programs, the log and the datasets."""

    def __init__(self, words: argparse.Namespace) -> None:
        self.words = words
        self.folder: pathlib.Path = words.folder
        self.programs = words.programs.resolve()

    def hstu(self, *words: object) -> str:
        command = [self.programs / "hstu", *map(str, words)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
        return done.stdout

    def prepare(self, *words: object) -> None:
        self.hstu(
            "prepare",
            "yambda",
            "--mappings",
            "events",
            "--test-days",
            0,
            "--min-history",
            0,
            "--train-days",
            10 * self.words.days,
            "--threads",
            self.words.threads,
            *words,
        )

    def split(self) -> None:
        """Writes logs/NN, a folder for each day in the layout of the whole log."""
        lines = self.hstu("prepare", "to-csv", "events/multi_event.parquet").splitlines()
        header, by_day = lines[0], collections.defaultdict(list)
        for line in lines[1:]:
            values = [value or "0" for value in line.split(",")]  # as the schema takes what is missing
            by_day[int(values[1]) // DAY].append(",".join(values))
        integers = [name for name in header.split(",") if name != "event_type"]
        for day, of_day in by_day.items():
            folder = self.folder / "logs" / f"{day:02}"
            folder.mkdir(parents=True)
            subprocess.run(
                [
                    self.programs / "hstu-prepare",
                    "from-csv",
                    folder / "multi_event.parquet",
                    "--integers",
                    *integers,
                    "--texts",
                    "event_type",
                ],
                input="\n".join([header, *of_day]) + "\n",
                text=True,
                check=True,
            )

    def days(self) -> list[pathlib.Path]:
        return sorted((self.folder / "logs").iterdir())

    def append_all(self, dataset: str, after: Callable[[int], None] = lambda day: None) -> float:
        """The seconds that all preparations took together."""
        began, others = time.monotonic(), 0.0
        for number, day in enumerate(self.days()):
            place = ("--output", dataset) if number == 0 else ("--append", dataset)
            self.prepare("--input", day.relative_to(self.folder), *place)
            paused = time.monotonic()
            after(number)
            others += time.monotonic() - paused
        return time.monotonic() - began - others

    def train(self, dataset: str, run: str, seed: int) -> None:
        self.hstu(
            "train",
            "config.toml",
            "--set",
            f"data.path={dataset}",
            "--set",
            f"seed={seed}",
            "--output",
            run,
            "--threads",
            self.words.threads,
        )

    def train_daily(self, seed: int) -> None:
        """Begins with two days, as the latest one is held out, and goes on with each further day."""
        run = f"daily-{seed}"

        def go_on(day: int) -> None:
            if day == 1:
                self.train(f"data-{run}", run, seed)
            elif day > 1:
                self.hstu("train", "--resume", run, "--threads", self.words.threads)

        self.append_all(f"data-{run}", go_on)

    def result(self, run: str) -> dict[str, float]:
        return json.loads((self.folder / run / "summary.json").read_text())["eval"]

    def events(self, dataset: str) -> list[tuple]:
        """Every event as (user, time, values), the events of a user and a second in one order."""
        rows = []
        folders = [self.folder / dataset, *sorted((self.folder / dataset / "segments").glob("*"))]
        for folder in folders:
            users, ends = read_npy(folder / "user_ids.npy"), read_npy(folder / "user_offsets.npy")
            columns = [read_npy(folder / f"{name}.npy") for name in ("timestamp", "item", "action")]
            for number, user in enumerate(users):
                for event in range(ends[number], ends[number + 1]):
                    rows.append((user, *(column[event] for column in columns)))
        return sorted(rows)


def read_npy(path: pathlib.Path) -> memoryview:
    data = path.read_bytes()
    end = 10 + int.from_bytes(data[8:10], "little")
    header = data[10:end].decode()
    kinds = {"'<i8'": "q", "'<i4'": "i", "'|u1'": "B", "'<u4'": "I"}
    kind = next(kind for name, kind in kinds.items() if name in header)
    return memoryview(data)[end:].cast(kind)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build"))
    for name, default in (("users", 200), ("items", 600), ("days", 30), ("seeds", 3), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    words = parser.parse_args()
    words.folder.mkdir(parents=True)
    loop = Loop(words)
    (words.folder / "config.toml").write_text(CONFIG)
    loop.hstu(
        "generate",
        "yambda",
        "--users",
        words.users,
        "--days",
        words.days,
        "--items",
        words.items,
        "--seed",
        1,
        "--output",
        "events",
    )
    loop.split()
    began = time.monotonic()
    loop.prepare("--input", "events", "--output", "whole")
    one = time.monotonic() - began
    appends = loop.append_all("appended")
    whole, appended = loop.events("whole"), loop.events("appended")
    print(
        f"events: {len(whole):,} by one prepare, {len(appended):,} by {len(loop.days()) - 1} appends, "
        f"{'the same' if whole == appended else 'DIFFERENT'} by user and time; "
        f"{one:.1f} s and {appends:.1f} s"
    )
    if whole != appended:
        sys.exit(1)
    for seed in range(1, words.seeds + 1):
        loop.train("whole", f"whole-{seed}", seed)
        loop.train_daily(seed)
        once, daily = loop.result(f"whole-{seed}"), loop.result(f"daily-{seed}")
        print(
            f"seed {seed}: AUC and NE of the last day, {once['n']:,} samples: one run {once['auc']:.4f}, "
            f"{once['ne']:.4f}; day by day {daily['auc']:.4f}, {daily['ne']:.4f}; baseline "
            f"{once['baseline_auc']:.4f}, {once['baseline_ne']:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
