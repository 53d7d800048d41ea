"""A variant of SPAQL is one file with a class or two: this one never goes back to its best."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import spaql
from spaql.algorithms import SPAQLLearner, SPAQLSettings, setting
from spaql.simulate import EpisodeRunner, Evaluation


@dataclass(frozen=True, kw_only=True)
class StubbornSettings(SPAQLSettings):
    patience: int = setting(5, "iterations without gain before the temperature rises", least=1)


class StubbornLearner(SPAQLLearner):
    name = "stubborn"
    settings_type = StubbornSettings
    waited = 0

    def assess(self, mean_return: float) -> None:
        self.changes = 0  # so it is never time for a reset
        best = self.best_return
        super().assess(mean_return)
        self.waited = 0 if best is None or mean_return >= best else self.waited + 1
        if self.waited >= self.settings.patience:
            self.heat()


class Stubborn(spaql.Agent):
    learner_type = StubbornLearner


def test_the_variant_has_everything_an_agent_has(tmp_path: Path) -> None:
    agent = Stubborn("cartpole200", seed=0, rollouts=3, patience=2).learn(iterations=12, progress_bar=False)
    assert not agent.history["resets"].any()
    assert agent.history["temperature"].max() > 0.01
    agent.save(tmp_path / "stubborn.spaql")
    assert isinstance(spaql.load(tmp_path / "stubborn.spaql"), Stubborn)


class FrankLearner(SPAQLLearner):
    """Has the bonus of SPAQL as a rule of its own, or none."""

    name = "frank"

    def bonus(self, visits: int) -> float:
        return self.settings.scaling / math.sqrt(visits)


class Frank(spaql.Agent):
    learner_type = FrankLearner


class PlainLearner(SPAQLLearner):
    name = "plain"

    def bonus(self, visits: int) -> float:
        return 0.0


class Plain(spaql.Agent):
    learner_type = PlainLearner


class WrongLearner(SPAQLLearner):
    name = "wrong"

    def bonus(self, visits: int) -> float:
        return math.nan


class Wrong(spaql.Agent):
    learner_type = WrongLearner


def trained(kind: type[spaql.Agent], scaling: float) -> spaql.Agent:
    agent = kind("cartpole200", seed=0, rollouts=2, scaling=scaling, compiled=False)
    return agent.learn(iterations=4, progress_bar=False)


def test_a_bonus_of_ones_own_takes_the_place_of_the_rules_one() -> None:
    assert trained(Plain, 20.0).history.to_csv() == trained(spaql.SPAQL, 0.0).history.to_csv()
    frank = trained(Frank, 3.0)
    usual = trained(spaql.SPAQL, 3.0)
    assert np.array_equal(frank.history["training_steps"], usual.history["training_steps"])
    assert np.allclose(q_of(frank), q_of(usual), rtol=1e-12)
    assert not np.allclose(q_of(usual), q_of(trained(spaql.SPAQL, 0.0)))


def q_of(agent: spaql.Agent) -> NDArray[np.float64]:
    learner = agent._learner
    assert isinstance(learner, SPAQLLearner)
    return learner.trainee.balls.q[: learner.trainee.arms]


def test_a_bonus_that_is_no_number_is_refused_with_its_visits() -> None:
    with pytest.raises(spaql.SettingError, match=r"bonus\(1\) of WrongLearner is nan"):
        trained(Wrong, 1.0)


class IdleLearner(SPAQLLearner):
    """Forgets to play."""

    name = "idle"

    def iterate(self, runner: EpisodeRunner, rng: np.random.Generator, *, trained: bool) -> Evaluation:
        return Evaluation(np.zeros(1), np.zeros(1, np.int64), np.zeros((1, 4)))


class Idle(spaql.Agent):
    learner_type = IdleLearner


def test_a_training_that_takes_no_step_is_ended() -> None:
    with pytest.raises(spaql.SpaqlError, match=r"idle took no step in 1,000 iterations"):
        Idle("cartpole200", seed=0).learn(10, progress_bar=False)
    assert len(Idle("cartpole200", seed=0).learn(iterations=20, progress_bar=False).history) == 21
