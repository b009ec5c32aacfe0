"""Multiagent finetuning from pool to pool, with a tiny model that says 1 or 2 between partners that always say 1."""

import hashlib
import json

import pytest
import yaml
from collabsim.trainers import amultiagent_finetuning, multiagent_finetuning
from collabsim.trainers.finetune.finetuning_settings import FinetuneConfig, parse_finetune
from collabsim.trainers.finetune.imitation import batches_of
from collabsim.trainers.policy.token_row import TokenRow
from collabsim.trainers.records import Example, Row
from router_world import router_folder
from scripted import Scripted
from test_train_command import collabsim

from collabsim import Pool, Sampling, Seat, System, make_item
from collabsim.errors import ConfigError, TrainingError
from collabsim.models.local.local_model import LocalModel
from collabsim.run_folder import read_json

SMALL = {"lr": 3e-3, "rows_per_step": 4, "epochs": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return router_folder(tmp_path_factory.mktemp("finetuning") / "model")


def member(folder):
    return LocalModel(spec=str(folder), engine="transformers", dtype="float32", chat_format="template")


def pool_of(folder, partners="1", **more):
    """Two seats of one tiny model, and two partners with one opinion."""
    seats = {
        name: Seat(name, member(folder), sampling=Sampling(temperature=1.0, max_tokens=2), description=f"about {name}")
        for name in ("x", "y")
    }
    said = {name: Scripted(f"{name} says {partners}", partners) for name in ("a", "b", "c")}
    return Pool({**seats, **said, **more})


def coins(count=10, first=0):
    """Questions whose golds are 1 and 2 in turn."""
    return [make_item(f"heads or tails? {first + k}", str(1 + k % 2), prompt="{question}") for k in range(count)]


def weights(path):
    return hashlib.sha256((path / "model.safetensors").read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def tuned(folder, tmp_path_factory):
    """An uninterrupted fine-tuning of two iterations."""
    out = tmp_path_factory.mktemp("tuned") / "out"
    return multiagent_finetuning(pool_of(folder), coins(), out=out, dev=coins(4, 50), iterations=2, **SMALL)


def says_1(model):
    """The model's log-probability of the answer 1 to fresh questions."""
    import torch
    from collabsim.trainers.policy.learner import Learner

    learner = Learner.load(model.folder.path, dtype="float32")
    end = model.prompter.tokenizer.eos_token_id
    ids = (*model.prompter.tokenizer.encode("1", add_special_tokens=False), end)
    rows = [TokenRow(tuple(model.prompter.render(item.view.messages)), ids) for item in coins(6, first=90)]
    with torch.no_grad():
        return float(torch.stack([scores.sum() for scores in learner.token_logprobs(rows)]).mean())


def test_members_learn_what_the_pool_agrees_on_and_not_the_golds(folder, tuned):
    # Half of the golds are 2; the partners' majority says 1 throughout.
    start = says_1(member(folder))
    for name in ("x", "y"):
        assert says_1(tuned.pool[name].model) > start + 0.2


def test_the_new_pool_has_the_same_seats_with_new_models_where_there_were_weights(folder, tuned):
    before = pool_of(folder)
    assert tuned.pool.seats == before.seats
    for name in ("x", "y"):
        seat, old = tuned.pool[name], before[name]
        assert (seat.sampling, seat.description) == (old.sampling, old.description)
        assert seat.model.identity != old.model.identity
        assert (seat.model.chat_format, seat.model.dtype) == ("template", "float32")
    assert all(tuned.pool[name].identity == before[name].identity for name in ("a", "b", "c"))
    assert tuned.values["unchanged"] == ["a", "b", "c"]


def test_seats_of_one_model_learn_apart(tuned):
    assert tuned.pool["x"].model.identity != tuned.pool["y"].model.identity


def test_the_new_pool_runs_in_any_protocol(tuned):
    episode = System("majority_vote", tuned.pool).run(coins(1, first=70)[0])
    assert (episode.error, episode.outcome) == (None, 1.0)


def test_every_iteration_starts_from_the_one_before_and_says_what_was_learnt(folder, tuned):
    first, second = tuned.values["iterations"]
    assert first["members"]["x"]["from"] == member(folder).identity
    kept = tuned.out / first["members"]["x"]["folder"]
    assert second["members"]["x"]["from"] == member(kept).identity
    assert [told["consensus"] for told in (first, second)] == [10, 10]
    assert first["consensus_right"] == 0.5
    replies = first["members"]["x"]["replies"]
    assert 0 < sum(replies.values()) <= 20
    assert first["members"]["x"]["steps"] == 2 * -(-sum(replies.values()) // 4)
    assert first["cost"]["calls"] == 10 * 5 * 2
    assert first["cost"]["trained_tokens"] == 2 * sum(told["tokens"] for told in first["members"].values())
    assert len(tuned.values["dev"]) == 3
    assert read_json(tuned.out / "result.json") == json.loads(json.dumps(tuned.values))


def test_one_that_was_stopped_goes_on_where_it_was_and_ends_in_the_same_weights(folder, tuned, tmp_path, monkeypatch):
    import collabsim.trainers.finetune.imitation as imitation

    done = []

    def stopping(model, rows, config, key, place):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(key)
        return original(model, rows, config, key, place)

    original = imitation.imitate
    monkeypatch.setattr(imitation, "imitate", stopping)
    start = lambda: multiagent_finetuning(  # noqa: E731
        pool_of(folder), coins(), out=tmp_path / "out", dev=coins(4, 50), iterations=2, **SMALL
    )
    with pytest.raises(KeyboardInterrupt):
        start()
    assert [key[2:] for key in done] == [(1, "x"), (1, "y"), (2, "x")]
    monkeypatch.setattr(imitation, "imitate", lambda *args: done.append(args[3]) or original(*args))
    resumed = start()
    assert done[3][2:] == (2, "y")
    assert len(done) == 4
    for name in ("x", "y"):
        assert weights(resumed.pool[name].model.folder.path) == weights(tuned.pool[name].model.folder.path)


def test_a_finished_one_is_read_back_without_a_model(folder, tuned, monkeypatch):
    monkeypatch.setattr(LocalModel, "running_engine", lambda _: pytest.fail("an engine was started"))
    again = multiagent_finetuning(pool_of(folder), coins(), out=tuned.out, dev=coins(4, 50), iterations=2, **SMALL)
    assert again.values == tuned.values


def test_other_settings_in_a_used_folder_are_refused(folder, tuned):
    with pytest.raises(ConfigError, match=r"finetune\.iterations"):
        multiagent_finetuning(pool_of(folder), coins(), out=tuned.out, dev=coins(4, 50), iterations=3, **SMALL)


async def test_all_weights_can_learn_and_chosen_members_only(folder, tmp_path):
    result = await amultiagent_finetuning(
        pool_of(folder), coins(4), out=tmp_path / "out", members=("y",), lora=None, **SMALL
    )
    assert result.pool["x"].model.identity == member(folder).identity
    assert says_1(result.pool["y"].model) > says_1(member(folder))
    assert result.values["members"] == ["y"]


def test_without_any_consensus_there_is_nothing_to_learn(folder, tmp_path):
    words = {name: Scripted(f"{name} of many minds", f"Answer: {k + 7}") for k, name in enumerate("abc")}
    with pytest.raises(TrainingError, match=r"0 of 4 debates reached a consensus.*finetune.support"):
        multiagent_finetuning(pool_of(folder, **words), coins(4), out=tmp_path / "out", **SMALL)


def test_a_member_that_agrees_with_nothing_keeps_its_weights(folder, tmp_path):
    shy = pool_of(folder, y=Seat("y", member(folder), sampling=Sampling(max_tokens=1)))  # every reply of it is cut
    result = multiagent_finetuning(shy, coins(4), out=tmp_path / "shy", **SMALL)
    assert result.values["iterations"][0]["members"]["y"]["folder"] is None
    assert result.pool["y"].model.identity == member(folder).identity
    assert result.pool["x"].model.identity != member(folder).identity


@pytest.mark.parametrize(
    ("members", "names", "message"),
    [
        (("a",), "xa", r"'a' is a Scripted.*local model"),
        (("z",), "xa", "no seat 'z'"),
        (None, "ab", "no member has local weights"),
        (None, "x", "two or more seats"),
    ],
)
def test_pools_that_cannot_learn_are_refused_before_anything_runs(folder, tmp_path, members, names, message):
    with pytest.raises(ConfigError, match=message):
        multiagent_finetuning(pool_of(folder).only(*names), coins(4), out=tmp_path / "out", members=members)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"debate": {"final": "judge"}}, "the consensus is the vote"),
        ({"suport": 0.5}, r"finetune.suport.*did you mean 'support'"),
        ({"support": 1.0}, "finetune.support"),
        ({"lora": {"rank": 0}}, "finetune.lora.rank"),
    ],
)
def test_settings_that_cannot_be_meant_are_named(data, message):
    with pytest.raises(ConfigError, match=message):
        parse_finetune(data)


def test_members_learn_with_lora_at_a_rate_for_it_unless_told_otherwise():
    assert FinetuneConfig().lora.rank == 16
    assert FinetuneConfig().lr == 1e-4
    assert parse_finetune({"lora": None}).training("x", 5).lora is None


def test_every_epoch_has_every_row_once_whatever_order_they_came_in():
    rows = [
        Example(Row(TokenRow((1,), (k, 2)), (0.0, 0.0), 1.0, "0", k % 3, "stop"), 1.0, 1.0, f"i{k}") for k in range(7)
    ]
    batches = batches_of(rows, 2, 3, ("key", 0))
    assert [len(batch) for batch in batches] == [3, 3, 1, 3, 3, 1]
    epochs = [[one for batch in half for one in batch] for half in (batches[:3], batches[3:])]
    assert all(sorted(one.item for one in epoch) == [f"i{k}" for k in range(7)] for epoch in epochs)
    assert epochs[0] != epochs[1]
    assert batches_of(rows[::-1], 2, 3, ("key", 0)) == batches


# ---- the command -----------------------------------------------------------------------------------------------------


def config_of(folder, place):
    rows = [{"question": f"heads or tails? {k}", "answer": str(1 + k % 2)} for k in range(24)]
    (place / "coins.jsonl").write_text("\n".join(map(json.dumps, rows)))
    local = {"model": str(folder), "engine": "transformers", "options": {"dtype": "float32"}}
    sure = {"model": "simulated:", "options": {"skill": 9.0}}
    config = {
        "pool": {"me": {**local, "sampling": {"temperature": 1.0, "max_tokens": 2}}, "a": sure, "b": sure},
        "protocol": {"name": "debate", "rounds": 2, "quote_limit": 60},
        "task": {"source": "jsonl:coins.jsonl", "limit": 6, "dev": {"limit": 4}, "prompt": "{question}"},
        "finetune": {"items": {"limit": 8}, **SMALL},
        "out": str(place / "out"),
        "store": str(place / "store.sqlite"),
    }
    path = place / "finetune.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def test_finetune_writes_a_config_that_sweep_takes_from_any_folder(folder, tmp_path, monkeypatch):
    path = config_of(folder, tmp_path)
    shown = collabsim("finetune", path).stdout
    assert "collabsim sweep" in shown
    assert "not tuned, since they have no local weights: a, b" in shown
    values = json.loads(collabsim("finetune", path, "--json").stdout)
    assert values == read_json(tmp_path / "out" / "result.json")
    record = read_json(tmp_path / "out" / "run.json")
    assert record["identity"]["finetune"]["debate"] == {"rounds": 2, "quote_limit": 60}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    swept = json.loads(collabsim("sweep", tmp_path / "out" / "tuned.yaml", "--out", "swept", "--json").stdout)
    assert swept["players"] == ["me", "a", "b"]
    tuned = yaml.safe_load((tmp_path / "out" / "tuned.yaml").read_text())
    assert tuned["pool"]["me"]["model"] == values["pool"]["me"]
    assert "finetune" not in tuned


def test_the_recipe_is_listed_beside_the_protocols_and_refused_as_one(folder, tmp_path):
    facts = {entry["name"]: entry for entry in json.loads(collabsim("protocols", "--json").stdout)}
    recipe = facts["multiagent_finetuning"]
    assert (recipe["family"], recipe["command"], facts["debate"]["command"]) == ("training", "finetune", "sweep")
    assert {"name": "support", "type": "number at least 0 and below 1", "default": 0.5} in recipe["options"]
    shown = collabsim("protocols", "multiagent_finetuning").stdout
    assert "collabsim finetune CONFIG" in shown
    with pytest.raises(ConfigError, match=r"recipe that makes a pool.*collabsim protocols multiagent_finetuning"):
        collabsim("sweep", config_of(folder, tmp_path), "--set", "protocol.name=multiagent_finetuning")
