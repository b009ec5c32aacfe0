"""Raw rows of data sets in one form.

In: a mapping as it stands in a file. Out: a `Record`: question, gold, options by letter, and what else the row says.
Options come as a mapping, a list, or the hub's `{"text": [...], "label": [...]}`; letters are given anew (A, B, ...) and the
gold follows. Programs are judged by `tests`, so their gold (a reference solution) may be missing. Rows that cannot be
mended are `Unusable`, with the reason under which they are counted. Left out on purpose: prompts and scorers; see
`building.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any

from collabsim.errors import ConfigError, nearest

QUESTION = ("question", "input", "problem", "prompt")
GOLD = ("answer", "gold", "output", "solution", "target", "label", "answerKey")
CHOICES = ("choices", "options")
TOPIC = ("topic", "domain", "subfield", "subtask", "subject", "category", "benchmark_name")
ROLES = {"question": QUESTION, "gold": GOLD, "choices": CHOICES, "topic": TOPIC}
ROLES |= {"tests": ("tests", "cases")} | {name: (name,) for name in ("kind", "difficulty")}


class Unusable(Exception):
    """A row without a question, a gold or a reachable option; `str` is the name under which it is counted."""


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a data set."""

    question: str
    gold: Any
    """Accepted texts (letters where there are options), or the reference of a verifier."""
    choices: Mapping[str, str] = field(default_factory=dict)
    kind: str | None = None
    topic: str = ""
    difficulty: float | None = None
    chance: float | None = None
    """Score of a blind guess where options do not tell it: 0.5 for a yes or no."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The row as it came, for filters and for scorers that need more than a gold (`tests`, `entry_point`)."""
    repairs: tuple[str, ...] = ()
    """Names of what was mended, for counting."""


def columns(fields: Mapping[str, str] | None, known: Sequence[str], origin: str) -> dict[str, str]:
    """Which column holds what. `fields` names columns by role; the rest are the usual names that exist in `known`.

    Raises `ConfigError` for a role or a column that does not exist.
    """
    chosen: dict[str, str] = {}
    for role, column in (fields or {}).items():
        role = "gold" if role == "answer" else role
        if role not in ROLES:
            raise ConfigError(f"task.fields: unknown role {role!r}{nearest(role, ROLES)}; known: {', '.join(ROLES)}")
        if column not in known:
            raise ConfigError(
                f"task.fields: {origin} has no column {column!r}{nearest(column, known)}; it has {', '.join(known)}"
            )
        chosen[role] = column
    for role, names in ROLES.items():
        usual = next((name for name in names if name in known and name not in chosen.values()), None)
        if usual is not None:
            chosen.setdefault(role, usual)
    return chosen


def read_record(row: Mapping[str, Any], roles: Mapping[str, str], *, positional: bool = True) -> Record:
    """A row as a record. Raises `Unusable` with the reason when it has no question, no gold or no such option.

    `positional`: an integer gold of an option list is a place counted from 0, as on the hub.
    """
    question = row.get(roles.get("question", ""))
    if not isinstance(question, str) or not question.strip():
        raise Unusable("no_question")
    raw_gold = row.get(roles.get("gold", ""))
    tested = bool(row.get(roles.get("tests", "")))
    if tested and raw_gold is None:
        raw_gold = ""
    if raw_gold is None or raw_gold == []:
        raise Unusable("null_gold")
    raw_choices = row.get(roles.get("choices", ""))
    repairs: list[str] = []
    if raw_choices:
        keys, texts = _options(raw_choices)
        choices = dict(zip(ascii_uppercase, texts, strict=False))
        gold = _letters(raw_gold, keys, texts, isinstance(raw_choices, Mapping), positional)
        if keys and tuple(keys) != tuple(choices):
            repairs.append("relabelled_options")
        if len(gold) > 1 and not isinstance(raw_gold, list):
            repairs.append("duplicate_options")
    else:
        choices, gold = {}, _texts(raw_gold)
        if any("####" in text for text in gold):
            gold = [text.rsplit("####", 1)[1].strip() for text in gold if text.rsplit("####", 1)[-1].strip()]
    if not tested and not any(text.strip() for text in gold):
        raise Unusable("null_gold")
    difficulty = row.get(roles.get("difficulty", ""))
    return Record(
        question=question,
        gold=gold[0] if len(gold) == 1 else tuple(gold),
        choices=choices,
        kind=row.get("kind") if "kind" in roles else None,
        topic=str(row.get(roles.get("topic", ""), "") or ""),
        difficulty=float(difficulty) if isinstance(difficulty, int | float) else None,
        chance=row.get("chance") if "chance" in roles else None,
        fields=dict(row),
        repairs=tuple(repairs),
    )


def _texts(gold: Any) -> list[str]:
    values = gold if isinstance(gold, list | tuple) else [gold]
    return [str(value) for value in values if value is not None]


def _options(raw: Any) -> tuple[list[str], list[str]]:
    """Keys (none for a list) and texts of an item's options."""
    if isinstance(raw, Mapping) and set(raw) == {"text", "label"}:
        keys, texts = [str(key) for key in raw["label"]], [str(text) for text in raw["text"]]
    elif isinstance(raw, Mapping):
        keys, texts = [str(key) for key in raw], [str(text) for text in raw.values()]
    elif isinstance(raw, list | tuple):
        keys, texts = [], [str(text) for text in raw]
    else:
        raise Unusable("unreadable_options")
    if not 2 <= len(texts) <= len(ascii_uppercase):
        raise Unusable("unreadable_options")
    return keys, texts


def _letters(gold: Any, keys: list[str], texts: list[str], keyed: bool, positional: bool) -> list[str]:
    """New letters of the right options; options with the same text as the right one are right too."""
    letters: dict[str, None] = {}
    for value in gold if isinstance(gold, list | tuple) else [gold]:
        place = _place(value, keys, texts, keyed, positional)
        letters |= {ascii_uppercase[k]: None for k in range(len(texts)) if k == place or texts[k] == texts[place]}
    return list(letters)


def _place(value: Any, keys: list[str], texts: list[str], keyed: bool, positional: bool) -> int:
    name = str(value).strip()
    if keyed and name in keys:
        return keys.index(name)
    if texts.count(name) >= 1:
        return texts.index(name)
    if not keyed and isinstance(value, int) and not isinstance(value, bool) and positional and 0 <= value < len(texts):
        return value
    letter = name.strip("().").upper()
    if len(letter) == 1 and letter in ascii_uppercase[: len(texts)]:
        return ascii_uppercase.index(letter)
    raise Unusable("unreachable_gold")
