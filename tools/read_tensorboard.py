#!/usr/bin/env python3
"""Reads the event file of a run with TensorBoard's own reader and compares every scalar with metrics.jsonl.

Needs: pip install tensorboard.  Usage: tools/read_tensorboard.py RUN
"""

import json
import math
import pathlib
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def scalars_of(value, tag):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from scalars_of(inner, f"{tag}/{key}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield tag, value


def expected(run):
    found = {}
    for text in (run / "metrics.jsonl").read_text().splitlines():
        line = json.loads(text)
        if "step" not in line:
            continue
        for key, value in line.items():
            if key not in ("step", "time_s"):
                for tag, number in scalars_of(value, f"{line['event']}/{key}"):
                    found[tag, line["step"]] = number
    return found


def main():
    run = pathlib.Path(sys.argv[1])
    reader = EventAccumulator(str(run), size_guidance={"scalars": 0})
    reader.Reload()
    read = {}
    for tag in reader.Tags()["scalars"]:
        for event in reader.Scalars(tag):
            if (tag, event.step) in read:
                sys.exit(f"{tag} at step {event.step} occurs twice")
            read[tag, event.step] = event.value
    wanted = expected(run)
    if read.keys() != wanted.keys():
        sys.exit(f"only one of the two has {sorted(read.keys() ^ wanted.keys())[:5]}")
    for key, value in wanted.items():
        if not math.isclose(read[key], value, rel_tol=1e-6, abs_tol=1e-30):
            sys.exit(f"{key}: {value} in metrics.jsonl, {read[key]} in the event file")
    print(f"{len(wanted)} scalars of {len({tag for tag, _ in wanted})} tags agree")


if __name__ == "__main__":
    main()
