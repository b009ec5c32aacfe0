from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engines import requires
from tiny_folders import write_folder

from collabsim.errors import PrerequisiteError
from collabsim.models.weights import find_weights

pytestmark = requires("safetensors", "tokenizers", "huggingface_hub")


class Hub:
    """`snapshot_download` with a cache folder and a network that may be down."""

    def __init__(self, cached: Path | None, online: Path | None) -> None:
        self.cached, self.online = cached, online
        self.asked: list[dict[str, Any]] = []

    def __call__(self, repo_id: str, **options: Any) -> str:
        from huggingface_hub.errors import LocalEntryNotFoundError

        self.asked.append(options)
        found = self.cached if options.get("local_files_only") else self.online
        if found is None and options.get("local_files_only"):
            raise LocalEntryNotFoundError("nothing cached")
        if found is None:
            raise ConnectionError("no route to host\nand more")
        return str(found)


def install(monkeypatch: pytest.MonkeyPatch, **places: Path | None) -> Hub:
    import huggingface_hub

    hub = Hub(places.get("cached"), places.get("online"))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub)
    return hub


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return write_folder(tmp_path / "snapshot")


def test_a_cached_snapshot_is_used_without_a_network(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = install(monkeypatch, cached=folder)
    assert find_weights("org/model").path == folder
    assert [asked["local_files_only"] for asked in hub.asked] == [True]


def test_the_name_is_the_hub_id(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, cached=folder)
    assert find_weights("org/model").name == "org/model"


def test_what_is_not_cached_is_downloaded_at_its_revision(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = install(monkeypatch, online=folder)
    assert find_weights("org/model", revision="v2").path == folder
    assert {asked["revision"] for asked in hub.asked} == {"v2"}


def test_a_snapshot_cached_in_part_is_completed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "part").mkdir()
    install(monkeypatch, cached=tmp_path / "part", online=folder)
    assert find_weights("org/model").path == folder


def test_a_model_that_cannot_be_reached_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    with pytest.raises(
        PrerequisiteError, match=r"not in the local cache .*no route to host\); go online once"
    ) as caught:
        find_weights("org/model")
    assert "\n" not in str(caught.value)


def test_the_real_client_offline_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub

    real = huggingface_hub.snapshot_download
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda repo, **options: real(repo, cache_dir=tmp_path, **options)
    )
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(PrerequisiteError, match="not in the local cache and cannot be downloaded") as caught:
        find_weights("org/model")
    assert "\n" not in str(caught.value)
