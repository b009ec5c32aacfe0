"""The header of a GGUF file: its metadata, and how long the file must be.

In: a file. Out: a `Header`. Read with a few lines of our own: the reader of the `gguf` package takes 15 seconds of
processor time for a vocabulary of 262,144 tokens and fails on cut files in many ways; this one takes a second, and
what it reads is independent of the converter that it is held against. Left out on purpose: tensor data.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collabsim.errors import DataError
from collabsim.optional_packages import require

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class Header:
    """The metadata of a GGUF file, arrays as lists."""

    metadata: dict[str, Any]
    size: int
    """Bytes that the file must have at least."""


def read_header(file: Path) -> Header:
    """The header of `file`. Raises `DataError` when the file is no GGUF of version 2 or 3, or is cut off."""
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as view:
        try:
            header = _parse(_Reader(view), file)
        except (struct.error, ValueError, KeyError, OverflowError, MemoryError) as error:
            raise DataError(f"{file} is cut off or damaged inside its header; get the file again") from error
        if header.size > len(view):
            raise DataError(f"{file} is cut off: expected {header.size} bytes, got {len(view)}; get the file again")
    return header


class _Reader:
    """Values one after the other."""

    def __init__(self, view: mmap.mmap) -> None:
        self.view = view
        self.at = 0

    def number(self, code: str) -> Any:
        (value,) = struct.unpack_from(f"<{code}", self.view, self.at)
        self.at += struct.calcsize(code)
        return value

    def numbers(self, code: str, count: int) -> list[Any]:
        values = struct.unpack_from(f"<{count}{code}", self.view, self.at)
        self.at += count * struct.calcsize(code)
        return list(values)

    def text(self) -> str:
        length = self.number("Q")
        content = self.view[self.at : self.at + length]
        if len(content) != length:
            raise struct.error("cut off")
        self.at += length
        return content.decode("utf-8", errors="surrogateescape")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.number(_NUMBERS[kind])
        of, count = self.number("I"), self.number("Q")
        if of in _NUMBERS:
            return self.numbers(_NUMBERS[of], count)
        return [self.value(of) for _ in range(count)]


def _parse(reader: _Reader, file: Path) -> Header:
    reader.at = 4  # the magic was read before
    version = reader.number("I")
    if version not in (2, 3):
        raise DataError(f"{file}: expected GGUF version 2 or 3, got {version}; convert the model again")
    tensors, values = reader.number("Q"), reader.number("Q")
    metadata = {reader.text(): reader.value(reader.number("I")) for _ in range(values)}
    ends = [_tensor_end(reader) for _ in range(tensors)]
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    start = -(-reader.at // alignment) * alignment
    return Header(metadata, start + max(ends, default=0))


def _tensor_end(reader: _Reader) -> int:
    """Where a tensor's bytes end, counted from the start of the data."""
    constants = require("gguf", "reading a GGUF file").constants
    reader.text()
    elements = 1
    for length in reader.numbers("Q", reader.number("I")):
        elements *= length
    kind, offset = reader.number("I"), reader.number("Q")
    block, size = constants.GGML_QUANT_SIZES[constants.GGMLQuantizationType(kind)]
    return int(offset + elements // block * size)
