"""Whole numbers and times: what the cells of rounds and of counts say.

Rounds are numbered, or their times put them in order; the first cell of their column decides which.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.errors import LogError, Notice
from unbandit.formatting import counted
from unbandit.log.columns import is_round_like, is_time_like, naming
from unbandit.log.labels import Integers, Refuse, is_number, missing_remedy, refuse_missing

GROUPED = r"^[+-]?[1-9][0-9]{0,2}([.,'\u{a0}\u{202f} ][0-9]{3})+$"
"""A number whose mark may separate thousands or, if it has only one, decimals."""

_ISO_DATE = r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}/[0-9]{2}/[0-9]{2}|[0-9]{8})"
_FRACTION = "(?:[.,](?P<fraction>[0-9]{1,9}))?"  # of a second
_ISO_CLOCK = f"(?P<hour>[0-9]{{2}}):?(?P<minute>[0-9]{{2}})(?::?(?P<second>[0-9]{{2}}){_FRACTION})?"
_CLOCK = f"(?P<hour>[0-9]{{1,2}}):(?P<minute>[0-9]{{2}})(?::(?P<second>[0-9]{{2}}){_FRACTION})?"
_BLANK = "[ \u00a0\u202f]?"
_HALF = rf"{_BLANK}(?P<half>[AaPp])\.?{_BLANK}[Mm]\.?"
_ZONE = r"(?: ?(?P<zone>Z|z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?"
_DAY_PART, _MONTH_PART, _YEAR = "(?P<day>[0-9]{1,2})", "(?P<month>[0-9]{1,2})", "(?P<year>[0-9]{4})"
_MONTHS = (
    "jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?", "july?", "aug(?:ust)?",
    "sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?",
)  # fmt: skip
_MONTH_NAME = rf"(?P<month>(?i:{'|'.join(_MONTHS)}))\.?"
_WEEKDAY = "(?:(?i:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?i:day)?,? )?"
_DAY_NUMBER = rf"{_DAY_PART}(?:st|nd|rd|th|\.)?"
_DAY_AND_NAME = f"{_WEEKDAY}{_DAY_NUMBER}[ -]{_MONTH_NAME},?[ -]{_YEAR}"
_NAME_AND_DAY = f"{_WEEKDAY}{_MONTH_NAME} {_DAY_NUMBER},? {_YEAR}"
_DOTTED = rf"{_DAY_PART}\.{_MONTH_PART}\.{_YEAR}"
_MAY_BE_DATE = rf"([0-9]{{1,2}})[/. -]+([0-9]{{1,2}}|(?i:{'|'.join(_MONTHS)}))[/. -]+([0-9]{{2}}|[0-9]{{4}})([ T,].*)?"

_TIME_OF_DAY = f"{_CLOCK}(?:{_HALF})?{_ZONE}"

# How dates and times are written, by what is said of it: an order of day and month, if not ISO 8601.
_STYLES = {
    "": f"{_ISO_DATE}(?:[T ]{_ISO_CLOCK}{_ZONE})?",
    ", on a 12-hour clock": f"{_ISO_DATE}[T ]{_CLOCK}{_HALF}{_ZONE}",
    ", the month by name": f"{_DAY_AND_NAME}(?:,? (?:at )?{_CLOCK}{_ZONE})?",
    ", the month by name on a 12-hour clock": f"{_DAY_AND_NAME},? (?:at )?{_CLOCK}{_HALF}{_ZONE}",
    ", the month by name before the day": f"{_NAME_AND_DAY}(?:,? (?:at )?{_CLOCK}{_ZONE})?",
    ", the month by name before the day on a 12-hour clock": f"{_NAME_AND_DAY},? (?:at )?{_CLOCK}{_HALF}{_ZONE}",
    ", the month by name and the year at the end": f"{_WEEKDAY}{_MONTH_NAME} +{_DAY_PART} {_CLOCK}{_ZONE} {_YEAR}",
    ", as web servers write them": rf"\[?{_DAY_PART}/{_MONTH_NAME}/{_YEAR}:{_CLOCK}{_ZONE}\]?",
    ", day.month.year": f"{_DOTTED}(?:,?[T ]{_CLOCK}{_ZONE})?",
    ", day.month.year on a 12-hour clock": f"{_DOTTED},? {_CLOCK}{_HALF}{_ZONE}",
}
for _between in "/-":  # one column, one separator: two may come from two programs with different orders
    for _first, _second in (("day", "month"), ("month", "day")):
        _parts = {"day": _DAY_PART, "month": _MONTH_PART}
        _date = f"{_parts[_first]}{_between}{_parts[_second]}{_between}{_YEAR}"
        _said = f", {_first}{_between}{_second}{_between}year"
        _STYLES[_said] = f"{_date}(?:,?[T ]{_CLOCK}{_ZONE})?"
        _STYLES[f"{_said} on a 12-hour clock"] = f"{_date},? {_CLOCK}{_HALF}{_ZONE}"
_SECOND, DAY = 10**9, 86_400 * 10**9  # in nanoseconds, as all times are here
_EARLIEST, _END = 10**17, 1 << 62  # in the years 1973 and 2116: where numbers are times since 1970, and where times end
_NO_ROUNDS = 10**18  # in the year 2001; as many seconds are more than anyone's rounds
_DATES, _LOCAL, _ZONED = "dates", "dates and times without a zone", "dates and times with a zone"
_EXCEL, _EXCEL_1970 = "days as Excel counts them", 25_569
_PLAIN = "numbers"  # in a column whose name says that it holds times
_SINCE_1970 = {"seconds since 1970": _SECOND, "milliseconds since 1970": 10**6, "microseconds since 1970": 10**3}
_SINCE_1970 |= {"nanoseconds since 1970": 1}
_UNITS = _SINCE_1970 | {_EXCEL: DAY, _PLAIN: 10**6}

Truths = NDArray[np.bool_]


class Moment(NamedTuple):
    """A date, or a date and time: nanoseconds since 1970, where a date begins; and how it is written."""

    time: int
    form: str

    @property
    def is_day(self) -> bool:
        """Return whether it is a date alone."""
        return self.form == _DATES

    @property
    def ends(self) -> int:
        """Return the last nanosecond that it means."""
        return self.time + (DAY - 1 if self.is_day else 0)


class LogTimes(NamedTuple):
    """The times of a log's rows, in nanoseconds and in order, and how they are written."""

    times: Integers
    form: str

    @property
    def has_zone(self) -> bool:
        """Return whether these are the same moments everywhere."""
        return _kind(self.form) == _ZONED or self.since_1970

    @property
    def is_plain(self) -> bool:
        """Return whether they are numbers of which nobody knows the unit."""
        return self.form == _PLAIN

    @property
    def has_days_alone(self) -> bool:
        """Return whether they are dates."""
        return _kind(self.form) == _DATES

    @property
    def since_1970(self) -> bool:
        """Return whether they are numbers, of seconds or smaller units since 1970."""
        return self.form in _SINCE_1970

    def compares(self, moment: Moment) -> bool:
        """Return whether a moment stands before or after each of them: dates do everywhere, as days in UTC."""
        if moment.is_day:
            return self.form != _PLAIN
        if moment.form == _LOCAL:
            return _kind(self.form) in (_LOCAL, _EXCEL)
        return self.has_zone

    def rows_before(self, moment: Moment, *, included: bool = False) -> int:
        """Return how many rows come before a moment, those of the moment, or of its day, `included` or not."""
        after = (DAY if moment.is_day else 1) if included else 0
        return int(np.searchsorted(self.times, moment.time + after))


def moment_of(text: str, like: str = "") -> Moment | None:
    """Read a date, or a date and time, in ISO 8601, `like` those of a log, or as numbers since 1970; None for others.

    Examples
    --------
    >>> moment_of("2026-05-31"), moment_of("31.5.2026"), moment_of("1780236202").form
    (Moment(time=1780185600000000000, form='dates'), None, 'seconds since 1970')
    """
    cell = pl.Series([text.strip()])
    for style in {_style(like), _style(like).removesuffix(" on a 12-hour clock")} & {*_STYLES} - {""}:
        time, written = (each[0] for each in _written_times(cell, style))
        if written:
            return Moment(time, _kind(written))
    form = "" if re.fullmatch("[0-9]{8}", cell[0]) else RoundColumn("first")._form_of(cell)
    if form in ("", _PLAIN, _EXCEL) or _style(form):
        return None
    column = RoundColumn("first", form)
    times, is_right = column._numbers(cell) if form in _UNITS else column._dates(cell)
    return Moment(int(times[0]), form) if is_right[0] else None


def trend_of_times(column: pl.Series) -> int:
    """Return whether cells are times that run along the rows (1) or against them (-1); 0 for any others."""
    times = times_in(column)
    return 0 if times is None else _trend(times)


def times_in(column: pl.Series) -> Integers | None:
    """Return cells as times in nanoseconds; None unless all of them are times for sure."""
    cells = column
    if cells.dtype == pl.Object or not len(cells) or cells.null_count():
        return None
    if cells.dtype in (pl.Date, pl.Datetime):  # some of which are no times in Python
        return cells.to_physical().to_numpy()
    if cells.dtype != pl.String and not cells.dtype.is_numeric():
        return None
    reader = RoundColumn(column.name)
    form = reader._form_of(cells)
    if form in ("", _PLAIN, _EXCEL):
        return None
    reader.form, cells = form, cells.cast(pl.String).str.strip_chars() if cells.dtype == pl.String else cells
    times, is_right = reader._numbers(cells) if form in _UNITS else reader._dates(cells)
    return times if is_right.all() else None


def are_dates_with_clocks(dates: pl.Series, clocks: pl.Series) -> bool:
    """Return whether cells of two columns are dates and times of day for sure."""
    if pl.Object in (dates.dtype, clocks.dtype) or dates.dtype.is_nested() or not len(dates):
        return False
    whole = _day_cells(dates)
    form = RoundColumn("date")._form_of(whole) if not whole.null_count() else ""
    is_date = _kind(form) == _DATES or (form == _LOCAL and len(_styles_of(str(whole[0]).strip())) > 1)
    return is_date and bool(_clock_cells(clocks).str.contains(f"^{_TIME_OF_DAY}$").fill_null(False).all())


def joined_times(refuse: Refuse, dates: pl.Series, clocks: pl.Series) -> pl.Series:
    """Return dates with their times of day as text; refuse cells that are no times of day. Either may come first."""
    if any(re.fullmatch(_TIME_OF_DAY, cell or "") for cell in _clock_cells(dates.head(1)).to_list()):
        dates, clocks = clocks, dates
    cells = _clock_cells(clocks)
    wrong = (~cells.str.contains(f"^{_TIME_OF_DAY}$")).fill_null(False)
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        text = f'expected a time of day such as 14:03:22; got "{cells[row]}".'
        remedy = (
            f"Two columns are read together only if they hold dates and times of day: name one with {naming('round')}."
        )
        raise refuse(text, row=row + 1, column=clocks.name, value=cells[row], remedy=remedy)
    return _day_cells(dates) + " " + cells


def _day_cells(column: pl.Series) -> pl.Series:
    """Return dates as text; null where there is none."""
    if isinstance(column.dtype, pl.Datetime) and (column == column.dt.truncate("1d")).all():
        column = column.dt.date()
    return _filled(column)


def _clock_cells(column: pl.Series) -> pl.Series:
    """Return times of day as text, with two digits for the hour; null where there is none."""
    return _filled(column).str.replace("^([0-9]):", "0${1}:")


def _filled(column: pl.Series) -> pl.Series:
    cells = column.cast(pl.String, strict=False).str.strip_chars()
    return cells.set(cells == "", None)


def _are_no_rounds(numbers: pl.Series, unit: int) -> bool:
    """Return whether numbers in a column of rounds are times since 1970: all after 2001, and not consecutive."""
    is_late = not numbers.null_count() and (numbers * unit >= _NO_ROUNDS).all()
    return bool(is_late and (numbers.diff(null_behavior="drop") != 1).any())


def _trend(times: Integers) -> int:
    """Return whether numbers grow (1) or fall (-1), but for equal ones; 0 if they do neither."""
    later, earlier = bool((times[1:] > times[:-1]).any()), bool((times[1:] < times[:-1]).any())
    return later - earlier


class RoundColumn:
    """Column by which the rows of a demonstration are in order, read batch by batch: round numbers, or times.

    `form` is how times are written, "" for round numbers, None before the first row. The first cell decides, and cells
    of another form are refused. Times are read as nanoseconds, since 1970 where that is known.
    """

    def __init__(self, name: str, form: str | None = None) -> None:
        self.name, self.form, self._has_begun = name, form, form is not None

    def read(self, refuse: Refuse, column: pl.Series) -> Integers:
        """Return the next rounds or times; refuse cells that are neither, or not what the first one was."""
        refuse_missing(refuse, column, self.name, "round")
        if self.form is None:
            self._refuse_clock(refuse, column)
            self.form = self._form_of(column)
        if not self.form:
            return whole_numbers(refuse, column, self.name, "round")
        if column.dtype == pl.String or isinstance(column.dtype, pl.Categorical | pl.Enum):
            column = column.cast(pl.String).str.strip_chars()
        times, is_right = self._numbers(column) if self.form in _UNITS else self._dates(column)
        if not is_right.all():
            raise self._refusal(refuse, column, int(np.argmin(is_right)))
        self._has_begun = True
        return times

    def _form_of(self, column: pl.Series) -> str:
        """Return how times are written, by the first cell; "" for round numbers, and for what is neither.

        Where a cell does not say which part is the month, all of these rows do: in one of both orders more are dates.
        Numbers of a column of times are days as Excel counts them only if all of these rows may be, and no numbers at
        all where days and times since 1970 are mixed.
        """
        form, value = _form_of_type(column.dtype), str(column[0]).strip()
        if form or not value:
            return form
        if not is_number(value):
            styles = _styles_of(value)
            return _form_in_style(column, styles) or (
                _LOCAL
                if styles or "+" in self.name or is_time_like(self.name) or re.fullmatch(_MAY_BE_DATE, value)
                else ""
            )
        number = float(value)
        units = (form for form, size in _SINCE_1970.items() if _EARLIEST <= number * size < _END)
        form, numbers = next(units, ""), column.cast(pl.Float64, strict=False)
        if form and is_round_like(self.name):
            return form if _are_no_rounds(numbers, _SINCE_1970[form]) else ""
        if form or not is_time_like(self.name):
            return form
        numbers = numbers.drop_nulls().drop_nans()
        may_be_days = ((numbers - _EXCEL_1970) * DAY).is_between(0, _END, closed="left")
        is_mixed = may_be_days[0] and bool((numbers * _SECOND >= _EARLIEST).any())
        return _EXCEL if may_be_days.all() or is_mixed else _PLAIN

    def _refuse_clock(self, refuse: Refuse, column: pl.Series) -> None:
        """Refuse times of day without a date, as the first cell may be one."""
        value = str(column[0]).strip()
        if column.dtype in (pl.String, pl.Time) and re.fullmatch(_TIME_OF_DAY, value):
            text = f'expected the number of a round, or a date with its time; got "{value}", a time of day alone.'
            remedy = f"If another column has the dates, join the two with {naming('round', f'DATE+{self.name}')}. If "
            remedy += f"there is none, and the first choice comes first, ignore the column with {naming('round', '')}."
            raise refuse(text, row=1, column=self.name, value=value, remedy=remedy)

    def _numbers(self, column: pl.Series) -> tuple[Integers, Truths]:
        """Return times that are written as numbers, and which cells are such."""
        assert self.form is not None
        size, least = _UNITS[self.form], _EARLIEST if self.form in _SINCE_1970 else 0
        if not (column.dtype == pl.String or column.dtype.is_numeric()):
            return np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
        values = column.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
        values = (values - _EXCEL_1970 if self.form == _EXCEL else values) * size
        is_right = (values >= least) & (values < _END)
        if is_right.all() and column.dtype.is_decimal():  # exactly: seconds with a fraction do not fit in a float
            whole = column.cast(pl.Int64)
            fraction = (column - whole.cast(column.dtype)).cast(pl.Float64).to_numpy()
            since = whole.to_numpy() - (_EXCEL_1970 if self.form == _EXCEL else 0)
            return since * size + np.rint(fraction * size).astype(np.int64), is_right
        if is_right.all() and self.form != _EXCEL and (column.dtype == pl.String or column.dtype.is_integer()):
            whole = column.cast(pl.Int64, strict=False)
            if not whole.null_count():
                return whole.to_numpy() * size, is_right
        # To the microsecond, which is as fine as a number with a fraction can be.
        return np.rint(np.where(is_right, values, 0.0) / 1000).astype(np.int64) * 1000, is_right

    def _dates(self, column: pl.Series) -> tuple[Integers, Truths]:
        """Return dates and times, and which cells are such and written in the form of the first."""
        kind = column.dtype
        if kind == pl.String:
            assert self.form is not None
            times, forms = _written_times(column, _style(self.form))
            is_right = forms == self.form
        elif isinstance(kind, pl.Date | pl.Datetime):
            is_fine = isinstance(kind, pl.Datetime) and kind.time_unit == "ns"
            is_right = column.dt.year().is_between(1970, 2115) & (_form_of_type(kind) == self.form)
            times = column.dt.epoch("ns" if is_fine else "us") * (1 if is_fine else 1000)
        else:
            return np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
        return times.fill_null(0).to_numpy(), (is_right & times.is_between(0, _END - 1)).fill_null(False).to_numpy()

    def _refusal(self, refuse: Refuse, column: pl.Series, row: int) -> LogError:
        """Return the error for a cell that is no time, or one of another form than those before it."""
        value = str(column[row])
        form = _written_times(pl.Series([value]), _style(self.form or ""))[1][0] or _form_of_type(column.dtype)
        expected = (
            f"{self.form}, as in the rows before" if row or self._has_begun else "a time such as 2026-05-31T14:03:22Z"
        )
        if form == self.form:
            expected = "a time in the years 1970 to 2115"
        got = f'"{value}"'
        remedy, parts = "Write all times in one form, such as ISO 8601 with a zone", re.fullmatch(_MAY_BE_DATE, value)
        if parts and len(parts[3]) == 2:
            got += ", whose year has two digits"
            remedy = "Write the year first, with four digits, as in 2026-05-31"
        elif parts and not _style(self.form or ""):
            readings = [each for each in _styles_of(value) if _written_times(pl.Series([value]), each)[1][0]]
            if readings:
                is_open = len(readings) > 1
                got += ", in which either number may be the day" if is_open else ""
                got += "" if is_open else ", and other rows have day and month in the other order"
                remedy = "Write the year first, as in 2026-05-31 or 2026-05-31T14:03:22Z"
        remedy += f". If another column numbers the rounds, name it with {naming('round')}. If none does, the rows are "
        remedy += f"complete, and the first choice comes first, keep the order of the file with {naming('round', '')}."
        return refuse(f"expected {expected}; got {got}.", row=row + 1, column=self.name, value=value, remedy=remedy)

    def written(self, time: int) -> str:
        """Write a time, which is in nanoseconds, in the form of the column."""
        if self.form in _UNITS:
            return f"{time / _UNITS[self.form] + (_EXCEL_1970 if self.form == _EXCEL else 0):.15g}"
        text = str(np.datetime64(time, "ns")).rstrip("0").rstrip(".")
        kind = _kind(self.form or "")
        return text[:10] if kind == _DATES else text + ("Z" if kind == _ZONED else "")

    def notice(self, ties: int, *, backward: int = 0, newest_first: bool = False) -> Notice:
        """Say that times order the rounds: how many rows share one, and what had to be put in order.

        `backward` counts the rows that were earlier than the one before them in the file.
        """
        text = f'rounds are in the order of the times in "{self.name}", read as {self.form}'
        if newest_first:
            text += "; the log is newest first and was sorted"
        elif backward:
            text += f"; {counted(backward, 'row')} came after a later one, so the log was sorted"
        if ties:
            share = counted(ties, "row shares its time with the row before, and keeps", "rows share their time with ")
            text += f"; {share}{'' if ties == 1 else 'the row before, and keep'} the order of the file"
        text += "."
        if backward and not newest_first and _kind(self.form or "") == _LOCAL:
            text += " Check that no clock was set back: times without a zone do not show it."
        return Notice("times", text, count=ties)


def _form_of_type(kind: pl.DataType) -> str:
    """Return the form of times that a type holds; "" if it holds none."""
    if isinstance(kind, pl.Datetime):
        return _LOCAL if kind.time_zone is None else _ZONED
    return _DATES if kind == pl.Date else ""


def _kind(form: str) -> str:
    """Return whether times have a day alone, and whether they have a zone, however they are written."""
    return form.partition(",")[0]


def _style(form: str) -> str:
    """Return how dates and times are written, "" for ISO 8601."""
    return "".join(form.partition(",")[1:])


def _styles_of(value: str) -> list[str]:
    """Return how a date or time may be written."""
    return [style for style, pattern in _STYLES.items() if re.fullmatch(pattern, value)]


def _form_in_style(cells: pl.Series, styles: Sequence[str]) -> str:
    """Return the form of the first cell in that one of several styles in which most cells are times; "" if in none."""
    cells = (cells[:1] if len(styles) == 1 else cells).cast(pl.String).str.strip_chars() if styles else cells
    forms = [_written_times(cells, style)[1] for style in styles]
    counts = [form.count() for form in forms]
    best = [form for form, count in zip(forms, counts, strict=True) if count == max(counts)]
    return (best[0][0] or "") if len(best) == 1 else ""


def _written_times(cells: pl.Series, style: str) -> tuple[pl.Series, pl.Series]:
    """Return times that are written in a style, and the form of each; null where a cell is no such time."""
    found = cells.str.extract_groups(f"^{_STYLES[style]}$").struct.unnest()
    none = pl.repeat(None, len(cells), dtype=pl.String, eager=True)
    names = ("date", "year", "month", "day", "hour", "minute", "second", "fraction", "half", "zone")
    part = {name: found[name] if name in found.columns else none for name in names}
    date = part["date"].str.replace_all("[-/]", "")
    if "date" not in found.columns:
        numbers = {name[:3]: f"{at:02}" for at, name in enumerate(_MONTHS, 1)}
        month = part["month"].str.to_lowercase().str.slice(0, 3).replace(numbers).str.zfill(2)
        date = part["year"] + month + part["day"].str.zfill(2)
    days = date.str.to_date("%Y%m%d", strict=False).cast(pl.Int64)
    hours, minutes, seconds = (part[name].cast(pl.Int64).fill_null(0) for name in ("hour", "minute", "second"))
    is_time = days.is_not_null() & (hours < 24) & (minutes < 60) & (seconds <= 60)
    if "half" in found.columns:
        is_time &= hours <= 12  # 0 is 12: some count from 0 to 11
        hours = hours % 12 + 12 * (part["half"].str.to_lowercase() == "p").fill_null(False).cast(pl.Int64)
    nanoseconds = part["fraction"].str.pad_end(9, "0").cast(pl.Int64).fill_null(0)
    digits = part["zone"].str.replace_all("[^0-9+-]", "").fill_null("")
    ahead = digits.str.slice(1, 2).cast(pl.Int64, strict=False).fill_null(0) * 60
    ahead += digits.str.slice(3, 2).cast(pl.Int64, strict=False).fill_null(0)
    ahead *= 1 - 2 * digits.str.starts_with("-").cast(pl.Int64)
    is_time &= ahead.abs() <= 14 * 60
    times = days * DAY + ((hours * 60 + minutes - ahead) * 60 + seconds) * _SECOND + nanoseconds
    frame = pl.DataFrame({"times": times, "hour": part["hour"], "zone": part["zone"], "is_time": is_time})
    with_time = pl.when(pl.col("zone").is_null()).then(pl.lit(_LOCAL + style)).otherwise(pl.lit(_ZONED + style))
    form = pl.when(pl.col("hour").is_null()).then(pl.lit(_DATES + style)).otherwise(with_time)
    frame = frame.select(times=pl.when("is_time").then("times"), form=pl.when("is_time").then(form))
    return frame["times"], frame["form"]


def whole_numbers(refuse: Refuse, column: pl.Series, name: str, role: str) -> Integers:
    """Return a column of whole numbers; refuse everything else."""
    refuse_missing(refuse, column, name, role)
    kind = column.dtype
    if isinstance(kind, pl.Categorical | pl.Enum):
        column = column.cast(pl.String)
    if kind.is_integer() and (kind != pl.UInt64 or int(column.max()) < 1 << 63):  # type: ignore[arg-type]
        return column.cast(pl.Int64).to_numpy()
    if not (column.dtype == pl.String or kind.is_numeric()):
        text = f"expected whole numbers for {role}; got a column of type {kind}."
        raise refuse(text, column=name, remedy=f"Name another column with {naming(role)}, or leave this one out.")
    cells = column
    if column.dtype == pl.String:
        whole = column.cast(pl.Int64, strict=False)
        if whole.null_count():
            cells = column.str.strip_chars()
            whole = cells.cast(pl.Int64, strict=False)
        if not whole.null_count():
            return whole.to_numpy()
        if role == "pulls":
            _refuse_grouped(refuse, cells, name)
    # Not integers throughout: "3.0" and 3.0 are whole as well.
    values = cells.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    wrong = ~(np.isfinite(values) & (np.abs(values) < 1 << 53))
    wrong |= np.where(wrong, 0.0, values) % 1 != 0
    if wrong.any():
        row = int(np.argmax(wrong))
        value = column[row]
        got = str(value) if not isinstance(value, str) else f'"{value}"' if value.strip() else "a blank cell"
        text = f"expected a whole number for {role}; got {got}."
        raise refuse(text, row=row + 1, column=name, value=value, remedy=missing_remedy(role, "Correct it"))
    return values.astype(np.int64)


def _refuse_grouped(refuse: Refuse, cells: pl.Series, name: str) -> None:
    """Refuse counts such as "1.000": one, or a thousand?"""
    grouped = cells.str.contains(GROUPED).arg_true()
    if len(grouped):
        row = int(grouped[0])
        value = str(cells[row])
        first, *others = re.split("[^0-9+-]", value)
        text = f'expected a count in digits only; got "{value}", whose mark may separate thousands or decimals.'
        remedy = f"Write it as {first}{''.join(others)}" + (f" or as {first}" if others == ["000"] else "")
        raise refuse(text, row=row + 1, column=name, value=value, remedy=f"{remedy}, and other counts likewise.")
