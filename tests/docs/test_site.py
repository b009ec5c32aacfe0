"""The site builds without a warning, and holds every page, measurement and public name."""

from __future__ import annotations

import html
import inspect
import os
import subprocess
import sys

import pytest
from engines import requires
from pages import ROOT, read

import collabsim

pytestmark = [pytest.mark.slow, requires("mkdocs", "material", "mkdocstrings")]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there(site):
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"} | {"tutorial", "contributing", "changelog"}
    assert [name for name in sorted(pages) if not (site / name / "index.html").exists()] == []
    recorded = {path.stem for path in (ROOT / "benchmarks" / "results").glob("*.md")}
    assert [name for name in sorted(recorded) if not (site / "results" / name / "index.html").exists()] == []


def test_the_tutorial_is_made_of_the_notebook(site):
    page = read(site / "tutorial" / "index.html")
    assert "check_protocol" in page
    assert "Train a node" in page


def test_the_reference_shows_signatures_and_docstrings(site):
    page = read(site / "api" / "index.html")
    for name in ("collabsim.sweep", "collabsim.System", "trainers.train", "collabsim.testing.check_protocol"):
        assert f'id="{name}"' in page
    for documented in (collabsim.System, collabsim.sweep, collabsim.SweepResult):
        assert " ".join(inspect.getdoc(documented).split()[:3]) in html.unescape(page)


def test_nothing_is_loaded_from_elsewhere(site):
    pages = [read(path) for path in site.rglob("*.html")]
    assert not any("fonts.googleapis.com" in page or 'src="http' in page for page in pages)


def test_the_generator_s_own_files_are_no_part_of_it(site):
    assert not (site / "generate").exists()
