r"""LaTeX and plain notation of mathematics in one form, before it is parsed.

In: an answer as written (`\left(-\infty,\,3\right)`, `\dfrac{1}{2}\text{ cm}`). Out: the same in plain signs: wrappers,
spacing and dollar signs gone, operators and constants as single characters, set braces as `⦃ ⦄`, repeating decimals as
fractions. Structure (`\frac`, `\sqrt`, `^`, `_`, braces) stays. Left out on purpose: what it means; see `parser.py`.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from collabsim.scorers.reading.text import plain_characters, squeezed, without_latex_text

_SIGNS = {
    **dict.fromkeys(("cdot", "times", "ast", "cdotp"), "*"),
    **dict.fromkeys(("le", "leq", "leqslant", "leqq"), "≤"),
    **dict.fromkeys(("ge", "geq", "geqslant", "geqq"), "≥"),
    **dict.fromkeys(("ne", "neq"), "≠"),
    **dict.fromkeys(("lbrace", "{"), "⦃"),
    **dict.fromkeys(("rbrace", "}"), "⦄"),
    **dict.fromkeys(("emptyset", "varnothing"), "∅"),
    **dict.fromkeys(("lvert", "rvert", "vert", "mid"), "|"),
    **dict.fromkeys(("ldots", "dots", "cdots", "dotsc"), "…"),
    **dict.fromkeys(("approx", "sim", "simeq"), "≈"),
    **{"div": "/", "pm": "±", "mp": "∓", "lt": "<", "gt": ">", "infty": "∞", "infin": "∞", "pi": "π", "cup": "∪"},
    **{"in": "∈", "langle": "⟨", "rangle": "⟩", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉"},
    **{"degree": "°", "circ": "°", "colon": ":", "lparen": "(", "rparen": ")", "lbrack": "[", "rbrack": "]"},
    **{"land": " and ", "wedge": " and ", "lor": " or ", "vee": " or ", "equiv": "=", "&": "&", "%": "%", "$": " "},
    **{"#": "#", "_": "_", "euro": " ", "pounds": " ", "cap": "∩", "setminus": "∖", "backslash": "∖"},
}
_PLAIN_SIGNS = str.maketrans({"×": "*", "·": "*", "∙": "*", "÷": "/", "⩽": "≤", "⩾": "≥", "º": "°", "˚": "°", "∗": "*"})
_COMMAND = re.compile(r"\\([A-Za-z]+|[{}&%$#_])")
r"""A command or an escaped sign: `\cdot`."""
_GONE = re.compile(
    r"\\(?:left|right|middle|[bB]igg?[lrm]?|displaystyle|textstyle|scriptstyle|limits|nolimits|rm|bf|it|boldsymbol|hfill)"
    r"(?![A-Za-z])\.?|\\(?:label|tag|h?phantom|hspace|vspace)\*?\{[^{}]*\}|\\pmod\s?(?:\{[^{}]*\}|[0-9]+)"
    r"|\(mod [0-9]+\)|\\q?quad(?![A-Za-z])|\\[,;:!>]|\\(?=\s)|~"
)
r"""Layout without meaning: `\left`."""
_FRAC = re.compile(r"\\[dtc]frac(?![A-Za-z])")
r"""Other sizes of a fraction: `\dfrac`."""
_BINOM = re.compile(r"\\[dt]binom(?![A-Za-z])")
r"""Other sizes of a binomial: `\dbinom`."""
_BLACKBOARD = re.compile(r"\\(?:mathbb|mathbf|Bbb)\s*\{?\s*([RZNQC])\s*\}?")
r"""A set of numbers: `\mathbb{R}`."""
_FRAME = re.compile(
    r"\\(?:boxed|fbox|framebox|mathcal|underline|ensuremath|displaylines|overrightarrow|vec|hat)(?=\s*\{)"
)
r"""A frame or font around an expression: `\boxed{`."""
_DEGREES = re.compile(r"\s*\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))")
r"""Degrees written as a power: `90^\circ`."""
_REPEATING = re.compile(r"([0-9]*)\.([0-9]*)\\(?:overline|bar|dot|overset\{\.\})\s*\{?([0-9]+)\}?")
r"""A repeating decimal with a bar: `0.1\overline{6}`."""
_REPEATED = re.compile(r"(?<![0-9.])([0-9]+)\.([0-9]*?)([0-9]{1,6})\3{2,}\s?(?:…|\.\.\.)")
"""A repeating decimal with dots: `0.333...`."""
_GROUPED = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?:(?:\{,\}|\\,|,\s?\\!)[0-9]{3})+(?![0-9])")
"""Digit triples with LaTeX's commas: `1{,}200`."""
_SPACED = re.compile(r"(?<![0-9.,/^])(?<![0-9] )[1-9][0-9]{0,2}(?: [0-9]{3})+(?![0-9]|[./,][0-9]| [0-9])")
"""Digit triples with blanks between them: `12 000`."""
_DOLLARS = re.compile(r"(?:\b(?:US|CA|AU|NZ))?\s?\\?[$€£¥₹]|\\[()\[\]]")
"""A currency sign, or a delimiter of formulas: `US$`."""
_ROW_END = re.compile(r"\\\\(?:\[[^\]]{0,10}\])?|\\cr(?![A-Za-z])")
r"""The end of a matrix row: `1 \\ 2`."""
_ORDINAL = re.compile(r"(?<=[0-9])\s?\^\s?\{\s*(?:st|nd|rd|th)\s*\}")
"""The ending of an ordinal: `4^{th}`."""
_NUMBER_SETS = {"R": "ℝ", "Z": "ℤ", "N": "ℕ", "Q": "ℚ", "C": "ℂ"}

LONGEST = 1_000
"""Characters of an answer that are read as mathematics; more is text."""


@lru_cache(maxsize=4096)
def plain_math(text: str) -> str:
    """`text` in plain signs, white space squeezed."""
    text = _SPACED.sub(lambda match: match[0].replace(" ", ""), plain_characters(text))
    text = _DOLLARS.sub(" ", text)
    if "\\" in text or "{" in text or "~" in text:
        text = _ROW_END.sub(" ⏎ ", text).replace("{:}", ":")
        text = _GROUPED.sub(lambda match: re.sub(r"[^0-9]", "", match[0]), text)
        text = _DEGREES.sub("°", _FRAME.sub("", text))
        text = _REPEATING.sub(_repeating, _BLACKBOARD.sub(lambda match: _NUMBER_SETS[match[1]], text))
        text = _GONE.sub(" ", without_latex_text(text))
        text = _BINOM.sub(r"\\binom", _FRAC.sub(r"\\frac", text))
        text = _COMMAND.sub(lambda match: _SIGNS.get(match[1], match[0]), text)
    text = _ORDINAL.sub("", text)
    text = _REPEATED.sub(_repeating, text)
    return squeezed(text.translate(_PLAIN_SIGNS).replace("**", "^"))


def _repeating(match: re.Match[str]) -> str:
    """A repeating decimal as the fraction it is: 0.1(6) is 16/90 - 1/90 = 15/90."""
    whole, fixed, period = match[1] or "0", match[2], match[3]
    if len(whole + fixed + period) > 50:
        return match[0]
    value = Fraction(int(whole + fixed + period) - int(whole + fixed), 10 ** len(fixed) * (10 ** len(period) - 1))
    return f"({value})"


def compact(plain: str) -> str:
    """Plain mathematics without white space and grouping braces around single characters: a key for equal notation."""
    return re.sub(r"\{(\w)\}", r"\1", plain.replace(" ", ""))
