"""The prefix cache of an engine after new weights: what it holds was computed from the old ones.

In: vLLM's answer to the request to empty it. Out: nothing, or the error. Left out on purpose: the request itself.
"""

from __future__ import annotations

from collabsim.errors import CallError


def check_reset(emptied: bool) -> None:
    """Raises `CallError` unless vLLM says that its prefix cache was emptied: it refuses while requests use it."""
    if not emptied:
        raise CallError(
            "expected vLLM to empty its prefix cache after new weights, it refused: requests still hold parts of it; push "
            "when no call is under way"
        )
