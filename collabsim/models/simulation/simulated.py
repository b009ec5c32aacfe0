"""Simulated models: answers from an item-response model, so that every value of a game has a closed form.

In: parameters of skill and manners, the items it may be asked (`study`), then requests. Out: replies that end with a
line `Answer: X`. It is a chat model like any other (LangChain's interface and `areply`) and needs no engine.

An own answer is right with probability `chance + (1 - chance) * sigmoid(skill(topic) - difficulty)`: the
three-parameter logistic model of item-response theory (Birnbaum 1968) with discrimination 1. Otherwise it is one of the
item's distractors, uniformly. Shown others' answers, the model adopts their plurality with probability `conformity`
(ties uniformly); else it keeps the answer it gave before in this conversation, or draws one. `expectations` has the
formulas. Asked to rank numbered answers, it puts those first that are what it would answer itself; asked how sure it is of
its answer, it states the probability above in percent; asked to go on with a text, it comes to the answer at once.

Everything said is a function of identity, seed and messages (of identity and messages at temperature 0): the same in
every process and in every order. Only infrastructure failures are not: `error_rate` is drawn anew for each attempt,
since it models the world and not the model, so a retry can succeed. Tokens are words. Left out on purpose: any effect
of temperature, system prompts or examples on accuracy.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from pydantic import ConfigDict, Field, PrivateAttr, field_validator

from collabsim.episode import Reply, Usage
from collabsim.errors import CallError
from collabsim.item import Item
from collabsim.models.chat.typed_model import TypedChatModel, as_chat_result
from collabsim.models.simulation.answer_key import AnswerKey, Match
from collabsim.models.simulation.conversation import (
    asks_for_confidence,
    asks_for_several,
    asks_to_go_on,
    fitting_options,
    numbered_answers,
    numbered_options,
    others_answers,
    own_answer,
)
from collabsim.models.simulation.distractors import (
    MOST_DISTRACTORS,
    canonical_answer,
    difficulty_of,
    right_answer,
    wrong_answers,
)
from collabsim.request import Messages, Request
from collabsim.seeds import SEED_BITS, derive_seed, digest

if TYPE_CHECKING:
    from collabsim.models.simulation.simulated_logits import SimulatedLogits

Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Logit = Annotated[float, Field(allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
T = TypeVar("T")

_WORLD = random.SystemRandom()  # decides about failures only; no seed, so that a retry can succeed

# Plain words that no answer reader can take for an answer: no digits, no single letters, no yes or no.
_FILLER = (
    *("looking", "over", "this", "task", "with", "care", "and", "weighing"),
    *("each", "part", "before", "going", "further", "along"),
)
_OPEN_THOUGHT = "<think>\n"  # a thought that never ends: the one text that is no answer of any kind
_STUDY = threading.Lock()  # of the module, not of a model: models stay picklable


class SimulatedModel(TypedChatModel):
    """A chat model that answers from an item-response model. What shapes its text cannot be changed afterwards.

    It knows right answers only through `study(items)`; asked anything else, it replies without an answer. What it
    studied is no part of its identity, so study before asking through a store that outlives the process.
    """

    model_config = ConfigDict(extra="forbid")

    name: str | None = Field(default=None, frozen=True)
    """Tells models with equal parameters apart (it is part of the identity); seats need no names for that."""
    skill: Logit | dict[str, Logit] = Field(default=0.0, frozen=True)
    """Ability in logits (0: even odds on an average item without guessing), or one per topic with a `default`."""
    conformity: Probability = Field(default=0.0, frozen=True)
    """Probability of adopting the plurality of the answers that others are shown to have given."""
    verbosity: int = Field(default=8, ge=0, frozen=True)
    """Filler words before the answer; they cost completion tokens and can push the answer over `max_tokens`."""
    no_answer_rate: Probability = Field(default=0.0, frozen=True)
    """Probability of a reply that commits to nothing."""
    distractors: int = Field(default=4, ge=1, le=MOST_DISTRACTORS, frozen=True)
    """Distinct wrong answers of an open item; a choice item has all its other options."""
    error_rate: Probability = 0.0
    """Probability that a call fails (`CallError`), drawn anew per attempt; no part of the identity."""
    latency: Seconds = 0.0
    """Seconds a call takes; no part of the identity."""
    latency_per_token: Seconds = 0.0
    """Seconds added for each completion token; no part of the identity."""

    _key: AnswerKey = PrivateAttr(default_factory=AnswerKey)

    @field_validator("skill")
    @classmethod
    def _needs_default(cls, skill: float | dict[str, float]) -> float | dict[str, float]:
        if isinstance(skill, dict) and "default" not in skill:
            raise ValueError("skill by topic needs a 'default' for topics that are not named")
        return skill

    @property
    def identity(self) -> str:
        """Content identity: the parameters that affect what is said. Equal parameters are one model."""
        skill = self.skill if isinstance(self.skill, dict) else {"": self.skill}
        rates = (*(value for _, value in sorted(skill.items())), self.conformity, self.no_answer_rate)
        counts = (int(self.verbosity), int(self.distractors))
        # As floats and without negative zero: numbers that are equal make equal identities.
        return _identity(self.name, tuple(sorted(skill)), tuple(float(rate) + 0.0 for rate in rates), counts)

    def study(self, items: Iterable[Item]) -> None:
        """Learn the right answers of these items. Additive, idempotent, safe from several threads."""
        learnt = list(items)
        with _STUDY:
            self._key = self._key.with_items(learnt)

    def skill_on(self, topic: str) -> float:
        """Ability on a topic, in logits."""
        return self.skill.get(topic, self.skill["default"]) if isinstance(self.skill, Mapping) else self.skill

    def p_correct(self, item: Item) -> float:
        """Probability that an own answer to the item (when one is given) is right."""
        return item.chance + (1 - item.chance) * sigmoid(self.skill_on(item.topic) - difficulty_of(item))

    def logit_model(self) -> SimulatedLogits:
        """This model as a language model over bytes, for ensembles."""
        from collabsim.models.simulation.simulated_logits import SimulatedLogits

        return SimulatedLogits(
            self._key, self.p_correct, distractors=self.distractors, no_answer_rate=self.no_answer_rate
        )

    async def areply(self, request: Request) -> Reply:
        """One reply, after `latency`. Raises `CallError` with probability `error_rate`."""
        started = time.perf_counter()
        reply = self._attempt(request)
        await asyncio.sleep(self._duration(reply))
        return self._timed(reply, started)

    def _attempt(self, request: Request) -> Reply:
        if self.error_rate and _WORLD.random() < self.error_rate:
            raise CallError(
                f"simulated model {self.name or self.identity[:18]}: simulated failure of the call; try again"
            )
        match = self._key.match(request.messages)
        seed = None if request.sampling.greedy else request.seed
        draws = _Draws(self.identity, seed, _digest(request.messages))
        silent = draws.uniform("no answer") < self.no_answer_rate
        answer = None if silent else self._said(request, match, draws)
        filler = "" if asks_to_go_on(request.messages) else self._filler(draws)
        text = f"{_OPEN_THOUGHT}{filler}" if answer is None else f"{filler}{answer}"
        return _cut(text, request)

    def _said(self, request: Request, match: Match | None, draws: _Draws) -> str | None:
        """The last line of the reply, or None for a reply without an answer."""
        last = len(request.messages) - 1
        says = match.rest if match and match.turn == last else request.messages[last].content if last >= 0 else ""
        if options := numbered_options(says):
            return str(self._route(options, match, draws))
        if match is None:
            return None
        if shown := numbered_answers(says, match.item):
            ranked = self._rank(shown, match.item, draws)
            return ", ".join(map(str, ranked if asks_for_several(says) else ranked[:1]))
        if asks_for_confidence(request.messages):
            return str(round(100 * self.p_correct(match.item)))
        return f"Answer: {self._answer(request, match, draws)}"

    def _answer(self, request: Request, match: Match, draws: _Draws) -> str:
        shown = others_answers(match, request.messages)
        if shown and draws.uniform("conform") < self.conformity:
            return draws.choice("plurality", plurality(shown))
        return own_answer(match, request.messages) or self._own_draw(match.item, draws)

    def _own_draw(self, item: Item, draws: _Draws) -> str:
        wrong = wrong_answers(item, self.distractors)
        right = not wrong or draws.uniform("right") < self.p_correct(item)
        return right_answer(item) if right else draws.choice("distractor", wrong)

    def _route(self, options: Sequence[tuple[int, str]], match: Match | None, draws: _Draws) -> int:
        """With probability sigmoid(skill) an option that fits the item's topic best, if any fits; else any option."""
        topic = match.item.topic if match else ""
        fitting = fitting_options(options, topic) if match else []
        if fitting and draws.uniform("route") < sigmoid(self.skill_on(topic)):
            return draws.choice("fitting option", fitting)
        return draws.choice("option", [number for number, _ in options])

    def _rank(self, shown: Sequence[tuple[int, str | None]], item: Item, draws: _Draws) -> list[int]:
        """Numbers of the shown answers: first those equal to what the model would answer itself, each part at random."""
        own = canonical_answer(self._own_draw(item, draws))

        def place(entry: tuple[int, str | None]) -> tuple[bool, float]:
            number, answer = entry
            return answer is None or canonical_answer(answer) != own, draws.uniform(f"place {number}")

        return [number for number, _ in sorted(shown, key=place)]

    def _filler(self, draws: _Draws) -> str:
        first = draws.below("filler", len(_FILLER))
        words = [_FILLER[(first + k) % len(_FILLER)] for k in range(self.verbosity)]
        return f"{' '.join(words).capitalize()}.\n" if words else ""

    def _duration(self, reply: Reply) -> float:
        return self.latency + self.latency_per_token * reply.usage.completion_tokens

    def _timed(self, reply: Reply, started: float) -> Reply:
        return Reply(reply.text, reply.finish, reply.usage, seconds=time.perf_counter() - started)

    @property
    def _llm_type(self) -> str:
        return "simulated"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 (LangChain's signature)
        **kwargs: Any,
    ) -> ChatResult:
        started = time.perf_counter()
        reply = self._attempt(self._request(messages, stop, kwargs))
        time.sleep(self._duration(reply))
        return as_chat_result(self._timed(reply, started))


@lru_cache(maxsize=1024)
def _identity(*spoken: Any) -> str:
    return f"simulated:{digest(spoken)}"


def sigmoid(logit: float) -> float:
    """1 / (1 + exp(-logit)), without overflow."""
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))


def plurality(answers: Iterable[str]) -> list[str]:
    """The most frequent answers (several when tied), each as it was first written."""
    spelling: dict[Any, str] = {}
    counts: dict[Any, int] = {}
    for answer in answers:
        key = canonical_answer(answer)
        spelling.setdefault(key, answer)
        counts[key] = counts.get(key, 0) + 1
    most = max(counts.values(), default=0)
    return [spelling[key] for key, count in counts.items() if count == most]


class _Draws:
    """Named uniform draws from one content seed: what a draw is called, not when it is made, decides its value."""

    __slots__ = ("_parts",)

    def __init__(self, identity: str, seed: int | None, messages: str) -> None:
        self._parts = (identity, seed, messages)

    def uniform(self, purpose: str) -> float:
        return derive_seed(*self._parts, purpose) / (1 << SEED_BITS)

    def below(self, purpose: str, count: int) -> int:
        return int(self.uniform(purpose) * count)

    def choice(self, purpose: str, options: Sequence[T]) -> T:
        return options[self.below(purpose, len(options))]


def _digest(messages: Messages) -> str:
    # surrogatepass: half an emoji, cut off by a server and quoted in a prompt, is a text like any other
    return sha256(json.dumps(messages).encode("utf-8", "surrogatepass")).hexdigest()


def _cut(text: str, request: Request) -> Reply:
    """The text up to the first stop sequence and to `max_tokens` words, with its usage and finish reason."""
    sampling = request.sampling
    text = text[: min([len(text), *(at for stop in sampling.stop if stop and (at := text.find(stop)) >= 0)])]
    words = text.split()
    finish = "stop"
    if len(words) > sampling.max_tokens:
        words, finish = words[: sampling.max_tokens], "length"
        text = " ".join(words)
    read = sum(len(message.content.split()) for message in request.messages)
    return Reply(text, finish, Usage(prompt_tokens=read, completion_tokens=len(words)))
