"""The commands and their flags. What a command does is in the module of its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import EntryPoint, entry_points, version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from collabsim.errors import ConfigError
from collabsim.plugins import load

COMMANDS = "collabsim.commands"
"""Entry-point group of commands that other packages add: name -> a Typer app or a function."""


class InstalledCommand(TyperCommand):
    """A command of another package: listed by name, loaded when it is called."""

    def __init__(self, point: EntryPoint) -> None:
        super().__init__(point.name, short_help=_described(point))
        self._point = point

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the real command, which then runs in place of this one."""
        value = load(self._point, "the command")
        return as_command(self._point.name, value).make_context(info_name, args, parent, **extra)


def _described(point: EntryPoint) -> str:
    """What a command of this distribution does, by its function; of another, which could take long to load, whence it is."""
    whence = f"(from {point.value.partition(':')[0]})"
    if point.dist is None or point.dist.name != "collabsim":
        return whence
    with suppress(ImportError, AttributeError):
        return (point.load().__doc__ or whence).strip().partition("\n")[0]
    return whence


def as_command(name: str, value: Any) -> Any:
    """A command of a Typer app, or of a function with Typer's annotations."""
    if not isinstance(value, typer.Typer):
        function, value = value, typer.Typer(add_completion=False)
        value.command(name=name)(function)
    return typer.main.get_command(value)


@contextmanager
def _usage_in_one_line() -> Iterator[None]:
    """Typer's complaints about flags and arguments, as an error like all others."""
    try:
        yield
    except TyperException as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "collabsim")
        raise ConfigError(f"{error.format_message().rstrip('.')} (see `{command} --help`)") from None


class ExtensibleGroup(TyperGroup):
    """Commands of collabsim, and those of installed packages."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Read what stands before the command's name. Raises `ConfigError` for what cannot be meant."""
        if not args:  # Typer shows the help
            return super().make_context(info_name, args, parent, **extra)
        with _usage_in_one_line():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Read the command's flags and run it. Raises `ConfigError` for what cannot be meant."""
        with _usage_in_one_line():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, without loading anything."""
        return [*super().list_commands(ctx), *sorted(entry_points(group=COMMANDS).names)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name; None when there is none."""
        own = super().get_command(ctx, cmd_name)
        points = () if own else entry_points(group=COMMANDS, name=cmd_name)
        return next((InstalledCommand(point) for point in points), own)


app = typer.Typer(
    cls=ExtensibleGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _at_most_one(**flags: bool) -> None:
    """Raises `ConfigError` for flags that shut each other out: one of them would be ignored."""
    given = [f"--{name.replace('_', '-')}" for name, is_given in flags.items() if is_given]
    if len(given) > 1:
        raise ConfigError(f"expected one of {' and '.join(given)}, got both; leave one out")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"collabsim {version('collabsim')}")
        raise typer.Exit


@app.callback()
def collabsim(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Measure and train the worth of each model inside a system of several language models."""


ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="YAML file with pool, protocol and task.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output instead of a table.")]


@app.command()
def sweep(
    config: ConfigPath,
    method: Annotated[
        str | None, typer.Option(help="Which coalitions are run: exact | loo | permutation | shapiq:NAME | auto")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Number of items (task.limit).")] = None,
    out: Annotated[str | None, typer.Option(help="Folder of the run; default runs/<config>-<hash>.")] = None,
    store: Annotated[str | None, typer.Option(help="File of the generation store.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="Change a key of the config; repeatable.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the number of runs and bounds of calls and tokens; run nothing.")
    ] = False,
    show_prompts: Annotated[
        bool, typer.Option("--show-prompts", help="Print what each node sends for one item, with simulated replies.")
    ] = False,
    json: Json = False,
) -> None:
    """Evaluate coalitions of a pool and print what each member is worth. Run it again to resume."""
    _at_most_one(dry_run=dry_run, show_prompts=show_prompts)
    _at_most_one(show_prompts=show_prompts, json=json)
    from collabsim.cli import sweep_command as command
    from collabsim.config.overrides import as_overrides

    flags = {"sweep.method": method, "task.limit": limit, "out": out, "store": store}
    overrides = [*(set_ or []), *as_overrides(flags)]
    if dry_run:
        command.dry_run(config, overrides, as_json=json)
    elif show_prompts:
        command.show_prompts(config, overrides)
    else:
        command.run(config, overrides, as_json=json)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")],
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the table as a picture (SVG) instead of printing it.")
    ] = None,
    answers: Annotated[
        str | None,
        typer.Option(
            metavar="VERDICT", help="List the answers with this verdict (unparsed, wrong, ...), or all, and why."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Print the values of a finished run, or why its answers scored as they did."""
    _at_most_one(svg=svg is not None, answers=answers is not None)
    from collabsim.cli import report_command as command

    if answers is not None:
        command.show_answers(folder, answers, as_json=json)
    else:
        command.run(folder, svg=svg, as_json=json)


@app.command()
def protocols(
    name: Annotated[
        str | None, typer.Argument(help="The protocol to show, with its options and a drawing of its graph.")
    ] = None,
    seats: Annotated[int, typer.Option(help="Number of seats in the drawing.")] = 3,
    json: Json = False,
) -> None:
    """List the protocols, or show one."""
    from collabsim.cli import protocols_command as command

    command.run(name, seats, as_json=json)


@app.command()
def tasks(
    name: Annotated[
        str | None, typer.Argument(help="The task to show, such as reasoning_gym:chain_sum or jsonl:FILE.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="Change a key of the task; repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """List the data sets, or show one with an item as a model sees it."""
    if set_ and name is None:
        raise ConfigError("--set changes a key of one task, and none is named; write `collabsim tasks NAME --set ...`")
    from collabsim.cli import tasks_command as command

    command.run(name, set_ or [], as_json=json)


@app.command()
def score(
    kind: Annotated[
        str,
        typer.Option(
            help="Kind of answer: number | expression | exact | choice | text | code, or one of an installed package."
        ),
    ],
) -> None:
    """Score replies: JSON lines with response and gold on standard input, JSON lines with scores on standard output."""
    from collabsim.cli import score_command as command

    command.run(kind)


@app.command()
def doctor() -> None:
    """Say what this machine can run, and what to install for the rest."""
    from collabsim.cli import doctor_command as command

    command.run()
