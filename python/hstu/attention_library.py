"""include/hstu/attention.h for Python, with ctypes: nothing to compile, no PyTorch.

Pointers are integers from any library: tensor.data_ptr(), array.data.ptr. attention.py uses this module.
"""

from __future__ import annotations

import ctypes
import os

from hstu.tree import load_library

BF16, FP16, FP32 = 0, 1, 2


class Rows(ctypes.Structure):
    """Element (t, head, d) is data[t * row_stride + head * head_stride + d]; strides count elements."""

    _fields_ = [("data", ctypes.c_void_p), ("row_stride", ctypes.c_int64), ("head_stride", ctypes.c_int64)]


class Problem(ctypes.Structure):
    """The header's hstu_attention_problem, field by field. Library.problem() returns one with the defaults."""

    _fields_ = [
        ("size", ctypes.c_size_t), ("type", ctypes.c_int),
        ("samples", ctypes.c_int64), ("tokens", ctypes.c_int64), ("queries", ctypes.c_int64),
        ("heads", ctypes.c_int64), ("head_dim", ctypes.c_int64), ("longest", ctypes.c_int64),
        ("q", Rows), ("k", Rows), ("v", Rows),
        ("offsets", ctypes.c_void_p), ("query_offsets", ctypes.c_void_p),
        ("contexts", ctypes.c_void_p), ("targets", ctypes.c_void_p), ("sample_scale", ctypes.c_void_p),
        ("window_left", ctypes.c_int32), ("window_right", ctypes.c_int32), ("target_group", ctypes.c_int32),
        ("alpha", ctypes.c_float), ("scale", ctypes.c_float), ("deterministic", ctypes.c_int32),
        ("bias_tables", ctypes.c_int32), ("positions", ctypes.c_int64), ("buckets", ctypes.c_int64),
        ("position_table", ctypes.c_void_p), ("time_table", ctypes.c_void_p), ("thresholds", ctypes.c_void_p),
        ("query_time", ctypes.c_void_p), ("key_time", ctypes.c_void_p),
        ("d_position_table", ctypes.c_void_p), ("d_time_table", ctypes.c_void_p),
    ]  # fmt: skip


class Library:
    """The library of the wheel, or the one at `path`."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._c = load_library("hstu_attention", path)
        rows, pointer, bytes_out = ctypes.POINTER(Rows), ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)
        problem = ctypes.POINTER(Problem)
        self._c.hstu_attention_problem_init.argtypes = [problem]
        self._c.hstu_attention_problem_init.restype = None
        self._c.hstu_attention_error.argtypes = []
        self._c.hstu_attention_error.restype = ctypes.c_char_p
        self._c.hstu_attention_workspace.argtypes = [problem, bytes_out, bytes_out]
        self._c.hstu_attention_explain.argtypes = [problem, ctypes.c_char_p, ctypes.c_size_t]
        self._c.hstu_attention_check.argtypes = [problem, pointer]
        self._c.hstu_attention_forward.argtypes = [problem, rows, pointer, ctypes.c_int64, pointer]
        self._c.hstu_attention_backward.argtypes = [problem, rows, rows, rows, rows, pointer, ctypes.c_int64, pointer]
        size = self.problem().size
        if size != ctypes.sizeof(Problem):
            raise RuntimeError(
                f"libhstu_attention is of another version: its problem has {size} bytes, ours {ctypes.sizeof(Problem)}"
            )

    def problem(self) -> Problem:
        """A problem with the library's defaults."""
        # Room for a newer library's longer structure, so that the check above sees its size.
        room = ctypes.create_string_buffer(4 * ctypes.sizeof(Problem))
        self._c.hstu_attention_problem_init(ctypes.cast(room, ctypes.POINTER(Problem)))
        return Problem.from_buffer_copy(room)

    def workspace(self, problem: Problem) -> tuple[int, int]:
        """Bytes of scratch memory on the device: (forward, backward)."""
        forward, backward = ctypes.c_int64(), ctypes.c_int64()
        self._check(self._c.hstu_attention_workspace(problem, forward, backward))
        return forward.value, backward.value

    def explain(self, problem: Problem) -> str:
        """Which kernels are used, and why."""
        text = ctypes.create_string_buffer(512)
        self._check(self._c.hstu_attention_explain(problem, text, len(text)))
        return text.value.decode()

    def check(self, problem: Problem, stream: int) -> None:
        """Looks at the arrays of the problem and raises for the first mistake. It waits for the stream."""
        self._check(self._c.hstu_attention_check(problem, stream))

    def forward(self, problem: Problem, o: Rows, workspace: int, workspace_bytes: int, stream: int) -> None:
        self._check(self._c.hstu_attention_forward(problem, o, workspace, workspace_bytes, stream))

    def backward(
        self,
        problem: Problem,
        d_o: Rows,
        dq: Rows,
        dk: Rows,
        dv: Rows,
        workspace: int,
        workspace_bytes: int,
        stream: int,
    ) -> None:
        self._check(self._c.hstu_attention_backward(problem, d_o, dq, dk, dv, workspace, workspace_bytes, stream))

    def _check(self, status: int) -> None:
        if status != 0:
            raise RuntimeError(self._c.hstu_attention_error().decode())
