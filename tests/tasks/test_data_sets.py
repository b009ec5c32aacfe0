"""The data sets that are known by name, read from the real files of an installed MoCo."""

import os
from collections import Counter

import pytest

from collabsim.errors import ConfigError
from collabsim.tasks import load_task
from collabsim.tasks.data_sets import DATA_SETS, refuse_nested
from collabsim.tasks.moco import moco_folder
from collabsim.tasks.overlap import shared

ALL = {"limit": 10**6}

MEASURED = {
    # name: (test, dev, kinds of test items, what was mended or left out); PEERS and plain counts over the raw files agree
    "gsm8k": (1000, 200, {"number": 1000}, {}),
    "math": (951, 948, {"expression": 951}, {"null_gold": 5, "dev_null_gold": 7, "dev_unscorable_gold": 1}),
    "bbh": (
        998,
        953,
        {"choice": 638, "exact": 290, "number": 70},
        {
            "dev_overlap": 44,
            "dev_conflicting_golds": 1,
            "dev_repeated_question": 1,
            "dev_unreadable_options": 1,
            "repeated_question": 1,
            "unreachable_gold": 1,
        },
    ),
    "theoremqa": (
        380,
        382,
        {"expression": 218, "number": 89, "exact": 63, "choice": 10},
        {"needs_picture": 20, "dev_needs_picture": 18},
    ),
    "mmlu_redux": (
        999,
        991,
        {"choice": 999},
        {"dev_overlap": 9, "duplicate_options": 2, "repeated_question": 1},
    ),
    "medmcqa": (
        2090,
        2086,
        {"choice": 2090},
        {
            "dev_overlap": 5,
            "duplicate_options": 2,
            "dev_duplicate_options": 2,
            "conflicting_golds": 1,
            "repeated_question": 1,
        },
    ),
    "popqa": (
        988,
        964,
        {"text": 988},
        {
            "dev_overlap": 23,
            "conflicting_golds": 5,
            "dev_conflicting_golds": 5,
            "repeated_question": 7,
            "dev_repeated_question": 8,
        },
    ),
    "truthfulqa": (617, 200, {"choice": 617}, {}),
    "humaneval": (114, 50, {"code": 114}, {"untested_program": 164}),
    "mbpp": (484, 487, {"code": 484}, {"no_tests": 2, "repeated_question": 1, "untested_program": 971}),
    "gpqa_main": (224, 224, {"choice": 224}, {"duplicate_options": 1}),
    "chembench": (500, 473, {"choice": 500}, {"dev_overlap": 25}),
    "lab_bench": (
        576,
        532,
        {"choice": 576},
        {"dev_overlap": 46, "dev_duplicate_options": 1, "repeated_question": 2},
    ),
    "arc_challenge": (
        1172,
        297,
        {"choice": 1172},
        {"dev_overlap": 2, "relabelled_options": 22, "dev_relabelled_options": 4},
    ),
}


def need_modelco():
    if moco_folder() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("modelco is not installed; CI needs it: pip install --no-deps modelco")
        pytest.skip("modelco is not installed")


@pytest.fixture(scope="module")
def loaded():
    """Each set with all of both splits, loaded once."""
    need_modelco()
    tasks = {}

    def load(name):
        if name not in tasks:
            tasks[name] = load_task(name, dev=ALL)
        return tasks[name]

    return load


@pytest.mark.parametrize("name", MEASURED)
def test_a_set_has_its_items_kinds_and_counted_repairs(loaded, name):
    task = loaded(name)
    test, dev, kinds, repairs = MEASURED[name]
    notes = {note: count for note, count in task.notes.items() if not note.endswith("short_of_limit")}
    assert (len(task), len(task.dev)) == (test, dev)
    assert Counter(item.view.kind for item in task.items) == kinds
    assert notes == repairs


@pytest.mark.parametrize("name", MEASURED)
def test_no_dev_item_asks_a_question_of_the_test_split(loaded, name):
    task = loaded(name)
    assert shared(task.dev, task.items) == ()
    assert not {item.id for item in task.dev} & {item.id for item in task.items}


@pytest.mark.parametrize("name", [name for name in MEASURED if name not in ("humaneval", "mbpp")])
def test_golds_in_the_asked_form_are_right_and_an_empty_reply_is_not(loaded, name):
    task = loaded(name)
    prompt = DATA_SETS[name].prompt
    for item in (*task.items[:40], *task.dev[:10]):
        assert item.score(item.scorer.asked_form(item.gold_text, prompt)).score == 1.0
        assert item.score("").verdict == "unparsed"


@pytest.mark.parametrize("name", MEASURED)
def test_golds_and_tests_are_not_in_the_prompt_s_own_words(loaded, name):
    item = loaded(name).items[0]
    (message,) = item.view.messages
    assert message.content.startswith(item.question.strip()[:50])
    assert (
        "<answer>" in message.content
        or "<" in message.content
        or "\\boxed" in message.content
        or "`" in message.content
    )


def test_there_are_fourteen_sets_of_four_areas_and_no_two_of_one_family():
    areas = Counter(DATA_SETS[name].area for name in MEASURED)
    assert areas == {"reasoning": 4, "knowledge": 4, "coding": 2, "science": 4}
    refuse_nested(MEASURED)


def test_aliases_stay_a_list(loaded):
    item = next(item for item in loaded("popqa").items if "capital of Var?" in item.question)
    assert item.gold == ("Toulon", "Port-la-Montagne", "Tolon")
    assert item.score("Answer: tolon").score == 1.0


def test_options_of_arc_that_are_numbered_can_be_answered_both_ways(loaded):
    numbered = (item for item in loaded("arc_challenge").items if set(item.extra["choices"]) == {"1", "2", "3", "4"})
    item = next(item for item in numbered if not any(map(str.isdigit, "".join(item.view.choices.values()))))
    place = "ABCD".index(item.gold) + 1
    assert item.score(f"Answer: {item.gold}").score == 1.0
    assert item.score(f"Answer: {place}").score == 1.0


def test_lettered_options_of_bbh_are_real_options_and_labels_are_words(loaded):
    kinds = {item.topic: item for item in loaded("bbh").items}
    assert kinds["hyperbaton"].view.choices.keys() == {"A", "B"}
    assert kinds["hyperbaton"].chance == 0.5
    assert (kinds["navigate"].view.kind, kinds["navigate"].chance) == ("exact", 0.5)
    assert (kinds["dyck_languages"].view.kind, kinds["dyck_languages"].chance) == ("exact", 0.0)
    assert kinds["object_counting"].view.kind == "number"


def test_rounded_golds_of_theoremqa_take_what_rounds_to_them(loaded):
    item = next(item for item in loaded("theoremqa").dev + loaded("theoremqa").items if item.gold == "0.36787944")
    assert item.score("Answer: 0.368").score == 1.0
    assert item.score("Answer: $e^{-1}$").score == 1.0
    assert item.score("Answer: 0.4").score == 0.0


def test_options_in_a_sentence_of_theoremqa_are_taken_out_of_it(loaded):
    items = (*loaded("theoremqa").items, *loaded("theoremqa").dev)
    item = next(
        item for item in items if "HSI representations are given as follows: which color is brighter" in item.question
    )
    assert item.view.choices == {"A": "$(pi, 0.3,0.5)$", "B": "$(0.5 pi, 0.8,0.3)$"}


def test_programs_bring_tests_entry_point_and_what_stands_before(loaded):
    item = next(
        item for item in loaded("humaneval").items + loaded("humaneval").dev if "def find_zero" in item.question
    )
    assert item.extra["entry_point"] == "find_zero"
    assert "def poly" in item.extra["prompt"]
    assert "def check(candidate)" in item.extra["tests"]
    built_in = next(item for item in loaded("mbpp").items + loaded("mbpp").dev if "assert sum(10,15)" in item.question)
    assert built_in.extra["entry_point"] == "sum"


def test_options_of_truthfulqa_are_shuffled_unless_told_otherwise(loaded):
    as_filed = load_task("truthfulqa", shuffle_options=False)
    shuffled = {item.question: item for item in loaded("truthfulqa").items}
    moved = [item for item in as_filed.items if shuffled[item.question].view.choices != item.view.choices]
    assert len(moved) > len(as_filed) / 2
    for item in as_filed.items[:50]:
        other = shuffled[item.question]
        assert other.view.choices[other.gold] == item.view.choices[item.gold]
        assert sorted(other.view.choices.values()) == sorted(item.view.choices.values())


def test_gpqa_sets_hold_the_same_items_and_are_refused_together(loaded):
    need_modelco()
    diamond = load_task("gpqa_diamond")
    assert len(shared(diamond.items, loaded("gpqa_main").dev)) == 50
    with pytest.raises(ConfigError, match=r"gpqa_main and moco:gpqa_diamond hold the same items.*use one"):
        refuse_nested(["gsm8k", "gpqa_main", "moco:gpqa_diamond"])


def test_a_bare_name_and_its_moco_file_are_one_task(loaded):
    assert load_task("moco:gsm8k", limit=30).identity == load_task("gsm8k", limit=30).identity
