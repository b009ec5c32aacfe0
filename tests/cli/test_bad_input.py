"""What a user gets wrong in a config or a command: exit code 2, one line that says what and what to do, nothing written."""

from __future__ import annotations

import json

import pytest
from command_line import CONFIG, contents, in_a_process, kept_generations, write_config

# ---- keys and values of the config: (`--set` arguments, what the message says) ------------------------------------

UNKNOWN_KEYS = {
    "at the top": ("poolz=1", "'poolz' (did you mean 'pool'?)"),
    "in a seat": ("pool.novice.modell=x", "'pool.novice.modell' (did you mean 'model'?)"),
    "in a helper": ("helpers.judge={model: 'simulated:', sistem: x}", "'helpers.judge.sistem' (did you mean 'system'?)"),
    "in sampling": ("pool.novice.sampling.temprature=1", "'pool.novice.sampling.temprature' (did you mean 'temperature'?)"),
    "in the task": ("task.sorce=x", "'task.sorce' (did you mean 'source'?)"),
    "in the dev items": ("task.dev={limit: 2, sead: 1}", "'task.dev.sead' (did you mean 'seed'?)"),
    "in the sweep": ("sweep.metod=exact", "'sweep.metod' (did you mean 'method'?)"),
    "in a section of a command": ("trian.seat=novice", "'trian' (did you mean 'train'?)"),
    "in the options of a model": ("pool.novice.options.skil=1", "unknown option 'skil' (did you mean 'skill'?)"),
}  # fmt: skip

IMPOSSIBLE_VALUES = {
    "limit 0": ("task.limit=0", "task.limit: expected at least 1 item, got 0"),
    "a negative limit": ("task.limit=-3", "task.limit: expected at least 1 item, got -3"),
    "a limit in words": ("task.limit=many", "task.limit: Input should be a valid integer"),
    "no concurrency": ("concurrency=0", "concurrency: Input should be greater than 0, got 0"),
    "an empty pool": ("pool={}", "pool: Dictionary should have at least 1 item"),
    "a flow mapping with a colon too many": ("pool={a: simulated:}", "not valid YAML"),
    "no pool": ("pool=", "pool: Input should be a valid dictionary"),
    "a seat that is no section": ("pool.novice=3", "pool.novice: Input should be a valid dictionary"),
    "a negative temperature": ("pool.novice.sampling.temperature=-1", "sampling: temperature must be at least 0"),
    "a temperature that is no number": ("pool.novice.sampling.temperature=.nan", "temperature must be at least 0"),
    "a skill in words": ("pool.novice.options.skill=high", "skill.float: Input should be a valid number"),
    "an engine of another kind": ("pool.novice.engine=vllm", "'simulated:' has no use for engine; leave it out"),
    "unknown kind of players": ("sweep.players=nodes", "sweep.players: Input should be 'seats' or 'models', got 'nodes'"),
    "an unknown floor": ("task.floor=half", "task.floor: Input should be 'zero' or 'chance', got 'half'"),
    "an unknown kind of answer": ("task.kind=poem", "'poem'"),
    "a prompt without the question": ("task.prompt=Hello", "{question}"),
}  # fmt: skip

METHODS = {
    "unknown": ("sweep.method=exactt", "unknown method 'exactt' (did you mean 'exact'?)"),
    "unknown in shapiq": ("sweep.method=shapiq:KernelShap", "did you mean 'shapiq:KernelSHAP'?"),
    "a budget without shapiq": ("sweep.budget=5", "sweep.budget is for shapiq:NAME methods; 'exact' has"),
    "a budget of nothing": ("sweep.budget=0", "sweep.budget: Input should be greater than 0, got 0"),
    "a budget as large as exact": (("sweep.method=shapiq:KernelSHAP", "sweep.budget=8"), "got 8; use exact instead"),
}

PROTOCOLS = {
    "unknown": ("protocol.name=majority_vot", "unknown protocol 'majority_vot' (did you mean 'majority_vote'?)"),
    "missing": ("protocol={}", "the key 'protocol.name' is missing; add it"),
    "unknown module": ("protocol.name=nomodule:build", "cannot be loaded from 'nomodule:build'"),
    "unknown option": (("protocol.name=debate", "protocol.round=3"), "no option 'round' (did you mean 'rounds'?)"),
    "an option where there is none": ("protocol.rounds=3", "protocol 'majority_vote' has no option 'rounds'"),
    "impossible option": (("protocol.name=debate", "protocol.rounds=0"), "option 'rounds': Input should be greater"),
    "unknown role": (("protocol.name=debate", "protocol.roles.jugde=novice"), "'jugde' (did you mean 'judge'?)"),
    "unknown seat in a role": (("protocol.name=debate", "protocol.roles.judge=novize"), "'novize' (did you mean 'novice'?)"),
    "unknown seat in the order": ("protocol.order=[novize, steady, expert]", "'novize' (did you mean 'novice'?)"),
    "a seat missing in the order": ("protocol.order=[novice, steady]", "must name every seat once"),
    "a seat twice in the order": ("protocol.order=[novice, novice, steady, expert]", "must name every seat once"),
    "an order that is no list": ("protocol.order=novice", "protocol.order: Input should be a valid list"),
    "a helper that is also a seat": ("helpers.novice={model: 'simulated:'}", "['novice'] are both seats and helpers"),
    "an unknown replacement": ("sweep.absent=replace:NOBODY", "one of the helpers [], got 'replace:NOBODY'"),
    "an unknown way to be absent": ("sweep.absent=keep", "expected 'remove' or 'replace:HELPER'"),
}  # fmt: skip

TASKS = {
    "unknown source": ("task.source=jsnl:items.jsonl", "task.source: expected jsonl:..., reasoning_gym:..."),
    "unknown generator": ("task.source=reasoning_gym:chain_sun", "'chain_sun' (did you mean 'chain_sum'?)"),
    "a missing file": ("task.source=jsonl:nowhere.jsonl", "nowhere.jsonl: No such file or directory; check task.source"),
    "a folder as file": ("task.source=jsonl:.", "Is a directory; check task.source"),
    "options of another source": ("task.options.min_terms=2", "jsonl: takes no options, got ['min_terms']; remove them"),
    "nothing left by the filter": ("task.filter={topic: geography}", "0 distinct items for split 'test' (6 filtered_out)"),
    "a filter on an unknown field": ("task.filter={topicc: sums}", "task.filter: no field 'topicc' (did you mean 'topic'?)"),
    "an unknown column": ("task.fields={question: text}", "'text'"),
    "more dev items than there are": ("task.dev={limit: 100}", "6 items are too few for task.limit None"),
}  # fmt: skip

MODELS = {
    "unknown scheme": ("pool.novice.model=opena:x", "'opena:x' (did you mean 'openai'?); expected a hub id"),
    "no scheme": ("pool.novice={model: gpt}", "'gpt': there is no file or folder"),
    "an empty spec": ("pool.novice.model=''", "model of 'novice': expected a spec such as 'simulated:'"),
    "nameless on a server": ("pool.novice.model='openai:'", "expected 'openai:NAME'"),
    "a missing module": ("pool.novice={model: 'python:nomodule:x'}", "'nomodule', which cannot be imported here; install it"),
    "a missing attribute": ("pool.novice={model: 'python:json:load_'}", "json has no 'load_' (did you mean 'load'?)"),
    "something that is no model": ("pool.novice={model: 'python:string:digits'}", "a function that makes one, got str"),
    "of a helper": ("helpers={judge: {model: 'openai:'}}", "model of 'judge': expected 'openai:NAME'"),
}  # fmt: skip

OVERRIDES = {
    "without a value": ("nonsense", "--set 'nonsense': expected a.b=value, for example sweep.method=exact"),
    "without a key": ("=3", "--set '=3': expected a.b=value"),
    "below a value": ("pool.novice.model.x=3", "--set 'pool.novice.model.x=3': 'model' is not a section"),
    "a member written twice": ("pool={a: {model: 'simulated:'}, a: {model: 'simulated:'}}", "the key 'a' is written twice"),
}  # fmt: skip

BAD_SETTINGS = [
    pytest.param((given,) if isinstance(given, str) else given, says, id=f"{group}: {name}")
    for group, cases in {
        "unknown key": UNKNOWN_KEYS,
        "value": IMPOSSIBLE_VALUES,
        "method": METHODS,
        "protocol": PROTOCOLS,
        "task": TASKS,
        "model": MODELS,
        "--set": OVERRIDES,
    }.items()
    for name, (given, says) in cases.items()
]


@pytest.mark.parametrize(("settings", "says"), BAD_SETTINGS)
@pytest.mark.parametrize("flags", [(), ("--dry-run",)], ids=["sweep", "dry run"])
def test_a_setting_that_cannot_be_meant_is_named_and_changes_nothing(collabsim, work, used, settings, says, flags):
    before = contents(work.parent)
    ran = collabsim(
        "sweep", "config.yaml", "--out", "run", *flags, *(arg for one in settings for arg in ("--set", one))
    )
    assert ran.code == 2
    assert says in ran.message
    assert contents(work.parent) == before


# ---- the config file -------------------------------------------------------------------------------------------------

FILES = {
    "broken": ("pool: {a: [", "not valid YAML", "line 1, column 12"),
    "with a tab": ("pool:\n\ta: 1\n", "not valid YAML", "line 2, column 1"),
    "empty": ("", "expected a mapping with pool, protocol and task, got an empty file"),
    "a list": ("[1, 2]", "expected a mapping with pool, protocol and task, got list"),
    "one word": ("pool", "expected a mapping with pool, protocol and task, got str"),
    "a section twice": ("pool: {}\ntask: {}\npool: {}\n", "the key 'pool' is written twice", "line 3, column 1"),
    "a member twice": ("pool:\n  a: {}\n  b: {}\n  a: {}\n", "the key 'a' is written twice", "line 4, column 3"),
    "a list as key": ("? [1, 2]\n: 3\n", "expected a name as key, got [1, 2]", "line 1, column 3"),
    "a section as key": ("? {a: 1}\n: 3\n", "expected a name as key, got {'a': 1}"),
    "a truth value as seat": ("pool: {yes: {model: 'simulated:'}}", "got yes, which YAML reads as the truth value true"),
    "a truth value as option": ("protocol: {name: debate, on: 1}", "protocol: expected names in text as keys, got on"),
    "a date of no calendar": ("task: {source: 2025-13-45}", "not valid YAML: month must be in 1..12", "line 1, column 16"),
    "an alias of itself": ("pool: &x {a: *x}", "nested too deeply"),
    "a number as seat": ("pool: {7: {model: 'simulated:'}}", "pool: expected names in text as keys, got 7; put it in quotes"),
    "a Python object": ("pool: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
    "several documents": ("a: 1\n---\nb: 2\n", "not valid YAML", "line 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_config_is_refused_with_the_place(collabsim, work, name):
    text, *says = FILES[name]
    (work / "config.yaml").write_text(text)
    before = contents(work.parent)
    ran = collabsim("sweep", "config.yaml")
    assert ran.code == 2
    assert all(part in ran.message for part in ("config.yaml", *says))
    assert contents(work.parent) == before


def test_bytes_that_are_no_text_are_refused(collabsim, work):
    (work / "config.yaml").write_bytes(b"pool: \xff\xfe")
    ran = collabsim("sweep", "config.yaml")
    assert (ran.code, ran.message[:28]) == (2, "config.yaml: cannot be read ")


def test_everything_that_is_wrong_in_a_file_is_named_at_once(collabsim, work):
    write_config(work / "config.yaml", poool={}, sweep={"metod": "exact"})
    ran = collabsim("sweep", "config.yaml")
    assert ran.code == 2
    assert "'poool'" in ran.message
    assert "'sweep.metod'" in ran.message


@pytest.mark.parametrize("flags", [(), ("--dry-run",), ("--show-prompts",)])
@pytest.mark.parametrize(
    ("path", "says"), [("nowhere.yaml", "no config file 'nowhere.yaml'"), (".", "'.' is a folder")]
)
def test_a_config_that_is_not_there_is_asked_for(collabsim, work, flags, path, says):
    before = contents(work.parent)
    ran = collabsim("sweep", path, *flags)
    assert ran.code == 2
    assert says in ran.message
    assert "give the path of a YAML file" in ran.message
    assert contents(work.parent) == before


@pytest.mark.parametrize("name", ["a:b", "__x", "", "a b", "a+b", "a/b", "ä", "a\n"])
@pytest.mark.parametrize("section", ["pool", "helpers"])
def test_a_seat_name_that_files_and_graphs_cannot_hold_is_refused(collabsim, work, section, name):
    members = {"good": {"model": "simulated:"}, name: {"model": "simulated:"}}
    config = CONFIG if section == "pool" else {**CONFIG, "pool": {"seat": {"model": "simulated:"}}}
    write_config(work / "config.yaml", config, **{section: members})
    ran = collabsim("sweep", "config.yaml")
    assert ran.code == 2
    assert f"seat name {name!r}" in ran.message
    assert "rename the seat" in ran.message


def test_two_seats_may_share_one_model(collabsim, work):
    model = {"model": "simulated:", "options": {"skill": 1.0}}
    write_config(work / "config.yaml", pool={"a": model, "b": model})
    ran = collabsim("sweep", "config.yaml", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["players"] == ["a", "b"]


def test_seventeen_players_are_too_many_for_every_coalition(collabsim, work):
    write_config(work / "config.yaml", pool={f"m{k}": {"model": "simulated:"} for k in range(17)})
    before = contents(work.parent)
    ran = collabsim("sweep", "config.yaml", "--method", "exact")
    assert ran.code == 2
    assert "exact needs 2^17 coalitions" in ran.message
    assert "use `method: permutation`" in ran.message
    assert contents(work.parent) == before


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"question": "1 + 1?", "answer": }', "items.jsonl line 2: expected one JSON object a line"),
        ("[1, 2]", "items.jsonl line 2: expected a JSON object, got list"),
    ],
)
def test_a_broken_line_of_a_data_file_is_named(collabsim, work, line, says):
    (work / "items.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n' + line + "\n")
    ran = collabsim("sweep", "config.yaml")
    assert ran.code == 2
    assert says in ran.message


def test_an_empty_data_file_has_no_items(collabsim, work):
    (work / "items.jsonl").write_text("\n")
    ran = collabsim("sweep", "config.yaml")
    assert ran.code == 2
    assert "jsonl:items.jsonl: 0 distinct items" in ran.message


NEEDS_DEV = """
from collabsim import protocol
from collabsim.graphs import majority_vote

@protocol(needs=("dev",))
def trained_vote(seats):
    return majority_vote.majority_vote(seats)
"""


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_a_protocol_that_is_fitted_on_dev_items_asks_for_them(collabsim, work, module, flags):
    module("needs_dev", NEEDS_DEV)
    before = contents(work.parent)
    ran = collabsim("sweep", "config.yaml", "--set", "protocol.name=needs_dev:trained_vote", *flags)
    assert ran.code == 2
    assert "'trained_vote' is fitted on dev items and the task has none" in ran.message
    assert "add `dev: {limit: 50, seed: 2}` under 'task:'" in ran.message
    assert contents(work.parent) == before


def test_a_missing_key_for_openai_is_named_and_costs_no_outcome(collabsim):
    ran = collabsim("sweep", "config.yaml", "--out", "run", "--set", "pool={gpt: {model: 'openai:gpt-4o-mini'}}")
    assert ran.code == 2
    assert "no key in the environment variable OPENAI_API_KEY; set it" in ran.message
    assert not kept_generations()
    assert "has no values yet" in collabsim("report", "run").message


# ---- flags and commands ----------------------------------------------------------------------------------------------

USAGE = {
    "unknown command": (("swep", "config.yaml"), "No such command 'swep'. Did you mean 'sweep'? (see `"),
    "unknown flag": (("sweep", "config.yaml", "--limits", "3"), "No such option: --limits"),
    "unknown flag before the command": (("--verbose", "sweep"), "No such option: --verbose"),
    "missing argument": (("sweep",), "Missing argument 'CONFIG' (see `"),
    "missing value": (("sweep", "config.yaml", "--out"), "--out"),
    "a limit in words": (("sweep", "config.yaml", "--limit", "many"), "'--limit'"),
    "limit 0 as a flag": (("sweep", "config.yaml", "--limit", "0"), "task.limit: expected at least 1 item, got 0"),
    "unknown protocol": (("protocols", "debat"), "'debat' (did you mean 'debate'?)"),
    "no seats to draw": (("protocols", "debate", "--seats", "0"), "takes 1 to any number of seats, got 0"),
    "unknown task": (("tasks", "chain_sum"), "task.source: expected jsonl:..."),
    "unknown generator": (("tasks", "reasoning_gym:chain_sun"), "(did you mean 'chain_sum'?)"),
    "a task's unknown key": (("tasks", "jsonl:items.jsonl", "--set", "limt=3"), "'limt' (did you mean 'limit'?)"),
    "a task's source": (("tasks", "jsonl:items.jsonl", "--set", "source=x"), "a task has no key 'source'"),
    "a task's key without value": (("tasks", "jsonl:items.jsonl", "--set", "limit"), "expected key=value"),
    "a task's broken YAML": (("tasks", "jsonl:items.jsonl", "--set", "options=["), "not valid YAML"),
    "a task's limit in words": (
        ("tasks", "jsonl:items.jsonl", "--set", "limit=many"),
        "task.limit: Input should be a valid",
    ),
    "a task's key without a task": (("tasks", "--set", "limit=3"), "none is named; write `collabsim tasks NAME"),
    "two ways to look": (
        ("sweep", "config.yaml", "--dry-run", "--show-prompts"),
        "--dry-run and --show-prompts, got both",
    ),
    "prompts as JSON": (("sweep", "config.yaml", "--show-prompts", "--json"), "--show-prompts and --json, got both"),
    "answers as a picture": (("report", "run", "--svg", "x.svg", "--answers", "all"), "--svg and --answers, got both"),
    "a learning rate without end": (
        ("train", "config.yaml", "--set", "train={seat: novice, lr: .inf}"),
        "train.lr: Input should be a finite number, got inf",
    ),
    "a relative module as application": (
        ("sweep", "config.yaml", "--set", "protocol={graph: '.:app'}"),
        "protocol.graph: '.' cannot be imported",
    ),
    "a relative module as protocol": (("protocols", ".:x"), "'.:x' cannot be loaded from '.:x'"),
    "a source without its name": (("tasks", "jsonl"), "a known data set (gsm8k"),
    "a task's unknown column": (("tasks", "jsonl:items.jsonl", "--set", "fields.question=q"), "'q'"),
    "a task's dev key": (
        ("tasks", "jsonl:items.jsonl", "--set", "dev.sead=1"),
        "'task.dev.sead' (did you mean 'seed'?)",
    ),
}


@pytest.mark.parametrize("name", USAGE)
def test_a_command_that_cannot_be_meant_is_named(collabsim, work, name):
    arguments, says = USAGE[name]
    before = contents(work.parent)
    ran = collabsim(*arguments)
    assert ran.code == 2
    assert says in ran.message
    assert contents(work.parent) == before


# ---- the same, as a user meets it ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sweep", "config.yaml", "--set", "sweep.metod=exact"), "did you mean 'method'?"),
        (("sweep", "nowhere.yaml"), "no config file 'nowhere.yaml'"),
        (("swep",), "Did you mean 'sweep'?"),
    ],
)
def test_a_real_process_says_one_line_and_exits_with_2(work, arguments, says):
    ran = in_a_process(*arguments, cwd=work)
    assert ran.code == 2
    assert says in ran.message
