import asyncio
import contextvars
import gc
import os
import signal
from pathlib import Path

import pytest
from store_models import Speaker, question

from collabsim.episode import Reply, Tokens, Usage
from collabsim.errors import CallError, ContextOverflowError, StoreError
from collabsim.store import GenerationStore, default_path
from collabsim.store import store as store_module
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


async def test_a_later_process_finds_what_was_generated(path):
    with GenerationStore(path) as store:
        said = await store.fetch(Speaker(), question())
    silent = Speaker()
    with GenerationStore(path) as store:
        assert await store.fetch(silent, question()) == (said.reply, said.key, True)
        assert (silent.calls, store.generated, store.reused) == (0, 0, 1)


async def test_a_reply_is_in_the_file_when_fetch_returns(path):
    with GenerationStore(path) as store, GenerationStore(path) as other:
        said = await store.fetch(Speaker(), question())
        assert other.get(said.key) == said.reply


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
    first = Unnamed()
    key = (await store.fetch(first, question())).key
    del first
    gc.collect()
    successors = [Unnamed() for _ in range(20)]  # one of them very likely gets the freed address
    assert not any([(await store.fetch(model, question())).reused for model in successors])
    assert store.get(key) is None


async def test_replies_on_disk_leave_memory_and_are_found_again(path, monkeypatch):
    monkeypatch.setattr(store_module, "MEMORY_BYTES", 3000)
    speaker = Speaker()
    with GenerationStore(path) as store:
        said = [await store.fetch(speaker, question(seed=seed)) for seed in range(50)]
        assert [await store.fetch(speaker, question(seed=seed)) for seed in range(50)] == [
            (reply, key, True) for reply, key, _ in said
        ]
    assert speaker.calls == 50


async def test_replies_without_a_file_never_leave_memory(monkeypatch):
    monkeypatch.setattr(store_module, "MEMORY_BYTES", 3000)
    speaker, store = Speaker(), GenerationStore()
    for _ in range(2):
        for seed in range(50):
            await store.fetch(speaker, question(seed=seed))
    assert speaker.calls == 50


async def test_big_replies_come_back_whole(path):
    big = Reply("ü" * 3_000_000, usage=Usage(1, 100_000), tokens=Tokens((1,), tuple(range(100_000)), (-0.1,) * 100_000))

    class Talker(Speaker):
        async def areply(self, request):
            return big

    with GenerationStore(path) as store:
        key = (await store.fetch(Talker(), question())).key
    with GenerationStore(path) as store:
        assert store.get(key) == big


async def test_a_full_disk_fails_the_ask_keeps_the_rest_and_goes_on_when_there_is_room(path):
    speaker = Speaker()
    with GenerationStore(path) as store:
        early = await store.fetch(speaker, question())
        store._journal.append("PRAGMA max_page_count = 1").result()  # SQLite takes the present size instead
        with pytest.raises(StoreError, match="no room left"):
            await store.fetch(speaker, question("x" * 100_000))
        assert (await store.fetch(speaker, question())).reply == early.reply
        store._journal.append("PRAGMA max_page_count = 100000").result()
        assert not (await store.fetch(speaker, question("x" * 100_000))).reused


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


async def test_more_keys_than_one_query_takes_are_exported(path):
    speaker = Speaker()
    with GenerationStore(path) as store:
        said = await asyncio.gather(*(store.fetch(speaker, question(seed=seed)) for seed in range(1200)))
        assert len(dict(store.export(fetched.key for fetched in said))) == 1200


async def test_a_generation_sees_no_context_variable_of_the_run_that_asked(store):
    variable = contextvars.ContextVar("run", default="none")
    variable.set("the run of whoever came first")

    class Curious(Speaker):
        async def areply(self, request):
            return Reply(variable.get())

    assert (await store.fetch(Curious(), question())).reply.text == "none"
    assert (await store.fetch(Curious(), question(), bypass=True)).reply.text == "none"


async def test_a_closed_store_says_so(path):
    store = GenerationStore(path)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.fetch(Speaker(), question())


def test_a_file_of_something_else_is_refused(path):
    path.write_text("my notes")
    with pytest.raises(StoreError, match="not a database"):
        GenerationStore(path)
    assert path.read_text() == "my notes"


def test_the_default_file_is_in_the_cache_folder_and_its_folder_is_made(tmp_path, monkeypatch):
    monkeypatch.delenv("COLLABSIM_STORE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert default_path() == tmp_path / "cache" / "collabsim" / "generations.sqlite"
    GenerationStore(default_path()).close()
    assert default_path().is_file()


def test_without_a_cache_variable_the_default_is_under_home(tmp_path, monkeypatch):
    monkeypatch.delenv("COLLABSIM_STORE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/to/be/ignored")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path() == tmp_path / ".cache" / "collabsim" / "generations.sqlite"


def test_the_variable_names_another_file_whose_folder_must_exist(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLLABSIM_STORE", "~/misspelt/s.sqlite")
    assert default_path() == tmp_path / "misspelt" / "s.sqlite"
    with pytest.raises(StoreError, match="expected a folder"):
        GenerationStore(default_path())
    assert not Path(tmp_path / "misspelt").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("store", ["memory"], indirect=True)
def test_a_forked_child_is_told_to_open_its_own_store(store):
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            store.fetch(Speaker(), question()).send(None)
        except StoreError as error:
            os._exit(0 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
