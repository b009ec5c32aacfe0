"""`ask_merged`: the way from a graph to one model made of the weights of several seats.

In: a runtime, seats, messages, a recipe and the helper that is the base. Out: one `Reply`. The merged model fills one virtual
seat that is spoken to as the base is (its persona and sampling), and its calls are recorded under the members' names,
joined by `+`. Left out on purpose: the merging itself (`models/merging`), and which seats are merged (protocols).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from collabsim.episode import Reply
from collabsim.errors import ProtocolError
from collabsim.nodes.asking import Absent, ask, fetch_recorded, node_name
from collabsim.nodes.current_run import context_of
from collabsim.pool import Pool, Seat
from collabsim.request import Request, as_messages
from collabsim.seeds import call_seed

if TYPE_CHECKING:
    from collabsim.models.merging import MergeRecipe

OWNER = "__merge__"
"""The name that seeds merged models: one for all coalitions, so that they are paired. No seat can have this name."""


async def ask_merged(
    runtime: Any,
    seats: Sequence[str],
    messages: Any,
    recipe: MergeRecipe,
    *,
    base: str,
    draw: int = 0,
    node: str = "",
    **sampling: Any,
) -> Reply | Absent:
    """Ask the merge of the present ones of `seats`, whatever their order.

    A single present seat is asked with `ask`; without any, the base is. Returns the reply
    (`ABSENT` never, but for a type checker). Raises `ProtocolError` without a helper named `base` and for models that
    cannot be merged, `ConfigError` for weights that do not fit together, `CallError` when the call fails.
    """
    run = context_of(runtime)
    origin = base_helper(run.helpers, base)
    present = sorted(seat for seat in seats if run.speaker(seat) is not None)
    if len(present) < 2:
        return await ask(runtime, present[0] if present else base, messages, draw=draw, node=node, **sampling)
    from collabsim.models.merging import merged_model

    model = merged_model([run.pool[seat].model for seat in present], origin.model, recipe)
    request = Request(
        messages=origin.persona + as_messages(messages),
        sampling=origin.sampling.replace(**sampling),
        seed=call_seed(run.run_seed, run.item.id, OWNER, draw, run.replica),
        draw=draw,
    )
    return await fetch_recorded(run, model, request, ("+".join(present),), node or node_name(runtime))


def base_helper(helpers: Pool, base: str) -> Seat:
    """The helper that is the base of all merges. Raises `ProtocolError` when there is none of this name."""
    if base not in helpers:
        raise ProtocolError(
            f"a merge needs the model that its members were made from as a helper named {base!r}, got helpers "
            f"{list(helpers)}; add `helpers: {{{base}: {{model: ...}}}}`"
        )
    return helpers[base]
