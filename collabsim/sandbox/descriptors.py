"""Open descriptors of this process: closing what nobody should inherit.

In: the numbers to keep. Out: nothing.
"""

from __future__ import annotations

import os
from itertools import pairwise


def close_all_but(keep: set[int]) -> None:
    """Close every descriptor that is not kept."""
    bounds = [-1, *sorted(keep), int(os.sysconf("SC_OPEN_MAX"))]
    for low, high in pairwise(bounds):
        if low + 1 < high:  # an empty range would be taken for all descriptors (CPython 3.11)
            os.closerange(low + 1, high)
