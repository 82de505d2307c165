"""The report as HTML that needs no other file, no script and no network: its table, its notices, its templates."""

import math
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from unbandit import checks
from unbandit._version import __version__
from unbandit.errors import Audience, Notice, ParameterError, phrase, python_option
from unbandit.files import written_whole
from unbandit.fit import Check
from unbandit.formatting import counted, interval, number, plural, short_numbers, shortened, shown
from unbandit.log.columns import DEMONSTRATION
from unbandit.plots import interval_bar
from unbandit.reporting import provenance
from unbandit.reporting.pdf import write_pdf
from unbandit.reporting.truth import holds_truth
from unbandit.result import ArmEstimate, Estimate, Quantity
from unbandit.tables import same_decimals

if TYPE_CHECKING:
    from unbandit.hierarchy import Population


class Explanation(NamedTuple):
    """Explanation of a notice: its title, its meaning, and what helps."""

    title: str
    meaning: str
    remedy: str = ""


def _file(name: str) -> str:
    return resources.files("unbandit.reporting").joinpath(name).read_text(encoding="utf-8")


TEXTS = tomllib.loads(_file("glossary.toml"))
GLOSSARY: dict[str, str] = TEXTS["words"]
VERDICTS: dict[str, str] = TEXTS["verdicts"]
BASICS = ("arm", "round", "pull", "demonstration", "reward", "rule")
"""Words that every report has."""
NOTICES = {code: Explanation(**texts) for code, texts in TEXTS["notices"].items()}
"""What each kind of notice means, by its code."""

MARKS = {"best": "◆", "estimated": "●", "bounded": "▸", "unseen": "○"}
"""One mark per verdict, so that nobody needs colours to distinguish them."""

OTHER_RULE = (
    "Check the rule and its parameters first, as another rule makes this log more probable. Then check the noise of "
    "the rewards, and that no rows are missing or out of order."
)
"""What helps where another rule is named."""

MOST_MESSAGES = 5  # of more notices of one kind than this, the first are shown

MOST_STEPS = 12  # of a round number along the axis of a table's bars
MOST_STATISTICS = 5  # in which a log may differ from its rule that are shown


Known = Literal["no", "some", "all"]
"""How many of a log's rewards are in it."""


def rewards_in(rewards: np.ndarray[Any, np.dtype[np.float64]] | None) -> Known:
    """Return how many of a log's rewards are known."""
    known = np.zeros(1, np.bool_) if rewards is None else np.isfinite(rewards)
    return "all" if known.all() else "some" if known.any() else "no"


def said_of_rewards(rewards: np.ndarray[Any, np.dtype[np.float64]] | None, *, used: bool = True) -> str:
    """Say how many of a log's rewards are known, and whether the answer is from them."""
    known = 0 if rewards is None else int(np.isfinite(rewards).sum())
    if not used and known:
        return f"The {counted(known, 'reward')} in the log {'was' if known == 1 else 'were'} not used."
    if rewards is None or not known:
        return "No rewards were used."
    which = "All rewards" if known == rewards.size else f"{known:,} of the {rewards.size:,} rewards"
    return f"{which} are known, and were used."


def glossary_with(rewards: Known, noun: str = DEMONSTRATION) -> dict[str, str]:
    """Return the glossary for a log of which no, some or all rewards are known, and that calls a demonstration so."""
    texts = {**GLOSSARY, "reward": f"{GLOSSARY['reward']} {TEXTS['rewards'][rewards]}"}
    if noun != DEMONSTRATION:
        texts[DEMONSTRATION] += f" Here each {noun} is one."
    return texts


def basics(rewards: Known, noun: str = DEMONSTRATION) -> dict[str, str]:
    """Return the words that every report has, explained for such a log."""
    words = glossary_with(rewards, noun)
    return {word: words[word] for word in BASICS}


class TableLimits(NamedTuple):
    """Of more arms than `most`, only the first and the last ones are shown."""

    most: int
    first: int
    last: int


WHOLE, ONE_PAGE = TableLimits(200, 100, 20), TableLimits(10, 8, 2)


def ranked_table(
    rows: Sequence[ArmEstimate], quantity: Quantity, truth: Mapping[str, float], demonstration: str | None,
    label: str | None = None, apart: Sequence[str] = (), is_open: bool = False,
    limits: TableLimits = WHOLE, chances: Mapping[str, str] | None = None, axis: tuple[float, float] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return what the template shows of ranked rows; `demonstration` is None where there is only one.

    `label` says what is different in the table of another answer; arms that are `apart` have no rank; `is_open`
    says that the first place is not settled; `chances` are how probably each arm is the best, as text; `axis` are the
    values at which bars begin and end, where several tables share them.
    """
    many, ranked = len(rows) > limits.most, list(enumerate(rows, 1))
    top, bottom = (ranked[: limits.first], ranked[-limits.last :]) if many else (ranked, [])
    cells = [(row.value(quantity), *row.interval(quantity)) for _, row in top + bottom]
    values = [value for three in cells for value in three if value is not None]
    span = axis or axis_of(values)
    write = same_decimals(values)
    lines = [_table_row(rank, row, quantity, span, truth, write) for rank, row in top + bottom]
    for line, (_, row) in zip(lines, top + bottom, strict=True):
        line["rank"] = "–" if row.arm in apart else line["rank"]
        line["chance"] = (chances or {}).get(row.arm, "")
    return {
        "demonstration": demonstration,
        "label": label,
        "is_open": is_open,
        "first": lines[: len(top)],
        "last": lines[len(top) :],
        "left_out": len(rows) - len(lines),
        "span": span and tuple(number(end) for end in span),  # the values at which bars begin and end
        "has_intervals": any(line["interval"] for line in lines),
        "has_gaps": quantity == "mean" and any(line["gap"] for line in lines),
        "has_chances": bool(chances),
        "has_truth": bool(truth),
    }


def axis_of(values: Iterable[float | None]) -> tuple[float, float] | None:
    """Return rounded values at which bars begin and end; None where no two values differ.

    >>> axis_of([0.013, 0.52, None]), axis_of([1.0])
    ((0.0, 0.55), None)
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if low == high:
        return None
    step = 10.0 ** math.floor(math.log10(high - low))
    step = next(each for each in (step / 10, step / 5, step / 2, step) if (high - low) / each <= MOST_STEPS)
    return round(math.floor(low / step) * step, 12), round(math.ceil(high / step) * step, 12)


def _table_row(
    rank: int, row: ArmEstimate, quantity: Quantity, span: tuple[float, float] | None, truth: Mapping[str, float],
    write: Callable[[float | None], str],
) -> dict[str, Any]:  # fmt: skip
    value, (low, high) = row.value(quantity), row.interval(quantity)
    is_given = low is not None and low == high
    drawn, held = (value, low, high) != (None, None, None), holds_truth(row, quantity, truth)
    return {
        "rank": rank,
        "arm": shown(row.arm),
        "verdict": row.verdict,
        "pulls": f"{row.pulls:,}",
        "value": write(value),
        "interval": "given" if is_given else interval(low, high, write),
        "bar": Markup(interval_bar(low, value, high, span, row.verdict)) if drawn and span else "",
        "gap": write(row.gap),
        "truth": write(truth.get(row.arm)),
        "held": "" if held is None else "yes" if held else "no",
    }


@dataclass(frozen=True)
class Page:
    """A page to be read by people: its title, the answer in one plain sentence, and its main part as HTML.

    The main part is everything inside `<main>`, escaped, without scripts and style attributes.
    """

    title: str
    sentence: str
    main: str

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.sentence}>"

    @property
    def html(self) -> str:
        """Return the whole page, which needs no other file."""
        return standalone(self.title, self.main)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write .html, or .pdf as an installed browser prints it, and return the path; nothing is left if that fails.

        >>> Page("Report", "No arm is the best.", "<p>None.</p>").write("report.docx")
        Traceback (most recent call last):
        ...
        unbandit.errors.ParameterError: path: expected a name that ends in .html or .pdf; got "report.docx".
        """
        checks.path("path", path)
        name = os.fspath(path)
        if name.lower().endswith(".pdf"):
            write_pdf(self.html, path)
            return Path(path)
        if not name.lower().endswith((".html", ".htm")):
            text = f'expected a name that ends in .html or .pdf; got "{name}".'
            raise ParameterError(text, parameter="path", value=name)
        with written_whole(path) as temporary:
            temporary.write_text(self.html, encoding="utf-8")
        return Path(path)


class NoticeGroup(NamedTuple):
    """All notices of one kind: its explanation, the first messages, and how many more there are."""

    code: str
    words: Explanation | None
    messages: tuple[str, ...]
    more: int

    @property
    def title(self) -> str:
        """Return what the notices are about."""
        return self.code if self.words is None else self.words.title


def group_notices(
    notices: Sequence[Notice], arms: Sequence[str], audience: Audience = python_option, noun: str = DEMONSTRATION
) -> list[NoticeGroup]:
    """Group notices by kind, in the order in which the kinds first appear; `noun` is what a demonstration is called."""
    groups: dict[str, list[Notice]] = {}
    for notice in notices:
        groups.setdefault(notice.code, []).append(notice)
    found = []
    for code, group in groups.items():
        messages = tuple(
            (f"{noun.capitalize()} {shown(notice.demonstration)}: " if notice.demonstration else "")
            + shortened(phrase(notice.text, audience), arms)
            for notice in group[:MOST_MESSAGES]
        )
        found.append(NoticeGroup(code, NOTICES.get(code), messages, len(group) - len(messages)))
    return found


def misfit(answer: "Estimate | Population", whose: str | None = None) -> dict[str, Any] | None:
    """Return what the template shows of a rule that does not fit; None where nothing is known against it.

    `whose` names whose statistics the check has, if they are not those of one log.
    """
    check = answer.check
    if check.verdict != "does not fit":
        return None
    return {
        "rule": short_numbers(answer.rule),
        "chance": check.chance,
        "reason": check.reason,
        "rows": [each.said for each in check.unusual[:MOST_STATISTICS]],
        "whose": whose or _whose(check),
        "instead": [short_numbers(name) for name in check.instead[:3]],
        "remedy": OTHER_RULE if check.instead else NOTICES["does-not-fit"].remedy,
    }


def fit_section(
    answer: "Estimate | Population", whose: str | None = None, noun: str = DEMONSTRATION
) -> dict[str, Any] | None:
    """Return what the template shows of a rule that fits, or could not be checked; None where it does not fit."""
    check = answer.check
    if check.verdict == "does not fit":
        return None
    if check.verdict == "not checked":
        return {"sentence": f"Not checked. {check.reason or ''}".strip(), "rows": [], "whose": "", "usual": ""}
    made = f"This log looks like one that {short_numbers(answer.rule)} makes ({check.chance}). {check.reason or ''}"
    rows, many = [each.said for each in check.statistics[:MOST_STATISTICS]], check.checked > 1 and whose is None
    if many and rows:
        made = f"{made.strip()} {counted(check.checked, noun)} were compared, of which the least usual is shown: it "
        made += "may lie outside of what is usual for a single one."
    usual = f"usual for one {noun}" if many else "usual for the rule"
    return {"sentence": made.strip(), "rows": rows, "whose": whose or _whose(check), "usual": usual}


def _whose(check: Check) -> str:
    """Name whose statistics a check has: of several demonstrations, those of one alone."""
    return f"the least usual of {check.checked:,}" if check.checked > 1 else "this log"


@cache
def stylesheet() -> str:
    """Return the report's style sheet: the standalone page contains it, a web page links it."""
    return _file("report.css")


def main_part(template_name: str, /, **contents: Any) -> str:
    """Return what stands inside `<main>`: escaped, without scripts and without style attributes.

    `contents` are what the template shows; one that is missing is an error.
    """
    template = templates("unbandit.reporting").get_template(template_name)
    entries = (provenance.paper_entry(), provenance.software_entry())
    return template.render(
        it=contents, version=__version__, marks=MARKS, meanings=VERDICTS,
        paper=provenance.PAPER, entries=entries, authors=provenance.AUTHORS, year=provenance.RELEASED[:4],
    )  # fmt: skip


def standalone(title: str, main: str) -> str:
    """Return the whole page around its main part."""
    template = templates("unbandit.reporting").get_template("standalone.html")
    return template.render(title=title, main=main, style=stylesheet(), version=__version__)


@cache
def templates(package: str, folder: str = "") -> Environment:
    """Return the templates in a folder of a package: whatever they show is escaped, and a missing name is an error."""
    environment = Environment(
        loader=PackageLoader(package, folder), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"counted": counted, "plural": plural, "shown": shown, "short_numbers": short_numbers}
    environment.filters["file_name"] = lambda path: Path(path).name
    return environment
