"""Formats of conversations for models without a chat template.

In: messages in turn. Out: the text that a base model continues, and the strings that end its reply. A format is one
entry of `FORMATS`. Left out on purpose: anything a chat template does, and tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from collabsim.request import Messages

TEMPLATE = "template"
"""The `chat_format` of a model that uses its own template."""


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """Turns as labelled paragraphs; the last label is left open for the reply."""

    name: str
    user: str
    """Label of what is asked; empty for none."""
    assistant: str
    """Label of what is answered; empty for none."""

    @property
    def stop(self) -> tuple[str, ...]:
        """Strings that end a reply: a base model goes on with the next question by itself."""
        return tuple(f"\n{label}" for label in (self.user, self.assistant) if label)

    @property
    def version(self) -> str:
        """Part of the digest: equal for equal wording."""
        return f"{self.name}: {self.user!r} {self.assistant!r}"

    def write(self, messages: Messages) -> str:
        """The text that the model continues. It ends without a space: the reply brings its own."""
        paragraphs = [self._paragraph(message.role, message.content) for message in messages]
        if self.assistant:
            paragraphs.append(self.assistant)
        return "\n\n".join(paragraphs)

    def _paragraph(self, role: str, content: str) -> str:
        label = {"user": self.user, "assistant": self.assistant}.get(role, "")
        return f"{label} {self._without_labels(content)}".strip()

    def _without_labels(self, content: str) -> str:
        """The content with its own lines that begin like a turn indented, so that they open none."""
        labels = "|".join(re.escape(label) for label in (self.user, self.assistant) if label)
        return re.sub(rf"(?m)(?<=\n)(?={labels})", "  ", content) if labels else content


FORMATS = {
    known.name: known
    for known in (
        ChatFormat("plain", "Question:", "Answer:"),
        ChatFormat("dialogue", "User:", "Assistant:"),
        ChatFormat("raw", "", ""),
    )
}
"""`plain` for questions and answers (the default of a model without template), `dialogue` for talk, `raw` for prompts
that are written out in full."""
DEFAULT = "plain"
