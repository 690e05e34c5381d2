"""hstu-prepare with stores of moto, which are not ours and verify signatures.

python3 tests/objects/moto_test.py BUILD
"""

import io
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import moto_store
import places
import shop

READ = {"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": "*"}
PAGE = 50  # entries of a list at most, where moto has 1,000 unless it is told
LIST, GET = r"GET /[^/?]*\?", r"GET /[^/?]*/"  # requests
PREFIX = "shop & co/100%/a+b %41 é日 !*'();:@=$,~?#/"


def day(number):
    return f"{PREFIX}day={number}/events-0 +%2F&<é>.csv"


class Buckets:
    """Places that each have a bucket of one server."""

    def __init__(self, moto):
        self.moto = moto
        self.reader, self.session = moto.new_user(READ), moto.new_session(READ)
        self.nobody = moto.new_user({"Effect": "Allow", "Action": "s3:PutObject", "Resource": "*"})
        self.made = 0

    def make_place(self, folder):
        self.made += 1
        bucket = f"logs-{self.made}"
        store = moto_store.Store(self.moto, bucket)
        for number in range(3):
            store.objects[day(number)] = shop.events(4000 * number)
        return shop.Place(
            folder,
            store,
            bucket,
            PREFIX,
            shop=self.reader,
            session=self.session,
            nobody=self.nobody,
            wrong=places.Keys(self.reader.id, self.reader.secret[::-1]),
            strange=places.Keys("AKIAOTHER", self.reader.secret),
            expired=places.Keys(self.session.id, self.session.secret, self.session.token[::-1]),
        )


def test_a_list_of_several_pages_with_any_keys(place):
    for number in range(2 * PAGE):
        place.store.objects[f"{PREFIX}day=x/events-{number} +%&é.csv"] = shop.events(20 * number, 20)
    place.store.objects[PREFIX] = b""
    place.store.objects[PREFIX.replace("%41", "A") + "day=1/events-0.csv"] = b"not below the folder"
    status, text = place.prepare()
    assert status == 0, text
    assert f"{2 * PAGE + 3} objects" in text, text
    assert place.store.gate.count(LIST) == 3 and place.store.gate.count(GET) == 2 * PAGE + 3, place.store.gate.requests
    place.expect_the_dataset_of_local_files()


def test_keys_are_verified(place):
    for profile, answer in (
        ("wrong", "403 (SignatureDoesNotMatch:"),
        ("strange", "403 (InvalidAccessKeyId:"),
        ("expired", "400 (InvalidToken:"),
        ("nobody", "403 (AccessDenied:"),
    ):
        status, text = place.prepare(profile=profile)
        assert status == 1 and f"status {answer}" in text and f"s3://{place.bucket}/{PREFIX}" in text, text
        assert "check the keys in --s3-credentials, their rights and --s3-region" in text, text
        assert len(text.splitlines()) == 1, text
        assert not (place.folder / "data").exists()
    status, text = place.prepare(profile="session")
    assert status == 0, text
    place.expect_the_dataset_of_local_files()


def test_a_download_that_breaks_goes_on(place):
    in_parts = moto_store.TransferConfig(multipart_threshold=1, multipart_chunksize=5 << 20)
    place.store.client.upload_fileobj(io.BytesIO(shop.events(0, 400_000)), place.bucket, day(0), Config=in_parts)
    etag = place.store.client.head_object(Bucket=place.bucket, Key=day(0))["ETag"]
    assert etag.endswith('-2"'), etag  # which is no MD5 sum
    place.store.gate.cuts = {"day%3D0": 2_000_000, "day%3D1": 50_000}
    status, text = place.prepare()
    assert status == 0, text
    assert not place.store.gate.cuts
    assert place.store.gate.count(GET) == 5, place.store.gate.requests
    place.expect_the_dataset_of_local_files()


def test_an_object_that_changes_meanwhile_is_an_error(place):
    def replace(request):
        if "day%3D1" in request:
            place.store.objects[day(1)] = shop.events(8000)
        return False

    place.store.gate.before = replace
    status, text = place.prepare()
    assert status == 1 and "changed while it was read" in text and "day=1" in text, text
    place.store.gate.before = lambda _: False
    place.store.gate.requests.clear()
    status, text = place.prepare()
    assert status == 0, text
    place.expect_the_dataset_of_local_files()


def test_what_is_not_there(place):
    status, text = place.prepare(source="s3://nowhere/x")
    assert status == 1 and "s3://nowhere/x/" in text and "NoSuchBucket" in text, text
    status, text = place.prepare(source=f"s3://{place.bucket}/{PREFIX.replace('%41', 'A')}nothing")
    assert status == 2 and "no objects" in text, text


def main():
    moto = moto_store.Moto(MOTO_S3_DEFAULT_MAX_KEYS=str(PAGE))
    try:
        places.run_tests(globals(), Buckets(moto).make_place)
    finally:
        moto.close()


if __name__ == "__main__":
    main()
