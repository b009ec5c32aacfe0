"""A user's project, as type checkers see it: every public name in use, and mistakes that must be errors.

`tests/test_typing.py` puts it outside the checkout and runs `mypy --strict` on it against an ordinary wheel. A mistake that
stops being one is an unused `type: ignore`, which is an error too. It is never run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

from collabsim.trainers import (
    FinetuneConfig,
    FinetuneResult,
    Policy,
    TokenRow,
    TrainConfig,
    TrainResult,
    amultiagent_finetuning,
    atrain,
    multiagent_finetuning,
    train,
)
from langchain_core.language_models import FakeListChatModel
from langgraph.graph import END, START, StateGraph

import collabsim
from collabsim import (
    ABSENT,
    Ask,
    AskRole,
    Call,
    Episode,
    GenerationStore,
    Item,
    Message,
    Output,
    Pool,
    Recorder,
    Reply,
    Request,
    RunContext,
    Sampling,
    Score,
    Seat,
    SeatModel,
    SimulatedModel,
    State,
    SweepResult,
    System,
    Task,
    ask,
    asweep,
    context_of,
    from_graph,
    identified,
    last_replies,
    load_task,
    make_item,
    plurality,
    protocol,
    read_result,
    score_answer,
    share,
    slot,
    sweep,
    with_text,
)

VERSION: str = collabsim.__version__
NAMES: list[str] = collabsim.__all__
MODEL = SimulatedModel(name="a", skill=1.0)
JUDGE = identified(FakeListChatModel(responses=["A"]), "my-judge")


def again(state: State, run: RunContext) -> tuple[Message, ...] | None:
    return None if run.alone or not last_replies(state, run) else run.item.messages


async def closing(state: State, runtime: Any) -> dict[str, Any]:
    run = context_of(runtime)
    reply = await ask(runtime, run.order[0], run.item.messages)
    replies = [state["replies"][slot(seat, 0)] for seat in run.order]
    return {"final": share([reply]) if isinstance(reply, Reply) else plurality(replies, run.answers)}


@protocol(family="text", roles=("judge",), absent="an absent seat says nothing")
def mine(seats: Sequence[str], *, rounds: int = 1) -> StateGraph[State]:
    graph = StateGraph(State)
    for seat in seats:
        graph.add_node(slot(seat, 0), Ask(slot(seat, 0), seat, again))
    graph.add_node("judge", AskRole("judge", "judge", again))
    graph.add_node("closing", closing)
    return graph


@protocol
def bare(seats: Sequence[str]) -> StateGraph[State]:
    return StateGraph(State)


class Work(TypedDict, total=False):
    question: str
    report: str


async def write(state: Work) -> Work:
    return {"report": (await SeatModel("writer").ainvoke(state["question"])).text}


def systems(store: GenerationStore) -> list[System]:
    seat = Seat("b", MODEL, sampling=Sampling(temperature=0.5), system="Be brief.", examples=(("1 + 1", "2"),))
    pool = Pool({"a": MODEL, "b": seat}, c=JUDGE)
    application = StateGraph(Work).add_sequence([write]).add_edge(START, "write").add_edge("write", END).compile()
    return [
        System("debate", {"a": MODEL, "b": seat}, options={"rounds": 2}, helpers={"judge": MODEL}, store=store),
        System(mine, pool, roles={"judge": "judge"}, helpers={"judge": JUDGE}),
        System(bare, Pool(a=MODEL), order=["a"], alone="floor", absent="remove"),
        System("my_package.my_module:my_protocol", pool.replace("a", MODEL)),
        from_graph(application, {"writer": MODEL}, players=["writer"], absent={"write": "skip"}, memory=False),
    ]


def measured(system: System, task: Task, out: Path) -> float:
    result: SweepResult = sweep(system, task, method="exact", seed=1, players="seats", out=out, concurrency=8)
    low, high = result.shapley["a"].interval
    value: float = result.shapley["a"].value
    error: float = result.leave_one_out["a"].se
    alone: float = result.individual["a"].interval.low + result.banzhaf["a"].value
    pair: float = result.interaction["a+b"].value
    whole: float = result.v["a+b"]
    names: tuple[str, ...] = result.players
    items: int = result.n_items
    method: str = result.method
    verdict: str = result.relation.verdict
    pairs: int = result.relation.pairs.inverted
    pearson: float | None = result.relation.correlations["shapley"].pearson
    tokens: int = result.cost.tokens + result.cost.generated
    seconds: float = result.cost.seconds
    values: dict[str, Any] = read_result(out).values
    print(low, high, error, alone, pair, whole, names, items, method, verdict, pairs, pearson, tokens, seconds, values)
    return value


def judged(item: Item, system: System) -> Score:
    episode: Episode = system.run(item, ["a"], run_seed=3, replica=1, recorder=Recorder())
    outputs: tuple[Output, ...] = episode.final
    calls: Sequence[Call] = episode.calls
    request = Request(with_text(item.view.messages, "Be brief."), Sampling(), seed=1)
    print(outputs, calls, request, ABSENT)
    return score_answer("number", outputs[0].text, "4")


def trained(system: System, task: Task, policy: Policy, out: Path) -> None:
    result: TrainResult = train(system, task, task.items, seat="a", steps=3, lr=1e-4, lora={"rank": 8}, out=out)
    train(system, task, task.items, TrainConfig(seat="a"), policy=policy, resume=True)
    if result.gain is not None and result.before is not None:
        gained: float = result.gain.system.value - result.before.system.value
        print(gained, result.objective, result.steps, result.cost.learner_tokens)
    tuned: FinetuneResult = multiagent_finetuning({"a": MODEL, "b": MODEL}, task.items, out=out, iterations=2)
    multiagent_finetuning(tuned.pool, task.items, FinetuneConfig(), out=out)
    print(TokenRow)


async def waited(system: System, task: Task) -> None:
    result: SweepResult = await asweep(system, task, method="loo")
    trained: TrainResult = await atrain(system, task, task.items, seat="a")
    tuned: FinetuneResult = await amultiagent_finetuning(system.pool, task.items, out="models")
    print(result, trained, tuned)


def mistakes(system: System, task: Task) -> None:
    sweep(system, task, methd="exact")  # type: ignore[call-arg]
    sweep(system, "reasoning_gym:chain_sum")  # type: ignore[arg-type]
    sweep("debate", task)  # type: ignore[arg-type]
    sweep(system, task, players="foo")  # type: ignore[arg-type]
    sweep(system, task, seed="x")  # type: ignore[arg-type]
    sweep(system, task, on_missing="x")  # type: ignore[arg-type]
    print(sweep(system, task).shapely)  # type: ignore[attr-defined]
    print(sweep(system, task).shapley["a"].valu)  # type: ignore[attr-defined]
    asweep(system, task, budgt=3)  # type: ignore[call-arg, unused-coroutine]
    train(system, task, "items", seat="a")  # type: ignore[arg-type]
    train(system, task, task.items, seet="a")  # type: ignore[call-arg]
    train(system, task, task.items, seat="a", steps="3")  # type: ignore[arg-type]
    train(system, task, task.items, seat="a", resume="yes")  # type: ignore[arg-type]
    atrain(system, task, task.items, seet="a")  # type: ignore[call-arg, unused-coroutine]
    multiagent_finetuning(system.pool, task.items, out="models", iteration=2)  # type: ignore[call-arg]
    from_graph(StateGraph(Work), playrs=[])  # type: ignore[call-arg]
    from_graph(StateGraph(Work), on_limit="stop")  # type: ignore[arg-type]
    system.run(task.items[0], run_sed=1)  # type: ignore[call-arg]
    System(3, system.pool)  # type: ignore[arg-type]
    System("debate", ["a"])  # type: ignore[arg-type]
    System("debate", {"a": "simulated:"})  # type: ignore[dict-item]
    System("debate", system.pool, alone="x")  # type: ignore[arg-type]
    Pool(["a"])  # type: ignore[arg-type]
    load_task("gsm8k", limit="x")  # type: ignore[arg-type]
    load_task("gsm8k", limt=3)  # type: ignore[call-arg]
    make_item("What is 2 + 3?")  # type: ignore[call-arg]
