"""`./dev bench cpu`: the training step of the laptop configuration in hstu and in plain PyTorch (tools/rival.py), in
turns, so that both meet the same machine. Prints each round, then both medians, their ratio and the peak memory.

    ./dev bench cpu --rounds 3 --threads 2 --python PATH    PATH: a Python with torch and numpy (default: python3)
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="turns of each program")
    parser.add_argument("--steps", type=int, default=60, help="timed steps a turn")
    parser.add_argument("--warmup", type=int, default=10, help="steps before the timed ones")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: all cores")
    parser.add_argument("--python", default="python3", help="a Python with torch and numpy")
    arguments = parser.parse_args()

    work = [f"--steps={arguments.steps}", f"--warmup={arguments.warmup}", f"--threads={arguments.threads}"]
    programs = {"hstu": [str(ROOT / "build/hstu"), "bench", "step", "--json", *work]}
    found = subprocess.run([arguments.python, "-c", "import numpy, torch"], capture_output=True, check=False)
    if found.returncode == 0:
        programs["pytorch"] = [arguments.python, str(ROOT / "tools/rival.py"), *work]
    else:
        print(f"{arguments.python} has no torch and numpy: hstu runs alone. For both: --python PATH", file=sys.stderr)

    rounds = {name: [] for name in programs}
    for _ in range(arguments.rounds):
        for name, command in programs.items():
            line = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            rounds[name].append(line)
            print(
                f"{line['program']:24} {line['median_ms']:8.2f} ms a step, "
                f"{line['p10_ms']:.2f} to {line['p90_ms']:.2f}, {line['peak_rss_mib']} MiB",
                flush=True,
            )

    median = {name: statistics.median(line["median_ms"] for line in lines) for name, lines in rounds.items()}
    memory = {name: max(line["peak_rss_mib"] for line in lines) for name, lines in rounds.items()}
    print(f"\n{arguments.threads} threads, fp32, median of {arguments.rounds} rounds of {arguments.steps} steps")
    for name in programs:
        print(f"{name:8} {median[name]:8.2f} ms a step   {memory[name]:6} MiB at its peak")
    if "pytorch" in median:
        print(
            f"hstu is {median['pytorch'] / median['hstu']:.2f} times as fast, "
            f"with {memory['hstu'] / memory['pytorch']:.2f} of the memory"
        )


if __name__ == "__main__":
    main()
