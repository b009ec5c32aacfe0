"""What counts as a consensus, and which replies a member learns from."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from collabsim.trainers.finetune.debates import (
    Debate,
    Said,
    agrees,
    consensus,
    hold_debates,
    lessons,
    read_debates,
    write_debates,
)
from hypothesis import given
from hypothesis import strategies as st
from scripted import Scripted

from collabsim import System, make_item
from collabsim.episode import Reply, Tokens, Usage
from collabsim.errors import CallError, MissingOutcomesError, StoreError

ITEM = make_item("What is 2 + 3?", "5")


def reply(text, finish="stop"):
    return Reply(text, finish, Usage(3, 2), Tokens((1, 2, 3), tuple(text.encode()), (-0.5,) * len(text.encode())))


def debate(**said):
    """A debate by seat; each seat's texts in the order of its draws."""
    all_said = [
        Said(seat, draw, text if isinstance(text, Reply) else reply(text))
        for seat, texts in said.items()
        for draw, text in enumerate(texts)
    ]
    return Debate(ITEM.id, 0.0, tuple(sorted(all_said, key=lambda one: (one.draw, one.seat))))


def answer_of(held, seats=3, support=0.5):
    found = consensus(held, ITEM, seats, support)
    return None if found is None else found.text


def test_the_consensus_is_the_majority_of_the_last_answers():
    held = debate(a=["Answer: 9", "Answer: 4"], b=["Answer: 9", "Answer: 4"], c=["Answer: 9", "Answer: 9"])
    assert answer_of(held) == "4"


@pytest.mark.parametrize(
    ("last", "support", "found"),
    [
        (["Answer: 4", "Answer: 4", "Answer: 5", "Answer: 6"], 0.5, None),  # two of four are no majority
        (["Answer: 4", "Answer: 4", "Answer: 5", "Answer: 6"], 0.25, "4"),
        (["Answer: 4", "Answer: 4", "Answer: 5", "Answer: 5"], 0.0, None),  # a tie
        (["Answer: 4", "no idea", "no idea", "no idea"], 0.5, None),  # the silent are seats, too
        (["Answer: 4", "no idea", "no idea", "no idea"], 0.0, "4"),
        (["no idea"] * 4, 0.0, None),
        (["Answer: 1/2", "Answer: 0.5", "Answer: 50/100", "Answer: 3"], 0.5, "1/2"),
    ],
)
def test_a_consensus_is_one_answer_with_enough_support(last, support, found):
    held = debate(**dict(zip("abcd", ([text] for text in last), strict=True)))
    assert answer_of(held, seats=4, support=support) == found


@given(st.lists(st.sampled_from(["Answer: 4", "Answer: 5", "none"]), min_size=1, max_size=5), st.floats(0, 0.99))
def test_a_consensus_has_its_support_and_no_rival(last, support):
    held = debate(**{f"s{place}": [text] for place, text in enumerate(last)})
    found = answer_of(held, seats=len(last), support=support)
    counts = {text: last.count(f"Answer: {text}") for text in "45"}
    winners = [text for text in "45" if counts[text] == max(counts.values()) > support * len(last)]
    assert found == (winners[0] if len(winners) == 1 else None)


def kinds(held, seat="a", corrected=0.5, answer="Answer: 4"):
    extracted = ITEM.answers.extract(answer)
    return [(one.kind, one.example.advantage) for one in lessons(held, ITEM, seat, extracted, corrected)]


def test_a_member_learns_from_its_own_replies_that_agree_and_from_no_other():
    held = debate(a=["Answer: 4", "Answer: 9", "Answer: 4", "Answer: 4"], b=["Answer: 4", "Answer: 4"])
    assert kinds(held) == [("answer", 1.0), ("corrected", 1.0), ("kept", 1.0)]
    rows = [one.example.row for one in lessons(held, ITEM, "a", ITEM.answers.extract("Answer: 4"), 0.5)]
    assert [row.draw for row in rows] == [0, 2, 3]
    assert all(row.tokens.ids == tuple(b"Answer: 4") and row.temperature == 1.0 for row in rows)


def test_revisions_weigh_by_whether_they_came_round_to_the_consensus():
    held = debate(a=["Answer: 9", "Answer: 4", "Answer: 4"])
    assert kinds(held, corrected=0.75) == [("corrected", 1.5), ("kept", 0.5)]
    assert kinds(held, corrected=0.0) == [("kept", 2.0)]
    assert kinds(held, corrected=1.0) == [("corrected", 2.0)]


def test_replies_that_were_cut_and_replies_without_tokens_are_not_learnt():
    whole = Reply("Answer: 4")
    assert kinds(debate(a=[reply("Answer: 4\n", "length"), whole])) == []


def test_a_reply_agrees_by_the_scorers_own_equivalence_and_without_the_gold():
    assert agrees(reply("Answer: 1/2"), ITEM.answers.extract("Answer: 0.5"), ITEM)
    assert not agrees(reply("Answer: 5"), ITEM.answers.extract("Answer: 4"), ITEM)
    assert not agrees(reply("no idea"), ITEM.answers.extract("Answer: 4"), ITEM)


def test_golds_decide_nothing_that_is_learnt():
    held = debate(a=["Answer: 4", "Answer: 4"], b=["Answer: 4", "Answer: 4"], c=["Answer: 5", "Answer: 5"])
    other = replace(ITEM, gold="4")
    assert answer_of(held) == consensus(held, other, 3, 0.5).text == "4"
    learnt = [lessons(held, item, "a", item.answers.extract("Answer: 4"), 0.5) for item in (ITEM, other)]
    assert learnt[0] == learnt[1]


async def test_a_debate_records_what_each_seat_said_by_draw_whoever_was_ready_first():
    models = {name: Scripted(name, lambda request, name=name: f"{name} Answer: {request.draw}") for name in "ba"}
    (held,) = await hold_debates(System("debate", models, options={"rounds": 2}), [ITEM], 0)
    assert [(one.seat, one.draw, one.reply.text) for one in held.said] == [
        ("a", 0, "a Answer: 0"),
        ("b", 0, "b Answer: 0"),
        ("a", 1, "a Answer: 1"),
        ("b", 1, "b Answer: 1"),
    ]


async def test_a_failed_call_ends_it_with_what_to_do():
    models = {"a": Scripted("a", "Answer: 4"), "b": Scripted("b", lambda _: CallError("the server is gone"))}
    with pytest.raises(MissingOutcomesError, match=r"server is gone.*same command"):
        await hold_debates(System("debate", models), [ITEM], 0)


def test_debates_are_read_as_they_were_written(tmp_path):
    held = [debate(a=["Ä – \u2028 Answer: 4", reply("", "length")], b=["Answer: 5"])]
    write_debates(tmp_path / "new" / "debates.jsonl", held)
    assert read_debates(tmp_path / "new" / "debates.jsonl") == held
    assert read_debates(tmp_path / "none.jsonl") is None


def test_a_damaged_file_of_debates_is_named(tmp_path):
    (tmp_path / "debates.jsonl").write_text('{"item": "x"}\n')
    with pytest.raises(StoreError, match=r"debates.jsonl is damaged.*delete it"):
        read_debates(tmp_path / "debates.jsonl")


def test_a_full_disk_is_said_and_leaves_no_half_a_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("collabsim.run_folder.os", SimpleNamespace(replace=full, getpid=lambda: 1))
    with pytest.raises(StoreError, match="No space left"):
        write_debates(tmp_path / "debates.jsonl", [debate(a=["Answer: 4"])])
    assert list(tmp_path.iterdir()) == []
