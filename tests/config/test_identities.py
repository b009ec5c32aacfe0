"""Names of run folders and keys of runs stay what they were before sections, short forms and descriptions were read anew.

The digests were computed by commit 83fb394, from these texts and from the examples as they were then.
"""

from pathlib import Path

import pytest
from collabsim.trainers.compare.matrix import read_matrix
from collabsim.trainers.finetune.finetuning_settings import parse_finetune
from collabsim.trainers.setup import training_identity

from collabsim.config.read import config_identity, default_out, identity_fields, read_config
from collabsim.seeds import digest

EXAMPLES = Path(__file__).parents[2] / "examples"
FULL = """\
pool:
  a: &base {model: "simulated:", options: {skill: 0.5, 'on': [1, 2.5e-1]},
    sampling: {temperature: 2e-1, stop: ["\\n"], template: {enable_thinking: false}}, system: Be brief.}
  b: {<<: *base, examples: [[Q, A], {question: Q2, answer: A2}], revision: "2025"}
  gpt-4.1: {model: "openai:x", base_url: "http://localhost:1/v1", description: wise}
helpers: {judge: {model: "simulated:j"}}
protocol: {name: debate, rounds: 3, final: judge, roles: {judge: [judge, a]}, order: [a, b, gpt-4.1]}
task: {source: "jsonl:items.jsonl", limit: 5, dev: {limit: 3},
  filter: {topic: [sums, 3]}, fields: {question: q}, floor: chance, prompt: "{question}"}
sweep: {method: "shapiq:KernelSHAP", budget: 6, absent: "replace:judge", on_missing: drop_items}
train: {seat: a, lr: 1e-6, objective: {system: 0.7, individual: 0.3}, clip: [0.2, 0.28], lora: {rank: 4}, items: {limit: 9}}
finetune: {members: [a], lora: null, debate: {rounds: 4}}
compare:
  objectives: {one: {objective: system, lr: 1e-5}, two: {objective: sft}}
  protocols: {vote: {protocol: {name: majority_vote}}, talk: {train: {seat: b}}}
  tasks: {sums: {}, few: {task: {limit: 2}}}
  seeds: [0, 4]
store: ~/x.sqlite
out: somewhere
concurrency: 7
"""
APPLICATION = """\
protocol: {graph: "app.py:app", players: [x, y], absent: {x: skip, y: {messages: []}}, recursion_limit: 9, label: mine}
task: {source: gsm8k}
"""
SWEEPS = {
    "after.yaml": "5c1f7226a49cd99a2e793908b0e38755d4f953aef7e73d8d09090fbb68b1bd84",
    "application.yaml": "1386b67d807b02a1b9ad12e0ed1cb01f1d0a15f1164f36616c8f339a4f0482cf",
    "compare.yaml": "2403c8e10dad65d5f1bfb4bcbda18b232300dbfa85885ba36bc5a0485f189070",
    "compare_smollm2.yaml": "93a8bf7386409dd776a15251cc37a62b95a01b1b6a61a4810597498dedd673d8",
    "demo.yaml": "6b3180e7c470ecf5af1c3e9cc0f7785a539099978f31f3635847989601aec9f8",
    "full.yaml": "ab7cdf5925ce3fd69b04e45482d10900d249c86b001214c677613434fa6bee9a",
    "quickstart.yaml": "610617791c82872c867857785b8cd314932d333eb9129a90830737c9382f728f",
    "servers.yaml": "cec40a64f7bd58ec4fcb1f12a0a8224f40dda9f04901b4582e174ddbb090c056",
    "train_vote.yaml": "da53ae942bd3d06e7cba1fc6fa5926a2f521924469a4fcb89463db4b0fd84cf5",
}
TRAININGS = {
    "compare.yaml": "e4ba2f54f44b66233e9037d9cf85dff6ffa86619d808e241e8e5eae206c4327a",
    "compare_smollm2.yaml": "e5ecf107bf438639b46ae1484ca955875c077fedcb6ee885a9b85d7257da153f",
    "full.yaml": "1c787f99a8302706e71a33725e37a1ac6b514958b1d81c9c1313341dab8e0c9c",
    "train_vote.yaml": "3d9c67cf44ece0244a908e5ff442d85a2a2ce662499d79aa939ef058f85ea1dd",
}


@pytest.fixture
def config_of(tmp_path):
    """`config_of(name)`: the path of an example, or of a text above."""
    (tmp_path / "full.yaml").write_text(FULL)
    (tmp_path / "application.yaml").write_text(APPLICATION)
    return lambda name: next(path for path in (tmp_path / name, EXAMPLES / name) if path.exists())


@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_is_the_one_it_was(config_of, name):
    path = config_of(name)
    config = read_config(path)
    assert config_identity(config) == SWEEPS[name]
    assert str(default_out(path, config)) == f"runs/{path.stem}-{SWEEPS[name][:8]}"


@pytest.mark.parametrize("name", TRAININGS)
def test_a_training_is_the_one_it_was(config_of, name):
    assert training_identity(read_config(config_of(name))) == TRAININGS[name]


def test_a_fine_tuning_is_the_one_it_was(config_of):
    config = read_config(config_of("full.yaml"))
    settings = parse_finetune(config.section("finetune")).model_dump(mode="json")
    assert (
        digest([identity_fields(config), settings])
        == "8514288956cd9d3db6fc32a02051afc357a1e056c90147c9e15adf2b42d3359a"
    )


def test_a_comparison_and_all_its_cells_are_those_they_were(config_of):
    matrix = read_matrix(config_of("full.yaml"))
    cells = [[list(cell), config_identity(made), training_identity(made)] for cell, made in matrix.configs.items()]
    assert digest(matrix.identity) == "d0c198c6f7adc1db1f3ae832cc0ed075087b5119867118adb1451544834a09da"
    assert digest(cells) == "df4d191d0fff19364d87b1fe4aafccf488bb2d086a2315bf61f1b48acb559857"
    changed = matrix.with_train(matrix.cells[0], lr=1e-3, eval={"test": False})
    assert training_identity(changed) == "b0de82ece3584ad16373a56cc3f65abc1d966a6d4cdf2cb25c9bbb1abfc0d90c"
