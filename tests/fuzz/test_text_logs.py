"""Text logs, mutated: whatever is read equals what Python's `csv` module reads in strict mode, or it is refused."""

from __future__ import annotations

import csv
import gzip
import io
import random

from mutations import damaged, damaged_text, files, generator, outcomes, text_log

import unbandit.log.csv as reader
from unbandit.errors import LogError, UnbanditError
from unbandit.log import ActionLog
from unbandit.log.formats import open_bytes
from unbandit.log.sources import ROWS

FEW = 400  # `make fuzz` tries many more

Table = tuple[list[str], list[list[str]]]


def strictly(text: str, separator: str) -> Table | None:
    """Read a table by Python's `csv` in strict mode; None if it is broken or not even."""
    try:
        records = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error:
        return None
    while records and not records[0]:
        records.pop(0)
    while records and not records[-1]:
        records.pop()
    if not records:
        return None
    names, rows = [name.strip() for name in records[0]], records[1:]
    if len(names) == 1:
        rows = [row or [""] for row in rows]
    return (names, rows) if all(len(row) == len(names) for row in rows) else None


def first_letter_is_utf_8(data: bytes) -> bool:
    """Return whether the first letter beyond ASCII is one in UTF-8; if there is none, too."""
    rest = data.lstrip(bytes(range(128)))
    for size in (2, 3, 4) if rest else ():
        try:
            rest[:size].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return True
    return not rest or (rest.startswith((b"\xff\xfe", b"\xfe\xff")) and data == rest)


def oracle(data: bytes, name: str) -> Table | None:
    """Read a file as `csv` does with the separator by which it is a table of most columns; None if it is no table.

    Nor is it one if two separators make as many columns, unless one of them cuts names in quotes, or tabs are expected.
    """
    try:
        unpacked = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        text = unpacked.decode("utf-8-sig" if first_letter_is_utf_8(unpacked) else "cp1252")
    except (OSError, EOFError, ValueError, gzip.zlib.error):  # type: ignore[attr-defined]
        return None
    readings = {separator: strictly(text, separator) for separator in ",\t;"}
    tables = {separator: table for separator, table in readings.items() if table is not None}
    most = max((len(names) for names, _ in tables.values()), default=1)
    if most == 1:
        return readings["\t" if name.endswith(".tsv") else ","]
    best = {separator: table for separator, table in tables.items() if len(table[0]) == most}
    best = {separator: table for separator, table in best.items() if not any('"' in name for name in table[0])} or best
    if len(best) > 1 and name.endswith(".tsv"):
        return best.get("\t")
    return next(iter(best.values())) if len(best) == 1 else None


def cells_of(data: bytes, name: str, rng: random.Random) -> Table:
    """Read every column by our reader, a few at a time, in blocks of any size."""
    source = open_bytes(data, name)
    columns: list[list[str]] = [[] for _ in source.names]
    rows = rng.choice([ROWS, ROWS, 1, 3, 20])
    unique = [at for at, column in enumerate(source.names) if source.names.index(column) == at]
    for group in (unique[::2], unique[1::2]) if rng.random() < 0.5 else (unique,):
        wanted = [source.names[at] for at in group]
        for batch in source.batches(wanted, rows) if wanted else ():
            for at, column in zip(group, wanted, strict=True):
                columns[at] += ["" if cell is None else cell for cell in batch.columns[column].to_list()]
    return source.names, [list(row) for row in zip(*(columns[at] for at in unique), strict=True)]


def expected_cells(table: Table) -> Table:
    names, rows = table
    unique = [at for at, name in enumerate(names) if names.index(name) == at]
    return names, [[row[at] for at in unique] for row in rows]


def expected_choices(table: Table) -> dict[str, list[str]] | None:
    """Return the arms of each demonstration, where only columns of these very names have a role."""
    names, rows = table
    wanted = {"arm", "demonstration", "round"}
    if len(set(names)) < len(names) or "arm" not in names or not set(names) <= wanted | {"x", "note", "weight"}:
        return None
    who = [row[names.index("demonstration")].strip() if "demonstration" in names else "1" for row in rows]
    when = [float(row[names.index("round")]) if "round" in names else at for at, row in enumerate(rows)]
    choices: dict[str, list[str]] = {name: [] for name in who}
    for at in sorted(range(len(rows)), key=lambda at: when[at]):
        choices[who[at]].append(rows[at][names.index("arm")].strip())
    return choices


def file_of(number: int) -> tuple[bytes, str, random.Random, bool]:
    """Return a file, its name, how to go on, and whether it must be read."""
    rng = generator(number)
    written, must_be_read = text_log(rng)
    data = damaged_text(rng, written)
    must_be_read = must_be_read and data == written
    if rng.random() < 0.1:
        data = gzip.compress(data, mtime=0)
        if rng.random() < 0.3:
            data, must_be_read = damaged(rng, data), False
    return data, rng.choice(["log.csv", "log.csv", "log.tsv", "log"]), rng, must_be_read


def trial(number: int) -> tuple[str, str]:
    data, name, rng, must_be_read = file_of(number)
    table = oracle(data, name)
    shown = f"{number}: {name} {data[:400]!r}"
    small = reader.SMALL_PIECE
    reader.SMALL_PIECE = rng.choice([small, 1, 1, 40])  # most files are small: let polars read them all the same
    try:
        try:
            cells = cells_of(data, name, rng)
        except LogError as error:
            if error.remedy is None:
                return "without a remedy", f"{shown} {error}"
            return ("refused though usual" if must_be_read else "refused"), f"{shown} {error}"
        if table is None or cells != expected_cells(table):
            return "different", f"{shown} {cells} {table}"
        try:
            log = ActionLog.from_bytes(data, name=name)
        except UnbanditError:
            return "same cells", shown
        choices = expected_choices(table)
        found = {name: [log.arms[arm] for arm in log.demonstration(at)] for at, name in enumerate(log.demonstrations)}
        if choices is not None and choices != found:
            return "different", f"{shown} {found} {choices}"
        return "same", shown
    except Exception as error:
        return "crashed", f"{shown} {error!r}"
    finally:
        reader.SMALL_PIECE = small


def test_no_text_log_is_read_as_something_else():
    counts, examples = outcomes(trial, files(FEW))
    print(f"\ntext logs: {dict(counts)}")
    wrong = {outcome: some for outcome, some in examples.items() if outcome not in ("same", "same cells", "refused")}
    assert not wrong, "\n".join(f"{outcome}: {file}" for outcome, some in wrong.items() for file in some)
    assert counts["same"] > 0.2 * counts.total()
    assert counts["refused"] > 0.1 * counts.total()
