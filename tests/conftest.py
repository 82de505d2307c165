"""Settings, markers and groups that all tests share.

pytest puts this folder on the import path because this file stands in it, so tests can import `reference`.
"""

from __future__ import annotations

import gc
import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from collections.abc import Iterator

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

# Checking the rule takes most of a second for each answer: tests that are about the check, or about what people see,
# turn it on. Processes that tests start inherit this.
os.environ.setdefault("UNBANDIT_CHECK", "off")

# On a slow machine, lines of progress would stand between the lines that tests expect; tests of progress turn it on.
os.environ["UNBANDIT_PROGRESS"] = "off"

TESTS = Path(__file__).parent

MARKED = {
    "statistical/": "statistical",
    "foreign/": "statistical",
    "paper/": "statistical",
    "unit/calibration/": "statistical",
    "unit/inference/test_conventions.py": "statistical",
    "unit/inference/test_exact.py": "statistical",
    "unit/inference/test_gaussian.py": "statistical",
    "unit/kernels/test_largest.py": "statistical",
    "cluster/": "cluster",
    "browser/": "browser",
    "docs/": "docs",
    "fuzz/test_parquet_logs.py": "processes",
    "contract/test_entry_points.py": "processes",
    "contract/test_seam.py": "processes",
    "cli/test_follow_command.py": "processes",
    "cli/test_modules_run.py": "processes",
    "cli/test_refusals.py": "processes",
    "cli/test_report_command.py": "processes",
    "cli/test_reproduce_command.py": "processes",
    "cli/test_study_command.py": "processes",
    "web/test_app.py": "processes",
    "web/test_connections.py": "processes",
    "web/test_safety.py": "processes",
    "unit/reporting/test_report_pdf.py": "processes",
    "unit/test_public_names.py": "processes",
    "web/test_server.py": "processes",
}
"""Tests that carry a marker, by the start of their path: `make test-fast` leaves them out."""

QUICK = {
    "contract/test_rules.py": (
        r"test_(chunks|evidence|orders)|top-two.*(many|Gauss)|test_sim.*(anytime-moss|(kl|lil|bayes-)ucb|tuned):.*(many|clock=p)",
        r"\[(ucb|sae|thompson|epsilon-greedy|exp3|sliding-window-ucb)(:|\])",
    ),
    "contract/test_seam.py": (
        "test_(is_|rules_that_differ|an_edited_formula)",
        r"(Gaussian-|Bernoulli-|written\[)toy-formula|\[closed_over",
    ),
    "unit/inference/test_exact.py": (
        "test_",
        r"\[3-(ucb:.*|sae:.*|thompson:sigma=0.5|epsilon-greedy:.*)\]|(pooled|known).*\[(ucb|sae|thompson)",
    ),
    "cli/test_modules_run.py": (r"first_estimate_compiles", r"never"),
    "docs/test_r.py": (r"reticulate", r"never"),
    "unit/estimators/test_fitted_rules.py": (r"a_report_says_what_was|whole_and_real|the_delay_of_an_index", r"never"),
    "unit/estimators/test_bracket.py": (r"definitions_say.*batch=3", r"never"),
    "unit/inference/test_arrivals.py": (r"lives?_through_an_opening", r"never"),
    "unit/kernels/test_largest.py": (r"\[(40-40|2-300)\]", r"never"),
    "unit/log/test_log_labels.py": (r"70000", r"never"),
    "unit/log/test_action_log.py": (r"65537", r"never"),
    "unit/calibration/test_fits.py": (r"end_to_end", r"never"),
    "unit/demonstrators/test_randomised_rules.py": (r"as_often_as_they_are_likely.*(top-two|batch=)", r"never"),
    "unit/reporting/test_report_options.py": (r"12-quartiles|bounded_unseen_or_left", r"never"),
    "cli/test_calibrate_command.py": (r"ends_with_its_code", r"never"),
    "cli/test_reproduce_command.py": (r"no_room_leaves", r"never"),
    "web/test_context_logs.py": (r"offers_are_recognised", r"never"),
    "unit/log/test_log_formats.py": ("latin_1_may_begin_late", "never"),
    "unit/inference/test_changing_arms.py": (
        "test_(evidence|normal|arms_that_were|where_an_arm_was|where_the_best_arm|the_bootstrap)",
        r"\[ucb:",
    ),
    "unit/inference/test_check.py": (
        r"depend_on_no_reward|epsilon_that_falls|too_few\[64|a_log_of_an_index_rule|fixed_preference|beginning\[moss|far_less",
        "softmax",
    ),
    "unit/inference/test_conventions.py": ("test_(other|logs_with_ties|short|all_demonstrations)", r"\[(moss|ucb1)"),
    "unit/inference/test_decisions.py": (
        r"\[[38]\]|simulations\[ucb1\]|larger\[10\]|few_particles|size_of_the_means|of_plain_simulations.ucb|much_larger",
        r"never",
    ),
    "unit/inference/test_gaussian.py": ("top-two|learning-softmax|klucb", "never"),
    "unit/inference/test_hidden_rounds.py": (
        r"every_completion|python_does.*learning|counting_every_way.*epsilon-greedy:initial=0-False",
        r"\[thompson",
    ),
    "unit/inference/test_settled.py": (r"test_it_foretells|glances_at_a_rule|joined_from_two", r"never"),
    "cli/test_contexts_command.py": ("test_every_rule_is_checked", "never"),
    "unit/inference/test_twist.py": ("long_run.*learning-softmax", "never"),
    "unit/inference/test_lookahead.py": ("test_a_log_(too_long|that_is)", "never"),
    "unit/calibration/test_calibrate.py": (
        r"test_(only_enough|the_record_stands|a_posterior_is_timed)|everything_is_measured|another_calibration",
        r"never",
    ),
    "unit/calibration/test_contexts_measured.py": ("disjoint", "never"),
    "unit/calibration/test_logs.py": ("test_the_same_seed", "never"),
    "unit/calibration/test_misfits.py": (r"test_bounds_of_other|as_users_get_it", r"never"),
    "unit/contexts/test_context_posterior.py": (r"test_clouds_agree|told_apart.rule1", r"known(0|9|12)-"),
    "unit/demonstrators/test_delay.py": (
        r"in_plain_python\[(poisson|uniform|geometric|30)",
        r"geometric:20-(ucb:alpha=0.25|thompson:sigma=0.5|sae:alpha=0.1,scale=0.4)\]",
    ),
    "unit/demonstrators/test_simulation.py": ("smallest_type.*sae.*uint32", "never"),
    "unit/estimators/test_any_index.py": ("test_many_runs_at_once", r"\[[a-z]+-(ucb|moss)-"),
    "unit/estimators/test_available_arms.py": ("test_rules_that_need_a_mean", "never"),
    "unit/estimators/test_late_arms.py": (
        r"of_several_demonstrations_more|without_its_beginning_is_warned|open_in_turn_are_not.*(thompson|softmax)",
        r"never",
    ),
    "unit/estimators/test_many_at_once.py": ("as_it_reads_one", r"\[(ucb1?|sae|klucb|phased|sliding-.*):"),
    "unit/hierarchy/test_population.py": (r"closed_form\[2\]|fits\[False|any_number_of_threads", "never"),
    "unit/kernels/test_largest_beta.py": (r"test_tables_follow_a_cloud|random_states.2-60", r"never"),
    "unit/kernels/test_late_kernels.py": (r"rule5-", "never"),
    "unit/kernels/test_procedures.py": ("moss", "never"),
    "unit/plots/test_figure_output.py": ("test_names_are_only_names", r"script|x00|u0645"),
    "statistical/test_check_statistics.py": ("", r"\[(ucb|sae)\]|ucb-ucb1"),
    "statistical/test_bracket_statistics.py": (r"0_and_1\[(bayes|ucb-tuned)|luckiest\[klucb", "never"),
    "statistical/test_lost_beginnings.py": (
        r"top-two|\[thompson:noise=bernoulli|seldom_said.*(thompson|epsilon)|beginning_is_noticed.*thompson",
        "never",
    ),
    "statistical/test_missing_rounds.py": (r"\[(ucb1|sae.*)-0.8\]", "never"),
    "statistical/test_even_counts.py": (r"\[300-", "uniform"),
    "statistical/test_leakage.py": ("test_the_monte_carlo_error", "never"),
    "unit/test_progress.py": ("test_ninety_seven_people", "never"),
    "unit/identification/test_identify.py": (
        "test_clear_cases|opens_an_arm_that_arrives|may_be_uniform_have|a_habit_is_named|not_taken_for.*0.05-2|lost_rounds",
        "thompson",
    ),
    "paper/test_figure.py": (
        r"two_formats|rows_behind|\[(battery-landscape-(low|medium)|gene-all|sae-bernoulli|ucb-bernoulli)\]",
        r"two_formats\[(ucb|battery-landscape|gene|sketch-switching)\]|behind_it\[(ucb|sae|battery|gene|gap-decay|sketch.*)\]",
    ),
    "paper/test_settled_claims.py": (r"test_settled_claims\[sae\]", "never"),
    "docs/test_documents.py": (
        r"runs_and_prints.*docs/(rules/|contexts|scale|planning|studies|what-can)",
        r"rules/(ucb1|thompson|successive-elimination)\.",
    ),
    "docs/test_site.py": ("test_axe", "never"),
    "docs/test_notebooks.py": (r"runs\[features\]|your-own-log", r"never"),
    "gpu/test_gpu_simulation.py": (
        r"test_same_(actions|evidence)|many_arms.*\[ucb-0.0\]",
        r"\[(ucb-[01]|ucb1-0|sae-0|thompson-0|klucb-0)\]",
    ),
    "gpu/test_gpu_studies.py": (r"sums_as_on_the_cpu\[0|little_memory", "never"),
    "cluster/": ("ray|dask", r"own\[dask"),
    "browser/test_every_page.py": (
        "test_a_page_is_open_to_everyone",
        r"\[(home|answer|features|refusal)\]",
    ),
    "browser/test_report_file.py": (r"open_to_everyone\[(warned|bounds)\]", "never"),
    "browser/test_visits.py": (
        r"test_(columns_can|rules_that_give|a_waiting_page|a_simulation_is|a_number_that_nobody|an_arm_that_is_a_script)|fields\[/simulate\]",
        "never",
    ),
    "cli/test_demo_command.py": ("test_the_same_seed", "never"),
    "cli/test_help_and_lists.py": ("test_the_shell_completes", r"ucb:al\]|--columns"),
    "cli/test_interrupts.py": (r"work\[0|is_imported", r"imported\[(typer|unbandit.estimators.api|numba)\]"),
    "cli/test_refusals.py": ("test_a_disk_that_fills_up", "csv"),
    "cli/test_report_command.py": ("test_a_long_log", "never"),
    "fuzz/test_parquet_logs.py": (r"\[1-1\]", "never"),
    "web/test_app.py": (
        r"rounds_that_got_lost|pulls_before|an_answer\[(prices|battery|trial)|headers\[/look\?example=battery",
        "never",
    ),
    "web/test_server.py": (r"stopped_in_the_middle.*\[SIG(INT|TERM)\]|two_hundred_slow|fifty_at_once", "never"),
}
"""Of these files, tests whose names match the first pattern but not the second are `thorough`: they repeat for more
rules, each of which compiles its own kernels, or for more cases what the others show (`make test-thorough`)."""

TOGETHER = {
    "cluster/": "cluster",
    "browser/": "browser",
    "gpu/": "gpu",
    "paper/test_figure.py": "figures",
    "paper/test_page.py": "figures",
    "unit/calibration/": "calibration",
    "unit/inference/": "filters",
    "unit/reporting/": "reports",
    "web/test_app.py": "page",
    "web/test_safety.py": "page",
}
"""Tests that share what is slow to set up, so that one worker runs them all; the others go file by file."""

FIRST = (
    "contract/test_rules.py",
    "unit/inference",
    "paper/test_figure.py",
    "paper/test_page.py",
    "unit/identification",
    "unit/kernels",
    "unit/calibration",
    "paper",
    "cluster",
    "docs",
    "browser",
    "web",
    "unit/reporting",
    "statistical",
    "cli",
)
"""What to begin with. Workers take groups in turn, and kernels are kept on disk: neighbours in this list need different
ones (simulations, then filters, and so on), so that two workers with an empty cache do not compile the same kernel."""


@pytest.fixture(autouse=True)
def own_rules() -> Iterator[None]:
    """Forget the rules that a test defined, so that later tests see those of the package alone."""
    from unbandit.demonstrators.base import known_rules, rules

    rules()  # the package's own come first, whoever asks for them first
    before = dict(known_rules)
    yield
    known_rules.clear()
    known_rules.update(before)


class GroupScheduling(LoadScopeScheduling):
    """Give each worker whole groups of tests, one after the other.

    Written here because xdist's own groups (`--dist loadgroup`) are written into the names of tests, which pytest 9.2
    does not allow: its tests are dealt out one by one, and both workers set up and compile everything.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _group(_place(nodeid))


@pytest.hookimpl(optionalhook=True)  # xdist may be switched off
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling:
    """Let xdist hand out groups of tests."""
    return GroupScheduling(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Let each worker begin to collect elsewhere: what one has rewritten of a file's assertions, the others read."""
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        left_out = {
            Path(each).resolve() for each in config.getoption("ignore") or ()
        }  # pytest takes what is named itself
        parts = [part for given in config.args for part in _parts(Path(given)) if Path(part).resolve() not in left_out]
        start = len(parts) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        config.args[:] = parts[start:] + parts[:start]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder, and put what takes longest first."""
    for item in items:
        place = _place(item.nodeid)
        for marker in _markers(place):
            item.add_marker(marker)
        if any(_repeats(item, *patterns) for patterns in _patterns(place)):
            item.add_marker("thorough")
    gc.freeze()  # what was collected stays: numba makes much garbage, and looking for it would pass over all tests
    items.sort(key=lambda item: (_order(_place(item.nodeid)), _place(item.nodeid)))  # stable: in a file as collected


def _parts(place: Path) -> list[str]:
    """Return what is in `tests` or `tests/unit`, and other places as they are."""
    if place.resolve() not in (TESTS, TESTS / "unit"):
        return [str(place)]
    inside = [each for each in sorted(place.iterdir()) if each.is_dir() or each.match("test_*.py")]
    return [part for each in inside if each.name != "__pycache__" for part in _parts(each)]


@cache
def _markers(place: str) -> list[str]:
    return [marker for start, marker in MARKED.items() if place.startswith(start)]


@cache
def _patterns(place: str) -> list[tuple[str, str]]:
    return [patterns for start, patterns in QUICK.items() if place.startswith(start)]


def _repeats(item: pytest.Item, repeated: str, shown: str) -> bool:
    return bool(re.search(repeated, item.name)) and not re.search(shown, item.name)


def _place(nodeid: str) -> str:
    """Return the file of a test, relative to this folder; that of a doctest begins with `src/`."""
    return nodeid.partition("::")[0].removeprefix("tests/")


def _group(place: str) -> str:
    return next((group for start, group in TOGETHER.items() if place.startswith(start)), place)


def _order(place: str) -> int:
    return next((at for at, first in enumerate(FIRST) if place.startswith(first)), len(FIRST))
