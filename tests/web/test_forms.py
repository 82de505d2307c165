"""Forms: every rule has one made from its own parameters, and what was typed is read back or refused kindly."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field as Parameter

from unbandit import EXP3, rules
from unbandit.contexts import known_linear_rules
from unbandit.demonstrators import IndexRule, parse_rule
from unbandit.demonstrators.base import known_rules
from unbandit.web.examples import EXAMPLES
from unbandit.web.fields import Field, FieldErrors, field_content, field_of, identifier, read_field
from unbandit.web.forms import (
    PLAIN_NAMES,
    ReadAs,
    missing_mean,
    page_option,
    read_columns,
    read_options,
    read_rule,
    read_simulation,
    rule_css,
    rule_forms,
    rule_groups,
)


@pytest.fixture
def foreign() -> str:
    """Define a rule as another package would, with a parameter of every kind."""

    class Foreign(IndexRule):
        """Pull whatever <b>another package</b> pulls."""

        name: ClassVar[str] = "foreign.rule+2"

        eager: bool = Parameter(True, description="whether it is eager")
        mood: Literal["calm", "wild"] | None = Parameter(None, description="its mood.")
        steps: Annotated[int, Parameter(ge=2)] | None = None
        share: float = Parameter(0.5, gt=0, le=1)
        note: str = ""
        either: bool | None = None

        def parameters(self, horizon: int) -> Any:
            return None

        def index(self, *_: Any) -> Any:
            return None

    return Foreign.name


def form_of(name: str) -> Any:
    return next(form for form in rule_forms() if form.name == name)


def wrong(form: dict[str, str], reader: Any = read_rule) -> dict[str, str]:
    with pytest.raises(FieldErrors) as caught:
        reader(form)
    return caught.value.errors


def test_a_rule_that_needs_a_known_mean_asks_for_it_unless_something_else_gives_it():
    assert list(missing_mean("klucb", {})) == ["best_mean"]
    assert list(missing_mean("klucb", {"method": "bracket"})) == ["best_mean"]
    for options in ({"best_mean": 0.5}, {"anchor": {"A": 0.5}}, {"method": "posterior"}):
        assert missing_mean("klucb", options) == {}
    for rule in ("ucb1", "ucb1:fit", "sae", "thompson", "klucb:noise=gaussian,sigma=0.5"):
        assert missing_mean(rule, {}) == {}


@pytest.mark.parametrize(
    "text",
    [
        "C, 301,\nB,,1500",
        "C,301\r\n\r\nB, ,1500\r\n",
        "arm,first,last\nC,301,\nB,,1500",
        "Arm\tFirst\tLast\nC\t301\t\nB\t\t1500",
    ],
)
def test_when_arms_could_be_chosen_is_read_line_by_line_or_from_a_table(text: str) -> None:
    assert read_options({"availability": text}) == {"availability": {"C": ("301", ""), "B": ("", "1500")}}
    dates = text.replace("301", "2026-05-01").replace("1500", "2026-05-31T12:00")
    assert read_options({"availability": dates})["availability"]["B"] == ("", "2026-05-31T12:00")


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        (
            "availability",
            "C",
            'Expected an arm, its first and its last round in each line, as in C, 1001, 3000; got "C".',
        ),
        ("availability", ",1,2", "Expected an arm"),
        ("availability", "C,1,2,3", 'got "C, 1, 2, 3"'),
        ("availability", "C,5,3", "Expected a first round up to the last"),
        ("availability", "C,x,", "Expected a round, counted from 1"),
        ("availability", "C,1,\nC,2,", 'got "C" again'),
        ("availability", "C,2026-05-01,\nB,,30", "Expected rounds throughout or times throughout"),
        ("availability", "C,2026-05-02,2026-05-01", "Expected a first round up to the last"),
        ("availability", "arm,first,last", "Expected a line"),
        (
            "starting_pulls",
            "A, 300",
            "Expected each arm and its pulls before the log in a line, as in A, 300, with 0 for none",
        ),
        ("starting_pulls", "A, 300\nB", 'got "B"'),
        ("starting_pulls", "arm,pulls", "Expected each arm"),
        ("starting_pulls", "A,3\nB,x", 'got "B, x"'),
        ("starting_pulls", "A,3\nB,2\nA,1", 'got "A" again.'),
        ("kept", "1", "Expected a number above 0 and below 1"),
        ("kept", "80%", "Expected a number above 0 and below 1"),
        ("windows", "1", "Expected a whole number, at least 2"),
    ],
)
def test_what_is_wrong_with_parts_of_a_run_stands_at_its_field(field: str, text: str, words: str) -> None:
    errors = wrong({field: text}, read_options)
    assert list(errors) == [field]
    assert words in errors[field]


def test_messages_name_the_fields_of_parts_of_a_run() -> None:
    assert page_option("kept") == 'the field "Probability of being kept"'
    assert page_option("availability") == 'the field "When arms could be chosen"'
    assert page_option("windows") == 'the field "Stretches"'
    assert page_option("starting_pulls") == 'the field "Pulls before the log"'


@pytest.mark.parametrize("text", ["A, 300\nB, 200", "Arm,Pulls\nA,300\n\nB,200", "arm\tpulls\nA\t300\nB\t200"])
def test_pulls_before_a_log_are_read_line_by_line_or_from_a_table(text: str) -> None:
    assert read_options({"starting_pulls": text})["starting_pulls"].to_frame().rows() == [("A", 300), ("B", 200)]


@pytest.mark.parametrize("header", ["", "demonstration,arm,pulls\n"])
def test_pulls_before_several_runs_begin_with_the_run(header: str) -> None:
    rows = [("r1", "A", 3), ("r1", "B", 2), ("r2", "A", 1), ("r2", "B", 0)]
    text = header + "\n".join(f"{run},{arm},{pulls}" for run, arm, pulls in rows)
    assert read_options({"starting_pulls": text})["starting_pulls"].to_frame().rows() == rows


def test_every_rule_has_a_form_with_all_of_its_parameters() -> None:
    assert [form.name for form in rule_forms()] == list(rules())
    for name, rule in rules().items():
        form = form_of(name)
        assert form.summary == PLAIN_NAMES.get(form.name, ("", "", rule.summary()))[2]
        choosable = {
            f"{name}.{key}"
            for key, info in rule.model_fields.items()
            if info.annotation not in (Literal[1], Literal["round"])  # nothing to choose
        }
        assert {field.name for field in (*form.fields, *form.rarely)} == choosable
        assert all(field.about.endswith(".") for field in (*form.fields, *form.rarely))


@pytest.mark.parametrize("name", list(rules()))
def test_a_form_sent_as_it_stands_is_the_rule_as_usual(name: str) -> None:
    form = form_of(name)
    sent = {"rule": name} | {field.name: field_content(field, {}) for field in (*form.fields, *form.rarely)}
    text = read_rule(sent)
    assert text is not None
    assert parse_rule(text) == rules()[name]()


@pytest.mark.parametrize(
    ("name", "parameters"),
    [(name, example) for name, rule in rules().items() for example in rule.examples],
    ids=str,
)
def test_a_rule_typed_into_its_form_is_that_rule(name: str, parameters: dict[str, Any]) -> None:
    text = read_rule({"rule": name} | {f"{name}.{key}": str(value) for key, value in parameters.items()})
    assert text is not None
    assert parse_rule(text) == rules()[name](**parameters)


def test_rules_are_grouped_by_who_uses_them() -> None:
    groups = {group.title: [rule.name for rule in group.rules] for group in rule_groups()}
    assert sum(map(len, groups.values())) == len(rules())
    assert groups["People and animals"][0] == "learning-softmax"
    assert groups["Software"][:3] == ["thompson", "ucb1", "epsilon-greedy"]
    assert "sae" in groups["Experiments and trials"]
    assert groups["Rules that reveal no values"] == ["explore-then-commit", "uniform"]
    assert "Other rules" not in groups  # every rule of this package has a plain name


def test_plain_names_are_of_rules_that_there_are() -> None:
    assert set(PLAIN_NAMES) <= set(rules())
    titles = [title for _, title, _ in PLAIN_NAMES.values()]
    assert len(set(titles)) == len(titles)
    assert all(about.endswith(".") for _, _, about in PLAIN_NAMES.values())


def test_what_is_rarely_changed_stands_apart() -> None:
    assert [field.name for field in form_of("ucb").fields] == ["ucb.alpha", "ucb.scale", "ucb.sigma"]
    assert {field.name for field in form_of("ucb").rarely} == {"ucb.ties", "ucb.initial", "ucb.batch", "ucb.delay"}


def test_only_the_chosen_rule_is_read() -> None:
    assert read_rule({"rule": "ucb", "ucb.alpha": "0.3", "sae.alpha": "nonsense"}) == "ucb:alpha=0.3"
    assert read_rule({"rule": "ucb", "ucb.ties": "random", "ucb.batch": "3"}) == "ucb:ties=random,batch=3"
    assert read_rule({"rule": "unknown", "ucb.alpha": "nonsense"}) is None


def test_another_packages_rule_has_its_form(foreign: str) -> None:
    form = form_of(foreign)
    assert form.summary == "Pull whatever <b>another package</b> pulls."
    found = {field.label: field for field in form.fields}
    assert [found[label].kind for label in ("Eager", "Mood", "Steps", "Share", "Note", "Either")] == [
        "box", "choice", "whole", "number", "text", "choice",
    ]  # fmt: skip
    assert found["Steps"].at_least == 2
    assert found["Mood"].choices == (("", "as usual"), ("calm", "calm"), ("wild", "wild"))
    assert found["Mood"].about == "Its mood."
    assert read_rule({"rule": foreign}) == foreign
    sent = {
        "rule": foreign,
        f"{foreign}.eager": "off",
        f"{foreign}.mood": "wild",
        f"{foreign}.steps": "2",
        f"{foreign}.share": "0.25",
    }
    text = read_rule(sent)
    assert text == "foreign.rule+2:eager=False,mood=wild,steps=2,share=0.25"
    assert parse_rule(text).model_dump()["eager"] is False
    errors = wrong({"rule": foreign, f"{foreign}.steps": "1", f"{foreign}.share": "0", f"{foreign}.mood": "sad"})
    assert errors == {
        f"{foreign}.mood": 'Expected calm or wild; got "sad".',
        f"{foreign}.steps": 'Expected a whole number, at least 2; got "1".',
        f"{foreign}.share": 'Expected a number above 0 and at most 1; got "0".',
    }
    assert set(wrong({"rule": foreign, f"{foreign}.note": "a,b"})) == {foreign}


@pytest.mark.parametrize("name", ["Upper", "with:colon", "two words", "unknown", "any", "a,b"])
def test_a_rule_that_cannot_be_typed_has_no_form(name: str) -> None:
    known_rules[name] = rules()["ucb"]
    assert name not in [form.name for form in rule_forms()]


def test_a_rule_without_a_docstring_goes_by_its_name() -> None:
    class Quiet(EXP3):
        name: ClassVar[str] = "quiet"

    assert next(form.summary for form in rule_forms() if form.name == "quiet") == "quiet"


def test_css_holds_nothing_but_identifiers_of_rules() -> None:
    strange = 'a"]{}<style>@import/*\\'
    known_rules[strange] = rules()["ucb"]
    css = rule_css()
    del known_rules[strange]
    assert identifier(strange) in css
    selectors = (
        css.removeprefix("@supports selector(:has(*)) {\n").removesuffix(" { display: none; }\n}\n").split(",\n")
    )
    assert len(selectors) == len(rules()) + len(known_linear_rules) + 1
    for selector in selectors:
        assert re.fullmatch(r"  form:not\(:has\(#rule-([\w-]+):checked\)\) #fields-\1", selector, re.ASCII), selector


@pytest.mark.parametrize(
    ("form", "errors"),
    [
        ({}, {"rule": "Expected one of the rules; got none. Choose the rule that made the choices."}),
        ({"rule": "ucbb"}, {"rule": 'Expected one of the rules below; got "ucbb".'}),
        (
            {"rule": "ucb", "ucb.alpha": "1", "ucb.initial": "1.5"},
            {
                "ucb.alpha": 'Expected a number, at least 0 and below 1; got "1".',
                "ucb.initial": 'Expected a whole number, at least 1; got "1.5".',
            },
        ),
        (
            {"rule": "ucb", "ucb.alpha": "0,25"},
            {"ucb.alpha": 'Expected a number, at least 0 and below 1; got "0,25". Write the decimal point as a point.'},
        ),
        (
            {"rule": "ucb", "ucb.scale": "1", "ucb.sigma": "1"},
            {"ucb": "Expected scale or sigma, not both (sigma means scale = 5 sigma); leave one out."},
        ),
        ({"rule": "ucb", "ucb.ties": "both"}, {"ucb.ties": 'Expected lowest or random; got "both".'}),
    ],
)
def test_a_wrong_rule_is_refused_at_its_fields(form: dict[str, str], errors: dict[str, str]) -> None:
    assert wrong(form) == errors


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999", "1_000", "0x10", "one", "1" * 50, "٣x"])
def test_only_finite_numbers_are_numbers(text: str) -> None:
    with pytest.raises(ValueError, match=r"^Expected a number"):
        read_field(Field("x", "X", kind="number"), {"x": text})


@pytest.mark.parametrize(
    ("text", "value"), [("5000", 5000), ("5,000", 5000), ("5 000", 5000), ("1e3", 1000), ("", None)]
)
def test_whole_numbers_may_be_written_as_people_write_them(text: str, value: int | None) -> None:
    assert read_field(Field("x", "X", kind="whole"), {"x": text}) == value


def test_a_long_wrong_value_is_cut() -> None:
    with pytest.raises(ValueError, match=r"^Expected") as caught:
        read_field(Field("x", "X", kind="number"), {"x": "y" * 100_000})
    assert len(str(caught.value)) < 120


def test_a_parameter_that_must_be_given_begins_blank() -> None:
    info = Parameter(gt=0)
    info.annotation = float
    made = field_of("rule.width", "width", info)
    assert made is not None
    assert made.usual == ""


def test_options_left_blank_are_left_out() -> None:
    assert read_options({}) == {}
    assert read_options({"best_mean": " ", "level": "", "method": "", "scale": "known", "pool": ""}) == {}


def test_options_are_what_estimate_takes() -> None:
    form = {
        "rule": "thompson", "anchor.arm": "B", "anchor.value": "0.4", "bernoulli": "on", "level": "0.9",
        "horizon": "10,000", "method": "posterior", "pool": "on", "seed": "3",
    }  # fmt: skip
    assert read_options(form) == {
        "anchor": {"B": 0.4}, "bernoulli": True, "level": 0.9, "horizon": 10_000, "method": "posterior", "pool": True,
        "seed": 3,
    }  # fmt: skip


def test_several_known_arms_are_read_together() -> None:
    one = {"anchor.arm": "A", "anchor.value": "1"}
    more = {"anchor.more": 'B=0.4, "C, large = 0.2"\nx=y=0.3'}
    assert read_options(one | more)["anchor"] == {"A": 1.0, "B": 0.4, "C, large": 0.2, "x=y": 0.3}
    assert read_options(more)["anchor"] == {"B": 0.4, "C, large": 0.2, "x=y": 0.3}


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ({"sigma": "0"}, {"sigma"}),
        ({"anchor.more": "B"}, {"anchor.more"}),
        ({"anchor.more": "B=0.4, B=0.3"}, {"anchor.more"}),
        ({"anchor.more": ","}, {"anchor.more"}),
        ({"anchor.arm": "B", "anchor.value": "0.5", "anchor.more": "B=0.4"}, {"anchor.more"}),
        ({"sigma": "1", "bernoulli": "on"}, {"sigma"}),
        ({"anchor.arm": "B"}, {"anchor.value"}),
        ({"anchor.value": "1"}, {"anchor.arm"}),
        ({"anchor.arm": "B", "anchor.value": "x"}, {"anchor.value"}),
        ({"best_mean": "1", "anchor.arm": "B", "anchor.value": "0.5"}, {"anchor.arm"}),
        ({"best_mean": "1", "scale": "unknown"}, {"scale"}),
        ({"best_mean": "3", "bernoulli": "on"}, {"best_mean"}),
        ({"anchor.arm": "B", "anchor.value": "3", "bernoulli": "on"}, {"anchor.arm"}),
        ({"level": "95", "method": "magic", "horizon": "0", "seed": "-1"}, {"level", "method", "horizon", "seed"}),
    ],
)
def test_wrong_options_are_refused_at_their_fields(form: dict[str, str], fields: set[str]) -> None:
    errors = wrong(form, read_options)
    assert set(errors) == fields
    assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in errors.values())


def test_columns_are_named_or_found() -> None:
    assert read_columns({"column.arm": "", "column.round": ""}) == ReadAs()
    named = read_columns({"column.arm": "picked", "column.reward": "(none)"})
    assert named == ReadAs({"arm": "picked", "reward": ""})
    assert read_columns({"duplicates": "add"}).duplicates == "add"
    assert read_columns({"arms": 'A, "B, large"\nC'}) == ReadAs(arms=["A", "B, large", "C"])
    offers = {"contexts": "on", "column.chosen": "shown", "feature.x 1": "on", "feature.y": "off", "features": "z, y"}
    assert read_columns(offers) == ReadAs({"chosen": "shown"}, contexts=True, features=("x 1", "z", "y"))


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ({"column.arm": "(none)"}, {"column.arm"}),
        ({"column.arm": "x", "column.round": "x"}, {"column.round"}),
        ({"column.round": "x", "column.pulls": "y"}, {"column.pulls"}),
        ({"arms": "A,,B"}, {"arms"}),
        ({"arms": "A,B,A"}, {"arms"}),
        ({"duplicates": "magic"}, {"duplicates"}),
    ],
)
def test_wrong_columns_are_refused_at_their_fields(form: dict[str, str], fields: set[str]) -> None:
    assert set(wrong(form, read_columns)) == fields


RUN = {"rule": "ucb", "horizon": "500", "seed": "1"}


def test_a_simulation_of_a_data_set() -> None:
    asked = read_simulation({**RUN, "source": "dataset", "dataset": "battery-high", "arms": "20"})
    assert (asked.rule, asked.horizon, asked.seed) == ("ucb", 500, 1)
    assert len(asked.instance()) == 20
    assert asked.command == "unbandit simulate battery-high --arms 20 --rule ucb --horizon 500 --seed 1 -o log.csv"


@pytest.mark.parametrize(
    ("name", "arms", "there"), [("two-armed", "12", 2), ("battery-low", "500", 224), ("linear", "", 4)]
)
def test_a_data_set_gives_the_arms_it_has(name: str, arms: str, there: int) -> None:
    assert len(read_simulation({**RUN, "dataset": name, "arms": arms}).instance()) == there


def test_a_simulation_of_ones_own() -> None:
    own = {**RUN, "source": "means", "means": "1, 0.5, 0", "noise": "gaussian", "sigma": "0.5"}
    instance = read_simulation(own).instance()
    assert (instance.means.tolist(), instance.sigma, instance.arms) == ([1.0, 0.5, 0.0], 0.5, ("A", "B", "C"))
    asked = read_simulation({**own, "noise": "bernoulli", "rule": "klucb"})
    assert "--bernoulli" in asked.command
    assert str(asked.instance().noise) == "Bernoulli()"


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ({}, {"rule", "horizon", "dataset"}),
        ({**RUN, "dataset": "nowhere"}, {"dataset"}),
        ({**RUN, "dataset": "gene", "arms": ""}, {"arms"}),
        ({**RUN, "dataset": "gene", "arms": "1001"}, {"arms"}),
        ({**RUN, "dataset": "linear", "horizon": "1000001"}, {"horizon"}),
        ({**RUN, "dataset": "linear", "horizon": "3"}, {"horizon"}),
        ({**RUN, "dataset": "linear", "seed": "-1"}, {"seed"}),
        ({**RUN, "dataset": "linear", "rule": "unknown"}, {"rule"}),
        ({**RUN, "dataset": "linear", "rule": "klucb"}, {"rule"}),
        ({**RUN, "source": "means", "means": "1"}, {"means"}),
        ({**RUN, "source": "means", "means": "1, x"}, {"means"}),
        ({**RUN, "source": "means", "means": "1, inf"}, {"means"}),
        ({**RUN, "source": "means", "means": ",".join("1" * 1001)}, {"means"}),
        ({**RUN, "source": "means", "means": "1" * 100_000}, {"means"}),
        ({**RUN, "source": "means", "means": "2, 1", "noise": "bernoulli"}, {"means"}),
        ({**RUN, "source": "means", "means": "2, 1", "sigma": "0"}, {"sigma"}),
    ],
)
def test_a_wrong_simulation_is_refused_at_its_fields(form: dict[str, str], fields: set[str]) -> None:
    assert set(wrong(form, read_simulation)) == fields


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("best_mean", None, 'the field "The best arm\'s value"'),
        ("method", "posterior", '"Method" set to "posterior"'),
        ("arms", ["A", "B"], 'the field "All arms"'),
        ("columns", {"round": "NAME"}, 'the field "Round"'),
        ("columns", {"reward": "Gain"}, '"Gain" in the field "Reward"'),
        ("columns", {"reward": ""}, '"no column" in the field "Reward"'),
        ("bernoulli", True, 'the field "Every reward was 0 or 1 (no or yes)"'),
        ("particles", None, "--particles on the command line"),
        ("prior", None, "--prior on the command line"),  # that of coefficients has a field, and a form of its own
        ("rule", "softmax:fit", '"fit" in the fields of the rule'),
        ("header", False, "a line of column names added above it"),
        ("sheet", "NAME", 'that sheet in the field "Sheet"'),
    ],
)
def test_options_are_called_by_their_labels(name: str, value: Any, written: str) -> None:
    assert page_option(name, value) == written


def test_numbers_may_be_fitted_where_the_family_can() -> None:
    assert read_rule({"rule": "ucb", "ucb.alpha": "0.25", "ucb.scale": " Fit "}) == "ucb:alpha=0.25,scale=fit"
    learner = {"rule": "learning-softmax", "learning-softmax.rate": "fit", "learning-softmax.temperature": "fit"}
    assert read_rule(learner) == "learning-softmax:rate=fit,temperature=fit"
    errors = wrong({"rule": "sae", "sae.alpha": "0.25", "sae.scale": "fit"})
    assert list(errors) == ["sae.scale"]
    assert "cannot be fitted: an elimination rule leaves one number per arm" in errors["sae.scale"]
    assert list(wrong({"rule": "ucb", "ucb.alpha": "0.25", "ucb.batch": "fit"})) == ["ucb.batch"]
    errors = wrong({"rule": "ucb", "ucb.alpha": "fit", "ucb.scale": "wide"})
    assert list(errors) == ["ucb.scale"]


def test_a_rule_with_a_number_to_be_fitted_is_not_played() -> None:
    asked = {"rule": "ucb", "ucb.scale": "fit", "horizon": "100", "source": "means", "means": "1, 0.5", "sigma": "1"}
    errors = wrong(asked, read_simulation)
    assert list(errors) == ["ucb.scale"]
    assert "Expected a number" in errors["ucb.scale"]
    assert read_simulation(asked | {"ucb.scale": "1.2"}).rule == "ucb:scale=1.2"


def test_blank_numbers_are_fitted_or_the_usual_ones() -> None:
    for name in ("ucb1", "ucb", "moss", "epsilon-greedy", "softmax", "learning-softmax"):
        preset = form_of(name).preset
        assert preset is not None
        assert preset.usual == "fit"
        assert read_rule({"rule": name}) == name  # a form that was not sent by the page
        assert read_rule({"rule": name, preset.name: "usual"}) == name
        assert ":" in str(read_rule({"rule": name, preset.name: "fit"}))
    fitted = {"ucb1.preset": "fit", "ucb.preset": "fit"}
    assert read_rule({"rule": "ucb1"} | fitted) == "ucb1:exploration=fit"
    assert read_rule({"rule": "ucb1", "ucb1.exploration": "0.5"} | fitted) == "ucb1:exploration=0.5"
    assert read_rule({"rule": "ucb"} | fitted) == "ucb:alpha=fit,scale=fit"
    assert read_rule({"rule": "ucb", "ucb.alpha": "0.25"} | fitted) == "ucb:alpha=0.25,scale=fit"
    assert read_rule({"rule": "ucb", "ucb.alpha": "0.25", "ucb.sigma": "0.1"} | fitted) == "ucb:alpha=0.25,sigma=0.1"
    assert dict(form_of("ucb1").preset.choices)["usual"] == "standard UCB1: exploration 2"
    assert dict(form_of("ucb").preset.choices)["usual"] == "as in the paper: alpha 0.25, scale 1.414"
    assert list(wrong({"rule": "ucb1", "ucb1.preset": "best"})) == ["ucb1.preset"]


def test_numbers_that_no_log_shows_have_no_preset() -> None:
    for name in ("sae", "phased", "klucb", "thompson", "ucb-tuned", "uniform"):
        assert form_of(name).preset is None
    for group in rule_groups(played=True):
        assert all(form.preset is None for form in group.rules)
    assert {field.name: field.usual for field in form_of("ucb1").fields}["ucb1.exploration"] == ""
    (played,) = [form for form in rule_forms(played=True) if form.name == "ucb1"]
    assert {field.name: field.usual for field in played.fields}["ucb1.exploration"] == "2.0"


def test_examples_are_answered_with_the_numbers_they_were_made_with() -> None:
    for example in EXAMPLES.values():
        rule = read_rule(example.form)
        assert rule is not None
        assert "fit" not in rule


def test_people_are_not_combined_and_each_their_own():
    assert read_options({"population": "on"}) == {"population": True}
    with pytest.raises(FieldErrors) as refused:
        read_options({"population": "on", "pool": "on"})
    assert set(refused.value.errors) == {"population"}
    assert read_options({"population": "on", "values": "on"}) == {"population": True, "values": "shared"}
    with pytest.raises(FieldErrors) as refused:
        read_options({"values": "on"})
    assert set(refused.value.errors) == {"values"}
