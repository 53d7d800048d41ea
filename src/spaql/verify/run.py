"""`spaql.verify`: what the closed loop of a controller and a plant does, proven, refuted or undecided."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.controllers import controller_of
from spaql.controllers.policy import Source, opened, policy_of
from spaql.errors import SettingError
from spaql.problems import Dynamics, EnvironmentLike, Problem, make_problem
from spaql.values import real_number
from spaql.verify.closed_loop import ClosedLoop
from spaql.verify.forward import ForwardSearch
from spaql.verify.guard import guarded
from spaql.verify.prover import BackwardSearch, Clock, Progress, reduced
from spaql.verify.replay import Counterexample, refutes
from spaql.verify.statement import Statement, default_statement
from spaql.verify.verdict import PROVEN, REFUTED, UNDECIDED, Verdict

_CELLS_FIRST = 0.2
"""Share of the time in which cells are followed for some steps, before all that they can come to is."""
_REPLAYED = 20
"""Failing starts to replay, until one fails by the plant's own functions as well."""


def verify(
    source: Source,
    env: EnvironmentLike | None = None,
    statement: Statement | None = None,
    *,
    seconds: float = 60.0,
    noise: Sequence[float] | float = 0.0,
    push: Sequence[float] | float = 0.0,
    delayed: bool = False,
    levels: int | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Prove or refute a statement about the closed loop of a controller and a plant given as equations.

    Every cell of the statement's starts is proven, refuted or undecided. What is proven holds for every
    state in the cell, for the program that runs in double precision and for the equations in it. Before it
    is returned, episodes of the compiled plant from proven states are compared with it.

    Parameters
    ----------
    source
        A controller, an agent or design, or the path of its run folder or file.
    env
        The plant; the agent's own by default.
    statement
        What to prove; by default what is sensible for the plant (see `default_statement`).
    seconds
        Processor time for the search, in seconds. The best answer until then is returned.
    noise
        Bound on the error of each observation, at every step.
    push
        Bound on a disturbance of each state variable, at every step.
    delayed
        Let every action take effect one step late; the first one that waits may be any action.
    levels
        How often the box of starts is halved along each state variable, at most.
    progress
        Called with the share that is proven and the share of the time that is spent.

    Raises
    ------
    ContradictedProofError
        If the plant itself contradicts what was proven, which is a fault of the prover.

    Examples
    --------
    >>> import spaql
    >>> def start(rng):
    ...     return (rng.uniform(-1.0, 1.0),)
    >>> def step(state, action):
    ...     return (0.9 * state[0] + 0.1 * action[0],), 0.0, False
    >>> plant = spaql.Dynamics(
    ...     id="example/Lag-v0", start=start, step=step, horizon=50, reference=(0.0,),
    ...     observations={"x": (-1, 1)}, actions={"u": (-1, 1)},
    ... )
    >>> controller = spaql.Controller(
    ...     laws=[[0.0]], observation_space=plant.observation_space, action_space=plant.action_space
    ... )
    >>> verdict = verify(controller, plant)
    >>> verdict.proven, verdict.counterexample
    (1.0, None)
    """
    options: dict[str, Any] = {"noise": noise, "push": push, "delayed": delayed}
    options |= {"seconds": seconds, "levels": levels, "progress": progress}
    verdict, loop = searched(source, env, statement, **options)
    return guarded(verdict, loop, noise)


def searched(
    source: Source,
    env: EnvironmentLike | None = None,
    statement: Statement | None = None,
    *,
    seconds: float = 60.0,
    levels: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> tuple[Verdict, ClosedLoop]:
    """Return what the prover says, not yet compared with the compiled plant, and the closed loop.

    The parameters are those of `verify`; the options are those of `ClosedLoop.of`.
    """
    real_number("seconds", seconds, above=0)
    loop = closed_loop(source, env, **options)
    statement = statement or default_statement(loop)
    search = _Search(loop, statement, progress or (lambda proven, spent: None), **options)
    if not statement.forward or statement.reaches:
        return search.by_cells(seconds, levels), loop
    if not statement.lasts:
        return search.forward(seconds), loop
    verdict = search.by_cells(_CELLS_FIRST * seconds, levels)
    if verdict.proven == 1.0 or verdict.counterexample is not None:
        return verdict, loop
    forward = search.forward((1.0 - _CELLS_FIRST) * seconds)
    better = forward if forward.proven == 1.0 else verdict
    return dataclasses.replace(better, seconds=verdict.seconds + forward.seconds), loop


class _Search:
    """The searches for an answer, and what their verdicts have in common."""

    def __init__(
        self,
        loop: ClosedLoop,
        statement: Statement,
        progress: Progress,
        *,
        noise: Sequence[float] | float = 0.0,
        push: Sequence[float] | float = 0.0,
        delayed: bool = False,
    ) -> None:
        self._loop, left_out = reduced(loop, statement)
        self._statement = statement
        self._progress = progress
        self._counterexample = functools.partial(_counterexample, loop, self._loop, statement, delayed)
        self._remarks = _remarks(left_out)
        self._common: dict[str, Any] = {
            "plant": loop.dynamics.id.removeprefix("spaql/"),
            "statement": statement,
            "names": self._loop.names,
            "left_out": left_out,
            "turning": self._loop.turning,
            "disturbed": _disturbances(loop, noise, delayed),
            "delayed": delayed,
            "fingerprint": loop.fingerprint,
        }

    def by_cells(self, seconds: float, levels: int | None) -> Verdict:
        """Return the verdict on each cell of the starts."""
        clock = Clock(seconds)
        search = BackwardSearch(self._loop, self._statement, levels, clock, self._progress)
        search.run()
        status, failing = search.statuses()
        seconds_spent = clock.spent
        counterexample = self._counterexample(failing)
        if counterexample is None and len(failing):
            status[status == REFUTED] = UNDECIDED
        proven, refuted, undecided = (float(np.mean(status == kind)) for kind in (PROVEN, REFUTED, UNDECIDED))
        return Verdict(
            **self._common,
            low=search.cells.low,
            high=search.cells.high,
            proven=proven,
            refuted=refuted,
            undecided=undecided,
            counterexample=counterexample,
            longest=search.longest if self._statement.reaches and proven > 0.0 else None,
            seconds=seconds_spent,
            finished=search.finished,
            status=status,
            times=search.cells.times[: search.cells.first[1]].reshape(status.shape),
            remarks=self._remarks,
            details={"search": search} if proven > 0.0 else {},
        )

    def forward(self, seconds: float) -> Verdict:
        """Return the verdict on whether all states that the starts can come to are allowed."""
        clock = Clock(seconds)
        search = ForwardSearch(self._loop, self._statement, clock, self._progress)
        failing, share = search.failing(self._statement.within or 5 * self._loop.dynamics.horizon)
        counterexample = self._counterexample(failing)
        if counterexample is None:
            search.run()
        proven = 1.0 if search.holds else 0.0
        refuted = share if counterexample is not None else 0.0
        status = np.full((1,) * len(self._loop.names), PROVEN if search.holds else UNDECIDED, np.int8)
        remarks = list(self._remarks)
        if search.closed:
            remarks.append(f"It stays in {search.cells:,} cells, which it comes to from all of the starts.")
        elif search.holds:
            remarks.append(f"In these steps it comes to {search.cells:,} cells.")
        elif counterexample is None and search.steps:
            remarks.append(f"Proven for the first {search.steps:,} steps only.")
        if counterexample is not None:
            remarks.append("The share that is refuted is that of starts drawn at random.")
        return Verdict(
            **self._common,
            low=search.low,
            high=search.high,
            proven=proven,
            refuted=refuted,
            undecided=1.0 - proven - refuted,
            counterexample=counterexample,
            longest=None,
            seconds=clock.spent,
            finished=search.holds or counterexample is not None,
            status=status,
            times=np.full(status.shape, -1, np.int32),
            remarks=tuple(remarks),
            details={"search": search} if search.holds else {},
        )


def _counterexample(
    loop: ClosedLoop, smaller: ClosedLoop, statement: Statement, delayed: bool, starts: NDArray[np.float64]
) -> Counterexample | None:
    """Return the first counterexample among starts of a smaller loop, those in the middle of the box first.

    They are played by the plant's own functions.
    """
    if not len(starts):
        return None
    kept = [loop.names.index(name) for name in smaller.names]
    period = np.zeros(len(loop.names))
    period[kept] = smaller.arrays.period
    box = statement.starts
    middle = np.array([sum(box.get(name, (0.0, 0.0))) / 2 for name in loop.names])
    width = np.array([np.ptp(box.get(name, (0.0, 1.0))) for name in loop.names])
    full = np.tile(middle, (len(starts), 1))
    full[:, kept] = starts
    order = np.argsort(np.abs((full - middle) / width).max(axis=1), kind="stable")
    space = loop.tree.action_space
    if isinstance(space, Discrete) and delayed:  # the action that is nearest
        full[:, -1] = np.clip(np.floor(full[:, -1] + 0.5), space.start, space.start + space.n - 1)
    for start in full[order[:_REPLAYED]]:
        counterexample = refutes(
            loop.dynamics,
            loop.tree,
            statement,
            loop.names,
            start,
            period.tolist(),
            steps=5 * loop.dynamics.horizon,
            delayed=delayed,
        )
        if counterexample is not None:
            return counterexample
    return None


def closed_loop(source: Source, env: EnvironmentLike | None = None, **options: Any) -> ClosedLoop:
    """Return the closed loop of a source and the plant that it is verified on.

    Parameters
    ----------
    source, env
        As in `verify`.
    options
        Of `ClosedLoop.of`.
    """
    owner = opened(source)
    policy = policy_of(owner)
    tree = controller_of(policy, minimise=policy.draws)
    if tree.remembers or tree.features:
        has = "memory" if tree.remembers else "features"
        raise SettingError(
            f"This controller has {has}, and a proof does not cover that: it is about a plant and a rule "
            "tree whose action depends on the observation alone. `spaql stress` plays this controller from "
            "all over the plant's states, which finds failures and proves nothing; a rule tree without "
            f"{has}, trained for the same plant, can be proven."
        )
    return ClosedLoop.of(_equations(owner, env), tree, **options)


def _equations(owner: Any, env: EnvironmentLike | None) -> Dynamics:
    if env is None:
        problem = getattr(owner, "problem", None)
        if not isinstance(problem, Problem):
            raise SettingError("A controller alone has no plant: give it as env, a Dynamics or its id.")
    elif isinstance(env, Dynamics):
        return env
    else:
        problem = make_problem(env)
    if problem.dynamics is None:
        where = "a log" if problem.log is not None else problem.runs_on
        raise SettingError(
            f"{problem.name} runs on {where}, of which no equations are known: a proof needs them. "
            "Write its step as a function of a state and an action, and give it as spaql.Dynamics (`spaql "
            "new` writes an example)."
        )
    return problem.dynamics


def _disturbances(loop: ClosedLoop, noise: Sequence[float] | float, delayed: bool) -> str:
    parts = []
    if np.any(noise):
        errors = np.broadcast_to(np.asarray(noise, np.float64), loop.noise.shape)
        parts.append(f"an error of each observation of up to {', '.join(f'{x:g}' for x in errors)}")
    if loop.push.any():
        parts.append(f"a disturbance of the state of up to {', '.join(f'{x:g}' for x in loop.push)} a step")
    if delayed:
        parts.append("every action a step late")
    return f", with {' and '.join(parts)}" if parts else ""


def _remarks(left_out: tuple[str, ...]) -> tuple[str, ...]:
    if not left_out:
        return ()
    verb = "does" if len(left_out) == 1 else "do"
    return (f"{', '.join(left_out)} {verb} not matter to it: what is proven holds for any value.",)
