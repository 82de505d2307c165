"""Carry a file from page to page inside the form itself, so that the server keeps nothing between two requests."""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib

from unbandit.errors import LogError
from unbandit.web.wording import size

__all__ = ["GZIP", "PARQUET", "carried", "cleaned", "uncarried", "unpacked"]

_PACKED, _AS_IS = "packed:", "as-is:"
GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
"""How these files begin; they are small already."""

LONGEST_NAME = 80


def carried(data: bytes) -> str:
    """Write a file as text for a hidden field.

    Examples
    --------
    >>> uncarried(carried(b"arm\\nA\\nB\\n"), most=100)
    b'arm\\nA\\nB\\n'
    """
    if data.startswith((GZIP, PARQUET)):
        return _AS_IS + base64.b64encode(data).decode("ascii")
    return _PACKED + base64.b64encode(gzip.compress(data, compresslevel=1, mtime=0)).decode("ascii")


def uncarried(text: str, most: int) -> bytes:
    """Read such a field back; it may have been written by anybody, so it is unpacked no further than `most` bytes."""
    kind, _, body = text.partition(":")
    try:
        data = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        kind = ""
    if kind + ":" == _AS_IS:
        return data
    if kind + ":" == _PACKED and data:
        return _gunzip(data, most, "the log")
    raise LogError("expected the log that this page was made for; it was lost on the way. Choose the file again.")


def unpacked(data: bytes, most: int, name: str) -> bytes:
    """Unpack gzip, but never to more than `most` bytes: a small file can claim to hold terabytes.

    Examples
    --------
    >>> unpacked(gzip.compress(bytes(1000)), 100, "log.csv.gz")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    unbandit.errors.LogError: log.csv.gz: expected at most 100 bytes once it is unpacked; it holds more. ...
    """
    return _gunzip(data, most, name) if data.startswith(GZIP) else data


def _gunzip(data: bytes, most: int, name: str) -> bytes:
    parts, room = [], most
    try:
        while data:  # a gzip file may have several members
            reader = zlib.decompressobj(wbits=31)
            parts.append(reader.decompress(data, room + 1))
            room -= len(parts[-1])
            if room < 0:
                raise LogError(
                    f"expected at most {size(most)} once it is unpacked; it holds more. "
                    "Take a part of it, or use the command line: unbandit report.",
                    path=name,
                )
            if not reader.eof:
                raise EOFError("its end is missing")
            data = reader.unused_data.lstrip(b"\0")
    except (zlib.error, EOFError) as error:
        raise LogError(
            f"expected a whole gzip file; it could not be unpacked ({error}). Write or copy it again.", path=name
        ) from error
    return b"".join(parts)


def cleaned(name: str) -> str:
    """Return a file's name as it can be shown: without folders, without what cannot be printed, not too long.

    Examples
    --------
    >>> cleaned("C:\\\\logs\\\\..\\\\my log.csv"), cleaned("../../etc/passwd"), cleaned("")
    ('my log.csv', 'passwd', 'the log')
    """
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    shown = "".join(letter for letter in last if letter.isprintable()).strip()
    return (shown if len(shown) <= LONGEST_NAME else shown[: LONGEST_NAME - 1] + "…") or "the log"
