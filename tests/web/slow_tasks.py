"""Pieces of work for the tests of the queue: as slow, large or broken as one likes."""

from __future__ import annotations

import os
import time

import numpy as np

from unbandit.errors import LogError, option
from unbandit.web.jobs import Download, Outcome


def warm_up() -> None:
    """Nothing is needed."""


def _echo(what, limits, say):
    return what


def _sleep(seconds, limits, say):
    say("Sleeping", 0.25)
    time.sleep(seconds)
    return "slept"


def _refuse(limits, say):
    remedy = f"Add it with {option('arms', ['A', 'x'])}."
    raise LogError('expected an arm; got "x".', remedy=remedy, path="log.csv", row=3)


def _break(limits, say):
    raise RuntimeError("secret of the inside")


def _die(limits, say):
    os._exit(9)


def _fill(limits, say):
    held = []
    while True:  # reserved, never touched: the limit is on addresses, and a busy machine takes long to hand out pages
        held.append(np.empty(300_000_000, np.uint8))


def _large(size, limits, say):
    return Outcome("large", "", (Download("x", "x", "text/plain", bytes(size)),))


class Riddle:
    """Something that can be sent and not be received."""

    def __reduce__(self):
        return (int, ("no number",))


TASKS = {
    "riddle": lambda limits, say: Riddle(),
    "echo": _echo,
    "sleep": _sleep,
    "refuse": _refuse,
    "break": _break,
    "die": _die,
    "fill": _fill,
    "large": _large,
    "process": lambda limits, say: os.getpid(),
}
