"""What a policy says of one observation is true."""

import re

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st

import spaql
from nightly import thorough
from oblique_trees import oblique_trees
from random_trees import random_tree
from spaql.controllers import Explanation, Laws, PartitionPolicy

AGENTS = {
    "cartpole200": lambda: spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1),
    "pendulum5": lambda: spaql.SPAQL("pendulum5", rollouts=5, seed=1),
    "aql": lambda: spaql.AQL("pendulum", rollouts=5, horizon=20, seed=1),
}


@pytest.fixture(scope="module", params=AGENTS)
def policy(request: pytest.FixtureRequest) -> PartitionPolicy:
    agent = AGENTS[request.param]().learn(iterations=150, progress_bar=False)
    assert isinstance(agent.policy, PartitionPolicy)
    return agent.policy


def _points(policy: spaql.Policy) -> np.ndarray:
    low, high = (
        np.clip(bound, -3.0, 3.0) for bound in (policy.observation_space.low, policy.observation_space.high)
    )
    return np.random.default_rng(0).uniform(low, high, (40, len(low)))


def test_the_nearest_change_is_one_and_there_is_none_before_it(policy: PartitionPolicy) -> None:
    for point in _points(policy):
        state = (np.array([0]),)
        done = policy.predict(point, state, deterministic=True)[0]
        explained = policy.explain(point)
        names = list(explained.observation)
        for change in explained.changes:
            j = names.index(change.observation)
            beyond = point.copy()
            beyond[j] = change.to if change.by > 0 else np.nextafter(change.to, -np.inf)
            assert np.any(policy.predict(beyond, state, deterministic=True)[0] != done)
            assert change.to - point[j] == pytest.approx(change.by)
            between = np.linspace(-abs(change.by), abs(change.by), 101)[1:-1]
            for x in point[j] + between:
                beyond[j] = x
                inside = policy.observation_space.low[j] <= x <= policy.observation_space.high[j]
                assert not inside or np.all(policy.predict(beyond, state, deterministic=True)[0] == done)


def test_a_number_without_a_change_changes_nothing(policy: PartitionPolicy) -> None:
    rng = np.random.default_rng(1)
    for point in _points(policy):
        done = policy.predict(point, (np.array([0]),), deterministic=True)[0]
        explained = policy.explain(point)
        named = {change.observation for change in explained.changes}
        for j, name in enumerate(explained.observation):
            if name not in named:
                for x in rng.uniform(
                    *np.clip([policy.observation_space.low[j], policy.observation_space.high[j]], -9, 9), 50
                ):
                    moved = point.copy()
                    moved[j] = x
                    assert np.all(policy.predict(moved, (np.array([0]),), deterministic=True)[0] == done)


def test_conditions_hold_and_the_best_choice_is_played(policy: PartitionPolicy) -> None:
    for point in _points(policy):
        explained = policy.explain(point)
        for said in explained.conditions:
            name = next(n for n in explained.observation if n in said)
            x = explained.observation[name]
            low = re.match(r"(?:(\S+) <= )?", said)[1]
            high = re.search(r"(?: < (\S+))?$", said)[1]
            assert low is None or x >= float(low) - 1e-3
            assert high is None or x < float(high) + 1e-3
        q = [one.q for one in explained.candidates]
        assert q == sorted(q, reverse=True)
        assert all(one.visits >= 0 for one in explained.candidates)
        if policy.actions.sizes == (2,):
            assert explained.action in explained.candidates[0].actions


@st.composite
def trees(draw: st.DrawFn) -> spaql.Controller:
    """Draw a tree of rules over two numbers: rows of questions, with leaves between them."""
    cuts = draw(st.lists(st.tuples(st.integers(0, 1), st.floats(-2, 2)), min_size=0, max_size=6))
    n = len(cuts)
    return spaql.Controller(
        feature=[cut[0] for cut in cuts] + [-1] * (n + 1),
        threshold=[cut[1] for cut in cuts] + [0.0] * (n + 1),
        left=[n + i for i in range(n)] + [-1] * (n + 1),
        right=[i + 1 if i + 1 < n else 2 * n for i in range(n)] + [-1] * (n + 1),
        leaf=[-1] * n + [draw(st.integers(0, 2)) for _ in range(n + 1)],
        laws=np.arange(3),
        observation_space=Box(-2.0, 2.0, (2,)),
        action_space=Discrete(3),
    )


@given(tree=trees(), point=st.tuples(st.floats(-2, 2), st.floats(-2, 2)))
@settings(max_examples=thorough(100))
def test_a_tree_is_explained_by_the_bounds_of_its_leaf(
    tree: spaql.Controller, point: tuple[float, float]
) -> None:
    explained = tree.explain(point)
    leaf = tree.leaf_number(np.array(point))
    low, high, _ = tree.box(leaf)
    assert explained.leaf == f"leaf {leaf} of {tree.n_leaves}"
    assert 1 <= leaf <= tree.n_leaves
    assert explained.action == tree.actions[int(tree.predict(point)[0])]
    assert explained.value == (tree.predict(point)[0],)
    assert explained.law == ""
    inside = np.nextafter(high, -np.inf)
    corners = np.stack([np.clip(low, -9, 9), np.clip(inside, -9, 9)])
    assert (tree.find(corners) == tree.find(np.array([point]))).all()


def _law_tree() -> spaql.Controller:
    """Give u = 2 x - y below x = 0.5, else u = 1; both within -1 and 1."""
    return spaql.Controller(
        feature=[0, -1, -1],
        threshold=[0.5, 0.0, 0.0],
        left=[1, -1, -1],
        right=[2, -1, -1],
        leaf=[-1, 0, 1],
        laws=Laws(gain=[[[2.0, -1.0]], [[0.0, 0.0]]], offset=[[0.0], [1.0]]),
        observation_space=Box(-2.0, 2.0, (2,)),
        action_space=Box(-1.0, 1.0, (1,)),
        observations=("x", "y [m]"),
        actions=("u [N]",),
    )


def test_a_law_is_explained_by_the_number_it_gives() -> None:
    explained = _law_tree().explain([0.25, 0.75])
    assert explained.value == (-0.25,)
    assert explained.action == "u [N] = -0.25"
    assert explained.law == "u [N] = clip(0 + 2 * x - 1 * y [m], -1, 1)"
    (change,) = explained.changes
    assert change.value == (1.0,)
    assert str(change) == "u [N] = 1, if x rose by 0.25, to 0.5"
    assert [line for line in str(explained).splitlines() if line.startswith(("does", "by"))] == [
        "does     u [N] = -0.25",
        "by       u [N] = clip(0 + 2 * x - 1 * y [m], -1, 1)",
    ]


def test_an_observation_that_never_is_is_explained_with_a_warning() -> None:
    policy = _law_tree()
    assert policy.explain([2.0, -2.0]).outside == ()
    assert policy.explain([0.0, 5.0]).outside == ("y [m] is never 5: its range is -2 to 2",)
    assert "beware   y [m] is never 5: its range is -2 to 2" in str(policy.explain([0.0, 5.0]))


def test_it_reads_well() -> None:
    agent = AGENTS["cartpole200"]().learn(iterations=150, progress_bar=False)
    lines = str(agent.policy.explain([0.0, 0.1, 0.05, -0.2])).splitlines()
    assert lines[0] == "cart position [m] = 0"
    assert [line.split()[0] for line in lines if line and line[0] != " "][4:] == [
        "does", "because", "choices", "instead",
    ]  # fmt: skip


def test_what_is_no_observation_is_refused(policy: PartitionPolicy) -> None:
    with pytest.raises(spaql.SettingError, match="numbers"):
        policy.explain([0.0])
    with pytest.raises(spaql.BadEnvironmentError, match="NaN"):
        policy.explain(np.full(policy.states.dims, np.nan))
    if policy.time_variant:
        with pytest.raises(spaql.SettingError, match="time step"):
            policy.explain(np.zeros(policy.states.dims), step=99)
    assert isinstance(policy.explain(np.zeros(policy.states.dims)), Explanation)


def _saturated_tree() -> spaql.Controller:
    """Give u = 9 x below x = -0.5, u = 5 x - 1 up to 0.5, and u = 9 - 9 y from there on, cut to -1 and 1."""
    return spaql.Controller(
        feature=[0, -1, 0, -1, -1],
        threshold=[-0.5, 0.0, 0.5, 0.0, 0.0],
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        leaf=[-1, 0, -1, 1, 2],
        laws=Laws(gain=[[[9.0, 0.0]], [[5.0, 0.0]], [[0.0, -9.0]]], offset=[[0.0], [-1.0], [9.0]]),
        observation_space=Box(-2.0, 2.0, (2,)),
        action_space=Box(-1.0, 1.0, (1,)),
        observations=("x", "y"),
        actions=("u",),
    )


def test_another_law_that_gives_the_same_action_is_no_change() -> None:
    """At x = -0.6 and at x = -0.5 the action is -1: what changes it is x = 0.5, where it is 1."""
    policy = _saturated_tree()
    explained = policy.explain([-0.6, 0.0])
    assert explained.value == (-1.0,)
    (change,) = explained.changes
    assert (change.observation, change.to, change.value) == ("x", 0.5, (1.0,))
    # With y = 2 the last law gives -1 as well.
    explained = policy.explain([-0.6, 2.0])
    assert explained.changes == ()
    assert "instead  no other law that begins with another action" in str(explained)


def test_leaves_that_say_the_same_are_no_change() -> None:
    equal = [([1, 1], Discrete(2)), (Laws(np.full((2, 1, 1), 0.25), np.zeros((2, 1))), Box(-1, 1, (1,)))]
    for laws, actions in equal:
        tree = spaql.Controller(
            feature=[0, -1, -1],
            threshold=[0.5, 0, 0],
            left=[1, -1, -1],
            right=[2, -1, -1],
            leaf=[-1, 0, 1],
            laws=laws,
            observation_space=Box(-2.0, 2.0, (1,)),
            action_space=actions,
        )
        assert tree.explain([0.0]).changes == ()


@pytest.mark.parametrize("seed", range(20))
def test_every_change_of_a_law_changes_what_is_played(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 3, 12, "laws")
    for point in rng.uniform(-2, 2, (10, 3)):
        explained = tree.explain(point)
        for change in explained.changes:
            beyond = point.copy()
            j = list(explained.observation).index(change.observation)
            beyond[j] = change.to if change.by > 0 else np.nextafter(change.to, -np.inf)
            assert np.any(tree.predict(beyond)[0] != tree.predict(point)[0])
            assert change.action != explained.action


def test_infinite_observations_that_cancel_are_explained_by_what_is_played() -> None:
    tree = spaql.Controller(
        laws=Laws(np.ones((1, 1, 2)), np.zeros((1, 1))),
        observation_space=Box(-np.inf, np.inf, (2,)),
        action_space=Box(-1.0, 1.0, (1,)),
    )
    assert tree.explain([np.inf, -np.inf]).value == (tree.predict([np.inf, -np.inf])[0][0],)


@given(tree=oblique_trees(), point=st.tuples(*[st.floats(-2, 2)] * 3))
@settings(max_examples=thorough(300))
def test_changes_across_sums_and_scores_are_played(tree: spaql.Controller, point: tuple[float, ...]) -> None:
    """What is said to change the action does, to the last bit, and is explained as it is played."""
    explained = tree.explain(point)
    done = tree.predict(point)[0]
    assert explained.value == tuple(np.ravel(done).tolist())
    for change in explained.changes:
        j = list(explained.observation).index(change.observation)
        beyond = np.array(point)
        beyond[j] = change.to if change.by > 0 else np.nextafter(change.to, -np.inf)
        assert np.any(tree.predict(beyond)[0] != done)
        assert tuple(np.ravel(tree.predict(beyond)[0]).tolist()) == change.value
        assert -2 <= beyond[j] <= 2


@given(tree=oblique_trees(("choices", "switching")), point=st.tuples(*[st.floats(-2, 2)] * 3))
@settings(max_examples=thorough(200))
def test_no_action_of_a_list_changes_before_the_nearest_change(
    tree: spaql.Controller, point: tuple[float, ...]
) -> None:
    """Random observations closer than it, or all if no change is named, have the same action."""
    explained = tree.explain(point)
    rng = np.random.default_rng(0)
    done = tree.predict(point)[0]
    nearest = {change.observation: abs(change.by) for change in explained.changes}
    for j, name in enumerate(explained.observation):
        batch = np.repeat([point], 200, axis=0)
        batch[:, j] = rng.uniform(-2, 2, 200)
        # Rounding may decide otherwise within some floats of a boundary.
        near = np.abs(batch[:, j] - point[j]) < nearest.get(name, np.inf) - 1e-9
        assert (tree.act(batch[near]) == done).all()


def _switching_tree() -> spaql.Controller:
    """Decide by x + y < 0.5, then push right where 2 x > y - 1."""
    return spaql.Controller(
        feature=[2, -1, -1],
        threshold=[0.5, 0.0, 0.0],
        left=[1, -1, -1],
        right=[2, -1, -1],
        leaf=[-1, 0, 1],
        laws=Laws(
            gain=[[[0.0, 1.0], [2.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]],
            offset=[[-1.0, 0.0], [0.0, -np.inf]],
        ),
        observation_space=Box(-2.0, 2.0, (2,)),
        action_space=Discrete(2),
        observations=("x", "y [m]"),
        actions=("push left", "push right"),
        combinations=[[1.0, 1.0]],
    )


def test_a_switching_law_is_explained_by_its_condition() -> None:
    assert str(_switching_tree().explain([-0.5, -0.5])).splitlines()[3:] == [
        "does     push right",
        "by       push right if 2 * x - y [m] > -1 else push left",
        "because  x + y [m] < 0.5",
        "         (leaf 1 of 2)",
        "instead  push left, if x fell by 0.25, below -0.75",
        "         push left, if y [m] rose by 0.5, to 0",
    ]
    explained = _switching_tree().explain([2.0, 0.0])
    assert (explained.action, explained.law) == ("push left", "")
    assert [str(change) for change in explained.changes] == [
        "push right, if x fell by 1.5, below 0.5",
        "push right, if y [m] fell by 1.5, below -1.5",
    ]


def test_a_switching_law_that_nothing_changes_says_so() -> None:
    tree = spaql.Controller(
        laws=Laws([[[1.0], [1.0]]], [[0.0, 1.0]]),
        observation_space=Box(-2.0, 2.0, (1,)),
        action_space=Discrete(2),
    )
    assert str(tree.explain([0.0])).splitlines()[-1] == "instead  nothing, whichever number changes alone"


def test_infinite_observations_are_explained_with_sums() -> None:
    for point in ([np.inf, -np.inf], [-np.inf, 0.0], [np.inf, 1.0]):
        explained = _switching_tree().explain(point)
        assert explained.value == (_switching_tree().predict(point)[0],)
