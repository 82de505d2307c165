"""The page's main part for an answer to: which rule made this log?"""

from __future__ import annotations

import math

from unbandit.identification import Identification
from unbandit.plots import address
from unbandit.web.pages import part

__all__ = ["identified_page"]


def identified_page(found: Identification, name: str, taken: str | None, why: str = "") -> str:
    """Write the verdict, the candidates, and whether the leading one reproduces the record.

    Parameters
    ----------
    found, name
        The answer, and what the log is called.
    taken
        The rule that the report beside it takes for granted, if there is one.
    why
        Why there is none, where one was tried.
    """
    said = f"Of {name}: {found.answer()}"
    return part(
        "identified.html", found=found, said=said, taken=taken, why=why, picture=address(found.plot()), share=_share
    )


def _share(probability: float) -> str:
    """Write a probability for people.

    Examples
    --------
    >>> _share(0.98714), _share(1e-9), _share(1.0)
    ('0.987', 'below 0.001', 'above 0.999')
    """
    if math.isclose(probability, 0, abs_tol=0.0005):
        return "below 0.001"
    return "above 0.999" if probability > 0.9995 else f"{probability:.3f}"
