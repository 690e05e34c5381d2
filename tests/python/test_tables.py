"""hstu.Table against plain NumPy, its files, and its layer with this environment's PyTorch."""

import copy
import ctypes
import pickle
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from forks import in_a_fork

import hstu
from hstu import convert
from hstu.tables import Options

try:
    import torch
except ImportError:
    torch = None
needs_torch = pytest.mark.skipif(torch is None, reason="no PyTorch in this environment")
GENERATOR = np.random.default_rng(5)


def small(**options):
    return hstu.Table(**{"rows": 50, "dim": 4, "name": "item", **options})


def step_of(n):
    return GENERATOR.integers(0, 50, n), GENERATOR.standard_normal((n, 4)).astype(np.float32)


def test_a_table_is_adagrad_of_its_rows():
    table = small(optimizer="adagrad", epsilon=1e-3)
    everything = np.arange(50)
    rows, sums = table.lookup(everything).astype(float), np.zeros((50, 4))
    assert len(table) == 0 and np.abs(rows).max() <= 50**-0.5
    for _ in range(5):
        ids, gradients = step_of(30)
        table.update(ids, gradients, learning_rate=0.1)
        total = np.zeros((50, 4))
        np.add.at(total, ids, gradients.astype(float))
        sums += total**2
        rows -= 0.1 * total / (np.sqrt(sums) + 1e-3)
    np.testing.assert_allclose(table.lookup(everything), rows, atol=1e-5)
    ids, values, state = table.export()
    assert len(table) == len(ids) and values.tobytes() == table.lookup(ids).tobytes()
    np.testing.assert_allclose(state, sums[ids], rtol=1e-4)
    shaped = table.lookup(np.array([[3, 3], [-1, 50]]))
    assert shaped.shape == (2, 2, 4) and (shaped[0, 0] == shaped[0, 1]).all() and not shaped[1].any()


def test_a_saved_table_continues_and_is_what_a_warm_start_reads(folder):
    options = {"optimizer": "adam", "capacity": 15, "evict": "lru", "admit_after": 2}
    with small(**options) as table, small(**options) as again:
        for _ in range(4):
            table.update(*step_of(40), learning_rate=0.1)
        table.save(folder / "table")
        again.load(folder / "table")
        for _ in range(4):
            ids, gradients = step_of(40)
            for one in (table, again):
                one.update(ids, gradients, learning_rate=0.1)
        for found, expected in zip(again.export(), table.export()):
            assert found.tobytes() == expected.tobytes()
        assert len(table) == 15
        kept = convert.read(folder / "table").tables["item"]
        assert kept.ids.shape == (15,) and kept.rows.shape == (15, 4)
        assert "item" in hstu.call("inspect", folder / "table")
        with pytest.raises(ValueError, match="not empty"):
            again.load(folder / "table")
        with small(seed=2, **options) as other, pytest.raises(ValueError, match="seed"):
            other.load(folder / "table")
    with pytest.raises(ValueError, match="closed"):
        table.lookup([1])


def test_threads_share_a_table():
    table = small(optimizer="sgd", initial="constant")
    one = np.ones((50, 4), np.float32)

    def work():
        for _ in range(50):
            table.update(np.arange(50), one, learning_rate=1.0)
            found = table.lookup(np.arange(50))
            assert (found == found[0, 0]).all()  # a lookup is between two updates

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (table.lookup([0, 49]) == -200).all()


def test_mistakes_of_tables_are_named():
    for options, text in [({"dim": 0}, "dim >= 1"), ({"evict": "all"}, 'unknown evict "all"')]:
        with pytest.raises(ValueError, match=text):
            hstu.Table(**{"rows": 5, "dim": 4, **options})
    with pytest.raises(TypeError, match="unknown option 'width'; there are name, rows"):
        hstu.Table(rows=5, dim=4, width=3)
    table = small()
    with pytest.raises(ValueError, match=r"gradients: expected \(2, 4\) of ids \(2,\), found \(2, 3\)"):
        table.update([1, 2], np.ones((2, 3)), 0.1)
    with pytest.raises(ValueError, match="ids: 9223372036854775809 does not fit into int64"):
        table.lookup(np.array([1, 2**63 + 1], np.uint64))
    with pytest.raises(ValueError, match="time: 18446744073709551616 does not fit into int64"):
        table.update([1], np.ones((1, 4)), learning_rate=0.1, time=2**64)
    with pytest.raises(ValueError, match="rows: 18446744073709551621 does not fit into int64"):
        hstu.Table(rows=2**64 + 5, dim=4)
    with pytest.raises(ValueError, match="seed: 18446744073709551616 does not fit into uint64"):
        hstu.Table(rows=5, dim=4, seed=2**64)
    with pytest.raises(ValueError, match="ids: expected integers, found float64"):
        table.lookup([0.5])
    with pytest.raises(ValueError, match="the gradient of id 2 is not finite"):
        table.update([1, 2], [[1, 1, 1, 1], [1, 1, 1, np.nan]], 0.1)
    assert len(table) == 0


@pytest.mark.parametrize(
    ("option", "value"),
    [("bound", np.nan), ("value", np.inf), ("epsilon", "1"), ("beta1", None), ("evict", None), ("name", 3),
     ("capacity", 1.5), ("weight_decay", -np.inf)],
)  # fmt: skip
def test_options_of_another_kind_are_named(option, value):
    with pytest.raises(ValueError, match=f"{option}: expected"):
        hstu.Table(**{"rows": 5, "dim": 4, option: value})
    with pytest.raises(ValueError, match="learning_rate: expected a finite number, found nan"):
        small().update([1], np.ones((1, 4)), learning_rate=np.nan)


def test_a_table_shows_what_it_is():
    with small(optimizer="sgd") as table:
        table.update([1, 2], np.ones((2, 4)), learning_rate=np.float32(0.5))
        assert repr(table) == "<hstu.Table item: rows=50, dim=4, optimizer='sgd', len=2>"
    assert repr(table).endswith("len=closed>")


def test_a_table_is_neither_copied_nor_pickled():
    table = small()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a Table is not copied or pickled"):
            copied(table)


def test_a_process_that_was_forked_opens_its_own_table(folder):
    """A child has none of the threads of its parent, for which it would wait for ever."""
    table = hstu.Table(rows=1 << 17, dim=4)
    ids = np.arange(1 << 17)
    table.update(ids, np.ones((len(ids), 4)), 0.1)

    def child():
        for call in (lambda: table.lookup([1]), lambda: len(table), lambda: table.save(folder / "no"), table.export,
                     lambda: table.update([1], np.ones((1, 4)), 0.1)):  # fmt: skip
            with pytest.raises(RuntimeError, match=r"opened this Table, and process \d+ was forked from it"):
                call()
        table.close()
        with hstu.Table(rows=1 << 17, dim=4) as own:
            own.update(ids, np.ones((len(ids), 4)), 0.1)
            assert len(own) == len(ids)

    assert in_a_fork(child) == 0
    assert len(table) == len(ids)


def test_bytes_of_a_table_replace_another_one():
    options = {"optimizer": "adam", "capacity": 15, "evict": "lru", "admit_after": 2}
    with small(**options) as table, small(**options) as other, small(dim=5) as wide:
        for _ in range(4):
            table.update(*step_of(40), learning_rate=0.1)
        other.update(*step_of(40), learning_rate=0.1)
        other.from_bytes(table.to_bytes())
        ids, gradients = step_of(40)
        for one in (table, other):
            one.update(ids, gradients, learning_rate=0.1)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(table.export(), other.export()))
        before = other.to_bytes()
        for wrong in (b"", before[:-1], before[:9], bytes(100), wide.to_bytes(), b"\xff" * 8 + before[8:]):
            with pytest.raises(ValueError, match="."):
                other.from_bytes(wrong)
            assert other.to_bytes() == before


def test_options_are_those_of_the_header():
    header = (Path(hstu.__file__).parent / "tree/include/hstu/tables.h").read_text()
    body = header[header.index("typedef struct {") : header.index("} hstu_table_options;")]
    types = {"size_t ": ctypes.c_size_t, "const char* ": ctypes.c_char_p, "int64_t ": ctypes.c_int64,
             "uint64_t ": ctypes.c_uint64, "double ": ctypes.c_double}  # fmt: skip
    found = [(name, types[kind]) for kind, names in re.findall(r"^  ((?:const )?\w+\*? )([\w, ]+);", body, re.MULTILINE)
             for name in names.split(", ")]  # fmt: skip
    assert found == Options._fields_


@needs_torch
def test_a_layer_trains_as_the_table_does():
    layer, plain = small(optimizer="adam").module(), small(optimizer="adam")
    ids = torch.tensor([[1, 7], [7, 9]])
    weight = torch.randn(4)
    (layer(ids) @ weight).sum().backward()
    (layer(ids[0]) @ (2 * weight)).sum().backward()
    assert len(layer.table) == 0
    layer.step(learning_rate=0.1)
    gradients = torch.cat([weight.expand(4, 4), 2 * weight.expand(2, 4)])
    plain.update([1, 7, 7, 9, 1, 7], gradients, learning_rate=0.1)  # by DLPack
    for found, expected in zip(layer.table.export(), plain.export()):
        np.testing.assert_array_equal(found, expected)
    layer(ids).sum().backward()
    layer.discard()
    layer.step(learning_rate=0.1)
    assert layer.table.export()[1].tobytes() == plain.export()[1].tobytes()


@needs_torch
def test_a_layer_is_traced_without_its_rows():
    layer = small().module()
    model = torch.nn.Sequential(layer, torch.nn.Linear(4, 2))
    ids = torch.tensor([3, 8, 3])
    expected = model(ids)
    torch.library.opcheck(torch.ops.hstu.table_lookup.default, (ids, layer.anchor, layer.number, 4))
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(ids), expected)
    layer.discard()  # what opcheck asked for
    compiled(ids).sum().backward()
    assert [tuple(gradient.shape) for _, gradient in layer.collected] == [(3, 4)]
    exported = torch.export.export(model, (ids,), dynamic_shapes=({0: torch.export.Dim("n", min=2)},))
    torch.testing.assert_close(exported.module()(ids[:2]), expected[:2])
    assert any("hstu.table_lookup" in str(node.target) for node in exported.graph.nodes)
    with pytest.raises((ValueError, RuntimeError), match="expected torch.int64"):
        layer(ids.int())


@needs_torch
def test_a_state_dictionary_has_the_table(folder):
    """Also in a file, and in place of rows that are there; with the optimizer's state and what waits for a row."""

    def model():
        return torch.nn.Sequential(small(optimizer="adam", admit_after=2).module(), torch.nn.Linear(4, 1))

    first, second = model(), model()
    ids = torch.tensor([1, 7, 7, 9])
    for one, steps in ((first, 2), (second, 3)):
        for _ in range(steps):
            one(ids + steps).sum().backward()
            one[0].step(0.5)
    torch.save(first.state_dict(), folder / "state.pt")
    state = torch.load(folder / "state.pt", weights_only=True)
    assert state.keys() == {"0.anchor", "0._extra_state", "1.weight", "1.bias"}
    second.load_state_dict(state)
    for one in (first, second):
        one(ids).sum().backward()
        one[0].step(0.5)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(first[0].table.export(), second[0].table.export()))
    assert "(0): TableModule(rows=50, dim=4, optimizer='adam', len=" in repr(first)
    del state["0._extra_state"]
    with pytest.raises(RuntimeError, match="Missing key.*0._extra_state"):
        second.load_state_dict(state)
    state["0._extra_state"] = torch.zeros(3)
    with pytest.raises(ValueError, match="expected the rows of <hstu.Table item: rows=50"):
        second.load_state_dict(state)
    with pytest.raises(TypeError, match="a Table is not copied or pickled"):
        copy.deepcopy(first)
