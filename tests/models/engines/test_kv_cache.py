"""Rows that come and go in place: every row ends at the last column, padding is zero."""

from __future__ import annotations

import pytest
from engines import requires

pytestmark = requires("torch", "transformers")


def states(rows: int, columns: int, value: float):
    import torch

    return torch.full((rows, 2, columns, 3), value)


@pytest.fixture
def layer():
    from collabsim.models.engines.kv_cache import RowsLayer

    def make(rows: int, columns: int, value: float):
        made = RowsLayer()
        made.update(states(rows, columns, value), -states(rows, columns, value))
        return made

    return make


def seen(layer):
    """The first channel of the keys, [rows][columns]; the values must mirror it."""
    import torch

    assert torch.equal(layer.keys, -layer.values)
    return layer.keys[:, 0, :, 0].tolist()


def test_columns_are_appended(layer):
    one = layer(2, 3, 1.0)
    one.update(states(2, 1, 2.0), -states(2, 1, 2.0))
    assert seen(one) == [[1, 1, 1, 2]] * 2
    assert one.get_seq_length() == 4


def test_more_columns_than_there_was_room_for(layer):
    one = layer(1, 2, 1.0)
    for value in range(300):
        one.update(states(1, 1, value), -states(1, 1, value))
    assert seen(one) == [[1, 1, *range(300)]]


def test_rows_that_are_handed_out_go_their_own_ways(layer):
    one = layer(1, 1, 1.0)
    one.join(layer(1, 2, 5.0))
    one.hand_out([1, 0, 1])
    one.update(states(3, 1, 0.0), states(3, 1, 0.0))
    one.keys[0] = one.values[0] = 0
    assert seen(one) == [[0, 0, 0], [0, 1, 0], [5, 5, 0]]


def test_shorter_rows_join_with_zeros_on_their_left(layer):
    one = layer(1, 4, 1.0)
    one.join(layer(2, 2, 5.0))
    assert seen(one) == [[1, 1, 1, 1], [0, 0, 5, 5], [0, 0, 5, 5]]


def test_longer_rows_push_the_others_to_the_right(layer):
    one = layer(1, 2, 1.0)
    one.join(layer(1, 5, 5.0))
    assert seen(one) == [[0, 0, 0, 1, 1], [5, 5, 5, 5, 5]]


def test_the_last_row_moves_into_the_gap_and_columns_on_the_left_go(layer):
    one = layer(1, 4, 1.0)
    one.join(layer(1, 2, 2.0))
    one.join(layer(1, 3, 3.0))
    one.keep(2, [(2, 0)], 3)
    assert seen(one) == [[3, 3, 3], [0, 2, 2]]


def test_what_finished_rows_left_behind_is_wiped_when_columns_come_back(layer):
    one = layer(2, 5, float("nan"))
    one.join(layer(1, 2, 2.0))
    one.keep(1, [(2, 0)], 2)
    one.join(layer(2, 4, 7.0))
    assert seen(one) == [[0, 0, 2, 2], [7, 7, 7, 7], [7, 7, 7, 7]]
