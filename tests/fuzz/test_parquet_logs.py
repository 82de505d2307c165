"""Damaged Parquet files: each is read or refused in a sentence, also by the page, and nothing is on the console.

The files are read in another process, which may die: then the file it died of is counted, and the rest are read by
the next process. `FUZZ_FILES` says how many files there are; `make fuzz` sets it.
"""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import date
from pathlib import Path

import polars as pl
import pytest

FILES = int(os.environ.get("FUZZ_FILES", "400"))
SEED = int(os.environ.get("FUZZ_SEED", "15"))
ROWS = 240


def frames() -> dict[str, pl.DataFrame]:
    """Return small logs with the types that a column can have."""
    arms = ["A", "B", "A", "a longer name", "C", "A"] * (ROWS // 6)
    numbers = list(range(ROWS))
    return {
        "text": pl.DataFrame({"arm": ["A", "B"] * 20}),
        "integers": pl.DataFrame({"arm": [n % 5 for n in numbers], "reward": [n / 7 for n in numbers]}),
        "log": pl.DataFrame({
            "demonstration": [n // 80 for n in numbers], "round": [n % 80 + 1 for n in numbers], "arm": arms,
        }),
        "nulls": pl.DataFrame({"arm": [None if n % 97 == 5 else "ABC"[n % 3] for n in numbers]}),
        "categories": pl.DataFrame({
            "arm": pl.Series(arms, dtype=pl.Categorical),
            "kind": pl.Series(["x", "y"] * (ROWS // 2), dtype=pl.Enum(["x", "y"])),
        }),
        "nested": pl.DataFrame({
            "arm": arms, "list": [[n] * (n % 3) for n in numbers], "pair": [{"a": n, "b": str(n)} for n in numbers],
        }),
        "types": pl.DataFrame({
            "arm": pl.Series([n % 3 for n in numbers], dtype=pl.UInt8), "is": [n % 2 == 0 for n in numbers],
            "day": [date(2026, 1, 1)] * ROWS, "bytes": [b"x"] * ROWS,
        }),
    }  # fmt: skip


def corpus() -> list[bytes]:
    """Write every log by polars and by pyarrow, with every compression and encoding that they have."""
    import pyarrow.parquet

    files = []
    for name, frame in frames().items():
        for compression in ("uncompressed", "snappy", "zstd", "gzip", "lz4"):
            for size in (None, 50):
                file = io.BytesIO()
                frame.write_parquet(file, compression=compression, row_group_size=size, statistics=size is None)
                files.append(file.getvalue())
        table = frame.to_arrow()
        delta = {"arm": "DELTA_BINARY_PACKED" if name in ("integers",) else "DELTA_BYTE_ARRAY"}
        kinds = [{"data_page_version": "1.0"}, {"data_page_version": "2.0"}, {"use_dictionary": False}]
        kinds += [{"use_dictionary": False, "column_encoding": delta}] if name not in ("categories", "types") else []
        for compression in ("none", "snappy", "zstd"):
            for options in kinds:
                file = io.BytesIO()
                pyarrow.parquet.write_table(table, file, compression=compression, row_group_size=100, **options)
                files.append(file.getvalue())
    return files


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Change one byte or several, cut a piece out, cut the end off, or blank a piece."""
    data, how = bytearray(content), chance.random()
    at = chance.randrange(4, len(data))
    end = min(len(data), at + chance.randrange(1, 40))
    if how < 0.5:
        data[at] = chance.choice([0, 1, 127, 128, 255, data[at] ^ 1 << chance.randrange(8), chance.randrange(256)])
    elif how < 0.8:
        for _ in range(chance.randrange(2, 8)):
            data[chance.randrange(4, len(data))] = chance.randrange(256)
    elif how < 0.9:
        del data[at:end]
    elif how < 0.95:
        del data[at:]
    else:
        data[at:end] = bytes(end - at)
    return bytes(data)


def read_files(first: int, end: int) -> None:
    """Read files and print the outcome of each; this is what the other process does."""
    from unbandit import ActionLog
    from unbandit.errors import LogError
    from unbandit.log import formats
    from unbandit.web.forms import ReadAs
    from unbandit.web.jobs import Limits
    from unbandit.web.preview import Upload, preview

    formats.PARQUET_ROWS = 64  # so that small files are read in several pieces
    whole = corpus()
    path = Path(tempfile.mkdtemp()) / "log.parquet"
    for number in range(first, end):
        chance = random.Random(SEED * 1_000_003 + number)
        content = damaged(chance.choice(whole), chance)
        print(json.dumps([number, "begun"]), flush=True)
        outcome = "read"
        try:
            if number % 3 == 0:
                ActionLog.from_bytes(content, name="log.parquet")
            elif number % 3 == 1:
                path.write_bytes(content)
                _ = ActionLog.scan(path).pulls
            elif preview(Upload("log.parquet", content), ReadAs(), Limits()).problem:  # it reads all columns
                outcome = "refused"
        except LogError as error:
            is_plain = not any(part in str(error) for part in ("\n", "panic", "Panic", "unwrap"))
            outcome = "refused" if is_plain else f"not in a plain sentence: {error}"
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}"
        print(json.dumps([number, outcome]), flush=True)


def outcomes_of(first: int, end: int, backtrace: str) -> tuple[dict[int, str], str]:
    """Have other processes read files; return the outcome of each file, and what was written to the console.

    `backtrace` is what polars is told about the text of a panic: "0" for a line, "1" for one for each function.
    """
    outcomes: dict[int, str] = {}
    console = ""
    while first < end:
        command = [sys.executable, __file__, str(first), str(end)]
        settings = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "RUST_BACKTRACE": backtrace}
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
        outcomes |= dict(map(json.loads, done.stdout.splitlines()))
        console += done.stderr
        assert outcomes, console
        last = max(outcomes)
        if done.returncode:
            outcomes[last] = f"died with {done.returncode}"
        first = last + 1
    return outcomes, console


@pytest.mark.parametrize(("half", "backtrace"), [(0, "0"), (1, "1")])
def test_damaged_parquet_is_read_or_refused_and_nothing_else(half, backtrace):
    outcomes, console = outcomes_of(half * FILES // 2, (half + 1) * FILES // 2, backtrace)
    print(f"\nParquet logs, RUST_BACKTRACE={backtrace}: {dict(Counter(outcomes.values()).most_common(5))}")
    assert len(outcomes) == FILES // 2
    assert {number: outcome for number, outcome in outcomes.items() if outcome not in ("read", "refused")} == {}
    assert console == ""
    assert list(outcomes.values()).count("refused") > FILES // 4  # most damage shows


if __name__ == "__main__":
    read_files(int(sys.argv[1]), int(sys.argv[2]))
