"""Numbers, names and lists as text."""

from __future__ import annotations

import pytest

from unbandit import formatting as text

CASES = [
    (text.number, (0.123456,), "0.1235"),
    (text.number, (-0.5,), "−0.5"),
    (text.number, (-0.0,), "0"),
    (text.number, (1234.5,), "1,234"),
    (text.number, (0.00001,), "1e−05"),
    (text.number, (None,), "-"),
    (text.as_precise_as, (0.012, -0.65432), "−0.654"),
    (text.as_precise_as, (0.0, 0.25), "0.25"),
    (text.with_error, (0.5123, 0.0123), "0.512 ± 0.012"),
    (text.with_error, (0.5, None), "0.5"),
    (text.share, (0.95,), "95%"),
    (text.share, (0.999,), "99.9%"),
    (text.share, (0.12345, 3), "12.3%"),
    (text.probability, (0.98714,), "0.987"),
    (text.probability, (1e-9,), "below 0.001"),
    (text.probability, (1.0,), "above 0.999"),
    (text.interval, (0.25, 0.5), "0.25 to 0.5"),
    (text.interval, (0.25, None), "at least 0.25"),
    (text.interval, (None, 0.5), "at most 0.5"),
    (text.interval, (None, None), ""),
    (text.counted, (1, "round"), "1 round"),
    (text.counted, (5_000, "round"), "5,000 rounds"),
    (text.counted, (2, "arm that", "arms that"), "2 arms that"),
    (text.size, (100,), "100 bytes"),
    (text.size, (64 * 1024**2,), "64 MB"),
    (text.duration, (3.21,), "3.2 s"),
    (text.duration, (75,), "1 min 15 s"),
    (text.duration, (7300,), "2 h 1 min"),
    (text.shown, ("B, large",), "B, large"),
    (text.shown, ("tab\there",), "tab here"),
    (
        text.shown,
        ("no\u00a0break, soft\u00adhyphen, \u202eturned, \x1b[31m",),
        "no break, softhyphen, turned, \ufffd[31m",
    ),
    (text.label, ("a" * 30,), "a" * 23 + "…"),
    (text.label, ("two\nlines\x00",), "two lines�"),
    (text.quoted, ("A",), '"A"'),
    (text.listed, (["A", "B", "C"],), '"A", "B" and "C"'),
    (text.listed, ([str(at) for at in range(9)], 2), '"0", "1" and 7 more'),
    (text.joined, (["A", "B", "C"], "or"), "A, B or C"),
    (text.joined, (["A"],), "A"),
    (text.markdown_table, (["arm", "gap"], [["A|B", "0.5"]]), ["| arm | gap |", "| --- | --- |", "| A\\|B | 0.5 |"]),
]


@pytest.mark.parametrize(("write", "given", "written"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_each_is_written_as_people_write_it(write, given, written):
    assert write(*given) == written


def test_a_long_name_is_cut_in_the_middle():
    assert len(text.shown("x" * 100_000)) == text.LONGEST_NAME
