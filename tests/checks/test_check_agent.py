"""Every shipped agent passes its checks, and every check catches an agent that was made for it."""

import gc
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spaql
from spaql.agents import agent_types
from spaql.algorithms import SPAQLLearner
from spaql.checks import AGENT_CHECKS, AgentCase


@pytest.fixture(autouse=True)
def _forget_faulty_agents() -> Iterator[None]:
    """Agents are known by their classes, as long as these live."""
    yield
    gc.collect()


def agent(**methods: Any) -> type[spaql.Agent]:
    """Give a kind of agent some of whose methods are faulty."""
    learner = type("FaultyLearner", (SPAQLLearner,), {"name": "faulty"})
    return type("Faulty", (spaql.SPAQL,), {"learner_type": learner, **methods})


def learner(**methods: Any) -> type[spaql.Agent]:
    """Give a kind of agent some of whose learner's methods are faulty."""
    kind = type("FaultyLearner", (SPAQLLearner,), {"name": "faulty", **methods})
    return type("Faulty", (spaql.SPAQL,), {"learner_type": kind})


def predicting(change: Any) -> type[spaql.Agent]:
    """Give an agent whose actions are changed by a function of them and the observations."""

    def predict(self, observation, *args, **kwargs):
        actions, state = spaql.SPAQL.predict(self, observation, *args, **kwargs)
        return change(actions, np.asarray(observation)), state

    return agent(predict=predict)


def before_acting(act: Any) -> type[spaql.Agent]:
    """Give an agent that does something with observations before it acts."""

    def predict(self, observation, *args, **kwargs):
        return spaql.SPAQL.predict(self, act(self, observation), *args, **kwargs)

    return agent(predict=predict)


def acts_only_when_trained(self):
    if not len(self.history):
        raise RuntimeError("train me first")
    return spaql.SPAQL.policy.fget(self)


def first_differs(actions: Any, observations: Any) -> Any:
    """In a batch, the first action is the other one."""
    if observations.ndim == 1 or not len(actions):
        return actions
    actions = actions.copy()
    actions[0] = 1 - actions[0]
    return actions


def far_away(actions: Any, observations: Any) -> Any:
    far = np.abs(observations).max(axis=-1) > 1e20 if observations.size else np.zeros(0, bool)
    return np.where(far, 7, actions) if observations.ndim > 1 else actions


def learns_by_acting(self, observation):
    self._learner.trainee.balls.visits[0] += 1
    return observation


def forgets_the_best(self, data, arrays):
    SPAQLLearner.restore(self, data, arrays)
    q = self.best.balls.q
    q[:] = q[::-1].copy() + np.arange(len(q)) % 7
    self.keep(self.best)


def forgets_the_growth(self, data, arrays):
    SPAQLLearner.restore(self, data, arrays)
    self.growth += 0.25


def shallow(self, memo):
    return self


class GlobalDraws:
    """Draws from generators that are everybody's."""

    @staticmethod
    def act(self, rng):
        return SPAQLLearner.act(self, np.random.default_rng(random.randrange(10**9)))


def history_of(change: Any) -> type[spaql.Agent]:
    """Give an agent that tells its history otherwise than it was."""

    def learn(self, *args, **kwargs):
        spaql.SPAQL.learn(self, *args, **kwargs)
        change(self.history)
        return self

    return agent(learn=learn)


def set_column(name: str, value: Any) -> Any:
    def change(history):
        column = history._columns[name]
        for i in range(len(column)):
            column[i] = value(i, column[i])

    return change


def takes_any_rollouts(self, env, *, rollouts=3, **kwargs):
    sound = isinstance(rollouts, int) and rollouts > 0
    spaql.SPAQL.__init__(self, env, rollouts=rollouts if sound else 3, **kwargs)


class Moody(spaql.Policy):
    """Acts as it pleases, whatever the seed."""

    def __init__(self, problem: spaql.Problem) -> None:
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space

    def act(self, observations, steps, rng):
        return np.random.default_rng().integers(0, 2, len(steps))


def worn(self, *args, **kwargs):
    """Keep a mark of what went wrong."""
    try:
        return spaql.SPAQL.learn(self, *args, **kwargs)
    except spaql.BadEnvironmentError:
        self._learner.trainee.balls.q[0] += 1.0
        raise


FAULTY = {
    "actions are in their space": [
        lambda: agent(policy=property(acts_only_when_trained)),
        lambda: predicting(lambda actions, seen: actions[:-1] if seen.ndim > 1 else actions),
        lambda: predicting(far_away),
    ],
    "a batch is as its observations": [lambda: predicting(first_differs)],
    "acting teaches nothing": [
        lambda: before_acting(learns_by_acting),
        lambda: agent(policy=property(lambda self: Moody(self.problem))),
    ],
    "a loaded agent is as it was saved": [
        lambda: learner(restore=forgets_the_best),
        lambda: learner(restore=forgets_the_growth),
    ],
    "training goes on to the same bytes": [lambda: learner(restore=forgets_the_growth)],
    "a copy is independent": [lambda: agent(__deepcopy__=shallow)],
    "the same seed gives the same bytes": [lambda: learner(act=GlobalDraws.act)],
    "the history is sound": [
        lambda: history_of(set_column("training_steps", lambda i, x: 5)),
        lambda: history_of(set_column("mean_return", lambda i, x: float("nan"))),
    ],
    "settings out of range are refused": [lambda: agent(__init__=takes_any_rollouts)],
    "a world that raises teaches nothing": [lambda: agent(learn=worn)],
}


@pytest.mark.parametrize("check", AGENT_CHECKS, ids=lambda check: check.name)
def test_every_check_catches_the_fault_that_was_made_for_it(check: Any) -> None:
    """A sound agent passes all of them: that is tested of the shipped ones, below."""
    assert check.promise.endswith(".")
    for fault in FAULTY[check.name]:
        with AgentCase.of(fault(), "cartpole200") as case:
            finding = check.run(case)
        assert finding.outcome == "failed", finding
        assert finding.why


@pytest.mark.parametrize("kind", [spaql.AQL, spaql.SPAQL, spaql.SPAQLTS])
@pytest.mark.parametrize("env", ["cartpole200", "pendulum", "pendulum5"])
def test_every_shipped_agent_passes(kind: type[spaql.Agent], env: str) -> None:
    report = spaql.check_agent(kind, env)
    assert report, str(report)
    assert [finding.name for finding in report.findings] == [check.name for check in AGENT_CHECKS]


@pytest.mark.parametrize("settings", [{"env": "CartPole-v1"}, {"env": "Pendulum-v1", "horizon": 20}])
def test_plantree_passes(settings: dict[str, Any]) -> None:
    report = spaql.check_agent(spaql.PlanTree(**settings, members=1, leaves=2))
    assert report, str(report)


@pytest.mark.parametrize("settings", [{"env": "CartPole-v1"}, {"env": "Pendulum-v1", "horizon": 20}])
def test_treesearch_passes(settings: dict[str, Any]) -> None:
    report = spaql.check_agent(spaql.TreeSearch(**settings, max_leaves=2))
    assert report, str(report)


def test_no_shipped_agent_goes_unchecked() -> None:
    shipped = {kind for kind in agent_types().values() if kind.__module__ == "spaql.agents.registry"}
    assert shipped == {spaql.AQL, spaql.SPAQL, spaql.SPAQLTS, spaql.PlanTree, spaql.TreeSearch}


def test_an_agent_is_checked_with_its_settings_and_left_as_it_is(tmp_path: Path) -> None:
    one = spaql.SPAQL("MountainCar-v0", horizon=20, scaling=3, rollouts=2, seed=9)
    one.learn(iterations=2, progress_bar=False).save(tmp_path / "a.spaql")
    report = spaql.check_agent(one)
    assert report, str(report)
    assert report.subject == "SPAQL on MountainCar-v0"
    one.save(tmp_path / "b.spaql")
    assert (tmp_path / "a.spaql").read_bytes() == (tmp_path / "b.spaql").read_bytes()


def test_there_are_enough_checks() -> None:
    from spaql.checks import PROBLEM_CHECKS

    names = [check.name for check in (*AGENT_CHECKS, *PROBLEM_CHECKS)]
    assert len(names) == len(set(names)) >= 25
