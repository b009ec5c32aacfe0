"""`ask_joint`: the way from a graph to several models that write one text together.

In: a runtime, seats, messages and a rule that combines next-token distributions. Out: one `Reply`, or `ABSENT`. It goes
through the generation store under its own key and is recorded as one call of every member, each with the tokens that it
read and wrote. Left out on purpose: the rules (they belong to protocols) and the writing itself (`models/joint.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from collabsim.episode import Reply
from collabsim.errors import ConfigError
from collabsim.nodes.asking import ABSENT, Absent, ask, fetch_recorded, node_name
from collabsim.nodes.current_run import context_of
from collabsim.pool import Seat
from collabsim.request import Request, Sampling, as_messages
from collabsim.seeds import call_seed

if TYPE_CHECKING:
    from collabsim.models.local.joint_model import Combine

OWNER = "__joint__"
"""The name that seeds joint texts: one for all coalitions, so that they are paired. No seat can have this name."""


async def ask_joint(
    runtime: Any,
    seats: Sequence[str],
    messages: Any,
    combine: Combine,
    *,
    draw: int = 0,
    node: str = "",
    **sampling: Any,
) -> Reply | Absent:
    """Have the present ones of `seats` (or helpers) write one reply together.

    `combine` gets their distributions in the order of `seats`. Each member reads its own persona before `messages`. A single
    present member is asked with `ask`; without any, the reply is `ABSENT`. `sampling` overrides the
    members' settings, which must agree.

    Raises `ConfigError` for members whose sampling differs, `ProtocolError` for models without next-token distributions
    or with vocabularies that do not fit together, `CallError` when the call fails.
    """
    run = context_of(runtime)
    members = [(name, seat) for name in seats if (seat := run.speaker(name)) is not None]
    if len(members) < 2:
        return await ask(runtime, members[0][0], messages, draw=draw, node=node, **sampling) if members else ABSENT
    from collabsim.models.local.joint_model import JointModel, Member

    prompt = as_messages(messages)
    shared = _agreed([seat for _, seat in members], sampling)
    model = JointModel([Member(seat.model, seat.persona, seat.sampling.template) for _, seat in members], combine)
    request = Request(prompt, shared, call_seed(run.run_seed, run.item.id, OWNER, draw, run.replica), draw)
    names = [name for name, _ in members]
    return await fetch_recorded(run, model, request, names, node or node_name(runtime))


def _agreed(seats: Sequence[Seat], changes: dict[str, Any]) -> Sampling:
    """The one sampling of all members; template flags stay each member's own."""
    settings = [seat.sampling.replace(**changes).replace(template={}) for seat in seats]
    for seat, setting in zip(seats, settings, strict=True):
        if setting != settings[0]:
            names = [name for name in Sampling.__slots__ if getattr(setting, name) != getattr(settings[0], name)]
            raise ConfigError(
                f"seats {seats[0].name!r} and {seat.name!r} write one text together and must agree in their sampling; they "
                f"differ in {', '.join(names)}"
            )
    return settings[0]
