"""The commands of hstu as calls, which stream what the program says and stop it on an interrupt.

Options are those of the command line (`hstu help train`): `test_days=0` is `--test-days 0`, `row_stable=True` is
`--row-stable`, a list repeats its option, and a dictionary is one of KEY=VALUE, with values in TOML.
"""

from __future__ import annotations

import json
import math
import numbers
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Optional, Union

from hstu.dataset import Dataset
from hstu.run import Run
from hstu.tree import program

PathLike = Union[str, "os.PathLike[str]"]
Progress = Optional[Callable[[str], object]]
_INTERRUPTED = 75  # exit status of a run that was interrupted and saved


class Error(RuntimeError):
    """A command that failed: its last lines, and `status`. 1: failed, 2: refused before anything was changed."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


def say(line: str) -> None:
    """The default progress: a line at once, also in a notebook."""
    print(line, flush=True)


def call(*words: PathLike, progress: Progress = say, **options: Any) -> str:
    """Runs `hstu WORDS --OPTIONS` and returns what it wrote to its standard output.

    `progress` is called with each line that the program says meanwhile; None: with none. KeyboardInterrupt reaches the
    program as SIGINT: it saves and ends before this raises KeyboardInterrupt. A second one ends the program at once.
    """
    command = [program("hstu"), *(os.fspath(word) for word in words), *_written(options)]
    # A group of its own, as a terminal and a notebook interrupt the whole group, and the program would get two signals.
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, start_new_session=True
        ) as process,
    ):
        said: list[str] = []
        interrupted = _follow(process, progress, said)
        output.seek(0)
        written = output.read().decode(errors="replace")
        if interrupted:
            raise KeyboardInterrupt(f"hstu {words[0]} was interrupted; its exit status is {process.returncode}")
        if process.returncode != 0:
            raise Error(
                "\n".join(said[-20:]) or f"hstu {words[0]} ended with status {process.returncode}", process.returncode
            )
        return written


def _follow(process: subprocess.Popen[bytes], progress: Progress, said: list[str]) -> bool:
    """Reads what the process says until it ends; whether it was interrupted."""
    interrupted = False
    assert process.stderr is not None
    while True:
        try:
            for line in process.stderr:
                said.append(line.decode(errors="replace").rstrip("\n"))
                if progress is not None:
                    progress(said[-1])
            process.wait()
            return interrupted or process.returncode == _INTERRUPTED
        except KeyboardInterrupt:
            interrupted = True
            process.send_signal(signal.SIGINT)
        except BaseException:  # of progress
            process.terminate()
            process.stderr.read()  # a program that nobody listens to would end before it saves
            raise


def _written(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if isinstance(value, Mapping):
            for key, each in value.items():
                yield from (option, f"{key}={_word(each, f'{name}: {key}')}")
            continue
        value = _plain(value)
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if each is True:
                yield option
            elif each is not None and each is not False:
                yield from (option, _word(each, name))


def _plain(value: Any) -> Any:
    """Python's own numbers and lists in place of those of NumPy, pandas and PyTorch."""
    return value.tolist() if hasattr(value, "tolist") else value


def _word(value: Any, what: str) -> str:
    """A text or a path as it is, anything else as TOML."""
    return _text(value) if isinstance(value, (str, os.PathLike)) else _toml(value, what)


def _text(value: Any) -> str:
    return str.__str__(os.fsdecode(value))  # of an enumeration of texts, its value


def _toml(value: Any, what: str) -> str:
    """TypeError or ValueError, naming `what`, for what TOML does not have."""
    value = _plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        if not math.isfinite(value):
            raise ValueError(f"{what}: expected a finite number, found {value}")
        return repr(float(value))
    if isinstance(value, (str, os.PathLike)):
        # As in JSON; TOML has no surrogates, and escapes one more character.
        return json.dumps(_text(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(each, f"{what}[{i}]") for i, each in enumerate(value)) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(str(k), what)} = {_toml(v, f'{what}.{k}')}" for k, v in value.items()) + " }"
    advice = ": leave it out to keep the value that there is" if value is None else ""
    raise TypeError(f"{what}: expected a number, a text, a path, True or False, or a list or dictionary of them, found "
                    f"{type(value).__name__}{advice}")  # fmt: skip


def prepare(source: str, *, output: PathLike, progress: Progress = say, **options: Any) -> Dataset:
    """Events to a dataset: `hstu prepare SOURCE`, such as "parquet", "csv", "sequences", "movielens", "yambda"."""
    call("prepare", source, progress=progress, output=output, **options)
    return Dataset(output)


def train(
    config: PathLike | None = None,
    *,
    output: PathLike | None = None,
    resume: Run | PathLike | None = None,
    set: Mapping[str, Any] | None = None,
    progress: Progress = say,
    **options: Any,
) -> Run:
    """`hstu train`: a new run at `output`, or more of the run `resume`.

    config: a file, or the name of an installed configuration such as "quickstart.toml". set: values by key,
    {"data.path": dataset.path, "training.max_steps": 1000}. An interrupt (Ctrl-C, a notebook's stop button) finishes
    the step, saves and raises KeyboardInterrupt; train(resume=...) continues as if it had not stopped.
    """
    if (output is None) == (resume is None):
        raise TypeError("train: expected either output, for a new run, or resume, the run to continue")
    folder = Path(output if output is not None else _path(resume))
    where = {"output": folder} if output is not None else {"resume": folder}
    written = call("train", *([] if config is None else [config]), progress=progress, **where, set=set or {}, **options)
    for line in written.splitlines():
        if progress is not None:
            progress(line)
    return Run(folder)


def eval(run: Run | PathLike, *, progress: Progress = say, **options: Any) -> dict[str, Any]:
    """`hstu eval`: the numbers of the last evaluation again, or of another dataset or checkpoint, by name."""
    return dict(json.loads(call("eval", _path(run), progress=progress, **options)))


def predict(model: Run | PathLike, *, output: PathLike, progress: Progress = say, **options: Any) -> dict[str, Any]:
    """`hstu predict`: a table of scores (`requests`) or of lists (`users`, `top`) at `output`; returns the counts."""
    return dict(json.loads(call("predict", _path(model), progress=progress, output=output, **options)))


def export(run: Run | PathLike, output: PathLike, *, progress: Progress = say, **options: Any) -> Path:
    """`hstu export`: what scoring needs, for Scorer and `hstu serve`; returns `output`."""
    call("export", _path(run), progress=progress, output=output, **options)
    return Path(output)


def publish(run: Run | PathLike, to: PathLike, *, progress: Progress = say, **options: Any) -> Path | str:
    """`hstu publish`: an export of the newest checkpoint in the folder `to`, or s3://BUCKET/FOLDER.

    Returns the folder of the export, or its URL.
    """
    said = call("publish", _path(run), progress=progress, to=to, **options)
    if str(to).startswith("s3://"):
        return str(json.loads(said)["published"])
    return (Path(to) / "current").resolve()


def _path(run: Run | PathLike | None) -> PathLike:
    return run.path if isinstance(run, Run) else run  # type: ignore[return-value]
