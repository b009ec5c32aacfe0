r"""The form in which a prompt asks for an answer.

In: a gold and the template of a prompt. Out: the gold written as the prompt asks: `\boxed{...}`, answer tags, `#### ...`, or
an `Answer:` line. Left out on purpose: kinds that are asked for otherwise; their scorers say how.
"""

from __future__ import annotations


def asks_a_form(template: str) -> bool:
    """Whether a prompt says how the answer is to be written; one that only asks the question does not."""
    return any(sign in template.casefold() for sign in ("\\boxed", "answer", "####"))


def asked_form(gold: str, template: str | None) -> str:
    r"""`gold` in the form that a template asks for; an `Answer:` line where it names none, or there is no template."""
    template = template or ""
    if "\\boxed" in template:
        return f"\\boxed{{{gold}}}"
    if "</answer>" in template:
        return f"<answer>{gold}</answer>"
    return f"#### {gold}" if "####" in template else f"Answer: {gold}"
