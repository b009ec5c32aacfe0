"""Sections that commands of other packages read: known by entry point, checked by their owner, read from `--set` by type."""

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest
import yaml

from collabsim.config import sections
from collabsim.config.read import config_identity, parse_config, parse_section, read_config
from collabsim.config.schema import Section
from collabsim.config.sections import installed_sections, section_schema
from collabsim.errors import ConfigError, PrerequisiteError

DATA = {"pool": {"a": "simulated:"}, "protocol": "debate", "task": "gsm8k"}


class AuditConfig(Section):
    label: str = "none"
    depth: int = 1


@pytest.fixture
def audit(monkeypatch):
    """A package is installed whose command reads a section `audit:`."""
    module = ModuleType("auditing")
    module.AuditConfig = AuditConfig
    monkeypatch.setitem(sys.modules, "auditing", module)
    points = {
        **installed_sections(),
        "audit": EntryPoint("audit", "auditing:AuditConfig", sections.GROUP),
        "broken": EntryPoint("broken", "no_such_package:Schema", sections.GROUP),
    }
    for user in ("collabsim.config.sections", "collabsim.config.schema", "collabsim.config.expected"):
        monkeypatch.setattr(f"{user}.installed_sections", lambda: points)


@pytest.fixture
def config_file(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(DATA))
    return path


def test_the_sections_of_this_package_are_those_of_its_commands():
    assert {"train", "compare", "finetune"} <= installed_sections().keys()
    assert section_schema("train").model_fields["seat"].is_required()


def test_a_section_is_kept_as_it_is_written_for_its_command(audit):
    config = parse_config({**DATA, "audit": {"label": "x", "misspelt": 1}})
    assert config.section("audit") == {"label": "x", "misspelt": 1}
    with pytest.raises(ConfigError, match=r"unknown key 'audit\.misspelt'"):
        parse_section(AuditConfig, config.section("audit"), "audit")


def test_a_section_that_is_not_there_is_none(audit):
    assert parse_config(DATA).section("audit") is None
    assert parse_config({**DATA, "audit": None}).section("audit") is None


def test_a_section_is_no_part_of_what_a_sweep_measures(audit):
    assert config_identity(parse_config({**DATA, "audit": {"label": "x"}})) == config_identity(parse_config(DATA))


def test_a_key_that_no_command_reads_is_refused_with_the_nearest_of_all():
    with pytest.raises(ConfigError, match=r"unknown key 'audit'.*known here: compare, concurrency, finetune, helpers"):
        parse_config({**DATA, "audit": {}})


def test_a_misspelt_section_is_told_the_nearest_one_that_is_installed(audit):
    with pytest.raises(ConfigError, match=r"unknown key 'audti' \(did you mean 'audit'\?\)"):
        parse_config({**DATA, "audti": {}})


def test_set_reads_a_section_by_its_schema(audit, config_file):
    config = read_config(config_file, ["audit.label=on", "audit.depth=2"])
    assert config.section("audit") == {"label": "on", "depth": 2}


def test_set_reads_a_section_that_cannot_be_loaded_as_yaml(audit, config_file):
    assert read_config(config_file, ["broken.x=on"]).section("broken") == {"x": True}
    with pytest.raises(PrerequisiteError, match="the section 'broken' cannot be loaded from 'no_such_package:Schema'"):
        section_schema("broken")
