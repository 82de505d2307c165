"""Reach the 16-byte views of a polars column through the Arrow C stream interface.

The layouts below are those of https://arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["Views", "views_of"]

Views = NDArray[np.uint64]  # (rows, 2)

_Address = ctypes.c_void_p
_TEXT_VIEWS = b"vu"


class _Schema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", _Address),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", _Address),
        ("dictionary", _Address),
        ("release", ctypes.CFUNCTYPE(None, _Address)),
        ("private_data", _Address),
    )


class _Array(ctypes.Structure):
    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.POINTER(_Address)),
        ("children", _Address),
        ("dictionary", _Address),
        ("release", ctypes.CFUNCTYPE(None, _Address)),
        ("private_data", _Address),
    )


class _Stream(ctypes.Structure):
    _fields_ = (
        ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, _Address, _Address)),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, _Address, _Address)),
        ("get_last_error", _Address),
        ("release", _Address),
        ("private_data", _Address),
    )


@contextmanager
def views_of(column: pl.Series) -> Iterator[list[Views] | None]:
    """Lend the views of each chunk while the block lasts; None when the column is kept in another way.

    Examples
    --------
    >>> with views_of(pl.Series(["A", "BC"])) as chunks:
    ...     [int(view[0]) & 0xFFFFFFFF for view in chunks[0]]  # lengths
    [1, 2]
    """
    capsule = column.__arrow_c_stream__()
    stream = _stream_in(capsule)
    arrays: list[_Array] = []
    try:
        yield _chunks(stream, arrays) if _format_of(stream) == _TEXT_VIEWS else None
    finally:
        for array in arrays:
            array.release(ctypes.addressof(array))
        del capsule  # its own destructor releases the stream


def _stream_in(capsule: object) -> _Stream:
    pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_in.restype, pointer_in.argtypes = _Address, (ctypes.py_object, ctypes.c_char_p)
    return _Stream.from_address(pointer_in(capsule, b"arrow_array_stream"))


def _format_of(stream: _Stream) -> bytes:
    schema = _Schema()
    if stream.get_schema(ctypes.addressof(stream), ctypes.addressof(schema)):
        return b""
    written = bytes(schema.format)
    schema.release(ctypes.addressof(schema))
    return written


def _chunks(stream: _Stream, arrays: list[_Array]) -> list[Views] | None:
    chunks: list[Views] = []
    while True:
        array = _Array()
        if stream.get_next(ctypes.addressof(stream), ctypes.addressof(array)):
            return None
        if not array.release:  # the end of the stream
            return chunks
        arrays.append(array)
        if array.length:
            words = ctypes.cast(array.buffers[1], ctypes.POINTER(ctypes.c_uint64))
            both = np.ctypeslib.as_array(words, (array.offset + array.length, 2))
            chunks.append(both[array.offset :])
