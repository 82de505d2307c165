"""Snapshots of growing logs: written whole, and believed only if everything in them fits together.

A checksum reveals damage, but anybody can compute one. Kernels use what a snapshot holds as indices without checking
them, so each number is checked here. Nothing in a snapshot is ever executed: it has arrays and JSON, no pickles.
"""

import hashlib
import io
import json
import os
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unbandit.errors import ResumeError, first_line
from unbandit.files import written_whole
from unbandit.log.labels import Integers

_BEGINNING, VERSION = b"unbandit snapshot ", 1

COUNTS, PAIRS, RING = ("pulls", "first", "last"), ("rounds", "own", "of_other"), ("following", "preceding", "passed")
"""The arrays of a growing log: of all of them, and of those that carry on switching rounds, or epochs."""

LOOK_ROWS = ("recent", "known", "turn_round", "end_round")
LOOK_PAIRS = ("turn", "own_known", "other_known", "decided", "ended")
"""The arrays of one for a rule whose rewards are late, with one number per arm and per pair (`kernels.looks`)."""

_NOT_OURS = (
    ValueError, LookupError, OSError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, struct.error,
)  # fmt: skip
"""What reading raises where a file has a checksum that fits, and something else in it."""

MARKS = 6  # see `kernels.tally.epochs_of_runs`


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


_Count = Field(ge=0, lt=2**63)


class _LogWords(_Strict):
    need: Literal["counts", "switching", "epochs"]
    expected: list[str] | None
    arms: list[str]
    demonstrations: list[str]
    looks: Annotated[list[Annotated[int, Field(ge=0, lt=2**32)]], Field(min_length=3, max_length=3)] | None = None


class _TextRead(_Strict):
    offset: int = _Count
    rows: int = _Count
    lines: int = _Count
    blank: int = Field(0, ge=0, lt=2**63)
    first: str
    latest: str


class _ParquetRead(_Strict):
    rows: int = _Count
    size: int = _Count
    time: int = _Count
    whole: bool


class _FileWords(_Strict):
    keys: dict[str, str]
    read: _TextRead | _ParquetRead


class _Position(_Strict):
    path: str
    columns: dict[str, Any]
    files: dict[str, _FileWords]
    rounds: list[list[int]] | None
    times: str | None = None
    coarse: list[list[int]] | None = None
    header: bool = True


class SnapshotWords(_Strict):
    """What a snapshot says besides its arrays."""

    rule: str
    options: dict[str, Any]
    log: _LogWords
    position: _Position | Annotated[dict[str, None], Field(max_length=0)]


def write_snapshot(path: str | os.PathLike[str], words: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a snapshot: a line with its version and checksum, then what it holds."""
    held = io.BytesIO()
    said = np.frombuffer(json.dumps(words, allow_nan=False).encode(), np.uint8)
    np.savez(held, allow_pickle=False, **{"said": said, **{f"array {name}": array for name, array in arrays.items()}})
    data = held.getvalue()
    line = _BEGINNING + f"{VERSION} {hashlib.sha256(data).hexdigest()}\n".encode()
    with written_whole(path) as temporary:
        temporary.write_bytes(line + data)


def read_snapshot(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Integers]]:
    """Read a snapshot; refuse one that is damaged, of another version, or not as we would have written it."""
    name = os.fspath(path)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ResumeError(f"{name}: expected a snapshot that can be read: {first_line(error)}.") from error
    line, _, data = content.partition(b"\n")
    words = line.removeprefix(_BEGINNING).split()
    problem = ""
    if not line.startswith(_BEGINNING) or len(words) != 2:
        problem = "expected a snapshot of unbandit; got another kind of file."
    elif words[0] != str(VERSION).encode():
        version = words[0].decode("ascii", "replace")
        problem = f"expected a snapshot of version {VERSION}; got one of version {version}."
    elif hashlib.sha256(data).hexdigest().encode() != words[1]:
        problem = "expected a whole snapshot; its checksum does not fit, so it is damaged."
    else:
        try:
            return _unpacked(data)
        except _NOT_OURS as error:
            reason = "unknown words" if isinstance(error, ValidationError) else first_line(error)
            problem = f"expected a snapshot that unbandit wrote; its parts do not fit together ({reason})."
    raise ResumeError(f"{name}: {problem} Remove it to start over, or name another file.")


def _unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, Integers]]:
    with zipfile.ZipFile(io.BytesIO(data)) as members:
        if any(member.compress_type != zipfile.ZIP_STORED for member in members.infolist()):
            raise ValueError("it is compressed")  # a small file could hold terabytes
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        words = json.loads(held["said"].tobytes())
        arrays = {key.removeprefix("array "): np.ascontiguousarray(held[key]) for key in held.files if key != "said"}
    _check(SnapshotWords.model_validate(words), arrays)
    return words, arrays


def _check(words: SnapshotWords, arrays: Mapping[str, Integers]) -> None:
    """Refuse arrays that a growing log cannot have come to, as far as anything relies on it."""
    log, lengths = words.log, arrays["lengths"]
    count, arms = lengths.size, len(log.arms)
    shapes: dict[str, tuple[int, ...]] = {"lengths": (count,)} | dict.fromkeys(COUNTS, (count, arms))
    if log.need == "switching":
        shapes |= dict.fromkeys(PAIRS, (count, arms, arms))
    if log.need == "epochs":
        shapes |= dict.fromkeys(RING, (count, arms)) | {"marks": (count, MARKS)}
    if log.looks is not None:
        shapes |= dict.fromkeys(LOOK_ROWS, (count, arms)) | dict.fromkeys(LOOK_PAIRS, (count, arms, arms))
        shapes["recent"] = (count, log.looks[1] + log.looks[2])
    if not count:  # nothing came yet, and no arm has a place
        shapes = {name: shape if name in ("marks", "recent") else (0,) * len(shape) for name, shape in shapes.items()}
    _expect({name: array.shape for name, array in arrays.items()} == shapes, "arrays of other shapes")
    _expect(all(array.dtype == np.int64 for array in arrays.values()), "arrays of another type")
    _expect(len(set(log.arms)) == arms and log.arms == (log.expected or log.arms), "other arms than those listed")
    names = log.demonstrations
    _expect(len(set(names)) == len(names) and (len(names) == count or (not names and count <= 1)), "demonstrations")
    if count:
        _check_counts(log.need, arrays)
        if log.looks is not None:
            _check_looks(arrays)
    if isinstance(words.position, _Position):
        _check_position(words.position, lengths)


def _check_counts(need: str, arrays: Mapping[str, Integers]) -> None:
    lengths = arrays["lengths"]
    pulls, first, last = (arrays[name] for name in COUNTS)
    longest = lengths[:, None]
    _expect(bool((lengths >= 0).all() and (pulls >= 0).all() and (pulls <= longest).all()), "negative counts")
    _expect(bool((pulls.sum(axis=1) == lengths).all()), "pulls that do not sum to the rounds")
    _expect(bool(((first >= 0) & (first <= last) & (last <= longest)).all()), "rounds that nobody played")
    _expect(bool(((pulls > 0) == (first > 0)).all() and ((pulls > 0) == (last > 0)).all()), "rounds without pulls")
    if need == "switching":
        rounds, own, of_other = (arrays[name] for name in PAIRS)
        _expect(bool(((rounds >= 0) & (rounds <= longest[:, :, None])).all()), "switching rounds that nobody played")
        _expect(bool(((own >= 0) & (own <= pulls[:, :, None])).all()), "more pulls at a switching round")
        _expect(
            bool(((of_other >= 0) & (of_other <= pulls[:, None, :])).all()), "more pulls of another arm than in all"
        )
    if need == "epochs":
        _check_ring(lengths, pulls, *(arrays[name] for name in (*RING, "marks")))


def _check_looks(arrays: Mapping[str, Integers]) -> None:
    """Refuse recent rounds of no arm, and more known rewards than pulls; see `kernels.looks.pairs_of_looks`."""
    recent, pulls, longest = arrays["recent"], arrays["pulls"], arrays["lengths"][:, None]
    _expect(bool(((recent >= 0) & (recent < pulls.shape[1])).all()), "recent rounds of arms that there are not")
    known, of_arm, of_other = arrays["known"], pulls[:, :, None], pulls[:, None, :]
    _expect(bool(((known >= 0) & (known <= pulls)).all()), "more rewards known than pulls")
    for name, most in (("own_known", of_arm), ("other_known", of_other), ("ended", of_arm), ("turn", of_other)):
        _expect(bool(((arrays[name] >= 0) & (arrays[name] <= most)).all()), "more rewards known than pulls")
    for name, last in (("turn_round", longest), ("end_round", longest), ("decided", longest[:, :, None])):
        _expect(bool(((arrays[name] >= 0) & (arrays[name] <= last)).all()), "decisions that nobody made")


def _check_ring(
    lengths: Integers, pulls: Integers, following: Integers, preceding: Integers, passed: Integers, marks: Integers
) -> None:
    """Refuse neighbours that are not one ring of all active arms; see `kernels.tally.epochs_of_runs`."""
    count, arms = pulls.shape
    head, tail, due, wrapped, broken, broken_arm = marks.T
    for places in (following, preceding, head, tail, due, broken_arm):
        _expect(bool(((places >= -1) & (places < arms)).all()), "arms that there are not")
    for rounds, most in ((passed, lengths[:, None]), (wrapped, lengths), (broken, lengths)):
        _expect(bool(((rounds >= 0) & (rounds <= most)).all()), "turns that nobody had")
    seen = following >= 0
    _expect(bool((seen == (pulls > 0)).all() and (seen == (preceding >= 0)).all()), "turns of arms without pulls")
    active = seen & (passed == 0)
    rows = np.arange(count)
    first_round = wrapped == 0
    start = np.where(first_round, head, due)
    _expect(bool(((start >= 0) == active.any(axis=1)).all()), "nobody whose turn it is")
    _expect(bool((due[first_round] == -1).all()), "a turn in the first epoch")
    _expect(bool(((tail >= 0) == (head >= 0))[first_round].all()), "a ring without an end")
    _expect(bool((following[rows, tail] == head)[first_round & (tail >= 0)].all()), "a ring without an end")
    visited, place = np.zeros_like(active), start
    for _ in range(arms):  # all demonstrations at once, from arm to arm
        there = place >= 0
        visited[rows[there], place[there]] = True
        after = np.where(there, following[rows, place], -1)
        _expect(bool((preceding[rows, after] == place)[there].all()), "neighbours that do not know each other")
        place = after
    _expect(bool((visited == active).all()), "several rings")


def _check_position(position: _Position, lengths: Integers) -> None:
    rows = sum(file.read.rows for file in position.files.values())
    _expect(rows == int(lengths.sum()), "another number of rows than of rounds")
    if position.rounds is not None:
        _expect(len(position.rounds) == 2 and len(position.rounds[0]) == len(position.rounds[1]) > 0, "rounds")
        _expect(all(-1 <= value < 2**62 for values in position.rounds for value in values), "rounds")
    if position.coarse is not None:
        _expect(all(-1 <= value < 2**62 for values in position.coarse for value in values), "times")
        _expect(len(position.coarse) == 4 and position.rounds is not None, "times")
        firsts, arms, seen, count = position.coarse
        _expect(len(firsts) == len(arms) == len((position.rounds or [[]])[0]) and len(count) == 2, "times")
        _expect(seen == sorted(set(seen)) and (not seen or seen[0] >= 0), "times")


def _expect(is_so: bool, problem: str) -> None:
    if not is_so:
        raise ValueError(problem)
