"""The one kernel and the one loop against what controllers and plants say of themselves, to the last bit."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import spaql
from candidates import sampled
from feature_controllers import random_controller
from nightly import thorough
from random_trees import random_tree
from spaql import zoo
from spaql.controllers import Controller, PartitionPolicy, Policy
from spaql.controllers.arrays import action_range
from spaql.controllers.laws import affine
from spaql.kernels.controller import LOWEST_SCORE
from spaql.simulate.batches import fresh_states
from spaql.simulate.loop import LoopTrace, PlantRows, episodes_of, play_one, play_rows
from spaql.simulate.play import returns_from
from spaql.simulate.returns import Episode

Floats = Any


def same(one: Floats, other: Floats) -> bool:
    """Return whether two arrays have the same bits."""
    a, b = (np.ascontiguousarray(x, np.float64) for x in (one, other))
    return a.shape == b.shape and bool((a.view(np.int64) == b.view(np.int64)).all())


def own_actions(tree: Controller, states: Floats) -> Floats:
    """Return the actions of a controller of rules in double precision, discrete ones from 0 on."""
    row = tree.find(states)
    with np.errstate(invalid="ignore", over="ignore"):
        sums = affine(tree.laws.offset[row], tree.laws.gain[row], states)
    if tree.discrete:
        scores = np.where(sums > LOWEST_SCORE, sums, -np.inf)
        return scores.argmax(axis=1)[:, np.newaxis].astype(np.float64)
    low, high = action_range(tree.action_space)
    sums = np.where(sums < low, low, sums)
    sums = np.where(sums > high, high, sums)
    return np.where(np.isnan(sums), tree.default_action, sums)


def near_boundaries(tree: Controller, states: Floats, rng: np.random.Generator) -> Floats:
    """Return states that are moved along one coordinate onto a cut, a limit or a tie, or next to it."""
    planes = [
        (np.eye(tree.dims)[j] if j < tree.dims else tree.combinations[j - tree.dims], float(cut))
        for j, cuts in enumerate(tree.thresholds)
        for cut in cuts
        if np.isfinite(cut)
    ]
    if not tree.discrete:
        laws = zip(tree.laws.gain.reshape(-1, tree.dims), tree.laws.offset.ravel(), strict=True)
        ends = [end for end in np.ravel(action_range(tree.action_space)) if np.isfinite(end)]
        planes += [(gain, float(end - offset)) for gain, offset in laws for end in ends if gain.any()]
    rows = states[rng.integers(len(states), size=len(states))].astype(np.float64)
    for row in rows if planes else ():
        weights, level = planes[rng.integers(len(planes))]
        j = rng.choice(np.flatnonzero(weights))
        row[j] = (level - (weights @ row - weights[j] * row[j])) / weights[j]
        for _ in range(int(rng.integers(0, 2))):
            row[j] = np.nextafter(row[j], rng.choice([-np.inf, np.inf]))
    return rows[np.isfinite(rows).all(axis=1)]


def in_environment(policy: Policy, problem: spaql.Problem, states: Floats) -> list[Episode]:
    """Return episodes of what the policy itself says, with the plant stepped from Python."""
    rows = PlantRows(problem.dynamics.plant, states)
    return episodes_of(rows.first, play_rows(policy, rows, rows.first, problem.horizon, None))


@pytest.mark.parametrize("kind", ["choices", "constants", "laws", "switching"])
@pytest.mark.parametrize("sums", [0, 2])
def test_the_kernel_acts_as_a_rule_tree(kind: str, sums: int) -> None:
    for seed in range(thorough(20)):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, 3, int(rng.integers(1, 12)), kind, sums=sums)
        states = rng.normal(size=(400, 3)) * 10.0 ** rng.integers(-3, 4, 3)
        states = np.concatenate([states, near_boundaries(tree, states, rng)])
        assert same(sampled(tree.arrays, states), own_actions(tree, states))


@pytest.mark.parametrize("name", zoo.names())
def test_a_shipped_controller_and_its_episodes_are_the_same_in_the_loop(name: str) -> None:
    shipped = zoo.load(name)
    policy = shipped.controller
    problem = shipped.problem
    states = fresh_states(policy, problem, 8, 7)
    played, spent = play_one(problem.dynamics.plant, policy.arrays, states, problem.horizon, traced=True)
    episodes = in_environment(policy, problem, states)
    assert same(played.returns[0], [episode.total for episode in episodes])
    assert played.lengths[0].tolist() == [episode.length for episode in episodes]
    assert played.terminated[0].tolist() == [episode.terminated for episode in episodes]
    assert spent == sum(episode.length for episode in episodes)
    trace = LoopTrace.of(played, policy.arrays.arrays)
    for i, episode in enumerate(episodes):
        seen = trace.x[i, : episode.length + 1, : episode.observations.shape[1]]
        assert same(seen, episode.observations)
        assert same(trace.rewards[i, : episode.length], episode.rewards)
    if not policy.remembers:
        rng = np.random.default_rng(0)
        visited = np.concatenate([episode.observations for episode in episodes])
        far = visited * rng.uniform(0.2, 5.0, (len(visited), 1))
        for rows in (visited, far, near_boundaries(policy, visited, rng)):
            assert same(sampled(policy.arrays, rows), own_actions(policy, rows))


@pytest.mark.parametrize("seed", range(4))
def test_memories_are_those_of_single_samples(seed: int) -> None:
    controller = random_controller(seed)
    rng = np.random.default_rng(seed)
    together = controller.new_memory(3)
    alone = [controller.new_memory(1) for _ in range(3)]
    for _ in range(60):
        batch = rng.normal(size=(3, 4))
        actions = controller.sample(batch, together).action
        for i in range(3):
            assert same(actions[i], controller.sample(batch[i : i + 1], alone[i]).action[0])
    assert same(together, np.concatenate(alone))


@pytest.mark.parametrize(
    ("algorithm", "problem"),
    [(spaql.AQL, "cartpole200"), (spaql.SPAQL, "pendulum5"), (spaql.SPAQLTS, "pendulum")],
)
def test_the_greedy_policy_of_a_partition_has_the_same_episodes(algorithm: Any, problem: str) -> None:
    settings = {} if algorithm is spaql.AQL else {"rollouts": 5}
    agent = algorithm(problem, seed=1, **settings).learn(iterations=30, progress_bar=False)
    policy = agent.policy
    assert isinstance(policy, PartitionPolicy)
    states = fresh_states(policy, agent.problem, 6, 7)
    plant = agent.problem.dynamics.plant
    played, _ = play_one(plant, policy.arrays, states, agent.problem.horizon)
    episodes = in_environment(policy, agent.problem, states)
    assert same(played.returns[0], [episode.total for episode in episodes])
    assert (len(policy.arrays.arrays.root) > 1) == policy.time_variant


def changed_by_one_unit(tree: Controller, rng: np.random.Generator) -> Controller:
    """Return a tree with one threshold, offset or gain that is changed in its last place."""
    laws = tree.laws
    places = [("threshold", i) for i in np.flatnonzero(tree.feature >= 0)]
    varying = ~laws.constant
    for name, table in (("offset", laws.offset), ("gain", laws.gain)):
        places += [(name, i) for i in np.argwhere(np.isfinite(table) & (table != 0)) if varying[i[0]]]
    name, place = places[rng.integers(len(places))]
    owner: Any = tree if name == "threshold" else laws
    table = getattr(owner, name).copy()
    table[tuple(np.atleast_1d(place))] = np.nextafter(table[tuple(np.atleast_1d(place))], np.inf)
    changed = dataclasses.replace(owner, **{name: table})
    return changed if name == "threshold" else dataclasses.replace(tree, laws=changed)


def test_a_parameter_that_is_changed_by_one_unit_in_its_last_place_is_noticed() -> None:
    """It must be noticed wherever the tree itself decides otherwise in one of the states.

    In about a third it does not: the change is lost in the rounding of a sum, or the law saturates.
    """
    noticed = 0
    names = ("pendulum-plantree", "pendulum-treesearch", "mountain-car-treesearch", "acrobot-plantree")
    for name in names:
        shipped = zoo.load(name)
        tree = shipped.controller
        rng = np.random.default_rng(1)
        starts = fresh_states(tree, shipped.problem, 20, 7)
        plant = shipped.problem.dynamics.plant
        played, _ = play_one(plant, tree.arrays, starts, shipped.problem.horizon, traced=True)
        visited = LoopTrace.of(played, tree.arrays.arrays).x.reshape(-1, tree.dims)
        visited = rng.permutation(visited[np.isfinite(visited).all(axis=1)])[:2000]
        for _ in range(25):
            other = changed_by_one_unit(tree, rng)
            states = np.concatenate([visited, near_boundaries(tree, visited, rng)])
            actions = sampled(other.arrays, states)
            assert same(actions, own_actions(other, states))
            noticed += not same(actions, sampled(tree.arrays, states))
    assert noticed >= 50


def test_a_plant_that_explodes_ends_its_episode() -> None:
    dynamics = spaql.Dynamics(
        id="test/Explodes-v0",
        start=lambda rng: (rng.uniform(1.0, 2.0),),
        step=lambda state, action: ((state[0] * 1e200,), state[0], False),
        observations={"x": (-9.0, 9.0)},
        actions={"u": (-1.0, 1.0)},
        horizon=9,
    )
    tree = random_tree(np.random.default_rng(0), 1, 1, "laws")
    played, spent = play_one(dynamics.plant, tree.arrays, dynamics.draw(3, np.random.default_rng(0)), 9)
    assert (played.returns == -np.inf).all()
    assert spent == int(played.lengths.sum()) < 27


def test_an_exception_of_a_plant_reaches_the_caller() -> None:
    def step(state, action):
        if state[0] > 0.5:
            raise ValueError("the tank is full")
        return (state[0] + 0.2,), 0.0, False

    dynamics = spaql.Dynamics(
        id="test/Raises-v0",
        start=lambda rng: (0.0,),
        step=step,
        observations={"x": (0.0, 1.0)},
        actions={"u": (-1.0, 1.0)},
        horizon=9,
    )
    tree = random_tree(np.random.default_rng(0), 1, 1, "laws")
    with pytest.raises(ValueError, match="the tank is full"):
        play_one(dynamics.plant, tree.arrays, dynamics.draw(1, np.random.default_rng(0)), 9)


class LaidOut(Policy):
    """Random actions, in an array that is laid out by rows (C) or by columns (F)."""

    def __init__(self, problem: spaql.Problem, order: str) -> None:
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space
        self._order = order

    def act(self, observations, steps, rng):
        actions = np.random.default_rng(0).uniform(0.0, 10.0, (len(observations), 2))
        return np.array(actions, np.float32, order=self._order)


def test_the_layout_of_actions_and_states_makes_no_difference() -> None:
    problem = spaql.make_problem("spaql/QuadrupleTank-v0", measured=False, horizon=5)
    starts = problem.dynamics.draw(3, np.random.default_rng(0))
    plain, _ = returns_from(LaidOut(problem, "C"), problem, starts)
    other, _ = returns_from(LaidOut(problem, "F"), problem, np.asfortranarray(starts))
    assert same(plain, other)
    stepped = []
    for order in "CF":
        many = PlantRows(problem.dynamics.plant, starts)
        stepped.append(many.step(LaidOut(problem, order).act(many.first, None, None), np.ones(3, bool))[0])
    assert same(*stepped)
