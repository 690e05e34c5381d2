"""Kills hstu follow, prepare --append, train, publish and serve --watch at each of their renames.

    python3 tools/daily_kills.py BUILD [--kills 200] [--days 4] [--seed 1] [--keep FOLDER]

An undisturbed life (tests/support/daily_life.py) says which renames there are. Then lives are lived in which every
command is killed and repeated, before and after each of these renames in turn, by itself, without its parent hstu
follow, with it, or by SIGTERM; and the files of events grow while they are looked at, are wrong and repaired, copied,
or wrong and removed. Every evening the datasets, the newest checkpoints, what the store got and the servers' scores are
compared with the undisturbed life's, to the byte. Exit status 1: something differs.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "support"))
from daily_life import Difference, Kill, Life

DISTURBANCES = ("grows", "repaired", "copied", "removed", "again", "header", "foreign", "none")


class Plan:
    """No kills. Kills of all renames that a log has are those of Kills."""

    def kills_for(self, label):
        return []

    def kill_of_server(self):
        return None

    def done(self, kill):
        raise Difference("killed by nobody")

    def disturbance(self):
        return "none"


class Kills(Plan):
    def __init__(self, log, wanted, draw, disturbances):
        self.where = {}  # (verb, name, number): labels of calls that have it, and its position in the last of them
        self.pending, self.wanted, self.draw = [], wanted, draw
        self.hits = collections.Counter()
        self.disturbances, self.disturbed = disturbances, collections.Counter()
        self.learn(log)
        self.undisturbed = set(self.where)
        while len(self.pending) < wanted:
            self.pending += self.kills_of(self.where)

    def kills_of(self, renames):
        kills = [
            Kill(*rename, moment, self.draw.choice(self.ways(rename)))
            for rename in renames
            for moment in ("before", "after")
        ]
        self.draw.shuffle(kills)
        return kills

    def learn(self, log):
        """The renames of a life; those that only a kill makes necessary are next."""
        label, position, new = None, 0, {}
        for line in log.read_text().splitlines():
            words = line.split(" ")
            if words[0] == "CALL":
                label, position = line.removeprefix("CALL "), 0
            if words[0] == "CALL" or len(words) != 3:
                continue
            verb, name, number = rename = tuple(words)
            if verb == "serve" and number != "1":
                continue  # it is started again for each kill
            position += 1
            if rename not in self.where:
                if self.hits and (verb, name, "1") in self.where:
                    continue
                new[rename] = self.where[rename] = (set(), 0)
            self.where[rename] = (self.where[rename][0] | {label}, position)
        self.pending[:0] = self.kills_of(new)

    def ways(self, rename):
        """A command of hstu follow may end with it, or without it; a server is only killed."""
        labels, _ = self.where[rename]
        followed = rename[0] in ("prepare", "train") and any(label.startswith("follow") for label in labels)
        if followed:
            return "itself", "parent", "both", "asked"
        return ("itself",) if rename[0] == "serve" else ("itself", "itself", "asked")

    def times(self, rename):
        return sum(times for kill, times in self.hits.items() if kill[:3] == rename)

    def full(self):
        """So many kills; if they are enough for it, also one at each rename of the undisturbed life."""
        kills = sum(self.hits.values())
        each = self.wanted < 2 * len(self.where) or all(self.times(rename) for rename in self.undisturbed)
        return kills >= 2 * self.wanted or (kills >= self.wanted and each)

    def kills_for(self, label):
        if self.full():
            return []

        def position(kill):
            return self.where[kill[:3]][1]

        fit = [kill for kill in self.pending if label in self.where[kill[:3]][0]]
        first = self.next_of(fit, 1)  # what comes before it is done then
        later = [kill for kill in fit if first and position(kill) > position(first[0])]
        return first + sorted(self.next_of(later, 3 if self.wanted >= 100 else 1), key=position)

    def kill_of_server(self):
        fit = [] if self.full() else [kill for kill in self.pending if kill.verb == "serve"]
        return next(iter(self.next_of(fit, 1)), None)

    def next_of(self, kills, most):
        """At renames that were hit least; they are the last ones from then on, as they may not be reached."""
        chosen = sorted(kills, key=lambda kill: self.times(kill[:3]))[:most]
        for kill in chosen:
            self.pending.remove(kill)
            self.pending.append(kill)
        return chosen

    def done(self, kill):
        self.hits[kill] += 1
        if kill in self.pending:
            self.pending.remove(kill)

    def disturbance(self):
        chosen = self.disturbances[sum(self.disturbed.values()) % len(self.disturbances)]
        self.disturbed[chosen] += 1
        return chosen


class Tool:
    def __init__(self, build, folder):
        self.program = pathlib.Path(build).resolve() / "hstu"
        self.shim = folder / "kill_at_rename.so"
        source = pathlib.Path(__file__).with_name("kill_at_rename.c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", self.shim, source], check=True)

    def run(self, folder, options):
        known = {}
        began = time.monotonic()
        Life(self, folder / "life", Plan()).live(options.days, known.__setitem__)
        (folder / "life").rename(folder / "calm")  # all have one path, which is in their configurations
        draw = random.Random(options.seed)
        disturbances = options.disturbances.split(",")
        kills = Kills(folder / "calm" / "log", options.kills, draw, disturbances)
        print(f"{len(kills.where)} renames in {time.monotonic() - began:.0f} s without a kill", flush=True)
        differences = lives = 0
        while not kills.full() and lives < options.lives:
            lives += 1

            def compare(day, found):
                for key, value in found.items():
                    if value != known[day][key]:
                        raise Difference(f"day {day}: {key}: {value}, undisturbed {known[day][key]}")

            try:
                Life(self, folder / "life", kills).live(options.days, compare)
                kills.learn(folder / "life" / "log")
                shutil.rmtree(folder / "life")
            except Difference as error:
                differences += 1
                (folder / "life").rename(folder / f"life-{lives}")
                print(f"DIFFERENCE in life {lives}: {error}", flush=True)
            print(f"life {lives}: {sum(kills.hits.values())} kills, {time.monotonic() - began:.0f} s", flush=True)
        self.report(kills)
        print(f"{sum(kills.hits.values())} kills in {lives} lives, {differences} differences")
        return differences

    def report(self, kills):
        by_name = collections.defaultdict(collections.Counter)
        for kill, times in kills.hits.items():
            if kill:
                by_name[kill.verb, kill.name, kill.number][f"{kill.moment} ({kill.who})"] += times
        for key in kills.where:
            row = ", ".join(f"{times} {how}" for how, times in sorted(by_name[key].items()))
            print(f"{' '.join(key):60} {row or 'NOT HIT'}")
        print("files of events: " + ", ".join(f"{times} {how}" for how, times in kills.disturbed.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--days", type=int, default=4)
    parser.add_argument("--lives", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--disturbances", default=",".join(DISTURBANCES))
    parser.add_argument("--keep")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        folder = pathlib.Path(options.keep or stack.enter_context(tempfile.TemporaryDirectory(dir=memory)))
        folder.mkdir(parents=True, exist_ok=True)
        sys.exit(Tool(options.build, folder).run(folder, options) > 0)


if __name__ == "__main__":
    main()
