"""The reference of config keys is made from the schema, and is complete."""

from __future__ import annotations

import importlib.util
import sys

import pytest
from pages import ROOT, read

from collabsim.protocols import as_protocol, registered

GENERATE = ROOT / "docs" / "generate"
PAGE = read(ROOT / "docs" / "configuration.md")


@pytest.fixture(scope="module")
def generator():
    """The program that makes the page; `docs` is no package."""
    sys.path.insert(0, str(GENERATE))
    try:
        spec = importlib.util.spec_from_file_location("configuration_page", GENERATE / "configuration.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(GENERATE))
        sys.modules.pop("meanings", None)


def test_the_page_is_the_one_that_the_schema_gives(generator):
    assert generator.page(PAGE) == PAGE, "run `make docs`: a key of the config has changed"


def test_every_section_of_the_schema_has_its_place_on_the_page(generator):
    marked = {found[1] for found in generator.MARKED.findall(PAGE)}
    assert set(generator.sections()) | {"options of simulated", "options of openai", "options of local"} <= marked
    assert "options of protocols" in marked


def test_every_key_has_a_meaning(generator):
    tables = {**generator.sections(), **generator.model_options(), **generator.protocol_options()}
    assert len(tables) > 12
    assert [f"{place}: {key}" for place, rows in tables.items() for key, _, _, text in rows if not text] == []


def test_every_key_of_the_schema_is_on_the_page(generator):
    from collabsim.trainers import FinetuneConfig, TrainConfig

    from collabsim.config.schema import Config, SeatConfig, SweepConfig, TaskConfig

    sections = {
        "whole file": Config,
        "pool.NAME": SeatConfig,
        "task": TaskConfig,
        "sweep": SweepConfig,
        "train": TrainConfig,
        "finetune": FinetuneConfig,
    }
    parts = {found[1]: found[2] for found in generator.MARKED.findall(PAGE)}
    for place, kind in sections.items():
        assert [key for key in kind.model_fields if f"| `{key}` |" not in parts[place]] == []


def test_every_option_of_every_protocol_is_on_the_page():
    names = [name for name, point in registered().items() if point.value.startswith("collabsim.")]
    assert len(names) > 20
    options = [f"{name}.{option}" for name in names for option in as_protocol(name).options()]
    assert [option for option in options if f"| `{option}` |" not in PAGE] == []


def test_a_docstring_in_the_schema_comes_before_the_generator_s_own_words(generator, monkeypatch):
    from collabsim.config.schema import SweepConfig

    monkeypatch.setitem(generator.MEANINGS, "SweepConfig", {"method": "another word", "undescribed": "only here"})
    told = generator.meanings_of(SweepConfig)
    assert "permutation" in told["method"]
    assert told["undescribed"] == "only here"


def test_types_are_told_in_plain_words(generator):
    takes = {key: words for key, words, _, _ in generator.sections()["train"]}
    assert takes["group"] == "whole number at least 2"
    assert takes["schedule"] == "`constant`, `linear`, `cosine`"
    assert takes["lora"] == "section `train.lora`"
    assert takes["objective"] == "text or name: number"
