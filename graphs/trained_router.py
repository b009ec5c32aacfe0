"""Trained router: a classifier per seat predicts whether it gets a question right; the likeliest one answers.

Fitted on dev items, on every seat's own answers there: a logistic regression over features of the question (TF-IDF, or the
hidden states of a local encoder model). It is kept as JSON, one weight a feature. The coalition only masks the choice, so
one fit serves all of them. A seat that got all dev items right, or none, has no classes to tell apart and is predicted by
its smoothed rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.graph import StateGraph

from collabsim.context import RunContext
from collabsim.item import Item
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.system.execute import CONCURRENCY
from collabsim.system.fitting import dev_outcomes
from collabsim.system.system import System

from .features import Vector, dot, fit_vectors, question_vector
from .routing import routed_graph


@dataclass(frozen=True, slots=True)
class PredictByClassifier:
    """Log-odds that a seat gets the run's question right: bias + weights . features."""

    encoder: str | None

    def __call__(self, run: RunContext) -> Mapping[str, float]:
        """By seat; empty where nothing was fitted."""
        if not run.fitted:
            return {}
        features = question_vector(run, self.encoder)
        return {seat: fitted["bias"] + dot(features, fitted["weights"]) for seat, fitted in run.fitted["seats"].items()}


async def fit_classifiers(
    system: System, dev_items: Sequence[Item], seed: int, *, concurrency: int = CONCURRENCY
) -> dict[str, Any]:
    """`fit`: one classifier for each seat."""
    items = sorted(dev_items, key=lambda item: item.id)
    features, vectors = fit_vectors(items, system.options["encoder"])
    outcomes = await dev_outcomes(system, items, seed, concurrency=concurrency)
    return {"features": features, "seats": {seat: classifier(vectors, scored) for seat, scored in outcomes.items()}}


def classifier(vectors: Sequence[Vector], scores: Sequence[float]) -> dict[str, Any]:
    """A logistic regression (L2, C = 1) of scores in [0, 1], as bias and weights by feature.

    A partial score counts as that much of a right and the rest of a wrong answer.
    """
    right = math.fsum(scores)
    if right in (0.0, float(len(scores))):
        return {"bias": math.log((right + 0.5) / (len(scores) - right + 0.5)), "weights": {}}
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression

    columns = DictVectorizer().fit(vectors)
    rows = columns.transform([*vectors, *vectors])
    labels = [1] * len(scores) + [0] * len(scores)
    model = LogisticRegression(max_iter=1000).fit(rows, labels, [*scores, *(1 - score for score in scores)])
    return {
        "bias": float(model.intercept_[0]),
        "weights": dict(zip(columns.feature_names_, model.coef_[0].tolist(), strict=True)),
    }


@protocol(
    family="routing",
    needs=("dev",),
    absent="an absent seat is never chosen; predictions are made once for all seats and masked",
    calls=lambda present, **_: min(present, 1),
    fit=fit_classifiers,
)
def trained_router(seats: Sequence[str], *, encoder: str | None = None) -> StateGraph[Any, Any, Any, Any]:
    """The seat answers that a classifier, fitted on dev items, finds likeliest to be right.

    `encoder`: a local model (hub id, folder, GGUF) whose hidden states are the features, in place of TF-IDF.
    """
    return routed_graph(seats, PredictByClassifier(encoder))


graph = playground_graph(trained_router)
