"""Files of a run, an export or a checkpoint that are cut or were altered: an error that names them."""

import json
import shutil

import numpy as np
import pytest

import hstu
from hstu import convert, tensors


def safetensors(header, data=b""):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(**changed):
    return {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changed}}


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\1\2", b"\xff" * 20, (1 << 40).to_bytes(8, "little"), b"\x10\0\0\0\0\0\0\0" + b"\xff" * 16,
        (100_000).to_bytes(8, "little") + b"[" * 100_000, safetensors([1]), safetensors({"a": 1}),
        safetensors(entry(), bytes(7)), safetensors(entry(dtype="F8"), bytes(8)),
        safetensors(entry(dtype=["F32"]), bytes(8)), safetensors(entry(shape=[3]), bytes(8)),
        safetensors(entry(shape=[-2], data_offsets=[8, 0]), bytes(8)), safetensors(entry(shape="ab"), bytes(8)),
        safetensors(entry(data_offsets=[0, 8.0]), bytes(8)), safetensors(entry(data_offsets=[-8, 0]), bytes(8)),
        safetensors(entry(data_offsets=[0]), bytes(8)), safetensors(entry(shape=[1 << 40]), bytes(8)),
    ],
)  # fmt: skip
def test_safetensors_that_are_cut_or_altered_are_named(tmp_path, data):
    (tmp_path / "a.safetensors").write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.safetensors"):
        tensors.read_safetensors(tmp_path / "a.safetensors")


def test_safetensors_are_read_as_they_were_written(tmp_path):
    written = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "s": np.array(0.5, np.float32),
               "none": np.empty((0, 4), np.float32)}  # fmt: skip
    tensors.write_safetensors(tmp_path / "a.safetensors", written)
    found = tensors.read_safetensors(tmp_path / "a.safetensors")
    assert found.keys() == written.keys()
    assert all(found[name].tolist() == value.tolist() and found[name].shape == value.shape
               for name, value in written.items())  # fmt: skip


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("weights/manifest.json", b"{"),
        ("weights/manifest.json", b"[]"),
        ("weights/manifest.json", b"{}"),
        ("weights/manifest.json", b'{"state": {}, "tables": [{"name": "../../../x"}]}'),
        ("weights/manifest.json", b'{"state": {}, "tables": [{"name": 3}]}'),
        ("weights/tables/item.safetensors", b"\0" * 8 + b"{}"),
        ("model.toml", b"\xff"),
        ("model.toml", b"[data"),
    ],
)
def test_an_export_that_was_altered_is_named(tmp_path, exported, file, text):
    export = shutil.copytree(exported, tmp_path / "export")
    (export / file).write_bytes(text)
    with pytest.raises(ValueError, match=str(export)):
        convert.read(export)


def test_a_run_and_a_dataset_that_were_altered_are_named(tmp_path, run, dataset):
    copy = shutil.copytree(run.path, tmp_path / "run")
    readers = {"metrics.jsonl": lambda: hstu.Run(copy).metrics(), "config.toml": lambda: hstu.Run(copy).config,
               "summary.json": lambda: hstu.Run(copy).summary}  # fmt: skip
    for file, read in readers.items():
        (copy / file).write_text("{\n")
        with pytest.raises(ValueError, match=f"{copy}/{file}"):
            read()
    copy = shutil.copytree(dataset.path, tmp_path / "dataset")
    whole = (copy / "item.npy").read_bytes()
    np.save(tmp_path / "pickled.npy", np.array([{1}, "a"], object))
    np.save(tmp_path / "long.npy", np.empty(0, "u1"))
    long = (tmp_path / "long.npy").read_bytes().replace(b"(0,), }" + b" " * 15, b"(%d,), }" % 10**15)
    for data in (b"", whole[:5], whole[:-1], (tmp_path / "pickled.npy").read_bytes(), long, b"no array"):
        (copy / "item.npy").write_bytes(data)
        with pytest.raises(ValueError, match=f"{copy}/item.npy"):
            hstu.Dataset(copy)["item"]
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match=f"{tmp_path}/manifest.json"):
        hstu.Dataset(tmp_path)


def test_a_dump_of_dynamicemb_that_is_cut_is_named(tmp_path):
    rows = convert.Rows(np.array([3, 5]), np.ones((2, 4), np.float32))
    convert.write_dynamicemb({"video": rows}, tmp_path)
    for name in ("video_emb_keys", "video_emb_values"):
        file = tmp_path / f"{name}.rank_0.world_size_1"
        whole = file.read_bytes()
        file.write_bytes(whole[:-3])
        with pytest.raises(ValueError, match=f"{name}.rank_0.world_size_1 is cut"):
            convert.read_dynamicemb(tmp_path)
        file.write_bytes(whole)
    (tmp_path / "video_opt_args.json").write_text("{")
    with pytest.raises(ValueError, match=r"video_opt_args\.json"):
        convert.read_dynamicemb(tmp_path)
    (tmp_path / "video_opt_args.json").unlink()
    (tmp_path / "huge_emb_keys.rank_0.world_size_999999999").write_bytes(b"")
    with pytest.raises(ValueError, match="table huge: expected files of one dump"):
        convert.read_dynamicemb(tmp_path)
