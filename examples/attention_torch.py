"""HSTU attention in PyTorch through the package hstu (docs/python.md): jagged tensors, gradients, and a check of both
against plain PyTorch in fp32.

    python3 examples/attention_torch.py [--library build/libhstu_attention.so]

Without the wheel of hstu, the package of this checkout is used, with the library that is named.
"""

import argparse
import itertools
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "python"))  # behind an installed hstu

try:
    import torch
except ImportError:
    sys.exit("attention_torch.py needs PyTorch with CUDA: pip install torch")
import hstu.attention
from hstu.attention import hstu_attention


def plain_attention(q, k, v, offsets, scale):
    """The same in plain PyTorch, sample by sample."""
    out = []
    ends = offsets.tolist()
    for begin, end in itertools.pairwise(ends):
        scores = torch.einsum("ihd,jhd->hij", q[begin:end], k[begin:end]) * q.shape[2] ** -0.5
        weights = scale * torch.nn.functional.silu(scores).tril()  # silu(0) = 0: what tril drops weighs nothing
        out.append(torch.einsum("hij,jhd->ihd", weights, v[begin:end]))
    return torch.cat(out)


class DlpackOnly:
    """Like the array of another library: it has the DLPack protocol and nothing else."""

    def __init__(self, x):
        self.__dlpack__, self.__dlpack_device__ = x.__dlpack__, x.__dlpack_device__


def check(heads, head_dim, dtype):
    """Prints the differences from the plain form; True when one is over 2 % of the largest value."""
    lengths = torch.tensor([300, 0, 1, 77, 1024])
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).cuda()
    # q, k and v are views of one wider row, as a layer's single matrix product leaves them.
    wide = torch.randn(int(lengths.sum()), 3, heads, head_dim, device="cuda", dtype=dtype, requires_grad=True)
    exact = wide.detach().float().requires_grad_()
    d_o = torch.randn(int(lengths.sum()), heads, head_dim, device="cuda", dtype=dtype)

    o = hstu_attention(*wide.unbind(1), DlpackOnly(offsets), scale=1 / 1024)
    o.backward(d_o)
    expected = plain_attention(*exact.unbind(1), offsets, 1 / 1024)
    expected.backward(d_o.float())

    wrong = False
    found = [o, *wide.grad.unbind(1)]
    for name, a, b in zip(["o", "dq", "dk", "dv"], found, [expected, *exact.grad.unbind(1)], strict=True):
        difference, largest = (a.float() - b).abs().max().item(), b.abs().max().item()
        wrong |= not difference <= 0.02 * largest
        print(f"{dtype} D={head_dim:<3} {name:<2}  largest difference {difference:.2e}, largest value {largest:.2e}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", help="libhstu_attention.so (default: that of the wheel)")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no GPU here that PyTorch can use, nothing to compute on")
    hstu.attention.load(arguments.library)
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False  # the plain form is the reference
    wrong = [check(4, 128, torch.bfloat16), check(4, 64, torch.float16), check(2, 48, torch.float32)]
    print("DIFFERENT: more than 2 % of the largest value" if any(wrong) else "equal within 2 % of the largest value")
    return any(wrong)


if __name__ == "__main__":
    sys.exit(main())
