"""The layout of Parquet files, checked before polars reads them, and the text of panics, which nobody sees."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import polars as pl
import pytest

from unbandit import ActionLog
from unbandit.errors import LogError
from unbandit.log import formats
from unbandit.log.formats import ParquetSource
from unbandit.log.parquet import ParquetLayout, UnreadableParquet, without_panic_text


def written(frame: pl.DataFrame, **options: object) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file, **options)
    return file.getvalue()


TEXT = written(pl.DataFrame({"arm": ["A", "B"] * 20}), compression="uncompressed")
PARTS = {"arm": ["A", "B", "C"] * 100, "list": [[1, 2], [], [3]] * 100, "pair": [{"a": 1, "b": "x"}] * 300}


def changed(content: bytes, at: int, value: int) -> bytes:
    return content[:at] + bytes([value]) + content[at + 1 :]


def test_one_byte_that_made_polars_abort_is_refused_in_a_sentence():
    with pytest.raises(LogError) as caught:
        ActionLog.from_bytes(changed(TEXT, 35, 1), name="log.parquet")
    assert str(caught.value) == (
        "log.parquet: expected a whole Parquet file; it could not be read (a count is missing or negative). "
        "Write or copy it again."
    )


@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "zstd", "gzip", "lz4", "brotli"])
@pytest.mark.parametrize("size", [None, 7])
def test_whole_files_pass(compression, size):
    layout = ParquetLayout(written(pl.DataFrame(PARTS), compression=compression, row_group_size=size))
    assert layout.rows == 300
    layout.check(["arm", "list", "pair"])


@pytest.mark.parametrize("options", [{"data_page_version": "2.0"}, {"use_dictionary": False, "data_page_size": 64}])
def test_whole_files_of_pyarrow_pass(options):
    parquet = pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    parquet.write_table(
        pl.DataFrame(PARTS | {"long": ["x" * 5_000, "y" * 5_000, None] * 100}).to_arrow(), file, **options
    )
    layout = ParquetLayout(file.getvalue())  # with statistics longer than what is read of a header at first
    assert layout.rows == 300
    layout.check(["arm", "list", "pair", "long"])


def test_a_table_without_rows_or_columns_passes():
    layout = ParquetLayout(written(pl.DataFrame({"arm": []}, schema={"arm": pl.String})))
    layout.check(["arm"])
    assert layout.rows == 0


def test_no_change_of_a_count_or_a_length_goes_unseen():
    layouts = 0
    for at in range(4, len(TEXT)):
        try:
            layout = ParquetLayout(changed(TEXT, at, TEXT[at] ^ 1))
            layout.check(["arm"])
            layouts += 1
        except UnreadableParquet:
            continue
        assert layout.rows == 40
    assert layouts  # values, statistics and texts may change without a contradiction


def test_large_files_are_read_piece_by_piece_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "PARQUET_ROWS", 1000)
    arms = np.random.default_rng(3).integers(0, 7, 10_001)
    pl.DataFrame({"arm": arms, "other": arms[::-1]}).write_parquet(tmp_path / "log.parquet", row_group_size=300)
    batches = list(ParquetSource(tmp_path / "log.parquet", "log.parquet").batches(["arm"], rows=500))
    assert [batch.rows_before for batch in batches][:3] == [0, 300, 600]
    assert np.array_equal(np.concatenate([batch.columns["arm"].to_numpy() for batch in batches]), arms)


def test_a_file_that_is_replaced_while_it_is_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "PARQUET_ROWS", 1000)
    path = tmp_path / "log.parquet"
    pl.DataFrame({"arm": ["A"] * 5_000}).write_parquet(path)
    source = ParquetSource(path, "log.parquet")
    pl.DataFrame({"arm": ["A"] * 2_500}).write_parquet(path)
    with pytest.raises(LogError, match=r"log\.parquet: (the file changed|expected a whole Parquet file)"):
        list(source.batches(["arm"]))


def test_rounds_at_the_limits_of_integers_are_refused():
    for value in (-(2**63), -(2**63) + 5, 2**63 - 1):
        with pytest.raises(LogError, match=r'column "round": expected round'):
            ActionLog.from_frame(pl.DataFrame({"round": [1, 2, value, 4], "arm": ["A", "B"] * 2}))


@pytest.mark.parametrize(
    ("kind", "number"),
    [(pl.Date, -(2**31)), (pl.Date, 2**31 - 1), (pl.Datetime("ms"), 2**62), (pl.Datetime("us"), -(2**63))],
    ids=str,
)
def test_dates_that_no_calendar_has_are_refused(kind, number, capfd):
    dates = pl.Series("arm", [1, number, 1], dtype=pl.Int32 if kind == pl.Date else pl.Int64).cast(kind)
    with pytest.raises(LogError, match=r'row 2, column "arm": expected a date in the years 1 to 9999'):
        ActionLog.from_frame(dates.to_frame())
    assert capfd.readouterr().err == ""


def test_dates_are_labels():
    days = pl.DataFrame({"arm": pl.Series([0, 1, 0], dtype=pl.Int32).cast(pl.Date)})
    assert ActionLog.from_frame(days).arms == ("1970-01-01", "1970-01-02")


def test_the_text_of_a_panic_is_dropped_and_any_other_is_kept(capfd, monkeypatch):
    with without_panic_text():
        os.write(2, b"\nthread 'x' (1) panicked at file.rs:1:1:\nno\n")
    with without_panic_text():
        print("a warning", file=sys.stderr)
    with suppress(KeyError), without_panic_text():
        os.write(2, b"before an error\n")
        raise KeyError
    monkeypatch.setenv("RUST_BACKTRACE", "0")
    late = threading.Timer(0.01, os.write, (2, b"\nthread 'y' (2) panicked at file.rs:2:2:\n"))
    with suppress(KeyError), without_panic_text():
        late.start()
        raise KeyError
    late.join()
    assert capfd.readouterr().err == "a warning\nbefore an error\n"


@pytest.mark.parametrize("traced", ["1", "full"])
def test_a_backtrace_that_takes_its_time_is_dropped_too(traced, capfd, monkeypatch):
    monkeypatch.setenv("RUST_BACKTRACE", traced)
    begun = threading.Event()

    def panic():
        os.write(2, b"\nthread 'y' (2) panicked at file.rs:2:2:\nno\nstack backtrace:\n")
        begun.set()
        for _ in range(3):
            time.sleep(0.15)  # symbols are looked up
            os.write(2, b"   0: polars::read\n")
        if traced == "1":
            os.write(2, b"note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.\n")

    thread = threading.Thread(target=panic)
    with suppress(KeyError), without_panic_text():
        thread.start()
        begun.wait()
        raise KeyError
    thread.join()
    assert capfd.readouterr().err == ""


def nested(depth):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    kind, value = pyarrow.int64(), 1
    for _ in range(depth):
        kind, value = pyarrow.list_(kind), [value]
    file = io.BytesIO()
    parquet.write_table(pyarrow.table({"arm": ["A", "B"], "x": pyarrow.array([value] * 2, kind)}), file)
    return file.getvalue()


def test_lists_in_lists_are_not_called_damaged():
    assert ActionLog.from_bytes(nested(20)).arms == ("A", "B")
    with pytest.raises(LogError, match='expected lists within lists at most 50 deep; "x" goes deeper') as caught:
        ActionLog.from_bytes(nested(60))
    assert "whole Parquet file" not in str(caught.value)


def test_a_column_that_is_there_twice_is_named():
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    parquet.write_table(pyarrow.table([["A", "B"], [1, 2]], names=["arm", "arm"]), file)
    with pytest.raises(LogError, match='expected each column once; got "arm" twice'):
        ActionLog.from_bytes(file.getvalue())
