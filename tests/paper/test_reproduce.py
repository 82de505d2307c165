"""Make figures: the same for the same seed, on any number of threads, and from where it stopped."""

from __future__ import annotations

import shutil

import polars as pl
import pytest

from unbandit.devices import ROUNDS_WORTH_A_GPU
from unbandit.errors import OutputError, ParameterError, ResumeError
from unbandit.files import locked
from unbandit.paper.figure import Results, Selection, Size, chosen_figures
from unbandit.paper.reproduce import reproduce

SKETCHES = ["sketch-exploration", "sketch-switching", "sketch-tradeoff"]


def bytes_of(folder):
    """Return every file but the page, which says how long it took."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "index.html")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    return reproduce(SKETCHES, tmp_path_factory.mktemp("once") / "deep" / "er", runs=6, threads=1)


def test_the_same_bytes_on_one_thread_and_on_two(once, tmp_path):
    reproduce(SKETCHES, tmp_path, runs=6, threads=2)
    assert bytes_of(tmp_path) == bytes_of(once.folder)


def test_another_seed_gives_other_figures(once, tmp_path):
    reproduce(["sketch-tradeoff"], tmp_path, runs=6, seed=2)
    name = "sketch-tradeoff.png"
    assert (tmp_path / name).read_bytes() != (once.folder / name).read_bytes()


def test_parts_that_are_there_are_not_made_again(once, tmp_path):
    home = tmp_path / "again"
    shutil.copytree(once.folder, home)
    (part := next(iter(home.rglob("00003.parquet")))).unlink()
    others = {path: path.stat().st_mtime_ns for path in home.rglob("0*.parquet")}
    told = []
    again = reproduce(SKETCHES, home, runs=6, told=told.append)
    assert (again.parts_before, again.parts) == (once.parts - 1, once.parts)
    assert part.exists()
    assert {path: path.stat().st_mtime_ns for path in others} == others
    assert bytes_of(home) == bytes_of(once.folder)
    assert [made.figure.name for made in told] == SKETCHES
    assert f"{once.parts - 1} of which were there already" in again.page.read_text(encoding="utf-8")


def test_only_what_was_asked_for_is_made(once, tmp_path):
    done = reproduce(["sketch-exploration"], tmp_path, runs=6)
    assert [made.figure.name for made in done.made] == ["sketch-exploration"]
    kinds = {"sketch-exploration.png", "sketch-exploration.svg", "sketch-exploration.parquet"}
    others = {"claims.md", "claims.parquet", "index.html", "reproduction.json"}
    assert {path.name for path in tmp_path.iterdir()} == kinds | others
    text = done.page.read_text(encoding="utf-8")
    assert "sketch-tradeoff" not in text
    assert (done.parts, done.rounds) == (0, 0)


def test_claims_are_kept_as_a_table(once):
    table = pl.read_parquet(once.folder / "claims.parquet")
    assert table.height == sum(len(made.claims) for made in once.made)
    assert table.columns == [
        "picture",
        "says",
        "statistic",
        "value",
        "error",
        "low",
        "high",
        "verdict",
        "because",
        "ours",
    ]
    assert table.schema["value"] == pl.Float64


def test_claims_are_kept_as_text(once):
    text = once.listing.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    claims = [claim for made in once.made for claim in made.claims]
    for claim in claims:
        (row,) = [row for row in rows if row.startswith(f"| {claim.says} | {claim.statistic} |")]
        assert claim.verdict in row
    selected = sum(len(made.selection) for made in once.made)
    tables = sum(bool(made.claims) for made in once.made) + bool(selected)
    assert len(rows) == len(claims) + selected + 2 * tables
    assert once.asked in text


def test_the_bar_hears_of_every_round(tmp_path):
    class Bar:
        total = done = ended = 0

        def begin(self, rounds, done):
            self.total, self.done = rounds, done

        def advance(self, rounds):
            self.done += rounds

        def end(self):
            self.ended += 1

    for _ in range(2):  # the second time everything is there
        bar = Bar()
        made = reproduce(["sketch-tradeoff"], tmp_path, runs=3, progress=bar)
        assert bar.total == bar.done == made.rounds == 3 * 8 * 5_000
        assert bar.ended == 1


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"names": ["nobody"]}, ParameterError, 'expected one of .*sketch-tradeoff.*; got "nobody"'),
        ({"runs": 1}, ParameterError, "runs: expected a whole number from 2"),
        ({"runs": 0}, ParameterError, "runs"),
        ({"runs": "papers"}, ParameterError, 'whole number from 2, or paper; got "papers".*Did you mean "paper"'),
        ({"seed": -1}, ParameterError, "seed"),
        ({"threads": 0}, ParameterError, "threads"),
    ],
)
def test_refused_before_anything_is_written(tmp_path, asked, error, message):
    with pytest.raises(error, match=message):
        reproduce(**({"names": SKETCHES, "folder": tmp_path / "new"} | asked))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_other_numbers_is_refused_whole(once, tmp_path):
    home = tmp_path / "other"
    shutil.copytree(once.folder, home)
    before = bytes_of(home)
    with pytest.raises(ResumeError, match=r"runs: the folder has 6, asked for 7"):
        reproduce(SKETCHES, home, runs=7)
    with pytest.raises(ResumeError, match="seed"):
        reproduce(SKETCHES, home, runs=6, seed=9)
    assert bytes_of(home) == before


def test_another_folder_is_proposed(once):
    home = once.folder
    for asked, other in (
        ({"runs": 7}, "7"),
        ({"runs": 6, "full": True}, "full-6"),
        ({"runs": 6, "seed": 2}, "6-seed-2"),
    ):
        with pytest.raises(ResumeError, match=f"such as {home}-{other}, or delete this one"):
            reproduce(SKETCHES, home, **asked)


def test_a_refused_command_leaves_nothing_behind(once, tmp_path):
    """Not even in a folder that a kill has left empty: the right command must not find another study there."""
    home = tmp_path / "other"
    shutil.copytree(once.folder, home)
    (home / "reproduction.json").write_text(
        (home / "reproduction.json").read_text(encoding="utf-8").replace('"runs": 6', '"runs": 7'), encoding="utf-8"
    )
    (empty := home / "parts" / "gap-decay" / "betas").mkdir(parents=True)
    with pytest.raises(ResumeError, match="runs: the folder has 6, asked for 7"):
        reproduce(["gap-decay", "sketch-tradeoff"], home, runs=7)
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize("text", [None, "{", "[]", '{"schema": "other"}'])
def test_a_stranger_s_folder_is_left_alone(tmp_path, text):
    (tmp_path / "index.html").write_text("mine")
    if text is not None:
        (tmp_path / "reproduction.json").write_text(text)
    with pytest.raises(ResumeError, match="Choose another folder"):
        reproduce(["sketch-exploration"], tmp_path, runs=2)
    assert (tmp_path / "index.html").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1 + (text is not None)


def test_the_folder_one_stands_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # the second time it goes on
        reproduce(["sketch-tradeoff"], ".", runs=2)
    with pytest.raises(ResumeError, match=f"such as {tmp_path}-3, or delete"):
        reproduce(["sketch-tradeoff"], ".", runs=3)


def test_two_commands_do_not_share_a_folder(once):
    with locked(once.folder), pytest.raises(ResumeError, match="another run is working in this folder"):
        reproduce(SKETCHES, once.folder, runs=6)


def test_a_kill_at_the_very_beginning_locks_nobody_out(tmp_path):
    (tmp_path / ".reproduction.json.x7.part").write_text("half")
    reproduce(["sketch-exploration"], tmp_path, runs=2)
    assert not (tmp_path / ".reproduction.json.x7.part").exists()


def test_leftovers_of_a_kill_are_cleared(once, tmp_path):
    home = tmp_path / "killed"
    shutil.copytree(once.folder, home)
    (home / ".index.html.x7.part").write_text("half")
    reproduce(["sketch-tradeoff"], home, runs=6)
    assert not (home / ".index.html.x7.part").exists()


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputError, match="expected a folder; got a file"):
            reproduce(["sketch-exploration"], place, runs=2)
    assert (tmp_path / "file").read_text() == "x"


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(OutputError, match="could not be written"):
        reproduce(["sketch-exploration"], tmp_path / "new", runs=2)
    assert list(tmp_path.iterdir()) == []


def test_sizes():
    assert Size().runs_of(250) == 250
    assert Size().runs_of(250, 1_000) == 1_000
    assert Size(runs="paper").runs_of(250, 1_000) == Size(runs="paper", full=True).runs_of(250, 1_000) == 250
    assert Size(full=True).runs_of(250) == 2_500
    assert Size(full=True).runs_of(250, synthetic=True) == 100_000
    assert Size(runs=3, full=True).runs_of(250, synthetic=True) == 3


def test_the_default_is_a_fixed_size_that_no_gpu_takes_over():
    """The same command gives the same bytes everywhere: the numbers of runs are constants, and the CPU simulates."""
    rounds, paper = (
        {figure.name: sum(study.rounds for study in figure.studies(size).values()) for figure in chosen_figures()}
        for size in (Size(), Size(runs="paper"))
    )
    assert all(rounds[name] >= paper[name] for name in paper)
    assert 3 * sum(paper.values()) < sum(rounds.values()) < ROUNDS_WORTH_A_GPU


def test_long_work_says_how_long_it_takes(tmp_path, monkeypatch):
    said = []
    reproduce(["sketch-tradeoff"], tmp_path / "short", runs=3, say=said.append)
    assert said == []
    monkeypatch.setattr("unbandit.paper.reproduce.SECONDS_PER_FIGURE", 70.0)
    reproduce(["sketch-tradeoff"], tmp_path / "long", runs=3, threads=2, say=said.append)
    assert said == ["120,000 rounds to simulate, 1 picture to draw: about 1 min 10 s on 2 threads."]


def test_results_are_summed_up_once():
    class Result:
        asked = 0

        def curves(self):
            self.asked += 1
            return ["folds"]

    result = Result()
    results = Results(Size(), {"a": result})
    assert results["a"] is results["a"]
    assert result.asked == 1
    assert Selection("w", 1, 0, 1, 0.5, 0.5).dropped == 0
