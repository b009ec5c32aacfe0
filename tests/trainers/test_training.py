"""The loop from end to end on a tiny router: files, choice by dev, budgets, resume, and that it learns."""

import json
import shutil

import aggregator_world
import pytest
from collabsim.trainers import train
from collabsim.trainers.metrics import TrainProgress, read_metrics
from engines import requires
from router_world import TRAINING, item, pairs, routed_system, router_folder, task, train_items
from scripted import Scripted

from collabsim import Pool, Sampling, Seat, System, Task, make_item
from collabsim.errors import CallError, ConfigError, DataError, TrainingError
from collabsim.models.local.local_model import LocalModel
from collabsim.run_folder import read_json

SMALL = {
    "seat": "router",
    "group": 4,
    "items_per_step": 2,
    "steps": 4,
    "lr": 1e-3,
    "loss": "dr_grpo",
    "norm_tokens": 1,
    "eval": {"every": 2, "values": "none"},
}


@pytest.fixture(scope="session")
def router(tmp_path_factory):
    return router_folder(tmp_path_factory.mktemp("router") / "model")


def small(router, out, **settings):
    """A training of four steps; `progress` and `resume` are no settings."""
    more = {key: settings.pop(key) for key in ("progress", "resume") if key in settings}
    return train(routed_system(router), task(8, 6), train_items(12), out=out, **more, **{**SMALL, **settings})


@pytest.fixture(scope="session")
def trained(router, tmp_path_factory):
    """An uninterrupted training and its folder."""
    out = tmp_path_factory.mktemp("trained") / "run"
    return small(router, out), out


class StopAfter(TrainProgress):
    """Ends a training as Ctrl-C would, after some steps."""

    def __init__(self, steps):
        self.steps = steps

    def advance(self, step):
        if step["step"] == self.steps:
            raise KeyboardInterrupt


def state_of(out):
    """Weights, moments of the optimiser and place of the last checkpoint."""
    import torch
    from collabsim.trainers.checkpoint import Checkpoints
    from safetensors.torch import load_file

    last = Checkpoints(out / "checkpoints").last
    training = torch.load(last.path / "training.pt", weights_only=True)
    moments = {(k, name): value for k, entry in training["optimizer"]["state"].items() for name, value in entry.items()}
    return last, load_file(last.path / "weights.safetensors"), moments


def assert_same_training(one, other):
    import torch

    (last, weights, moments), (last_2, weights_2, moments_2) = state_of(one), state_of(other)
    assert (last.step, last.revision, last.position["counts"]) == (
        last_2.step,
        last_2.revision,
        last_2.position["counts"],
    )
    assert weights.keys() == weights_2.keys()
    assert all(torch.equal(weights[name], weights_2[name]) for name in weights)
    assert all(torch.equal(moments[key], moments_2[key]) for key in moments)


def test_a_training_leaves_metrics_checkpoints_a_policy_and_a_result(trained):
    result, out = trained
    assert read_json(out / "result.json") == json.loads(json.dumps(result.values))
    assert [line["step"] for line in read_metrics(out)] == [1, 2, 3, 4]
    assert result.values["objective"] == "system"
    assert {"before", "after", "gain", "per_item", "cost", "chosen"} <= result.values.keys()
    assert result.values["cost"]["without_learner"] == 0
    assert len(result.values["per_item"]["after"]) == 8


def test_metrics_say_what_the_runs_and_the_update_were(trained):
    _, out = trained
    line = read_metrics(out)[-1]
    assert line["runs"]["runs"] == 8
    assert line["groups"]["all"] == 2
    assert 0 <= line["reward"]["system"] <= 1
    assert line["entropy"] > 0
    assert line["update"]["gap"] < 1e-4  # float32, and the learner speaks for itself
    assert line["dev"] is not None
    assert {"rollout", "learn", "push", "evaluate", "checkpoint"} == line["seconds"].keys()


def test_the_policy_folder_is_a_pool_member_like_any_other(trained):
    _, out = trained
    model = LocalModel(spec=str(out / "policy"), engine="transformers", dtype="float32")
    seat = Seat("a", model, sampling=Sampling(temperature=1.0, max_tokens=2))
    episode = System("majority_vote", Pool({"a": seat})).run(item(*pairs("test", 1)[0]))
    assert episode.error is None


def test_the_weights_that_are_kept_are_the_best_on_dev(trained):
    result, out = trained
    dev = {0: None} | {line["step"]: line["dev"] for line in read_metrics(out) if line["dev"] is not None}
    chosen = result.values["chosen"]
    assert chosen["by"] == "dev"
    assert chosen["step"] in dev
    assert chosen["dev"] >= max(value for value in dev.values() if value is not None)


def test_a_finished_training_is_read_and_not_made_again(trained, router):
    result, out = trained
    again = small(router, out)
    assert again.values["per_item"] == result.values["per_item"]


def test_a_resumed_training_equals_the_uninterrupted_one_bit_for_bit(trained, router, tmp_path):
    _, whole = trained
    with pytest.raises(KeyboardInterrupt):
        small(router, tmp_path / "run", progress=StopAfter(2))
    assert state_of(tmp_path / "run")[0].step == 2
    with pytest.raises(ConfigError, match="add --resume"):
        small(router, tmp_path / "run")
    resumed = small(router, tmp_path / "run", resume=True)
    assert_same_training(whole, tmp_path / "run")
    assert resumed.values["per_item"] == read_json(whole / "result.json")["per_item"]
    assert [line["step"] for line in read_metrics(tmp_path / "run")] == [1, 2, 3, 4]


def test_a_folder_of_other_settings_is_refused(trained, router):
    _, out = trained
    with pytest.raises(ConfigError, match=r"differing keys: train\.lr"):
        small(router, out, lr=2e-3)


def test_a_budget_of_learner_tokens_ends_the_training(router, tmp_path):
    result = small(router, tmp_path / "run", tokens=20, eval={"every": 0, "test": False})
    assert result.values["steps"] == 2
    assert 20 <= result.values["cost"]["learner_tokens"] <= 32
    assert result.values["chosen"]["by"] == "last"
    assert "before" not in result.values


def with_partners(router, say):
    system = routed_system(router)
    for seat in system.pool:
        system = system.replace(seat, Scripted(seat, say))
    return system


def test_equal_groups_are_drawn_again_within_a_cap(router, tmp_path):
    settings = {**SMALL, "steps": 1, "resample": 2, "eval": {"every": 0, "test": False}}
    hopeless = with_partners(router, "Answer: -1")
    train(hopeless, task(2, 0), train_items(12), out=tmp_path / "run", **settings)
    (line,) = read_metrics(tmp_path / "run")
    assert line["groups"]["resampled"] == 4
    assert line["runs"]["runs"] == 24
    assert line["groups"]["flat"] == 2
    assert line["update"]["rows"] == 0
    assert line["revision"] == "0"


def test_a_step_in_which_every_run_failed_ends_the_training_and_keeps_the_last_checkpoint(router, tmp_path):
    system = with_partners(router, lambda request: CallError("no connection"))
    with pytest.raises(TrainingError, match=r"all 8 runs of a step failed .*no connection"):
        train(
            system, task(2, 0), train_items(12), out=tmp_path / "run", **{**SMALL, "eval": {"every": 0, "test": False}}
        )
    assert state_of(tmp_path / "run")[0].step == 0


def test_items_that_are_tested_on_are_refused_for_training(router):
    with pytest.raises(DataError, match="among the task's items"):
        train(routed_system(router), task(8, 6), [item(*pairs("test", 1)[0])], **SMALL)


@pytest.mark.parametrize(
    ("native", "device", "refused"), [(False, "cpu", True), (True, "cpu", False), (False, "cuda:0", False)]
)
def test_autocast_is_refused_where_the_processor_has_no_bfloat16(router, monkeypatch, native, device, refused):
    from collabsim.trainers import launch

    monkeypatch.setattr(launch, "computes_natively", lambda dtype: native)
    monkeypatch.setattr(launch, "_open_policy", lambda *_: 1 / 0)  # the first thing that takes time
    with pytest.raises(
        ConfigError if refused else ZeroDivisionError, match=r"train\.autocast" if refused else "division"
    ):
        train(routed_system(router), task(2, 0), train_items(4), **{**SMALL, "autocast": True, "device": device})


@pytest.mark.parametrize("objective", ["individual", "sft", "rft"])
def test_objectives_of_a_models_own_answer_have_no_meaning_for_a_router(router, objective):
    with pytest.raises(ConfigError, match="is a helper"):
        train(routed_system(router), task(8, 6), train_items(12), **{**SMALL, "objective": objective})


ARMS = {
    "system": {"objective": "system"},
    "individual": {"objective": "individual"},
    "leave_one_out": {"objective": "leave_one_out"},
    "mixture": {"objective": {"system": 0.5, "individual": 0.5}, "coalition": "shapley"},
    "sft": {"objective": "sft", "eval": {"every": 0, "values": "loo"}},
    "rft": {"objective": "rft"},
    "lora, kl and two epochs": {"lora": {"rank": 2}, "kl": 0.1, "epochs": 2},
}


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_trains_a_pivotal_seat_of_a_vote(router, tmp_path, arm):
    """Its two partners always disagree, and one or two is what it says."""
    model = LocalModel(spec=str(router), engine="transformers", dtype="float32")
    me = Seat("me", model, sampling=Sampling(temperature=1.0, max_tokens=4))
    pool = {"me": me, "one": Scripted("one", "Answer: 1"), "two": Scripted("two", "Answer: 2")}
    coins = [make_item(f"heads or tails? {k}", str(1 + k % 2), prompt="{question}") for k in range(12)]
    settings = {**SMALL, "seat": "me", "steps": 2, "eval": {"every": 0, "test": False}, "partner_draws": 2, **ARMS[arm]}
    result = train(System("majority_vote", pool), Task("coins", tuple(coins[8:])), coins[:8], out=tmp_path, **settings)
    lines = read_metrics(tmp_path)
    assert sum(line["update"]["rows"] for line in lines) > 0
    assert all(line["update"]["grad_norm"] > 0 for line in lines if line["update"]["rows"])
    assert result.values["cost"]["without_learner"] == (4 * 1 if arm == "leave_one_out" else 0) * 2
    if arm == "sft":
        assert result.values["cost"]["learner_tokens"] == result.values["cost"]["trained_tokens"] == 4 * 10
        assert result.values["after"]["compositional"].keys() == set(pool)


ENGINES = ["transformers", pytest.param("vllm", marks=requires("vllm"))]


def assert_learned(result):
    before, after, gain = (result.values[name]["system"] for name in ("before", "after", "gain"))
    assert 0.35 < before["value"] < 0.65
    assert after["value"] > 0.8
    assert gain["ci95"][0] > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_router_learns_in_the_system_where_it_has_no_reward_of_its_own(router, engine):
    assert_learned(train(routed_system(router, engine), task(200, 32), train_items(96), **TRAINING))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_an_aggregator_learns_in_the_system_which_proposals_to_trust(tmp_path, engine):
    system = aggregator_world.aggregated_system(aggregator_world.aggregator_folder(tmp_path / "model"), engine)
    items = aggregator_world.items("train", 96)
    assert_learned(train(system, aggregator_world.task(), items, **aggregator_world.TRAINING))


def test_copies_of_the_model_folder_do_not_share_a_training(trained, router, tmp_path):
    _, out = trained
    other = shutil.copytree(router, tmp_path / "other")
    (other / "chat_template.jinja").write_text((other / "chat_template.jinja").read_text() + " ")
    with pytest.raises(ConfigError, match="system"):
        small(other, out)
