"""Features of questions, for routers that are fitted on dev items.

In: questions as text. Out: sparse vectors of length 1, `{feature: weight}`: TF-IDF of words and signs (scikit-learn's
formula), or the mean last hidden state of a local encoder model. Plain dictionaries, so that what is fitted can be kept as
JSON and read by people. Left out on purpose: answers and golds; a feature never sees them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from collabsim.context import RunContext
from collabsim.errors import ConfigError
from collabsim.item import Item, ItemView
from collabsim.models.weights import find_weights
from collabsim.models.weights.loading_lock import loading_transformers
from collabsim.optional_packages import require

Vector: TypeAlias = dict[str, float]
MOST_WORDS = 2000
"""Words that TF-IDF knows: the most frequent ones of the dev items."""
_WORD = re.compile(r"\d|[^\W\d_]+|[^\w\s]")  # digits one by one: the length of a number tells more than the number


def question(view: ItemView) -> str:
    """The question of an item: its messages of the user."""
    return "\n".join(message.content for message in view.messages if message.role == "user")


def words(text: str) -> list[str]:
    """Words, digits and signs, in lower case."""
    return _WORD.findall(text.lower())


def fit_vectors(items: Sequence[Item], encoder: str | None) -> tuple[dict[str, Any], list[Vector]]:
    """The parameters of `vector`, fitted on the questions of these items, and their vectors in the same order."""
    texts = [question(item.view) for item in items]
    fitted = fit_features(texts, encoder)
    return fitted, [vector(text, fitted, encoder) for text in texts]


def fit_features(texts: Sequence[str], encoder: str | None) -> dict[str, Any]:
    """The parameters of `vector` (JSON): document frequencies of these texts, or the content identity of an encoder."""
    if encoder is not None:
        return {"encoder": find_weights(encoder).identity}
    from sklearn.feature_extraction.text import TfidfVectorizer

    fitted = TfidfVectorizer(analyzer=words, max_features=MOST_WORDS).fit(texts)
    return {"idf": dict(zip(fitted.get_feature_names_out().tolist(), fitted.idf_.tolist(), strict=True))}


def vector(text: str, fitted: Mapping[str, Any], encoder: str | None) -> Vector:
    """The features of a text, of length 1; empty when it shares no word with the texts that were fitted.

    Raises `ConfigError` when the encoder is not the one that was fitted with.
    """
    if encoder is None:
        idf: Mapping[str, float] = fitted["idf"]
        return normalised({word: count * idf[word] for word, count in Counter(words(text)).items() if word in idf})
    folder = find_weights(encoder)
    if folder.identity != fitted["encoder"]:
        raise ConfigError(f"encoder {encoder!r} has changed since the router was fitted; fit again in a new run folder")
    return dict(_embedded(str(folder.path), text))


def normalised(values: Mapping[str, float]) -> Vector:
    """The vector divided by its Euclidean length; empty when that is zero."""
    length = math.sqrt(math.fsum(value * value for value in values.values()))
    return {name: value / length for name, value in values.items()} if length else {}


def dot(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """The inner product: the cosine of vectors of length 1."""
    few, many = sorted((a, b), key=len)
    return math.fsum(value * many[name] for name, value in few.items() if name in many)


@lru_cache(maxsize=1 << 12)
def _embedded(folder: str, text: str) -> tuple[tuple[str, float], ...]:
    """Mean of the last hidden states over the text's tokens, in float32 on the CPU; a longer text is cut to the window."""
    import torch

    tokenizer, model = _encoder(folder)
    # Encoders like RoBERTa have more positions than tokens that they can read; the tokenizer knows the number.
    positions = getattr(model.config, "max_position_embeddings", None) or tokenizer.model_max_length
    window = min(int(positions), int(tokenizer.model_max_length))
    encoded = tokenizer(text, return_tensors="pt", truncation=True, max_length=window)
    with torch.inference_mode():
        states = model(**{name: encoded[name] for name in ("input_ids", "attention_mask")}).last_hidden_state
    mean = states[0].mean(dim=0).double().tolist()
    return tuple(normalised({str(place): value for place, value in enumerate(mean)}).items())


@lru_cache(maxsize=4)
def _encoder(folder: str) -> tuple[Any, Any]:
    transformers = require("transformers", f"the encoder in {folder}")
    with loading_transformers():
        tokenizer = transformers.AutoTokenizer.from_pretrained(Path(folder), local_files_only=True)
        model = transformers.AutoModel.from_pretrained(Path(folder), local_files_only=True, dtype="float32")
    return tokenizer, model.eval()


def question_vector(run: RunContext, encoder: str | None) -> Vector:
    """The features of a run's question, by what was fitted."""
    return vector(question(run.item), run.fitted["features"], encoder)
