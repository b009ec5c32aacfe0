"""What a model is asked: the task's own prompt for an item.

In: a record and perhaps a template of the user's. Out: the text of one user message. The task owns prompt and scorer
together: each prompt ends with the form that its scorer reads. Left out on purpose: system prompts and examples; those are
the seat's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from collabsim.errors import ConfigError

_FORMS = {"number": "<number>", "choice": "<letter>"}
_PLACES = re.compile(r"\{(question|choices)\}")


def option_lines(choices: Mapping[str, str]) -> str:
    """The options, one a line: `A. text`."""
    return "\n".join(f"{letter}. {text}" for letter, text in choices.items())


def task_prompt(
    question: str, choices: Mapping[str, str], kind: str, template: str | None = None, *, entry_point: str | None = None
) -> str:
    """The text of an item's user message; `template` replaces the task's own wording."""
    if template is not None:
        values = {"question": question.strip(), "choices": option_lines(choices)}
        return _PLACES.sub(lambda place: values[place[1]], template)
    parts = [question.strip(), option_lines(choices), _ending(kind, entry_point)]
    return "\n\n".join(part for part in parts if part)


def _ending(kind: str, entry_point: str | None) -> str:
    if kind == "code":
        return "Reply with one Python code block" + (f" that defines `{entry_point}`." if entry_point else ".")
    place = "End with:" if kind == "verifier" else "End with one line:"  # verified answers may have several lines
    return f"{place} Answer: {_FORMS.get(kind, '<answer>')}"


def check_template(template: str | None, *, choices: bool) -> None:
    """Raises `ConfigError` for a template without `{question}`, or without `{choices}` where items have options."""
    places = set(_PLACES.findall(template or "{question}{choices}"))
    for name, needed in (("question", True), ("choices", choices)):
        if needed and name not in places:
            raise ConfigError(
                f"task.prompt: expected {{{name}}} in the template, got {template!r}; put it where it belongs"
            )


def asks_a_form(template: str) -> bool:
    """Whether a prompt says how the answer is to be written; one that only asks the question does not."""
    return any(sign in template.casefold() for sign in ("\\boxed", "answer", "####"))


def asked_form(gold: str, kind: str, template: str | None) -> str:
    r"""`gold` in the form that the prompt asks for: `\boxed{...}`, answer tags, `#### ...`, code, or an `Answer:` line."""
    template = template or ""
    if kind == "code":
        return f"```python\n{gold.strip()}\n```"
    if "\\boxed" in template:
        return f"\\boxed{{{gold}}}"
    if "</answer>" in template:
        return f"<answer>{gold}</answer>"
    return f"#### {gold}" if "####" in template else f"Answer: {gold}"
