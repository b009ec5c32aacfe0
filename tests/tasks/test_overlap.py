from collabsim.tasks import load_task
from collabsim.tasks.overlap import TEMPLATE, Questions, content_key, shared

PAIR = "Which of the two would you take?"


def pairs(start, count, split):
    return [
        {"question": PAIR, "choices": [f"m{n}", f"m{n + 1}"], "answer": f"m{n}", "split": split}
        for n in range(start, start + 2 * count, 2)
    ]


def test_a_question_with_other_options_counts_as_asked_before():
    asked = Questions([content_key("What is warm?", {"A": "red", "B": "blue"})])
    assert content_key("what is  WARM", {"A": "tea", "B": "ice"}) in asked
    assert content_key("What is cold?", {"A": "red", "B": "blue"}) not in asked


def test_a_template_counts_only_with_one_of_its_options():
    asked = Questions(content_key(PAIR, {"A": f"m{n}", "B": f"n{n}"}) for n in range(TEMPLATE))
    assert content_key(PAIR, {"A": "m3", "B": "x"}) in asked
    assert content_key(PAIR, {"A": "y", "B": "x"}) not in asked


def test_dev_keeps_template_questions_with_options_of_their_own():
    rows = [*pairs(0, 12, "test"), *pairs(100, 5, "dev"), *pairs(0, 1, "dev")]
    task = load_task(rows, dev={"limit": 50})
    assert (len(task), len(task.dev)) == (12, 5)
    assert task.notes == {"dev_overlap": 1, "dev_short_of_limit": 45}


def test_a_question_that_was_left_out_of_test_is_kept_out_of_dev_too():
    row = {"question": "Who directed Pilot?", "split": "test"}
    rows = [
        {**row, "answer": "Lawrence"},
        {**row, "answer": "Horton"},
        {"question": "1+1?", "answer": 2, "split": "test"},
    ]
    rows += [{**row, "answer": "Lawrence", "split": "dev"}, {"question": "2+2?", "answer": 4, "split": "dev"}]
    task = load_task(rows, dev={"limit": 1})
    assert [item.question for item in task.dev] == ["2+2?"]
    assert task.notes == {"conflicting_golds": 1, "dev_overlap": 1, "repeated_question": 1}


def test_items_that_two_tasks_share_are_found():
    rows = [{"question": f"{n} + {n}?", "answer": 2 * n} for n in range(6)]
    train, test = load_task(rows[:4]), load_task(rows[3:])
    assert [item.question for item in shared(train.items, test.items)] == ["3 + 3?"]


def test_options_keep_their_order_wherever_the_row_stands():
    rows = [{"question": f"q{n}?", "choices": [f"a{n}", f"b{n}", f"c{n}"], "answer": 0} for n in range(12)]
    first = {item.question: item for item in load_task(rows, shuffle_options=True).items}
    second = {item.question: item for item in load_task(rows[::-1], shuffle_options=True, seed=4).items}
    assert {q: item.view.choices for q, item in first.items()} == {q: item.view.choices for q, item in second.items()}
    assert {item.gold for item in first.values()} == {"A", "B", "C"}
    assert all(item.view.choices[item.gold].startswith("a") for item in first.values())
