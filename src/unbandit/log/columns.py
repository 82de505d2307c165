"""The columns of a table: which plays which role, by its name or as the user says.

A table needs a column `arm`; `demonstration`, `round` and `reward` are read when they are there, and `arm` with `pulls`
instead of rounds is a table of counts. People call these columns many things, so each role has aliases. Where nothing
numbers the rounds, times put them in order.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import polars as pl

from unbandit import checks
from unbandit.errors import LogError, Notice, ParameterError, option
from unbandit.log.labels import Refuse, is_number, listed
from unbandit.log.rewards import TRUTHS
from unbandit.log.sources import Columns

MOST_ABOVE = 30  # lines among which the names of columns are looked for
NO_ARM = 'expected a column "arm"'
"""How the refusal of a table without a column of arms begins."""

ROLES = ("arm", "demonstration", "round", "pulls", "reward")

# Names are written the way `_folded` leaves them: small letters and digits only.
ALIASES: Mapping[str, frozenset[str]] = {
    role: frozenset(words.split())
    for role, words in {
        "arm": "arms armid armindex armname armno armnumber action actions actionid choice choices chosen chosenarm "
        "chosenoption option optionid variant variantid variantname bandit decision decisions lever machine deck "
        "treatment pull pulled pulledarm selected selectedarm selection",
        "demonstration": "demonstrations demonstrationid demo demoid subject subjects subjectid subj subjid sub "
        "participant participantid user userid session sessionid run runs runid episode episodeid player playerid "
        "trajectory trajectoryid replicate replication id",
        "round": "rounds roundid roundno roundnumber trial trials trialid trialindex trialno trialnumber t time "
        "timestep step stepno stepnumber index iteration iterations iter period tick",
        "pulls": "npulls numpulls numberofpulls pullcount pullcounts count counts n plays nplays playcount impressions "
        "visits visitcount visitors visitorcount uniquevisitors timespulled frequency freq",
        "reward": "rewards rewardvalue observedreward r outcome outcomes payoff payoffs payout payouts",
    }.items()
}

# Words at the end of a column's name that say nothing of what it numbers, and what is abbreviated.
_NUMBERS = {"id", "ids", "pid", "no", "nr", "num", "number", "index", "code", "name", "key"}
_IN_FULL = {"subj": "subject", "sub": "subject", "prolific": "participant", "people": "person", "mice": "mouse"}
_IN_FULL |= {"rats": "rat", "services": "service", "hosts": "host", "servers": "server"}
_IN_FULL |= dict.fromkeys(("demo", "pid", "uid", "sid", "who", "i"), "")

# Perhaps rewards, perhaps a part of them or their opposite: read only where the user says so.
REWARDS = {"gain", "gains", "loss", "losses", "return", "returns", "score", "scores", "points", "win", "wins"}
REWARDS |= {"feedback", "regret", "click", "clicked", "labelcost"}

# Perhaps counts of choices; a log of rounds beside them is doubtful.
COUNTS = {"users", "uniqueusers", "views", "pageviews", "exposures", "exposed", "sessions", "customers", "people"}
COUNTS |= {"participants", "size", "samples", "samplesize", "observations", "obs", "nobs", "total", "totals", "trials"}
COUNTS |= {"rounds", "iterations", "attempts", "tests", "draws", "uses", "shown", "displays", "requests", "traffic"}
COUNTS |= {"audience", "hits", "votes"}

# Times, which put rounds in order where nothing numbers them.
TIMES = {"timestamp", "timestamps", "timestamputc", "timestampms", "ts", "datetime", "datetimeutc", "date", "dates"}
TIMES |= {"when", "created", "createdat", "eventtime", "eventtimestamp", "eventtimeutc", "eventdate", "servedat"}
TIMES |= {"shownat", "assignedat", "assignmenttime", "loggedat", "occurredat", "requesttime", "requesttimestamp"}
TIMES |= {"servertime", "servertimestamp", "unixtime", "unixtimestamp", "utctime"}

# What products and libraries call them: read where no column has a name of those above.
SELDOM: Mapping[str, set[str]] = {
    "arm": {"item", "itemid", "caption", "variation", "variationid", "variationname", "labelaction"},
    "round": TIMES,
}

_DATES = {"date", "dates", "day", "eventdate", "datum", "tag"}
_CLOCKS = {"time", "times", "timeofday", "clock", "clocktime", "eventtime", "uhrzeit", "zeit"}

CHOSEN_NAMES = ("chosen", "ischosen", "waschosen", "selected", "isselected", "picked", "ispicked", "taken", "istaken")
"""What people call the column that marks the chosen offer of a round; small letters only."""

MARKS = TRUTHS | {"yes": 1.0, "no": 0.0}
"""How a mark of the chosen offer is written, besides 1 and 0."""

# Perhaps marks, perhaps rewards or counts: read only where the user says so.
_PERHAPS_MARKS = {*CHOSEN_NAMES, "click", "clicked", "isclicked", "wasclicked", "shown", "isshown", "wasshown"}
_PERHAPS_MARKS |= {"displayed", "isdisplayed", "served", "isserved", "viewed", "label", "winner", "accepted"}

FIRST_ROWS = 1_000  # in which a mark of the chosen offer is looked for

_NO_HEADER = option("header", False)
_REWARD_LIKE = {"reward"} | REWARDS | ALIASES["reward"]
_COUNT_LIKE = {"pulls"} | COUNTS | ALIASES["pulls"]


DEMONSTRATION = "demonstration"  # what one is called that has no better name


class Demonstrations(tuple[str, ...]):
    """Names of demonstrations, and the column that they come from."""

    column: str = ""

    @classmethod
    def of(cls, names: Iterable[str], column: str | None) -> Self:
        """Return names from a column; None where no column names them."""
        made = cls(names)
        made.column = column or ""
        return made


def only(names: Sequence[str], *which: int) -> Demonstrations:
    """Return some of the names, from the same column."""
    return Demonstrations.of([names[at] for at in which], column_of(names))


def column_of(names: Sequence[str]) -> str:
    """Return the column that names come from, "" if none."""
    return getattr(names, "column", "")


def noun_of(names: Sequence[str]) -> str:
    """Return what demonstrations are called, by the column of their names.

    >>> [noun_of(Demonstrations.of("7", column)) for column in ("Subject_ID", "userid", "Runs", "bus no.", "id", "a+b")]
    ['subject', 'user', 'run', 'bus', 'demonstration', 'demonstration']
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[^\w+]|[_\d]", " ", column_of(names)).casefold().split()
    while words and words[-1] in _NUMBERS:
        words.pop()
    noun = words[0] if len(words) == 1 else ""
    if noun in ALIASES["demonstration"]:
        noun = noun.removesuffix("id")
        noun = noun.removesuffix("s") if noun.removesuffix("s") in ALIASES["demonstration"] else noun
    noun = _IN_FULL.get(noun, noun)
    return noun if noun.isalpha() and noun.isascii() else DEMONSTRATION


def _folded(name: str) -> str:
    """Leave case, spaces, underscores, dashes and characters that nobody sees out of a column's name."""
    return "".join(filter(str.isprintable, re.sub(r"[\s_\-.]+", "", name))).lower()


def is_reward_like(name: str) -> bool:
    """Return whether a column may hold rewards, by its name."""
    return _folded(name) in _REWARD_LIKE


def is_count_like(name: str) -> bool:
    """Return whether a column may hold counts of choices, by its name."""
    return _folded(name) in _COUNT_LIKE


def is_mark_like(name: str) -> bool:
    """Return whether a column may mark the chosen one of several offers, by its name."""
    return _letters(name) in CHOSEN_NAMES


def perhaps_marked(columns: Mapping[str, pl.Series], keys: Sequence[str]) -> tuple[str, str | None] | None:
    """Return a column that may mark the chosen one of several offers, and one whose cells say which belong together.

    `columns` are first rows of those that may, and `keys` the ones that were read as rounds or demonstrations. A mark
    holds ones and zeros; best one for each value of another column, else one that is called like a mark.
    """
    plain = {
        name: column for name, column in columns.items() if not (column.dtype.is_nested() or column.dtype == pl.Object)
    }
    flags = {name: flag for name, column in plain.items() if name not in keys and (flag := _flags(column)) is not None}
    for mark, flag in flags.items():
        for name, column in plain.items():
            if name not in flags:
                runs = pl.DataFrame({"of": column.rle_id(), "mark": flag}).group_by("of").agg(pl.len(), pl.sum("mark"))
                whole = runs.sort("of")[:-1]  # the last one may be cut
                if len(whole) and whole["len"].max() != 1 and (whole["mark"] == 1).all():
                    return mark, name
    named = [name for name in flags if _letters(name) in _PERHAPS_MARKS]
    return (named[0], None) if named else None


def _letters(name: str) -> str:
    return "".join(filter(str.isalpha, name.lower()))


def _flags(column: pl.Series) -> pl.Series | None:
    """Return a column of marks as ones and zeros; None for any other column."""
    cells = column.cast(pl.String, strict=False).str.strip_chars().str.to_lowercase()
    found = cells.replace_strict({"1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0} | MARKS, default=None)
    return found if found.null_count() == 0 and set(found.unique()) == {0.0, 1.0} else None


def is_time_like(name: str) -> bool:
    """Return whether a column should hold times, by its name."""
    return _folded(name) in TIMES


def date_and_clock(names: Sequence[str]) -> tuple[str, str] | None:
    """Return a column that should hold dates and one that should hold times of day, where no other orders rounds."""
    dates = [name for name in names if _folded(name) in _DATES]
    clocks = [name for name in names if _folded(name) in _CLOCKS]
    ordering = {"round"} | ALIASES["round"] | TIMES | _DATES | _CLOCKS
    others = [name for name in names if _folded(name) in ordering and name not in (*dates, *clocks)]
    return (dates[0], clocks[0]) if len(dates) == len(clocks) == 1 and not others else None


def is_round_like(name: str) -> bool:
    """Return whether a column should hold numbers of rounds, and no times, by its name."""
    return _folded(name) in ({"round"} | ALIASES["round"]) - {"t", "time"}


def may_be_data(name: str) -> bool:
    """Return whether the name of a column is a number or a time, as in a row of data."""
    return is_number(name.strip()) or re.match(r"[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}", name.strip()) is not None


def role_of(name: str) -> str | None:
    """Return the role for which a column of this name would be taken, if any."""
    folded = _folded(name)
    return next((role for role in ROLES if folded in {role, *ALIASES[role], *SELDOM.get(role, ())}), None)


def _check_roles(columns: Columns) -> dict[str, str]:
    """Refuse a role that does not exist, or one column in two roles."""
    if columns is not None and not isinstance(columns, Mapping):
        text = f"expected the column of each role; got {type(columns).__name__}."
        raise ParameterError(text, parameter="columns", value=columns, remedy='Write it as {"arm": "picked"}.')
    named = dict(columns or {})
    for role, name in named.items():
        problem = ""
        same = [other for other in named if name and named[other] == name]
        if role not in ROLES:
            problem = f'expected a role among {", ".join(ROLES)}; got "{role}".{_meant(role, name)}'
        elif len(same) > 1:
            problem = f'expected a column of its own for each role; got "{name}" for {" and ".join(same)}.'
        elif not isinstance(name, str) or (role == "arm" and not name):
            problem = f"expected the name of a column for {role}; got {name!r}."
            if role == "demonstration":
                problem += ' Join the names of several by a plus sign: "subject+block".'
        elif role == "round" and name and named.get("pulls"):
            problem = "expected either round (a log of choices) or pulls (a table of counts); got both. Leave one out."
        if problem:
            raise ParameterError(problem, parameter="columns")
    return named


def _meant(role: object, name: object) -> str:
    """Suggest what was meant by a role that does not exist: a role and a column the wrong way round, or a misprint."""
    if not isinstance(role, str) or not isinstance(name, str):
        return ""
    if name in ROLES:
        return f" The role comes first: write {naming(name, role)}."
    near = role_of(role) or role_of(checks.nearest(_folded(role), [*ROLES, *(set().union(*ALIASES.values()))]) or "")
    return f" Did you mean {naming(near, name)}?" if near else ""


def _like_a(role: str, names: Sequence[str]) -> str | None:
    """Return the column whose name is nearly one that a role goes by."""
    known = {role, *ALIASES[role]}
    return next((name for name in names if checks.nearest(_folded(name), known, 0.8)), None)


def find_columns(names: Sequence[str], columns: Columns, refuse: Refuse = LogError) -> dict[str, tuple[int, ...]]:
    """Return the position of the column that plays each role; of demonstrations, perhaps several that are joined.

    Roles that the user names go before anything recognised here; an empty name says that there is no such column.
    """
    named = _check_roles(columns)
    seen: set[str] = set()
    for name in (name.strip() for name in names):
        if name and name in seen:
            text = f'expected each column once; got "{name}" twice.'
            remedy = "Rename or remove one of the two."
            remedy = f"If the first row is data, read the file with {_NO_HEADER}." if is_number(name) else remedy
            raise refuse(text, column=name, value=name, remedy=remedy)
        seen.add(name)
    found = {role: _positions(role, name, names, refuse) for role, name in named.items() if name != ""}
    taken = [at for places in found.values() for at in places]
    for at in taken:
        if taken.count(at) > 1:
            roles = [role for role, places in found.items() if at in places]
            text = f'expected a column of its own for each role; got "{names[at]}" for {" and ".join(roles)}.'
            if len(roles) == 1:
                text = f'expected each column once; got "{names[at]}" twice for {roles[0]}.'
            raise ParameterError(text, parameter="columns")
    folded = [_folded(name) for name in names]
    for role in ROLES:
        if role not in named:
            position = _recognised(role, names, folded, taken, refuse)
            if position is not None:
                found[role] = (position,)
                taken.append(position)
    if "arm" not in found:
        text = f"{NO_ARM} (or action, choice, option ...). Columns: {_quoted(names)}."
        remedy = f"Say which one holds the arms with {naming('arm')}."
        left = [name for at, name in enumerate(names) if at not in taken and name.strip()]
        if near := _like_a("arm", names) or (left[0] if taken and len(left) == 1 else None):
            remedy = f"Did you mean {naming('arm', near)}?"
        if len(names) == 1 or any(map(may_be_data, names)):
            remedy += f" If the first row is data and not the names of columns, read the file with {_NO_HEADER}."
        remedy = separator_remedy(names) or remedy
        raise refuse(text, column="arm", remedy=remedy)
    # Rounds make it a log of choices, whatever else is counted beside them, unless pulls were asked for by name; times
    # that nobody asked for do not.
    if "round" in found and "pulls" in found:
        is_dated = "round" not in named and is_time_like(names[found["round"][0]])
        del found["round" if named.get("pulls") or is_dated else "pulls"]
    return {role: found[role] for role in ROLES if role in found}


def missing_arm_remedy(remedy: str, rows: Iterable[Sequence[str]], *, has_names: bool) -> str:
    """Say what to do about a table without a column of arms: which of its first rows names the columns, if one does."""
    if not has_names:
        return f"Say which one holds the arms with {naming('arm')}."
    for line, cells in enumerate(rows, 1):
        if line > 1 and any(role_of(cell) == "arm" for cell in cells) and not any(map(may_be_data, cells)):
            return f"Line {line} looks like the names of the columns: remove what stands above it."
    return remedy


def separator_remedy(names: Sequence[str]) -> str | None:
    """Say what to do about a table whose only name has bars, which divide columns elsewhere; None for others."""
    if len(names) != 1 or "|" not in names[0]:
        return None
    return 'Columns are read as separated by commas, semicolons or tabs: replace "|" by one of these.'


def _positions(role: str, name: str, names: Sequence[str], refuse: Refuse) -> tuple[int, ...]:
    """Find the column that the user named, exactly or else up to case and punctuation; or several joined by "+"."""
    for spelling in (str, str.strip, _folded):
        places = [at for at, there in enumerate(names) if spelling(there) == spelling(name) != ""]
        if len(places) == 1:
            return (places[0],)
    parts = name.split("+")
    if len(parts) > 1 and (role == "demonstration" or (role == "round" and len(parts) == 2)):
        if not all(part.strip() for part in parts):
            text = f'expected a column on either side of a plus sign; got "{name}".'
            raise refuse(text, column=name, value=name, remedy=f"Name them with {naming(role, 'NAME+NAME')}.")
        return tuple(at for part in parts for at in _positions(role, part, names, refuse))
    text = f'There is no column "{name}" for {role}. Columns: {_quoted(names)}.'
    near = checks.nearest(name.lower(), [each.lower() for each in names])
    meant = next((each for each in names if each.lower() == near), None)
    remedy = f"Name one of these with {naming(role)}." if meant is None else f"Did you mean {naming(role, meant)}?"
    raise refuse(text, column=name, value=name, remedy=remedy)


def _recognised(
    role: str, names: Sequence[str], folded: Sequence[str], taken: Sequence[int], refuse: Refuse
) -> int | None:
    """Find the column of a role by its own name, else by an alias; refuse to guess between two."""
    free = [at for at in range(len(names)) if at not in taken]
    tiers = (
        [at for at in free if names[at].strip() == role],
        [at for at in free if folded[at] == role],
        [at for at in free if folded[at] in ALIASES[role]],
        [at for at in free if folded[at] in SELDOM.get(role, ())],
    )
    places: list[int] = next(filter(None, tiers), [])
    if role == "arm" and places == tiers[2]:  # a usual name does not tell which of the two was chosen
        places = sorted(places + tiers[3])
    if len(places) > 1 and role != "reward":  # rewards are not needed, so a notice is enough
        first, second = (names[at] for at in places[:2])
        both = " and ".join(f'"{names[at]}"' for at in places)
        remedy = f"Say which one it is with {naming(role, first)}."
        counts = [names[at] for at in places if role == "round" and is_count_like(names[at])]
        if counts:
            remedy += f' If "{counts[0]}" counts choices, say so with {naming("pulls", counts[0])}.'
        raise refuse(f"expected one column for {role}; got {both}.", column=second, value=second, remedy=remedy)
    return places[0] if len(places) == 1 else None


def column_notices(
    names: Sequence[str], found: Mapping[str, tuple[int, ...]], named: Mapping[str, str]
) -> tuple[Notice, ...]:
    """Say which columns were taken for what, where nobody said so and the name alone does not, and which are ignored.

    Of these, that is, the ones that look like rewards or counts, and others that may distinguish people or rounds.
    Rewards that are read have a notice of their own.
    """
    guessed = {role: names[places[0]] for role, places in found.items() if role not in named}
    guessed = {role: name for role, name in guessed.items() if name.strip() != role and role != "reward"}
    notices = list[Notice]()
    if guessed:
        taken = ", ".join(f'"{name}" as {role}' for role, name in guessed.items())
        role = next(iter(sorted(guessed, key=("demonstration", "pulls", "round", "arm").index)))
        remedy = f"To change this, use {naming(role)}"
        remedy += "." if role == "arm" else f" (or {naming(role, '')} if there is none)."
        notices.append(Notice("columns", f"Columns were recognised by name: {taken}. {remedy}"))
    read = {at for places in found.values() for at in places}
    free = [name for at, name in enumerate(names) if at not in read and name.strip()]
    rewards = list(filter(is_reward_like, free))
    counts = list(filter(is_count_like, free))
    others = [name for name in free if name not in rewards and name not in counts]
    if counts and "pulls" not in found and named.get("pulls") != "":
        verb, which = ("is", "it") if len(counts) == 1 else ("are", "one of them")
        text = f"Every row is read as one choice, and {_quoted(counts)} {verb} ignored. If {which} counts choices, "
        notices.append(Notice("columns", f"{text}say so with {naming('pulls', counts[0])}."))
    remedy = "If it contains the rewards, say so with"
    texts = [f'Column "{name}" is ignored. {remedy} {naming("reward", name)}.' for name in rewards]
    if named.get("reward") == "":
        texts = []
    ordered = any(_folded(names[at]) in TIMES for at in found.get("round", ()))  # by times, which several may share
    if others and not {"demonstration", "pulls"} & {*found, *named} and (ordered or "round" not in {*found, *named}):
        verb, which = ("is", "it") if len(others) == 1 else ("are", "one of them")
        texts.append(
            f"All rows are read as one log, in order; {_quoted(others)} {verb} not used. If {which} distinguishes "
            f"people, runs or rounds, say so with {naming('demonstration')} or {naming('round')}."
        )
    return (*notices, *(Notice("reading", text) for text in texts))


def naming(role: str, name: str = "NAME") -> str:
    """Return a reference to the option that names the column of a role."""
    return option("columns", {role: name})


def _quoted(names: Sequence[str]) -> str:
    return listed([f'"{name}"' for name in names])
