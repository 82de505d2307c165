"""The folder of a reproduction: one size and one seed, and nobody else's files.

`reproduction.json` says what the folder is of, so that pictures of different sizes or seeds never stand on one page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unbandit._version import __version__
from unbandit.errors import OutputError, ResumeError
from unbandit.files import locked, written_whole
from unbandit.paper.picture import Size
from unbandit.study.taskgrid import code

__all__ = ["check", "held"]

NAME = "reproduction.json"
SCHEMA = "unbandit.reproduction/1"


def check(folder: Path, size: Size) -> None:
    """Refuse a folder that holds other things, or a reproduction of another size; write nothing."""
    there = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    held = [name for name in there if not (name.startswith(".") and name.endswith(".part"))]  # leftovers of a kill
    if not held:
        return
    if NAME not in held:
        said = f"{folder}: expected an empty folder or one with a reproduction; got {held[0]}"
        raise ResumeError(f"{said}. {_remedy(folder, size)}")
    try:
        found = json.loads((folder / NAME).read_text(encoding="utf-8"))
        found = {key: found[key] for key in _described(size)}
    except (OSError, ValueError, KeyError, TypeError):
        raise ResumeError(f"{folder / NAME}: could not be read. {_remedy(folder, size)}") from None
    changed = [
        f"{key}: the folder has {_written(found[key])}, asked for {_written(asked)}"
        for key, asked in _described(size).items()
        if found[key] != asked
    ]
    if changed:
        raise ResumeError(f"{folder}: it has another reproduction ({'; '.join(changed)}). {_remedy(folder, size)}")


@contextmanager
def held(folder: Path, size: Size) -> Iterator[None]:
    """Make the folder, say in it what it is of, and keep everybody else out of it meanwhile."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: could not be made: {error.strerror}. Take another folder.") from error
    with locked(folder):
        check(folder, size)
        if not (folder / NAME).exists():
            with written_whole(folder / NAME) as temporary:
                temporary.write_text(json.dumps(_described(size), indent=2) + "\n", encoding="utf-8")
        yield
        for leftover in folder.glob(".*.part"):  # of a command that was killed while it wrote
            leftover.unlink(missing_ok=True)


def _described(size: Size) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "version": __version__,
        "code": code(),
        "runs": size.runs,
        "seed": size.seed,
        "full": size.full,
        "device": size.device,
    }


def _written(value: Any) -> str:
    return "the paper's" if value is None else "yes" if value is True else "no" if value is False else str(value)


def _remedy(folder: Path, size: Size) -> str:
    """Propose another folder, named after what is asked for."""
    words = [folder.absolute().name or "reproduction"]
    words += (["full"] if size.full else []) + ([str(size.runs)] if size.runs is not None else [])
    words += [f"seed-{size.seed}"] if size.seed != 1 else []
    words += [size.device] if size.device != "cpu" else []
    other = "-".join(words) if len(words) > 1 else f"{words[0]}-2"
    return f"Take another folder, such as -o {folder.absolute().parent / other}, or delete this one."
