"""The example that trains LoRA specialists, on a tiny base: its adapters are members of a sweep over merges."""

from __future__ import annotations

import contextlib
import json
import math
import re
import runpy
import sys
from pathlib import Path

import pytest
from engines import requires

from collabsim.cli import main
from collabsim.models.engines import shared_engines as engines

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
    skills = ["sums", "products", "divisors"]
    assert [entry["specialist"] for entry in told if "specialist" in entry] == skills
    assert {entry["member"]: list(entry["right"]) for entry in told if "member" in entry} == dict.fromkeys(
        ["base", *skills], skills
    )
    store = ["--store", str(tmp_path / "g.sqlite"), "--out", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", ["collabsim", "sweep", str(tmp_path / "out" / "sweep.yaml"), "--json", *store])
    with contextlib.suppress(SystemExit):
        main()
    engines.close_engines()
    values = json.loads(capsys.readouterr().out)
    assert len(values["v"]) == 8
    assert set(values["shapley"]) == set(skills)
    assert values["n_items"] == 3 * 3
    assert values["cost"]["calls"] == 9 * 8 + 9 * 3


def test_no_question_is_both_learnt_and_held_out_nor_in_test_and_dev():
    example = runpy.run_path(str(EXAMPLE))
    for skill in example["SKILLS"]:
        kept, learnt = example["divide"](skill, 10, 400)
        asked = [row["question"] for row in (*kept, *learnt)]
        assert len(asked) == len(set(asked))
        assert [row["split"] for row in kept].count("test") == [row["split"] for row in kept].count("dev") == 10
        assert len(learnt) >= 100


def test_the_golds_of_all_skills_are_right():
    example = runpy.run_path(str(EXAMPLE))
    for skill in example["SKILLS"]:
        for row in example["divide"](skill, 30, 30)[0]:
            numbers = [int(number) for number in re.findall(r"[0-9]+", row["question"])]
            expected = {"sums": sum, "products": math.prod, "divisors": lambda both: math.gcd(*both)}[skill](numbers)
            assert row["answer"] == str(expected)
