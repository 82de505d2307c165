"""How much an answer depends on the rule's numbers: the same log with one of them changed at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.demonstrators.base import rule_or_family
from unbandit.demonstrators.family import RuleFamily, limits_of
from unbandit.demonstrators.widths import RegretWidth
from unbandit.errors import AssumptionWarning, ParameterError, option
from unbandit.estimators.api import estimate
from unbandit.estimators.arguments import as_record, meant_rule
from unbandit.fit import FittedNumber
from unbandit.formatting import interval, short_numbers
from unbandit.log import ActionLog
from unbandit.result import SCHEMA, ArmEstimate, Estimate, Quantity, json_pieces, shown_quantity
from unbandit.tables import Finding, as_written_by, read_whole, same_decimals

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

Variants = list[tuple[str, float]]  # a number of the rule, and another value of it

OF_A_WIDTH, OF_OTHERS = (0.8, 1.2), (0.5, 2.0)  # alpha and scale are off by 20%, other numbers by a factor of 2
LARGEST_ALPHA = 0.999
AS_ASSUMED = "as assumed"


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Finding, Mapping[str, Estimate]):
    """Estimates with one of the rule's numbers changed at a time: a mapping from each change to its estimate.

    Attributes
    ----------
    answer
        The estimate with the rule as it was given.
    variants
        The estimates under other assumptions, by what was changed (`"alpha=0.2"`).
    """

    answer: Estimate
    variants: Mapping[str, Estimate]

    def __getitem__(self, name: str) -> Estimate:
        return self.variants[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.variants)

    def __len__(self) -> int:
        return len(self.variants)

    def __repr__(self) -> str:
        return (
            f"<Sensitivity: {len(self.answer.arms)} arms, {short_numbers(self.answer.rule)} and {len(self)} variants>"
        )

    @property
    def assumed(self) -> dict[str, Estimate]:
        """Return all estimates, that of the rule as it was given first."""
        return {AS_ASSUMED: self.answer, **self.variants}

    def to_frame(self) -> polars.DataFrame:
        """Return all estimates as one table, one row per variant and arm (and demonstration)."""
        import polars as pl

        return pl.concat(
            [pl.select(variant=pl.lit(name)).join(each.to_frame(), how="cross") for name, each in self.assumed.items()]
        )

    @property
    def quantity(self) -> Quantity:
        """Return what variants are compared in."""
        return compared_quantity(self.answer)

    def summary(self) -> polars.DataFrame:
        """Return a table of arms and variants, the best arm first: what is known of each, its mean or its gap."""
        import polars as pl

        quantity, several = self.quantity, len(self.answer.demonstrations) > 1
        keys = ["demonstration", "arm"] if several else ["arm"]
        table = pl.DataFrame([{name: getattr(row, name) for name in keys} for row in self.answer.ranked()])
        for name, each in self.assumed.items():
            table = table.join(
                each.to_frame().select(*keys, pl.col(quantity).alias(name)), on=keys, maintain_order="left"
            )
        return table

    def to_dict(self) -> dict[str, Any]:
        """Return the answers in the form that `unbandit estimate --sensitivity --json` prints."""
        return self.answer.to_dict() | {"sensitivity": {name: each.to_dict() for name, each in self.items()}}

    def to_json(self) -> str:
        """Return the answers as JSON text."""
        return "".join(json_pieces(self.answer, self))

    @classmethod
    @as_written_by("Sensitivity")
    def from_json(cls, text: str | bytes) -> Sensitivity:
        """Return the answers that `to_json` or `unbandit estimate --sensitivity --json` wrote."""
        said = read_whole(text, SCHEMA, "sensitivity", "Sensitivity")
        variants = {name: Estimate.from_dict(other) for name, other in said["sensitivity"].items()}
        return cls(Estimate.from_dict(said), variants)

    def plot(self, *, demonstration: object = None, ax: Axes | None = None) -> Any:
        """Draw every arm under each assumption; on `ax`, which is returned, or on a new figure."""
        from unbandit import plots

        return plots.sensitivity(self, demonstration=demonstration, ax=ax)


def sensitivity(
    log: ActionLog | Any, rule: Demonstrator | RuleFamily | str, *, answer: Estimate | None = None, **options: Any
) -> Sensitivity:
    """Estimate again with one of the rule's numbers changed, and everything else as it was.

    alpha (unless it is 0) and the width's scale of the paper's rules are 20% lower and higher; the number of any other
    rule that a log may show (`exploration`, `temperature`, `rate` ...) is half and twice as large; and a number that is
    fitted has the ends of its interval.

    Parameters
    ----------
    log, rule
        As for `estimate`.
    answer
        The answer with the rule as it is, where it is known already.
    **options
        Options of `estimate`.

    Examples
    --------
    >>> from unbandit import UCB, Instance
    >>> log = UCB(alpha=0.25).demonstrate(Instance([1.0, 0.5]), 1_000, seed=1)
    >>> found = sensitivity(log, "ucb:alpha=0.25", sigma=1.0)
    >>> found
    <Sensitivity: 2 arms, ucb:alpha=0.25,scale=1.414 and 4 variants>
    >>> found.summary().columns
    ['arm', 'as assumed', 'alpha=0.2', 'alpha=0.3', 'scale=1.131', 'scale=1.697']
    >>> found["alpha=0.2"].best
    ('0',)
    >>> list(sensitivity(log, "ucb1", sigma=1.0))
    ['exploration=1', 'exploration=4']
    """
    record, given, known = as_record(log), rule_or_family(rule), answer
    if isinstance(given, RuleFamily):
        known = known or _estimated(record, given, options)
        assumed, variants = parse_rule(known.rule), _of_fitted(given, known.fitted)
    else:
        assumed, _ = meant_rule(given, options.get("bernoulli", False), options.get("sigma"))
        variants = _of_given(assumed, options)
        known = known or _estimated(record, given, options | {"check": False})
    if options.get("sigma") is None and not options.get("bernoulli") and "sigma" in assumed.model_fields_set:
        options["sigma"] = getattr(assumed, "sigma", None)  # the noise stays, also where the rule's own sigma is varied
    answers = {}
    for name, value in variants:
        changed = assumed.model_copy(update={name: value})
        answers[f"{name}={value:.4g}"] = _estimated(record, changed, options | {"check": False})
    return Sensitivity(known, answers)


def _estimated(record: Any, rule: Demonstrator | RuleFamily, options: Mapping[str, Any]) -> Estimate:
    """Estimate without warnings, which are those of the answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return estimate(record, rule, **options)


def _of_fitted(family: RuleFamily, fitted: tuple[FittedNumber, ...]) -> Variants:
    """Return the ends of the intervals of fitted numbers."""
    found = [
        (each.parameter, end)
        for each in fitted
        if each.parameter in family.kind.model_fields and each.low < each.high
        for end in (each.low, each.high)
    ]
    if not found:
        text = f"the log leaves one value of {family.title}, or shows several numbers only together."
        raise ParameterError(text, parameter="sensitivity", remedy="Leave it out, or give the numbers values.")
    return found


def _of_given(rule: Demonstrator, options: Mapping[str, Any]) -> Variants:
    """Return other values of the numbers that may be off; refuse a rule that has none."""
    if isinstance(rule, RegretWidth):
        scale = "sigma" if rule.sigma is not None else "scale"
        names = ("alpha", scale) if rule.alpha > 0 else (scale,)  # 20% of an alpha of 0 is nothing
        values = [(name, getattr(rule, name) * share) for name in names for share in OF_A_WIDTH]
        return [(name, min(value, LARGEST_ALPHA) if name == "alpha" else value) for name, value in values]
    numbers = {name: rule.in_force(name) for name in dict.fromkeys((*rule.varied, *rule.fits, *rule.no_standard))}
    numbers = {name: value for name, value in numbers.items() if value}
    is_known = options.get("sigma") is not None or options.get("bernoulli") or "sigma" in rule.model_fields_set
    if "sigma" in numbers and not is_known:  # one sigma is assumed for the rule and for the rewards
        del numbers["sigma"]
        if not numbers:
            text = f"sigma is the number of {rule.name} that can be off, and it is not given."
            raise ParameterError(text, parameter="sensitivity", remedy=f"Give {option('sigma')} too.")
    found = [
        (name, changed)
        for name, value in numbers.items()
        for share in OF_OTHERS
        if (changed := _within(type(rule), name, value, share)) != value
    ]
    if not found:
        text = f"{rule} has no number that could be off."
        raise ParameterError(text, parameter="sensitivity", value=str(rule), remedy="Leave it out.")
    return found


def _within(kind: type[Demonstrator], name: str, value: float, share: float) -> float:
    """Return a share of a number, or the largest that is allowed; whole numbers stay whole."""
    if isinstance(value, int):
        return max(1, round(value * share))
    _, most = limits_of(kind, name)
    return value * share if most is None else min(value * share, most)


def compared_quantity(answer: Estimate) -> Quantity:
    """Return what variants are compared in: gaps where means were drawn, as their level may be that of the prior."""
    return "gap" if answer.posteriors else shown_quantity(answer)


def sensitivity_rows(
    answer: Estimate, others: Mapping[str, Estimate], most: int | None = None, *, intervals: bool = True
) -> tuple[list[str], list[list[str]]]:
    """Return one table of arms and variants as text: headings, and rows with the best arm first.

    Of several demonstrations the first `most` are taken. A cell has the value, with its interval if asked for.
    """
    quantity, several = compared_quantity(answer), len(answer.demonstrations) > 1
    headings = ["demonstration"] * several + ["arm", quantity, *others]
    names, rows = answer.demonstrations[:most], []
    tables = {name: [each.ranked(name) for each in (answer, *others.values())] for name in names}
    estimates = [row for variants in tables.values() for each in variants for row in each]
    write = same_decimals(value for row in estimates for value in (row.value(quantity), *row.interval(quantity)))
    for name, ranked in tables.items():
        variants = [{row.arm: row for row in each} for each in ranked]
        for arm in variants[0]:
            cells = [value_cell(each[arm], quantity, write, intervals=intervals) for each in variants]
            rows.append([name] * several + [arm, *cells])
    return headings, rows


def value_cell(row: ArmEstimate, quantity: Quantity, write: Callable[[float | None], str], *, intervals: bool) -> str:
    """Write an arm's value with its interval; its verdict where it has no number."""
    value, ends = row.value(quantity), interval(*row.interval(quantity), write)
    if value is None:
        return ends or row.verdict
    return f"{write(value)} ({ends})" if ends and intervals and row.verdict != "best" else write(value)
