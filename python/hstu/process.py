"""What a library has opened belongs to one process: a process that was forked has neither its threads nor its locks."""

from __future__ import annotations

import os
from typing import Any


class OfOneProcess:
    def __init__(self) -> None:
        self._process = os.getpid()

    def _is_ours(self) -> bool:
        return getattr(self, "_process", None) == os.getpid()

    def _check_process(self) -> None:
        if not self._is_ours():
            raise RuntimeError(f"process {self._process} opened this {type(self).__name__}, and process {os.getpid()} "
                               "was forked from it: open one after the fork")  # fmt: skip

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} is not copied or pickled: open another one")
