"""Which column plays which role."""

from __future__ import annotations

import polars as pl
import pytest

from unbandit import ActionLog
from unbandit.errors import LogError, ParameterError, phrase, shell_option
from unbandit.log.reader import ALIASES, REWARDS, ROLES, find_columns


@pytest.mark.parametrize(("role", "alias"), [(role, alias) for role in ROLES for alias in sorted(ALIASES[role])])
def test_every_alias_is_recognised_in_any_dress(role: str, alias: str) -> None:
    for name in (alias, alias.upper(), f" {alias[:1]}_{alias[1:]} ", f"{alias[:1]}-{alias[1:]}"):
        names = [name] if role == "arm" else ["arm", name]
        assert find_columns(names, None)[role] == len(names) - 1


def test_no_alias_has_two_roles() -> None:
    everything = [alias for role in ROLES for alias in ALIASES[role]] + sorted(REWARDS) + list(ROLES)
    assert len(everything) == len(set(everything))


def test_the_role_s_own_name_goes_before_aliases() -> None:
    assert find_columns(["choice", "arm", "t", "round"], None) == {"arm": 1, "round": 3}
    assert find_columns(["Arm", "arm"], None) == {"arm": 1}


def test_named_columns_go_before_recognised_ones() -> None:
    assert find_columns(["arm", "picked"], {"arm": "picked"}) == {"arm": 1}
    assert find_columns(["arm", "t", "who"], {"round": "who", "demonstration": "t"}) == {
        "arm": 0,
        "demonstration": 1,
        "round": 2,
    }
    assert find_columns(["Picked One"], {"arm": "picked_one"}) == {"arm": 0}


def test_rounds_make_a_log_of_choices_unless_pulls_are_named() -> None:
    names = ["arm", "round", "n"]
    assert find_columns(names, None) == {"arm": 0, "round": 1}
    assert find_columns(names, {"pulls": "n"}) == {"arm": 0, "pulls": 2}


@pytest.mark.parametrize(
    ("names", "columns", "column", "words"),
    [
        (["x", "y"], None, "arm", "the table has \"x\", \"y\".*columns={'arm': 'NAME'}"),
        (["values"], None, "arm", "columns={'arm': 'NAME'}"),
        (["arm", "x", "arm"], None, "arm", "twice. Rename or remove"),
        (["arm ", "arm"], None, "arm", "twice. Rename or remove"),
        (["choice", "action"], None, "action", "\"choice\" and \"action\".*columns={'arm': 'choice'}"),
        (["arm", "trial", "time"], None, "time", "\"trial\" and \"time\".*columns={'round': 'trial'}"),
        (["arm", "x"], {"round": "nowhere"}, "nowhere", "the table has \"arm\", \"x\".*columns={'round': 'NAME'}"),
    ],
)
def test_what_cannot_be_told_is_refused(
    names: list[str], columns: dict[str, str] | None, column: str, words: str
) -> None:
    with pytest.raises(LogError, match=words) as caught:
        find_columns(names, columns)
    assert caught.value.column == column


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"action": "x"}, "arm, demonstration, round, pulls"),
        ({"arm": "x", "round": "x"}, "arm and round"),
        ({"round": "x", "pulls": "y"}, "Leave one out"),
        ({"arm": ""}, "name of a column for arm"),
    ],
)
def test_roles_are_checked(columns: dict[str, str], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        find_columns(["x", "y"], columns)


def test_rewards_are_read_where_one_column_has_their_name() -> None:
    assert find_columns(["arm", "payoff"], None) == {"arm": 0, "reward": 1}
    assert find_columns(["arm", "payoff", "reward"], None) == {"arm": 0, "reward": 2}
    assert find_columns(["arm", "payoff", "outcome"], None) == {"arm": 0}
    assert find_columns(["arm", "payoff", "outcome"], {"reward": "outcome"}) == {"arm": 0, "reward": 2}
    assert find_columns(["arm", "reward"], {"reward": ""}) == {"arm": 0}
    assert find_columns(["arm", "gain", "loss"], None) == {"arm": 0}


def test_only_unused_rewards_are_spoken_of() -> None:
    def notices(**columns: object) -> list[str]:
        return [phrase(notice.text, shell_option) for notice in ActionLog.from_frame(pl.DataFrame(columns)).reading]

    ignored = 'column "Gain" is ignored: if it holds the rewards, say so with --columns reward=Gain.'
    assert notices(arm=["A", "B"], Gain=[1, 2], round=[1, 2], age=[7, 8]) == [ignored]
    assert ignored not in notices(arm=["A", "B"], reward=[1, 2])
    assert ActionLog.from_frame(pl.DataFrame({"arm": ["A", "B"], "gain": [1, 2]}), columns={"reward": ""}).notices == ()


def test_many_columns_are_listed_shortened() -> None:
    with pytest.raises(LogError, match=r'"c10", \.\.\., "c39"\.'):
        find_columns([f"c{number}" for number in range(40)], None)
