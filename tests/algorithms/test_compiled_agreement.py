"""Whole compiled episodes of real plants against the oracle, bit for bit, by either rule set.

CartPole has a list of two actions and episodes that terminate, Pendulum a Box, Pendulum with levels a list of
five; its rewards are negative, and so is every Q before long.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

import spaql
from nightly import thorough
from oracle import AQL, AUTHORS, SPAQL, SPAQLTS, TEXT, ActionSide, Agent, Choices, Interval
from oracle_pairs import Pairs, same_number
from spaql.agents import agent_types
from spaql.algorithms import PartitionLearner, SPAQLLearner
from spaql.kernels.partition.standardise import raw_actions
from spaql.simulate import EpisodeRunner, Phase

RULES = {"authors": AUTHORS, "text": TEXT}
HORIZON = 40
ITERATIONS = 60
SCHEDULE = {"temperature_min": 0.01, "growth": 2.0, "damping": 0.8}


class Plant:
    """Compiled dynamics, one step at a time."""

    def __init__(self, problem: spaql.Problem) -> None:
        assert problem.dynamics is not None
        self.problem = problem
        self.dynamics = problem.dynamics
        self.one = np.ones(1, np.bool_)
        self.state = np.zeros((1, self.dynamics.state_dims))
        self.seen = np.zeros((1, len(self.dynamics.observations)))

    def standard(self) -> tuple[float, ...]:
        return tuple(self.problem.states.standardise(self.seen[0]).tolist())

    def begin(self, rng: np.random.Generator) -> tuple[float, ...]:
        self.dynamics.plant.begin(self.one, rng, self.state)
        self.seen = self.dynamics.plant.observe(self.state)
        return self.standard()

    def play(self, action: tuple[float, ...]) -> tuple[float, tuple[float, ...], bool]:
        raw = raw_actions(self.problem.actions.action_map, np.array([action], np.float64))
        self.seen, reward, terminated = self.dynamics.plant.step_rows(self.one, raw, self.state)
        low, high = self.problem.reward_range
        return (float(reward[0]) - low) / (high - low), self.standard(), bool(terminated[0])


def oracle_for(algorithm: str, learner: PartitionLearner, scaling: float, rules: str) -> Agent:
    problem = learner.problem
    sides: list[ActionSide] = [
        Interval(0.0, 1.0) if size == learner.trainee.INTERVAL else Choices(tuple(range(size)))
        for size in problem.actions.sizes
    ]
    common: dict[str, Any] = {"rules": RULES[rules], "horizon": problem.horizon, "scaling": scaling}
    if algorithm == "aql":
        return AQL(problem.states.dims, sides, **common)
    if algorithm == "spaql":
        return SPAQL(problem.states.dims, sides, **common, **SCHEDULE)
    reference = tuple(problem.states.standardise(problem.reference).tolist())
    return SPAQLTS(problem.states.dims, sides, **common, **SCHEDULE, reference=reference, reference_std=1.2)


def episode(oracle: Agent, plant: Plant, rng: np.random.Generator) -> Iterator[bool]:
    """Train the oracle for an episode; yields of each step whether all Q to choose among were negative."""
    oracle.begin(plant.begin(rng))
    for _ in range(oracle.horizon):
        action = oracle.act(rng)
        yield len(oracle.relevant) > 1 and all(ball.q < 0.0 for ball in oracle.relevant)
        reward, state, terminated = plant.play(action)
        oracle.learn(reward, state)
        if terminated:
            return


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("algorithm", ["aql", "spaql", "spaql-ts"])
@pytest.mark.parametrize("problem", ["cartpole200", "pendulum", "pendulum5"])
def test_compiled_episodes_agree_with_the_oracle(problem: str, algorithm: str, rules: str) -> None:
    scaling = 4.0 if problem == "cartpole200" else 0.4
    kind = agent_types()[algorithm]
    agent = kind(problem, horizon=HORIZON, seed=0, rollouts=3, scaling=scaling, rules=rules)
    learner = agent._learner
    assert isinstance(learner, PartitionLearner)
    oracle = oracle_for(algorithm, learner, scaling, rules)
    plant = Plant(agent.problem)
    negative = 0
    short = 0
    with closing(EpisodeRunner(agent.problem, 3)) as runner:
        for iteration in range(thorough(ITERATIONS)):
            trained = iteration > 0
            rng = np.random.default_rng(iteration)
            twin = np.random.default_rng(iteration)
            before = runner.interactions[Phase.TRAINING]
            evaluation = learner.iterate(runner, rng, trained=trained)
            steps = runner.interactions[Phase.TRAINING] - before
            if trained:
                played = list(episode(oracle, plant, twin))
                assert steps == len(played)
                negative += sum(played)
                short += steps < HORIZON
            if iteration % 10 == 9:
                Pairs(learner.trainee, oracle.partitions).check()
            learner.assess(evaluation.mean)
            if isinstance(oracle, SPAQL):
                assert isinstance(learner, SPAQLLearner)
                oracle.assess(evaluation.mean)
                assert same_number(learner.temperature, oracle.temperature)
                assert same_number(learner.growth, oracle.growth)
                assert (learner.changes, learner.resets) == (oracle.changes, oracle.resets)
                assert learner.best.arms == len(oracle.best.arms)
    Pairs(learner.trainee, oracle.partitions).check()
    if iteration >= ITERATIONS - 1:
        assert (short > 0) == (problem == "cartpole200")
        assert negative > 0 or problem == "cartpole200"
