"""What is wrong with a section, in words: the dotted key, what was expected, what came, what to do.

In: pydantic's error and the data it is about. Out: one line for each key that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from pydantic import BaseModel, ValidationError

from collabsim.config.expected import kind_at, known_keys, short_form
from collabsim.errors import nearest

UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
NO_SECTION = ("model_type", "model_attributes_type", "dict_type", "dataclass_type")
NO_TEXT = ("string_type", "literal_error")


def problems_of(error: ValidationError, data: Any, schema: type[BaseModel], at: str = "") -> list[str]:
    """One line for each key of `data` that its schema refuses; `at` is the dotted key of `data`.

    Types that a value could have had are joined into one line, and a value that is wrong inside is not said to be wrong
    itself."""
    found: dict[tuple[str, ...], list[Any]] = {}
    for problem in error.errors():
        found.setdefault(_location(problem, data), []).append(problem)
    inner = {location[:length] for location in found for length in range(len(location))}
    return [
        _line(location, problems, schema, at)
        for location, problems in found.items()
        if location not in inner or any(not problem["type"].endswith("_type") for problem in problems)
    ]


def unknown_key(key: str, known: list[str]) -> str:
    """The line about a key that nobody reads."""
    return f"unknown key {key!r}{nearest(key.rpartition('.')[2], known)}; known here: {', '.join(sorted(known))}"


def below_a_section(key: str, schema: type[BaseModel]) -> str:
    """Where an unknown key on top of a file belongs, when one of its sections knows it: `method` is `sweep.method`."""
    places = [f"{name}.{key}" for name in schema.model_fields if key in known_keys(kind_at(schema, (name,)))]
    return f"; there is {' and '.join(places)}" if places else ""


def _location(problem: Any, data: Any) -> tuple[str, ...]:
    """The keys to a value; pydantic also names the types that it tried on the way."""
    keys: list[str] = []
    named = len(problem["loc"]) - 1 if problem["type"] in ("missing", *UNKNOWN) else None
    for place, part in enumerate(problem["loc"]):
        inside = isinstance(data, Mapping) and part in data
        inside = inside or (isinstance(data, list | tuple) and isinstance(part, int) and part < len(data))
        if inside or place == named:
            keys.append(str(part))
            data = data[part] if inside else None
    return tuple(keys)


def _line(location: tuple[str, ...], problems: list[Any], schema: type[BaseModel], at: str) -> str:
    first = problems[0]
    where = ".".join([at, *location] if at else location)
    if first["type"] in UNKNOWN:
        return unknown_key(where, known_keys(kind_at(schema, location[:-1]))) + _elsewhere(location, schema)
    if first["type"] == "missing":
        return f"the key {where!r} is missing; add it"
    expected = list(dict.fromkeys(_expected(problem, kind_at(schema, location)) for problem in problems))
    text = " or ".join([expected[0], *(other.removeprefix("Input should be ") for other in expected[1:])])
    return f"{where or 'config'}: {text}{_came(first.get('input'))}{_advice(problems)}"


def _elsewhere(location: tuple[str, ...], schema: type[BaseModel]) -> str:
    """Where a key of this name belongs, when the file as a whole knows it: `sweep.concurrency` is `concurrency`."""
    *above, key = location
    return (
        f"; {key!r} belongs on top of the file, not below {'.'.join(above)!r}"
        if above and key in known_keys(schema)
        else ""
    )


def _expected(problem: Any, kind: Any) -> str:
    if problem["type"] in NO_SECTION:
        short = short_form(kind)
        return "Input should be a valid dictionary" + (f" or text, its {short!r}" if short else "")
    return str(problem["msg"]).removeprefix("Value error, ")


def _came(value: Any) -> str:
    if isinstance(value, str | int | float | None):
        return f", got {value!r}"
    if isinstance(value, date):
        return f", got {value}"
    return f", got a {'list' if isinstance(value, list | tuple) else 'mapping'}" if _is_collection(value) else ""


def _is_collection(value: Any) -> bool:
    return isinstance(value, list | tuple | Mapping)


def _advice(problems: list[Any]) -> str:
    """What to do about a text that YAML read as something else."""
    value = problems[0].get("input")
    texts = any(problem["type"] in NO_TEXT for problem in problems)
    if not texts or not isinstance(value, bool | int | float | date):
        return ""
    if isinstance(value, bool):
        return f" (YAML reads {'yes, on and true' if value else 'no, off and false'} so); put text in quotes"
    return f"{' (a date)' if isinstance(value, date) else ''}; put text in quotes"
