"""hstu.attention with this environment's PyTorch: values, gradients, tracing without a GPU, the kernels of a GPU."""

import json
import struct
from pathlib import Path

import pytest

try:
    import torch
except ImportError:
    pytest.skip("no PyTorch in this environment", allow_module_level=True)
from hstu import attention
from hstu.attention import hstu_attention

GOLDEN = Path(__file__).resolve().parents[1] / "golden/attention.safetensors"


def golden():
    data = GOLDEN.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = json.loads(data[8:begin])
    del tensors["__metadata__"]
    types = {"F64": torch.float64, "I64": torch.int64}
    return {
        name: torch.frombuffer(bytearray(data[begin:][slice(*t["data_offsets"])]), dtype=types[t["dtype"]])
        .reshape(t["shape"]) for name, t in tensors.items()}  # fmt: skip


def problem(dtype, device="cpu", heads=2, dim=4, lengths=(5, 0, 1, 9)):
    """Arguments that use every setting."""
    generator = torch.Generator().manual_seed(1)
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    tokens = int(offsets[-1])
    wide = torch.randn(tokens, 3, heads, dim, generator=generator, dtype=torch.float64)
    times = torch.sort(torch.randint(0, 1000, (tokens,), generator=generator)).values
    tables = [torch.randn(heads, size, generator=generator, dtype=torch.float64) for size in (7, 4)]
    real = torch.float64 if dtype == torch.float64 else torch.float32
    q, k, v = (x.to(device, dtype).requires_grad_() for x in wide.unbind(1))
    settings = {
        "contexts": torch.tensor([1, 0, 0, 2], dtype=torch.int32), "targets": torch.tensor([2, 0, 1, 4]).int(),
        "sample_scale": torch.tensor([0.5, 1, 1, 2], dtype=real), "thresholds": torch.tensor([1, 30, 200]),
        "query_time": times, "key_time": times,
    }  # fmt: skip
    settings = {name: x.to(device) for name, x in settings.items()}
    settings["position_table"], settings["time_table"] = (x.to(device, real).requires_grad_() for x in tables)
    return (q, k, v, offsets.to(device)), {**settings, "window_left": 3, "target_group": 2, "scale": 0.25}


def test_values_and_gradients_are_the_golden_ones():
    t = golden()
    heads = int(t["heads"])
    q, k, v = (t["uvqk"].chunk(4, 1)[at].reshape(len(t["o"]), heads, -1).requires_grad_() for at in (2, 3, 1))
    o = hstu_attention(q, k, v, t["offsets"], sample_scale=t["scale"], alpha=float(t["alpha"]))
    o.backward(t["d_o"].reshape(o.shape))
    for name, found in {"o": o, "dq": q.grad, "dk": k.grad, "dv": v.grad}.items():
        torch.testing.assert_close(found.flatten(1), t[name], rtol=1e-10, atol=1e-12)


def test_the_mask_is_that_of_the_documents():
    """Two contexts, six of history, two groups of two targets, causal; then a window of two to the left."""
    page = (GOLDEN.parents[2] / "docs/attention.md").read_text()
    drawings = [block.strip("\n").split("\n") for block in page.split("```")[1::2] if "c c h h" in block]
    for drawing, left in zip(drawings[-2:], (-1, 2)):
        names, n = [line.split()[0] for line in drawing[1:]], 12
        rows = range(n) if len(names) == n else (4, 5, 6, 8)
        one = torch.ones(n, 1, 1, dtype=torch.float64)
        settings = {"contexts": torch.tensor([2], dtype=torch.int32), "targets": torch.tensor([4]).int()}
        for j in range(n):
            v = torch.zeros_like(one)
            v[j] = 1
            o = hstu_attention(one, one, v, torch.tensor([0, n]), window_left=left, target_group=2, **settings)
            for line, i in zip(drawing[1:], rows):
                seen = line.ljust(40)[len(line) - len(line.lstrip()) + 2 * (j + 1)] == "#"
                assert (o[i] != 0).item() == seen, (left, i, j, line)


def test_gradients_are_those_of_finite_differences():
    (q, k, v, offsets), settings = problem(torch.float64)
    tables = settings.pop("position_table"), settings.pop("time_table")

    def function(q, k, v, position_table, time_table):
        return hstu_attention(q, k, v, offsets, position_table=position_table, time_table=time_table, **settings)

    assert torch.autograd.gradcheck(function, (q, k, v, *tables))


def test_queries_may_be_the_last_tokens():
    (q, k, v, offsets), settings = problem(torch.float32)
    whole = hstu_attention(q, k, v, offsets, **settings)
    rows = torch.tensor([3, 4, 14])
    settings["query_time"] = settings["query_time"][rows]
    some = hstu_attention(q[rows], k, v, offsets, query_offsets=torch.tensor([0, 2, 2, 2, 3]), **settings)
    torch.testing.assert_close(some, whole[rows])
    some.sum().backward()
    assert q.grad is not None and torch.isfinite(k.grad).all()


def test_operators_keep_the_rules_of_torch():
    (q, k, v, offsets), settings = problem(torch.float32)
    order = ["query_offsets", "contexts", "targets", "sample_scale", "position_table", "time_table", "thresholds",
             "query_time", "key_time"]  # fmt: skip
    tensors = [settings.get(name) for name in order]
    torch.library.opcheck(torch.ops.hstu.attention.default, (q, k, v, offsets, *tensors, 0.5, 1.0, -1, 0, 1, 0, False))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(8, 3 * 8)

    def forward(self, x, offsets):
        q, k, v = self.qkv(x).reshape(-1, 3, 2, 4).unbind(1)
        return x + hstu_attention(q, k, v, offsets, scale=0.1).flatten(1)


def test_a_layer_is_compiled_and_exported_without_a_gpu():
    torch.manual_seed(1)
    layer, x, offsets = Layer(), torch.randn(9, 8), torch.tensor([0, 4, 9])
    plain = layer(x, offsets)
    plain.sum().backward()
    expected = [parameter.grad.clone() for parameter in layer.parameters()]
    layer.zero_grad()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, offsets), plain)
    compiled(x, offsets).sum().backward()
    for parameter, gradient in zip(layer.parameters(), expected):
        torch.testing.assert_close(parameter.grad, gradient)
    tokens, samples = torch.export.Dim("tokens", min=2), torch.export.Dim("samples", min=2)
    exported = torch.export.export(layer, (x, offsets), dynamic_shapes=({0: tokens}, {0: samples}))
    assert any("hstu.attention" in str(node.target) for node in exported.graph.nodes)
    longer, more = torch.randn(12, 8), torch.tensor([0, 4, 9, 12])
    torch.testing.assert_close(exported.module()(longer, more), layer(longer, more))


class OfAnotherLibrary:
    """It has the DLPack protocol and nothing else."""

    def __init__(self, x):
        self.__dlpack__, self.__dlpack_device__ = x.__dlpack__, x.__dlpack_device__


def test_arrays_of_other_libraries_and_mistakes():
    (q, k, v, offsets), _ = problem(torch.float32)
    arrays = [OfAnotherLibrary(x.detach()) for x in (q, k, v, offsets)]
    torch.testing.assert_close(hstu_attention(*arrays), hstu_attention(q, k, v, offsets))
    with pytest.raises((ValueError, RuntimeError), match=r"offsets: expected torch.int64"):
        hstu_attention(q, k, v, offsets.int())
    with pytest.raises((ValueError, RuntimeError), match=r"expected \(tokens, heads, D\)"):
        hstu_attention(q, k[:3], v, offsets)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gpu_computes_what_the_cpu_does(dtype):
    attention.load()
    results = []
    for device in ("cpu", "cuda"):
        arguments, settings = problem(dtype, device, heads=2, dim=64, lengths=(50, 0, 1, 300))
        o = hstu_attention(*arguments, **settings)
        o.backward(torch.linspace(-1, 1, o.numel(), dtype=torch.float32).reshape(o.shape).to(device, dtype))
        results.append([o, *(x.grad for x in (*arguments[:3], settings["position_table"], settings["time_table"]))])
    for on_cpu, on_gpu in zip(*results):
        largest = on_cpu.abs().max().item()
        torch.testing.assert_close(on_gpu.cpu(), on_cpu, rtol=0.02, atol=0.02 * largest)
