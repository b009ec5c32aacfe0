import os
import subprocess
import sys

import pytest

from collabsim.errors import ConfigError, DataError
from collabsim.tasks import list_tasks, load_task
from collabsim.tasks.generators import DRAWN_APART

SUMS = {"min_terms": 2, "max_terms": 2, "max_digits": 1}


def ids(task):
    return [item.id for item in task.items], [item.id for item in task.dev]


def test_a_seed_means_the_same_items():
    settings = {"options": SUMS, "limit": 20, "dev": {"limit": 10, "seed": 2}}
    assert ids(load_task("reasoning_gym:chain_sum", seed=1, **settings)) == ids(
        load_task("reasoning_gym:chain_sum", seed=1, **settings)
    )
    assert ids(load_task("reasoning_gym:chain_sum", seed=2, **settings)) != ids(
        load_task("reasoning_gym:chain_sum", seed=1, **settings)
    )


def test_plain_number_golds_make_number_items():
    task = load_task("reasoning_gym:chain_sum", options=SUMS, limit=5)
    assert task.kind == "number"
    item = task.items[0]
    assert item.score(f"Answer: {item.gold}.0").score == 1.0
    assert item.topic == "arithmetic"
    assert item.extra["num_terms"] == 2


def test_splits_and_dev_do_not_share_questions():
    task = load_task("reasoning_gym:chain_sum", options=SUMS, limit=60, dev={"limit": 60, "seed": 0})
    questions = [item.question for item in (*task.items, *task.dev)]
    assert len(set(questions)) == 120
    assert task.notes["repeated_question"] > 0


def test_small_generator_says_how_many_questions_it_has():
    options = {"min_terms": 1, "max_terms": 1, "max_digits": 1}
    assert len(load_task("reasoning_gym:chain_sum", options=options, limit=10)) == 10
    with pytest.raises(DataError, match=r"10 distinct items for split 'test' of the 11 asked for.*ask for fewer"):
        load_task("reasoning_gym:chain_sum", options=options, limit=11)
    with pytest.raises(DataError, match=r"2 distinct items for task.dev of the 5 asked for"):
        load_task("reasoning_gym:chain_sum", options=options, limit=8, dev={"limit": 5})


def test_unknown_names_and_options_name_the_nearest():
    with pytest.raises(ConfigError, match=r"no generator 'chain_sun' .did you mean 'chain_sum'"):
        load_task("reasoning_gym:chain_sun")
    with pytest.raises(ConfigError, match=r"no option 'min_term' .did you mean 'min_terms'"):
        load_task("reasoning_gym:chain_sum", options={"min_term": 2})
    with pytest.raises(ConfigError, match=r"refuses .*min_terms must be positive"):
        load_task("reasoning_gym:chain_sum", options={"min_terms": 0})


@pytest.mark.parametrize(("option", "setting"), [("seed", "task.seed"), ("size", "task.limit")])
def test_seed_and_size_are_settings_of_the_task(option, setting):
    with pytest.raises(ConfigError, match=setting):
        load_task("reasoning_gym:chain_sum", options={option: 3})


def test_tolerant_verifiers_stay_in_charge_of_numbers():
    assert load_task("reasoning_gym:decimal_arithmetic", limit=5).kind == "verifier"
    assert load_task("reasoning_gym:fraction_simplification", limit=5).kind == "verifier"


def test_kind_can_be_chosen():
    assert load_task("reasoning_gym:chain_sum", options=SUMS, limit=3, kind="verifier").kind == "verifier"
    assert load_task("reasoning_gym:chain_sum", options=SUMS, limit=3, kind="exact").kind == "exact"
    with pytest.raises(ConfigError, match=r"expected number, exact or verifier"):
        load_task("reasoning_gym:chain_sum", kind="choice")


def test_filter_uses_the_generators_metadata():
    task = load_task("reasoning_gym:chain_sum", limit=5, filter={"num_terms": [3]})
    assert {item.extra["num_terms"] for item in task.items} == {3}


def test_answers_of_several_lines_are_read():
    task = load_task("reasoning_gym:rotate_matrix", limit=5)
    for item in task.items:
        assert item.score(f"I turn it.\n\nAnswer:\n{item.gold_text}\n\nDone.").score == 1.0


def test_example_answers_stand_in_where_several_are_right():
    item = load_task("reasoning_gym:graph_color", limit=2).items[0]
    assert item.score(f"Answer: {item.gold_text}").score == 1.0
    assert item.score("Answer: {}").score == 0.0


def test_generator_without_right_answers_is_refused():
    with pytest.raises(DataError, match=r"tells no right answer"):
        load_task("reasoning_gym:rush_hour", limit=2)


def test_generator_that_runs_model_written_code_is_refused():
    with pytest.raises(ConfigError, match=r"not offered.*model wrote"):
        load_task("reasoning_gym:codeio", limit=2)


def test_fields_have_no_meaning_for_generators():
    with pytest.raises(ConfigError, match=r"task\.fields"):
        load_task("reasoning_gym:chain_sum", fields={"question": "q"})


@pytest.mark.slow
def test_hash_dependent_generator_gives_the_same_items_in_every_process():
    program = "from collabsim.tasks import load_task; print(load_task('reasoning_gym:ransom_note', limit=6).identity)"
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


@pytest.mark.slow
def test_every_generator_is_determined_by_its_seed():
    program = """
import hashlib, sys
from collabsim.tasks.generators import DRAWN_APART, REFUSED, draw, generator_names
for name in generator_names():
    if name in DRAWN_APART or name in REFUSED or name == "composite":
        continue
    rows = [row for _, row in zip(range(4), draw(name, {}, [7]))]
    print(name, hashlib.sha256(repr(rows).encode()).hexdigest())
"""
    told = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for seed in ("1", "2")
    ]
    assert len(told[0]) > 90
    assert [a for a, b in zip(*told, strict=True) if a != b] == []


def test_catalogue_lists_generators_without_drawing():
    rows = {row.source: row for row in list_tasks()}
    assert rows["reasoning_gym:chain_sum"].topic == "arithmetic"
    assert rows["reasoning_gym:chain_sum"].ready
    assert not rows["reasoning_gym:codeio"].ready
    assert {f"reasoning_gym:{name}" for name in DRAWN_APART} <= set(rows)
