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
from spaql.algorithms import SPAQLLearner, SPAQLSettings
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


def acts_only_when_trained(self, observation, *args, **kwargs):
    if not len(self.history):
        raise RuntimeError("train me first")
    return spaql.SPAQL.predict(self, observation, *args, **kwargs)


def first_differs(actions: Any, observations: Any) -> Any:
    """In a batch, the first action is the other one."""
    if observations.ndim == 1 or not len(actions):
        return actions
    actions = actions.copy()
    actions[0] = 1 - actions[0]
    return actions


CALLS = [0]


def by_turns(actions: Any, observations: Any) -> Any:
    CALLS[0] += 1
    return actions if CALLS[0] % 2 else 1 - np.asarray(actions)


def no_empty(self, observation):
    return np.asarray(observation) if len(observation) else np.zeros((1, 4))


def overwrite(self, observation):
    observation[...] = 0
    return observation


def doubles_differ(actions: Any, observations: Any) -> Any:
    return 1 - np.asarray(actions) if observations.dtype == np.float64 else actions


def far_away(actions: Any, observations: Any) -> Any:
    far = np.abs(observations).max(axis=-1) > 1e20 if observations.size else np.zeros(0, bool)
    return np.where(far, 7, actions) if observations.ndim > 1 else actions


def reshaped(self, observation):
    array = np.asarray(observation, np.float64)
    return (
        array.ravel()[: array.size // 4 * 4].reshape(-1, 4) if array.ndim != 1 or array.size != 4 else array
    )


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


def save_with_notes(self, path):
    spaql.SPAQL.save(self, path)
    Path(path).with_suffix(".txt").write_text("made by me")


def save_and_heat(self, path):
    spaql.SPAQL.save(self, path)
    self._learner.rules = self._learner.rules._replace(temperature=self._learner.rules.temperature + 0.1)


def checkpoint_of_a_stranger(self, path):
    spaql.SPAQL.save(self, path)
    if "checkpoint" in str(path):
        Path(path).write_bytes(Path(path).read_bytes() + b"!")


def shallow(self, memo):
    return self


class GlobalDraws:
    """Draws from generators that are everybody's."""

    @staticmethod
    def begin(self, observation):
        SPAQLLearner.begin(self, observation)
        np.random.random()  # noqa: NPY002

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


def learn_on(self, total_timesteps=None, *, callback=None, **kwargs):
    """Train for one iteration more than was asked for, and ask nobody."""
    spaql.SPAQL.learn(self, total_timesteps, **kwargs)
    return spaql.SPAQL.learn(self, iterations=1, progress_bar=False)


def takes_all(self, env, *, no_such_setting=0, **kwargs):
    spaql.SPAQL.__init__(self, env, **kwargs)


def takes_any_rollouts(self, env, *, rollouts=3, **kwargs):
    sound = isinstance(rollouts, int) and rollouts > 0
    spaql.SPAQL.__init__(self, env, rollouts=rollouts if sound else 3, **kwargs)


def open_settings() -> type[spaql.Agent]:
    class Open(SPAQLSettings):
        def __setattr__(self, name, value):
            object.__setattr__(self, name, value)

    kind = type("FaultyLearner", (SPAQLLearner,), {"name": "faulty", "settings_type": Open})
    return type("Faulty", (spaql.SPAQL,), {"learner_type": kind})


class Moody(spaql.Policy):
    """Acts as it pleases, whatever the seed."""

    def __init__(self, problem: spaql.Problem) -> None:
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space

    def act(self, observations, steps, rng):
        return np.random.default_rng().integers(0, 2, len(steps))


class Contrary(spaql.PartitionPolicy):
    """Does the opposite of what its leaves say."""

    def act(self, observations, steps, rng):
        return 1 - super().act(observations, steps, rng)


def contrary_policy(self):
    policy = spaql.SPAQL.policy.fget(self)
    policy.__class__ = Contrary
    return policy


def hushed(self, *args, **kwargs):
    """Go on as if nothing had happened."""
    try:
        return spaql.SPAQL.learn(self, *args, **kwargs)
    except spaql.BadEnvironmentError:
        return self


def worn(self, *args, **kwargs):
    """Keep a mark of what went wrong."""
    try:
        return spaql.SPAQL.learn(self, *args, **kwargs)
    except spaql.BadEnvironmentError:
        self._learner.trainee.balls.q[0] += 1.0
        raise


def other_error(self, *args, **kwargs):
    try:
        return spaql.SPAQL.learn(self, *args, **kwargs)
    except spaql.BadEnvironmentError as error:
        raise ValueError(str(error)) from error


def vague(self, *args, **kwargs):
    try:
        return spaql.SPAQL.learn(self, *args, **kwargs)
    except spaql.BadEnvironmentError as error:
        raise spaql.BadEnvironmentError("Something is wrong.") from error


def learn_infinities(self, reward, observation, terminated):
    SPAQLLearner.learn(self, reward, observation, terminated)
    if reward > 1e300:
        self.trainee.balls.q[0] = np.inf


FAULTY = {
    "an untrained agent acts": lambda: agent(predict=acts_only_when_trained),
    "one observation gives one action": lambda: predicting(
        lambda actions, seen: float(actions) if seen.ndim == 1 else actions
    ),
    "a batch gives a row each": lambda: predicting(
        lambda actions, seen: actions[:-1] if seen.ndim > 1 else actions
    ),
    "an empty batch gives nothing": lambda: before_acting(no_empty),
    "a batch is as its observations": lambda: predicting(first_differs),
    "the order of a batch does not matter": lambda: predicting(first_differs),
    "actions repeat": lambda: predicting(by_turns),
    "observations are left alone": lambda: before_acting(overwrite),
    "lists and doubles are observations": lambda: predicting(doubles_differ),
    "far observations are given actions": lambda: predicting(far_away),
    "nan is refused": lambda: before_acting(lambda self, observation: np.nan_to_num(observation)),
    "other shapes are refused": lambda: before_acting(reshaped),
    "acting teaches nothing": lambda: before_acting(learns_by_acting),
    "the policy acts as the agent": lambda: predicting(lambda actions, seen: 1 - np.asarray(actions)),
    "rules are the policy": lambda: agent(policy=property(contrary_policy)),
    "a loaded agent acts as before": lambda: learner(restore=forgets_the_best),
    "a loaded agent is of its kind": lambda: agent(
        learn=lambda self, *a, **k: (
            spaql.SPAQL.learn(self, *a, **k).__setattr__("history", self.history) or self
        ),
        settings=property(lambda self: random.random(), lambda self, value: None),
    ),
    "saving again gives the same bytes": lambda: learner(restore=forgets_the_growth),
    "saving changes nothing": lambda: agent(save=save_and_heat),
    "saving leaves one file": lambda: agent(save=save_with_notes),
    "training goes on to the same bytes": lambda: learner(restore=forgets_the_growth),
    "a checkpoint is the agent": lambda: agent(save=checkpoint_of_a_stranger),
    "a copy is independent": lambda: agent(__deepcopy__=shallow),
    "the same seed gives the same bytes": lambda: learner(act=GlobalDraws.act),
    "learning leaves global generators alone": lambda: learner(begin=GlobalDraws.begin),
    "the history counts iterations": lambda: agent(learn=learn_on),
    "the history counts steps": lambda: history_of(set_column("training_steps", lambda i, x: 5)),
    "the history is finite": lambda: history_of(set_column("mean_return", lambda i, x: float("nan"))),
    "time steps are kept to": lambda: agent(learn=learn_on),
    "a callback stops it": lambda: agent(learn=learn_on),
    "unknown settings are refused": lambda: agent(__init__=takes_all),
    "settings out of range are refused": lambda: agent(__init__=takes_any_rollouts),
    "settings are frozen": open_settings,
    "evaluations repeat": lambda: agent(policy=property(lambda self: Moody(self.problem))),
    "nan in an observation teaches nothing": lambda: agent(learn=hushed),
    "a reward of nan teaches nothing": lambda: agent(learn=worn),
    "an infinite reward teaches nothing": lambda: agent(learn=other_error),
    "a shape that changes teaches nothing": lambda: agent(learn=vague),
    "a world that raises teaches nothing": lambda: agent(learn=worn),
    "large rewards leave a sound agent": lambda: learner(learn=learn_infinities),
}


@pytest.mark.parametrize("check", AGENT_CHECKS, ids=lambda check: check.name)
def test_every_check_catches_the_fault_that_was_made_for_it(
    check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sound agent passes all of them: that is tested of the shipped ones, below."""
    assert check.promise.endswith(".")
    if check.name == "a damaged file is refused":  # there is one loader, so it is the one to be faulty
        monkeypatch.setattr("spaql.checks.saving.load_agent", lambda path: None)
        kind = agent()
    else:
        kind = FAULTY[check.name]()
    with AgentCase.of(kind, "cartpole200") as case:
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
    assert len(names) == len(set(names)) >= 30
