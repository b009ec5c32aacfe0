"""Paths that a user gives, in a config, a flag or an argument.

In: text. Out: a `Path`. `~` and `~name` at the start are home folders; environment variables stay as they are, so that
a config means the same everywhere. Left out on purpose: where relative paths start from, which is the caller's.
"""

from __future__ import annotations

from pathlib import Path

from collabsim.errors import ConfigError


def user_path(path: str | Path, key: str) -> Path:
    """`path` with a home folder in place of its `~`.

    Raises `ConfigError` that names `key`, what the path was given as, when there is no such home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{key}: {str(path)!r} begins with a home folder that cannot be found; name it in full"
        ) from None
