"""Several tries, which differ only in their seed: their training, their results, and the selection of one."""

from __future__ import annotations

import csv
import dataclasses
import functools
import math
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spaql.agents.agent_file import MODEL_FILE, load
from spaql.agents.run_folder import CHECKPOINT_FILE, resumed, save_run
from spaql.agents.training_loop import Budget, Callback
from spaql.archive import write_atomically
from spaql.errors import SettingError, SpaqlError
from spaql.formatting import counted, with_interval
from spaql.problems import Problem
from spaql.problems.making import receive, send
from spaql.simulate import Evaluation, Purpose, fresh_episodes, try_seeds
from spaql.simulate.batches import TOGETHER
from spaql.stats import mean_ci95
from spaql.tables import comma_separated
from spaql.values import whole_number
from spaql.workers import Workers, refuse_in_import, sendable

if TYPE_CHECKING:
    from spaql.agents.agent import Agent


_CRITICAL_VALUE = 1.96
"""Standard errors beyond which a difference from the best try is significant."""


@dataclass(frozen=True)
class Try:
    """One training of several."""

    seed: int
    returns: NDArray[np.float64]
    """Returns of the selection episodes, whose starts are the same for all tries."""
    selection_steps: int
    """Steps in the selection episodes."""
    size: int | None
    """Leaves of a tree, arms of a partition; None for a policy of another kind."""
    unit: str
    """What the size counts: `leaf` or `arm`."""
    training_steps: int
    """Steps from which the try learned."""
    interactions: int
    """All steps of the training, including evaluations."""

    @property
    def mean(self) -> float:
        """The mean return of the selection episodes."""
        return mean_ci95(self.returns)[0]

    @property
    def ci95(self) -> float:
        """Half-width of its 95 % interval; NaN for a single episode."""
        return mean_ci95(self.returns)[1]

    @property
    def shown_size(self) -> str:
        """The size as text; empty for a policy without one."""
        return "" if self.size is None else counted(self.size, self.unit)


@dataclass(frozen=True, repr=False)
class Tries:
    """The results of several tries, and which one was picked.

    The selection mean of the picked try is biased upwards, because the try was picked for it: evaluate it by
    `spaql.evaluate`, whose episodes were not used to pick.

    Examples
    --------
    >>> first = Try(7, np.array([1.0, 3.0]), 20, 4, "leaf", 600, 600)
    >>> tried = [first, Try(8, np.array([2.0, 1.0]), 20, 2, "leaf", 600, 600)]
    >>> Tries(tuple(tried), pick(tried), measured=0)
    Tries(2 tries, means 1.5 to 2; picked seed 8 of 2 leaves, 1.5 in 2 selection episodes, biased upwards)
    """

    tries: tuple[Try, ...]
    """The tries, in the order of their seeds."""
    picked_index: int
    measured: int
    """Steps spent on measuring unbounded observations, once for all tries (each counts them)."""

    @property
    def picked(self) -> Try:
        """The try that was picked."""
        return self.tries[self.picked_index]

    @property
    def worst(self) -> Try:
        """The try with the lowest selection mean."""
        return min(self.tries, key=lambda result: result.mean)

    @property
    def means(self) -> NDArray[np.float64]:
        """The selection means of the tries, in their order."""
        return np.array([result.mean for result in self.tries])

    @property
    def alike(self) -> int:
        """Number of tries that do not differ significantly from the best, itself included."""
        return len(alike(self.tries))

    @property
    def training_steps(self) -> int:
        """Steps from which all tries together learned."""
        return sum(result.training_steps for result in self.tries)

    @property
    def training_interactions(self) -> int:
        """All steps of the trainings."""
        return sum(result.interactions for result in self.tries) - (len(self.tries) - 1) * self.measured

    @property
    def selection_steps(self) -> int:
        """Steps of all selection episodes."""
        return sum(result.selection_steps for result in self.tries)

    @property
    def interactions(self) -> int:
        """All steps taken to train the tries and to pick one."""
        return self.training_interactions + self.selection_steps

    def __repr__(self) -> str:
        picked = self.picked
        means = self.means
        size = f" of {picked.shown_size}" if picked.size is not None else ""
        episodes = counted(len(picked.returns), "selection episode")
        return (
            f"Tries({len(self.tries)} tries, means {means.min():.4g} to {means.max():.4g}; picked seed "
            f"{picked.seed}{size}, {picked.mean:.4g} in {episodes}, biased upwards)"
        )


def pick(tries: Sequence[Try]) -> int:
    """Return the index of the policy to keep among the tries that do not differ significantly from the best.

    The best one has the highest selection mean. Another does not differ significantly from it under two
    conditions: the mean difference between the two, episode by episode, is at most 1.96 of its standard
    errors; and its mean is at most one standard error of the best one's mean below that. The first alone
    would accept a policy that fails occasionally, because its failures widen the standard error. Among these,
    the smallest is picked; then the one with the higher mean; then the earlier try.

    Examples
    --------
    >>> rows = {1: [5.0, 7.0, 6.0], 2: [5.0, 6.0, 7.0], 3: [1.0, 2.0, 1.0]}
    >>> pick([Try(seed, np.array(row), 30, 9 - seed, "leaf", 1, 1) for seed, row in rows.items()])
    1
    """

    def order(index: int) -> tuple[float, float, int]:
        result = tries[index]
        return (math.inf if result.size is None else result.size, -result.mean, index)

    return min(alike(tries), key=order)


def alike(tries: Sequence[Try]) -> list[int]:
    """Return the indices of the tries that do not differ significantly from the best one."""
    best = max(tries, key=lambda result: result.mean)
    indices = []
    for index, result in enumerate(tries):
        differences = best.returns - result.returns
        if differences.mean() <= min(_threshold(differences), _threshold(best.returns) / _CRITICAL_VALUE):
            indices.append(index)
    return indices


def _threshold(values: NDArray[np.float64]) -> float:
    return _CRITICAL_VALUE * float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def shown_try(index: int, tries: int, result: Try) -> str:
    """Return the line that reports a try."""
    played = counted(len(result.returns), "selection episode")
    size = f", {result.shown_size}" if result.shown_size else ""
    returned = with_interval(result.mean, result.ci95)
    return f"try {index + 1} of {tries}: seed {result.seed}, {returned} in {played}{size}"


def tries_csv(seeds: Sequence[int], tries: Sequence[Try | None], picked: int | None) -> str:
    """Return a CSV table with a row for each try; an unfinished try has only a seed."""
    names = (
        "selection_mean",
        "selection_ci95",
        "selection_episodes",
        "selection_steps",
        "size",
        "training_steps",
        "interactions",
    )
    rows = []
    for index, (seed, result) in enumerate(zip(seeds, tries, strict=True)):
        chosen = "" if picked is None else str(index == picked).lower()
        cells = {"try": str(index), "seed": str(seed), "picked": chosen}
        values: tuple[float | int | None, ...] = (None,) * len(names)
        if result is not None:
            steps = (result.selection_steps, result.size, result.training_steps, result.interactions)
            values = (result.mean, result.ci95, len(result.returns), *steps)
        shown = ("" if value is None or math.isnan(value) else repr(value) for value in values)
        rows.append({**cells, **dict(zip(names, shown, strict=True))})
    return comma_separated(rows)


TRIES_FILE = "tries.csv"
"""The table of the tries, in a run folder."""
TRIES_FOLDER = "tries"
"""The folder of the tries, each in its own run folder."""
_ALONE = "train with workers=1, in this process"


Finished = Callable[[int, Try], None]
"""Called with the index and the result of each try when it is finished."""


def train_tries(
    agent: Agent,
    budget: Budget,
    folder: Path,
    *,
    tries: int,
    workers: int,
    callback: Callback | None = None,
    finished: Finished | None = None,
) -> Tries:
    """Train agents like the given one from several seeds, and turn it into the agent that is picked.

    The tries are trained in separate folders under `folder`. Existing tries are resumed, so that an
    interrupted call may be repeated with the same bytes as the result.
    """
    check_tries(agent, tries, workers, callback)
    seeds = try_seeds(agent.seed, tries)
    plan = _Plan(type(agent), dataclasses.asdict(agent.settings), agent.problem)
    jobs = [_Job(i, seed, folder / f"seed={seed}", budget, agent.seed) for i, seed in enumerate(seeds)]
    results: list[Try | None] = [None] * tries
    for index, result in _carried_out(plan, jobs, min(workers, tries), callback):
        results[index] = result
        write_atomically(folder.parent / TRIES_FILE, tries_csv(seeds, results, None).encode())
        if finished is not None:
            finished(index, result)
    done = [result for result in results if result is not None]
    picked = pick(done)
    write_atomically(folder.parent / TRIES_FILE, tries_csv(seeds, done, picked).encode())
    agent._become(load(jobs[picked].folder))
    return Tries(tuple(done), picked, agent.problem.interactions)


def learn_best(
    agent: Agent, budget: Budget, tries: int, workers: int, callback: Callback | None, show: bool
) -> Tries:
    """Train tries for `Agent.learn`: in a temporary folder, with a line for each."""

    def finished(index: int, result: Try) -> None:
        if show:
            print(shown_try(index, tries, result), file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="spaql-tries-") as folder:
        return train_tries(
            agent,
            budget,
            Path(folder) / TRIES_FOLDER,
            tries=tries,
            workers=workers,
            callback=callback,
            finished=finished,
        )


def train_in(
    folder: Path,
    agent: Agent,
    budget: Budget,
    callback: Callback | None = None,
    *,
    progress_bar: bool = False,
) -> Agent:
    """Train an agent in a run folder, or continue the run that is there; save it, and return the agent."""
    if any((folder / name).exists() for name in (CHECKPOINT_FILE, MODEL_FILE)):
        begun = resumed(agent, folder, same_seed=True)
        begun._move_to(agent.problem)
        agent = begun
    steps, iterations = budget.left(agent)
    if iterations or steps:
        agent.learn(
            steps,
            iterations=iterations,
            callback=callback,
            checkpoint=folder / CHECKPOINT_FILE,
            checkpoint_every=budget.checkpoint_every,
            progress_bar=progress_bar,
        )
    if iterations or steps or not (folder / MODEL_FILE).exists():
        save_run(agent, folder)
    return agent


def begin_table(folder: Path, seed: int, tries: int) -> None:
    """Write the table of tries, with only their seeds, before training."""
    write_atomically(folder / TRIES_FILE, tries_csv(try_seeds(seed, tries), [None] * tries, None).encode())


def root_seed(folder: Path) -> int:
    """Return the seed from which the seeds of the tries in a run folder were drawn."""
    try:
        with (folder / TRIES_FILE).open(encoding="utf-8", newline="") as file:
            return int(next(csv.DictReader(file))["seed"])
    except FileNotFoundError:
        raise SettingError(
            f"{folder} contains no tries to resume: if it contains a run, the run has one seed."
        ) from None
    except (OSError, ValueError, LookupError, StopIteration) as error:
        raise SettingError(f"{folder / TRIES_FILE} is not a table of tries: remove the folder.") from error


def check_tries(agent: Agent, tries: int, workers: int, callback: Callback | None = None) -> None:
    """Refuse tries that cannot be trained."""
    for name, value in (("tries", tries), ("workers", workers)):
        whole_number(name, value, least=1)
    if workers > 1 and tries == 1:
        raise SettingError("workers is for tries: give at least 2 tries, or leave out workers.")
    if len(agent.history):
        raise SettingError(
            f"Tries start untrained, and this agent has {agent.training_steps:,} training steps: make a new "
            "one."
        )
    if callback is not None and workers > 1:
        raise SettingError(f"A callback cannot be called from a worker process: leave it out, or {_ALONE}.")
    if workers > 1:
        refuse_in_import("the tries")


@dataclass(frozen=True)
class _Job:
    """A try to be trained."""

    index: int
    seed: int
    folder: Path
    budget: Budget
    selection_seed: int


@dataclass(frozen=True)
class _Plan:
    """The common part of all tries: how to make an untrained agent."""

    agent_type: type[Agent]
    settings: dict[str, Any]
    problem: Problem

    def agent(self, seed: int) -> Agent:
        """Return an untrained agent."""
        return self.agent_type(self.problem, seed=seed, **self.settings)

    def sent(self) -> bytes:
        """Return it pickled for a worker process."""
        try:
            plan = pickle.dumps((self.agent_type, self.settings))
        except Exception as error:  # pickle, and the objects it is given, may raise anything
            raise SettingError(
                f"{self.agent_type.__name__} cannot be sent to a worker process ({error}): define it in a "
                f"module and give its name, or {_ALONE}."
            ) from error
        return pickle.dumps((plan, send(self.problem, _ALONE)))


def _received(sent: bytes) -> _Plan:
    """Return the plan that `_Plan.sent` pickled, in another process."""
    plan, problem = pickle.loads(sent)
    try:
        agent_type, settings = pickle.loads(plan)
    except Exception as error:
        raise SettingError(f"The agent cannot be made in a worker process ({error}): {_ALONE}.") from error
    return _Plan(agent_type, settings, receive(problem, _ALONE))


def _carried_out(
    plan: _Plan, jobs: list[_Job], workers: int, callback: Callback | None
) -> Iterator[tuple[int, Try]]:
    """Yield the tries as they are finished."""
    if workers == 1:
        for job in jobs:
            try:
                yield job.index, _carry_out(plan, job, callback)
            except Exception as error:
                error.add_note(_where(job, jobs))
                raise
        return
    task = functools.partial(_carry_out_apart, plan.sent())
    with closing(Workers(workers)) as pool:
        for answer in pool.map(task, iter(jobs)):
            result = SpaqlError(answer.error) if answer.error is not None else answer.result
            if not isinstance(result, Try):
                assert result is not None
                result.add_note(_where(answer.item, jobs))
                raise result
            yield answer.item.index, result


def _where(job: _Job, jobs: list[_Job]) -> str:
    return f"(In try {job.index + 1} of {len(jobs)}, which has the seed {job.seed}.)"


def _carry_out_apart(sent: bytes, job: _Job) -> Try | Exception:
    """Train a try in a worker process; an error is returned, since a retry would not help."""
    try:
        return _carry_out(_received(sent), job)
    except Exception as error:
        return sendable(error)


def _carry_out(plan: _Plan, job: _Job, callback: Callback | None = None) -> Try:
    """Train or resume a try, save it, and run its selection episodes."""
    budget = job.budget
    agent = train_in(job.folder, plan.agent(job.seed), budget, callback)
    selection = select(agent, episodes=budget.selection_episodes, seed=job.selection_seed)
    last = agent.history.last()
    spent = int(last["training_steps"]), int(last["interactions"])
    return Try(job.seed, selection.returns, selection.steps, *agent.conclude().size, *spent)


def select(agent: Agent, *, episodes: int, seed: int) -> Evaluation:
    """Run the selection episodes of an agent, which are none of those of `spaql.evaluate`.

    Agents of the same problem start each episode in the same state, so that their returns can be compared in
    pairs. Compiled code draws the starts and the actions of a partition from one stream, so each episode has
    its own stream there.
    """
    policy = agent.conclude()
    problem = agent.problem
    drawn_alike = problem.dynamics is not None and policy.draws
    together = 1 if drawn_alike else TOGETHER
    return fresh_episodes(policy, problem, episodes, seed, Purpose.TRY_SELECTION, together=together)
