"""Scores from memory, through libhstu_score.so (include/hstu/score.h): those of `hstu predict` to the last bit."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, Structure, byref, c_char_p, c_float, c_int32, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Union, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hstu.commands import Error
from hstu.dataset import Events
from hstu.integers import int64, integer
from hstu.process import OfOneProcess
from hstu.run import Run
from hstu.tree import load_library

_VERSION = 2  # HSTU_SCORE_VERSION
_NO_TIME = -(2**63)


@dataclass
class Request:
    """What is asked for one user. Ids are those of the dataset: of texts, their hashes."""

    user: int = 0
    time: int | None = None  # seconds; None, for retrieval alone: after the user's last event
    items: ArrayLike | None = None  # (n) candidates, at least one; None: top() takes all items
    # The user's events in any order, of which those at `time` or later do not count; contexts of its events are read
    # by models with an action_column alone. None: the events in the scorer's `data`.
    events: Events | tuple[ArrayLike, ArrayLike, ArrayLike] | None = None
    # (columns) values of the dataset's context columns, needed where features read one; of texts: Scorer.code().
    contexts: ArrayLike | None = None


Requests = Union[Request, Sequence[Request]]
Floats = NDArray[np.float32]


class _Options(Structure):
    _fields_ = [
        ("size", c_size_t), ("model", c_char_p), ("checkpoint", c_char_p), ("data", c_char_p), ("device", c_char_p),
        ("cache_bytes", c_int64), ("cache_behind", c_int64), ("batch_size", c_int64), ("most_requests", c_int64),
        ("threads", c_int32),
    ]  # fmt: skip


class _Request(Structure):
    _fields_ = [
        ("size", c_size_t), ("user", c_int64), ("time", c_int64), ("event_items", c_void_p), ("event_times", c_void_p),
        ("event_actions", c_void_p), ("event_contexts", c_void_p), ("events", c_int64), ("contexts", c_void_p),
        ("items", c_void_p), ("item_count", c_int64),
    ]  # fmt: skip


def _library() -> ctypes.CDLL:
    c = load_library("hstu_score")
    c.hstu_score_version.restype = c_int32
    if c.hstu_score_version() != _VERSION:
        raise RuntimeError(f"libhstu_score.so has version {c.hstu_score_version()}, this package expects {_VERSION}")
    scorer, requests, floats, ints = c_void_p, POINTER(_Request), POINTER(c_float), POINTER(c_int64)
    for name, result, arguments in [
        ("error", c_char_p, []),
        ("options_init", None, [POINTER(_Options)]),
        ("open", c_int32, [POINTER(_Options), POINTER(c_void_p)]),
        ("close", None, [scorer]),
        ("tasks", c_int64, [scorer]), ("task", c_char_p, [scorer, c_int64]), ("width", c_int64, [scorer]),
        ("columns", c_int64, [scorer]), ("column", c_char_p, [scorer, c_int64]), ("model", c_char_p, [scorer]),
        ("code", c_int64, [scorer, c_int64, c_char_p]), ("catalogue", c_int64, [scorer]),
        ("untrained_items", c_int64, [scorer]),
        ("top", c_int32, [scorer, requests, c_int64, c_int64, c_int32, ints, floats, ints]),
        ("vectors", c_int32, [scorer, requests, c_int64, floats, ints]),
    ]:  # fmt: skip
        function = getattr(c, "hstu_score_" + name)
        function.restype, function.argtypes = result, arguments
    c.hstu_score.restype, c.hstu_score.argtypes = c_int32, [scorer, requests, c_int64, floats]
    return c


def _seen(exclude_seen: bool | int) -> int:
    """exclude_seen of hstu_score_top."""
    if isinstance(exclude_seen, (bool, np.bool_)):
        return int(exclude_seen)
    actions = int64(exclude_seen, "exclude_seen")
    if not 0 <= actions < 256:
        raise ValueError(f"exclude_seen: expected True, False or a sum of action bits, found {actions}")
    return actions << 8  # HSTU_SCORE_SEEN_BY


@final
class Scorer(OfOneProcess):
    """An open model. Threads may share it: what they ask at the same time is answered by one pass.

    model: the folder of an export, or of a run (its newest checkpoint, or `checkpoint`: a step or "best"). data: a
    dataset with the events of requests without events. device: "host", "cuda", "cuda:N" or "auto"; the run's without
    it. cache_bytes: for keys and values of histories between requests; cache_behind: on a GPU, host memory for those
    that leave the GPU's. Raises ValueError for a wrong request, and hstu.Error for a model that cannot be opened and
    for failures.
    """

    def __init__(
        self,
        model: Run | str | os.PathLike[str],
        *,
        checkpoint: int | str | None = None,
        data: str | os.PathLike[str] | None = None,
        device: str | None = None,
        cache_bytes: int = 0,
        cache_behind: int = 0,
        batch_size: int = 0,
        most_requests: int = 256,
        threads: int = 0,
    ) -> None:
        super().__init__()
        self._c, self._scorer, self._calls, self._ended = _library(), c_void_p(), 0, threading.Condition()
        options = _Options()
        self._c.hstu_score_options_init(byref(options))
        options.model = os.fsencode(model.path if isinstance(model, Run) else model)
        options.checkpoint = None if checkpoint is None else str(checkpoint).encode()
        options.data = None if data is None else os.fsencode(data)
        options.device = None if device is None else device.encode()
        options.cache_bytes = int64(cache_bytes, "cache_bytes")
        options.cache_behind = int64(cache_behind, "cache_behind")
        options.batch_size = int64(batch_size, "batch_size")
        options.most_requests = int64(most_requests, "most_requests")
        options.threads = integer(threads, c_int32, "threads")
        self._check(self._c.hstu_score_open(byref(options), byref(self._scorer)))
        open_scorer = self._scorer
        self.model: str = self._c.hstu_score_model(open_scorer).decode()  # the step and a hash of the weights
        tasks, columns = self._c.hstu_score_tasks(open_scorer), self._c.hstu_score_columns(open_scorer)
        # The names of an item's scores (retrieval has none), and of the dataset's context columns.
        self.tasks: list[str] = [self._c.hstu_score_task(open_scorer, k).decode() for k in range(tasks)]
        self.columns: list[str] = [self._c.hstu_score_column(open_scorer, k).decode() for k in range(columns)]
        self.width: int = self._c.hstu_score_width(open_scorer)  # of vectors; 0: a model that ranks

    def code(self, column: str, text: str) -> int:
        """What contexts have in place of a text of a context column of texts; 0: the dataset does not have it."""
        if column not in self.columns:
            raise ValueError(f"there is no context column {column!r}; there are {self.columns}")
        if "\0" in text:
            raise ValueError(f"expected a text without NUL, found {text!r}")
        with self._call([]) as (scorer, _, _):
            code: int = self._c.hstu_score_code(scorer, self.columns.index(column), text.encode())
            self._check(int(code < 0))
        return code

    @property
    def untrained_items(self) -> int:
        """Of all requests so far: candidates, and events of requests, whose items the model has no row for."""
        with self._call([]) as (scorer, _, _):
            return int(self._c.hstu_score_untrained_items(scorer))

    def score(self, requests: Requests) -> Any:
        """Probabilities float32 (items, tasks) of a request's items; of a list of requests, a list of such arrays."""
        with self._call(requests) as (scorer, form, count):
            sizes = [form[i].item_count for i in range(count)]
            scores = np.empty((sum(sizes), len(self.tasks)), np.float32)
            self._check(self._c.hstu_score(scorer, form, count, _pointer(scores, c_float)))
        parts = np.split(scores, np.cumsum(sizes)[:-1]) if count else []
        return parts[0] if isinstance(requests, Request) else parts

    def top(self, requests: Requests, k: int, *, exclude_seen: bool | int = False) -> Any:
        """The k best items, best first: (items int64, scores float32), each (found). A list of pairs for a list.

        Of a request's items, of all items that training has seen where they are None, or (retrieval) of the catalogue.
        All of them where there are fewer than k.
        exclude_seen leaves out the items of the user's events: True, or a sum of action bits for those of events with
        one of these actions.
        """
        k = int64(k, "k")
        seen = _seen(exclude_seen)
        with self._call(requests) as (scorer, form, count):
            most = max((form[i].item_count for i in range(count)), default=0)
            k = min(k, max(most, self._c.hstu_score_catalogue(scorer), 1))  # the arrays need not be larger
            items, found = np.empty((count, max(k, 0)), np.int64), np.zeros(count, np.int64)
            scores = np.empty(items.shape, np.float32)
            self._check(
                self._c.hstu_score_top(
                    scorer,
                    form,
                    count,
                    k,
                    seen,
                    _pointer(items, c_int64),
                    _pointer(scores, c_float),
                    _pointer(found, c_int64),
                )
            )
        lists = [(items[i, :n], scores[i, :n]) for i, n in enumerate(found.tolist())]
        return lists[0] if isinstance(requests, Request) else lists

    def vectors(self, requests: Sequence[Request]) -> tuple[Floats, NDArray[np.bool_]]:
        """Of retrieval: vectors float32 (requests, width), and which of them have a history; the others are zeros."""
        with self._call(requests) as (scorer, form, count):
            vectors, found = np.empty((count, self.width), np.float32), np.zeros(count, np.int64)
            self._check(
                self._c.hstu_score_vectors(scorer, form, count, _pointer(vectors, c_float), _pointer(found, c_int64))
            )
        return vectors, found != 0

    def close(self) -> None:
        """Waits for the calls of other threads; later calls raise ValueError. In a forked process it does nothing."""
        if not self._is_ours():
            return
        with self._ended:
            scorer, self._scorer = self._scorer, c_void_p()
            self._ended.wait_for(lambda: self._calls == 0)
        self._c.hstu_score_close(scorer)

    def __enter__(self) -> Scorer:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_scorer", None):
            self.close()

    @contextmanager
    def _call(self, requests: Requests) -> Iterator[tuple[c_void_p, Any, int]]:
        """The open scorer, the requests in C's form and their number. What they point to stays until the end."""
        self._check_process()
        listed = [requests] if isinstance(requests, Request) else list(requests)
        keep: list[Any] = []
        form = (_Request * len(listed))(*(self._form(request, keep) for request in listed))
        with self._ended:
            scorer = self._scorer
            if not scorer:
                raise ValueError("the scorer is closed")
            self._calls += 1
        try:
            yield scorer, form, len(listed)
        finally:
            with self._ended:
                self._calls -= 1
                self._ended.notify_all()

    def _form(self, request: Request, keep: list[Any]) -> _Request:
        def address(values: ArrayLike, kind: Any, shape: tuple[int, ...], name: str) -> int:
            array = np.asarray(values)
            if array.size == 0:
                array = array.astype(kind)
            if array.dtype.kind not in "iu" or array.shape != shape:
                raise ValueError(f"{name}: expected integers {shape}, found {array.dtype} {array.shape}")
            keep.append(np.ascontiguousarray(array, kind))
            if not np.array_equal(keep[-1], array):
                raise ValueError(f"{name}: a value does not fit into {np.dtype(kind)}")
            return int(keep[-1].ctypes.data)

        form = _Request(
            ctypes.sizeof(_Request),
            int64(request.user, "user"),
            _NO_TIME if request.time is None else int64(request.time, "time"),
        )
        if request.items is not None:
            form.item_count = np.size(request.items)
            if form.item_count == 0:  # what is left of candidates does not mean all items
                raise ValueError("items: expected at least one candidate; None takes all items")
            form.items = address(request.items, np.int64, (form.item_count,), "items")
        if request.contexts is not None:
            form.contexts = address(request.contexts, np.int64, (len(self.columns),), "contexts")
        form.events = -1
        if request.events is not None:
            if len(request.events) < 3:
                raise ValueError(f"events: expected items, times and actions, found {len(request.events)} arrays")
            count = form.events = np.size(request.events[0])
            form.event_items = address(request.events[0], np.int64, (count,), "events: items")
            form.event_times = address(request.events[1], np.int64, (count,), "events: times")
            form.event_actions = address(request.events[2], np.uint8, (count,), "events: actions")
            if len(request.events) > 3:
                form.event_contexts = address(
                    request.events[3], np.int64, (len(self.columns), count), "events: contexts"
                )
        return form

    def _check(self, status: int) -> None:
        if status != 0:
            text = self._c.hstu_score_error().decode(errors="replace")
            raise ValueError(text) if status == 1 else Error(text)


def _pointer(array: NDArray[Any], kind: Any) -> Any:
    return array.ctypes.data_as(POINTER(kind))
