"""Which estimators a study asks for, as people write them."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass

from unbandit.errors import ParameterError
from unbandit.estimators.procedures import Method

__all__ = ["Estimator", "parse_estimator"]

METHODS: dict[str, Method] = {"switching": "switching", "counts": "counts", "naive": "naive"}


@dataclass(frozen=True)
class Estimator:
    """Hold a method of estimation, and the constant that the naive one may be given.

    Parameters
    ----------
    method
        `switching`, `counts` or `naive`.
    constant
        Of the naive method alone; `None` stands for sqrt(2) sigma, sigma being the instance's.

    Examples
    --------
    >>> str(Estimator("naive", 0.75)), str(Estimator("naive")), str(Estimator("counts"))
    ('naive:constant=0.75', 'naive', 'counts')
    """

    method: Method
    constant: float | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            near = difflib.get_close_matches(str(self.method).lower(), METHODS, 1)
            meant = f' Did you mean "{near[0]}"?' if near else ""
            raise ParameterError(
                f'expected one of {", ".join(METHODS)}; got "{self.method}".{meant}', parameter="estimator"
            )
        if self.constant is None:
            return
        if self.method != "naive":
            raise ParameterError(
                f'expected a constant only for naive; got one for "{self.method}".', parameter="estimator"
            )
        if not (math.isfinite(self.constant) and self.constant > 0):
            raise ParameterError(f"constant: expected a positive number; got {self.constant}.", parameter="estimator")
        object.__setattr__(self, "constant", float(self.constant))  # 1 and 1.0 are one constant, and one text

    def __str__(self) -> str:
        return self.method if self.constant is None else f"{self.method}:constant={self.constant}"


def parse_estimator(text: str) -> Estimator:
    """Read `switching`, `counts`, `naive` or `naive:constant=0.75`.

    Examples
    --------
    >>> parse_estimator("naive:constant=0.75").constant
    0.75
    >>> parse_estimator("switch")
    Traceback (most recent call last):
    ...
    unbandit.errors.ParameterError: estimator: expected one of switching, counts, naive; got "switch". \
Did you mean "switching"?
    """
    if not isinstance(text, str):
        raise ParameterError(f"expected a text such as switching; got {text!r}.", parameter="estimator")
    name, colon, rest = (part.strip() for part in text.partition(":"))
    method = METHODS.get(name.lower(), name)
    if not colon:
        return Estimator(method)  # type: ignore[arg-type]  # it refuses another name itself
    key, equals, value = (part.strip() for part in rest.partition("="))
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if key != "constant" or not equals or math.isnan(number):
        raise ParameterError(f'expected name or naive:constant=NUMBER; got "{text}".', parameter="estimator")
    return Estimator(method, number)  # type: ignore[arg-type]
