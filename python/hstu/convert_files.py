"""Rows in files of others: DynamicEmb's dumps and word vectors."""

from __future__ import annotations

import codecs
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from hstu.dataset import read_json
from hstu.tensors import Rows, plain_name

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
        match = re.fullmatch(r"(.+)_emb_keys\.rank_([0-9]{1,9})\.world_size_([0-9]{1,9})", file.name)
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
    if worlds != {len(files)} or ranks != list(range(len(files))):
        raise ValueError(f"{parent}: table {table}: expected files of one dump, ranks 0 to {max(worlds) - 1}, found "
                         f"ranks {ranks} of world sizes {sorted(worlds)}")  # fmt: skip
    arguments = parent / f"{table}_opt_args.json"
    kind = read_json(arguments).get("dist_type") if arguments.exists() else None
    if kind == "continuous" and len(ranks) > 1:
        raise ValueError(f"{arguments}: dist_type continuous of {len(ranks)} ranks: its keys are numbers in a rank, "
                         "not ids. Dump with one rank or with roundrobin")  # fmt: skip
    ids, rows, width = [], [], 0
    for _, _, file in sorted(files):
        values_file = file.with_name(f"{table}_emb_values.{file.name[len(table) + len('_emb_keys.') :]}")
        for cut, size in ((file, 8), (values_file, 4)):
            if cut.stat().st_size % size:
                raise ValueError(f"{cut} is cut: its {cut.stat().st_size} bytes are no numbers of {size} bytes")
        keys, values = np.fromfile(file, "<i8"), np.fromfile(values_file, "<f4")
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
        plain_name(table, str(folder))
        for rank in range(ranks):
            mine = kept.ids % ranks == rank
            for item, array in (("keys", kept.ids[mine].astype("<i8")), ("values", kept.rows[mine].astype("<f4")),
                                ("scores", np.zeros(int(mine.sum()), "<i8"))):  # fmt: skip
                array.tofile(Path(folder) / f"{table}_emb_{item}.rank_{rank}.world_size_{ranks}")


def read_word2vec(file: PathLike, binary: bool | None = None) -> tuple[Words, Array]:
    """Words and their vectors (n, D) float32, of word2vec's text or binary form, or GloVe's text without a first line.

    binary: None finds out. Raises ValueError naming the line or the word for what is no such file, for numbers that
    float32 does not have and for words that occur twice.
    """
    data = Path(file).read_bytes().removeprefix(codecs.BOM_UTF8)
    if not data.strip():
        raise ValueError(f"{file} is empty: expected words and their vectors")
    first, _, body = data.partition(b"\n")
    header = re.fullmatch(rb"([0-9]{1,18})[ \t]+([0-9]{1,18})\s*", first)
    count, width = (int(header[1]), int(header[2])) if header else (0, 0)
    if binary is None:
        binary = header is not None and not _is_text(body, width)
    if header and (width == 0 or count * (2 + width * (4 if binary else 2)) > len(body) + 1):
        raise ValueError(f"{file}: its first line says {count} words of {width} values, and {len(body)} bytes follow: "
                         "it is cut, or its first line is wrong")  # fmt: skip
    if not binary:
        words, vectors = _read_text(file, body if header else data, width)
        if header and len(words) != count:
            raise ValueError(f"{file}: expected {count} words as its first line says, found {len(words)}")
    elif header:
        words, vectors = _read_binary(file, body, count, width)
    else:
        raise ValueError(f"{file}: expected in its first line the numbers of words and of values")
    if len(set(words)) != len(words):
        word, _ = Counter(words).most_common(1)[0]
        raise ValueError(f"{file}: the word {word!r} occurs twice: words {words.index(word) + 1} and "
                         f"{words.index(word, words.index(word) + 1) + 1}")  # fmt: skip
    return words, vectors


def _is_text(body: bytes, width: int) -> bool:
    """Whether vectors are text: it begins with a word and its numbers, or has the characters of a text."""
    numbers = body.partition(b"\n")[0].rsplit(None, width)[1:]
    if len(numbers) == width and _numbers(numbers) is not None:
        return True
    some = body[: 1 << 20]
    try:
        codecs.getincrementaldecoder("utf-8")().decode(some)
    except UnicodeDecodeError:
        return False
    return re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", some) is None


def _read_text(file: PathLike, text: bytes, width: int) -> tuple[Words, Array]:
    """width: 0 without a first line."""
    words, vectors, lines, given = [], [], [], width > 0
    for number, line in enumerate(text.split(b"\n"), 2 if given else 1):
        if not line.strip():
            continue
        width = width or len(line.split()) - 1
        word, *numbers = line.rsplit(None, width) if width else [line]  # a word may have blanks
        vector = _numbers(numbers)
        if len(numbers) != width or width == 0 or vector is None:
            wrong = [ascii(text.decode(errors="replace"))[1:-1] for text in numbers if _numbers([text]) is None]
            raise ValueError(
                f"{file}: line {number}: expected a word and {width or 'its'} numbers, found "
                + (f"{wrong[0][:50]}, which is no number of float32" if wrong else f"{len(numbers)}")
            )
        words.append(_word(f"{file}: line {number}", word))
        vectors.append(vector)
        lines.append(number)
    odd = _with_a_number_too_many(words, given)
    if odd is not None:
        raise ValueError(f"{file}: line {lines[odd]}: expected a word and {width} numbers, found one more number, or "
                         f"the word {words[odd]!r}, which ends in a number as no other does")  # fmt: skip
    return words, np.array(vectors, np.float32).reshape(len(words), width)


def _with_a_number_too_many(words: Words, width_given: bool) -> int | None:
    """The first word that may be one and a number: it has a blank, and ends in a number. If the width was given, such
    words may be usual: half of all are, or others have blanks too."""
    blanks = [i for i, word in enumerate(words) if " " in word]
    suspect = [i for i in blanks if _numbers([words[i].split()[-1].encode()]) is not None]
    if width_given and (len(suspect) < len(blanks) or 2 * len(suspect) >= len(words)):
        return None
    return suspect[0] if suspect else None


def _numbers(texts: list[bytes]) -> Array | None:
    """Decimals as float32. None: one is nan, infinity, beyond float32, or written in another way than as a decimal."""
    if b"".join(texts).translate(None, b"0123456789+-.eE"):
        return None
    try:
        with np.errstate(over="ignore"):
            numbers = np.array(texts, np.float32)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _word(where: str, text: bytes) -> str:
    try:
        word = text.strip().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: the word is not UTF-8: {error.reason}") from error
    if not word or "\n" in word or "\r" in word or "\0" in word:
        raise ValueError(f"{where}: the word {word!r} is empty, or has a line end or a zero byte")
    return word


def _read_binary(file: PathLike, body: bytes, count: int, width: int) -> tuple[Words, Array]:
    words, vectors, place = [], np.empty((count, width), np.float32), 0
    for i in range(count):
        where, space = f"{file}: word {i + 1} of {count}", body.find(b" ", place)
        end = space + 1 + 4 * width
        if space < 0 or end > len(body):
            raise ValueError(f"{where}: the file ends in it. It is cut, or has another form")
        words.append(_word(where, body[place:space]))
        vectors[i] = np.frombuffer(body[space + 1 : end], "<f4")
        if not np.isfinite(vectors[i]).all():
            raise ValueError(f"{where}, {words[-1]!r}, has nan or infinity. If the file is a text, give binary=False")
        place = end
    if body[place:].strip():
        raise ValueError(f"{file}: {len(body) - place} bytes follow its {count} words")
    return words, vectors


def write_word2vec(file: PathLike, words: Words, vectors: Array, binary: bool = False) -> None:
    """Text with the shortest decimals that give the same float32 again, or the binary form."""
    with np.errstate(over="ignore"):
        vectors = np.asarray(vectors).astype(np.float32)
    for word in words:
        if word != _word(str(file), word.encode()) or (binary and " " in word):
            where = "" if binary else " at an end"
            raise ValueError(f"{file}: the word {word!r} cannot be written: it has a blank{where}")
    odd = None if binary else _with_a_number_too_many(words, True)
    if odd is not None:
        raise ValueError(f"{file}: the word {words[odd]!r} cannot be written: it would be read as a number too many")
    if len(set(words)) != len(words) or not np.isfinite(vectors).all():
        raise ValueError(f"{file}: expected different words and finite numbers")
    with open(file, "wb") as opened:
        opened.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for word, vector in zip(words, vectors):
            if binary:
                opened.write(word.encode() + b" " + vector.astype("<f4").tobytes() + b"\n")
            else:
                opened.write(" ".join([word, *_decimals(vector)]).encode() + b"\n")


def _decimals(vector: Array) -> Iterator[str]:
    for value in vector:
        yield np.format_float_scientific(value, unique=True, trim="0")
