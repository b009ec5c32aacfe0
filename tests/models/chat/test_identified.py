"""A LangChain model becomes storable by the identity that its user gives it."""

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from collabsim import GenerationStore, Pool, System, identified, make_item
from collabsim.errors import ConfigError

ITEM = make_item("What is 2 + 3?", "5")


def answering(text):
    return FakeListChatModel(responses=[text])


async def ask_through(path, model):
    with GenerationStore(path) as store:
        return await System("majority_vote", Pool(a=model), store=store).arun(ITEM)


async def test_an_identified_models_generations_outlive_the_process(tmp_path):
    await ask_through(tmp_path / "g.sqlite", identified(answering("Answer: 5"), "my-model"))
    again = await ask_through(tmp_path / "g.sqlite", identified(answering("Answer: 4"), "my-model"))
    assert (again.outcome, again.calls[0].reused) == (1.0, True)


@pytest.mark.parametrize("other", [{"identity": "other"}, {"identity": "my-model", "revision": "2"}])
async def test_another_identity_or_revision_is_another_model(tmp_path, other):
    await ask_through(tmp_path / "g.sqlite", identified(answering("Answer: 5"), "my-model"))
    again = await ask_through(tmp_path / "g.sqlite", identified(answering("Answer: 4"), **other))
    assert (again.outcome, again.calls[0].reused) == (0.0, False)


async def test_a_model_without_an_identity_works_and_is_kept_in_memory_only(tmp_path):
    assert (await ask_through(tmp_path / "g.sqlite", answering("Answer: 5"))).outcome == 1.0
    again = await ask_through(tmp_path / "g.sqlite", answering("Answer: 4"))
    assert (again.outcome, again.calls[0].reused) == (0.0, False)


def test_an_empty_identity_is_refused():
    with pytest.raises(ConfigError, match="got an empty one"):
        identified(answering("x"), " ")
