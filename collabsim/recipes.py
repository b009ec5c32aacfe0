"""Recipes: ways from a pool to another pool, listed beside the protocols and run by a command of their own.

In: the entry-point group `collabsim.recipes`, name -> a `Recipe`. Out: the facts about each that listings and messages show.
A recipe trains members together, so it is no graph that a coalition could be toggled in: the pool that it makes is swept
like any other. Left out on purpose: how a recipe works; its package does that.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from collabsim.plugins import load, registered

if TYPE_CHECKING:
    from pydantic import BaseModel

GROUP = "collabsim.recipes"


@dataclass(frozen=True)
class Recipe:
    """The description of a recipe, known without running it."""

    name: str
    command: str
    """`collabsim COMMAND CONFIG` runs it; the config's section of that name holds its options."""
    settings: type[BaseModel]
    """The schema of its options."""
    doc: str
    """One sentence: what it does."""
    absent: str
    """Meaning of a coalition of the pool that it makes."""
    family: str = "training"
    players: tuple[int, int | None] = (1, None)
    needs: frozenset[str] = frozenset()

    @property
    def defaults(self) -> dict[str, Any]:
        """Every option with its default, as plain data."""
        return self.settings().model_dump(mode="json")


def registered_recipes() -> dict[str, EntryPoint]:
    """Entry points of all installed packages that offer recipes, by name."""
    return registered(GROUP)


def load_recipe(name: str) -> Recipe:
    """A registered recipe. Raises `KeyError` for an unknown name, `PrerequisiteError` when its package cannot be loaded."""
    recipe: Recipe = load(registered_recipes()[name], "recipe")
    return recipe
