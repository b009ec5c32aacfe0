"""C-RL in an existing LangGraph application: a seat of it learns, and one that calls models itself is refused."""

import json

import pytest
import yaml
from collabsim.trainers import train
from collabsim.trainers.evaluation import evaluate
from collabsim.trainers.partner_noise import default_noise
from foreign.applications import chain, pool
from foreign.plain_app import make
from langgraph.graph import END, START, MessagesState, StateGraph
from router_world import ROUTER, item, pairs, router_folder, specialist, task, train_items
from test_train_command import collabsim

from collabsim import Pool, Seat, SeatModel, SimulatedModel, System, Task, asweep, from_graph, make_item
from collabsim.errors import ConfigError, ProtocolError
from collabsim.models.local.local_model import LocalModel
from collabsim.run_folder import read_json

SETTINGS = {"seat": "router", "loss": "dr_grpo", "norm_tokens": 1, "lr": 2e-3, "steps": 8, "items_per_step": 4}
SETTINGS |= {"group": 6, "eval": {"every": 0, "values": "none"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return router_folder(tmp_path_factory.mktemp("foreign") / "model")


def application():
    """Plain LangGraph: a router node writes 1 or 2, and a conditional edge sends the question to that specialist."""
    router, solvers = SeatModel("router"), {"1": SeatModel("add"), "2": SeatModel("mul")}

    async def route(state: MessagesState):
        question = state["messages"][0].text
        return {"messages": [await router.ainvoke(f"{question}\n\n1. add\n2. mul")]}

    def solve(number):
        async def node(state: MessagesState):
            return {"messages": [await solvers[number].ainvoke(state["messages"][:1])]}

        return node

    graph = StateGraph(MessagesState)
    graph.add_node("route", route)
    graph.add_edge(START, "route")
    for number in solvers:
        graph.add_node(f"solve-{number}", solve(number))
        graph.add_edge(f"solve-{number}", END)
    graph.add_conditional_edges(
        "route", lambda state: "solve-1" if "1" in state["messages"][-1].text else "solve-2", ["solve-1", "solve-2"]
    )
    return graph.compile()


def routed(folder):
    model = LocalModel(spec=str(folder), engine="transformers", dtype="float32")
    pool = {"router": Seat("router", model, sampling=ROUTER), "add": specialist("add"), "mul": specialist("mul")}
    return from_graph(application(), Pool(pool), players=["router", "add", "mul"])


def test_a_seat_of_an_application_learns_from_what_the_whole_application_achieves(folder):
    # Its own answer, 1 or 2, is never right; all questions are products, which one of the two specialists can do.
    test, learnt = ([item(*p) for p in pairs(split, 40) if p[0] == "mul"] for split in ("test", "train"))
    values = train(routed(folder), Task("products", tuple(test)), learnt, **SETTINGS).values
    assert values["before"]["system"]["value"] < 0.8
    assert values["after"]["system"]["value"] > 0.9
    assert values["cost"]["failed"] == 0


def by_nodes(folder):
    """The application with its nodes as players."""
    return from_graph(application(), routed(folder).pool)


def test_an_application_whose_players_are_nodes_is_trained_and_its_nodes_are_valued(folder):
    settings = {**SETTINGS, "steps": 1, "items_per_step": 1, "group": 2, "eval": {"every": 0, "values": "loo"}}
    values = train(by_nodes(folder), task(4, 0), train_items(4), **settings).values
    for when in ("before", "after"):
        assert values[when]["compositional"].keys() == {"route", "solve-1", "solve-2"}
        assert values[when]["individual"]["value"] == 0.0  # of the seat that learns: 1 or 2 is never right


@pytest.mark.parametrize(
    ("settings", "what"),
    [({"objective": "leave_one_out"}, "objective leave_one_out"), ({"coalition": "shapley"}, "coalition shapley")],
)
def test_a_seat_behind_players_that_are_nodes_cannot_be_taken_out(folder, settings, what):
    config = {**SETTINGS, **settings}
    with pytest.raises(ConfigError, match=rf"'router' is a seat and no player \(these are route, .*has no {what};"):
        train(by_nodes(folder), task(4, 0), train_items(4), **config)


async def test_an_evaluation_has_the_players_of_a_sweep():
    system = from_graph(chain("a", "b"), pool("a", "b"), players=["ask-a", "b"])
    items = Task("sums", tuple(make_item(f"What is {k} + 1 ?", str(k + 1)) for k in range(4)))
    swept = (await asweep(system, items, seed=3)).values
    for learner in ("a", "b"):
        found = await evaluate(system, items, learner, 3)
        assert {key: value for key, value in swept.items() if key not in ("cost", "paired")} == found.values
        own = [(await system.alone_on(item, learner, run_seed=3)).outcome for item in items.items]
        assert list(found.individual) == own


def test_nodes_that_ask_unseen_may_read_anybody_so_partners_are_shared(folder):
    assert default_noise(routed(folder), "add") == "shared"
    assert default_noise(System("majority_vote", routed(folder).pool), "add") == "crossed"
    assert default_noise(System("feedback", routed(folder).pool), "add") == "shared"


@pytest.mark.parametrize("pool", [{}, {"guess": SimulatedModel(name="guess")}])
def test_an_application_that_calls_models_itself_is_refused_with_the_change_to_make(pool, tmp_path):
    with pytest.raises(ProtocolError, match=r"node 'guess' called the model.*model = SeatModel\('guess'\)"):
        train(from_graph(make(), pool), task(4, 0), train_items(4), seat="guess", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_trains_a_seat_of_an_application_that_a_config_names(folder, tmp_path):
    rows = [{"question": f"{verb} {a} {b}", "answer": item(verb, a, b).gold} for verb, a, b in pairs("train", 20)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "app.py").write_text(APPLICATION)
    local = {"model": str(folder), "engine": "transformers", "options": {"dtype": "float32"}}
    config = {
        "pool": {
            "first": {**local, "sampling": {"temperature": 1.0, "max_tokens": 2}},
            "second": {"model": "simulated:"},
        },
        "protocol": {"graph": "app.py:app", "players": ["first", "second"]},
        "task": {"source": "jsonl:rows.jsonl", "limit": 6, "prompt": "{question}"},
        "train": {"seat": "first", "group": 2, "items_per_step": 2, "steps": 1, "eval": {"values": "none"}},
        "out": str(tmp_path / "run"),
        "store": str(tmp_path / "store.sqlite"),
    }
    (tmp_path / "train.yaml").write_text(yaml.safe_dump(config))
    values = json.loads(collabsim("train", tmp_path / "train.yaml", "--json").stdout)
    assert values == read_json(tmp_path / "run" / "result.json")
    assert values["cost"]["learner_calls"] >= 2


APPLICATION = """
from langgraph.graph import MessagesState, StateGraph

from collabsim import SeatModel


async def draft(state: MessagesState):
    return {"messages": [await SeatModel("first").ainvoke(state["messages"])]}


async def check(state: MessagesState):
    return {"messages": [await SeatModel("second").ainvoke(state["messages"])]}


app = StateGraph(MessagesState).add_sequence([draft, check]).set_entry_point("draft").compile()
"""
