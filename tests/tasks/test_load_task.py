import json
import random

import pytest

from collabsim.errors import ConfigError, DataError
from collabsim.tasks import Task, load_task, make_item
from collabsim.tasks.overlap import question_key

ROWS = [
    {"question": f"What is {n} + {n}?", "answer": str(2 * n), "topic": "even" if n % 2 == 0 else "odd"}
    for n in range(20)
]
COLOURS = {"question": "Which is warm?", "choices": ["red", "blue"], "answer": "red"}


@pytest.fixture
def write(tmp_path):
    def write_rows(rows, name="data.jsonl"):
        text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return f"jsonl:{name}"

    return write_rows


def test_file_becomes_items_relative_to_the_base_folder(write, tmp_path):
    task = load_task(write(ROWS), base=tmp_path)
    assert len(task) == 20
    assert task.kind == "number"
    assert task.notes == {}
    assert {item.topic for item in task.items} == {"even", "odd"}
    assert task.item(task.items[3].id) is task.items[3]


def test_prompt_holds_question_options_and_the_asked_form():
    item = load_task([COLOURS]).items[0]
    (message,) = item.view.messages
    assert message.role == "user"
    assert message.content == "Which is warm?\n\nA. red\nB. blue\n\nEnd with one line: Answer: <letter>"
    assert item.chance == 0.5


def test_kind_is_inferred_from_the_gold():
    rows = [
        COLOURS,
        {"question": "n?", "answer": 3},
        {"question": "f?", "answer": "3/4"},
        {"question": "w?", "answer": "Paris"},
        {"question": "b?", "answer": True},
        {"question": "title?", "answer": "7 Eleven"},
        {"question": "forced?", "answer": "12", "kind": "exact"},
    ]
    task = load_task(rows)
    kinds = {item.question: item.view.kind for item in task.items}
    assert task.kind == "mixed"
    assert kinds == {
        "Which is warm?": "choice",
        "n?": "number",
        "f?": "number",
        "w?": "exact",
        "b?": "exact",
        "title?": "exact",
        "forced?": "exact",
    }


@pytest.mark.parametrize(
    ("choices", "answer", "letter"),
    [
        (["red", "blue"], "blue", "B"),
        (["red", "blue"], "B", "B"),
        (["red", "blue"], 1, "B"),
        ({"A": "red", "B": "blue"}, "B", "B"),
        ({"1": "red", "2": "blue"}, "2", "B"),
        ({"a": "red", "id": "blue"}, "id", "B"),
        ({"text": ["red", "blue"], "label": ["1", "2"]}, "2", "B"),
        (["2", "1"], "1", "B"),
    ],
)
def test_gold_options_are_found_by_key_text_or_place(choices, answer, letter):
    assert load_task([{"question": "Which?", "choices": choices, "answer": answer}]).items[0].gold == letter


def test_order_of_the_file_changes_nothing():
    shuffled = random.Random(3).sample(ROWS, len(ROWS))
    for limit in (None, 7):
        a = load_task(ROWS, limit=limit, seed=5, dev={"limit": 4})
        b = load_task(shuffled, limit=limit, seed=5, dev={"limit": 4})
        assert [item.id for item in a.items] == [item.id for item in b.items]
        assert [item.id for item in a.dev] == [item.id for item in b.dev]
        assert (a.identity, a.dev_identity) == (b.identity, b.dev_identity)


def test_smaller_limit_is_a_prefix_and_the_seed_chooses():
    seven, three = (load_task(ROWS, limit=limit, seed=1).items for limit in (7, 3))
    assert [item.id for item in seven[:3]] == [item.id for item in three]
    other = load_task(ROWS, limit=7, seed=2).items
    assert {item.id for item in other} != {item.id for item in seven}


def test_identity_holds_prompts_and_golds():
    base = load_task(ROWS, limit=5)
    assert load_task(ROWS, limit=5, prompt="Q: {question}").identity != base.identity
    assert load_task(ROWS, limit=6).identity != base.identity
    changed = [{**row, "answer": "1"} for row in ROWS]
    assert load_task(changed).identity != load_task(ROWS).identity


def test_dev_is_disjoint_and_taken_from_what_is_left():
    task = load_task(ROWS, limit=12, dev={"limit": 8, "seed": 3})
    assert len(task.dev) == 8
    assert not {item.question for item in task.items} & {item.question for item in task.dev}


def test_without_a_limit_dev_is_taken_out_first():
    task = load_task(ROWS, dev={"limit": 5})
    assert (len(task.items), len(task.dev)) == (15, 5)
    assert not {item.id for item in task.items} & {item.id for item in task.dev}


def test_dev_items_that_repeat_a_test_question_are_dropped_and_counted():
    rows = [{**row, "split": "test"} for row in ROWS[:10]]
    rows += [{**ROWS[0], "question": "what is  0 + 0", "split": "dev"}, {**ROWS[15], "split": "dev"}]
    task = load_task(rows, dev={"limit": 1})
    assert [item.question for item in task.dev] == [ROWS[15]["question"]]
    assert task.notes == {"dev_overlap": 1}
    assert load_task(rows, split="dev").notes == {}


def test_repeats_are_dropped_and_contradictions_left_out_wholly():
    rows = [*ROWS[:3], {**ROWS[0], "question": "What is 0 + 0 ?"}, ROWS[0], {**ROWS[1], "answer": "999"}]
    task = load_task(rows)
    assert {item.gold for item in task.items} == {"0", "4"}
    assert task.notes == {"conflicting_golds": 1, "repeated_question": 3}


def test_one_question_with_other_options_is_another_item():
    rows = [
        COLOURS,
        {**COLOURS, "choices": ["orange", "blue"], "answer": "orange"},
        {**COLOURS, "choices": ["blue", "red"]},
    ]
    task = load_task(rows)
    assert len(task) == 2
    assert task.notes == {"repeated_question": 1}


def test_unusable_rows_are_counted_by_reason():
    rows = [
        *ROWS[:1],
        {"question": "a?", "answer": None},
        {"question": " ", "answer": "1"},
        {**COLOURS, "answer": "Z"},
        {**COLOURS, "choices": ["one"]},
        {"question": "multi?", "answer": "two\nlines", "kind": "number"},
    ]
    expected = {"no_question": 1, "null_gold": 1, "unreachable_gold": 1, "unreadable_options": 1, "unscorable_gold": 1}
    assert load_task(rows).notes == expected


@pytest.mark.parametrize(
    ("filter", "count"),
    [({"topic": "even"}, 10), ({"topic": ["even", "odd"]}, 20), ({"answer": [4, "6"]}, 2), ({"kind": "number"}, 20)],
)
def test_filter_keeps_items_with_these_values(filter, count):
    assert len(load_task(ROWS, filter=filter)) == count


def test_filter_on_an_unknown_field_names_the_nearest():
    with pytest.raises(ConfigError, match=r"no field 'topics' .did you mean 'topic'"):
        load_task(ROWS, filter={"topics": "even"})


def test_filter_that_leaves_nothing_says_how_much_it_took():
    with pytest.raises(DataError, match=r"0 distinct items.*20 filtered_out"):
        load_task(ROWS, filter={"topic": "none"})


@pytest.mark.parametrize("limit", [0, -1, 2.5, True, "3"])
def test_impossible_limits_are_refused(limit):
    with pytest.raises(ConfigError, match=r"task.limit: expected at least 1"):
        load_task(ROWS, limit=limit)
    with pytest.raises(ConfigError, match=r"task.dev.limit: expected at least 1"):
        load_task(ROWS, dev={"limit": limit})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dev": {"limt": 3}}, "unknown key 'limt' .did you mean 'limit'"),
        ({"dev": {"seed": 3}}, "expected a limit"),
        ({"floor": "chanse"}, "expected zero or chance.*did you mean 'chance'"),
        ({"kind": "numbr"}, "unknown kind.*did you mean 'number'"),
        ({"prompt": "no place"}, "expected {question}"),
        ({"fields": {"questoin": "question"}}, "unknown role 'questoin' .did you mean 'question'"),
        ({"fields": {"question": "qestion"}}, "no column 'qestion' .did you mean 'question'"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        load_task(ROWS, **settings)


def test_prompt_of_options_needs_their_place():
    with pytest.raises(ConfigError, match=r"expected {choices}"):
        load_task([COLOURS], prompt="{question}")
    item = load_task([COLOURS], prompt="{choices}\n{question} {other}").items[0]
    assert item.view.messages[0].content == "A. red\nB. blue\nWhich is warm? {other}"


@pytest.mark.parametrize("form", ["\\boxed{}", "<answer></answer>", "#### "])
def test_self_test_uses_the_form_that_the_prompt_asks_for(form):
    assert len(load_task(ROWS, prompt="{question} Give it as " + form)) == 20


def test_template_words_inside_a_question_stay():
    item = load_task([{"question": "Is {choices} a set?", "answer": "yes"}], prompt="{question}!").items[0]
    assert item.view.messages[0].content == "Is {choices} a set?!"


def test_empty_task_and_small_leftovers_are_errors():
    with pytest.raises(DataError, match=r"0 distinct items"):
        load_task([])
    with pytest.raises(DataError, match=r"20 items are too few for task.limit 20 and task.dev.limit 5"):
        load_task(ROWS, limit=20, dev={"limit": 5})
    with pytest.raises(DataError, match=r"has no items"):
        Task("none", ())


def test_short_sets_are_noted():
    assert load_task(ROWS, limit=50).notes == {"short_of_limit": 30}
    assert load_task(ROWS, limit=18, dev={"limit": 9}).notes == {"dev_short_of_limit": 7}


def test_broken_lines_are_named(write, tmp_path):
    with pytest.raises(DataError, match=r"data.jsonl line 2: expected one JSON object a line"):
        load_task(write([ROWS[0], '{"question": "cut', ROWS[1]]), base=tmp_path)
    with pytest.raises(DataError, match=r"line 1: expected a JSON object, got list"):
        load_task(write(["[1]"]), base=tmp_path)


def test_missing_file_and_unknown_source_are_one_clear_message(tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*none.jsonl: No such file"):
        load_task("jsonl:none.jsonl", base=tmp_path)
    with pytest.raises(ConfigError, match=r"expected jsonl:.*did you mean 'jsonl'"):
        load_task("jsonlines:data.jsonl")
    with pytest.raises(ConfigError, match=r"task.source"):
        load_task("data.jsonl")
    with pytest.raises(ConfigError, match=r"takes no options"):
        load_task("jsonl:data.jsonl", options={"a": 1})


def test_unknown_split_names_those_there_are():
    with pytest.raises(ConfigError, match=r"no split 'tests' .did you mean 'test'"):
        load_task([{**row, "split": "test"} for row in ROWS], split="tests")


def test_columns_without_usual_names_are_given_by_fields():
    rows = [{"text": "2 + 2?", "value": 4}]
    with pytest.raises(DataError, match=r"no column for question and gold; it has text, value"):
        load_task(rows)
    assert load_task(rows, fields={"question": "text", "answer": "value"}).items[0].gold == "4"


def test_worked_solutions_give_their_marked_result():
    assert load_task([{"question": "q?", "answer": "6 * 7 = 42\n#### 42"}]).items[0].gold == "42"


def test_floor_is_zero_or_the_blind_guess():
    zero, chance = (load_task([COLOURS], floor=floor) for floor in ("zero", "chance"))
    assert zero.items[0].floor == 0.0
    assert chance.items[0].floor == chance.chance == 0.5
    assert zero.identity != chance.identity
    assert load_task(ROWS, floor="chance").items[0].floor == 0.0


def test_golds_of_choice_tasks_are_counted():
    rows = [{**COLOURS, "question": f"{n}?", "answer": answer} for n, answer in enumerate(["red", "red", "blue"])]
    assert load_task(rows).golds == {"A": 2, "B": 1}
    assert load_task(ROWS).golds == {}


def test_items_have_ids_of_their_content():
    a, b = make_item("q?", "1"), make_item("q?", "1")
    assert a.id == b.id
    assert len({make_item("q?", "2").id, make_item("r?", "1").id, a.id}) == 3
    assert make_item("q?", "A", choices=["x", "y"]).id != make_item("q?", "A", choices=["x", "z"]).id


def test_item_that_cannot_be_scored_is_refused():
    with pytest.raises(DataError, match=r"unscorable_gold"):
        make_item("q?", "many words", kind="number")


def test_questions_that_differ_in_signs_or_pictures_are_different():
    assert question_key("What is 3 + 4?") != question_key("What is 3 - 4?")
    assert question_key("❌✅") != question_key("✅❌")
    assert question_key("10²") != question_key("102")
    assert question_key("  what IS １？ ") == question_key('"What is 1"')


def test_difficulty_and_topic_come_from_the_row():
    row = {**ROWS[0], "difficulty": 1.5, "domain": "sums"}
    assert load_task([row]).items[0].difficulty == 1.5
    del row["topic"]
    assert load_task([row]).items[0].topic == "sums"
    assert load_task([ROWS[0]]).items[0].difficulty is None


def test_a_home_folder_of_nobody_is_named_as_one_that_cannot_be_found():
    with pytest.raises(
        ConfigError, match=r"'~nobody-here/items\.jsonl' begins with a home folder that cannot be found"
    ):
        load_task("jsonl:~nobody-here/items.jsonl")
