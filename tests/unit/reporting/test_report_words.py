"""Nothing that the package says goes unexplained."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import made
import pytest

import unbandit
from unbandit.errors import Notice
from unbandit.estimators.diagnostics import Diagnostic
from unbandit.estimators.procedures import Method
from unbandit.reporting import identification_report
from unbandit.reporting.api import LEFT_OUT
from unbandit.reporting.assumptions import METHODS
from unbandit.reporting.page import MARKS, NOTICES, VERDICTS, group_notices
from unbandit.reporting.sentence import DOUBTS
from unbandit.result import VERDICTS as ALL_VERDICTS

SOURCE = Path(unbandit.__file__).parent


def codes():
    """Return the code of every notice that the package makes, with where it is made."""
    diagnostics = Diagnostic.__subclasses__()
    diagnostics += [further for each in diagnostics for further in each.__subclasses__()]
    found = {diagnostic.code: diagnostic.__name__ for diagnostic in diagnostics}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Notice":
                code = node.args[0] if node.args else next(word.value for word in node.keywords if word.arg == "code")
                if (ast.unparse(code), path.name) in (("self.code", "diagnostics.py"), ("row['code']", "tables.py")):
                    continue  # that of a subclass, or one that was written before
                assert isinstance(code, ast.Constant), f"{path}:{node.lineno}: a code that is not written out"
                found[code.value] = f"{path.name}:{node.lineno}"
    return found


def test_every_notice_is_explained():
    made_here = codes()
    assert len(made_here) > 30
    assert {code: place for code, place in made_here.items() if code not in NOTICES} == {}


def test_no_explanation_is_left_over():
    assert set(NOTICES) - set(codes()) == set()
    assert set(NOTICES) >= DOUBTS


@pytest.mark.parametrize("code", NOTICES)
def test_an_explanation_is_whole_sentences(code):
    words = NOTICES[code]
    assert words.title[0].isupper()
    assert not words.title.endswith(".")
    assert words.meaning[0].isupper()
    assert words.meaning.endswith(".")
    assert words.remedy == "" or words.remedy.endswith(".")
    assert len(words.meaning) > 50


@pytest.mark.parametrize("code", NOTICES)
def test_an_explanation_holds_in_python_in_the_shell_and_on_the_page(code):
    said = " ".join(NOTICES[code])
    assert "--" not in said
    assert "unbandit " not in said
    assert "command" not in said


def test_every_verdict_and_every_method_has_words():
    assert tuple(VERDICTS) == tuple(MARKS) == ALL_VERDICTS
    assert set(METHODS) == {
        *Method.__args__, "elimination-bracket", "elimination-switching", "posterior-some", "posterior-all"
    }  # fmt: skip


def test_a_short_record_is_no_doubt_of_the_rule():
    assert "opening" in DOUBTS
    assert "short-record" not in DOUBTS


def test_bounds_of_one_arm_and_of_several():
    for arms, where in (("AB", "Where exactly &#34;B&#34; lies."), ("ABC", "&#34;B&#34; and &#34;C&#34; lie.")):
        log = unbandit.ActionLog.from_actions(arms + "A" * 20)
        assert where in unbandit.report(log, "ucb", sigma=1.0).main


def test_an_unknown_code_is_said_all_the_same():
    (one,) = group_notices([Notice("of-another-package", "Something odd.")], [])
    assert (one.words, one.messages, one.more) == (None, ("Something odd.",), 0)


def test_notices_of_one_kind_stand_together():
    notices = [Notice("few-pulls", f"message {at}", demonstration=str(at)) for at in range(12)]
    (group,) = group_notices(notices, [])
    assert group.messages[0] == "Demonstration 0: message 0"
    assert (len(group.messages), group.more) == (5, 7)


@pytest.mark.parametrize("kind", made.KINDS)
def test_whatever_is_said_is_on_the_page_with_its_explanation(kind):
    report = made.report_of(kind)
    page = " ".join(made.Outline(report.main).text)
    for notice in (*report.answer.warnings, *report.answer.notes):
        if notice.code in LEFT_OUT:
            continue
        assert NOTICES[notice.code].meaning in page
        if max(map(len, report.answer.arms)) < 80 and len(report.answer.demonstrations) == 1:
            assert notice.message in page
    assert ("read" in page and "before you rely on the numbers" in page) == bool(report.answer.warnings)


def test_a_report_calls_demonstrations_as_the_log_does():
    rows = "".join(f"{who},{arm}\n" for who in ("ana", "17") for arm in "AB" + "AAAB" * 20 + "A" * 118)
    log = unbandit.ActionLog.from_bytes(f"subject,arm\n{rows}".encode())
    for page in (
        unbandit.report(log, "ucb:alpha=0.25", sigma=1.0),
        identification_report(log, "ucb:alpha=0.25", sigma=1.0),
    ):
        text = re.sub(r"data:image[^\"]*|<[^>]*>", "", page.main)
        assert "Subject ana" in text
        assert "All subjects together" in text
        assert " in 2 subjects" in text
        assert "One panel per subject" in text
        assert "Here each subject is one." in text
        others = re.sub(r'"subject" as demonstration|--columns demonstration=\S*', "", text)
        assert not re.search(r"[Dd]emonstration (ana|17)|(All|2|first) demonstrations", others)
