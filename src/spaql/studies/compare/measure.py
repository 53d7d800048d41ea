"""Executing a run of the comparison: train, and measure the policy on the way and at the end."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.agents import Agent, agent_type
from spaql.agents.run_folder import save_run
from spaql.archive import write_atomically
from spaql.experiments.execute import Outcome
from spaql.experiments.run import Run
from spaql.experiments.store import RunStore
from spaql.policy import Policy, RuleTree
from spaql.problems import Problem, make_problem
from spaql.rollouts import play
from spaql.stats import mean_ci95
from spaql.studies.baselines import CLASSICAL, NETWORKS, ClassicalPolicy, train_network

CURVE = "curve.csv"
"""The points of a run, in its folder."""

Save = Callable[[Path], None]


@dataclass(frozen=True)
class Point:
    """A policy after so many interactions, measured by fresh episodes."""

    interactions: int
    mean_return: float
    worst_start: float
    """The lowest return of the episodes."""
    chattering: float
    """The mean change of the action from step to step: in its unit, or of the number of a listed action."""
    size: int
    """Leaves of a tree, balls of a partition, or numbers of a law or network that an action is made of."""


def measure(run: Run, *, root: str) -> Outcome:
    """Execute a run of the comparison and leave its folder in the store under `root`."""
    store = RunStore(root)
    if not store.is_finished(run):
        curve = _Curve(run)
        save = _trainer(run.algorithm)(run, curve)
        last = curve.points[-1]
        result = {
            "fresh_return": last.mean_return,
            "fresh_ci95": curve.ci95,
            "worst_start": last.worst_start,
            "chattering": last.chattering,
            "size": last.size,
            "interactions": last.interactions,
        }
        timing = {"seconds": curve.watch.wall, "wall": curve.wall, "cpu": curve.cpu}

        def save_all(folder: Path) -> None:
            save(folder)
            write_atomically(folder / CURVE, curve.to_csv().encode())

        store.finish(run, save_all, result, timing)
    return Outcome(run, int(store.result(run.id)["result"]["interactions"]))


class _Watch:
    """Seconds spent on training alone, by the clock and by the processor."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0
        self.go_on()

    def stop(self) -> None:
        self.wall += time.perf_counter() - self._wall
        self.cpu += time.process_time() - self._cpu

    def go_on(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()


class _Curve:
    """The points of a run, as they are measured."""

    def __init__(self, run: Run) -> None:
        self.points: list[Point] = []
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.ci95 = 0.0
        self._problem = make_problem(run.problem, measured=False)
        self._starts = fresh_starts(self._problem, run.fresh_episodes, run.agent_seed + 1)
        self.watch = _Watch()

    def look(self, interactions: int, policy: Policy, size: int) -> None:
        """Measure a policy; the watch stands still meanwhile."""
        self.watch.stop()
        self.wall.append(self.watch.wall)
        self.cpu.append(self.watch.cpu)
        episodes = list(play(policy, self._problem, self._starts))
        returns = [episode.total for episode in episodes]
        changes = np.concatenate([np.abs(np.diff(episode.action_rows, axis=0)) for episode in episodes])
        mean, self.ci95 = mean_ci95(returns)
        chattering = float(changes.mean()) if changes.size else 0.0
        self.points.append(Point(interactions, mean, min(returns), chattering, size))
        self.watch.go_on()

    def to_csv(self) -> str:
        rows = [",".join(field.name for field in fields(Point))]
        rows += [",".join(map(repr, astuple(point))) for point in self.points]
        return "\n".join(rows) + "\n"


def fresh_starts(problem: Problem, n: int, seed: int) -> NDArray[np.float64]:
    """Draw states in which episodes begin, as the environment draws them."""
    env = problem.make()
    plant: Any = env.unwrapped
    states = []
    for i in range(n):
        env.reset(seed=seed if i == 0 else None)
        states.append(np.array(plant.state, np.float64))
    env.close()
    return np.array(states)


def _trainer(algorithm: str) -> Callable[[Run, _Curve], Save]:
    if algorithm in NETWORKS:
        return _network
    return {"plantree": _plantree, "classical": _classical}.get(algorithm, _spaql)


def _settings(run: Run) -> dict[str, Any]:
    return {name: value for name, value in run.settings.items() if name not in ("budget", "looks")}


def _plantree(run: Run, curve: _Curve) -> Save:
    agent = _agent(run)
    agent.learn(total_timesteps=run.settings["budget"], progress_bar=False)
    policy = agent.policy
    assert isinstance(policy, RuleTree)
    curve.look(int(agent.history.last()["interactions"]), policy, policy.n_leaves)
    return functools.partial(save_run, agent)


def _spaql(run: Run, curve: _Curve) -> Save:
    budget: int = run.settings["budget"]
    pending: list[int] = [*run.settings["looks"], budget]

    def look(agent: Agent, row: dict[str, float]) -> bool:
        due = [steps for steps in pending if steps <= row["interactions"]]
        if due:
            del pending[: len(due)]
            curve.look(int(row["interactions"]), agent.policy, int(row["arms"]))
        return row["interactions"] < budget

    agent = _agent(run)
    agent.learn(total_timesteps=budget, callback=look, progress_bar=False)
    return functools.partial(save_run, agent)


def _agent(run: Run) -> Agent:
    return agent_type(run.algorithm)(run.problem, seed=run.agent_seed, **_settings(run))


def _network(run: Run, curve: _Curve) -> Save:
    trained = train_network(
        run.algorithm,
        run.problem,
        budget=run.settings["budget"],
        seed=run.agent_seed,
        looks=run.settings["looks"],
        look=curve.look,
        **_settings(run),
    )
    return trained.save_run


def _classical(run: Run, curve: _Curve) -> Save:
    policy = ClassicalPolicy(make_problem(run.problem, measured=False))
    curve.look(0, policy, CLASSICAL[run.problem].numbers)
    return lambda folder: folder.mkdir(parents=True, exist_ok=True)
