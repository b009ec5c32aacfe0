"""Debates that members learn from: who said what, and what they agreed on.

In: a pool, items, a seed. Out: a `Debate` an item, the consensus of each, and the replies of a member that agree with it
as rows to train on. The protocol is the registered `debate`. A consensus is read from the last answers alone: golds score
debates for the report, and choose nothing. Left out on purpose: the training; see `finetuning.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from collabsim.context import Recorder
from collabsim.episode import Call, Reply
from collabsim.errors import MissingOutcomesError, StoreError
from collabsim.item import Answer, Item
from collabsim.nodes.voting import leading
from collabsim.request import Request
from collabsim.run_folder import write_text
from collabsim.store.codec import decode, encode
from collabsim.system.execute import CONCURRENCY, RunRequest, run_all
from collabsim.system.system import System

from ..policy.token_row import TokenRow
from ..records import Example, Row


class Said(NamedTuple):
    """One reply of a debate."""

    seat: str
    draw: int
    """0 is the opening answer, t the revision of round t."""
    reply: Reply


@dataclass(frozen=True, slots=True)
class Debate:
    """One debate on one item."""

    item: str
    outcome: float
    """By the gold; for reports only."""
    said: tuple[Said, ...]
    """By draw, then seat: not by who was ready first."""

    def by(self, seat: str) -> list[Said]:
        """What one seat said, in its order."""
        return [said for said in self.said if said.seat == seat]

    def last(self) -> dict[str, Reply]:
        """The last reply of every seat that spoke."""
        return {said.seat: said.reply for said in self.said}


class DebateRecorder(Recorder):
    """Collects the calls of one run, and what was said."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[Said] = []

    def record(self, call: Call, request: Request, reply: Reply) -> None:
        """Keep a call and its reply."""
        super().record(call, request, reply)
        self.said.append(Said(call.seat, call.draw, reply))


async def hold_debates(
    system: System, items: Sequence[Item], seed: int, *, concurrency: int = CONCURRENCY
) -> list[Debate]:
    """One debate of the whole pool on every item, in the order of `items`.

    Raises `MissingOutcomesError` when a call failed: what was generated is in the store, so the next try is short.
    """
    requests = (RunRequest(item, run_seed=seed, recorder=DebateRecorder) for item in items)
    held = []
    for request, episode, recorder in await run_all(system, requests, concurrency=concurrency):
        item, recorder = request.item, cast("DebateRecorder", recorder)
        if episode.outcome is None:
            reason = f"{episode.error.kind}: {episode.error.message}" if episode.error else "unknown"
            raise MissingOutcomesError(f"the debate on item {item.id} failed ({reason}); run the same command again")
        said = sorted(recorder.said, key=lambda one: (one.draw, one.seat))
        held.append(Debate(item.id, episode.outcome, tuple(said)))
    return held


def consensus(debate: Debate, item: Item, seats: int, support: float) -> Answer | None:
    """The answer that more than `support` of the `seats` gave last, if no other was given as often; else None."""
    found, votes = leading(debate.last().values(), item.answers)
    if len(found) != 1 or votes <= support * seats:
        return None
    return item.answers.extract(found[0].text, found[0].finish)


def agrees(reply: Reply, answer: Answer, item: Item) -> bool:
    """Whether a reply gives this answer, by the scorer's own equivalence."""
    own = item.answers.extract(reply.text, reply.finish)
    return own is not None and len(item.answers.group([answer, own])) == 1


class Lesson(NamedTuple):
    """A reply that agrees with the consensus, as its member is trained on it."""

    kind: str
    """`answer`: the opening one. `corrected`: a revision of something else. `kept`: a revision of the same answer."""
    example: Example


def lessons(debate: Debate, item: Item, seat: str, answer: Answer, corrected: float) -> list[Lesson]:
    """The seat's own replies that agree with `answer`, the consensus.

    An opening answer weighs 1; a revision `2 * corrected` where the seat's reply before it disagreed, else
    `2 * (1 - corrected)`: they are the generators' and the critics' data of Subramaniam et al. (arXiv 2501.05707), learnt
    here by one model, which plays both parts in our debate. Replies that were cut are left out.
    """
    found = []
    agreed = False
    for said in debate.by(seat):
        before, agreed = agreed, agrees(said.reply, answer, item)
        tokens = said.reply.tokens
        if not agreed or said.reply.finish != "stop" or tokens is None or not tokens.ids:
            continue
        kind = "answer" if said.draw == 0 else "kept" if before else "corrected"
        weight = {"answer": 1.0, "kept": 2 * (1 - corrected), "corrected": 2 * corrected}[kind]
        # Likelihood is that of the model itself, whatever temperature or top_p the reply was sampled with.
        row = Row(TokenRow(tokens.prompt_ids, tokens.ids), tokens.logprobs, 1.0, said.reply.revision, said.draw, "stop")
        if weight:
            found.append(Lesson(kind, Example(row, weight, 1.0, item.id)))
    return found


def write_debates(path: Path, debates: Iterable[Debate]) -> None:
    """One line of JSON a debate; the file is there in full or not at all. Raises `StoreError` when it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(map(_line, debates)))


def _line(debate: Debate) -> str:
    said = [[one.seat, one.draw, json.loads(encode(one.reply))] for one in debate.said]
    return json.dumps({"item": debate.item, "outcome": debate.outcome, "said": said}) + "\n"


def read_debates(path: Path) -> list[Debate] | None:
    """What `write_debates` wrote; None when there is no such file. Raises `StoreError` when it is damaged."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    try:
        return [_debate(json.loads(line)) for line in lines]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged ({error}); delete it and run the same command again") from None


def _debate(record: dict[str, Any]) -> Debate:
    said = (Said(seat, draw, decode(json.dumps(reply).encode())) for seat, draw, reply in record["said"])
    return Debate(record["item"], record["outcome"], tuple(said))
