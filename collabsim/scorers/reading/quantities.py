"""Numbers with a unit or a scale, and when two of them are the same.

In: words and signs after a number. Out: a `Quantity` of a unit that is known here; other words ("apples") are read over. A
quantity equals a bare number of its own size; a percentage and a scale word (`75%`, `3 million`) also equal what they
stand for, in both directions. Two quantities are equal when their units measure one thing and the sizes agree
(`1.5 km` and `1500 m`); `18 cm` is not `18 m`. Left out on purpose: currencies, and units with an offset.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

_POWERS = {"n": -9, "µ": -6, "u": -6, "m": -3, "c": -2, "d": -1, "": 0, "k": 3, "M": 6, "G": 9}


def _prefixed(
    unit: str, prefixes: str, dimension: str, factor: Fraction = Fraction(1)
) -> dict[str, tuple[str, Fraction]]:
    names = [*prefixes, ""]
    return {f"{prefix}{unit}": (dimension, factor * Fraction(10) ** _POWERS[prefix]) for prefix in names}


_SHORT = {
    **_prefixed("m", "nµumcdk", "length"),
    **_prefixed("g", "µmk", "mass"),
    **_prefixed("s", "nµm", "time"),
    **_prefixed("L", "µmcd", "volume", Fraction(1, 1000)),
    **_prefixed("l", "mcd", "volume", Fraction(1, 1000)),
    **_prefixed("Hz", "kMG", "frequency"),
    **_prefixed("J", "mkM", "energy"),
    **_prefixed("W", "mkM", "power"),
    **_prefixed("V", "mk", "voltage"),
    **_prefixed("N", "mk", "force"),
    **_prefixed("A", "µm", "current"),
    **_prefixed("Pa", "kM", "pressure"),
    **_prefixed("mol", "m", "amount"),
    **_prefixed("eV", "kMG", "electronvolt"),
    **{"K": ("temperature", Fraction(1)), "°C": ("celsius", Fraction(1)), "°F": ("fahrenheit", Fraction(1))},
    **{"min": ("time", Fraction(60)), "hr": ("time", Fraction(3600)), "hrs": ("time", Fraction(3600))},
    **{"h": ("time", Fraction(3600)), "sec": ("time", Fraction(1)), "secs": ("time", Fraction(1))},
    **{"in": ("foot", Fraction(1, 12)), "ft": ("foot", Fraction(1)), "yd": ("foot", Fraction(3))},
    **{"mi": ("foot", Fraction(5280)), "lb": ("pound", Fraction(1)), "lbs": ("pound", Fraction(1))},
    **{"oz": ("pound", Fraction(1, 16)), "mph": ("mph", Fraction(1)), "°": ("angle", Fraction(1))},
    **{"cal": ("calorie", Fraction(1)), "kcal": ("calorie", Fraction(1000)), "kWh": ("energy", Fraction(3_600_000))},
}
_LONG = {
    **{"meter": "m", "metre": "m", "gram": "g", "second": "s", "liter": "L", "litre": "L", "joule": "J", "watt": "W"},
    **{"volt": "V", "newton": "N", "amp": "A", "ampere": "A", "pascal": "Pa", "mole": "mol", "kelvin": "K"},
    **{
        "minute": "min",
        "hour": "h",
        "inch": "in",
        "inche": "in",
        "foot": "ft",
        "feet": "ft",
        "yard": "yd",
        "mile": "mi",
    },
    **{"pound": "lb", "ounce": "oz", "degree": "°", "hertz": "Hz", "micron": "µm"},
}
_PREFIXES = {"nano": "n", "micro": "µ", "milli": "m", "centi": "c", "deci": "d", "kilo": "k", "mega": "M", "giga": "G"}
_TIMES = {"day": ("time", Fraction(86_400)), "week": ("time", Fraction(604_800))}
SCALES = {
    **dict.fromkeys(("%", "percent", "pct", "per cent"), Fraction(1, 100)),
    **{
        "thousand": Fraction(10**3),
        "million": Fraction(10**6),
        "billion": Fraction(10**9),
        "trillion": Fraction(10**12),
    },
}
_SQUARED = re.compile(
    r"(?P<how>square|sq\.?|cubic|cu\.?)\s+(?P<unit>[A-Za-z]+)|(?P<short>[A-Za-zµ°]+)\s?\^\s?\{?\s?(?P<power>[23])\s?\}?"
)
"""A unit of area or volume: `square km`."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of units."""

    size: Fraction
    dimension: str
    """What is measured: `length`, `length^2`, `scale`."""
    factor: Fraction
    """The unit in the base unit of its dimension; for a scale, what 1 of it stands for."""


def unit_of(words: str) -> tuple[str, Fraction] | None:
    """Dimension and factor of a known unit (`cm`, `square feet`, `m^2`, `percent`); None for any other words."""
    words = words.strip().rstrip(".").strip()
    if words.casefold() in SCALES:
        return "scale", SCALES[words.casefold()]
    if raised := _SQUARED.fullmatch(words):
        power = int(raised["power"] or (2 if raised["how"].startswith("sq") else 3))
        single = _single(raised["unit"] or raised["short"])
        return None if single is None else (f"{single[0]}^{power}", single[1] ** power)
    return _single(words)


def _single(word: str) -> tuple[str, Fraction] | None:
    if word in _SHORT:
        return _SHORT[word]
    name = word.casefold()
    name = name if name in _LONG or name in _TIMES else name.removesuffix("s")
    if name in _TIMES:
        return _TIMES[name]
    if name in _LONG:
        return _SHORT[_LONG[name]]
    for prefix, letter in _PREFIXES.items():
        if name.startswith(prefix) and (short := _LONG.get(name.removeprefix(prefix))):
            return _SHORT.get(f"{letter}{short}")
    return None


def with_unit(size: Fraction, words: str) -> Fraction | Quantity:
    """A number with the unit that `words` name, or the bare number when they name none that is known."""
    unit = unit_of(words)
    return size if unit is None else Quantity(size, *unit)


def same_size(a: Fraction | Quantity, b: Fraction | Quantity) -> bool:
    """Whether two numbers, each with or without a unit, are the same. Symmetric."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a == b
    if isinstance(a, Quantity) and isinstance(b, Quantity):
        return a.dimension == b.dimension and a.size * a.factor == b.size * b.factor
    quantity, bare = (a, b) if isinstance(a, Quantity) else (b, a)
    assert isinstance(quantity, Quantity)
    scaled = quantity.dimension == "scale" and quantity.size * quantity.factor == bare
    return quantity.size == bare or scaled


def near_size(size: Fraction | Quantity, gold: Fraction | Quantity, tolerance: float) -> bool:
    """Whether a number is within `tolerance` of a gold, in parts of the gold; units as in `same_size`."""
    if isinstance(size, Quantity) and isinstance(gold, Quantity):
        if size.dimension != gold.dimension:
            return False
        return near_size(size.size * size.factor, gold.size * gold.factor, tolerance)
    a = size.size if isinstance(size, Quantity) else size
    b = gold.size if isinstance(gold, Quantity) else gold
    return abs(a - b) <= abs(b) * Fraction(tolerance)
