"""`--set`: each key is read like the same key in the file, by what the schema expects there."""

import json
import string

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from collabsim.config.overrides import apply_override, as_overrides
from collabsim.config.read import config_identity, parse_config, read_config
from collabsim.errors import ConfigError

DATA = {
    "pool": {"a": {"model": "simulated:"}, "b": {"model": "simulated:"}},
    "protocol": {"name": "debate"},
    "task": {"source": "jsonl:items.jsonl"},
}


@pytest.fixture
def config_file(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(DATA))
    return path


def at(config, key):
    """What stands at a dotted key."""
    for part in key.split("."):
        if isinstance(config, dict):
            config = config[part]
        else:
            config = config.section(part) if hasattr(config, "section") and part == "train" else getattr(config, part)
    return config


TEXTS = [
    "simulated:",
    "1e-6",
    "on",
    "yes",
    "null and void",
    "2025-11-01",
    "12",
    "Issue #4 # is text",
    "a: b",
    "{question} then {choices}",
    "[brackets]",
    "*star",
    "- dash",
    "it's",
    '"half quoted',
    "'a' and 'b'",
    "one=two",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_key_of_text_takes_what_is_written(config_file, text):
    assert read_config(config_file, [f"pool.a.description={text}"]).pool["a"].description == text


@pytest.mark.parametrize("text", TEXTS[:-1])
@pytest.mark.parametrize("key", ["pool.a.system", "pool.a.revision", "task.prompt", "store", "out"])
def test_so_does_a_key_of_text_that_may_be_empty(config_file, key, text):
    assert at(read_config(config_file, [f"{key}={text}"]), key) == text


@pytest.mark.parametrize("text", ["", "null", "~", " "])
def test_nothing_empties_a_key_that_may_be_empty(config_file, text):
    assert read_config(config_file, ["task.prompt={question}", f"task.prompt={text}"]).task.prompt is None


@pytest.mark.parametrize(("text", "value"), [("'null'", "null"), ('"a\\tb"', "a\tb"), ("'simulated:'", "simulated:")])
def test_quotes_around_all_of_a_text_are_those_of_yaml(config_file, text, value):
    assert read_config(config_file, [f"pool.a.system={text}"]).pool["a"].system == value


@given(st.text(string.printable, max_size=30))
def test_a_text_in_json_is_that_text(text):
    data = {}
    (override,) = as_overrides({"out": text})
    apply_override(data, override)
    assert data == {"out": text}


@given(st.text(string.ascii_letters + string.digits + " .,:{}[]&*!|>%@`#~-=", min_size=1))
def test_a_text_without_quotes_is_that_text(text):
    data = {}
    apply_override(data, f"pool.a.description={text}")
    assert data == {"pool": {"a": {"description": text.strip()}}}


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ("pool.a.model=simulated:", "pool.a.model", "simulated:"),
        ("pool.a.sampling.temperature=1e-1", "pool.a.sampling.temperature", 0.1),
        ("pool.a.sampling.stop=[a, 'b:']", "pool.a.sampling.stop", ("a", "b:")),
        ("pool.a.sampling.template.enable_thinking=off", "pool.a.sampling.template", {"enable_thinking": False}),
        ("pool.a.options.skill=0.5", "pool.a.options", {"skill": 0.5}),
        ("pool.a.options.name=simulated:", "pool.a.options", {"name": "simulated:"}),
        ("pool.a.options.level={x: 1}", "pool.a.options", {"level": {"x": 1}}),
        ("task.source=jsonl:x", "task.source", "jsonl:x"),
        ("task.fields.question=q", "task.fields", {"question": "q"}),
        ("task.fields.question=on", "task.fields", {"question": "on"}),
        ("task.fields={question: q}", "task.fields", {"question": "q"}),
        ("task.limit=null", "task.limit", None),
        ("task.limit=0x10", "task.limit", 16),
        ("task.shuffle_options=on", "task.shuffle_options", True),
        ("task.shuffle_options=", "task.shuffle_options", None),
        ("task.filter.level=3", "task.filter", {"level": 3}),
        ("task.dev={limit: 4}", "task.dev.limit", 4),
        ("protocol.roles.judge=a", "protocol.roles", {"judge": "a"}),
        ("protocol.roles.judge=on", "protocol.roles", {"judge": "on"}),
        ("protocol.roles.judge=[a, b]", "protocol.roles", {"judge": ["a", "b"]}),
        ("protocol.order=[b, a]", "protocol.order", ["b", "a"]),
        ("protocol.rounds=3", "protocol.options", {"rounds": 3}),
        ("protocol.revise={answers}", "protocol.options", {"revise": "{answers}"}),
        ("protocol.revise=Others # {answers}", "protocol.options", {"revise": "Others # {answers}"}),
        ("protocol=majority_vote", "protocol.name", "majority_vote"),
        ("task=gsm8k", "task.source", "gsm8k"),
        ("sweep.method=shapiq:KernelSHAP", "sweep.method", "shapiq:KernelSHAP"),
        ("train.seat=12", "train", {"seat": "12"}),
        ("train.lr=1e-5", "train", {"lr": "1e-5"}),
        ("train.objective={system: 1}", "train", {"objective": {"system": 1}}),
        ("train.items.split=on", "train", {"items": {"split": "on"}}),
        ("train.lora.targets=[q, v]", "train", {"lora": {"targets": ["q", "v"]}}),
        ("train.lora.targets=all-linear", "train", {"lora": {"targets": "all-linear"}}),
        ("helpers.judge=openai:gpt-4.1", "helpers.judge.model", "openai:gpt-4.1"),
        ("pool={z: 'simulated:'}", "pool.z.model", "simulated:"),
        ("pool.c=simulated:", "pool.c.model", "simulated:"),
    ],
)
def test_the_schema_decides_how_a_value_is_read(config_file, override, key, value):
    assert at(read_config(config_file, [override]), key) == value


def test_an_application_s_own_keys_are_read_by_their_types(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("{protocol: {graph: 'app.py:app'}, task: {source: gsm8k}}")
    config = read_config(path, ["protocol.revision=2", "protocol.players=[x]", "protocol.recursion_limit=9"])
    assert config.protocol.options == {"graph": "app.py:app", "revision": "2", "players": ["x"], "recursion_limit": 9}


def test_a_key_below_a_short_form_writes_it_out(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("{pool: {a: 'simulated:'}, protocol: debate, task: gsm8k}")
    config = read_config(path, ["protocol.rounds=3", "pool.a.system=Hi.", "task.limit=2"])
    assert (config.protocol.name, config.protocol.options) == ("debate", {"rounds": 3})
    assert (config.pool["a"].model, config.pool["a"].system) == ("simulated:", "Hi.")
    assert (config.task.source, config.task.limit) == ("gsm8k", 2)


def test_set_changes_one_seat_of_those_that_share_a_section_of_the_file(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(
        "pool:\n"
        "  a: &base {model: 'simulated:', sampling: {max_tokens: 7}}\n"
        "  b: {<<: *base, system: Be brief.}\n"
        "protocol: debate\n"
        "task: gsm8k\n"
    )
    pool = read_config(path, ["pool.b.sampling.max_tokens=9"]).pool
    assert [seat.sampling.max_tokens for seat in pool.values()] == [7, 9]


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("protocol.order=[a, ", "--set 'protocol.order=[a, ': not valid YAML"),
        ("pool={a: simulated:}", "not valid YAML: expected ',' or '}', but got ':' (line 1, column 14)"),
        ("pool={a: simulated:}", "put text in quotes"),
        ("task.dev=[1", "not valid YAML"),
        ("pool={1: 'simulated:'}", "pool: expected names in text as keys, got 1; put it in quotes"),
        ("task.fields={on: q}", "task.fields: expected names in text as keys, got on, which YAML reads as"),
        ("task.fields={a: 1, a: 2}", "the key 'a' is written twice; give each key once"),
        ("pool.a.options.when=2025-13-45", "month must be in 1..12"),
        ("pool.a.options.when=2025-13-45", "put text in quotes"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_read_is_refused_in_words(config_file, override, says):
    with pytest.raises(ConfigError) as refused:
        read_config(config_file, [override])
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("override", "written"),
    [
        ("pool.a.system=Be brief.", {"pool": {**DATA["pool"], "a": {"model": "simulated:", "system": "Be brief."}}}),
        ("protocol=majority_vote", {"protocol": {"name": "majority_vote"}}),
        ("task.limit=3", {"task": {"source": "jsonl:items.jsonl", "limit": 3}}),
    ],
)
def test_a_run_is_the_same_whether_a_key_is_set_or_written(config_file, override, written):
    assert config_identity(read_config(config_file, [override])) == config_identity(parse_config({**DATA, **written}))


def test_flags_that_were_not_given_set_nothing():
    assert as_overrides({"out": None, "task.limit": 3, "store": "2024"}) == ["task.limit=3", 'store="2024"']
    assert json.loads(as_overrides({"out": "ä"})[0].partition("=")[2]) == "ä"
