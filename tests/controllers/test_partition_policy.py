import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from spaql import BadEnvironmentError, Partition, PartitionPolicy, RandomPolicy
from spaql.spaces import StandardActions, StandardStates

STATES = StandardStates.of(Box(-2.0, 2.0, (1,)))


def partition(actions: StandardActions, trees: int = 1) -> Partition:
    return Partition(1, actions.sizes, trees=trees)


def policy(actions: StandardActions) -> PartitionPolicy:
    return PartitionPolicy(STATES, actions, partition(actions))


def test_the_relevant_ball_with_the_highest_q_is_played() -> None:
    actions = StandardActions.of(Discrete(2))
    grown = partition(actions)
    grown.split([0.0], [0])
    grown.balls.q[grown.locate([-0.5], [1])] = 3.0
    grown.balls.q[grown.locate([0.5], [0])] = 2.0
    greedy = PartitionPolicy(STATES, actions, grown)
    assert greedy.predict(np.array([[-1.0], [1.0]]))[0].tolist() == [1, 0]


def test_of_equals_the_highest_action_is_played() -> None:
    actions = StandardActions.of(Discrete(3))
    grown = partition(actions)
    for _ in range(3):
        grown.split([0.1], [2])
    greedy = PartitionPolicy(STATES, actions, grown)
    assert greedy.predict(np.array([0.1]), deterministic=True)[0] == 2


def test_a_ball_gives_its_centre_or_a_uniform_draw() -> None:
    actions = StandardActions.of(Box(-2.0, 2.0, (1,)))
    grown = partition(actions)
    grown.split([0.5], [0.5])
    grown.balls.q[grown.locate([0.5], [0.5])] = 1.0
    torques = PartitionPolicy(STATES, actions, grown)
    observations = np.full((4000, 1), 1.0)
    assert (torques.predict(observations, deterministic=True)[0] == 1.0).all()
    drawn = torques.predict(observations, rng=np.random.default_rng(0))[0]
    assert 0.0 <= drawn.min() < 0.01
    assert 1.99 < drawn.max() <= 2.0
    assert drawn.mean() == pytest.approx(1.0, abs=0.05)


def test_the_first_remaining_action_or_a_uniform_draw_of_a_list() -> None:
    untrained = policy(StandardActions.of(Discrete(4, start=10)))
    assert untrained.predict(np.zeros(1), deterministic=True)[0] == 10
    drawn = untrained.predict(np.zeros((4000, 1)), rng=np.random.default_rng(0))[0]
    assert np.bincount(drawn)[10:].min() > 900


def test_a_time_variant_policy_keeps_count_in_its_state() -> None:
    actions = StandardActions.of(Discrete(2))
    grown = partition(actions, trees=3)
    for tree, best in enumerate([0, 1, 0]):
        grown.split([0.5], [0], tree=tree)
        grown.balls.q[grown.locate([0.5], [best], tree=tree)] = 1.0
    steps = PartitionPolicy(STATES, actions, grown)
    played = []
    state = None
    for _ in range(4):  # past the last time step its policy goes on
        action, state = steps.predict(np.array([1.0]), state)
        played.append(int(action))
    assert played == [0, 1, 0, 0]
    both, state = steps.predict(np.ones((2, 1)), (np.array([1, 1]),), episode_start=np.array([True, False]))
    assert both.tolist() == [0, 1]
    assert state is not None
    assert state[0].tolist() == [1, 2]


def test_nan_is_refused() -> None:
    with pytest.raises(BadEnvironmentError, match="Observation 1 of the batch"):
        policy(StandardActions.of(Discrete(2))).predict(np.array([[0.0], [np.nan]]))


def test_the_random_policy_covers_the_actions() -> None:
    box = Box(-2.0, 2.0, (2,))
    torques = RandomPolicy(STATES, StandardActions.of(box))
    drawn = torques.predict(np.zeros((2000, 1)), rng=np.random.default_rng(0))[0]
    assert drawn.min() < -1.98
    assert drawn.max() > 1.98
    levels = RandomPolicy(STATES, StandardActions.of(box, levels=3))
    assert set(np.unique(levels.predict(np.zeros((99, 1)))[0])) == {-2.0, 0.0, 2.0}
