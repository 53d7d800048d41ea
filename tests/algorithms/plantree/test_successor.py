"""Of a large budget, TreeSearch spends the rest on the tree that PlanTree found."""

from pathlib import Path

import pytest

import spaql
from spaql.algorithms.plantree import learner
from spaql.policy import RuleTree

OWN, ALL = 600, 40_000


@pytest.fixture(autouse=True)
def _hands_over_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_OWN_STEPS", OWN)


def new() -> spaql.PlanTree:
    return spaql.PlanTree("CartPole-v1", seed=3, effort=0.05, horizon=100)


def test_the_rest_of_the_budget_is_searched_and_counted() -> None:
    agent = new().learn(ALL)
    assert isinstance(agent.policy, RuleTree)
    assert len(agent._learner.memory) == OWN
    assert ALL <= agent.training_steps == agent.history.last()["interactions"]
    begun = new().learn(OWN).policy
    first, last = (spaql.evaluate(one, "CartPole-v1", episodes=50, seed=7) for one in (begun, agent))
    assert last.mean >= first.mean


def test_a_budget_that_is_not_large_is_its_own() -> None:
    agent = new().learn(OWN)
    assert agent.training_steps == OWN
    assert "search" not in agent._learner.state()[0]


@pytest.mark.parametrize("stop", [OWN // 2, OWN, 10 * OWN])
def test_an_interrupted_training_goes_on_to_the_same_bytes(tmp_path: Path, stop: int) -> None:
    part = new().learn(ALL, callback=lambda _, row: row["training_steps"] < stop)
    part.save(tmp_path / "part.spaql")
    resumed = spaql.PlanTree.load(tmp_path / "part.spaql")
    assert resumed.training_steps >= stop
    resumed.learn(ALL - resumed.training_steps)
    assert resumed.to_bytes() == new().learn(ALL).to_bytes()


def test_more_steps_go_to_the_search() -> None:
    agent = new().learn(ALL)
    spent = agent.training_steps
    agent.learn(5_000)
    assert agent.training_steps >= spent + 5_000
    assert len(agent._learner.memory) == OWN
