"""Exports published to stores of moto, which are not ours and verify signatures, and served from there.

python3 tests/predict/moto_test.py BUILD
"""

import csv
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import moto_store
import places
from publishing import PROGRAM, Place, ask_server, end, expect_same_folders, expect_step, hstu, train

PREFIX = "models/100% shop +%2F&é日 !*'();:@=$,~?#/"
PART = 5 << 20  # bytes: the least that AWS takes, and moto; the dense weights of this run have three parts
READ = {"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": "*"}
WRITE = {
    "Effect": "Allow",
    "Resource": "*",
    "Action": [
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutObject",
        "s3:DeleteObject",
        "s3:ListBucketMultipartUploads",
        "s3:ListMultipartUploadParts",
        "s3:AbortMultipartUpload",
    ],
}


class Buckets:
    """Places that each have a bucket of one server and a copy of one run."""

    def __init__(self, moto, trained):
        self.moto, self.trained = moto, trained
        self.made = 0

    def make_place(self, folder):
        self.made += 1
        bucket = f"models.{self.made}"
        return Place(
            self.trained, folder, moto_store.Store(self.moto, bucket), bucket, PREFIX, self.moto.new_user(WRITE), PART
        )


def use_keys(place, keys):
    (place.folder / "keys").write_text(keys.text())


def test_a_server_follows_what_is_published_and_answers(place):
    place.publish(5, "--full-every", 3)
    use_keys(place, place.store.moto.new_session(READ))
    server, port = place.serve("--watch", place.url, "--watch-seconds", 0.05, "--data", place.dataset)
    use_keys(place, place.store.moto.new_user(WRITE))
    for step in (10, 15):
        place.publish(step, "--full-every", 3)
        expect_step(port, step)
        assert len(place.current()) == 2
    place.expect_what_is_beside()
    (place.folder / "requests.csv").write_text("user,item,time\n1,3,2592000\n1,5,2592000\n")
    hstu(
        "predict",
        place.run / "published/current",
        "--requests",
        place.folder / "requests.csv",
        "--data",
        place.dataset,
        "--output",
        place.folder / "scores.csv",
    )
    expected = [float(row["score"]) for row in csv.DictReader((place.folder / "scores.csv").open())]
    scores = ask_server(port, "/score", {"user": 1, "time": 2592000, "items": [3, 5]})["scores"]
    assert scores == expected, (scores, expected)
    end(server)
    for name in ("step_00000005", "step_00000015"):
        expect_same_folders(place.run / "published" / name, place.folder / "served" / name)


def test_a_killed_publisher_goes_on(place):
    place.publish(5)
    gate = place.store.gate
    # At which request it is killed, and the PUT requests that it sends before and with that one, where that is known.
    for point, sends in (
        (r"POST .*\?uploads=", 0),
        (r"PUT .*partNumber=2", None),
        (r"POST .*\?uploadId=", None),
        (r"PUT .*\.json$", 1),
        (r"PUT .*/current", 2),
        (r"DELETE [^?]*$", 1),
    ):
        words = [PROGRAM, *place.words(10, "--keep", 1, "--full-every", 1)]
        process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)

        def kill(request, point=point, process=process):
            if re.match(point, request):
                process.kill()
            return process.returncode is not None or bool(re.match(point, request))

        gate.requests.clear()
        gate.before = kill
        assert process.wait(timeout=60) == -signal.SIGKILL, (point, gate.requests)
        gate.before = lambda _: False
        assert sends is None or gate.count("PUT ") == sends, (point, gate.requests)
        place.look()
        assert not place.broken, place.broken
    place.publish(10, "--keep", 1, "--full-every", 1)
    assert place.steps() == [10]
    place.expect_what_is_beside()


def test_a_server_reads_keys_again(place):
    place.publish(5)
    writer = (place.folder / "keys").read_text()
    keys = place.store.moto.new_user(READ)
    use_keys(place, keys)
    server, port = place.serve("--watch", place.url, "--watch-seconds", 0.05)
    place.store.moto.end(keys)
    while "warning: " not in (line := server.stderr.readline()):
        assert line, "the server ended"
    assert "status 403 (InvalidAccessKeyId:" in line and "the model stays as it is" in line, line
    (place.folder / "keys").write_text(writer)
    place.publish(10, "--full-every", 1)
    expect_step(port, 10)
    end(server)


def test_parts_that_are_too_small_are_refused(place):
    place.publish(5)
    place.part = "1MiB"
    text = place.publish(10, "--full-every", 1, status=1)
    assert "EntityTooSmall" in text and "--s3-part" in text and "dense.safetensors" in text, text
    assert place.steps() == [5] and not place.store.uploads
    place.part = PART
    place.publish(10, "--keep", 1, "--full-every", 1)
    assert place.steps() == [10]
    place.expect_what_is_beside()


def test_uploads_of_others_stay(place):
    place.publish(5)
    name = place.published()[0]
    for key in (f"{PREFIX}of-others", f"{PREFIX}{name}x/file", "models/of-others", f"{PREFIX}{name}/file"):
        place.store.client.create_multipart_upload(Bucket=place.store.objects.bucket, Key=key)
    place.publish(5)
    assert place.store.uploads == [f"{PREFIX}of-others", f"{PREFIX}{name}x/file", "models/of-others"]


def test_keys_and_rights_are_verified(place):
    keys = place.store.moto.new_user(WRITE)
    use_keys(place, places.Keys(keys.id, keys.secret[::-1]))
    text = place.publish(5, status=1)
    assert "status 403 (SignatureDoesNotMatch:" in text and "check the keys in --s3-credentials" in text, text
    text, _ = place.serve(status=1)
    assert "status 403 (SignatureDoesNotMatch:" in text and "check the keys in --s3-credentials" in text, text
    assert not place.store.objects
    use_keys(place, place.store.moto.new_user(READ))
    text = place.publish(5, status=1)
    assert "status 403 (AccessDenied:" in text and "their rights" in text, text
    use_keys(place, place.store.moto.new_user(WRITE | {"Action": ["s3:GetObject", "s3:ListBucket", "s3:PutObject"]}))
    place.publish(5)
    text = place.publish(10, "--keep", 1, "--full-every", 1)
    assert "warning: older exports remain" in text and "status 403 (AccessDenied:" in text, text
    assert place.steps() == [5, 10]
    use_keys(place, keys)
    place.publish(10, "--keep", 1, "--full-every", 1)
    assert place.steps() == [10]
    place.expect_what_is_beside()


def test_a_run_publishes_while_it_trains(place):
    settings = {
        "training.max_steps": 30,
        "checkpoint.publish": place.url,
        "store.endpoint": place.store.url,
        "store.region": place.store.region,
        "store.credentials": place.folder / "keys",
    }
    text = hstu(
        "train",
        "--resume",
        place.run,
        *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")),
    )
    assert f"published {place.url}/step_00000030-" in text, text
    place.expect_what_is_beside()


def main():
    moto = moto_store.Moto()
    try:
        with tempfile.TemporaryDirectory() as folder:
            trained = pathlib.Path(folder)
            train(trained, time_buckets=100_000)
            places.run_tests(globals(), Buckets(moto, trained).make_place)
    finally:
        moto.close()


if __name__ == "__main__":
    main()
