"""Files that an earlier version left behind go on: stores, run folders, trainings, and every identity they depend on.

`tests/before` was made by the code before its modules were rearranged; `before/make.py` says how. Each test works on a copy
of it, as the current folder, through the command line.
"""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
import sys
from contextlib import closing
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest
from before.identities import generated, identities
from engines import requires

pytestmark = requires("torch", "transformers", "tokenizers", "safetensors", "peft")

BEFORE = Path(__file__).parent / "before"
EXAMPLES = Path(__file__).parents[1] / "examples"
MANIFEST = json.loads((BEFORE / "MANIFEST.json").read_text(encoding="utf-8"))
SWEEPS = ("debate", "cascade", "trained_router", "chain", "notes", "fusion", "soup")
FITTED = ("cascade", "trained_router")
HALF = ("debate", "cascade")
TRAININGS = ("train", "train_lora")
ROUNDING = {"rel_tol": 1e-4, "abs_tol": 1e-5}
"""For numbers that are computed from logits. Weights are the same to the last bit on one processor; which calls share a
batch, and another processor, change the order of float32 sums. Seen with other kernels (SSE, two threads) in place of AVX2:
1e-6 of a metric, 3e-7 of a weight, where updates were 7e-4 and 1e-2. Outcomes, counts and tokens are compared exactly: a
sampled token changes only where its random number falls into such a gap, once in some hundred thousand tokens."""
WEIGHT_ROUNDING = 1e-5


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A copy of the files, as the current folder, with a cache of its own."""
    copy = tmp_path / "before"
    shutil.copytree(BEFORE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(copy)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLLABSIM_STORE", str(tmp_path / "nobody-asks-this-store.sqlite"))
    return copy


@pytest.fixture
def collabsim(monkeypatch, capsys):
    """The installed command, run here; returns the JSON that it printed."""
    (script,) = entry_points(group="console_scripts", name="collabsim")
    main = script.load()

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["collabsim", *map(str, args), "--json"])
        monkeypatch.setattr(sys, "path", list(sys.path))
        capsys.readouterr()
        code = None
        try:
            main()
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        assert not code, said.err
        return json.loads(said.out)

    return run


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def rows(path, query):
    with closing(sqlite3.connect(path)) as file:
        return file.execute(query).fetchall()


def keys(store):
    return {key for (key,) in rows(store, "SELECT key FROM generations")}


def runs(folder):
    """Every recorded run by what it is a run of."""
    found = rows(folder / "outcomes.sqlite", "SELECT * FROM run")
    return {row[:4]: row[4:] for row in found}


def schema(path):
    """Kind, version and tables of a SQLite file."""
    tables = rows(path, "SELECT type, name, sql FROM sqlite_master ORDER BY name")
    return rows(path, "PRAGMA application_id"), rows(path, "PRAGMA user_version"), tables


def results(values):
    """What a sweep found, without what it took."""
    return {key: value for key, value in values.items() if key != "cost"}


def without_time(values):
    return {**values, "cost": {**values["cost"], "seconds": None}}


def differing(one, other, at=""):
    """Where two JSON values differ by more than the rounding of floats."""
    if isinstance(one, dict) and isinstance(other, dict):
        every = one.keys() | other.keys()
        return [place for key in every for place in differing(one.get(key), other.get(key), f"{at}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [place for number, pair in pairs for place in differing(*pair, f"{at}.{number}")]
    if isinstance(one, float) and isinstance(other, float) and math.isclose(one, other, **ROUNDING):
        return []
    return [] if type(one) is type(other) and one == other else [f"{at}: {one!r}, was {other!r}"]


# ---- sweeps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SWEEPS)
def test_a_store_of_before_answers_a_whole_sweep(place, collabsim, name):
    kept, old = keys(place / "store.sqlite"), place / "finished" / name
    values = collabsim("sweep", f"{name}.yaml", "--store", "store.sqlite", "--out", "new")
    assert values["cost"]["generated"] == 0
    assert values["cost"]["calls"] == read(old / "values.json")["cost"]["calls"] > 0
    assert keys(place / "store.sqlite") == kept
    assert results(values) == results(read(old / "values.json"))
    assert {file.name for file in (place / "new").iterdir()} == {file.name for file in old.iterdir()}
    assert schema(place / "new" / "outcomes.sqlite") == schema(old / "outcomes.sqlite")
    assert read(place / "new" / "run.json")["identity"] == read(old / "run.json")["identity"]
    assert read(place / "new" / "run.json").keys() == read(old / "run.json").keys()
    if name in FITTED:
        # The classifier of `trained_router` is fitted in floats; what is kept of it may differ in rounding.
        assert differing(read(place / "new" / "fitted.json"), read(old / "fitted.json")) == []


@pytest.mark.parametrize("name", SWEEPS)
def test_a_finished_run_folder_of_before_is_finished(place, collabsim, name):
    folder = place / "finished" / name
    before = {file: (BEFORE / "finished" / name / file).read_bytes() for file in ("values.json", "run.json")}
    fitted, recorded = (folder / "fitted.json").exists() and (folder / "fitted.json").read_bytes(), runs(folder)
    values = collabsim("sweep", f"{name}.yaml", "--store", "empty.sqlite", "--out", folder)
    assert keys(place / "empty.sqlite") == set()
    assert schema(place / "empty.sqlite") == schema(place / "store.sqlite")
    assert without_time(values) == without_time(json.loads(before["values.json"]))
    assert runs(folder) == recorded
    assert ((folder / "fitted.json").exists() and (folder / "fitted.json").read_bytes()) == fitted
    for key in ("identity", "started"):
        assert read(folder / "run.json")[key] == json.loads(before["run.json"])[key]
    assert collabsim("report", folder) == values


@pytest.mark.parametrize("store", ["store.sqlite", "empty.sqlite"])
@pytest.mark.parametrize("name", HALF)
def test_a_killed_sweep_of_before_makes_only_the_runs_that_are_missing(place, collabsim, name, store):
    folder, whole = place / "half" / name, read(place / "finished" / name / "values.json")
    recorded, every = runs(folder), runs(place / "finished" / name).keys()
    made = rows(folder / "outcomes.sqlite", "SELECT key FROM generation WHERE made")
    assert recorded.keys() < every
    assert not (folder / "values.json").exists()
    values = collabsim("sweep", f"{name}.yaml", "--store", store, "--out", folder)
    assert results(values) == results(whole)
    now = runs(folder)
    assert now.keys() == every
    assert {key: now[key] for key in recorded} == recorded
    if store == "store.sqlite":
        assert values["cost"]["generated"] == len(made)
    else:
        # What the fit on dev asked of models is in no run folder, only in the store.
        assert without_time(values) == without_time(whole)


# ---- trainings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRAININGS)
def test_a_killed_training_of_before_goes_on_to_the_same_result(place, collabsim, name):
    from safetensors.numpy import load_file

    folder, expected = place / "training" / name, place / "expected" / name
    kept = read(folder / "checkpoints" / "index.json")
    assert (kept["last"], (folder / "result.json").exists()) == ("step-000002", False)
    result = collabsim("train", f"{name}.yaml", "--resume", "--store", "training.sqlite", "--out", folder)
    assert result == read(folder / "result.json")
    timeless = [without_time(values) for values in (result, read(expected / "result.json"))]
    assert differing(*timeless) == []
    assert timeless[0]["per_item"] == timeless[1]["per_item"]
    lines, whole = (
        [{**json.loads(line), "seconds": None} for line in (path / "metrics.jsonl").read_text().splitlines()]
        for path in (folder, expected)
    )
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert differing(lines, whole) == []
    last = read(folder / "checkpoints" / "index.json")["last"]
    weights, old = (load_file(p / "weights.safetensors") for p in (folder / "checkpoints" / last, expected))
    assert weights.keys() == old.keys()
    assert max(abs(weights[name] - old[name]).max() for name in old) < WEIGHT_ROUNDING
    assert collabsim("train", f"{name}.yaml", "--store", "empty.sqlite", "--out", folder) == result


# ---- identities ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    copy = tmp_path_factory.mktemp("identities") / "before"
    shutil.copytree(BEFORE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(copy)
        for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL"):
            patched.delenv(name, raising=False)
        patched.setattr(sys, "path", list(sys.path))
        yield {"identities": json.loads(json.dumps(identities(EXAMPLES))), "generated": generated(EXAMPLES)}


@pytest.mark.parametrize("kind", MANIFEST["identities"])
def test_identities_are_those_of_before(found, kind):
    assert found["identities"][kind] == MANIFEST["identities"][kind]


def test_generated_tasks_are_those_of_before(found):
    if MANIFEST["generated"]["reasoning_gym"] != version("reasoning-gym"):
        pytest.skip("another version of reasoning-gym makes other questions")
    assert found["generated"] == MANIFEST["generated"]
