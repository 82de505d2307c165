"""Every row of docs/your-log.md: a small file in the real format, read with the command of the row."""

import re
import shlex
from pathlib import Path

import pytest

from unbandit import ActionLog
from unbandit.cli.options import read_columns
from unbandit.demonstrators import parse_rule
from unbandit.errors import InferenceError
from unbandit.inference.steps import reading_of

PAGE = Path(__file__).parents[2] / "docs" / "your-log.md"

TRACE = "episode,step,policy_idx,action,reward,reward_stat\n"
VW = (
    '{"_label_cost":%s,"_label_probability":0.8,"_label_Action":%d,"_labelIndex":%d,"o":[{"v":1.0,"EventId":"e"}],'
    '"Timestamp":"2019-08-13T20:40:%02d.7880000Z","Version":"1","EventId":"e%d","a":[2,1],'
    '"c":{"User":{"tier":"pro"},"_multi":[{"i":{"id":"news"}},{"i":{"id":"sport"}}]},"p":[0.8,0.2]}\n'
)
VW_LABEL = re.search(r"grep -oP '([^']+)' train\.cb", PAGE.read_text(encoding="utf-8"))[1]
OBD = ",timestamp,item_id,position,click,propensity_score,user_feature_0,user-item_affinity_0\n"

# What each file holds, and the choices of each demonstration that it should be read as.
FILES = {
    "river": (TRACE + "0,0,0,1,0.0,0.0\n0,1,0,0,1.0,1.0\n1,0,0,0,1.0,1.0\n1,1,0,1,0.0,1.0\n", {"0": "10", "1": "01"}),
    "river, no burn-in": (
        TRACE + "".join(f"0,{at},0,{arm},{arm / 2},0.0\n" for at, arm in enumerate([0, 0, 2, 2, 1, 2])),
        {"0": "002212"},
    ),
    "river, several policies": (
        TRACE + "0,0,0,1,0.0,0.0\n0,0,1,0,0.0,0.0\n0,1,0,0,1.0,1.0\n0,1,1,0,1.0,1.0\n",
        {"0+0": "10", "1+0": "00"},
    ),
    "MABWiser": ("decisions,rewards\n1,20\n2,17\n1,25\n", {"1": "121"}),
    "SMPyBandits": ("0\n1\n2\n1\n", {"1": "0121"}),
    "Vowpal Wabbit, JSON": (
        "".join(VW % (0, arm, arm - 1, 10 - at, at) for at, arm in enumerate([1, 2, 2])),
        {"1": "221"},
    ),
    "Vowpal Wabbit, text": (
        "".join(
            f"{label[0]}\n"
            for line in ["1:2:0.4 | a c", "| b:1 c", "3:0.5:0.2 | b d", "4:1.2:0.5 | a b c"]
            if (label := re.match(VW_LABEL, line))
        ),
        {"1": "134"},
    ),
    "Open Bandit Pipeline": (
        OBD + "0,2019-11-24 00:00:08.017000+00:00,7,1,0,0.0125,81ce,0.0\n"
        "1,2019-11-24 00:00:08.017000+00:00,3,2,0,0.01,81ce,0.0\n"
        "2,2019-11-24 00:00:25+00:00,3,1,1,0.0125,81ce,0.0\n"
        "3,2019-11-24 00:00:25+00:00,7,2,0,0.01,81ce,0.0\n",
        {"1": "73", "2": "37"},
    ),
    "hBayesDM": (
        "subjID\ttrial\tchoice\tgain\tloss\n1001\t1\t3\t50\t0\n1001\t2\t2\t100\t-1250\n1002\t1\t4\t50\t0\n1002\t2\t3\t50\t-50\n",
        {"1001": "32", "1002": "43"},
    ),
    "A/B/n product, events": (
        "timestamp,visitor_id,experiment_id,variation_id\n1767225603000,v3,9,B\n1767225602000,v2,9,A\n1767225601000,v1,9,B\n",
        {"1": "BAB"},
    ),
    "A/B/n product, events with users": (
        "timestamp,user_id,variation\n1767225603000,u3,B\n1767225602000,u2,A\n1767225601000,u1,B\n",
        {"1": "BAB"},
    ),
    "A/B/n product, summary": (
        "Variation,Visitors,Conversions,Conversion rate\nOriginal,1200,60,5%\nBlue,3400,204,6%\n",
        {"Original": 1200, "Blue": 3400},
    ),
    "New Yorker caption contests": (
        ",rank,caption,score,precision,count,unfunny,somewhat_funny,funny\n"
        "0,1,First words.,1.9,0.03,600.0,200.0,260.0,140.0\n"
        '1,2,"Other, longer words.",1.7,0.04,400.0,180.0,160.0,60.0\n'
        "2,3,First words.,1.5,0.05,12.0,8.0,2.0,2.0\n",
        {"First words.": 600, "First words. (2)": 12, "Other, longer words.": 400},
    ),
}


def rows():
    """Return the name, the command and the rules of each row of the first table."""
    table = PAGE.read_text(encoding="utf-8").split("|---|---|---|---|")[1].split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()]
    return {name: (command.strip("`"), rules) for name, _, command, rules in cells}


def read(tmp_path, name, command):
    file, *options = shlex.split(command)
    (tmp_path / file).write_text(FILES[name][0], encoding="utf-8")
    given = {}
    while options:
        option = options.pop(0)
        if option == "--no-header":
            given["header"] = False
        elif option == "--columns":
            given["columns"] = read_columns(options.pop(0))
        else:
            given[{"--duplicates": "duplicates"}[option]] = options.pop(0)
    return ActionLog.read(tmp_path / file, **given)


def test_every_row_has_a_file():
    assert set(rows()) == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_file_in_the_format_of_a_row_is_read_by_its_command(tmp_path, name):
    log = read(tmp_path, name, rows()[name][0])
    if log.actions is None:
        assert dict(zip(log.arms, log.pulls[0].tolist(), strict=True)) == FILES[name][1]
        return
    found = {who: "".join(log.arms[arm] for arm in log.demonstration(at)) for at, who in enumerate(log.demonstrations)}
    assert found == FILES[name][1]


@pytest.mark.parametrize("name", FILES)
def test_the_rules_of_a_row_are_rules(name):
    rules = re.findall(r"--rule ([^\s`]+)", rows()[name][1])
    without = (
        "river, several policies",
        "Vowpal Wabbit, JSON",
        "Vowpal Wabbit, text",
        "A/B/n product, events with users",
    )
    assert rules or name in without
    for rule in rules:
        parse_rule(rule)


def test_commands_of_rows_without_options_need_none():
    plain = [name for name, (command, _) in rows().items() if " " not in command]
    assert {"river", "MABWiser", "Vowpal Wabbit, JSON", "hBayesDM", "A/B/n product, events"} <= set(plain)


def test_a_trace_without_burn_in_needs_initial_0(tmp_path):
    """Before its first rewards every arm has the mean 0, and the first of them leads: so it is read only where told."""
    name = "river, no burn-in"
    log, (text,) = read(tmp_path, name, rows()[name][0]), re.findall(r"--rule ([^\s`]+)", rows()[name][1])
    rule = parse_rule(text).for_arms(len(log.arms))
    assert rule.initial == 0
    reading_of(log, 0, rule, int(log.lengths[0]))
    with pytest.raises(InferenceError, match="every arm"):
        reading_of(log, 0, rule.model_copy(update={"initial": 1}), int(log.lengths[0]))
