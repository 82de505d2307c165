"""The style and the parts that figures share: colours, panels, ticks, labels, intervals."""

from __future__ import annotations

import base64
import io
import math
import os
import threading
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.errors import ParameterError
from unbandit.files import written_whole
from unbandit.formatting import LONGEST_LABEL, minus
from unbandit.formatting import label as short
from unbandit.log.columns import noun_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox, Transform

INK = "#222222"
SOFT = "#6b6b6b"
"""The colour of remarks, pull counts and arms that are not singled out."""

GRID = "#e6e6e6"

PALETTE = {"best": "#b5651d", "estimated": "#1f5a7a", "bounded": "#7a8b99", "unseen": "#b8b8b8", "truth": "#d1495b"}
"""One colour per verdict, distinct in hue and in lightness."""

STYLE: Any = {
    "font.size": 9, "axes.edgecolor": INK, "axes.labelcolor": INK, "axes.spines.top": False,
    "axes.spines.right": False, "xtick.color": INK, "ytick.color": INK, "svg.hashsalt": "unbandit",
    "svg.fonttype": "none",
}  # fmt: skip

FIXED: Any = {
    "text.parse_math": False,
    "text.color": INK,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Lucida Grande", "Verdana", "Arial"],
}
"""Settings that make figures look the same whatever the user has set."""

Numbers = NDArray[np.float64]

Look = dict[str, Any]  # keyword arguments of Matplotlib that say how something is drawn

OWN = "unbandit"  # label of figures that are not the caller's
WIDE, NARROW = 7.2, 3.6  # widths of a figure with one panel, in inches: for a page, and for a phone
_width: ContextVar[float] = ContextVar("width", default=WIDE)


@contextmanager
def narrow() -> Iterator[None]:
    """Draw figures for a phone: half as wide, with text of the same size, wrapped where it would not fit."""
    token = _width.set(NARROW)
    try:
        yield
    finally:
        _width.reset(token)


def width() -> float:
    """Return the width of a figure with one panel, in inches."""
    return _width.get()


def is_narrow() -> bool:
    """Return whether figures are drawn for a phone."""
    return width() < WIDE


def arm_name(name: str, *more: str) -> str:
    """Return a name as it stands beside rows and curves; on a phone, briefly. Of several, each is cut by itself."""
    longest = 13 if is_narrow() else LONGEST_LABEL
    return ", ".join(short(each, 3 * longest // 4 if more else longest) for each in (name, *more))


class Line(NamedTuple):
    """Appearance of a curve."""

    colour: str
    marker: str
    dashes: Any


LINES = (
    Line("#b5651d", "D", "-"),
    Line("#1f3f77", "o", "-"),
    Line("#2f9c86", "^", (0, (5, 1.5))),
    Line("#8a2f6b", "s", (0, (1.5, 1.2))),
    Line("#7fa8d9", "v", "-"),
    Line("#5c5c5c", "P", (0, (6, 1.5, 1, 1.5))),
    Line("#c9a227", "X", (0, (5, 1.5))),
    Line("#274c3a", "<", (0, (1.5, 1.2))),
)
"""Curves take these in order; they differ in colour, lightness, marker and dash."""

_STYLE_LOCK = threading.RLock()  # matplotlib's settings and Python's warning filters are shared by all threads

_NO_METADATA: dict[str, Any] = {"Date": None, "Creator": None, "Format": None, "Type": None}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the shared style: dollar signs are plain text; missing glyphs and slow machines raise no warning."""
    import matplotlib as mpl

    with _STYLE_LOCK, mpl.rc_context(STYLE | FIXED), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=r"(Glyph |Matplotlib currently does not support|Creating legend with)"
        )
        yield


def frame(
    height: float, *, left: float, right: float, top: float, bottom: float = 0.5, ax: Axes | None = None
) -> tuple[Figure, Axes]:
    """Return a figure with one panel, from its height and margins in inches; or the axes given, with their figure.

    Margins computed from the text they hold are faster than a layout engine, which draws twice.
    """
    if ax is not None:
        (axes,) = given_axes(ax, 1)
        axes.set_axisbelow(True)
        return cast("Figure", axes.figure), axes
    wide = width()
    figure = own_figure(height)
    across, along = wide - left - right, height - top - bottom
    axes = figure.add_axes((left / wide, bottom / height, across / wide, along / height))
    axes.set_axisbelow(True)
    return figure, axes


def own_figure(height: float) -> Figure:
    """Return a figure of our own, which may grow, of a height in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width(), height), dpi=150)
    figure.set_label(OWN)
    return figure


def given_axes(ax: Any, most: int) -> list[Axes]:
    """Return the axes that a caller gave, one or a sequence of them; refuse anything else, and more than there are."""
    from matplotlib.axes import Axes

    several: list[Any] = list(np.ravel(np.array(ax, object)))
    if not several or not all(isinstance(each, Axes) for each in several):
        text = f"expected the axes to draw into; got {checks.brief(ax)}."
        raise ParameterError(text, parameter="ax", value=ax, remedy="Make some with matplotlib.pyplot.subplots().")
    if len(several) > most:
        raise ParameterError(f"expected at most {most}; got {len(several)} axes.", parameter="ax", value=ax)
    return several


def panels(
    count: int, *, columns: int, width: float, height: float, ax: Any = None
) -> tuple[Figure, list[Axes]]:  # fmt: skip
    """Return a figure with panels of a size in inches, row by row, laid out by Matplotlib; or the axes given.

    Where fewer axes are given than there are panels, the first panels are drawn.
    """
    from matplotlib.figure import Figure

    if ax is not None:
        given = given_axes(ax, count)
        return cast("Figure", given[0].figure), given
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * rows), dpi=150, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for each in axes[:count]:
        each.set_axisbelow(True)
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure in the format its file name ends in; nothing is left behind if that fails."""
    kind = Path(path).suffix[1:].lower()
    with styled(), written_whole(path) as temporary:
        figure.savefig(temporary, format=kind, metadata=_NO_METADATA if kind == "svg" else None)


def svg(figure: Figure, box: Bbox | None = None) -> str:
    """Return a figure as the text of an SVG file, in which names stay text; or a part of it, in inches.

    Examples
    --------
    >>> from unbandit import ActionLog
    >>> svg(ActionLog.from_actions("ABAA").plot())[:20]
    '<?xml version="1.0" '
    """
    text = io.StringIO()
    with styled():
        figure.savefig(text, format="svg", metadata=_NO_METADATA, bbox_inches=box)
    return text.getvalue()


def png(figure: Figure, dpi: int = 150, box: Bbox | None = None) -> bytes:
    """Return a figure as the bytes of a PNG file."""
    data = io.BytesIO()
    with styled():
        figure.savefig(data, format="png", dpi=dpi, bbox_inches=box)
    return data.getvalue()


def whole_height(figure: Figure) -> Bbox:
    """Return the figure's box in inches, made higher where text was wrapped above or below it."""
    from matplotlib.transforms import Bbox

    wide, high = figure.get_size_inches()
    with styled():
        drawn = figure.get_tightbbox()
    return Bbox([[0.0, min(0.0, drawn.y0 - 0.05)], [wide, max(high, drawn.y1 + 0.05)]])


def address(figure: Figure, *, as_dots: bool = False, box: Bbox | None = None) -> str:
    """Return a `data:` address that holds the figure: as SVG, or as PNG where it has very many lines."""
    kind, data = ("png", png(figure, box=box)) if as_dots else ("svg+xml", svg(figure, box).encode("utf-8"))
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


MOST_NAMED_ROWS = 40  # of more rows than this only some are named
LINE_HEIGHT = 11.5 / 72  # inches from one line of text to the next

# Scales: ticks are known before anything is drawn, so margins can be made to fit them.


class Ticks(NamedTuple):
    """Scale of an axis: its limits, and the positions and labels of its ticks."""

    low: float
    high: float
    values: list[float]
    labels: list[str]
    logarithmic: bool = False


def even_ticks(low: float, high: float, most: int = 7, *, whole: bool = False) -> Ticks:
    """Return a linear scale with round ticks; whole ones for rounds."""
    from matplotlib.ticker import MaxNLocator

    if not high > low:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    within = 1e-9 * (high - low)
    positions = MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10], integer=whole).tick_values(low, high)
    values = [float(position) for position in positions if low - within <= position <= high + within]
    return Ticks(low, high, values, _tick_labels(values))


def _tick_labels(values: list[float]) -> list[str]:
    """Write numbers with as many digits as it takes to distinguish them."""
    step = min(np.diff(values), default=0.0) if len(values) > 1 else abs(values[0]) if values else 0.0
    largest = max(map(abs, values), default=0.0)
    if step <= 0 or largest >= 1e12 or step < 1e-9:
        return [minus(f"{value + 0.0:.6g}") for value in values]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    digits += round(step * 10**digits, 6) % 1 != 0  # a step of 2.5 needs one digit more
    return [minus(f"{round(value, digits) + 0.0:,.{digits}f}") for value in values]


def log_ticks(low: float, high: float, most: int = 7) -> Ticks:
    """Return a logarithmic scale with ticks at 1, 2 and 5 times powers of ten, or at fewer of them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps, every in (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 3)):
        values = [step * 10.0**power for power in range(first, last + 1, every) for step in steps]
        values = [value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(values) <= most:
            break
    if len(values) < 2:
        values = even_ticks(low, high, 4).values
    labels = [f"{value:,.0f}" if value >= 10 else f"{value:.6g}" for value in values]
    return Ticks(low, high, values, labels, logarithmic=True)


def span_of(*numbers: Numbers) -> tuple[float, float]:
    """Return limits of an axis that leave room on both sides of all numbers."""
    values = np.concatenate(numbers)
    values = values[np.isfinite(values)]
    if values.size == 0:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    room = 0.04 * (high - low) or 0.5 * (abs(high) or 1.0)
    return low - room, high + room


def true_values(truth: Mapping[str, float] | None, arms: Sequence[str]) -> Numbers:
    """Return the true value of each arm, NaN where it is not known."""
    checks.by_arm("truth", truth)
    return np.array([(truth or {}).get(arm, np.nan) for arm in arms], float)


def put_scale(axes: Axes, which: Literal["x", "y"], ticks: Ticks, label: str = "", *, grid: bool = True) -> None:
    """Give the axes their horizontal or vertical scale."""
    axes.set(**{f"{which}scale": "log" if ticks.logarithmic else "linear"})
    if ticks.logarithmic:
        axes.minorticks_off()
    labels = ticks.labels
    if which == "x" and is_narrow():
        across = _size_of(axes)[0]
        label = "\n".join(_wrapped(label, across + 0.6, 9))
        every = math.ceil(len(labels) * (text_width(labels) + 0.08) / across) if labels else 1
        labels = [text if at % every == 0 else "" for at, text in enumerate(labels)]
    axes.set(**{f"{which}lim": (ticks.low, ticks.high), f"{which}label": label})
    (axes.set_xticks if which == "x" else axes.set_yticks)(ticks.values, labels)
    if grid:
        axes.grid(axis=which, color=GRID, linewidth=0.6)


# Text around the axes


def text_width(texts: Sequence[str], size: float = 9.0) -> float:
    """Return the approximate width of the longest text in inches, for a font size in points."""

    def advance(letter: str) -> float:
        if letter in "iljI.,:;'|!ftr()[] -":
            return 0.4
        if letter in "mwMW@%" or unicodedata.east_asian_width(letter) in "WF":
            return 1.15
        return 0.72 if letter.isupper() else 0.64

    return max((sum(map(advance, text)) for text in texts), default=0.0) * size / 72


def fitted_name(name: str, room: float, size: float = 9.0) -> str:
    """Cut a name to so many inches.

    >>> fitted_name("a long name", 10.0), fitted_name("a long name", 0.5)
    ('a long name', 'a long…')
    """
    longest = len(name)
    while longest > 2 and text_width([short(name, longest)], size) > room:
        longest -= 1
    return short(name, longest)


def put_key(axes: Axes, entries: Sequence[tuple[Look, str]], room: float | None = None) -> None:
    """Explain above the axes, side by side, how something is drawn and what it means; a figure of ours grows with it.

    Faster than a legend, which is laid out by measuring it. Rows are as long as there is `room`, by default above the
    axes: what is to the right of them has a heading of its own.
    """
    from matplotlib.lines import Line2D

    above, left, level = _inches_from(axes, 0, 1), 0.0, 0.15
    room, rows = room or _size_of(axes)[0] + 0.05, [0]
    for _, meaning in entries:
        long = 0.24 + text_width([meaning], 8.5)
        rows.append(rows[-1] + (left > 0 and left + long > room))
        left = long + 0.06 + (left if rows[-1] == rows[-2] else 0.0)
    left, level = 0.0, level + 0.2 * rows[-1]
    if rows[-1] > 0 and axes.figure.get_label() == OWN:
        _grow(cast("Figure", axes.figure), 0.2 * rows[-1])
    for at, (entry, meaning) in enumerate(entries):
        if rows[at + 1] > rows[at]:
            left, level = 0.0, level - 0.2
        look: Look = {"linestyle": "none", "markevery": [1], "transform": above, "clip_on": False} | entry
        axes.figure.add_artist(Line2D([left + step for step in (0.03, 0.1, 0.17)], [level] * 3, **look))
        text: Look = {"va": "center_baseline", "fontsize": 8.5, "color": INK, "transform": above}
        axes.text(left + 0.24, level, meaning, **text)
        left += 0.3 + text_width([meaning], 8.5)


def _grow(figure: Figure, more: float) -> None:
    """Make room at the top of a figure, in inches; its axes stay as large as they are."""
    wide, high = figure.get_size_inches()
    for axes in figure.axes:
        left, bottom, across, along = axes.get_position().bounds
        axes.set_position((left, bottom * high / (high + more), across, along * high / (high + more)))
    figure.set_size_inches(wide, high + more)


def put_remark(axes: Axes, *lines: str) -> None:
    """Write a remark above the axes: the first of several lines in ink, the lines below it softly."""
    above, place = _inches_from(axes, 0, 1), 0
    for at, line in enumerate(reversed(lines)):
        first = 0 < at == len(lines) - 1
        look: Look = {"fontsize": 9 if first else 8, "color": INK if first else SOFT, "transform": above}
        for part in reversed(_wrapped(line, _room(axes), 8.5) if is_narrow() else [line]):
            axes.text(0, 0.1 + place * 0.165, part, **look)
            place += 1


def _room(axes: Axes) -> float:
    """Return how far it is from the left of the axes to the right edge of the figure, in inches."""
    return float((axes.figure.bbox.width - axes.bbox.x0) / axes.figure.dpi) - 0.1


def _wrapped(text: str, room: float, size: float) -> list[str]:
    """Break a text into lines of at most a width in inches, between words."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines.append("")
        for word in line.split(" "):
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and text_width([longer], size) > room:
                longer = word
                lines.append("")
            lines[-1] = longer
    return lines


def _inches_from(axes: Axes, along: float, up: float) -> Transform:
    """Return coordinates in inches from a corner of the axes, wherever a layout moves them."""
    from matplotlib.transforms import ScaledTranslation

    return axes.figure.dpi_scale_trans + ScaledTranslation(along, up, cast("Any", axes.transAxes))


def _size_of(axes: Axes) -> tuple[float, float]:
    """Return the width and height of the axes in inches."""
    return axes.bbox.width / axes.figure.dpi, axes.bbox.height / axes.figure.dpi


def put_demonstration(axes: Axes, demonstrations: Sequence[str], which: int) -> None:
    """Write which demonstration is drawn, where there are several."""
    if len(demonstrations) > 1:
        name = f'{noun_of(demonstrations)} "{short(demonstrations[which])}", {which + 1:,} of {len(demonstrations):,}'
        if text_width([name], 7.5) + text_width([axes.get_xlabel()]) / 2 > _size_of(axes)[0] / 2:
            name = f'"{short(demonstrations[which], 16)}", {which + 1:,} of {len(demonstrations):,}'
            axes.set_xlabel(axes.get_xlabel(), loc="left")
        look: Look = {"fontsize": 7.5, "color": SOFT, "transform": _inches_from(axes, 1, 0)}
        axes.text(0, -0.42, name, ha="right", **look)


# Curves, each named where it ends


def curve_frame(
    along: Ticks, up: Ticks, labels: tuple[str, str], names: Sequence[str], *, height: float = 3.6, top: float = 0.4,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:  # fmt: skip
    """Return a figure for curves: both scales, and room on the right for the names of the curves."""
    left = 0.45 + 0.15 * labels[1].count("\n") + text_width(up.labels)
    figure, axes = frame(height, left=left, right=0.4 + text_width(names), top=top, ax=ax)
    put_scale(axes, "x", along, labels[0])
    put_scale(axes, "y", up, labels[1])
    return figure, axes


def evenly(ranked: Any, most: int = len(LINES)) -> NDArray[np.intp]:
    """Choose at most some members of a ranking, evenly, the first and the last among them."""
    members = np.asarray(ranked, np.intp)
    places = np.linspace(0, members.size - 1, min(members.size, most)).round().astype(np.intp)
    return members[np.unique(places)]


def lines_of(shown: Sequence[int] | NDArray[np.intp], arms: int) -> tuple[Line, ...]:
    """Return the line of each arm that is drawn: where there are enough, an arm has the same one in every figure."""
    return tuple(LINES[arm] for arm in shown) if arms <= len(LINES) else LINES[: len(shown)]


def label_ends(axes: Axes, heights: Numbers, names: Sequence[str], lines: Sequence[Line] = LINES) -> None:
    """Name curves to the right of the axes, where they end; names that would overlap move, each with a leader.

    `heights` are the curves' last values; a curve that ends in NaN is not named. `lines` are those of the curves.
    """
    known = np.flatnonzero(np.isfinite(heights))
    if known.size == 0:
        return
    across, height = _size_of(axes)
    ends = axes.transAxes.inverted().transform(axes.transData.transform([(1, heights[at]) for at in known]))[:, 1]
    ends = np.clip(ends, 0.0, 1.0)
    places = spread(ends, LINE_HEIGHT / height, 0.0, 1.0)
    for at, end, place in zip(known.tolist(), ends, places, strict=True):
        look: Look = {"color": lines[at].colour, "linewidth": 1.2, "transform": axes.transAxes, "clip_on": False}
        leader = [1.0, 1.0 + 0.05 / across, 1.0 + 0.17 / across, 1.0 + 0.22 / across]
        axes.plot(leader, [end, end, place, place], **look)
        axes.text(1.0 + 0.26 / across, place, names[at], transform=axes.transAxes, va="center_baseline", color=INK)


def spread(wanted: Numbers, apart: float, low: float, high: float) -> Numbers:
    """Move places as little as possible so that any two are `apart`, all between `low` and `high` if they fit."""
    order = np.argsort(wanted, kind="stable")
    steps = apart * np.arange(wanted.size)
    slack = wanted[order].astype(np.float64) - steps
    # Isotonic regression: neighbours that overlap are pooled at their average.
    pools: list[tuple[float, int]] = []
    for value in slack:
        pools.append((float(value), 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (first, few), (second, more) = pools[-2:]
            pools[-2:] = [((first * few + second * more) / (few + more), few + more)]
    moved = np.concatenate([np.full(count, value) for value, count in pools])
    moved = np.clip(moved, low, max(high - float(steps[-1]), low))
    result = np.empty(wanted.size, np.float64)
    result[order] = moved + steps
    return result


# One row per arm


class RowLayout:
    """Figure with one row per arm: names on the left, a number on the right, and the axes between them."""

    def __init__(
        self, names: Sequence[str], numbers: Sequence[str], heading: str, *, row_height: float = 0.235,
        named: Callable[[str], str] = arm_name, ax: Axes | None = None,
    ) -> None:  # fmt: skip
        top, bottom = 0.42, 0.5
        shown = [named(name) for name in names]
        places = evenly(range(len(shown)), MOST_NAMED_ROWS).tolist()
        inside = row_height * max(len(places), 1) * (1.0 if len(places) == len(shown) else 1.1)
        left = 0.2 + text_width([shown[place] for place in places])
        right = 0.2 + text_width([heading, *(numbers[place] for place in places)], 8)
        self.figure: Figure
        self.axes: Axes
        self._ax = ax
        self.figure, self.axes = frame(inside + top + bottom, left=left, right=right, top=top, bottom=bottom, ax=ax)
        self.count = len(shown)
        room, inside = _size_of(self.axes)
        self._points_per_row = 72 * inside / max(len(shown), 1)
        self.axes.set_ylim(len(shown) - 0.5, -0.5)
        self.axes.set_yticks([])
        across = self.axes.get_yaxis_transform()
        for place in places:
            look: Look = {"transform": across, "va": "center_baseline"}
            self.axes.text(-0.08 / room, place, shown[place], ha="right", **look)
            self.axes.text(1 + 0.1 / room, place, numbers[place], fontsize=8, color=SOFT, **look)
        head: Look = {"transform": self.axes.transAxes, "va": "bottom", "fontsize": 8, "color": SOFT}
        self.axes.text(1 + 0.1 / room, 1 + 0.1 / inside, heading, **head)

    @property
    def drawn(self) -> Any:
        """Return the figure; or the axes, where these were given."""
        return self.figure if self._ax is None else self.axes

    def size(self, usual: float) -> float:
        """Return the size of a marker or line in points, smaller where there are many rows."""
        return usual * float(min(1.0, np.sqrt(self._points_per_row / 12)))


def draw_bars(axes: Axes, places: NDArray[Any], low: Numbers | float, high: Numbers | float, **look: Any) -> None:
    """Draw one horizontal bar per place, all as one line with gaps, which keeps files small."""
    if places.size == 0:
        return
    gaps = np.full(places.size, np.nan)
    along = np.column_stack([np.broadcast_to(low, places.shape), np.broadcast_to(high, places.shape), gaps])
    heights = np.column_stack([places, places, gaps])
    axes.plot(along.reshape(-1), heights.reshape(-1), **({"solid_capstyle": "butt"} | look))
