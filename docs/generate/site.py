"""What mkdocs cannot find in docs/: the pages that are made from other files of the repository, and the links to them.

In: mkdocs' events. Out: the recorded measurements under `results/`, the example files under `examples/`, the tutorial made
of its notebook, the reference of config keys made of the schema, and CONTRIBUTING.md and CHANGELOG.md. Links of the pages
lead to files of the repository, as on a code host; here they are pointed at their places on the site.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

import configuration
import notebook

ROOT = Path(__file__).parents[2]
COPIED = {
    "results": sorted((ROOT / "benchmarks" / "results").glob("*.*")),
    "examples": sorted(path for path in (ROOT / "examples").iterdir() if path.is_file()),
}
"""Folder of the site -> files that are copied there."""
ROOT_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
MOVED = {
    "../benchmarks/results/": "results/",
    "../examples/tutorial.ipynb": "tutorial.md",
    "../examples/": "examples/",
    **{f"../{name}": page for name, page in ROOT_PAGES.items()},
    "../README.md": "index.md",
    "../docs/": "",
}
"""How the target of a link begins in a page of docs/ -> how it begins on the site."""
IN_RESULTS = {"../../examples/": "../examples/", "../../docs/": "../"}
"""The same for the recorded measurements."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and files that do not lie in docs/."""
    made = {"tutorial.md": notebook.page(ROOT / "examples" / "tutorial.ipynb")}
    for name, page in ROOT_PAGES.items():
        made[page] = _from_root((ROOT / name).read_text(encoding="utf-8"))
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    for folder, paths in COPIED.items():
        for path in paths:
            files.append(File.generated(config, f"{folder}/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with its links pointed at the site, and the config keys as the schema has them now."""
    if page.file.src_uri == "configuration.md":
        markdown = configuration.page(markdown)
    moved = IN_RESULTS if page.file.src_uri.startswith("results/") else MOVED
    for start, place in moved.items():
        markdown = markdown.replace(f"]({start}", f"]({place}")
    return markdown


def _from_root(markdown: str) -> str:
    """A page of the repository's root, its links as if it lay in docs/."""
    return re.sub(r"\]\((?!https?:|#|docs/)", "](../", markdown).replace("](docs/", "](")
