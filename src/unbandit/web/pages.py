"""The pages, as HTML text: everything that comes from a visitor is escaped."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, get_args

from jinja2 import Environment
from markupsafe import Markup, escape

from unbandit import datasets
from unbandit._version import __version__
from unbandit.contexts.rule import LinearRule
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import NotIdentifiable, ParameterError
from unbandit.formatting import joined, label, number, short_numbers, size
from unbandit.reporting.page import templates
from unbandit.web import forms
from unbandit.web.examples import Example
from unbandit.web.fields import Field, field_content, is_ticked, wanted
from unbandit.web.jobs import JobProgress, Limits, Outcome
from unbandit.web.preview import Preview
from unbandit.web.problems import Problem, page_text

if TYPE_CHECKING:
    from unbandit.demonstrators.rule import Rule
    from unbandit.identification.survey import Survey

COLUMNS_LISTED, NAMES_LISTED = 200, 20_000
"""With more columns than this, or more characters in their names, a column is typed instead of chosen."""

NAME_SHOWN = 60  # characters of a column's name that are shown


def home(examples: Iterable[Example], limits: Limits) -> str:
    """Return the first page: bring a log, or try an example."""
    return _page("home.html", "log", examples=examples, limits=limits)


def preview(seen: Preview, form: Mapping[str, str], errors: Mapping[str, str]) -> str:
    """Return what was understood of a log, and the form that asks for the rest."""
    if seen.wrong:
        errors = {**errors, seen.wrong: str(seen.problem)}
    if seen.contexts:
        return _context_preview(seen, form, errors)
    if "rule" not in form and not seen.problem:
        form = {**forms.suggested(dict(seen.roles), binary=seen.binary, several=seen.several), **form}
    columns = _column_fields(seen)
    columns += (forms.CONTEXTS,) if columns and seen.columns else ()
    several = any(role == "demonstration" for role, _ in seen.roles)
    known = forms.KNOWN + ((forms.POOL, forms.PEOPLE, forms.SAME_ARMS) if several else ())
    more = forms.MORE if several else (forms.POOL, *forms.MORE)
    groups = forms.rule_groups()
    on_page = {field.name for field in columns} | {"carried", "carried_name", "example", "file"}
    return _page(
        "preview.html", "log", seen=seen, form=form, errors=errors,
        labels=_labels((*columns, *known, *more), groups, errors), columns=columns, known=known, more=more,
        groups=groups, chosen=form.get("rule", forms.UNKNOWN_RULE), played=seen.played,
        kept={name: value for name, value in form.items() if name not in on_page} if seen.problem else {},
    )  # fmt: skip


def _context_preview(seen: Preview, form: Mapping[str, str], errors: Mapping[str, str]) -> str:
    """Return the same for a log with features: it asks which columns they are, too."""
    columns, groups = _column_fields(seen), forms.linear_groups()
    free = [column for column in seen.columns if column not in seen.played]
    features = tuple(Field(f"{forms.FEATURE}{column}", _cut(column), kind="box") for column in free)
    if _is_wide(seen):
        features = (forms.FEATURES,)
    is_new = not any(field.name in form for rule in groups[0].rules for field in rule.fields)
    if is_new and "chosen" not in dict(seen.roles):  # all arms share a context
        form = {f"{rule.name}.disjoint": "on" for rule in groups[0].rules} | dict(form)
    labels = _labels((*columns, *features, *forms.CONTEXT_KNOWN), groups, errors)
    labels[forms.FEATURES.name] = {"label": forms.FEATURES.label, "target": "features"}
    on_page = {field.name for field in (*columns, *features)} | {"carried", "carried_name", "file", "contexts"}
    return _page(
        "preview.html", "log", seen=seen, form=form, errors=errors, labels=labels, columns=columns, features=features,
        known=forms.CONTEXT_KNOWN[:2], more=forms.CONTEXT_KNOWN[2:], groups=groups, chosen=form.get("rule", ""),
        played=seen.played,
        kept={name: value for name, value in form.items() if name not in on_page} if seen.problem else {},
    )  # fmt: skip


def simulate(form: Mapping[str, str], errors: Mapping[str, str]) -> str:
    """Return the second tab: choose arms, rule and horizon."""
    filled = form if form else forms.FIRST_SIMULATION
    named = tuple((name, f"{name}: {about}") for name, about in datasets.names().items())
    dataset = (replace(forms.DATASET[0], choices=named), *forms.DATASET[1:])
    groups = forms.rule_groups(played=True)
    fields = (*dataset, *forms.OWN, *forms.RUN)
    return _page(
        "simulate.html", "simulate", form=filled, errors=errors, labels=_labels(fields, groups, errors), groups=groups,
        dataset=dataset, own=forms.OWN, run=forms.RUN,
        chosen=filled.get("rule", ""), source=filled.get("source", "dataset"), noise=filled.get("noise", "gaussian"),
    )  # fmt: skip


def rule(kind: type[Rule], form: forms.RuleForm) -> str:
    """Return the page that explains a rule: its formula and its parameters, as its class has them."""
    reveals = "coefficients" if issubclass(kind, LinearRule) else getattr(kind, "reveals", "values")
    keys = {each: each.name.removeprefix(f"{form.name}.") for each in (*form.fields, *form.rarely)}
    rows = [(key, each.about, wanted(each) or forms.ALLOWED.get(key, "text"), _default(kind, key))
            for each, key in keys.items()]  # fmt: skip
    required = [f"{name}=NUMBER" for name, field in kind.model_fields.items() if field.is_required()]
    asks = reveals == "values" and not required and bool(forms.missing_mean(kind.name, {}))
    written = f"{kind.name}:{','.join(required)}" if required else kind.name
    return _page(
        "rule.html", rule=form, paragraphs=_explained(kind), aliases=kind.aliases, reveals=reveals,
        asks_mean=asks, shifts_with=asks and _shifts(kind, **GAUSSIAN), parameters=rows,
        command=_command(written, reveals, asks), fit=_fit(kind, reveals),
    )  # fmt: skip


GAUSSIAN = {"noise": "gaussian"}  # rewards of which a rule for 0 and 1 can have the noise fitted, and shows gaps


def _explained(kind: type[Rule]) -> list[str]:
    """Return a rule in paragraphs: its formula, what is to be known of it, and the symbols that are not explained."""
    first, *others = re.split(r"\n\n\w[\w ]*\n---", inspect.cleandoc(kind.__doc__ or ""))[0].split("\n\n")
    paragraphs = [first, *forms.EXPLANATIONS.get(kind.name, others)]
    text = " ".join(paragraphs)
    is_ours = kind.name in forms.PLAIN_NAMES  # symbols of other packages may mean anything
    used = {each: said for each, said in forms.SYMBOLS.items() if is_ours and re.search(rf"\b{each}\b", text)}
    unsaid = [
        f"`{each}` is {said}" for each, said in used.items() if f"`{each}`" not in text and f"{each} is " not in text
    ]
    return [*paragraphs, f"In formulas, {joined(unsaid)}."] if unsaid else paragraphs


def _default(kind: type[Rule], name: str) -> str:
    """Write what a parameter is where it is not given, in words where it is open."""
    if kind.model_fields[name].is_required():
        return "none: it must be given"
    if said := forms.OPEN_DEFAULTS.get(f"{kind.name}.{name}", forms.OPEN_DEFAULTS.get(name)):
        return said
    noises = get_args(kind.model_fields["noise"].annotation) if "noise" in kind.model_fields else ()
    for given in ({}, *({"noise": noise} for noise in noises)):
        with suppress(ParameterError):  # other parameters must be given
            value = kind(**given).in_force(name)
            if value is not None:
                return _written(value) + "".join(f" with `noise={noise}`" for noise in given.values())
    default = kind.model_fields[name].default
    return "none" if default is None else _written(default)


def _written(value: Any) -> str:
    """Write a default value as the shell takes it, with numbers as a reader expects them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if isinstance(value, float) else str(value)


def _shifts(kind: type[Rule], **given: Any) -> bool:
    """Whether a rule shows gaps without a known mean where its parameters are these."""
    with suppress(ParameterError):
        return bool(getattr(kind(**given), "shifts", False))
    return False


def _command(written: str, reveals: str, asks_mean: bool, *more: str) -> str:
    """Return a command for a rule: an estimate, or a simulation where its choices show no values."""
    if reveals in ("best", "nothing"):
        return f"unbandit simulate linear --rule {written} --horizon 1000 -o log.csv"
    given = ["--features x1,x2 --sigma 0.5"] if reveals == "coefficients" else ["--best-mean 0.8"] if asks_mean else []
    return " ".join((f"unbandit estimate log.csv --rule {written}", *given, *more))


def _fit(kind: type[Rule], reveals: str) -> dict[str, Any] | None:
    """Return what can be fitted from a log, and the command; for rules of yes/no rewards, with Gaussian ones."""
    for given in ({}, GAUSSIAN) if kind.fits else ():
        with suppress(ParameterError, NotIdentifiable):
            example = RuleFamily(kind, given, kind.fits).example
            asks = reveals == "values" and bool(forms.missing_mean(str(example), {}))
            written = f"{kind.name}:{','.join([*(f'{key}={value}' for key, value in given.items()), 'fit'])}"
            noise = ["--sigma 0.5"] if "sigma" in kind.fits and reveals != "coefficients" else []
            return {"numbers": kind.fits, "gaussian": bool(given), "command": _command(written, reveals, asks, *noise)}
    return None


def progress(id: str, job: JobProgress) -> str:
    """Return the page of a job that is not done yet."""
    return _page("progress.html", id=id, progress=job, said=_stage(job), time=_time(job.seconds))


def answer(id: str, outcome: Outcome, *, can_print: bool = False) -> str:
    """Return the page of a job that is done; `can_print` if a report can be had as PDF."""
    return _page("answer.html", id=id, outcome=outcome, main=Markup(outcome.main), can_print=can_print)


def failure(problem: Problem, id: str | None = None) -> str:
    """Return the page that says why something cannot be done."""
    return _page("failure.html", problem=problem, id=id)


def stylesheet() -> str:
    """Return the page's CSS, with the part that shows the fields of the chosen rule only."""
    return static("site.css") + "\n" + forms.rule_css()


def static(name: str) -> str:
    """Return a file of the page: its style sheet, its script, which no page needs, or its icon."""
    return resources.files("unbandit.web").joinpath("static", name).read_text(encoding="utf-8")


def surveyed_page(found: Survey, name: str) -> str:
    """Return the main part of a first look at all rules: how many fit, and a table of them."""
    rows = [(row, short_numbers(row.name if row.rule is None else str(row.rule))) for row in found.rows]
    return _page("surveyed.html", found=found, said=f"{name}: {found.answer()}", rows=rows)


def _page(template: str, tab: str | None = None, **given: Any) -> str:
    return _environment().get_template(template).render(tab=tab, version=__version__, **given)


@cache
def _environment() -> Environment:
    environment = templates("unbandit.web", "templates")
    environment.filters |= {"size": size, "cut": _cut, "for_page": page_text, "code": _code}
    environment.globals |= {"field_content": field_content, "is_ticked": is_ticked, "is_open": _is_open}
    return environment


def _column_fields(seen: Preview) -> tuple[Field, ...]:
    """Return a field for the column of each role, one for the arms and one for rows with one name."""
    sheet = _sheet_field(seen)
    if not seen.columns or seen.example:
        return sheet
    roles = {role: _cut(column) for role, column in seen.roles}
    fields = []
    for role, (called, about) in forms.COLUMNS.items():
        if role == ("pulls" if seen.contexts else "chosen"):
            continue
        found = roles.get(role)
        if _is_wide(seen):
            said = f"{about} Found: {found}." if found is not None else f"{about} None was found."
            fields.append(Field(f"column.{role}", called, said))
            continue
        first = ("", f"found: {found}" if found is not None else "none found")
        none = () if role == "arm" else ((forms.NO_COLUMN, "no column"),)
        choices = (first, *none, *((column, _cut(column)) for column in seen.columns))
        fields.append(Field(f"column.{role}", called, about, kind="choice", choices=choices))
    arms = (forms.ARMS,) if seen.contexts else (forms.ARMS, forms.BLANK, forms.DUPLICATES)
    return (*sheet, *fields, *arms)


def _sheet_field(seen: Preview) -> tuple[Field, ...]:
    """Return the field for the sheet of a spreadsheet that has several."""
    if len(seen.sheets) < 2 or len(seen.sheets) > COLUMNS_LISTED:
        return (forms.SHEET,) if seen.sheets else ()
    first, *others = seen.sheets
    named = (("", f"the first: {_cut(first)}"), *((sheet, _cut(sheet)) for sheet in others))
    return (replace(forms.SHEET, kind="choice", choices=named),)


def _is_wide(seen: Preview) -> bool:
    """Whether a table has so many columns, or names so long, that columns are typed."""
    return seen.columns_left_out > 0 or len(seen.columns) > COLUMNS_LISTED or sum(map(len, seen.columns)) > NAMES_LISTED


def _cut(name: str) -> str:
    return label(name, NAME_SHOWN)


def _code(text: str) -> Markup:
    """Set in code what stands between backticks."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _is_open(fields: Sequence[Field], form: Mapping[str, str], errors: Mapping[str, str]) -> bool:
    """Whether a section that is usually folded must be open."""
    return any(field.name in errors or field_content(field, form).strip() not in ("", field.usual) for field in fields)


def _labels(
    fields: Sequence[Field], groups: Sequence[forms.RuleGroup], errors: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Return the label and the HTML id of every field, for the list of errors."""
    found = {name: {"label": name, "target": "main"} for name in errors}
    found |= {field.name: {"label": field.label, "target": field.id} for field in fields}
    found["rule"] = {"label": "Rule", "target": "field-rule"}
    for rule in (rule for group in groups for rule in group.rules):
        found[rule.name] = {"label": f"Parameters of {rule.name}", "target": f"fields-{rule.id}"}
        for field in (*rule.fields, *rule.rarely, *((rule.preset,) if rule.preset else ())):
            found[field.name] = {"label": f"{field.label} of {rule.name}", "target": field.id}
    return found


def _stage(progress: JobProgress) -> str:
    if progress.state == "waiting":
        others = "one other piece of work" if progress.ahead == 1 else f"{progress.ahead:,} other pieces of work"
        return f"Waiting for {others}" if progress.ahead else "Waiting to begin"
    return progress.stage or "Working"


def _time(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
