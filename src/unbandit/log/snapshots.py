"""Keep arrays and a few words about them in one file, which is whole or not there at all."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import ResumeError
from unbandit.files import written_whole

__all__ = ["read_snapshot", "write_snapshot"]

_BEGINNING, VERSION = b"unbandit snapshot ", 1


def write_snapshot(path: str | os.PathLike[str], said: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a snapshot: a line with its version and checksum, then what it holds.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "state"
    >>> write_snapshot(path, {"rule": "ucb"}, {"pulls": np.array([1, 2])})
    >>> said, arrays = read_snapshot(path)
    >>> said, arrays["pulls"].tolist()
    ({'rule': 'ucb'}, [1, 2])
    """
    held = io.BytesIO()
    words = np.frombuffer(json.dumps(said, allow_nan=False).encode(), np.uint8)
    np.savez(held, allow_pickle=False, **{"said": words, **{f"array {name}": array for name, array in arrays.items()}})
    data = held.getvalue()
    line = _BEGINNING + f"{VERSION} {hashlib.sha256(data).hexdigest()}\n".encode()
    with written_whole(path) as temporary:
        temporary.write_bytes(line + data)


def read_snapshot(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a snapshot; refuse one that is damaged, or of another version."""
    name = os.fspath(path)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ResumeError(f"{name}: expected a snapshot that can be read: {error.strerror or error}.") from error
    line, _, data = content.partition(b"\n")
    words = line.removeprefix(_BEGINNING).split()
    remedy = "Remove it to begin anew, or name another file."
    if not line.startswith(_BEGINNING) or len(words) != 2:
        raise ResumeError(f"{name}: expected a snapshot of unbandit; got another kind of file. {remedy}")
    if words[0] != str(VERSION).encode():
        version = words[0].decode("ascii", "replace")
        raise ResumeError(f"{name}: expected a snapshot of version {VERSION}; got one of version {version}. {remedy}")
    if hashlib.sha256(data).hexdigest().encode() != words[1]:
        raise ResumeError(f"{name}: expected a whole snapshot; its checksum does not fit, so it is damaged. {remedy}")
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        arrays = {key.removeprefix("array "): held[key] for key in held.files if key != "said"}
        return json.loads(held["said"].tobytes()), arrays
