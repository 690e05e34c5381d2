"""A run that is trained and published to a store of objects, for tests of hstu."""

import filecmp
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

PROGRAM = pathlib.Path(sys.argv[1]).resolve() / "hstu"
SOURCE = pathlib.Path(__file__).resolve().parents[2]


def hstu(*words, status=0):
    """What the command prints to stdout and stderr."""
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, timeout=300)
    text = done.stdout + done.stderr
    assert done.returncode == status, f"hstu {words}: status {done.returncode}\n{text}"
    return text


def train(folder, **model):
    """A run with checkpoints of the steps 5, 10, 15 and 20."""
    hstu("generate", "yambda", "--users", 40, "--days", 12, "--items", 100, "--seed", 1, "--output", folder / "events")
    hstu(
        "prepare",
        "yambda",
        "--input",
        folder / "events",
        "--output",
        folder / "dataset",
        "--test-days",
        0,
        "--min-history",
        0,
    )
    settings = {
        "data.path": folder / "dataset",
        "training.max_steps": 20,
        "checkpoint.every_steps": 5,
        "checkpoint.keep": 10,
        "training.batch_size": 16,
        "data.history_length": 16,
    }
    settings |= {f"model.{key}": value for key, value in model.items()}
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    hstu("train", SOURCE / "configs/quickstart.toml", "--output", folder / "run", *words)


class Place:
    """A copy of a run that is trained, keys, and a store for its exports at s3://BUCKET/PREFIX."""

    def __init__(self, trained, folder, store, bucket, prefix, keys, part):
        self.folder, self.store, self.prefix, self.part = folder, store, prefix, part
        self.url = f"s3://{bucket}/{prefix.removesuffix('/')}"
        self.dataset = trained / "dataset"
        self.run = folder / "run"
        shutil.copytree(trained / "run", self.run)
        self.broken = []
        (folder / "keys").write_text(keys.text())

    def of_store(self):
        return [
            "--s3-endpoint",
            self.store.url,
            "--s3-region",
            self.store.region,
            "--s3-credentials",
            self.folder / "keys",
        ]

    def words(self, step, *more):
        return [
            "publish",
            self.run,
            "--to",
            self.url,
            "--checkpoint",
            step,
            "--s3-part",
            self.part,
            *self.of_store(),
            *more,
        ]

    def publish(self, step, *more, status=0):
        return hstu(*self.words(step, *more), status=status)

    def current(self):
        """The names of the current export and its base."""
        name = self.store.objects[self.prefix + "current"].decode().strip()
        base = json.loads(self.store.objects[f"{self.prefix}{name}.json"])["base"]
        return [name, base] if base else [name]

    def look(self):
        """Whatever the store's `current` names is whole, after every change."""
        if self.prefix + "current" not in self.store.objects:
            return
        try:
            for name in self.current():
                for path, file in json.loads(self.store.objects[f"{self.prefix}{name}.json"])["files"].items():
                    assert len(self.store.objects[f"{self.prefix}{name}/{path}"]) == file["bytes"], path
        except (KeyError, AssertionError) as error:
            self.broken.append(f"after {self.store.writes[-1]}: {error!r}")

    def published(self):
        """The names of all whole exports."""
        return sorted(
            key.removeprefix(self.prefix).removesuffix(".json")
            for key in self.store.objects
            if key.endswith(".json") and "/" not in key.removeprefix(self.prefix)
        )

    def steps(self):
        return [int(name.removeprefix("step_").split("-")[0]) for name in self.published()]

    def expect_what_is_beside(self):
        """The store has the bytes that are in the run's folder, and nothing else."""
        assert not self.broken, self.broken
        known = {self.prefix + "current"}
        for name in self.published():
            local = self.run / "published" / name.split("-")[0]
            known.add(f"{self.prefix}{name}.json")
            for file in local.rglob("*"):
                if file.is_file():
                    key = f"{self.prefix}{name}/{file.relative_to(local)}"
                    assert self.store.objects[key] == file.read_bytes(), key
                    known.add(key)
        assert set(self.store.objects) == known, set(self.store.objects) ^ known
        assert not self.store.uploads

    def serve(self, *words, status=None):
        """A server of the store, and its port."""
        command = [
            PROGRAM,
            "serve",
            self.url,
            "--beside",
            self.folder / "served",
            "--port",
            0,
            *self.of_store(),
            *words,
        ]
        process = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True)
        said = ""
        for line in process.stderr:
            said += line
            if match := re.search(r"serving on http://[0-9.]+:(\d+)", line):
                return process, int(match[1])
        assert process.wait() == status, said
        return said, None


def ask_server(port, path, body=None):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}{path}", body and json.dumps(body).encode(), timeout=20) as answer:
        return json.load(answer)


def step_of_server(port):
    return int(ask_server(port, "/health")["model"].split("-")[0])


def expect_step(port, step):
    end = time.monotonic() + 30
    while step_of_server(port) != step:
        assert time.monotonic() < end, f"the server has step {step_of_server(port)}"
        time.sleep(0.02)


def expect_same_folders(one, other):
    names = [
        sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()) for folder in (one, other)
    ]
    assert names[0] == names[1] and names[0]
    _, different, missing = filecmp.cmpfiles(one, other, names[0], shallow=False)
    assert not different and not missing, (different, missing)


def end(process):
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 0, said
    return said
