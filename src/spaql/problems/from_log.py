"""A problem from a log: spaces, rewards and ends of its transitions, without an environment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.formatting import counted
from spaql.problems.log import Floats, Log, find_column
from spaql.problems.meaning import check_meaning
from spaql.problems.problem import Problem
from spaql.problems.stage_cost import ConstraintLike, StageCost
from spaql.program.ir import names_in
from spaql.program.parser import Formula
from spaql.spaces import StandardActions, StandardStates, identifier
from spaql.values import whole_number

_MOST_LISTED = 64
"""Most actions of a list."""
_EVEN = 0.8
"""Share of the reach of the logged actions on one side of the middle that makes the other about as far."""
_NEXT = "next_"
"""Prefix of a name in an expression for the value after the step."""
_ENDED = "ended"
"""Name in a cost for whether the step ends the episode: 1 or 0."""
_LARGEST = 1e100


@dataclass(frozen=True)
class Objective:
    """The reward of a step and the end of an episode, as expressions that are evaluated, never learned."""

    observations: tuple[str, ...]
    """Names in expressions."""
    actions: tuple[str, ...]
    reward: Formula
    sign: float
    """-1 for a cost."""
    end: Formula | None
    stage: StageCost
    """Constraints, over observations after the step."""

    @classmethod
    def of(
        cls,
        observations: Sequence[str],
        actions: Sequence[str],
        cost: str | None,
        reward: str | None,
        end: str | None,
        constraints: Iterable[ConstraintLike] = (),
    ) -> Objective:
        """Return the objective over columns, by their names, given either a cost or a reward."""
        if (cost is None) == (reward is None):
            message = "Give either a cost or a reward, as an expression of the columns."
            raise SettingError(message, settings={"cost": "EXPR"} if cost is None else {})
        observed, done = (tuple(map(identifier, names)) for names in (observations, actions))
        after = tuple(_NEXT + name for name in observed)
        every = (*observed, *done, *after, _ENDED)
        for name in every:
            if every.count(name) > 1:
                raise SettingError(f"Two columns are written {name!r} in expressions: rename one.")
        what, text = ("cost", cost) if cost is not None else ("reward", reward)
        assert text is not None
        goal = Formula.parse(what, text, every)
        ended = None if end is None else Formula.parse("end condition", end, observed)
        stage = StageCost.of(None, constraints, observations, actions)
        return cls(observed, done, goal, -1.0 if cost is not None else 1.0, ended, stage)

    @property
    def sees_states(self) -> bool:
        """Whether the reward depends on observations, before or after the step."""
        after = {_NEXT + name for name in self.observations}
        return self.stage.changes_reward or not after.union(self.observations).isdisjoint(
            names_in(self.reward.expression)
        )

    def ends(self, nexts: Floats) -> NDArray[np.bool_]:
        """Return whether an episode ends in each of these states."""
        if self.end is None:
            return np.zeros(len(nexts), np.bool_)
        return self.end.holds(dict(zip(self.observations, nexts.T, strict=True)), len(nexts))

    def rewards(self, states: Floats, actions: Floats, nexts: Floats, ended: NDArray[np.bool_]) -> Floats:
        """Return the reward of each step, in raw units of all columns."""
        values = dict(zip(self.observations, states.T, strict=True))
        values |= dict(zip(self.actions, actions.T, strict=True))
        values |= {_NEXT + name: column for name, column in zip(self.observations, nexts.T, strict=True)}
        rewards = np.asarray(self.sign * self.reward(values | {_ENDED: ended}, len(states)))
        return self.stage.rewards(rewards, nexts, actions) if self.stage.changes_reward else rewards


@dataclass(frozen=True, eq=False)
class LoggedProblem:
    """A problem without an environment, with the transitions of the log it was made from."""

    problem: Problem
    objective: Objective
    states: Floats
    actions: Floats
    """As logged, one row per step; of a list the number of the action."""
    nexts: Floats
    rewards: Floats
    ended: NDArray[np.bool_]
    begins: NDArray[np.int64]
    """The first step of each episode."""
    notes: tuple[str, ...]


def problem_from_log(
    log: Log,
    *,
    cost: str | None = None,
    reward: str | None = None,
    end: str | None = None,
    action_range: Sequence[float] | None = None,
    extrapolate: bool = False,
    horizon: int | None = None,
    setpoints: Mapping[str, str] | None = None,
    constraints: Iterable[ConstraintLike] = (),
) -> LoggedProblem:
    """Return the problem of a log (see `spaql.fit` for the parameters)."""
    objective = Objective.of(log.observations, log.actions, cost, reward, end, constraints)
    notes = list(log.notes)
    goals = {
        find_column(number, log.observations, "The log"): find_column(goal, log.observations, "The log")
        for number, goal in (setpoints or {}).items()
    }
    check_meaning(log.observations, goals, (), log.sample_time)
    nexts = log.nexts.copy() if goals else log.nexts
    for goal in goals.values():  # the controller cannot move a set-point: it stays where it is
        j = log.observations.index(goal)
        nexts[:, j] = log.states[:, j]
    ended = objective.ends(nexts)
    rewards = objective.rewards(log.states, log.taken, nexts, ended)
    wrong = np.flatnonzero(~(np.abs(rewards) <= _LARGEST))
    if len(wrong):
        raise SettingError(
            f"The {objective.reward.what} {objective.reward.text!r} is {objective.sign * rewards[wrong[0]]} "
            f"at {log.place(int(wrong[0]))}, and must be finite on every row."
        )
    lengths = np.diff(np.append(np.flatnonzero(log.first), len(log)))
    steps = whole_number("horizon", int(lengths.max()) if horizon is None else horizon, least=1)
    begins = _begins(log, ended, steps, notes)
    notes += _broken(objective.stage, nexts, log.taken, begins)
    space = _action_space(log, action_range, extrapolate, notes)
    problem = Problem(
        name=Path(log.files[0]).stem if log.files[0] != "the log" else "log",
        env=None,
        horizon=steps,
        states=StandardStates.of(
            Box(-np.inf, np.inf, (len(log.observations),), np.float64), None, log.states, log.observations
        ),
        actions=StandardActions.of(space, None, () if isinstance(space, Discrete) else log.actions),
        setpoints=goals,
        sample_time=log.sample_time,
        log={
            "files": [Path(file).name for file in log.files],
            "rows": log.rows,
            "steps": len(log),
            objective.reward.what: objective.reward.text,
            "end": end,
            "end_reward": _end_reward(objective, log, nexts),
            **(
                {"constraints": objective.stage.as_data["constraints"]} if objective.stage.constraints else {}
            ),
        },
    )
    return LoggedProblem(
        problem, objective, log.states, log.taken, nexts, rewards, ended, begins, tuple(notes)
    )


def _broken(stage: StageCost, nexts: Floats, taken: Floats, begins: NDArray[np.int64]) -> list[str]:
    """Return a note on each constraint: in how many episodes of the log it is broken."""
    if not stage.constraints:
        return []
    counts = np.logical_or.reduceat(stage.broken(nexts, taken), begins, axis=0).sum(axis=0).tolist()
    episodes = counted(len(begins), "episode")
    return [
        f"the constraint {constraint.label} is broken in {count:,} of {episodes} of the log"
        for constraint, count in zip(stage.constraints, counts, strict=True)
    ]


def _end_reward(objective: Objective, log: Log, nexts: Floats) -> float:
    """Return the mean reward of the log's steps as if each ended an episode; 0 without an end condition."""
    if objective.end is None:
        return 0.0
    rewards = objective.rewards(log.states, log.taken, nexts, np.ones(len(log), np.bool_))
    finite = rewards[np.abs(rewards) <= _LARGEST]
    if not len(finite):
        raise SettingError(
            f"The {objective.reward.what} {objective.reward.text!r} is not finite where an episode ends."
        )
    return math.fsum(finite.tolist()) / len(finite)


def _begins(log: Log, ended: NDArray[np.bool_], horizon: int, notes: list[str]) -> NDArray[np.int64]:
    """Return where episodes begin: those of the log, cut at the horizon and after an end."""
    first = log.first.copy()
    beyond = np.flatnonzero(ended[:-1] & ~first[1:])
    if len(beyond):
        notes.append(
            f"the end condition holds {counted(len(beyond), 'time')} within an episode of the log, first "
            f"after {log.place(int(beyond[0]))}: a new episode begins there"
        )
        first[beyond + 1] = True
    age = 0
    long = 0
    for i in range(len(first)):
        age = 0 if first[i] else age + 1
        if age == horizon:
            first[i] = True
            age = 0
            long = long + 1
    if long:
        notes.append(
            f"episodes longer than the horizon of {horizon:,} steps count as several: {long:,} more begin"
        )
    return np.flatnonzero(first)


def _action_space(
    log: Log, action_range: Sequence[float] | None, extrapolate: bool, notes: list[str]
) -> Box | Discrete:
    """Return the Box of a range, as far as the log has tried it, or a list of as many actions as it has."""
    if action_range is not None:
        low, high = _range(log, action_range)
        if not extrapolate:
            low, high = _tried(log, low, high, notes)
        return _within(low, high)
    if extrapolate:
        raise SettingError("To extrapolate needs the range of the action, its lowest and highest value.")
    taken = log.taken[:, 0]
    name = log.actions[0]
    whole = len(log.actions) == 1 and np.all((taken >= 0) & (taken % 1 == 0) & (taken < _MOST_LISTED))
    if not whole:
        raise SettingError(
            f"The action {name!r} is not a whole number from 0 to {_MOST_LISTED - 1} in every row, as of a "
            "list: give the range of the action, its lowest and highest value.",
            settings={"action_range": "LOW,HIGH"},
        )
    count = int(taken.max()) + 1
    missing = sorted(set(range(count)) - set(taken.astype(int).tolist()))
    if count < 2 or missing:
        raise SettingError(
            f"The action {name!r} is a list of 0 to {max(count - 1, 1)}, of which the log never has "
            f"{missing[0] if missing else 1}: without it, nothing can be learned of what it does."
        )
    return Discrete(count)


def _range(log: Log, action_range: Sequence[float]) -> tuple[Floats, Floats]:
    """Return the lowest and the highest value of each action, between which all logged ones are."""
    ends = np.array(action_range, np.float64).ravel()
    if len(ends) == 2:
        ends = np.tile(ends, len(log.actions))
    if len(ends) != 2 * len(log.actions) or not np.isfinite(ends).all() or np.any(ends[::2] >= ends[1::2]):
        raise SettingError(
            f"action_range is {list(map(float, np.ravel(action_range)))}, and must be the lowest and the "
            "highest value of the action, or of each action in turn."
        )
    low = ends[::2]
    high = ends[1::2]
    outside = (log.taken < low - 1e-6 * (high - low)) | (log.taken > high + 1e-6 * (high - low))
    if outside.any():
        i, k = map(int, np.argwhere(outside)[0])
        raise SettingError(
            f"{log.place(i)}, column {log.actions[k]!r} is {log.taken[i, k]:g}, outside the action range of "
            f"{low[k]:g} to {high[k]:g}: give a range that holds what was played."
        )
    return low, high


def _within(low: Floats, high: Floats) -> Box:
    """Return the Box in single precision that does not reach beyond a range by rounding."""
    ends = low.astype(np.float32), high.astype(np.float32)
    inner = np.nextafter(ends[0], np.float32(np.inf)), np.nextafter(ends[1], np.float32(-np.inf))
    return Box(
        np.where(ends[0] < low, inner[0], ends[0]),
        np.where(ends[1] > high, inner[1], ends[1]),
        dtype=np.float32,
    )


def _tried(log: Log, low: Floats, high: Floats, notes: list[str]) -> tuple[Floats, Floats]:
    """Return the part of the range of each action that the log has tried, and note where it is less.

    It keeps the middle of the range if about as much was tried on both sides: mirrors are about the middle.
    """
    least = np.maximum(log.taken.min(axis=0), low)
    most = np.minimum(log.taken.max(axis=0), high)
    middle = (low + high) / 2
    below = middle - least
    above = most - middle
    half = np.minimum(below, above)
    even = half > _EVEN * np.maximum(below, above)
    least = np.where(even, middle - half, least)
    most = np.where(even, middle + half, most)
    for name, a, b, c, d in zip(log.actions, least, most, low, high, strict=True):
        if a >= b:
            raise SettingError(
                f"The action {name!r} is {a:g} in every row: nothing can be learned of what it does."
            )
        if a > c or b < d:
            tried = f"{a:.4g} to {b:.4g}"
            notes.append(f"{name} is limited to {tried}, which the log has tried, of {c:.4g} to {d:.4g}")
    return least, most
