import timeit
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from collabsim.item import Answer, Item, ItemView, answers_for
from collabsim.tasks import make_item


class Near:
    """A scorer whose sameness is not transitive by itself: integers at most 1 apart."""

    kind = "near"

    def extract(self, text, view, finish="stop"):
        return Answer(text, int(text)) if text else None

    def same(self, a, b, view):
        return abs(a.value - b.value) <= 1


def near_item():
    return Item("near", "?", "0", ItemView("near", (), {}, "near"), Near())


def test_equal_values_are_one_class_whatever_their_notation():
    answers = make_item("Half?", "1/2").answers
    ballots = [answers.extract(text) for text in ("1/2", "0.5", r"\frac{1}{2}", "3", "3.0")]
    assert answers.group(ballots) == [[0, 1, 2], [3, 4]]


def test_classes_are_transitively_closed():
    answers = near_item().answers
    ballots = [answers.extract(text) for text in ("1", "5", "3", "2", "9")]
    assert answers.group(ballots) == [[0, 2, 3], [1], [4]]


@given(st.lists(st.integers(0, 12), max_size=9))
def test_grouping_is_a_partition_into_components(values):
    answers = near_item().answers
    classes = answers.group([Answer(str(value), value) for value in values])
    assert sorted(index for members in classes for index in members) == list(range(len(values)))
    assert [members[0] for members in classes] == sorted(members[0] for members in classes)
    whole = [sorted({values[index] for index in members}) for members in classes]
    for members in whole:
        assert all(b - a <= 1 for a, b in pairwise(members))
    for i, one in enumerate(whole):
        for other in whole[i + 1 :]:
            assert min(abs(a - b) for a in one for b in other) > 1


def test_grouping_hands_out_lists_of_its_own():
    answers = make_item("Half?", "1/2").answers
    ballots = [answers.extract("1/2"), answers.extract("0.5")]
    answers.group(ballots)[0].clear()
    assert answers.group(ballots) == [[0, 1]]


def test_extraction_is_remembered_by_text_and_finish():
    item = make_item("Half?", "1/2")
    answers = answers_for(item)
    assert answers.extract("so 1/2") is answers.extract("so 1/2")
    assert answers.extract("so 1/2", "length") is None
    assert item.answers is answers


def test_readers_do_not_show_the_gold():
    answers = make_item("Half?", "1/2").answers
    assert not [name for name in dir(answers) if not name.startswith("_") and name not in ("extract", "group")]


def test_known_answers_are_extracted_and_grouped_in_microseconds():
    item = make_item("Half?", "1/2")
    texts = [f"I think the answer is {value}." for value in ("1/2", "0.5", "1", "1", "3", r"\frac{1}{2}", "2", "7")]

    def vote():
        answers = item.answers
        return answers.group([answer for text in texts if (answer := answers.extract(text)) is not None])

    assert vote() == [[0, 1, 5], [2, 3], [4], [6], [7]]
    seconds = min(timeit.repeat(vote, number=2000, repeat=5)) / 2000
    assert seconds < 50e-6
