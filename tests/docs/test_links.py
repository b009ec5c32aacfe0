"""Links lead somewhere, figures are those on file, and what pages name exists."""

from __future__ import annotations

import re

import pytest
from pages import NUMBER, PAGES, ROOT, anchors, figures, links, of, read

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
RESULTS = ROOT / "benchmarks" / "results"


@each_page
def test_links_lead_to_files_and_headings(page):
    broken = []
    for target in links(read(page)):
        path, _, anchor = target.partition("#")
        aimed = (page.parent / path).resolve() if path else page
        if not aimed.exists() or (anchor and anchor not in anchors(read(aimed))):
            broken.append(target)
    assert broken == []


def test_the_anchors_of_headings_are_those_that_readers_link_to():
    text = "# What the numbers mean\n## values.json\n### pool.NAME.sampling\n## Items: jsonl\n```\n# no heading\n```\n"
    assert anchors(text) == {"what-the-numbers-mean", "valuesjson", "poolnamesampling", "items-jsonl"}


@each_page
def test_the_figures_are_those_that_the_benchmarks_recorded(page):
    for part in figures(read(page)):
        (target,) = re.findall(r"\]\((?:\.\./)?benchmarks/results/([a-z_0-9]+\.md)", part)
        recorded = set(NUMBER.findall(read(RESULTS / target)))
        claimed = set(NUMBER.findall(part.partition("](")[0].rpartition("[")[0]))
        assert claimed, f"no figure in {part!r}"
        assert claimed <= recorded, f"{sorted(claimed - recorded)} of {part!r} are not in {target}"


def test_the_readme_has_three_figures():
    assert len(figures(read(ROOT / "README.md"))) == 3


def test_every_recorded_measurement_is_in_the_index():
    index = read(ROOT / "docs" / "measurements.md")
    assert sorted(re.findall(r"benchmarks/results/([a-z_0-9]+\.md)", index)) == sorted(
        path.name for path in RESULTS.glob("*.md")
    )


def test_the_index_links_every_page():
    linked = {target.partition("#")[0] for target in links(read(ROOT / "docs" / "index.md"))}
    assert {page.name for page in PAGES if page.parent == ROOT / "docs"} - {"index.md"} <= linked


def test_the_names_in_the_file_tree_exist():
    (tree,) = of(read(ROOT / "docs" / "index.md"), "")
    names = re.findall(r"^ *([a-z_]+)/ ", tree.text, re.MULTILINE)
    assert len(names) >= 7
    assert [name for name in names if not (ROOT / name).is_dir() and not (ROOT / "collabsim" / name).is_dir()] == []
    files = re.findall(r"\b[a-z_]+\.(?:py|yml|yaml|json)\b", tree.text)
    assert [name for name in files if not (ROOT / name).exists()] == []
