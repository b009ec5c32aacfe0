"""Parts of the vLLM engine that need no vLLM: the stepping thread, the memory check, the probe."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from engines import requires

from collabsim.errors import PrerequisiteError
from collabsim.models.engines import vllm_memory, vllm_probe
from collabsim.models.engines.vllm_engine import vllm_engine
from collabsim.models.engines.vllm_memory import GIB, check_memory, free_bytes, weight_bytes
from collabsim.models.engines.vllm_probe import VllmProbe, probe_vllm
from collabsim.models.engines.vllm_thread import Stepper

SECONDS = 10


class Counter:
    """Wants to be stepped a number of times."""

    def __init__(self, steps):
        self.left = steps
        self.threads = set()

    @property
    def busy(self):
        return self.left > 0

    def step(self):
        self.left -= 1
        self.threads.add(threading.current_thread())

    def leave(self):
        self.left = 0


def ended(stepper):
    deadline = time.monotonic() + SECONDS
    while stepper._thread is not None and time.monotonic() < deadline:
        time.sleep(0.005)
    return stepper._thread is None


def test_jobs_and_steps_of_all_engines_happen_on_one_thread():
    stepper, engines = Stepper(), [Counter(50), Counter(80)]
    stepper.run(lambda: stepper.engines.extend(engines)).result(SECONDS)
    threads = {stepper.run(threading.current_thread).result(SECONDS) for _ in range(20)}
    while any(engine.busy for engine in engines):
        time.sleep(0.001)
    assert len(threads | engines[0].threads | engines[1].threads) == 1
    stepper.run(stepper.engines.clear).result(SECONDS)


def test_a_job_that_raises_fails_its_future_and_nothing_else():
    stepper = Stepper()
    with pytest.raises(ZeroDivisionError):
        stepper.run(lambda: 1 / 0).result(SECONDS)
    assert stepper.run(lambda: 3).result(SECONDS) == 3


def test_a_job_that_is_cancelled_before_its_turn_is_not_done():
    stepper, go, done = Stepper(), threading.Event(), []
    first = stepper.run(lambda: go.wait(SECONDS))
    second = stepper.run(lambda: done.append(1))
    assert second.cancel()
    go.set()
    first.result(SECONDS)
    assert stepper.run(lambda: list(done)).result(SECONDS) == []


def test_the_thread_ends_when_no_engine_is_left_and_starts_again_on_demand():
    stepper, engine = Stepper(), Counter(3)
    stepper.run(lambda: stepper.engines.append(engine)).result(SECONDS)
    time.sleep(0.05)
    assert stepper._thread is not None
    stepper.run(stepper.engines.clear).result(SECONDS)
    assert ended(stepper)
    assert stepper.run(lambda: 5).result(SECONDS) == 5


def write_model(folder, size):
    folder.mkdir()
    with (folder / "model.safetensors").open("wb") as file:
        file.truncate(size)
    (folder / "tokenizer.json").write_text("{}")
    return folder


def test_a_model_that_fits_is_let_through(tmp_path, monkeypatch):
    monkeypatch.setattr(vllm_memory, "free_bytes", lambda: 4 * GIB)
    check_memory(write_model(tmp_path / "small", GIB), GIB, widened=False)


def test_a_model_that_does_not_fit_is_refused_with_figures_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(vllm_memory, "free_bytes", lambda: 3 * GIB)
    with pytest.raises(PrerequisiteError) as refusal:
        check_memory(write_model(tmp_path / "large", GIB), GIB, widened=True, others=2)
    words = str(refusal.value)
    for said in (
        "large",
        "3.8 GiB",
        "weights 2.0",
        "KV cache 1.0",
        "got 3.0 GiB",
        "close one of the 2",
        "kv_space_gib",
    ):
        assert said in words


def test_weights_are_counted_once(tmp_path):
    folder = write_model(tmp_path / "model", 1000)
    (folder / "pytorch_model.bin").write_bytes(b"x" * 500)
    assert weight_bytes(folder) == 1000


def test_a_container_with_less_memory_than_the_machine_is_noticed(tmp_path, monkeypatch):
    for name, text in {
        "memory.max": "3000",
        "memory.current": "2500",
        "memory.stat": "anon 1\ninactive_file 200\n",
    }.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(vllm_memory, "_CGROUP", tmp_path)
    assert free_bytes() == 700


def test_free_memory_is_known_on_this_machine():
    if sys.platform != "linux":
        pytest.skip("other systems may not tell")
    assert free_bytes() > 2**20


def test_vllm_that_is_not_installed_is_said_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("collabsim.models.engines.vllm_engine.find_spec", lambda name: None)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(PrerequisiteError, match="pip install vllm") as refusal:
        vllm_engine(tmp_path)
    assert "\n" not in str(refusal.value)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Something called vllm is installed, and is probed by `script`."""

    def install(script):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        found = SimpleNamespace(metadata={"Name": "vllm"}, version="9.9", locate_file=lambda name: tmp_path)
        (tmp_path / "cache").mkdir(exist_ok=True)
        monkeypatch.setattr(vllm_probe, "_installed", lambda: found)
        monkeypatch.setattr(vllm_probe, "_SCRIPT", script)

    return install


FOUND = VllmProbe("vllm 9.9", "cpu", dtypes=("bfloat16", "float32"))
WORKING = 'print("noise"); answer(["cpu", ["bfloat16", "float32"]])'


def test_a_probe_without_the_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(vllm_probe, "PACKAGES", ("no-such-package-anywhere",))
    found = probe_vllm()
    assert (found.works, found.version) == (False, None)
    assert "not installed" in found.problem


def test_a_probe_that_succeeds_names_version_and_device_and_is_remembered(installed, monkeypatch):
    installed(WORKING)
    assert probe_vllm() == FOUND
    monkeypatch.setattr(subprocess, "run", None)
    assert probe_vllm() == FOUND


def test_a_probe_that_failed_is_tried_again(installed):
    installed("import no_such_module_anywhere")
    found = probe_vllm()
    assert not found.works
    assert "no_such_module_anywhere" in found.problem
    assert "\n" not in found.problem
    installed(WORKING)
    assert probe_vllm().works


def test_a_build_for_another_processor_is_no_crash_of_ours(installed):
    installed("import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    assert "signal 4" in probe_vllm().problem


def test_a_probe_that_hangs_is_given_up(installed):
    installed("import time; time.sleep(60)")
    assert "took more than 0.5 s" in probe_vllm(seconds=0.5).problem


def test_a_probe_is_made_anew_once_packages_were_installed(installed, tmp_path):
    installed(WORKING)
    probe_vllm()
    installed("import sys; sys.exit('broken')")
    (tmp_path / "another_package").mkdir()
    assert "broken" in probe_vllm().problem


@pytest.mark.slow
@requires("vllm")
def test_the_vllm_of_this_machine_works(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = probe_vllm()
    assert found.works, found.problem


def test_a_torn_cache_file_is_probed_again(installed, tmp_path):
    installed(WORKING)
    probe_vllm()
    for kept in tmp_path.rglob("vllm-*.json"):
        kept.write_text("{")
    assert probe_vllm().works
