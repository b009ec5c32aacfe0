"""Log-probabilities of sampled tokens: against full logits by hand, and which tokens get a gradient."""

from __future__ import annotations

import pytest
from collabsim.trainers.policy.token_row import TokenRow
from engines import requires
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_vllm import vllm_folder

from collabsim.errors import ConfigError

pytestmark = requires("torch", "transformers")

EOS = 2
IDS = st.lists(st.integers(0, 200), min_size=1, max_size=9).map(tuple)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return vllm_folder(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture(scope="module")
def learner(folder):
    from collabsim.trainers.policy.learner import Learner

    return Learner.load(folder)


def by_hand(model, row, temperature):
    """Log-probabilities and entropies from the logits of the whole row, alone and unpadded, one token at a time."""
    import torch

    logits = model(input_ids=torch.tensor([[*row.prompt_ids, *row.ids]])).logits[0] / temperature
    found, entropies = [], []
    for place, token in enumerate(row.ids):
        logprobs = torch.log_softmax(logits[len(row.prompt_ids) - 1 + place], -1)
        found.append(logprobs[token])
        entropies.append(-(logprobs.exp() * logprobs).sum())
    return torch.stack(found), torch.stack(entropies)


@given(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=4), st.sampled_from([0.3, 1.0, 1.7]))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_scores_of_uneven_rows_are_those_of_a_full_gather_row_by_row(learner, pairs, temperature):
    import torch

    rows = [TokenRow(*pair) for pair in pairs]
    scores = learner.score(rows, temperature)
    for row, logprobs, entropies in zip(rows, *scores, strict=True):
        expected, expected_entropies = by_hand(learner.loaded.model, row, temperature)
        torch.testing.assert_close(logprobs, expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(entropies, expected_entropies.detach(), atol=1e-5, rtol=1e-5)
        assert not entropies.requires_grad


def gradients(learner, loss):
    learner.loaded.model.zero_grad()
    loss.backward()
    return {name: weight.grad.clone() for name, weight in learner.loaded.model.named_parameters()}


def test_gradients_are_those_of_a_full_gather(learner):
    import torch

    rows = [TokenRow((1, 7, 9), (11, 12, EOS)), TokenRow((1, 30, 31, 32, 33, 34), (40,))]
    ours = gradients(learner, torch.cat(learner.token_logprobs(rows, 0.8)).sum())
    hand = gradients(learner, torch.cat([by_hand(learner.loaded.model, row, 0.8)[0] for row in rows]).sum())
    for name, gradient in hand.items():
        torch.testing.assert_close(ours[name], gradient, atol=1e-4, rtol=1e-4)


def test_the_last_end_token_is_trained_although_padding_has_its_id(learner, monkeypatch):
    from collabsim.trainers.policy import logprobs as scoring

    monkeypatch.setattr(scoring, "_PADDING", EOS)
    short, long = TokenRow((1, 7), (11, EOS)), TokenRow((1, 7), tuple(range(20, 40)))
    logprobs = learner.token_logprobs([short, long])[0]
    head = gradients(learner, logprobs[-1])["lm_head.weight"]
    assert len(logprobs) == 2
    assert head[EOS].abs().sum() > 0


def test_padding_gets_no_gradient_and_changes_none(learner):
    import torch

    row, long = TokenRow((1, 7, 9), (11, EOS)), TokenRow((1, 7), tuple(range(20, 60)))
    alone = gradients(learner, torch.cat(learner.token_logprobs([row])).sum())
    padded = gradients(learner, learner.token_logprobs([row, long])[0].sum())
    for name, gradient in alone.items():
        torch.testing.assert_close(padded[name], gradient, atol=1e-5, rtol=1e-5)
    assert padded["model.embed_tokens.weight"][0].abs().sum() == 0


def test_the_head_sees_the_sampled_positions_only(learner):
    seen = []
    head = learner.loaded.model.get_output_embeddings()
    hook = head.register_forward_hook(lambda module, inputs, output: seen.append(tuple(output.shape)))
    learner.score([TokenRow((1,) * 50, (5, 6, 7)), TokenRow((1, 2), (8,))])
    hook.remove()
    assert seen == [(1, 4, head.out_features)]


def test_scoring_leaves_no_hook_behind_after_an_error(learner):
    head = learner.loaded.model.get_output_embeddings()
    handle = head.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        learner.score([TokenRow((1,), (5,))])
    handle.remove()
    assert not head._forward_pre_hooks
    assert len(learner.score([TokenRow((1,), (5,))]).logprobs) == 1


def test_gradient_checkpointing_changes_no_gradient_and_no_mode(folder, learner):
    import torch
    from collabsim.trainers.policy.learner import Learner

    thrifty = Learner.load(folder, gradient_checkpointing=True)
    rows = [TokenRow((1, 7, 9), (11, 12, EOS)), TokenRow((1, 30), (40, 41))]
    plain = gradients(learner, torch.cat(learner.token_logprobs(rows)).sum())
    thrifty.token_logprobs(rows)  # the first time it is tried whether common starts can be shared
    calls = []
    layer = thrifty.loaded.model.model.layers[0].mlp
    layer.register_forward_pre_hook(lambda *_: calls.append(1))
    checkpointed = gradients(thrifty, torch.cat(thrifty.token_logprobs(rows)).sum())
    for name, gradient in plain.items():
        torch.testing.assert_close(checkpointed[name], gradient, atol=1e-6, rtol=1e-6)
    assert len(calls) == 2, "the layer ran again in the backward pass"
    assert not any(module.training for module in thrifty.loaded.model.modules())


def test_no_rows_have_no_scores(learner):
    assert learner.score([]).logprobs == []


@pytest.mark.parametrize(
    ("row", "temperature"),
    [(TokenRow((1,), (5,)), 0.0), (TokenRow((), (5,)), 1.0), (TokenRow((1,), ()), 1.0), (TokenRow((1,), (999,)), 1.0)],
    ids=["greedy", "no prompt", "no reply", "unknown id"],
)
def test_rows_that_cannot_be_scored_are_refused(learner, row, temperature):
    with pytest.raises(ConfigError, match="expected"):
        learner.score([row], temperature)
