"""The reference of config keys, made from the classes that read a config.

In: docs/configuration.md, in which a pair of comments, `<!-- keys: PLACE -->` and `<!-- end -->`, stands for each section. Out:
the same page with a table between each pair: key, what it takes, default, meaning. Meanings are the attribute docstrings of
the classes. Run as a program it writes the page; the build of the site makes it anew in memory, and a test compares the two.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from meanings import MEANINGS, OPTIONS
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

PAGE = Path(__file__).parents[1] / "configuration.md"
MARKED = re.compile(r"(<!-- keys: (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
PLAIN = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    Any: "anything",
    type(None): "`null`",
}
LIMITS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
LONGEST_DEFAULT = 60

Key = tuple[str, str, str, str]
"""A row: key, what it takes, default, meaning."""


def page(markdown: str) -> str:
    """The page with every table as the classes have it now. Raises `KeyError` for a place that does not exist."""
    tables = {**sections(), **model_options(), **protocol_options()}
    return MARKED.sub(lambda found: f"{found[1]}\n{_table(tables[found[2]])}\n{found[4]}", markdown)


def _table(rows: list[Key]) -> str:
    head = ["| key | takes | default | meaning |", "|---|---|---|---|"]
    return (
        "\n".join(head + [f"| `{key}` | {takes} | {default} | {text} |" for key, takes, default, text in rows]) + "\n"
    )


# ---- sections of a config ------------------------------------------------------------------------------------------


def sections() -> dict[str, list[Key]]:
    """Place of a section, such as `pool.NAME` or `train.lora`, to its keys."""
    places = {place: kind for kind, place in _places().items()}
    return {place: list(keys_of(kind)) for place, kind in places.items()}


def _places() -> dict[type, str]:
    """Each class that reads a part of a config, and the first place where it does."""
    from collabsim.config.schema import ApplicationConfig, Config

    from collabsim.trainers import FinetuneConfig, TrainConfig
    from collabsim.trainers.matrix import CompareConfig

    found: dict[type, str] = {}
    roots = {"": Config, "protocol of an application": ApplicationConfig}
    commands = {"train": TrainConfig, "compare": CompareConfig, "finetune": FinetuneConfig}
    for place, kind in {**roots, **commands}.items():
        _collect(kind, place, found)
    return {kind: place or "whole file" for kind, place in found.items()}


def _collect(kind: type, place: str, found: dict[type, str]) -> None:
    if kind in found:
        return
    found[kind] = place
    for name, annotation in _annotations(kind).items():
        for inner, named in _sections_in(annotation):
            _collect(inner, ".".join(part for part in (place, name, "NAME" if named else "") if part), found)


def _sections_in(annotation: Any, named: bool = False) -> Iterator[tuple[type, bool]]:
    """The section classes in an annotation, and whether they stand below names of the user's."""
    if _is_section(annotation):
        yield annotation, named
    for inner in get_args(annotation):
        yield from _sections_in(inner, named or get_origin(annotation) is dict)


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and (issubclass(kind, BaseModel) or is_dataclass(kind))


def _annotations(kind: type) -> dict[str, Any]:
    names = kind.model_fields if issubclass(kind, BaseModel) else [field.name for field in fields(kind)]
    hints = get_type_hints(kind)
    return {name: hints[name] for name in names}


def keys_of(kind: type) -> Iterator[Key]:
    """The keys that a class reads, in its order."""
    told = _meanings(kind)
    for name, annotation in _annotations(kind).items():
        yield name, _takes(annotation, _limits(kind, name)), _default(kind, name), _cell(told.get(name, ""))


def _meanings(kind: type) -> dict[str, str]:
    """The attribute docstrings of a class and its bases, and `MEANINGS` for keys that have none."""
    told: dict[str, str] = {}
    for base in reversed(
        kind.__mro__[: kind.__mro__.index(BaseModel)] if issubclass(kind, BaseModel) else kind.__mro__
    ):
        told |= {name: text for name, text in MEANINGS.get(base.__name__, {}).items() if name not in told}
        told |= _attribute_docstrings(base)
    return told


def _attribute_docstrings(kind: type) -> dict[str, str]:
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError):
        return {}
    assert isinstance(tree, ast.ClassDef)
    told = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            told[ast.unparse(field.target)] = inspect.cleandoc(str(text.value.value))
    return told


def _limits(kind: type, name: str) -> str:
    """`above 0` and the like."""
    metadata = kind.model_fields[name].metadata if issubclass(kind, BaseModel) else ()
    told = [
        f"{word} {limit:g}"
        for entry in metadata
        for sign, word in LIMITS.items()
        if (limit := getattr(entry, sign, None)) is not None
    ]
    return " and ".join(told)


def _default(kind: type, name: str) -> str:
    if issubclass(kind, BaseModel):
        field = kind.model_fields[name]
        value = field.default if field.default is not PydanticUndefined else MISSING
        factory = field.default_factory
    else:
        (field,) = [entry for entry in fields(kind) if entry.name == name]
        value, factory = field.default, None if field.default_factory is MISSING else field.default_factory
    return shown(factory() if factory else value)  # type: ignore[call-arg]


def shown(value: Any) -> str:
    """A default as it stands in YAML."""
    if value is MISSING or value is inspect.Parameter.empty:
        return "required"
    if _is_section(type(value)):
        return "its defaults"
    if value in ((), {}, []):
        return "none"
    if isinstance(value, str) and (len(value) > LONGEST_DEFAULT or "\n" in value):
        return "a prompt of its own"
    words = {None: "none", True: "`true`", False: "`false`", "": "empty"}
    if isinstance(value, bool | str | None) and value in words:
        return words[value]
    text = str(list(value)) if isinstance(value, tuple) else str(value)
    return f"`{_cell(text)}`"


def _takes(annotation: Any, limits: str = "") -> str:
    """An annotation in plain words."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return _takes(annotation.__origin__, limits)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inner)
    if origin in (Union, types.UnionType):
        return " or ".join(_takes(part, limits) for part in inner if part is not type(None))
    if _is_section(annotation):
        return f"section `{_places()[annotation]}`"
    if (
        origin is dict
        or origin is Mapping
        or origin is types.MappingProxyType
        or annotation is dict
        or str(origin) == "<class 'collections.abc.Mapping'>"
    ):
        return f"name: {_takes(inner[1])}" if inner else "names with values"
    if origin in (list, tuple) or str(origin) == "<class 'collections.abc.Sequence'>":
        parts = [part for part in inner if part is not Ellipsis]
        return (
            f"list of {_takes(parts[0])}"
            if origin is not tuple or Ellipsis in inner
            else " and ".join(map(_takes, parts))
        )
    word = PLAIN.get(annotation, getattr(annotation, "__name__", str(annotation)))
    return f"{word} {limits}" if limits and annotation in (int, float) else word


def _cell(text: str) -> str:
    """Text that fits into one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


# ---- options -------------------------------------------------------------------------------------------------------


def model_options() -> dict[str, list[Key]]:
    """`options of SCHEME` -> what `options:` of a seat may hold for models of this scheme."""
    from langchain_core.language_models import BaseChatModel

    from collabsim.models.resolve import resolve_model

    beside = {
        "simulated": {"name"},
        "openai": {"model", "base_url", "revision"},
        "local": {"spec", "engine", "revision_of_weights"},
    }
    specs = {"simulated": "simulated:", "openai": "openai:NAME", "local": "a-folder"}
    tables = {}
    for scheme, spec in specs.items():
        kind = type(resolve_model(spec))
        inherited = {*BaseChatModel.model_fields, *beside[scheme]} - ({"name"} if scheme == "simulated" else set())
        tables[f"options of {scheme}"] = [row for row in keys_of(kind) if row[0] not in inherited]
    return tables


def protocol_options() -> dict[str, list[Key]]:
    """`options of protocols` -> one row for each option of each protocol that comes with collabsim."""
    from collabsim.protocols import as_protocol, registered

    rows: list[Key] = []
    for name, point in registered().items():
        if not point.value.startswith("collabsim."):
            continue
        protocol = as_protocol(name)
        hints = get_type_hints(protocol.build, include_extras=True)
        for option, parameter in protocol.options().items():
            limits = _annotated_limits(hints[option])
            told = OPTIONS.get(f"{name}.{option}", OPTIONS.get(option, ""))
            rows.append((f"{name}.{option}", _takes(hints[option], limits), shown(parameter.default), told))
    return {"options of protocols": rows}


def _annotated_limits(hint: Any) -> str:
    entries = [part for field in getattr(hint, "__metadata__", ()) for part in getattr(field, "metadata", [field])]
    told = [
        f"{word} {limit:g}"
        for entry in entries
        for sign, word in LIMITS.items()
        if (limit := getattr(entry, sign, None)) is not None
    ]
    return " and ".join(told)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
