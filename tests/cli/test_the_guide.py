"""What the guide "What can my log tell me?" shows is run as it stands, and what it prints is what stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import shell

unbandit = shell.unbandit

GUIDE = Path(__file__).parents[2] / "docs" / "what-can-my-log-tell-me.md"

NEAR, SHARE = 0.1, 0.1
"""How far a printed number may be from the one shown: draws change a little when a filter does."""


def numbers_and_words(line: str) -> tuple[list[float], list[str]]:
    """Part a line into its numbers, in order, and its words, sorted: of two that are nearly even, either may lead."""
    parts = [part.strip(",;:.()%\"'") for part in line.replace("─", " ").split()]
    numbers, words = [], []
    for part in filter(None, parts):
        try:
            numbers.append(float(part.replace(",", "")))
        except ValueError:
            words.append(part)
    return numbers, sorted(words)


def alike(shown: str, printed: str) -> bool:
    """Tell whether a line of the guide is one that was printed; `...` at its end stands for anything."""
    if shown.endswith(" ..."):
        shown = shown.removesuffix(" ...")
        printed = " ".join(printed.split()[: len(shown.split())])
    numbers, words = numbers_and_words(shown)
    others, other_words = numbers_and_words(printed)
    if words != other_words or len(numbers) != len(others):
        return False
    monte_carlo = "±" in shown or "p = " in shown or "surprise" in shown
    return monte_carlo or all(
        abs(one - other) <= NEAR + SHARE * abs(one) for one, other in zip(numbers, others, strict=True)
    )


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (" B  estimated  177  0.2322", "B estimated  177   0.24", True),
        (" B  estimated  177  0.2322", "B estimated  177   0.94", False),
        (" B  estimated  177  0.2322", "C estimated  177   0.2322", False),
        ("note: The horizon 1,000 is below ...", "note: The horizon 1,000 is below all.", True),
        ("among ucb, sae.", "among sae, ucb.", True),
    ],
)
def test_lines_are_compared_as_they_should_be(shown, printed, same):
    assert alike(shown, printed) == same


def test_the_guide_runs_and_prints_what_it_shows(unbandit, capfd):
    parts = re.findall(r"```(sh|text|python)\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    kinds = [kind for kind, _ in parts]
    assert kinds.count("sh") > 12
    assert kinds.count("text") == kinds.count("sh")
    printed: list[str] = []
    names: dict[str, object] = {}
    for kind, text in parts:
        if kind == "python":
            exec(text, names)
            capfd.readouterr()
        elif kind == "sh":
            printed = []
            for command in text.strip().splitlines():
                program, *arguments = shlex.split(command)
                assert program == "unbandit"
                done = unbandit(*arguments)
                assert done.code in (0, 4), done.err
                assert (done.code == 4) == done.err.startswith("unbandit: "), done.err
                printed += (done.out + done.err).splitlines()
        else:
            lines = [line for line in text.splitlines() if line.strip(" ─") not in ("", "...")]
            found = [line for line in lines if any(alike(line, other) for other in printed)]
            # Monte Carlo may turn a borderline verdict, and with it a line or two; most lines must stand there
            assert len(found) >= 0.6 * len(lines), text + "\nis not in\n" + "\n".join(printed)
    assert names["found"].winner == "thompson"
