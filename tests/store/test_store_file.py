import asyncio
import os
import signal
from pathlib import Path

import pytest
from store_models import Speaker, question

from collabsim.episode import Reply, Tokens, Usage
from collabsim.errors import StoreError
from collabsim.store import GenerationStore, default_path
from collabsim.store import store as store_module


@pytest.fixture
def path(tmp_path):
    return tmp_path / "generations.sqlite"


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


async def test_more_keys_than_one_query_takes_are_exported(path):
    speaker = Speaker()
    with GenerationStore(path) as store:
        said = await asyncio.gather(*(store.fetch(speaker, question(seed=seed)) for seed in range(1200)))
        assert len(dict(store.export(fetched.key for fetched in said))) == 1200


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
@pytest.mark.parametrize("file", [None, "generations.sqlite"])
def test_a_forked_child_is_told_to_open_its_own_store(tmp_path, file):
    store = GenerationStore(tmp_path / file if file else None)
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            store.fetch(Speaker(), question()).send(None)
        except StoreError as error:
            os._exit(0 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
