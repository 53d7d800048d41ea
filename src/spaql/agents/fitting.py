"""Controllers fitted to a log of a plant, without an environment."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaql.agents.agent import make_settings
from spaql.agents.registry import PlanTree
from spaql.agents.run_folder import save_run
from spaql.algorithms import PlanTreeLearner
from spaql.algorithms.plantree.from_log import UNSUPPORTED, LogFit, fit_log
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.archive import write_atomically
from spaql.errors import SettingError
from spaql.formatting import counted, with_interval
from spaql.problems import Problem
from spaql.problems.from_log import problem_from_log
from spaql.problems.log import Log, LogSource, read_log
from spaql.problems.stage_cost import ConstraintLike
from spaql.stats import mean_ci95
from spaql.values import whole_number

FIT_FILE = "fit.json"
"""The file with the verdict and its evidence, in a run folder."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A controller fitted to a log, with the verdict on what the data support."""

    agent: PlanTree | None
    """A PlanTree agent whose memory is the log; None if it is not supported by the data."""
    verdict: str
    """`supported`, `doubtful`, or `not supported by the data`."""
    reasons: tuple[str, ...]
    """Why the controller is not supported, or doubtful."""
    predicted: float
    """The predicted mean return from the starts of the log."""
    half: float
    """Half-width of the interval of `predicted`, from held-out episodes."""
    logged: tuple[float, float]
    """The mean return of the episodes in the log, and the half-width of its 95 % interval."""
    clipped: float
    """Share of steps in the learned plant whose prediction is clipped at the edge of the data."""
    unseen: float
    """Share of actions outside the range that was logged near the state."""
    untried: float
    """Share of actions outside the logged range; 0 unless extrapolation was allowed."""
    is_clone: bool
    """Whether it clones the logged behaviour, because the data support nothing better that was found."""
    leaves: int
    episodes: int
    steps: int
    """Episodes and steps of the log."""
    notes: tuple[str, ...]
    """Notes on what was left out of the log or changed."""

    def as_data(self) -> dict[str, Any]:
        """Return everything but the agent as plain data."""
        items = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        items |= {"logged": {"mean": self.logged[0], "ci95": self.logged[1]}}
        items |= {"predicted": {"mean": self.predicted, "half_width": self.half}}
        return {name: value for name, value in items.items() if name not in ("agent", "half")}

    def save(self, folder: str | Path) -> None:
        """Write a run folder: that of the agent, and the verdict as `fit.json`."""
        if self.agent is None:
            raise SettingError(f"There is no controller to save: the verdict is {self.verdict}.")
        save_run(self.agent, Path(folder))
        data = {name: value for name, value in self.as_data().items() if value == value}
        write_atomically(Path(folder) / FIT_FILE, (json.dumps(data, indent=2) + "\n").encode())

    def __str__(self) -> str:
        size = "a clone of the logged behaviour, " if self.is_clone else ""
        lines = [
            f"log        {counted(self.steps, 'step')} in {counted(self.episodes, 'episode')}",
            *(f"           {note}" for note in self.notes),
            f"logged     {with_interval(*self.logged)}  (return of its episodes)",
            f"predicted  {with_interval(self.predicted, self.half)}  ({size}{counted(self.leaves, 'leaf')})",
            f"clipped    {self.clipped:.1%} of steps at the edge of the data",
            f"unseen     {self.unseen:.1%} of actions, which were not logged near the state",
            f"verdict    {self.verdict}",
            *(f"           {reason}" for reason in self.reasons),
        ]
        return "\n".join(lines)


def fit(
    log: LogSource | Sequence[LogSource],
    *,
    observations: Sequence[str],
    action: str | Sequence[str],
    cost: str | None = None,
    reward: str | None = None,
    end: str | None = None,
    action_range: Sequence[float] | None = None,
    extrapolate: bool = False,
    episode: str | None = None,
    time: str | None = None,
    horizon: int | None = None,
    setpoints: Mapping[str, str] | None = None,
    constraints: Iterable[ConstraintLike] = (),
    seed: int = 0,
    anyway: bool = False,
    **settings: Any,
) -> Fitted:
    """Return a controller fitted to a log, with a verdict on what the data support.

    PlanTree searches for controllers on a plant fitted to the log. The chosen controller is tested on
    plants fitted without some of the episodes. No environment is needed.

    Parameters
    ----------
    log
        A CSV or Parquet file, a mapping of columns, or several of these. A row has the observations and the
        action that was then taken.
    observations
        Columns of the observations, with or without their unit.
    action
        Columns of the action.
    cost
        Cost of a step, such as `"angle**2 + 0.1 * speed**2"`: an expression of the columns. A cost or a
        reward may also use `ended`, and `next_COLUMN` for the value after the step.
    reward
        Reward of a step, instead of a cost.
    end
        Condition that ends an episode, such as `"abs(angle) > 0.2"`; none by default.
    action_range
        Lowest and highest action; without them, actions are discrete: 0, 1 and so on.
    extrapolate
        Allow all of the action range, not only the part that occurs in the log. A controller that uses the
        rest is not supported by the data.
    episode
        Column that changes where an episode begins, as at each new file.
    time
        Column of times, from which missing and uneven rows are detected.
    horizon
        Steps in an episode; by default the longest of the log. Longer episodes of the log are cut.
    setpoints
        Observation and the set-point that it is to follow. Set-points are constant in the learned plant.
    constraints
        Expression that should hold after each step: episodes that violate it are counted. A price is added to
        the cost of each violation.
    seed
        Seed of all randomness; the same seed produces the same bytes.
    anyway
        Keep the controller even if it is not supported by the data.
    **settings
        Settings of PlanTree, such as `effort`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(-1, 1, (75, 20))  # 75 episodes of x' = x + 0.5 u
    >>> x = rng.uniform(-2, 2, (75, 1)) + 0.5 * (np.cumsum(u, axis=1) - u)
    >>> log = {"run": np.repeat(np.arange(75), 20), "x": x.ravel(), "u": u.ravel()}
    >>> fitted = fit(log, observations=["x"], action="u", action_range=[-1, 1], episode="run",
    ...              cost="x**2", effort=0.01)
    >>> fitted.verdict, fitted.predicted > fitted.logged[0]
    ('supported', True)
    """
    own = _settings_of(settings)
    seed = whole_number("seed", seed, least=0)
    source = _read(log, observations, action, episode=episode, time=time)
    objective: dict[str, Any] = {"cost": cost, "reward": reward, "end": end, "constraints": constraints}
    limits: dict[str, Any] = {"action_range": action_range, "extrapolate": extrapolate, "horizon": horizon}
    logged = problem_from_log(source, **objective, **limits, setpoints=setpoints)
    PlanTreeLearner(logged.problem, own)  # refuses what it cannot learn from
    result = fit_log(logged, own, seed)
    agent = None
    if anyway or result.verdict != UNSUPPORTED:
        agent = _agent_of(result, logged.problem, seed, settings)
    return _fitted(agent, result, logged.notes)


def _read(
    log: LogSource | Sequence[LogSource],
    observations: Sequence[str],
    action: str | Sequence[str],
    **more: Any,
) -> Log:
    if isinstance(observations, str):
        raise SettingError(f"observations is {observations!r}, and must be a list of column names.")
    actions = [action] if isinstance(action, str) else list(action)
    return read_log(log, observations=observations, actions=actions, **more)


def _settings_of(settings: Mapping[str, Any]) -> PlanTreeSettings:
    own = make_settings(PlanTreeLearner, settings)
    assert isinstance(own, PlanTreeSettings)
    return own


def _agent_of(result: LogFit, problem: Problem, seed: int, settings: Mapping[str, Any]) -> PlanTree:
    """Return the agent with the log as its memory, and the controller fitted to it."""
    log = {**(problem.log or {}), "verdict": result.verdict}
    agent = PlanTree(dataclasses.replace(problem, log=log), seed=seed, **settings)
    return agent.adopt(result.memory, result.rules)


def _fitted(agent: PlanTree | None, result: LogFit, notes: tuple[str, ...]) -> Fitted:
    return Fitted(
        agent=agent,
        verdict=result.verdict,
        reasons=result.reasons,
        predicted=result.predicted,
        half=result.half,
        logged=mean_ci95(result.logged),
        clipped=result.clipped,
        unseen=result.unseen,
        untried=result.untried,
        is_clone=result.is_clone,
        leaves=result.rules.n_leaves,
        episodes=len(result.memory.begins),
        steps=len(result.memory),
        notes=notes,
    )
