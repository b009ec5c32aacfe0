"""Annotations, limits and defaults of Python in plain words.

In: an annotation, a pydantic field or a parameter's default. Out: what a reader of YAML understands: "whole number above 0",
"list of text", "`auto`, `vllm`". `collabsim protocols` and the reference of config keys in the documentation say it so.
Left out on purpose: what a key means.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

PLAIN = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    Any: "anything",
    dict: "names with values",
}
LIMITS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
FIXED = {None: "none", True: "`true`", False: "`false`", "": "empty"}
LONGEST_DEFAULT = 60
"""Characters; longer texts are prompts."""


def is_section(kind: Any) -> bool:
    """Whether a class reads a section of a config."""
    return isinstance(kind, type) and (issubclass(kind, BaseModel) or is_dataclass(kind))


def takes(annotation: Any, place_of: Callable[[type], str], limits: str = "") -> str:
    """An annotation in words; `place_of` names the section that a class reads."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return takes(annotation.__origin__, place_of, limits)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inner)
    if origin in (Union, types.UnionType):
        parts = [takes(part, place_of, limits) for part in inner if part is not type(None)]
        return " or ".join(dict.fromkeys(parts))
    if is_section(annotation):
        return f"section `{place_of(annotation)}`"
    if origin in (dict, Mapping):
        return f"name: {takes(inner[1], place_of)}"
    if origin is tuple and Ellipsis not in inner:
        return " and ".join(takes(part, place_of) for part in inner)
    if origin in (list, tuple, Sequence):
        return f"list of {takes(inner[0], place_of)}"
    word = PLAIN.get(annotation, getattr(annotation, "__name__", str(annotation)))
    return f"{word} {limits}" if limits and annotation in (int, float) else word


def limits_of(metadata: Iterable[Any]) -> str:
    """`at least 0 and below 1`, from the constraints of a field."""
    entries = [part for entry in metadata for part in getattr(entry, "metadata", None) or [entry]]
    told = [
        f"{word} {getattr(entry, sign):g}"
        for entry in entries
        for sign, word in LIMITS.items()
        if getattr(entry, sign, None) is not None
    ]
    return " and ".join(told)


def default_in_words(value: Any) -> str:
    """A default as it stands in YAML."""
    if value is MISSING or value is inspect.Parameter.empty:
        return "required"
    if is_section(type(value)):
        return "its defaults"
    if isinstance(value, bool | str | None) and value in FIXED:
        return FIXED[value]
    if value in ((), {}, []):
        return "none"
    if isinstance(value, str) and (len(value) > LONGEST_DEFAULT or "\n" in value):
        return "a prompt of its own"
    return f"`{cell(str(list(value)) if isinstance(value, tuple) else str(value))}`"


def cell(text: str) -> str:
    """Text that fits into one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
