#!/usr/bin/env python3
"""Exact lists from what `hstu export RUN --vectors DIR` wrote, as `hstu predict --users` makes them.

    python3 examples/top_numpy.py DIR --top 10 >top.csv

An index that searches approximately takes the place of this file; `hstu ann-recall` compares its lists with these.
"""

import argparse
from pathlib import Path

import numpy as np


def products(users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """(U, V) sums in ascending order, each step rounded once, so that equal rows have equal scores."""
    scores = np.zeros((len(users), len(items)), np.float32)
    for user, item in zip(users.T.astype(np.float64), items.T.astype(np.float64), strict=True):
        scores = (scores + user[:, None] * item[None, :]).astype(np.float32)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path, metavar="DIR")
    parser.add_argument("--top", type=int, default=10)
    parser.add_argument("--batch", type=int, default=1024, help="users at a time")
    options = parser.parse_args()
    items, ids = (np.load(options.vectors / name) for name in ("items.f32.npy", "ids.i64.npy"))
    users, user_ids = (np.load(options.vectors / name) for name in ("users.f32.npy", "user_ids.i64.npy"))
    print("user,item,score,rank")
    for begin in range(0, len(users), options.batch):
        scores = products(users[begin : begin + options.batch], items)
        # The highest score first, equal ones by id: ids ascend, and the sort is stable.
        order = np.argsort(-scores, axis=1, kind="stable")[:, : options.top]
        for user, places, values in zip(user_ids[begin:], order, scores, strict=False):
            for rank, place in enumerate(places, 1):
                print(f"{user},{ids[place]},{values[place]},{rank}")


if __name__ == "__main__":
    main()
