"""A file travels in the form itself, and nothing that comes back is trusted."""

from __future__ import annotations

import base64
import gzip
import io

import polars as pl
import pytest

from unbandit.errors import LogError
from unbandit.web.carrying import carried, cleaned, uncarried, unpacked

MOST = 10_000


@pytest.mark.parametrize(
    "data", [b"arm\nA\nB\n", b"", gzip.compress(b"arm\nA\n"), "arm\nαβ\n".encode("utf-16"), bytes(range(256)) * 4]
)
def test_what_was_carried_is_what_was_sent(data):
    assert uncarried(carried(data), MOST) == data


def test_a_text_is_carried_smaller_than_it_is():
    text = b"arm\n" + b"A\nB\n" * 100_000
    assert len(carried(text)) < len(text) / 20


def test_parquet_is_carried_as_it_is():
    held = io.BytesIO()
    pl.DataFrame({"arm": ["A", "B"]}).write_parquet(held)
    assert uncarried(carried(held.getvalue()), 0) == held.getvalue()


@pytest.mark.parametrize("text", ["", "x", "packed:", "packed:%%%", "as-is:ä", "other:QUJD", "packed:QUJD"])
def test_a_field_that_nobody_wrote_so_is_refused(text):
    with pytest.raises(LogError):
        uncarried(text, MOST)


def test_a_carried_bomb_is_not_unpacked():
    bomb = "packed:" + base64.b64encode(gzip.compress(bytes(50_000_000))).decode()
    with pytest.raises(LogError, match=r"at most 9\.77 kB once it is unpacked"):
        uncarried(bomb, MOST)


def test_a_bomb_of_several_members_is_not_unpacked():
    with pytest.raises(LogError, match="it holds more"):
        unpacked(gzip.compress(bytes(6_000)) * 2, MOST, "log.csv.gz")


@pytest.mark.parametrize("broken", [gzip.compress(b"arm\nA\n")[:-4], b"\x1f\x8bnot gzip at all"])
def test_a_broken_gzip_file_is_named(broken):
    with pytest.raises(LogError, match=r"log\.csv\.gz: expected a whole gzip file"):
        unpacked(broken, MOST, "log.csv.gz")


def test_text_is_left_as_it_is():
    assert unpacked(b"arm\nA\n", 1, "log.csv") == b"arm\nA\n"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("log.csv", "log.csv"),
        ("../../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\log.csv", "log.csv"),
        ("a\x00b\n\u202ec.csv", "abc.csv"),
        ("x" * 500, "x" * 79 + "…"),
        ("..", ".."),
        ("/", "the log"),
    ],
)
def test_a_name_is_only_shown(name, shown):
    assert cleaned(name) == shown
