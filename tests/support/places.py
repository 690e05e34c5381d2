"""Tests of programs with a store of objects, each in a place of its own: a folder and a store."""

import dataclasses
import pathlib
import tempfile
import time


@dataclasses.dataclass(frozen=True)
class Keys:
    id: str
    secret: str
    token: str = ""  # of a session; "": none
    owner: str = ""  # where the store has users

    def text(self, profile="default"):
        """A section of a file as ~/.aws/credentials."""
        token = f"aws_session_token = {self.token}\n" if self.token else ""
        return f"[{profile}]\naws_access_key_id={self.id}\naws_secret_access_key = {self.secret}\n{token}"


def run_tests(functions, make_place):
    """Calls each test_ of `functions`, a module's globals(), with a place that is made in a new folder."""
    for name, test in list(functions.items()):
        if not name.startswith("test_"):
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            place = make_place(pathlib.Path(folder))
            try:
                test(place)
            finally:
                place.store.close()
        print(f"{name} passed, {time.monotonic() - began:.1f} s", flush=True)
