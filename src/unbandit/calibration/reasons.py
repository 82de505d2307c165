"""Why a goal is not reached, where that is known: said on the page beside the figures that miss it."""

from __future__ import annotations

__all__ = ["REASONS"]

LEVEL = (
    "what all means have in common is hardly in the record, and a cloud of this size loses its spread over thousands "
    "of rounds; gaps suffer less. With several clouds the tool warns (`clouds-differ`). It takes more particles, or an "
    "exact move for the level, which this rule does not have."
)
FEW = (
    "the cloud is too small for so many arms whose sums the record tells so little of; with several clouds the tool "
    "warns where they differ."
)
GIVEN_UP = (
    "the rule gives arms up after one to three pulls, and from then on the record holds less than the rewards did. The "
    "intervals hold, so what is there is read."
)

WEAK = ("thompson", "learning-softmax", "exp3")

REASONS: dict[tuple[str, str], str] = {
    **{
        (goal, name): LEVEL for goal in ("coverage", "lowest arm", "ranks") for name in ("thompson", "learning-softmax")
    },
    **{(goal, "exp3"): LEVEL for goal in ("coverage", "lowest arm", "ranks")},
    **{(goal, name): FEW for goal in ("coverage", "lowest arm") for name in ("epsilon-greedy", "softmax")},
    **{("gap coverage", name): FEW for name in ("epsilon-greedy", "softmax", "learning-softmax", "exp3")},
    **{("oracle", name): GIVEN_UP for name in ("klucb", "lilucb", "moss")},
    ("oracle", "thompson"): "a randomised choice tells of a difference only by how often it is made.",
    ("coverage", "klucb"): "in some runs 200 particles do not hold one that explains every choice; more do.",
    ("coverage", "ucbv"): "in some runs 200 particles do not hold one that explains every choice; more do.",
}
"""By the goal's key and the rule's name; shown only where a figure of such a rule does not reach the goal."""
