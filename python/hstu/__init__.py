"""Trains and serves HSTU recommenders: the programs of hstu.cpp, and what they write, from Python.

    import hstu

    dataset = hstu.prepare("parquet", schema="schema.toml", input="logs", output="dataset")
    run = hstu.train("quickstart.toml", output="run", set={"data.path": dataset.path})
    run.metrics("eval")["auc"]
    with hstu.Scorer(hstu.export(run, "exported")) as scorer:
        scorer.score(hstu.Request(user=1, time=2592000, items=[3, 5], events=dataset.user(1)))

docs/python.md of the project describes the package. hstu.attention needs PyTorch, everything else NumPy alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hstu import attention, convert
    from hstu.commands import Error, call, eval, export, predict, prepare, publish, train
    from hstu.dataset import Dataset, Events, Names
    from hstu.run import Run
    from hstu.scorer import Request, Scorer
    from hstu.tables import Table

_MODULES = {
    "commands": ["Error", "call", "eval", "export", "predict", "prepare", "publish", "train"],
    "dataset": ["Dataset", "Events", "Names"],
    "run": ["Run"],
    "scorer": ["Request", "Scorer"],
    "tables": ["Table"],
}
__all__ = [
    "Dataset", "Error", "Events", "Names", "Request", "Run", "Scorer", "Table", "attention", "call", "convert", "eval",
    "export", "predict", "prepare", "publish", "train",
]  # fmt: skip


# Modules are imported when they are used: the programs start without NumPy, and PyTorch is asked for by nobody else.
def __getattr__(name: str) -> Any:
    if name in ("attention", "convert"):
        return import_module(f"hstu.{name}")
    if name == "__version__":
        return import_module("importlib.metadata").version("hstu")
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"hstu.{module}"), name)
    raise AttributeError(f"module 'hstu' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
