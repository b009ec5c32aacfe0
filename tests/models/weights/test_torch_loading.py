"""Loading models into torch: what transformers does to its own classes meanwhile must not reach other threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from engines import requires

pytestmark = requires("torch", "transformers", "tokenizers", "safetensors")


@pytest.fixture(scope="module")
def tied(tmp_path_factory):
    """A model whose output weights are those of its embeddings, and so are in no file."""
    from models.tiny_transformers import tiny_model

    return tiny_model(tmp_path_factory.mktemp("tied"), "gemma3_text")


def test_models_with_tied_embeddings_can_be_loaded_by_several_threads_at_once(tied):
    # transformers unties all models of the process while it loads one; overlapping loads once left it so for good.
    from transformers import PreTrainedModel

    from collabsim.models.weights.torch_loading import load

    own = PreTrainedModel.tie_weights
    with ThreadPoolExecutor(8) as threads:
        loaded = list(threads.map(lambda _: load(tied, "float32", "cpu").model, range(24)))
    assert all(model.lm_head.weight is model.get_input_embeddings().weight for model in loaded)
    assert PreTrainedModel.tie_weights is own


def test_the_settings_of_transformers_are_put_back_when_threads_were_quiet_together(tied):
    from transformers.utils import logging

    from collabsim.models.weights.loading_lock import loading_transformers

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()

    def quietly(_):
        with loading_transformers(), loading_transformers():  # an adapter is read inside of another load
            return logging.get_verbosity()

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(quietly, range(200))) == {logging.ERROR}
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
