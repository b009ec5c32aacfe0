"""Sources of weights, as specs name them: a folder, the parts of one GGUF file, or a model on the hub.

In: a spec. Out: a `WeightSource`, every file of which exists. Nothing is read, hashed or downloaded. Left out on purpose:
what is inside the files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from collabsim.errors import ConfigError, PrerequisiteError
from collabsim.models.weights.package_files import SCHEME, package_files
from collabsim.paths import user_path

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_SHA256 = re.compile(r"sha256=([0-9a-fA-F]{64})")
_PART = re.compile(r"\.part-?\d+$")
_FORMS = (
    "a Hugging Face folder, a .gguf file, package://PACKAGE/path/inside or a hub id such as org/name"
    " (a hash may follow a file: #sha256=...)"
)


@dataclass(frozen=True, slots=True)
class WeightSource:
    """Where a model's files are."""

    spec: str
    name: str
    """For people: the folder's or file's name without endings, or the hub id."""
    folder: Path | None = None
    parts: tuple[Path, ...] = ()
    """The pieces of one GGUF file, in order; usually one."""
    hub_id: str = ""
    sha256: str = ""
    """What the joined parts must hash to; empty when the spec does not say."""


def locate(spec: str, *, revision: str | None = None) -> WeightSource:
    """The source that `spec` names. Raises `ConfigError` for a malformed spec, `PrerequisiteError` for what is missing."""
    address, sha256 = _without_hash(spec)
    if address.startswith(SCHEME):
        source = _of_paths(spec, package_files(address), sha256)
    else:
        source = _local(spec, address, sha256) or _on_hub(spec, address)
    if sha256 and not source.parts:
        raise ConfigError(
            f"model {spec!r}: #sha256= is the hash of one .gguf file; leave it out for a folder or hub id"
        )
    if revision is not None and not source.hub_id:
        raise ConfigError(f"model {spec!r}: `revision` is for hub ids; local files are known by their content")
    return source


def _without_hash(spec: str) -> tuple[str, str]:
    address, mark, fragment = spec.strip().partition("#")
    if not address:
        raise ConfigError(f"expected {_FORMS}, got {spec!r}")
    if not mark:
        return address, ""
    if not (digest := _SHA256.fullmatch(fragment)):
        raise ConfigError(f"model {spec!r}: expected #sha256= and 64 hex digits, got {'#' + fragment!r}")
    return address, digest[1].lower()


def _local(spec: str, address: str, sha256: str) -> WeightSource | None:
    path = user_path(address, f"model {spec!r}")
    if path.exists():
        return _of_paths(spec, (path.absolute(),), sha256)
    if path.suffix == ".gguf" or path.is_absolute() or address.startswith((".", "~")) or not HUB_ID.fullmatch(address):
        if "://" in address:
            raise ConfigError(f"expected {_FORMS}, got {spec!r}")
        raise PrerequisiteError(f"model {spec!r}: there is no file or folder {path.absolute()}; expected {_FORMS}")
    return None


def _on_hub(spec: str, address: str) -> WeightSource:
    return WeightSource(spec, name=address, hub_id=address)


def _of_paths(spec: str, paths: tuple[Path, ...], sha256: str) -> WeightSource:
    first = paths[0]
    if first.is_dir():
        if len(paths) > 1:
            raise ConfigError(f"model {spec!r}: only files can be joined, and {first} is a folder")
        return WeightSource(spec, name=first.resolve().name, folder=first)
    with first.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        raise ConfigError(
            f"model {spec!r}: expected a GGUF file (its first bytes are 'GGUF'), got {first.name} that starts with "
            f"{magic!r}; for safetensors name the folder that holds config.json and the tokenizer too"
        )
    return WeightSource(spec, name=_PART.sub("", first.name).removesuffix(".gguf"), parts=paths, sha256=sha256)
