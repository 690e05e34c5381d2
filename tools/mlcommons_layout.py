"""Writes a tiny log in the MLCommons layout with NumPy alone, from the published description of the layout, and prints
the SHA-256 of every file: the golden values of tests/mlcommons/mlcommons_writer_test.cc. The tables that are Parquet
there are CSV here, as `hstu prepare to-csv` prints them.

    python tools/mlcommons_layout.py > tests/golden/mlcommons_layout.sha256
"""

import argparse
import hashlib
import json
import pathlib
import tempfile

import numpy as np

TYPES = ["listen", "like", "dislike", "unlike", "undislike"]  # the codes 0 ... 4
TEST_SECONDS, GAP_SECONDS, TRAIN_SECONDS, SESSION_GAP_SECONDS = 86_400, 1_800, 300 * 86_400, 1_800


def log(count):
    """Events in order of (uid, timestamp), ties as they come; the test makes the same ones."""
    events = []
    for i in range(count):
        kind = TYPES[(i * 7 + i // 5) % 5] if i % 3 == 0 else "listen"
        ratio = (i * 37) % 130 if kind == "listen" and i % 11 != 0 else None
        length = 100 + i % 200 if kind == "listen" else None
        events.append((2 + 3 * (i // 50), (i % 50 // 2) * 30_005, (i * i) % 97, kind, ratio, i % 4 == 1, length))
    return events


def csv(rows):
    """Lists with blanks between their elements; nothing for None."""

    def text(value):
        if isinstance(value, list):
            return " ".join(text(element) for element in value)
        return "" if value is None else str(int(value)) if not isinstance(value, str) else value

    return "".join(",".join(text(value) for value in row) + "\n" for row in rows)


def write_tables(folder, events, train, train_end):
    last = max(event[1] for event in events)
    sessions = []  # uid, session_id, then lists
    for user, time, item, kind, ratio, organic, length in train:
        new_user = not sessions or sessions[-1][0] != user
        if new_user or time - sessions[-1][3][-1] > SESSION_GAP_SECONDS:
            sessions.append((user, 0 if new_user else sessions[-1][1] + 1, [], [], [], [], [], []))
        for values, value in zip(
            sessions[-1][2:], (item, time, TYPES.index(kind), organic, ratio, length), strict=True
        ):
            values.append(value)
    index = {}
    for user, session, items, *_ in sessions:
        ids, lengths, ends = index.setdefault(user, ([], [], []))
        ids.append(session)
        lengths.append(len(items))
        ends.append(sum(lengths))
    users = set(index)
    test_start = last - TEST_SECONDS
    test = [event for event in events if test_start <= event[1] < last and event[0] in users]

    names = [
        "uid",
        "session_id",
        "item_ids",
        "timestamps",
        "event_types",
        "is_organic",
        "played_ratio_pct",
        "track_length_seconds",
    ]
    (folder / "train_sessions.csv").write_text(csv([names, *sessions]))
    names = ["uid", "session_ids", "session_lens", "session_offsets"]
    (folder / "session_index.csv").write_text(csv([names, *((user, *lists) for user, lists in index.items())]))
    names = ["uid", "timestamp", "item_id", "is_organic", "played_ratio_pct", "track_length_seconds", "event_type"]
    rows = [
        (user, time, item, organic, ratio, length, TYPES.index(kind))
        for user, time, item, kind, ratio, organic, length in test
    ]
    (folder / "test_events.csv").write_text(csv([names, *rows]))
    meta = {
        "size": "5b",
        "t_min": min(event[1] for event in events),
        "t_max": last,
        "train_start": train_end - TRAIN_SECONDS,
        "train_end": train_end,
        "test_start": test_start,
        "test_end": last,
        "train_days": TRAIN_SECONDS // 86_400,
        "gap_minutes": GAP_SECONDS // 60,
        "test_days": TEST_SECONDS // 86_400,
        "session_gap_seconds": SESSION_GAP_SECONDS,
        "num_train_events": len(train),
        "num_test_events": len(test),
        "num_sessions": len(sessions),
        "num_users": len(users),
    }
    (folder / "split_meta.json").write_text(json.dumps(meta, indent=2))


def write_layout(folder, events, history_length, min_history):
    last = max(event[1] for event in events)
    train_end = last - TEST_SECONDS - GAP_SECONDS
    train = [event for event in events if train_end - TRAIN_SECONDS <= event[1] < train_end]

    uid = np.array([event[0] for event in train], np.int64)
    item = np.array([event[2] for event in train], np.int64)
    time = np.array([event[1] for event in train], np.int64)
    kind = np.array([TYPES.index(event[3]) for event in train], np.int64)
    ratio = np.array([event[4] or 0 for event in train], np.float32)
    start = np.full(uid.max() + 1, -1, np.int64)
    end = np.full(uid.max() + 1, -1, np.int64)
    for user in np.unique(uid):
        places = np.flatnonzero(uid == user)
        start[user], end[user] = places[0], places[-1] + 1

    def anchors(least):
        return np.flatnonzero((kind == 0) & (np.arange(len(uid)) - start[uid] >= least)).astype(np.int64)

    positions = anchors(min_history)

    cache = folder / f"hstu_cache_L{history_length}"
    cache.mkdir(parents=True)
    suffix = f"L{history_length}" + ("" if min_history == history_length else f"_m{min_history}")
    columns = {
        "flat_uid": uid,
        "flat_item_ids": item,
        "flat_timestamps": time,
        "flat_event_types": kind,
        "flat_played_ratio": ratio,
        "flat_is_listen_plus": (kind == 0) & (ratio >= 50),
        "flat_is_like": kind == 1,
        "flat_is_skip": (kind == 0) & (ratio < 50),
        "flat_is_organic": np.array([event[5] for event in train], np.int8),
        "user_start": start,
        "user_end": end,
        "unique_uids": np.unique(uid),
        f"positions_L{history_length}": anchors(history_length),
        f"positions_{suffix}": positions,
        f"anchor_ts_{suffix}": time[positions],
    }
    for name, values in columns.items():
        np.save(cache / f"{name}.npy", values)
    (cache / "store_meta.json").write_text(json.dumps({"num_users": len(np.unique(uid)), "total_events": len(uid)}))
    (cache / "_READY").touch()
    write_tables(folder, events, train, train_end)
    np.save(folder / "item_popularity.npy", np.bincount(item).astype(np.int64))


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for history_length, min_history in [(10, 10), (10, 3)]:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            write_layout(folder, log(1000), history_length, min_history)
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                print(f"{digest}  m{min_history}/{path.relative_to(folder)}")


if __name__ == "__main__":
    main()
