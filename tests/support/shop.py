"""The log of a shop in a store of objects, for tests of hstu-prepare."""

import filecmp
import pathlib
import subprocess
import sys

PROGRAM = pathlib.Path(sys.argv[1]).resolve() / "hstu-prepare"
SCHEMA = """name = "shop"
files = ["day=*/events-*.csv"]
user = "user"
item = "item"
time = "at"
"""


def events(first, count=4000):
    lines = [f"{n % 40},{(n * 7) % 90},{1_700_000_000 + n}" for n in range(first, first + count)]
    return ("user,item,at\n" + "\n".join(lines) + "\n").encode()


class Place:
    """A folder with the schema of the log and keys by profile, and a store."""

    def __init__(self, folder, store, bucket, prefix, **keys):
        self.folder, self.store, self.bucket, self.prefix = folder, store, bucket, prefix
        (folder / "shop.toml").write_text(SCHEMA)
        (folder / "keys").write_text("# of tests\n" + "\n".join(key.text(profile) for profile, key in keys.items()))

    def prepare(self, *words, source=None, option="--output", output="data", profile="shop"):
        """Exit status and what was printed; without a profile, requests are not signed."""
        keys = ["--s3-credentials", self.folder / "keys", "--s3-profile", profile] if profile else []
        command = [
            PROGRAM,
            "prepare",
            "csv",
            "--schema",
            self.folder / "shop.toml",
            "--input",
            source or f"s3://{self.bucket}/{self.prefix.removesuffix('/')}",
            option,
            self.folder / output,
            "--s3-endpoint",
            self.store.url,
            "--s3-region",
            self.store.region,
            *keys,
            *words,
        ]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=300)
        return done.returncode, done.stdout + done.stderr

    def expect_the_dataset_of_local_files(self):
        local = self.folder / "local"
        for key, content in self.store.objects.items():
            if key.startswith(self.prefix) and not key.endswith("/"):
                file = local / key.removeprefix(self.prefix)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        status, text = self.prepare(source=local, output="expected")
        assert status == 0, text
        data, expected = self.folder / "data", self.folder / "expected"
        names = sorted(file.relative_to(expected) for file in expected.rglob("*.npy"))
        assert names
        _, different, missing = filecmp.cmpfiles(data, expected, names, shallow=False)
        assert not different and not missing, (different, missing)
        assert not (self.folder / "data.s3").exists()
