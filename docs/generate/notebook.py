"""A notebook as a Markdown page.

In: the path of a `.ipynb` file. Out: its text cells as they are and its code cells as Python blocks. Left out on purpose:
outputs; the tutorial is kept without any.
"""

from __future__ import annotations

import json
from pathlib import Path


def cells(path: Path) -> list[tuple[str, str]]:
    """The cells of a notebook as (`markdown` or `code`, text), in order."""
    book = json.loads(path.read_text(encoding="utf-8"))
    return [(cell["cell_type"], "".join(cell["source"])) for cell in book["cells"]]


def page(path: Path) -> str:
    """The notebook as Markdown."""
    parts = [f"```python\n{text}\n```" if kind == "code" else text for kind, text in cells(path)]
    return "\n\n".join(parts) + "\n"
