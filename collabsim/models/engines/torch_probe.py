"""A probe of transformers: does it work on this machine, and on which device.

In: nothing. Out: a `TorchProbe`. torch and transformers are imported in a process of their own, as vLLM is: a torchvision of
another build, say, breaks the import of both. Left out on purpose: what to do about it (`collabsim doctor`).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from collabsim.models.engines.subprocess_probe import ask_process

NEEDED = ("torch", "transformers", "safetensors", "tokenizers", "accelerate")
PROBE_SECONDS = 120.0
_PROGRAM = """
import torch, transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM
cuda = torch.cuda.is_available()
names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())] if cuda else []
answer([torch.__version__, transformers.__version__, names, torch.backends.mps.is_available()])
"""


@dataclass(frozen=True, slots=True)
class TorchProbe:
    """The result of a probe."""

    torch: str | None
    """Version; None when it cannot be used here."""
    transformers: str | None = None
    gpus: tuple[str, ...] = ()
    """Names of the GPUs that torch can use."""
    mps: bool = False
    """Whether it can use an Apple GPU."""
    problem: str = ""
    """Why it does not work, in one line."""

    @property
    def works(self) -> bool:
        """Whether models can be run."""
        return self.torch is not None


def missing_packages() -> str:
    """Those that are not installed, with commas; nothing is imported."""
    return ", ".join(package for package in NEEDED if find_spec(package) is None)


def probe_torch(*, seconds: float = PROBE_SECONDS) -> TorchProbe:
    """Whether models can be run on transformers here. Takes a few seconds."""
    if missing := missing_packages():
        return TorchProbe(None, problem=f"{missing} not installed")
    answer, problem = ask_process(_PROGRAM, seconds)
    if answer is None:
        return TorchProbe(None, problem=f"torch and transformers cannot be imported: {problem}")
    torch, transformers, gpus, mps = answer
    return TorchProbe(torch, transformers, tuple(gpus), mps)
