"""A run of `hstu train`: its configuration, numbers and checkpoints."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hstu.dataset import Dataset, read_json

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import pandas


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; ValueError with its name for anything else."""
    return parse_toml(path.read_bytes(), str(path))


def parse_toml(text: bytes, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.decode())
    except ValueError as error:
        raise ValueError(f"{where} is no TOML: {error}") from error


class Run:
    """The folder of a run, also while it trains: every property reads what is there now."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not (self.path / "config.toml").is_file():
            raise FileNotFoundError(f"{self.path} is no run: it has no config.toml")

    def __repr__(self) -> str:
        checkpoints, summary = self.checkpoints, self.summary
        how = f", {summary['reason']}" if summary else ""
        return f"<hstu.Run {self.path}: {len(checkpoints)} checkpoints, newest {max(checkpoints, default=None)}{how}>"

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration: config["training"]["batch_size"]."""
        return read_toml(self.path / "config.toml")

    @property
    def dataset(self) -> Dataset:
        return Dataset(self.config["data"]["path"])

    @property
    def summary(self) -> dict[str, Any] | None:
        """How the run ended, and its last evaluation; None before its first end."""
        file = self.path / "summary.json"
        return read_json(file) if file.exists() else None

    @property
    def checkpoints(self) -> dict[int, Path]:
        """Complete checkpoints by step, ascending."""
        found = (self.path / "checkpoints").glob("step_*[0-9]")
        return {int(folder.name[5:]): folder for folder in sorted(found) if folder.name[5:].isdigit()}

    @property
    def best(self) -> Path | None:
        """The checkpoint of the best evaluation, with checkpoint.best."""
        link = self.path / "checkpoints/best"
        return link.resolve() if link.exists() else None

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl of this event: "run", "train", "eval", "checkpoint", "resume", "end"."""
        with open(self.path / "metrics.jsonl", encoding="utf-8") as file:
            complete = [line for line in file if line.endswith("\n")]
        try:
            lines = [dict(json.loads(line)) for line in complete]
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.path / 'metrics.jsonl'} has a line that is no JSON object: {error}") from error
        return [line for line in lines if line.get("event") == event]

    def metrics(self, event: str = "eval") -> dict[str, NDArray[Any]]:
        """The lines of this event as a table: an array (lines) for each key, {"step": [..], "auc": [..]}.

        Objects inside of a line are columns of their own, "tables.item.rows". A number that a line does not have is
        NaN. docs/metrics.md defines the keys.
        """
        lines = [_flat(line) for line in self.lines(event)]
        keys = dict.fromkeys(key for line in lines for key in line if key != "event")
        return {key: _column([line.get(key) for line in lines]) for key in keys}

    def frame(self, event: str = "eval") -> pandas.DataFrame:
        """metrics() as a DataFrame of pandas, which must be installed."""
        import pandas

        return pandas.DataFrame({key: list(column) for key, column in self.metrics(event).items()})


def _flat(line: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in line.items():
        result.update(_flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value})
    return result


def _column(values: list[Any]) -> NDArray[Any]:
    known = [value for value in values if value is not None]
    if all(type(value) in (int, float) for value in known):
        if len(known) == len(values) and all(type(value) is int for value in known):
            return np.array(values, np.int64)
        return np.array([np.nan if value is None else value for value in values], np.float64)
    column = np.empty(len(values), object)
    column[:] = values
    return column
