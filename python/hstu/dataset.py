"""A dataset of `hstu prepare` as NumPy arrays, which read the files and copy nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; ValueError with its name for anything else."""
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is cut, or no JSON: {error}") from error
    if isinstance(value, dict):
        return value
    raise ValueError(f"{path}: expected a JSON object, found a {type(value).__name__}")


class Events(NamedTuple):
    """Events of one user, oldest first: arrays of n elements each."""

    items: Array  # ids
    times: Array  # seconds
    actions: Array  # sums of the actions' bits, without the bit of rankable events
    contexts: Array  # (columns, n), in the manifest's order


class Names:
    """Texts by id: of "user", "item", "attribute_NAME" or "context_NAME"."""

    def __init__(self, folder: Path, of: str) -> None:
        self.ids = _open(folder / f"names_{of}_ids.npy")  # (n), ascending
        self._bytes, self._offsets = _open(folder / f"names_{of}.npy"), _open(folder / f"names_{of}_offsets.npy")

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, id: int) -> str:
        """The text of an id; KeyError if it has none."""
        at = int(np.searchsorted(self.ids, id))
        if at == len(self.ids) or self.ids[at] != id:
            raise KeyError(id)
        return self._text(at)

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids.tolist())

    def _text(self, at: int) -> str:
        return bytes(self._bytes[self._offsets[at] : self._offsets[at + 1]]).decode()

    @cached_property
    def by_text(self) -> dict[str, int]:
        """Ids by text, read once as a whole."""
        return {self._text(at): id for at, id in enumerate(self.ids.tolist())}


class Anchors(NamedTuple):
    """The events to predict, window by window of time: window w has training[offsets[w]:offsets[w + 1]]."""

    training: Array  # (anchors) positions of events
    offsets: Array  # (windows + 1)
    manifest: dict[str, Any]


class Dataset:
    """The folder that `hstu prepare` wrote: N events of U users, those of a user together and in the order of time.

    dataset["item"] is the column item.npy as a read-only memory map; `columns` lists the names. docs/prepare.md has
    types and meanings. A dataset that was extended has `segments`, each with columns of its own.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.manifest = read_json(self.path / "manifest.json")
        self._open: dict[str, Array] = {}

    def __repr__(self) -> str:
        counts = self.manifest["counts"]
        more = f", {len(self.segments)} segments" if self.segments else ""
        return f"<hstu.Dataset {self.path}: {counts['events']:,} events, {counts['users']:,} users{more}>"

    @property
    def columns(self) -> list[str]:
        """The names of the columns, those of texts apart."""
        return [name[:-4] for name in self.manifest["columns"] if not name.startswith("names_")]

    def __getitem__(self, column: str) -> Array:
        if column not in self._open:
            if column + ".npy" not in self.manifest["columns"] or "/" in column:
                raise KeyError(f"{self.path} has no column {column!r}; it has {', '.join(self.columns)}")
            self._open[column] = _open(self.path / (column + ".npy"))
        return self._open[column]

    @property
    def items(self) -> Array:
        """(N) ids of items."""
        return self["item"]

    @property
    def times(self) -> Array:
        """(N) seconds."""
        return self["timestamp"]

    @property
    def actions(self) -> Array:
        """(N) uint8: sums of the actions' bits (`action_bits`); 128 is added for events that can be predicted."""
        return self["action"]

    @property
    def users(self) -> Array:
        """(U) int64: ids of users, ascending."""
        return self["user_ids"]

    @property
    def offsets(self) -> Array:
        """(U + 1) int64: user u of `users` has the events offsets[u] to offsets[u + 1]."""
        return self["user_offsets"]

    @property
    def action_bits(self) -> dict[str, int]:
        return {action["name"]: action["bit"] for action in self.manifest["actions"]}

    @cached_property
    def segments(self) -> list[Dataset]:
        """What `hstu prepare --append` added, oldest first."""
        return [Dataset(folder) for folder in sorted(self.path.glob("segments/[0-9]*")) if folder.name.isdigit()]

    def names(self, of: str) -> Names:
        """The texts of "user", "item", "attribute_NAME" or "context_NAME", in this folder alone."""
        if of not in self.manifest.get("names", []):
            raise KeyError(f"{self.path} has no texts of {of!r}; it has those of {self.manifest.get('names', [])}")
        return Names(self.path, of)

    def anchors(self, name: str | None = None) -> Anchors:
        """The index anchors/NAME; without a name the only one."""
        found = sorted(folder.parent.name for folder in self.path.glob("anchors/*/manifest.json"))
        if name is None and len(found) == 1:
            name = found[0]
        if name not in found:
            raise KeyError(f"{self.path}/anchors has {found}, and not {name!r}: name one of them")
        folder = self.path / "anchors" / name
        return Anchors(
            _open(folder / "training.npy"), _open(folder / "training_offsets.npy"), read_json(folder / "manifest.json")
        )

    def user(self, user: int) -> Events:
        """The events of a user in all segments, by time; those of one second in the order of the segments."""
        parts = [part._of_user(user) for part in [self, *self.segments]]
        events = [np.concatenate(column, axis=-1) for column in zip(*parts)]
        order = np.argsort(events[1], kind="stable")
        return Events(*(column[..., order] for column in events))

    def _of_user(self, user: int) -> Events:
        at = int(np.searchsorted(self.users, user))
        found = at < len(self.users) and self.users[at] == user
        mine = slice(self.offsets[at], self.offsets[at + 1]) if found else slice(0, 0)
        contexts = [self[f"context_{name}"][mine].astype(np.int64) for name in self.manifest["context"]]
        return Events(
            self.items[mine].astype(np.int64),
            self.times[mine].astype(np.int64),
            self.actions[mine] & 127,
            np.stack(contexts) if contexts else np.empty((0, len(self.items[mine])), np.int64),
        )


def _open(path: Path) -> Array:
    try:
        try:
            return np.load(path, mmap_mode="r")  # type: ignore[no-any-return]
        except ValueError:  # nothing to map
            return np.load(path)  # type: ignore[no-any-return]
    except (EOFError, MemoryError, ValueError) as error:
        raise ValueError(f"{path} is cut, or no .npy file: {error}") from error
