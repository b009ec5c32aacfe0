"""The example that trains LoRA specialists, on a tiny base: its adapters are members of a sweep over merges."""

from __future__ import annotations

import contextlib
import json
import runpy
import sys
from pathlib import Path

import pytest
from engines import requires

from collabsim.cli import main
from collabsim.models import engines

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_specialists.py"
pytestmark = requires("torch", "transformers", "peft", "tokenizers", "safetensors")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*has no chat template")
def test_specialists_are_trained_and_swept(tmp_path, monkeypatch, capsys):
    from models.tiny_transformers import tiny_model

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    base = tiny_model(tmp_path / "base")
    sizes = ["--steps", "2", "--batch", "2", "--items", "10", "--test-items", "3"]
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "--base", str(base), "--out", str(tmp_path / "out"), *sizes])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [entry["specialist"] for entry in told] == ["sums", "products", "divisors"]
    store = ["--store", str(tmp_path / "g.sqlite"), "--out", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", ["collabsim", "sweep", str(tmp_path / "out" / "sweep.yaml"), "--json", *store])
    with contextlib.suppress(SystemExit):
        main()
    engines.close_engines()
    values = json.loads(capsys.readouterr().out)
    assert len(values["v"]) == 8
    assert set(values["shapley"]) == {"sums", "products", "divisors"}
    assert values["cost"]["calls"] == 3 * 8 + 3 * 3
