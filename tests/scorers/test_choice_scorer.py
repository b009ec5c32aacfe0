import pytest

from collabsim.item import ItemView
from collabsim.scorers.choice.choice_scorer import ChoiceScorer
from collabsim.tasks import make_item

SCORER = ChoiceScorer()
COLOURS = ["red", "blue", "green", "yellow", "black"]
VITAMINS = ["Vitamin A", "Vitamin B", "Vitamin C", "Vitamin D"]
LIFE = ["virus", "prion", "E. coli", "fungus", "alga"]
NUMBERS = ["48", "50", "24", "49"]
WAYS = ["north", "south", "east", "west", "up", "down", "left", "right", "in front", "behind"]


def read(reply, options=COLOURS, finish="stop"):
    view = ItemView("x", (), dict(zip("ABCDEFGHIJ", options, strict=False)), "choice")
    answer = SCORER.extract(reply, view, finish)
    return answer and answer.value


VECTORS = {
    "M01": ("The answer is not B.", COLOURS, None),
    "M03": ("The answer is a prime number, so C.", COLOURS, "C"),
    "M05": (r"So \boxed{C}", COLOURS, "C"),
    "M07": ("A. is too pale. The answer is **C**", COLOURS, "C"),
    "M09": ("I think it is between A and C. I'll go with C", COLOURS, "C"),
    "M11": ("Low Vitamin C. So it is option B", VITAMINS, "B"),
    "M13": ("Answer: C, D", COLOURS, None),
    "M15": ("The answer should be C", COLOURS, "C"),
    "M17": ("Answer: E. coli", LIFE, "C"),
    "M19": ("The answer is D because a) is false", COLOURS, "D"),
    "M21": ("c", COLOURS, "C"),
    "M23": ("I would say A good choice is C", COLOURS, "C"),
    "M25": ("Answer: A or B", COLOURS, None),
    "MC-01 negation then letter": ("It is not B, the answer is D", COLOURS, "D"),
    "MC-01 letter then negation": ("D, not B", COLOURS, "D"),
    "MC-03": ("Answer seems to be A", COLOURS, "A"),
    "MC-05": ("I think the answer is C because I checked", WAYS, "C"),
    "MC-07": (r"\boxed{\Delta E \gg kT} and so on. **Answer: D**", COLOURS, "D"),
    "MC-07 formula last": (r"**Answer: D** as \boxed{\Delta E \gg kT}", COLOURS, "D"),
    "MC-09 bold": ("The answer is **C**.", COLOURS, "C"),
    "MC-09 text in a box": (r"\boxed{\text{(C)}}", COLOURS, "C"),
    "MC-11": ("The best choice is B (e.g. because of hue)", COLOURS, "B"),
    "MC-13": ("A or B", COLOURS, None),
    "MC-15 place": ("2", COLOURS, "B"),
    "MC-15 letter": ("B", COLOURS, "B"),
    "MC-17": ("We think.\nStep two.\nB", COLOURS, "B"),
    "number names its option": ("Answer: 50", NUMBERS, "B"),
    "place does not count among numbers": ("Answer: 2", NUMBERS, None),
    "option text": ("The answer is blue.", COLOURS, "B"),
    "letter and text": ("Answer: (B) blue", COLOURS, "B"),
    "lower case with bracket": ("b) blue", COLOURS, "B"),
    "is correct": ("Option B is correct.", COLOURS, "B"),
    "is not correct": ("Option B is not correct.", COLOURS, None),
    "both": ("Both A and B are right", COLOURS, None),
    "only text mentioned": ("It isn't red, it's blue", COLOURS, "B"),
    "later letters do not count": ("The answer is C. A is wrong because it is red.", COLOURS, "C"),
    "joint rejection": ("A and C are wrong, so B", COLOURS, "B"),
    "neither nor": ("Neither A nor C. The rest is unclear.", COLOURS, None),
    "question": ("Is the answer B? No. The answer is D.", COLOURS, "D"),
    "pronoun": ("I do not know.", WAYS, None),
    "article": ("A good question.", COLOURS, None),
    "no such option": ("Answer: Z", COLOURS, None),
    "next line": ("The answer is\n\n**B**", COLOURS, "B"),
    "placeholder": ("Answer: <letter>", COLOURS, None),
    "angle brackets": ("Answer: <B>", COLOURS, "B"),
    "thinking": ("<think>A</think>B", COLOURS, "B"),
    "unclosed thinking": ("<think>A", COLOURS, None),
    "letter first, then reasons": ("B\n\nExplanation: A is too pale and C too dark.", COLOURS, "B"),
    "text that holds a letter": ("The answer is Vitamin C.", VITAMINS, "C"),
    "language": ("C++ is nice", COLOURS, None),
    "full width": ("Answer: Ｂ", COLOURS, "B"),
    "slash": ("Answer: B/C", COLOURS, None),
    "option I": ("The answer is I", WAYS, "I"),
    "not A but B": ("The answer is not A but B", COLOURS, "B"),
    "list of all": ("Let me think about A, B, C and D.", COLOURS, None),
    "open box": (r"Answer: B, so \boxed{C", COLOURS, None),
    "empty": ("  ", COLOURS, None),
}


@pytest.mark.parametrize(("reply", "options", "letter"), VECTORS.values(), ids=VECTORS)
def test_reply_commits_to_one_option_or_none(reply, options, letter):
    assert read(reply, options) == letter


def test_cut_reply_counts_only_what_it_declared():
    assert read("Blue is nice, so B", finish="length") is None
    assert read("Answer: B. Because it", finish="length") == "B"


@pytest.mark.parametrize("reply", ["2", "B", "Answer: B", "Answer: 2"])
def test_options_keyed_by_digits_are_relabelled_and_both_forms_are_right(reply):
    item = make_item("Which?", "2", choices={"1": "red", "2": "blue", "3": "green", "4": "black"})
    assert dict(item.view.choices) == {"A": "red", "B": "blue", "C": "green", "D": "black"}
    assert item.score(reply).score == 1.0


def test_options_of_equal_text_are_one_answer():
    item = make_item("Which?", "B", choices={"A": "red", "B": "blue", "C": "blue", "D": "green"})
    assert item.score("Answer: C").score == 1.0
    answers = item.answers
    assert answers.group([answers.extract(letter) for letter in "BCA"]) == [[0, 1], [2]]
    assert item.chance == 0.5
