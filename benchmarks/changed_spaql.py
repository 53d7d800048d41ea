"""SPAQL with small changes that let V fall, which `what_they_learn.py` measures."""

import math
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numba import njit

import spaql
from spaql.algorithms import SPAQLLearner, SPAQLSettings, setting
from spaql.problems import Problem, make_problem
from spaql.problems.classic import start_cartpole, step_cartpole


@dataclass(frozen=True, kw_only=True)
class ChangedSettings(SPAQLSettings):
    discount: float = setting(1.0, "weight of the next state's value", above=0)


class DiscountedLearner(SPAQLLearner):
    """SPAQL with V(x') times a constant: the weight of SPAQL-TS, with a reference far outside of the cube."""

    name = "discounted-spaql"
    settings_type = ChangedSettings

    def __init__(self, problem: Problem, settings: ChangedSettings) -> None:
        super().__init__(problem, settings)
        if settings.discount < 1.0:
            far = 1e9
            self.rules = self.rules._replace(
                reference=np.full(problem.states.dims, far),
                reference_std=far / math.sqrt(-math.log(settings.discount)),
            )


class EndingLearner(DiscountedLearner):
    """SPAQL to which a state that ends the episode is worth 0."""

    name = "ending-spaql"

    def __init__(self, problem: Problem, settings: ChangedSettings) -> None:
        super().__init__(problem, settings)
        self.rules = self.rules._replace(terminal_is_zero=True)

    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        """Learn step by step in Python, as for the page's figures: compiled episodes draw other numbers."""
        super().learn(reward, observation, terminated)


class DiscountedSPAQL(spaql.Agent):
    learner_type = DiscountedLearner


class EndingSPAQL(spaql.Agent):
    learner_type = EndingLearner


step_of_cartpole = njit(step_cartpole)


def step_and_fall(state: tuple[float, ...], action: int) -> tuple[tuple[float, ...], float, bool]:
    """CartPole whose fall costs the horizon."""
    state, reward, terminated = step_of_cartpole(state, action)
    return state, reward - (200.0 if terminated else 0.0), terminated


def falling() -> Problem:
    """Return CartPole with 0 for each step and -200 for the fall, as far as the learner is concerned."""
    paper = make_problem("cartpole200").dynamics
    if "benchmark/Falling-v0" not in gymnasium.registry:
        spaql.Dynamics(
            id="benchmark/Falling-v0",
            start=start_cartpole,
            step=step_and_fall,
            observations=paper.observations,
            actions=paper.actions,
            horizon=200,
        )
    return make_problem("benchmark/Falling-v0", squash={1: 240.0, 3: 21.0}, reward_range=(1.0, 2.0))
