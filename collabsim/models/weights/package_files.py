"""Model files inside installed Python packages.

In: `package://PACKAGE/path/inside`, with brace ranges such as `part{1..4}` that expand in step. Out: paths. The package
is found without being imported: such packages often import things that are not installed. Left out on purpose: zipped
packages.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from collabsim.errors import ConfigError, PrerequisiteError

SCHEME = "package://"
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


def package_files(address: str) -> tuple[Path, ...]:
    """The files that a `package://` address names, in order. Raises `ConfigError` or `PrerequisiteError`."""
    return tuple(_package_file(one) for one in expand(address))


def expand(address: str) -> tuple[str, ...]:
    """`a{1..2}/b{00..01}` as `a1/b00`, `a2/b01`: all ranges count together, and are of one length."""
    ranges = [_numbers(span[1], span[2], address) for span in _RANGE.finditer(address)]
    if not ranges:
        if "{" in address:
            raise ConfigError(f"model {address!r}: expected a range such as {{1..4}} or {{00..03}} in the braces")
        return (address,)
    if len({len(numbers) for numbers in ranges}) > 1:
        counts = ", ".join(str(len(numbers)) for numbers in ranges)
        raise ConfigError(f"model {address!r}: its ranges count together, so they need one length, got {counts}")
    texts = _RANGE.split(address)[::3]
    return tuple(
        "".join(text + number for text, number in zip(texts, (*step, ""), strict=True))
        for step in zip(*ranges, strict=True)
    )


def _numbers(first: str, last: str, address: str) -> list[str]:
    if not int(first) <= int(last) < int(first) + 10_000:
        raise ConfigError(f"model {address!r}: expected a rising range of at most 10000, got {{{first}..{last}}}")
    width = len(first) if first.startswith("0") else 0
    return [str(number).zfill(width) for number in range(int(first), int(last) + 1)]


def _package_file(address: str) -> Path:
    package, _, inside = address.removeprefix(SCHEME).partition("/")
    if not package.isidentifier() or not inside or ".." in PurePosixPath(inside).parts:
        raise ConfigError(
            f"expected package://PACKAGE/path/inside with PACKAGE as Python imports it (underscores, no dots), "
            f"got {address!r}"
        )
    folders = _package_folders(package)
    for folder in folders:
        if (path := folder / inside).exists():
            return path
    raise PrerequisiteError(f"model {address!r}: the package is installed in {folders[0]}, but has no {inside!r} there")


def _package_folders(package: str) -> list[Path]:
    try:
        module = find_spec(package)
    except (ImportError, ValueError):  # ValueError: a module in sys.modules that was made by hand
        module = None
    if module is None:
        raise PrerequisiteError(
            f"the package {package!r} is not installed here; `pip install --no-deps {package.replace('_', '-')}` may be "
            "the way to get it"
        )
    if not module.submodule_search_locations:
        raise ConfigError(f"package://{package}: a single module holds no files; expected a package with a folder")
    return [Path(folder) for folder in module.submodule_search_locations]
