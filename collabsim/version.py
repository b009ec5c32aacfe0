"""The version of the installed distribution, read when it is asked for: reading the installed packages takes time."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("collabsim")
