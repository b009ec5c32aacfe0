"""What the trained router learns on dev, how it is kept, and whom it sends questions to."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from collabsim.graphs.features import dot, fit_features, vector, words
from collabsim.graphs.trained_router import classifier
from scripted import Scripted
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from tiny_folders import write_folder

from collabsim import System, Task, make_item, sweep
from collabsim.errors import ConfigError
from collabsim.system.fitted import Fitted
from collabsim.system.fitting import afit

DEV = [
    *(make_item(f"What is the sum of {k} and 3?", str(k + 3)) for k in range(2, 8)),
    *(make_item(f"What is the product of {k} and 3?", str(3 * k)) for k in range(2, 8)),
]
SUM = make_item("What is the sum of 11 and 12?", "23")
PRODUCT = make_item("What is the product of 11 and 12?", "132")


def specialist(name, operation):
    """Right on one kind of question, silent on the other."""

    def say(request):
        asked = request.messages[0].content
        first, second = (int(word.strip("?.")) for word in asked.split() if word.strip("?.").isdigit())
        right = first + second if "sum" in asked else first * second
        return f"Answer: {right if operation in asked else 1}"

    return Scripted(name, say)


def specialists(protocol="trained_router", **options):
    pool = {"adder": specialist("adder", "sum"), "multiplier": specialist("multiplier", "product")}
    return System(protocol, pool, options=options)


async def ready(system):
    return replace(system, fitted=await afit(system, DEV))


@pytest.mark.parametrize("protocol", ["trained_router", "graph_router"])
async def test_a_question_goes_to_the_seat_that_was_right_on_such_questions(protocol):
    system = await ready(specialists(protocol))
    for item, seat in ((SUM, "adder"), (PRODUCT, "multiplier")):
        episode = await system.arun(item)
        assert [call.seat for call in episode.calls] == [seat]
        assert episode.outcome == 1.0


@pytest.mark.parametrize("protocol", ["trained_router", "graph_router"])
async def test_an_absent_seat_is_never_chosen(protocol):
    system = await ready(specialists(protocol))
    assert (await system.arun(SUM, ["multiplier"])).outcome == 0.0


@pytest.mark.parametrize("protocol", ["trained_router", "graph_router"])
async def test_what_is_fitted_survives_json_and_routes_alike(protocol):
    system = await ready(specialists(protocol))
    kept = json.loads(json.dumps(system.fitted.data, allow_nan=False))
    assert kept == system.fitted.data
    again = replace(system, fitted=Fitted(data=kept))
    assert (await again.arun(PRODUCT)).calls[0].seat == "multiplier"


@pytest.mark.parametrize("protocol", ["trained_router", "graph_router"])
async def test_the_order_of_dev_items_changes_nothing(protocol):
    system = specialists(protocol)
    forwards, backwards = await afit(system, DEV), await afit(system, DEV[::-1])
    assert forwards == backwards


def test_a_resumed_sweep_reads_what_was_fitted_and_fits_nothing(tmp_path, monkeypatch):
    task = Task("sums", (SUM, PRODUCT), dev=tuple(DEV))
    first = sweep(specialists(), task, method="exact", out=tmp_path / "run")

    def refuse(*_):
        raise AssertionError("fitted again")

    monkeypatch.setattr("collabsim.coalitions.sweep.afit", refuse)
    again = sweep(specialists(), task, method="exact", out=tmp_path / "run")
    assert again.values["v"] == first.values["v"]
    assert again.values["v"]["adder+multiplier"] == 1.0


def test_a_sweep_without_dev_items_is_refused():
    with pytest.raises(ConfigError, match="fitted on dev items"):
        sweep(specialists(), Task("sums", (SUM,)), method="exact")


TEXTS = [item.question for item in DEV]


@pytest.mark.parametrize("text", [SUM.question, "what what is THE sum, of?", "a 7", "nothing known: qwerty"])
def test_tf_idf_vectors_are_those_of_scikit_learn(text):
    reference = TfidfVectorizer(analyzer=words).fit(TEXTS)
    row = reference.transform([text]).toarray()[0]
    expected = {name: row[place] for name, place in reference.vocabulary_.items() if row[place]}
    assert vector(text, fit_features(TEXTS, None), None) == pytest.approx(expected)


def test_a_classifier_is_the_logistic_regression_of_scikit_learn():
    features = fit_features(TEXTS, None)
    vectors = [vector(text, features, None) for text in TEXTS]
    labels = [float("sum" in text) for text in TEXTS]
    names = sorted(features["idf"])
    dense = np.array([[row.get(name, 0.0) for name in names] for row in vectors])
    reference = LogisticRegression().fit(dense, labels)
    kept = classifier(vectors, labels)
    ours = [kept["bias"] + dot(row, kept["weights"]) for row in vectors]
    assert ours == pytest.approx(reference.decision_function(dense).tolist(), abs=1e-3)


def test_a_partial_score_counts_as_a_share_of_a_right_answer():
    same = [{"x": 1.0}] * 4
    kept = classifier(same, [0.25, 0.25, 0.25, 0.25])
    odds = kept["bias"] + kept["weights"]["x"]
    assert 1 / (1 + math.exp(-odds)) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize(("scores", "odds"), [([1.0] * 4, 9.0), ([0.0] * 4, 1 / 9)])
def test_a_seat_that_is_always_right_or_never_is_predicted_by_its_smoothed_rate(scores, odds):
    kept = classifier([{"x": 1.0}] * 4, scores)
    assert kept == {"bias": pytest.approx(math.log(odds)), "weights": {}}


async def test_seats_that_are_predicted_alike_take_turns_by_item():
    items = [make_item(f"What is the sum of {k} and 50?", str(k + 50)) for k in range(30)]
    pool = {name: specialist(name, "sum") for name in ("one", "two")}
    system = replace(System("trained_router", pool), fitted=Fitted(data=(await ready(specialists())).fitted.data))
    assert {(await system.arun(item)).calls[0].seat for item in items} == {"one", "two"}


@pytest.mark.slow  # loads torch and transformers
async def test_hidden_states_of_a_local_encoder_are_features_too(tmp_path):
    pytest.importorskip("torch")
    folder = str(write_folder(tmp_path / "encoder"))
    system = await ready(specialists(encoder=folder))
    features = vector(SUM.question, system.fitted.data["features"], folder)
    assert len(features) == 16
    assert math.fsum(value**2 for value in features.values()) == pytest.approx(1.0)
    assert {(await system.arun(item)).outcome for item in DEV} <= {0.0, 1.0}


@pytest.mark.slow
async def test_an_encoder_that_has_changed_since_fitting_is_refused(tmp_path):
    pytest.importorskip("torch")
    folder = str(write_folder(tmp_path / "encoder"))
    system = await ready(specialists(encoder=folder))
    other = str(write_folder(tmp_path / "other", seed=1))
    changed = replace(system, options={"encoder": other})
    with pytest.raises(ConfigError, match="changed since"):
        await changed.arun(SUM)


@pytest.fixture
def bert(tmp_path):
    """An encoder without a head that writes, as sentence encoders are."""
    pytest.importorskip("torch")
    from transformers import AutoConfig, AutoModel

    folder = write_folder(tmp_path / "bert")
    (folder / "model.safetensors").unlink()
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = AutoConfig.for_model("bert", vocab_size=270, max_position_embeddings=20, **sizes)
    AutoModel.from_config(config).save_pretrained(folder)
    return folder


@pytest.mark.slow  # loads torch and transformers
def test_an_encoders_features_are_its_mean_state_over_a_text_cut_to_its_window(bert):
    import torch
    from transformers import AutoModel, AutoTokenizer

    text = "What is 2 + 3, and what is 4 + 5?"
    ids = AutoTokenizer.from_pretrained(bert)(text)["input_ids"]
    assert len(ids) > 20
    with torch.no_grad():
        states = AutoModel.from_pretrained(bert).eval()(torch.tensor([ids[:20]])).last_hidden_state[0]
    expected = torch.nn.functional.normalize(states.mean(0), dim=0).tolist()
    found = vector(text, fit_features([text], str(bert)), str(bert))
    assert [found[str(place)] for place in range(8)] == pytest.approx(expected, abs=1e-5)
