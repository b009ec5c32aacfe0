"""Checks for your own protocols and systems: `check_protocol` tests every rule on every coalition."""

from __future__ import annotations

from collabsim.testing.conformance import (
    check_isolation,
    check_masks,
    check_protocol,
    check_seat_order,
    check_system,
    sample_dev_items,
    sample_items,
    sample_pool,
)

__all__ = [
    "check_isolation",
    "check_masks",
    "check_protocol",
    "check_seat_order",
    "check_system",
    "sample_dev_items",
    "sample_items",
    "sample_pool",
]
