"""Every learner against a slow second writing of the paper, step by step and bit for bit.

Learner and oracle get the same synthetic transitions and twin generators of random numbers. Balls are
matched by their bounds when they come into being; from then on the same ball must be relevant, chosen,
updated and split on both sides, with equal Q and visits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from oracle import (
    AQL,
    SPAQL,
    SPAQLTS,
    Action,
    ActionSide,
    Agent,
    Ball,
    Choices,
    Interval,
    Partition,
    State,
    rollout_action,
)
from spaql.algorithms import (
    AQLLearner,
    AQLSettings,
    PartitionLearner,
    SPAQLLearner,
    SPAQLSettings,
    SPAQLTSLearner,
    SPAQLTSSettings,
)
from spaql.partition import Partition as FastPartition
from spaql.problems import Problem
from spaql.spaces import StandardActions, StandardStates
from uncompiled import examples

ALGORITHMS = ("aql", "spaql", "spaql-ts")
EXAMPLES = 35
"""Of each algorithm with each kind of actions."""
UPDATES = 512
"""In one example; all examples together make more than 100,000."""

FIRST = -1
"""`Discrete` actions of the tests count from here, so that an index is not taken for an action."""

EXACT = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 2.0**-12)
"""Faces of balls, which belong to the upper of two neighbours, and to the last ball at 1."""
CLOSE = tuple(float(np.nextafter(x, -np.inf)) for x in (-0.5, 0.0, 0.25, 0.5, 1.0))
"""The last points before a face."""


@dataclass(frozen=True)
class Actions:
    """An action space: a finite list, or intervals in one dimension or more, cut into levels or not."""

    kind: str
    size: int

    @property
    def standard(self) -> StandardActions:
        if self.kind == "list":
            return StandardActions.of(Discrete(self.size, start=FIRST))
        if self.kind == "levels":
            return StandardActions.of(Box(-1.0, 1.0, (2,), np.float64), self.size)
        return StandardActions.of(Box(-1.0, 1.0, (self.size,), np.float64))

    @property
    def sides(self) -> list[ActionSide]:
        """What the oracle's first ball holds."""
        if self.kind == "interval":
            return [Interval(0.0, 1.0)] * self.size
        return [Choices(tuple(range(self.size)))] * (1 if self.kind == "list" else 2)

    def raw(self, action: Action) -> Any:
        """What the environment must be given for a standard action."""
        if self.kind == "list":
            return int(action[0]) + FIRST
        if self.kind == "levels":
            return np.array([-1.0 + a * (2.0 / (self.size - 1)) for a in action])
        return np.array(action)


ACTIONS = {
    "interval": (Actions("interval", 1), Actions("interval", 2)),
    "finite": (*(Actions("list", n) for n in range(2, 8)), Actions("levels", 2), Actions("levels", 3)),
}


@dataclass(frozen=True)
class Run:
    """What an example is made of; the seed gives its transitions."""

    algorithm: str
    state_dims: int
    actions: Actions
    horizon: int
    scaling: float
    temperature_min: float
    growth: float
    damping: float
    reference_std: float
    metric: str
    seed: int

    def learner_and_oracle(self) -> tuple[PartitionLearner, Agent]:
        reference = points(np.random.default_rng(self.seed), 1, self.state_dims)[0]
        problem = Problem(
            name="synthetic",
            env=None,
            horizon=self.horizon,
            states=StandardStates.of(Box(-1.0, 1.0, (self.state_dims,), np.float64)),
            actions=self.actions.standard,
            reference=reference,
        )
        spaces = (self.state_dims, self.actions.sides)
        common = {"horizon": self.horizon, "scaling": self.scaling}
        if self.algorithm == "aql":
            return AQLLearner(problem, AQLSettings(scaling=self.scaling)), AQL(*spaces, **common)
        schedule = {
            "scaling": self.scaling,
            "temperature_min": self.temperature_min,
            "temperature_growth": self.growth,
            "temperature_damping": self.damping,
        }
        common |= {
            "temperature_min": self.temperature_min,
            "growth": self.growth,
            "damping": self.damping,
        }
        if self.algorithm == "spaql":
            return SPAQLLearner(problem, SPAQLSettings(**schedule)), SPAQL(*spaces, **common)
        regulator = {"reference_std": self.reference_std, "metric": self.metric}
        return (
            SPAQLTSLearner(problem, SPAQLTSSettings(**schedule, **regulator)),
            SPAQLTS(*spaces, **common, **regulator, reference=reference),
        )


def runs(algorithm: str, kind: str, max_state_dims: int = 5) -> st.SearchStrategy[Run]:
    return st.builds(
        Run,
        algorithm=st.just(algorithm),
        state_dims=st.integers(1, max_state_dims),
        actions=st.sampled_from(ACTIONS[kind]),
        horizon=st.sampled_from((1, 2, 3, 5, 8, 20) + (() if algorithm == "aql" else (50, 200))),
        scaling=st.sampled_from((0.0, 0.3, 1.0, 4.0, 20.0)),
        temperature_min=st.sampled_from((1e-4, 0.01, 0.1, 1.0, 9.0, 12.0)),
        growth=st.sampled_from((1.0, 1.3, 2.0, 5.0)),
        damping=st.sampled_from((0.5, 0.8, 1.0)),
        reference_std=st.sampled_from((0.2, 0.5, 1.2, 3.0)),
        metric=st.sampled_from(("euclidean", "infinity")),
        seed=st.integers(0, 2**32 - 1),
    )


def points(rng: np.random.Generator, n: int, dims: int) -> list[State]:
    """Make states: every coordinate is random, on a face of a ball, or just below one."""
    random = rng.uniform(-1.0, 1.0, (n, dims))
    special = rng.choice(EXACT + CLOSE, (n, dims))
    rows = np.where(rng.random((n, dims)) < 0.5, random, special)
    return [tuple(row) for row in rows.tolist()]


class World:
    """Transitions that follow no law, with states that return often enough for balls to be split."""

    def __init__(self, seed: int, dims: int, horizon: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.dims = dims
        self.haunts = points(self.rng, int(self.rng.integers(1, 7)), dims)
        self.novelty = float(self.rng.choice([0.0, 0.2, 0.5])) / dims
        self.rewards = [-float(horizon), -1.0, 0.0, 0.5, 1.0]

    def state(self) -> State:
        if self.rng.random() < self.novelty:
            return points(self.rng, 1, self.dims)[0]
        return self.haunts[self.rng.integers(len(self.haunts))]

    def reward(self) -> float:
        if self.rng.random() < 0.5:
            return float(self.rng.uniform(-2.0, 2.0))
        return self.rewards[self.rng.integers(len(self.rewards))]

    def mean_return(self) -> float:
        """Few values, so that an evaluation often equals the best."""
        return float(self.rng.integers(-3, 4))


def place(ball: Ball) -> tuple[Any, ...]:
    """Where the oracle's ball lies: centre and radius of each side, or its remaining actions."""
    return (
        tuple((side.centre, side.radius) for side in ball.states),
        tuple(
            side.actions if isinstance(side, Choices) else (side.centre, side.radius) for side in ball.actions
        ),
    )


def places(partition: FastPartition, tree: int, first: int = 0) -> dict[tuple[Any, ...], int]:
    """Where the unsplit balls of a tree lie, from an index on."""
    leaves = partition.leaves(tree)
    new = leaves.ball >= first
    centre = (leaves.state_low[new] + leaves.state_high[new]) / 2
    radius = (leaves.state_high[new] - leaves.state_low[new]) / 2
    sides = []
    for size, low, width in zip(
        partition.balls.action_sizes, leaves.action_low[new].T, leaves.action_size[new].T, strict=True
    ):
        if size == FastPartition.INTERVAL:
            unit = FastPartition.INTERVAL / 2
            half = width / (2 * unit)
            sides.append(list(zip(low / unit - 1 + half, half, strict=True)))
        else:
            sides.append([tuple(range(a, a + m)) for a, m in zip(low, width, strict=True)])
    states = [tuple(zip(*row, strict=True)) for row in zip(centre.tolist(), radius.tolist(), strict=True)]
    keys = zip(states, zip(*sides, strict=True), strict=True)
    return dict(zip(keys, leaves.ball[new].tolist(), strict=True))


def same_number(x: float, y: float) -> bool:
    """Whether two floats are equal bit for bit."""
    return float(x).hex() == float(y).hex()


class Pairs:
    """Which ball of a partition is which ball of the oracle's."""

    def __init__(self, partition: FastPartition, slow: list[Partition]) -> None:
        self.partition = partition
        self.slow = slow
        self.twin: dict[int, Ball] = {}
        for tree, peer in enumerate(slow):
            self.add(tree, peer.arms)

    def add(self, tree: int, balls: list[Ball], first: int = 0) -> None:
        """Pair the unsplit balls of a tree, from an index on, with these, all of them."""
        index = places(self.partition, tree, first)
        expected = {place(ball): ball for ball in balls}
        assert index.keys() == expected.keys()
        assert len(index) == len(balls)
        self.twin |= {i: expected[key] for key, i in index.items()}

    def split(self, tree: int, ball: int, children: list[Ball]) -> None:
        """Pair the children of a ball."""
        self.add(tree, children, self.partition.n_balls - len(children))
        del self.twin[ball]

    def check_ball(self, index: int, ball: Ball) -> None:
        assert same_number(self.partition.balls.q[index], ball.q)
        assert self.partition.balls.visits[index] == ball.visits

    def check_sizes(self) -> None:
        assert self.partition.arms == sum(len(peer.arms) for peer in self.slow) == len(self.twin)
        assert self.partition.n_balls == sum(len(peer.balls) for peer in self.slow)

    def check(self) -> None:
        """Compare everything."""
        self.check_sizes()
        indices = list(self.twin)
        q, visits = self.partition.balls.q[indices], self.partition.balls.visits[indices]
        assert q.tobytes() == np.array([ball.q for ball in self.twin.values()]).tobytes()
        assert visits.tolist() == [ball.visits for ball in self.twin.values()]


class Lockstep:
    """A learner and the oracle, fed alike and compared after every step."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.world = World(run.seed, run.state_dims, run.horizon)
        self.learner, self.oracle = run.learner_and_oracle()
        self.rng, self.twin_rng = (np.random.default_rng([run.seed, 1]) for _ in range(2))
        self.pairs = Pairs(self.learner.trainee, self.oracle.partitions)
        self.splits = 0
        self.updates = 0

    def iterate(self, updates: int) -> None:
        """One training episode, of at most this many updates, and its evaluation."""
        length = min(int(self.world.rng.integers(1, self.run.horizon + 1)), updates)
        if self.world.rng.random() < 0.5:
            length = min(self.run.horizon, updates)
        state = self.world.state()
        self.learner.begin(np.array(state))
        self.oracle.begin(state)
        self.splits = 0
        for _ in range(length):
            self.step()
        self.pairs.check()
        self.assess()

    def step(self) -> None:
        tree = self.oracle.step if self.run.algorithm == "aql" else 0
        state = self.oracle.state
        relevant = self.learner.trainee.relevant(state, tree)
        raw, action = self.learner.act(self.rng), self.oracle.act(self.twin_rng)
        assert [self.pairs.twin[i] for i in relevant.ball.tolist()] == self.oracle.relevant
        assert np.array_equal(raw, self.run.actions.raw(action))
        ball = self.learner.trainee.locate(state, action, tree)
        assert self.pairs.twin[ball] is self.oracle.played
        self.learn(tree, ball)
        self.updates += 1

    def learn(self, tree: int, ball: int) -> None:
        reward, next_state = self.world.reward(), self.world.state()
        self.learner.learn(reward, np.array(next_state), bool(self.world.rng.random() < 0.1))
        children = self.oracle.learn(reward, next_state)
        self.pairs.check_ball(ball, self.oracle.played)
        if children:
            self.splits += 1
            self.pairs.split(tree, ball, children)
        assert self.learner.splits == self.splits
        self.pairs.check_sizes()

    def assess(self) -> None:
        mean_return = self.world.mean_return()
        self.learner.assess(mean_return)
        if not isinstance(self.oracle, SPAQL):
            return
        assert isinstance(self.learner, SPAQLLearner)
        self.oracle.assess(mean_return)
        assert self.learner.best_return == self.oracle.best_return
        assert same_number(self.learner.rules.temperature, self.oracle.temperature)
        assert same_number(self.learner.growth, self.oracle.growth)
        assert self.learner.changes == self.oracle.changes
        assert self.learner.resets == self.oracle.resets
        assert self.learner.best.arms == len(self.oracle.best.arms)
        if self.oracle.resets:
            self.pairs = Pairs(self.learner.trainee, self.oracle.partitions)
            self.pairs.check()

    def check_policy(self) -> None:
        """Compare the kept partition, and the actions that rollouts draw from it."""
        kept = self.oracle.partitions
        if isinstance(self.oracle, SPAQL):
            kept = [self.oracle.best]
        policy = self.learner.policy
        Pairs(policy.partition, kept).check()
        states = self.world.haunts + points(self.world.rng, 4, self.run.state_dims)
        steps = self.world.rng.integers(0, self.run.horizon, len(states))
        drawn = policy.act(np.array(states), steps, self.rng)
        for raw, state, step in zip(drawn, states, steps, strict=True):
            action = rollout_action(kept[step if len(kept) > 1 else 0], state, self.twin_rng)
            assert np.array_equal(raw, self.run.actions.raw(action))


def play(run: Run) -> int:
    """Train learner and oracle side by side; gives the number of updates."""
    lockstep = Lockstep(run)
    lockstep.assess()  # the untrained agent
    while lockstep.updates < UPDATES:
        lockstep.iterate(UPDATES - lockstep.updates)
    lockstep.check_policy()
    return lockstep.updates


both_kinds = pytest.mark.parametrize("kind", ACTIONS)
all_algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
@all_algorithms
@both_kinds
def test_learner_agrees_with_the_oracle(algorithm: str, kind: str) -> None:
    played = []

    @seed(ALGORITHMS.index(algorithm))  # or all algorithms would meet the same examples
    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
    @given(run=runs(algorithm, kind))
    def agree(run: Run) -> None:
        played.append(play(run))

    agree()
    assert sum(played) * len(ALGORITHMS) * len(ACTIONS) >= 100_000


@all_algorithms
@both_kinds
@settings(max_examples=examples(10), deadline=None, derandomize=True)
@given(data=st.data())
def test_split_balls_have_an_empty_domain(algorithm: str, kind: str, data: st.DataObject) -> None:
    """With all balls in the search, definition (5) gives what a search of the unsplit ones gives."""
    lockstep = Lockstep(data.draw(runs(algorithm, kind, max_state_dims=2)))
    lockstep.assess()
    while lockstep.updates < 30:
        lockstep.iterate(30 - lockstep.updates)
        for tree, partition in enumerate(lockstep.oracle.partitions):
            for state in [*lockstep.world.haunts, *points(lockstep.world.rng, 3, lockstep.run.state_dims)]:
                by_definition = partition.relevant_by_definition(state)
                assert by_definition == partition.relevant(state)
                found = lockstep.learner.trainee.relevant(state, tree).ball.tolist()
                assert [lockstep.pairs.twin[i] for i in found] == by_definition
