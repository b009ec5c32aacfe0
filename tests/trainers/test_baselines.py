"""Golds as rows: the form in which a learner reads them is the one that the task's prompt asks for."""

from __future__ import annotations

import pytest
from collabsim.trainers.baselines import gold_rows
from engines import requires
from tiny_folders import CHATML, write_folder

from collabsim import Seat, make_item
from collabsim.models.local.local_model import LocalModel

pytestmark = requires("torch", "transformers")


@pytest.fixture(scope="module")
def seat(tmp_path_factory):
    folder = write_folder(tmp_path_factory.mktemp("models") / "llama", template=CHATML)
    return Seat("a", LocalModel(spec=str(folder), engine="transformers", dtype="float32"))


@pytest.mark.parametrize(
    ("prompt", "written"),
    [
        ("{question}", "37"),
        ("{question}\nEnd with 'Answer: ...'.", "Answer: 37"),
        ("{question} Put it into \\boxed{}.", "\\boxed{37}"),
        (None, "Answer: 37"),
    ],
)
def test_a_gold_is_bare_only_where_the_prompt_asks_for_no_form(seat, prompt, written):
    item = make_item("30 + 7", "37", prompt=prompt)
    (example,) = gold_rows(seat, [item], prompt).values()
    assert seat.model.prompter.tokenizer.decode(example.row.tokens.ids) == f"{written}</s>"
    assert example.advantage == 1.0
