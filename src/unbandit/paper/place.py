"""The folder of a reproduction: one size and one seed, and nobody else's files.

`reproduction.json` says what the folder is of, so that pictures of different sizes or seeds never stand on one page.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unbandit._version import __version__
from unbandit.errors import OutputError, ResumeError
from unbandit.files import written_whole
from unbandit.paper.picture import Size
from unbandit.study.identity import code

__all__ = ["check", "claim"]

NAME = "reproduction.json"
SCHEMA = "unbandit.reproduction/1"


def check(folder: Path, size: Size) -> None:
    """Refuse a folder that holds other things, or a reproduction of another size; write nothing."""
    if not folder.exists() or not any(folder.iterdir()):
        return
    remedy = f"Take another folder, such as -o {_other(folder, size)}, or delete this one."
    if not (folder / NAME).exists():
        first = sorted(path.name for path in folder.iterdir())[0]
        raise ResumeError(f"{folder}: expected an empty folder or one with a reproduction; got {first}. {remedy}")
    try:
        there = json.loads((folder / NAME).read_text(encoding="utf-8"))
        there = {key: there[key] for key in _described(size)}
    except (OSError, ValueError, KeyError, TypeError):
        raise ResumeError(f"{folder / NAME}: could not be read. {remedy}") from None
    changed = [
        f"{key}: the folder has {_written(there[key])}, asked for {_written(asked)}"
        for key, asked in _described(size).items()
        if there[key] != asked
    ]
    if changed:
        raise ResumeError(f"{folder}: it has another reproduction ({'; '.join(changed)}). {remedy}")


def claim(folder: Path, size: Size) -> None:
    """Make the folder, and say in it what it is of."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: could not be made: {error.strerror}. Take another folder.") from error
    if not (folder / NAME).exists():
        with written_whole(folder / NAME) as temporary:
            temporary.write_text(json.dumps(_described(size), indent=2) + "\n", encoding="utf-8")


def _described(size: Size) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "version": __version__,
        "code": code(),
        "runs": size.runs,
        "seed": size.seed,
        "full": size.full,
    }


def _written(value: Any) -> str:
    return "the paper's" if value is None else "yes" if value is True else "no" if value is False else str(value)


def _other(folder: Path, size: Size) -> Path:
    """Return a name for another folder, from what is asked for."""
    words = [folder.name, *(["full"] if size.full else []), *([str(size.runs)] if size.runs is not None else [])]
    words += [f"seed-{size.seed}"] if size.seed != 1 else []
    return folder.with_name("-".join(words) if len(words) > 1 else f"{folder.name}-2")
