"""The calibration as a page: every criterion with its scores, what explains those missed, and the runs behind them."""

from collections.abc import Iterable, Iterator, Sequence

from unbandit._version import __version__
from unbandit.calibration.criteria import MARKS, MISSED, Calibration, Criterion, percent, place, times
from unbandit.calibration.metrics import ClosedFormMetrics
from unbandit.calibration.settings import CLOUDS, short
from unbandit.formatting import markdown_table

_LEVEL = (
    "what all means have in common is hardly in the record, and a cloud of this size loses its spread over thousands "
    "of rounds; gaps suffer less. With several clouds the tool warns (`clouds-differ`). It takes more particles, or an "
    "exact move for the level, which this rule does not have."
)
_FEW = (
    "the cloud is too small for this many arms, about whose sums the log says so little; with several clouds the tool "
    "warns where they differ."
)
_GIVEN_UP = (
    "the rule gives arms up after one to three pulls, and from then on the record holds less than the rewards did. The "
    "intervals hold, so what is there is read."
)
_ONE_NUMBER = (
    "both play the active arms in turn and drop arms one by one, so a record is one number per arm: after how many "
    "pulls it went. Whatever that number is, there is a gap at which the assumed rule drops the arm just then, and "
    "nothing is left over that could be compared: only who knows the gaps beforehand could tell."
)
_UNEXPLAINED = "in some runs 200 particles do not hold one that explains every choice; more do."

REASONS: dict[tuple[str, str], str] = {
    **{
        (key, name): _LEVEL
        for key in ("coverage", "lowest arm", "ranks")
        for name in ("thompson", "learning-softmax", "exp3")
    },
    **{(key, name): _FEW for key in ("coverage", "lowest arm") for name in ("epsilon-greedy", "softmax")},
    **{("gap coverage", name): _FEW for name in ("epsilon-greedy", "softmax", "learning-softmax", "exp3")},
    **{("oracle", name): _GIVEN_UP for name in ("klucb", "lilucb", "moss")},
    ("oracle", "thompson"): "a randomised choice tells of a difference only by how often it is made.",
    ("check, other rules", "Even-Dar elimination as sae"): _ONE_NUMBER,
    **{("coverage", name): _UNEXPLAINED for name in ("klucb", "ucbv")},
}
"""Why a criterion is missed, where that is known, by its key and the rule's name; shown only beside such a score."""

INTRODUCTION = """\
# How far the answers can be trusted

Written by `{asked}` of unbandit {version}, seed {seed}.{posteriors}
Records are simulated, so the truth behind them is known; the methods see only which arm was pulled. No run
is left out, whatever it found.

To measure all of it again: `make calibrate`. It can be stopped at any time and resumes where it stopped;
the same seed gives the same figures on any number of cores, but for time and memory. To look at one rule:
`unbandit calibrate posterior --rule ucb --runs 50 -o look`.

Figures are given with one Monte-Carlo error. ✓: the goal is reached, by two Monte-Carlo errors or more. ~: these
runs do not decide it. ✗: it is missed by two Monte-Carlo errors or more. No mark: no goal speaks of it.
"""

POSTERIORS = """ Posteriors have
{clouds} cloud(s) of {particles:,} particles ({more}),
where users get four clouds of 250 to 4,000 by default: here are thousands of posteriors. Rules whose
posterior takes long have a part of the runs; the table at the end has the number of each."""

BEYOND = """\
The goals ask for every cell. What puts some out of reach has a column of its own where it can be measured.

- *Few different records.* With fixed means a coverage is a sum of the probabilities of records, each of which has one
  interval. Where an arm's number of pulls takes a few values only (the fewest of any arm are counted), coverage jumps
  between them. Over random means the jumps average out. Phased elimination tests after 1, 2, 4, 8, ... pulls, so that a
  gap is anywhere between two tests: there an interval that has the right length for a bell curve is longer than needed.
- *Arms too close to the best.* An interval reaches down to 0 where the most-pulled arm may be the luckiest rather than
  the best. Where most do, they hold more often than 95%; that is what nearly equal arms need.
- *Means near 0 or 1.* Rewards of 0 and 1 hardly vary there, but after few pulls a record does not show how rare the
  rarer of them is: intervals are as long as if two more of each had come, and hold too often.
- *The largest of many.* Elimination compares an arm with the largest of all active sample means. After few pulls, with
  noise as large as the gaps, that is too large by luck; `many-active` warns of it.
- *A lucky leader.* All arms of a record are compared with the same one, so they miss together. Among nearly equal arms
  it breaks away in a few runs in a hundred, and then no arm looks close. A leader that is better by as much leaves the
  same records, so no reading of one can tell; over all runs the intervals hold (the first table of that design).
- *An estimator that is right by accident.* The naive estimator is too large for some gaps and too small for others;
  near where it is right, it errs less than the sample means of the very rewards that the choices were made by. Nothing
  in a record shows that one is there.
"""


def beyond_goals(cells: Sequence[ClosedFormMetrics], criteria: Sequence[Criterion]) -> Iterator[str]:
    """Yield the lines about closed-form cells that miss a goal, with what explains most of them."""
    by_place = {(f"{each.cell.design} means", *place(each)): each for each in cells}
    found = [
        (criterion, score, own)
        for criterion in criteria
        for score in criterion.scores
        if score.verdict == MISSED
        and (own := by_place.get((criterion.key.partition(",")[0], score.row, score.column))) is not None
    ]
    if not found:
        return
    yield from ("", "## Closed forms that miss a goal, and why", "", BEYOND)
    headings = (
        "measure", "whose", "cell", "measured", "pull counts that make up 95% of the runs", "intervals that reach 0",
        "error of `bracket` over that of the rewards' sample means", "error of the naive estimator over that",
    )  # fmt: skip
    rows = []
    for criterion, score, own in found:
        counts = f"{own.pull_counts:,}" if own.pull_counts else ""
        measured = percent(own.reach_zero), times(own.against_seen), times(own.naive_against_seen)
        rows.append((criterion.key, f"`{score.row}`", score.column, score.text, counts, *measured))
    yield from markdown_table(headings, rows)


def page(done: Calibration) -> str:
    """Return the page, in Markdown."""
    more = ", ".join(f"{factor} times as many for `{short(text)}`" for text, factor in CLOUDS.items())
    posteriors = POSTERIORS.format(clouds=done.clouds, particles=done.particles, more=more) if done.posteriors else ""
    introduction = INTRODUCTION.format(asked=done.asked, version=__version__, seed=done.seed, posteriors=posteriors)
    return "\n".join([introduction, *_lines(done)]) + "\n"


def _lines(done: Calibration) -> Iterator[str]:
    criteria = done.criteria
    yield from markdown_table(
        ("measure", "to reach", "measured", "figures"),
        [(criterion.measure, criterion.reach, criterion.span, criterion.counted) for criterion in criteria],
    )
    for criterion in criteria:
        yield from ("", f"## {criterion.key[0].upper()}{criterion.key[1:]}", "")
        yield f"{criterion.measure[0].upper()}{criterion.measure[1:]}. To reach: {criterion.reach}."
        if criterion.note:
            yield criterion.note
        yield ""
        yield from _grid(
            criterion.rows,
            [(score.row, score.column, f"{score.text}{MARKS[score.verdict]}") for score in criterion.scores],
        )
        if reasons := list(_reasons(criterion)):
            yield from ("", *reasons)
    yield from beyond_goals(done.closed_forms, criteria)
    if done.closed_forms:
        yield from ("", "## Runs behind the figures of the closed forms", "")
        runs: dict[tuple[str, str], str] = {}
        for own in done.closed_forms:
            label = f"{own.cell.label}, {own.cell.rule.name}" if own.cell.label else f"{own.cell.design} means"
            runs[label, place(own)[1]] = f"{own.cell.runs:,}"
        yield from _grid("means", [(*where, number) for where, number in runs.items()])
    if done.posteriors:
        yield from ("", "## Runs behind the figures of the posterior", "")
        cells = [(short(each.setting.rule), each.setting.cell, f"{each.runs:,}") for each in done.posteriors]
        yield from _grid("rule", cells)
    thin = [each for each in done.posteriors if each.failed or each.warned]
    if thin:
        yield from ("", "## Where the tool warns or gives up", "")
        yield from ("A posterior that cannot be trusted comes with a warning (`clouds-differ`), or not at all.", "")
        headings = ("rule", "cell", "runs", "with a warning", "without a posterior")
        counts = [(each, (each.runs, each.warned, each.failed)) for each in thin]
        yield from markdown_table(
            headings,
            [(f"`{short(each.setting.rule)}`", each.setting.cell, *map("{:,}".format, own)) for each, own in counts],
        )


def _grid(heading: str, entries: Iterable[tuple[str, str, str]]) -> list[str]:
    """Lay out (row, column, text) entries as a table."""
    table: dict[str, dict[str, str]] = {}
    for row, column, text in entries:
        table.setdefault(row, {})[column] = text
    columns = list(dict.fromkeys(column for texts in table.values() for column in texts))
    cells = [(f"`{row}`", *(texts.get(column, "") for column in columns)) for row, texts in table.items()]
    return markdown_table((heading, *columns), cells)


def _reasons(criterion: Criterion) -> Iterator[str]:
    """Say why a criterion is missed, where that is known."""
    missed = [score.row for score in criterion.scores if score.verdict == MISSED]
    for name in dict.fromkeys(row.partition(":")[0].partition(",")[0] for row in missed):
        if (criterion.key, name) in REASONS:
            yield f"- `{name}`: {REASONS[criterion.key, name]}"
