"""A figure of the reproduction: studies in; a drawing, a table and claims out. And which figures there are."""

from __future__ import annotations

import importlib
import sys
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import numpy as np
import polars as pl

from unbandit.checks import did_you_mean
from unbandit.devices import Device
from unbandit.errors import ParameterError
from unbandit.paper.claims import Claim
from unbandit.paper.panels import Series
from unbandit.study.curves import ENOUGH

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from unbandit.study import Study, StudyResult
    from unbandit.study.curves import Curve, StudyCurves

Value = TypeVar("Value")

FULL_RUNS = 100_000  # runs of a synthetic figure at full size: error bands vanish
FULL_TIMES = 10  # how many times the paper's runs the other figures have at full size
PAPER_SIZE: Final = "paper"  # in place of a number of runs: as many as the paper has

PROCEDURES: Final = "switching"  # the method that is exactly the paper's Procedures 1 and 2, which every claim is about

FILES = ("simulations", "battery", "battery_landscape", "gene", "sketches", "coverage", "contexts")
"""The modules that define figures, each in a tuple `FIGURES`."""

TEXTS: dict[str, dict[str, str]] = tomllib.loads(
    resources.files("unbandit.paper").joinpath("captions.toml").read_text("utf-8")
)
"""Caption and description of figures, by the figure's name."""


@dataclass(frozen=True)
class Size:
    """Size of a reproduction."""

    runs: int | Literal["paper"] | None = None  # of every figure; None for each figure's default
    seed: int = 1
    full: bool = False  # whether to go beyond the paper's sizes
    device: Device = "cpu"

    def runs_of(self, paper: int, default: int | None = None, *, synthetic: bool = False) -> int:
        """Return the runs of a figure that the paper made with `paper` runs.

        The defaults decide what a minute of two cores can decide for all figures together: cheap figures have more than
        their claims need, and most of the minute goes to SAE, whose claims need most.
        """
        if self.runs is not None:
            return paper if self.runs == PAPER_SIZE else self.runs
        if self.full:
            return FULL_RUNS if synthetic else FULL_TIMES * paper
        return paper if default is None else default


class Results:
    """The finished studies of a figure, by name: `results["study"]` is its `StudyCurves`."""

    def __init__(self, size: Size, studies: Mapping[str, StudyResult], threads: int | None = None) -> None:
        self.size = size
        self.threads = threads  # for what a figure computes itself; None for one per core
        self.studies = dict(studies)
        self._cache: dict[Any, Any] = {}

    def __getitem__(self, name: str) -> StudyCurves:
        return self.once(("curves", name), self.studies[name].curves)

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return what `make` returns, computed once: drawing, table and claims share it."""
        if key not in self._cache:
            self._cache[key] = make()
        value: Value = self._cache[key]
        return value


@dataclass(frozen=True)
class Selection:
    """The effect of dropping the runs whose most-pulled arm is not the best one, as the authors' released code does."""

    where: str  # instance, rule and horizon, in words
    runs: int
    dropped: int
    estimated: int  # runs with an estimate
    mse: float  # over all runs with an estimate
    mse_kept: float  # over those of them that are kept

    @classmethod
    def at(cls, where: str, curve: Curve, points: ArrayLike) -> Selection:
        """Return the effect at one point of a curve, or its mean over several: arms of the same runs."""
        at = np.atleast_1d(points)
        runs = int(curve.runs[at[0]])
        dropped = runs - round(float(curve.kept[0, at[0]]) * runs)
        estimated = round(float(curve.points[0, at].mean()) * runs)
        errors = [values[0, at][np.isfinite(values[0, at])] for values in (curve.mse, curve.mse_kept)]
        return cls(where, runs, dropped, estimated, *(float(each.mean()) if each.size else np.nan for each in errors))


class PaperFigure(ABC):
    """One figure of the paper.

    A concrete figure sets the attributes below and defines which studies it needs, how they are drawn, and what they
    are claimed to show. `draw` is called with the house style set.
    """

    name: str  # the figure's name on the command line and in file names
    title: str  # its heading on the page
    section: str  # which figure of the paper it is, in words
    caption: str  # what is shown, in our own words; by default from `captions.toml`, as is the next
    alt: str = ""  # what the figure looks like, for readers who cannot see it; if empty, the caption
    needs_rows: bool = False  # whether its studies' rows are read, and not only their sums: a GPU then keeps them
    full_only: bool = False  # whether it is made with `--full` only, or when asked for by name
    beyond: bool = False  # the same with `--beyond`: a question that the paper does not ask

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, text in TEXTS.get(cls.__dict__.get("name", ""), {}).items():
            setattr(cls, name, text.format_map({"ENOUGH": ENOUGH} | vars(sys.modules[cls.__module__])))

    def studies(self, size: Size) -> dict[str, Study]:
        """Return the studies that the figure needs, by name; none by default."""
        return {}

    def home(self, study: str) -> str:
        """Return where a study's parts lie: under the figure's name, unless it shares them with another."""
        return f"{self.name}/{study}"

    def series(self, results: Results) -> list[Series]:
        """Return what is drawn, point by point."""
        return []

    @abstractmethod
    def draw(self, results: Results) -> Figure:
        """Draw one figure, its panels lettered (a), (b), ..."""

    def table(self, results: Results) -> pl.DataFrame:
        """Return the rows behind the figure."""
        return pl.concat(series.rows for series in self.series(results))

    @abstractmethod
    def claims(self, results: Results) -> list[Claim]:
        """Test what the paper says of the figure."""

    def followed(self, results: Results) -> dict[str, Curve]:
        """Return the curves over horizons whose arms the figure follows, by their names in the page's last table."""
        return {}

    def selection(self, results: Results) -> list[Selection]:
        """Return the effect of the authors' selection of runs, at both ends of the curves followed."""
        return [
            Selection.at(f"{name}, T = {curve.along[point]:,}", curve, point)
            for name, curve in self.followed(results).items()
            for point in (0, -1)
        ]


@cache
def figures() -> dict[str, PaperFigure]:
    """Return every figure by name: those of the paper first, then those that go beyond it."""
    listed = [figure for file in FILES for figure in importlib.import_module(f"unbandit.paper.{file}").FIGURES]
    return {figure.name: figure for figure in sorted(listed, key=lambda figure: (figure.beyond, figure.full_only))}


def chosen_figures(names: Sequence[str] = (), *, full: bool = False, beyond: bool = False) -> list[PaperFigure]:
    """Return the figures asked for, in the order of the page; without names all, the larger ones only if `full`.

    With `beyond`, those of questions that the paper does not ask instead.
    """
    known = figures()
    for name in names:
        if name not in known:
            parts = [part for part in known if "," in name and part in name.split(",")]
            remedy = f'Did you mean "{" ".join(parts)}"?' if parts else did_you_mean(name, known)
            text = f'expected one of {", ".join(known)}; got "{name}".'
            raise ParameterError(text, owner="picture", value=name, remedy=remedy)
    if names:
        return [figure for figure in known.values() if figure.name in names]
    return [figure for figure in known.values() if figure.beyond == beyond and (full or not figure.full_only)]
