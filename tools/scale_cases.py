"""The cases of tools/scale: what each trains, on how many ranks, and what is kept of it."""

import os
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Data:
    """A dataset that the project's own programs generate."""

    name: str
    generate: list[str]  # of hstu generate
    prepare: list[str]  # of hstu prepare, without --input and --output
    seconds: int = 120

    def commands(self, bin_folder, folder):
        events = Path(f"{folder}.events")
        schema = ["--schema", events / "schema.toml"] if self.prepare[0] == "parquet" else []
        return [
            [bin_folder / "hstu-prepare", "generate", *self.generate, "--output", events],
            [bin_folder / "hstu-prepare", *self.prepare, *schema, "--input", events, "--output", folder],
        ]


@dataclass
class Case:
    name: str
    group: str  # cases of a group have the same work for each rank, or the same work in all ("" none)
    ranks: int
    data: Data
    config: str
    settings: dict
    warmup: int = 1  # lines of the log that are not measured
    seconds: int = 60
    least_seconds: int = 15  # not begun with less time left
    resume: tuple = ()  # (ranks, steps) of a second command that resumes
    profiled: tuple = ()  # first and last step
    expected: Callable | None = None  # (status, words) -> what is wrong; None: the status is 0
    disturb: Callable | None = None  # (run) -> what is done to the process of the ranks
    extra: list = field(default_factory=list)

    def commands(self, words, data, run):
        settings = {"data.path": data, "device": words.device, **self.settings}
        settings |= dict(pair.split("=", 1) for pair in words.set)
        sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        ranks = ["--ranks", str(self.ranks)] if self.ranks > 1 else []
        profile = ["--profile", "steps={}:{}".format(*self.profiled)] if self.profiled else []
        hstu = words.bin / "hstu"
        commands = [[hstu, "train", words.configs / self.config, *sets, "--output", run, *ranks, *profile, *self.extra]]
        if self.resume:
            other, steps = self.resume
            more = ["--ranks", str(other)] if other > 1 else []
            commands.append([hstu, "train", "--resume", run, "--set", f"training.max_steps={steps}", *more])
        return commands

    def profile(self, run):
        first, last = self.profiled
        return run / f"trace_{first}_{last}.json", last - first + 1


def processes_of(parent):
    """The processes that it has started, in the order of ranks."""
    children = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            children.append(int(path.parent.name))
    return sorted(children)


def signal_to_last_rank(number):
    """Sends the signal to the last rank when the log has two lines."""

    def of_run(run):
        def work(process):
            log = run / "metrics.jsonl"
            while process.poll() is None:
                if log.exists() and log.read_text().count('"train"') >= 2:
                    os.kill(processes_of(process.pid)[-1], number)
                    return
                time.sleep(0.1)

        return lambda process: threading.Thread(target=work, args=[process], daemon=True).start()

    return of_run


def expects(status, *patterns):
    def missing(found, words):
        if found != status:
            return f"expected status {status}, found {found}: {words[-600:]}"
        for pattern in patterns:
            if not re.search(pattern, words):
                return f'no "{pattern}" in: {words[-600:]}'
        return ""

    return missing


def powers(most):
    ranks = [1]
    while 2 * ranks[-1] <= most:
        ranks.append(2 * ranks[-1])
    return ranks


QUIET = {"checkpoint.final": "false", "checkpoint.every_seconds": 0}
TINY_LAYERS = {
    "model.dim": 16,
    "model.layers": 1,
    "model.heads": 1,
    "model.head_dim": 16,
    "model.embedding_dim": 8,
    "precision": "fp32",
}


class Works:
    """The three works, at the sizes of their benchmarks or tiny."""

    def __init__(self, most, tiny):
        self.most, self.tiny = most, tiny
        users = max(140, 75 * most)
        self.events = Data(
            "yambda",
            f"yambda --users {40 if tiny else users} --days {12 if tiny else 130} --items "
            f"{300 if tiny else 200000} --seed 3 --events-per-user-day {20 if tiny else 50}".split(),
            ["yambda", *(["--test-days", "0", "--min-history", "0"] if tiny else [])],
        )
        longest = 16 if tiny else 4096
        self.zipf_users = 48 if tiny else 768
        self.zipf = Data("zipf", f"random --users {self.zipf_users} --length-high {longest}".split(), ["parquet"])
        self.fixed = Data(
            "fixed",
            f"random --users {16 if tiny else 256} --lengths uniform "
            f"--length-low {longest // 2} --length-high {longest // 2 + 1}".split(),
            ["parquet"],
        )
        most_items = 32 if tiny else 32768
        self.long_users = Data(
            "long",
            f"random --users 6 --lengths uniform --length-low {most_items} --length-high {most_items + 1}".split(),
            ["parquet"],
        )
        self.small = Data(
            "quickstart",
            f"yambda --users {40 if tiny else 500} --days {10 if tiny else 42} --items "
            f"{100 if tiny else 1000} --seed 1".split(),
            ["yambda", "--test-days", "0", "--min-history", "0"],
        )

    def dlrm(self, samples):
        if self.tiny:
            layers = TINY_LAYERS | {"model.action_dim": 4, "model.preprocessor_hidden": 16, "model.head_hidden": 16}
            sizes = layers | {
                "data.history_length": 20,
                "data.min_history": 0,
                "model.positions": 64,
                "model.max_sequence": 64,
                "training.micro_batch_tokens": 200,
                "training.first_window": 6,
                "evaluation.holdout_first_window": 11,
                "training.max_steps": 6,
                "metrics.every_steps": 2,
            }
        else:
            sizes = {
                "data.history_length": 3486,
                "precision": "bf16",
                "training.micro_batch_tokens": 700000,
                "training.first_window": 90,
                "evaluation.holdout_first_window": 116,
                "training.max_steps": 18,
                "metrics.every_steps": 3,
            }
        return (
            QUIET
            | sizes
            | {
                "training.batch_size": samples,
                "evaluation.holdout_windows": 1,
                "evaluation.every_data_fraction": 0,
                "evaluation.max_samples": 64,
                "tables.ranks": "split",
            }
        )

    def ranking(self, samples):
        layers = TINY_LAYERS | {"model.head_hidden": "[16]"} if self.tiny else {}
        return QUIET | layers | {"training.batch_size": samples, "training.drop_last": "true", "tables.ranks": "split"}

    def fixed_ranking(self, samples):
        return self.ranking(samples) | {
            "training.max_steps": 6 if self.tiny else 20,
            "metrics.every_steps": 2 if self.tiny else 4,
        }

    def zipf_ranking(self, samples, lines=3):
        steps = self.zipf_users // samples  # of an epoch, which is a line of the log
        return self.ranking(samples) | {"training.max_steps": steps * (1 + lines), "metrics.every_steps": steps}

    # One user of more than 65,000 tokens in a batch, whom the ranks of a context group share.
    def long(self, context):
        return self.ranking(1) | {
            "data.history_length": 31 if self.tiny else 32767,
            "data.scan_limit": 32768,
            "model.positions": 64 if self.tiny else 65536,
            "ranks.context": context,
            "ranks.context_above": 16 if self.tiny else 16384,
            "training.max_steps": 6,
            "metrics.every_steps": 2,
        }

    # A table of width 256 with Adam, a tenth of whose rows fit the cache; as many rows for each rank on any number.
    def backend(self, ranks):
        users, items = (8, 200) if self.tiny else (448, 7_500_000)
        longest = 16 if self.tiny else 4096
        data = Data(
            f"backend{ranks}",
            f"random --users {users * ranks} --lengths uniform --length-low {longest} "
            f"--length-high {longest + 1} --items {items * ranks}".split(),
            ["parquet"],
        )
        samples = (4 if self.tiny else 32) * ranks
        steps = users * ranks // samples
        cache = (
            {}
            if self.tiny
            else {"tables.item.place": "cache", "tables.item.device_memory": "0.8GiB", "model.embedding_dim": 256}
        )
        return data, self.ranking(samples) | cache | {
            "features.item_rows": items * ranks,
            "training.max_steps": 3 * steps,
            "metrics.every_steps": steps,
        }

    # The same data with rows of 48 KiB, of which the first epoch creates 79 GB for each rank.
    def large(self, ranks):
        data, settings = self.backend(ranks)
        if self.tiny:
            return data, settings
        steps = 448 // 16  # of an epoch
        return data, settings | {
            "model.embedding_dim": 4096,
            "tables.item.device_memory": "12GiB",
            "training.batch_size": 16 * ranks,
            "training.max_steps": 2 * steps,
            "metrics.every_steps": steps // 2,
        }


def all_cases(most, tiny):
    """The most important first: those after the limit of time are left out."""
    works, ranks = Works(most, tiny), powers(most)
    top, cases = ranks[-1], []
    dlrm_batch, ranking_batch = (16, 4) if tiny else (1024, 32)
    ranking, dlrm = "nvidia-ranking-benchmark.toml", "yambda-5b-mlperf.toml"

    def add(name, group, r, data, config, settings, **more):
        cases.append(Case(name, group, r, data, config, settings, **more))

    for r in ranks:
        add(f"dlrm/weak/{r}", "dlrm/weak", r, works.events, dlrm, works.dlrm(dlrm_batch * r), warmup=2)
    for r in ranks:
        add(f"fixed/weak/{r}", "fixed/weak", r, works.fixed, ranking, works.fixed_ranking(ranking_batch * r))
    for r in ranks:
        add(f"zipf/weak/{r}", "zipf/weak", r, works.zipf, ranking, works.zipf_ranking(ranking_batch * r))
    # Heads that ranks share, by the work of fixed/weak; a long user, whom more and more ranks share.
    for r in ranks[1:]:
        if r <= 4:
            heads = {"model.heads": r} if tiny else {}
            add(
                f"fixed/tensor{r}/{top}",
                "",
                top,
                works.fixed,
                ranking,
                works.fixed_ranking(ranking_batch * top) | heads | {"ranks.tensor": r},
            )
    for r in ranks:
        add(f"long/{r}", "long", r, works.long_users, ranking, works.long(r))
    if top >= 4:
        heads = {"model.heads": 2} if tiny else {}
        add(f"long/both/{top}", "", top, works.long_users, ranking, works.long(top // 2) | heads | {"ranks.tensor": 2})
    for balance in ("nvidia", "none"):
        add(
            f"zipf/{balance}/{top}",
            "",
            top,
            works.zipf,
            ranking,
            works.zipf_ranking(ranking_batch * top, 2) | {"training.balance": balance},
        )
    # Few log lines between the measured steps: a profile is of steps that share nothing.
    first = 4 if tiny else 13
    for r in ranks[1:]:
        add(
            f"dlrm/profile/{r}",
            "",
            r,
            works.events,
            dlrm,
            works.dlrm(dlrm_batch * r) | {"training.max_steps": first + 3, "metrics.every_steps": 100},
            profiled=(first, first + 2),
            warmup=0,
        )
        add(
            f"fixed/profile/{r}",
            "",
            r,
            works.fixed,
            ranking,
            works.fixed_ranking(ranking_batch * r) | {"training.max_steps": first + 3, "metrics.every_steps": 100},
            profiled=(first, first + 2),
            warmup=0,
        )
    for r in ranks:
        data, settings = works.backend(r)
        add(f"backend/weak/{r}", "backend/weak", r, data, ranking, settings, seconds=90)
    if top > 1:
        data, settings = works.backend(top)
        add(f"backend/prefetch/{top}", "", top, data, ranking, settings | {"ranks.pipeline": "prefetch"})
    for r in ranks[1:]:
        add(f"dlrm/strong/{r}", "dlrm/strong", r, works.events, dlrm, works.dlrm(dlrm_batch), warmup=2)
        add(f"fixed/strong/{r}", "fixed/strong", r, works.fixed, ranking, works.fixed_ranking(ranking_batch))
    for pipeline in ("sparse", "prefetch") if top > 1 else ():
        add(
            f"dlrm/{pipeline}/{top}",
            "",
            top,
            works.events,
            dlrm,
            works.dlrm(dlrm_batch * top) | {"ranks.pipeline": pipeline},
            warmup=2,
        )
    if top > 1:
        small = {"metrics.every_steps": 2, "tables.ranks": "split", "checkpoint.final": "true"}
        steps = 20 if tiny else 200
        add(
            f"resume/{top}to{top // 2}",
            "",
            top,
            works.small,
            "quickstart.toml",
            small | {"training.max_steps": steps, "metrics.every_steps": steps // 4},
            resume=(top // 2, 2 * steps),
        )
        add(
            f"killed/{top}",
            "",
            top,
            works.small,
            "quickstart.toml",
            small | {"training.epochs": 1000},
            disturb=signal_to_last_rank(signal.SIGKILL),
            warmup=0,
            expected=expects(1, rf"rank {top - 1} was killed by signal 9"),
        )
        add(
            f"stopped/{top}",
            "",
            top,
            works.small,
            "quickstart.toml",
            small | {"training.epochs": 1000, "ranks.timeout": 6 if tiny else 12},
            warmup=0,
            disturb=signal_to_last_rank(signal.SIGSTOP),
            expected=expects(1, rf"waited \d+ s for rank {top - 1}"),
        )
    for wire in ("fp32", "bf16", "fp16") if top > 1 and not tiny else ():
        for seed in (1, 2, 3):
            add(
                f"wire/{wire}/{seed}",
                "",
                2,
                works.small,
                "quickstart.toml",
                {"seed": seed, "tables.ranks": "split", "tables.wire_rows": wire, "tables.wire_gradients": wire}
                | QUIET,
            )
    data, settings = works.large(top)
    add(f"backend/large/{top}", "", top, data, ranking, settings, seconds=250)
    return cases
