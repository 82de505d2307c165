"""The action log of a bandit: which arm was pulled in each round, and such rewards as happen to be known."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit import checks
from unbandit.errors import Notice, ParameterError
from unbandit.files import write_table
from unbandit.formatting import counted
from unbandit.log.columns import noun_of, only
from unbandit.log.formats import open_bytes, sources_of
from unbandit.log.frames import FrameSource, series_of
from unbandit.log.labels import Codes, checked_label, given_arms, numbered
from unbandit.log.numbers import LogTimes
from unbandit.log.rewards import Rewards
from unbandit.log.rounds import collect
from unbandit.log.sources import Arms, Blank, Columns, Duplicates, Layout, Paths
from unbandit.log.tallies import LookRule, Need, Tallies, switching_against, tally, with_looks
from unbandit.tables import Tabular

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unbandit.log.scan import ScannedLog


@dataclass(frozen=True, eq=False, repr=False)
class ActionLog(Tabular):
    """Demonstrations as an observer sees them: actions, and seldom a reward.

    Make one with `read`, `from_frame`, `from_actions`, `from_codes` or `from_counts`.

    Attributes
    ----------
    arms
        The label of every arm; two or more. An arm may never have been pulled.
    actions
        The arm (`i_t`, a position in `arms`) of every round, one demonstration after the other; None for counts.
    offsets
        Where each demonstration begins, and the end.
    demonstrations
        The name of each demonstration, with the `column` that has them; see `noun`.
    reading
        What the user should know about how the log was read; `notices` has it in words.
    rewards
        The reward of every round, NaN where it is not known; None where none is, as a rule.
    is_numbered
        Whether a column of the table numbered the rounds, and none was missing.
    times
        The time of every round, where times put the rows in order.

    Examples
    --------
    >>> log = ActionLog.from_actions(["B", "A", "A"])
    >>> log
    <ActionLog: 1 demonstration, 2 arms, 3 rounds>
    >>> log.arms, log.actions.tolist(), log.pulls.tolist()
    (('B', 'A'), [0, 1, 1], [[1, 2]])
    """

    arms: tuple[str, ...]
    actions: Codes | None
    offsets: NDArray[np.int64]
    demonstrations: Sequence[str] = ("1",)
    reading: tuple[Notice, ...] = ()
    rewards: Rewards | None = None
    _counts: NDArray[np.int64] | None = None
    is_numbered: bool = False
    times: LogTimes | None = None
    _kept: dict[Need, Tallies] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        # Read-only views: the log does not change, and the array of a caller is left as it is.
        for name in ("actions", "offsets", "rewards", "_counts"):
            array = getattr(self, name)
            if array is not None and array.flags.writeable:
                view = array.view()
                view.setflags(write=False)
                object.__setattr__(self, name, view)

    @classmethod
    def read(
        cls, path: Paths, *, columns: Columns = None, arms: Arms = None, duplicates: Duplicates = None,
        sheet: str | None = None, header: bool = True, blank: Blank = None,
    ) -> ActionLog:  # fmt: skip
        """Read CSV, TSV, JSON lines, Parquet, Arrow or a spreadsheet, also gzipped; "-" is standard input.

        Parameters
        ----------
        path
            A file with a column `arm` and optionally `demonstration`, `round` and `reward`, which may have blanks; or
            `arm` and `pulls`. A folder, a pattern such as ``"logs/*.parquet"`` or a list of files is one log.
        columns
            The column of each role that has an unusual name: ``{"arm": "picked"}``.
        arms
            All arms there were, in order; by default those pulled, by value if all are numbers, else as they appear.
        duplicates
            What rows of one name in a table of counts are: an error (`refuse`, the default), arms that only share a
            name (`separate`: "A", "A (2)" ...), or one arm (`add`). Refused for a log of rounds.
        sheet
            The sheet of a spreadsheet; by default the first.
        header
            Whether the first row names the columns. Without it, the only column is the arm, and several are called 1, 2
            and so on.
        blank
            What becomes of rows without a choice: an error (`refuse`, the default), or they are left out (`skip`), as
            nobody chose in these rounds and nothing was learnt in them. They are no holes in the numbers of rounds.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
        >>> _ = path.write_text("trial,choice\\n1,2\\n2,1\\n3,2\\n")
        >>> ActionLog.read(path, arms=[1, 2, 3]).pulls.tolist()
        [[1, 2, 0]]
        """
        layout = Layout(sheet, header)
        sources = sources_of(path, layout, unpack=True)
        return cls(*collect(sources, columns, arms, duplicates=duplicates, blank=blank))

    @staticmethod
    def scan(
        paths: Paths, *, columns: Columns = None, arms: Arms = None, sheet: str | None = None, header: bool = True
    ) -> ScannedLog:
        """Open files that need not fit in memory: rows are read in streaming passes, of which only tallies are kept.

        Parameters
        ----------
        paths
            As `read` takes them; a folder may have folders in it, also such as ``demonstration=7``. Files come in the
            order of their names, with numbers in them by value; the rows of each demonstration must be in order.
        columns, arms, sheet, header
            As for `read`.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> pl.DataFrame({"arm": ["B", "A", "A"]}).write_parquet(folder / "part-1.parquet")
        >>> pl.DataFrame({"arm": ["A", "B"]}).write_parquet(folder / "part-2.parquet")
        >>> ActionLog.scan(folder).pulls.tolist()
        [[2, 3]]
        """
        from unbandit.log.scan import ScannedLog  # most logs are read whole

        return ScannedLog(sources_of(paths, Layout(sheet, header)), columns, arms)

    @classmethod
    def from_bytes(
        cls, data: bytes, *, name: str = "the log", columns: Columns = None, arms: Arms = None,
        duplicates: Duplicates = None, sheet: str | None = None, header: bool = True, blank: Blank = None,
    ) -> ActionLog:  # fmt: skip
        """Read the content of a file, in any format that `read` knows; `name` is only what messages call it.

        Examples
        --------
        >>> ActionLog.from_bytes(b"arm\\nA\\nB\\n")
        <ActionLog: 1 demonstration, 2 arms, 2 rounds>
        """
        checks.text("name", name)
        source = open_bytes(data, name or "the log", Layout(sheet, header))
        return cls(*collect([source], columns, arms, duplicates=duplicates, blank=blank))

    @classmethod
    def from_frame(
        cls, frame: Any, *, columns: Columns = None, arms: Arms = None, duplicates: Duplicates = None,
        blank: Blank = None,
    ) -> ActionLog:  # fmt: skip
        """Read any dataframe, lazy ones too, with the columns that `read` knows.

        Examples
        --------
        >>> frame = pl.DataFrame({"subject": ["x", "y", "x"], "action": [0, 1, 1]})
        >>> log = ActionLog.from_frame(frame)
        >>> log.demonstrations, log.lengths.tolist()
        (('x', 'y'), [2, 1])
        """
        return cls(*collect([FrameSource(frame)], columns, arms, duplicates=duplicates, blank=blank))

    @classmethod
    def from_actions(cls, actions: Any, *, arms: Arms = None, rewards: Any = None) -> ActionLog:
        """Make a log from a sequence of labels, an array with one row per demonstration, or a list of sequences.

        An array of the integers 0 to K - 1 is kept, not copied. Rewards, where some are known, are arranged like the
        actions, with None or NaN where one is not known.

        Examples
        --------
        >>> ActionLog.from_actions([[0, 1, 1], [1, 0]])
        <ActionLog: 2 demonstrations, 2 arms, 5 rounds>
        >>> ActionLog.from_actions(["A", "B", "A"], rewards=[0.5, None, 1]).rewards.tolist()
        [0.5, nan, 1.0]
        """
        from unbandit.log.choices import collect_choices

        return cls(*collect_choices(actions, arms, rewards))

    @classmethod
    def from_codes(
        cls, codes: Codes, arms: Sequence[object], *, offsets: NDArray[np.int64] | None = None,
        demonstrations: Sequence[str] | None = None, rewards: Any = None,
    ) -> ActionLog:  # fmt: skip
        """Make a log from positions in `arms`, without a copy; they are checked when they are first counted.

        Parameters
        ----------
        codes
            Integers from 0 to K - 1, in two dimensions one row per demonstration.
        arms
            The label of each of the K arms.
        offsets
            Where each demonstration begins, and the end.
        demonstrations
            Their names; by default 1, 2, ...
        rewards
            One per code, arranged like the codes; None or NaN where it is not known.

        Examples
        --------
        >>> codes = np.array([0, 1, 0], np.uint8)
        >>> ActionLog.from_codes(codes, ["A", "B"], offsets=np.array([0, 2, 3])).lengths.tolist()
        [2, 1]
        """
        codes = np.asarray(codes)
        if codes.dtype.kind not in "iu" or codes.ndim not in (1, 2):
            text = f"expected an array of integers in one dimension or two; got {codes.dtype} in {codes.ndim}."
            remedy = "Labels of any kind are read by ActionLog.from_actions."
            raise ParameterError(text, parameter="codes", value=codes, remedy=remedy)
        if offsets is None:
            rows = codes.shape[0] if codes.ndim == 2 else 1
            offsets = np.arange(rows + 1, dtype=np.int64) * (codes.size // max(rows, 1))
        ends = np.asarray(offsets)
        if ends.dtype.kind not in "iu" or ends.ndim != 1:
            text = f"expected whole numbers in a row; got {checks.brief(offsets)}."
            raise ParameterError(text, parameter="offsets", value=offsets)
        offsets = ends.astype(np.int64)
        if demonstrations is not None and not checks.is_list(demonstrations):
            text = f"expected a list of names; got {checks.brief(demonstrations)}."
            raise ParameterError(text, parameter="demonstrations", value=demonstrations)
        names = numbered(len(offsets) - 1) if demonstrations is None else tuple(map(str, demonstrations))
        rising = len(offsets) >= 2 and offsets[0] == 0 and offsets[-1] == codes.size and (np.diff(offsets) >= 0).all()
        if not rising or len(names) != len(offsets) - 1:
            text = f"expected 0, the {len(names)} ends of the demonstrations, and {codes.size} as the last; got "
            raise ParameterError(f"{text}{len(offsets)} of them.", parameter="offsets")
        known = None
        if rewards is not None:
            from unbandit.log.choices import check_rewards  # seldom needed

            known = check_rewards(rewards.reshape(-1) if isinstance(rewards, np.ndarray) else rewards, [codes.size])
        return cls(given_arms(arms), codes.reshape(-1), offsets, names, rewards=known)

    @classmethod
    def from_counts(
        cls, pulls: Mapping[Any, int] | Sequence[tuple[Any, int]], *, duplicates: Duplicates = None
    ) -> ActionLog:
        """Make a log from how often each arm was pulled, when the order of the rounds is not known.

        Pairs of an arm and its count may repeat a name; `duplicates` says what that means, as in `read`.

        Examples
        --------
        >>> ActionLog.from_counts({"A": 70, "B": 30})
        <ActionLog: 1 demonstration, 2 arms, 100 pulls without their order>
        >>> ActionLog.from_counts([("A", 70), ("B", 30), ("A", 5)], duplicates="separate").arms
        ('A', 'A (2)', 'B')
        """
        pairs = list(pulls.items() if isinstance(pulls, Mapping) else pulls if isinstance(pulls, Sequence) else [pulls])
        if not all(isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2 for pair in pairs):
            text = f"expected arms with their counts, or pairs of these; got {type(pulls).__name__} of something else."
            raise ParameterError(text, parameter="pulls", value=pulls, remedy='Write it as {"A": 70, "B": 30}.')
        labels = pl.Series(
            "arm", [checked_label(arm, ParameterError, parameter="pulls") for arm, _ in pairs], dtype=pl.String
        )
        counts = series_of([count for _, count in pairs]).alias("pulls")
        return cls(*collect([FrameSource(pl.DataFrame([labels, counts]))], None, None, duplicates=duplicates))

    def __len__(self) -> int:
        return len(self.demonstrations)

    def __repr__(self) -> str:
        what = "rounds" if self.ordered else "pulls without their order"
        return f"<ActionLog: {counted(len(self), self.noun)}, {len(self.arms)} arms, {self.offsets[-1]} {what}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ActionLog):
            return NotImplemented
        if (self.arms, self.demonstrations, self.ordered) != (other.arms, other.demonstrations, other.ordered):
            return False
        mine, theirs = (log.pulls if log.actions is None else log.actions for log in (self, other))
        if self.rewards is None or other.rewards is None:
            same = self.rewards is other.rewards
        else:
            same = np.array_equal(self.rewards, other.rewards, equal_nan=True)
        return same and np.array_equal(self.offsets, other.offsets) and np.array_equal(mine, theirs)

    __hash__ = None  # type: ignore[assignment]

    @property
    def notices(self) -> tuple[str, ...]:
        """Return what the user should know about the reading, in words."""
        return tuple(notice.message for notice in self.reading)

    @property
    def noun(self) -> str:
        """Return what a demonstration is called, by the column of their names: "subject", say.

        Examples
        --------
        >>> ActionLog.from_frame(pl.DataFrame({"Subject ID": ["x", "y"], "trial": [1, 1], "arm": ["A", "B"]})).noun
        'subject'
        """
        return noun_of(self.demonstrations)

    @property
    def ordered(self) -> bool:
        """Return whether the rounds are known, or only the counts."""
        return self.actions is not None

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of rounds (`T`) of each demonstration."""
        return np.diff(self.offsets)

    @property
    def pulls(self) -> NDArray[np.int64]:
        """Return how often each arm was pulled (`n_i`): (demonstrations, arms)."""
        return self._counted.pulls if self._counts is None else self._counts

    @property
    def last(self) -> NDArray[np.int64]:
        """Return the round (from 1; 0 for none) of each arm's last pull: (demonstrations, arms).

        Examples
        --------
        >>> ActionLog.from_actions(["B", "A", "A"]).last.tolist()
        [[1, 3]]
        """
        self._require_rounds("last")
        return self._counted.counted[2]

    @property
    def _counted(self) -> Tallies:
        """Return pulls with the first and last round of each, from whatever was counted before."""
        return next(iter(self._kept.values()), None) or self.tallied("counts")

    def tallied(self, need: Need) -> Tallies:
        """Return what closed forms need of every demonstration, counted on threads and cached.

        `need` is `counts` (pulls, first and last pulls), `switching` (besides, the counts at each arm's switching
        round) or `epochs` (besides, when each arm's turn passed). A table of counts has `counts` alone.

        Examples
        --------
        >>> ActionLog.from_actions("ABAA").tallied("switching").of_best.tolist()
        [[0, 1]]
        """
        if checks.one_of("need", need, get_args(Need)) in self._kept:
            return self._kept[need]
        if need == "counts" and self.actions is None:
            nowhere = np.broadcast_to(np.int64(0), self.pulls.shape)
            found = Tallies(self.pulls, nowhere, nowhere)
        else:
            actions = self._require_rounds(need)
            found = tally(actions, self.offsets, len(self.arms), need, next(iter(self._kept.values()), None))
        for array in found.arrays.values():
            array.setflags(write=False)
        self._kept[need] = found
        return found

    def with_looks(self, tallies: Tallies, rule: LookRule) -> Tallies:
        """Return tallies with what an index rule whose rewards are late knew at its last decisions."""
        return with_looks(tallies, self._require_rounds("looks"), self.offsets, rule)

    def switching_against(self, favourites: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Return own pulls, those of an arm given for each demonstration, and the rounds when arms last gave way."""
        actions = self._require_rounds("switching")
        runs = actions.view(f"u{actions.itemsize}"), self.offsets, np.arange(len(self))
        return switching_against([runs], favourites, self._counted)

    def _require_rounds(self, parameter: str) -> Codes:
        if self.actions is None:
            text = "expected a log with rounds; this one holds counts. Use its pulls."
            raise ParameterError(text, parameter=parameter)
        return self.actions

    def demonstration(self, which: int) -> Codes:
        """Return the codes of one demonstration, as a view.

        Examples
        --------
        >>> ActionLog.from_actions([[0, 1, 1], [1, 0]]).demonstration(1).tolist()
        [1, 0]
        """
        actions = self._require_rounds("demonstration")
        begin, end = self._span(which)
        return actions[begin:end]

    def select(self, which: int, rounds: int | None = None) -> ActionLog:
        """Return one demonstration, or its first rounds, as a log, without copying it.

        Examples
        --------
        >>> ActionLog.from_actions([[0, 1, 1], [1, 0]]).select(1)
        <ActionLog: 1 demonstration, 2 arms, 2 rounds>
        """
        begin, end = self._span(which)
        end = end if rounds is None else min(end, begin + checks.whole("rounds", rounds, most=2**63 - 1))
        actions = None if self.actions is None else self.actions[begin:end]
        counts = None if self._counts is None else self._counts[which : which + 1]
        rewards = None if self.rewards is None else self.rewards[begin:end]
        if rewards is not None and np.isnan(rewards).all():
            rewards = None
        times = self.times
        times = None if times is None else times._replace(times=times.times[begin:end])
        name = only(self.demonstrations, which)
        return ActionLog(self.arms, actions, np.array([0, end - begin]), name, (), rewards, counts, times=times)

    def to_frame(self) -> pl.DataFrame:
        """Return a table that `from_frame` understands.

        Examples
        --------
        >>> ActionLog.from_actions(["B", "A"]).to_frame().rows()
        [(1, 'B'), (2, 'A')]
        """
        labels = pl.Series("arm", self.arms, dtype=pl.String)
        names = pl.Series("demonstration", list(self.demonstrations), dtype=pl.String)
        if self.actions is None:
            each = np.repeat(np.arange(len(self)), len(self.arms))
            columns = [names.gather(each), labels.gather(np.tile(np.arange(len(self.arms)), len(self)))]
            columns.append(pl.Series("pulls", self.pulls.reshape(-1)))
        else:
            each = np.repeat(np.arange(len(self)), self.lengths)
            rounds = np.arange(1, self.offsets[-1] + 1) - self.offsets[each]
            columns = [names.gather(each), pl.Series("round", rounds), labels.gather(pl.Series(self.actions))]
            if self.rewards is not None:
                columns.append(pl.Series("reward", self.rewards, nan_to_null=True))
        # A lone demonstration that nobody named needs no column.
        return pl.DataFrame(columns[1:] if self.demonstrations == ("1",) else columns)

    def summary(self) -> pl.DataFrame:
        """Return one row per arm (and demonstration): pulls, their share, and the first and last round.

        Examples
        --------
        >>> ActionLog.from_actions(["B", "A", "A"]).summary().rows()
        [('B', 1, 0.3333333333333333, 1, 1), ('A', 2, 0.6666666666666666, 2, 3)]
        """
        return (self._counted if self.ordered else Tallies(self.pulls)).frame(self.arms, self.demonstrations)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write .csv, .tsv, .parquet, .csv.gz or .tsv.gz, depending on the name, and return the path.

        The file is written completely, or not at all.
        """
        checks.path("path", path)
        return write_table(self.to_frame, path)

    def plot(
        self, kind: Literal["timeline", "pulls"] = "timeline", *, demonstration: object = None,
        switching: Mapping[str, int] | None = None, ax: Axes | None = None,
    ) -> Any:  # fmt: skip
        """Plot which arm was pulled when, or how pulls added up.

        Parameters
        ----------
        kind
            `timeline` (`plots.timeline`) or `pulls` (`plots.cumulative_pulls`).
        demonstration
            The one to draw; by default the first.
        switching
            The switching rounds to mark among the pulls: `unbandit.switching_rounds(log, rule)`.
        ax
            Axes to draw into, which are then returned; default a new figure, which is returned.
        """
        from unbandit import plots

        checks.by_arm("switching", switching)
        if checks.one_of("kind", kind, ("timeline", "pulls")) == "pulls":
            return plots.cumulative_pulls(self, demonstration=demonstration, switching=switching, ax=ax)
        return plots.timeline(self, demonstration=demonstration, ax=ax)

    def _span(self, which: int) -> tuple[int, int]:
        if (place := checks.integer(which)) is None or not 0 <= place < len(self):
            text = f"expected a position from 0 to {len(self) - 1}; got {checks.brief(which)}."
            raise ParameterError(text, parameter="demonstration")
        return int(self.offsets[which]), int(self.offsets[which + 1])
