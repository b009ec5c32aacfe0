"""The pages of the documentation, and what a reader does with their code blocks.

Every fenced block of every page is run or checked: Python in one namespace for each page, YAML and named Python written to
the file that their first line names, `collabsim` lines as the command, `make` and `pip` lines against the Makefile and
pyproject.toml. YAML without a name is a piece of config: it is laid over the page's last whole config and must give a plan.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NAMED = re.compile(r"# (\S+\.(?:py|yaml))(?:\n|$)")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
LANGUAGES = ("python", "yaml", "bash", "toml", "")


class Block(NamedTuple):
    """A fenced block."""

    language: str
    text: str
    line: int

    @property
    def file(self) -> str | None:
        """The file that the first line names."""
        named = NAMED.match(self.text) if self.language in ("python", "yaml") else None
        return named[1] if named else None


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(markdown: str) -> list[Block]:
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL)
    return [Block(match[1], match[2], markdown[: match.start()].count("\n") + 1) for match in found]


def of(markdown: str, language: str) -> list[Block]:
    return [block for block in blocks(markdown) if block.language == language]


def commands(block: Block) -> list[list[str]]:
    """The words of each line of a shell block, comments left out."""
    if block.language != "bash":
        return []
    return [words for line in block.text.splitlines() if (words := shlex.split(line, comments=True))]


def prose(markdown: str) -> str:
    """A page without its code."""
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", markdown, flags=re.DOTALL | re.MULTILINE)


def links(markdown: str) -> list[str]:
    """Targets of links and pictures that are no web addresses."""
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)", prose(markdown))
    return [target for target in targets if not re.match(r"[a-z][a-z0-9+.-]*:", target)]


def anchors(markdown: str) -> set[str]:
    """The anchors of a page's headings, as mkdocs and code hosts make them."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", markdown, flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    plain = [re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings]
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain}


def figures(markdown: str) -> list[str]:
    """The items of lists, and the paragraphs, that name a recorded measurement."""
    parts = re.split(r"\n\s*\n|^(?=- )", prose_with_code(markdown), flags=re.MULTILINE)
    return [part for part in parts if re.search(r"\]\((?:\.\./)?benchmarks/results/[a-z_0-9]+\.md\)", part)]


def prose_with_code(markdown: str) -> str:
    """A page without its blocks; code within lines stays."""
    return re.sub(r"^```.*?^```$", "", markdown, flags=re.DOTALL | re.MULTILINE)
