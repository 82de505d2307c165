"""Files that others write to: what came since, and what is refused."""

from __future__ import annotations

import gzip

import polars as pl
import pytest

from unbandit import ActionLog, LogError, ResumeError
from unbandit.log.follower import Follower
from unbandit.log.growth import GrowingLog


class Followed:
    """A log being followed, by one follower after the other."""

    def __init__(self, path, **options):
        self.path, self.options, self.log, self.position = path, options, GrowingLog(), None

    def news(self, *, afresh=False):
        """Read what came; `afresh` as another process would, from the state that the last one left."""
        if afresh or self.position is None:
            if self.position is not None:
                self.log = GrowingLog.restored(*self.log.state())
            self.follower = Follower(self.path, self.log, position=self.position, **self.options)
        rows = sum(self.follower.news())
        self.position = self.follower.position()
        return rows

    def pulls(self):
        return dict(zip(self.log.arms, self.log.pulls.sum(axis=0).tolist(), strict=True))


def append(path, text):
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize("afresh", [False, True])
def test_a_text_file_is_read_line_by_line_as_it_grows(tmp_path, afresh):
    path = tmp_path / "log.csv"
    path.write_text("")
    followed = Followed(path)
    assert followed.news() == 0
    whole = 'subject,round,arm\n1,1,"A, large"\n2,1,B\n1,2,B\n2,2,"B\nor C"\n1,3,"A, large"\n2,3,ü\n'
    data, rows = whole.encode(), 0
    for at in range(0, len(data), 3):  # lines, quoted cells and letters cut anywhere
        append(path, data[at : at + 3])
        rows += followed.news(afresh=afresh)
    assert rows == 6
    expected = ActionLog.read(path)
    assert (followed.log.arms, followed.log.demonstrations) == (expected.arms, expected.demonstrations)
    assert followed.log.tallied("switching").rounds.tolist() == expected.tallied("switching").rounds.tolist()


def test_a_half_written_line_waits_for_its_end(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm\nA\nB\nA")
    followed = Followed(path)
    assert followed.news() == 2
    append(path, "B")
    assert followed.news() == 0
    append(path, "\nB\n")
    assert followed.news() == 2
    assert followed.pulls() == {"A": 1, "B": 2, "AB": 1}


@pytest.mark.parametrize("afresh", [False, True])
def test_files_added_to_a_folder_are_read(tmp_path, afresh):
    followed = Followed(tmp_path)
    for part in range(3):
        pl.DataFrame({"arm": ["A", "B", "A"][: part + 1]}).write_parquet(tmp_path / f"part-{9 + part}.parquet")
        assert followed.news(afresh=afresh) == part + 1
        assert followed.news(afresh=afresh) == 0
    assert followed.pulls() == {"A": 4, "B": 2}


def test_folders_name_demonstrations_and_may_come_in_any_order(tmp_path):
    followed = Followed(tmp_path)
    for name, part in ((9, 0), (3, 0), (9, 1), (3, 1)):
        folder = tmp_path / f"demonstration={name}"
        folder.mkdir(exist_ok=True)
        (folder / f"{part}.csv").write_text("arm\nA\nB\n")
        assert followed.news(afresh=True) == 2
    assert followed.log.demonstrations == ("9", "3")
    assert followed.log.lengths.tolist() == [4, 4]


def test_a_parquet_file_in_the_making_waits_and_a_broken_one_is_refused(tmp_path, monkeypatch):
    pl.DataFrame({"arm": ["A", "B"]}).write_parquet(tmp_path / "1.parquet")
    whole = (tmp_path / "1.parquet").read_bytes()
    followed = Followed(tmp_path)
    assert followed.news() == 2
    (tmp_path / "2.parquet").write_bytes(whole[:40])
    assert followed.news() == 0
    (tmp_path / "2.parquet").write_bytes(whole)
    assert followed.news() == 2
    (tmp_path / "3.parquet").write_bytes(whole[:40])
    assert followed.news() == 0
    monkeypatch.setattr("unbandit.log.follower.PATIENCE", 0.0)
    with pytest.raises(LogError, match=r"3\.parquet: expected a whole Parquet file"):
        followed.news()


def test_a_file_that_shrank_or_changed_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm\nA\nB\n")
    followed = Followed(path)
    assert followed.news() == 2
    for text, said in (
        ("arm\nA\n", "it has 6 bytes, and 8 were read"),
        ("arm\nB\nB\nA\n", "what was read before has changed"),
    ):
        path.write_text(text)
        for afresh in (False, True):
            with pytest.raises(LogError, match=said):
                followed.news(afresh=afresh)
        path.write_text("arm\nA\nB\n")
        assert followed.news(afresh=True) == 0


def test_a_parquet_file_that_changed_is_refused(tmp_path):
    pl.DataFrame({"arm": ["A", "B"]}).write_parquet(tmp_path / "1.parquet")
    followed = Followed(tmp_path)
    assert followed.news() == 2
    pl.DataFrame({"arm": ["A", "B", "B"]}).write_parquet(tmp_path / "1.parquet")
    with pytest.raises(LogError, match=r"1\.parquet: expected files that do not change"):
        followed.news()


FAULTS = {
    "bad row": ("arm,x\nA,1\nB\n", ["row 2 (line 3)", "expected 2 cells"]),
    "round": ("arm,round\nA,1\nB,3\n", ["row 2 (line 3)", "expected round 2 after round 1; got 3"]),
    "counts": ("arm,pulls\nA,1\nB,3\n", ["table of counts"]),
    "no arm": ("x,y\n1,1\n", ["columns={'arm': 'NAME'}"]),
}


@pytest.mark.parametrize(("text", "said"), FAULTS.values(), ids=FAULTS)
def test_faults_name_the_place(tmp_path, text, said):
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(LogError) as refused:
        Followed(path).news()
    assert all(part in str(refused.value) for part in (*said, "log.csv")), str(refused.value)


def test_rounds_and_lines_are_counted_on_from_a_snapshot(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm,round\nA,0\nB,1\n")
    followed = Followed(path)
    assert followed.news() == 2
    append(path, "A,2\nA,2\n")
    with pytest.raises(LogError, match=r"log\.csv row 4 \(line 5\), column \"round\": expected round 3 after round 2"):
        followed.news(afresh=True)


def test_what_cannot_grow_is_refused(tmp_path):
    pl.DataFrame({"arm": ["A", "B"]}).write_parquet(tmp_path / "log.parquet")
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(b"arm\nA\nB\n"))
    with pytest.raises(LogError, match="Follow its folder"):
        Followed(tmp_path / "log.parquet").news()
    with pytest.raises(LogError, match="Follow the unpacked one"):
        Followed(tmp_path / "log.csv.gz").news()
    with pytest.raises(LogError, match="file not found"):
        Followed(tmp_path / "nothing.csv").news()


def test_files_that_come_late_or_lack_a_column_are_refused(tmp_path):
    (tmp_path / "part-10.csv").write_text("arm,round\nA,1\nB,2\n")
    followed = Followed(tmp_path)
    followed.news()
    (tmp_path / "part-11.csv").write_text("arm,when\nA,3\n")
    with pytest.raises(LogError, match=r'part-11\.csv, column "round": expected a column "round"'):
        followed.news()
    (tmp_path / "part-11.csv").unlink()
    followed = Followed(tmp_path)
    followed.news()
    (tmp_path / "part-9.csv").write_text("arm,round\nA,3\n")
    with pytest.raises(LogError, match=r"part-9\.csv: expected new files to come after.*part-10\.csv"):
        followed.news()


def test_a_position_in_another_log_is_refused(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("arm\nA\nB\n")
    followed = Followed(tmp_path / "a.csv")
    followed.news()
    followed.path = tmp_path / "b.csv"
    with pytest.raises(ResumeError, match="got others"):
        followed.news(afresh=True)


HALVES = {"no end": "arm\nA\nB", "no row": "ar", "nothing": "", "names in the making": "arm,round"}


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
@pytest.mark.parametrize("afresh", [False, True])
def test_files_after_one_that_is_not_whole_wait(tmp_path, monkeypatch, half, afresh):
    (tmp_path / "1.csv").write_text("arm\nA\n")
    followed = Followed(tmp_path)
    assert followed.news() == 1
    (tmp_path / "2.csv").write_text(half)
    (tmp_path / "3.csv").write_text("arm\nC\nC\n")
    (tmp_path / "4.csv").write_text("arm\nC\n")
    assert followed.news(afresh=afresh) == half.count("A")
    assert any("2.csv is not complete yet" in notice.message for notice in followed.follower.notices)
    (tmp_path / "2.csv").write_text("arm\nA\nB\n")
    followed.news(afresh=afresh)
    assert followed.pulls() == {"A": 2, "B": 1, "C": 3}
    assert not any("not complete" in notice.message for notice in followed.follower.notices)
    (tmp_path / "5.csv").write_text(half)
    assert followed.news(afresh=afresh) == half.count("A")
    (tmp_path / "6.csv").write_text("arm\nC\n")
    assert followed.news() == 0
    monkeypatch.setattr("unbandit.log.follower.PATIENCE", 0.0)
    with pytest.raises(LogError, match=r"5\.csv: expected a complete file, since there are files after it"):
        followed.news()


def test_a_parquet_file_waits_for_one_before_it_and_other_folders_do_not(tmp_path):
    pl.DataFrame({"arm": ["A", "B"]}).write_parquet(tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    for folder in ("demonstration=1", "demonstration=2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1.parquet").write_bytes(whole[:40] if folder.endswith("1") else whole)
        (tmp_path / folder / "2.parquet").write_bytes(whole)
    followed = Followed(tmp_path)
    assert followed.news() == 4
    assert followed.log.demonstrations == ("2",)
    (tmp_path / "demonstration=1" / "1.parquet").write_bytes(whole)
    assert followed.news(afresh=True) == 4


@pytest.mark.parametrize("more", ["B\n", "B"])
@pytest.mark.parametrize("first", ["arm\nA\n", "arm\n"])
@pytest.mark.parametrize("afresh", [False, True])
def test_a_file_that_grows_after_a_later_one_was_read_is_refused(tmp_path, more, first, afresh):
    (tmp_path / "1.csv").write_text(first)
    (tmp_path / "2.csv").write_text("arm\nC\n\n")
    followed = Followed(tmp_path)
    assert followed.news() == first.count("A") + 1
    append(tmp_path / "1.csv", "\n")  # a blank line at the end is none
    (tmp_path / "2.csv").write_text("arm\nC\nC\n")
    assert followed.news(afresh=afresh) == 1
    (tmp_path / "1.csv").write_text(first + more)
    for _ in range(2):
        with pytest.raises(LogError, match=r"1\.csv: expected no more rows, since 2\.csv comes after it"):
            followed.news(afresh=afresh)
    assert followed.log.lengths.tolist() == [first.count("A") + 2]


def test_a_parquet_file_that_vanishes_half_written_is_refused(tmp_path):
    pl.DataFrame({"arm": ["A", "B"]}).write_parquet(tmp_path / "2.parquet")
    (tmp_path / "3.parquet").write_bytes((tmp_path / "2.parquet").read_bytes()[:40])
    followed = Followed(tmp_path)
    assert followed.news() == 2
    (tmp_path / "3.parquet").unlink()
    with pytest.raises(LogError, match=r"3\.parquet: file not found"):
        followed.news()


@pytest.mark.parametrize("afresh", [False, True])
def test_a_file_whose_column_holds_something_else_is_refused(tmp_path, afresh):
    pl.DataFrame({"arm": [1, 2], "x": [1, 2]}).write_parquet(tmp_path / "1.parquet")
    followed = Followed(tmp_path)
    assert followed.news() == 2
    pl.DataFrame({"arm": pl.Series([1, 2], dtype=pl.UInt8), "x": ["a", "b"]}).write_parquet(tmp_path / "2.parquet")
    assert followed.news(afresh=afresh) == 2
    pl.DataFrame({"arm": ["1", "2"]}).write_parquet(tmp_path / "3.parquet")
    with pytest.raises(LogError, match=r'3\.parquet, column "arm": expected integers, as in files before; got text'):
        followed.news(afresh=afresh)
    assert followed.log.lengths.tolist() == [4]


ENDLESS = {
    "in a row": (b'arm,x\nA,1\nB,"2\n', b"A,1\n", "row 2 \\(line 3\\).*cells of at most 131,072 characters"),
    "in the first row": (b'arm,x\n"A,1\n', b"A,1\n", "row 1 \\(line 2\\).*cells of at most 131,072 characters"),
    "in the names": (b'"arm,x\n', b"A,1\n", "expected a header of column names"),
    "no line break": (b"arm,x\nA,1\nB,", b"2", "row 2 \\(line 3\\).*rows of less than 1,048,576 bytes"),
}


@pytest.mark.parametrize(("text", "more", "said"), ENDLESS.values(), ids=ENDLESS)
def test_a_row_that_never_ends_is_refused(tmp_path, text, more, said):
    path = tmp_path / "log.csv"
    path.write_bytes(text)
    followed = Followed(path)
    followed.news()
    append(path, more * 100)
    assert followed.news() == 0
    append(path, more * (1 << 20))
    for afresh in (False, True):
        with pytest.raises(LogError, match=f"log.csv.*{said}"):
            followed.news(afresh=afresh)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\r"])
def test_line_ends_of_the_old_macintosh_are_refused_and_half_of_the_usual_ones_waits(tmp_path, mark):
    path = tmp_path / "log.csv"
    path.write_bytes(mark + b"arm")
    followed = Followed(path)
    assert followed.news() == 0
    append(path, b"\r")
    assert followed.news() == 0
    append(path, b"A\r")
    with pytest.raises(LogError, match=r"log\.csv: expected lines that end in a line feed"):
        followed.news()
    path.write_bytes(mark + b'arm,"a\rb"')  # a break within quotes is none
    assert followed.news() == 0
    path.write_bytes(mark + b"arm\r\nA\r\n")
    assert followed.news() == 1


TIMES = [f"2026-05-01T10:{59 - minute:02}:00Z" for minute in range(20)]  # newest first


@pytest.mark.parametrize("afresh", [False, True])
def test_rounds_that_times_run_against_are_refused_once_the_first_rows_show_it(tmp_path, afresh):
    path = tmp_path / "log.csv"
    path.write_text("index,timestamp,arm\n")
    followed = Followed(path)
    for at in range(3):
        append(path, f"{at + 1},{TIMES[at]},{'AB'[at % 2]}\n")
    assert followed.news(afresh=afresh) == 3  # too few to say which way times run
    for at in range(3, 8):
        append(path, f"{at + 1},{TIMES[at]},{'AB'[at % 2]}\n")
    with pytest.raises(LogError, match='by "timestamp", "index" numbers the latest first'):
        followed.news(afresh=afresh)
    named = Followed(path, columns={"round": "index"})
    assert named.news() == 8
    assert "times-against" in [each.code for each in named.follower.notices]


def test_files_of_a_folder_are_compared_with_their_times_too(tmp_path):
    rows = range(1, 21)
    table = pl.DataFrame({"index": rows, "timestamp": TIMES, "arm": list("ABBAABABBBABABBAAABB")})
    table.write_parquet(tmp_path / "part-1.parquet")
    with pytest.raises(LogError, match='by "timestamp", "index" numbers the latest first'):
        Followed(tmp_path).news()
    table.with_columns(timestamp=pl.Series(TIMES[::-1])).write_parquet(tmp_path / "part-1.parquet")
    followed = Followed(tmp_path)
    assert followed.news() == 20
    (said,) = (each.text for each in followed.follower.notices if '"timestamp"' in each.text)
    assert said == '"timestamp" is not read: its times run in the order of the rounds in "index".'
    assert sum(followed.follower.news()) == 0
