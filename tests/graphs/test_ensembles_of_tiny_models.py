"""Ensembles of real (tiny, random) models on transformers: keys and values, masks, vocabularies, costs."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from collabsim.graphs.logit_fusion import FuseLogits
from engines import requires

from collabsim import GenerationStore, Pool, Sampling, Seat, System, make_item
from collabsim.errors import ConfigError, ProtocolError
from collabsim.models.engines import shared_engines as engines
from collabsim.models.local.joint_model import JointModel, Member
from collabsim.models.local.local_model import LocalModel
from collabsim.request import Message, Request

pytestmark = requires("torch", "transformers", "tokenizers", "safetensors")

ITEM = make_item("2 + 3?", "5")
GREEDY = Sampling(temperature=0, max_tokens=12)
ASK = Request((Message("user", "2 + 3?"),), GREEDY, seed=7)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    from models.tiny_transformers import tiny_model

    place = tmp_path_factory.mktemp("models")
    yield {
        "one": tiny_model(place / "one"),
        "two": tiny_model(place / "two", seed=1),
        "gemma": tiny_model(place / "gemma", kind="gemma3_text", seed=2),
        "strange": _with_swapped_tokens(tiny_model(place / "strange", seed=3)),
    }
    engines.close_engines()


def _with_swapped_tokens(folder):
    """The same number of tokens, two of which have each other's id."""
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text())
    table = content["model"]["vocab"]
    table["a"], table["b"] = table["b"], table["a"]
    file.write_text(json.dumps(content))
    return folder


@pytest.fixture
def local(folders, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def model(name, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = LocalModel(spec=str(folders[name]), engine="transformers", dtype="float32", threads=1, **options)
            _ = made.prompter
            return made

    return model


def fusion(*models, how="mean"):
    return JointModel([Member(model) for model in models], FuseLogits(how, tuple(1 / len(models) for _ in models)))


@pytest.mark.parametrize("how", ["mean", "product"])
@pytest.mark.parametrize("name", ["one", "gemma"])  # full and sliding attention
async def test_a_model_fused_with_itself_says_what_it_says_alone_token_for_token(local, name, how):
    model = local(name)
    alone = await model.areply(ASK)
    fused = await fusion(model, model, how=how).areply(ASK)
    assert fused.tokens.ids == alone.tokens.ids
    assert (fused.text, fused.finish) == (alone.text, alone.finish)
    assert fused.tokens.logprobs == pytest.approx(alone.tokens.logprobs, abs=1e-4)


async def test_a_model_fused_with_itself_samples_what_it_samples_alone(local):
    model = local("one")
    warm = Request(ASK.messages, Sampling(temperature=0.9, top_p=0.9, max_tokens=12), seed=5)
    fused = await fusion(model, model, model).areply(warm)
    assert fused.tokens.ids == (await model.areply(warm)).tokens.ids


async def test_a_fused_text_is_that_of_the_fused_distributions_without_any_cache(local, folders):
    from models.tiny_transformers import forward

    one, two = local("one"), local("two")
    said = (await fusion(one, two).areply(ASK)).tokens
    for place in range(len(said.ids)):
        known = said.prompt_ids + said.ids[:place]
        rows = [forward(folders[name], known)[-1].softmax(-1).numpy() for name in ("one", "two")]
        assert said.ids[place] == int(np.mean(rows, axis=0).argmax())


async def test_members_read_their_own_persona(local, folders):
    from models.tiny_transformers import forward

    model = local("one")
    persona = (Message("system", "Be brief."),)
    joint = JointModel([Member(model, persona), Member(model)], FuseLogits("product", (0.5, 0.5)))
    said = await joint.areply(ASK)
    prompts = [model.prompter.render(persona + ASK.messages), model.prompter.render(ASK.messages)]
    rows = [forward(folders["one"], prompt)[-1].log_softmax(-1).numpy() for prompt in prompts]
    assert said.tokens.ids[0] == int(sum(rows).argmax())
    assert [part.prompt_tokens for part in said.parts] == [len(prompt) for prompt in prompts]


async def test_models_whose_ids_mean_other_tokens_are_refused(local):
    with pytest.raises(ProtocolError, match=r"one vocabulary.* model family"):
        await fusion(local("one"), local("strange")).areply(ASK)


async def test_a_system_refuses_such_a_pool_instead_of_failing_runs(local):
    pool = Pool({name: Seat(name, local(name), sampling=GREEDY) for name in ("one", "strange")})
    with pytest.raises(ProtocolError, match="one vocabulary"):
        await System("logit_fusion", pool).arun(ITEM)


async def test_a_model_on_vllm_is_refused_with_what_to_set(local):
    model = local("one").model_copy(update={"engine": "vllm"})
    with pytest.raises(ConfigError, match="engine: transformers"):
        model.logit_model()


def test_a_seat_that_is_being_trained_writes_no_text_with_others(local):
    class Learning(LocalModel):
        @property
        def identity(self):
            return ""

    learner = Learning(spec=local("one").spec, engine="transformers", chat_format="plain")
    with pytest.raises(ProtocolError, match="being trained"):
        _ = fusion(learner, local("two")).identity


async def test_every_member_is_one_call_with_its_own_tokens_and_nothing_is_written_twice(local, tmp_path):
    pool = Pool(
        one=Seat("one", local("one"), sampling=GREEDY, system="Be brief."),
        two=Seat("two", local("two"), sampling=GREEDY),
    )
    with GenerationStore(tmp_path / "g.sqlite") as store:
        system = System("logit_fusion", pool, store=store)
        first = await system.arun(ITEM)
        assert store.generated == 1
    with GenerationStore(tmp_path / "g.sqlite") as store:
        again = await System("logit_fusion", pool, store=store).arun(ITEM)
        assert store.generated == 0
    usage = {call.seat: call.usage for call in first.calls}
    assert set(usage) == {"one", "two"}
    assert usage["one"].prompt_tokens > usage["two"].prompt_tokens
    assert usage["one"].completion_tokens == usage["two"].completion_tokens > 0
    assert {call.seat: call.usage for call in again.calls} == usage
    assert all(call.reused for call in again.calls)
    assert len({call.key for call in first.calls}) == 1
    assert again.final == first.final


async def test_the_order_of_seats_and_their_names_change_no_text(local):
    models = {"a": local("one"), "b": local("two")}
    pools = [
        Pool({name: Seat(name, model, sampling=GREEDY) for name, model in entries})
        for entries in (list(models.items()), list(models.items())[::-1], [("z", models["a"]), ("b", models["b"])])
    ]
    finals = {(await System("logit_fusion", pool).arun(ITEM)).final for pool in pools}
    assert len(finals) == 1


async def test_a_prompt_that_does_not_fit_one_member_is_refused_before_any_step(local):
    long = Request((Message("user", "x" * 300),), GREEDY, seed=0)
    with pytest.raises(Exception, match="window of 256"):
        await fusion(local("one"), local("two")).areply(long)


async def test_a_sure_base_is_never_nudged_and_an_unsure_one_always(local):
    pool = Pool({name: Seat(name, local(name), sampling=GREEDY) for name in ("one", "two")})
    own = {name: (await System("majority_vote", pool).alone_on(ITEM, name)).final[0].text for name in pool}
    for threshold, speaker in ((0.0, "one"), (1.0, "two")):
        system = System("nudging", pool, options={"threshold": threshold}, roles={"nudger": "two"})
        assert (await system.arun(ITEM)).final[0].text == own[speaker]
    assert own["one"] != own["two"]


async def test_without_strength_contrast_is_the_best_seats_own_greedy_text(local):
    from collabsim.system.fitted import Fitted

    pool = Pool({name: Seat(name, local(name), sampling=GREEDY) for name in ("one", "two")})
    system = System(
        "contrastive",
        pool,
        options={"strength": 0.0},
        fitted=Fitted(dev_scores={"one": 0.2, "two": 0.6}, inputs="made by hand"),
    )
    own = (await system.alone_on(ITEM, "two")).final[0].text
    assert (await system.arun(ITEM)).final[0].text == own
