"""Models and rows of other programs: into what `hstu.train(.., warm_start=..)` begins with, and back.

    from hstu import convert

    start = convert.from_dlrmv4("checkpoint/299", "start", heads=4)
    run = hstu.train("config.toml", output="run", set=start.settings, warm_start=start.path)
    state = convert.to_dlrmv4(run)                      # name -> array, for load_state_dict

docs/convert.md has what maps where. save_state() needs PyTorch, and nothing else does.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from hstu import convert_names as names
from hstu.commands import call
from hstu.convert_files import Words, read_dynamicemb, read_word2vec, write_dynamicemb, write_word2vec
from hstu.convert_layout import Moved, count_layers, exact_float32, move
from hstu.convert_torch import PathLike, Source, read_state, save_state
from hstu.dataset import Names
from hstu.run import Run
from hstu.tensors import Rows, Weights, plain_name, read, write_safetensors

Array = NDArray[Any]
Model = Union[Run, PathLike, Weights]  # a run, an export, the folder of a checkpoint, or what read() returns
__all__ = [
    "Rows", "Start", "Weights", "from_dlrmv4", "from_dynamicemb", "from_recsys_examples", "from_word2vec", "read",
    "read_dynamicemb", "read_state", "read_word2vec", "save_state", "to_dlrmv4", "to_dynamicemb", "to_recsys_examples",
    "to_word2vec", "write_dynamicemb", "write_start", "write_word2vec",
]  # fmt: skip


@dataclass
class Start:
    """What a run can begin with.

    path: for `warm_start`. settings: the keys of a configuration that make a model of these shapes, for `set`; the
    tables, features and data are the configuration's own. rows: the number of rows of each table. The rest says what
    became of every tensor: matched (here, there), filled (here, not there: the value that changes nothing), unused
    (there, of no use here).
    """

    path: Path
    settings: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    matched: list[tuple[str, str]] = field(default_factory=list)
    filled: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.path}: {len(self.matched)} tensors, rows of {', '.join(self.rows) or 'no table'}"]
        lines += [f"  not there, filled: {name}" for name in self.filled]
        lines += [f"  not used: {name}" for name in self.unused]
        return "\n".join(lines)


def write_start(
    output: PathLike,
    dense: Mapping[str, Any] | None = None,
    tables: Mapping[str, Rows | tuple[Any, Any]] | None = None,
) -> Start:
    """A folder that a run can begin with: dense parameters by the names of docs/model.md, and tables.

    tables: by name, ids (n) of integers, or texts as a log has them, and rows (n, D), in any order. Raises hstu.Error
    if the folder exists, an id occurs twice or is negative, or a value is not finite.
    """
    tables = tables or {}
    with tempfile.TemporaryDirectory(prefix="hstu-convert", dir=_beside(output)) as folder:
        options: dict[str, Any] = {"rows": [], "ids": []}
        for number, (table, kept) in enumerate(tables.items()):
            ids, rows = (kept.ids, kept.rows) if isinstance(kept, Rows) else kept
            rows_file, ids_file = Path(folder, f"rows{number}.npy"), Path(folder, f"ids{number}")
            np.save(rows_file, exact_float32(table, rows))
            _write_ids(plain_name(table, "tables"), ids, ids_file)
            options["rows"].append(f"{table}={rows_file}")
            options["ids"].append(f"{table}={ids_file}")
        if dense:
            file = Path(folder, "dense.safetensors")
            write_safetensors(file, {name: exact_float32(name, value) for name, value in dense.items()})
            options["dense"] = file
        call("import", progress=None, output=output, **options)
    return Start(Path(output), rows={name: len(k.ids if isinstance(k, Rows) else k[0]) for name, k in tables.items()})


def _write_ids(table: str, ids: Any, file: Path) -> None:
    if len(ids) > 0 and all(isinstance(text, str) for text in ids):
        for text in map(str, ids):
            if not text or any(end in text for end in "\n\r\0"):
                raise ValueError(f"table {table}: the text {text!r} is empty, or has a line end or a zero byte")
        file.write_bytes("".join(f"{text}\n" for text in ids).encode())
        return
    array = np.asarray(ids)
    numbers = array.astype(np.int64) if array.dtype.kind in "iu" or array.size == 0 else None
    if numbers is None or (numbers != array).any():
        raise ValueError(f"table {table}: expected ids that are integers of 64 bits, or texts, found {array.dtype}")
    with open(file, "wb") as opened:
        np.save(opened, numbers)


def _beside(output: PathLike) -> Path:
    """Where there is room for what is as large as the output."""
    parent = Path(output).absolute().parent
    return parent if parent.is_dir() else Path(tempfile.gettempdir())


def from_dlrmv4(
    source: Source,
    output: PathLike,
    *,
    heads: int,
    tables: Mapping[str, str] | None = None,
    allow: Sequence[str] = (),
    trusted: bool = False,
) -> Start:
    """A model of generative-recommenders' DlrmHSTU (DLRMv3 and DLRMv4, with the timestamp postprocessor).

    source, trusted: as of read_state(). heads: of its layers, which no shape shows. tables: their table = ours;
    without it item_id is item, and other names stay. allow: patterns of names that may be left over.
    """
    state = read_state(source, trusted)
    for name, expected in names.DLRMV4_PERIODS.items():
        if name in state and not np.array_equal(state.pop(name), np.array(expected)):
            raise ValueError(f"{name}: expected {expected}, the periods of DLRMv4: others have no place here")
    state.pop(names.DLRMV4_ACTIONS, None)
    embeddings = _take_tables(state, names.DLRMV4_TABLE, {"item_id": "item", **(tables or {})})
    unused = []
    if state.get(f"{names.DLRMV4_ADDITIONAL}.0.weight", np.empty((1, 1))).shape[1:] == (0,):  # of no attributes
        unused = [name for name in state if name.startswith(names.DLRMV4_ADDITIONAL)]
        state = {name: value for name, value in state.items() if name not in unused}
    layers = count_layers(state, names.DLRMV4_LAYER)
    moved = move(names.dlrmv4(layers), state, "theirs", {"H": heads}, allow)
    moved.unused += unused
    s = moved.sizes
    if "preprocessor.contextual.weight" not in moved.tensors:
        moved.tensors["preprocessor.contextual.weight"] = np.empty((0, s["E"], s["D"]), np.float32)
        moved.tensors["preprocessor.contextual.bias"] = np.empty((0, s["D"]), np.float32)
    settings = {
        "model.kind": "dlrmv4", "model.embedding_dim": s["E"], "model.dim": s["D"], "model.layers": layers,
        "model.heads": heads, "model.head_dim": s["d"], "model.preprocessor_hidden": s["F"],
        "model.head_hidden": s["Q"], "model.action_dim": s["A"], "model.positions": s["P"],
        "model.time_buckets": s["K"], "model.attention_scale": "longest_in_batch", "model.query_time": "last_event",
        "model.circle_constant": 3.14,
    }  # fmt: skip
    return _write(output, moved, embeddings, settings)


def to_dlrmv4(
    model: Model, *, tables: Mapping[str, str] | None = None, actions: Sequence[int] = ()
) -> dict[str, Array]:
    """The state dictionary of DlrmHSTU, of a model of kind dlrmv4. tables: our table = theirs; without it item is
    item_id. actions: its action weights; without them 1, 2, 4, .."""
    weights = _weights(model)
    dense = {name: value for name, value in weights.dense.items() if value.shape[0] > 0}
    layers = count_layers(dense, names.DLRMV4_LAYER)
    moved = move(names.dlrmv4(layers), dense, "ours", {"H": _heads(weights)}, ())
    state = moved.tensors
    for name, value in names.DLRMV4_PERIODS.items():
        state[name] = np.array(value, np.float32)
    state[names.DLRMV4_ACTIONS] = np.array(actions or [1 << bit for bit in range(moved.sizes["b"])], np.int64)
    mapping = {"item": "item_id", **(tables or {})}
    for table in weights.tables:
        state[f"_embedding_collection.embeddings.{mapping.get(table, table)}.weight"] = weights.whole(table)
    return state


def from_recsys_examples(
    source: Source,
    output: PathLike,
    *,
    heads: int,
    tables: Mapping[str, str],
    dynamicemb: PathLike | None = None,
    replicated_rows: Mapping[str, int] | None = None,
    allow: Sequence[str] = (),
    trusted: bool = False,
) -> Start:
    """A model of recsys-examples' HSTU: RankingGR, or RetrievalGR, which has no head.

    source, trusted: as of read_state(). heads: of its layers. tables: their table = ours, such as {"video_id": "item"};
    other names stay. dynamicemb: the folder of the dump with the rows of dynamic tables. replicated_rows: rows of each
    data-parallel table, where several are one flat parameter. allow: patterns of names that may be left over.
    """
    state = read_state(source, trusted)
    dumped = {} if dynamicemb is None else read_dynamicemb(dynamicemb)
    for name in [n for n in state if (m := re.match(names.RECSYS_TABLE, n)) and m[1] in dumped]:
        del state[name]  # of a dynamic table, the state dictionary has a row that means nothing
    flat = [(m[1].split("/"), name) for name in state if (m := re.match(names.RECSYS_FLAT, name))]
    layers, head = count_layers(state, names.RECSYS_LAYER), count_layers(state, names.RECSYS_HEAD) // 2 + 1
    head = 0 if not any(re.match(names.RECSYS_HEAD, name) for name in state) else head
    embeddings = _take_tables(state, names.RECSYS_TABLE, tables)
    embeddings.update({tables.get(name, name): kept for name, kept in dumped.items()})
    replicated = {name: state.pop(name) for _, name in flat}
    sizes = {"H": heads} if head else {"H": heads, "P": names.RETRIEVAL_POSITIONS}
    groups = names.recsys(layers, head, _layer_of(state))
    moved = move(groups, state, "theirs", sizes, [*allow, *names.RECSYS_ALLOW])
    s = moved.sizes
    s.setdefault("E", s["D"])
    for group, name in flat:
        embeddings.update(_cut(name, group, replicated[name], replicated_rows or {}, tables, s["E"]))
    settings: dict[str, Any] = {
        "model.kind": "ranking_gr" if head else "retrieval", "model.embedding_dim": s["E"], "model.layers": layers,
        "model.heads": heads, "model.head_dim": s["d"],
    }  # fmt: skip
    if head:
        settings |= {"model.dim": s["D"], "model.positions": s["P"],
                     "model.head_hidden": [s[f"h{j}"] for j in range(head - 1)],
                     "model.preprocessor_mlp": "preprocessor.item.0.weight" in moved.tensors}  # fmt: skip
    else:
        settings["model.preset"] = "nvidia"
    return _write(output, moved, embeddings, settings)


def to_recsys_examples(
    model: Model,
    *,
    layer: str = "fused",
    tables: Mapping[str, str],
    replicated: Sequence[str] = (),
    dynamic: Sequence[str] = (),
) -> dict[str, Array]:
    """The state dictionary of RankingGR or RetrievalGR, of a model of kind ranking_gr or retrieval (nvidia).

    layer: its HSTULayerType, "fused", "native" or "debug". tables: our table = theirs; other names stay. replicated:
    our tables that are its one flat data-parallel parameter, in this order. dynamic: our tables that are left out here,
    as to_dynamicemb() writes them.
    """
    if layer not in names.RECSYS_LAYERS:
        raise ValueError(f"layer: expected one of {', '.join(names.RECSYS_LAYERS)}, found {layer!r}")
    weights = _weights(model)
    layers, head = count_layers(weights.dense, names.RECSYS_LAYER), count_layers(weights.dense, r"head\.(\d+)\.")
    state = move(names.recsys(layers, head, layer), weights.dense, "ours", {"H": _heads(weights)}, ()).tensors
    collection = "_embedding_collection._{}_parallel_embedding_collection.embeddings.{}"
    for table in weights.tables:
        if table not in replicated and table not in dynamic:
            state[collection.format("model", tables.get(table, table) + ".weight")] = weights.whole(table)
    if replicated:
        name = collection.format("data", "/".join(tables.get(table, table) for table in replicated) + "_weights")
        state[name] = np.concatenate([weights.whole(table).ravel() for table in replicated])
    return state


def from_dynamicemb(folder: PathLike, output: PathLike, *, tables: Mapping[str, str] | None = None) -> Start:
    """The rows of a DynamicEmb dump. tables: their table = ours; other names stay."""
    mapping = tables or {}
    found = {mapping.get(name, name): rows for name, rows in read_dynamicemb(folder).items()}
    return write_start(output, tables=found)


def to_dynamicemb(model: Model, folder: PathLike, *, tables: Mapping[str, str], ranks: int = 1) -> None:
    """A dump of these of our tables, under the names given: {"item": "video_id"}. Of write_dynamicemb()."""
    weights = _weights(model)
    write_dynamicemb({theirs: _table(weights, ours) for ours, theirs in tables.items()}, folder, ranks)


def from_word2vec(
    file: PathLike, output: PathLike, *, table: str = "item", texts: bool = True, binary: bool | None = None
) -> Start:
    """Vectors of word2vec or GloVe as rows. texts: words are texts of the log; False: they are integer ids."""
    words, vectors = read_word2vec(file, binary)
    if texts:
        return write_start(output, tables={table: (words, vectors)})
    wrong = [word for word in words if not re.fullmatch("0|[1-9][0-9]{0,18}", word) or int(word) >= 1 << 63]
    if wrong:
        raise ValueError(f"{file}: the word {wrong[0]!r} is no id: with texts=True words are texts of the log")
    return write_start(output, tables={table: (np.array([int(word) for word in words], np.int64), vectors)})


def to_word2vec(
    model: Model, file: PathLike, *, table: str = "item", texts: Mapping[int, str] | Names | None = None,
    binary: bool = False,
) -> None:  # fmt: skip
    """The rows that a table has, as word vectors. texts: by id, such as dataset.names("item"); an id without a text is
    its number."""
    kept = _table(_weights(model), table)
    words: Words = []
    for id in kept.ids.tolist():
        try:
            words.append(str(id) if texts is None else texts[id])
        except KeyError:
            words.append(str(id))
    write_word2vec(file, words, kept.rows, binary)


def _weights(model: Model) -> Weights:
    return model if isinstance(model, Weights) else read(model)


def _table(weights: Weights, table: str) -> Rows:
    if table not in weights.tables:
        raise ValueError(f"the model has no table {table!r}; it has {', '.join(weights.tables)}")
    return weights.tables[table]


def _heads(weights: Weights) -> int:
    if "heads" not in weights.config.get("model", {}):
        raise ValueError("the number of heads is in no configuration here: name a run or an export")
    return int(weights.config["model"]["heads"])


def _take_tables(state: dict[str, Array], pattern: str, mapping: Mapping[str, str]) -> dict[str, Rows]:
    """The tables of a state dictionary under our names, removed from it."""
    tables: dict[str, Rows] = {}
    origin: dict[str, str] = {}
    for name in list(state):
        match = re.match(pattern, name)
        if match is None:
            continue
        rows = exact_float32(name, state.pop(name))
        ours = mapping.get(match[1], match[1])
        if rows.ndim != 2 or rows.shape == (1, 1):
            raise ValueError(f"{name}: expected rows (V, D), found {rows.shape}: those of a dynamic table are in its "
                             "dump: give dynamicemb=FOLDER")  # fmt: skip
        if ours in tables:
            raise ValueError(f"{name} and {origin[ours]} would both be our table {ours}: name others by tables={{..}}")
        tables[ours], origin[ours] = Rows(np.arange(len(rows)), rows), name
    return tables


def _cut(
    name: str, group: Sequence[str], flat: Array, rows: Mapping[str, int], tables: Mapping[str, str], width: int
) -> dict[str, Rows]:
    """The tables of a flat parameter."""
    if len(group) == 1:
        rows = {group[0]: flat.size // width, **rows}
    missing = [table for table in group if table not in rows]
    if missing:
        raise ValueError(f"{name}: {flat.size} values of {len(group)} tables: give replicated_rows, the rows of "
                         f"{', '.join(missing)}")  # fmt: skip
    if sum(rows[table] for table in group) * width != flat.size:
        raise ValueError(f"{name}: expected {' + '.join(str(rows[t]) for t in group)} rows of {width} values, found "
                         f"{flat.size} values")  # fmt: skip
    result, begin = {}, 0
    for table in group:
        part = flat.ravel()[begin : begin + rows[table] * width].reshape(-1, width)
        begin += part.size
        result[tables.get(table, table)] = Rows(np.arange(len(part)), part)
    return result


def _layer_of(state: Iterable[str]) -> str:
    found = [name for name in state if name.startswith("_hstu_block._attention_layers.")]
    if any(name.endswith("_linear_uvqk_weight") for name in found):
        return "fused"
    return "debug" if any("_output_layernorm" in name for name in found) else "native"


def _write(output: PathLike, moved: Moved, tables: Mapping[str, Rows], settings: Mapping[str, Any]) -> Start:
    if "item" not in tables:
        raise ValueError(f"no table is our item; there are {', '.join(tables) or 'none'}: give tables={{X: 'item'}}")
    width = moved.sizes["E"]
    for table, kept in tables.items():
        if kept.rows.shape[1] != width:
            raise ValueError(f"table {table}: expected rows of {width} values, the width that the layers read, found "
                             f"{tuple(kept.rows.shape)}")  # fmt: skip
    start = write_start(output, moved.tensors, tables)
    return Start(start.path, dict(settings), start.rows, moved.matched, moved.filled, moved.unused)
