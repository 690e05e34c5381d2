"""A function in a process that is forked from this one."""

import os
import signal
import traceback


def in_a_fork(function):
    """Its status: 0, or 1 after an exception, or that of a process that was ended as it waited."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            function()
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]
