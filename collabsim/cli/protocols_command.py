"""`collabsim protocols`: the list, with the recipes; or one protocol with its options and its graph."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from collabsim.cli.plain_words import limits_of, takes
from collabsim.errors import CollabsimError
from collabsim.protocols import Protocol, as_protocol, registered
from collabsim.recipes import Recipe, load_recipe, registered_recipes


def run(name: str | None, seats: int, *, as_json: bool) -> None:
    """List all, or show one. Raises `ConfigError` for an unknown name."""
    if name in registered_recipes():
        _show_recipe(name, as_json=as_json)
        return
    if name is not None:
        _show_one(as_protocol(name), seats, as_json=as_json)
        return
    facts = [*_all_facts()]
    if as_json:
        sys.stdout.write(json.dumps(facts, indent=1, default=str) + "\n")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("protocol", "family", "players", "roles", "needs", "what it does"):
        table.add_column(column)
    for fact in facts:
        roles, needs = ", ".join(fact["roles"]) or "-", ", ".join(fact["needs"]) or "-"
        table.add_row(fact["name"], fact["family"], _range(fact["players"]), roles, needs, fact["doc"])
    Console().print(table)


def _all_facts() -> Iterator[dict[str, Any]]:
    """The facts of every protocol and recipe; one whose package cannot be loaded is named on standard error."""
    tells = [partial(_facts_of_protocol, known) for known in registered()]
    tells += [partial(_facts_of_named_recipe, known) for known in registered_recipes()]
    for tell in tells:
        try:
            yield tell()
        except CollabsimError as error:
            Console(stderr=True).print(f"left out: {error}", markup=False, highlight=False, soft_wrap=True)


def _facts_of_protocol(name: str) -> dict[str, Any]:
    return _facts(as_protocol(name))


def _facts_of_named_recipe(name: str) -> dict[str, Any]:
    return _facts_of_recipe(load_recipe(name))


def _range(players: list[int | None]) -> str:
    fewest, most = players
    return f"{fewest}+" if most is None else f"{fewest}" if fewest == most else f"{fewest}-{most}"


def _facts(protocol: Protocol) -> dict[str, Any]:
    return {
        "name": protocol.name,
        "family": protocol.family,
        "players": list(protocol.players),
        "roles": list(protocol.roles),
        "needs": sorted(protocol.needs),
        "absent": protocol.absent,
        "fitted": protocol.fit is not None,
        "doc": protocol.doc,
        "command": "sweep",
        "options": _options(protocol),
    }


def _facts_of_recipe(recipe: Recipe) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "family": recipe.family,
        "players": list(recipe.players),
        "roles": [],
        "needs": sorted(recipe.needs),
        "absent": recipe.absent,
        "fitted": False,
        "doc": recipe.doc,
        "command": recipe.command,
        "options": [
            {"name": name, "type": _type(option.annotation, option.metadata), "default": recipe.defaults[name]}
            for name, option in recipe.settings.model_fields.items()
        ],
    }


def _type(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """An annotation in plain words, such as `whole number at least 1`."""
    limits = limits_of([*metadata, *getattr(annotation, "__metadata__", ())])
    return takes(annotation, lambda section: section.__name__, limits).replace("`", "")


def _options(protocol: Protocol) -> list[dict[str, Any]]:
    kinds = protocol.option_kinds()
    return [_option(parameter, kinds[name]) for name, parameter in protocol.options().items()]


def _option(parameter: inspect.Parameter, annotation: Any) -> dict[str, Any]:
    required = parameter.default is inspect.Parameter.empty
    return {
        "name": parameter.name,
        "type": _type(annotation),
        **({"required": True} if required else {"default": parameter.default}),
    }


def _show_recipe(name: str, *, as_json: bool) -> None:
    facts = _facts_of_recipe(load_recipe(name))
    if as_json:
        sys.stdout.write(json.dumps(facts, indent=1, default=str) + "\n")
        return
    _print_facts(facts)
    command = facts["command"]
    Console().print(
        f"\nA recipe from pool to pool: `collabsim {command} CONFIG`, with these options in the section `{command}:`",
        highlight=False,
    )


def _show_one(protocol: Protocol, seats: int, *, as_json: bool) -> None:
    names = [f"seat{k}" for k in range(1, seats + 1)] if seats > 26 else [chr(ord("a") + k) for k in range(seats)]
    protocol.check_pool(len(names))
    drawing = protocol.build(names, **protocol.check_options({})).compile().get_graph()
    facts = _facts(protocol)
    if as_json:
        sys.stdout.write(json.dumps({**facts, "mermaid": drawing.draw_mermaid()}, indent=1, default=str) + "\n")
        return
    _print_facts(facts)
    console = Console()
    console.print(f"\n[bold]Graph over {len(names)} seats[/bold]")
    console.print(drawing.draw_ascii(), markup=False, highlight=False, soft_wrap=True)
    console.print("\n[bold]The same as mermaid[/bold]")
    console.print(drawing.draw_mermaid(), markup=False, highlight=False, soft_wrap=True)


def _in_yaml(value: Any) -> str:
    """A default as it stands in a config."""
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _print_facts(facts: Mapping[str, Any]) -> None:
    console = Console()
    console.print(f"[bold]{facts['name']}[/bold] ({facts['family']}): {facts['doc']}", highlight=False)
    console.print(f"players {_range(facts['players'])}; {facts['absent']}", highlight=False)
    console.print(f"roles: {', '.join(facts['roles']) or 'none'}; needs: {', '.join(facts['needs']) or 'nothing'}")
    if not facts["options"]:
        console.print("options: none")
    for option in facts["options"]:
        default = "required" if option.get("required") else f"default {_in_yaml(option['default'])}"
        console.print(f"  {option['name']}: {option['type']} ({default})", markup=False, highlight=False)
