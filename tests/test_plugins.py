"""Entry points of installed packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from collabsim import plugins
from collabsim.errors import PrerequisiteError


def test_the_points_of_a_group_are_known_by_name():
    protocols = plugins.registered("collabsim.protocols")
    assert protocols["debate"].value == "collabsim.graphs.debate:debate"
    assert plugins.registered("collabsim.no_such_group") == {}


@pytest.mark.parametrize("value", ["no_such_package_anywhere:NAME", "collabsim.plugins:no_such_name"])
def test_a_point_that_cannot_be_loaded_is_refused_by_name(value):
    with pytest.raises(PrerequisiteError, match=f"engine 'mine' cannot be loaded from '{value}'.*reinstall"):
        plugins.load(EntryPoint("mine", value, "collabsim.engines"), "engine")
