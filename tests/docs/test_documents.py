"""Every code block of the README, the contributors' guide and the site is run, page by page, as it stands."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import shell
from documents_shown import DRAWN, EXACT, ROOT, Block, alike, blocks, run_page

import unbandit as ub
from unbandit.demonstrators.index import IndexRule
from unbandit.reporting.page import GLOSSARY, VERDICTS

unbandit = shell.unbandit

DOCS = ROOT / "docs"
PAGES = {
    page.relative_to(ROOT).as_posix(): page
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))
    if "_build" not in page.parts
}

RUN = {"python", "sh"}
SHOWN = {"text", "toml", "csv", "r"}  # tests/docs/test_r.py runs R

NOT_RUN = {
    "make ": "sets up an environment, or takes minutes; `make test` itself runs this test",
    "git clone ": "needs a network",
    "pip install ": "changes the environment",
    "source ": "changes the shell",
    "unbandit serve": "runs until it is stopped; tests/web starts it",
    "unbandit reproduce": "takes a minute, with --full hours; tests/paper and tests/cli make pictures",
    "unbandit study study.toml": "needs a GPU or a cluster; tests/gpu and tests/cluster have both",
    "unbandit estimate log.csv --rule ucb:alpha=0.25 --sigma 1 --follow": "goes on until it is stopped; tests/cli does",
    "ray start": "starts a cluster; tests/cluster does",
    "dask ": "starts a cluster; tests/cluster does",
    "unbandit calibrate": "takes minutes to hours; tests/cli runs a small one",
}
"""What `console` blocks may hold, and why it is not run here."""

PLAIN = {"docs/architecture.md": "a drawing"}
"""Pages with blocks in no language, and what they are."""

FROM_DRAWS = {"what-can-my-log-tell-me", "thompson", "epsilon-greedy", "softmax", "learning-softmax", "exp3"} | {
    "explore-then-commit",
    "top-two-thompson",
}
"""Pages whose numbers come from random draws, so that they may change a little."""


def of(kinds: set[str]) -> list[str]:
    """Return the pages with blocks of these kinds."""
    return [name for name, page in PAGES.items() if any(block.kind in kinds for block in blocks(page))]


def a_log_of_the_readers_own() -> None:
    """Stand in for the log and the study that the README's reader has."""
    log = ub.UCB(alpha=0.25).demonstrate(ub.datasets.linear(), horizon=500, seed=1)
    log.write("log.csv")
    Path("study.toml").write_text('rules = ["sae"]\nhorizons = [200]\nruns = 2\n\n[[instances]]\ndataset = "linear"\n')


def a_log_that_begins_in_mid_run() -> None:
    """Stand in for a log whose first rounds are lost, and the pulls before it."""
    log = ub.UCB(alpha=0.25).demonstrate(ub.datasets.linear(), horizon=500, seed=1)
    rows = log.to_frame().select("arm")
    rows[100:].write_csv("log.csv")
    rows[:100].group_by("arm").len("pulls").write_csv("counts.csv")


def choices_of_three_people() -> None:
    """Stand in for an experiment with three participants and all rewards, 0 or 1."""
    rule, rows = ub.LearningSoftmax(rate=0.3, temperature=0.4), []
    for person in range(3):
        actions = rule.demonstrate(ub.Instance([0.8, 0.2], ub.Bernoulli()), horizon=30, seed=person).actions
        rewards = (np.random.default_rng(person).random(actions.size) < np.where(actions == 0, 0.8, 0.2)).astype(int)
        about = {"subjID": person, "trial": np.arange(30), "choice": actions + 1, "reward": rewards}
        rows.append(pl.DataFrame(about).with_columns(pl.col("subjID").cast(pl.Int64)))
    pl.concat(rows).write_csv("choices.txt", separator="\t")


BEFORE = {
    "README.md": a_log_of_the_readers_own,
    "docs/people.md": choices_of_three_people,
    "docs/your-log.md": a_log_that_begins_in_mid_run,
}

GIVEN = {
    "CONTRIBUTING.md": {
        "unbandit": ub, "instance": ub.Instance([1.0, 0.5, 0.2]), "math": math, "IndexRule": IndexRule,
    }
}  # fmt: skip
"""Names that a page takes as known."""


def check_readme(names: dict) -> None:
    assert names["result"].best == ("6.0-4.4-4.4",)
    assert Path("arms.png").stat().st_size > 10_000
    text = PAGES["README.md"].read_text(encoding="utf-8")
    stated = re.search(r"true gaps to the best arm, in `truth\.csv`, are ([\d., and]+)\.", text)
    gaps = pl.read_csv("truth.csv")["gap"].to_list()[1:]
    assert re.findall(r"[\d.]+", stated[1]) == [f"{gap:.3g}" for gap in gaps]


def check_contributing(names: dict) -> None:
    rule = names["Logarithmic"]()
    log = rule.demonstrate(names["instance"], horizon=200)
    with pytest.raises(ub.NotIdentifiable, match="logarithmic"):
        ub.estimate(log, rule, sigma=1.0)


def check_guide(names: dict) -> None:
    kinds = [block.kind for block in blocks(DOCS / "what-can-my-log-tell-me.md")]
    assert kinds.count("text") == kinds.count("sh") > 12
    assert names["found"].winner == "thompson"


def check_planning(names: dict) -> None:
    assert Path("plan.png").stat().st_size > 10_000
    assert Path("leak.png").stat().st_size > 10_000
    assert names["given"].total > 100 > names["hidden"].total == 0


def check_real_systems(names: dict) -> None:
    assert np.median(np.abs(names["errors"])) < 0.08
    assert names["correlation"] > 0.8
    means = pl.read_csv("means.csv").sort("arm")["mean"].to_numpy()
    assert np.median(np.abs(means - pl.read_csv("worth.csv").sort("caption")["mean"].to_numpy())) < 0.08


def check_studies(names: dict) -> None:
    assert set(names["errors"]["instance"]) == {"two-armed", "twenty protocols", "close", "shrinking-gap beta=0.05"}
    assert names["table"].height == 2 * 3 * 2 * (2 + 3)
    assert -1.5 < names["falls"].value < 0
    assert names["again"].summary().equals(names["table"])


def check_tutorial(names: dict) -> None:
    for name in ("pulls.png", "arms.png", "report.html", "report-from-python.html"):
        assert Path(name).stat().st_size > 10_000


def check_people(names: dict) -> None:
    assert Path("forest.png").stat().st_size > 10_000


AFTER = {
    "README.md": check_readme,
    "CONTRIBUTING.md": check_contributing,
    "docs/what-can-my-log-tell-me.md": check_guide,
    "docs/people.md": check_people,
    "docs/planning.md": check_planning,
    "docs/real-systems.md": check_real_systems,
    "docs/studies.md": check_studies,
    "docs/tutorial.md": check_tutorial,
}
"""What must be there once a page has been run."""


@pytest.mark.parametrize("name", of(RUN))
def test_a_page_runs_and_prints_what_it_shows(name, unbandit, capfd):
    page = PAGES[name]
    BEFORE.get(name, lambda: None)()
    names = run_page(page, unbandit, capfd, DRAWN if page.stem in FROM_DRAWS else EXACT, GIVEN.get(name))
    AFTER.get(name, lambda names: None)(names)


@pytest.mark.parametrize("name", PAGES)
def test_every_block_is_run_or_has_a_reason_not_to_be(name):
    kinds = {block.kind: block for block in blocks(PAGES[name]) if not block.kind.startswith("{")}
    allowed = RUN | SHOWN | {"console"} | ({""} if name in PLAIN else set())
    assert set(kinds) <= allowed, f"{name}: expected blocks to be {', '.join(sorted(allowed))}"
    for block in blocks(PAGES[name]):
        if block.kind == "console":
            for line in block.text.splitlines():
                assert line.startswith(tuple(NOT_RUN)), f"{name}, line {block.line}: {line} could be run: say sh"


def test_what_is_not_run_is_little():
    left_out = [line for page in PAGES.values() for block in blocks(page) if block.kind == "console"
                for line in block.text.splitlines()]  # fmt: skip
    assert len(left_out) <= 30


@pytest.mark.parametrize("name", PAGES)
def test_what_is_linked_is_there(name):
    text = re.sub(r"```.*?```|`[^`]*`", "", PAGES[name].read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert PAGES[name].parent.joinpath(target).exists(), target


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (" B  estimated  177  0.2322", "B estimated  177   0.24", True),
        (" B  estimated  177  0.2322", "B estimated  177   0.94", False),
        (" B  estimated  177  0.2322", "C estimated  177   0.2322", False),
        (" B  estimated  177  0.2322", "B estimated  177   0.28", False),
        (" C  −0.471  −1.501 to 0.548", "C  -0.475  −1.52 to 0.55", True),
        ("log-evidence -812.4 ± 0.3", "log-evidence -812.1 ± 0.4", True),
        ("as surprising: p = 0.12", "as surprising: p = 0.98", False),
        ("note: The horizon 1,000 is below ...", "note: The horizon 1,000 is below all.", True),
        ("among ucb, sae.", "among sae, ucb.", True),
        ("  1: estimated, gap 0.336 [0.226, 0.4501]", "  1: estimated, gap 0.336 [0.226, 0.4502]", True),
    ],
)
def test_lines_are_compared_as_they_should_be(shown, printed, same):
    assert alike(shown, printed) == same


def test_numbers_that_need_no_draws_are_compared_closely():
    assert alike("gap 0.2322", "gap 0.2323", EXACT.near, EXACT.share)
    assert not alike("gap 0.2322", "gap 0.24", EXACT.near, EXACT.share)


def test_a_table_without_draws_is_compared_closely_on_every_page(tmp_path, unbandit, capfd):
    for method, fails in (("bracket", True), ("posterior", False)):
        page, head = tmp_path / f"{method}.md", f"ucb, method {method}, 95% intervals"
        page.write_text(f"```python\nprint('{head}')\nprint('gap 0.50')\n```\n\n```text\n{head}\ngap 0.52\n```\n")
        if fails:
            with pytest.raises(AssertionError, match="is not in"):
                run_page(page, unbandit, capfd, DRAWN)
        else:
            run_page(page, unbandit, capfd, DRAWN)


def test_a_page_that_shows_what_it_does_not_print_fails(tmp_path, unbandit, capfd):
    page = ROOT / "docs" / "index.md"
    assert blocks(page)[0].kind.startswith("{toctree}")
    wrong = tmp_path / "wrong.md"
    wrong.write_text("```python\nprint('gap 0.5')\n```\n\n```text\ngap 0.7\n```\n", encoding="utf-8")
    assert blocks(wrong) == [Block("python", "print('gap 0.5')\n", "", 1), Block("text", "gap 0.7\n", "", 5)]
    with pytest.raises(AssertionError, match="is not in"):
        run_page(wrong, unbandit, capfd)


def test_the_glossary_has_every_word_that_reports_explain_in_order():
    rows = [line.split(" | ")[0].removeprefix("| ") for line in (DOCS / "glossary.md").read_text("utf-8").splitlines()]
    listed = [row for row in rows[rows.index("term") + 2 :] if row]
    assert listed == sorted(listed)
    terms = {term for row in listed for term in row.split(", ")}
    assert {*GLOSSARY, *VERDICTS, "check", "cloud", "evidence", "population", "shrinkage"} <= terms
