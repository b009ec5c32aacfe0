"""A config: how it is read, what `--set` changes, what it is identified by, and what is made of it."""

import string
from contextlib import suppress
from datetime import date

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from collabsim import GenerationStore, Sampling
from collabsim.config.assemble import make_pool, make_system, make_task
from collabsim.config.read import config_identity, default_out, identity_fields, parse_config, read_config
from collabsim.config.schema import PLACEMENT, Config
from collabsim.config.sections import installed_sections
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


def test_a_text_in_the_place_of_a_section_is_its_main_key():
    short = {
        "pool": {"a": "simulated:", "gpt-4.1": "simulated:"},
        "helpers": {"judge": "openai:x"},
        "protocol": "debate",
        "task": "gsm8k",
    }
    long = {
        "pool": {"a": {"model": "simulated:"}, "gpt-4.1": {"model": "simulated:"}},
        "helpers": {"judge": {"model": "openai:x"}},
        "protocol": {"name": "debate"},
        "task": {"source": "gsm8k"},
    }
    assert parse_config(short) == parse_config(long)
    assert config_identity(parse_config(short)) == config_identity(parse_config(long))


def test_short_forms_are_taken_from_a_file(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("pool: {a: 'simulated:'}\nprotocol: debate\ntask: jsonl:items.jsonl\n")
    config = read_config(path)
    assert (config.pool["a"].model, config.protocol.name) == ("simulated:", "debate")
    assert config.task.source == "jsonl:items.jsonl"


ODD_KEYS = {
    "1": "1",
    "1.50": "1.50, which YAML reads as the number 1.5",
    "0x10": "0x10, which YAML reads as the number 16",
    "yes": "yes, which YAML reads as the truth value true",
    "on": "on, which YAML reads as the truth value true",
    "no": "no, which YAML reads as the truth value false",
    "null": "null, which YAML reads as no value",
    "~": "~, which YAML reads as no value",
    "2025-11-01": "2025-11-01, which YAML reads as a date",
}


@pytest.mark.parametrize("key", ODD_KEYS)
@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("pool: {KEY: {model: 'simulated:'}}", "pool"),
        ("helpers: {KEY: 'simulated:'}", "helpers"),
        ("pool: {a: {model: 'simulated:', KEY: 1}}", "pool.a"),
        ("pool: {a: {model: 'simulated:', options: {levels: [{KEY: 1}]}}}", "pool.a.options.levels.0"),
        ("task: {source: gsm8k, fields: {KEY: q}}", "task.fields"),
        ("task: {source: gsm8k, filter: {KEY: q}}", "task.filter"),
        ("protocol: {name: debate, KEY: 1}", "protocol"),
        ("train: {KEY: 1}", "train"),
        ("KEY: 1", "config"),
    ],
)
def test_a_key_that_yaml_reads_as_something_else_is_shown_as_it_is_written(tmp_path, key, text, at):
    path = tmp_path / "config.yaml"
    path.write_text(text.replace("KEY", key))
    with pytest.raises(ConfigError) as refused:
        read_config(path)
    assert f"{path}: {at}: expected names in text as keys, got {ODD_KEYS[key]}; put it in quotes" in str(refused.value)


def test_a_key_in_python_that_is_no_text_is_refused_too():
    with pytest.raises(ConfigError, match=r"pool: expected names in text as keys, got 7; put it in quotes"):
        parse_config({**DATA, "pool": {7: SIMULATED, "a": SIMULATED}})


def test_a_config_that_names_itself_inside_is_refused(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("pool: {a: {model: 'simulated:', options: &x {me: *x}}}\nprotocol: debate\ntask: gsm8k\n")
    with pytest.raises(ConfigError, match="an alias must not name what it stands in"):
        read_config(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"pool": {"a": 3}}, "pool.a: Input should be a valid dictionary or text, its 'model', got 3"),
        ({"protocol": ["debate"]}, "protocol: Input should be a valid dictionary or text, its 'name', got a list"),
        (
            {"pool": {"a": {**SIMULATED, "revision": True}}},
            "pool.a.revision: Input should be a valid string, got True (YAML reads yes, on and true so); put text in quotes",
        ),
        (
            {"pool": {"a": {**SIMULATED, "revision": date(2025, 11, 1)}}},
            "pool.a.revision: Input should be a valid string, got 2025-11-01 (a date); put text in quotes",
        ),
        ({"task": {"source": "gsm8k", "prompt": 3}}, "task.prompt: Input should be a valid string, got 3"),
        (
            {"protocol": {"name": "debate", "roles": {"judge": 3}}},
            "protocol.roles.judge: Input should be a valid string or a valid list, got 3",
        ),
        ({"protocol": {"name": "debate", "roles": {"judge": ["a", 3]}}}, "protocol.roles.judge.1: Input should be a valid"),
        ({"train": 3}, "train: Input should be a valid dictionary, got 3"),
        ({"trian": {}}, "unknown key 'trian' (did you mean 'train'?)"),
        ({"poool": {}, "task": {"source": 3}}, "unknown key 'poool' (did you mean 'pool'?)"),
        ({"poool": {}, "task": {"source": 3}}, "task.source: Input should be a valid string, got 3"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_was_expected_and_what_came(change, says):
    with pytest.raises(ConfigError) as refused:
        parse_config({**DATA, **change})
    assert f"config: {says}" in str(refused.value)


def test_a_config_made_past_the_reader_has_no_unknown_keys_either():
    with pytest.raises(ValidationError, match="unknown keys"):
        Config.model_validate({**DATA, "trian": {}})


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
    assert change.keys() <= {*PLACEMENT, *installed_sections()}
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


def test_a_key_in_the_wrong_place_is_told_its_place():
    with pytest.raises(ConfigError, match=r"unknown key 'sweep.concurrency'.*'concurrency' belongs on top of the file"):
        parse_config({**DATA, "sweep": {"concurrency": 2}})
    with pytest.raises(ConfigError, match=r"unknown key 'method'.*there is sweep\.method"):
        parse_config({**DATA, "method": "exact"})
    with pytest.raises(ConfigError, match=r"unknown key 'limit'.*there is task\.limit"):
        parse_config({**DATA, "limit": 5})
