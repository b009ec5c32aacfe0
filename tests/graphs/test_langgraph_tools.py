"""`graphs/langgraph.json` serves every protocol to LangGraph's own tools, which run graphs without a run context."""

import json
from importlib import import_module
from importlib.resources import files

import orjson
import pytest
from langgraph.pregel import Pregel

from collabsim.protocols import registered

CONFIG = json.loads((files("collabsim.graphs") / "langgraph.json").read_text())


def served(name):
    """The object that LangGraph's loader takes: it reads the module's dictionary, so it must be a real variable."""
    module, _, variable = CONFIG["graphs"][name].partition(":")
    return import_module(module).__dict__[variable]


def test_every_registered_protocol_of_ours_is_served():
    ours = {name for name, point in registered().items() if point.value.startswith("collabsim.graphs.")}
    assert set(CONFIG["graphs"]) == ours


@pytest.mark.parametrize("name", CONFIG["graphs"])
async def test_a_served_graph_plays_on_simulated_models_and_shows_its_state_as_json(name):
    graph = served(name)
    assert isinstance(graph, Pregel)
    state = await graph.ainvoke({}, context={})  # the server sends an empty dictionary as context
    assert state["final"]
    shown = orjson.loads(orjson.dumps(state, default=list))
    assert shown["final"][0][0] == state["final"][0].text
