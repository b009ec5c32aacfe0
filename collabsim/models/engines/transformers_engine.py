"""An engine over a local Hugging Face folder: transformers in this process, with continuous batching.

In: `TokenRequest`s from any thread. Out: futures of `Generation`s. One thread runs the model; requests join the running
batch between two steps, in the order they came, as long as the batch stays within its token budget. Greedy and seeded
rows do not depend on their batch in float32 (up to rounding); in bfloat16 they do. Engines on the CPU take turns, step
by step: two at once would fight for the cores. Left out on purpose: sharing of prefixes (prompts that are equal and come
together are read once), several GPUs, streaming.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collabsim.errors import CallError, ConfigError, ContextOverflowError
from collabsim.locks import FairLock
from collabsim.models.engines.engine import Generation, TokenRequest

if TYPE_CHECKING:
    from collabsim.models.engines.torch_batch import BatchRow
    from collabsim.models.engines.torch_session import TorchSession
    from collabsim.models.weights.torch_loading import Loaded

MOST_BATCH_TOKENS = 32_768
"""Default budget: 64 rows of 512 tokens."""
_MOST_ROWS = 256
_CPU = FairLock()

_log = logging.getLogger(__name__)


class TransformersEngine:
    """See `engine.Engine` for the contract.

    `dtype` and `device`: see `torch_loading.load`. `max_model_len`: shorter than the model's own window, to save memory.
    `max_batch_tokens`: rows times the longest that a row may come to (a request that is longer runs alone). `threads`:
    CPU threads of torch in this process. `loaded`: a model that others train meanwhile, instead of one loaded from the
    folder; `during` is entered around each step. Raises `ConfigError` and `PrerequisiteError`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        dtype: str = "auto",
        device: str = "auto",
        max_model_len: int | None = None,
        max_batch_tokens: int = MOST_BATCH_TOKENS,
        threads: int | None = None,
        revision: str = "0",
        loaded: Loaded | None = None,
        during: AbstractContextManager[Any] | None = None,
    ) -> None:
        from collabsim.models.weights.torch_loading import load  # says in one line what is not installed

        self._trained_elsewhere = loaded is not None
        loaded = loaded or load(Path(folder), dtype, device)
        from collabsim.models.engines.reply_ending import Endings
        from collabsim.models.engines.torch_batch import RunningBatch

        self.model: Any = loaded.model
        """The running `PreTrainedModel`; None after `close`."""
        self.tokenizer: Any = loaded.tokenizer
        self.dtype: str = str(loaded.model.dtype).removeprefix("torch.")
        """What `auto` came to."""
        self.end_ids: frozenset[int] = loaded.end_ids
        self._folder = Path(folder)
        self._vocabulary = loaded.vocabulary
        self._window = _window(self._folder, max_model_len, loaded.positions)
        self._revision = revision
        self._budget = max_batch_tokens
        self._most_rows = _MOST_ROWS
        self._threads = threads
        self._batch = RunningBatch(loaded.model, Endings(loaded.tokenizer, loaded.end_ids))
        self._turn: AbstractContextManager[Any] = _CPU if loaded.model.device.type == "cpu" else nullcontext()
        self._during: AbstractContextManager[Any] = during or nullcontext()
        self._waiting: deque[BatchRow] = deque()
        self._taken: list[BatchRow] = []
        self._changed = threading.Condition()
        self._ended: str | None = None
        self._thread = threading.Thread(target=self._serve, name=f"collabsim-{self._folder.name}", daemon=True)
        self._thread.start()
        # A daemon thread that is inside torch when the interpreter goes away would take the process down with it.
        atexit.register(self.close)

    @property
    def max_model_len(self) -> int:
        """Longest prompt plus reply, in tokens."""
        return self._window

    @property
    def logit_count(self) -> int:
        """Width of the model's next-token distributions, padding included."""
        return int(self.model.config.get_text_config().vocab_size)

    @property
    def revision(self) -> str:
        """Version of the weights that speak now."""
        return self._revision

    def renew(self, revision: str) -> None:
        """Say that the weights of a model that is trained elsewhere are another version now.

        Raises `CallError` while requests are in flight: their keys and values come from the old weights.
        """
        with self._changed:
            if any(not (row.resolved or row.future.cancelled()) for row in [*self._waiting, *self._taken]):
                raise CallError(f"{self._folder}: expected no request in flight when weights change; wait for them")
            self._revision = revision

    def submit(self, request: TokenRequest) -> Future[Generation]:
        """Queue a request; see `engine.Engine.submit`."""
        from collabsim.models.engines.torch_batch import BatchRow

        row = BatchRow(request)
        complaint: CallError | None = self._complaint(request)
        with self._changed:
            if self._ended is not None:
                complaint = CallError(self._ended)
            if complaint is None:
                self._waiting.append(row)
                self._changed.notify()
        if complaint is not None:
            row.resolve(complaint)
        return row.future

    def session(self, prompt_ids: Sequence[int]) -> TorchSession:
        """A text of one row that starts with `prompt_ids` and is led from outside, token by token.

        Sessions run in the caller's thread and take turns with the engine's own batch. Raises `CallError` after `close`.
        """
        from collabsim.models.engines.torch_session import TorchSession

        model = self.model
        if model is None:
            raise CallError(f"{self._folder}: the engine was closed")
        return TorchSession(model, prompt_ids, self._turn)

    def close(self) -> None:
        """Stop after the step that is running, fail what is in flight, free memory."""
        self._end(f"{self._folder}: the engine was closed")
        if threading.current_thread() is not self._thread:
            self._thread.join()
        atexit.unregister(self.close)

    def _complaint(self, request: TokenRequest) -> CallError | None:
        """What makes a request impossible; caught here, since in a batch it would take its neighbours down."""
        prompt, room = len(request.prompt_ids), request.sampling.max_tokens
        if not prompt:
            return CallError(f"{self._folder}: expected a prompt of at least one token, got none")
        if prompt + room > self._window:
            return ContextOverflowError(
                f"{self._folder}: a prompt of {prompt} tokens and a reply of up to {room} do not fit the window of "
                f"{self._window}; shorten the prompt or lower max_tokens"
            )
        if min(request.prompt_ids) < 0 or max(request.prompt_ids) >= self._vocabulary:
            return CallError(
                f"{self._folder}: expected token ids below {self._vocabulary}, got one beyond; wrong tokenizer?"
            )
        return None

    def _end(self, why: str) -> None:
        with self._changed:
            self._ended = self._ended or why
            self._changed.notify()

    def _serve(self) -> None:
        """The thread's work: take rows in, step, until closed. An error of a step fails its rows, no others."""
        import torch

        try:
            if self._threads:
                torch.set_num_threads(self._threads)
            # What inference mode makes may not be used in training, and a model can keep some of it (rope frequencies).
            with torch.no_grad() if self._trained_elsewhere else torch.inference_mode():
                while (arrivals := self._arrivals()) is not None:
                    self._advance(arrivals)
        except BaseException as error:
            _log.exception("%s: the engine's thread died", self._folder)
            self._end(f"{self._folder}: the engine died of {type(error).__name__}: {error}; make a new one")
        finally:
            self._wind_up()

    def _arrivals(self) -> list[BatchRow] | None:
        """The waiting rows that fit beside the running ones; sleeps while there is nothing to do. None: closed."""
        running = self._batch.rows
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or running or self._ended)
            if self._ended:
                return None
            arrivals: list[BatchRow] = []
            longest = max((row.longest for row in running), default=0)
            while self._waiting:
                row = self._waiting[0]
                longest = max(longest, row.longest)
                rows = len(running) + len(arrivals) + 1
                if rows > 1 and (rows > self._most_rows or rows * longest > self._budget):
                    break
                self._waiting.popleft()
                if not row.dropped():
                    arrivals.append(row)
            return arrivals

    def _advance(self, arrivals: list[BatchRow]) -> None:
        self._taken = [*self._batch.rows, *arrivals]
        try:
            with self._turn, self._during:
                self._batch.drop_cancelled()
                self._batch.admit(arrivals)
                self._batch.step()
        except Exception as error:
            self._recover([row for row in self._taken if not row.dropped()], error)

    def _recover(self, rows: list[BatchRow], error: Exception) -> None:
        """After a failed step the cache is torn, so all its rows leave: to be read anew in halves, or with an error."""
        self._batch.clear()
        again: list[BatchRow] = []
        short_of_memory = _is_out_of_memory(error)
        if short_of_memory:
            error.__traceback__ = None  # its frames hold the tensors that took the memory
            _free_memory()
            self._most_rows = max(1, len(rows) // 2)
            _log.warning(
                "%s: out of memory with %d rows; from now on at most %d", self._folder, len(rows), self._most_rows
            )
            again = [row for row in rows if not row.retried]
        for row in again:
            row.retried = True
        with self._changed:
            self._waiting.extendleft(reversed(again))
        for row in rows:
            if row not in again:
                failure = CallError(f"{self._folder}: the model failed: {type(error).__name__}: {error}")
                failure.__cause__ = error
                row.resolve(failure)

    def _wind_up(self) -> None:
        """Fail what is left, let the model go."""
        with self._changed:
            self._ended = self._ended or f"{self._folder}: the engine's thread ended"
            left = [*self._taken, *self._waiting]
            self._waiting.clear()
        self._taken = []
        for row in left:
            row.resolve(CallError(self._ended))
        del self._batch
        self.model = None
        _free_memory()


def _window(folder: Path, asked: int | None, positions: int) -> int:
    if asked is not None and not 2 <= asked <= positions:
        raise ConfigError(f"{folder}: expected max_model_len from 2 to the model's {positions} tokens, got {asked}")
    return asked or positions


def _is_out_of_memory(error: Exception) -> bool:
    import torch

    words = str(error)
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and ("not enough memory" in words or "can't allocate memory" in words)


def _free_memory() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
