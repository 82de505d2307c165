"""Build the instance that a command's options describe: a data set by name, or means of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unbandit.errors import ParameterError

if TYPE_CHECKING:
    from unbandit.instance import Instance

__all__ = ["instance_from"]


def instance_from(
    command: str, name: str | None, means: str | None, sigma: float | None, bernoulli: bool, arms: str | None
) -> Instance:
    """Build what the options describe."""
    from unbandit import datasets
    from unbandit.cli.options import arm_list, numbers
    from unbandit.instance import Bernoulli, Gaussian, Instance

    if (name is None) == (means is None):
        raise ParameterError(
            f"{command}: expected a data set or --means, one of the two. Example: {command} two-armed ..."
        )
    if means is not None:
        if bernoulli and sigma is not None:
            raise ParameterError(
                "Bernoulli rewards have no sigma of their own; leave one of the two out.", parameter="sigma"
            )
        noise = Bernoulli() if bernoulli else Gaussian(1.0 if sigma is None else sigma)
        return Instance(numbers("--means", means), noise, arm_list(arms))
    if sigma is not None or bernoulli:
        raise ParameterError("--sigma, --bernoulli: a data set has noise of its own; use them with --means.")
    assert name is not None
    if arms is None:
        return datasets.load(name)
    parts = arms.split(",")
    if not all(part.strip().isdigit() for part in parts):
        raise ParameterError(
            f'expected how many arms of the data set, or their numbers; got "{arms}".', parameter="arms"
        )
    chosen = [int(part) for part in parts]
    return datasets.load(name, arms=chosen[0] if len(chosen) == 1 else chosen)
