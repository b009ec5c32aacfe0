"""The matrix of a comparison, how its results are summed up, and a whole one with a simulated pool around a tiny model."""

import gc
import json
import weakref
from types import SimpleNamespace

import pytest
from collabsim.trainers.compare.comparison import compare, picture, sum_up
from collabsim.trainers.compare.matrix import Cell, read_matrix
from collabsim.trainers.setup import PreparedTraining

from collabsim import GenerationStore
from collabsim.errors import ConfigError

ARMS = ("system", "individual")


def matrix_of(settings, seeds=(0, 1, 2)):
    cells = tuple(Cell(*setting, arm, seed) for seed in seeds for setting in settings for arm in ARMS)
    names = list(dict.fromkeys(cell.setting for cell in cells))
    return SimpleNamespace(cells=cells, objectives=ARMS, settings=names, seeds=seeds)


def results_of(matrix, gain):
    """Results in which an arm turns a share `gain(cell)` of 100 items from wrong to right."""
    made = {}
    for cell in matrix.cells:
        right = round(100 * gain(cell))
        made[cell] = {
            "per_item": {"before": [0.0] * 100, "after": [1.0] * right + [0.0] * (100 - right)},
            "cost": {"learner_tokens": 10, "partner_tokens": 5},
        }
    return made


def test_the_arm_that_gains_far_more_wins_by_mean_and_by_interval():
    matrix = matrix_of([("router", "sums")])
    values = sum_up(matrix, results_of(matrix, lambda cell: 0.6 if cell.objective == "system" else 0.2))
    (setting,) = values["settings"]
    assert setting["gain"]["system"]["value"] == pytest.approx(0.6)
    assert setting["difference"]["system - individual"]["ci95"][0] > 0.2
    assert (setting["highest"], setting["winner"]) == (["system"], "system")
    assert values["wins"] == {"system": {"point": 1, "interval": 1}, "individual": {"point": 0, "interval": 0}}
    assert values["ratio"]["system / individual"]["value"] == pytest.approx(3.0)
    assert values["tokens"]["system"] == {"learner": 30, "partner": 15}


def test_a_small_lead_is_the_highest_mean_and_no_win():
    matrix = matrix_of([("vote", "sums")])
    lead = {0: 0.1, 1: -0.06, 2: 0.02}
    gains = results_of(matrix, lambda cell: 0.4 + (lead[cell.seed] if cell.objective == "system" else 0))
    (setting,) = sum_up(matrix, gains)["settings"]
    assert (setting["highest"], setting["winner"]) == (["system"], None)


def test_equal_arms_are_both_the_highest_and_nobody_wins():
    matrix = matrix_of([("vote", "sums")])
    (setting,) = sum_up(matrix, results_of(matrix, lambda cell: 0.3))["settings"]
    assert (setting["highest"], setting["winner"]) == (list(ARMS), None)


def test_a_ratio_to_a_gain_that_may_be_zero_has_no_interval():
    matrix = matrix_of([("vote", "sums")])
    values = sum_up(matrix, results_of(matrix, lambda cell: 0.5 if cell.objective == "system" else 0.0))
    assert values["ratio"]["system / individual"] == {"value": None, "ci95": None}


def test_a_difference_between_seeds_widens_the_interval():
    matrix = matrix_of([("vote", "sums")])
    steady = sum_up(matrix, results_of(matrix, lambda cell: 0.4))["settings"][0]["gain"]["system"]["ci95"]
    unsteady = sum_up(matrix, results_of(matrix, lambda cell: (0.1, 0.4, 0.7)[cell.seed]))
    low, high = unsteady["settings"][0]["gain"]["system"]["ci95"]
    assert high - low > 1.5 * (steady[1] - steady[0])


def test_the_mean_gain_is_over_settings():
    matrix = matrix_of([("vote", "sums"), ("router", "sums")])
    values = sum_up(matrix, results_of(matrix, lambda cell: 0.2 if cell.protocol == "vote" else 0.6))
    assert values["mean_gain"]["system"]["value"] == pytest.approx(0.4)
    assert [setting["name"] for setting in values["settings"]] == ["vote · sums", "router · sums"]


def test_the_picture_is_an_svg_of_the_table():
    matrix = matrix_of([("vote", "sums")])
    drawn = picture(sum_up(matrix, results_of(matrix, lambda cell: 0.3)))
    assert drawn.startswith("<svg")
    assert "vote" in drawn


CONFIG = {
    "pool": {"a": {"model": "simulated:"}, "b": {"model": "simulated:"}},
    "protocol": {"name": "majority_vote"},
    "task": {"source": "reasoning_gym:chain_sum", "limit": 4},
    "train": {"seat": "a", "steps": 2},
    "compare": {
        "objectives": ["system", "sft"],
        "protocols": {"vote": {}, "talk": {"protocol": {"name": "debate", "rounds": 2}, "train": {"seat": "b"}}},
        "tasks": {"sums": {}, "longer": {"task": {"options": {"min_terms": 3}}}},
        "seeds": [0, 5],
    },
}


def written(tmp_path, **changes):
    path = tmp_path / "compare.yaml"
    path.write_text(json.dumps({**CONFIG, **changes}))
    return path


def test_each_cell_is_the_config_with_its_variants_laid_over(tmp_path):
    matrix = read_matrix(written(tmp_path))
    assert len(matrix.cells) == 16
    cell = Cell("talk", "longer", "sft", 5)
    config = matrix.configs[cell]
    assert (config.protocol.name, config.protocol.options) == ("debate", {"rounds": 2})
    assert config.train == {"seat": "b", "steps": 2, "objective": "sft", "seed": 5}
    assert config.task.options == {"min_terms": 3}
    assert config.task.limit == 4
    plain = matrix.configs[Cell("vote", "sums", "system", 0)]
    assert (plain.protocol.name, plain.task.options, plain.train["seat"]) == ("majority_vote", {}, "a")


def test_every_setting_is_there_before_the_second_seed_begins(tmp_path):
    cells = read_matrix(written(tmp_path)).cells
    assert [cell.seed for cell in cells] == [0] * 8 + [5] * 8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"compare": None}, "expected a section `compare:`"),
        ({"compare": {"objectives": ["system"], "protocols": {"v": {}}, "tasks": {}}}, r"compare\.tasks"),
        ({"compare": {**CONFIG["compare"], "objectives": ["sistem"]}}, "unknown objective 'sistem'"),
        ({"compare": {**CONFIG["compare"], "tasks": {"a/b": {}}}}, "names a folder"),
        ({"compare": {**CONFIG["compare"], "rates": [1e-4]}}, "rates are chosen on dev; expected task.dev"),
        ({"compare": {**CONFIG["compare"], "tasks": {"t": {"task": {"limt": 3}}}}}, "did you mean 'limit'"),
        ({"compare": {**CONFIG["compare"], "seedz": [1]}}, r"unknown key 'compare\.seedz' \(did you mean 'seeds'\?\)"),
        ({"compare": {**CONFIG["compare"], "seeds": []}}, r"compare\.seeds: List should have at least 1 item"),
    ],
)
def test_a_matrix_that_cannot_be_meant_is_refused_before_anything_runs(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        read_matrix(written(tmp_path, **changes))


def test_a_variant_may_name_a_protocol_or_a_data_set_in_one_word(tmp_path):
    compare = {**CONFIG["compare"], "protocols": {"talk": {"protocol": "debate"}}, "tasks": {"more": {"task": "gsm8k"}}}
    configs = read_matrix(written(tmp_path, protocol={"name": "self_consistent_mux"}, compare=compare)).configs.values()
    assert {(config.protocol.name, config.task.source) for config in configs} == {("debate", "gsm8k")}


@pytest.fixture
def trainings(monkeypatch):
    """Every training that a comparison asks for; on dev 2e-4 is best for `system` in `talk`, 1e-4 for all else."""
    asked = []

    def train(system, task, items, config, *, out, **_):
        asked.append((out.name, config.lr, config.eval.test))
        best = 2e-4 if config.objective == "system" and config.seat == "b" else 1e-4
        right = [float(config.lr == best)] * len(task)
        cost = {"learner_tokens": 1, "partner_tokens": 1}
        values = {"chosen": {"dev": right[0]}, "cost": cost, "per_item": {"before": [0.0] * len(task), "after": right}}
        out.mkdir(parents=True)
        (out / "result.json").write_text(json.dumps(values))
        return SimpleNamespace(values=values)

    monkeypatch.setattr("collabsim.trainers.setup.train", train)
    return asked


def with_rates(tmp_path):
    task = {**CONFIG["task"], "dev": {"limit": 2}}
    changes = {"task": task, "compare": {**CONFIG["compare"], "rates": [2e-4, 1e-4]}, "out": str(tmp_path / "out")}
    return read_matrix(written(tmp_path, **changes))


def test_each_objective_trains_at_the_rate_that_is_best_for_it_on_dev_in_its_protocol(tmp_path, trainings):
    values = compare(with_rates(tmp_path), GenerationStore())
    assert values["rates"] == {"vote": {"system": 1e-4, "sft": 1e-4}, "talk": {"system": 2e-4, "sft": 1e-4}}
    assert all(gain["value"] == 1.0 for gain in values["mean_gain"].values())
    assert "learning rates chosen on dev, talk: system 0.0002" in picture(values).replace("\xa0", " ").replace(
        "&#160;", " "
    )


def test_rates_are_tried_without_a_look_at_test_and_a_second_call_trains_nothing(tmp_path, trainings):
    compare(with_rates(tmp_path), GenerationStore())
    tried = [one for one in trainings if not one[2]]
    assert len(tried) == 2 * 2 * 2
    assert all("sums" in name and name.split("-")[3] == "0" for name, _, _ in tried)
    assert len(trainings) == len(tried) + 16
    trainings.clear()
    compare(with_rates(tmp_path), GenerationStore())
    assert trainings == []


class Circle:
    """Stands for a policy and its model, which refer to each other."""

    def __init__(self):
        self.own = self


@pytest.mark.usefixtures("trainings")
def test_what_a_training_held_is_freed_before_the_next_begins(tmp_path, monkeypatch):
    held, alive = [], []
    run = PreparedTraining.run

    def run_with_a_circle(self, *arguments, **settings):
        alive.append(sum(one() is not None for one in held))
        held.append(weakref.ref(Circle()))
        return run(self, *arguments, **settings)

    monkeypatch.setattr(PreparedTraining, "run", run_with_a_circle)
    gc.disable()
    try:
        compare(with_rates(tmp_path), GenerationStore())
    finally:
        gc.enable()
    assert len(alive) > 2
    assert max(alive) == 0
