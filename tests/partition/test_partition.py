import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightly import thorough
from spaql import ArchiveError, SettingError
from spaql.partition import Partition


def grown(seed: int = 0, trees: int = 1) -> Partition:
    partition = Partition(2, [Partition.INTERVAL, 3], q=5.0, trees=trees)
    rng = np.random.default_rng(seed)
    for _ in range(30):
        state = rng.uniform(-1, 1, 2).tolist()
        partition.split(state, [rng.uniform(-1, 1), rng.integers(3)], tree=int(rng.integers(trees)))
    return partition


def test_root_splits_into_orthants_and_action_halves() -> None:
    partition = Partition(4, [2], q=200.0)
    partition.split([0.1, 0.1, 0.1, 0.1], [1])
    assert partition.arms == 32
    partition.split([0.1, 0.1, 0.1, 0.1], [1])  # one action is left: only the state is cut
    assert partition.arms == 31 + 16


@pytest.mark.parametrize("length", range(1, 10))
def test_a_finite_list_is_cut_until_single_actions_remain(length: int) -> None:
    partition = Partition(1, [length])
    for _ in range(6):
        for action in range(length):
            partition.split([0.3], [action])
    found = partition.relevant([0.3])
    assert found.action_low[:, 0].tolist() == list(range(length))
    assert found.action_size[:, 0].tolist() == [1] * length


def test_relevant_balls_come_in_the_order_of_their_actions() -> None:
    partition = Partition(1, [Partition.INTERVAL])
    for action in (0.9, -0.9, 0.9, 0.2, -0.3, 0.21):
        partition.split([0.5], [action])
    low = partition.relevant([0.5]).action_low[:, 0]
    assert (np.diff(low) > 0).all()


def test_a_search_grows_past_its_first_room() -> None:
    partition = Partition(1, [Partition.INTERVAL])
    for level in range(8):
        for i in range(2**level):
            partition.split([0.5], [-1 + (2 * i + 1) / 2**level])
    found = partition.relevant([0.5])
    assert len(found.ball) == 256
    assert (np.diff(found.action_low[:, 0]) == 2**24).all()


def test_growth_by_doubling_keeps_content() -> None:
    partition = grown()
    before = partition.digest()
    partition.reserve(10_000)
    assert partition.digest() == before
    assert partition.nbytes >= 10_000 * 20


def test_copies_are_independent() -> None:
    partition = grown()
    twin = partition.copy()
    partition.split([0.0, 0.0], [0.0, 0])
    assert twin.digest() == grown().digest() != partition.digest()


def test_a_forest_has_a_tree_for_every_time_step() -> None:
    partition = grown(trees=5)
    assert sum(len(partition.leaves(tree).ball) for tree in range(5)) == partition.arms
    assert Partition.from_arrays(partition.arrays()).digest() == partition.digest()


@settings(max_examples=thorough(100))
@given(st.data())
def test_arrays_that_are_no_partition_are_refused(data: st.DataObject) -> None:
    """Whatever number of the structure is changed: refused, or a partition that can be searched."""
    arrays = grown(trees=2).arrays()
    name = data.draw(st.sampled_from(["first_child", "counts", "action_sizes", "dims", "visits"]))
    array = arrays[name].ravel()
    index = data.draw(st.integers(0, len(array) - 1))
    low = np.iinfo(array.dtype).min
    high = np.iinfo(array.dtype).max
    array[index] = data.draw(st.one_of(st.integers(-3, 3000), st.integers(low, high)))
    try:
        partition = Partition.from_arrays(arrays)
    except ArchiveError:
        return
    state = [0.3] * partition.state_dims
    assert len(partition.relevant(state, tree=partition.trees - 1).ball) > 0


@pytest.mark.parametrize("name", ["first_child", "q", "visits", "counts", "action_sizes", "dims"])
def test_missing_and_short_arrays_are_refused(name: str) -> None:
    arrays = grown().arrays()
    short = arrays | {name: arrays[name][:-1]}
    with pytest.raises(ArchiveError):
        Partition.from_arrays(short)
    del arrays[name]
    with pytest.raises(ArchiveError):
        Partition.from_arrays(arrays)


def test_too_many_dimensions_are_refused_with_advice() -> None:
    with pytest.raises(SettingError, match="Observe fewer"):
        Partition(17, [2])
    with pytest.raises(SettingError, match="must have 2 numbers"):
        grown().relevant([0.0])


def test_a_ball_can_only_be_split_so_often() -> None:
    partition = Partition(1, [2])
    for _ in range(31):
        partition.split([0.1], [0])
    with pytest.raises(SettingError, match="too small"):
        partition.split([0.1], [0])
