"""The layout of a Parquet file, checked before polars reads it, and a way to keep polars quiet while it does.

A single damaged byte can make polars ask for an exabyte, which aborts the whole process. By hand because no other
library is at hand that reads the footer and the page headers alone: they state every length and count twice, so that
nearly all damage shows as a contradiction. What is left (damage within compressed values) polars refuses by an error.
"""

import io
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

PARQUET = b"PAR1"  # the first and the last bytes of a Parquet file

_FOOTER_END = 8  # bytes: the footer's length, then PARQUET
_HEADER = 1 << 9  # bytes that are read for a page header at first; long statistics need more
_DEEPEST = 32  # structures within structures of a header
_DEEPEST_COLUMN = 100  # names from the top of the schema to a column, of which a list takes two; polars dies of 1,600
_MOST_EXPANSION = 1 << 17  # bytes that a byte of a compressed page can unpack to: Zstandard's limit, the largest of all
_DATA, _INDEX, _DICTIONARY, _DATA_V2 = range(4)  # types of pages
_SILENCE, _LONG_SILENCE, _LONGEST_WAIT = 0.03, 0.5, 20.0  # seconds
_TRACE_END = b"note: Some details are omitted"  # what a panic's text ends with if `RUST_BACKTRACE` is 1
_REPEATED = 2  # the repetition type of a list's items

Struct = dict[int, Any]
"""A structure of Thrift: values by the numbers of their fields, as parquet.thrift has them."""

_stream = threading.RLock()


class UnreadableParquet(ValueError):
    """A Parquet file that contradicts itself or holds no plain table; the message is what came, within a sentence."""

    def __init__(self, reason: str, expected: str | None = None, remedy: str = "Write or copy it again.") -> None:
        super().__init__(reason)
        self.expected, self.remedy = expected, remedy


class _Leaf(NamedTuple):
    """A column as it is stored: its path from the top of the schema, and whether it holds lists."""

    path: tuple[bytes, ...]
    repeated: bool


class ParquetLayout:
    """Footer of a Parquet file, on disk or in memory; making one refuses a footer that contradicts itself."""

    def __init__(self, content: Path | bytes) -> None:
        self._content = content
        with self._opened() as file:
            self._end = file.seek(0, io.SEEK_END) - _FOOTER_END
            last = _read(file, max(self._end, 0), _FOOTER_END)
            length = int.from_bytes(last[:4], "little")
            if last[4:] != PARQUET or not 0 < length <= self._end - len(PARQUET):
                raise UnreadableParquet("its footer is missing or cut off")
            self._end -= length
            footer, _ = _parsed(_read(file, self._end, length))
        leaves = _leaves(_structs(footer, 2))
        self._groups: list[tuple[int, list[tuple[_Leaf, Struct]]]] = []
        for group in _structs(footer, 4):
            chunks = [_struct(chunk, 3) for chunk in _structs(group, 1)]
            if [chunk.get(3) for chunk in chunks] != [list(leaf.path) for leaf in leaves]:
                raise UnreadableParquet("a row group has other columns than its schema")
            self._groups.append((_count(group, 3), list(zip(leaves, chunks, strict=True))))
        self.rows = sum(rows for rows, _ in self._groups)
        if self.rows != _count(footer, 3):
            raise UnreadableParquet("its row groups have another number of rows than it states")

    def check(self, names: Iterable[str]) -> None:
        """Refuse columns whose pages are not where and as long as the footer says, or have other counts of values."""
        wanted = {name.encode() for name in names}
        with self._opened() as file:
            for rows, chunks in self._groups:
                for leaf, chunk in chunks:
                    if leaf.path[0] in wanted:
                        self._check_chunk(file, rows, leaf, chunk)

    def _check_chunk(self, file: IO[bytes], rows: int, leaf: _Leaf, chunk: Struct) -> None:
        values, at = _count(chunk, 5), _count(chunk, 11 if chunk.get(11) else 9)
        end = at + _count(chunk, 7)
        if not len(PARQUET) <= at <= end <= self._end or _count(chunk, 9) > end or chunk.get(4) not in range(8):
            raise UnreadableParquet("a column lies outside the file")
        if not leaf.repeated and values != rows:
            raise UnreadableParquet("a column has another number of values than its row group has rows")
        seen, known = 0, False
        while seen < values:
            header, length = _page_header(file, at, end)
            at += length + _count(header, 3)
            kind = header.get(1)
            if at > end or kind not in range(4):
                raise UnreadableParquet("a page reaches beyond its column")
            if kind == _DICTIONARY:
                if known or seen or _count(_struct(header, 7), 1) > _count(header, 2):
                    raise UnreadableParquet("a dictionary is out of place or longer than its page")
                known = True
            elif kind != _INDEX:
                seen += _values_of(header)
            unpacked, packed = _count(header, 2), _count(header, 3)
            if unpacked != packed if chunk[4] == 0 else unpacked > _MOST_EXPANSION * (packed + 1):
                raise UnreadableParquet("a page states a length that it cannot have")
        if seen != values:
            raise UnreadableParquet("the pages of a column have another number of values than it states")

    def _opened(self) -> IO[bytes]:
        return io.BytesIO(self._content) if isinstance(self._content, bytes) else self._content.open("rb")


def _values_of(header: Struct) -> int:
    """Return the number of values of a data page."""
    page = _struct(header, 5 if header[1] == _DATA else 8)
    values = _count(page, 1)
    if header[1] == _DATA_V2:
        levels = _count(page, 5) + _count(page, 6)
        if _count(page, 2) > values or _count(page, 3) > values or levels > min(_count(header, 2), _count(header, 3)):
            raise UnreadableParquet("a page has counts that contradict each other")
    return values


def _page_header(file: IO[bytes], at: int, end: int) -> tuple[Struct, int]:
    """Read the header of the page that begins at a place, and return it with its length."""
    size = _HEADER
    while True:
        try:
            return _parsed(_read(file, at, min(size, end - at)))
        except UnreadableParquet:
            if size >= end - at:
                raise
            size = min(size << 6, end - at)


def _leaves(elements: list[Struct]) -> list[_Leaf]:
    """Return the columns of a schema, which is a tree written depth first; lists make their columns repeated."""
    leaves, following, names = list[_Leaf](), iter(elements[1:]), set[bytes]()

    def add(count: int, path: tuple[bytes, ...], repeated: bool) -> None:
        if len(path) > _DEEPEST_COLUMN:
            text = f'"{path[0].decode(errors="replace")}" goes deeper'
            expected = f"lists within lists at most {_DEEPEST_COLUMN // 2} deep"
            raise UnreadableParquet(text, expected, "Write the file again without that column.")
        for _ in range(count):
            element = next(following, None)
            if element is None or not isinstance(element.get(4), bytes):
                raise UnreadableParquet("its schema is cut off")
            inner = (*path, element[4])
            if not path and element[4] in names:
                text = f'got "{element[4].decode(errors="replace")}" twice'
                raise UnreadableParquet(text, "each column once", "Write the file again with other names.")
            if not path:
                names.add(element[4])
            is_repeated = repeated or element.get(3) == _REPEATED
            if element.get(5):
                add(_count(element, 5), inner, is_repeated)
            else:
                leaves.append(_Leaf(inner, is_repeated))

    add(_count(elements[0], 5) if elements else 0, (), False)
    if next(following, None) is not None:
        raise UnreadableParquet("its schema has columns that belong nowhere")
    return leaves


def _count(struct: Struct, field: int) -> int:
    value = struct.get(field)
    if not isinstance(value, int) or value < 0:
        raise UnreadableParquet("a count is missing or negative")
    return value


def _struct(struct: Struct, field: int) -> Struct:
    value = struct.get(field)
    if not isinstance(value, dict):
        raise UnreadableParquet("a part of its description is missing")
    return value


def _structs(struct: Struct, field: int) -> list[Struct]:
    values = struct.get(field)
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise UnreadableParquet("a part of its description is missing")
    return values


def _read(file: IO[bytes], at: int, length: int) -> bytes:
    file.seek(at)
    return file.read(length)


def _parsed(data: bytes) -> tuple[Struct, int]:
    """Read a structure of Thrift's compact protocol from its first byte, and return it with its length."""
    try:
        return _parse_struct(data, 0, 0)
    except IndexError:
        raise UnreadableParquet("its description is cut off") from None


def _parse_struct(data: bytes, at: int, depth: int) -> tuple[Struct, int]:
    """Read a structure; what footers are full of, small integers and short texts, is read without another call."""
    if depth > _DEEPEST:
        raise UnreadableParquet("its description is nested too deeply")
    struct: Struct = {}
    field, size = 0, len(data)
    while head := data[at]:
        at += 1
        kind = head & 15
        if head >> 4:
            field += head >> 4
        else:
            field, at = _parse_integer(data, at)
        if kind == 6 or kind == 5:
            value = data[at]
            at += 1
            if value > 127:
                value, at = _parse_varint(data, at - 1)
            struct[field] = (value >> 1) ^ -(value & 1)
        elif kind == 8:
            length = data[at]
            at += 1
            if length > 127:
                length, at = _parse_varint(data, at - 1)
            if length > size - at:
                raise IndexError
            struct[field] = data[at : at + length]
            at += length
        elif kind == 12:
            struct[field], at = _parse_struct(data, at, depth + 1)
        elif kind <= 2:
            struct[field] = kind == 1
        else:
            struct[field], at = _parse_value(data, at, kind, depth)
    return struct, at + 1


def _parse_value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if 4 <= kind <= 6:
        return _parse_integer(data, at)
    if kind == 8:
        length, at = _parse_varint(data, at)
        if length > len(data) - at:
            raise IndexError
        return data[at : at + length], at + length
    if kind == 12:
        return _parse_struct(data, at, depth + 1)
    if kind in (9, 10) and depth <= _DEEPEST:
        head, at = data[at], at + 1
        size, inner = head >> 4, head & 15
        if size == 15:
            size, at = _parse_varint(data, at)
        if size > len(data) - at:  # an item has at least one byte
            raise IndexError
        values = []
        for _ in range(size):
            if inner <= 2:
                value, at = data[at] == 1, at + 1
            else:
                value, at = _parse_value(data, at, inner, depth + 1)
            values.append(value)
        return values, at
    if kind in (3, 7):  # a byte or a number of 8 bytes
        end = at + (1 if kind == 3 else 8)
        if end > len(data):
            raise IndexError
        return data[at:end], end
    raise UnreadableParquet("its description has a part of an unknown kind")


def _parse_integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _parse_varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _parse_varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    value, shift = byte & 127, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at + 1
        shift += 7
        if shift > 63:
            raise UnreadableParquet("a number of its description is too long")


@contextmanager
def without_panic_text() -> Iterator[None]:
    """Hold back what is written to this process's error stream, and drop it if it is the text of a Rust panic.

    Polars prints that text itself before it raises. Everything else that came is written when the block ends.
    """
    with _stream, tempfile.TemporaryFile() as held:
        _flush()
        try:
            kept = os.dup(2)
        except OSError:  # there is no error stream
            yield
            return
        os.dup2(held.fileno(), 2)
        try:
            yield
        except UnreadableParquet:  # polars was not asked
            raise
        except BaseException:
            _await_silence(held)
            raise
        finally:
            _flush()
            os.dup2(kept, 2)
            os.close(kept)
            held.seek(0)
            text = held.read()
            if text and b"panicked at" not in text:
                with open(2, "wb", closefd=False) as stream:
                    stream.write(text)


def _await_silence(held: IO[bytes]) -> None:
    """Wait until the other threads of polars have had their say: each panics by itself, and the first one is raised.

    With `RUST_BACKTRACE` set, each also looks up where it was, which takes its time, and says when it has ended.
    """
    size, traced, silence = -1, os.environ.get("RUST_BACKTRACE", "0"), _SILENCE
    until = time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < until:
        text = os.pread(held.fileno(), os.fstat(held.fileno()).st_size, 0)
        panics = text.count(b"panicked at ")
        if len(text) == size and (traced in ("0", "full") or panics <= text.count(_TRACE_END)):
            return
        size, silence = len(text), _LONG_SILENCE if traced == "full" and panics else _SILENCE
        time.sleep(silence)


def _flush() -> None:
    with suppress(OSError, ValueError, AttributeError):  # none, or closed
        sys.stderr.flush()
