"""What is known beside the log: the fields of the form, and the options that they mean."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import Any

from unbandit.log.columns import ROLES
from unbandit.web.fields import Field, FieldErrors, quoted, read_fields

__all__ = ["COLUMNS", "KNOWN", "MORE", "NO_COLUMN", "POOL", "read_columns", "read_options"]

NO_COLUMN = "(none)"
"""What the form says where no column plays a role."""

KNOWN = (
    Field(
        "best_mean",
        "The best arm's value",
        "What one pull of the best arm gave on average, if you know it. Left blank, the answer says how far each arm "
        "lies below the best.",
        kind="number",
    ),
    Field(
        "sigma",
        "Noise of a reward",
        "How far a single result strays from its arm's average: the standard deviation. It sets the length of the "
        "intervals. Left blank, 1 is assumed.",
        kind="number",
        above=0,
    ),
    Field(
        "bernoulli",
        "Every reward was 0 or 1 (no or yes)",
        "Tick this instead of giving the noise: theirs follows from how often they are 1.",
        kind="box",
    ),
)

POOL = Field(
    "pool",
    "Combine all demonstrations",
    "Tick this if the log holds several runs with the same arms. Otherwise each run has an answer of its own.",
    kind="box",
)

MORE = (
    Field(
        "horizon",
        "Planned number of rounds",
        "Only if the log is the beginning of a longer run: how many rounds that run was meant to have.",
        kind="whole",
        at_least=1,
        below=2**63,
    ),
    Field(
        "level",
        "Level of the intervals",
        "How often such an interval shall hold the truth. A higher level gives longer intervals.",
        kind="choice",
        usual="0.95",
        choices=(("0.5", "50%"), ("0.8", "80%"), ("0.9", "90%"), ("0.95", "95%, as usual"), ("0.99", "99%")),
    ),
    Field(
        "method",
        "Method",
        "How values are computed from choices. What fits the rule and the log is chosen for you.",
        kind="choice",
        choices=(
            ("", "what fits, as usual"),
            ("switching", "switching: when the rule turned away from each arm"),
            ("counts", "counts: only how often each arm was pulled"),
            ("posterior", "posterior: follow every hidden reward; slow"),
            ("bootstrap", "bootstrap: intervals by simulating the rule; slow"),
            ("naive", "naive: the simplest guess, to compare with"),
        ),
    ),
    Field(
        "anchor.arm",
        "One known arm",
        "Instead of the best arm's value: the name of any arm whose average you know.",
    ),
    Field("anchor.value", "The known arm's value", "What one pull of that arm gave on average.", kind="number"),
    Field(
        "scale",
        "Scale of the rule's width",
        "If nobody knows the factor of the rule's width, gaps are known only as multiples of each other.",
        kind="choice",
        usual="known",
        choices=(("known", "known, as usual"), ("unknown", "unknown: give ratios of gaps")),
    ),
    Field(
        "seed",
        "Seed",
        "Only for methods that draw random numbers: the same seed gives the same answer again.",
        kind="whole",
        at_least=0,
        below=2**63,
    ),
)

COLUMNS = {
    "arm": ("Arm", "Which option was chosen."),
    "demonstration": ("Demonstration", "Which run, person or session the row belongs to."),
    "round": ("Round", "The number of the round. Without it, rows are taken in their order."),
    "pulls": ("Pulls", "How often the arm was chosen, in a table of final counts."),
    "reward": ("Reward", "What came out, where it is known. It is used by the method posterior only."),
}


def read_options(form: Mapping[str, str]) -> dict[str, Any]:
    """Return what is known beside the log, as `estimate` takes it; what was left blank is left out.

    Examples
    --------
    >>> read_options({"best_mean": "1", "sigma": "0.5", "level": "0.95", "anchor.arm": ""})
    {'best_mean': 1.0, 'sigma': 0.5, 'level': 0.95}
    """
    given, errors = read_fields((*KNOWN, POOL, *MORE), form)
    arm, value = given.pop("anchor.arm", None), given.pop("anchor.value", None)
    errors |= _contradictions(given, arm, value, errors)
    if errors:
        raise FieldErrors(errors)
    if "level" in given:
        given["level"] = float(given["level"])
    if arm is not None:
        given["anchor"] = {arm: value}
    return {key: value for key, value in given.items() if value is not False and (key, value) != ("scale", "known")}


def _contradictions(
    given: Mapping[str, Any], arm: str | None, value: float | None, errors: Mapping[str, str]
) -> dict[str, str]:
    """Say which choices exclude each other."""
    found = {}
    if given.get("bernoulli") and "sigma" in given:
        found["sigma"] = "Expected no noise for rewards of 0 or 1; leave it blank, or take the tick away."
    if arm is not None and value is None and "anchor.value" not in errors:
        found["anchor.value"] = f"Expected the value of the arm {quoted(arm)}; got none."
    if arm is None and value is not None:
        found["anchor.arm"] = "Expected the name of the arm that has this value; got none."
    if "best_mean" in given and (arm is not None or value is not None):
        found["anchor.arm"] = "Expected the best arm's value or one known arm, not both; leave one of the two blank."
    if given.get("scale") == "unknown" and ("best_mean" in given or arm is not None):
        found["scale"] = "Where the scale is unknown no value follows from another; leave the known values blank."
    if given.get("bernoulli"):
        for name, number in (("best_mean", given.get("best_mean")), ("anchor.value", value)):
            if number is not None and not 0 <= number <= 1:
                found[name] = f"Expected a number from 0 to 1 for rewards of 0 or 1; got {number:g}."
    return found


def read_columns(form: Mapping[str, str]) -> tuple[dict[str, str] | None, list[str] | None]:
    """Return the columns that were named, and all the arms if they were listed.

    Examples
    --------
    >>> read_columns({"column.arm": "picked", "column.round": "(none)", "arms": 'A, "B, large"'})
    ({'arm': 'picked', 'round': ''}, ['A', 'B, large'])
    >>> read_columns({})
    (None, None)
    """
    errors: dict[str, str] = {}
    named: dict[str, str] = {}
    for role in ROLES:
        column = form.get(f"column.{role}", "")
        if not column.strip():
            continue
        if column == NO_COLUMN:
            column = ""
        if column in named.values() and column:
            errors[f"column.{role}"] = f"Expected a column of its own for each role; got {quoted(column)} twice."
        named[role] = column
    if named.get("arm") == "":
        errors["column.arm"] = "Expected the column that holds the arms; got none."
    if named.get("round") and named.get("pulls"):
        errors["column.pulls"] = "Expected either rounds or pulls, not both: a log of choices or a table of counts."
    arms = _arms(form.get("arms", ""), errors)
    if errors:
        raise FieldErrors(errors)
    return named or None, arms


def _arms(text: str, errors: dict[str, str]) -> list[str] | None:
    """Read `A,B,C`; a name with a comma in it is put in double quotes; lines count as commas."""
    if not text.strip():
        return None
    try:
        rows = list(csv.reader(text.strip().splitlines(), skipinitialspace=True))
    except csv.Error:
        rows = [[""]]
    names = [name.strip() for row in rows for name in row]
    if not all(names):
        errors["arms"] = f"Expected names between commas, as in A, B, C; got {quoted(text.strip())}."
        return None
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None) if len(names) < 10_000 else None
    if twice is not None:
        errors["arms"] = f"Expected different names; got {quoted(twice)} twice."
    return names
