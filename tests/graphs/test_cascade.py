"""In which order a cascade tries its seats, and when it stops."""

import math
from dataclasses import replace

import pytest
from collabsim.graphs.cascade import NEVER, best_threshold, reported
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted, last_words

from collabsim import System, make_item
from collabsim.episode import Reply, Tokens
from collabsim.errors import CallError, ConfigError
from collabsim.system.fitted import Fitted
from collabsim.system.fitting import afit
from collabsim.testing import check_isolation, check_masks, check_seat_order, sample_items

ITEM = make_item("What is 2 + 3?", "5")
BY_NAME = {"a": 1.0, "b": 2.0, "c": 3.0}


def member(name, answer, sure=0):
    return Scripted(name, lambda request: str(sure) if "How likely" in last_words(request) else answer)


def cascade(members, **options):
    return System("cascade", members, options={"costs": BY_NAME, "threshold": 0.5, **options})


def trio(*sure, answers=("Answer: 3", "Answer: 4", "Answer: 5")):
    return {name: member(name, answer, s) for name, answer, s in zip("abc", answers, (*sure, 0), strict=True)}


def tried(episode):
    return list(dict.fromkeys(call.seat for call in episode.calls))


@pytest.mark.parametrize(
    ("sure", "seats", "outcome"),
    [((10, 20), "abc", 1.0), ((10, 50), "ab", 0.0), ((90, 90), "a", 0.0), ((49, 49), "abc", 1.0)],
)
async def test_the_first_seat_that_is_confident_enough_answers(sure, seats, outcome):
    episode = await cascade(trio(*sure)).arun(ITEM)
    assert tried(episode) == list(seats)
    assert episode.outcome == outcome


async def test_absent_seats_are_skipped_and_the_last_present_one_answers_unconditionally():
    episode = await cascade(trio(10, 10)).arun(ITEM, ["a", "b"])
    assert tried(episode) == ["a", "b"]
    assert episode.final[0].text == "Answer: 4"
    assert [call.seat for call in episode.calls] == ["a", "a", "b"]


async def test_without_costs_the_weakest_on_dev_is_tried_first():
    system = System("cascade", trio(10, 10), options={"threshold": 0.5})
    ranked = replace(system, fitted=Fitted(dev_scores={"a": 0.9, "b": 0.2, "c": 0.5}))
    assert tried(await ranked.arun(ITEM)) == ["b", "c", "a"]


async def test_a_threshold_of_zero_accepts_every_answer():
    episode = await cascade(trio(0, 0), threshold=0.0).arun(ITEM)
    assert tried(episode) == ["a"]


@pytest.mark.parametrize("silent", ["", "no idea", Reply("Answer: 5", "content_filter")])
async def test_a_reply_without_an_answer_defers_even_at_a_threshold_of_zero(silent):
    episode = await cascade(trio(99, 99, answers=(silent, "Answer: 4", "Answer: 5")), threshold=0.0).arun(ITEM)
    assert tried(episode) == ["a", "b"]
    assert [call.draw for call in episode.calls] == [0, 0, 1]


async def test_a_report_without_a_number_defers():
    members = trio(0, 0)
    members["a"] = member("a", "Answer: 3", "quite")
    assert tried(await cascade(members, threshold=0.01).arun(ITEM)) == ["a", "b", "c"]


async def test_where_the_last_seat_gives_no_answer_the_one_before_stands():
    episode = await cascade(trio(10, 10, answers=("Answer: 3", "Answer: 5", "no idea"))).arun(ITEM)
    assert tried(episode) == ["a", "b", "c"]
    assert episode.outcome == 1.0


async def test_a_failed_call_is_no_low_confidence():
    members = trio(10, 10)
    members["b"] = Scripted("b", lambda _: CallError("gone"))
    episode = await cascade(members).arun(ITEM)
    assert episode.outcome is None
    assert "c" not in tried(episode)


async def test_the_confidence_is_asked_of_the_seat_about_its_own_reply():
    system = cascade(trio(99, 99))
    await system.arun(ITEM)
    question, own, report = system.pool["a"].model.asked[1].messages
    assert (question, own) == (ITEM.view.messages[0], ("assistant", "Answer: 3"))
    assert "0 to 100" in report.content


def with_probabilities(name, answer, *probabilities):
    logprobs = tuple(map(math.log, probabilities))
    return Scripted(name, Reply(answer, tokens=Tokens((1,), tuple(range(len(logprobs))), logprobs)))


@pytest.mark.parametrize(("threshold", "seats"), [(0.59, "a"), (0.61, "ab")])
async def test_token_confidence_is_the_mean_probability_of_all_tokens_with_the_end_token(threshold, seats):
    members = {"a": with_probabilities("a", "Answer: 5", 0.9, 0.3, 0.6), "b": with_probabilities("b", "Answer: 4", 0.9)}
    system = System(
        "cascade", members, options={"confidence": "probability", "threshold": threshold, "costs": {"a": 1, "b": 2}}
    )
    episode = await system.arun(ITEM)
    assert tried(episode) == list(seats)
    assert len(episode.calls) == len(seats)


async def test_token_confidence_is_refused_for_models_that_give_no_probabilities():
    with pytest.raises(ConfigError, match="confidence: report"):
        await cascade(trio(1, 1), confidence="probability").arun(ITEM)


def test_costs_must_name_every_seat():
    with pytest.raises(ConfigError, match="a number for each seat"):
        _ = cascade(trio(1, 1), costs={"a": 1.0}).graph


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("85", 0.85),
        ("85%", 0.85),
        ("85/100", 0.85),
        ("85 out of 100", 0.85),
        ("I am 85 percent sure.", 0.85),
        ("0.85", 0.85),
        ("1.0", 1.0),
        ("1", 0.01),
        ("100", 1.0),
        ("0", 0.0),
        ("101", 0.0),
        ("between 60 and 80", 0.0),
        ("<think>40 or 50</think>70", 0.7),
        ("<think>40", 0.0),
        ("sure", 0.0),
        ("", 0.0),
    ],
)
def test_a_report_is_read_on_a_scale_of_a_hundred(text, confidence):
    assert reported(text) == pytest.approx(confidence)


CONFIDENCES = st.sampled_from([-1.0, 0.0, 0.2, 0.5, 0.9, 1.0])
SCORES = st.sampled_from([0.0, 0.25, 1.0])


@given(rows=st.lists(st.tuples(CONFIDENCES, SCORES, SCORES), min_size=1, max_size=8))
@settings(deadline=None)
def test_no_threshold_does_better_than_the_fitted_one(rows):
    def total(threshold):
        return sum(score if confidence >= threshold else later for confidence, score, later in rows)

    best = best_threshold(*zip(*rows, strict=True))
    assert total(best) == pytest.approx(max(total(k / 100) for k in range(201)))


def test_of_equal_thresholds_the_one_that_defers_least_is_taken():
    assert best_threshold([0.2, 0.8], [1.0, 1.0], [1.0, 1.0]) == 0.0
    assert best_threshold([0.2, 0.8], [0.0, 1.0], [1.0, 1.0]) == 0.5
    assert best_threshold([0.2, 0.8], [0.0, 0.0], [1.0, 1.0]) == NEVER


def knows(name, numbers, *, honest):
    """Right on sums with these first numbers; says how sure it is, honestly or always the same."""

    def say(request):
        first = int(request.messages[0].content.split("What is ")[1].split()[0])
        right = first in numbers
        if "How likely" in last_words(request):
            return ("90" if right else "20") if honest else "60"
        return f"Answer: {first + 1 if right else 0}"

    return Scripted(name, say)


async def test_thresholds_are_fitted_on_dev_so_that_a_seat_defers_where_it_is_wrong():
    dev = [make_item(f"What is {k} + 1?", str(k + 1)) for k in range(10)]
    weak, strong = knows("weak", range(5), honest=True), knows("strong", range(9), honest=False)
    system = System("cascade", {"weak": weak, "strong": strong})
    fitted = await afit(system, dev)
    assert fitted.data == {"thresholds": {"strong": 0.0, "weak": pytest.approx(0.55)}}
    ready = replace(system, fitted=fitted)
    assert tried(await ready.arun(make_item("What is 3 + 1?", "4"))) == ["weak"]
    assert tried(await ready.arun(make_item("What is 7 + 1?", "8"))) == ["weak", "strong"]


async def test_a_given_threshold_is_not_fitted():
    dev = [make_item(f"What is {k} + 1?", str(k + 1)) for k in range(3)]
    system = System(
        "cascade", {"a": member("a", "Answer: 1"), "b": member("b", "Answer: 2")}, options={"threshold": 0.0}
    )
    assert (await afit(system, dev)).data == {}
    assert [request.draw for request in system.pool["a"].model.asked] == [0] * 3


async def test_a_cascade_by_token_probability_has_a_value_for_every_coalition_in_any_order_of_seats():
    def say(name, right_on):
        def reply(request):
            sure = 0.9 if right_on in request.messages[0].content else 0.4
            logprobs = (math.log(sure), math.log(sure))
            return Reply(f"Answer: {len(name) + 4}", tokens=Tokens((1,), (2, 3), logprobs))

        return Scripted(name, reply)

    members = {"a": say("a", "+"), "bb": say("bb", "times"), "ccc": say("ccc", "+")}
    system = System("cascade", members, options={"confidence": "probability", "threshold": 0.5})
    await check_masks(system, sample_items(4))
    await check_seat_order(system, sample_items(4))
    await check_isolation(system, sample_items(4))
