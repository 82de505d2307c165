"""The forms of the page: columns and options of a log, a form for each rule, and the form of a simulation."""

import csv
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import resources
from string import ascii_uppercase
from typing import Any, NamedTuple

import polars as pl

from unbandit import checks, datasets
from unbandit.contexts import known_linear_rules
from unbandit.contexts.rule import linear_rule_or_family
from unbandit.contexts.table import CONTEXT_ROLES
from unbandit.demonstrators import parse_rule, rules
from unbandit.demonstrators.base import rule_or_family
from unbandit.demonstrators.family import FIT, RuleFamily
from unbandit.demonstrators.index import IndexRule
from unbandit.demonstrators.rule import Rule
from unbandit.errors import LogError, NotIdentifiable, ParameterError, shell_option
from unbandit.estimators.arguments import check_numbers
from unbandit.formatting import capitalise
from unbandit.instance import Bernoulli, Gaussian, Instance, Noise
from unbandit.log import ActionLog
from unbandit.log.availability import COLUMNS as COLUMNS_OF_AVAILABILITY
from unbandit.log.availability import spans_of
from unbandit.log.columns import ROLES
from unbandit.log.sources import Blank, Duplicates
from unbandit.web.fields import ON, Field, FieldErrors, collect, field_of, identifier, quote, read_fields

NO_COLUMN, UNKNOWN_RULE, ANY_RULE, USUAL = "(none)", "unknown", "any", "usual"
"""Values of fields: no column plays a role; the rule is to be found; a first look at all rules; the usual numbers."""

PEOPLES_RULE, PERSONS = (
    "learning-softmax",
    frozenset({"subject", "subj", "sub", "participant", "person", "player", "patient", "child"}),
)
"""The rule that a log of persons is read by if nothing else is chosen, and what their column is called."""

RARELY_CHANGED = frozenset(
    {"ties", "clock", "opening"}
)  # parameters that are rarely changed, besides those that a rule leaves unwritten
FEATURE = "feature."  # before a column's name in the name of its box
MODEL = frozenset({"intercept", "disjoint"})  # what a linear model consists of
PLACEHOLDER = "NAME"  # what messages write in place of a column's name


def _fields(entries: list[dict[str, Any]]) -> tuple[Field, ...]:
    return tuple(
        Field(**entry | {"choices": tuple(tuple(choice) for choice in entry.get("choices", ()))}) for entry in entries
    )


_TEXTS = tomllib.loads(resources.files("unbandit.web").joinpath("templates", "fields.toml").read_text("utf-8"))
KNOWN, MORE, (POOL, PEOPLE, SAME_ARMS) = (_fields(_TEXTS[name]) for name in ("known", "more", "pool"))
ARMS, DUPLICATES, BLANK = _fields(_TEXTS["arms"])
(SHEET,) = _fields(_TEXTS["sheet"])
DATASET, OWN, RUN = (_fields(_TEXTS[name]) for name in ("dataset", "own", "run"))
COLUMNS: dict[str, list[str]] = _TEXTS["columns"]
GROUPS: dict[str, list[str]] = _TEXTS["groups"]
PLAIN_NAMES: dict[str, list[str]] = _TEXTS["rules"]
PRESETS: dict[str, str] = _TEXTS["presets"]
EXPLANATIONS: dict[str, list[str]] = _TEXTS["explanations"]
SYMBOLS: dict[str, str] = _TEXTS["symbols"]
OPEN_DEFAULTS: dict[str, str] = _TEXTS["defaults"]
ALLOWED: dict[str, str] = _TEXTS["allowed"]
(CONTEXTS,), CONTEXT_KNOWN, (FEATURES,) = (_fields(_TEXTS[name]) for name in ("contexts", "context_known", "features"))
LINEAR_NAMES: dict[str, list[str]] = _TEXTS["linear"]
FIRST_SIMULATION: dict[str, str] = _TEXTS["first_simulation"]

MOST_ARMS, MOST_ROUNDS = (int(field.at_most or 0) for field in (DATASET[1], RUN[0]))  # limits of a simulation


# The names of options, as the page writes them


def page_option(name: str, value: Any = None) -> str:
    """Write an option as the page does: the label of its field, and what to put there."""
    if name == "columns" and isinstance(value, dict) and value:
        return " and ".join(_in_field(COLUMNS.get(role, (role,))[0], column) for role, column in value.items())
    if name == "header":  # the page has no field for it; this and the sheet follow on "read the file with"
        return "a line of column names added above it"
    if name == "sheet":
        return f'that sheet in the field "{SHEET.label}"'
    if name == "rule" and isinstance(value, str) and value.endswith((":fit", ",fit")):
        return '"fit" in the fields of the rule'
    if name == "rule" and isinstance(value, str) and "=VALUE" in value:
        kind, _, numbers = value.partition(":")
        key = next(each for each in numbers.split(",") if each.endswith("=VALUE")).removesuffix("=VALUE")
        field = rules()[kind].model_fields.get(key) if kind in rules() else None
        label = field_of(key, key, field) if field is not None else None
        return f'a number in the field "{key if label is None else label.label}" of the rule'
    labels = {field.name: field.label for field in (*KNOWN, POOL, PEOPLE, SAME_ARMS, *MORE)}
    labels |= {
        "features": FEATURES.label, "arms": ARMS.label, "duplicates": DUPLICATES.label, "blank": BLANK.label,
        "anchor": labels["anchor.arm"],
    }  # fmt: skip
    if name not in labels:
        return f"{shell_option(name, value)} on the command line"
    if name == "method" and isinstance(value, str):
        return f'"{labels[name]}" set to "{value}"'
    return _in_field(labels[name], value if isinstance(value, str) else None)


def _in_field(label: str, value: str | None) -> str:
    if value is None or value == PLACEHOLDER:
        return f'the field "{label}"'
    return f'"{value or "no column"}" in the field "{label}"'


# The log: its columns, and what is known besides


def suggested(roles: Mapping[str, str], *, binary: bool, several: bool) -> dict[str, str]:
    """Return what a form says before anybody filled it: a log of several persons is of learners, another of any rule.

    >>> suggested({"arm": "choice", "demonstration": "Subject"}, binary=True, several=True)
    {'rule': 'learning-softmax', 'population': 'on', 'bernoulli': 'on'}
    >>> suggested({"arm": "choice", "demonstration": "run"}, binary=False, several=True)
    {'rule': 'unknown'}
    """
    column = re.sub(r"[^a-z]|(id|s)$", "", roles.get("demonstration", "").lower())
    form = {"rule": PEOPLES_RULE, PEOPLE.name: "on"} if several and column in PERSONS else {"rule": UNKNOWN_RULE}
    return form | ({"bernoulli": "on"} if binary else {})


def read_options(form: Mapping[str, str]) -> dict[str, Any]:
    """Return what is known besides the log, as options of `estimate`, without those left blank."""
    given, errors = read_fields((*KNOWN, POOL, PEOPLE, SAME_ARMS, *MORE), form)
    if given.get("pool") and given.get("population"):
        errors["population"] = f'Expected without "{POOL.label}": people with numbers of their own are not combined.'
    if given.pop("values", False):
        given["values"] = "shared"
        if not given.get("population"):
            errors["values"] = f'Expected with "{PEOPLE.label}"; otherwise leave it open.'
    arm, value = given.pop("anchor.arm", None), given.pop("anchor.value", None)
    if arm is not None and value is None and "anchor.value" not in errors:
        errors["anchor.value"] = f"Expected the value of the arm {quote(arm)}; got none."
    if arm is None and value is not None:
        errors["anchor.arm"] = "Expected the name of the arm that has this value; got none."
    if "level" in given:
        given["level"] = float(given["level"])
    more = given.pop("anchor.more", None)
    for name, table in (("availability", _availability), ("starting_pulls", _starting_pulls)):
        if name in given:
            try:
                given[name] = table(given[name])
            except ParameterError as error:
                errors[name] = capitalise(error.said(page_option))
    anchors = {arm: value} if arm is not None and value is not None else {}
    try:
        anchors |= _more_anchors(more, anchors) if more is not None else {}
    except ParameterError as error:
        errors["anchor.more"] = capitalise(error.said(page_option))
    if anchors:
        given["anchor"] = anchors
    try:
        check_numbers(
            given.get("best_mean"), given.get("anchor"), given.get("level", 0.95), given.get("sigma"),
            given.get("bernoulli", False), given.get("scale", "known"), None,
        )  # fmt: skip
    except ParameterError as error:
        place = str(error.parameter)
        place = "anchor.arm" if place.startswith("anchor") else place
        errors.setdefault(place, capitalise(error.said(page_option)))
    if errors:
        raise FieldErrors(errors)
    return {key: value for key, value in given.items() if value is not False and (key, value) != ("scale", "known")}


def missing_mean(rule: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Return what is wrong with the field of the best mean, where a rule needs one that was left blank."""
    assumed = rule_or_family(rule)
    asks = isinstance(assumed, IndexRule) and not assumed.shifts
    if not asks or not {"best_mean", "anchor"}.isdisjoint(options) or options.get("method") in ("posterior", "naive"):
        return {}
    labels = {field.name: field.label for field in MORE}
    return {
        "best_mean": "Expected a value: without one known mean the choices of this rule show no gaps. If you know that "
        f'of another arm, use "{labels["anchor.arm"]}". If you know none, choose "posterior" as "{labels["method"]}". '
        "Both are under More options."
    }


def _more_anchors(text: str, known: Mapping[str, float]) -> dict[str, float]:
    """Read `B=0.4, C=0.2`; a name with a comma in it is put in double quotes; lines count as commas."""
    names = _comma_separated(text)
    added = checks.anchors([name for name in names if name] or [text]) or {}
    if twice := next((arm for arm in added if arm in known), None):
        raise ParameterError(f"expected each arm once; got {quote(twice)} twice.", parameter="anchor")
    return added


def _table_rows(text: str, *headers: Sequence[str]) -> list[list[str]]:
    """Read lines of cells, or a table from a spreadsheet, without lines that are blank and a header."""
    try:
        rows = list(csv.reader(text.splitlines(), delimiter="\t" if "\t" in text else ",", skipinitialspace=True))
    except csv.Error:
        rows = [[text]]
    found = [[cell.strip() for cell in row] for row in rows if any(map(str.strip, row))]
    return found[1:] if found and tuple(map(str.lower, found[0])) in headers else found


def _availability(text: str) -> dict[str, tuple[str, str]]:
    """Read `C, 1001, 3000` line by line, or a table from a spreadsheet: an arm, its first and its last round."""
    told: dict[str, tuple[str, str]] = {}
    for cells in _table_rows(text, COLUMNS_OF_AVAILABILITY):
        arm, *span = cells
        if not arm or not 1 <= len(span) <= 2:
            expected = "expected an arm, its first and its last round in each line, as in C, 1001, 3000"
            raise ParameterError(f"{expected}; got {quote(', '.join(cells))}.", parameter="availability")
        if arm in told:
            raise ParameterError(f"expected each arm once; got {quote(arm)} again.", parameter="availability")
        told[arm] = (span[0], span[1] if len(span) == 2 else "")
    if not told:
        raise ParameterError("expected a line for each such arm; got none.", parameter="availability")
    spans_of(told, tuple(told))  # refuses what is neither a round nor a time
    return told


def _starting_pulls(text: str) -> ActionLog:
    """Read `A, 300` line by line, or a table from a spreadsheet; with several runs, each line begins with its run."""
    names = ("demonstration", "arm", "pulls")
    rows = _table_rows(text, names, names[1:])
    width = len(rows[0]) if rows else 0
    fits = [len(cells) == width and width in (2, 3) and all(cells) and cells[-1].isdecimal() for cells in rows]
    wrong = [cells for cells, each in zip(rows, fits, strict=True) if not each]
    if wrong or len({cells[-2] for cells in rows}) < 2:
        got = ", ".join((wrong or [[text.strip()]])[0])
        expected = "expected each arm and its pulls before the log in a line, as in A, 300, with 0 for none"
        raise ParameterError(f"{expected}; got {quote(got)}.", parameter="starting_pulls")
    try:
        return ActionLog.from_frame(pl.DataFrame(rows, schema=dict.fromkeys(names[-width:], pl.String), orient="row"))
    except LogError as error:  # its remedies are those of a log
        raise ParameterError(error.text, parameter="starting_pulls") from None


def read_context_options(form: Mapping[str, str]) -> dict[str, Any]:
    """Return what is known besides a log with features, without what is left blank; its noise must be known."""
    given, errors = read_fields(CONTEXT_KNOWN, form)
    if "sigma" not in given and "sigma" not in errors:
        errors["sigma"] = "Expected the noise of a reward, without which coefficients have no scale; got none."
    if errors:
        raise FieldErrors(errors)
    return given | ({"level": float(given["level"])} if "level" in given else {})


class ReadAs(NamedTuple):
    """How a file is to be read, as far as it was said.

    Its columns, all its arms, what rows with one name mean, and what becomes of rows without a choice; whether there
    are features by which a learner chose, and in which columns; and the sheet of a spreadsheet.
    """

    columns: Mapping[str, str] | None = None
    arms: Sequence[str] | None = None
    duplicates: Duplicates = None
    contexts: bool | None = None
    features: tuple[str, ...] = ()
    blank: Blank = None
    sheet: str | None = None

    @property
    def plain(self) -> dict[str, Any]:
        """Return what a log without features is read with."""
        return {name: getattr(self, name) for name in ("columns", "arms", "duplicates", "blank", "sheet")}


def read_columns(form: Mapping[str, str]) -> ReadAs:
    """Return the columns that were named, all the arms if they were listed, and what rows with one name mean."""
    errors: dict[str, str] = {}
    named: dict[str, str] = {}
    contexts = {"on": True, "off": False}.get(form.get("contexts", ""))
    for role in CONTEXT_ROLES if contexts else ROLES:
        column = form.get(f"column.{role}", "")
        if column.strip():
            if column in named.values() and column != NO_COLUMN:
                errors[f"column.{role}"] = f"Expected a column of its own for each role; got {quote(column)} twice."
            named[role] = "" if column == NO_COLUMN else column
    if named.get("arm") == "":
        errors["column.arm"] = "Expected the column that holds the arms; got none."
    if named.get("round") and named.get("pulls"):
        errors["column.pulls"] = "Expected either rounds or pulls, not both: a log of choices or a table of counts."
    arms, (given, wrong) = _arms(form.get("arms", ""), errors), read_fields((DUPLICATES, BLANK), form)
    errors |= wrong
    if errors:
        raise FieldErrors(errors)
    sheet = form.get(SHEET.name, "") or None
    if not contexts:
        duplicates, blank = (given.get(name) or None for name in ("duplicates", "blank"))
        return ReadAs(named or None, arms, duplicates, contexts, blank=blank, sheet=sheet)
    ticked = [key.removeprefix(FEATURE) for key, value in form.items() if key.startswith(FEATURE) and value in ON]
    features = dict.fromkeys((*ticked, *(name for name in _comma_separated(form.get(FEATURES.name, "")) if name)))
    return ReadAs(named or None, arms, None, True, tuple(features), sheet=sheet)


def _arms(text: str, errors: dict[str, str]) -> list[str] | None:
    """Read `A,B,C`; a name with a comma in it is put in double quotes; lines count as commas."""
    if not text.strip():
        return None
    names = _comma_separated(text)
    if not all(names):
        errors["arms"] = f"Expected names between commas, as in A, B, C; got {quote(text.strip())}."
        return None
    (most, count), *_ = Counter(names).most_common(1)
    if count > 1:
        errors["arms"] = f"Expected different names; got {quote(most)} twice."
    return names


def _comma_separated(text: str) -> list[str]:
    try:
        rows = list(csv.reader(text.strip().splitlines(), skipinitialspace=True))
    except csv.Error:
        rows = [[""]]
    return [name.strip() for row in rows for name in row]


# Rules


@dataclass(frozen=True)
class RuleForm:
    """Form of a rule: its names and summary, the fields that matter, and those that are rarely changed."""

    name: str
    title: str
    summary: str
    group: str  # a key of `GROUPS`
    fields: tuple[Field, ...]
    rarely: tuple[Field, ...]
    preset: Field | None = None  # what numbers are that are left blank, where a log can show them

    @property
    def id(self) -> str:
        """Return the rule's name as part of an HTML id."""
        return identifier(self.name)


@dataclass(frozen=True)
class RuleGroup:
    """Rules for one kind of learner, and what they have in common."""

    title: str
    about: str
    rules: tuple[RuleForm, ...]


def rule_forms(*, played: bool = False) -> tuple[RuleForm, ...]:
    """Return the form of every rule, those of other packages included."""
    plain = {
        name: PLAIN_NAMES.get(name, ("other" if rule.reveals == "values" else "silent", name, rule.summary()))
        for name, rule in rules().items() if _can_be_typed(name)
    }  # fmt: skip
    return tuple(_rule_form(name, rules()[name], words, played=played) for name, words in plain.items())


def linear_groups(*, played: bool = False) -> tuple[RuleGroup, ...]:
    """Return the forms of rules that choose by features."""
    forms = (_rule_form(name, known_linear_rules[name], words, played=played) for name, words in LINEAR_NAMES.items())
    title, about = GROUPS["linear"]
    return (RuleGroup(title, about, tuple(forms)),)


def rule_groups(*, played: bool = False) -> tuple[RuleGroup, ...]:
    """Return the forms by who uses their rules, without groups that have no rule.

    Where a rule is to be `played`, there is no log to fit its numbers from: they are filled in.
    """
    order = list(PLAIN_NAMES)
    forms = sorted(
        rule_forms(played=played), key=lambda form: order.index(form.name) if form.name in order else len(order)
    )
    members = {key: tuple(form for form in forms if form.group == key) for key in GROUPS}
    return tuple(RuleGroup(title, about, members[key]) for key, (title, about) in GROUPS.items() if members[key])


def rule_with_form(name: str) -> tuple[type[Rule], RuleForm] | None:
    """Return the rule of this name and its form, with every default filled in; None if there is no such rule."""
    forms = (*rule_forms(played=True), *linear_groups(played=True)[0].rules)
    found = next((form for form in forms if form.name == name), None)
    return None if found is None else ({**rules(), **known_linear_rules}[name], found)


def _can_be_typed(name: str) -> bool:
    """Whether the shell's syntax for rules can express a name."""
    return (
        re.fullmatch(r"[^\s:,=]+", name) is not None and name == name.lower() and name not in (UNKNOWN_RULE, ANY_RULE)
    )


def _rule_form(name: str, rule: type[Rule], words: Sequence[str], *, played: bool) -> RuleForm:
    """Return the form of a rule; the words are its group, its plain name and what it does."""
    fields = {key: field_of(f"{name}.{key}", key, info) for key, info in rule.model_fields.items()}
    for key, each in fields.items():
        bounded = each is not None and each.kind == "number" and (each.at_least, each.above) != (None, None)
        if each is not None and bounded and (name not in LINEAR_NAMES or key in rule.fits):
            fields[key] = replace(each, may_fit=True)
    rare = (RARELY_CHANGED | rule.unwritten) - MODEL
    usual = tuple(field for key, field in fields.items() if field is not None and key not in rare)
    rarely = tuple(field for key, field in fields.items() if field is not None and key in rare)
    if name in LINEAR_NAMES:  # its own number before those that all of them have
        usual = tuple(sorted(usual, key=lambda each: each.name not in _fitted(name, rule)))
    group, title, about = words
    preset = None if played else _preset(name, rule, fields)
    if preset is not None:
        usual = tuple(replace(each, usual="") if each.name in _fitted(name, rule) else each for each in usual)
    return RuleForm(name, title, about, group, usual, rarely, preset)


def _fitted(name: str, rule: type[Rule]) -> list[str]:
    """Return the fields of a rule whose numbers a log shows; sigma belongs to the rewards, and has a field there."""
    return [] if rule.unfit else [f"{name}.{key}" for key in rule.fits if key != "sigma"]


def _preset(name: str, rule: type[Rule], fields: Mapping[str, Field | None]) -> Field | None:
    """Return the choice of what blank numbers are: fitted from the log, or the usual ones."""
    fitted = _fitted(name, rule)
    if not fitted:
        return None
    keys = [key.removeprefix(f"{name}.") for key in fitted]
    usual = [f"{key} {getattr(rule(), key):.4g}" for key in keys if getattr(rule(), key) is not None]
    called = f"{PRESETS.get(name, 'the usual numbers')}: {', '.join(usual)}"
    choices = ((FIT.value, "not known: fit it from the log" if len(keys) == 1 else "not known: fit them from the log"),)
    labels = " and ".join(field.label for key in keys if (field := fields[key]) is not None)
    are = "is" if len(keys) == 1 else "are"
    about = f"What {labels} {are} if left blank below. Fitting may take minutes with a long log."
    return Field(f"{name}.preset", "Numbers", about, kind="choice", usual=FIT.value,
                 choices=(*choices, (USUAL, called)))  # fmt: skip


def read_rule(form: Mapping[str, str]) -> str | None:
    """Return the chosen rule in the shell's syntax, perhaps with numbers to be fitted; None if it is not known."""
    return None if form.get("rule", "").strip() in (UNKNOWN_RULE, ANY_RULE) else _read_rule(form, rule_forms(), rules())


def read_linear_rule(form: Mapping[str, str]) -> str:
    """Return the chosen rule, of those that choose by features."""
    return _read_rule(form, linear_groups()[0].rules, known_linear_rules)


def _read_rule(form: Mapping[str, str], among: Sequence[RuleForm], kinds: Mapping[str, type[Rule]]) -> str:
    name = form.get("rule", "").strip()
    if not name:
        raise FieldErrors({"rule": "Expected one of the rules; got none. Choose the rule that made the choices."})
    chosen = next((each for each in among if each.name == name), None)
    if chosen is None:
        raise FieldErrors({"rule": f"Expected one of the rules below; got {quote(name)}."})
    given, errors = read_fields(chosen.fields + chosen.rarely, form)
    if chosen.preset is not None:
        preset, wrong = read_fields((chosen.preset,), form)
        errors |= wrong
        if preset.get(chosen.preset.name) == FIT.value:
            known = {*given, *([f"{name}.scale"] if f"{name}.sigma" in given else [])}  # sigma sets the scale
            blank = [each for each in _fitted(name, kinds[name]) if each not in known]
            given |= dict.fromkeys(blank, FIT)
    if errors:
        raise FieldErrors(errors)
    rule = kinds[name]
    try:
        return _rule_text(rule, {key.removeprefix(f"{name}."): value for key, value in given.items()})
    except (ParameterError, NotIdentifiable) as error:  # at the field of its parameter, or else at the rule
        fitted = [key for key, value in given.items() if value is FIT]
        places = [f"{name}.{error.parameter}"] if error.parameter in rule.model_fields else fitted or [name]
        raise FieldErrors(dict.fromkeys(places, capitalise(error.said(page_option)))) from None


def _rule_text(rule: type[Rule], given: Mapping[str, Any]) -> str:
    """Write a rule in the shell's syntax: numbers, and whatever else differs from the default."""
    rule(**given)
    parts = []
    for key, value in given.items():
        if value is FIT:
            parts.append(f"{key}={FIT.value}")
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool) and key not in rule.unwritten
        if number or str(value) != str(rule.model_fields[key].default):
            parts.append(f"{key}={value}")
    text = f"{rule.name}:{','.join(parts)}" if parts else rule.name
    (linear_rule_or_family if rule.name in LINEAR_NAMES else rule_or_family)(text)
    return text


def rule_css() -> str:
    """Return the CSS that shows the fields of the chosen rule only, in browsers that support it."""
    hidden = [
        f"  form:not(:has(#rule-{form.id}:checked)) #fields-{form.id}"
        for form in (*rule_forms(), *linear_groups()[0].rules)
    ]
    return "@supports selector(:has(*)) {\n" + ",\n".join(hidden) + " { display: none; }\n}\n"


# Simulations


@dataclass(frozen=True)
class Simulation:
    """Simulation as the second tab asks for it: arms with known means, a rule, and its horizon."""

    rule: str  # in the shell's syntax
    horizon: int
    seed: int
    dataset: str | None = None  # None if means are given
    arms: int | None = None  # of the data set; None for all
    means: tuple[float, ...] = ()
    noise: Noise = field(default_factory=Bernoulli)  # where means are given

    @property
    def title(self) -> str:
        """Return a title."""
        return f"{self.rule} on {self.dataset or f'{len(self.means):,} arms'}, {self.horizon:,} rounds"

    @property
    def command(self) -> str:
        """Return the command that simulates the same log."""
        if self.dataset is not None:
            arms = self.dataset + ("" if self.arms is None else f" --arms {self.arms}")
        else:
            noise = "--bernoulli" if isinstance(self.noise, Bernoulli) else f"--sigma {self.noise.sigma}"
            means = ",".join(f"{mean!r}".removesuffix(".0") for mean in self.means)
            arms = f"--means {means} --arms {','.join(_arm_names(len(self.means)))} {noise}"
        return f"unbandit simulate {arms} --rule {self.rule} --horizon {self.horizon} --seed {self.seed} -o log.csv"

    def instance(self) -> Instance:
        """Return the instance."""
        if self.dataset is not None:
            return datasets.load(self.dataset, arms=self.arms)
        return Instance(self.means, self.noise, _arm_names(len(self.means)))


def _arm_names(arms: int) -> list[str]:
    """Name the arms by letters, or by numbers if there are too many."""
    return list(ascii_uppercase[:arms]) if arms <= len(ascii_uppercase) else [str(at + 1) for at in range(arms)]


def read_simulation(form: Mapping[str, str]) -> Simulation:
    """Return the simulation that a form asks for."""
    errors: dict[str, str] = {}
    rule = collect(errors, read_rule, form)
    if rule is None and not errors:
        errors["rule"] = "Expected a rule to play; choose one."
    elif rule is not None and isinstance(family := rule_or_family(rule), RuleFamily):
        text = "Expected a number: a rule is played with one, and only a log shows which it was."
        errors |= {f"{family.kind.name}.{key}": text for key in family.free}
    values, wrong = read_fields(RUN, form)
    errors |= wrong
    if "horizon" not in values and "horizon" not in errors:
        errors["horizon"] = "Expected a number of rounds; got none."
    parts = _own_means(form, errors) if form.get("source", "dataset") == "means" else _data_set(form, errors)
    if errors or parts is None or rule is None:
        raise FieldErrors(errors)
    simulation = Simulation(rule, values["horizon"], values.get("seed", 0), **parts)
    instance = simulation.instance()  # refuse what would fail later: rewards that the rule cannot take, too few rounds
    if parse_rule(rule).bernoulli_only and not isinstance(instance.noise, Bernoulli):
        errors["rule"] = (
            f"Expected rewards of 0 or 1, for which {rule} is made; give the arms' chances yourself and choose such "
            "rewards, or take another rule."
        )
    elif simulation.horizon < len(instance):
        errors["horizon"] = f"Expected {len(instance):,} rounds or more, one an arm; got {simulation.horizon:,}."
    if errors:
        raise FieldErrors(errors)
    return simulation


def _data_set(form: Mapping[str, str], errors: dict[str, str]) -> dict[str, Any] | None:
    """Read the data set and how many of its arms; all of them if it has fewer."""
    name = form.get("dataset", "").strip()
    values, wrong = read_fields(DATASET[1:], form)
    errors |= wrong
    if name not in datasets.names():
        errors["dataset"] = f"Expected one of the data sets; got {quote(name)}."
    if errors.keys() & {"dataset", "arms"}:
        return None
    if "arms" in values:
        with suppress(ParameterError):  # it has fewer
            datasets.load(name, arms=values["arms"])
            return {"dataset": name, "arms": values["arms"]}
    there = len(datasets.load(name))
    if there > values.get("arms", MOST_ARMS):
        errors["arms"] = f"Expected a number from 2 to {MOST_ARMS:,}: this data set has {there:,} arms."
        return None
    return {"dataset": name, "arms": None}


def _own_means(form: Mapping[str, str], errors: dict[str, str]) -> dict[str, Any] | None:
    """Read means and noise."""
    bernoulli = form.get("noise") == "bernoulli"
    values, wrong = ({}, {}) if bernoulli else read_fields(OWN[1:], form)
    errors |= wrong
    text = form.get("means", "").strip()
    try:
        if len(text) > 40 * MOST_ARMS:
            raise ValueError
        means = tuple(float(part) for part in text.replace(";", ",").rstrip(",").split(","))
    except ValueError:
        errors["means"] = f"Expected numbers with commas between them, as in 1, 0.5, 0; got {quote(text)}."
        return None
    if not 2 <= len(means) <= MOST_ARMS:
        errors["means"] = f"Expected 2 to {MOST_ARMS:,} numbers; got {len(means):,}."
    noise: Noise = Bernoulli()
    if not errors.keys() & {"means", "sigma"}:
        try:
            noise = noise if bernoulli else Gaussian(values.get("sigma", 1.0))
            Instance(means, noise)
        except ParameterError as error:
            errors["means"] = capitalise(error.said(page_option))
    return {"means": means, "noise": noise}
