"""What a policy says of one observation is true."""

import re

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st

import spaql
from spaql.policy import Choices, Explanation, PartitionPolicy
from uncompiled import examples

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
            low, high = re.match(r"(?:(\S+) <= )?", said)[1], re.search(r"(?: < (\S+))?$", said)[1]
            assert low is None or x >= float(low) - 1e-3
            assert high is None or x < float(high) + 1e-3
        q = [one.q for one in explained.candidates]
        assert q == sorted(q, reverse=True)
        assert all(one.visits >= 0 for one in explained.candidates)
        if policy.actions.sizes == (2,):
            assert explained.action in explained.candidates[0].actions


@st.composite
def trees(draw: st.DrawFn) -> spaql.RuleTree:
    """Draw a tree of rules over two numbers: rows of questions, with leaves between them."""
    cuts = draw(st.lists(st.tuples(st.integers(0, 1), st.floats(-2, 2)), min_size=0, max_size=6))
    n = len(cuts)
    return spaql.RuleTree(
        feature=[cut[0] for cut in cuts] + [-1] * (n + 1),
        threshold=[cut[1] for cut in cuts] + [0.0] * (n + 1),
        left=[n + i for i in range(n)] + [-1] * (n + 1),
        right=[i + 1 if i + 1 < n else 2 * n for i in range(n)] + [-1] * (n + 1),
        leaf=[-1] * n + [draw(st.integers(0, 2)) for _ in range(n + 1)],
        leaves=Choices(np.arange(3)),
        observation_space=Box(-2.0, 2.0, (2,)),
        action_space=Discrete(3),
    )


@given(tree=trees(), point=st.tuples(st.floats(-2, 2), st.floats(-2, 2)))
@settings(max_examples=examples(100), deadline=None)
def test_a_tree_is_explained_by_the_bounds_of_its_leaf(
    tree: spaql.RuleTree, point: tuple[float, float]
) -> None:
    explained = spaql.RuleTreePolicy(tree).explain(point)
    leaf = tree.leaf_number(np.array(point))
    low, high, _ = tree.box(leaf)
    assert explained.leaf == f"leaf {leaf} of {tree.n_leaves}"
    assert 1 <= leaf <= tree.n_leaves
    assert explained.action == tree.actions[int(tree.predict(point))]
    inside = np.nextafter(high, -np.inf)
    corners = np.stack([np.clip(low, -9, 9), np.clip(inside, -9, 9)])
    assert (tree.find(corners) == tree.find(np.array([point]))).all()


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
