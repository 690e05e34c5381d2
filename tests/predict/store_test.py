"""Exports published to a store of objects of this process, and served from it.

python3 tests/predict/store_test.py BUILD
"""

import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import object_server
import places
from publishing import PROGRAM, Place, end, expect_same_folders, expect_step, hstu, step_of_server, train

PART = 20_000  # bytes; the largest files of this run have some twenty parts
PREFIX = "models/shop +é/"
URL = f"s3://{object_server.BUCKET}/{PREFIX.removesuffix('/')}"


def make_place(trained, folder):
    store = object_server.Store()
    store.page = 5
    place = Place(trained, folder, store, object_server.BUCKET, PREFIX, object_server.KEYS, PART)
    store.changed = place.look
    return place


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
        hstu(
            "predict",
            place.folder / model / "current",
            "--requests",
            place.folder / "requests.csv",
            "--data",
            place.dataset,
            "--output",
            place.folder / f"{model}.csv",
        )
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
    place.store.objects["other"], place.store.ignore_prefixes = b"1", True
    text = place.publish(20, status=1)
    assert 'lists the key "other", which is not there' in text and PREFIX in text, text
    place.store.ignore_prefixes = False
    (place.folder / "keys").write_text(places.Keys("other", "other").text())
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
    settings = {
        "training.max_steps": 30,
        "checkpoint.publish": URL,
        "store.endpoint": place.store.url,
        "store.region": place.store.region,
        "store.credentials": place.folder / "keys",
    }
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    text = hstu("train", "--resume", place.run, *words)
    assert f"published {URL}/step_00000030-" in text, text
    assert place.current()[0].startswith("step_00000030-")
    place.expect_what_is_beside()
    assert str(place.folder) not in (place.run / "published/current/model.toml").read_text()  # nor its keys


def main():
    with tempfile.TemporaryDirectory() as folder:
        trained = pathlib.Path(folder)
        train(trained)
        places.run_tests(globals(), lambda folder: make_place(trained, folder))


if __name__ == "__main__":
    main()
