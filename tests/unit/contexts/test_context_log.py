"""Logs with contexts: both forms are read like plain logs, and what is wrong in them is refused with its row."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import unbandit as ub
from unbandit.contexts.result import estimate_contexts
from unbandit.contexts.table import collect_contexts
from unbandit.log.frames import FrameSource

LONG = """round,arm,chosen,price,age
1,A,0,3.0,31
1,B,1,2.0,31
2,C,1,2.5,52
2,A,0,4.0,52
3,A,0,1.0,47
3,B,0,1.5,47
3,C,1,2.0,47
"""
WIDE = "arm,age,income\nA,31,1.5\nB,52,2.5\nA,47,2.0\n"


def read(text, features=("price", "age"), **options):
    return ub.ContextLog.from_bytes(text.encode(), features=list(features), name="log.csv", **options)


def test_the_long_form():
    log = read(LONG)
    assert repr(log) == "<ContextLog: 1 demonstration, 3 rounds, 3 arms, 2 features>"
    assert log.offsets.tolist() == [0, 2, 4, 7]
    assert log.chosen.tolist() == [1, 0, 2]
    assert [log.arms[code] for code in log.codes] == ["A", "B", "C", "A", "A", "B", "C"]
    assert log.features[log.rows].tolist() == [[2.0, 31], [2.5, 52], [2.0, 47]]
    assert (log.feature_names, log.starts.tolist()) == (("price", "age"), [0, 3])
    assert log.pulls.tolist() == [[0, 1, 2]]


def test_rows_may_be_in_any_order():
    lines = LONG.splitlines()
    mixed = "\n".join([lines[0], *lines[:0:-1]])
    log, expected = read(mixed, arms="ABC"), read(LONG, arms="ABC")
    assert log.actions.tolist() == expected.actions.tolist()
    assert log.features[log.rows].tolist() == expected.features[expected.rows].tolist()


def test_the_wide_form_offers_every_arm_in_every_round():
    log = read(WIDE, ["age", "income"], arms=["A", "B", "C"])
    assert log.chosen.tolist() == [0, 1, 0]
    assert log.offsets.tolist() == [0, 3, 6, 9]
    assert log.features[::3].tolist() == [[31, 1.5], [52, 2.5], [47, 2.0]]
    assert log.codes.tolist() == [0, 1, 2] * 3


def test_tables_of_other_kinds(tmp_path):
    frame = pl.read_csv(LONG.encode())
    expected = read(LONG)
    frame.write_parquet(tmp_path / "log.parquet")
    for table in (frame, frame.lazy(), frame.to_pandas(), tmp_path / "log.parquet"):
        assert ub.ContextLog.read(table, features=["price", "age"]) == expected
    for features in (("price", "age"), np.array(["price", "age"]), frame.to_pandas().columns[3:]):
        assert ub.ContextLog.read(frame, features=features) == expected
    expected.write(tmp_path / "again.csv")
    assert ub.ContextLog.read(tmp_path / "again.csv", features=["price", "age"]) == expected


def test_demonstrations_rewards_and_decimal_commas():
    text = "subject;t;option;chosen;x;reward\n"
    text += "a;0;P;1;0,5;1,5\na;0;Q;0;0,25;\nb;0;P;0;1,5;\nb;0;Q;1;2,5;\n"
    text += "a;1;P;1;0,5;\na;1;Q;0;1;\nb;1;P;1;1;\nb;1;Q;0;1;\n"
    log = read(text, ["x"])
    assert (log.demonstrations, log.starts.tolist()) == (("a", "b"), [0, 2, 4])
    assert log.features[log.rows].ravel().tolist() == [0.5, 0.5, 2.5, 1.0]
    assert np.isnan(log.rewards).tolist() == [False, True, True, True]
    assert log.rewards[0] == 1.5
    assert any("1 of 4 rewards" in notice for notice in log.notices)
    assert log.select(1).chosen.tolist() == [1, 0]
    assert log.select(1).rewards is None
    again = ub.ContextLog.read(log.to_frame(), features=["x"])
    assert again == log


def test_a_column_that_may_be_a_feature_is_named():
    (notice,) = read(LONG, ["price"]).notices
    assert notice == 'column "age" is not read: if the learner used it, name it with features too.'
    assert read(LONG).notices == ()
    (notice,) = read(LONG.replace("age", "click"), ["price"]).notices
    assert notice.endswith(""" If "click" holds the rewards, say so with columns={'reward': 'click'}.""")


def test_rows_that_may_be_offers_are_not_read_as_rounds_in_silence(tmp_path):
    """A click may mark the chosen offer or be a reward, so it is asked about wherever it decides what a row is."""
    clicks = LONG.replace("round", "impression_id").replace("chosen", "clicked")
    naming = "columns={'chosen': 'clicked', 'round': 'impression_id'}"
    log = read(clicks)
    assert [notice.code for notice in log.reading].count("rows-as-rounds") == 1
    assert any(
        f'If a row is an offer, and "clicked" marks the chosen one, say so with {naming}.' in each
        for each in log.notices
    )
    for refuse in (lambda: estimate_contexts(log, "linucb", sigma=1.0), lambda: ub.LinUCB().design(log)):
        with pytest.raises(ub.NotIdentifiable, match="every row is read as a round") as refused:
            refuse()
        assert naming in str(refused.value)
        assert "If each row is a round, take a model with parameters for each arm: disjoint=true" in str(refused.value)
    assert read(clicks, columns={"chosen": "clicked", "round": "impression_id"}) == read(LONG)
    flagged = read(clicks.replace("clicked", "flag"))  # not by its name: it marks one row of every impression
    assert any("'chosen': 'flag', 'round': 'impression_id'" in each for each in flagged.notices)
    with pytest.raises(ub.LogError, match=r"each round once.*say so with columns=\{'chosen': 'clicked'\}"):
        read(LONG.replace("chosen", "clicked"))
    (tmp_path / "log.csv").write_text(
        WIDE.replace("income", "clicked").replace("1.5", "0").replace("2.5", "1").replace("2.0", "0")
    )
    wide = ub.ContextLog.read(tmp_path / "log.csv", features=["age"])
    assert any("{'chosen': 'clicked', 'round': 'NAME'}" in each for each in wide.notices)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (WIDE, {}),  # numbers other than 0 and 1
        (WIDE.replace("income", "clicked"), {}),
        (LONG.replace("round", "visit").replace("chosen", "clicked"), {"columns": {"chosen": ""}}),  # it was said
        ("arm,age,member\nA,31,1\nB,52,1\nA,47,1\n", {}),  # marks nothing
        ("arm,age,member\nA,31,1\nB,52,\nA,47,0\n", {}),
        ("arm,age,member\nA,31,1\nB,52,0\nA,47,0\nB,30,1\n", {}),  # of people, by its name
    ],
)
def test_other_tables_are_rounds_without_a_doubt(text, options):
    assert "rows-as-rounds" not in {notice.code for notice in read(text, ["age"], **options).reading}


@pytest.mark.parametrize("words", [("TRUE", "FALSE"), ("yes", "no"), ("Yes", "No")])
def test_a_mark_may_be_a_word(words):
    frame = pl.read_csv(LONG.encode())
    marks = pl.when(pl.col("chosen") == 1).then(pl.lit(words[0])).otherwise(pl.lit(words[1]))
    assert read(frame.with_columns(chosen=marks).write_csv()) == read(LONG)
    with pytest.raises(ub.LogError, match=r'expected a number for a feature.*got "yes"'):
        read(changed(1, age="yes"))


def test_times_number_the_rounds_too():
    text = "timestamp,arm,chosen,x\n2026-01-02,A,1,1\n2026-01-02,B,0,2\n2026-01-01,A,0,3\n2026-01-01,B,1,4\n"
    log = read(text, ["x"])
    assert log.features[log.rows].ravel().tolist() == [4, 1]
    assert any("in the order of the times" in notice for notice in log.notices)


def test_dates_and_times_of_day_are_joined_in_both_forms():
    text = "date,time,arm,chosen,x\n" + "".join(
        f"2026-01-0{day},{clock},{arm},{int(arm == chosen)},{at}\n"
        for at, (day, clock, chosen) in enumerate([(2, "9:00", "A"), (1, "10:30", "B"), (1, "9:15:20", "A")])
        for arm in "AB"
    )
    log = read(text, ["x"])
    assert log.features[log.rows].ravel().tolist() == [2, 1, 0]
    assert any('"date" and "time" are read together, as the time of each row' in notice for notice in log.notices)
    assert not any("is not read" in notice for notice in log.notices)
    wide = "date,time,arm,x\n2026-01-02,9:00,A,0\n2026-01-01,10:30,B,1\n2026-01-01,9:15:20,A,2\n"
    log = read(wide, ["x"])
    assert log.features[log.rows].ravel().tolist() == [2, 1, 0]
    named = read(wide.replace("time,arm", "hour,arm"), ["x"], columns={"round": "date+hour"})
    assert named.features[named.rows].ravel().tolist() == [2, 1, 0]
    clock_as_feature = read("round,date,time,arm,x\n1,2026-01-02,9,A,0\n2,2026-01-01,10,B,1\n", ["time"])
    assert clock_as_feature.features[clock_as_feature.rows].ravel().tolist() == [9, 10]


def test_a_hole_in_the_times_is_said_in_both_forms():
    days = [at // 20 + 15 * (at >= 400) for at in range(1_200)]
    moments = [datetime.datetime(2026, 1, 1) + datetime.timedelta(days=day, minutes=at) for at, day in enumerate(days)]
    wide = "timestamp,arm,x\n" + "".join(f"{at.isoformat()},{'AB'[at.minute % 2]},{at.hour}\n" for at in moments)
    long = "timestamp,arm,chosen,x\n" + "".join(
        f"{at.isoformat()},{arm},{int(arm == 'AB'[at.minute % 2])},{at.hour}\n" for at in moments for arm in "AB"
    )
    for text in (wide, long):
        (notice,) = (each for each in read(text, ["x"]).reading if each.code == "hole-in-times")
        assert "no rows for 16 days after 2026-01-20" in notice.text


def changed(row, **cells):
    """Return the long table with cells of a row (from 1) replaced."""
    frame = pd.read_csv(pd.io.common.StringIO(LONG), dtype=str, keep_default_na=False)
    for name, cell in cells.items():
        frame.loc[row - 1, name] = cell
    return frame.to_csv(index=False)


@pytest.mark.parametrize(
    ("text", "row", "column", "said"),
    [
        (changed(2, chosen="0"), 1, "chosen", "expected one chosen offer in round 1; got none"),
        (changed(1, chosen="1"), 2, "chosen", "expected one chosen offer in round 1; got 2"),
        (changed(2, chosen="2"), 2, "chosen", "expected 1 for the chosen offer"),
        (changed(2, chosen="B"), 2, "chosen", 'expected 1 for the chosen offer and 0 for the others; got "B"'),
        (changed(2, arm="A"), 2, None, 'round 1; got "A" twice'),
        (changed(3, price=""), 3, "price", "got a blank cell"),
        (changed(3, price="nan"), 3, "price", 'a number for a feature, up to 1e+100; got "nan". Fill in the number'),
        (changed(3, price="-inf"), 3, "price", 'got "-inf". Correct it'),
        (changed(3, price="1,234.5"), 3, "price", "without thousands separators: 1234.5."),
        (changed(3, price="3 USD"), 3, "price", "Write only the number"),
        (changed(4, age="old"), 4, "age", 'got "old". Write categories as columns of 0 and 1'),
        (changed(4, age="1e200"), 4, "age", 'up to 1e+100; got "1e200". Correct it'),
        (changed(4, arm=""), 4, "arm", "expected an arm"),
        (LONG.replace("3,", "4,"), 5, "round", "expected round 3 after round 2; got 4"),
        (LONG.replace("\n1,", "\n9,"), 3, "round", "expected rounds from 0 or 1"),
    ],
)
def test_what_is_wrong_is_refused_with_its_row(text, row, column, said):
    with pytest.raises(ub.LogError) as refused:
        read(text)
    assert said in str(refused.value)
    assert (refused.value.row, refused.value.column) == (row, column)
    assert refused.value.remedy


def test_columns_are_named_or_refused():
    renamed = LONG.replace("chosen", "shown")
    assert read(renamed, columns={"chosen": "shown"}) == read(LONG)
    with pytest.raises(ub.LogError, match=r"each round once.*marks the chosen one"):
        read(renamed)
    with pytest.raises(ub.LogError, match=r"to which round each offer belongs"):
        read(LONG.replace("round", "visit"))
    with pytest.raises(ub.LogError, match='expected a column "prise"'):
        read(LONG, ["prise"])
    with pytest.raises(ub.ParameterError, match=r"features=\['price', 'age'\]"):
        ub.ContextLog.from_bytes(LONG.encode(), features=None)
    with pytest.raises(ub.ParameterError, match="each feature once"):
        read(LONG, ["age", "age"])
    with pytest.raises(ub.ParameterError, match="expected one of arm, demonstration, round, chosen, reward"):
        read(LONG, columns={"pulls": "age"})
    with pytest.raises(ub.LogError, match='expected a column "x" for chosen'):
        read(LONG, columns={"chosen": "x"})
    with pytest.raises(
        ub.LogError, match='expected one column that marks the chosen offer; got "selected" and "picked"'
    ):
        read(LONG.replace("chosen,price", "selected,picked"), ["age"])


def test_a_log_of_the_chosen_offers_alone_is_refused():
    frame = pl.read_csv(LONG.encode())
    alone = frame.filter(pl.col("chosen") == 1)
    with pytest.raises(ub.LogError, match=r"there was nothing to choose between. Export all offers.*\{'chosen': ''\}"):
        read(alone.write_csv())
    assert read(alone.write_csv(), columns={"chosen": ""}).rounds == 3
    some = frame.filter((pl.col("round") > 1) | (pl.col("chosen") == 1))
    assert np.diff(read(some.write_csv()).offsets).tolist() == [1, 2, 3]
    for given in ({"features": np.ones((3, 1, 2))}, {"features": np.ones((3, 2)), "offsets": [0, 1, 2, 3]}):
        with pytest.raises(ub.ParameterError, match="there was nothing to choose between"):
            ub.ContextLog.from_arrays(chosen=[0, 0, 0], **given)


def test_a_remedy_fits_what_is_wrong_with_the_columns():
    text = LONG.replace("\n1,", "\na,")
    with pytest.raises(ub.LogError, match=r'got "a". Number the rounds 1, 2, ') as caught:
        read(text)
    assert "ignore" not in str(caught.value)
    timed = pl.read_csv(text.encode()).with_columns(timestamp=pl.lit("2026-01-01T00:00:00Z")).write_csv()
    with pytest.raises(ub.LogError, match=r"by time with columns=\{'round': 'timestamp'\}"):
        read(timed)
    frame = pl.read_csv(LONG.encode())
    with pytest.raises(ub.LogError, match=r'"chosen" was read as the arm.*column of arms is missing'):
        read(frame.drop("arm").write_csv())
    users = frame.with_columns(user_id=pl.format("u{}", "round")).write_csv()
    with pytest.raises(
        ub.LogError, match=r'"user_id" was read as the demonstration.*columns=\{\'demonstration\': \'\'\}'
    ):
        read(users)
    assert read(users, columns={"demonstration": ""}) == read(LONG)
    with pytest.raises(ub.LogError, match="separated by commas, semicolons or tabs"):
        read(LONG.replace(",", "|"))
    with pytest.raises(ub.LogError, match="separated by commas, semicolons or tabs"):
        ub.ActionLog.from_bytes(b"round|arm\n1|A\n2|B\n")


def test_a_plain_log_that_holds_offers_leads_to_features():
    with pytest.raises(ub.LogError, match=r'"chosen" marks the chosen one.*with features and a rule such as linucb'):
        ub.ActionLog.from_bytes(LONG.encode())
    with pytest.raises(ub.LogError, match="name the demonstrations"):
        ub.ActionLog.from_bytes(b"round,arm\n1,A\n1,B\n")


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"chosen": [0, 2]}, "chosen"),
        ({"chosen": [0]}, "chosen"),
        ({"features": np.full((2, 2, 1), np.nan)}, "features"),
        ({"features": np.ones((4, 1))}, "features"),
        ({"features": np.ones((4, 1)), "offsets": [0, 3, 3]}, "offsets"),
        ({"codes": [0, 0, 0, 1]}, "codes"),
        ({"codes": [0, 1, 0, 7], "arms": "AB"}, "codes"),
        ({"starts": [0, 1]}, "starts"),
        ({"rewards": [1.0]}, "rewards"),
        ({"feature_names": ["a", "b"]}, "feature_names"),
        ({"demonstrations": ["a", "b"]}, "demonstrations"),
    ],
)
def test_wrong_arrays_are_refused(changes, parameter):
    given = {"features": np.ones((2, 2, 1)), "chosen": [0, 1]} | changes
    with pytest.raises(ub.ParameterError) as refused:
        ub.ContextLog.from_arrays(**given)
    assert refused.value.parameter == parameter


def test_the_first_part_is_read_of_a_log_that_does_not_fit_in_memory(monkeypatch):
    def in_part(table, most, features=("price", "age"), **options):
        cells = (len(features) + 4) * most  # of each offer two features and four more
        monkeypatch.setattr("unbandit.contexts.table.MOST_CELLS", cells)
        parts = collect_contexts([FrameSource(table)], features, None, options.get("arms"), rows=2)
        return ub.ContextLog(*parts)

    frame = pl.read_csv(LONG.encode())
    assert in_part(frame, 7).rounds == 3
    cut = in_part(frame, 6)  # of the third round an offer was not read
    assert cut == read(LONG).select(0, rounds=2)
    assert [each.code for each in cut.reading].count("read-in-part") == 1
    several = pl.concat([frame.with_columns(demonstration=pl.lit(name)) for name in "PQR"])
    cut = in_part(several, 10)
    assert (cut.demonstrations, cut.lengths.tolist()) == (("P", "Q"), [3, 1])
    assert in_part(several, 8).demonstrations == ("P",)  # of which the second had one round, perhaps a part of it
    for mixed in (frame.reverse(), several.sort("round")):
        with pytest.raises(ub.LogError, match="expected rows sorted by demonstration and round") as caught:
            in_part(mixed, 8 if mixed.height > 7 else 6)
        assert "Sort the rows" in caught.value.remedy
    with pytest.raises(ub.LogError, match="at most 2 offers per round"):
        in_part(frame, 2)
    wide = pl.read_csv(WIDE.encode())
    cut = in_part(wide, 6, ("age", "income"), arms=["A", "B", "C"])  # three rounds of three arms each
    assert cut == read(WIDE, ("age", "income"), arms=["A", "B", "C"]).select(0, rounds=2)


def test_a_posterior_of_a_long_log_reads_its_first_part(monkeypatch):
    features = np.random.default_rng(1).standard_normal((120, 2, 2))
    log = ub.LinUCB().demonstrate(ub.ContextInstance([1.0, -0.5], 0.5), features, seed=1)
    monkeypatch.setattr("unbandit.contexts.posterior.MOST_NUMBERS", 2 * 2 * 110)
    found = ub.context_posterior(log, ub.LinUCB(alpha=1), sigma=0.5, particles=100)
    assert found.rounds == 110
    assert "read-in-part" in [notice.code for notice in found.notices]
    alone = ub.context_posterior(log.select(0, 110), ub.LinUCB(alpha=1), sigma=0.5, particles=100)
    assert (found.mean == alone.mean).all()
    monkeypatch.setattr("unbandit.contexts.posterior.MOST_NUMBERS", 2 * 2 * 99)
    with pytest.raises(ub.NotIdentifiable, match=r"2 offers per round .* only 99 rounds"):
        ub.context_posterior(log, ub.LinUCB(alpha=1), sigma=0.5)


def test_an_arm_offered_twice_is_found_wherever_it_is(monkeypatch):
    monkeypatch.setattr("unbandit.contexts.table.ROUNDS_AT_ONCE", 1)
    read(LONG)
    with pytest.raises(ub.LogError, match='round 3; got "A" twice') as caught:
        read(LONG.replace("3,B,0", "3,A,0"))
    assert caught.value.row == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("price\n1\n", "table of contexts; it has no age. Add the column"),
        ("price,age\n1,\n", "got a blank cell. Fill it in: a context needs a number for every feature."),
        ("price,age\n", "expected one row per context; the table of contexts has none."),
    ],
)
def test_a_table_of_contexts_is_refused_in_its_own_words(tmp_path, text, said):
    (tmp_path / "contexts.csv").write_text(text)
    with pytest.raises(ub.LogError) as refused:
        estimate_contexts(read(LONG), "linucb", sigma=1.0, predict=tmp_path / "contexts.csv")
    assert said in str(refused.value)


def offers_file(folder, arms="ABC", mark="served", group="impression", rounds=8):
    """Write a table of offers whose columns have names of their own."""
    rows = [f"{round},{arm},{int(at == round % len(arms))}" for round in range(rounds) for at, arm in enumerate(arms)]
    path = folder / "offers.csv"
    path.write_text("\n".join([f"{group},variant,{mark}", *rows]))
    return path


@pytest.mark.parametrize("mark", ["served", "flag", "x"])
def test_offers_are_not_read_as_rounds_whatever_their_columns_are_called(tmp_path, mark):
    path = offers_file(tmp_path, mark=mark)
    with pytest.raises(ub.LogError, match=f'"{mark}" marks one of the rows of each "impression"') as refusal:
        ub.ActionLog.read(path)
    assert "with features and a rule such as linucb" in str(refusal.value)
    assert len(ub.ActionLog.read(path, columns={"arm": "variant"}).demonstration(0)) == 24  # as the remedy says


def test_choices_of_sessions_of_which_the_first_is_marked_are_rounds(tmp_path):
    arms = np.random.default_rng(1).choice(list("ABC"), 60)
    rows = [f"{at // 4},{arm},{int(at % 4 == 0)}" for at, arm in enumerate(arms)]
    path = tmp_path / "sessions.csv"
    path.write_text("\n".join(["session_key,variant,is_first", *rows]))
    assert ub.ActionLog.read(path).lengths.tolist() == [60]
    few = offers_file(tmp_path, rounds=3)  # too few to be sure
    assert ub.ActionLog.read(few).lengths.tolist() == [9]
