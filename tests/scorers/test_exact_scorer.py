import pytest

from collabsim.tasks import make_item

VECTORS = {
    "A01 nested braces": (r"So the total is \boxed{\frac{7}{\sqrt{2}}}.", r"\frac{7}{\sqrt{2}}", True),
    "A21 ordered pair": (r"\boxed{(3,4)}", "(4,3)", False),
    "A29 other word": (r"\boxed{\text{Tuesday}}", r"\text{Monday}", False),
    "same word": (r"\boxed{\text{Tuesday}}", "tuesday", True),
    "A43 article": ("the", "(A)", False),
    "A57 yes in a sentence": ("Yes, it is.", "yes", True),
    "no in a sentence": ("No, it is not.", "no", True),
    "no that is no correction": ("No, it is not.", "yes", False),
    "EX-37 yes and no": ("Yes and no", "yes", False),
    "title that begins with no": ("Answer: No Country for Old Men", "No Country for Old Men", True),
    "title is not no": ("No Country for Old Men", "no", False),
    "bracketed letter": ("Answer: (A)", "A", True),
    "bracket golds": ("Answer: ) )", ") )", True),
    "other brackets": ("Answer: )", ") )", False),
    "reason": ("The answer is Paris because it is the capital.", "paris", True),
    "abbreviation": ("Answer: Mr. Smith", "mr. smith", True),
    "initials": ("The answer is J. R. R. Tolkien.", "J. R. R. Tolkien", True),
    "single line": ("Paris", "Paris", True),
    "prose is no answer": ("We think.\nIt may be Paris", "Paris", False),
    "numbers by value": ("Answer: 1/2", "0.5", True),
    "placeholder": ("Answer: <answer>", "answer", False),
    "negated": ("The answer is not Paris.", "Paris", False),
    "quotes": ("Answer: “Paris”", "Paris", True),
    "tags": ("<answer>Paris</answer>", "paris", True),
    "empty": ("", "A", False),
    "last declaration": ("Answer: Rome\nNo.\nAnswer: Paris", "Paris", True),
    "empty box": (r"Answer: Paris \boxed{}", "Paris", False),
}


@pytest.mark.parametrize(("reply", "gold", "right"), VECTORS.values(), ids=VECTORS)
def test_reply_is_right_exactly_when_it_commits_to_the_gold(reply, gold, right):
    assert make_item("What?", gold, kind="exact").score(reply).score == float(right)


def test_cut_reply_counts_only_what_it_declared():
    item = make_item("What?", "Paris")
    assert item.score("Paris", "length").verdict == "unparsed"
    assert item.score("Answer: Paris\nI am sure beca", "length").score == 1.0
