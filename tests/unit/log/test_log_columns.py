"""Which column plays which role."""

from __future__ import annotations

import pickle
from pathlib import Path

import polars as pl
import pytest

from unbandit import ActionLog
from unbandit.errors import LogError, ParameterError, phrase, shell_option
from unbandit.log.columns import ALIASES, REWARDS, ROLES, SELDOM, find_columns, noun_of


@pytest.mark.parametrize(("role", "alias"), [(role, alias) for role in ROLES for alias in sorted(ALIASES[role])])
def test_every_alias_is_recognised_in_any_dress(role: str, alias: str) -> None:
    for name in (alias, alias.upper(), f" {alias[:1]}_{alias[1:]} ", f"{alias[:1]}-{alias[1:]}"):
        names = [name] if role == "arm" else ["arm", name]
        assert find_columns(names, None)[role] == (len(names) - 1,)


@pytest.mark.parametrize(("role", "name"), [(role, name) for role in SELDOM for name in sorted(SELDOM[role])])
def test_seldom_names_are_recognised_where_there_is_no_other(role: str, name: str) -> None:
    others = [] if role == "arm" else ["arm"]
    assert find_columns([*others, name], None)[role] == (len(others),)
    usual = {"arm": "choice", "round": "trial"}[role]
    if role == "round":
        assert find_columns([*others, name, usual], None)[role] == (len(others) + 1,)
    assert find_columns([name, "arm"], None)["arm"] == (1,)


@pytest.mark.parametrize("names", [["timestamp", "visitor", "variation", "action"], ["choice", "item_id"]])
def test_a_usual_and_a_seldom_name_may_both_be_the_arm(names: list[str]) -> None:
    with pytest.raises(LogError, match="expected one column for arm; got") as refused:
        find_columns(names, None)
    assert "columns={'arm': '" in str(refused.value)
    assert find_columns(names, {"arm": names[-1]})["arm"] == (len(names) - 1,)


def test_no_alias_has_two_roles() -> None:
    everything = [alias for role in ROLES for alias in ALIASES[role]] + sorted(REWARDS) + list(ROLES)
    everything += [name for names in SELDOM.values() for name in names]
    assert len(everything) == len(set(everything))


def test_the_role_s_own_name_goes_before_aliases() -> None:
    assert find_columns(["choice", "arm", "t", "round"], None) == {"arm": (1,), "round": (3,)}
    assert find_columns(["Arm", "arm"], None) == {"arm": (1,)}


def test_named_columns_go_before_recognised_ones() -> None:
    assert find_columns(["arm", "picked"], {"arm": "picked"}) == {"arm": (1,)}
    assert find_columns(["arm", "t", "who"], {"round": "who", "demonstration": "t"}) == {
        "arm": (0,),
        "demonstration": (1,),
        "round": (2,),
    }
    assert find_columns(["Picked One"], {"arm": "picked_one"}) == {"arm": (0,)}


def test_rounds_make_a_log_of_choices_unless_pulls_are_named() -> None:
    names = ["arm", "round", "n"]
    assert find_columns(names, None) == {"arm": (0,), "round": (1,)}
    assert find_columns(names, {"pulls": "n"}) == {"arm": (0,), "pulls": (2,)}


@pytest.mark.parametrize(
    ("names", "columns", "column", "words"),
    [
        (["x", "y"], None, "arm", "Columns: \"x\", \"y\".*columns={'arm': 'NAME'}"),
        (["values"], None, "arm", "columns={'arm': 'NAME'}"),
        (["arm", "x", "arm"], None, "arm", "twice. Rename or remove"),
        (["arm ", "arm"], None, "arm", "twice. Rename or remove"),
        (["choice", "action"], None, "action", "\"choice\" and \"action\".*columns={'arm': 'choice'}"),
        (["arm", "trial", "time"], None, "time", "\"trial\" and \"time\".*columns={'round': 'trial'}"),
        (["arm", "x"], {"round": "nowhere"}, "nowhere", "Columns: \"arm\", \"x\".*columns={'round': 'NAME'}"),
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
    assert find_columns(["arm", "payoff"], None) == {"arm": (0,), "reward": (1,)}
    assert find_columns(["arm", "payoff", "reward"], None) == {"arm": (0,), "reward": (2,)}
    assert find_columns(["arm", "payoff", "outcome"], None) == {"arm": (0,)}
    assert find_columns(["arm", "payoff", "outcome"], {"reward": "outcome"}) == {"arm": (0,), "reward": (2,)}
    assert find_columns(["arm", "reward"], {"reward": ""}) == {"arm": (0,)}
    assert find_columns(["arm", "gain", "loss"], None) == {"arm": (0,)}


def test_only_unused_rewards_are_spoken_of() -> None:
    def notices(**columns: object) -> list[str]:
        return [phrase(notice.text, shell_option) for notice in ActionLog.from_frame(pl.DataFrame(columns)).reading]

    ignored = 'Column "Gain" is ignored. If it contains the rewards, say so with --columns reward=Gain.'
    assert notices(arm=["A", "B"], Gain=[1, 2], round=[1, 2], age=[7, 8]) == [ignored]
    assert ignored not in notices(arm=["A", "B"], reward=[1, 2])
    assert ActionLog.from_frame(pl.DataFrame({"arm": ["A", "B"], "gain": [1, 2]}), columns={"reward": ""}).notices == ()


def test_of_rows_in_the_order_of_times_columns_that_are_not_used_are_named():
    times = ["2026-05-01 10:00", "2026-05-01 10:00", "2026-05-01 10:10"]
    table = {"timestamp": times, "service": ["mail", "search", "mail"], "arm": ["A", "B", "A"]}
    (said,) = [each.text for each in ActionLog.from_frame(pl.DataFrame(table)).reading if each.code == "reading"]
    assert said.startswith('All rows are read as one log, in order; "service" is not used.')


def test_many_columns_are_listed_shortened() -> None:
    with pytest.raises(LogError, match=r'"c10", \.\.\., "c39"\.'):
        find_columns([f"c{number}" for number in range(40)], None)


def notices(table: dict[str, list[object]], **options: object) -> tuple[str, ...]:
    return ActionLog.from_frame(pl.DataFrame(table), **options).notices  # type: ignore[arg-type]


def test_one_line_says_which_columns_were_taken_for_what() -> None:
    table: dict[str, list[object]] = {"user": [1, 1, 2], "Choice": ["A", "B", "A"], "trial": [1, 2, 1]}
    assert notices(table) == (
        'Columns were recognised by name: "Choice" as arm, "user" as demonstration, "trial" as round. To change this, '
        "use columns={'demonstration': 'NAME'} (or columns={'demonstration': ''} if there is none).",
    )
    named = {"arm": "Choice", "demonstration": "user", "round": "trial"}
    assert notices(table, columns=named) == ()
    assert notices(table, columns={"arm": "Choice", "demonstration": "user"}) == (
        "Columns were recognised by name: \"trial\" as round. To change this, use columns={'round': 'NAME'} (or "
        "columns={'round': ''} if there is none).",
    )
    assert notices({"arm": ["A", "B"], "round": [1, 2], "demonstration": [1, 1]}) == ()


def test_rewards_that_nobody_named_are_spoken_of() -> None:
    (text,) = notices({"arm": ["A", "B", "A"], "observed_reward": [1.5, None, 0.0]})
    assert text.startswith('Column "observed_reward" has a reward in 2 of 3 rows.')
    assert text.endswith("If it contains something else, say so with columns={'reward': ''}.")
    (text,) = notices({"arm": ["A", "B", "A"], "reward": [1.5, None, 0.0]})
    assert "something else" not in text


def test_demonstrations_by_several_columns() -> None:
    table = {"subject": ["x", "x", "x", "y"], "block": [1, 2, 2, 1], "arm": ["A", "A", "B", "B"]}
    log = ActionLog.from_frame(pl.DataFrame(table), columns={"demonstration": "subject+block"})
    assert (log.demonstrations, log.lengths.tolist()) == (("x+1", "x+2", "y+1"), [1, 2, 1])
    literal = ActionLog.from_frame(pl.DataFrame(table | {"subject+block": [1, 1, 1, 1]}), columns={
        "demonstration": "subject+block",
    })  # fmt: skip
    assert literal.demonstrations == ("1",)


def test_joined_names_are_never_the_same_for_different_rows() -> None:
    table = {"a": ["x+y", "x", "x\\"], "b": ["z", "y+z", "y+z"], "arm": ["A", "B", "A"]}
    log = ActionLog.from_frame(pl.DataFrame(table), columns={"demonstration": "a+b"})
    assert log.demonstrations == ("x\\+y+z", "x+y\\+z", "x\\\\+y\\+z")


def test_joined_columns_are_scanned_and_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "who,block,t,arm\n"
        + "".join(f"{who},{b},{t},{(t + b) % 2}\n" for who in "xy" for b in (1, 2) for t in (1, 2, 3))
    )
    columns = {"demonstration": "who+block"}
    read, scanned = ActionLog.read(path, columns=columns), ActionLog.scan(path, columns=columns)
    assert scanned.demonstrations == read.demonstrations == ("x+1", "x+2", "y+1", "y+2")
    assert scanned.pulls.tolist() == read.pulls.tolist()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"demonstration": "subject+nowhere"}, 'no column "nowhere" for demonstration'),
        ({"demonstration": "subject+subject"}, 'got "subject" twice for demonstration'),
        ({"demonstration": "subject+"}, 'a column on either side of a plus sign; got "subject+"'),
        ({"demonstration": "+ +subject"}, "a column on either side of a plus sign"),
        ({"demonstration": "subject+-"}, 'no column "-" for demonstration'),
        ({"demonstration": "subject+picked", "arm": "picked"}, '"picked" for demonstration and arm'),
        ({"round": "subject+block+picked"}, 'no column "subject+block+picked" for round'),
        ({"demonstration": ["subject", "block"]}, "Join the names of several by a plus sign"),
    ],
)
def test_joined_columns_that_cannot_be(columns: dict[str, str], words: str) -> None:
    with pytest.raises((LogError, ParameterError)) as caught:
        find_columns(["", "subject", "block", "picked"], columns)
    assert words in str(caught.value)


def test_a_blank_in_one_of_several_columns_is_refused() -> None:
    for blank in (None, "", " ", "NA"):
        table = pl.DataFrame({"a": ["x", "y"], "b": ["z", blank], "arm": ["A", "B"]})
        with pytest.raises(LogError, match=r'row 2, column "b"') as caught:
            ActionLog.from_frame(table, columns={"demonstration": "a+b"})
        assert caught.value.remedy


def test_counts_are_not_read_as_rounds() -> None:
    table = pl.DataFrame({"variant": ["A", "B", "C", "D"], "Visitors": [510, 490, 505, 1201]})
    assert ActionLog.from_frame(table).pulls.tolist() == [[510, 490, 505, 1201]]
    other = table.rename({"Visitors": "audience"})
    with pytest.raises(LogError, match='every arm once, beside numbers in "audience"') as caught:
        ActionLog.from_frame(other)
    assert "columns={'pulls': 'audience'}" in str(caught.value)
    assert ActionLog.from_frame(other, columns={"pulls": "audience"}).pulls.tolist() == [[510, 490, 505, 1201]]
    assert ActionLog.from_frame(other, columns={"pulls": ""}).pulls.tolist() == [[1, 1, 1, 1]]
    # Neither numbers that count the rows nor arms that come again are counts.
    assert ActionLog.from_frame(table.with_columns(Visitors=pl.Series([3, 1, 2, 4])).rename({"Visitors": "x"})).ordered
    assert ActionLog.from_frame(pl.concat([other, other])).ordered


@pytest.mark.parametrize(
    ("labels", "how"),
    [
        (["caf\u00e9", "cafe\u0301"], "spaces, accents or the encoding of letters"),
        (["a b", "a\u00a0b"], "spaces, accents or the encoding of letters"),
        (["a\u200bb", "ab"], "spaces, accents or the encoding of letters"),
        (["Red", "red"], "capitals"),
        (["1.0", "1"], "how a number is written"),
        (["07", "7"], "how a number is written"),
        (["+.5", "5E-1"], "how a number is written"),
        (["1e3", "1E3"], "how a number is written"),
    ],
)
def test_arms_that_look_alike_are_spoken_of(labels: list[str], how: str) -> None:
    log = ActionLog.from_frame(pl.DataFrame({"arm": [*labels, "x"]}))
    assert len(log.arms) == 3
    assert f"differ in {how} only and are read as two" in log.notices[0]
    assert ActionLog.from_actions([*labels, "x"]).notices == log.notices
    assert ActionLog.from_frame(pl.DataFrame({"arm": ["x", "y", "xy"]})).notices == ()
    people = pl.DataFrame({"demonstration": [*labels] * 2, "arm": ["x", "y", "y", "y"]})
    assert f"differ in {how} only and are read as two" in ActionLog.from_frame(people).notices[0]


def test_numbers_that_differ_are_not_spoken_of() -> None:
    for labels in (["10", "100", "0"], ["1.0", "1.5", "v1"], [str(2**53), str(2**53 + 1)], ["1-0", "1"], ["0.1", "01"]):
        assert ActionLog.from_actions(labels).notices == ()


def test_every_pair_that_looks_alike_counts() -> None:
    first, second = ActionLog.from_actions(["Red", "red", "RED", "a\u00e9", "ae\u0301", "B", "b", "C", "c"]).notices
    assert first.startswith(
        'arms "Red" and "red", "Red" and "RED", "B" and "b", and 1 more pair, differ in capitals only'
    )
    assert "read as two each" in first
    assert second.startswith('arms "a\u00e9" and "ae\u0301" differ in spaces, accents')


def test_names_with_characters_that_nobody_sees() -> None:
    log = ActionLog.from_bytes("\u200barm,re\u00adward\nA,1\nB,2\n".encode())
    assert log.notices[0].startswith('Columns were recognised by name: "\\u200barm" as arm.')
    assert "re\\xadward" in log.notices[1]
    with pytest.raises(LogError, match=r'Columns: "a\\u200brms", "a\\xa0b"'):
        ActionLog.from_bytes("a\u200brms,a\u00a0b\nA,1\nB,2\n".encode(), columns={"arm": "x"})


@pytest.mark.parametrize(
    ("names", "columns", "said"),
    [
        (["picked"], {"choise": "picked"}, 'got "choise". Did you mean --columns arm=picked?'),
        (["picked"], {"choice": "picked"}, 'got "choice". Did you mean --columns arm=picked?'),
        (["picked"], {"picked": "arm"}, 'got "picked". The role comes first: write --columns arm=picked.'),
        (["picked", "Trial 1"], {"arm": "pickd"}, "Did you mean --columns arm=picked?"),
        (["picked", "block"], {"arm": "xyz"}, "Name one of these with --columns arm=NAME."),
        (["round", "Choise"], None, "Did you mean --columns arm=Choise?"),
        (["round", "picked"], None, "Did you mean --columns arm=picked?"),
        (["round", "picked", "block"], None, "Say which one holds the arms with --columns arm=NAME."),
    ],
)
def test_a_name_that_is_nearly_right_is_suggested(names, columns, said) -> None:
    with pytest.raises((LogError, ParameterError)) as refused:
        find_columns(names, columns)
    assert said in refused.value.said(shell_option)


def test_a_role_like_no_other_has_no_suggestion() -> None:
    with pytest.raises(ParameterError) as refused:
        find_columns(["arm"], {"xyz": "block"})
    assert refused.value.said(shell_option).endswith('got "xyz".')


def test_names_in_camel_case_are_recognised():
    found = find_columns(["createdAt", "variantName", "userId"], None)
    assert found == {"arm": (1,), "demonstration": (2,), "round": (0,)}


def test_demonstrations_are_called_as_their_column_calls_them(tmp_path):
    rows = b"Subject ID,trial,choice\nana,1,A\nana,2,B\n17,1,B\n17,2,A\n"
    path = tmp_path / "log.csv"
    path.write_bytes(rows)
    log = ActionLog.from_bytes(rows)
    assert log.noun == log.select(1).noun == "subject"
    assert repr(log) == "<ActionLog: 2 subjects, 2 arms, 4 rounds>"
    assert log.demonstrations.column == "Subject ID"
    counts = ActionLog.from_bytes(b"rat,arm,pulls\n1,A,3\n1,B,1\n2,A,2\n2,B,2\n", columns={"demonstration": "rat"})
    assert counts.noun == "rat"
    scanned = ActionLog.scan(path)
    assert noun_of(scanned.demonstrations) == "subject"
    assert ActionLog.from_actions([["A", "B"], ["B", "A"]]).noun == "demonstration"
    again = pickle.loads(pickle.dumps(log))
    assert (again.noun, again.demonstrations) == ("subject", ("ana", "17"))
    with pytest.raises(LogError, match='in subject "17"'):
        ActionLog.from_bytes(rows + b"17,1,A\n")
