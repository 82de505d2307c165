"""Which files a log consists of: one, several, those of a folder, or those that a pattern matches."""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from unbandit.errors import LogError, ParameterError

__all__ = ["Paths", "Place", "by_value", "is_several", "places_of"]

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

ENDINGS = (".parquet", ".pq", ".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
"""The names that count in a folder; a file named by itself may be called anything."""


def is_several(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a folder, or a pattern, and not the name of one file.

    Examples
    --------
    >>> is_several("log.csv"), is_several("parts/*.csv")
    (False, True)
    """
    place = Path(path)
    return place.is_dir() or (glob.has_magic(os.fspath(path)) and not place.exists())


class Place(NamedTuple):
    """A file, and what the folders that it lies in say of its rows, as in ``demonstration=7/part.parquet``."""

    path: Path
    keys: dict[str, str]


def places_of(paths: Paths) -> list[Place]:
    """Return the files, in the order of their names, with the numbers in names by value.

    Parameters
    ----------
    paths
        A file, a folder (with folders in it), a pattern such as ``"logs/**/*.csv"``, or a list of these.

    Examples
    --------
    >>> [str(place.path) for place in places_of(["part-10.csv", "part-2.csv"])]
    ['part-2.csv', 'part-10.csv']
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise ParameterError("expected a file, a folder or a pattern; got an empty list.", parameter="paths")
    found: dict[Path, dict[str, str]] = {}
    single: list[Path] = []
    for path in given:
        name, place = os.fspath(path), Path(path)
        if place.is_dir():
            files, base = _inside(place), place
            if not files:
                raise LogError(
                    f"expected files that end in {', '.join(ENDINGS[:4])} or .csv.gz; the folder has none. "
                    "Check the path.",
                    path=name,
                )
        elif is_several(path):
            files, base = _matching(name), _unmagical(place)
            if not files:
                raise LogError(
                    "expected a pattern that some file matches; none does. Check it, and that it stands in quotes.",
                    path=name,
                )
        else:
            single.append(place)
            continue
        found |= {file: _keys(file.relative_to(base)) for file in files}
    found |= _told_apart(single)
    return [Place(path, found[path]) for path in sorted(found, key=by_value)]


def _keys(file: Path) -> dict[str, str]:
    """Read the names of folders.

    Examples
    --------
    >>> _keys(Path("log/demonstration=a%20b/part.parquet"))
    {'demonstration': 'a b'}
    """
    pairs = (part.split("=", 1) for part in file.parts[:-1] if "=" in part)
    return {unquote(key): unquote(value) for key, value in pairs if key}


def _told_apart(files: list[Path]) -> dict[Path, dict[str, str]]:
    """Of files named one by one, as a shell does for a pattern, keep the keys by which they differ."""
    keys = {file: _keys(file) for file in files}
    differing = {
        key for each in keys.values() for key in each if any(keys[file].get(key) != each[key] for file in keys)
    }
    return {file: {key: each[key] for key in each if key in differing} for file, each in keys.items()}


def _matching(pattern: str) -> list[Path]:
    matched = [Path(match) for match in glob.glob(pattern, recursive=True)]  # noqa: PTH207
    return [file for match in matched for file in (_inside(match) if match.is_dir() else [match])]


def _unmagical(pattern: Path) -> Path:
    """Return the folders that come before the first sign of a pattern."""
    plain = list(itertools.takewhile(lambda part: not glob.has_magic(part), pattern.parts))
    return Path(*plain)


def _inside(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if _counts(file.relative_to(folder)) and file.is_file()]


def _counts(file: Path) -> bool:
    """Leave out what writers leave behind: hidden files, and those that begin with an underscore."""
    return file.name.lower().endswith(ENDINGS) and not any(part.startswith((".", "_")) for part in file.parts)


def by_value(file: Path) -> list[str | int]:
    """Compare numbers in names as numbers: part-2 comes before part-10."""
    return [int(piece) if at % 2 else piece for at, piece in enumerate(re.split(r"(\d+)", str(file)))]
