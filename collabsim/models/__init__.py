"""Models: from a spec in a config to a chat model, and the kinds of chat models that there are.

In: `simulated:`, `openai:NAME`, a folder, a hub id and so on. Out: chat models with a content identity, nothing loaded.
`engines`, `weights`, `merging` and `simulation` have doors of their own; what is public of `chat` and `local` is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collabsim.lazy import lazy_names

if TYPE_CHECKING:
    from collabsim.models.chat.identified import IdentifiedModel, identified
    from collabsim.models.chat.reply import TypedModel, reply_of
    from collabsim.models.chat.server import ServerModel
    from collabsim.models.engines.logits import LogitModel
    from collabsim.models.local.joint_model import JointModel
    from collabsim.models.local.local_model import LocalModel
    from collabsim.models.local.template import Prompter
    from collabsim.models.resolve import ModelSpec, resolve_model
    from collabsim.models.simulation.simulated import SimulatedModel

__all__ = [
    "IdentifiedModel",
    "JointModel",
    "LocalModel",
    "LogitModel",
    "ModelSpec",
    "Prompter",
    "ServerModel",
    "SimulatedModel",
    "TypedModel",
    "identified",
    "reply_of",
    "resolve_model",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "chat.identified": ("IdentifiedModel", "identified"),
            "chat.reply": ("TypedModel", "reply_of"),
            "chat.server": ("ServerModel",),
            "engines.logits": ("LogitModel",),
            "local.joint_model": ("JointModel",),
            "local.local_model": ("LocalModel",),
            "local.template": ("Prompter",),
            "resolve": ("ModelSpec", "resolve_model"),
            "simulation.simulated": ("SimulatedModel",),
        },
    )
