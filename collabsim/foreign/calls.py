"""Model calls that an application makes by itself, not through a seat.

In: LangChain's callbacks during one run. Out: `Call` records in the run's recorder, without a key: there is no seed, no
store and no token id behind them, so no other run can meet the same reply. A sweep with such calls is not paired.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import ChatGeneration, LLMResult

from collabsim.context import Recorder
from collabsim.episode import Call, Episode, Reply
from collabsim.errors import ProtocolError
from collabsim.models.chat.langchain_model import as_reply

SEAT_PROVIDER = "collabsim"
"""The name of `SeatModel` in LangChain's metadata; its calls are recorded by `ask`."""


class CallWatcher(BaseCallbackHandler):
    """Records the calls of one run that were not made through a seat."""

    run_inline = True  # otherwise asynchronous runs would hand every event to another thread

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: dict[UUID, tuple[str, str, float]] = {}

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """A chat model is asked."""
        self._begin(serialized, run_id, kwargs.get("metadata") or {})

    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """A model of plain text is asked."""
        self._begin(serialized, run_id, kwargs.get("metadata") or {})

    def _begin(self, serialized: Any, run_id: UUID, metadata: dict[str, Any]) -> None:
        if metadata.get("ls_provider") != SEAT_PROVIDER:
            name = metadata.get("ls_model_name") or (serialized or {}).get("name") or "model"
            self._open[run_id] = str(name), str(metadata.get("langgraph_node") or ""), perf_counter()

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """It has replied."""
        if run_id not in self._open:
            return
        name, node, started = self._open.pop(run_id)
        reply = _reply(response)
        self._recorder.calls.append(
            Call(
                seat=name,
                node=node,
                draw=0,
                revision="",
                key="",
                usage=reply.usage,
                finish=reply.finish,
                seconds=perf_counter() - started,
                reused=False,
            )
        )

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """It has failed; whether that fails the run is up to the application."""
        self._open.pop(run_id, None)


def _reply(response: LLMResult) -> Reply:
    """The first generation of a result, as far as it is known."""
    first = response.generations[0][0] if response.generations and response.generations[0] else None
    if isinstance(first, ChatGeneration):
        return as_reply(first.message)
    return Reply("" if first is None else first.text)


def require_paired(episode: Episode) -> None:
    """Raises `ProtocolError` when a run made calls outside its seats: they have no seed and no token ids to train with."""
    unpaired = next((call for call in episode.calls if not call.paired), None)
    if unpaired is not None:
        where = f"node {unpaired.node!r}" if unpaired.node else "the application"
        raise ProtocolError(
            f"{where} called the model {unpaired.seat!r} itself, so its samples have no seed and no token ids; put a seat in "
            f"its place, model = SeatModel('{unpaired.node or 'solver'}'), and the model into the pool: "
            f"from_graph(app, {{'{unpaired.node or 'solver'}': model}})"
        )
