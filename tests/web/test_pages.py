"""Pages as text: sound HTML, everything escaped, nothing from elsewhere, every field with its name and its errors."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import ClassVar

import pytest
from pydantic import Field as PydanticField

from unbandit import UCB1, ActionLog, rules
from unbandit._version import __version__
from unbandit.contexts import known_linear_rules
from unbandit.contexts.rule import linear_rule_or_family
from unbandit.demonstrators import parse_rule
from unbandit.demonstrators.base import rule_or_family
from unbandit.demonstrators.family import RuleFamily
from unbandit.estimators import family
from unbandit.estimators.arguments import check_numbers, reward_noise
from unbandit.web import forms, pages
from unbandit.web.examples import Example
from unbandit.web.jobs import Download, JobProgress, Limits, Outcome
from unbandit.web.preview import Preview
from unbandit.web.problems import Problem

EVIL = "<script>alert(1)</script>\"'&"
LIMITS = Limits()
LOG = Preview(
    name="log.csv",
    columns=("round", "arm", "note"),
    columns_shown=("round", "arm", "note"),
    roles=(("arm", "arm"), ("round", "round")),
    rows=(("1", "A", "x"), ("2", "B", "y")),
    rows_more=True,
    summary="5,000 rounds of 2 arms",
    arms=(("A", 4000), ("B", 1000)),
    carried="H4sI",
)
STRANGE = replace(
    LOG,
    name=EVIL,
    columns=(EVIL, "arm"),
    columns_shown=(EVIL, "arm"),
    rows=((EVIL, "אבג"),),
    summary=EVIL,
    arms=((EVIL, 1),),
    arms_left_out=3,
    notices=(EVIL,),
    carried=EVIL,
)
OFFERS = replace(
    LOG, columns=("round", "arm", "chosen", "price", "age"), roles=(*LOG.roles, ("chosen", "chosen")), contexts=True
)
EXAMPLES = (Example("battery", "Batteries", "Twenty protocols."), Example("x y", EVIL, EVIL))
FORM = {"rule": "ucb", "ucb.alpha": EVIL, "best_mean": EVIL, "column.arm": EVIL, "arms": EVIL, "rule-x": EVIL}
ERRORS = {"ucb.alpha": EVIL, "rule": EVIL, "ucb": EVIL, "best_mean": EVIL, "column.arm": EVIL, EVIL: EVIL}
OUTCOME = Outcome("Estimate of " + EVIL, "<h1>Answer</h1>", (Download(f'a"{EVIL}.csv', EVIL, "text/csv", b""),))

PAGES = {
    "home": lambda: pages.home(EXAMPLES, LIMITS),
    "look": lambda: pages.preview(LOG, {}, {}),
    "strange look": lambda: pages.preview(STRANGE, FORM, ERRORS),
    "problem": lambda: pages.preview(replace(STRANGE, problem=EVIL), FORM, {}),
    "example": lambda: pages.preview(replace(LOG, example="battery", carried=""), {"rule": "sae"}, {}),
    "wide table": lambda: pages.preview(replace(STRANGE, columns_left_out=99_800), FORM, ERRORS),
    "features": lambda: pages.preview(OFFERS, {}, {}),
    "strange features": lambda: pages.preview(
        replace(STRANGE, contexts=True), {**FORM, "rule": "lints"}, {"features": EVIL, "lints.v": EVIL, "sigma": EVIL}
    ),
    "problem with features": lambda: pages.preview(replace(STRANGE, contexts=True, problem=EVIL), FORM, {}),
    "simulate": lambda: pages.simulate({}, {}),
    "strange simulate": lambda: pages.simulate({**FORM, "means": EVIL, "source": "means"}, {**ERRORS, "means": EVIL}),
    "rule": lambda: pages.rule(*forms.rule_with_form("learning-softmax")),
    "silent rule": lambda: pages.rule(*forms.rule_with_form("uniform")),
    "linear rule": lambda: pages.rule(*forms.rule_with_form("linucb")),
    "waiting": lambda: pages.progress(EVIL, JobProgress(EVIL, "running", EVIL, 0.5, 75.2)),
    "queue": lambda: pages.progress("id", JobProgress("t", "waiting", ahead=2)),
    "answer": lambda: pages.answer(EVIL, OUTCOME),
    "failure": lambda: pages.failure(Problem(EVIL, EVIL, EVIL), EVIL),
    "nothing": lambda: pages.failure(Problem("There is nothing here", "No page has this address.")),
}

EMPTY = frozenset({"meta", "link", "input", "img", "br"})


class Reader(HTMLParser):
    """Gather elements with their attributes, and refuse tags that are not closed in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.labelled: list[dict[str, str | None]] = []
        self.words = ""
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.inside == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute twice in {tag}"
        self.elements.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag == "input" and "label" in self.inside:
            self.labelled.append(dict(attrs))
        if tag not in EMPTY:
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.inside.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data
        if {"th", "td"} & set(self.inside):
            self.rows[-1][-1] += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for found, attributes in self.elements if found == tag]


@pytest.fixture(params=list(PAGES))
def page(request: pytest.FixtureRequest) -> Reader:
    return Reader(PAGES[request.param]())


def test_nothing_is_run_or_fetched_but_our_own(page: Reader) -> None:
    assert [script["src"] for script in page.named("script")] == ["/page.js"]
    assert not page.named("style")
    for _, attributes in page.elements:
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
        for name in ("src", "href", "action", "formaction"):
            address = attributes.get(name)
            assert address is None or re.match(r"[/#](?!/)", address), address


def test_what_comes_from_outside_is_shown_as_it_is(page: Reader) -> None:
    assert len(page.named("script")) == 1
    assert "alert(1)" not in "".join(str(attributes.get("id")) for _, attributes in page.elements)


@pytest.mark.parametrize("name", ["strange look", "problem", "waiting", "failure", "answer"])
def test_strange_names_are_text(name: str) -> None:
    assert EVIL in Reader(PAGES[name]()).words


def test_a_page_is_one_document(page: Reader) -> None:
    assert page.named("html") == [{"lang": "en"}]
    for tag in ("title", "main", "h1", "footer", "nav"):
        assert len(page.named(tag)) == 1
    assert f"unbandit {__version__}" in page.words
    headings = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))


def test_identifiers_are_there_once_and_where_they_are_asked_for(page: Reader) -> None:
    found = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(found)) == len(found)
    for _, attributes in page.elements:
        for name in ("for", "aria-describedby", "aria-labelledby"):
            for asked in (attributes.get(name) or "").split():
                assert asked in found, asked
        address = attributes.get("href") or ""
        assert not address.startswith("#") or address[1:] in found


def test_every_field_has_a_label(page: Reader) -> None:
    labels = {label.get("for") for label in page.named("label")}
    for field in [*page.named("input"), *page.named("select"), *page.named("textarea")]:
        if field.get("type") != "hidden":
            assert field.get("id") in labels or field in page.labelled, field


def test_every_field_of_every_rule_is_explained() -> None:
    page = Reader(PAGES["look"]())
    fields = [field for field in [*page.named("input"), *page.named("select")] if "." in (field.get("name") or "")]
    own = [field for field in fields if (field["name"] or "").split(".")[0] in rules()]
    assert len(own) > 60
    assert all(field.get("aria-describedby") for field in own)
    assert {field["value"] for field in page.named("input") if field.get("name") == "rule"} == {
        "any",
        "unknown",
        *rules(),
    }


@pytest.mark.parametrize("name", ["look", "features", "simulate"])
def test_every_rule_leads_to_the_page_that_explains_it(name: str) -> None:
    page = Reader(PAGES[name]())
    offered = {field["value"] for field in page.named("input") if field.get("name") == "rule"} - {"any", "unknown"}
    links = [link for link in page.named("a") if link["href"].startswith("/rules/")]
    assert {link["href"] for link in links} == {f"/rules/{rule}" for rule in offered}
    assert {link["target"] for link in links} == {"_blank"}  # a form that is half filled in stays


@pytest.mark.parametrize("name", [*rules(), *known_linear_rules])
def test_the_page_of_a_rule_explains_all_its_parameters(name: str) -> None:
    kind, form = forms.rule_with_form(name)
    page = Reader(pages.rule(kind, form))
    assert form.title in page.words
    assert form.summary in page.words
    assert kind.summary().replace("`", "") in page.words
    for parameter, field in kind.model_fields.items():
        if field.description.startswith("always"):  # there is nothing to choose
            continue
        assert f"\n{parameter}{field.description[0].upper()}{field.description[1:]}" in page.words, parameter
        allowed, default = cells_of(page, parameter)
        assert allowed
        assert default == DEFAULTS.get((name, parameter), default)
        assert re.fullmatch(r"none|true|false|[a-z]+|[\d,.]+( with noise=[a-z]+)?|mixing / K|those of the log", default)
    assert "Parameters\n---" not in page.words
    assert ">>>" not in page.words


DEFAULTS = {
    ("ucb", "scale"): "1.414",
    ("ucb", "sigma"): "none",
    ("klucb", "sigma"): "0.5 with noise=gaussian",
    ("thompson", "deviation"): "1",
    ("thompson", "successes"): "1 with noise=bernoulli",
    ("successive-elimination", "sigma"): "0.5",
    ("exp3", "rate"): "mixing / K",
    ("sliding-window-ucb", "window"): "1,000",
    ("moss", "arms"): "those of the log",
    ("linucb", "disjoint"): "false",
}


def cells_of(page: Reader, parameter: str) -> list[str]:
    """Return what is allowed for a parameter, and its default."""
    (row,) = [row for row in page.rows if row[0] == parameter]
    return row[2:]


def test_the_page_of_a_rule_says_what_its_choices_show_and_how_to_ask() -> None:
    said = {
        name: Reader(pages.rule(*forms.rule_with_form(name))).words for name in ("ucb1", "klucb", "uniform", "lints")
    }
    assert "unbandit estimate log.csv --rule ucb1\n" in said["ucb1"]
    assert (
        "If exploration is not known, it can be fitted from the log:\nunbandit estimate log.csv --rule ucb1:fit\n"
        in (said["ucb1"])
    )
    assert "What an arm is worth follows" in said["ucb1"]
    assert "--rule klucb --best-mean 0.8" in said["klucb"]
    assert "Without a known mean they show no gaps, unless rewards are Gaussian (noise=gaussian)" in said["klucb"]
    assert "What an arm is worth follows" not in said["klucb"]
    assert "Nothing about what an arm was worth" in said["uniform"]
    assert "unbandit simulate" in said["uniform"]
    assert "--features x1,x2 --sigma 0.5" in said["lints"]
    assert "A = ridge I" in said["lints"]
    assert "a number above 0" in said["lints"]


@pytest.mark.parametrize("name", [*rules(), *known_linear_rules])
def test_the_page_of_a_rule_stands_by_itself_and_speaks_no_python(name: str) -> None:
    kind, form = forms.rule_with_form(name)
    assert not form.summary.startswith("The same")
    text = pages.rule(kind, form).split('<section aria-labelledby="formula">')[1]
    text = text.split('<section aria-labelledby="shell">')[0]
    terms = {word for code in re.findall(r"<code>(.*?)</code>", text) for word in re.findall(r"[A-Za-z_]{3,}", code)}
    assert not {term for term in terms if hasattr(kind, term)} - {*kind.model_fields, "name"}
    assert not {each.__name__ for each in (*rules().values(), *known_linear_rules.values())} & terms
    assert "=True" not in text


class Asked(Exception):
    """The computation that a command begins, once all that it was given is accepted."""


@pytest.mark.parametrize("name", [*rules(), *known_linear_rules])
def test_every_command_on_the_page_of_a_rule_is_accepted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take each as the command line does, up to where it computes."""

    def asked(*args: object, **options: object) -> None:
        raise Asked

    log = ActionLog.from_actions("ABABBABAAA")
    page = Reader(pages.rule(*forms.rule_with_form(name)))
    commands = [shlex.split(line)[1:] for line in page.words.splitlines() if re.match("unbandit [es]", line)]
    assert len(commands) == 1 + bool(forms.rule_with_form(name)[0].fits)
    for words in commands:
        given = dict(zip(words[2::2], words[3::2], strict=True))
        if words[0] == "simulate":
            assert set(given) == {"--rule", "--horizon", "-o"}
            parse_rule(given["--rule"])
            continue
        assert words[:2] == ["estimate", "log.csv"]
        assert set(given) <= {"--rule", "--sigma", "--best-mean", "--features"}
        options = {
            name[2:].replace("-", "_"): float(given[name]) for name in ("--sigma", "--best-mean") if name in given
        }
        if "--features" in given:
            linear_rule_or_family(given["--rule"])
            assert set(options) == {"sigma"}
            continue
        rule = rule_or_family(given["--rule"])
        assert not forms.missing_mean(given["--rule"], options)
        if isinstance(rule, RuleFamily):
            monkeypatch.setattr(family, "fit_family", asked)
            with pytest.raises(Asked):
                family.fitted_to_log(log, rule, options)
        else:
            check_numbers(options.get("best_mean"), None, 0.95, options.get("sigma"), False, rule=rule)
            reward_noise(rule, options.get("sigma"), False)


def test_a_rule_of_another_package_has_a_page_that_is_escaped() -> None:
    class Odd(UCB1):
        __doc__ = (
            f"Take {EVIL} first, by `a < b`.\n\n    See Also\n    --------\n    Even\n\n"
            "    Examples\n    --------\n    >>> Odd()\n"
        )
        name: ClassVar[str] = "odd/rule"
        needed: float = PydanticField(gt=0, description=EVIL)

    kind, form = forms.rule_with_form("odd/rule")
    page = Reader(pages.rule(kind, form))
    assert len(page.named("script")) == 1
    assert f"Take {EVIL} first, by a < b." in page.words
    assert "--rule odd/rule:needed=NUMBER" in page.words
    assert "Even" not in page.words
    assert cells_of(page, "needed")[1] == "none: it must be given"
    assert cells_of(page, "exploration")[1] == "2"
    assert ">>>" not in page.words


def test_a_log_of_persons_is_read_as_one_of_learners_unless_something_else_was_chosen() -> None:
    def checked(seen: Preview, form: Mapping[str, str]) -> set[str | None]:
        return {field["id"] for field in Reader(pages.preview(seen, form, {})).named("input") if "checked" in field}

    people = replace(LOG, roles=(("demonstration", "subject_id"), ("arm", "choice")), binary=True, several=True)
    assert {"rule-learning-softmax", "field-population", "field-bernoulli"} <= checked(people, {})
    assert "rule-unknown" in checked(replace(LOG, roles=(("arm", "choice"),)), {})
    assert "rule-unknown" in checked(replace(people, several=False), {})  # one person shows no population
    in_doubt = Reader(pages.preview(replace(people, problem="Say which column holds the arms."), {}, {}))
    assert not [field for field in in_doubt.named("input") if field.get("name") in ("rule", "population", "bernoulli")]
    chosen = checked(people, {"rule": "any"})
    assert "rule-any" in chosen
    assert not {"field-population", "field-bernoulli"} & chosen


def test_errors_stand_at_their_fields_and_in_a_list_that_leads_to_them() -> None:
    page = Reader(pages.preview(LOG, {"rule": "ucb", "ucb.alpha": "2"}, {"ucb.alpha": "Too large."}))
    (alpha,) = [field for field in page.named("input") if field.get("name") == "ucb.alpha"]
    assert alpha["aria-invalid"] == "true"
    assert alpha["value"] == "2"
    assert "field-ucb-alpha-error" in (alpha["aria-describedby"] or "").split()
    assert {"href": "#field-ucb-alpha"} in page.named("a")
    (listed,) = [attributes for attributes in page.named("section") if attributes.get("id") == "errors"]
    assert "autofocus" in listed
    assert page.words.count("Too large.") == 2


def test_folded_parts_open_where_something_is_wrong_or_not_as_usual() -> None:
    def folded(**given: str) -> int:
        return sum("open" not in each for each in Reader(pages.preview(LOG, given, {})).named("details"))

    every = folded()
    assert folded(horizon="9") == every - 1
    assert folded(**{"ucb.batch": "2", "column.arm": "note"}) == every - 2
    wrong = Reader(pages.preview(LOG, {}, {"seed": "Wrong."}))
    assert sum("open" not in each for each in wrong.named("details")) == every - 1


def test_values_stay_when_the_page_comes_back() -> None:
    sent = {"rule": "sae", "sae.alpha": "0.5", "bernoulli": "on", "level": "0.9", "column.arm": "note", "arms": "A,B"}
    page = Reader(pages.preview(LOG, sent, {}))
    inputs = {(field.get("name"), field.get("value")): field for field in page.named("input")}
    assert "checked" in inputs["rule", "sae"]
    assert "checked" in inputs["bernoulli", "on"]
    assert ("sae.alpha", "0.5") in inputs
    assert ("arms", "A,B") in inputs
    chosen = [option["value"] for option in page.named("option") if "selected" in option]
    assert {"0.9", "note"} <= set(chosen)


def test_a_log_that_cannot_be_used_asks_for_its_columns_and_keeps_the_rest() -> None:
    page = Reader(pages.preview(replace(LOG, problem="No arms."), {"rule": "sae", "sigma": "2"}, {}))
    kept = {field.get("name"): field.get("value") for field in page.named("input") if field.get("type") == "hidden"}
    assert kept == {"carried": "H4sI", "carried_name": "log.csv", "rule": "sae", "sigma": "2"}
    assert [button.get("formaction") for button in page.named("button")] == ["/look"]
    assert "open" in page.named("details")[0]


def test_roles_are_marked_and_can_be_corrected() -> None:
    page = Reader(PAGES["look"]())
    assert page.words.count("read as") == 2
    assert [field["name"] for field in page.named("select")][:5] == [
        "column.arm", "column.demonstration", "column.round", "column.pulls", "column.reward",
    ]  # fmt: skip


def test_with_very_many_columns_a_role_is_typed() -> None:
    page = Reader(PAGES["wide table"]())
    assert not [field for field in page.named("select") if (field["name"] or "").startswith("column.")]
    assert [field for field in page.named("input") if field.get("name") == "column.arm"]


def test_endless_names_of_columns_are_cut_and_typed() -> None:
    long = "x" * 100_000
    text = pages.preview(replace(LOG, columns=(long, "arm"), columns_shown=(long, "arm")), {}, {})
    assert len(text) < 100_000
    assert '<input type="text" id="field-column-arm"' in text


def test_an_unreadable_file_has_nothing_to_correct() -> None:
    page = Reader(pages.preview(Preview("x.csv", problem="Not a table.", carried="H4sI"), {}, {}))
    assert not page.named("form")
    assert "Not a table." in page.words


def test_an_example_is_carried_by_its_name() -> None:
    hidden = [field for field in Reader(PAGES["example"]()).named("input") if field.get("type") == "hidden"]
    assert [(field["name"], field["value"]) for field in hidden] == [("example", "battery")]


def test_combining_demonstrations_is_asked_first_where_there_are_some() -> None:
    several = replace(LOG, roles=(*LOG.roles, ("demonstration", "note")))
    text = pages.preview(several, {}, {})
    assert text.index('name="pool"') < text.index("More options")
    alone = pages.preview(LOG, {}, {})
    assert alone.index('name="pool"') > alone.index("More options")


def test_a_log_with_features_asks_for_their_columns_and_offers_the_rules_that_read_them() -> None:
    page = Reader(PAGES["features"]())
    boxes = [field["name"] for field in page.named("input") if (field.get("name") or "").startswith("feature.")]
    assert boxes == ["feature.price", "feature.age"]
    offered = {field["value"] for field in page.named("input") if field.get("name") == "rule"}
    assert offered == {*known_linear_rules, "any"}
    asked = [field["name"] for field in page.named("select") if (field["name"] or "").startswith("column.")]
    assert "column.chosen" in asked
    assert "column.pulls" not in asked
    inputs = [field["name"] for field in page.named("input") if (field.get("name") or "").startswith("linucb.")]
    assert inputs[:2] == ["linucb.alpha", "linucb.ridge"]
    assert not any(field.get("name") == "linucb.disjoint" and "checked" in field for field in page.named("input"))
    rounds = Reader(pages.preview(replace(OFFERS, roles=LOG.roles), {}, {}))  # all arms have the same context
    assert any(field.get("name") == "linucb.disjoint" and "checked" in field for field in rounds.named("input"))
    typed = Reader(pages.preview(replace(OFFERS, columns_left_out=99_800), {}, {}))
    assert [field["name"] for field in typed.named("input") if field.get("id") == "field-features"] == ["features"]


def test_the_tab_is_marked() -> None:
    marked = [link for link in Reader(PAGES["simulate"]()).named("a") if "aria-current" in link]
    assert [link["href"] for link in marked] == ["/simulate"]


def test_home_states_its_limits_and_what_becomes_of_the_file() -> None:
    words = Reader(pages.home(EXAMPLES, Limits(upload=3 * 1024**3, rows=1000))).words
    assert "At most 3 GB and 1,000 rows" in words
    assert "not kept" in words
    (field,) = [field for field in Reader(PAGES["home"]()).named("input") if field.get("type") == "file"]
    assert field["name"] == "log"
    assert "/look?example=x%20y" in PAGES["home"]()


def test_waiting_says_where_the_work_stands() -> None:
    page = Reader(PAGES["waiting"]())
    assert page.named("progress")[0]["value"] == "0.500"
    assert "1 min 15 s" in page.words
    assert [meta for meta in page.named("meta") if meta.get("http-equiv")] == [
        {"http-equiv": "refresh", "content": "2"}
    ]
    queue = Reader(PAGES["queue"]())
    assert "Waiting for 2 other pieces of work" in queue.words
    assert "value" not in queue.named("progress")[0]
    assert {"method": "post", "action": "/jobs/id/cancel"} in queue.named("form")


def test_the_browser_s_own_way_back_is_named_only_where_there_is_no_button() -> None:
    for name in ("failure", "answer"):
        text = PAGES[name]()
        (said,) = re.findall("<noscript>.*?</noscript>", text.partition("<main")[2])
        assert "go back in your browser" in said
        assert "go back" not in text.replace(said, "")


def test_the_page_names_a_number_of_a_rule_by_its_field() -> None:
    assert forms.page_option("rule", "learning-softmax:rate=VALUE,temperature=fit").startswith("a number in the field ")
    assert forms.page_option("method", "posterior") == '"Method" set to "posterior"'


def test_an_answer_offers_its_files() -> None:
    page = Reader(pages.answer("id", Outcome("T", "<h1>A</h1>", (Download("a b.csv", "Table", "text/csv", b""),))))
    assert {"class": "button", "href": "/jobs/id/files/a%20b.csv", "download": "a b.csv"} in page.named("a")
    assert {"method": "post", "action": "/jobs/id/forget"} in page.named("form")


def test_the_simulation_begins_with_something_worth_looking_at() -> None:
    from unbandit.web.forms import read_simulation

    page = Reader(PAGES["simulate"]())
    sent = {field["name"]: field["value"] for field in page.named("input") if field.get("type") == "text"}
    sent |= {field["name"]: field["value"] for field in page.named("input") if "checked" in field}
    options = [option["value"] for option in page.named("option") if "selected" in option]
    asked = read_simulation({str(key): str(value) for key, value in sent.items()} | {"dataset": str(options[0])})
    assert asked.rule == "ucb:alpha=0.25,sigma=0.14"
    assert len(asked.instance()) == 12


def test_a_ticked_box_can_be_unticked() -> None:
    from unbandit.web.fields import Field

    macros = pages._environment().get_template("macros.html").make_module({"tab": None})
    box = Field("x", "X", kind="box", usual="on")
    assert 'value="off"' in macros.input(box, {}, {})
    assert "checked" in macros.input(box, {}, {})
    assert "checked" not in macros.input(box, {"x": "off"}, {})


def test_style_script_and_icon_are_there() -> None:
    assert "#rule-ucb:checked" in pages.stylesheet()
    assert "prefers-reduced-motion" in pages.stylesheet()
    assert "url(" not in pages.stylesheet()
    assert "innerHTML" not in pages.static("page.js")
    assert pages.static("icon.svg").startswith("<svg")
