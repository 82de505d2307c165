"""What every picture of the reproduction is: studies in; a figure, a table and claims out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from unbandit.devices import Device
from unbandit.paper.claim import Claim

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from unbandit.study import Study
    from unbandit.study.curves import Curve, Folds
    from unbandit.study.study import StudyResult

__all__ = ["FULL_RUNS", "Picture", "Results", "Selection", "Size"]

Made = TypeVar("Made")

FULL_RUNS = 100_000
"""Runs of a synthetic picture at full size: error bands vanish."""

FULL_TIMES = 10
"""How many times the paper's runs the other pictures have at full size."""


@dataclass(frozen=True)
class Size:
    """Say how large a reproduction is to be.

    Parameters
    ----------
    runs
        For every picture; None takes the paper's own numbers.
    seed
        Of everything that is drawn at random.
    full
        Beyond the paper's sizes.
    device
        Where it is simulated: `cpu` or `cuda`.

    Examples
    --------
    >>> Size().runs_of(100), Size(full=True).runs_of(100), Size(full=True).runs_of(100, synthetic=True)
    (100, 1000, 100000)
    >>> Size(runs=7, full=True).runs_of(100)
    7
    """

    runs: int | None = None
    seed: int = 1
    full: bool = False
    device: Device = "cpu"

    def runs_of(self, paper: int, *, synthetic: bool = False) -> int:
        """Return the runs of a picture that the paper made with `paper` runs."""
        if self.runs is not None:
            return self.runs
        return (FULL_RUNS if synthetic else FULL_TIMES * paper) if self.full else paper


class Results(Mapping[str, "Folds"]):
    """Hold what a picture's studies gave: `results["study"]` is its `Folds`.

    Parameters
    ----------
    size
        What was asked for.
    studies
        The finished studies by name.
    """

    def __init__(self, size: Size, studies: Mapping[str, StudyResult]) -> None:
        self.size = size
        self.studies = dict(studies)
        self._made: dict[Any, Any] = {}

    def __getitem__(self, name: str) -> Folds:
        return self.once(("folds", name), self.studies[name].folds)

    def __iter__(self) -> Iterator[str]:
        return iter(self.studies)

    def __len__(self) -> int:
        return len(self.studies)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what `make` gives, made once: drawing, table and claims share it."""
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made


@dataclass(frozen=True)
class Selection:
    """Say what dropping the runs whose most-pulled arm was not the best one does to an error.

    Parameters
    ----------
    where
        Instance, rule and horizon, in words.
    runs, dropped, estimated
        How many runs there were, how many the rule drops, and how many have an estimate.
    mse, mse_kept
        The mean squared error of all that have an estimate, and of those among them that are kept.
    """

    where: str
    runs: int
    dropped: int
    estimated: int
    mse: float
    mse_kept: float

    @classmethod
    def at(cls, where: str, curve: Curve, point: int) -> Selection:
        """Return what the selection does at one point of a curve over horizons."""
        runs = int(curve.runs[point])
        return cls(
            f"{where}, T = {curve.along[point]:,}",
            runs,
            runs - round(float(curve.kept[0, point]) * runs),
            round(float(curve.points[0, point]) * runs),
            float(curve.mse[0, point]),
            float(curve.mse_kept[0, point]),
        )

    @classmethod
    def ends(cls, where: str, curve: Curve) -> list[Selection]:
        """Return what the selection does at the shortest and at the longest horizon of a curve."""
        return [cls.at(where, curve, 0), cls.at(where, curve, len(curve.along) - 1)]


class Picture(ABC):
    """Make one picture of the paper.

    A concrete picture sets the attributes below and says which studies it needs, how they are drawn, and what they are
    to show. `draw` is called with the house style set.
    """

    name: str
    """How the picture is asked for, and what its files are called."""

    title: str
    """Its heading on the page."""

    section: str
    """Which picture of the paper it is, in words."""

    caption: str
    """What is shown, in our own words."""

    alt: str = ""
    """What the picture looks like, for those who do not see it; the caption, where it is empty."""

    needs_rows: bool = False
    """Whether its studies' rows are read, and not only their sums: a GPU then keeps them."""

    full_only: bool = False
    """Whether it is made with `--full` only, or when asked for by name."""

    def studies(self, size: Size) -> dict[str, Study]:
        """Return the studies that the picture needs, by name; none by default."""
        return {}

    def home(self, study: str) -> str:
        """Return where a study's parts lie: under the picture's name, unless it shares them with another."""
        return f"{self.name}/{study}"

    @abstractmethod
    def draw(self, results: Results) -> Figure:
        """Draw one figure, its panels lettered (a), (b), ..."""

    @abstractmethod
    def table(self, results: Results) -> pl.DataFrame:
        """Return the rows behind the figure: what is drawn."""

    @abstractmethod
    def claims(self, results: Results) -> list[Claim]:
        """Put what the paper says of the picture to the test."""

    def selection(self, results: Results) -> list[Selection]:
        """Return what the authors' selection of runs does here; nothing by default."""
        return []

    def figure(self, results: Results) -> Figure:
        """Draw the figure in the house style."""
        import matplotlib as mpl

        from unbandit.paper.drawing import STYLE

        with mpl.rc_context(STYLE):
            return self.draw(results)
