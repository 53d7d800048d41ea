"""A variant of SPAQL is one file with a class or two: this one never goes back to its best."""

from dataclasses import dataclass
from pathlib import Path

import spaql
from spaql.algorithms import SPAQLLearner, SPAQLSettings
from spaql.algorithms.learner import setting


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
            self.rules = self.rules._replace(temperature=self.rules.temperature * self.growth)


class Stubborn(spaql.Agent):
    learner_type = StubbornLearner


def test_the_variant_has_everything_an_agent_has(tmp_path: Path) -> None:
    agent = Stubborn("cartpole200", seed=0, rollouts=3, patience=2).learn(12, progress_bar=False)
    assert not agent.history["resets"].any()
    assert agent.history["temperature"].max() > 0.01
    agent.save(tmp_path / "stubborn.spaql")
    assert isinstance(spaql.load(tmp_path / "stubborn.spaql"), Stubborn)
