"""The other end of a pipe: a process that does one piece of work after the other, and may be killed at any moment."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import traceback
import warnings
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

from unbandit.web.model import Limits

__all__ = ["serve_work"]

NEEDED = 4 * 1024**3
"""Below that the compiled parts do not even load."""


def serve_work(pipe: Connection, limits: Limits, tasks: str) -> None:
    """Take `(task, arguments)` from the pipe; send ("stage", words, share), then ("done", what) or ("failed", problem).

    `tasks` is the module that has them, by name, in `TASKS`, and a `warm_up` to begin with.

    It ends with its parent, however that ends. What nobody expected to go wrong goes to the error stream, never to the
    page.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _stay_modest(limits)
    warnings.simplefilter("ignore")  # answers carry their warnings in words
    from unbandit.web.wording import problem_of

    work = importlib.import_module(tasks)
    work.warm_up()
    pipe.send(("ready",))
    while True:
        try:
            name, arguments = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return

        def say(stage: str, share: float | None) -> None:
            pipe.send(("stage", stage, share))

        answer: tuple[str, Any]
        try:
            answer = ("done", work.TASKS[name](*arguments, limits, say))
        except KeyboardInterrupt:
            return
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500:
                traceback.print_exc(file=sys.stderr)
            answer = ("failed", problem)
        pipe.send(answer)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)


def _stay_modest(limits: Limits) -> None:
    """Give way to the page itself, and take no more memory than allowed, where the system lets one say so."""
    try:
        import resource
    except ImportError:
        return
    os.nice(5)
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    allowed = min(limits.memory, max(half, NEEDED))  # addresses, of which more are taken than memory
    resource.setrlimit(resource.RLIMIT_AS, (allowed if most == resource.RLIM_INFINITY else min(allowed, most), most))
