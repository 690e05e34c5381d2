"""hstu.Table as a layer of PyTorch 2.4 or newer: operators with gradients and fake implementations.

    layer = hstu.Table(rows=1 << 40, dim=64, bound=0.05).module()
    loss = model(layer(ids)).sum()
    loss.backward()
    layer.step(learning_rate=0.01)

Rows are in the memory of the CPU; ids and values may be on any device.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.library import custom_op

if TYPE_CHECKING:
    from hstu.tables import Table

# Operators take tensors and numbers: a layer is known to them by its number.
_modules: weakref.WeakValueDictionary[int, TableModule] = weakref.WeakValueDictionary()


class TableModule(torch.nn.Module):
    """values (*shape, dim) float32 = layer(ids) of int64 ids of any shape. backward() collects the gradients of all
    lookups; step() applies them as one update. zero_grad() leaves them: discard() drops them.

    state_dict() has all that the table has as one tensor of bytes, and load_state_dict() takes it in place of what the
    table has then."""

    _next = 0

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table
        self.number = TableModule._next
        TableModule._next += 1
        _modules[self.number] = self
        self.collected: list[tuple[Tensor, Tensor]] = []
        # Ids have no gradient: this is what the gradient of a lookup is asked for.
        self.anchor = torch.nn.Parameter(torch.zeros(()))

    def extra_repr(self) -> str:
        return self.table._described()

    def get_extra_state(self) -> Tensor:
        return torch.frombuffer(bytearray(self.table.to_bytes()), dtype=torch.uint8)

    def set_extra_state(self, state: Any) -> None:
        if not isinstance(state, Tensor) or state.dtype != torch.uint8:
            raise ValueError(f"expected the rows of {self.table!r} as a tensor of bytes, found {type(state).__name__}")
        self.table.from_bytes(state.cpu().numpy().tobytes())

    def forward(self, ids: Tensor) -> Tensor:
        return torch.ops.hstu.table_lookup(ids, self.anchor, self.number, self.table.dim)  # type: ignore[no-any-return]

    def step(self, learning_rate: float, time: int = 0) -> None:
        """One step of the table with the gradients of all lookups since the last one; Table.update()."""
        if self.collected:
            ids, gradients = (torch.cat(parts).numpy() for parts in zip(*self.collected))
            self.table.update(ids, gradients, learning_rate, time)
        self.discard()

    def discard(self) -> None:
        self.collected.clear()


@custom_op("hstu::table_lookup", mutates_args=(), schema="(Tensor ids, Tensor anchor, int number, int dim) -> Tensor")
def _lookup(ids: Tensor, anchor: Tensor, number: int, dim: int) -> Tensor:
    if ids.dtype != torch.int64:
        raise ValueError(f"ids: expected torch.int64, found {ids.dtype}")
    return torch.from_numpy(_modules[number].table.lookup(ids.detach().cpu().numpy())).to(ids.device)


@_lookup.register_fake
def _lookup_fake(ids: Tensor, anchor: Tensor, number: int, dim: int) -> Tensor:
    return ids.new_empty((*ids.shape, dim), dtype=torch.float32)


# The result, the gradient of the anchor, is what keeps a compiler from leaving the call out.
@custom_op(
    "hstu::table_collect", mutates_args=(), schema="(Tensor gradients, Tensor ids, Tensor anchor, int number) -> Tensor"
)
def _collect(gradients: Tensor, ids: Tensor, anchor: Tensor, number: int) -> Tensor:
    flat = gradients.detach().to("cpu", torch.float32).reshape(-1, gradients.shape[-1])
    _modules[number].collected.append((ids.detach().cpu().reshape(-1), flat.clone()))
    return torch.zeros_like(anchor)


@_collect.register_fake
def _collect_fake(gradients: Tensor, ids: Tensor, anchor: Tensor, number: int) -> Tensor:
    return torch.empty_like(anchor)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ids, anchor, ctx.number, _ = inputs
    ctx.save_for_backward(ids, anchor)


def _gradients(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:
    ids, anchor = ctx.saved_tensors
    return None, torch.ops.hstu.table_collect(gradients, ids, anchor, ctx.number), None, None


_lookup.register_autograd(_gradients, setup_context=_setup_context)
