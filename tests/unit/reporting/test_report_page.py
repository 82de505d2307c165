"""The page itself: whole, escaped, in order, open to everyone, whatever the log."""

from __future__ import annotations

import base64
import pickle
import re
from itertools import pairwise
from types import SimpleNamespace

import made
import numpy as np
import pytest

import unbandit as ub
from unbandit.errors import Notice
from unbandit.fit import Check, Statistic
from unbandit.reporting import LogSource, stylesheet
from unbandit.reporting.page import fit_section, group_notices, misfit, templates


@pytest.mark.parametrize("kind", made.KINDS)
def test_a_page_is_well_formed_and_needs_nothing_else(kind):
    report = made.report_of(kind)
    page = made.Outline(report.html)
    assert not page.all("script", "link", "iframe", "object", "form")
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert all(attributes.get("src", "data:image/").startswith("data:image/") for _, attributes in page.tags)
    assert all(attributes["href"].startswith("#") for attributes in page.all("a"))
    policy = next(each for each in page.all("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    # the web page serves the main part under a policy without any style of its own
    assert not any("style" in attributes for _, attributes in made.Outline(report.main).tags)
    assert report.sentence.endswith(".")
    assert report.html.count(f"<title>{report.title}</title>") == 1


@pytest.mark.parametrize("kind", made.KINDS)
def test_a_page_can_be_walked_without_seeing_it(kind):
    page = made.Outline(made.report_of(kind).html)
    headings = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    assert all(len(image["alt"]) > 60 for image in page.all("img"))
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(names) == len(set(names))
    assert all(attributes["href"][1:] in names for attributes in page.all("a"))
    assert all(name in names for each in page.all("section") for name in [each["aria-labelledby"]])
    assert len(page.all("table")) == len(page.all("caption"))
    assert all("scope" in each for each in page.all("th"))
    assert all("tabindex" in each and each["aria-label"] for each in page.all("div") if each.get("role") == "region")


@pytest.mark.parametrize("kind", ["means", "ratios", "several", "elimination, open", "naive"])
def test_every_row_has_as_many_cells_as_the_head(kind):
    for table in re.findall(r"<table class=\"arms\">.*?</table>", made.report_of(kind).main, re.DOTALL):
        rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
        assert len({len(re.findall(r"<t[hd]\b", row)) for row in rows}) == 1


def test_names_are_only_names():
    report = made.report_of("nasty names")
    page, whole = made.Outline(report.html), report.html
    text = " ".join(page.text)
    assert "<script" not in whole
    assert "<script>alert(1)</script>" in text
    assert '"><img src=x onerror=alert(1)>' in text
    assert "{{ 7 * 7 }} {% raw %}" in text
    assert all(set(image) == {"src", "width", "height", "alt"} for image in page.all("img"))
    assert "x" * 100 not in whole
    assert "…" in text
    assert len(whole) < 1_000_000
    assert not re.search("[\x00\x1b]", whole)
    assert '<bdi dir="auto">الذراع الأول</bdi>' in whole
    assert report.sentence.startswith('Of the 8 arms "<script>alert(1)</script>" is')
    for address in (image["src"] for image in page.all("img")):
        drawn = base64.b64decode(address.split(",", 1)[1]).decode()
        assert "<script" not in drawn
        assert "onerror=alert(1)>" not in drawn


def test_many_arms_are_cut_with_a_word_about_it():
    rng = np.random.default_rng(1)
    counts = dict(zip(map(str, range(12_979)), rng.integers(1, 400, 12_979).tolist(), strict=True))
    report = ub.report(ub.ActionLog.from_counts(counts), made.UCB, sigma=1.0)
    assert len(report.html) < 2_000_000
    assert "12,859 arms are left out here" in report.main
    assert "the first 100 and the last 20 of 12,979 arms" in report.main
    ranks = re.findall(r'<td class="amount">([\d,]+)</td>\n<th scope="row">', report.main)
    assert ranks == [*map(str, range(1, 101)), *map(str, range(12_960, 12_980))]


@pytest.mark.parametrize(("arms", "rows"), [(200, 200), (201, 120)])
def test_where_the_cut_begins(arms, rows):
    counts = {str(at): at + 2 for at in range(arms)}
    report = ub.report(ub.ActionLog.from_counts(counts), made.UCB, sigma=1.0)
    assert report.main.count('<th scope="row"><bdi') == rows


def test_of_many_demonstrations_the_first_five_are_shown():
    report = made.report_of("several")
    assert [f'Demonstration <bdi dir="auto">{at}</bdi>' in report.main for at in range(1, 8)] == [True] * 5 + [
        False
    ] * 2
    assert "The other 2 are left out here" in report.main
    assert 'Those of arms and rounds show the first demonstration, <bdi dir="auto">1</bdi>' in report.main
    assert "Those of arms and rounds" not in made.report_of("gaps").main


def test_a_very_long_warning_does_not_blow_the_page_up():
    arms = ["a" * 50_000, "b" * 60_000, "c" * 70_000]
    log = ub.ActionLog.from_actions([arms[at] for at in (0, 1, 2, 0, 1, 2)])
    assert len(ub.report(log, "sae", sigma=1.0).html) < 300_000


def test_how_to_make_it_again():
    told = made.report_of("bootstrap").main
    call = 'unbandit.report(log, "ucb:alpha=0.25,scale=1.4142135623730951", method=&#39;bootstrap&#39;'
    assert call in told.replace("&#34;", '"')
    assert "<dt>seed</dt><dd>3</dd>" in told
    assert f"unbandit {ub.__version__}" in told
    source = LogSource.of_bytes("some log.csv", b"arm\nA\nB\n")
    report = ub.report(made.log_of(made.UCB, 100), made.UCB, source=source, anchor={"B": 0.5}, sigma=0.5)
    assert "unbandit report &#39;some log.csv&#39; --rule ucb:alpha=0.25" in report.main
    assert "--anchor B=0.5 --sigma 0.5" in report.main
    assert source.checksum in report.main
    assert "8 bytes" in report.main
    assert "nothing is drawn at random" in report.main
    assert report.title == "What each arm was worth: some log.csv"
    own = ub.report(made.log_of(made.UCB, 100), made.UCB, source=source, command="unbandit report <log>", sigma=0.5)
    assert "<code>unbandit report &lt;log&gt;</code>" in own.main


def test_a_report_can_be_sent_between_processes():
    report = made.report_of("means")
    again = pickle.loads(pickle.dumps(report))
    assert (again.html, again.sentence, again.title) == (report.html, report.sentence, report.title)
    assert repr(report).startswith("<Report: Of the 4 arms")
    assert report._repr_html_() == report.answer._repr_html_()


def test_the_same_log_gives_the_same_page():
    first, second = (ub.report(made.log_of(made.UCB, 300), made.UCB, sigma=0.5).html for _ in range(2))
    assert first == second


def test_progress_is_told_and_rises():
    told: list[tuple[str, float]] = []
    ub.report(made.log_of(made.UCB, 300), made.UCB, sigma=0.5, progress=lambda *said: told.append(said))
    stages, shares = zip(*told, strict=True)
    assert list(dict.fromkeys(stages)) == [
        "Reading the log", "Estimating", "Drawing the figures", "Writing the report", "Done"
    ]  # fmt: skip
    assert list(shares) == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)


def test_it_is_written_whole(tmp_path):
    report = made.report_of("gaps")
    report.write(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.html
    with pytest.raises(ub.OutputError, match="Nothing was changed"):
        report.write(tmp_path / "nowhere" / "report.html")
    with pytest.raises(ub.ParameterError, match=r"a name that ends in \.html or \.pdf; got .*report\.docx"):
        report.write(tmp_path / "report.docx")
    assert {each.name for each in tmp_path.iterdir()} == {"report.html"}


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_words_stand_out_from_their_ground(scheme):
    """The contrast of every pair of ink and ground is 4.5 to 1 or more (WCAG AA)."""
    light, dark, on_paper = (dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block)) for block in _roots())
    colours = light | {"light": {}, "dark": dark, "print": on_paper}[scheme]
    pairs = [(ink, ground) for ink in ("ink", "soft", "link", "accent") for ground in ("ground", "card")]
    pairs += [(name, f"{name}-ground") for name in ("best", "estimated", "bounded", "unseen", "warn")]
    pairs += [("ink", "warn-ground"), ("link", "warn-ground")]
    for ink, ground in pairs:
        assert _contrast(colours[ink], colours[ground]) >= 4.5, (scheme, ink, ground)


def _roots():
    return re.findall(r":root \{(.*?)\}", stylesheet(), re.DOTALL)


def _contrast(one, other):
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_look_has_the_colours_that_the_web_page_builds_on():
    for block in _roots():
        for name in (
            "ground",
            "card",
            "ink",
            "soft",
            "rule",
            "link",
            "accent",
            "best",
            "estimated",
            "bounded",
            "unseen",
        ):
            assert f"--{name}: #" in block
        assert "--warn: #" in block
        assert "--warn-ground: #" in block
    assert len(_roots()) == 3


def test_rewards_that_are_known_are_owned_up_to():
    assert "3 of the 150 rewards are known, and were used." in made.report_of("some rewards").main
    assert "The 3 rewards in the log were not used." in made.report_of("rewards unused").main
    assert "All rewards are known, and were used." in made.report_of("all rewards").main
    assert "No rewards were used." in made.report_of("gaps").main
    level = "Only differences are known"
    assert [level in made.report_of(kind).main for kind in ("gaps", "means", "rewards unused", "some rewards")] == [
        True, False, True, False
    ]  # fmt: skip


def test_a_report_does_not_call_rewards_hidden_that_the_log_holds():
    some, every = made.report_of("some rewards").main, made.report_of("all rewards").main
    hidden = ("not in the log", "does not contain it", "guesses at", "log hides")
    assert [word for word in hidden if word in every] == []
    assert "The log contains it for every choice." in every
    assert "does not contain it" not in some
    assert "The log contains it for some of the choices." in some
    assert "guesses at the others" in some
    assert "guesses at the hidden rewards" in made.report_of("randomised").main


def test_what_the_box_says_of_a_misfit_is_not_said_again():
    group = group_notices([Notice("does-not-fit", "It looks different.")], ["A"])
    macro = "{% from 'parts.html' import notices %}{{ notices('warning', group, boxed) }}"
    said = [templates("unbandit.reporting").from_string(macro).render(group=group, boxed=box) for box in (False, True)]
    assert ["It looks different." in each for each in said] == [True, False]
    assert ["What helps:" in each for each in said] == [True, False]
    assert '<a href="#report-misfit">' in said[1]


def test_what_was_assumed_is_what_was_asked():
    told = {kind: made.report_of(kind).main for kind in made.KINDS}
    assert "standard deviation of 0.5, as was given" in told["gaps"]
    assert "This was assumed, because no value was given." in told["wrong rule"]
    assert "The best arm&#39;s mean is 1, as was given" in told["means"]
    assert "No arm&#39;s mean was given" in told["gaps"]
    assert "The mean of &#34;&lt;script&gt;alert(1)&lt;/script&gt;&#34; is 1, as was given" in told["nasty names"]
    assert "How much rewards vary was not needed" in told["ratios"]
    assert "All were made on the same arms" in told["pooled"]
    assert "what was believed before the log was seen" in told["randomised"]
    assert "The counts are complete" in told["counts"]
    assert "after 1,000 rounds" in told["gaps"]
    assert "Intervals are made to hold the truth in 95%" in told["gaps"]
    assert "Intervals are made to hold" not in told["naive"]
    assert "<code>alpha</code>" in told["gaps"]
    given = ub.report(made.log_of(made.UCB, 100), made.UCB, sigma=0.5, horizon=900).main
    assert "The run was meant to have 900 rounds, as was given" in given


def test_what_stays_open_is_said():
    told = {kind: made.report_of(kind).main for kind in made.KINDS}
    assert "Which of &#34;A&#34;, &#34;B&#34; and &#34;C&#34; is the best" in told["elimination, open"]
    assert "Anything at all about &#34;C&#34;: never pulled" in told["unseen"]
    assert "Where exactly &#34;B&#34; lies" in told["shortest"]
    assert "When each arm was pulled" in told["counts"]
    assert "All gaps share one unknown factor" in told["ratios"]
    assert "where intervals overlap" in told["randomised"]
    assert all("Whether" in page for page in told.values())


def test_a_rule_that_does_not_fit_stands_first():
    log = made.log_of("ucb1", 800)
    wrong = ub.report(log, "ucb1", sigma=1.5, check=True)
    assert wrong.answer.check.verdict == "does not fit"
    begin = wrong.main.index("The rule does not fit this log")
    assert begin < wrong.main.index('class="answer"')
    label, observed, usual = wrong.answer.check.unusual[0].said
    assert re.search(f"{label}</bdi></th>.*{observed}</td>.*{usual}</td>", wrong.main[begin:])
    assert "do not rely on the numbers" in wrong.main[begin:]
    assert "see the beginning of this report" in wrong.main
    right = ub.report(log, "ucb1", sigma=0.5, check=True)
    assert "does not fit this log" not in right.main
    assert not re.search(r"<th[^>]*>\s*</th>", wrong.main + right.main)  # a heading for every column
    assert "as if ucb1 had made them" in wrong.main
    assert "made by ucb" in right.main
    assert re.search(r"Nothing speaks against it \(p = [\d.]+, 399 simulations", right.main)
    unchecked = ub.report(log, "ucb1", sigma=1.5, check=False)
    assert "Not checked. No check was asked for." in unchecked.main


@pytest.mark.parametrize(("checked", "whose"), [(1, "this log"), (12, "the least usual of 12")])
def test_statistics_of_one_demonstration_are_not_called_those_of_the_log(checked, whose):
    statistic = Statistic("switches", 40, 30.0, 38.0, 47.0, 0.6)
    answer = SimpleNamespace(rule="ucb1", check=Check("fits", 0.3, 399, statistics=(statistic,), checked=checked))
    shown = fit_section(answer)
    assert shown["whose"] == whose
    assert shown["usual"] == ("usual for the rule" if checked == 1 else "usual for one demonstration")
    assert ("12 demonstrations were compared" in shown["sentence"]) is (checked == 12)
    assert shown["rows"] == [statistic.said]
    answer = SimpleNamespace(rule="ucb1", check=Check("does not fit", 0.001, 399, checked=checked))
    assert misfit(answer)["whose"] == whose
