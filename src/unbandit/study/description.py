"""Read a study from a TOML file.

::

    rules = ["ucb:alpha=0.25", "sae"]
    horizons = {from = 500, to = 5000, points = 10, spacing = "log"}
    runs = 100

    [[instances]]
    dataset = "two-armed"
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unbandit import datasets
from unbandit.demonstrators import parse_rule
from unbandit.errors import DescriptionError, ParameterError
from unbandit.instance import Bernoulli, Gaussian, Instance
from unbandit.study.grid import Family, ShrinkingGap, Study, checked_runs, checked_seed, parse_estimator, spaced

__all__ = ["read_study"]

SHRINKING_GAP = "shrinking-gap"

Table = TypeVar("Table", bound=BaseModel)
Entry = TypeVar("Entry")


class StudyTable(BaseModel):
    """Say what a file may hold; the descriptions end the sentence "expected ..."."""

    model_config = ConfigDict(extra="forbid", strict=True)

    instances: list[Any] = Field(min_length=1, description="a list of data sets, or tables under [[instances]]")
    rules: list[str] = Field(description='a list of rules, as in rules = ["ucb:alpha=0.25", "sae"]')
    horizons: list[int] = Field(description="a list of whole numbers, or {from = 500, to = 5000, points = 10}")
    runs: int = Field(description="a whole number, as in runs = 100")
    seed: int = Field(1, description="a whole number, as in seed = 1")
    estimators: list[str] = Field(["switching"], description='a list of names, as in estimators = ["switching"]')
    level: float = Field(0.95, description="a number between 0 and 1, as in level = 0.95")


class HorizonTable(BaseModel):
    """Say what a table of horizons may hold."""

    model_config = ConfigDict(extra="forbid", strict=True)

    start: int = Field(alias="from", description="a whole number, as in from = 500")
    stop: int = Field(alias="to", description="a whole number, as in to = 5000")
    points: int = Field(description="a whole number, as in points = 10")
    spacing: Literal["log", "linear"] = Field("log", description='"log" or "linear"')


class InstanceTable(BaseModel):
    """Say what a table under [[instances]] may hold."""

    model_config = ConfigDict(extra="forbid", strict=True)

    dataset: str | None = Field(None, description='the name of a data set, as in dataset = "two-armed"')
    name: str | None = Field(None, min_length=1, description='a text, as in name = "easy"')
    arms: int | list[int] | list[str] | None = Field(
        None, description="how many arms of a data set or their numbers; beside means, the arms' names"
    )
    beta: float | None = Field(None, description=f"a number, as in beta = 0.05, beside {SHRINKING_GAP}")
    means: list[float] | None = Field(None, description="a list of numbers, as in means = [1.0, 0.5]")
    sigma: float | None = Field(None, description="a number, as in sigma = 1.0, beside means")
    bernoulli: bool = Field(False, description=f"true or false, beside means or {SHRINKING_GAP}")

    def built(self) -> Instance | Family:
        """Build what the table describes."""
        if (self.dataset is None) == (self.means is None):
            raise ParameterError("expected dataset or means, one of the two.")
        if self.means is not None:
            return self._of_means(self.means)
        if self.dataset == SHRINKING_GAP:
            return self._shrinking()
        if self.sigma is not None or self.bernoulli:
            raise ParameterError(
                "a data set has noise of its own; use them beside means.", parameter="sigma, bernoulli"
            )
        if self.beta is not None:
            raise ParameterError(f'expected beside dataset = "{SHRINKING_GAP}" alone; leave it out.', parameter="beta")
        assert self.dataset is not None
        if self.dataset not in (known := [*datasets.names(), SHRINKING_GAP]):
            near = difflib.get_close_matches(self.dataset.lower().replace("_", "-"), known, 1)
            remedy = f'Did you mean "{near[0]}"?' if near else "Take one of these."
            raise ParameterError(
                f'expected one of {", ".join(known)}; got "{self.dataset}". {remedy}', parameter="dataset"
            )
        found = datasets.load(self.dataset, arms=self.arms)  # type: ignore[arg-type]  # it says what it wants itself
        return Instance(found.means, found.noise, found.arms, self.name or found.name)

    def _of_means(self, means: list[float]) -> Instance:
        if self.beta is not None:
            raise ParameterError(f'expected beside dataset = "{SHRINKING_GAP}" alone; leave it out.', parameter="beta")
        if self.bernoulli and self.sigma is not None:
            raise ParameterError(
                "Bernoulli rewards have no sigma of their own; leave one of the two out.", parameter="sigma"
            )
        if isinstance(self.arms, int):
            raise ParameterError(f"expected the arms' names beside means; got {self.arms}.", parameter="arms")
        noise = Bernoulli() if self.bernoulli else Gaussian(1.0 if self.sigma is None else self.sigma)
        return Instance(means, noise, self.arms, self.name or "custom")

    def _shrinking(self) -> Family:
        if self.beta is None:
            raise ParameterError(
                f"expected beside {SHRINKING_GAP}, as in beta = 0.05; there is none. Add it.", parameter="beta"
            )
        if self.arms is not None or self.name is not None:
            raise ParameterError(
                f"{SHRINKING_GAP} has two arms and a name of its own; leave them out.", parameter="arms, name"
            )
        if self.sigma is not None:
            raise ParameterError(f"{SHRINKING_GAP} has noise of its own; leave it out.", parameter="sigma")
        return ShrinkingGap(self.beta, self.bernoulli)


KEYS = {
    field.alias or name
    for model in (StudyTable, HorizonTable, InstanceTable)
    for name, field in model.model_fields.items()
}


def read_study(path: str | os.PathLike[str], *, runs: int | None = None, seed: int | None = None) -> Study:
    """Read a study; `runs` and `seed`, where given, take the place of those in the file.

    Raises
    ------
    DescriptionError
        For anything wrong in the file, with its place.
    ParameterError
        For a wrong `runs` or `seed` given beside it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "study.toml"
    >>> _ = path.write_text('instances = ["two-armed"]\\nrules = ["ucb"]\\nhorizons = [500]\\nruns = 100\\n')
    >>> read_study(path)
    <Study: 1 instance x 1 rule x 1 horizon, 100 runs each, estimated by switching>
    """
    instead = {} if runs is None else {"runs": checked_runs(runs)}
    instead |= {} if seed is None else {"seed": checked_seed(seed)}
    try:
        return _study(_parsed(Path(path)) | instead)
    except DescriptionError as error:
        error.path = os.fspath(path)
        raise error from None


def _study(raw: dict[str, Any]) -> Study:
    """Build the study that a file's tables describe."""
    if isinstance(given := raw.get("horizons"), dict):
        asked = _checked(HorizonTable, given, "horizons")
        with _said_of(given, "horizons"):
            raw["horizons"] = list(spaced(asked.start, asked.stop, asked.points, asked.spacing))
    for number, given in enumerate(raw["instances"] if isinstance(raw.get("instances"), list) else (), 1):
        if isinstance(given, dict) and given.keys() & (StudyTable.model_fields.keys() - raw.keys()):
            _checked(InstanceTable, given, f"instance {number}")  # a key of the whole study that strayed in here
    table = _checked(StudyTable, raw)
    built: dict[str, Any] = {
        "instances": [_instance(number, given) for number, given in enumerate(table.instances, 1)],
        "rules": [_entry("rules", parse_rule, text) for text in table.rules],
        "estimators": [_entry("estimators", parse_estimator, text) for text in table.estimators],
    }
    with _said_of(raw):
        return Study(**(dict(table) | built))


def _parsed(path: Path) -> dict[str, Any]:
    """Read the file as TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DescriptionError(f"expected a TOML file; it could not be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise DescriptionError("expected a TOML file; got bytes that are no UTF-8 text. Save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise DescriptionError(f"expected a TOML file; got a mistake in it: {error}. Correct that place.") from None


def _instance(number: int, given: Any) -> Instance | Family:
    """Build the instance that stands at a place of the list."""
    place = f"instance {number}"
    if isinstance(given, str):
        given = {"dataset": given}
    if not isinstance(given, dict):
        said = f"expected the name of a data set or a table; got {given!r}."
        raise DescriptionError(said, table=place, value=given)
    table = _checked(InstanceTable, given, place)
    with _said_of(given, place):
        return table.built()


def _entry(key: str, parse: Callable[[str], Entry], text: str) -> Entry:
    """Read an entry of a list of texts."""
    try:
        return parse(text)
    except ParameterError as error:
        raise DescriptionError(str(error).removeprefix(f"{key[:-1]}: "), key=key, value=text) from None


@contextmanager
def _said_of(given: dict[str, Any], place: str | None = None) -> Iterator[None]:
    """Say of what is refused where it stands in the file: most refusals begin with the key's name."""
    try:
        yield
    except ParameterError as error:
        key, _, rest = str(error).partition(": ")
        key = "dataset" if key == "data set" else key
        if key not in KEYS:
            raise DescriptionError(str(error), table=place) from None
        raise DescriptionError(rest, table=place, key=key, value=given.get(key)) from None


def _checked(model: type[Table], given: dict[str, Any], place: str | None = None) -> Table:
    """Check a table's keys and the kinds of their values; say in one sentence what is wrong."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        # a key that is not known comes first: it may be the one that is missing, misspelt
        wrong = sorted(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
    key = str(wrong[0]["loc"][0])
    known = {field.alias or name: field for name, field in model.model_fields.items()}
    if key not in known:
        near = difflib.get_close_matches(key, known, 1)
        remedy = f'Did you mean "{near[0]}"?' if near else "Leave it out."
        if model is InstanceTable and key in StudyTable.model_fields:
            remedy = "Put it before the first [[instances]]: what follows belongs to that table."
        said = f'expected keys among {", ".join(known)}; got "{key}". {remedy}'
        raise DescriptionError(said, table=place, value=given[key])
    expected = f"expected {known[key].description}"
    if key not in given:
        raise DescriptionError(f"{expected}; there is no such key. Add it.", table=place, key=key)
    value = given[key]
    shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:57]}..."
    two = " Write [[instances]], with two brackets." if key == "instances" and isinstance(value, dict) else ""
    raise DescriptionError(f"{expected}; got {shown}.{two}", table=place, key=key, value=value)
