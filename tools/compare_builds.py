#!/usr/bin/env python3
"""Trains the same configurations with two builds of hstu and compares what they write, byte for byte.

    tools/compare_builds.py OLD/build NEW/build [--scratch DIR] [--only NAME] [--gpu] [--movielens ml-100k]

Compared are config.toml, all files of all checkpoints, metrics.jsonl and manifests without times, memory and versions,
and every score of `hstu eval --predictions`. A change of structure must print `same` for every case; a change that is
meant to move bits names the cases that it moves in its commit. --gpu runs on the first GPU, with cases of its own.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

# Keys that differ between two runs of one build, or between two builds.
UNSTABLE = {
    "version",
    "commit",
    "checksum",
    "training_s",
    "save_s",
    "eval_s",
    "time_s",
    "left_s",
    "machine",
    "memory_peak_mib",
}
UNSTABLE_ENDS = ("_ms", "_per_s", "tflops", "mfu")

ROWS = ["adam", "adamw", "adagrad", "sgd"]
LIMITS = [
    "tables.user_x_artist.capacity=500",
    "tables.user_x_artist.evict=lru+lfu",
    "tables.user.capacity=60",
    "tables.user.evict=lru",
    "tables.item.admit.after=2",
]
DISK = [
    "tables.disk_folder=DISK",
    "tables.item.place=disk",
    "tables.item.host_memory=64KiB",
    "tables.user_x_artist.place=disk",
    "tables.user_x_artist.host_memory=64KiB",
]

# name: (configuration, ranks, settings). `steps` of each come from main.
CPU_CASES = {
    "quickstart": ("quickstart", 1, []),
    "parts": ("quickstart", 1, ["training.micro_batch_tokens=300", "training.accumulate=2"]),
    "limits": ("quickstart", 1, LIMITS),
    "host": ("quickstart", 1, ["tables.place=host", *LIMITS]),
    "disk": ("quickstart", 1, DISK),
    "bf16-rows": ("quickstart", 1, ["tables.item.dtype=bf16", "tables.user.initial.kind=normal"]),
    "recompute": ("quickstart", 1, ["model.recompute_layer=true", "dense_optimizer.kind=sgd"]),
    **{
        f"rows-{kind}": ("quickstart", 1, [f"sparse_optimizer.kind={kind}", "sparse_optimizer.learning_rate=0.01"])
        for kind in ROWS
    },
    "ranks": ("quickstart", 3, ["tables.ranks=split"]),
    "ranks-limits": ("quickstart", 3, ["tables.ranks=split", "ranks.pipeline=prefetch", *LIMITS]),
    "ranks-sparse": ("quickstart", 2, ["tables.ranks=table", "ranks.pipeline=sparse", "training.balance=nvidia"]),
    "ranks-column": (
        "quickstart",
        2,
        [
            "tables.ranks=column",
            "sparse_optimizer.kind=sgd",
            "training.balance=none",
            "training.micro_batch_tokens=300",
        ],
    ),
    "ranks-shards": ("quickstart", 3, ["tables.ranks=copy", "ranks.shard_optimizer=true"]),
    "reference": (
        "quickstart",
        1,
        [
            "model.attention_scale=longest_in_batch",
            "model.query_time=last_event",
            "training.drop_last=true",
            "checkpoint.incremental=true",
        ],
    ),
    "ranking-gr": ("movielens-100k-ranking-gr", 1, ["data.window_seconds=86400"]),
    "ranking-gr-ranks": (
        "movielens-100k-ranking-gr",
        2,
        ["data.window_seconds=86400", "tables.ranks=split", "training.batch_size=8"],
    ),
}
MOVIELENS_CASES = {
    "movielens-100k": ("movielens-100k", 1, []),
    "movielens-100k-ranking-gr": ("movielens-100k-ranking-gr", 1, []),
}
GPU_CASES = {
    "quickstart": ("quickstart", 1, ["device=cuda"]),
    "bf16": ("quickstart", 1, ["device=cuda", "precision=bf16", *LIMITS]),
    "cache": ("quickstart", 1, ["device=cuda", "tables.item.place=cache", "tables.item.device_memory=64KiB"]),
    "host": ("quickstart", 1, ["device=cuda", "tables.place=host"]),
    "parts": ("quickstart", 1, ["device=cuda", "precision=bf16", "training.micro_batch_tokens=300"]),
    "rows-adagrad": ("quickstart", 1, ["device=cuda", "sparse_optimizer.kind=adagrad"]),
    "rows-adam": (
        "quickstart",
        1,
        ["device=cuda", "sparse_optimizer.kind=adam", "sparse_optimizer.learning_rate=0.01"],
    ),
    "long": (
        "quickstart",
        1,
        [
            "device=cuda",
            "precision=bf16",
            "data.history_length=4000",
            "model.max_sequence=4096",
            "model.positions=4096",
            "training.batch_size=8",
            "model.head_dim=128",
            "model.dim=128",
            "model.recompute_norm=true",
        ],
    ),
    "ranking-gr": ("movielens-100k-ranking-gr", 1, ["device=cuda", "precision=bf16", "data.window_seconds=86400"]),
}


def run(command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


def stable(value):
    """The value without what differs between two runs of one build."""
    if isinstance(value, dict):
        return {
            key: stable(inner)
            for key, inner in value.items()
            if key not in UNSTABLE and not key.endswith(UNSTABLE_ENDS)
        }
    return [stable(inner) for inner in value] if isinstance(value, list) else value


def contents(folder):
    """The comparable bytes of every file of a run, by name."""
    files = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink() or not path.is_file() or name in ("lock", "summary.json"):
            continue
        if path.suffix == ".jsonl":
            files[name] = [stable(json.loads(line)) for line in path.read_text().splitlines()]
        elif path.suffix == ".json":
            files[name] = stable(json.loads(path.read_text()))
        elif path.suffix in (".toml", ".npy", ".safetensors"):
            files[name] = path.read_bytes()
    return files


def differences(old, new):
    names = [f"only in one: {name}" for name in sorted(old.keys() ^ new.keys())]
    for name in sorted(old.keys() & new.keys()):
        if old[name] == new[name]:
            continue
        detail = ""
        if isinstance(old[name], list):
            lines = [i for i, (a, b) in enumerate(zip(old[name], new[name], strict=False)) if a != b]
            detail = f", lines {lines[:5]} of {len(old[name])} and {len(new[name])}"
            if lines and isinstance(old[name][lines[0]], dict):
                a, b = old[name][lines[0]], new[name][lines[0]]
                detail += f", keys {sorted(k for k in a.keys() | b.keys() if a.get(k) != b.get(k))[:8]}"
        names.append(name + detail)
    return names


def train(build, source, data, case, steps, output, disk):
    configuration, ranks, settings = case
    output.parent.mkdir(parents=True, exist_ok=True)
    words = [
        f"data.path={data}",
        f"training.max_steps={steps}",
        "metrics.every_steps=7",
        "checkpoint.every_steps=40",
        "device=host",
        *settings,
    ]
    command = [build / "hstu", "train", source / "configs" / f"{configuration}.toml", "--output", output]
    for word in words:
        command += ["--set", word.replace("DISK", str(disk))]
    run(command + (["--ranks", ranks] if ranks > 1 else []))
    run([build / "hstu", "eval", output, "--predictions", output / "predictions"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("build/compare"))
    parser.add_argument("--only", help="run the cases whose names contain this")
    parser.add_argument("--steps", type=int, default=90)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--data", type=pathlib.Path, help="a prepared dataset of configs/quickstart.toml")
    parser.add_argument("--movielens", type=pathlib.Path, help="the folder ml-100k: adds its two configurations, whole")
    words = parser.parse_args()
    source = pathlib.Path(__file__).resolve().parent.parent
    scratch = words.scratch.resolve()
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    data = words.data.resolve() if words.data else scratch / "dataset"
    if not words.data:
        run(
            [
                words.old / "hstu",
                "generate",
                "yambda",
                "--users",
                200,
                "--days",
                30,
                "--items",
                500,
                "--seed",
                1,
                "--output",
                scratch / "events",
            ]
        )
        run(
            [
                words.old / "hstu",
                "prepare",
                "yambda",
                "--input",
                scratch / "events",
                "--output",
                data,
                "--test-days",
                0,
                "--min-history",
                0,
            ]
        )
    cases = {name: (case, data, words.steps) for name, case in (GPU_CASES if words.gpu else CPU_CASES).items()}
    if words.movielens and not words.gpu:
        run([words.old / "hstu", "prepare", "movielens", "--input", words.movielens, "--output", scratch / "movielens"])
        cases |= {name: (case, scratch / "movielens", 0) for name, case in MOVIELENS_CASES.items()}
    failed = 0
    for name, (case, dataset, steps) in cases.items():
        if words.only and words.only not in name:
            continue
        runs = []
        for build, word in ((words.old, "a"), (words.new, "b")):
            # Both runs have the same path, which their configurations contain.
            output = scratch / name / "run"
            shutil.rmtree(output, ignore_errors=True)
            disk = scratch / "disk"
            disk.mkdir(exist_ok=True)
            train(build.resolve(), source, dataset, case, steps, output, disk)
            runs.append(contents(output))
            shutil.move(output, scratch / name / word)
        found = differences(*runs)
        print(f"{'DIFFERENT' if found else 'same':10} {name}: {len(runs[0])} files", flush=True)
        for line in found[:8]:
            print(f"           {line}", flush=True)
        failed += bool(found)
    print(f"{failed} cases differ" if failed else "all cases are the same")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
