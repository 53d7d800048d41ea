"""Controllers fitted to a log of a plant, without an environment."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaql.agents.agent import make_settings
from spaql.agents.next_experiment import NextExperiment
from spaql.agents.progress import Compiling
from spaql.agents.registry import PlanTree
from spaql.agents.run_folder import save_run
from spaql.algorithms import PlanTreeLearner
from spaql.algorithms.plantree.from_log import UNSUPPORTED, LogFit, fit_log
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.archive import write_atomically
from spaql.errors import SettingError
from spaql.formatting import counted, with_interval
from spaql.problems.from_log import problem_from_log
from spaql.problems.log import read_log
from spaql.problems.log_tables import LogSource
from spaql.problems.stage_cost import ConstraintLike
from spaql.stats import mean_ci95
from spaql.values import whole_number

FIT_FILE = "fit.json"
"""The verdict and what it rests on, in a run folder."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A controller fitted to a log, with the verdict on what the data support."""

    agent: PlanTree | None
    """A PlanTree agent whose memory is the log; None if it is not supported by the data."""
    verdict: str
    """`supported`, `doubtful`, or `not supported by the data`."""
    reasons: tuple[str, ...]
    """Why it is not supported, or doubtful."""
    predicted: float
    """The mean return that is predicted from the starts of the log."""
    half: float
    """Half the width of the interval of `predicted`, from held-out episodes."""
    logged: tuple[float, float]
    """The mean return of the log's own episodes, and half the width of its 95 % interval."""
    clipped: float
    """Share of steps in the learned plant whose prediction is cut at the edge of the data."""
    unseen: float
    """Share of actions outside those that were logged near that state."""
    untried: float
    """Share of actions outside those that were logged anywhere; 0 unless it was allowed to extrapolate."""
    is_clone: bool
    """Whether it does what the log did, because nothing better was found that the data support."""
    leaves: int
    episodes: int
    steps: int
    """Episodes and steps of the log."""
    notes: tuple[str, ...]
    """What was left out of the log or changed."""
    experiment: NextExperiment
    """What to log next."""

    def as_data(self) -> dict[str, Any]:
        """Return everything but the agent as plain data."""
        items = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        items |= {"logged": {"mean": self.logged[0], "ci95": self.logged[1]}}
        items |= {"predicted": {"mean": self.predicted, "half_width": self.half}}
        items |= {"visit": self.experiment.visit()}
        return {name: value for name, value in items.items() if name not in ("agent", "half", "experiment")}

    def save(self, folder: str | Path) -> None:
        """Write a run folder: that of the agent, and the verdict as `fit.json`."""
        if self.agent is None:
            raise SettingError(f"There is no controller to save: it is {self.verdict}.")
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
            f"unseen     {self.unseen:.1%} of actions, which were not logged near that state",
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
    constraints: Sequence[ConstraintLike] = (),
    seed: int = 0,
    anyway: bool = False,
    progress_bar: bool = False,
    **settings: Any,
) -> Fitted:
    """Return a controller fitted to a log, with a verdict on what the data support.

    No environment is needed. A plant is fitted to the log, controllers are searched for in it by PlanTree's
    search, and the one that is chosen is tested in plants that were fitted without some of the episodes.

    Parameters
    ----------
    log
        A CSV or Parquet file, `minari:` and the id of a Minari dataset on this machine, a mapping of columns,
        or several of these. A row has the observations, and the
        action that was taken upon them; the row after it, what came of it.
    observations, action
        Names of columns, with or without their unit.
    cost, reward
        One of them: an expression of the columns, of `next_` and a column for its value after the step, and
        of `ended`. Where controllers are judged it is evaluated, not learned.
    end
        An expression of the observations that holds where an episode ends. Without one, none ends.
    action_range
        The lowest and the highest value of the action; without it, actions are a list 0, 1, ... The
        controller is limited to the part of it that the log has tried.
    extrapolate
        Let the controller use all of `action_range`. If it then uses what the log has not tried, it is not
        supported by the data.
    episode
        Column whose value changes where an episode begins; each file begins one, too.
    time
        Column of times, by which missing and uneven rows are found.
    horizon
        Steps of an episode; by default the longest of the log. Longer episodes of the log are cut.
    setpoints
        Which observation is to follow which set-point. Set-points stay constant in the learned plant.
    constraints
        Expressions of the observations after a step and of its action that are to hold: `notes` says in how
        many episodes of the log each is broken. A pair of an expression and a price makes each step that
        breaks it cost more.
    seed
        Of all randomness; the same seed produces the same bytes.
    anyway
        Return the controller even if it is not supported by the data.
    progress_bar
        Show the compilation of kernels, if they are not compiled yet.
    **settings
        Of PlanTree, such as `effort`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, rows = 0.0, {"run": [], "x": [], "u": []}
    >>> for i in range(1500):  # x' = x + u, beginning anew every 20 steps
    ...     x = rng.uniform(-2, 2) if i % 20 == 0 else x
    ...     u = np.clip(-0.3 * x + rng.normal(0, 0.3), -1, 1)
    ...     for name, value in (("run", i // 20), ("x", x), ("u", u)):
    ...         rows[name].append(value)
    ...     x = x + 0.5 * u
    >>> fitted = fit(rows, observations=["x"], action="u", action_range=[-1, 1], episode="run",
    ...              cost="x**2", effort=0.01, progress_bar=False)
    >>> fitted.verdict, fitted.predicted > fitted.logged[0]
    ('supported', True)
    """
    actions = [action] if isinstance(action, str) else list(action)
    made = make_settings(PlanTreeLearner, settings)
    assert isinstance(made, PlanTreeSettings)
    seed = whole_number("seed", seed, least=0)
    if isinstance(observations, str):
        raise SettingError(f"observations is {observations!r}, and must be a list of names of columns.")
    read = read_log(log, observations=observations, actions=actions, episode=episode, time=time)
    given = problem_from_log(
        read,
        cost=cost,
        reward=reward,
        end=end,
        action_range=action_range,
        extrapolate=extrapolate,
        horizon=horizon,
        setpoints=setpoints,
        constraints=constraints,
    )
    with closing(Compiling(show=progress_bar)) as compiling:
        PlanTreeLearner(given.problem, made).warm_up(compiling)
    found = fit_log(given, made, seed)
    agent = None
    if anyway or found.verdict != UNSUPPORTED:
        described = {**(given.problem.log or {}), "verdict": found.verdict}
        problem = dataclasses.replace(given.problem, log=described)
        agent = PlanTree(problem, seed=seed, **settings).adopt(found.memory, found.rules)
    experiment = NextExperiment(given.problem, read.actions, found.places)
    return _fitted(agent, found, given.notes, experiment)


def _fitted(
    agent: PlanTree | None, found: LogFit, notes: tuple[str, ...], experiment: NextExperiment
) -> Fitted:
    return Fitted(
        agent=agent,
        verdict=found.verdict,
        reasons=found.reasons,
        predicted=found.predicted,
        half=found.half,
        logged=mean_ci95(found.logged),
        clipped=found.clipped,
        unseen=found.unseen,
        untried=found.untried,
        is_clone=found.is_clone,
        leaves=found.rules.n_leaves,
        episodes=len(found.memory.begins),
        steps=len(found.memory),
        notes=notes,
        experiment=experiment,
    )
