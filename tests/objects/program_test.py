"""hstu-prepare with a store of objects of this process.

python3 tests/objects/program_test.py BUILD
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import object_server
import places
import shop

PREFIX = "shop & co/"


def logs():
    days = {
        f"{PREFIX}day={day}/events-{n} +é.csv": shop.events(4000 * (2 * day + n)) for day in range(3) for n in range(2)
    }
    return days | {PREFIX: b"", "other/day=1/events-9.csv": b"not below the folder"}


def make_place(folder):
    store = object_server.Store()
    store.objects = logs()
    wrong = places.Keys(object_server.KEYS.id, "Secret", object_server.KEYS.token)
    return shop.Place(
        folder,
        store,
        object_server.BUCKET,
        PREFIX,
        default=places.Keys("other", "other"),
        shop=object_server.KEYS,
        wrong=wrong,
    )


def test_a_folder_of_a_store_is_as_a_local_one(place):
    place.store.busy, place.store.cuts = 1, 1
    status, text = place.prepare()
    assert status == 0, text
    assert "6 objects" in text, text
    assert place.store.requests["list"] == 4, place.store.requests  # pages of two
    assert len(place.store.ranges) == 1 and place.store.busy == place.store.cuts == 0, place.store.ranges
    place.expect_the_dataset_of_local_files()


def test_a_store_that_knows_no_ranges(place):
    place.store.cuts, place.store.ignore_ranges = 1, True
    status, text = place.prepare()
    assert status == 0, text
    place.expect_the_dataset_of_local_files()


def test_what_was_downloaded_is_not_asked_for_again(place):
    key = f"{PREFIX}day=1/events-1 +é.csv"
    whole = place.store.objects[key]
    place.store.objects[key] = b"user,item\n1,2\n"
    status, text = place.prepare()
    assert status == 2 and "at" in text, text
    assert (place.folder / "data.s3").is_dir()
    place.store.objects[key] = whole
    place.store.requests.clear()
    status, text = place.prepare()
    assert status == 0, text
    assert place.store.requests["get"] == 1, place.store.requests
    place.expect_the_dataset_of_local_files()


def test_a_download_goes_on_in_the_next_process(place):
    place.store.cuts, place.store.busy_after_cuts = 1, 1000
    status, text = place.prepare()
    assert status == 1 and "status 503" in text and "SlowDown" in text and "later" in text, text
    place.store.busy = 0
    place.store.ranges.clear()
    status, text = place.prepare()
    assert status == 0, text
    assert len(place.store.ranges) == 1, place.store.ranges
    place.expect_the_dataset_of_local_files()


def test_an_object_that_changes_meanwhile_is_an_error(place):
    place.store.listed_etag = '"of an earlier content"'
    status, text = place.prepare()
    assert status == 1 and "changed while it was read" in text, text


def test_events_are_appended_from_a_store(place):
    status, text = place.prepare()
    assert status == 0, text
    place.store.objects = {f"{PREFIX}day=9/events-0.csv": shop.events(90_000)}
    status, text = place.prepare(option="--append")
    assert status == 0 and "4,000 events" in text, text
    assert not (place.folder / "data.s3").exists()


def test_errors_say_what_to_do(place):
    status, text = place.prepare(profile="default")
    assert status == 1 and "status 403" in text and "InvalidAccessKeyId" in text and "--s3-credentials" in text, text
    status, text = place.prepare(profile="wrong")
    assert status == 1 and "SignatureDoesNotMatch: The signature does not match <&>" in text, text
    status, text = place.prepare(profile="none")
    assert status == 2 and "[none]" in text, text
    status, text = place.prepare(source="s3://nowhere/x")
    assert status == 1 and "s3://nowhere/x/" in text and "NoSuchBucket" in text, text
    status, text = place.prepare(source="s3://logs/nothing")
    assert status == 2 and "no objects" in text, text
    status, text = place.prepare(source="s3:///x")
    assert status == 2 and "BUCKET" in text, text
    place.store.objects[PREFIX + "../../escape.csv"] = b"x"
    status, text = place.prepare()
    assert status == 1 and "no path" in text, text
    assert not (place.folder / "data").exists()


def listing(*keys, etag="e", after=None):
    """A list of objects of five bytes, of which each exists."""
    prefix = PREFIX.replace("&", "&amp;")
    entries = "".join(f"<Contents><Key>{prefix}{key}</Key><ETag>{etag}</ETag><Size>5</Size></Contents>" for key in keys)
    more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{after}</NextContinuationToken>" if after else ""
    return f"<ListBucketResult>{more}{entries}</ListBucketResult>"


def test_lists_of_a_hostile_store_are_errors(place):
    for answer, words in {
        lambda n: listing(f"day=1/events-{n}.csv", after=n % 2 + 1): "list does not end",
        lambda n: listing("day=1/events-1.csv", etag="e&#13;&#10;X-Other: 1"): "control characters in <ETag>",
        lambda n: listing("day=1/events-&#27;[2J.csv"): "control characters in <Key>",
        lambda n: listing("day=1/events-1.csv", after="a&#10;b"): "control characters in <NextContinuationToken>",
        lambda n: listing("day=1/events-1.csv", after="a" * 70_000): "too long",
        lambda n: listing("day=1/events-1.csv", "day=1/events-1.csv"): 'the key "day=1/events-1.csv" twice',
        lambda n: listing("day=1/events-1.csv", "day=1"): 'is below the object "day=1", which is a file',
    }.items():
        place.store.listing = answer
        place.store.requests.clear()
        status, text = place.prepare()
        assert status == 1 and words in text, text
        assert "\x1b" not in text and place.store.requests["get"] == 0, text
        assert not (place.folder / "data").exists()


def test_words_that_are_no_header_or_address_are_refused(place):
    for words in (["--s3-region", "eu\r\nX-Other: 1"], ["--s3-endpoint", f"{place.store.url}/\r\nX-Other: 1"]):
        status, text = place.prepare(*words)
        assert status == 2 and words[0] in text, text
    (place.folder / "keys").write_text("[shop]\naws_access_key_id = a\naws_secret_access_key = b\x01c\n")
    status, text = place.prepare()
    assert status == 2 and "aws_secret_access_key: expected" in text, text
    status, text = place.prepare(source="s3://logs/" + "x" * 2000)
    assert status == 2 and "1024 bytes" in text, text
    assert not place.store.requests, place.store.requests


def test_public_folders_need_no_keys(place):
    place.store.signed = False
    status, text = place.prepare(profile=None)
    assert status == 0, text
    place.expect_the_dataset_of_local_files()


places.run_tests(globals(), make_place)
