"""What is said where there is no GPU to be had."""

from __future__ import annotations

import sys
import types

import pytest

from unbandit import Instance, MissingExtra, ParameterError, Study, devices, parse_rule


@pytest.fixture
def asked(monkeypatch):
    """Ask anew, whatever was found before."""
    remembers = devices.why_no_gpu
    remembers.cache_clear()
    yield monkeypatch
    remembers.cache_clear()


def fake_cuda(monkeypatch, **parts):
    cuda = types.ModuleType("numba.cuda")
    for name, part in parts.items():
        setattr(cuda, name, part)
    monkeypatch.setitem(sys.modules, "numba.cuda", cuda)
    monkeypatch.setattr("numba.cuda", cuda, raising=False)


def raising(said):
    def call(*arguments):
        raise RuntimeError(said)

    return call


def test_without_the_extra(asked):
    asked.setattr(devices, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[gpu\]'"):
        devices.checked_device("cuda")
    assert devices.choose_device("auto", 10**12) == ("cpu", None)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"is_available": lambda: False, "cuda_error": lambda: None}, "found no driver, or none that fits"),
        (
            {"is_available": lambda: False, "cuda_error": lambda: "CUDA_ERROR_NO_DEVICE."},
            "CUDA says: CUDA_ERROR_NO_DEVICE",
        ),
        ({"is_available": lambda: True, "gpus": []}, "found none"),
        (
            {"is_available": lambda: True, "gpus": [1], "device_array": raising("driver\nversion is insufficient.")},
            "CUDA says: version is insufficient",
        ),
    ],
    ids=["no-driver", "no-device", "none-listed", "driver-mismatch"],
)
def test_no_gpu_in_one_sentence(asked, parts, said):
    fake_cuda(asked, **parts)
    asked.setattr(devices, "_installed", lambda: True)
    with pytest.raises(ParameterError) as refused:
        parse_rule("ucb").demonstrate(Instance([1.0, 0.5]), 10, device="cuda")
    expected = f'device: expected a GPU that CUDA can use; {said}. Take device="cpu", or leave it out.'
    assert str(refused.value) == expected
    assert devices.choose_device("auto", 10**12) == ("cpu", None)


def test_a_gpu_is_taken_for_large_work_and_said(asked):
    asked.setattr(devices, "_installed", lambda: True)
    asked.setattr(devices, "why_no_gpu", lambda: None)
    asked.setattr(devices, "gpu_name", lambda: "a GPU")
    assert devices.choose_device("auto", devices.ROUNDS_WORTH_A_GPU - 1) == ("cpu", None)
    device, said = devices.choose_device("auto", devices.ROUNDS_WORTH_A_GPU)
    assert device == "cuda"
    assert "a GPU" in said
    assert "device cpu" in said


def test_unknown_devices():
    with pytest.raises(ParameterError, match=r'expected one of auto, cpu, cuda; got "tpu"'):
        devices.choose_device("tpu", 1)
    with pytest.raises(ParameterError, match=r'device: expected one of cpu, cuda; got "gpu"\.$'):
        devices.checked_device("gpu")


def test_a_study_that_cannot_run_here_leaves_no_folder(asked, tmp_path):
    asked.setattr(devices, "_installed", lambda: True)
    asked.setattr(devices, "why_no_gpu", lambda: "found none")
    with pytest.raises(ParameterError, match="found none"):
        Study("two-armed", "ucb", 100, runs=4, device="cuda").run(tmp_path / "new")
    assert not (tmp_path / "new").exists()
