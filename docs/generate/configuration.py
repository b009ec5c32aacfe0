"""The reference of config keys, made from the classes that read a config.

In: docs/configuration.md, where a pair of comments, `<!-- keys: PLACE -->` and `<!-- end -->`, stands for each section. Out:
the same page with a table between each pair: key, what it takes, default, meaning. Meanings are the attribute docstrings of
the classes. Run as a program it writes the page; the site's build makes it anew in memory, and a test compares the two.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Set
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from meanings import MEANINGS, OPTIONS
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from collabsim.cli.plain_words import cell, default_in_words, is_section, limits_of, takes

PAGE = Path(__file__).parents[1] / "configuration.md"
MARKED = re.compile(r"(<!-- keys: (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
WHOLE = "whole file"
APPLICATION = "protocol of an application"
SCHEMES = {
    "simulated": ("simulated:", frozenset[str]()),
    "openai": ("openai:NAME", frozenset({"name", "model", "base_url", "revision"})),
    "local": ("a-folder", frozenset({"name", "spec", "engine", "revision_of_weights"})),
}
"""Kind of model -> a spec of it, and the fields of its class that stand beside `options` in a config."""

Key = tuple[str, str, str, str]
"""A row: key, what it takes, default, meaning."""


def page(markdown: str) -> str:
    """The page with every table as the classes have it now. Raises `KeyError` for a place that does not exist."""
    tables = {**sections(), **model_options(), **protocol_options()}
    return MARKED.sub(lambda found: f"{found[1]}\n{_table(tables[found[2]])}\n{found[4]}", markdown)


def _table(rows: list[Key]) -> str:
    head = "| key | takes | default | meaning |\n|---|---|---|---|\n"
    return head + "".join(f"| `{key}` | {kind} | {default} | {cell(text)} |\n" for key, kind, default, text in rows)


# ---- sections of a config ------------------------------------------------------------------------------------------


def sections() -> dict[str, list[Key]]:
    """Place of a section, such as `pool.NAME` or `train.lora`, to its keys."""
    places = _places()
    return {place: list(_keys_of(kind, places)) for kind, place in places.items()}


def _places() -> dict[type, str]:
    """Each class that reads a part of a config, and the first place where it does."""
    from collabsim.trainers import FinetuneConfig, TrainConfig
    from collabsim.trainers.compare.matrix import CompareConfig

    from collabsim.config.schema import ApplicationConfig, Config

    found: dict[type, str] = {}
    commands = {"train": TrainConfig, "compare": CompareConfig, "finetune": FinetuneConfig}
    for place, kind in {"": Config, APPLICATION: ApplicationConfig, **commands}.items():
        _collect(kind, place, found)
    return {kind: place or WHOLE for kind, place in found.items()}


def _collect(kind: type, place: str, found: dict[type, str]) -> None:
    if kind in found:
        return
    found[kind] = place
    for name in _names(kind):
        for inner, named in _sections_in(get_type_hints(kind)[name]):
            _collect(inner, ".".join(part for part in (place, name, "NAME" if named else "") if part), found)


def _sections_in(annotation: Any, named: bool = False) -> Iterator[tuple[type, bool]]:
    """The section classes in an annotation, and whether they stand below names of the user's."""
    if is_section(annotation):
        yield annotation, named
    for inner in get_args(annotation):
        yield from _sections_in(inner, named or get_origin(annotation) is dict)


def _names(kind: type) -> list[str]:
    return list(kind.model_fields) if issubclass(kind, BaseModel) else [field.name for field in fields(kind)]


def _keys_of(kind: type, places: Mapping[type, str], leave_out: Set[str] = frozenset()) -> Iterator[Key]:
    """The keys that a class reads, in its order."""
    told = meanings_of(kind)
    for name in (name for name in _names(kind) if name not in leave_out):
        annotation = get_type_hints(kind)[name]
        limits = limits_of(kind.model_fields[name].metadata if issubclass(kind, BaseModel) else ())
        yield name, takes(annotation, places.__getitem__, limits), _default(kind, name), told.get(name, "")


def _default(kind: type, name: str) -> str:
    if not issubclass(kind, BaseModel):
        (field,) = [entry for entry in fields(kind) if entry.name == name]
        return default_in_words(field.default if field.default_factory is MISSING else field.default_factory())
    value = kind.model_fields[name].get_default(call_default_factory=True, validated_data={})
    return default_in_words(MISSING if value is PydanticUndefined else value)


# ---- meanings ------------------------------------------------------------------------------------------------------


def meanings_of(kind: type) -> dict[str, str]:
    """The attribute docstrings of a class and its bases, and the words of `MEANINGS` for keys that have none."""
    told: dict[str, str] = {}
    for base in reversed([base for base in kind.__mro__ if base.__module__.startswith("collabsim.")]):
        told |= {**MEANINGS.get(base.__name__, {}), **_attribute_docstrings(base)}
    return told


def _attribute_docstrings(kind: type) -> dict[str, str]:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    told = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            told[ast.unparse(field.target)] = inspect.cleandoc(str(text.value.value))
    return told


# ---- options -------------------------------------------------------------------------------------------------------


def model_options() -> dict[str, list[Key]]:
    """`options of SCHEME` -> what `options:` of a seat may hold for models of this scheme."""
    from langchain_core.language_models import BaseChatModel

    from collabsim.models import resolve_model

    inherited = set(BaseChatModel.model_fields) - {"name"}
    tables = {}
    for scheme, (spec, beside) in SCHEMES.items():
        tables[f"options of {scheme}"] = list(_keys_of(type(resolve_model(spec)), {}, inherited | beside))
    return tables


def protocol_options() -> dict[str, list[Key]]:
    """`options of protocols` -> one row for each option of each protocol that comes with collabsim."""
    from collabsim.protocols import as_protocol, registered

    rows: list[Key] = []
    for name in (name for name, point in registered().items() if point.value.startswith("collabsim.")):
        protocol = as_protocol(name)
        kinds = protocol.option_kinds()
        for option, parameter in protocol.options().items():
            kind = takes(kinds[option], {}.__getitem__, limits_of(getattr(kinds[option], "__metadata__", ())))
            told = OPTIONS.get(f"{name}.{option}", OPTIONS.get(option, ""))
            rows.append((f"{name}.{option}", kind, default_in_words(parameter.default), told))
    return {"options of protocols": rows}


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
