"""An application that calls its models itself, with no seat in it. Loaded by path in tests."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import END, START, MessagesState, StateGraph


class Adder(BaseChatModel):
    """Adds the numbers of a question, or is off by `error`."""

    error: int = 0

    @property
    def _llm_type(self):
        return "adder"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        numbers = [int(word.strip("?+")) for word in messages[0].text.split() if word.strip("?+").isdigit()]
        usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
        message = AIMessage(f"Answer: {sum(numbers) + self.error}", usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])


async def guess(state: MessagesState):
    return {"messages": [await Adder(error=1).ainvoke(state["messages"])]}


def check(state: MessagesState):
    return {"messages": [Adder().invoke(state["messages"])]}


def make() -> StateGraph:
    graph = StateGraph(MessagesState)
    graph.add_node("guess", guess)
    graph.add_node("check", check)
    graph.add_edge(START, "guess")
    graph.add_edge("guess", "check")
    graph.add_edge("check", END)
    return graph


app = make().compile()


def last(state):
    return state["messages"][-1].text if state["messages"][-1].type == "ai" else None
