"""Content identities: what must be the same in every version, on every machine and in every folder.

In: this folder as the current one (a copy will do), and the examples. Out: plain JSON, which `MANIFEST.json` has as it was
before modules were moved. Modules that are not public are imported in the functions at the top and nowhere else: when one
moves, its name is changed there. `MANIFEST.json` is never made anew for that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Any

from collabsim import (
    GenerationStore,
    Pool,
    Sampling,
    Seat,
    SimulatedModel,
    System,
    Task,
    identified,
    load_task,
    make_item,
)

CONFIGS = ("debate", "cascade", "trained_router", "chain", "notes", "fusion", "soup", "train", "train_lora")
"""Files beside this one, without their ending."""

# ---- modules that are not public ----------------------------------------------------------------------------------------


def seeds() -> Any:
    """`canonical_json`, `digest`, `derive_seed`, `call_seed`."""
    from collabsim import seeds as module

    return module


def store_key() -> Any:
    """`request_key(identity, revision, request)`, and `Request`, which is not public."""
    from collabsim.request import Request
    from collabsim.store import request_key

    return request_key, Request


def reading() -> Any:
    """`read_config`, `config_identity`, `default_out`."""
    from collabsim.config import read as module

    return module


def making() -> Any:
    """`make_system(config, store, base)` and `make_task(config, base)`."""
    from collabsim.config import assemble as module

    return module


def server_model() -> Any:
    """The model behind an OpenAI-compatible server."""
    from collabsim.models.chat.server import ServerModel

    return ServerModel


def training() -> Any:
    """`prepare(path)` and `training_identity(config)` of a training, `read_matrix(path)` of a comparison."""
    from collabsim.trainers.compare.matrix import read_matrix
    from collabsim.trainers.setup import prepare, training_identity

    return prepare, training_identity, read_matrix


def finetuning() -> Any:
    """`prepare_finetuning(path, overrides)`."""
    from collabsim.trainers.finetune.finetuning_setup import prepare_finetuning

    return prepare_finetuning


def policy() -> Any:
    """The model that learns; `Policy.open(model)`."""
    from collabsim.trainers.policy.policy import Policy

    return Policy


# ---- identities ---------------------------------------------------------------------------------------------------------


def identities(examples: Path) -> dict[str, Any]:
    """All of them, by kind. The current folder is this one or a copy of it."""
    return {
        "seeds": _seeds(),
        "request_keys": _request_keys(),
        "items": _items(),
        "models": _models(),
        "protocols": _protocols(),
        "systems": {name: _system(Path(f"{name}.yaml")).identity for name in CONFIGS},
        "fitted_systems": _fitted_systems(),
        "tasks": {name: _task(Path(f"{name}.yaml")) for name in CONFIGS},
        "configs": _configs([*(Path(f"{name}.yaml") for name in CONFIGS), *sorted(examples.glob("*.yaml"))]),
        "servers": _system(examples / "servers.yaml").identity,
        "trainings": _trainings(examples),
        "policy": _policy(),
    }


def generated(examples: Path) -> dict[str, Any]:
    """Tasks of the examples that a generator makes: they are the same for one version of it."""
    tasks = {name: _task(examples / f"{name}.yaml") for name in ("demo", "quickstart", "train_vote", "compare_smollm2")}
    return {"reasoning_gym": version("reasoning-gym"), "tasks": tasks}


def _seeds() -> list[Any]:
    made = seeds()
    value = {"b": [1, 1.5, None, True], "a": "Ü€"}
    calls = [(0, "item", "seat", 0), (7, "item", "seat", 2), (7, "item", "seat", 2, 1), (7, "Ü", "a.b", 0)]
    derived = [made.derive_seed(*parts) for parts in (("x",), (1,), (1.0,), (True, None), ("x", 1, "y"))]
    return [made.canonical_json(value), made.digest(value), derived, [made.call_seed(*call) for call in calls]]


def _request_keys() -> list[str]:
    request_key, request = store_key()
    conversations = [(("user", "2 + 2?"),), (("system", "Be brief."), ("user", "Ü"), ("assistant", "a"), ("user", "b"))]
    samplings = [
        Sampling(),
        Sampling(temperature=0, top_p=0.5, top_k=3),
        Sampling(temperature=1, top_p=0.9, top_k=40, max_tokens=7, stop=("###", "\n")),
        Sampling(temperature=0.3, template={"enable_thinking": False}),
    ]
    draws = [(0, 0), (2**31 - 1, 3)]
    return [
        request_key(*spoken_by, request(messages, sampling, seed, draw))
        for spoken_by in (("model", "0"), ("Modell-Ü", "12"))
        for messages in conversations
        for sampling in samplings
        for seed, draw in draws
    ]


def _items() -> dict[str, Any]:
    made = {
        "number": make_item("What is 2 + 2?", "4"),
        "choice": make_item("Which?", "B", choices=["one", "two", "three"]),
        "text": make_item("Who?", ["Ada", "Lovelace"], kind="text"),
        "exact": make_item("Say x.", "x", kind="exact"),
        "expression": make_item("Expand (a+b)^2.", "a^2 + 2ab + b^2", kind="expression"),
        "prompt": make_item("What is 3?", "3", prompt="Q: {question}", topic="t", difficulty=0.5),
    }
    shuffled = load_task("jsonl:choices.jsonl", shuffle_options=True, limit=3, seed=9)
    return {
        **{name: [item.id, list(map(list, item.view.messages))] for name, item in made.items()},
        "drawn": [[item.id, item.gold, dict(item.view.choices)] for item in shuffled.items],
        "task": Task("by hand", (made["number"], made["text"]), (made["exact"],)).identity,
    }


def _models() -> dict[str, str]:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    server = server_model()
    pool = {**_system(Path("soup.yaml")).pool, **_system(Path("soup.yaml")).helpers, **_system(Path("train.yaml")).pool}
    return {
        "plain": SimulatedModel().identity,
        "named": SimulatedModel(name="a", skill=1, conformity=0.25, verbosity=3).identity,
        "topics": SimulatedModel(skill={"default": 0.0, "sums": 2}, no_answer_rate=0.5, distractors=2).identity,
        "identified": identified(FakeListChatModel(responses=["a"]), "mine").identity,
        "server": server(model="m", base_url="http://localhost:8000/v1", revision="2").identity,
        "server with more": server(model="m", base_url="http://h/v1/", extra_body={"min_p": 0.1}).identity,
        **{f"seat {name}": seat.identity for name, seat in pool.items()},
        **{f"local {name}": pool[name].model.identity for name in ("one", "two", "base", "me")},
    }


def _protocols() -> dict[str, str]:
    """A system of every protocol of this distribution with its default options."""
    members = {name: SimulatedModel(name=name, skill=skill) for name, skill in (("x", 1.0), ("y", 0.0), ("z", -1.0))}
    own = sorted(point.name for point in entry_points(group="collabsim.protocols") if point.dist.name == "collabsim")
    found = {name: System(name, _pool(members, 2 if name == "nudging" else 3)).identity for name in own}
    persona = Seat("x", members["x"], system="s", examples=(("q", "a"),), description="d", sampling=Sampling(top_k=5))
    helped = System(
        "mixture_of_agents",
        Pool({"x": persona, "y": members["y"]}),
        helpers=Pool({"h": members["z"]}),
        roles={"aggregator": "h"},
        order=("y", "x"),
        alone="floor",
        absent="replace:h",
    )
    return {**found, "with helper, role, order, floor and replacement": helped.identity}


def _pool(members: dict[str, Any], count: int) -> Pool:
    return Pool(dict(list(members.items())[:count]))


def _fitted_systems() -> dict[str, Any]:
    """Systems with what was fitted on dev before, and the hash of what went into the fit."""
    found = {}
    for name in ("cascade", "trained_router"):
        system = _system(Path(f"{name}.yaml"))
        kept = json.loads(Path(f"finished/{name}/fitted.json").read_text(encoding="utf-8"))
        found[name] = replace(system, fitted=type(system.fitted)(**kept)).identity
    return found


def _system(path: Path) -> System:
    return making().make_system(reading().read_config(path), GenerationStore(None), path.parent)


def _task(path: Path) -> list[Any]:
    task = making().make_task(reading().read_config(path), path.parent)
    return [task.identity, task.dev_identity, [item.id for item in task.items], [item.id for item in task.dev]]


def _configs(paths: list[Path]) -> dict[str, list[str]]:
    read = reading()
    configs = {path: read.read_config(path) for path in paths}
    return {path.name: [read.config_identity(c), str(read.default_out(path, c))] for path, c in configs.items()}


def _trainings(examples: Path) -> dict[str, Any]:
    prepare, training_identity, read_matrix = training()
    paths = [Path("train.yaml"), Path("train_lora.yaml"), examples / "train_vote.yaml"]
    found = {path.name: [training_identity(reading().read_config(path)), str(prepare(path).out)] for path in paths}
    items = sorted(item.id for item in prepare(Path("train.yaml")).items)
    matrices = {}
    for path in (examples / "compare.yaml", examples / "compare_smollm2.yaml"):
        matrix = read_matrix(path)
        digests = [[cell.folder, reading().config_identity(config)] for cell, config in matrix.configs.items()]
        matrices[path.name] = [str(matrix.out), seeds().digest(digests)]
    tuned = finetuning()(Path("soup.yaml"), ["finetune={}", "task.limit=4", "helpers={}", "protocol={name: debate}"])
    return {"trainings": found, "items": items, "matrices": matrices, "finetuning": [str(tuned.out), tuned.identity]}


def _policy() -> dict[str, str]:
    """The identity of a policy with the weights of its start, and after a change that is exact on every machine."""
    import torch

    with _opened() as opened:
        start = opened.frozen().identity
        with torch.no_grad():
            for parameter in opened.learner.parameters():
                parameter.mul_(0.5)
        opened.push()
        return {"start": start, "changed": opened.frozen().identity}


@contextmanager
def _opened() -> Iterator[Any]:
    opened = policy().open(_system(Path("train.yaml")).pool["me"].model, dtype="float32", device="cpu")
    try:
        yield opened
    finally:
        opened.close()
