"""Tables to take home are whole, and no spreadsheet runs what is in them."""

from __future__ import annotations

import io

import polars as pl
import pytest

from unbandit.web.exports import harmless, tables


@pytest.mark.parametrize(
    "name", ["=1+1", "+cmd", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x")', "＝1+1", "-1x"]
)
def test_what_would_run_is_quoted(name):
    assert harmless(pl.DataFrame({"arm": [name]})).item() == "'" + name


@pytest.mark.parametrize("name", ["A", "-1", "+2.5", "-1e-3", "a=b", "<script>", "", " ", "'=1", "ראשון"])
def test_what_would_not_stays(name):
    assert harmless(pl.DataFrame({"arm": [name]})).item() == name


def test_names_of_columns_are_quoted_too():
    assert harmless(pl.DataFrame({"=x": [1], "arm": ["A"]})).columns == ["'=x", "arm"]


def test_the_csv_is_quoted_and_the_parquet_is_the_table_itself():
    frame = pl.DataFrame({"arm": ["=1", None], "gap": [-0.5, None]})
    csv, parquet = tables(frame, "estimate", "Table")
    assert pl.read_csv(csv.data).rows() == [("'=1", -0.5), (None, None)]
    assert pl.read_parquet(io.BytesIO(parquet.data)).equals(frame)
