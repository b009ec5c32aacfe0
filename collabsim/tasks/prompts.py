"""The task's own prompt for an item.

In: a question with its options, the form that the item's scorer reads, and perhaps a template of the user's. Out: the text
of one user message. Left out on purpose: system prompts and examples; those are the seat's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from collabsim.errors import ConfigError

_PLACES = re.compile(r"\{(question|choices)\}")


def option_lines(choices: Mapping[str, str]) -> str:
    """The options, one a line: `A. text`."""
    return "\n".join(f"{letter}. {text}" for letter, text in choices.items())


def task_prompt(question: str, choices: Mapping[str, str], ending: str, template: str | None = None) -> str:
    """The text of an item's user message; `ending` says how to answer, `template` replaces the task's own wording."""
    if template is not None:
        values = {"question": question.strip(), "choices": option_lines(choices)}
        return _PLACES.sub(lambda place: values[place[1]], template)
    return "\n\n".join(part for part in (question.strip(), option_lines(choices), ending) if part)


def check_template(template: str | None, *, choices: bool) -> None:
    """Raises `ConfigError` for a template without `{question}`, or without `{choices}` where items have options."""
    places = set(_PLACES.findall(template or "{question}{choices}"))
    for name, needed in (("question", True), ("choices", choices)):
        if needed and name not in places:
            raise ConfigError(
                f"task.prompt: expected {{{name}}} in the template, got {template!r}; put it where it belongs"
            )
