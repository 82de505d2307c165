"""Softmax (Boltzmann) choice with a linear model."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from unbandit.contexts.rule import RIDGE, LinearRule
from unbandit.demonstrators.rule import TEMPERATURE, Examples, OtherName
from unbandit.kernels.simulate_linear import SOFTMAX


class LinSoftmax(LinearRule):
    """Choose an offer with probability in proportion to `exp(x'M / temperature)`.

    Examples
    --------
    >>> LinSoftmax(temperature=0.2)
    LinSoftmax(temperature=0.2, ridge=1.0)
    """

    name: ClassVar[str] = "lin-softmax"
    called: ClassVar[Mapping[str, OtherName]] = RIDGE | TEMPERATURE
    title: ClassVar[str] = "Softmax choice with a linear model"
    aliases: ClassVar[tuple[str, ...]] = ("lin-boltzmann",)
    fits: ClassVar[tuple[str, ...]] = ("temperature",)
    no_standard: ClassVar[tuple[str, ...]] = ("temperature",)
    tuning: ClassVar[str] = "temperature"
    kind: ClassVar[int] = SOFTMAX
    examples: ClassVar[Examples] = (
        {},
        {"temperature": 1e-4, "intercept": True},
        {"temperature": 0.5, "disjoint": True},
        {"ridge": 0.1, "batch": 7, "delay": 3},
    )

    temperature: float = Field(0.1, gt=0, description="difference of values by which an offer is e times as likely")
