"""The controller made from a policy acts as it does, to the last bit."""

import dataclasses

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st

import spaql
from nightly import thorough
from oblique_trees import oblique_trees, points
from spaql.controllers import Controller, Laws, PartitionPolicy, RandomPolicy, controller_of, minimised
from spaql.controllers.cells import tree_cells
from spaql.spaces import StandardActions, StandardStates

AGENTS = {
    "cartpole200": lambda: spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1),
    "pendulum5": lambda: spaql.SPAQL("pendulum5", rollouts=5, seed=1),
    "pendulum": lambda: spaql.SPAQL("pendulum", rollouts=5, seed=1),
}


@pytest.fixture(scope="module", params=AGENTS)
def policy(request: pytest.FixtureRequest) -> PartitionPolicy:
    agent = AGENTS[request.param]().learn(iterations=200, progress_bar=False)
    assert isinstance(agent.policy, PartitionPolicy)
    return agent.policy


@pytest.fixture(scope="module")
def aql() -> PartitionPolicy:
    agent = spaql.AQL("cartpole200", scaling=1, rollouts=5, seed=0).learn(iterations=150, progress_bar=False)
    assert isinstance(agent.policy, PartitionPolicy)
    return agent.policy


def telling_points(tree: Controller, policy: PartitionPolicy, n: int = 2000) -> np.ndarray:
    """Random points within and beyond the bounds, cell centres, and every threshold with its neighbours."""
    rng = np.random.default_rng(0)
    state_map = policy.states.state_map
    spread = state_map.scale * np.where(state_map.squash, 0.3, 1.0)
    inside = state_map.center + spread * rng.uniform(-1, 1, (n, tree.dims))
    beyond = state_map.center + spread * rng.standard_cauchy((n, tree.dims))
    cells = tree_cells(tree)
    edges = [np.concatenate([[row[0] - 1], row, [row[-1] + 1]]) for row in padded(cells.thresholds)]
    middles = [[(edges[j][cells.low[:, j]] + edges[j][cells.high[:, j]]) / 2] for j in range(tree.dims)]
    points = [inside, beyond, np.concatenate(middles).T, np.full((1, tree.dims), np.inf)]
    points.append(-points[-1])
    for j, row in enumerate(cells.thresholds):
        for near in (np.nextafter(row, -np.inf), row, np.nextafter(row, np.inf)):
            for at in near:
                others = inside[rng.integers(n, size=20)].copy()
                others[:, j] = at
                points.append(others)
    grid = [rng.choice(np.append(row, 0.0), n) for row in cells.thresholds]
    points.append(np.stack(grid, axis=1))  # corners, where all thresholds meet
    return np.concatenate(points)


def padded(thresholds: tuple) -> list[np.ndarray]:
    return [row if len(row) else np.array([0.0]) for row in thresholds]


def disagreements(tree: Controller, policy: PartitionPolicy, step: int = 0, within: Box | None = None) -> int:
    plain = controller_of(policy, step if policy.time_variant else None, minimise=False)
    points = telling_points(plain, policy)
    if within is not None:
        points = np.clip(points, within.low.astype(float), within.high.astype(float))
    state = (np.full(len(points), step),) if policy.time_variant else None
    wanted, _ = policy.predict(points, state, deterministic=True)
    given = tree.act(points)
    assert given.dtype == wanted.dtype
    assert given.shape == wanted.shape
    return int((given != wanted).reshape(len(points), -1).any(axis=1).sum())


def test_the_tree_is_the_policy(policy: PartitionPolicy) -> None:
    plain = controller_of(policy, minimise=False)
    small = controller_of(policy)
    assert plain.n_leaves > 10
    assert disagreements(plain, policy) == 0
    assert disagreements(small, policy) == 0
    assert small.n_leaves < plain.n_leaves
    good = controller_of(policy, effort=0)
    assert disagreements(good, policy) == 0
    assert small.n_leaves <= good.n_leaves <= plain.n_leaves
    assert small.smallest


def test_every_time_step_has_its_tree(aql: PartitionPolicy) -> None:
    for step in (0, 3, 20, 199):
        assert disagreements(controller_of(aql, step), aql, step) == 0
    assert len({controller_of(aql, step).n_leaves for step in (0, 3, 20)}) > 1


def test_the_time_step_is_asked_for_where_it_matters(aql: PartitionPolicy) -> None:
    for step in (None, -1, 200):
        with pytest.raises(spaql.SettingError, match="from 0 to 199"):
            controller_of(aql, step)
    same = PartitionPolicy(aql.states, aql.actions, spaql.Partition(4, [2]))
    with pytest.raises(spaql.SettingError, match="leave the step out"):
        controller_of(same, 0)
    with pytest.raises(spaql.SettingError, match="RandomPolicy"):
        controller_of(RandomPolicy(aql.states, aql.actions))


def test_minimising_again_changes_nothing(policy: PartitionPolicy) -> None:
    small = controller_of(policy)
    again = minimised(small)
    assert again.n_leaves == small.n_leaves
    assert str(again) == str(small)
    assert str(controller_of(small)) == str(small)


@pytest.mark.parametrize("kind", ["choices", "constants", "laws"])
def test_rows_that_say_the_same_are_one_leaf(kind: str) -> None:
    laws = {
        "choices": [1, 0, 0],
        "constants": [[0.5], [0.0], [0.0]],
        "laws": Laws([[[1.0, 0.0]], [[0.0, 2.0]], [[0.0, 2.0]]], [[0.5], [0.0], [0.0]]),
    }[kind]
    tree = Controller(
        feature=[0, -1, 1, -1, -1],
        threshold=[0.0, 0.0, 0.3, 0.0, 0.0],
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        leaf=[-1, 0, -1, 1, 2],
        laws=laws,
        observation_space=Box(-1.0, 1.0, (2,), np.float64),
        action_space=Discrete(2) if kind == "choices" else Box(-1.0, 1.0, (1,), np.float64),
    )
    small = minimised(tree)
    assert small.n_leaves == 2
    assert small.smallest
    points = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    np.testing.assert_array_equal(small.act(points), tree.act(points))


def test_within_bounds_the_tree_is_smaller_and_the_same(policy: PartitionPolicy) -> None:
    state_map = policy.states.state_map
    low = state_map.center - 0.2 * state_map.scale
    high = state_map.center + 0.3 * state_map.scale
    within = Box(low, high, dtype=np.float64)
    tree = controller_of(policy, within=within)
    assert tree.n_leaves < controller_of(policy).n_leaves
    assert disagreements(tree, policy, within=within) == 0
    plain = controller_of(policy, within=within, minimise=False)
    assert disagreements(plain, policy, within=within) == 0
    assert tree.n_leaves <= plain.n_leaves
    with pytest.raises(spaql.SettingError, match="bounds have 7"):
        controller_of(policy, within=Box(-1, 1, (7,)))


def test_observations_are_taken_as_the_policy_takes_them(policy: PartitionPolicy) -> None:
    tree = controller_of(policy)
    one = np.zeros(tree.dims, np.float32)
    assert np.array_equal(tree.predict(one)[0], policy.predict(one, deterministic=True)[0])
    assert np.shape(tree.predict(one)[0]) == np.shape(policy.predict(one)[0])
    with pytest.raises(spaql.BadEnvironmentError, match="Observation 1 of the batch holds NaN"):
        tree.act(np.array([one, one * np.nan]))


@settings(max_examples=thorough(60))
@given(
    dims=st.integers(1, 5),
    size=st.integers(2, 7),
    kind=st.sampled_from(["list", "levels", "interval", "two intervals"]),
    splits=st.integers(0, 60),
    ties=st.booleans(),
    effort=st.sampled_from([0, 10**7]),
    seed=st.integers(0, 2**32 - 1),
)
def test_trees_of_random_partitions(
    dims: int, size: int, kind: str, splits: int, ties: bool, effort: int, seed: int
) -> None:
    policy = random_policy(dims, size, kind, splits, ties, seed)
    plain = controller_of(policy, minimise=False)
    small = controller_of(policy, effort=effort)
    assert small.n_leaves <= plain.n_leaves
    assert disagreements(plain, policy) == 0
    assert disagreements(small, policy) == 0
    assert minimised(small, effort=effort).n_leaves <= small.n_leaves


def random_policy(dims: int, size: int, kind: str, splits: int, ties: bool, seed: int) -> PartitionPolicy:
    rng = np.random.default_rng(seed)
    if kind == "list":
        actions = StandardActions.of(Discrete(size, start=3))
    elif kind == "levels":
        actions = StandardActions.of(Box(-1.0, 2.0, (1,)), levels=size)
    else:
        actions = StandardActions.of(Box(-1.0, 2.0, (1 if kind == "interval" else 2,)))
    partition = spaql.Partition(dims, actions.sizes)
    for _ in range(splits):
        state = (rng.uniform(-1, 1, dims) ** 3).tolist()
        action = [rng.uniform(-1, 1) if s == partition.INTERVAL else rng.integers(s) for s in actions.sizes]
        partition.split(state, action)
    q = rng.integers(0, 3, partition.n_balls) if ties else rng.normal(size=partition.n_balls)
    partition.balls.q[: partition.n_balls] = q
    low = np.full(dims, -np.inf)
    high = np.full(dims, np.inf)
    low[1::2] = -2.0
    high[1::2] = 5.0
    squash = dict.fromkeys(range(0, dims, 2), 3.0)
    states = StandardStates.of(Box(low, high, dtype=np.float64), squash)
    return PartitionPolicy(states, actions, partition)


def test_a_large_partition_takes_seconds() -> None:
    """5,000 arms in 4 dimensions, whose grid is far too large for the smallest tree."""
    policy = random_policy(4, 2, "list", 320, False, 1)
    assert 4000 < policy.partition.arms < 6000
    plain = controller_of(policy, minimise=False)
    small = controller_of(policy)
    assert not small.smallest
    assert small.n_leaves < plain.n_leaves
    assert disagreements(small, policy) == 0


def test_a_discrete_space_of_observations() -> None:
    states = StandardStates.of(Discrete(5, start=2))
    partition = spaql.Partition(1, [2])
    partition.split([0.2], [0])
    partition.balls.q[partition.locate([0.5], [0])] = 1.0
    policy = PartitionPolicy(states, StandardActions.of(Discrete(2)), partition)
    tree = controller_of(policy)
    everything = np.arange(2, 7)
    assert np.array_equal(tree.act(everything), policy.predict(everything, deterministic=True)[0])
    assert tree.predict(3)[0] == policy.predict(3, deterministic=True)[0]


def test_names_come_with_the_policy() -> None:
    agent = spaql.SPAQL("pendulum5", rollouts=5, seed=0)
    tree = controller_of(agent)
    assert tree.observations == ("cos(angle)", "sin(angle)", "speed [rad/s]")
    assert tree.actions == ("torque [Nm]",)
    assert controller_of(agent, observations="abc", actions=["u"]).observations == ("a", "b", "c")
    with pytest.raises(spaql.SettingError, match="there are 3 to give"):
        controller_of(agent, observations="ab")
    with pytest.raises(spaql.SettingError, match="there are 1 to give"):
        dataclasses.replace(tree, actions=("a", "b"))


def test_names_are_kept_in_the_model_file(tmp_path) -> None:
    spaql.SPAQL("cartpole200", seed=0).save(tmp_path / "agent.spaql")
    tree = controller_of(spaql.load(tmp_path / "agent.spaql"))
    assert tree.observations[2] == "pole angle [rad]"
    assert str(tree) == "push left"


def test_a_tree_is_a_policy() -> None:
    agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=5, seed=1).learn(
        iterations=60, progress_bar=False
    )
    tree = controller_of(agent)
    plain = spaql.evaluate(tree, agent.problem, episodes=20, seed=3)
    assert plain.returns.shape == (20,)
    env = agent.problem.make()
    observation, _ = env.reset(seed=0)
    assert tree.act(observation)[0] == agent.predict(observation, deterministic=True)[0]


@given(tree=oblique_trees())
@settings(max_examples=thorough(150))
def test_smaller_trees_with_sums_are_exact(tree: Controller) -> None:
    """Also where sums are NaN, because infinite observations cancel."""
    batch = points()
    small = minimised(tree)
    assert np.array_equal(small.act(batch), tree.act(batch))
    assert small.n_leaves <= tree.n_leaves
    within = Box(np.array([-0.5, -1.0, 0.0]), np.array([0.5, 0.0, 1.0]), dtype=np.float64)
    inside = np.clip(batch, within.low, within.high)
    small = minimised(tree, within)
    assert np.array_equal(small.act(inside), tree.act(inside))
    assert small.n_leaves <= tree.n_leaves


def _by_sum(actions: list[int]) -> Controller:
    """Nested cuts of one sum, and of the number that it consists of."""
    return Controller(
        feature=[1, -1, 0, -1, -1],
        threshold=[0.0, 0, -1.0, 0, 0],
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        leaf=[-1, 0, -1, 1, 2],
        laws=actions,
        observation_space=Box(-2.0, 2.0, (1,)),
        action_space=Discrete(3),
        combinations=[[2.0]],
    )


def test_the_smallest_tree_with_sums_is_not_claimed() -> None:
    """The second leaf is not reached: 2 x >= 0 and x < -1. Sums are taken to be independent."""
    small = minimised(_by_sum([0, 1, 2]))
    assert (small.n_leaves, small.smallest) == (3, False)
    small = minimised(_by_sum([1, 1, 1]))
    assert (small.n_leaves, small.smallest) == (1, True)


def test_the_smallest_tree_of_scores_is_not_claimed() -> None:
    """Two laws that differ may have the same actions on one side of a cut; constants never do."""
    gain = np.zeros((2, 2, 1))
    offset = np.array([[0.0, -np.inf], [-np.inf, 2.0]])
    nodes = {"feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, -1, -1], "right": [2, -1, -1]}
    spaces = {"observation_space": Box(-2.0, 2.0, (1,)), "action_space": Discrete(2)}
    constants = Controller(**nodes, leaf=[-1, 0, 1], laws=Laws(gain, offset), **spaces)
    assert minimised(constants).smallest
    gain[1, 1] = 1.0
    offset[1] = 0.0
    laws = Controller(**nodes, leaf=[-1, 0, 1], laws=Laws(gain, offset), **spaces)
    assert not minimised(laws).smallest
    same = Laws(np.zeros((2, 2, 1)), [[3.0, -np.inf], [0.0, -np.inf]])
    alike = minimised(Controller(**nodes, leaf=[-1, 0, 1], laws=same, **spaces))
    assert (alike.n_leaves, alike.smallest) == (1, True)


def test_bounds_of_another_length_are_refused() -> None:
    with pytest.raises(spaql.SettingError, match="bounds have 2 numbers, and inputs 1"):
        minimised(_by_sum([0, 1, 2]), Box(-1.0, 1.0, (2,)))
