"""Who writes a card, and what the answerer reads."""

from scripted import Scripted, last_words

from collabsim import Pool, System, make_item

ITEM = make_item("What is 2 + 3?", "5")


def writer(name, card="{name} knows sums", answer="Answer: 4"):
    return Scripted(name, lambda request: card.format(name=name) if "Do not answer" in last_words(request) else answer)


def cards(members, *, answerer="Answer: 5", roles=None, **options):
    helpers = Pool({"helper": Scripted("helper", answerer)})
    return System("knowledge_cards", members, options=options, helpers=helpers, roles=roles or {"answerer": "helper"})


async def test_a_helper_answers_with_the_notes_of_all_present_members():
    system = cards({name: writer(name) for name in "abc"})
    assert (await system.arun(ITEM, ["a", "b"])).outcome == 1.0
    (request,) = system.helpers["helper"].model.asked
    shown = last_words(request)
    assert ITEM.question in shown
    assert "> a knows sums" in shown
    assert "> b knows sums" in shown
    assert "c knows" not in shown


async def test_a_note_needs_no_answer_to_be_shown_and_an_empty_one_is_left_out():
    system = cards({"a": writer("a"), "b": writer("b", card=" ")})
    await system.arun(ITEM)
    shown = last_words(system.helpers["helper"].model.asked[0])
    assert "a knows sums" in shown
    assert "Note 2:" not in shown


async def test_an_answerer_that_is_a_member_reads_the_cards_of_the_others():
    system = cards({name: writer(name, answer="Answer: 5") for name in "abc"}, roles={"answerer": "a"})
    assert (await system.arun(ITEM)).outcome == 1.0
    (request,) = system.pool["a"].model.asked
    assert "b knows sums" in last_words(request)
    assert "a knows" not in last_words(request)


async def test_an_answerer_may_be_told_to_write_a_card_too():
    system = cards({name: writer(name) for name in "ab"}, roles={"answerer": "a"}, own_card=True)
    await system.arun(ITEM)
    assert "a knows sums" in last_words(system.pool["a"].model.asked[-1])


async def test_without_any_card_a_member_answers_as_it_would_alone_and_a_helper_is_not_asked():
    mute = {"a": writer("a"), "b": writer("b", card="")}
    by_member = cards(mute, roles={"answerer": "a"})
    await by_member.arun(ITEM)
    (request,) = by_member.pool["a"].model.asked
    assert (request.messages, request.draw) == (ITEM.view.messages, 0)
    by_helper = cards({"a": writer("a", card=""), "b": writer("b", card="")})
    episode = await by_helper.arun(ITEM)
    assert by_helper.helpers["helper"].model.asked == []
    assert (episode.outcome, episode.verdict) == (0.0, "unparsed")
