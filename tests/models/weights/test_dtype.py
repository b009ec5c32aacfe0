"""What `dtype: auto` comes to, and that it is known without torch."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest
from engines import requires

from collabsim.models.weights import dtype as module
from collabsim.models.weights.dtype import computes_natively, likely_device, processor_flags, resolve_dtype


@pytest.fixture
def processor(tmp_path, monkeypatch):
    """`processor(text)`: the system says this about its processor."""

    def say(text, system="Linux"):
        (tmp_path / "cpuinfo").write_text(text)
        monkeypatch.setattr(module, "_CPUINFO", tmp_path / "cpuinfo")
        monkeypatch.setattr(module.platform, "system", lambda: system)
        computes_natively.cache_clear()

    yield say
    computes_natively.cache_clear()


def native(monkeypatch, *formats):
    monkeypatch.setattr(module, "computes_natively", lambda dtype: dtype in formats)


@pytest.mark.parametrize("asked", ["bfloat16", "float16", "float32"])
def test_a_format_that_was_asked_for_is_taken(monkeypatch, asked):
    native(monkeypatch)
    assert resolve_dtype("bfloat16", asked, "cpu", ("float16",)) == asked


@pytest.mark.parametrize(
    ("stored", "instructions", "device", "wanted"),
    [
        ("bfloat16", ("bfloat16",), "cpu", "bfloat16"),
        ("bfloat16", (), "cpu", "float32"),
        ("float16", ("bfloat16",), "cpu", "float32"),
        ("bfloat16", (), "cuda:1", "bfloat16"),
        ("float16", (), "mps", "float16"),
        ("float32", ("bfloat16",), "cpu", "float32"),
        ("float32", (), "cuda", "float32"),
        ("float64", (), "cuda", "float32"),
        ("float8_e4m3fn", (), "cuda", "float32"),
    ],
)
def test_auto_is_the_stored_format_where_the_device_computes_in_it(monkeypatch, stored, instructions, device, wanted):
    native(monkeypatch, *instructions)
    assert resolve_dtype(stored, "auto", device) == wanted


def test_auto_on_an_old_gpu_is_what_the_engine_likes_best_there():
    assert resolve_dtype("bfloat16", "auto", "cuda", ("float16", "float32")) == "float16"
    assert resolve_dtype("float16", "auto", "cuda", ("float16", "float32")) == "float16"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("flags\t\t: fpu sse avx2 avx512f avx512_bf16", {"bfloat16"}),
        ("flags\t\t: fpu amx_bf16 amx_tile avx512_fp16", {"bfloat16", "float16"}),
        ("flags\t\t: fpu sse avx2 f16c", set()),  # f16c converts, and does not compute
        ("Features\t: fp asimd fphp asimdhp bf16 i8mm", {"bfloat16", "float16"}),
        ("Features\t: fp asimd", set()),
    ],
)
def test_instructions_are_read_from_the_system(processor, line, found):
    processor(f"processor\t: 0\nmodel name\t: bf16 is in its name\n{line}\nbugs\t\t:\n")
    assert {name for name in ("bfloat16", "float16") if computes_natively(name)} == found


def test_a_system_that_does_not_tell_has_no_instructions(processor, monkeypatch, tmp_path):
    processor("")
    assert not computes_natively("bfloat16")
    monkeypatch.setattr(module, "_CPUINFO", tmp_path / "nothing")
    assert processor_flags() == frozenset()


@pytest.mark.parametrize(("said", "found"), [("1", True), ("0", False)])
def test_a_mac_is_asked_by_sysctl(processor, tmp_path, monkeypatch, said, found):
    processor("", system="Darwin")
    (tmp_path / "sysctl").write_text(f'#!/bin/sh\n[ "$2" = hw.optional.arm.FEAT_BF16 ] && echo {said}\n')
    (tmp_path / "sysctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert computes_natively("bfloat16") is found


def test_a_mac_without_sysctl_has_no_instructions(processor, tmp_path, monkeypatch):
    processor("", system="Darwin")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not computes_natively("bfloat16")


@requires("torch")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/cpuinfo")
def test_torch_sees_the_same_instructions():
    import torch

    seen = {name for name, there in torch.cpu.get_capabilities().items() if there is True}
    assert computes_natively("bfloat16") == bool(seen & {"avx512_bf16", "amx_bf16", "bf16"})
    assert computes_natively("float16") == bool(seen & {"avx512_fp16", "amx_fp16", "fp16_arith"})


@pytest.mark.parametrize(
    ("build", "driver", "visible", "wanted"),
    [
        ("2.13.0", True, None, "cuda"),
        ("2.13.0+cu130", True, "0", "cuda"),
        ("2.13.0+cpu", True, None, "cpu"),
        ("2.13.0", False, None, "cpu"),
        ("2.13.0", True, "", "cpu"),
        (None, True, None, "cpu"),
    ],
)
def test_a_gpu_needs_a_driver_and_a_torch_that_is_built_for_it(monkeypatch, build, driver, visible, wanted):
    def version(name):
        if build is None:
            raise PackageNotFoundError(name)
        return build

    monkeypatch.setattr(module, "version", version)
    monkeypatch.setattr(module.Path, "exists", lambda path: driver and str(path) == "/proc/driver/nvidia/version")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert likely_device() == wanted


def test_the_identity_of_a_local_model_loads_no_torch(tmp_path):
    from tiny_folders import write_folder

    program = (
        "import sys; from collabsim.models.local.local_model import LocalModel\n"
        f"model = LocalModel(spec={str(write_folder(tmp_path / 'tiny'))!r}, engine='transformers', chat_format='plain')\n"
        "print(model.number_format); print(sorted({'torch', 'vllm'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["float32", "[]"]
