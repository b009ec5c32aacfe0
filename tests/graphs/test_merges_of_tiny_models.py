"""Merges of real (tiny, random) models inside systems and sweeps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from engines import requires

from collabsim import GenerationStore, Pool, Sampling, Seat, System, make_item, sweep
from collabsim.errors import ProtocolError
from collabsim.models.engines import shared_engines as engines
from collabsim.models.engines import transformers_kind
from collabsim.models.local.local_model import LocalModel
from collabsim.models.merging import MergeRecipe, merged_model
from collabsim.tasks import Task

pytestmark = requires("torch", "transformers", "peft", "tokenizers", "safetensors")

ITEMS = [make_item(f"{k} + 3?", str(k + 3)) for k in range(2)]
GREEDY = Sampling(temperature=0, max_tokens=6)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    from models.tiny_transformers import tiny_model

    place = tmp_path_factory.mktemp("models")
    return {name: tiny_model(place / name, seed=seed) for seed, name in enumerate(("base", "one", "two"))}


@pytest.fixture
def seat(folders, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def made(name, folder=None):
        model = LocalModel(
            spec=str(folders[folder or name]), engine="transformers", dtype="float32", threads=1, chat_format="plain"
        )
        return Seat(name, model, sampling=GREEDY)

    yield made
    engines.close_engines()


@pytest.fixture
def system(seat):
    def made(protocol="soup", store=None, **options):
        pool = Pool({name: seat(name) for name in ("one", "two")})
        helpers = Pool({"base": seat("base")})
        return System(protocol, pool, helpers=helpers, options=options, store=store or GenerationStore(None))

    return made


async def test_nobody_present_is_worth_the_bases_own_answer(system):
    made = system()
    episode = await made.arun(ITEMS[0], [])
    assert [call.seat for call in episode.calls] == ["base"]
    alone = System("majority_vote", Pool(base=made.helpers["base"]))
    assert episode.final == (await alone.alone_on(ITEMS[0], "base")).final


async def test_a_single_seat_answers_by_itself_and_two_in_one_call_of_their_merge(system):
    made = system()
    assert (await made.arun(ITEMS[0], ["one"])).final == (await made.alone_on(ITEMS[0], "one")).final
    both = await made.arun(ITEMS[0])
    assert [call.seat for call in both.calls] == ["one+two"]
    assert both.final != (await made.alone_on(ITEMS[0], "one")).final


async def test_a_merge_of_a_model_with_itself_says_what_the_model_says(seat):
    pool = Pool({name: seat(name, "one") for name in ("a", "b")})
    for protocol, options in (("soup", {}), ("ties", {"density": 1.0}), ("dare_ties", {"density": 1.0})):
        made = System(protocol, pool, helpers=Pool({"base": seat("base")}), options=options)
        assert (await made.arun(ITEMS[0])).final == (await made.alone_on(ITEMS[0], "a")).final, protocol


async def test_without_a_base_the_protocol_says_what_to_add(seat):
    made = System("soup", Pool(one=seat("one"), two=seat("two")))
    with pytest.raises(ProtocolError, match=r"helpers: \{base:"):
        await made.arun(ITEMS[0], [])


def test_models_of_other_kinds_cannot_be_merged(seat):
    from scripted import Scripted

    with pytest.raises(ProtocolError, match=r"LocalModel, Scripted"):
        merged_model([seat("one").model, Scripted("a", "5")], seat("base").model, MergeRecipe())


def test_a_policy_in_training_is_not_merged_by_the_weights_of_its_folder(seat):
    class Learning(LocalModel):
        pass

    learner = Learning(spec=seat("one").model.spec, engine="transformers")
    with pytest.raises(ProtocolError, match="Learning, LocalModel"):
        merged_model([learner, seat("two").model], seat("base").model, MergeRecipe())


def test_a_sweep_loads_each_merge_once_and_a_finished_one_loads_nothing(system, tmp_path, monkeypatch):
    started = []
    kind = transformers_kind.TRANSFORMERS

    def noted(settings):
        started.append(settings.folder.name)
        return kind.start(settings)

    monkeypatch.setattr(transformers_kind, "TRANSFORMERS", replace(kind, start=noted))
    task = Task("sums", tuple(ITEMS))
    found = []
    for _ in range(2):
        with GenerationStore(tmp_path / "g.sqlite") as store:
            found.append(sweep(system("dare_ties", store), task, method="exact").values)
        engines.close_engines()
    assert sorted(started) == ["base", "dare_ties of 2 models", "one", "two"]
    assert found[0]["v"] == found[1]["v"]
    assert found[1]["cost"]["generated"] == 0


async def test_one_merge_is_in_memory_at_a_time(system):
    made = system("dare_ties")
    await made.arun(ITEMS[0])
    before = set(engines._running)
    other = system("dare_ties", seed=1)
    await other.arun(ITEMS[0])
    assert len(engines._running) == len(before)
    assert set(engines._running) != before


async def test_runs_of_several_merges_at_once_wait_for_each_other(system):
    import asyncio

    systems = [system("dare_ties", seed=seed) for seed in range(3)]
    episodes = await asyncio.gather(*(made.arun(item) for made in systems for item in ITEMS))
    assert [episode.error for episode in episodes] == [None] * 6
