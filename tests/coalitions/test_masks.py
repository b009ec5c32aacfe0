import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabsim.coalitions import masks
from collabsim.errors import ConfigError

PLAYERS = ("alpha", "beta", "gamma")
names = st.lists(st.text(min_size=1, max_size=6), min_size=0, max_size=6, unique=True)


def test_bit_i_is_player_i():
    assert masks.mask_of(PLAYERS, ["gamma", "alpha"]) == 0b101
    assert masks.names_of(PLAYERS, 0b101) == ("alpha", "gamma")


def test_labels_are_in_player_order_and_empty_for_nobody():
    assert masks.label(PLAYERS, 0b110) == "beta+gamma"
    assert masks.label(PLAYERS, 0) == ""


def test_a_label_is_read_in_any_order():
    assert masks.parse_label(PLAYERS, "gamma+alpha") == 0b101


@given(names, st.data())
def test_every_coalition_survives_its_label_whatever_the_names_hold(players, data):
    mask = data.draw(st.integers(0, masks.full(len(players))))
    assert masks.parse_label(players, masks.label(players, mask)) == mask


@given(names)
def test_labels_of_different_coalitions_differ(players):
    labels = [masks.label(players, mask) for mask in masks.all_masks(len(players))]
    assert len(set(labels)) == 2 ** len(players)


def test_an_unknown_name_is_refused_with_the_nearest_one():
    with pytest.raises(ConfigError, match=r"'betta'.*did you mean 'beta'"):
        masks.mask_of(PLAYERS, ["betta"])


def test_a_mask_with_unknown_bits_is_refused():
    with pytest.raises(ConfigError, match="below 8"):
        masks.names_of(PLAYERS, 8)


@pytest.mark.parametrize("players", [("a", "a"), ("a", "")])
def test_equal_or_empty_player_names_are_refused(players):
    with pytest.raises(ConfigError, match="distinct"):
        masks.check_players(players)


@given(st.integers(0, 255), st.integers(0, 7))
def test_adding_and_removing_a_player_agree_with_sets(mask, index):
    assert set(masks.members(masks.with_player(mask, index))) == {*masks.members(mask), index}
    assert set(masks.members(masks.without(mask, index))) == {*masks.members(mask)} - {index}
    assert masks.size(mask) == len(masks.members(mask))
    assert masks.contains(mask, index) == (index in masks.members(mask))


def test_nobody_is_a_pool_too():
    assert (masks.full(0), list(masks.all_masks(0)), masks.singles(0)) == (0, [0], ())
    assert masks.singles(3) == (1, 2, 4)
