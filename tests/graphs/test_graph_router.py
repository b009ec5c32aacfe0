"""How near dev items are to a question in the graph of similar items, and what that makes of their scores."""

import networkx as nx
import numpy as np
import pytest
from collabsim.graphs.graph_router import nearness, similarity_graph, weighted_scores

X, Y, Z = {"x": 1.0}, {"y": 1.0}, {"z": 1.0}
XY = {"x": 0.6, "y": 0.8}


def fitted(vectors, neighbours=5):
    edges = [[i, j, weight] for i, j, weight in similarity_graph(vectors, neighbours).edges.data("weight")]
    return {"vectors": vectors, "edges": edges}


def test_items_are_tied_by_their_cosine_where_it_is_above_zero():
    graph = similarity_graph([X, XY, Y, Z], neighbours=5)
    assert {(i, j): weight for i, j, weight in graph.edges.data("weight")} == {(0, 1): 0.6, (1, 2): 0.8}


def test_an_item_is_tied_to_its_nearest_ones_and_to_all_that_tie_with_the_last():
    graph = similarity_graph([X, X, X, XY], neighbours=1)
    assert set(graph[0]) == {1, 2, 3}  # 3 has nobody nearer than the three equal ones
    assert all(graph[i][3]["weight"] == 0.6 for i in (0, 1, 2))
    assert set(similarity_graph([X, XY, Y], neighbours=1).edges) == {(0, 1), (1, 2)}


def test_nearness_is_the_stationary_distribution_of_a_walk_that_restarts_at_the_question():
    vectors, asked, restart = [X, XY, Y, Z], {"x": 0.8, "z": 0.6}, 0.3
    weights = nearness(asked, fitted(vectors), 5, restart)
    # question = node 4; solved as a linear system: r = restart * e + (1 - restart) * r P
    ties = np.zeros((5, 5))
    for i, j, weight in [(0, 1, 0.6), (1, 2, 0.8), (4, 0, 0.8), (4, 1, 0.48), (4, 3, 0.6)]:
        ties[i, j] = ties[j, i] = weight
    steps = ties / ties.sum(1, keepdims=True)
    start = np.eye(5)[4]
    expected = np.linalg.solve(np.eye(5) - (1 - restart) * steps.T, restart * start)
    assert weights == pytest.approx(expected[:4].tolist(), abs=1e-5)


def test_items_that_resemble_the_question_only_through_others_count_less_but_count():
    direct, through, unlike = nearness(X, fitted([XY, Y, Z]), 5, 0.5)
    assert direct > through > unlike == 0.0


def test_a_slow_restart_converges():
    assert sum(nearness(X, fitted([X, XY, Y]), 5, 0.001)) < 1


def test_a_question_that_resembles_nothing_gets_plain_dev_scores():
    weights = nearness({}, fitted([X, Y]), 5, 0.5)
    assert weights == [0.0, 0.0]
    assert weighted_scores(weights, {"a": [1.0, 0.0], "b": [1.0, 1.0]}) == {"a": 0.5, "b": 1.0}


def test_scores_are_weighted_by_nearness():
    assert weighted_scores([0.3, 0.1], {"a": [1.0, 0.0]}) == {"a": pytest.approx(0.75)}


def test_the_graph_is_a_networkx_one():
    assert isinstance(similarity_graph([X], 1), nx.Graph)
