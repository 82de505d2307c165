"""The pages, as HTML text: everything that comes from a visitor is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from unbandit import datasets
from unbandit._version import __version__
from unbandit.plots.naming import short
from unbandit.web import options, simulations
from unbandit.web.fields import ON, Field, shown
from unbandit.web.model import Example, Limits, Look, Outcome, Problem, Progress
from unbandit.web.rule_forms import UNKNOWN, RuleGroup, rule_css, rule_groups
from unbandit.web.wording import size

__all__ = ["answer", "failure", "home", "icon", "look", "part", "script", "simulate", "stylesheet", "waiting"]

COLUMNS_LISTED, NAMES_LISTED = 200, 20_000
"""With more columns than this, or more characters in their names, a role's column is typed and not chosen."""

NAME_SHOWN = 60
"""Characters of a column's name that are shown."""


def home(examples: Sequence[Example], limits: Limits) -> str:
    """Return the first page: bring a log, or try an example."""
    return _page("home.html", "log", examples=examples, limits=limits)


def look(look: Look, form: Mapping[str, str], errors: Mapping[str, str], limits: Limits) -> str:
    """Return what was understood of a log, and the form that asks for the rest."""
    columns = _column_fields(look)
    several = any(role == "demonstration" for role, _ in look.roles)
    known = options.KNOWN + ((options.POOL,) if several else ())
    more = options.MORE if several else (options.POOL, *options.MORE)
    groups = rule_groups()
    shown_here = {field.name for field in columns} | {"carried", "carried_name", "example", "file"}
    return _page(
        "look.html", "log", look=look, form=form, errors=errors, limits=limits,
        labels=_labels((*columns, *known, *more), groups, errors), columns=columns, known=known, more=more,
        groups=groups, chosen=form.get("rule", UNKNOWN), played={column: role for role, column in look.roles},
        kept={name: value for name, value in form.items() if name not in shown_here} if look.problem else {},
        columns_opened=_opened(columns, form, errors), more_opened=_opened(more, form, errors),
    )  # fmt: skip


def simulate(form: Mapping[str, str], errors: Mapping[str, str]) -> str:
    """Return the second tab: choose arms, rule and length."""
    filled = form if form else simulations.FIRST
    named = tuple((name, f"{name}: {about}") for name, about in datasets.names().items())
    dataset = (replace(simulations.DATASET[0], choices=named), *simulations.DATASET[1:])
    groups = rule_groups()
    fields = (*dataset, *simulations.OWN, *simulations.RUN)
    return _page(
        "simulate.html", "simulate", form=filled, errors=errors, labels=_labels(fields, groups, errors), groups=groups,
        dataset=dataset, own=simulations.OWN, run=simulations.RUN,
        chosen=filled.get("rule", ""), source=filled.get("source", "dataset"), noise=filled.get("noise", "gaussian"),
    )  # fmt: skip


def waiting(id: str, progress: Progress) -> str:
    """Return the page of work that is not done yet."""
    return _page("waiting.html", None, id=id, progress=progress, said=_said(progress), time=_time(progress.seconds))


def answer(id: str, outcome: Outcome) -> str:
    """Return the page of work that is done."""
    return _page("answer.html", None, id=id, outcome=outcome, main=Markup(outcome.main))


def failure(problem: Problem, id: str | None = None) -> str:
    """Return the page that says why something cannot be done."""
    return _page("failure.html", None, problem=problem, id=id)


def stylesheet() -> str:
    """Return the page's own CSS, with the lines that show the chosen rule's fields alone."""
    return _static("site.css") + "\n" + rule_css()


def script() -> str:
    """Return the page's script; every page works without it."""
    return _static("page.js")


def icon() -> str:
    """Return the page's icon."""
    return _static("icon.svg")


def part(template: str, **given: Any) -> str:
    """Return a part of a page, from a template of its own."""
    return _environment().get_template(template).render(**given)


def _page(template: str, tab: str | None, **given: Any) -> str:
    return part(template, tab=tab, version=__version__, **given)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_template), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"size": size, "cut": _cut}
    environment.globals |= {"shown": shown, "ticked": _ticked, "opened": _opened}
    return environment


def _template(name: str) -> str:
    return resources.files("unbandit.web").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _static(name: str) -> str:
    return resources.files("unbandit.web").joinpath("static", name).read_text(encoding="utf-8")


def _column_fields(look: Look) -> tuple[Field, ...]:
    """Return a field for the column of every role, and one for the arms."""
    if not look.columns or look.example:
        return ()
    roles = {role: _cut(column) for role, column in look.roles}
    many = look.columns_left_out > 0 or len(look.columns) > COLUMNS_LISTED or sum(map(len, look.columns)) > NAMES_LISTED
    fields = []
    for role, (label, about) in options.COLUMNS.items():
        found = roles.get(role)
        if many:
            said = f"{about} Found: {found}." if found is not None else f"{about} None was found."
            fields.append(Field(f"column.{role}", label, said))
            continue
        first = ("", f"found: {found}" if found is not None else "none found")
        none = () if role == "arm" else ((options.NO_COLUMN, "no column"),)
        choices = (first, *none, *((column, _cut(column)) for column in look.columns))
        fields.append(Field(f"column.{role}", label, about, kind="choice", choices=choices))
    every = "Only if some arms were never pulled and so are not in the log: all names, with commas between them."
    return (*fields, Field("arms", "All arms", every))


def _cut(name: str) -> str:
    return short(name, NAME_SHOWN)


def _opened(fields: Sequence[Field], form: Mapping[str, str], errors: Mapping[str, str]) -> bool:
    """Tell whether something that is usually folded away must be seen."""
    return any(field.name in errors or shown(field, form).strip() not in ("", field.usual) for field in fields)


def _ticked(field: Field, form: Mapping[str, str]) -> bool:
    return shown(field, form).strip().lower() in ON


def _labels(
    fields: Sequence[Field], groups: Sequence[RuleGroup], errors: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Return how every field is called and where it stands, for the list of what is wrong."""
    found = {name: {"label": name, "target": "main"} for name in errors}
    found |= {field.name: {"label": field.label, "target": field.id} for field in fields}
    found["rule"] = {"label": "Rule", "target": "field-rule"}
    for rule in (rule for group in groups for rule in group.rules):
        found[rule.name] = {"label": f"Parameters of {rule.name}", "target": f"fields-{rule.id}"}
        for field in (*rule.fields, *rule.rarely):
            found[field.name] = {"label": f"{field.label} of {rule.name}", "target": field.id}
    return found


def _said(progress: Progress) -> str:
    if progress.state == "waiting":
        others = "one other piece of work" if progress.ahead == 1 else f"{progress.ahead:,} other pieces of work"
        return f"Waiting for {others}" if progress.ahead else "Waiting to begin"
    return progress.stage or "Working"


def _time(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
