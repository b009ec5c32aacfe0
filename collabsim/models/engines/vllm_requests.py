"""A `TokenRequest` in vLLM's words, and vLLM's answer in ours.

In: `TokenRequest`s and vLLM's finished `RequestOutput`s. Out: `SamplingParams`, and `Generation`s. Both drivers (in
process, and the engine in its own process) speak through here, so a reply means the same on a CPU and on a GPU. Left out
on purpose: everything about engines.
"""

from __future__ import annotations

from typing import Any

from collabsim.errors import CallError, ContextOverflowError
from collabsim.models.engines.engine import Generation, TokenRequest
from collabsim.models.engines.reply_ending import Endings

COOLEST, HOTTEST = 0.01, 2.0
"""Temperatures that vLLM samples at as asked; it raises lower ones silently and refuses higher ones."""


def refusal(request: TokenRequest, max_model_len: int) -> CallError | None:
    """Why vLLM must not be asked this, or None. It would cut a reply short rather than refuse it."""
    asked = len(request.prompt_ids), request.sampling.max_tokens
    if not request.prompt_ids:
        return CallError("expected a prompt of at least one token, got none; start it with the model's BOS")
    if sum(asked) > max_model_len:
        return ContextOverflowError(
            f"expected prompt and reply within {max_model_len} tokens, got a prompt of {asked[0]} and max_tokens "
            f"{asked[1]}; lower max_tokens, shorten the prompt or raise max_model_len"
        )
    temperature = request.sampling.temperature
    if not request.sampling.greedy and not COOLEST <= temperature <= HOTTEST:
        return CallError(
            f"expected temperature 0, or {COOLEST} to {HOTTEST} with vLLM, got {temperature}; change it, or use "
            "`engine: transformers`"
        )
    return None


def sampling_params(request: TokenRequest) -> Any:
    """vLLM's `SamplingParams` for one request: only what was asked, none of the model's own sampling defaults."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    sampling = request.sampling
    return SamplingParams(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        seed=None if sampling.greedy else request.seed,
        max_tokens=sampling.max_tokens,
        stop=list(sampling.stop),
        # Words are needed to find stop strings only; the text is decoded once, at the end.
        detokenize=bool(sampling.stop),
        logprobs=0,  # of the sampled token, and of no others
        flat_logprobs=True,
        output_kind=RequestOutputKind.FINAL_ONLY,
        skip_clone=True,
    )


def as_generation(output: Any, request: TokenRequest, endings: Endings) -> Generation:
    """A finished `RequestOutput` as a `Generation`. Raises `CallError` when the engine gave up on the request."""
    completion = output.outputs[0]
    if completion.finish_reason not in ("stop", "length"):
        raise CallError(f"vLLM ended a request with {completion.finish_reason!r} instead of an answer; run it again")
    ids, logprobs = tuple(completion.token_ids), tuple(completion.logprobs.logprobs)
    if len(ids) != len(logprobs):
        raise CallError(f"expected one log-probability a token, got {len(logprobs)} for {len(ids)} tokens")
    return Generation(ids, logprobs, _text(completion, ids, request.sampling.stop, endings), completion.finish_reason)


def _text(completion: Any, ids: tuple[int, ...], stop: tuple[str, ...], endings: Endings) -> str:
    if completion.finish_reason == "length":
        return endings.text(ids)
    if not isinstance(completion.stop_reason, str):  # an end token
        return endings.text(ids[:-1])
    text = endings.text(ids)
    stops = [place for string in stop if (place := text.find(string)) >= 0]
    # vLLM looks for stop strings in the text as it follows the prompt. Decoded alone, some tokenizers drop the space
    # before the first word, and a stop string that begins with it is not found again.
    return text[: min(stops)] if stops else str(completion.text)
