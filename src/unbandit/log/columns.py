"""Which column of a table plays which role.

A table needs a column `arm`; `demonstration`, `round` and `reward` are read when they are there, and `arm` with
`pulls` instead of rounds is a table of counts. People call these columns many things, so each role has aliases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from unbandit.errors import LogError, Notice, ParameterError, option
from unbandit.log.labels import listed

ROLES = ("arm", "demonstration", "round", "pulls", "reward")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Written the way `_folded` leaves a name: small letters and digits only.
ALIASES: Mapping[str, frozenset[str]] = {
    "arm": _words(
        "arms armid armindex armname armno armnumber action actions actionid choice choices chosen chosenarm "
        "chosenoption option optionid variant variantid bandit decision decisions lever machine deck treatment pull "
        "pulled pulledarm selected selectedarm selection"
    ),
    "demonstration": _words(
        "demonstrations demonstrationid demo demoid subject subjects subjectid subj subjid sub participant "
        "participantid user userid session sessionid run runs runid episode episodeid player playerid trajectory "
        "trajectoryid replicate replication id"
    ),
    "round": _words(
        "rounds roundid roundno roundnumber trial trials trialid trialindex trialno trialnumber t time timestep step "
        "stepno stepnumber index iteration iterations iter period tick"
    ),
    "pulls": _words(
        "npulls numpulls numberofpulls pullcount pullcounts count counts n plays nplays playcount impressions visits "
        "visitcount timespulled frequency freq"
    ),
    "reward": _words("rewards rewardvalue observedreward r outcome outcomes payoff payoffs payout payouts"),
}

# Perhaps rewards, perhaps a part of them or their opposite: read only where the user says so.
REWARDS = _words("gain gains loss losses return returns score scores points win wins feedback regret")

REWARD_LIKE = {"reward", *REWARDS, *ALIASES["reward"]}

Refuse = Callable[..., LogError]


def _folded(name: str) -> str:
    """Leave case, spaces, underscores and dashes out of a column's name."""
    return re.sub(r"[\s_\-.]+", "", name).lower()


def check_roles(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Refuse a role that does not exist, or one column in two roles.

    Examples
    --------
    >>> check_roles({"arm": "picked"})
    {'arm': 'picked'}
    """
    named = dict(columns or {})
    for role in named:
        if role not in ROLES:
            raise ParameterError(f'expected a role among {", ".join(ROLES)}; got "{role}".', parameter="columns")
    for role, name in named.items():
        twice = [other for other in named if named[other] == name and name != ""]
        if len(twice) > 1:
            raise ParameterError(
                f'expected a column of its own for each role; got "{name}" for {" and ".join(twice)}.',
                parameter="columns",
            )
        if name == "" and role != "arm":
            continue
        if not isinstance(name, str) or not name:
            raise ParameterError(f"expected the name of a column for {role}; got {name!r}.", parameter="columns")
    if named.get("round") and named.get("pulls"):
        raise ParameterError(
            "expected either round (a log of choices) or pulls (a table of counts); got both. Leave one out.",
            parameter="columns",
        )
    return named


def find_columns(names: Sequence[str], columns: Mapping[str, str] | None, refuse: Refuse = LogError) -> dict[str, int]:
    """Return the position of the column that plays each role.

    Parameters
    ----------
    names
        The table's columns, in order.
    columns
        Roles named by the user; they go before anything recognised here. An empty name: there is no such column.
    refuse
        Makes the error, knowing which file this is.

    Examples
    --------
    >>> find_columns(["subjID", "Trial", "choice", "gain"], None)
    {'arm': 2, 'demonstration': 0, 'round': 1}
    """
    named = check_roles(columns)
    _refuse_repeated(names, refuse)
    found = {role: _position(role, name, names, refuse) for role, name in named.items() if name != ""}
    folded = [_folded(name) for name in names]
    for role in ROLES:
        if role not in named:
            position = _recognised(role, names, folded, set(found.values()), refuse)
            if position is not None:
                found[role] = position
    if "arm" not in found:
        raise refuse(
            f'expected a column "arm" (or action, choice, option ...); the table has {_quoted(names)}.',
            column="arm",
            remedy=f"Say which one holds the arms with {_naming('arm')}.",
        )
    # Rounds make it a log of choices, whatever else is counted beside them, unless pulls were asked for by name.
    if "round" in found and "pulls" in found:
        del found["round" if named.get("pulls") else "pulls"]
    return {role: found[role] for role in ROLES if role in found}


def reward_notices(names: Sequence[str], found: Mapping[str, int]) -> tuple[Notice, ...]:
    """Say which columns look like rewards and are ignored."""
    taken = found.values()
    ignored = [name for at, name in enumerate(names) if at not in taken and _folded(name) in REWARD_LIKE]
    remedy = "if it holds the rewards, say so with"
    return tuple(
        Notice("reading", f'column "{name}" is ignored: {remedy} {_naming("reward", name)}.') for name in ignored
    )


def unread_notices(names: Sequence[str], found: Mapping[str, int], named: Mapping[str, str]) -> tuple[Notice, ...]:
    """Say which columns are ignored where one of them may distinguish people or rounds."""
    free = [name for at, name in enumerate(names) if at not in found.values() and name.strip()]
    unread = [name for name in free if _folded(name) not in REWARD_LIKE]
    if not unread or {"demonstration", "round", "pulls"} & {*found, *named}:
        return ()
    verb, which = ("is", "it") if len(unread) == 1 else ("are", "one of them")
    text = (
        f"all rows are read as one record, in order; not read {verb} {_quoted(unread)}. If {which} distinguishes "
        f"people, runs or rounds, say so with {_naming('demonstration')} or {_naming('round')}."
    )
    return (Notice("reading", text),)


def _naming(role: str, name: str = "NAME") -> str:
    """Return a reference to the option that names the column of a role."""
    return option("columns", {role: name})


def _quoted(names: Sequence[str]) -> str:
    return listed([f'"{name}"' for name in names], separator=", ")


def _refuse_repeated(names: Sequence[str], refuse: Refuse) -> None:
    seen: set[str] = set()
    for name in (name.strip() for name in names):
        if name and name in seen:
            raise refuse(
                f'expected each column once; got "{name}" twice.',
                column=name,
                value=name,
                remedy="Rename or remove one of the two.",
            )
        seen.add(name)


def _position(role: str, name: str, names: Sequence[str], refuse: Refuse) -> int:
    """Find the column that the user named, exactly or else up to case and punctuation."""
    for spelling in (str, str.strip, _folded):
        places = [at for at, there in enumerate(names) if spelling(there) == spelling(name)]
        if len(places) == 1:
            return places[0]
    raise refuse(
        f'expected a column "{name}" for {role}; the table has {_quoted(names)}.',
        column=name,
        value=name,
        remedy=f"Name one of these with {_naming(role)}.",
    )


def _recognised(role: str, names: Sequence[str], folded: Sequence[str], taken: set[int], refuse: Refuse) -> int | None:
    """Find the column of a role by its own name, else by an alias; refuse to guess between two."""
    free = [at for at in range(len(names)) if at not in taken]
    tiers = (
        [at for at in free if names[at].strip() == role],
        [at for at in free if folded[at] == role],
        [at for at in free if folded[at] in ALIASES[role]],
    )
    for places in tiers:
        if len(places) > 1 and role == "reward":
            return None  # not needed, so a notice is enough
        if len(places) > 1:
            both = " and ".join(f'"{names[at]}"' for at in places)
            raise refuse(
                f"expected one column for {role}; got {both}.",
                column=names[places[1]],
                value=names[places[1]],
                remedy=f"Say which one it is with {_naming(role, names[places[0]])}.",
            )
        if places:
            return places[0]
    return None
