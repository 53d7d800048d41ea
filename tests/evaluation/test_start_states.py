"""The states in which an evaluation starts."""

import gymnasium
import numpy as np
import pytest

import spaql
from spaql.controllers import RandomPolicy
from spaql.errors import SettingError
from spaql.evaluation import evaluate
from spaql.problems import make_problem
from spaql.simulate.batches import fresh_states


@pytest.mark.parametrize("algorithm", [spaql.SPAQL, None])
def test_the_starts_are_those_of_an_evaluation(algorithm) -> None:
    problem = make_problem("Pendulum-v1")
    policy = RandomPolicy(problem.states, problem.actions)
    agent = policy if algorithm is None else algorithm(problem, seed=0).policy
    states = fresh_states(agent, problem, 130, 5)
    assert problem.dynamics is not None
    seen = problem.dynamics.plant.observe(states)
    assert np.array_equal(evaluate(agent, problem, episodes=130, seed=5).starts, seen)


def test_the_starts_of_an_environment_that_is_copied_are_not_known() -> None:
    problem = make_problem(gymnasium.make("Pendulum-v1"))
    with pytest.raises(SettingError, match="it has no compiled dynamics, and runs on copies of the Pendulum"):
        fresh_states(RandomPolicy(problem.states, problem.actions), problem, 100, 0)
