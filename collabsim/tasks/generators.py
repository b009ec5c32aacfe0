"""Procedural tasks of reasoning-gym.

In: a generator's name and options. Out: a source that draws records from a seed until a cap. Questions repeat in small
generators; the caller drops repeats. A few generators depend on Python's hash seed; those are drawn in a process of
their own with a fixed one, so that a seed means the same items everywhere. Left out on purpose: curricula.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from functools import cache
from io import StringIO
from typing import Any

from collabsim.errors import ConfigError, DataError, PrerequisiteError, nearest
from collabsim.scorers.text.harmless_text import Evaluator
from collabsim.scorers.text.verifier_scorer import Reference, VerifierScorer
from collabsim.seeds import canonical_json, derive_seed
from collabsim.tasks.record import Record, Unusable

CHUNK = 128
"""Draws from one derived seed; reasoning-gym gives neighbouring seeds almost the same items, so ours lie far apart."""

MOST_CHUNKS = 32
"""Chunks drawn before a generator counts as having no more distinct questions."""

DRAWN_APART = frozenset(
    {"isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder"}
)
"""Generators of reasoning-gym 0.1.25 whose items change with PYTHONHASHSEED (they iterate over sets of strings)."""

REFUSED = {"codeio": "it runs code that a language model wrote, outside a sandbox, and draws other items at every run"}
"""Generators that are not offered, and why."""

_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")  # not `0011`, `1/2` or `1e3`: their form may be the point


def generator_names() -> dict[str, str]:
    """All generators and their categories. Raises `PrerequisiteError` without reasoning-gym."""
    return {name: cls.__module__.split(".")[1] for name, (cls, _) in sorted(_registry().items())}


@cache
def _registry() -> dict[str, tuple[type, type]]:
    try:
        import reasoning_gym  # noqa: F401
        from reasoning_gym.factory import DATASETS
    except ImportError as error:
        raise PrerequisiteError(
            "reasoning_gym: tasks need reasoning-gym; get it with: pip install reasoning-gym"
        ) from error
    return dict(DATASETS)


@dataclass(frozen=True, slots=True)
class DatasetVerifier:
    """A generator's own verifier; made on first use, and again in another process."""

    name: str
    options: str
    """Canonical JSON, so that equal verifiers are equal."""

    def __call__(self, answer: str, entry: Mapping[str, Any]) -> float:
        """The generator's credit for `answer`. May raise on answers that it cannot read."""
        return float(_dataset(self.name, self.options).score_answer(answer, entry))

    @property
    def evaluator(self) -> Evaluator:
        """What the verifier's module evaluates text with."""
        source = inspect.getsource(sys.modules[_registry()[self.name][0].__module__])
        if "parse_expr(" in source and "sympy" in source:
            return "sympy"
        return "python" if "eval(" in source else "none"


@cache
def _dataset(name: str, options: str, seed: int = 0, size: int = 1) -> Any:
    from reasoning_gym import create_dataset

    _registry()
    return create_dataset(name, **json.loads(options), seed=seed, size=size)


def draw(name: str, options: Mapping[str, Any], seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Entries of a generator in this process: a chunk from each seed. What generators print is swallowed."""
    from reasoning_gym import create_dataset

    _registry()
    for seed in seeds:
        with redirect_stdout(StringIO()):
            dataset = create_dataset(name, **options, seed=seed, size=CHUNK)
        for place in range(CHUNK):
            with redirect_stdout(StringIO()):
                entry = dataset[place]
            yield entry


def _drawn_apart(name: str, options: Mapping[str, Any], seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Entries of a generator from a process with a fixed hash seed, which ends when no more are taken."""
    request = json.dumps({"name": name, "options": dict(options), "seeds": list(seeds)})
    command = [sys.executable, "-m", "collabsim.tasks.draw", request]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        try:
            yield from map(json.loads, process.stdout)
        finally:
            exhausted = process.poll()
            process.kill()
    if exhausted:
        raise DataError(f"reasoning_gym:{name} cannot be drawn: its process ended with code {exhausted}; see above")


class GeneratorSource:
    """A reasoning-gym generator as a source of records."""

    endless = True
    splits = ()
    shuffle = False
    prompt = None
    other_kinds = ("number", "exact")

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        registry = _registry()
        if name not in registry:
            raise ConfigError(f"task.source: reasoning_gym has no generator {name!r}{nearest(name, registry)}")
        if name in REFUSED:
            raise ConfigError(
                f"task.source: reasoning_gym:{name} is not offered: {REFUSED[name]}; take another generator"
            )
        self.name = f"reasoning_gym:{name}"
        self.generator = name
        self.options = dict(options)
        self._check_options([field.name for field in fields(registry[name][1])])
        self.verifier = DatasetVerifier(name, canonical_json(self.options))
        self._scorer = VerifierScorer(self.verifier, self.verifier.evaluator)

    def _check_options(self, known: list[str]) -> None:
        known = [option for option in known if option not in ("seed", "size")]
        for option in self.options:
            if option in ("seed", "size"):
                raise ConfigError(f"task.options.{option}: give task.{'seed' if option == 'seed' else 'limit'} instead")
            if option not in known:
                raise ConfigError(
                    f"task.options: {self.name} has no option {option!r}{nearest(option, known)}; it has {', '.join(known)}"
                )
        try:
            _dataset(self.generator, canonical_json(self.options))
        except (AssertionError, TypeError, ValueError) as error:
            raise ConfigError(f"task.options: {self.name} refuses {self.options}: {error}") from error

    def rows(self, split: str, seed: int) -> Iterator[Mapping[str, Any]]:
        """Entries drawn from (name, split, seed), up to a cap."""
        seeds = [derive_seed("reasoning_gym", self.generator, split, seed, chunk) for chunk in range(MOST_CHUNKS)]
        return (_drawn_apart if self.generator in DRAWN_APART else draw)(self.generator, self.options, seeds)

    def record(self, row: Mapping[str, Any]) -> Record:
        """An entry as a record for its verifier. Raises `Unusable` when no right answer is known."""
        text = self._reference(row)
        nonsense = self._scorer.nonsense(row)
        metadata = {key: value for key, value in row["metadata"].items() if key != "source_index"}
        return Record(
            question=row["question"],
            gold=Reference(text, row, nonsense),
            kind=self._scorer.kind,
            topic=generator_names()[self.generator],
            fields=metadata,
            repairs=("lenient_verifier",) if nonsense >= 1.0 else (),
        )

    def _reference(self, row: Mapping[str, Any]) -> str:
        """The entry's answer, or an example answer of its metadata that the verifier calls right."""
        if isinstance(row["answer"], str) and row["answer"].strip():
            return row["answer"]
        for key, value in row["metadata"].items():
            text = value if isinstance(value, str) else json.dumps(value)
            if "answer" in key and text.strip() and self.verifier(text, row) >= 1.0:
                return text
        raise Unusable("null_gold")

    def scorer(self) -> VerifierScorer:
        """The scorer around the generator's verifier."""
        return self._scorer

    def kind_of(self, references: Iterable[Reference]) -> str:
        """`number` when every item asks for an exact number, else the verifier's kind."""
        return "number" if all(map(self.exact_number, references)) else self._scorer.kind

    def exact_number(self, reference: Reference) -> bool:
        """Whether an item asks for an exact number: the gold is a decimal, and the verifier takes no neighbour for it."""
        text = reference.text
        if not _DECIMAL.fullmatch(text):
            return False
        value = float(text)
        places = len(text.partition(".")[2])
        neighbours = (f"{value + 10.0**-places:.{places}f}", repr(value + 1e-5))
        return not any(self._right(neighbour, reference.entry) for neighbour in neighbours)

    def _right(self, answer: str, entry: Mapping[str, Any]) -> bool:
        try:
            return self.verifier(answer, entry) >= 1.0
        except Exception:
            return False
