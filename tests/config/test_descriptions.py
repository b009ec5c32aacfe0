"""The page of config keys is made from the schema, so every key of a config says what it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from collabsim.config.expected import choices, known_keys
from collabsim.config.schema import ApplicationConfig, Config
from collabsim.config.sections import installed_sections, section_schema


def schemas_below(schema: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A schema and those of all sections in it."""
    yield schema
    for field in schema.model_fields.values():
        for choice in choices(field.annotation):
            for inner in (choice, *getattr(choice, "__args__", ())):
                if isinstance(inner, type) and issubclass(inner, BaseModel):
                    yield from schemas_below(inner)


def all_keys() -> dict[str, Any]:
    """Every key of a config with its field, the sections of commands included."""
    roots = [Config, ApplicationConfig, *map(section_schema, installed_sections())]
    schemas = {schema for root in roots for schema in schemas_below(root)}
    return {f"{schema.__name__}.{name}": field for schema in schemas for name, field in schema.model_fields.items()}


def test_all_sections_are_met():
    sections = {name.partition(".")[0] for name in all_keys()}
    assert {"SeatConfig", "TaskConfig", "DevConfig", "TrainConfig", "LoraConfig", "FinetuneConfig"} <= sections
    assert {"train", "compare", "finetune"} <= set(known_keys(Config))


@pytest.mark.parametrize("name", sorted(all_keys()))
def test_a_key_says_what_it_does(name):
    described = all_keys()[name].description or ""
    assert len(described.split()) >= 2, f"{name} has no description below its line"
    assert described.rstrip().endswith("."), described


def test_a_key_that_may_be_left_empty_says_what_that_means():
    silent = [name for name, field in all_keys().items() if field.default is None and "null" not in field.description]
    assert silent == []
