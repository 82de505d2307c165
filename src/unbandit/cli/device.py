"""Which device a command simulates on: what is asked, what a folder already has, and what is said of the choice."""

from __future__ import annotations

import json

import typer

__all__ = ["DEVICE", "chosen_device", "folder_device", "folder_has"]

DEVICE = "cpu, cuda (a GPU), or auto: a GPU if there is one and the work is worth it."


def chosen_device(device: str, rounds: int) -> str:
    """Settle the device for so many rounds, and say so where it was left open and a GPU is taken."""
    from unbandit.devices import choose_device

    chosen, said = choose_device(device, rounds)
    if said is not None:
        typer.echo(said, err=True)
    return chosen


def folder_device(folder: str, description: str, device: str, executor: str) -> str:
    """Return the device of what a folder already holds, where it was left open: it goes on as it began.

    `description` is the name of the file in which the folder says what it holds. What a cluster begins is left to its
    CPUs: which GPUs its workers have cannot be seen from here.
    """
    if device != "auto":
        return device
    had = folder_has(folder, description, "device")
    return had if had in ("cpu", "cuda") else device if executor == "threads" else "cpu"


def folder_has(folder: str, description: str, key: str) -> str | None:
    """Return what a folder says of itself under a key; None where it says nothing."""
    from unbandit.errors import UnbanditError
    from unbandit.study.storage import storage_at

    try:
        had = json.loads(storage_at(folder).read(description)).get(key)
    except (OSError, ValueError, AttributeError, UnbanditError):
        return None  # what is wrong with it is said where the folder is used
    return None if had is None else str(had)
