"""Calls between a program and its tests, each in a process of its own.

In: a stream of frames. Out: a `Peer` that asks the other side to load, call and look at things, and answers such requests
while it waits (tests may hand in functions). Arguments and results are plain values (`wire`); other objects are
`Remote`s. Arguments that a call changed in place are changed here too. Left out on purpose: identity of nested parts, and
arithmetic on objects of the program's own classes.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from .wire import Frames, Gone, Unreadable, decode, encode

_CHANGEABLE = (list, dict, set, bytearray)
_CONTROL = (StopIteration, StopAsyncIteration, GeneratorExit, SystemExit, KeyboardInterrupt)
"""Exceptions that steer the interpreter: from a call they would end loops of a test early."""

LONGEST_MESSAGE = 300


class Remote:
    """An object of the other side: what it answers is data, what it is stays there."""

    def __init__(self, peer: Peer, number: int) -> None:
        object.__setattr__(self, "_remote", (peer, number))

    def _ask(self, operation: str, *arguments: Any) -> Any:
        return self._remote[0].request(operation, self, *arguments)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What calling it there gives."""
        return self._remote[0].call(self, arguments, named)

    def __getattr__(self, name: str) -> Any:
        return self._ask("get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._ask("set", name, value)

    def __getitem__(self, key: Any) -> Any:
        return self._ask("item", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._ask("set_item", key, value)

    def __contains__(self, value: Any) -> bool:
        return self._ask("contains", value) is True

    def __len__(self) -> int:
        return int(self._ask("length"))

    def __bool__(self) -> bool:
        return self._ask("truth") is True

    def __iter__(self) -> Iterator[Any]:
        iterator = self._ask("iterate")
        while True:
            part = iterator._ask("next") if isinstance(iterator, Remote) else []
            if not part:
                return
            yield part[0]

    def __next__(self) -> Any:
        part = self._ask("next")
        if not part:
            raise StopIteration
        return part[0]

    def __str__(self) -> str:
        return str(self._ask("text"))

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        """Equal as the other side says when both are its objects; never equal to a plain value, whatever it says."""
        return isinstance(other, Remote) and self._ask("equal", other) is True

    def __hash__(self) -> int:
        return hash(self._remote[1])


class Peer:
    """One end of the line."""

    def __init__(self, frames: Frames, *, guarded: bool, names: dict[str, Any] | None = None) -> None:
        self._frames = frames
        self._guarded = guarded
        """Whether the other side is not to be trusted with more than it was handed."""
        self._names = {} if names is None else names
        self._objects: list[Any] = []
        self._operations: dict[str, Callable[..., Any]] = {
            "get": self._get,
            "set": self._set,
            "item": lambda target, key: target[key],
            "set_item": lambda target, key, value: target.__setitem__(key, value),
            "contains": lambda target, value: bool(value in target),
            "length": len,
            "truth": bool,
            "iterate": iter,
            "next": lambda target: [part for _, part in zip((0,), target, strict=False)],
            "text": str,
            "equal": lambda target, other: bool(target == other),
            "name": self._named,
            "ping": lambda: "pong",
        }

    def offer(self, operation: str, action: Callable[..., Any]) -> None:
        """Answer one more kind of request."""
        self._operations[operation] = action

    def request(self, operation: str, *arguments: Any) -> Any:
        """What the other side answers. Raises what it raised, `Gone`, or `Unreadable`."""
        return self._decoded(self._exchange(operation, arguments)["r"])

    def call(self, target: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The result of calling `target` there; arguments that it changed are changed here."""
        answer = self._exchange("call", (target, list(arguments), named))
        handed = [*arguments, *named.values()]
        changes = answer.get("m", {})
        for place, argument in enumerate(handed):
            if isinstance(argument, _CHANGEABLE) and str(place) in changes:
                _replace(argument, self._decoded(changes[str(place)]))
        same = answer.get("same")
        if isinstance(same, int) and 0 <= same < len(handed):
            return handed[same]
        return self._decoded(answer["r"])

    def serve(self) -> None:
        """Answer requests until the other side is gone, which raises `Gone`."""
        while True:
            self._answer(self._frames.receive())

    def _exchange(self, operation: str, arguments: tuple[Any, ...]) -> dict[str, Any]:
        self._frames.send({"op": operation, "a": [self._encoded(argument) for argument in arguments]})
        while True:
            message = self._frames.receive()
            if not isinstance(message, dict):
                raise Unreadable(f"no message: {type(message).__name__}")
            if "op" in message:
                self._answer(message)
            elif "x" in message:
                self._raise(message)
            elif "r" in message and isinstance(message.get("m", {}), dict):
                return message
            else:
                raise Unreadable("no message: neither request nor answer")

    def _answer(self, message: dict[str, Any]) -> None:
        try:
            operation, parts = message["op"], message["a"]
            if self._guarded and not (parts and isinstance(parts[0], dict) and parts[0].get("t") == "yours"):
                raise PermissionError("a program may only use what the tests handed to it")
            arguments = [self._decoded(part) for part in parts]
            answer = self._called(*arguments) if operation == "call" else self._done(operation, arguments)
            self._frames.send(answer)
        except Gone:
            raise
        except BaseException as error:  # whatever a program raises, exits included, is its answer
            self._frames.send(_as_message(error))

    def _done(self, operation: str, arguments: list[Any]) -> dict[str, Any]:
        return {"r": self._encoded(self._operations[operation](*arguments))}

    def _called(self, target: Any, arguments: list[Any], named: dict[str, Any]) -> dict[str, Any]:
        handed = [*arguments, *named.values()]
        before = {place: self._encoded(value) for place, value in enumerate(handed) if isinstance(value, _CHANGEABLE)}
        result = target(*arguments, **named)
        after = {place: self._encoded(handed[place]) for place in before}
        changes = {place: form for place, form in after.items() if form != before[place]}
        same = next((place for place in before if handed[place] is result), None)
        return {"r": None if same is not None else self._encoded(result), "m": changes, "same": same}

    def _get(self, target: Any, name: str) -> Any:
        self._check(target, name)
        return getattr(target, name)

    def _set(self, target: Any, name: str, value: Any) -> None:
        self._check(target, name)
        setattr(target, name, value)

    def _check(self, target: Any, name: str) -> None:
        """A guarded side shows plain attributes of objects of the tests' own classes, nothing that leads further."""
        own = type(target).__module__ == self._names.get("__name__")
        if self._guarded and (not own or name.startswith("_")):
            raise AttributeError(f"{name!r} of an object of the tests cannot be reached from the program")

    def _named(self, name: str) -> Any:
        if self._guarded or name not in self._names:
            raise NameError(f"name {name!r} is not defined")
        return self._names[name]

    def _encoded(self, value: Any) -> Any:
        return encode(value, self._refer)

    def _decoded(self, data: Any) -> Any:
        return decode(data, self._resolve)

    def _refer(self, value: Any) -> Any:
        if isinstance(value, Remote):
            return {"t": "yours", "v": value._remote[1]}
        if self._guarded and isinstance(value, Iterator):
            value = iter(list(value))  # its own attributes (frames) stay here
        self._objects.append(value)
        return {"t": "mine", "v": len(self._objects) - 1}

    def _resolve(self, data: dict[str, Any]) -> Any:
        number = data["v"]
        if type(number) is not int or data["t"] not in ("mine", "yours"):
            raise ValueError(f"unknown form {data['t']!r}")
        return Remote(self, number) if data["t"] == "mine" else self._objects[number]

    def _raise(self, message: dict[str, Any]) -> NoReturn:
        """Raise the built-in exception that is nearest to the one of the other side."""
        names = [name for name in message["x"] if isinstance(name, str)] if isinstance(message["x"], list) else []
        text = str(message.get("m", ""))[:LONGEST_MESSAGE]
        kinds = (getattr(builtins, name, None) for name in names)
        kind = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseException)), Exception)
        if issubclass(kind, _CONTROL) or not issubclass(kind, Exception):
            raise RuntimeError(f"{names[0]}: {text}" if text else names[0])
        try:
            error = kind(text)
        except TypeError:  # UnicodeDecodeError and its kin want more
            error = ValueError(text)
        error.add_note(names[0])
        raise error


def _replace(argument: Any, value: Any) -> None:
    """Make a changeable argument equal to `value`."""
    if type(value) is not type(argument) and not (isinstance(argument, dict) and isinstance(value, dict)):
        raise Unreadable("an argument came back as another type")
    if isinstance(argument, list | bytearray):
        argument[:] = value
    else:
        argument.clear()
        argument.update(value)


def _as_message(error: BaseException) -> dict[str, Any]:
    names = [kind.__name__ for kind in type(error).__mro__]
    try:
        text = str(error)[:LONGEST_MESSAGE]
    except Exception:
        text = ""
    return {"x": names, "m": text}
