"""The policy on either engine: what is pushed speaks, under its revision, and never beside older weights."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from collabsim.trainers.policy.policy import Policy
from engines import requires
from tiny_folders import CHATML
from tiny_policy import GREEDY, WARM, answer, disturb, gaps, greedy_by_learner, prompt_of, sampled_rows
from tiny_vllm import vllm_folder

from collabsim.errors import CallError, CollabsimError, ConfigError
from collabsim.identity import identity_of
from collabsim.loop import run_sync
from collabsim.loop import submit as on_loop
from collabsim.models.engines.engine import TokenRequest
from collabsim.models.local.local_model import LocalModel
from collabsim.request import Message, Request, Sampling

pytestmark = requires("torch", "transformers")

ENGINES = ["transformers", pytest.param("vllm", marks=requires("vllm"))]
QUESTION = Request((Message("user", "hello"),), Sampling(0.7, max_tokens=8), seed=3)
SECONDS = 120


def open_policy(folder, engine, **settings):
    exact = {"engine_dtype": "float32"} if engine == "vllm" else {}
    return Policy.open(folder, engine=engine, kv_space_gib=0.05, **{**exact, **settings})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return vllm_folder(tmp_path_factory.mktemp("models") / "untied", template=CHATML)


@pytest.fixture(scope="module")
def tied_folder(tmp_path_factory):
    return vllm_folder(tmp_path_factory.mktemp("models") / "tied", template=CHATML, tied=True)


@pytest.fixture(scope="module")
def policies(folder, tied_folder):
    """Policies that are opened once; tests leave them pushed and whole, and do not count on weights or revision."""
    opened = {}

    def policy(engine, tied):
        if (engine, tied) not in opened:
            opened[engine, tied] = open_policy(tied_folder if tied else folder, engine)
        return opened[engine, tied]

    yield policy
    for one in opened.values():
        one.close()


@pytest.fixture(params=ENGINES)
def shared(request, policies):
    return policies(request.param, False)


@pytest.fixture(params=[False, True], ids=["untied", "tied"])
def is_tied(request):
    return request.param


@pytest.fixture(params=ENGINES)
def either(request, is_tied, policies):
    return policies(request.param, is_tied)


def test_after_a_push_the_engine_says_what_the_learner_would_say(either):
    disturb(either.learner)
    either.push()
    for length in (4, 11):
        prompt = prompt_of(length)
        said = answer(either, prompt, Sampling(temperature=0, max_tokens=6)).ids
        assert said == greedy_by_learner(either.learner, prompt, 6)


@pytest.mark.parametrize("temperature", [0.7, 1.3])
def test_ratios_are_1_to_4_digits_in_float32_before_and_after_a_push(either, temperature):
    either.push()
    sampling = Sampling(temperature=temperature, max_tokens=24)
    assert max(gaps(either.learner, *sampled_rows(either, 6, sampling), temperature)) < 1e-4
    disturb(either.learner)
    either.push()
    assert max(gaps(either.learner, *sampled_rows(either, 6, sampling), temperature)) < 1e-4


def test_the_same_prompt_is_answered_from_new_weights_not_from_cached_prefixes(shared):
    prompt = prompt_of(120)
    shared.push()
    before = [answer(shared, prompt), answer(shared, prompt)]  # the second from the cache, where there is one
    disturb(shared.learner)
    shared.push()
    after = answer(shared, prompt)
    assert before[0].ids == before[1].ids
    assert after.logprobs != before[0].logprobs
    assert after.ids == greedy_by_learner(shared.learner, prompt, GREEDY.max_tokens)


def test_a_reply_carries_the_exact_tokens_and_the_revision_that_spoke(shared):
    first = run_sync(shared.model.areply(QUESTION))
    pushed = shared.push()
    second = run_sync(shared.model.areply(QUESTION))
    assert int(second.revision) == int(first.revision) + 1
    assert second.revision == shared.revision == shared.model.revision == pushed.revision
    assert second.tokens.prompt_ids == shared.model.prompter.render(QUESTION.messages)
    assert len(second.tokens.ids) == len(second.tokens.logprobs) > 0


def test_an_update_changes_nothing_that_was_pushed(shared):
    """vLLM has copies; the transformers engine has none, and refuses to speak with weights of no revision."""
    shared.push()
    before = run_sync(shared.model.areply(QUESTION))
    disturb(shared.learner)
    if shared.model.engine_kind.name == "transformers":
        with pytest.raises(CallError, match="changed under the engine"):
            run_sync(shared.model.areply(QUESTION))
    else:
        assert run_sync(shared.model.areply(QUESTION)).tokens == before.tokens
    shared.push()
    assert run_sync(shared.model.areply(QUESTION)).tokens.logprobs != before.tokens.logprobs


def eventually(condition):
    for _ in range(5000):
        if condition():
            return
        time.sleep(0.002)
    raise AssertionError("waited in vain")


def test_a_push_waits_for_calls_under_way_and_later_calls_wait_for_it(shared, monkeypatch):
    shared.push()
    old, submit, release = shared.revision, shared.engine.submit, threading.Event()
    with ThreadPoolExecutor(8) as threads:

        def held(request):
            said = submit(request)
            return threads.submit(lambda: (release.wait(SECONDS), said.result(SECONDS))[1])

        monkeypatch.setattr(shared.engine, "submit", held)
        running = [on_loop(shared.model.areply(QUESTION)) for _ in range(3)]
        eventually(lambda: shared.gate._running == 3)
        pushing = threads.submit(shared.push)
        eventually(lambda: shared.gate._shut)
        late = on_loop(shared.model.areply(QUESTION))
        eventually(lambda: shared.gate._waiting)
        assert not pushing.done()
        assert shared.revision == old
        release.set()
        pushed = pushing.result(SECONDS)
        assert {call.result(SECONDS).revision for call in running} == {old}
        assert late.result(SECONDS).revision == pushed.revision == str(int(old) + 1)


def test_a_call_whose_weights_are_replaced_under_it_fails(shared, monkeypatch):
    """Nobody should go round the gate; if somebody does, the reply belongs to no revision."""
    revision, submit = shared.revision, shared.engine.submit

    def changing(request):
        said = submit(request)
        shared.engine._revision = "99"
        return said

    monkeypatch.setattr(shared.engine, "submit", changing)
    with pytest.raises(CallError, match="one version of the weights"):
        run_sync(shared.model.areply(QUESTION))
    shared.engine._revision = revision


def pulled(model):
    """What vLLM keeps unpacked: embeddings and norms; runs inside it."""
    return {name: weight.clone() for name, weight in model.named_parameters(remove_duplicate=False) if weight.numel()}


@requires("vllm")
def test_what_is_pulled_from_the_engine_is_what_was_pushed(policies, is_tied):
    import torch

    policy = policies("vllm", is_tied)
    disturb(policy.learner)
    policy.push()
    (inside,) = policy.engine.apply(lambda llm: llm.apply_model(pulled)).result(SECONDS)
    own = dict(policy.learner.weights())
    own.setdefault("lm_head.weight", own["model.embed_tokens.weight"])
    both = inside.keys() & own.keys()
    # vLLM rounds the vocabulary up, with rows of its own at the end.
    same = [name for name in both if torch.equal(inside[name][: len(own[name])], own[name])]
    assert sorted(same) == sorted(both)
    assert {"lm_head.weight", "model.embed_tokens.weight", "model.norm.weight"} <= set(same)


@requires("vllm")
def test_what_was_pushed_is_a_copy(policies):
    policy = policies("vllm", False)
    policy.push()
    before = answer(policy, prompt_of(9))
    state = {name: tensor.clone() for name, tensor in policy.learner.state().items()}
    disturb(policy.learner)
    policy.engine.apply(lambda llm: llm.reset_prefix_cache()).result(SECONDS)
    assert answer(policy, prompt_of(9)).logprobs == before.logprobs
    policy.learner.load_state(state)
    policy.push()


@requires("vllm")
def test_the_check_after_a_push_detects_weights_that_did_not_arrive(policies, monkeypatch):
    shared = policies("vllm", False)
    shared.push()
    disturb(shared.learner)
    with monkeypatch.context() as patched:
        patched.setattr(shared._transfer, "push", lambda learner, revision: None)
        with pytest.raises(CallError, match="does not speak with the learner's weights"):
            shared.push()
    with pytest.raises(CallError, match="push again"):
        run_sync(shared.model.areply(QUESTION))
    shared.push()
    run_sync(shared.model.areply(QUESTION))


@requires("vllm")
def test_the_check_after_a_push_detects_one_weight_that_was_left_out(policies, monkeypatch):
    tied = policies("vllm", True)
    tied.push()
    disturb(tied.learner)
    weights = dict(tied.learner.weights())
    for name in ("model.embed_tokens.weight", "model.layers.1.mlp.down_proj.weight"):
        rest = {other: tensor for other, tensor in weights.items() if other != name}
        with monkeypatch.context() as patched:
            patched.setattr(tied.learner, "weights", lambda rest=rest: iter(rest.items()))
            with pytest.raises(CallError, match="does not speak"):
                tied.push()
        tied.push()
        disturb(tied.learner, seed=1)


def test_restored_weights_do_not_speak_before_a_push(shared):
    shared.learner.load_state({name: tensor.clone() for name, tensor in shared.learner.state().items()})
    with pytest.raises(CallError, match="push first"):
        run_sync(shared.model.areply(QUESTION))
    assert shared.push("17").revision == "17"
    assert run_sync(shared.model.areply(QUESTION)).revision == "17"


@pytest.mark.parametrize("revision", ["", "-1", "two"])
def test_a_revision_is_a_whole_number(shared, revision):
    with pytest.raises(ConfigError, match="whole number"):
        shared.push(revision)


def test_a_push_from_inside_the_event_loop_is_refused(shared):
    async def push():
        shared.push()

    with pytest.raises(CollabsimError, match="apush"):
        run_sync(push())


async def test_the_asynchronous_push_does_not_block_calls_of_other_models(shared):
    before = int(shared.revision)
    pushed, _ = await asyncio.gather(shared.apush(), asyncio.sleep(0))
    assert int(pushed.revision) == before + 1


def test_the_learning_model_has_no_identity_and_a_frozen_one_that_of_its_weights(shared):
    shared.push()
    assert identity_of(shared.model) is None
    first = shared.frozen()
    shared.push()
    assert shared.frozen().identity == first.identity, "equal weights"
    disturb(shared.learner)
    shared.push()
    assert shared.frozen().identity != first.identity
    with pytest.raises(CallError, match="freeze it again"):
        run_sync(first.areply(QUESTION))


def test_a_frozen_model_says_what_the_policy_says_and_always_at_revision_0(shared):
    frozen = shared.frozen()
    spoken, again = run_sync(shared.model.areply(QUESTION)), run_sync(frozen.areply(QUESTION))
    assert again.tokens.ids == spoken.tokens.ids
    assert (again.revision, frozen.revision) == ("0", "0")


def test_weights_that_were_not_pushed_cannot_be_frozen(shared):
    disturb(shared.learner)
    with pytest.raises(CallError, match="push"):
        shared.frozen()
    shared.push()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_new_policy_is_at_revision_0_and_frozen_it_is_the_model_it_was_made_of(folder, engine):
    with open_policy(folder, engine) as policy:
        start = LocalModel(spec=str(folder), engine=engine, dtype="float32")
        assert policy.revision == "0"
        assert policy.frozen().identity == start.identity
        disturb(policy.learner)
        policy.push()
        assert policy.frozen().identity != start.identity
    with pytest.raises(CallError, match="closed"):
        run_sync(policy.model.areply(QUESTION))
    policy.close()


@requires("peft")
@pytest.mark.parametrize("engine", ENGINES)
def test_adapters_speak_merged(tied_folder, engine):
    from collabsim.trainers.policy.lora import LoraSettings

    with open_policy(tied_folder, engine, lora=LoraSettings(rank=4, alpha=8)) as policy:
        before = answer(policy, prompt_of(9))
        disturb(policy.learner)
        policy.push()
        assert answer(policy, prompt_of(9)).logprobs != before.logprobs
        assert max(gaps(policy.learner, *sampled_rows(policy, 4), WARM.temperature)) < 1e-4


@pytest.mark.parametrize("engine", ENGINES)
def test_ratios_are_1_to_bfloat16_accuracy_in_bfloat16(tied_folder, engine):
    settings = {"engine_dtype": "bfloat16", "autocast": True} if engine == "vllm" else {"autocast": True}
    with open_policy(tied_folder, engine, **settings) as policy:
        disturb(policy.learner)
        policy.push()
        found = gaps(policy.learner, *sampled_rows(policy, 8), WARM.temperature)
        assert policy.learner.weight_dtype == "float32"
        assert 0 < sum(found) / len(found) < 0.1
        assert max(found) < 1.0


def test_a_local_model_with_its_settings_becomes_a_policy(folder):
    seat = LocalModel(spec=str(folder), engine="transformers", max_model_len=200)
    with Policy.open(seat) as policy:
        assert (policy.engine.max_model_len, policy.model.engine_kind.name) == (200, "transformers")
    with pytest.raises(ConfigError, match="settings already"):
        Policy.open(seat, max_model_len=100)


def test_an_engine_dtype_that_the_learner_does_not_have_is_refused(folder):
    with pytest.raises(ConfigError, match="learner itself speaks"):
        Policy.open(folder, engine="transformers", engine_dtype="bfloat16")


@requires("vllm")
def test_a_road_between_gpus_is_refused_without_any(folder, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="between GPUs"):
        open_policy(folder, "vllm", transfer="nccl")


def test_weights_are_not_renewed_under_a_request_that_went_round_the_gate(policies):
    policy = policies("transformers", False)
    running = policy.engine.submit(TokenRequest(prompt_of(9), Sampling(0.7, max_tokens=200), 1))
    with pytest.raises(CallError, match="in flight"):
        policy.push()
    running.cancel()
    policy.push()


@requires("vllm")
def test_a_reset_that_vllm_refuses_is_an_error(folder):
    """WS-02: with a request in flight the prefix cache stays; here somebody went round the gate."""
    with open_policy(folder, "vllm") as policy:
        running = policy.engine.submit(TokenRequest(prompt_of(9), Sampling(0.7, max_tokens=200), 1))
        with pytest.raises(CallError, match="in flight"):
            policy.push()
        running.cancel()
        policy.push()
        policy.engine.apply(lambda llm: setattr(llm, "reset_prefix_cache", lambda: False)).result()
        with pytest.raises(CallError, match="prefix cache"):
            policy.push()


@requires("vllm")
@pytest.mark.slow
def test_200_pushes_take_no_more_memory_than_20(tied_folder):
    from collabsim.models.engines.vllm_memory import GIB

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    with open_policy(tied_folder, "vllm") as policy:
        sizes = []
        for number in range(200):
            disturb(policy.learner, 1e-3, seed=number)
            policy.push()
            if number in (19, 199):
                sizes.append(resident())
        assert sizes[1] - sizes[0] < 0.01 * GIB
