from __future__ import annotations

import asyncio
import copy
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from models.simulated_world import ask, frequency, item, near, said
from pydantic import ValidationError

from collabsim.errors import CallError
from collabsim.identity import identity_of
from collabsim.models.chat.reply import TypedModel, reply_of
from collabsim.models.simulation.simulated import SimulatedModel, plurality, sigmoid
from collabsim.nodes.quoting import quote_all
from collabsim.request import Message, Request, Sampling, with_text
from collabsim.tasks.building import make_item

ITEM = item()
CHOICE = item("Which is a colour?", "B", choices={"A": "north", "B": "blue", "C": "seven", "D": "loud"})
OPENING = ITEM.view.messages


def studied(*items, **parameters) -> SimulatedModel:
    model = SimulatedModel(**parameters)
    model.study(items or [ITEM, CHOICE])
    return model


def shown(*answers: str, to=OPENING):
    quoted = "\n\n".join(f"Answer {k}:\n> So it seems.\n> Answer: {a}" for k, a in enumerate(answers, 1))
    return with_text(to, f"Others answered as follows.\n\n{quoted}\n\nGive your own answer again.")


def test_a_reply_ends_with_a_line_that_declares_the_answer():
    reply = ask(studied(skill=50.0), OPENING)
    assert reply.text.splitlines()[-1] == "Answer: 42"
    assert reply.finish == "stop"


def test_a_choice_item_is_answered_by_its_letter():
    assert said(ask(studied(skill=50.0), CHOICE.view.messages)) == "B"


def test_a_choice_whose_gold_is_the_option_text_is_answered_by_its_letter():
    by_text = item("Which is a colour?", "blue", choices={"A": "north", "B": "blue"})
    assert said(ask(studied(by_text, skill=50.0), by_text.view.messages)) == "B"


def test_wrong_answers_are_never_the_gold():
    model = studied(skill=-50.0)
    assert {said(ask(model, OPENING, seed)) for seed in range(60)}.isdisjoint({"42", None})


def test_wrong_choices_are_the_other_letters():
    hard = item("Which is a colour?", "B", choices=CHOICE.view.choices, chance=0.0, difficulty=60.0)
    model = studied(hard, skill=0.0)
    assert {said(ask(model, hard.view.messages, seed)) for seed in range(60)} == {"A", "C", "D"}


@pytest.mark.parametrize("count", [1, 4])
def test_wrong_answers_come_from_as_many_distractors_as_asked(count):
    model = studied(skill=-50.0, distractors=count)
    assert len({said(ask(model, OPENING, seed)) for seed in range(120)}) == count


def test_different_models_err_towards_the_same_wrong_answers():
    few, many = studied(skill=-50.0, distractors=2), studied(skill=-40.0, distractors=4)
    wrong = [{said(ask(model, OPENING, seed)) for seed in range(100)} for model in (few, many)]
    assert wrong[0] < wrong[1]


@given(seed=st.integers(0, 2**31 - 1), temperature=st.sampled_from([0.0, 0.7]))
@settings(max_examples=40, deadline=None)
def test_a_reply_depends_on_content_alone(seed, temperature):
    first = studied(skill=0.3, verbosity=5)
    second = studied(skill=0.3, verbosity=5)
    for other in range(3):
        ask(second, CHOICE.view.messages, other)
    assert (
        ask(first, OPENING, seed, temperature=temperature).text
        == ask(second, OPENING, seed, temperature=temperature).text
    )


def test_seeds_matter_at_a_temperature_and_not_at_zero():
    model = studied(skill=0.0)
    warm = {ask(model, OPENING, seed).text for seed in range(20)}
    cold = {ask(model, OPENING, seed, temperature=0.0).text for seed in range(20)}
    assert len(warm) > 1
    assert len(cold) == 1


def test_another_process_says_the_same():
    script = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from test_simulated import *\n"
        "print([ask(studied(skill=0.2, no_answer_rate=0.3), OPENING, s).text for s in range(8)])"
    )
    folder, tests = Path(__file__).parent, Path(__file__).parents[2]
    command = [sys.executable, "-c", script, str(folder), str(tests)]
    other = subprocess.run(command, capture_output=True, text=True, check=True)
    here = [ask(studied(skill=0.2, no_answer_rate=0.3), OPENING, s).text for s in range(8)]
    assert other.stdout.strip() == str(here)


def test_identity_covers_what_affects_the_text_and_nothing_else():
    base = SimulatedModel(skill=1.0)
    same = [SimulatedModel(skill=1), SimulatedModel(skill=1.0, latency=0.5, latency_per_token=0.1, error_rate=0.5)]
    changes = (
        ("name", "x"),
        ("skill", 2.0),
        ("conformity", 0.1),
        ("verbosity", 3),
        ("no_answer_rate", 0.1),
        ("distractors", 2),
    )
    others = [SimulatedModel(**{"skill": 1.0, field: value}) for field, value in changes]
    assert {model.identity for model in same} == {base.identity}
    assert len({model.identity for model in [base, *others]}) == 1 + len(others)


def test_identity_needs_no_study_and_survives_it():
    model = SimulatedModel(skill=0.4)
    before = model.identity
    model.study([ITEM])
    assert model.identity == before == identity_of(model)


def test_a_changed_copy_has_its_own_identity():
    base = SimulatedModel(skill=0.4)
    assert base.identity != base.model_copy(update={"skill": 0.5}).identity == SimulatedModel(skill=0.5).identity


def test_equal_numbers_make_equal_identities_however_they_are_written():
    copies = [SimulatedModel(skill=1.0).model_copy(update={"skill": skill}) for skill in (0, 0.0, -0.0)]
    assert {model.identity for model in copies} == {SimulatedModel().identity}
    topics = [
        SimulatedModel(skill=dict(pairs)) for pairs in ([("a", 1), ("default", 2)], [("default", 2.0), ("a", 1.0)])
    ]
    assert topics[0].identity == topics[1].identity != SimulatedModel(skill={"a": 2, "default": 1}).identity


def test_what_shapes_the_text_cannot_be_changed_afterwards():
    with pytest.raises(ValidationError, match="frozen"):
        SimulatedModel().skill = 1.0


@pytest.mark.parametrize(
    "parameters",
    [
        {"conformity": 1.5},
        {"no_answer_rate": -0.1},
        {"skill": float("nan")},
        {"verbosity": -1},
        {"distractors": 0},
        {"skil": 1},
    ],
)
def test_impossible_parameters_are_refused(parameters):
    with pytest.raises(ValidationError):
        SimulatedModel(**parameters)


def test_skill_by_topic_needs_a_default():
    with pytest.raises(ValidationError, match="default"):
        SimulatedModel(skill={"algebra": 1.0})


def test_skill_depends_on_the_topic():
    algebra, history = item("Solve x + 1 = 3.", "2", topic="algebra"), item("When was 1066?", "1066", topic="history")
    model = studied(algebra, history, skill={"algebra": 50.0, "default": -50.0})
    assert said(ask(model, algebra.view.messages)) == "2"
    assert said(ask(model, history.view.messages)) != "1066"


def test_items_without_a_difficulty_get_a_standard_normal_one_from_their_content():
    model = SimulatedModel(skill=0.0)
    logits = []
    for k in range(2000):
        p = model.p_correct(item(f"What is {k} + 1?", str(k + 1), difficulty=None))
        logits.append(p)
    mean = sum(logits) / len(logits)
    assert abs(mean - 0.5) < 4 * 0.21 / 2000**0.5  # sd of sigmoid(N(0, 1)) is 0.208
    assert len(set(logits)) > 1900


def test_an_item_that_was_not_studied_gets_a_reply_without_an_answer():
    unknown = item("What is 1 + 1?", "2")
    reply = ask(studied(ITEM, skill=50.0), unknown.view.messages)
    assert said(reply) is None
    assert reply.text


def test_study_is_additive_and_idempotent():
    model = SimulatedModel(skill=50.0)
    model.study([ITEM])
    model.study([CHOICE, ITEM])
    model.study([ITEM])
    assert said(ask(model, OPENING)) == "42"
    assert said(ask(model, CHOICE.view.messages)) == "B"


def test_study_from_many_threads_loses_nothing():
    items = [item(f"What is {k} times 3?", str(3 * k)) for k in range(200)]
    model = SimulatedModel(skill=50.0)
    threads = [threading.Thread(target=model.study, args=(items[k::8],)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [said(ask(model, one.view.messages)) for one in items] == [one.gold for one in items]


def test_a_conforming_model_adopts_the_plurality():
    model = studied(skill=50.0, conformity=1.0)
    assert said(ask(model, shown("7", "9", "7"))) == "7"


def test_a_stubborn_model_is_not_moved():
    model = studied(skill=50.0, conformity=0.0)
    assert said(ask(model, shown("7", "7"))) == "42"


def test_ties_among_others_are_broken_evenly_by_the_seed():
    model = studied(skill=50.0, conformity=1.0)
    adopted = [said(ask(model, shown("7", "9"), seed)) for seed in range(200)]
    assert 60 < adopted.count("7") < 140
    assert set(adopted) == {"7", "9"}


def test_answers_quoted_by_the_protocols_are_seen():
    model = studied(skill=50.0, conformity=1.0)
    peers = [ask(studied(skill=-50.0, name=name, distractors=1), OPENING) for name in "ab"]
    messages = with_text(OPENING, quote_all(peers) + "\n\nNow answer.")
    assert said(ask(model, messages)) == said(peers[0]) != "42"


def test_the_format_line_of_the_task_is_nobodys_answer():
    model = studied(skill=50.0, conformity=1.0)
    rephrased = (Message("user", f"Please solve this.\n{ITEM.question}\n\nUse the form Answer: <number>."),)
    assert said(ask(model, rephrased)) == "42"


def test_answers_of_another_item_in_the_examples_are_not_taken_for_others_answers():
    model = studied(skill=50.0, conformity=1.0)
    examples = (Message("user", "What is 2 + 2?"), Message("assistant", "Answer: 4"), Message("user", "Answer: 5"))
    assert said(ask(model, examples + OPENING)) == "42"


def test_a_model_keeps_its_own_earlier_answer_unless_it_conforms():
    earlier = (*OPENING, Message("assistant", "Answer: 13"))
    later = shown("7", "7", to=earlier)
    stubborn = {said(ask(studied(skill=50.0, conformity=0.0), later, seed)) for seed in range(20)}
    conforming = {said(ask(studied(skill=50.0, conformity=1.0), later, seed)) for seed in range(20)}
    assert stubborn == {"13"}
    assert conforming == {"7"}


def test_equal_numbers_count_as_one_answer_in_a_plurality():
    assert plurality(["1/2", "7", "0.5", "7", "0.50"]) == ["1/2"]


def test_a_reply_without_an_answer_declares_nothing():
    model = studied(skill=50.0, no_answer_rate=1.0)
    for messages in (OPENING, CHOICE.view.messages, shown("7", "7")):
        assert said(ask(model, messages)) is None


def routing(item, *options):
    listed = "\n".join(f"{k}. {text}" for k, text in enumerate(options, 1))
    return (
        Message("user", f"Question:\n{item.question}\n\nWho should answer?\n\n{listed}\n\nReply with the number only."),
    )


def test_a_skilled_router_picks_the_option_that_names_the_topic():
    algebra = item("Solve x + 1 = 3.", "2", topic="algebra")
    messages = routing(algebra, "good at history", "good at algebra", "good at chess")
    model = studied(algebra, skill=50.0, verbosity=0)
    assert {ask(model, messages, seed).text for seed in range(30)} == {"2"}


def test_a_router_without_a_fitting_option_picks_any():
    algebra = item("Solve x + 1 = 3.", "2", topic="algebra")
    model = studied(algebra, skill=50.0, verbosity=0)
    picks = [ask(model, routing(algebra, "first", "second"), seed).text for seed in range(100)]
    assert 25 < picks.count("1") < 75
    assert set(picks) == {"1", "2"}


def test_lettered_options_are_no_routing_prompt():
    messages = (Message("user", f"{CHOICE.view.messages[0].content}\nAnswer with one number or letter."),)
    assert said(ask(studied(skill=50.0), messages)) == "B"


def test_a_question_with_a_numbered_list_is_no_routing_prompt():
    listing = item("Which number comes next?\n1. two\n2. four\nGive the number.", "6")
    assert said(ask(studied(listing, skill=50.0), listing.view.messages)) == "6"


def test_numbered_lists_in_quoted_answers_are_no_options():
    quoted = with_text(OPENING, "> 1. first I add\n> 2. then I stop\n> Answer: 42\n\nReply, with a number at the end.")
    assert said(ask(studied(skill=50.0), quoted)) == "42"


def test_words_are_tokens_and_verbosity_is_words():
    reply = ask(studied(skill=50.0, verbosity=30), OPENING)
    assert reply.usage.completion_tokens == 32
    assert reply.usage.prompt_tokens == len(OPENING[0].content.split())


def test_a_long_reply_is_cut_before_its_answer():
    reply = ask(studied(skill=50.0, verbosity=30), OPENING, max_tokens=10)
    assert (reply.finish, reply.usage.completion_tokens, said(reply)) == ("length", 10, None)


def test_a_stop_sequence_ends_the_reply_before_it():
    reply = ask(studied(skill=50.0), OPENING, stop=("Answer",))
    assert reply.text.endswith(".\n")
    assert reply.finish == "stop"


def test_failures_are_drawn_anew_for_each_attempt():
    model = studied(skill=50.0, error_rate=0.5)
    outcomes = set()
    for _ in range(60):
        try:
            outcomes.add(ask(model, OPENING, seed=1).text)
        except CallError:
            outcomes.add("failed")
    assert len(outcomes) == 2


def test_failing_does_not_change_what_is_said():
    sure, shaky = studied(skill=0.0), studied(skill=0.0, error_rate=0.5)
    texts = []
    while not texts:
        try:
            texts.append(ask(shaky, OPENING, 3).text)
        except CallError:
            continue
    assert texts == [ask(sure, OPENING, 3).text]


def test_latency_is_waited_without_blocking_other_calls():
    model = studied(skill=0.0, latency=0.2, latency_per_token=0.001)

    async def together() -> float:
        started = asyncio.get_running_loop().time()
        replies = await asyncio.gather(*(model.areply(Request(OPENING, Sampling(), seed)) for seed in range(20)))
        assert all(reply.seconds >= 0.2 for reply in replies)
        return asyncio.get_running_loop().time() - started

    assert 0.2 <= asyncio.run(together()) < 3.0  # one after the other they take 4


async def test_it_is_a_typed_model_of_the_rest_of_collabsim():
    model = studied(skill=50.0)
    assert isinstance(model, TypedModel)
    assert said(await reply_of(model, Request(OPENING, Sampling(), 0))) == "42"


async def test_langchains_doors_say_what_the_typed_door_says():
    model = studied(skill=0.0, verbosity=4)
    for seed in range(5):
        typed = await model.areply(Request(OPENING, Sampling(), seed))
        async_message = await model.ainvoke([HumanMessage(OPENING[0].content)], seed=seed)
        sync_message = await asyncio.to_thread(model.invoke, OPENING[0].content, seed=seed)
        assert async_message.text == sync_message.text == typed.text
        assert async_message.usage_metadata["output_tokens"] == typed.usage.completion_tokens
        assert async_message.response_metadata["finish_reason"] == "stop"


def test_copies_and_pickles_speak_alike():
    model = studied(skill=0.1)
    for twin in (copy.deepcopy(model), model.model_copy()):
        assert ask(twin, OPENING, 5).text == ask(model, OPENING, 5).text
    assert pickle.loads(pickle.dumps(SimulatedModel(skill=0.1))).identity == model.identity


@given(st.floats(-800, 800))
def test_sigmoid_is_a_probability_and_symmetric(logit):
    assert 0 <= sigmoid(logit) <= 1
    assert sigmoid(logit) + sigmoid(-logit) == pytest.approx(1)


@given(st.text(max_size=200), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_any_prompt_gets_a_reply(text, seed):
    model = studied(skill=0.0, conformity=0.5)
    assert isinstance(ask(model, (Message("user", text),), seed).text, str)


@pytest.mark.parametrize("verbosity", [0, 8])
@pytest.mark.parametrize(
    ("kind", "answer", "choices"),
    [
        ("number", "42", None),
        ("exact", "Paris", None),
        ("exact", "yes", None),
        ("choice", "B", {"A": "north", "B": "blue"}),
    ],
)
def test_the_tasks_read_replies_as_they_are_meant(kind, answer, choices, verbosity):
    one = make_item("Well, what is it?", answer, kind=kind, choices=choices)
    speaks, silent = (studied(one, skill=50.0, no_answer_rate=rate, verbosity=verbosity) for rate in (0.0, 1.0))
    errs = studied(one, skill=-1e6, no_answer_rate=0.0, verbosity=verbosity)
    assert one.score(ask(speaks, one.view.messages).text).verdict == "right"
    assert one.score(ask(silent, one.view.messages).text).verdict == "unparsed"
    wrong = {one.score(ask(errs, one.view.messages, seed).text).verdict for seed in range(40)}
    assert wrong == ({"right", "wrong"} if choices else {"wrong"})


def to_rank(*answers: str, wish="Reply with their numbers only, from the best to the worst."):
    quoted = "\n\n".join(f"Answer {k}:\n> So it seems.\n> Answer: {a}" for k, a in enumerate(answers, 1))
    return with_text(OPENING, f"These answers were given:\n\n{quoted}\n\n{wish}")


def test_a_ranker_puts_first_what_it_would_answer_itself_and_names_every_answer():
    model = studied(skill=50.0)
    for seed in range(20):
        order = [
            int(number) for number in ask(model, to_rank("1", "42", "7", "42.0"), seed).text.split("\n")[-1].split(", ")
        ]
        assert set(order[:2]) == {2, 4}
        assert sorted(order) == [1, 2, 3, 4]


def test_a_ranker_that_is_asked_for_one_number_names_the_best():
    messages = to_rank("1", "42", wish="Which one is better? Reply with its number only.")
    assert ask(studied(skill=50.0), messages).text.splitlines()[-1] == "2"


def test_a_ranker_without_a_clue_prefers_no_place():
    model = studied(skill=-50.0, distractors=1)
    best = [ask(model, to_rank("42", "42"), seed).text.splitlines()[-1][0] for seed in range(400)]
    assert near(best.count("1") / 400, 0.5, 400)


def test_a_right_answer_is_ranked_first_with_the_probability_of_knowing_it():
    model = studied(skill=0.4, distractors=4)
    wrong = "no such distractor"
    n = 600
    share = frequency(lambda seed: ask(model, to_rank("42", wrong), seed).text.splitlines()[-1].startswith("1"), n)
    p = model.p_correct(ITEM)
    assert near(share, p + (1 - p) / 2, n)


def test_asked_how_sure_it_is_a_model_states_its_probability_of_being_right():
    model = studied(skill=0.7)
    sure = "How likely is it that your answer is right? Reply with one number from 0 to 100 only."
    messages = (*OPENING, Message("assistant", "Answer: 3"), Message("user", sure))
    assert ask(model, messages).text.splitlines()[-1] == str(round(100 * sigmoid(0.7)))


def test_asked_to_go_on_a_model_comes_to_the_answer_at_once():
    on = (*OPENING, Message("assistant", "Looking over"), Message("user", "Continue exactly where your reply stops."))
    assert ask(studied(skill=50.0), on).text == "Answer: 42"
