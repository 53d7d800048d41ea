"""TreeSearch spends the rest of a large budget, and that of any budget where the plant looks affine."""

import sys
from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql.algorithms.plantree import learner

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import easy

OWN = 600
ALL = 40_000


@pytest.fixture(autouse=True)
def _hands_over_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "OWN_STEPS", OWN)


def new() -> spaql.PlanTree:
    return spaql.PlanTree("CartPole-v1", seed=3, effort=0.05, horizon=100)


def test_the_rest_of_the_budget_is_searched_and_counted() -> None:
    agent = new().learn(ALL)
    assert not agent.policy.remembers
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


def room() -> spaql.PlanTree:
    return spaql.PlanTree(easy.PLANTS["room"].dynamics("room"), seed=3)


def test_an_affine_plant_is_handed_over_at_once() -> None:
    agent = room().learn(3_000)
    assert not agent.policy.remembers
    assert 3_000 <= agent.training_steps <= 3_100
    assert agent._learner._own_steps == 200
    assert len(agent.logged_episodes()) >= 10  # those that the law was made from are kept
    assert len(agent._learner.memory) <= agent.training_steps
    assert agent.model.samples.min() > 0


def test_a_plant_that_looks_affine_later_is_handed_over_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "OWN_STEPS", 2_000)
    agent = spaql.PlanTree(easy.PLANTS["stock"].dynamics("stock"), seed=2003).learn(2_000)
    assert 200 < agent._learner._own_steps <= 1_000
    assert agent.policy.n_leaves == 1


@pytest.mark.parametrize("stop", [100, 2_000])
def test_a_search_for_a_law_goes_on_to_the_same_bytes(tmp_path: Path, stop: int) -> None:
    part = room().learn(3_000, callback=lambda _, row: row["training_steps"] < stop)
    part.save(tmp_path / "part.spaql")
    resumed = spaql.PlanTree.load(tmp_path / "part.spaql")
    resumed.learn(3_000 - resumed.training_steps)
    assert resumed.to_bytes() == room().learn(3_000).to_bytes()


def test_a_budget_of_episodes_is_handed_over(tmp_path: Path) -> None:
    agent = room().learn(iterations=30)
    assert agent.iterations == 30
    agent.save(tmp_path / "room.spaql")
    again = spaql.PlanTree.load(tmp_path / "room.spaql")
    states = np.array([[18.0, 21.0, 5.0], [22.0, 19.0, 0.0]])
    assert np.array_equal(again.policy.predict(states)[0], agent.policy.predict(states)[0])
