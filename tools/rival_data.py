#!/usr/bin/env python3
"""The data path as a careful user writes it with polars and NumPy: what `./dev bench data` measures hstu against.

    rival_data.py prepare --input EVENTS --output DIR     Parquet to user-major columns
    rival_data.py gather --dataset DATASET --samples N    jagged batches of interleaved histories, one core

Both print one line of JSON. Needs: pip install polars numpy.
"""

import argparse
import json
import os
import pathlib
import resource
import time


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def prepare(arguments):
    import numpy as np
    import polars as pl

    begin = time.perf_counter()
    log = pl.read_parquet(
        arguments.input / "multi_event.parquet",
        columns=["uid", "timestamp", "item_id", "is_organic", "played_ratio_pct", "event_type"],
    )
    rows = log.height
    log = log.with_columns(
        listen=pl.col("event_type").cast(pl.String) == "listen",
        like=pl.col("event_type").cast(pl.String) == "like",
        ratio=pl.col("played_ratio_pct").fill_null(0),
    ).sort(["uid", "timestamp"], maintain_order=True)
    plus = pl.col("listen") & (pl.col("ratio") >= 50)
    skip = pl.col("listen") & (pl.col("ratio") < 50)
    log = log.with_columns(
        action=plus.cast(pl.UInt8)
        + 2 * pl.col("like").cast(pl.UInt8)
        + 4 * skip.cast(pl.UInt8)
        + 128 * pl.col("listen").cast(pl.UInt8)
    )
    arguments.output.mkdir(parents=True)
    for column, file, dtype in [
        ("item_id", "item", np.uint32),
        ("timestamp", "timestamp", np.uint32),
        ("action", "action", np.uint8),
        ("is_organic", "context_is_organic", np.uint8),
    ]:
        np.save(arguments.output / f"{file}.npy", log[column].to_numpy().astype(dtype, copy=False))
    users = log["uid"].rle().struct.unnest()
    np.save(arguments.output / "user_ids.npy", users["value"].to_numpy().astype(np.int64))
    np.save(
        arguments.output / "user_offsets.npy", np.concatenate([[0], np.cumsum(users["len"].to_numpy(), dtype=np.int64)])
    )
    seconds = time.perf_counter() - begin
    return {"events": rows, "seconds": seconds, "events_per_s": rows / seconds, "peak_rss_mib": peak_mib()}


def gather(arguments):
    import numpy as np

    def column(name):
        return np.load(arguments.dataset / f"{name}.npy", mmap_mode="r")

    item, time_of, action = column("item"), column("timestamp"), column("action")
    offsets = np.asarray(column("user_offsets"))
    cap = max(1, arguments.history // 3)
    lengths = offsets[1:] - offsets[:-1]
    busy = np.flatnonzero(lengths > arguments.history)  # users that have an anchor
    anchors = []
    for user in busy:  # consecutive anchors of a user, as a window of one day has them
        first = offsets[user] + arguments.history
        ranked = first + np.flatnonzero(action[first : offsets[user + 1]] & 128)[:50]
        anchors.append(np.stack([np.full(len(ranked), offsets[user]), ranked]))
        if sum(a.shape[1] for a in anchors) >= arguments.samples:
            break
    anchors = np.concatenate(anchors, axis=1)[:, : arguments.samples].T

    tokens, begin = 0, time.perf_counter()
    for first in range(0, len(anchors), arguments.batch):
        histories, sizes = [], []
        for start, anchor in anchors[first : first + arguments.batch]:
            low = max(start, anchor - 20000)
            seen = action[low:anchor]
            kept = np.concatenate([np.flatnonzero(seen & bit)[-cap:] for bit in (1, 2, 4)])
            kept.sort()
            histories.append(low + kept)
            sizes.append(len(kept))
        where = np.concatenate(histories)
        np.concatenate([[0], np.cumsum(sizes)])  # offsets of the jagged batch
        _, places = np.unique(item[where], return_inverse=True)
        places.astype(np.int32), time_of[where].astype(np.int64), action[where] & 127
        tokens += len(where)
    seconds = time.perf_counter() - begin
    return {
        "samples": len(anchors),
        "seconds": seconds,
        "samples_per_s": len(anchors) / seconds,
        "tokens_per_sample": tokens / len(anchors),
        "peak_rss_mib": peak_mib(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("prepare")
    verb.add_argument("--input", type=pathlib.Path, required=True)
    verb.add_argument("--output", type=pathlib.Path, required=True)
    verb.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    verb.set_defaults(work=prepare)
    verb = verbs.add_parser("gather")
    verb.add_argument("--dataset", type=pathlib.Path, required=True)
    verb.add_argument("--samples", type=int, default=4096)
    verb.add_argument("--batch", type=int, default=1024)
    verb.add_argument("--history", type=int, default=4086)
    verb.set_defaults(work=gather)
    arguments = parser.parse_args()
    if "threads" in arguments:
        os.environ["POLARS_MAX_THREADS"] = str(arguments.threads)  # read when polars is imported
    print(json.dumps(arguments.work(arguments)))


if __name__ == "__main__":
    main()
