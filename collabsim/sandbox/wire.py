"""Values on their way between a program and its tests: frames of JSON that carry plain data only.

In: Python values. Out: bytes, and equal values of exactly the built-in types. Subclasses arrive as their base and other
objects as references, so nothing that a program defines (`__eq__`, `__bool__`, `__hash__` ...) ever runs where the
tests run. Left out on purpose: pickle and marshal, which can be made to run code or crash.
"""

from __future__ import annotations

import builtins
import collections
import datetime
import decimal
import fractions
import json
import os
from collections.abc import Callable, Iterable
from typing import Any

LONGEST_FRAME = 32 << 20
"""Bytes of one message; a longer answer counts as wrong."""

_EXACT_INTEGER = 1 << 53
_HEADER = 4
_read, _write, _loads, _dumps = os.read, os.write, json.loads, json.dumps  # a program may patch the modules


class Unreadable(Exception):
    """A message that is no message: forged, too long or too deep."""


class Gone(BaseException):
    """The other side has ended. No `except Exception` of a test may take it for an answer."""


class Frames:
    """Messages over a stream descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def send(self, message: Any) -> None:
        """Raises `Gone`, or `Unreadable` when the message is too long to be sent."""
        data = _dumps(message).encode("ascii")
        if len(data) > LONGEST_FRAME:
            raise Unreadable(f"a value of {len(data)} bytes cannot be handed over; at most {LONGEST_FRAME} can")
        rest = memoryview(len(data).to_bytes(_HEADER, "big") + data)
        try:
            while rest:
                rest = rest[_write(self.descriptor, rest) :]
        except (BrokenPipeError, ConnectionResetError):
            raise Gone from None

    def receive(self) -> Any:
        """The next message. Raises `Gone` at the end of the stream, `Unreadable` for anything but JSON."""
        length = int.from_bytes(self._exactly(_HEADER), "big")
        if length > LONGEST_FRAME:
            raise Unreadable(f"a message of {length} bytes; at most {LONGEST_FRAME} are taken")
        try:
            return _loads(self._exactly(length))
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"no message: {error}") from None

    def _exactly(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            try:
                part = _read(self.descriptor, min(length - len(data), 1 << 20))
            except ConnectionResetError:
                part = b""
            if not part:
                raise Gone
            data += part
        return bytes(data)


_SIMPLE: dict[type, tuple[str, Callable[[Any], Any]]] = {
    float: ("float", float.hex),
    complex: ("complex", lambda value: [value.real.hex(), value.imag.hex()]),
    bytes: ("bytes", lambda value: bytes(value).hex()),
    bytearray: ("bytearray", lambda value: bytes(value).hex()),
    range: ("range", lambda value: [hex(value.start), hex(value.stop), hex(value.step)]),
    fractions.Fraction: ("fraction", lambda value: [hex(value.numerator), hex(value.denominator)]),
    decimal.Decimal: ("decimal", str),
    datetime.datetime: ("datetime", datetime.datetime.isoformat),
    datetime.date: ("date", datetime.date.isoformat),
    datetime.time: ("time", datetime.time.isoformat),
    datetime.timedelta: ("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    type(Ellipsis): ("ellipsis", lambda _: 0),
}
_SERIES: dict[type, str] = {
    **{tuple: "tuple", set: "set", frozenset: "frozenset", collections.deque: "deque"},
    **{collections.Counter: "counter", collections.OrderedDict: "ordered", collections.defaultdict: "defaulting"},
    **{dict: "dict", list: "list"},
}
"""Containers and their tags, subclasses before their bases."""

_MAPPINGS = {"dict", "counter", "ordered", "defaulting"}
_TYPES = {value.__name__: value for value in vars(builtins).values() if isinstance(value, type)}

_READERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda data: int(data, 16),
    "float": float.fromhex,
    "complex": lambda data: complex(float.fromhex(data[0]), float.fromhex(data[1])),
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "range": lambda data: range(*(int(part, 16) for part in data)),
    "fraction": lambda data: fractions.Fraction(int(data[0], 16), int(data[1], 16)),
    "decimal": decimal.Decimal,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": lambda data: datetime.timedelta(*data),
    "ellipsis": lambda _: Ellipsis,
    "type": _TYPES.__getitem__,
    "notimplemented": lambda _: NotImplemented,
}
_BUILDERS: dict[str, Callable[[Iterable[Any]], Any]] = {
    **{"tuple": tuple, "set": set, "frozenset": frozenset, "deque": collections.deque, "dict": dict},
    "counter": lambda pairs: collections.Counter(dict(pairs)),
    "ordered": collections.OrderedDict,
    "defaulting": lambda pairs: collections.defaultdict(None, pairs),
}


def encode(value: Any, refer: Callable[[Any], Any]) -> Any:
    """The JSON form of `value`; what is no plain data becomes what `refer` says. Raises `RecursionError` for loops."""
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is list:
        return [encode(part, refer) for part in value]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        number = int.__int__(value)
        return number if -_EXACT_INTEGER < number < _EXACT_INTEGER else {"t": "int", "v": hex(number)}
    for plain, (tag, form) in _SIMPLE.items():
        if isinstance(value, plain):
            return {"t": tag, "v": form(value)}
    return _encode_series(value, refer)


def _encode_series(value: Any, refer: Callable[[Any], Any]) -> Any:
    for plain, tag in _SERIES.items():
        if issubclass(type(value), plain):
            parts: Any = [list(pair) for pair in value.items()] if tag in _MAPPINGS else value
            encoded = [encode(part, refer) for part in parts]
            fields = getattr(value, "_fields", None)
            if tag == "tuple" and isinstance(fields, tuple):
                return {"t": "named", "v": encoded, "fields": list(map(str, fields)), "name": type(value).__name__}
            return encoded if tag == "list" else {"t": tag, "v": encoded}
    if isinstance(value, type) and _TYPES.get(value.__name__) is value:
        return {"t": "type", "v": value.__name__}
    if value is NotImplemented:
        return {"t": "notimplemented", "v": 0}
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return encode(value.item(), refer)  # a numpy scalar
    return refer(value)


def decode(data: Any, resolve: Callable[[dict[str, Any]], Any]) -> Any:
    """The value of a JSON form; references become what `resolve` says. Raises `Unreadable` for forms that do not exist."""
    try:
        return _decode(data, resolve)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, ArithmeticError, RecursionError) as error:
        raise Unreadable(f"no value: {type(error).__name__}: {error}") from None


def _decode(data: Any, resolve: Callable[[dict[str, Any]], Any]) -> Any:
    if isinstance(data, list):
        return [_decode(part, resolve) for part in data]
    if not isinstance(data, dict):
        return data
    tag = data["t"]
    if tag in _READERS:
        return _READERS[tag](data["v"])
    if tag in _BUILDERS:
        return _BUILDERS[tag]([_decode(part, resolve) for part in data["v"]])
    if tag == "named":
        fields = [str(field) for field in data["fields"]]
        named = collections.namedtuple("named", fields, rename=True)  # type: ignore[misc]
        return named(*(_decode(part, resolve) for part in data["v"]))
    return resolve(data)
