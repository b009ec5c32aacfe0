"""vLLM on a CPU: an engine inside this process, stepped by the one thread of `vllm_thread`.

In: `TokenRequest`s from any thread. Out: futures of `Generation`s. In process, because on a few cores the engine's own
process and its pipes cost 20-40% of the throughput. Chunked prefill is off: a seeded request whose prompt is split
crashes vLLM on a CPU. Left out on purpose: tensor parallel (it needs processes), CUDA.
"""

from __future__ import annotations

import gc
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, TypeVar

from collabsim.errors import CallError, CollabsimError
from collabsim.models.engines.engine import Generation, TokenRequest
from collabsim.models.engines.reply_ending import Endings
from collabsim.models.engines.vllm_requests import as_generation, refusal, sampling_params
from collabsim.models.engines.vllm_thread import Stepper, stepper

T = TypeVar("T")

LONGEST_WINDOW = 8192
"""In tokens, when none is asked for: a prompt is read in one piece, in memory that grows with it."""
BATCH_TOKENS = 4096
"""Tokens read in one step, at least; several short prompts share a step."""


@dataclass(frozen=True, slots=True)
class _Running:
    request: TokenRequest
    future: Future[Generation]


class InProcessEngine:
    """A vLLM `LLMEngine` of this process; see `engines.engine.Engine` for the contract.

    `arguments` are those of vLLM's `EngineArgs`; `before_start` runs on the stepping thread first, and may raise.
    Raises what loading raises.
    """

    def __init__(
        self, name: str, arguments: Mapping[str, Any], *, before_start: Callable[[], None], revision: str = "0"
    ) -> None:
        self.name = name
        self._revision = revision
        self._arguments = dict(arguments)
        self._running: dict[str, _Running] = {}
        self._numbers = count()
        self._llm: Any = None
        self.dtype = ""
        """What `auto` came to."""
        self._failure: CallError | None = None
        self._left = False
        self._stepper: Stepper = stepper()
        started = self._stepper.run(partial(self._start, before_start))
        try:
            self.max_model_len: int = started.result()
        except BaseException:  # also an interrupt of the wait: what was started by then is ended
            self._stepper.post(self._close)
            raise

    @property
    def revision(self) -> str:
        """Version of the weights that speak now."""
        return self._revision

    @property
    def llm(self) -> Any:
        """The `LLMEngine`, for use inside a function given to `apply` only; None when closed."""
        return self._llm

    def submit(self, request: TokenRequest) -> Future[Generation]:
        """Queue a request. See `engines.engine.Engine.submit`."""
        future: Future[Generation] = Future()
        problem = self._failure or refusal(request, self.max_model_len)
        if problem is not None:
            future.set_exception(problem)
            return future
        number = str(next(self._numbers))
        future.add_done_callback(partial(self._done, number))
        self._stepper.post(partial(self._add, number, request, future))
        return future

    def _done(self, number: str, future: Future[Generation]) -> None:
        if future.cancelled() and not self._left:
            self._stepper.post(partial(self._drop, number))

    def apply(self, function: Callable[[Any], T], *, revision: str | None = None) -> Future[T]:
        """Call `function` with the `LLMEngine` between two steps, for instance to replace its weights.

        `revision` is the version of the weights from then on. The future has the function's result, or `CallError`
        when the engine is closed.
        """

        def work() -> T:
            if self._failure is not None:
                raise self._failure
            result = function(self._llm)
            self._revision = revision or self._revision
            return result

        return self._stepper.run(work)

    def close(self) -> None:
        """Stop, fail what is in flight, free memory."""
        if self._stepper.inside:
            self._close()
        else:
            self.ask_to_close().result()

    def ask_to_close(self) -> Future[None]:
        """As `close`, without waiting."""
        if self._failure is not None and (self._llm is None or self._left):
            done: Future[None] = Future()
            done.set_result(None)
            return done
        return self._stepper.run(self._close)

    def leave(self) -> None:
        """Called in the child of a fork: this copy of the engine is as good as closed. Nothing of it is touched."""
        self._left = True
        self._running = {}
        self._failure = CallError(f"the engine of {self.name} belongs to the parent process; start another in this one")

    # All that follows happens on the stepping thread.

    def _start(self, before_start: Callable[[], None]) -> int:
        from vllm import EngineArgs, LLMEngine

        before_start()
        with _kept_process_state():
            window = self._arguments["max_model_len"]
            if window is None:
                window = min(EngineArgs(**self._arguments).create_model_config().max_model_len, LONGEST_WINDOW)
            self._arguments |= {"max_model_len": window, "max_num_batched_tokens": max(window, BATCH_TOKENS)}
            self._llm = LLMEngine.from_engine_args(EngineArgs(**self._arguments))
        self._endings = Endings(self._llm.get_tokenizer(), ())
        self.dtype = str(self._llm.model_config.dtype).removeprefix("torch.")
        self._stepper.engines.append(self)
        return int(self._llm.model_config.max_model_len)

    @property
    def busy(self) -> bool:
        """Whether requests are in flight."""
        return bool(self._running)

    def step(self) -> None:
        """One step of vLLM; the replies that it finished are handed out."""
        try:
            outputs = self._llm.step()
        except Exception as error:
            self._fail(CallError(f"vLLM failed while {self.name} generated ({_one_line(error)}); run again to resume"))
            return
        for output in outputs:
            if output.finished and (running := self._running.pop(output.request_id, None)) is not None:
                _settle(running.future, partial(as_generation, output, running.request, self._endings))

    def _add(self, number: str, request: TokenRequest, future: Future[Generation]) -> None:
        if future.done():  # cancelled while it waited
            return
        if self._failure is not None:
            _reject(future, self._failure)
            return
        try:
            self._llm.add_request(number, {"prompt_token_ids": list(request.prompt_ids)}, sampling_params(request))
        except Exception as error:
            _reject(future, CallError(f"vLLM refused a request to {self.name}: {_one_line(error)}"))
        else:
            self._running[number] = _Running(request, future)

    def _drop(self, number: str) -> None:
        if self._running.pop(number, None) is None:
            return
        try:
            self._llm.abort_request([number])
        except Exception as error:
            self._fail(
                CallError(f"vLLM could not drop a request to {self.name} ({_one_line(error)}); run again to resume")
            )

    def _close(self) -> None:
        self._fail(CallError(f"the engine of {self.name} is closed; start it again"))

    def _fail(self, failure: CallError) -> None:
        """Free the engine, and fail what is in flight and all that comes."""
        self._failure = self._failure or failure
        waiting, self._running = list(self._running.values()), {}
        llm, self._llm = self._llm, None
        if self in self._stepper.engines:
            self._stepper.engines.remove(self)
        if llm is not None:
            _shut_down(llm, last=not self._stepper.engines)
            del llm
            gc.collect()  # vLLM's engine refers to itself; without this its memory stays taken
        for running in waiting:
            _reject(running.future, self._failure)


def _shut_down(llm: Any, *, last: bool) -> None:
    """Free a `LLMEngine`. The process-wide parts (process groups) go with the last one only: the others use them."""
    client = llm.engine_core
    try:
        if last:
            client.shutdown()
            return
        client._finalizer.detach()
        core = client.engine_core
        core.structured_output_manager.clear_backend()
        core.model_executor.shutdown()
        core.scheduler.shutdown()
        gc.unfreeze()  # the engine's start has hidden its weights from the collector
    except Exception:  # it is given up in any case; the failure that led here says more
        return


def _settle(future: Future[Generation], result: Callable[[], Generation]) -> None:
    """Give a future its result, unless it was cancelled."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(result())
    except CollabsimError as error:
        future.set_exception(error)
    except Exception as error:
        future.set_exception(CallError(f"vLLM's answer could not be read: {_one_line(error)}"))


def _reject(future: Future[Generation], error: CallError) -> None:
    """Fail a future, unless it was cancelled."""
    if future.set_running_or_notify_cancel():
        future.set_exception(error)


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]


@contextmanager
def _kept_process_state() -> Iterator[None]:
    """The start of an engine reseeds all random number generators, preloads libraries into every later child process,
    disables `torch.set_num_threads` and prints tracebacks in another way. None of it is ours to change.
    """
    import numpy
    import torch

    _let_vllm_look_at_all_modules()
    states = random.getstate(), numpy.random.get_state(), torch.get_rng_state()
    set_num_threads, excepthook, preload = torch.set_num_threads, sys.excepthook, os.environ.get("LD_PRELOAD")
    kv_space = os.environ.pop("VLLM_CPU_KVCACHE_SPACE", None)  # would overrule the size that this engine was given
    try:
        yield
    finally:
        random.setstate(states[0])
        numpy.random.set_state(states[1])
        torch.set_rng_state(states[2])
        torch.set_num_threads, sys.excepthook = set_num_threads, excepthook
        for name, value in (("LD_PRELOAD", preload), ("VLLM_CPU_KVCACHE_SPACE", kv_space)):
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _let_vllm_look_at_all_modules() -> None:
    """At the start of an engine vLLM 0.32 asks every value of every loaded module for `vars(value).get(...)`. Some values
    answer with no mapping: llvmlite's library makes a function of any name, so whoever had loaded numba had no vLLM.
    """
    with suppress(ImportError):
        from vllm.triton_utils import dispatcher

        dispatcher.vars = _own_attributes


def _own_attributes(value: Any) -> Mapping[str, Any]:
    """What `vars` gives where a value has attributes of its own; what it only says to have does not count."""
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return attributes if isinstance(attributes, Mapping) else {}
