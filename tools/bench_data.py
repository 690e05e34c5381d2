"""`./dev bench data`: the data path of hstu on generated Yambda logs, and the same work in polars and NumPy
(tools/rival_data.py) in the same minutes. Prints a table; --json FILE keeps the figures.

    ./dev bench data --millions 10 50 --python PATH    PATH: a Python with polars and numpy (default: python3)

Logs and datasets stay in build/bench-data/, about 25 bytes an event, and are used again.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HSTU = ROOT / "build/hstu"
DAYS, EVENTS_PER_USER = 300, 5000


def timed(command):
    """Seconds, peak MiB and stdout of a command and what it starts."""
    begin = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))} failed; run it by itself to see why")
    return time.perf_counter() - begin, usage.ru_maxrss / 1024, output


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def generate(millions, work):
    events = work / f"events-{millions}m"
    if not events.exists():
        print(f"generating {millions} M events", file=sys.stderr)
        timed(
            [
                HSTU,
                "generate",
                "yambda",
                "--users",
                millions * 1_000_000 // EVENTS_PER_USER,
                "--days",
                DAYS,
                "--events-per-user-day",
                EVENTS_PER_USER / DAYS,
                "--items",
                100_000,
                "--seed",
                1,
                "--output",
                events,
            ]
        )
    return events


def measure_hstu(events, dataset, threads, samples):
    seconds, rss, _ = timed(
        [
            HSTU,
            "prepare",
            "yambda",
            "--input",
            events,
            "--output",
            fresh(dataset),
            "--test-days",
            0,
            "--threads",
            threads,
        ]
    )
    data = [json.loads(timed([HSTU, "bench", "data", dataset, "--samples", samples])[2]) for _ in range(2)]
    return {"events": data[0]["events"], "prepare_s": seconds, "prepare_rss_mib": rss, "open": data[1]}


def measure_rival(python, events, dataset, threads, samples):
    rival = [python, ROOT / "tools/rival_data.py"]
    prepared = json.loads(
        timed(
            [*rival, "prepare", "--input", events, "--threads", threads, "--output", fresh(dataset.with_name("rival"))]
        )[2]
    )
    gathered = json.loads(timed([*rival, "gather", "--dataset", dataset, "--samples", samples])[2])
    return {"prepare": prepared, "gather": gathered}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=int, nargs="+", default=[10, 50], help="events of each log")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: all cores")
    parser.add_argument("--samples", type=int, default=8192, help="assembled into batches, one core")
    parser.add_argument("--python", default="python3", help="a Python with polars and numpy")
    parser.add_argument("--json", type=Path, help="keep the figures here")
    arguments = parser.parse_args()
    found = subprocess.run([arguments.python, "-c", "import numpy, polars"], capture_output=True, check=False)
    has_rival = found.returncode == 0
    if not has_rival:
        print(f"{arguments.python} has no polars and numpy: hstu runs alone. For both: --python PATH", file=sys.stderr)

    work = ROOT / "build/bench-data"
    work.mkdir(parents=True, exist_ok=True)
    figures = []
    print(
        "| events | prepare, M events/s | peak MiB | open + first batch, ms | samples/s, one core | kept events |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    for millions in arguments.millions:
        events, dataset = generate(millions, work), work / f"dataset-{millions}m"
        ours = measure_hstu(events, dataset, arguments.threads, arguments.samples)
        data, rate = ours["open"], ours["events"] / ours["prepare_s"]
        print(
            f"| {ours['events']:,} hstu | {rate / 1e6:.2f} | {ours['prepare_rss_mib']:.0f} | {data['open_ms']:.1f} | "
            f"{data['samples_per_s']:,.0f} | {data['tokens_per_sample']:.0f} |",
            flush=True,
        )
        figures.append({"hstu": ours})
        if not has_rival:
            continue
        theirs = measure_rival(arguments.python, events, dataset, arguments.threads, arguments.samples)
        prepared, gathered = theirs["prepare"], theirs["gather"]
        print(
            f"| {prepared['events']:,} polars, NumPy | {prepared['events_per_s'] / 1e6:.2f} | "
            f"{prepared['peak_rss_mib']:.0f} | | {gathered['samples_per_s']:,.0f} | "
            f"{gathered['tokens_per_sample']:.0f} |"
        )
        print(
            f"| ratio | {rate / prepared['events_per_s']:.2f} | "
            f"{ours['prepare_rss_mib'] / prepared['peak_rss_mib']:.2f} | | "
            f"{data['samples_per_s'] / gathered['samples_per_s']:.1f} | |",
            flush=True,
        )
        figures[-1]["rival"] = theirs
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
