"""Which ids several vocabularies share, and who shows distributions at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Scripted

from collabsim import Sampling, make_item
from collabsim.errors import ProtocolError
from collabsim.models.engines.logits import Vocabulary, logit_model, shared_ids
from collabsim.models.engines.logprob_sampling import draw_token, normalised
from collabsim.models.simulation.simulated import SimulatedModel
from collabsim.models.simulation.simulated_logits import END

TABLE = {"a": 0, "b": 1, "</s>": 2}


def vocabulary(tokens=TABLE, size=3, ends=(2,)):
    return Vocabulary(tokens, size, frozenset(ends), None)


def test_padding_beyond_the_real_tokens_is_left_out():
    assert shared_ids([vocabulary(size=8), vocabulary(size=16)]) == {0, 1, 2}


def test_tokens_that_only_one_model_has_are_left_out():
    more = vocabulary({**TABLE, "<think>": 3}, size=4)
    assert shared_ids([more, vocabulary(size=4)]) == {0, 1, 2}


def test_a_token_beyond_the_logits_of_one_model_is_left_out():
    both = {**TABLE, "<think>": 3}
    assert shared_ids([vocabulary(both, size=4), vocabulary(both, size=3)]) == {0, 1, 2}


@pytest.mark.parametrize(
    "other",
    [{"a": 1, "b": 0, "</s>": 2}, {"a": 0, "b": 1, "</s>": 3}, {"a": 0, "c": 1, "</s>": 2}],
    ids=["swapped", "moved", "another token under an id"],
)
def test_equal_sizes_with_other_meanings_are_refused(other):
    with pytest.raises(ProtocolError, match="one model family"):
        shared_ids([vocabulary(), vocabulary(other, size=4)])


def test_models_that_could_never_stop_together_are_refused():
    with pytest.raises(ProtocolError, match="never stop"):
        shared_ids([vocabulary(ends=(5,)), vocabulary(ends=(6,))])


def test_a_model_without_distributions_is_refused():
    with pytest.raises(ProtocolError, match="next-token distribution"):
        logit_model(Scripted("a", "5"))


rows = st.lists(st.floats(-12, 0), min_size=2, max_size=30).map(lambda row: normalised(np.array(row)))
settings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    top_p=st.sampled_from([0.2, 0.7, 1.0]),
    top_k=st.sampled_from([0, 1, 3, 100]),
)


@given(rows, settings, st.floats(0, 1, exclude_max=True))
def test_a_drawn_token_has_the_probability_that_is_said_of_it(row, sampling, uniform):
    """Against a plain enumeration of the truncated, tempered distribution."""
    token, logprob = draw_token(row, sampling, uniform)
    if sampling.greedy:
        assert token == int(row.argmax())
        assert logprob == pytest.approx(row[token], abs=1e-9)
        return
    weights = np.exp(row / sampling.temperature)
    ranked = sorted(range(len(row)), key=lambda k: -row[k])[: sampling.top_k or None]
    kept, mass, total = [], 0.0, sum(weights[k] for k in ranked)
    for k in ranked:
        if kept and mass >= sampling.top_p * total - 1e-12:
            break
        kept.append(k)
        mass += weights[k]
    assert token in kept
    assert logprob == pytest.approx(np.log(weights[token] / mass), abs=1e-6)


def test_uniform_numbers_give_tokens_in_proportion():
    row = np.log(np.array([0.5, 0.0 + 1e-300, 0.25, 0.25]))
    grid = (np.arange(1000) + 0.5) / 1000
    drawn = [draw_token(row, Sampling(temperature=1.0), uniform)[0] for uniform in grid]
    assert np.bincount(drawn, minlength=4).tolist() == [500, 0, 250, 250]


def test_the_two_samplers_draw_the_same_tokens():
    torch = pytest.importorskip("torch")
    from collabsim.models.engines.token_sampling import draw_tokens

    noise = np.random.default_rng(0)
    logits = noise.normal(size=(200, 300), scale=3)
    uniforms = noise.random(200)
    for sampling in (
        Sampling(temperature=0),
        Sampling(temperature=0.7, top_p=0.8),
        Sampling(temperature=1.3, top_k=20),
    ):
        theirs, scores = draw_tokens(torch.tensor(logits), [sampling] * 200, uniforms.tolist())
        ours = [draw_token(row, sampling, uniform) for row, uniform in zip(normalised(logits), uniforms, strict=True)]
        assert [token for token, _ in ours] == theirs
        assert [score for _, score in ours] == pytest.approx(scores, abs=1e-4)


def test_a_simulated_model_says_each_text_with_its_own_probability():
    item = make_item("What is 2 + 3?", "5")
    model = SimulatedModel(skill=0.3, no_answer_rate=0.2)
    model.study([item])
    shown = model.logit_model()

    def probability(text: bytes) -> float:
        session, total = shown.session(shown.render(item.view.messages, {})), 0.0
        last: tuple[int, ...] = ()
        for number in (*text, END):
            total += session.step(last)[number]
            last = (number,)
        return float(np.exp(total))

    assert probability(b"Answer: 5") == pytest.approx(0.8 * model.p_correct(item), rel=1e-5)
    assert probability(b"<think>\n") == pytest.approx(0.2, rel=1e-5)
    assert probability(b"Answer: 5 or so") < 1e-6


def test_a_simulated_model_that_is_led_astray_stops():
    item = make_item("What is 2 + 3?", "5")
    model = SimulatedModel()
    model.study([item])
    shown = model.logit_model()
    session = shown.session(shown.render(item.view.messages, {}))
    session.step(())
    assert session.step(tuple(b"zebra")).argmax() == END
