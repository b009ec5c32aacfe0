"""GGUF files as Hugging Face folders.

In: a `WeightSource` with GGUF parts. Out: a folder in the cache, named by what went into it. transformers unpacks the
weights; the tokenizer that it makes is mended and verified (see `gguf_tokenizer.py`) as it is read back from the folder. Left
out on purpose: keeping weights quantized, since vLLM on a CPU and training need them whole.
"""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path

from collabsim.errors import CollabsimError, ConfigError, DataError
from collabsim.models.weights.cache import cache_folder, make_once, sha256_of
from collabsim.models.weights.gguf_header import Header, read_header
from collabsim.models.weights.gguf_tokenizer import TokenizerFacts, differences, drop_strangers, facts_of, mend
from collabsim.models.weights.loading_lock import loading_transformers
from collabsim.models.weights.source import WeightSource
from collabsim.optional_packages import first_line, require
from collabsim.seeds import digest

CONVERTER = 1
"""Raise it when the same file is converted to something else than before."""
DTYPES = ("bfloat16", "float16", "float32")
_log = logging.getLogger(__name__)


def converted(source: WeightSource, dtype: str = "bfloat16") -> Path:
    """The folder of a GGUF source, converted now or before.

    Raises `DataError` for another hash than the spec's, for cut files and for a tokenizer that cannot be mended;
    `PrerequisiteError` for missing packages or disk space; `ConfigError` for an unknown dtype.
    """
    if dtype not in DTYPES:
        raise ConfigError(f"model {source.spec!r}: GGUF weights are converted to one of {DTYPES}, got {dtype!r}")
    sha256 = sha256_of(source.parts)
    if source.sha256 and sha256 != source.sha256:
        what = source.parts[0].name + (f" and {len(source.parts) - 1} more parts" if len(source.parts) > 1 else "")
        raise DataError(
            f"model {source.spec!r}: expected SHA-256 {source.sha256}, got {sha256} from {what}; "
            "the file is damaged or another one: install or download it again"
        )
    key = digest([sha256, CONVERTER, dtype])[:16]
    return make_once(cache_folder() / f"{source.name}-{key}", lambda folder: _fill(folder, source, dtype))


def _fill(folder: Path, source: WeightSource, dtype: str) -> None:
    for package in ("gguf", "accelerate", "torch", "transformers"):
        require(package, f"converting the GGUF model {source.name!r}")
    # A warning, since it shows without any logging set up: otherwise the first run seems to hang.
    _log.warning("converting %s to %s, once; this takes from 15 seconds to a few minutes", source.name, dtype)
    began = time.monotonic()
    joined = _one_file(source, folder)
    header = read_header(joined)
    try:
        with loading_transformers():
            _save_model(joined, folder, dtype, facts_of(header.metadata))
            _save_tokenizer(joined, folder, header)
    except (CollabsimError, MemoryError):
        raise
    except OSError as error:
        if error.errno is not None:  # the disk's complaint; transformers' own have no number
            raise
        raise _cannot_convert(source, error) from error
    except Exception as error:
        raise _cannot_convert(source, error) from error
    if joined.parent == folder:
        joined.unlink()
    _log.warning("converted %s in %.0f s", source.name, time.monotonic() - began)


def _cannot_convert(source: WeightSource, error: Exception) -> DataError:
    return DataError(
        f"model {source.spec!r}: transformers {require('transformers', 'GGUF').__version__} cannot convert this GGUF file "
        f"({first_line(error)}); use the model's original folder or hub id"
    )


def _one_file(source: WeightSource, folder: Path) -> Path:
    """The GGUF as one file: itself, or its parts joined inside `folder`."""
    if len(source.parts) == 1:
        return source.parts[0].resolve()
    joined = folder / "joined.gguf"
    with joined.open("wb") as out:
        for part in source.parts:
            with part.open("rb") as piece:
                shutil.copyfileobj(piece, out, 2**22)
    return joined


def _save_model(file: Path, folder: Path, dtype: str, facts: TokenizerFacts) -> None:
    torch, transformers = require("torch", "GGUF"), require("transformers", "GGUF")
    model, loading = transformers.AutoModelForCausalLM.from_pretrained(
        str(file.parent),
        gguf_file=file.name,
        # Or they stay packed where the package `kernels` is installed.
        quantization_config=transformers.GgufConfig(dequantize=True),
        dtype=getattr(torch, dtype),
        output_loading_info=True,
    )
    if missing := sorted(loading["missing_keys"]):
        raise DataError(f"{file}: the GGUF file lacks {len(missing)} of the model's weights, such as {missing[0]}")
    model.hf_quantizer = None  # or saving is refused: the weights are not quantized any more
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    if facts.stop_ids:
        model.generation_config.eos_token_id = list(facts.stop_ids) if len(facts.stop_ids) > 1 else facts.stop_ids[0]
    model.save_pretrained(folder)


def _save_tokenizer(file: Path, folder: Path, header: Header) -> None:
    from_pretrained = require("transformers", "GGUF").AutoTokenizer.from_pretrained
    facts = facts_of(header.metadata)
    tokenizer = from_pretrained(str(file.parent), gguf_file=file.name)
    mend(tokenizer, facts)
    tokenizer.save_pretrained(folder)
    if len(tokenizer) > facts.tokens:
        drop_strangers(folder, facts)
    reread = from_pretrained(str(folder), local_files_only=True)
    if differing := differences(reread, facts):
        raise DataError(
            f"{file}: the converted tokenizer is not the one that the GGUF file describes: {'; '.join(differing)}; "
            "use the model's original folder or hub id"
        )
