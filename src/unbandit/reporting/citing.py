"""How to cite the package and the paper: said here once, as in CITATION.cff."""

from __future__ import annotations

from dataclasses import dataclass

from unbandit._version import __version__

__all__ = ["PAPER", "RELEASED", "Paper", "paper", "software"]

AUTHORS = "The unbandit authors"
RELEASED = "2026-11-15"
LICENCE = "Apache-2.0"
ABOUT = "Recovers what every arm of a multi-armed bandit was worth from the record of which arm was pulled."


@dataclass(frozen=True)
class Paper:
    """Hold what a bibliography needs; authors as (family name, given names)."""

    authors: tuple[tuple[str, str], ...]
    title: str
    venue: str
    year: int
    identifier: str


PAPER = Paper(
    authors=(
        ("Guo", "Wenshuo"),
        ("Agrawal", "Kumar Krishna"),
        ("Grover", "Aditya"),
        ("Muthukumar", "Vidya"),
        ("Pananjady", "Ashwin"),
    ),
    title="Learning from an Exploring Demonstrator: Optimal Reward Estimation for Bandits",
    venue="International Conference on Artificial Intelligence and Statistics (AISTATS)",
    year=2022,
    identifier="arXiv:2106.14866",
)
"""The paper whose two procedures the package began with."""


def paper() -> str:
    """Return the paper's entry for BibTeX.

    Examples
    --------
    >>> print(paper().splitlines()[0])
    @inproceedings{guo2022learning,
    """
    return _entry(
        "inproceedings",
        f"{PAPER.authors[0][0].lower()}{PAPER.year}{PAPER.title.split()[0].lower()}",
        author=" and ".join(f"{family}, {given}" for family, given in PAPER.authors),
        title=f"{{{PAPER.title}}}",
        booktitle=PAPER.venue,
        year=str(PAPER.year),
        note=PAPER.identifier,
    )


def software() -> str:
    """Return the package's entry for BibTeX.

    Examples
    --------
    >>> print(software().splitlines()[0])
    @software{unbandit,
    """
    about = ABOUT[0].lower() + ABOUT[1:].rstrip(".")
    return _entry(
        "software",
        "unbandit",
        author=f"{{{AUTHORS}}}",
        title=f"{{unbandit: {about}}}",
        version=__version__,
        year=RELEASED[:4],
    )


def _entry(kind: str, key: str, **fields: str) -> str:
    """Write an entry, one field a line."""
    width = max(map(len, fields))
    written = "".join(f"  {name:{width}} = {{{value}}},\n" for name, value in fields.items())
    return f"@{kind}{{{key},\n{written}}}"
