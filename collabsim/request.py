"""Requests to models: messages, sampling settings, and the `Request` that joins them.

A `Message` is a plain `(role, content)` tuple, which LangChain takes as it is. `as_messages` accepts everything that
LangChain accepts (strings, tuples, dicts, `BaseMessage` objects) as long as the content is text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from pydantic import ConfigDict

from collabsim.errors import ConfigError

ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant", "system": "system"}


class Message(NamedTuple):
    """One turn of a conversation."""

    role: str
    """`system`, `user` or `assistant`."""
    content: str


Messages = tuple[Message, ...]


def as_messages(value: Any) -> Messages:
    """Any message or sequence of messages that LangChain knows, in our canonical form.

    Raises `ConfigError` for unknown roles and for content that is not text.
    """
    if isinstance(value, str | Mapping) or hasattr(value, "content") or _is_pair(value):
        value = (value,)
    return tuple(message if type(message) is Message else _as_message(message) for message in value)


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0] in ROLES


def _as_message(value: Any) -> Message:
    if isinstance(value, str):
        role, content = "user", value
    elif isinstance(value, Mapping):
        role, content = value.get("role", value.get("type", "")), value.get("content", "")
    elif hasattr(value, "content"):
        role, content = value.type, value.content
    else:
        role, content = value
    if role not in ROLES or not isinstance(content, str):
        raise ConfigError(
            f"expected a text message with role system, user or assistant, got role {role!r} with "
            f"{type(content).__name__} content; convert it before asking"
        )
    return Message(ROLES[role], content)


def with_text(messages: Messages, text: str) -> Messages:
    """The messages with `text` of the user at the end.

    A last turn of the user is continued rather than followed by a second one: many chat templates refuse two turns of
    one role in a row.
    """
    if messages and messages[-1].role == "user":
        return (*messages[:-1], Message("user", f"{messages[-1].content}\n\n{text}"))
    return (*messages, Message("user", text))


KINDS: tuple[tuple[tuple[str, ...], Any, str], ...] = (
    (("temperature", "top_p"), int | float, "a number"),
    (("top_k", "max_tokens"), int, "a whole number"),
    (("stop",), tuple, "a tuple of texts"),
    (("template",), Mapping, "a mapping"),
)
"""Kinds of the settings of `Sampling`, by name; `arguments.py` would make the longest chain of imports longer."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Settings for sampling a reply. All defaults are resolved here, so that no default of an engine is ever used."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    temperature: float = 0.7
    """0 means greedy: seed, draw, top_p and top_k then play no part and are not in the store's key."""
    top_p: float = 1.0
    top_k: int = 0
    """0 means no limit."""
    max_tokens: int = 512
    stop: tuple[str, ...] = ()
    template: Mapping[str, Any] = field(default_factory=dict)
    """Flags for the chat template, such as `enable_thinking`."""

    def __post_init__(self) -> None:
        for names, kind, expected in KINDS:
            for name in names:
                value = getattr(self, name)
                if not isinstance(value, kind) or isinstance(value, bool):
                    raise ConfigError(f"sampling: {name}: expected {expected}, got {value!r}")
        checks = {
            "temperature must be at least 0": self.temperature >= 0,
            "top_p must be in (0, 1]": 0 < self.top_p <= 1,
            "top_k must be at least 0": self.top_k >= 0,
            "max_tokens must be at least 1": self.max_tokens >= 1,
        }
        for rule, holds in checks.items():
            if not holds:
                raise ConfigError(f"sampling: {rule}, got {getattr(self, rule.partition(' ')[0])}")

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken."""
        return self.temperature == 0

    def replace(self, **changes: Any) -> Sampling:
        """A copy with some settings changed. Raises `ConfigError` for a setting that does not exist."""
        if not changes:
            return self
        unknown = changes.keys() - set(Sampling.__slots__)
        if unknown:
            raise ConfigError(f"sampling has no setting {sorted(unknown)}; it has {list(Sampling.__slots__)}")
        return Sampling(**{name: changes.get(name, getattr(self, name)) for name in Sampling.__slots__})

    def as_json(self) -> dict[str, Any]:
        """All settings as a plain dictionary."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Request:
    """One draw to be made by a model. Content only: nothing here depends on order or time."""

    messages: Messages
    sampling: Sampling
    seed: int
    draw: int = 0
    """Number of the sample of this seat for this item; distinguishes k samples of one prompt."""
