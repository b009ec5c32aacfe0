"""Records of runs: replies, calls, episodes. Frozen, slotted, JSON-able; no behaviour.

In: results of engines. Out: records that the store, the game table and the trainer keep. A failed run is data: its
outcome is `None` and its `error` says why; it never becomes a zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collabsim.item import Score, Verdict


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens read and written by one generation."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Tokens:
    """The exact tokens of one generation, as the engine processed them. Training never re-tokenises text."""

    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Log-probability of each id in `ids` under the distribution it was sampled from (tempered, truncated)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply. An empty, cut or filtered text is still a reply; only infrastructure failures are not."""

    text: str
    finish: str = "stop"
    """`stop`, `length`, `content_filter`, or `overflow` (the prompt did not fit and the run chose `no_answer`)."""
    usage: Usage = Usage()
    tokens: Tokens | None = None
    revision: str = "0"
    """Version of the weights that made the reply, read from the engine during the call."""
    seconds: float = 0.0
    served_by: str | None = None
    """Model name and fingerprint that a server reported; a change between calls is warned about."""
    parts: tuple[Usage, ...] = ()
    """Tokens of each member, when several models made this reply together; `usage` is their sum."""


@dataclass(frozen=True, slots=True)
class Call:
    """One model call of a run; the text is in the store under `key`."""

    seat: str
    node: str
    draw: int
    revision: str
    key: str
    usage: Usage
    finish: str
    seconds: float
    reused: bool
    """True when the reply came from the store or from another run's request in flight."""
    tokens: Tokens | None = None
    """Only for calls of a seat being trained."""

    @property
    def paired(self) -> bool:
        """Whether other coalitions meet the same sample: False for a call that was not made through a seat and has no key."""
        return bool(self.key) or self.finish == "overflow"


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run has no outcome."""

    kind: str
    """Name of the exception class."""
    message: str
    where: str = ""
    """Node or seat in which it happened, as far as known."""


class Output(NamedTuple):
    """One text of a final output. Protocols may write plain `(text, weight)` tuples instead."""

    text: str
    weight: float
    finish: str = "stop"
    """The finish of the reply behind the text; a cut reply is scored as a cut one."""


Final: TypeAlias = tuple[Output, ...]
"""Final output of a run: texts with weights that sum to 1, or nothing when nobody answered. Ties are several texts."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One run of a system on one item, under one coalition and one seed."""

    item_id: str
    present: frozenset[str]
    """Names of the seats that were there."""
    run_seed: int
    replica: int
    final: Final
    outcome: float | None
    """Weighted mean score of `final`, in [0, 1]; None when the run failed."""
    verdict: Verdict | None
    """Verdict of the heaviest final text; None when no seat replied or the run failed."""
    calls: tuple[Call, ...]
    error: RunError | None
    seconds: float
    scores: tuple[Score, ...] = ()
    """The judgement of each text of `final`: the extracted answer, and why it is right or not."""

    @property
    def failed(self) -> bool:
        """Whether the run has no outcome."""
        return self.outcome is None
