"""The life of a model, for tools/daily_kills.py, which kills all that belongs to it.

There is a first log; then every day a file of events comes, which hstu follow adds and trains, and the run is published
to a folder and to a store of objects, from which two servers answer.
"""

import collections
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import threading
import time
import urllib.request

import object_server

SCHEMA = """name = "shop"
files = ["*.csv"]
user = "user"
item = "item"
time = "at"
time_unit = "s"
integers = ["user", "item"]
label = "good"
pools = ["good", "bad"]
[[attribute]]
name = "brand"
column = "brand"
[[action]]
name = "good"
bit = 1
when = ["kind = g"]
[[action]]
name = "bad"
bit = 2
when = ["kind = b"]
"""
SETTINGS = {
    "data.path": "ds",
    "data.history_length": 8,
    "model.embedding_dim": 8,
    "model.dim": 8,
    "model.layers": 1,
    "model.heads": 1,
    "model.preprocessor_hidden": 8,
    "model.head_hidden": 8,
    "training.batch_size": 32,
    "training.epochs": 1,
    "evaluation.patience": 0,
    "checkpoint.every_steps": 3,
    "checkpoint.keep": 2,
    "checkpoint.publish": "published",
}
HEADER = "user,item,at,kind,brand\n"
FIRST_SECOND, DAY, EVENTS = 1_700_000_000, 86_400, 150
USERS, ITEMS = 20, 25  # of the first day; each further one has some new ones
URL = f"s3://{object_server.BUCKET}/shop"
LEFTOVER = re.compile(r"\.partial$|\.old$|\.new$|^\.removed_|^\.fresh_|^follow\.input$")
AGE = 1000  # seconds since a file that is complete was written


def events_of(day):
    """Users like items of their parity."""
    draw = random.Random(day)
    lines = []
    for n in range(EVENTS):
        user, item = draw.randrange(USERS + 3 * day), draw.randrange(ITEMS + 4 * day)
        kind = "g" if (draw.random() < 0.9) == ((user + item) % 2 == 0) else "b"
        lines.append(f"{user},{item},{FIRST_SECOND + DAY * day + n * (DAY // EVENTS)},{kind},brand {item % 7}\n")
    return HEADER + "".join(lines)


def write(path, text, age=AGE):
    """A file that was written some seconds ago."""
    path.write_text(text)
    os.utime(path, (time.time() - age,) * 2)


def digest(folder):
    """Of the names and bytes of all files in a folder but those that are locked."""
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"):
        total.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return total.hexdigest()


class Kill(collections.namedtuple("Kill", "verb name number moment who")):
    def __str__(self):
        return " ".join(map(str, self))


class Server:
    """hstu serve; started again whenever it was killed."""

    def __init__(self, life, *words):
        self.life, self.words, self.process, self.port = life, words, None, None

    def start(self, kill=None):
        self.kill = kill
        self.process = self.life.start(
            "serve",
            *self.words,
            "--watch-seconds",
            0.05,
            "--port",
            0,
            "--threads",
            1,
            kill=kill,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        said = ""
        for line in self.process.stderr:
            said += line
            if found := re.search(r"serving on http://[0-9.]+:(\d+)", line):
                self.port = int(found[1])
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return
        if self.process.wait() != -signal.SIGKILL:
            raise Difference(f"hstu serve {self.words}: {said}")
        self.life.count(kill)
        self.start(self.life.plan.kill_of_server())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() == -signal.SIGKILL:
            self.life.count(self.kill)

    def ask(self, path, body=None):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self.port}{path}", body and json.dumps(body).encode(), timeout=20) as got:
            return json.load(got)

    def expect_step(self, step):
        """Waits until it has the step."""
        end = time.monotonic() + 60
        model = None
        while time.monotonic() < end:
            if self.process.poll() == -signal.SIGKILL:
                self.life.count(self.kill)
                self.start(self.life.plan.kill_of_server())
            try:
                model = self.ask("/health")["model"]
                if int(model.split("-")[0]) == step:
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise Difference(f"the server of {self.words[0]} has {model}, not step {step}; status {self.process.poll()}")

    def scores(self, day):
        """Of users and items of all days, the newest ones included."""
        answers = []
        for user in (1, USERS - 1, USERS + 3 * day - 1, 10_000):
            now = FIRST_SECOND + DAY * (day + 1)
            body = {
                "user": user,
                "time": now,
                "items": list(range(0, ITEMS + 4 * day, 3)),
                "events": {"item": [3, 5, 8], "time": [now - 300, now - 200, now - 100], "action": [1, 2, 1]},
            }
            answers.append(self.ask("/score", body)["scores"])
        return answers


class Difference(Exception):
    pass


class Life:
    """A folder with a run, its dataset, and what it publishes; `plan` says where commands are killed."""

    def __init__(self, tool, folder, plan):
        self.tool, self.folder, self.plan = tool, folder, plan
        self.log = folder / "log"
        folder.mkdir()
        (folder / "events").mkdir()
        (folder / "first").mkdir()
        (folder / "schema.toml").write_text(SCHEMA)
        (folder / "first" / "events.csv").write_text(events_of(0))
        (folder / "keys").write_text(object_server.KEYS.text())
        self.store = object_server.Store()
        self.keys = ["--s3-endpoint", self.store.url, "--s3-region", self.store.region, "--s3-credentials", "keys"]

    def start(self, *words, kill=None, **streams):
        environment = os.environ | {
            "LD_PRELOAD": str(self.tool.shim),
            "KILLS_LOG": str(self.log),
            "OMP_WAIT_POLICY": "passive",
        }
        if kill:
            environment["KILLS_AT"] = str(kill)
        return subprocess.Popen(
            [self.tool.program, *map(str, words)], cwd=self.folder, env=environment, text=True, **streams
        )

    def count(self, kill):
        self.plan.done(kill)

    def once(self, *words, kill=None):
        """Whether the command was killed, its status and messages."""
        marks = self.marks(kill)
        process = self.start(*words, kill=kill, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = process.communicate()[0]
        killed = self.marks(kill) > marks
        if killed:
            self.count(kill)
        return killed, process.returncode, said

    def marks(self, kill):
        return self.log.read_text().splitlines().count(str(kill)) if kill and self.log.exists() else 0

    def call(self, label, *words, done=lambda: False):
        """The command until it ends by itself; what it does is done then."""
        with self.log.open("a") as log:
            log.write(f"CALL {label}\n")
        kills = self.plan.kills_for(label)
        disturbed = 0  # by a child that was left behind: a service manager starts the program again
        while True:
            killed, status, said = self.once(*words, kill=kills.pop(0) if kills else None)
            disturbed = 20 if killed else disturbed - 1
            if not killed and (status == 0 or done()):
                return
            if not killed and disturbed <= 0:
                log = self.folder / "run" / "follow.log"
                raise Difference(
                    f"hstu {words}: status {status}\n{said}\n" + (log.read_text()[-800:] if log.exists() else "")
                )
            if not killed:
                time.sleep(0.1)

    def follow(self, label):
        self.call(label, "follow", "events", "--schema", "schema.toml", "--run", "run", "--once", "--threads", 1)

    def day_zero(self):
        self.call(
            "prepare",
            "prepare",
            "csv",
            "--schema",
            "schema.toml",
            "--input",
            "first",
            "--output",
            "ds",
            "--threads",
            1,
            "--min-history",
            1,
            done=(self.folder / "ds").exists,
        )
        config = subprocess.run(
            [self.tool.program, "config", "--template", "--for", "ds"],
            cwd=self.folder,
            text=True,
            capture_output=True,
            check=True,
        ).stdout
        (self.folder / "config.toml").write_text(config)
        settings = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
        self.call(
            "train", "train", "config.toml", "--output", "run", *settings, "--threads", 1, done=lambda: self.resumed()
        )
        self.publish("publish 0")
        servers = [
            Server(self, "published/current", "--watch", "published"),
            Server(self, URL, "--watch", URL, "--beside", "served", *self.keys),
        ]
        for server in servers:
            server.start()
        return servers

    def resumed(self):
        """A run that has its folder is continued, not begun."""
        if (self.folder / "run").exists():
            self.call("resume", "train", "--resume", "run", "--threads", 1)
            return True
        return False

    def publish(self, label):
        self.call(label, "publish", "run", "--to", URL, "--beside", "other", "--keep", 2, "--full-every", 3, *self.keys)

    def bring(self, day, disturbance):
        """The day's file comes, and is whole in the end."""
        path, text = self.folder / "events" / f"day-{day}.csv", events_of(day)
        if disturbance == "grows":
            write(path, text[: len(text) // 2], age=0)
            self.follow(f"wait {day}")
            state = self.folder / "run" / "follow.json"
            if state.exists() and path.name in state.read_text():
                raise Difference(f"half of {path.name} was read")
        if disturbance == "copied":

            def copy():
                with path.open("w") as file:
                    for begin in range(0, len(text), 500):
                        file.write(text[begin : begin + 500])
                        file.flush()
                        time.sleep(0.05)

            copying = threading.Thread(target=copy)
            copying.start()
            self.follow(f"wait {day}")
            copying.join()
        if disturbance == "repaired":
            write(path, text.replace(",g,", ",g,,,,,", 1))
            self.once("follow", "events", "--schema", "schema.toml", "--run", "run", "--once", "--threads", 1)
        if disturbance == "removed":
            wrong = self.folder / "events" / f"wrong-{day}.csv"
            write(wrong, "a,b\n1,2\n")
            self.once("follow", "events", "--schema", "schema.toml", "--run", "run", "--once", "--threads", 1)
            wrong.unlink()
        if disturbance == "again" and day > 1:
            write(self.folder / "events" / f"again-{day}.csv", events_of(day - 1))
            self.follow(f"wait {day}")
        if disturbance == "header":
            write(self.folder / "events" / f"empty-{day}.csv", HEADER)
        if disturbance == "foreign":
            write(self.folder / "events" / f"day-{day}.csv.md5", "0123\n")
            self.follow(f"wait {day}")
        write(path, text)

    def evening(self, day, servers):
        """What this life has come to."""
        step = json.loads((self.folder / "run" / "summary.json").read_text())["step"]
        for server in servers:
            server.expect_step(step)
        end = time.monotonic() + 10  # a server removes what is old behind its step forward
        while leftovers := [
            os.path.join(folder, name)
            for folder, folders, files in os.walk(self.folder)
            for name in folders + files
            if LEFTOVER.search(name)
        ]:
            if time.monotonic() > end:
                raise Difference(f"left behind: {leftovers}")
            time.sleep(0.02)
        checkpoints = self.folder / "run" / "checkpoints"
        return {
            "step": step,
            "dataset": digest(self.folder / "ds"),
            "checkpoint": digest((checkpoints / "current").resolve()),
            "published": digest((self.folder / "other" / "current").resolve()),
            "served": digest((self.folder / "served" / "current").resolve()),
            "scores": [server.scores(day) for server in servers],
        }

    def live(self, days, compare):
        servers = []
        try:
            servers = self.day_zero()
            compare(0, self.evening(0, servers))
            for day in range(1, days + 1):
                self.bring(day, self.plan.disturbance())
                if kill := self.plan.kill_of_server():
                    servers[1].stop()
                    servers[1].start(kill)
                self.follow(f"follow {day}")
                self.publish(f"publish {day}")
                compare(day, self.evening(day, servers))
        finally:
            for server in servers:
                server.stop()
            self.store.close()
