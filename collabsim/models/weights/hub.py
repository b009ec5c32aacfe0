"""Models on the Hugging Face hub.

In: `org/name` and a revision. Out: the snapshot's folder. A complete snapshot in the local cache is used without asking
the network, so that a sweep goes on where there is none; give a `revision` to move to another one. Left out on purpose:
GGUF files on the hub (download one and name the file).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from collabsim.errors import PrerequisiteError
from collabsim.models.weights.folder import ModelFolder, read_folder, weight_files
from collabsim.optional_packages import first_line, require

WANTED = ("*.json", "*.safetensors", "*.jinja", "*.txt", "*.model")
"""Never the weights twice in other formats, and never code."""


def hub_folder(hub_id: str, revision: str | None = None) -> ModelFolder:
    """The model `hub_id`, from the local cache or downloaded. Raises `PrerequisiteError` or `DataError`."""
    hub = require("huggingface_hub", f"the hub model {hub_id!r}")
    require("huggingface_hub.errors", f"the hub model {hub_id!r}")
    try:
        return read_folder(Path(hub.snapshot_download(hub_id, revision=revision, local_files_only=True)), name=hub_id)
    except (PrerequisiteError, hub.errors.LocalEntryNotFoundError):
        pass  # not there, or there in part
    except hub.errors.HFValidationError as error:
        raise PrerequisiteError(f"{hub_id!r} cannot be a hub id: {first_line(error)}") from error
    folder = _download(hub, hub_id, revision, WANTED)
    try:
        weight_files(folder)
    except PrerequisiteError:  # an old repository without safetensors
        folder = _download(hub, hub_id, revision, (*WANTED, "pytorch_model*.bin"))
    return read_folder(folder, name=hub_id)


def _download(hub: Any, hub_id: str, revision: str | None, wanted: tuple[str, ...]) -> Path:
    at = f" at revision {revision!r}" if revision else ""
    try:
        return Path(hub.snapshot_download(hub_id, revision=revision, allow_patterns=list(wanted)))
    except hub.errors.GatedRepoError as error:
        remedy = "accept its terms on its page and set HF_TOKEN"
        reason: Exception = error
    except (hub.errors.RepositoryNotFoundError, hub.errors.RevisionNotFoundError) as error:
        remedy = "check its name and revision; a private one needs HF_TOKEN"
        reason = error
    except Exception as error:  # the client's network errors have no common base between its versions
        remedy = "go online once, or name a local folder"
        reason = error
    raise PrerequisiteError(
        f"hub model {hub_id!r}{at} is not in the local cache and cannot be downloaded ({first_line(reason)}); {remedy}"
    ) from reason
