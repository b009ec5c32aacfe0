"""`SeatModel("name")`: a LangChain chat model that asks through the current run.

In: a call of any `BaseChatModel`, inside a run of a system. Out: the reply of the seat's model, by way of `ask`: from
the generation store, with a seed that follows from content, under the swaps and coalitions of the run. An application
that uses it in the place of its models can be measured with paired draws, and trained.

Outside of any run it calls its `default` model, so one application serves production and measurement. Left out
on purpose: token streaming (a reply arrives whole) and native tool interfaces; see `tool_text` for what tools become.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult, LLMResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from collabsim.context import RunContext
from collabsim.episode import Reply
from collabsim.errors import ConfigError, ProtocolError
from collabsim.foreign.calls import SEAT_PROVIDER
from collabsim.foreign.toggling import SeatOff
from collabsim.foreign.tool_text import as_text, read_calls
from collabsim.loop import run_sync
from collabsim.models.chat.typed_model import as_chat_result
from collabsim.nodes.asking import Absent, ask
from collabsim.nodes.current_run import CURRENT_RUN
from collabsim.request import Messages
from collabsim.seeds import digest

SAMPLING = ("temperature", "top_p", "top_k", "max_tokens")
KNOWN = (*SAMPLING, "stop", "draw", "tools", "tool_choice", "ls_structured_output_format")


class SeatModel(BaseChatModel):
    """A seat as a chat model. Sampling is the seat's; `temperature` and the like, when bound, override it."""

    seat: str
    default: BaseChatModel | None = None
    """The model that replies outside of any run; None: calls there raise `ProtocolError`."""

    def __init__(self, seat: str, default: BaseChatModel | None = None, **fields: Any) -> None:
        """`SeatModel("critic")`. LangChain's cache is off by default: it would answer all draws of a prompt alike."""
        options: dict[str, Any] = {"cache": False, **fields, "seat": seat, "default": default}
        super().__init__(**options)

    @property
    def _llm_type(self) -> str:
        return "collabsim-seat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"seat": self.seat}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:  # noqa: ARG002
        return LangSmithParams(ls_provider=SEAT_PROVIDER, ls_model_name=self.seat, ls_model_type="chat")

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The seat with tools that its prompt describes; calls are read from its text.

        `tool_choice` is written into the prompt, too, and cannot be forced: a weak model may answer without any call.
        """
        schemas = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=schemas, tool_choice=tool_choice, **kwargs)

    async def agenerate(self, *args: Any, **kwargs: Any) -> LLMResult:
        """LangChain's, unless the seat is off and has no stand-in: its node then abstains."""
        self._check_present()
        return await super().agenerate(*args, **kwargs)

    def generate(self, *args: Any, **kwargs: Any) -> LLMResult:
        """LangChain's, unless the seat is off and has no stand-in: its node then abstains."""
        self._check_present()
        return super().generate(*args, **kwargs)

    def _check_present(self) -> None:
        # Not in `_agenerate`: LangChain takes an exception there for a failed call.
        run = CURRENT_RUN.get()
        if run is not None and self.seat not in run.stand_ins and run.speaker(self.seat) is None:
            raise SeatOff(self.seat)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        run = CURRENT_RUN.get()
        if run is None:
            speaker = self._outside(kwargs)
            return ChatResult(generations=[ChatGeneration(message=await speaker.ainvoke(messages, stop=stop))])
        return await self._ask(run, messages, stop, _node(run_manager), kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        run = CURRENT_RUN.get()
        if run is None:
            speaker = self._outside(kwargs)
            return ChatResult(generations=[ChatGeneration(message=speaker.invoke(messages, stop=stop))])
        return run_sync(self._ask(run, messages, stop, _node(run_manager), kwargs))

    def _outside(self, keywords: dict[str, Any]) -> Runnable[Any, AIMessage]:
        """The default model, with what was bound to this one."""
        if self.default is None:
            raise ProtocolError(
                f"seat {self.seat!r} was asked outside of any run. Run the application through "
                "from_graph(app, pool).run(item), or give SeatModel(name, default=model); a thread of your own "
                "sees the run when it is started with contextvars.copy_context().run"
            )
        tools, choice = keywords.get("tools"), keywords.get("tool_choice")
        speaker: Any = self.default.bind_tools(tools, tool_choice=choice) if tools else self.default
        return speaker.bind(**{name: keywords[name] for name in SAMPLING if name in keywords})  # type: ignore[no-any-return]

    async def _ask(
        self, run: RunContext, messages: list[BaseMessage], stop: list[str] | None, node: str, keywords: dict[str, Any]
    ) -> ChatResult:
        unknown = keywords.keys() - set(KNOWN)
        if unknown:
            raise ConfigError(f"SeatModel({self.seat!r}) knows {', '.join(KNOWN)}, got {sorted(unknown)}; leave it out")
        if run.speaker(self.seat) is None:
            return await _stand_in(run, self.seat, messages)
        tools = keywords.get("tools") or []
        prompt = as_text(messages, tools, keywords.get("tool_choice"))
        sampling = {name: keywords[name] for name in SAMPLING if keywords.get(name) is not None}
        if stop:
            sampling["stop"] = tuple(stop)
        draw = keywords.get("draw")
        if draw is None:
            draw = run.recorder.occurrence(_content_key(self.seat, prompt, sampling))
        reply = await ask(_BareRuntime(run), self.seat, prompt, draw=draw, node=node, **sampling)
        assert not isinstance(reply, Absent)
        return _result(reply, [self.seat, run.item.id, draw, prompt]) if tools else as_chat_result(reply)


@dataclass(frozen=True, slots=True)
class _BareRuntime:
    """The part of a LangGraph runtime that `ask` needs."""

    context: RunContext


def _content_key(seat: str, messages: Messages, sampling: dict[str, Any]) -> str:
    """The content of a call. Calls of one run that share it are samples of one prompt, so their draws must differ."""
    return digest([seat, [list(message) for message in messages], sampling])


def _result(reply: Reply, origin: list[Any]) -> ChatResult:
    """A reply with the tool calls that its text holds."""
    parsed = read_calls(reply.text, origin)
    result = as_chat_result(reply)
    message = result.generations[0].message
    changes = {"content": parsed.text, "tool_calls": parsed.calls, "invalid_tool_calls": parsed.broken}
    return ChatResult(generations=[ChatGeneration(message=message.model_copy(update=changes))])


async def _stand_in(run: RunContext, seat: str, messages: list[BaseMessage]) -> ChatResult:
    """The reply in the place of a seat that is off."""
    rule = run.stand_ins[seat]
    reply = rule(messages) if callable(rule) else rule
    reply = await reply if inspect.isawaitable(reply) else reply
    message = AIMessage(reply) if isinstance(reply, str) else reply.model_copy(deep=True)
    return ChatResult(generations=[ChatGeneration(message=message)])


def _node(manager: Any) -> str:
    """The node that asks, as LangGraph notes it for callbacks."""
    return str((getattr(manager, "metadata", None) or {}).get("langgraph_node") or "")
