"""Studies on a GPU: the same answers, parts that never mix, and any amount of memory."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from unbandit import Bernoulli, Instance, ParameterError, ResumeError, Study
from unbandit.kernels.gpu import stage
from unbandit.study.rows import SUMMED

FOUR = Instance([1.0, 0.7, 0.4, 0.0], 0.6, name="four")
COINS = Instance([0.8, 0.5, 0.2], Bernoulli(), name="coins")


def studies(size, **options):
    horizon, runs = size
    estimators = ["bracket", "switching", "counts", "naive:constant=0.75"]
    given = {"estimators": estimators, "keep": "sums", "seed": 4} | options
    yield Study([FOUR, COINS], ["ucb", "sae:scale=0.5", "ucb1"], [horizon], 3 * runs, **given)
    yield Study([COINS], ["klucb", "phased:scale=0.4"], [horizon], 3 * runs, **given)


@pytest.mark.parametrize("which", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_sums_as_on_the_cpu(which, size, tmp_path):
    study = list(studies(size))[which]
    here = study.run(tmp_path / "here").scan().collect()
    there = study.on("cuda").run(tmp_path / "there").scan().collect()
    assert here.drop(SUMMED).equals(there.drop(SUMMED))
    for name in SUMMED:
        scale = np.abs(here[name].to_numpy()).max()
        np.testing.assert_allclose(there[name], here[name], rtol=1e-4, atol=1e-4 * scale, err_msg=name)


def test_rows_as_on_the_cpu(size, tmp_path):
    horizon, runs = size
    study = Study(FOUR, "ucb", horizon, runs, estimators=["bracket", "switching", "naive"])
    here, there = (study.on(device).run(tmp_path / device).scan().collect() for device in ("cpu", "cuda"))
    assert (here["pulls"] == there["pulls"]).mean() >= 0.999
    np.testing.assert_allclose(here["estimate"].mean(), there["estimate"].mean(), rtol=1e-6)


def test_parts_never_mix(size, tmp_path):
    study = Study(FOUR, "ucb", size[0], 4)
    study.run(tmp_path)
    with pytest.raises(ResumeError, match="device"):
        study.on("cuda").run(tmp_path)


def test_little_memory_gives_the_same_bytes(size, tmp_path, monkeypatch):
    study = Study(FOUR, ["ucb", "sae"], size[0], 7, keep="sums", device="cuda")
    study.run(tmp_path / "much")
    monkeypatch.setattr("unbandit.kernels.gpu.sums.chunk_of", lambda horizon, arms: 3)
    study.run(tmp_path / "chunks")
    monkeypatch.setattr(stage, "fitting", lambda bytes_per_run, whole=1: whole)
    study.run(tmp_path / "little")
    for part in ("00000", "00001"):
        chunks, little = ((tmp_path / name / "parts" / f"{part}.parquet").read_bytes() for name in ("chunks", "little"))
        assert chunks == little
    much, chunks = (pl.read_parquet(tmp_path / name / "parts") for name in ("much", "chunks"))
    np.testing.assert_allclose(much["squared"], chunks["squared"], rtol=1e-12)


def test_a_refusal_of_memory_halves_the_batch(size, monkeypatch):
    asked, refused = [], []

    def work(first, last):
        if last - first > 3:
            refused.append(last - first)
            raise MemoryError("CUDA_ERROR_OUT_OF_MEMORY")
        asked.append((first, last))

    monkeypatch.setattr(stage, "fitting", lambda bytes_per_run, whole=1: 8)
    stage.in_batches(work, 10, 1)
    assert refused == [8, 4]
    assert asked == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]


def test_too_little_memory_for_one_chunk_is_said(size, tmp_path, monkeypatch):
    def refused(*arguments):
        raise MemoryError("CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr("unbandit.kernels.gpu.stage.Stage.evidence", refused)
    with pytest.raises(ParameterError, match=r"does not take 4,096 runs of [\d,]+ bytes each. Take device=.cpu."):
        Study(FOUR, "ucb", size[0], 4, keep="sums", device="cuda").run(tmp_path)


def test_a_later_task_with_odd_chunks(size, monkeypatch):
    from unbandit.study.taskgrid import Task

    monkeypatch.setattr("unbandit.kernels.gpu.sums.chunk_of", lambda horizon, arms: 7)
    study = Study(FOUR, "ucb", size[0], 40, keep="sums")
    task = Task(0, 0, 13, 30, 17 * size[0])
    here, there = study.rows(task), study.on("cuda").rows(task)
    for name in SUMMED:
        np.testing.assert_allclose(there[name], here[name], rtol=1e-9, atol=1e-9, err_msg=name)


def test_chunks_are_smaller_for_longer_runs_and_more_arms():
    """Pins the chunks: another size changes the bits of every sum."""
    from unbandit.kernels.gpu.sums import chunk_of

    cases = [(5_000, 2), (10**6, 2), (5_000, 12_979), (10**9, 2)]
    assert [chunk_of(*case) for case in cases] == [4096, 268, 206, 20]


def test_too_long_for_a_gpu():
    with pytest.raises(ParameterError, match=r"at most 2\^31 - 1 rounds on a GPU"):
        Study(FOUR, "ucb", 2**31, 2, device="cuda")


def test_what_is_not_about_memory_is_raised():
    def work(first, last):
        raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")

    with pytest.raises(RuntimeError, match="ILLEGAL"):
        stage.in_batches(work, 10, 1)
