"""vLLM on a GPU: `AsyncLLM`, an engine in its own process, spoken to from collabsim's background loop.

In: `TokenRequest`s from any thread. Out: futures of `Generation`s. The same interface as the driver in process. Left out
on purpose: how weights are replaced, which goes through vLLM's weight-transfer engines; see `gpu_transfer.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from itertools import count
from typing import Any

from collabsim.errors import CallError, CollabsimError
from collabsim.loop import background_loop
from collabsim.loop import submit as submit_to_loop
from collabsim.models.engines.engine import Generation, TokenRequest
from collabsim.models.engines.reply_ending import Endings
from collabsim.models.engines.vllm_requests import as_generation, refusal, sampling_params

GRACE_SECONDS = 2.0
"""How long requests in flight may take to leave an engine that is being closed."""


def _start(arguments: Mapping[str, Any]) -> Any:
    from vllm import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))


class AsyncEngine:
    """vLLM's `AsyncLLM`; see `engines.engine.Engine` for the contract.

    `arguments` are those of vLLM's `AsyncEngineArgs`. Raises what starting raises.
    """

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        revision: str = "0",
        start: Callable[[Mapping[str, Any]], Any] = _start,
    ) -> None:
        self.name = name
        self._revision = revision
        self._numbers = count()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False
        self._llm = start(arguments)
        self.max_model_len = int(self._llm.model_config.max_model_len)
        self._endings = Endings(self._llm.get_tokenizer(), ())

    @property
    def revision(self) -> str:
        """Version of the weights that speak now."""
        return self._revision

    @property
    def dtype(self) -> str:
        """What `auto` came to."""
        return str(self._llm.model_config.dtype).removeprefix("torch.")

    def renew(self, revision: str) -> None:
        """Say that the weights are another version now. Raises `CallError` while requests are in flight."""
        if self._tasks:
            raise CallError(f"{self.name}: expected no request in flight when weights change; wait for them")
        self._revision = revision

    @property
    def llm(self) -> Any:
        """The `AsyncLLM`; its coroutines belong on collabsim's background loop."""
        return self._llm

    def submit(self, request: TokenRequest) -> Future[Generation]:
        """Queue a request. See `engines.engine.Engine.submit`."""
        problem = self._closing() if self._closed else refusal(request, self.max_model_len)
        if problem is None:
            return submit_to_loop(self._generate(f"{self.name}-{next(self._numbers)}", request))
        refused: Future[Generation] = Future()
        refused.set_exception(problem)
        return refused

    async def _generate(self, number: str, request: TokenRequest) -> Generation:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if self._closed:
                raise self._closing()
            return await self._finished(number, request)
        except asyncio.CancelledError:
            if self._closed:
                raise self._closing() from None
            raise
        except CollabsimError:
            raise
        except Exception as error:
            cause = error.__cause__ or error  # vLLM wraps what went wrong in an error without words
            reason = f"{type(cause).__name__}: {' '.join(str(cause).split())}"[:500]
            raise CallError(f"vLLM failed while {self.name} generated ({reason}); run again to resume") from error
        finally:
            self._tasks.discard(task)

    async def _finished(self, number: str, request: TokenRequest) -> Generation:
        prompt = {"prompt_token_ids": list(request.prompt_ids)}
        # A cancellation ends the generator, which tells the engine to drop the request.
        async for output in self._llm.generate(prompt, sampling_params(request), number):
            if output.finished:
                return as_generation(output, request, self._endings)
        raise CallError(f"vLLM ended a request to {self.name} without an answer; run again to resume")

    def _closing(self) -> CallError:
        return CallError(f"the engine of {self.name} is closed; start it again")

    def close(self) -> None:
        """Stop, fail what is in flight, end the engine's process."""
        if self._closed:
            return
        self._closed = True
        # First the requests, which nobody would wake once the engine is gone. (Without any, no loop is started: at the
        # end of a program its thread could not be.)
        if self._tasks:
            dropped = submit_to_loop(self._drop_all())
            if not _on_background_loop():
                dropped.result()
        self._llm.shutdown()

    def ask_to_close(self) -> Future[None]:
        """As `close`, and as patient: the future is done. It holds what went wrong, so that other engines close too."""
        closed: Future[None] = Future()
        try:
            self.close()
        except Exception as error:
            closed.set_exception(error)
        else:
            closed.set_result(None)
        return closed

    async def _drop_all(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE_SECONDS)


def _on_background_loop() -> bool:
    try:
        return asyncio.get_running_loop() is background_loop()
    except RuntimeError:
        return False
