import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from unbandit.datasets import gene
from unbandit.datasets.gene import CURVE, means_by_rank
from unbandit.errors import ParameterError

PUBLISHED = Path(__file__).parents[4] / "shared" / "data" / "gene_means.csv"


def test_the_curve_passes_through_its_points_and_only_falls():
    means = means_by_rank()
    assert means.shape == (12_979,)
    assert means[np.array(list(CURVE)) - 1] == pytest.approx(list(CURVE.values()), abs=1e-12)
    assert (np.diff(means) < 0).all()
    # The paper gives the range as (-1.3, 2.01).
    assert -1.3 < means[-1] < means[0] < 2.01


@pytest.mark.skipif(not PUBLISHED.exists(), reason=f"the whole digitised curve is not at {PUBLISHED}")
def test_the_curve_is_close_to_the_whole_digitised_one():
    with PUBLISHED.open() as file:
        whole = np.array([float(row["mean"]) for row in csv.DictReader(file)])
    error = means_by_rank() - whole
    assert np.abs(error).max() < 0.036
    assert np.sqrt(np.mean(error**2)) < 0.002


def test_all_genes_scaled():
    instance = gene()
    assert (len(instance), instance.name, instance.best) == (12_979, "gene", "1")
    assert (instance.means.max(), instance.means.min()) == (1.0, 0.0)
    # 0.1 / (2.0013 + 1.2915)^2 = 0.1 / 10.84253 = 0.009223, which the paper rounds to 0.0092
    assert instance.sigma**2 == pytest.approx(0.009223, abs=5e-7)


@pytest.mark.parametrize("count", [2, 100, 200, 400, 12_979])
def test_a_count_holds_the_tracked_rank(count):
    instance = gene(arms=count, seed=3)
    ranks = [int(arm) for arm in instance.arms]
    assert len(set(ranks)) == count
    assert ranks == sorted(ranks)
    assert ranks[-1] == 12_979
    assert instance.means[-1] == 0.0


def test_choices_nest_and_follow_the_seed():
    small, large = set(gene(arms=100, seed=4).arms), set(gene(arms=400, seed=4).arms)
    assert small < large
    assert set(gene(arms=100, seed=5).arms) != small


def test_the_best_gene_is_not_forced_in():
    assert all("1" not in gene(arms=100, seed=seed).arms for seed in range(5))
    # the scale is that of all genes, whichever were chosen
    instance = gene(arms=100, seed=1)
    assert instance.best_mean < 1.0
    assert instance.means[0] == gene().means[int(instance.arms[0]) - 1]


def test_ranks_are_drawn_evenly():
    # 40 choices of 399 ranks from 12,978: their mean is 6489.5 with standard error 12978 / sqrt(12 * 15960) = 29.7.
    ranks = [int(arm) for seed in range(40) for arm in gene(arms=400, seed=seed).arms[:-1]]
    assert abs(np.mean(ranks) - 6489.5) < 5 * 29.7


def test_listed_ranks_keep_their_order():
    assert gene(arms=[12_979, 1]).means.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (1, "expected a count from 2 to 12979; got 1"),
        (12_980, "expected a count from 2 to 12979; got 12980"),
        ([0, 1], "expected rank numbers from 1 to 12979; got 0"),
        ([4, 4], "expected each rank once; got 4 twice"),
    ],
)
def test_bad_arms_are_refused(arms, message):
    with pytest.raises(ParameterError, match=f"arms: {message}"):
        gene(arms=arms)


def test_slow_modules_are_left_alone():
    program = (
        "import sys, unbandit.datasets as d; early = {'scipy', 'polars'} & set(sys.modules); d.gene();"
        "sys.exit(f'{early}' if early or 'scipy.stats' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
