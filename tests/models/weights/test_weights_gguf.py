from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from engines import requires
from tiny_folders import CHATML, GGUF_TOKENS, SPECIAL, gguf_weights, write_folder, write_gguf

from collabsim.errors import ConfigError, DataError
from collabsim.models.weights import conversion, find_weights
from collabsim.models.weights.gguf_header import read_header
from collabsim.models.weights.gguf_tokenizer import differences, facts_of, mend

pytestmark = requires("gguf", "tokenizers")
converts = requires("transformers", "torch", "accelerate")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "tiny.gguf", template=CHATML, adds_bos=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf").read_bytes()


def test_our_reading_of_a_header_agrees_with_the_gguf_package(gguf: Path) -> None:
    from gguf import GGUFReader

    reader = GGUFReader(gguf)
    theirs = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    ours = read_header(gguf)
    assert ours.metadata == theirs
    last = max(reader.tensors, key=lambda tensor: tensor.data_offset)
    assert ours.size == last.data_offset + last.n_bytes


@pytest.mark.parametrize("kept", [20, 500, 3000, -1000])
def test_a_cut_file_is_refused_wherever_it_is_cut(whole: bytes, kept: int, tmp_path: Path) -> None:
    (tmp_path / "cut.gguf").write_bytes(whole[:kept])
    with pytest.raises(DataError, match="cut off"):
        read_header(tmp_path / "cut.gguf")


def test_a_version_that_is_not_known_is_refused(whole: bytes, tmp_path: Path) -> None:
    (tmp_path / "new.gguf").write_bytes(whole[:4] + b"\x09" + whole[5:])
    with pytest.raises(DataError, match="version 2 or 3, got 9"):
        read_header(tmp_path / "new.gguf")


def test_the_facts_of_a_tokenizer_are_read(gguf: Path) -> None:
    facts = facts_of(read_header(gguf).metadata)
    assert facts.special == {"bos_token": (1, "<s>"), "eos_token": (2, "</s>"), "pad_token": (0, "<pad>")}
    assert (facts.adds_bos, facts.template, facts.tokens) == (True, CHATML, GGUF_TOKENS)


def test_a_turn_end_in_the_template_ends_a_reply_too(gguf: Path) -> None:
    assert facts_of(read_header(gguf).metadata).stop_ids == (2, SPECIAL.index("<|im_end|>"))


def test_a_sentencepiece_file_that_is_silent_adds_bos() -> None:
    said = {"tokenizer.ggml.tokens": ["<s>"], "tokenizer.ggml.bos_token_id": 0}
    assert facts_of({**said, "tokenizer.ggml.model": "llama"}).adds_bos is True
    assert facts_of({**said, "tokenizer.ggml.model": "gpt2"}).adds_bos is None


@converts
def test_a_converted_model_has_the_weights_of_the_file(gguf: Path) -> None:
    import numpy as np
    from safetensors.numpy import load_file

    weights = load_file(find_weights(str(gguf), dtype="float32").path / "model.safetensors")
    expected = gguf_weights()
    np.testing.assert_array_equal(weights["model.embed_tokens.weight"], expected["token_embd.weight"])
    np.testing.assert_array_equal(weights["model.layers.0.mlp.down_proj.weight"], expected["blk.0.ffn_down.weight"])


@converts
def test_a_conversion_says_in_one_line_that_it_takes_long_and_shows_no_bars(
    gguf: Path, capfd: Any, caplog: Any
) -> None:
    find_weights(str(gguf))
    shown = "".join(capfd.readouterr())
    assert shown == ""
    begun, ended = (record.getMessage() for record in caplog.records)
    assert re.fullmatch("converting .* once; this takes .*", begun)
    assert re.fullmatch(r"converted .* in \d+ s", ended)


@converts
def test_transformers_is_as_loud_after_a_conversion_as_before(gguf: Path, monkeypatch: Any) -> None:
    from transformers import modeling_gguf_pytorch_utils as reader
    from transformers.utils import logging

    def fail(*_: Any) -> None:
        raise OSError("as the test wants it")

    before = logging.get_verbosity(), logging.is_progress_bar_enabled(), reader.tqdm
    monkeypatch.setattr(conversion, "_save_model", fail)
    with pytest.raises(DataError, match="as the test wants it"):
        find_weights(str(gguf))
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled(), reader.tqdm) == before


@converts
def test_a_converted_model_is_a_plain_folder(gguf: Path) -> None:
    found = find_weights(str(gguf))
    config = json.loads((found.path / "config.json").read_text())
    assert "quantization_config" not in config
    assert (config["dtype"], found.name, found.has_template, found.window) == ("bfloat16", "tiny", True, 128)
    assert json.loads((found.path / "generation_config.json").read_text())["eos_token_id"] == [2, 4]
    assert not list(found.path.glob("*.gguf"))


@converts
@pytest.mark.parametrize("adds_bos", [True, False])
def test_a_converted_tokenizer_adds_bos_as_the_file_says(tmp_path: Path, adds_bos: bool) -> None:
    from transformers import AutoTokenizer

    file = write_gguf(tmp_path / "tiny.gguf", adds_bos=adds_bos)
    tokenizer = AutoTokenizer.from_pretrained(find_weights(str(file)).path)
    ids = tokenizer.encode("hi")
    assert ids == ([1] if adds_bos else []) + tokenizer.convert_tokens_to_ids(["h", "i"])


@converts
def test_what_cannot_be_mended_is_named_and_leaves_no_folder(gguf: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(conversion, "mend", lambda tokenizer, facts: None)
    with pytest.raises(DataError, match="not the one that the GGUF file describes: BOS should be put in front"):
        find_weights(str(gguf))
    assert [path for path in (tmp_path / "cache" / "collabsim" / "models").iterdir() if path.is_dir()] == []


@converts
def test_every_mended_fact_holds(gguf: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    facts = facts_of(read_header(gguf).metadata)
    tokenizer = AutoTokenizer.from_pretrained(write_folder(tmp_path / "other", adds_bos=False))
    tokenizer.eos_token = "<pad>"
    wrong = differences(tokenizer, facts)
    assert [words in " ".join(wrong) for words in ("eos_token should be 2", "BOS should be", "template")] == [True] * 3
    mend(tokenizer, facts)
    assert [words for words in differences(tokenizer, facts) if "tokens, the model" not in words] == []


@converts
def test_a_second_call_converts_nothing_and_has_the_same_identity(gguf: Path, monkeypatch: Any) -> None:
    first = find_weights(str(gguf))
    monkeypatch.setattr(conversion, "_fill", lambda *_: pytest.fail("converted twice"))
    assert find_weights(str(gguf)) == first


@converts
def test_the_same_content_in_parts_is_the_same_folder(gguf: Path, tmp_path: Path, monkeypatch: Any) -> None:
    whole, content = find_weights(str(gguf)), gguf.read_bytes()
    for number, piece in enumerate((content[:1000], content[1000:]), start=1):
        package = tmp_path / "site" / f"bits_part{number}"
        package.mkdir(parents=True)
        (package / f"tiny.gguf.part0{number}").write_bytes(piece)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    sha256 = hashlib.sha256(content).hexdigest()
    spec = f"package://bits_part{{1..2}}/tiny.gguf.part{{01..02}}#sha256={sha256}"
    assert find_weights(spec) == whole
    whole.path.rename(tmp_path / "away")
    assert find_weights(spec).identity == whole.identity


def test_another_hash_than_the_specs_is_refused_before_anything_is_made(gguf: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected SHA-256 0{64}, got [0-9a-f]{64} from tiny\.gguf"):
        find_weights(f"{gguf}#sha256={'0' * 64}")


@converts
def test_a_cut_file_is_not_converted(gguf: Path) -> None:
    gguf.write_bytes(gguf.read_bytes()[:-500])
    with pytest.raises(DataError, match=r"cut off: expected \d+ bytes, got \d+"):
        find_weights(str(gguf))


@converts
def test_an_architecture_that_transformers_does_not_know_is_one_clear_line(gguf: Path) -> None:
    gguf.write_bytes(gguf.read_bytes().replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0nosuc", 1))
    with pytest.raises(DataError, match="cannot convert this GGUF file") as caught:
        find_weights(str(gguf))
    assert "\n" not in str(caught.value)


def test_a_dtype_that_does_not_exist_is_refused(gguf: Path) -> None:
    with pytest.raises(ConfigError, match="bfloat16"):
        find_weights(str(gguf), dtype="int4")


@converts
def test_a_token_that_the_model_has_no_row_for_is_dropped(gguf: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(find_weights(str(gguf)).path)
    assert len(tokenizer) == GGUF_TOKENS
    assert max(tokenizer.encode("<|endoftext|>")) < GGUF_TOKENS
