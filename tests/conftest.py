"""Set up what every test shares.

pytest puts this folder on the import path because this file stands in it, so tests can import `reference`.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# No deadline: the first example may compile a kernel. Derandomised: a red test is red for everyone.
settings.register_profile(
    "unbandit",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("unbandit")
