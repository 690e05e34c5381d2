"""Exports published to a store of objects of this process, and served from it.

    python3 tests/predict/store_test.py BUILD
"""

import filecmp
import json
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import object_server

PROGRAM = pathlib.Path(sys.argv[1]).resolve() / "hstu"
SOURCE = pathlib.Path(__file__).resolve().parents[2]
URL, PREFIX = "s3://logs/models/shop +é", "models/shop +é/"
PART = 20_000  # bytes; the largest files of this run have some twenty parts


def hstu(*words, status=0):
    """What the command prints to stdout and stderr."""
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, timeout=300)
    text = done.stdout + done.stderr
    assert done.returncode == status, f"hstu {words}: status {done.returncode}\n{text}"
    return text


def train(folder):
    """A run with checkpoints of the steps 5, 10, 15 and 20."""
    hstu("generate", "yambda", "--users", 40, "--days", 12, "--items", 100, "--seed", 1, "--output", folder / "events")
    hstu("prepare", "yambda", "--input", folder / "events", "--output", folder / "dataset", "--test-days", 0,
         "--min-history", 0)
    settings = {"data.path": folder / "dataset", "training.max_steps": 20, "checkpoint.every_steps": 5,
                "checkpoint.keep": 10, "training.batch_size": 16, "data.history_length": 16}
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    hstu("train", SOURCE / "configs/quickstart.toml", "--output", folder / "run", *words)


class Place:
    """A run that is trained, an empty store, and an eye on what the store has at every moment."""

    def __init__(self, trained, folder):
        self.folder = folder
        self.dataset = trained / "dataset"
        self.run = folder / "run"
        shutil.copytree(trained / "run", self.run)
        self.store = object_server.Store()
        self.store.page = 5
        self.store.changed = self.look
        self.broken = []
        (folder / "keys").write_text(f"[default]\naws_access_key_id = {object_server.KEY}\naws_secret_access_key = "
                                     f"{object_server.SECRET}\naws_session_token = {object_server.TOKEN}\n")

    def of_store(self):
        return ["--s3-endpoint", self.store.url, "--s3-region", object_server.REGION, "--s3-credentials",
                self.folder / "keys"]

    def words(self, step, *more):
        return ["publish", self.run, "--to", URL, "--checkpoint", step, "--s3-part", PART, *self.of_store(), *more]

    def publish(self, step, *more, status=0):
        return hstu(*self.words(step, *more), status=status)

    def current(self):
        """The names of the current export and its base."""
        name = self.store.objects[PREFIX + "current"].decode().strip()
        base = json.loads(self.store.objects[f"{PREFIX}{name}.json"])["base"]
        return [name, base] if base else [name]

    def look(self):
        """Whatever the store's `current` names is whole, after every change."""
        if PREFIX + "current" not in self.store.objects:
            return
        try:
            for name in self.current():
                for path, file in json.loads(self.store.objects[f"{PREFIX}{name}.json"])["files"].items():
                    assert len(self.store.objects[f"{PREFIX}{name}/{path}"]) == file["bytes"], path
        except (KeyError, AssertionError) as error:
            self.broken.append(f"after {self.store.writes[-1]}: {error!r}")

    def published(self):
        """The names of all whole exports."""
        return sorted(key.removeprefix(PREFIX).removesuffix(".json") for key in self.store.objects
                      if key.endswith(".json") and "/" not in key.removeprefix(PREFIX))

    def steps(self):
        return [int(name.removeprefix("step_").split("-")[0]) for name in self.published()]

    def expect_what_is_beside(self):
        """The store has the bytes that are in the run's folder, and nothing else."""
        assert not self.broken, self.broken
        known = {PREFIX + "current"}
        for name in self.published():
            local = self.run / "published" / name.split("-")[0]
            known.add(f"{PREFIX}{name}.json")
            for file in local.rglob("*"):
                if file.is_file():
                    key = f"{PREFIX}{name}/{file.relative_to(local)}"
                    assert self.store.objects[key] == file.read_bytes(), key
                    known.add(key)
        assert set(self.store.objects) == known, set(self.store.objects) ^ known
        assert not self.store.uploads

    def serve(self, *words, status=None):
        """A server of the store, and its port."""
        command = [PROGRAM, "serve", URL, "--beside", self.folder / "served", *self.of_store(), "--port", 0, *words]
        process = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True)
        said = ""
        for line in process.stderr:
            said += line
            if match := re.search(r"serving on http://[0-9.]+:(\d+)", line):
                return process, int(match[1])
        assert process.wait() == status, said
        return said, None


def step_of_server(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=20) as answer:
        return int(json.load(answer)["model"].split("-")[0])


def expect_step(port, step):
    end = time.monotonic() + 30
    while step_of_server(port) != step:
        assert time.monotonic() < end, f"the server has step {step_of_server(port)}"
        time.sleep(0.02)


def expect_same_folders(one, other):
    names = [sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
             for folder in (one, other)]
    assert names[0] == names[1] and names[0]
    _, different, missing = filecmp.cmpfiles(one, other, names[0], shallow=False)
    assert not different and not missing, (different, missing)


def end(process):
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 0, said
    return said


def test_a_store_gets_what_a_folder_gets_and_a_server_what_the_store_has(place):
    hstu("publish", place.run, "--to", place.folder / "folder", "--checkpoint", 5, "--full-every", 3)
    place.publish(5, "--full-every", 3)
    first, port = place.serve("--watch", URL, "--watch-seconds", 0.05)
    expect_step(port, 5)
    for step in (10, 15):
        place.store.busy, place.store.cut_writes, place.store.late_errors, place.store.lost_answers = 1, 2, 1, 1
        hstu("publish", place.run, "--to", place.folder / "folder", "--checkpoint", step, "--full-every", 3)
        text = place.publish(step, "--full-every", 3)
        name = place.current()[0]
        assert json.loads(text.splitlines()[0])["published"] == f"{URL}/{name}", text
        assert place.store.busy == place.store.cut_writes == place.store.late_errors == place.store.lost_answers == 0
        place.store.cuts = 2
        expect_step(port, step)
        assert len(place.current()) == 2
    place.expect_what_is_beside()
    assert {operation for operation, _, _ in place.store.writes} >= {"put", "begin", "part", "complete"}
    end(first)
    for name in ("step_00000005", "step_00000015"):
        expect_same_folders(place.folder / "folder" / name, place.folder / "served" / name)
    (place.folder / "requests.csv").write_text("user,item,time\n1,3,2592000\n2,5,2592000\n")
    for model in ("folder", "served"):
        hstu("predict", place.folder / model / "current", "--requests", place.folder / "requests.csv", "--data",
             place.dataset, "--output", place.folder / f"{model}.csv")
    assert (place.folder / "folder.csv").read_bytes() == (place.folder / "served.csv").read_bytes()


def test_a_killed_publisher_goes_on_and_nothing_torn_is_current(place):
    draw, kills = random.Random(43), 0
    for step in (5, 10, 15, 20):
        while True:
            words = [PROGRAM, *place.words(step, "--keep", 1, "--full-every", 2)]
            process = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            due = place.store.arrived + draw.randrange(1, 40)

            def kill(number, process=process, due=due):
                if number >= due:
                    process.kill()
                return number >= due

            place.store.before_write = kill
            if process.wait(timeout=60) == 0:
                break
            kills += 1
            assert process.returncode == -signal.SIGKILL
        place.store.before_write = lambda _: False
        place.publish(step, "--keep", 1, "--full-every", 2)  # also removes what a kill left
        place.expect_what_is_beside()
        assert place.current()[0] in place.published() and step in place.steps()
    assert kills >= 4, f"only {kills} kills"
    sent = [write for write in place.store.writes if write[0] in ("put", "part") and write[1] != PREFIX + "current"]
    again = {write for write in sent if sent.count(write) > 1}
    lost = {key for operation, key, _ in place.store.writes if operation == "abort"}  # begun, and no part 1 arrived
    assert not {write for write in again if write[1] not in lost}, again


def test_what_the_current_export_needs_is_never_removed(place):
    for step, published in ((5, [5]), (10, [5, 10]), (15, [5, 15]), (20, [20])):
        place.publish(step, "--keep", 1, "--full-every", 3)
        assert place.steps() == published, place.steps()
    place.publish(10, "--keep", 2, "--full-every", 3)  # back to an earlier one
    assert place.current()[0].startswith("step_00000010-") and 20 in place.steps()
    place.expect_what_is_beside()
    shutil.rmtree(place.run / "published")  # all that this machine knows
    place.publish(20, "--keep", 2)
    assert place.current()[0].startswith("step_00000020-")
    assert not place.broken, place.broken
    process, port = place.serve()
    expect_step(port, 20)
    end(process)


def test_errors_say_what_to_do_and_leave_what_was(place):
    place.publish(5)
    before = dict(place.store.objects)
    place.store.busy = 1000
    text = place.publish(10, status=1)
    assert "status 503" in text and "SlowDown" in text and "later" in text and "s3://logs/" in text, text
    place.store.busy, place.store.smallest_part = 0, 2 * PART
    text = place.publish(10, status=1)
    assert "EntityTooSmall" in text and "--s3-part" in text and PREFIX in text, text
    assert not [key for key, _ in place.store.uploads.values() if "/weights/tables/" in key and key in text]
    assert place.current()[0].startswith("step_00000005-") and before.items() <= place.store.objects.items()
    place.store.smallest_part = 0
    place.store.denied = {"delete", "uploads"}
    text = place.publish(15, "--keep", 1, "--full-every", 1)
    assert "warning: older exports remain" in text and "AccessDenied" in text, text
    assert place.steps() == [5, 15]
    place.store.denied = set()
    place.publish(15, "--keep", 1, "--full-every", 1)
    assert place.steps() == [15]
    (place.folder / "keys").write_text("[default]\naws_access_key_id = other\naws_secret_access_key = other\n")
    text = place.publish(20, status=1)
    assert "status 403" in text and "InvalidAccessKeyId" in text and "--s3-credentials" in text, text
    text = hstu("publish", place.run, "--to", "s3:///x", status=2)
    assert "BUCKET" in text, text
    assert not place.broken, place.broken


def test_a_server_keeps_its_model_while_the_store_is_damaged_or_away(place):
    said, _ = place.serve(status=1)
    assert "nothing is published there" in said, said
    place.publish(5)
    process, port = place.serve("--watch", URL, "--watch-seconds", 0.05)
    place.publish(10, "--full-every", 1)
    expect_step(port, 10)
    store, whole = place.store, dict(place.store.objects)
    place.publish(15, "--full-every", 1)
    expect_step(port, 15)
    key = next(key for key in store.objects if key.startswith(PREFIX + "step_00000010-") and "/tables/" in key)
    store.objects[key] = store.objects[key][:-1] + bytes([store.objects[key][-1] ^ 1])
    end_of_file = store.objects[PREFIX + "current"]
    store.objects[PREFIX + "current"] = whole[PREFIX + "current"]
    shutil.rmtree(place.folder / "served" / "step_00000010", ignore_errors=True)
    while "arrives damaged" not in (line := process.stderr.readline()):
        assert line, "the server ended"
    assert step_of_server(port) == 15
    store.objects[PREFIX + "current"] = end_of_file
    process.kill()
    process.communicate()
    store.busy = 1 << 30
    process, port = place.serve("--watch", URL, "--watch-seconds", 0.05)
    assert step_of_server(port) == 15
    store.busy = 0
    place.publish(20)
    expect_step(port, 20)
    end(process)


def test_a_run_publishes_to_a_store_while_it_trains(place):
    settings = {"training.max_steps": 30, "checkpoint.publish": URL, "store.endpoint": place.store.url,
                "store.region": object_server.REGION, "store.credentials": place.folder / "keys"}
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    text = hstu("train", "--resume", place.run, *words)
    assert f"published {URL}/step_00000030-" in text, text
    assert place.current()[0].startswith("step_00000030-")
    place.expect_what_is_beside()
    assert str(place.folder) not in (place.run / "published/current/model.toml").read_text()  # nor its keys


def main():
    with tempfile.TemporaryDirectory() as trained:
        train(pathlib.Path(trained))
        for name, test in list(globals().items()):
            if not name.startswith("test_"):
                continue
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                place = Place(pathlib.Path(trained), pathlib.Path(folder))
                try:
                    test(place)
                finally:
                    place.store.close()
            print(f"{name} passed, {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
