from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from engines import requires
from tiny_folders import CHATML, write_folder

from collabsim.errors import DataError, PrerequisiteError
from collabsim.models.weights import cache as weight_cache
from collabsim.models.weights import find_weights
from collabsim.models.weights.folder import read_folder, stored_dtype

pytestmark = requires("safetensors", "tokenizers")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "tiny", template=CHATML)


def test_a_complete_folder_is_described(folder: Path) -> None:
    found = find_weights(str(folder))
    assert (found.path, found.name, found.has_template, found.window) == (folder, "tiny", True, 128)
    assert len(found.identity) == 64


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({}, "float32"),  # by the weights
        ({"dtype": "bfloat16"}, "bfloat16"),
        ({"torch_dtype": "float16"}, "float16"),
        ({"dtype": "torch.bfloat16"}, "bfloat16"),
        ({"dtype": "float32", "text_config": {"dtype": "bfloat16"}}, "bfloat16"),
        ({"dtype": None}, "float32"),
    ],
)
def test_the_stored_format_is_that_of_the_config_else_of_the_weights(folder: Path, said: Any, wanted: str) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **said}))
    assert read_folder(folder).dtype == stored_dtype(folder) == wanted


def test_short_formats_are_read_from_the_weights_past_tensors_of_whole_numbers(folder: Path) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    save_file({"a.ids": np.arange(4), "b.weight": np.ones(2, np.float16)}, folder / "model.safetensors")
    assert read_folder(folder).dtype == "float16"


def test_the_identity_is_that_of_the_content_wherever_it_lies(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert read_folder(tmp_path / "elsewhere").identity == read_folder(folder).identity


def test_who_wrote_a_folder_is_no_part_of_its_identity(folder: Path) -> None:
    before = read_folder(folder).identity
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "transformers_version": "9.9", "_name_or_path": "x"}))
    assert read_folder(folder).identity == before


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors"])
def test_every_part_that_matters_is_in_the_identity(folder: Path, file: str) -> None:
    before = read_folder(folder).identity
    content = (folder / file).read_bytes()
    changed = (
        content[:-1] + bytes([content[-1] ^ 1]) if file.endswith("tensors") else content.replace(b"16", b"17") + b" "
    )
    (folder / file).write_bytes(changed)
    assert read_folder(folder).identity != before


def test_another_template_changes_the_tokenizer_hash_and_other_weights_do_not(folder: Path, tmp_path: Path) -> None:
    first = read_folder(folder)
    assert read_folder(write_folder(tmp_path / "b", template=CHATML, seed=1)).tokenizer == first.tokenizer
    assert read_folder(write_folder(tmp_path / "c", template=CHATML + " ")).tokenizer != first.tokenizer


def test_a_second_look_hashes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_folder(folder).identity
    hashed: list[str] = []
    monkeypatch.setattr(weight_cache, "_remember", lambda names, stamp, sha256: hashed.append(names))
    assert read_folder(folder).identity == before
    assert hashed == []


def test_a_changed_file_is_hashed_again(folder: Path) -> None:
    before = read_folder(folder).identity
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    os.utime(weights, ns=(1, 1))
    assert read_folder(folder).identity != before


def test_an_identity_needs_no_cache_that_can_be_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_folder(folder).identity
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert read_folder(folder).identity == before


def test_no_model_library_is_imported_for_an_identity(folder: Path) -> None:
    look = (
        "import sys; from collabsim.models.weights import find_weights; from collabsim.models.local.template import Prompter;"
        f"Prompter(find_weights({str(folder)!r})).digest;"
        "print([name for name in ('torch', 'transformers', 'tokenizers', 'huggingface_hub') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_weights_that_are_cut_off_are_refused(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"expected \d+ bytes, got \d+; download or copy it again"):
        read_folder(folder)


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, b"\x10\0\0\0\0\0\0\0{"])
def test_weights_cut_inside_their_header_are_refused(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(DataError, match="cut off or no safetensors file"):
        read_folder(folder)


def test_a_git_lfs_pointer_is_named_as_one(folder: Path) -> None:
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(DataError, match="git lfs pull"):
        read_folder(folder)


def test_a_folder_without_a_tokenizer_is_refused(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(PrerequisiteError, match="expected a tokenizer"):
        read_folder(folder)


def test_a_folder_without_a_config_is_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(PrerequisiteError, match=r"expected config\.json"):
        read_folder(folder)


def test_a_folder_without_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(PrerequisiteError, match="expected weights"):
        read_folder(folder)


def test_a_folder_of_gguf_files_says_to_name_one_of_them(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "small.gguf")
    with pytest.raises(PrerequisiteError, match=r"name one of them .*small\.gguf"):
        read_folder(folder)


def test_an_adapter_alone_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(PrerequisiteError, match="adapter only"):
        read_folder(folder)


def test_a_missing_shard_is_named(folder: Path) -> None:
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(PrerequisiteError, match="1 of 2 weight files are missing"):
        read_folder(folder)


def test_a_config_that_is_no_json_is_named(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    with pytest.raises(DataError, match=r"config\.json: expected JSON"):
        read_folder(folder)
