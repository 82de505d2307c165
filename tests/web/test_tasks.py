"""What the processes behind the page do, without the page."""

from __future__ import annotations

import io
import json
import re
from functools import partial

import polars as pl
import pytest

import unbandit as ub
from unbandit.reporting import LogSource, identification_report
from unbandit.reporting.provenance import command_line
from unbandit.web import tasks
from unbandit.web.app import _quick
from unbandit.web.examples import EXAMPLES
from unbandit.web.forms import ReadAs, page_option
from unbandit.web.jobs import Limits
from unbandit.web.preview import Upload
from unbandit.web.tasks import _origin, _without_idle_seed, table_files, without_formulas

RULE = ub.SAE(alpha=0)


@pytest.fixture(scope="module")
def log_file():
    """Return the upload of a log that the rule made."""
    log = RULE.demonstrate(ub.Instance([1.0, 0.0], 0.5, arms=["A", "B"]), horizon=300, seed=1)
    return Upload("log.csv", data=log.to_frame().write_csv().encode())


def nothing(stage, share):
    """Hear what is being done."""


@pytest.fixture
def few_candidates(monkeypatch):
    """Compare two rules only, for a quick answer."""
    made = partial(identification_report, candidates="sae:alpha=0,uniform")
    monkeypatch.setattr(tasks, "identification_report", made)


def without_heading(main):
    return main[main.index('<p class="answer"') :]


@pytest.mark.parametrize("options", [{"sigma": 0.5, "seed": 3, "level": 0.9}, {}], ids=["known noise", "unknown noise"])
@pytest.mark.filterwarnings("ignore::unbandit.AssumptionWarning")
def test_a_rule_that_nobody_knows_has_the_report_of_the_shell(log_file, few_candidates, options):
    found = tasks.TASKS["identify"](log_file, ReadAs(), options, Limits(), nothing)
    log = ub.ActionLog.from_bytes(log_file.data)
    made = tasks.identification_report(log, source=LogSource.of_bytes("log.csv", log_file.data), audience=page_option,
                                       command=command_line("log.csv", [], options), **options)  # fmt: skip
    assert without_heading(found.main) == without_heading(made.main)
    assert found.main.count("<h1") == 1
    assert "Which rules are possible" in found.main
    assert "--rule" not in found.main
    assert json.loads(found.downloads[3].data) == made.answer.to_dict(page_option)
    assert [each.name for each in found.downloads] == [
        "report.html", "candidates.csv", "candidates.parquet", "identify.json"
    ]  # fmt: skip


def test_what_is_filled_in_and_not_used_is_said(log_file, few_candidates):
    options = {"sigma": 0.5, "best_mean": 1.0}
    found = tasks.TASKS["identify"](log_file, ReadAs(), options, Limits(), nothing)
    assert "Not used: " in found.main
    assert "Which rule made a log is found from its choices alone" in found.main
    assert "best_mean" not in found.main
    assert "Not used" not in tasks.TASKS["identify"](log_file, ReadAs(), {"sigma": 0.5}, Limits(), nothing).main


def test_a_log_that_no_candidate_can_have_made_has_a_report_too(monkeypatch):
    made = partial(identification_report, candidates="ucb1,sae:alpha=0")
    monkeypatch.setattr(tasks, "identification_report", made)
    upload = Upload("log.csv", data=b"arm\nA\nA\nB\n")
    found = tasks.TASKS["identify"](upload, ReadAs(), {"sigma": 0.5}, Limits(), nothing)
    assert "No rule that was tried can have made this log" in found.main
    assert [each.name for each in found.downloads] == ["report.html"]


def test_an_example_whose_rule_is_looked_for_can_be_downloaded(few_candidates, monkeypatch):
    example = Upload.of_example(EXAMPLES["battery"])
    short = RULE.demonstrate(ub.Instance([1.0, 0.0], 0.5), horizon=100, seed=1)
    monkeypatch.setattr(tasks, "read", lambda *_: (short, None))
    found = tasks.TASKS["identify"](example, ReadAs(), {"sigma": 0.5}, Limits(), nothing)
    assert "unbandit report log.csv --sigma 0.5" in found.main
    assert "log.csv" in [each.name for each in found.downloads]


def test_a_rule_is_looked_for_where_arms_come_and_go(monkeypatch):
    monkeypatch.setattr(tasks, "identification_report", partial(identification_report, candidates="ucb1,uniform"))
    instance = ub.Instance([1.0, 0.2], 0.5, arms=["A", "B"])
    log = ub.UCB1().demonstrate(instance, 60, seed=1, availability={"B": (21, None)})
    upload, options = Upload("log.csv", data=log.to_frame().write_csv().encode()), {"availability": {"B": ("21", "")}}
    found = tasks.TASKS["identify"](upload, ReadAs(), {"sigma": 0.5, **options}, Limits(), nothing)
    assert "--availability arms.csv" in found.main
    assert "Not used" not in found.main
    assert [each.data for each in found.downloads if each.name == "arms.csv"] == [b"arm,first,last\nB,21,\n"]


def test_a_log_with_holes_says_what_is_not_used_and_why_no_rule_is_found():
    upload = Upload("log.csv", data=b"round,arm\n1,A\n2,B\n4,A\n5,A\n6,B\n7,A\n")
    found = tasks.TASKS["identify"](upload, ReadAs(), {"sigma": 0.5, "kept": 0.8}, Limits(), nothing)
    assert "the log misses rounds" in found.main
    assert "Not used: the field &#34;Probability of being kept&#34;" in found.main


def test_a_first_look_lists_the_rules_and_whether_each_fits(log_file, monkeypatch):
    monkeypatch.setattr(tasks, "check", lambda log, **given: ub.check(log, "ucb1,sae:alpha=0", **given))
    found = tasks.TASKS["survey"](log_file, ReadAs(), {"sigma": 0.5}, Limits(), nothing)
    rows = re.findall(r"<tr><th scope=\"row\"><code>([a-z0-9]+).*?</th><td>(.*?)</td>", found.main)
    assert rows == [("sae", "fits"), ("ucb1", "does not fit")]
    assert "1 of 2 rules fits this log" in found.main
    assert {"rules.csv", "rules.parquet", "check.json"} == {each.name for each in found.downloads}


def test_a_rule_that_does_not_fit_is_the_first_thing_on_the_page(log_file):
    made = tasks.TASKS["estimate"](log_file, ReadAs(), "ucb1", {"sigma": 0.5, "check": True}, Limits(), nothing)
    assert made.main.index("The rule does not fit this log") < made.main.index('class="answer"')


def test_the_command_in_an_answer_says_how_the_file_was_read(log_file):
    upload = Upload("-my log.csv", data=log_file.data.replace(b"arm", b"picked"))
    reading = ReadAs({"arm": "picked"}, ["A", "B", "never, never"])
    made = tasks.TASKS["estimate"](upload, reading, str(RULE), {"sigma": 0.5}, Limits(), nothing)
    assert "&#39;./-my log.csv&#39;" in made.main
    assert "--columns arm=picked --arms" in made.main
    assert "never, never" in made.main


def test_a_simulation_of_rewards_of_0_and_1_is_read_as_such():
    from unbandit.web.forms import Simulation

    asked = Simulation("klucb", 500, 1, means=(0.8, 0.3))
    made = tasks.TASKS["simulate"](asked, Limits(), nothing)
    assert "unbandit simulate --means 0.8,0.3" in made.main
    assert {"log.csv", "truth.csv", "estimate.csv", "report.html"} <= {each.name for each in made.downloads}


@pytest.mark.parametrize(
    ("rule", "options", "kept"),
    [
        ("ucb", {}, False),
        ("ucb", {"method": "bootstrap"}, True),
        ("thompson", {}, True),
        ("thompson", {"method": "counts"}, False),
    ],
)
def test_a_seed_goes_only_where_something_is_drawn(rule, options, kept):
    assert ("seed" in tasks._without_idle_seed(rule, {**options, "seed": 1})) is kept


@pytest.mark.parametrize(
    "name",
    [
        "=1+1",
        "+cmd",
        "-cmd|' /C calc'!A0",
        "@SUM(A1)",
        "\tx",
        '=HYPERLINK("http://x")',
        "＝1+1",
        "-1x",
        " =1+1",
        "\u00a0@x",
        '"=1+1',
        " ' -x",
    ],
)
def test_what_would_run_is_quoted(name):
    assert without_formulas(pl.DataFrame({"arm": [name]})).item() == "'" + name


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("A;=1+1", "A;'=1+1"),
        ('A;"=1+1"', 'A;"\'=1+1"'),
        ("A\t@SUM(A1)", "A\t'@SUM(A1)"),
        ("A; +cmd\n-x", "A; '+cmd\n'-x"),
        ("=1;=2", "'=1;'=2"),
        ("\t=1", "'\t'=1"),
        ("\r=1", "'\r'=1"),
        ("a,=b", "a,'=b"),
    ],
)
def test_what_would_run_where_semicolons_divide_cells_is_quoted(name, safe):
    assert without_formulas(pl.DataFrame({"arm": [name]})).item() == safe
    assert without_formulas(pl.DataFrame({name: [1]})).columns == [safe]


@pytest.mark.parametrize("name", ["A;B", "a; b", "A\tB", "x;y=1"])
def test_separators_without_formulas_stay(name):
    assert without_formulas(pl.DataFrame({"arm": [name]})).item() == name


@pytest.mark.parametrize("name", ["A", "-1", "+2.5", "-1e-3", "a=b", "<script>", "", " ", "ראשון"])
def test_what_would_not_stays(name):
    assert without_formulas(pl.DataFrame({"arm": [name]})).item() == name


def test_names_of_columns_are_quoted_too():
    assert without_formulas(pl.DataFrame({"=x": [1], "arm": ["A"]})).columns == ["'=x", "arm"]


def test_the_csv_is_quoted_and_the_parquet_is_the_table_itself():
    frame = pl.DataFrame({"arm": ["=1", None], "gap": [-0.5, None]})
    csv, parquet = table_files(frame, "estimate", "Table")
    assert pl.read_csv(csv.data).rows() == [("'=1", -0.5), (None, None)]
    assert pl.read_parquet(io.BytesIO(parquet.data)).equals(frame)


@pytest.mark.filterwarnings("ignore::unbandit.AssumptionWarning")
def test_counts_with_one_name_twice_and_several_known_means():
    upload = Upload("counts.csv", data=b"arm,pulls\nA,3600\nB,900\nB,400\nC,225\nD,144\n")
    options = {"sigma": 0.1, "horizon": 10_000, "anchor": {"A": 4.9, "C": 4.6, "D": 4.5}}
    rule = "ucb:alpha=0.25,scale=1"
    with pytest.raises(ub.LogError, match='got "B" again'):
        tasks.TASKS["estimate"](upload, ReadAs(), rule, options, Limits(), nothing)
    added = tasks.TASKS["estimate"](upload, ReadAs(duplicates="add"), rule, options, Limits(), nothing)
    assert "--duplicates add" in added.main
    assert "--anchor A=4.9 --anchor C=4.6 --anchor D=4.5" in added.main
    assert "1,300" in added.main
    apart = tasks.TASKS["estimate"](upload, ReadAs(duplicates="separate"), rule, options, Limits(), nothing)
    assert "--duplicates separate" in apart.main
    assert "1,300" not in apart.main


def test_a_report_with_fitted_numbers_quotes_them_as_fit() -> None:
    origin = _origin("log.csv", b"arm\n", "ucb:alpha=0.25,scale=fit", {"sigma": 0.5}, ReadAs())
    assert "--rule ucb:alpha=0.25,scale=fit --sigma 0.5" in origin["command"]
    assert _without_idle_seed("ucb:scale=fit", {"seed": 3}) == {}
    assert _without_idle_seed("softmax:temperature=fit", {"seed": 3}) == {"seed": 3}
    assert _quick("ucb:scale=1", {})
    assert not _quick("ucb:scale=fit", {})


def test_people_have_numbers_of_their_own_on_the_page():
    rows = ["subject,choice,reward"]
    for person in range(3):
        actions = ub.LearningSoftmax(rate=0.3, temperature=0.4).demonstrate(
            ub.Instance([0.8, 0.2], ub.Bernoulli()), horizon=30, seed=person
        ).actions  # fmt: skip
        rows += [f"P{person},{action},{int(action == 0)}" for action in actions.tolist()]
    upload = Upload("people.csv", data="\n".join(rows).encode())
    given = {"bernoulli": True, "best_mean": 1.0}
    made = tasks.TASKS["population"](upload, ReadAs(), "learning-softmax:fit", given, Limits(), nothing)
    assert "Among 3 participants, the typical rate is" in made.main
    assert "report people.csv --rule learning-softmax --population --bernoulli" in made.main
    assert "Not used: the field &#34;The best arm&#39;s value&#34;" in made.main
    assert {"people.csv", "arms.csv", "population.json", "report.html"} <= {each.name for each in made.downloads}
