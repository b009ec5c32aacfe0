"""A config: how it is read, what `--set` changes, what it is identified by, and what is made of it."""

import string
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from collabsim import GenerationStore, Sampling
from collabsim.config.assemble import make_pool, make_system, make_task
from collabsim.config.read import config_identity, default_out, identity_fields, parse_config, read_config
from collabsim.config.schema import PLACEMENT, Config
from collabsim.errors import ConfigError, PrerequisiteError

SIMULATED = {"model": "simulated:"}
DATA = {
    "pool": {"a": SIMULATED, "gpt-4.1": SIMULATED},
    "protocol": {"name": "debate"},
    "task": {"source": "jsonl:items.jsonl"},
}


@pytest.fixture
def config_file(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(DATA))
    return path


# ---- reading ---------------------------------------------------------------------------------------------------------


def test_every_default_is_resolved_when_a_config_is_read(config_file):
    config = read_config(config_file)
    assert config.pool["a"].sampling == Sampling()
    assert (config.sweep.method, config.sweep.seed, config.concurrency) == ("auto", 0, 100)
    assert config.store is config.out is None


def test_keys_of_the_protocol_that_are_not_its_own_are_options():
    protocol = parse_config({**DATA, "protocol": {"name": "debate", "rounds": 3, "order": ["a", "b"]}}).protocol
    assert protocol.options == {"rounds": 3}
    assert protocol.order == ["a", "b"]


@pytest.mark.parametrize("pair", [["Q?", "A."], {"question": "Q?", "answer": "A."}])
def test_examples_are_pairs_in_either_spelling(pair):
    config = parse_config({**DATA, "pool": {"a": {**SIMULATED, "examples": [pair]}}})
    assert config.pool["a"].examples == (("Q?", "A."),)


@pytest.mark.parametrize("number", ["2e-1", "2.0e-1", ".2", "0.2"])
def test_numbers_that_yaml_takes_for_text_are_still_numbers(config_file, number):
    config = read_config(config_file, [f"pool.a.sampling.temperature={number}"])
    assert config.pool["a"].sampling.temperature == 0.2


def test_seats_can_share_settings_by_yaml_s_own_merge_key(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(
        "pool:\n"
        "  a: &base {model: 'simulated:', sampling: {max_tokens: 7}}\n"
        "  b: {<<: *base, system: Be brief.}\n"
        "  c: {<<: *base, sampling: {max_tokens: 9}}\n"
        "protocol: {name: debate}\n"
        "task: {source: 'jsonl:items.jsonl'}\n"
    )
    pool = read_config(path).pool
    assert [seat.sampling.max_tokens for seat in pool.values()] == [7, 7, 9]
    assert pool["b"].system == "Be brief."


def test_seats_keep_the_order_of_the_file(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({**DATA, "pool": {"b": SIMULATED, "a": SIMULATED}}, sort_keys=False))
    assert list(read_config(path).pool) == ["b", "a"]


def test_an_unknown_key_deep_inside_is_named_with_its_whole_path_and_the_known_ones():
    with pytest.raises(ConfigError) as refused:
        parse_config({**DATA, "pool": {"a": {**SIMULATED, "sampling": {"top-p": 1}}}}, "my.yaml")
    assert "my.yaml: unknown key 'pool.a.sampling.top-p' (did you mean 'top_p'?)" in str(refused.value)
    assert "max_tokens, stop, temperature, template, top_k, top_p" in str(refused.value)


# ---- --set -----------------------------------------------------------------------------------------------------------


def test_set_makes_sections_that_are_not_there(config_file):
    assert read_config(config_file, ["task.dev.limit=5", "sweep.method=loo"]).task.dev.limit == 5


def test_set_replaces_whole_sections_too(config_file):
    assert list(read_config(config_file, ["pool={z: {model: 'simulated:'}}"]).pool) == ["z"]


def test_set_can_empty_a_key(config_file):
    assert read_config(config_file, ["task.limit=3", "task.limit=null"]).task.limit is None


def test_the_last_set_of_a_key_wins(config_file):
    assert read_config(config_file, ["sweep.seed=1", "sweep.seed=2"]).sweep.seed == 2


def test_set_keeps_what_follows_the_first_equals_sign(config_file):
    assert read_config(config_file, ["task.prompt={question} a=b"]).task.prompt == "{question} a=b"


def test_set_reaches_a_seat_whose_name_has_dots(config_file):
    pool = read_config(config_file, ["pool.gpt-4.1.sampling.max_tokens=9", "pool.gpt-4.1.system=Hello"]).pool
    assert pool["gpt-4.1"].sampling.max_tokens == 9
    assert pool["gpt-4.1"].system == "Hello"
    replaced = read_config(config_file, ["pool.gpt-4.1={model: 'simulated:x'}"]).pool
    assert replaced["gpt-4.1"].model == "simulated:x"


@given(st.text(string.ascii_letters + string.digits + " .,:{}[]&*!|>'\"%@`#~-", min_size=1))
def test_set_never_ends_in_anything_but_a_config_or_its_refusal(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "config.yaml"
    path.write_text(yaml.safe_dump(DATA))
    with suppress(ConfigError):
        assert read_config(path, [f"pool.a.description={text}"]).pool["a"].model == "simulated:"


# ---- identity --------------------------------------------------------------------------------------------------------


def test_writing_out_a_default_changes_no_identity():
    assert config_identity(parse_config(DATA)) == config_identity(parse_config({**DATA, "sweep": {"seed": 0}}))


@pytest.mark.parametrize("change", [{"store": "x"}, {"out": "x"}, {"concurrency": 1}, {"train": {"seat": "a"}}])
def test_where_and_how_a_sweep_runs_is_no_part_of_its_identity(change):
    assert change.keys() <= set(PLACEMENT)
    assert config_identity(parse_config({**DATA, **change})) == config_identity(parse_config(DATA))


@pytest.mark.parametrize(
    "change",
    [
        {"sweep": {"seed": 1}},
        {"protocol": {"name": "debate", "rounds": 3}},
        {"task": {"source": "jsonl:items.jsonl", "limit": 1}},
        {"pool": {"a": SIMULATED}},
        {"helpers": {"judge": SIMULATED}},
    ],
)
def test_what_a_sweep_measures_is_its_identity(change):
    assert config_identity(parse_config({**DATA, **change})) != config_identity(parse_config(DATA))


def test_every_key_of_a_config_is_either_identity_or_placement():
    fields = identity_fields(parse_config(DATA)).keys()
    assert fields | (set(PLACEMENT) & Config.model_fields.keys()) == Config.model_fields.keys()
    assert fields.isdisjoint(PLACEMENT)


def test_the_default_run_folder_is_named_by_stem_and_identity(tmp_path):
    config = parse_config(DATA)
    assert str(default_out(tmp_path / "my.pool.yaml", config)) == f"runs/my.pool-{config_identity(config)[:8]}"


# ---- what is made of it ----------------------------------------------------------------------------------------------


def test_seats_with_one_model_share_one_object_and_keep_their_own_manners():
    pool = make_pool(parse_config({**DATA, "pool": {"a": SIMULATED, "b": {**SIMULATED, "system": "Hi."}}}).pool)
    assert pool["a"].model is pool["b"].model
    assert pool["a"].identity != pool["b"].identity


def test_seats_with_different_options_have_different_models():
    other = {**SIMULATED, "options": {"skill": 1.0}}
    pool = make_pool(parse_config({**DATA, "pool": {"a": SIMULATED, "b": other}}).pool)
    assert pool["a"].model is not pool["b"].model


@pytest.mark.parametrize(("model", "error"), [("openai:", ConfigError), ("nothing:x", PrerequisiteError)])
def test_a_model_that_cannot_be_made_is_named_by_its_seat(model, error):
    with pytest.raises(error, match=r"^model of 'a': "):
        make_pool(parse_config({**DATA, "pool": {"a": {"model": model}}}).pool)


def test_relative_paths_of_a_task_start_from_the_config_s_folder(config_file, tmp_path, monkeypatch):
    (tmp_path / "items.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n')
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert len(make_task(read_config(config_file), config_file.parent)) == 1


def test_a_system_has_all_that_the_config_says():
    data = {
        **DATA,
        "helpers": {"judge": SIMULATED},
        "protocol": {"name": "debate", "final": "judge", "roles": {"judge": "judge"}, "order": ["gpt-4.1", "a"]},
        "sweep": {"alone": "floor", "absent": "replace:judge", "on_overflow": "no_answer"},
    }
    store = GenerationStore(None)
    system = make_system(parse_config(data), store)
    assert system.protocol.name == "debate"
    assert system.options["final"] == "judge"
    assert (list(system.pool), list(system.helpers)) == (["a", "gpt-4.1"], ["judge"])
    assert (system.alone, system.absent, system.order) == ("floor", "replace:judge", ["gpt-4.1", "a"])
    assert system.limits.on_overflow == "no_answer"
    assert system.store is store
