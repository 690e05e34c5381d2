"""hstu.convert with this environment's PyTorch: its files, its distributed checkpoints, shards of several ranks."""

import subprocess
import sys

import models
import numpy as np
import pytest

try:
    import torch
    import torch.distributed.checkpoint as dcp
except ImportError:
    pytest.skip("no PyTorch in this environment", allow_module_level=True)
from hstu import convert

TABLE = "_embedding_collection.embeddings.item_id.weight"
# What a trainer with two ranks writes: rows 0 to 2 of a table are on the first, 3 and 4 on the second.
TWO_RANKS = """
import os, sys, torch
import torch.distributed as dist, torch.distributed.checkpoint as dcp, torch.multiprocessing as mp
from torch.distributed._shard.sharded_tensor import Shard, init_from_local_shards
from torch.distributed.tensor import Shard as Shard1, distribute_tensor, init_device_mesh

def main(rank, folder):
    dist.init_process_group("gloo", rank=rank, world_size=2, init_method=f"file://{folder}/meeting")
    rows = torch.arange(20.).reshape(5, 4)[(0, 3)[rank]:(3, 5)[rank]].clone()
    table = init_from_local_shards([Shard.from_tensor_and_offsets(rows, [(0, 3)[rank], 0], rank)], 5, 4)
    torch.save({"model_state_dict": {"TABLE": table, "dense": torch.ones(2)}}, f"{folder}/model.{rank}.pth")
    torch.save({"dense": torch.ones(2) * rank}, f"{folder}/parallel.{rank}.pth")
    dcp.save({"sparse_dict": {"TABLE": table}}, checkpoint_id=f"{folder}/sparse")
    sharded = distribute_tensor(torch.arange(20.).reshape(5, 4), init_device_mesh("cpu", (2,)), [Shard1(0)])
    dcp.save({"t": sharded, "dense": torch.ones(2), "step": 3}, checkpoint_id=f"{folder}/dtensor")
    torch.save({"t": sharded}, f"{folder}/dtensor.{rank}.pt")
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(main, (sys.argv[1],), nprocs=2)
""".replace("TABLE", TABLE)


@pytest.fixture(scope="module")
def two_ranks(folder):
    path = folder / "two-ranks"
    path.mkdir()
    (path / "write.py").write_text(TWO_RANKS)
    subprocess.run([sys.executable, path / "write.py", path], check=True, capture_output=True)
    return path


def test_shards_of_all_ranks_are_one_table(two_ranks):
    files = [two_ranks / f"model.{rank}.pth" for rank in (0, 1)]
    state = convert.read_state(files)
    assert state.keys() == {TABLE, "dense"} and state["dense"].tolist() == [1, 1]
    assert state[TABLE].dtype == np.float32 and state[TABLE].ravel().tolist() == list(range(20))
    with pytest.raises(ValueError, match="12 of 20 values: give the files of all ranks"):
        convert.read_state(files[0])
    with pytest.raises(ValueError, match="two shards have the rows at"):
        convert.read_state([files[0], files[0]])
    with pytest.raises(ValueError, match="dense differs between ranks"):
        convert.read_state([two_ranks / f"parallel.{rank}.pth" for rank in (0, 1)])
    state = convert.read_state(two_ranks / "dtensor")
    assert state.keys() == {"t", "dense"} and state["t"].ravel().tolist() == list(range(20))
    for trusted in (False, True):
        with pytest.raises(ValueError, match=r"dtensor.0.pt: .*DTensor"):
            convert.read_state(two_ranks / "dtensor.0.pt", trusted)


def test_a_folder_of_the_trainer_of_generative_recommenders(two_ranks, folder):
    state = models.dlrmv4({"item_id": 5, "artist_id": 4, "uid": 3}, 1, width=4)
    dense = {name: torch.from_numpy(value) for name, value in state.items() if name != TABLE}
    torch.save(
        {"dense_dict": dense, "optimizer_dict": {"state": {}}, "sparse_tensor_keys": {TABLE}, "global_step": {}},
        two_ranks / "non_sparse.ckpt",
    )
    start = convert.from_dlrmv4(two_ranks, folder / "trainer", heads=2)
    expected = convert.from_dlrmv4(
        {**state, TABLE: np.arange(20, dtype=np.float32).reshape(5, 4)}, folder / "trainer.arrays", heads=2
    )
    found, expected = convert.read(start.path), convert.read(expected.path)
    assert found.dense.keys() == expected.dense.keys() and found.tables.keys() == expected.tables.keys()
    assert all(found.dense[name].tobytes() == expected.dense[name].tobytes() for name in found.dense)
    assert all(found.tables[name].rows.tobytes() == expected.tables[name].rows.tobytes() for name in found.tables)
    with pytest.raises(FileNotFoundError, match=r"\.metadata"):
        convert.read_state(folder / "trainer")


def test_types_of_16_bits_go_in_and_out(folder):
    for dtype in ("bfloat16", "float16"):
        state = {"_dmp_wrapped_module.a": torch.randn(50).to(getattr(torch, dtype)), "b": torch.tensor([1 << 40])}
        found = convert.read_state(state)
        assert found["a"].dtype == np.float32 and found["b"].tolist() == [1 << 40]
        convert.save_state(found, folder / dtype, dtype)
        again = torch.load(folder / dtype)
        assert again["a"].equal(state["_dmp_wrapped_module.a"]) and again["b"].equal(state["b"])


def test_files_and_checkpoints_have_the_tensors_that_pytorch_wrote(folder):
    layer = torch.nn.Linear(3, 2)
    whole = torch.arange(24.0).reshape(4, 6)
    kinds = [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
             torch.uint8, torch.bool]  # fmt: skip
    state = {"weight": layer.weight, "tied": layer.weight, "columns": whole[:, 1::2], "transposed": whole.t(),
             "scalar": torch.tensor(3), "none": torch.empty(0, 5), "row": torch.arange(5).expand(1, -1),
             **{str(kind): torch.arange(5).to(kind) for kind in kinds}}  # fmt: skip
    torch.save(
        {
            "state_dict": state,
            "optimizer": torch.optim.Adam(layer.parameters()).state_dict(),
            "seen": {1, "a"},
            "size": torch.Size([2]),
            "device": torch.device("cpu"),
        },
        folder / "all.pt",
    )
    dcp.save({"state_dict": dict(state)}, checkpoint_id=folder / "all")
    for source in (folder / "all.pt", folder / "all"):
        found = convert.read_state(source)
        assert found.keys() == state.keys()
        for name, tensor in state.items():
            assert found[name].shape == tuple(tensor.shape) and found[name].tolist() == tensor.tolist(), name
    for kind in (torch.complex64, torch.float8_e4m3fn):
        torch.save({"a": torch.ones(2).to(kind)}, folder / "other.pt")
        with pytest.raises(ValueError, match=r"other\.pt: "):
            convert.read_state(folder / "other.pt")
