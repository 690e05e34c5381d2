"""HSTU attention in PyTorch through libhstu_attention.so: an autograd function over jagged tensors, and a check
of its output and gradients against plain PyTorch in fp32.

    python3 examples/attention_torch.py [--library build/libhstu_attention.so]
"""

import argparse
import itertools
import sys

import hstu_attention as hstu

try:
    import torch
except ImportError:
    sys.exit("attention_torch.py needs PyTorch with CUDA: pip install torch")

TYPES = {torch.bfloat16: hstu.BF16, torch.float16: hstu.FP16, torch.float32: hstu.FP32}
TENSORS = {"contexts": torch.int32, "targets": torch.int32, "sample_scale": torch.float32}  # one number a sample
SETTINGS = ["alpha", "scale", "window_left", "window_right", "target_group", "longest", "deterministic", *TENSORS]
library = None  # main loads it; a program of yours would write library = hstu.Library(path)
library_checks = False  # True while you look for a mistake: every call checks its arrays and waits for the GPU


def rows(x):
    """The address and strides of a (T, H, D) tensor. T and H may have any strides; D is contiguous."""
    if x.dim() != 3 or x.stride(2) != 1:
        raise ValueError(f"expected (tokens, heads, D) with D contiguous, found {tuple(x.shape)}, strides {x.stride()}")
    return hstu.Rows(x.data_ptr(), x.stride(0), x.stride(1))


def set_field(problem, name, value):
    if name not in SETTINGS:
        raise ValueError(f"{name} is none of {', '.join(SETTINGS)}")
    if name in TENSORS:
        if value.dtype != TENSORS[name] or not value.is_cuda or not value.is_contiguous():
            raise ValueError(
                f"{name}: expected contiguous {TENSORS[name]} on the GPU, found {value.dtype} on {value.device}")
        value = value.data_ptr()
    setattr(problem, name, value)


def stream():
    return torch.cuda.current_stream().cuda_stream


def scratch(size, device):
    return torch.empty(size, dtype=torch.uint8, device=device)


class HstuAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, offsets, settings):
        if not q.is_cuda or q.dtype not in TYPES:
            raise ValueError(f"expected bfloat16, float16 or float32 on a GPU, found {q.dtype} on {q.device}")
        if any(x.shape != q.shape or x.dtype != q.dtype or x.device != q.device for x in (k, v)):
            raise ValueError("q, k and v must agree in shape, type and device")
        if offsets.dtype != torch.int64 or offsets.device != q.device or not offsets.is_contiguous():
            raise ValueError(
                f"offsets: expected contiguous int64 on {q.device}, found {offsets.dtype} on {offsets.device}")
        p = library.problem()
        p.type, p.samples = TYPES[q.dtype], offsets.numel() - 1
        p.tokens, p.heads, p.head_dim = q.shape
        p.q, p.k, p.v, p.offsets = rows(q), rows(k), rows(v), offsets.data_ptr()
        p.alpha = q.shape[2] ** -0.5
        for name, value in settings.items():
            set_field(p, name, value)
        # Zeros: rows of no sample are not written. Where the offsets cover all rows, empty would do.
        o = torch.zeros(q.shape, dtype=q.dtype, device=q.device)
        with torch.cuda.device(q.device):
            if library_checks:
                library.check(p, stream())
            workspace = scratch(library.workspace(p)[0], q.device)
            library.forward(p, rows(o), workspace.data_ptr(), workspace.numel(), stream())
        ctx.problem, ctx.settings = p, settings
        ctx.save_for_backward(q, k, v, offsets)  # with the settings this keeps alive what the problem points to
        return o

    @staticmethod
    def backward(ctx, d_o):
        q = ctx.saved_tensors[0]
        d_o = d_o.contiguous()  # that of sum().backward() has strides of 0
        dq, dk, dv = (torch.zeros(q.shape, dtype=q.dtype, device=q.device) for _ in range(3))
        with torch.cuda.device(q.device):
            workspace = scratch(library.workspace(ctx.problem)[1], q.device)
            library.backward(ctx.problem, rows(d_o), rows(dq), rows(dk), rows(dv), workspace.data_ptr(),
                             workspace.numel(), stream())
        return dq, dk, dv, None, None


def tensor(x):
    """A tensor as it is, or the array of another library (CuPy, JAX, ...) without a copy."""
    return x if isinstance(x, torch.Tensor) else torch.from_dlpack(x)


def hstu_attention(q, k, v, offsets, **settings):
    """O (T, H, D) of q, k, v (T, H, D); sample b is rows [offsets[b], offsets[b + 1]).

    settings are fields of hstu_attention_problem by name: alpha (default here 1 / sqrt(D)), scale (1),
    window_left (-1), window_right (0: causal), longest, target_group, deterministic; contexts, targets and sample_scale
    are tensors.
    """
    return HstuAttention.apply(tensor(q), tensor(k), tensor(v), tensor(offsets), settings)


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
    global library
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default=hstu.DEFAULT_LIBRARY, help="libhstu_attention.so (default: %(default)s)")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no GPU here that PyTorch can use, nothing to compute on")
    library = hstu.Library(arguments.library)
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False  # the plain form is the reference
    wrong = [check(4, 128, torch.bfloat16), check(4, 64, torch.float16), check(2, 48, torch.float32)]
    print("DIFFERENT: more than 2 % of the largest value" if any(wrong) else "equal within 2 % of the largest value")
    return any(wrong)


if __name__ == "__main__":
    sys.exit(main())
