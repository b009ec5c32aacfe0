"""A run folder: made late, resumed by the same run only, and never left with half a file."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import no_file_above

from collabsim.errors import ConfigError, StoreError
from collabsim.run_folder import RUN_FILE, RunFolder, differing_keys, read_json, write_json

IDENTITY = {"pool": {"a": {"skill": 1.0}}, "seed": 0}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "one"


def opened(path, identity=IDENTITY):
    folder = RunFolder(path, identity)
    folder.open()
    return folder


def test_nothing_is_written_before_a_run_folder_is_opened(path):
    folder = RunFolder(path, IDENTITY)
    assert not path.parent.exists()
    folder.open()
    assert [file.name for file in path.iterdir()] == [RUN_FILE]


def test_run_json_says_what_ran_when_and_with_which_versions(path):
    opened(path).note({"failed_runs": 3})
    record = json.loads((path / RUN_FILE).read_text())
    assert record["identity"] == IDENTITY
    assert record["failed_runs"] == 3
    assert {"collabsim", "langgraph"} <= record["versions"].keys()
    assert record["started"] <= record["updated"]


def test_the_same_run_is_resumed_and_keeps_its_start(path):
    opened(path)
    record = json.loads((path / RUN_FILE).read_text())
    (path / RUN_FILE).write_text(json.dumps({**record, "started": "2020-01-01T00:00:00+00:00"}))
    opened(path)
    assert json.loads((path / RUN_FILE).read_text())["started"] == "2020-01-01T00:00:00+00:00"


def test_tuples_and_lists_are_one_identity(path):
    opened(path, {"order": ("a", "b")})
    RunFolder(path, {"order": ["a", "b"]})


def test_another_run_is_refused_with_the_dotted_keys_that_differ(path):
    opened(path)
    before = (path / RUN_FILE).read_bytes()
    with pytest.raises(ConfigError, match=r"differing keys: pool\.a\.skill, seed\. Name another folder"):
        RunFolder(path, {"pool": {"a": {"skill": 2.0}}, "seed": 1})
    assert (path / RUN_FILE).read_bytes() == before


def test_a_long_list_of_differing_keys_is_cut(path):
    opened(path, {f"key{k}": k for k in range(20)})
    with pytest.raises(ConfigError, match=r"key0, .*, \.\.\.\. Name"):
        RunFolder(path, {f"key{k}": k + 1 for k in range(20)})


def test_an_empty_folder_is_taken(path):
    path.mkdir(parents=True)
    opened(path)


def test_a_folder_with_other_files_is_refused(path):
    path.mkdir(parents=True)
    (path / "thesis.tex").touch()
    with pytest.raises(ConfigError, match=r"holds other files and no run\.json"):
        RunFolder(path, IDENTITY)


def test_a_session_that_was_killed_at_its_first_write_can_be_resumed(path):
    path.mkdir(parents=True)
    (path / f".{RUN_FILE}.4711.tmp").write_text('{"identity": {"po')
    opened(path)
    assert json.loads((path / RUN_FILE).read_text())["identity"] == IDENTITY


@pytest.mark.parametrize("text", ["", "{", "\x00\xff"])
def test_a_damaged_run_json_is_an_error_and_no_new_run(path, text):
    opened(path)
    (path / RUN_FILE).write_text(text)
    with pytest.raises(StoreError, match=r"run\.json cannot be read .*restore it"):
        RunFolder(path, IDENTITY)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot make the run folder .*file/run: Not a directory; name another"):
        opened(tmp_path / "file" / "run")


# ---- files -----------------------------------------------------------------------------------------------------------


@given(JSON)
def test_what_is_written_is_read_back(tmp_path_factory, value):
    file = tmp_path_factory.getbasetemp() / "value.json"
    write_json(file, value)
    assert read_json(file) == value


def test_there_is_nothing_to_read_where_there_is_no_file(tmp_path):
    assert read_json(tmp_path / "nothing.json") is None


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(tmp_path):
    file = tmp_path / "values.json"
    write_json(file, {"good": True})
    with (
        no_file_above(1000),
        pytest.raises(StoreError, match=r"cannot write .*values\.json: File too large; make room"),
    ):
        write_json(file, {"long": "x" * 10_000})
    assert read_json(file) == {"good": True}
    assert os.listdir(tmp_path) == ["values.json"]


def test_a_value_that_is_no_json_leaves_the_old_file_and_no_draft(tmp_path):
    file = tmp_path / "values.json"
    write_json(file, {"good": True})
    with pytest.raises(TypeError):
        write_json(file, {"bad": object()})
    assert read_json(file) == {"good": True}
    assert os.listdir(tmp_path) == ["values.json"]


# ---- differing keys --------------------------------------------------------------------------------------------------


@given(JSON)
def test_a_value_differs_from_itself_in_nothing(value):
    assert differing_keys(value, value) == []


@given(st.dictionaries(st.text(min_size=1, max_size=3), JSON), st.dictionaries(st.text(min_size=1, max_size=3), JSON))
def test_values_differ_in_the_same_keys_from_either_side(old, new):
    assert sorted(differing_keys(old, new)) == sorted(differing_keys(new, old))


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, ["a.c"]),
        ({"a": 1}, {"b": 1}, ["a", "b"]),
        ({"a": {"b": 1}}, {"a": None}, ["a"]),
        ({"a": [1, 2]}, {"a": [2, 1]}, ["a"]),
        (1, 2, ["config"]),
    ],
)
def test_differing_keys_are_dotted_paths(old, new, keys):
    assert sorted(differing_keys(old, new)) == keys
