"""Read a study from a TOML file: its keys, and a sentence with the place of whatever is wrong in it."""

import os
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from unbandit import checks, datasets
from unbandit.demonstrators import parse_rule
from unbandit.errors import DescriptionError, ParameterError
from unbandit.instance import Bernoulli, Gaussian, Instance
from unbandit.study.grid import Family, ShrinkingGap, parse_estimator, spaced

SHRINKING_GAP = "shrinking-gap"

Table = TypeVar("Table", bound=BaseModel)
Entry = TypeVar("Entry")
Built = TypeVar("Built")


def _whole(value: Any) -> Any:
    """Take 1e4, which TOML reads as a real number, as a whole number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]


class StudyTable(BaseModel):
    """Keys of the whole file; the descriptions complete the sentence "expected ..."."""

    model_config = ConfigDict(extra="forbid", strict=True)

    instances: list[Any] = Field(min_length=1, description="a list of data sets, or tables under [[instances]]")
    rules: list[str] = Field(description='a list of rules, as in rules = ["ucb:alpha=0.25", "sae"]')
    horizons: list[Whole] = Field(description="a list of whole numbers, or {from = 500, to = 5000, points = 10}")
    runs: Whole = Field(description="a whole number, as in runs = 100")
    seed: Whole = Field(1, description="a whole number, as in seed = 1")
    estimators: list[str] = Field(["bracket"], description='a list of names, as in estimators = ["bracket"]')
    level: float = Field(0.95, description="a number between 0 and 1, as in level = 0.95")


class HorizonTable(BaseModel):
    """Keys of a table of horizons."""

    model_config = ConfigDict(extra="forbid", strict=True)

    start: Whole = Field(alias="from", description="a whole number, as in from = 500")
    stop: Whole = Field(alias="to", description="a whole number, as in to = 5000")
    points: Whole = Field(description="a whole number, as in points = 10")
    spacing: Literal["log", "linear"] = Field("log", description='"log" or "linear"')


class InstanceTable(BaseModel):
    """Keys of a table under [[instances]]."""

    model_config = ConfigDict(extra="forbid", strict=True)

    dataset: str | None = Field(None, description='the name of a data set, as in dataset = "two-armed"')
    name: str | None = Field(None, min_length=1, description='a text, as in name = "easy"')
    arms: int | list[int] | list[str] | None = Field(
        None, description="how many arms of a data set or their numbers; with means, the arms' names"
    )
    beta: float | None = Field(None, description=f"a number, as in beta = 0.05, with {SHRINKING_GAP}")
    means: list[float] | None = Field(None, description="a list of numbers, as in means = [1.0, 0.5]")
    sigma: float | None = Field(None, description="a number, as in sigma = 1.0, with means")
    bernoulli: bool = Field(False, description=f"true or false, with means or {SHRINKING_GAP}")

    def build(self) -> Instance | Family:
        """Build the instance or family that the table describes."""
        if (self.dataset is None) == (self.means is None):
            raise ParameterError("expected dataset or means, one of the two.")
        if self.dataset == SHRINKING_GAP:
            return self._shrinking_gap()
        if self.beta is not None:
            text = f'expected only with dataset = "{SHRINKING_GAP}".'
            raise ParameterError(text, parameter="beta", remedy="Leave it out.")
        if self.means is not None:
            return self._from_means(self.means)
        if self.sigma is not None or self.bernoulli:
            raise ParameterError("a data set has its own noise; use them with means.", parameter="sigma, bernoulli")
        name = checks.one_of("dataset", self.dataset, [*datasets.names(), SHRINKING_GAP])
        loaded = datasets.load(name, arms=self.arms)  # type: ignore[arg-type]  # refuses what it cannot use
        return Instance(loaded.means, loaded.noise, loaded.arms, self.name or loaded.name)

    def _from_means(self, means: list[float]) -> Instance:
        if self.bernoulli and self.sigma is not None:
            raise ParameterError("Bernoulli rewards have no sigma; leave one of the two out.", parameter="sigma")
        if isinstance(self.arms, int):
            raise ParameterError(f"expected the arms' names with means; got {self.arms}.", parameter="arms")
        noise = Bernoulli() if self.bernoulli else Gaussian(1.0 if self.sigma is None else self.sigma)
        return Instance(means, noise, self.arms, self.name or "custom")

    def _shrinking_gap(self) -> Family:
        if self.beta is None:
            text = f"expected with {SHRINKING_GAP}, as in beta = 0.05; there is none."
            raise ParameterError(text, parameter="beta", remedy="Add it.")
        if self.arms is not None or self.name is not None:
            text = f"{SHRINKING_GAP} has two arms and its own name; leave them out."
            raise ParameterError(text, parameter="arms, name")
        if self.sigma is not None:
            raise ParameterError(f"{SHRINKING_GAP} has its own noise; leave it out.", parameter="sigma")
        return ShrinkingGap(self.beta, self.bernoulli)


KEYS = {
    field.alias or name
    for model in (StudyTable, HorizonTable, InstanceTable)
    for name, field in model.model_fields.items()
}


def read_description(
    path: str | os.PathLike[str], build: Callable[..., Built], *, runs: int | None = None, seed: int | None = None
) -> Built:
    """Read a study's arguments and build it from them; `runs` and `seed`, where given, replace those in the file."""
    checks.path("path", path)
    replacements = {} if runs is None else {"runs": checks.whole("runs", runs, 2)}
    replacements |= {} if seed is None else {"seed": checks.seed(seed)}
    try:
        raw = _parsed(Path(path)) | replacements
        arguments = _arguments(raw)
        with _located(raw):
            return build(**arguments)
    except DescriptionError as error:
        raise error.at(path=os.fspath(path)) from None


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return checks.shallow(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise DescriptionError(f"expected a TOML file; it could not be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        text = "expected a TOML file; got bytes that are not UTF-8."
        raise DescriptionError(text, remedy="Save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise DescriptionError(f"expected a TOML file; got a mistake in it: {error}.") from None
    except RecursionError:
        text = "expected a TOML file; got tables or lists nested too deeply to be read."
        raise DescriptionError(text, remedy="Write it as the example in the documentation.") from None


def _arguments(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the study that a file's tables describe."""
    if isinstance(given := raw.get("horizons"), dict):
        table = _checked(HorizonTable, given, "horizons")
        with _located(given, "horizons"):
            raw["horizons"] = list(spaced(table.start, table.stop, table.points, table.spacing))
    for number, given in enumerate(raw["instances"] if isinstance(raw.get("instances"), list) else (), 1):
        if isinstance(given, dict) and given.keys() & (StudyTable.model_fields.keys() - raw.keys()):
            _checked(InstanceTable, given, f"instance {number}")  # a key of the whole study, put in the wrong table
    study = _checked(StudyTable, raw)
    return dict(study) | {
        "instances": [_instance(number, given) for number, given in enumerate(study.instances, 1)],
        "rules": [_entry("rules", parse_rule, text) for text in study.rules],
        "estimators": [_entry("estimators", parse_estimator, text) for text in study.estimators],
    }


def _instance(number: int, given: Any) -> Instance | Family:
    place = f"instance {number}"
    if isinstance(given, str):
        given = {"dataset": given}
    if not isinstance(given, dict):
        text = f"expected the name of a data set or a table; got {checks.brief(given)}."
        raise DescriptionError(text, table=place, value=given)
    table = _checked(InstanceTable, given, place)
    with _located(given, place):
        return table.build()


def _entry(key: str, parse: Callable[[str], Entry], text: str) -> Entry:
    """Parse one entry of a list of texts."""
    try:
        return parse(text)
    except ParameterError as error:
        own = error.owner is None and error.parameter in (None, key.removesuffix("s"))
        sentence = error.text if own else f"{error.place()}: {error.text}"
        raise DescriptionError(sentence, remedy=error.remedy, key=key, value=text) from None


@contextmanager
def _located(given: dict[str, Any], table: str | None = None) -> Iterator[None]:
    """Turn a refusal into one that says where in the file the refused value is."""
    try:
        yield
    except ParameterError as error:
        key = error.parameter if error.parameter in KEYS else None
        sentence = error.text if key or not error.place() else f"{error.place()}: {error.text}"
        value = None if key is None else given.get(key)
        raise DescriptionError(sentence, remedy=error.remedy, table=table, key=key, value=value) from None


def _checked(model: type[Table], given: dict[str, Any], table: str | None = None) -> Table:
    """Check a table's keys and the types of their values; refuse with one sentence."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        # an unknown key comes first: it may be a misspelling of one that is missing
        wrong = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    key = str(wrong[0]["loc"][0])
    known = {field.alias or name: field for name, field in model.model_fields.items()}
    if key not in known:
        remedy = checks.did_you_mean(key, known) or "Leave it out."
        if model is InstanceTable and key in StudyTable.model_fields:
            remedy = "Put it before the first [[instances]]: what follows belongs to that table."
        sentence = f'expected keys among {", ".join(known)}; got "{key}".'
        raise DescriptionError(sentence, remedy=remedy, table=table, value=given[key])
    expected = f"expected {known[key].description}"
    if key not in given:
        raise DescriptionError(f"{expected}; there is no such key.", remedy="Add it.", table=table, key=key)
    value = given[key]
    single = key == "instances" and isinstance(value, dict)
    brackets = "Write [[instances]], with two brackets." if single else None
    text = f"{expected}; got {checks.brief(value)}."
    raise DescriptionError(text, remedy=brackets, table=table, key=key, value=value)
