"""Rows that begin alike are read once: the trie, and scores and gradients that are those of the rows one by one."""

from __future__ import annotations

import pytest
from collabsim.trainers.policy.token_row import TokenRow
from collabsim.trainers.policy.token_trie import trie_of, tries_of, worth_sharing
from engines import requires
from hypothesis import given
from hypothesis import strategies as st

SHORT = st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple)
ROWS = st.lists(st.tuples(SHORT, SHORT).map(lambda pair: TokenRow(*pair)), min_size=1, max_size=8)


def path_to(trie, place):
    """The tokens from the start to a place."""
    tokens = []
    while place >= 0:
        tokens.insert(0, trie.ids[place])
        place = trie.parents[place]
    return tuple(tokens)


@given(ROWS)
def test_each_sampled_id_is_predicted_from_exactly_what_stood_before_it(rows):
    trie = trie_of(rows)
    for row, places in zip(rows, trie.places, strict=True):
        assert len(places) == len(row.ids)
        for number, place in enumerate(places):
            before = row.prompt_ids + row.ids[:number]
            assert path_to(trie, place) == before
            assert trie.positions[place] == len(before) - 1


@given(ROWS)
def test_a_prefix_stands_once_and_sees_its_own_past_only(rows):
    trie = trie_of(rows)
    prefixes = [path_to(trie, place) for place in range(len(trie.ids))]
    assert len(set(prefixes)) == len(prefixes)
    seen = trie.visible()
    for line, prefix in enumerate(prefixes):
        assert {prefixes[column] for column in seen[line].nonzero()[0]} == {
            prefix[:length] for length in range(1, len(prefix) + 1)
        }


@given(ROWS, st.integers(1, 12))
def test_tries_hold_every_row_once_and_only_a_long_row_exceeds_the_limit(rows, longest):
    found = list(tries_of(rows, longest))
    assert sorted(number for numbers, _ in found for number in numbers) == list(range(len(rows)))
    for numbers, trie in found:
        assert len(trie.ids) <= longest or len(numbers) == 1
        assert trie == trie_of([rows[number] for number in numbers])


def test_rows_that_have_nothing_in_common_are_not_worth_a_trie():
    rows = [TokenRow((k, k, k), (k, k)) for k in range(1, 5)]
    assert not worth_sharing(rows, [trie_of(rows)])
    group = [TokenRow((1, 2, 3), (k, k)) for k in range(4)]
    assert worth_sharing(group, [trie_of(group)])


# ---- on models --------------------------------------------------------------------------------------------------------

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 64, "max_position_embeddings": 64}
HEADS = {"num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 48, "head_dim": 16}
SLIDING = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}
KINDS = {
    "llama": {**SIZES, **HEADS},
    "gemma3_text": {**SIZES, **HEADS, **SLIDING},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 64, "n_positions": 64},
}
GROUP = [TokenRow((5, 6, 7, 8), ids) for ids in ((9, 10, 2), (9, 11, 2), (9, 10, 2), (3,), (12, 13))]
GROUP += [TokenRow((5, 6, 20), (30, 2)), TokenRow((5, 6, 20), (31, 2))]


def model_of(kind, **more):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **KINDS.get(kind, {}), **more)).eval()
    for parameter in model.parameters():  # as drawn, differences drown in rounding
        parameter.data.mul_(3)
    return model


def gradients_of(model, rows, share):
    import torch
    from collabsim.trainers.policy.logprobs import score_rows

    model.zero_grad()
    scores = score_rows(model, rows, 0.7, share=share)
    sum(float(k + 1) * one.sum() for k, one in enumerate(scores.logprobs)).backward()
    return scores, torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None])


@requires("torch", "transformers")
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_gradients_of_a_trie_are_those_of_its_rows(kind, attention):
    import torch
    from collabsim.trainers.policy.logprobs import can_share

    model = model_of(kind, attn_implementation=attention)
    assert can_share(model)
    (shared, shared_gradient), (plain, gradient) = (gradients_of(model, GROUP, share) for share in (True, False))
    for one, other in zip((*shared.logprobs, *shared.entropies), (*plain.logprobs, *plain.entropies), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(shared_gradient, gradient, atol=1e-3, rtol=1e-3)


def tokens_read(model, rows):
    """How many tokens one scoring puts through the model."""
    from collabsim.trainers.policy.logprobs import score_rows

    read = []
    hook = model.get_input_embeddings().register_forward_hook(
        lambda _module, given, _made: read.append(given[0].numel())
    )
    score_rows(model, rows, share=True)
    hook.remove()
    return read


@requires("torch", "transformers")
def test_a_group_is_read_once_for_all_and_rows_beyond_the_window_one_by_one():
    model = model_of("gemma3_text")
    assert tokens_read(model, GROUP) == [len(trie_of(GROUP).ids)]
    long = [TokenRow((*range(5, 13),), (ids, 2)) for ids in (20, 21, 22, 23)]
    assert tokens_read(model, long) == [4 * 9]


@requires("torch", "transformers")
@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 2, "vocab_size": 64}),
        ("mamba", {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 64, "state_size": 4}),
    ],
)
def test_models_without_told_positions_read_their_rows_one_by_one(kind, config):
    from collabsim.trainers.policy.logprobs import can_share

    assert not can_share(model_of(kind, **config))


@requires("torch", "transformers")
def test_a_model_in_which_branches_see_each_other_is_found_out():
    from collabsim.trainers.policy.logprobs import can_share

    model = model_of("llama")
    model.model.layers[1].register_forward_hook(lambda _module, _given, made: made.cumsum(1))
    assert not can_share(model)
