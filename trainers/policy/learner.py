"""The model that learns: a Hugging Face model with trainable weights, whole or as LoRA adapters.

In: a model folder. Out: log-probabilities with gradients, the weights to put into an engine, and a folder that is a plain
Hugging Face model again. Imports torch. Left out on purpose: the optimiser and the loss (see the loop), generation (see
`policy.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from collabsim.errors import ConfigError, DataError
from collabsim.locks import FairLock
from collabsim.models.weights import Loaded, load, resolve_dtype, stored_dtype
from collabsim.seeds import digest

from .layer_placement import device_names, split
from .logprobs import Scores, can_share, score_rows
from .lora import LoraSettings, merged_parameters, with_adapters
from .saving import tied_names, write_model
from .token_row import TokenRow


class Learner:
    """A trainable causal language model; made by `Learner.load`.

    It stays in evaluation mode throughout: a dropout would make the importance ratio differ from 1 at equal weights.
    """

    def __init__(self, folder: Path, loaded: Loaded, lora: LoraSettings | None, *, autocast: bool) -> None:
        self.folder = folder
        """Where the model came from."""
        self.lora = lora
        self.loaded = loaded
        """What a transformers engine generates with; its model holds the adapters too."""
        self.turn = _Turn(loaded.model.device.type if autocast else None)
        """Entered around each pass through the model: score and generation share hooks, and one precision."""
        self.restored = 0
        """How often `load_state` replaced the weights."""
        self._base = loaded.model
        self._model = loaded.model if lora is None else with_adapters(loaded.model, lora)
        if lora is None:
            self._model.requires_grad_(True)
        self._checkpointed: list[Any] = []
        self._shares: bool | None = None

    @classmethod
    def load(
        cls,
        folder: Path | str,
        *,
        lora: LoraSettings | None = None,
        dtype: str = "auto",
        device: str = "auto",
        autocast: bool = False,
        gradient_checkpointing: bool = False,
    ) -> Learner:
        """The model in `folder`, ready to learn.

        `dtype` is that of the weights held here; `auto` is float32 when they learn (in bfloat16 a step of 1e-6 is lost
        in rounding) and the folder's own under LoRA, whose adapters are float32 in any case. `autocast` computes in
        bfloat16 all the same, for scores and for what a transformers engine generates with this model.
        `device` may be several, `cuda:0,cuda:1`: the layers are spread over them (see `layer_placement`).
        `gradient_checkpointing` keeps only the borders of layers for the backward pass, at a third more time. Raises what
        `torch_loading.load` raises, `ConfigError` for a model without output embeddings, `PrerequisiteError` without peft.
        """
        folder = Path(folder)
        devices = device_names(device)
        if dtype == "auto" and lora is None:
            dtype = "float32"
        if len(devices) > 1:
            loaded = split(load(folder, resolve_dtype(stored_dtype(folder), dtype, devices[0]), "cpu"), devices)
        else:
            loaded = load(folder, dtype, device)
        if loaded.model.get_output_embeddings() is None:
            raise ConfigError(
                f"{folder}: expected a causal language model with output embeddings, got none; take another"
            )
        learner = cls(folder, loaded, lora, autocast=autocast)
        if gradient_checkpointing:
            learner._checkpoint_gradients()
        return learner

    @property
    def device(self) -> torch.device:
        """Where the weights are, or the first of them: inputs go there, and scores come from there."""
        return torch.device(self._base.device)

    @property
    def autocast(self) -> bool:
        """Whether it computes in bfloat16, whatever its weights are in."""
        return self.turn.autocast is not None

    @property
    def weight_dtype(self) -> str:
        """What the model's own weights are held in: `float32`, `bfloat16` or `float16`."""
        return str(self.loaded.model.get_input_embeddings().weight.dtype).removeprefix("torch.")

    @property
    def dtype(self) -> str:
        """What scores are computed in."""
        return "bfloat16" if self.autocast else self.weight_dtype

    @property
    def version(self) -> int:
        """Grows with every change of a trainable weight in place, as optimisers make them."""
        return sum(parameter._version for parameter in self.parameters())

    def parameters(self) -> list[torch.nn.Parameter]:
        """What an optimiser may change; tied weights once."""
        return [parameter for parameter in self._model.parameters() if parameter.requires_grad]

    def score(self, rows: Sequence[TokenRow], temperature: float = 1.0) -> Scores:
        """Log-probabilities (with gradients) and entropies of the rows' sampled tokens; see `logprobs.score_rows`.

        One forward pass over all rows: what fits into memory is the caller's choice.
        """
        with self.turn, self._checkpointing():
            if self._shares is None:
                self._shares = can_share(self._base)
            return score_rows(self._base, rows, temperature, share=self._shares)

    def token_logprobs(self, rows: Sequence[TokenRow], temperature: float = 1.0) -> list[Tensor]:
        """`score(rows, temperature).logprobs`: one tensor a row, as long as its `ids`."""
        return self.score(rows, temperature).logprobs

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor) of the whole model under the names of its checkpoint, adapters merged, tied weights once.

        The tensors are on the learner's device and in its dtype; they may be the live weights: copy what you keep.
        """
        named = self._live_weights()
        if getattr(self._base, "_weight_conversions", None):  # the names in memory are not those of the files
            from transformers.core_model_loading import revert_weight_conversion

            named = iter(revert_weight_conversion(self._base, dict(named)).items())
        return named

    def _live_weights(self) -> Iterator[tuple[str, Tensor]]:
        if self.lora is not None:
            yield from merged_parameters(self._model)
        else:
            yield from ((name, parameter.detach()) for name, parameter in self._base.named_parameters())
        kept = self._base.state_dict().keys()
        yield from ((name, buffer) for name, buffer in self._base.named_buffers() if name in kept)

    @property
    def tied(self) -> frozenset[str]:
        """Names of weights that are another weight too; `weights` leaves them out."""
        return tied_names(self._base)

    def content_hash(self) -> str:
        """SHA-256 over the present weights, to the last bit that is held here, and the config: 64 hex digits."""
        tensors = [(name, str(tensor.dtype), list(tensor.shape), _sha256(tensor)) for name, tensor in self.weights()]
        config = hashlib.sha256((self.folder / "config.json").read_bytes()).hexdigest()
        return digest(["weights", sorted(tensors), config])

    def save(self, folder: Path | str) -> None:
        """Write a plain Hugging Face folder with tokenizer, adapters merged, in the dtype of the folder it came from.

        The folder appears whole or not at all; one that is there is replaced. Raises `DataError` when it cannot be written.
        """
        write_model(Path(folder), self.folder, self.weights())

    def state(self) -> dict[str, Tensor]:
        """The trainable weights by name, on their device and live: what a checkpoint holds."""
        return {name: parameter.detach() for name, parameter in self._trainable()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Put back what `state` gave. Raises `DataError` when names or shapes are not those of this learner."""
        own = dict(self._trainable())
        shapes = {name: tuple(parameter.shape) for name, parameter in own.items()}
        if (given := {name: tuple(tensor.shape) for name, tensor in state.items()}) != shapes:
            differing = sorted(name for name, _ in set(given.items()) ^ set(shapes.items()))
            raise DataError(
                f"expected the weights of {self.folder.name} ({len(shapes)} tensors), got others ({differing[0]} differs, "
                f"...); resume with the model and the `lora` settings that the checkpoint was written with"
            )
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(state[name])
        self.restored += 1

    def _trainable(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        return ((name, weight) for name, weight in self._model.named_parameters() if weight.requires_grad)

    def _checkpoint_gradients(self) -> None:
        try:
            self._base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        except ValueError as error:
            raise ConfigError(f"{self.folder}: {error}; set gradient_checkpointing to false") from error
        self._checkpointed = [
            layer for layer in self._base.modules() if getattr(layer, "gradient_checkpointing", False)
        ]
        for layer in self._checkpointed:
            layer.gradient_checkpointing = False

    @contextmanager
    def _checkpointing(self) -> Iterator[None]:
        """transformers checkpoints layers in training mode only; the layers alone get it, dropouts inside do not."""
        before = [layer.training for layer in self._checkpointed]
        for layer in self._checkpointed:
            layer.gradient_checkpointing = layer.training = True
        try:
            yield
        finally:
            for layer, training in zip(self._checkpointed, before, strict=True):
                layer.gradient_checkpointing, layer.training = False, training


class _Turn:
    """One user of the model at a time, in the precision it is meant to compute in. Used again and again; not nested."""

    def __init__(self, device: str | None) -> None:
        self.autocast = device
        self._turns = FairLock()  # fair: a busy engine would win a plain lock every time
        self._entered: Any = None

    def __enter__(self) -> None:
        self._turns.__enter__()
        self._entered = torch.autocast(self.autocast, torch.bfloat16) if self.autocast else nullcontext()
        self._entered.__enter__()

    def __exit__(self, *error: object) -> None:
        self._entered.__exit__(*error)
        self._turns.__exit__(None, None, None)


def _sha256(tensor: Tensor) -> str:
    return hashlib.sha256(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy()).hexdigest()
