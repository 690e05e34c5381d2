"""hstu.convert reads files of PyTorch without it, and nothing that a pickle names is imported or called."""

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from torch_files import Call, Name, Operations, Stored, of_checkpoint, pickled, save_distributed, saved, size

from hstu import convert

DEEP = b")" + b"2\x86" * 60  # tuples in tuples: its text, and its hash, would take years
TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)


def stack_global(module, name):
    words = [pickle.SHORT_BINUNICODE + bytes([len(word)]) + word.encode() for word in (module, name)]
    return Operations(b"".join(words) + pickle.STACK_GLOBAL)


def of_storage(offset=0, shape=(4, 3), strides=(3, 1), count=12, key="0", kind="FloatStorage"):
    storage = Stored(("storage", Name("torch", kind), key, "cpu", count))
    return Call(Name("torch._utils", "_rebuild_tensor_v2"), (storage, offset, shape, strides, False, None))


def code(folder):
    """What would make the folder `ran` if it were run, by what it uses."""
    ran = str(folder / "ran")
    system = Name("os", "system")
    return {
        "a function": Call(Name("os", "mkdir"), (ran,)),
        "a method by getattr": Call(Call(Name("builtins", "getattr"), (Name("os", "path"), "mkdir")), (ran,)),
        "eval": Call(Name("builtins", "eval"), (f"__import__('os').mkdir({ran!r})",)),
        "a name with dots": Call(stack_global("torch", "serialization.os.mkdir"), (ran,)),
        "a name with dots in a known module": Call(stack_global("torch", "Size.__class__"), (ran,)),
        "a function of PyTorch": Call(Name("torch.hub", "load"), (ran, "model")),
        "torch.load": Call(Name("torch", "load"), (ran,)),
        "a state": Call(Name("torch", "Size"), ((),), {"__setstate__": system}),
        "an object in the way of protocol 0": Operations(b"(" + pickle.UNICODE + ran.encode() + b"\nios\nmkdir\n"),
        "a class with arguments": Operations(b"(cos\nmkdir\n" + pickle.UNICODE + ran.encode() + b"\no"),
        "an extension": Operations(pickle.EXT1 + b"\x01"),
        "a class that is a state": Operations(b"ctorch\nSize\nN}b"),
    }


KINDS = list(code(Path(".")))


def write(where, folder, value):
    """The value in the pickle of one of the files that are read. Returns what to read."""
    if where == "torch.save":
        (folder / "a.pt").write_bytes(saved({"a": TABLE, "b": value}))
        return folder / "a.pt"
    if where == "non_sparse.ckpt":
        save_distributed(folder / "sparse", {"t": ((4, 3), [((0, 0), TABLE)])})
        (folder / "non_sparse.ckpt").write_bytes(saved({"dense_dict": {"a": TABLE}, "b": value}))
        return folder
    if where == "sparse/.metadata":
        (folder / "non_sparse.ckpt").write_bytes(saved({"a": TABLE}))
        (folder / "sparse").mkdir()
        (folder / "sparse/.metadata").write_bytes(pickled(of_checkpoint("Metadata", planner_data=value))[0])
        return folder
    save_distributed(folder / "dcp", {"t": ((4, 3), [((0, 0), TABLE)])})
    file = folder / ("dcp/.metadata" if where == ".metadata" else "dcp/__0_0.distcp")
    file.write_bytes(pickled(value)[0] if where == ".metadata" else saved(value).ljust(file.stat().st_size, b"\0"))
    return folder / "dcp"


@pytest.mark.parametrize("where", ["torch.save", "non_sparse.ckpt", ".metadata", "sparse/.metadata", "a chunk"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trusted", [False, True])
def test_code_in_a_file_does_not_run(tmp_path, where, kind, trusted):
    source = write(where, tmp_path, code(tmp_path)[kind])
    try:
        state = convert.read_state(source, trusted)
    except ValueError as error:
        assert str(tmp_path) in str(error)
    else:
        assert trusted or kind == "a state"
        assert set(state) <= {"a", "t"} and all(isinstance(value, np.ndarray) for value in state.values())
    assert not (tmp_path / "ran").exists()


def test_an_object_of_another_class_is_named_and_left_out_where_that_is_asked_for(tmp_path):
    class_ = Name("argparse", "Namespace")
    for other in (Call(class_, (), {"lr": 0.1}), Call(class_, ({"a": 1},)), class_, [Call(class_, ())]):
        (tmp_path / "a.pt").write_bytes(saved({"state_dict": {"module.a": TABLE}, "arguments": other}))
        with pytest.raises(ValueError, match=r"a\.pt: it names 'argparse.Namespace', .*nothing of it was run"):
            convert.read_state(tmp_path / "a.pt")
        state = convert.read_state(tmp_path / "a.pt", trusted=True)
        assert list(state) == ["a"] and state["a"].tobytes() == TABLE.tobytes()


def test_every_type_of_number_is_read_as_it_is(tmp_path):
    kinds = {name: np.arange(6).astype(name).reshape(2, 3) for name in ("f8", "f2", "i8", "i4", "i2", "i1", "u1", "?")}
    more = {"transposed": TABLE.copy().T, "scalar": np.array(2.5, np.float32), "none": np.empty((0, 4), np.float32)}
    (tmp_path / "a.pt").write_bytes(saved({**kinds, **more, "step": 3, "name": "x", "list": [1, None]}))
    state = convert.read_state(tmp_path / "a.pt")
    assert state.keys() == {*kinds, *more}
    for name, expected in {**kinds, **more}.items():
        assert state[name].tolist() == expected.tolist() and state[name].shape == expected.shape, name
        assert state[name].dtype == (np.float32 if expected.dtype.kind == "f" else expected.dtype)
    bfloat16 = of_storage(offset=2, shape=(2,), strides=(2,), count=8, kind="BFloat16Storage")
    (tmp_path / "b.pt").write_bytes(saved({"i": np.array([0, 0, 0x3F80, 0, 0x4040, 0, 0, 0], "i2"), "b": bfloat16}))
    assert convert.read_state(tmp_path / "b.pt")["b"].tolist() == [1, 3]


def test_a_distributed_checkpoint_is_put_together(tmp_path):
    tensors = {"sparse_dict.t": ((4, 3), [((2, 0), TABLE[2:].copy()), ((0, 0), TABLE[:2].copy())]),
               "n": ((2,), [((0,), np.array([1 << 40, 2]))]), "s": ((), [((), np.array(0.5, np.float32))])}  # fmt: skip
    save_distributed(tmp_path / "dcp", tensors)
    state = convert.read_state(tmp_path / "dcp")
    assert state["t"].tobytes() == TABLE.tobytes() and state["s"] == 0.5 and state["n"].tolist() == [1 << 40, 2]
    save_distributed(tmp_path / "half", {"t": ((4, 3), [((0, 0), TABLE[:2].copy())])})
    with pytest.raises(ValueError, match="t: the shards have 6 of 12 values"):
        convert.read_state(tmp_path / "half")


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"relative_path": "../a.pt"}, r"\.metadata: t is in '../a.pt': expected the name of a file in the folder"),
        ({"relative_path": "/etc/hostname"}, "expected the name of a file in the folder"),
        ({"relative_path": 3}, "expected the name of a file in the folder"),
        ({"relative_path": Operations(DEEP)}, "t is in tuple: expected the name of a file"),
        ({"relative_path": ".."}, "expected the name of a file in the folder"),
        ({"offset": -1}, "t: expected an offset and a length in __0_0.distcp"),
        ({"length": 1 << 60}, "__0_0.distcp is cut: t ends at byte"),
        ({"length": 100}, "__0_0.distcp: it is cut, or torch.save .* has not written it"),
        ({"transform_descriptors": ["zstd"]}, "t is compressed"),
    ],
)
def test_places_of_chunks_are_checked(tmp_path, changed, text):
    (tmp_path / "a.pt").write_bytes(saved(TABLE))
    save_distributed(tmp_path / "dcp", {"t": ((4, 3), [((0, 0), TABLE)])}, **changed)
    with pytest.raises(ValueError, match=text):
        convert.read_state(tmp_path / "dcp")


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (of_storage(count=13), "data/0 has 48 bytes, which are not 13 numbers"),
        (of_storage(count=-1), "which are not -1 numbers"),
        (of_storage(key="1"), "without 'data/1'"),
        (of_storage(key="../data.pkl"), "without 'data/../data.pkl'"),
        (of_storage(key=Operations(DEEP)), "a storage of an unknown type, without a key"),
        (of_storage(count=Operations(DEEP)), "a storage of an unknown type, without a key"),
        (of_storage(kind="UntypedStorage"), "torch.UntypedStorage"),
        (of_storage(shape=(5, 3)), r"a tensor \(5, 3\) with the strides \(3, 1\) .* does not fit 12 numbers"),
        (of_storage(offset=-1), "does not fit"),
        (of_storage(strides=(-3, 1)), "no tuple of sizes"),
        (of_storage(shape=(1 << 40,), strides=(0,)), "more numbers than it has bytes"),
        (of_storage(shape=(1 << 62, 1 << 62), strides=(1, 1)), "no tuple of sizes"),
        (of_storage(shape="ab"), "no tuple of sizes"),
        (Call(Name("torch._utils", "_rebuild_tensor_v2"), (TABLE, 0, (1,), (1,), False, None)), "no pickle of PyTorch"),
        (Call(Name("torch", "Size"), ()), "no pickle of PyTorch"),
        (Operations(pickle.BYTEARRAY8 + (1 << 40).to_bytes(8, "little")), "no pickle of PyTorch"),
        (Operations(pickle.BINUNICODE8 + (1 << 60).to_bytes(8, "little")), "no pickle of PyTorch"),
        (Operations(b"}" + DEEP + b"Ns"), "a dictionary has a tuple as a key"),
    ],
)  # fmt: skip
def test_tensors_that_the_file_does_not_have_are_refused(tmp_path, wrong, text):
    (tmp_path / "a.pt").write_bytes(saved({"a": TABLE, "b": wrong}))
    with pytest.raises(ValueError, match=rf"a\.pt: .*({text})"):
        convert.read_state(tmp_path / "a.pt")


def test_an_index_of_the_memo_takes_no_memory(tmp_path):
    index = pickle.LONG_BINPUT + b"\xff\xff\xff\x7f"
    (tmp_path / "a.pt").write_bytes(saved({"a": TABLE, "b": Operations(b"N" + index)}))
    assert list(convert.read_state(tmp_path / "a.pt")) == ["a"]


def test_what_is_no_file_of_torch_save_is_named(tmp_path):
    file = tmp_path / "a.pt"
    whole = saved({"a": TABLE})
    cases = [(b"", "cut"), (pickle.dumps({"a": 1}), "torch.save of PyTorch 1.6"), (saved([TABLE]), "a dictionary"),
             (saved({"a": TABLE}, byteorder=b"big"), "little-endian"),
             (saved({"a": TABLE}, compression=zipfile.ZIP_DEFLATED), "compressed"),
             (whole.replace(b"archive/data.pkl", b"archive/data.xyz"), "without 'data.pkl'")]  # fmt: skip
    cases += [(whole[:length], "cut") for length in range(1, len(whole), 37)]
    for data, text in cases:
        file.write_bytes(data)
        with pytest.raises(ValueError, match=rf"a\.pt: .*{text}"):
            convert.read_state(file)
    with pytest.raises(FileNotFoundError, match="b.pt"):
        convert.read_state(tmp_path / "b.pt")


def test_altered_bytes_never_give_anything_but_an_error_or_arrays(tmp_path):
    generator = np.random.default_rng(3)
    save_distributed(tmp_path / "dcp", {"t": ((4, 3), [((2, 0), TABLE[2:].copy()), ((0, 0), TABLE[:2].copy())])})
    (tmp_path / "a.pt").write_bytes(saved({"a": TABLE, "b": [TABLE.T, size(2, 3)]}))
    for file, source in ((tmp_path / "a.pt", tmp_path / "a.pt"), (tmp_path / "dcp/.metadata", tmp_path / "dcp")):
        whole = np.frombuffer(file.read_bytes(), np.uint8)
        for _ in range(300):
            data = whole.copy()
            data[generator.integers(0, len(data), generator.integers(1, 4))] = generator.integers(0, 256)
            file.write_bytes(data.tobytes())
            try:
                state = convert.read_state(source)
            except (FileNotFoundError, ValueError):
                continue
            assert all(isinstance(value, np.ndarray) and value.size <= 12 for value in state.values())


def test_names_with_control_characters_and_those_that_are_the_same_without_prefixes_are_refused():
    with pytest.raises(ValueError, match=r"the name 'a\\x1b\[2J' of a tensor has control characters"):
        convert.read_state({"a\x1b[2J": TABLE})
    with pytest.raises(ValueError, match="two tensors are a, as prefixes are taken off"):
        convert.read_state({"module.a": TABLE, "a": TABLE})
