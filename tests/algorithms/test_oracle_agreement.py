"""Every learner against a slow second writing of the paper, step by step and bit for bit, by either rule set.

Learner and oracle get the same synthetic transitions and twin generators of random numbers. Balls are
matched by their bounds when they come into being; from then on the same ball must be relevant, chosen,
updated and split on both sides, with equal Q and visits.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from nightly import thorough
from oracle import (
    AQL,
    AUTHORS,
    SPAQL,
    SPAQLTS,
    TEXT,
    Action,
    ActionSide,
    Agent,
    Ball,
    Choices,
    Interval,
    Rules,
    State,
    boltzmann,
    rollout_action,
)
from oracle_pairs import Pairs, same_number
from spaql.algorithms import (
    AQLLearner,
    AQLSettings,
    PartitionLearner,
    SPAQLLearner,
    SPAQLSettings,
    SPAQLTSLearner,
    SPAQLTSSettings,
)
from spaql.algorithms.partition_learner import RULE_SETS, RuleSet
from spaql.kernels.partition import equations as kernel_rules
from spaql.kernels.partition.balls import Balls, new_found
from spaql.problems import Problem
from spaql.spaces import StandardActions, StandardStates

ALGORITHMS = ("aql", "spaql", "spaql-ts")
NAMED = {"authors": AUTHORS, "text": TEXT}
MIXED = st.builds(
    Rules,
    tie_is_gain=st.booleans(),
    heats_after_split=st.booleans(),
    temperature_max=st.sampled_from((10.0, math.inf)),
    balls_before_reset=st.sampled_from((None, 2, 3)),
    by_maximum=st.booleans(),
    metric=st.sampled_from(("euclidean", "infinity")),
)
"""Each difference switched by itself, as the study of their effects does."""
RULES = {name: st.just(rules) for name, rules in NAMED.items()} | {"mixed": MIXED}
EXAMPLES = thorough(35)
"""Of each algorithm with each kind of actions and each kind of rules."""
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
    rules: Rules
    state_dims: int
    actions: Actions
    horizon: int
    scaling: float
    temperature_min: float
    growth: float
    damping: float
    reference_std: float
    cost: float
    """Taken off every reward, in horizons: Q of all balls is soon negative."""
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
        common = {"rules": self.rules, "horizon": self.horizon, "scaling": self.scaling}
        name = next((name for name, rules in NAMED.items() if rules == self.rules), None)
        shared = {"scaling": self.scaling, "rules": name or "authors"}
        own = {} if name else {"rule_sets": {"authors": RuleSet(**asdict(self.rules))}}

        def learner(kind: type[Any], settings: Any) -> PartitionLearner:
            made: PartitionLearner = type(kind.__name__, (kind,), own)(problem, settings)
            return made

        if self.algorithm == "aql":
            return learner(AQLLearner, AQLSettings(**shared)), AQL(*spaces, **common)
        schedule = shared | {
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
            return learner(SPAQLLearner, SPAQLSettings(**schedule)), SPAQL(*spaces, **common)
        regulator = {"reference_std": self.reference_std}
        metric = {} if name else {"metric": self.rules.metric}
        return (
            learner(SPAQLTSLearner, SPAQLTSSettings(**schedule, **regulator, **metric)),
            SPAQLTS(*spaces, **common, **regulator, reference=reference),
        )


def runs(algorithm: str, kind: str, rules: str, max_state_dims: int = 5) -> st.SearchStrategy[Run]:
    return st.builds(
        Run,
        algorithm=st.just(algorithm),
        rules=RULES[rules],
        state_dims=st.integers(1, max_state_dims),
        actions=st.sampled_from(ACTIONS[kind]),
        horizon=st.sampled_from((1, 2, 3, 5, 8, 20) + (() if algorithm == "aql" else (50, 200))),
        scaling=st.sampled_from((0.0, 0.3, 1.0, 4.0, 20.0)),
        temperature_min=st.sampled_from((1e-4, 0.01, 0.1, 1.0, 9.0, 12.0)),
        growth=st.sampled_from((1.0, 1.3, 2.0, 5.0)),
        damping=st.sampled_from((0.5, 0.8, 1.0)),
        reference_std=st.sampled_from((0.2, 0.5, 1.2, 3.0)),
        cost=st.sampled_from((0.0, 0.0, 3.0)),
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

    def __init__(self, seed: int, dims: int, horizon: int, cost: float) -> None:
        self.rng = np.random.default_rng(seed)
        self.cost = cost * horizon
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
            return float(self.rng.uniform(-2.0, 2.0)) - self.cost
        return self.rewards[self.rng.integers(len(self.rewards))] - self.cost

    def mean_return(self) -> float:
        """Few values, so that an evaluation often equals the best."""
        return float(self.rng.integers(-3, 4))


class Lockstep:
    """A learner and the oracle, fed alike and compared after every step."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.world = World(run.seed, run.state_dims, run.horizon, run.cost)
        self.learner, self.oracle = run.learner_and_oracle()
        self.rng, self.twin_rng = (np.random.default_rng([run.seed, 1]) for _ in range(2))
        self.pairs = Pairs(self.learner.trainee, self.oracle.partitions)
        self.splits = 0
        self.updates = 0
        self.negative = 0
        """Choices among balls of which all have a negative Q."""

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
        raw = self.learner.act(self.rng)
        action = self.oracle.act(self.twin_rng)
        assert [self.pairs.twin[i] for i in relevant.ball.tolist()] == self.oracle.relevant
        assert np.array_equal(raw, self.run.actions.raw(action))
        self.negative += len(self.oracle.relevant) > 1 and all(ball.q < 0.0 for ball in self.oracle.relevant)
        ball = self.learner.trainee.locate(state, action, tree)
        assert self.pairs.twin[ball] is self.oracle.played
        self.learn(tree, ball)
        self.updates += 1

    def learn(self, tree: int, ball: int) -> None:
        reward = self.world.reward()
        next_state = self.world.state()
        terminated = bool(self.world.rng.random() < 0.1)
        self.learner.learn(reward, np.array(next_state), terminated)
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


def play(run: Run) -> Lockstep:
    """Train learner and oracle side by side."""
    lockstep = Lockstep(run)
    lockstep.assess()  # the untrained agent
    while lockstep.updates < UPDATES:
        lockstep.iterate(UPDATES - lockstep.updates)
    lockstep.check_policy()
    return lockstep


both_kinds = pytest.mark.parametrize("kind", ACTIONS)
all_rules = pytest.mark.parametrize("rules", RULES)
all_algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
@all_algorithms
@both_kinds
@all_rules
def test_learner_agrees_with_the_oracle(algorithm: str, kind: str, rules: str) -> None:
    played = []

    @seed(ALGORITHMS.index(algorithm))  # or all algorithms would meet the same examples
    @settings(max_examples=EXAMPLES, derandomize=True)
    @given(run=runs(algorithm, kind, rules))
    def agree(run: Run) -> None:
        played.append(play(run))

    agree()
    assert sum(one.updates for one in played) * len(ALGORITHMS) * len(ACTIONS) >= thorough(100_000)
    assert sum(one.negative for one in played) >= thorough(1_000)


@all_algorithms
@both_kinds
@settings(max_examples=thorough(10), derandomize=True)
@given(data=st.data())
def test_split_balls_have_an_empty_domain(algorithm: str, kind: str, data: st.DataObject) -> None:
    """With all balls in the search, equation 8 gives what a search of the unsplit ones gives."""
    lockstep = Lockstep(data.draw(runs(algorithm, kind, "mixed", max_state_dims=2)))
    lockstep.assess()
    while lockstep.updates < 30:
        lockstep.iterate(30 - lockstep.updates)
        for tree, partition in enumerate(lockstep.oracle.partitions):
            for state in [*lockstep.world.haunts, *points(lockstep.world.rng, 3, lockstep.run.state_dims)]:
                by_definition = partition.relevant_by_definition(state)
                assert by_definition == partition.relevant(state)
                found = lockstep.learner.trainee.relevant(state, tree).ball.tolist()
                assert [lockstep.pairs.twin[i] for i in found] == by_definition


def test_both_have_the_same_rule_sets() -> None:
    assert {name: asdict(rules) for name, rules in RULE_SETS.items()} == {
        name: asdict(rules) for name, rules in NAMED.items()
    }


TINY = math.ulp(0.0)


@settings(max_examples=thorough(500), derandomize=True)
@given(
    q=st.lists(
        st.sampled_from((0.0, -0.0, 1.0, -1.0, TINY, -TINY, -1e300, 1e300)) | st.floats(-1e6, 1e6),
        min_size=1,
        max_size=8,
    ),
    temperature=st.sampled_from((1e-4, 0.01, 1.0, 10.0, 1e300)),
    by_maximum=st.booleans(),
    uniform=st.floats(2.0**-20, 1.0 - 2.0**-20, width=32),
)
def test_boltzmann_agrees_with_the_oracle_at_any_q(
    q: list[float], temperature: float, by_maximum: bool, uniform: float
) -> None:
    """Also where max Q is 0, or so near to it that a quotient overflows."""
    n = len(q)
    slow = [Ball((Interval(0.0, 1.0),), (Choices((i,)),), x) for i, x in enumerate(q)]
    zeros = np.zeros(n, np.int64)
    balls = Balls(np.full(n, -1, np.int32), np.array(q), zeros, zeros, zeros[:1] + n)
    found = new_found(n, 1)
    found.ball[:] = np.arange(n)
    with np.errstate(over="ignore", invalid="ignore"):  # of NumPy's numbers, where kernels are not compiled
        chosen = kernel_rules.boltzmann(balls, found, n, temperature, by_maximum, uniform)
    assert slow[chosen] is boltzmann(slow, temperature, by_maximum, uniform)


def test_division_by_a_negative_maximum_prefers_the_lowest() -> None:
    """The paper's words, which the authors' code does not follow."""
    slow = [Ball((Interval(0.0, 1.0),), (Choices((i,)),), x) for i, x in enumerate((-3.0, -1.0, -2.0))]
    assert boltzmann(slow, 0.01, by_maximum=True, uniform=0.5).q == -3.0
    assert boltzmann(slow, 0.01, by_maximum=False, uniform=0.5).q == -1.0
