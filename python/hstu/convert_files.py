"""Rows in files of others: DynamicEmb's dumps and word vectors."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from hstu.tensors import Rows

Array = NDArray[Any]
PathLike = Union[str, "os.PathLike[str]"]
Words = list[str]


def read_dynamicemb(folder: PathLike) -> dict[str, Rows]:
    """The rows of every table below a folder that DynamicEmbDump wrote, of any number of ranks, by ids in order.

    Scores, states of optimizers and admission counters are not read. Raises ValueError naming the file for ranks that
    are missing, sizes that do not agree, a key that occurs twice and keys that are no ids of the whole table.
    """
    found = sorted(Path(folder).rglob("*_emb_keys.rank_*.world_size_*"))
    tables: dict[tuple[Path, str], list[tuple[int, int, Path]]] = {}
    for file in found:
        match = re.fullmatch(r"(.+)_emb_keys\.rank_(\d+)\.world_size_(\d+)", file.name)
        if match:
            tables.setdefault((file.parent, match[1]), []).append((int(match[2]), int(match[3]), file))
    if not tables:
        raise FileNotFoundError(f"{folder}: expected files TABLE_emb_keys.rank_R.world_size_W of DynamicEmbDump")
    result: dict[str, Rows] = {}
    for (parent, table), files in tables.items():
        if table in result:
            raise ValueError(f"{parent}: table {table} is in two collections: name the folder of one of them")
        result[table] = _read_dumped(parent, table, files)
    return result


def _read_dumped(parent: Path, table: str, files: list[tuple[int, int, Path]]) -> Rows:
    ranks, worlds = sorted(rank for rank, _, _ in files), {world for _, world, _ in files}
    if len(worlds) != 1 or ranks != list(range(max(worlds))):
        raise ValueError(f"{parent}: table {table}: expected files of one dump, ranks 0 to {max(worlds) - 1}, found "
                         f"ranks {ranks} of world sizes {sorted(worlds)}")  # fmt: skip
    arguments = parent / f"{table}_opt_args.json"
    kind = json.loads(arguments.read_text()).get("dist_type") if arguments.exists() else None
    if kind == "continuous" and len(ranks) > 1:
        raise ValueError(f"{arguments}: dist_type continuous of {len(ranks)} ranks: its keys are numbers in a rank, "
                         "not ids. Dump with one rank or with roundrobin")  # fmt: skip
    ids, rows, width = [], [], 0
    for _, _, file in sorted(files):
        keys = np.fromfile(file, "<i8")
        values_file = file.with_name(file.name.replace("_emb_keys.", "_emb_values."))
        values = np.fromfile(values_file, "<f4")
        if keys.size == 0 and values.size == 0:
            continue
        if keys.size == 0 or values.size % keys.size or (width and values.size != width * keys.size):
            raise ValueError(f"{values_file}: {values.size} values are no rows of {keys.size} keys"
                             + (f" and the width {width} of other ranks" if width else ""))  # fmt: skip
        width = values.size // keys.size
        ids.append(keys)
        rows.append(values.reshape(-1, width))
    if not ids:
        return Rows(np.empty(0, np.int64), np.empty((0, 1), np.float32))
    return sorted_rows(f"{parent}: table {table}", np.concatenate(ids), np.concatenate(rows))


def sorted_rows(what: str, ids: Array, rows: Array) -> Rows:
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    twice = np.flatnonzero(ids[1:] == ids[:-1])
    if twice.size:
        raise ValueError(f"{what}: the id {ids[twice[0]]} occurs twice")
    return Rows(ids, rows[order])


def write_dynamicemb(tables: Mapping[str, Rows], folder: PathLike, ranks: int = 1) -> None:
    """Files that DynamicEmbLoad reads without states of optimizers, of tables with dist_type roundrobin: each rank
    has the keys k with k mod ranks = rank, and the scores are 0."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for table, kept in tables.items():
        for rank in range(ranks):
            mine = kept.ids % ranks == rank
            for item, array in (("keys", kept.ids[mine].astype("<i8")), ("values", kept.rows[mine].astype("<f4")),
                                ("scores", np.zeros(int(mine.sum()), "<i8"))):  # fmt: skip
                array.tofile(Path(folder) / f"{table}_emb_{item}.rank_{rank}.world_size_{ranks}")


def read_word2vec(file: PathLike, binary: bool | None = None) -> tuple[Words, Array]:
    """Words and their vectors (n, D) float32, of word2vec's text or binary form, or GloVe's text without a first line.

    binary: None finds out. Raises ValueError naming the line or the word for what is no such file.
    """
    data = Path(file).read_bytes()
    first, _, body = data.partition(b"\n")
    header = re.fullmatch(rb"(\d+) (\d+) *\r?", first)
    if binary is None:
        binary = header is not None and not _is_text(body.partition(b"\n")[0], int(header[2]))
    if binary:
        if header is None:
            raise ValueError(f"{file}: expected in its first line the numbers of words and of values")
        return _read_binary(file, body, int(header[1]), int(header[2]))
    words, vectors, width = [], [], int(header[2]) if header else 0
    for number, line in enumerate((body if header else data).decode().split("\n"), 2 if header else 1):
        if not line.strip():
            continue
        parts = line.rstrip().split(" ")
        width = width or len(parts) - 1
        word = " ".join(parts[:-width])  # a word may have spaces
        try:
            vector = np.array(parts[-width:], np.float32)
        except ValueError:
            vector = np.empty(0, np.float32)
        if not word or vector.size != width:
            raise ValueError(f"{file}: line {number}: expected a word and {width} numbers")
        words.append(word)
        vectors.append(vector)
    if header and len(words) != int(header[1]):
        raise ValueError(f"{file}: expected {int(header[1])} words as its first line says, found {len(words)}")
    return words, np.array(vectors, np.float32).reshape(len(words), -1)


def _is_text(line: bytes, width: int) -> bool:
    """Whether a line is a word and so many decimals."""
    parts = line.rstrip().split(b" ")
    try:
        return len(parts) > width and all(np.isfinite(float(part)) for part in parts[-width:])
    except ValueError:
        return False


def _read_binary(file: PathLike, body: bytes, count: int, width: int) -> tuple[Words, Array]:
    words, vectors, place = [], np.empty((count, width), np.float32), 0
    for i in range(count):
        space = body.find(b" ", place)
        end = space + 1 + 4 * width
        if space < 0 or end > len(body):
            raise ValueError(f"{file} ends in word {i + 1} of {count}: it is cut, or has another form")
        words.append(body[place:space].decode().lstrip("\n"))
        vectors[i] = np.frombuffer(body[space + 1 : end], "<f4")
        place = end
    if body[place:].strip():
        raise ValueError(f"{file}: {len(body) - place} bytes follow its {count} words")
    return words, vectors


def write_word2vec(file: PathLike, words: Words, vectors: Array, binary: bool = False) -> None:
    """Text with the shortest decimals that give the same float32 again, or the binary form."""
    for word in words:
        if not word or "\n" in word or (binary and " " in word):
            raise ValueError(f"{file}: the word {word!r} cannot be written: it is empty, or has a line end or a space")
    with open(file, "wb") as opened:
        opened.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for word, vector in zip(words, vectors.astype(np.float32)):
            if binary:
                opened.write(word.encode() + b" " + vector.astype("<f4").tobytes() + b"\n")
            else:
                opened.write(" ".join([word, *_decimals(vector)]).encode() + b"\n")


def _decimals(vector: Array) -> Iterator[str]:
    for value in vector:
        yield np.format_float_scientific(value, unique=True, trim="0")
