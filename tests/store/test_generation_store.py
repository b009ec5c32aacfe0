import asyncio
import contextvars
import gc

import pytest
from store_models import Speaker, question

from collabsim.episode import Reply
from collabsim.errors import CallError, ContextOverflowError
from collabsim.store import GenerationStore
from collabsim.store.codec import decode


@pytest.fixture
def path(tmp_path):
    return tmp_path / "generations.sqlite"


@pytest.fixture(params=["file", "memory"])
def store(request, path):
    with GenerationStore(path if request.param == "file" else None) as store:
        yield store


async def test_the_second_ask_is_answered_from_the_first(store):
    speaker = Speaker()
    first, second = [await store.fetch(speaker, question()) for _ in range(2)]
    assert (first.reply, first.reused) == (Reply("call 1 says 2 + 2?"), False)
    assert second == (first.reply, first.key, True)
    assert (speaker.calls, store.generated, store.reused) == (1, 1, 1)


async def test_draws_are_told_apart(store):
    speaker = Speaker()
    texts = {(await store.fetch(speaker, question(draw=draw))).reply.text for draw in range(5)}
    assert len(texts) == 5


async def test_temperature_zero_then_one_are_two_generations(store):
    speaker = Speaker()
    cold, warm = [await store.fetch(speaker, question(temperature=value)) for value in (0, 1)]
    assert cold.reply != warm.reply


async def test_a_greedy_request_is_generated_once_for_all_seeds_and_draws(store):
    speaker = Speaker()
    for seed in range(4):
        await store.fetch(speaker, question(temperature=0, seed=seed, draw=seed))
    assert speaker.calls == 1


async def test_models_with_equal_identity_share_and_others_do_not(store):
    one, twin, other = Speaker("sha256:1"), Speaker("sha256:1"), Speaker("sha256:2")
    for speaker in (one, twin, other):
        await store.fetch(speaker, question())
    assert (one.calls, twin.calls, other.calls) == (1, 0, 1)


async def test_a_new_revision_is_asked_anew(store):
    speaker = Speaker()
    await store.fetch(speaker, question())
    speaker.revision = "1"
    assert not (await store.fetch(speaker, question())).reused


async def test_a_revision_that_changes_during_the_call_fails_it_and_is_not_kept(store):
    speaker = Speaker(closed=True)
    call = asyncio.create_task(store.fetch(speaker, question()))
    await asyncio.to_thread(speaker.started.wait, 5)
    speaker.revision = "1"
    speaker.open.set()
    with pytest.raises(CallError, match="0 at its start and 1 at its end"):
        await call
    speaker.revision = "0"
    assert (await store.fetch(speaker, question())).reply.text.startswith("call 2")
    assert store.generated == 1


async def test_a_failure_is_not_kept_and_the_next_ask_tries_again(store):
    speaker = Speaker(failures=1)
    with pytest.raises(ConnectionError, match="call 1"):
        await store.fetch(speaker, question())
    assert (await store.fetch(speaker, question())).reply.text.startswith("call 2")
    assert (store.generated, store.reused) == (1, 0)


async def test_an_error_keeps_its_type_for_the_caller(store):
    class Narrow(Speaker):
        async def areply(self, request):
            raise ContextOverflowError("4100 tokens in a window of 4096")

    with pytest.raises(ContextOverflowError, match="4096"):
        await store.fetch(Narrow(), question())


async def test_empty_and_cut_replies_are_kept_like_any_other(store):
    class Cut(Speaker):
        async def areply(self, request):
            self.calls += 1
            return Reply("", finish="length")

    cut = Cut()
    for _ in range(2):
        assert (await store.fetch(cut, question())).reply == Reply("", finish="length")
    assert cut.calls == 1


async def test_bypass_neither_reads_nor_writes(store):
    speaker = Speaker()
    kept = await store.fetch(speaker, question())
    fresh = await store.fetch(speaker, question(), bypass=True)
    assert (fresh.reply.text, fresh.key, fresh.reused) == ("call 2 says 2 + 2?", kept.key, False)
    assert (await store.fetch(speaker, question())).reply == kept.reply
    assert (store.generated, store.reused) == (2, 1)


async def test_equal_bypassed_requests_at_once_are_generated_each(store):
    speaker = Speaker()
    fetched = await asyncio.gather(*(store.fetch(speaker, question(), bypass=True) for _ in range(5)))
    assert len({one.reply.text for one in fetched}) == 5


async def test_bypass_checks_the_revision_too(store):
    speaker = Speaker(closed=True)
    call = asyncio.create_task(store.fetch(speaker, question(), bypass=True))
    await asyncio.to_thread(speaker.started.wait, 5)
    speaker.revision = "1"
    speaker.open.set()
    with pytest.raises(CallError, match="revision"):
        await call


class Unnamed(Speaker):
    """Like a LangChain model object without `identity=`: compares by value, cannot be hashed."""

    __hash__ = None

    def __init__(self):
        super().__init__(identity="")

    def __eq__(self, other):
        return isinstance(other, Unnamed)


async def test_models_without_identity_are_kept_in_memory_each_by_itself(path):
    one, other = Unnamed(), Unnamed()
    with GenerationStore(path) as store:
        keys = [(await store.fetch(model, question())).key for model in (one, other, one)]
        assert (one.calls, other.calls) == (1, 1)
        assert keys[0] == keys[2] != keys[1]
        assert store.get(keys[0]) == Reply("call 1 says 2 + 2?")
    with GenerationStore(path) as store:
        assert store.get(keys[0]) is None


async def test_a_model_without_identity_is_not_kept_alive_and_its_successor_gets_nothing_of_it(store):
    addresses, keys = [], []
    for _ in range(50):
        model = Unnamed()
        fetched = await store.fetch(model, question())
        assert not fetched.reused
        addresses.append(id(model))
        keys.append(fetched.key)
        del model, fetched
        gc.collect(0)
    assert len(set(addresses)) < 50  # some did get the address of a dead one
    assert len(set(keys)) == 50
    assert sum(store.get(key) is not None for key in keys) < 10


async def test_export_gives_each_known_key_once_with_its_bytes(store):
    named, unnamed = Speaker(), Unnamed()
    said = [await store.fetch(model, question(seed=seed)) for model in (named, unnamed) for seed in range(3)]
    keys = [fetched.key for fetched in said]
    exported = dict(store.export([*keys, "unknown", *keys]))
    assert {key: decode(data) for key, data in exported.items()} == {key: reply for reply, key, _ in said}
    assert len(list(store.export(keys * 2))) == 6


async def test_one_encoded_reply_can_be_had_and_an_unknown_key_gives_none(store):
    said = await store.fetch(Speaker(), question())
    assert decode(store.get_encoded(said.key)) == said.reply
    assert store.get_encoded("unknown") is None
    assert store.get("unknown") is None


async def test_a_generation_sees_no_context_variable_of_the_run_that_asked(store):
    variable = contextvars.ContextVar("run", default="none")
    variable.set("the run of whoever came first")

    class Curious(Speaker):
        async def areply(self, request):
            return Reply(variable.get())

    assert (await store.fetch(Curious(), question())).reply.text == "none"
    assert (await store.fetch(Curious(), question(), bypass=True)).reply.text == "none"
