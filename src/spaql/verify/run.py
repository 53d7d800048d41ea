"""`spaql.verify`: what the closed loop of a controller and a plant does, proven, refuted or undecided."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.controllers import Controller, controller_of
from spaql.controllers.resolve import Source, opened, policy_of
from spaql.errors import SettingError
from spaql.plants import PlantModel
from spaql.problems import Dynamics, EnvironmentLike, Problem, make_problem
from spaql.values import real_number
from spaql.verify.closed_loop import ClosedLoop, conversion_error
from spaql.verify.forward import ForwardSearch
from spaql.verify.guard import guarded
from spaql.verify.learned import LearnedPlant
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
    number: str | None = None,
    learned: bool = False,
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
        Processor time for the search. The best answer until then is returned.
    noise
        Bound of the error of each observation, at every step.
    push
        Bound of what is added to each number of the state, at every step.
    delayed
        Whether every action comes a step late; the first one that waits may be any action.
    number
        Prove it of the exported controller in this number type, `double`, `float` or `fixed`, as it converts
        observations and rounds actions; by default of the controller itself.
    learned
        Prove it of the plant that a PlanTree agent has learned, not of the real one: the verdict says so.
    levels
        How often the box of starts is halved along each number of the state, at most.
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
    verdict, loop = searched(
        source,
        env,
        statement,
        seconds=seconds,
        noise=noise,
        push=push,
        delayed=delayed,
        number=number,
        learned=learned,
        levels=levels,
        progress=progress,
    )
    return guarded(verdict, loop, noise)


def searched(
    source: Source,
    env: EnvironmentLike | None = None,
    statement: Statement | None = None,
    *,
    seconds: float = 60.0,
    noise: Sequence[float] | float = 0.0,
    push: Sequence[float] | float = 0.0,
    delayed: bool = False,
    number: str | None = None,
    learned: bool = False,
    levels: int | None = None,
    progress: Progress | None = None,
) -> tuple[Verdict, ClosedLoop]:
    """Return what the prover says, not yet compared with the compiled plant, and the closed loop.

    The parameters are those of `verify`.
    """
    real_number("seconds", seconds, above=0)
    options: dict[str, Any] = {"noise": noise, "push": push, "delayed": delayed, "number": number}
    loop = closed_loop(source, env, learned=learned, asked=statement, **options)
    asked = default_statement(loop) if statement is None else statement
    if learned and statement is None:
        loop = closed_loop(source, env, learned=True, asked=asked, **options)
    smaller, left_out = reduced(loop, asked)
    report = progress or (lambda proven, spent: None)
    common: dict[str, Any] = {
        "plant": loop.dynamics.id.removeprefix("spaql/"),
        "learned": loop.dynamics.text if isinstance(loop.dynamics, LearnedPlant) else "",
        "statement": asked,
        "names": smaller.names,
        "left_out": left_out,
        "turning": smaller.turning,
        "disturbed": _disturbances(loop, noise, delayed, number),
        "delayed": delayed,
        "number": number,
        "fingerprint": loop.fingerprint,
    }
    replay = _Replay(loop, smaller, asked, delayed)
    if not asked.forward or asked.reaches:
        return _by_cells(smaller, asked, Clock(seconds), report, replay, common, levels), loop
    if not asked.lasts:
        return _forward(smaller, asked, Clock(seconds), report, replay, common), loop
    found = _by_cells(smaller, asked, Clock(_CELLS_FIRST * seconds), report, replay, common, levels)
    if found.proven == 1.0 or found.counterexample is not None:
        return found, loop
    after = _forward(smaller, asked, Clock((1.0 - _CELLS_FIRST) * seconds), report, replay, common)
    spent = found.seconds + after.seconds
    return dataclasses.replace(after if after.proven == 1.0 else found, seconds=spent), loop


def _by_cells(
    loop: ClosedLoop,
    asked: Statement,
    clock: Clock,
    report: Progress,
    replay: _Replay,
    common: dict[str, Any],
    levels: int | None,
) -> Verdict:
    """Return what is found of each cell of the starts."""
    search = BackwardSearch(loop, asked, levels, clock, report)
    search.run()
    status, failing = search.statuses()
    seconds_spent = clock.spent
    found = replay.first(failing)
    if found is None and len(failing):
        status[status == REFUTED] = UNDECIDED
    shares = [float(np.mean(status == kind)) for kind in (PROVEN, REFUTED, UNDECIDED)]
    times = search.cells.times[: search.cells.first[1]].reshape(status.shape)
    return Verdict(
        **common,
        low=search.cells.low,
        high=search.cells.high,
        proven=shares[0],
        refuted=shares[1],
        undecided=shares[2],
        counterexample=found,
        longest=search.longest if asked.reaches and shares[0] > 0.0 else None,
        seconds=seconds_spent,
        finished=search.finished,
        status=status,
        times=times,
        remarks=_remarks(common["left_out"]),
        details={"search": search} if shares[0] > 0.0 else {},
    )


def _forward(
    loop: ClosedLoop,
    asked: Statement,
    clock: Clock,
    report: Progress,
    replay: _Replay,
    common: dict[str, Any],
) -> Verdict:
    """Return whether all states that the starts can come to are allowed."""
    search = ForwardSearch(loop, asked, clock, report)
    failing, share = search.failing(asked.within or 5 * loop.dynamics.horizon)
    found = replay.first(failing)
    if found is None:
        search.run()
    proven = 1.0 if search.holds else 0.0
    refuted = share if found is not None else 0.0
    status = np.full((1,) * len(loop.names), PROVEN if search.holds else UNDECIDED, np.int8)
    remarks = list(_remarks(common["left_out"]))
    if search.closed:
        where = "" if search.coordinates is None else " in coordinates of the closed loop"
        remarks.append(
            f"It stays in {search.cells:,} cells{where}, which it comes to from all of the starts."
        )
    elif search.holds:
        remarks.append(f"In these steps it comes to {search.cells:,} cells.")
    elif found is None and search.steps:
        remarks.append(f"Proven for the first {search.steps:,} steps only.")
    if found is not None:
        remarks.append("The share that is refuted is that of starts drawn at random.")
    return Verdict(
        **common,
        low=search.low,
        high=search.high,
        proven=proven,
        refuted=refuted,
        undecided=1.0 - proven - refuted,
        counterexample=found,
        longest=None,
        seconds=clock.spent,
        finished=search.holds or found is not None,
        status=status,
        times=np.full(status.shape, -1, np.int32),
        remarks=tuple(remarks),
        details={"cells": search.cells, "steps": search.steps} | ({"search": search} if search.holds else {}),
    )


class _Replay:
    """Plays failing starts by the plant's own functions."""

    def __init__(self, loop: ClosedLoop, smaller: ClosedLoop, asked: Statement, delayed: bool) -> None:
        self._loop = loop
        self._asked = asked
        self._delayed = delayed
        self._kept = [loop.names.index(name) for name in smaller.names]
        self._period = np.zeros(len(loop.names))
        self._period[self._kept] = smaller.arrays.period

    def first(self, starts: NDArray[np.float64]) -> Counterexample | None:
        """Return the first counterexample among some starts, those in the middle of the box first."""
        loop = self._loop
        asked = self._asked
        if not len(starts):
            return None
        middle = np.array([sum(asked.starts.get(name, (0.0, 0.0))) / 2 for name in loop.names])
        width = np.array([np.ptp(asked.starts.get(name, (0.0, 1.0))) for name in loop.names])
        full = np.tile(middle, (len(starts), 1))
        full[:, self._kept] = starts
        order = np.argsort(np.abs((full - middle) / width).max(axis=1), kind="stable")
        if isinstance(loop.tree.action_space, Discrete) and self._delayed:  # the action that is nearest
            space = loop.tree.action_space
            full[:, -1] = np.clip(np.floor(full[:, -1] + 0.5), space.start, space.start + space.n - 1)
        for start in full[order[:_REPLAYED]]:
            found = refutes(
                loop.dynamics,
                loop.player,
                asked,
                loop.names,
                start,
                self._period.tolist(),
                steps=5 * loop.dynamics.horizon,
                delayed=self._delayed,
            )
            if found is not None:
                return found
        return None


def closed_loop(
    source: Source,
    env: EnvironmentLike | None = None,
    *,
    learned: bool = False,
    asked: Statement | None = None,
    **options: Any,
) -> ClosedLoop:
    """Return the closed loop of a source and the plant that it is verified on.

    Parameters
    ----------
    source, env, learned
        As in `verify`.
    asked
        The statement, if it is known: as a goal, the termination of a learned plant counts where it is
        certain.
    options
        Of `ClosedLoop.of`.
    """
    given = opened(source)
    policy = policy_of(given)
    tree = controller_of(policy, minimise=policy.draws)
    if tree.remembers or tree.features:
        has = "memory" if tree.remembers else "features"
        raise SettingError(
            f"This controller has {has}, and a proof does not cover that: it is about a plant and a rule "
            "tree whose action depends on the observation alone. `spaql stress` plays this controller from "
            "all over the plant's states, which finds failures and proves nothing; a rule tree without "
            f"{has}, trained for the same plant, can be proven."
        )
    if learned:
        return ClosedLoop.of(_learned_plant(given, env, asked), tree, **options)
    return ClosedLoop.of(_equations(given, env), tree, **options)


def _equations(given: Any, env: EnvironmentLike | None) -> Dynamics:
    if env is None:
        problem = getattr(given, "problem", None)
        if not isinstance(problem, Problem):
            raise SettingError("A controller alone has no plant: give it as env, a Dynamics or its id.")
    elif isinstance(env, Dynamics):
        return env
    else:
        problem = make_problem(env)
    if problem.dynamics is None:
        where = "a log" if problem.log is not None else problem.runs_on
        also = (
            " Or prove it about the plant that was learned, which is not the real one: --learned, in Python "
            "learned=True."
            if env is None and _has_model(given)
            else ""
        )
        raise SettingError(
            f"{problem.name} runs on {where}, of which no equations are known: a proof needs them. "
            "Write its step as a function of a state and an action, and give it as spaql.Dynamics (`spaql "
            f"new` writes an example).{also}"
        )
    return problem.dynamics


def _has_model(given: Any) -> bool:
    return isinstance(getattr(type(given), "model", None), property)


def _learned_plant(given: Any, env: EnvironmentLike | None, asked: Statement | None) -> LearnedPlant:
    if env is not None:
        raise SettingError("A learned plant is that of the agent itself: leave out env, or learned.")
    if not _has_model(given):
        raise SettingError(
            "There is no learned plant: PlanTree and `spaql fit` learn one. "
            "Equations of a plant are given as spaql.Dynamics (`spaql new` writes an example)."
        )
    model = given.model
    if not isinstance(model, PlantModel):
        raise SettingError(f"The model of {type(given).__name__} is not a learned plant.")
    reference = given.problem.reference
    certain = asked is not None and asked.termination == "goal"
    return LearnedPlant(model, reference=reference, certain=certain)


def _disturbances(loop: ClosedLoop, noise: Sequence[float] | float, delayed: bool, number: str | None) -> str:
    parts = []
    if np.any(noise):
        errors = np.broadcast_to(np.asarray(noise, np.float64), loop.noise.shape)
        parts.append(f"an error of each observation of up to {', '.join(f'{x:g}' for x in errors)}")
    if loop.push.any():
        parts.append(f"a disturbance of the state of up to {', '.join(f'{x:g}' for x in loop.push)} a step")
    if delayed:
        parts.append("every action a step late")
    if number is not None:
        assert not isinstance(loop.player, Controller)
        kind = loop.player.machine.number
        steps = ", ".join(f"{x:.2g}" for x in conversion_error(kind, loop.source.dims))
        rounds = f" (observations in steps of {steps})" if number == "fixed" else ""
        parts.append(f"the exported controller's numbers, {number}{rounds}")
    return f", with {' and '.join(parts)}" if parts else ""


def _remarks(left_out: tuple[str, ...]) -> tuple[str, ...]:
    if not left_out:
        return ()
    verb = "does" if len(left_out) == 1 else "do"
    return (f"{', '.join(left_out)} {verb} not matter to it: what is proven holds for any value.",)
