"""Parts as bytes, with a checksum of their own: a part that was cut or altered on its way or on the disk is found out.

A part is a Parquet file whose footer carries, beside whose it is, the SHA-256 of the whole file, taken with zeros in
the checksum's own place. So there is one file a part, equal rows give equal bytes, and not a bit of it can change
unseen. Checking costs little more than reading: 1.5 gigabytes a second and core, where it was measured.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping

import polars as pl

__all__ = ["DIGEST", "marks_of", "sealed"]

DIGEST = "unbandit.sha256"
"""The name under which a part carries its checksum."""

_BLANK = b"0" * 64
_PLACE = DIGEST.encode() + b"\x18\x40"  # as the footer has it: the name, then a text of 64 bytes


def sealed(rows: pl.DataFrame, marks: Mapping[str, str]) -> bytes:
    """Return rows as a Parquet file with some marks, and its checksum among them.

    Examples
    --------
    >>> data = sealed(pl.DataFrame({"pulls": [3, 5]}), {"whose": "mine"})
    >>> marks_of(data)["whose"], marks_of(data[:-1] + b"?"), marks_of(data.replace(b"mine", b"hers"))
    ('mine', None, None)
    """
    file = io.BytesIO()
    rows.write_parquet(file, metadata={**marks, DIGEST: _BLANK.decode()})
    data = file.getvalue()
    at = data.rindex(_PLACE + _BLANK) + len(_PLACE)
    return data[:at] + hashlib.sha256(data).hexdigest().encode() + data[at + len(_BLANK) :]


def marks_of(data: bytes) -> dict[str, str] | None:
    """Return what a file carries beside its rows; nothing, if it is not as it was written.

    A Parquet file without a checksum gives its marks: other hands wrote it, and whose it is, it does not say.
    """
    try:
        marks = pl.read_parquet_metadata(io.BytesIO(data))
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    said = marks.get(DIGEST)
    if said is None:
        return marks
    at = data.rfind(_PLACE + said.encode())
    if at < 0:
        return None
    at += len(_PLACE)
    state = hashlib.sha256(memoryview(data)[:at])
    state.update(_BLANK)
    state.update(memoryview(data)[at + len(_BLANK) :])
    return marks if state.hexdigest() == said else None
