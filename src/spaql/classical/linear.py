"""Linear models of plants about a steady state, by finite differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.controllers.arrays import action_range
from spaql.errors import SettingError
from spaql.problems import Dynamics, Problem

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Places = list[tuple[int, ...]]
"""Of each number of z its place in an observation, or for an angle those of its cosine and sine."""
_EPISODES = 5
"""Episodes of random actions that show the size of each number."""
_HELD = 10
"""Steps for which a random action is held."""
_SHARE = 0.05
"""Share of a number's standard deviation by which it is changed: enough to average over dry friction."""
_AT_REST = 1e-6
"""Largest change within a step, relative to the usual size of a number, that counts as rest."""
_PROBED = 8
"""Visited states at which it is tested what depends on a state variable."""
_NEGLIGIBLE = 1e-4
"""Share of its range below which an action at the operating point is 0."""
_INDEPENDENT = 1e-9


@dataclass(frozen=True)
class LinearPlant:
    """A plant near a rest: z' = A z + B u in deviations, where z is read from an observation.

    An observed cosine and sine of a declared angle are one number of z, the angle.
    """

    a: Floats
    b: Floats
    numbers: tuple[tuple[int, ...], ...]
    """For each number of z its place in an observation; for an angle those of its cosine and its sine."""
    outputs: tuple[int, ...]
    """The numbers of z that have a set-point."""
    setpoints: tuple[int, ...]
    """The places of their set-points in an observation."""
    rest: Floats
    """z at the rest."""
    rest_action: Floats
    rest_goals: Floats
    """The set-points at the rest."""
    rest_slope: Floats
    """How the rest moves with the set-points: rows of z, then of the action."""
    scale: Floats
    """Usual size of each number of z."""
    delay: int
    """Dead time of the action in samples, which A and B do not contain."""
    steps: int
    """Simulator steps that were made."""

    def read(self, observations: Floats) -> Floats:
        """Return z of observations, one per row."""
        return read_numbers(self.numbers, observations)


def within_a_turn(angle: Floats) -> Floats:
    """Return angles from -pi to pi.

    Examples
    --------
    >>> within_a_turn(np.array([0.5, 2.0 * math.pi + 0.5])).tolist()
    [0.5, 0.5]
    """
    return np.asarray(np.remainder(angle + math.pi, math.tau) - math.pi)


def read_numbers(numbers: tuple[tuple[int, ...], ...], observations: Floats) -> Floats:
    """Return the numbers of z from observations, one per row."""
    columns = [
        observations[:, at[0]] if len(at) == 1 else np.arctan2(observations[:, at[1]], observations[:, at[0]])
        for at in numbers
    ]
    return np.stack(columns, axis=1)


@dataclass(frozen=True)
class OperatingPoint:
    """A steady state of a plant, in the middle of its set-points."""

    observation: Floats
    action: Floats
    """What holds the plant there."""
    steps: int
    """Simulator steps that were made."""


def operating_point(problem: Problem, seed: int = 0) -> OperatingPoint | None:
    """Return the steady state of a plant in the middle of its set-points; None where none is known.

    That is a plant without equations or set-points, and one that no action of its range holds.

    Examples
    --------
    >>> from spaql import make_problem
    >>> found = operating_point(make_problem("spaql/Oven-v0"))
    >>> bool(0.2 < found.action[0] < 0.4)
    True
    """
    plant = problem.dynamics
    if plant is None or not problem.setpoints or isinstance(problem.actions.space, Discrete):
        return None
    try:
        return _Linearisation(problem, plant, np.random.default_rng(seed)).operating_point()
    except SettingError:
        return None


def linearise(problem: Problem, seed: int = 0) -> LinearPlant:
    """Return a plant's linear model about a rest at its reference, or in the middle of its set-points.

    The plant's equations are used without noise, loads and uncertain gains. State variables that nothing
    depends on, such as a clock or a counter, need not be at rest. Raises where the actions are a list, the
    state cannot be read from an observation, or no rest is found.

    Examples
    --------
    >>> from spaql import make_problem
    >>> tanks = linearise(make_problem("spaql/QuadrupleTank-v0"))
    >>> tanks.a.shape, tanks.b.shape, tanks.outputs, bool(np.all(np.linalg.eigvals(tanks.a).real < 1))
    ((4, 4), (4, 2), (0, 1), True)
    """
    plant = problem.dynamics
    if plant is None or isinstance(problem.actions.space, Discrete):
        raise SettingError(
            f"{problem.name} cannot be linearised: that needs a plant's equations (spaql.Dynamics) and "
            f"actions with a range, and it runs on {problem.runs_on}."
        )
    if not problem.setpoints and problem.reference is None:
        raise SettingError(
            f"{problem.name} has no steady state to linearise about: declare setpoints or a reference."
        )
    return _Linearisation(problem, plant, np.random.default_rng(seed)).result()


class _Choice(NamedTuple):
    """State variables that are to be at rest, what z is of them, and the observations with a reference."""

    moving: list[int]
    numbers: Places
    regulated: list[int]


class _Linearisation:
    """Steps of the plain equations, counted."""

    def __init__(self, problem: Problem, plant: Dynamics, rng: np.random.Generator) -> None:
        self._problem = problem
        self._plant = plant
        self._rng = rng
        self._steps = 0
        self._low, self._high = action_range(problem.actions.space)
        self._start, self._step, self._observe = plant.nominal_functions

    def operating_point(self) -> OperatingPoint | None:
        state, action, _, _ = self._steady_state()
        within = (self._low <= action) & (action <= self._high)
        action = np.where(np.abs(action) < _NEGLIGIBLE * (self._high - self._low), 0.0, action)
        return OperatingPoint(self._observed(state), action, self._steps) if within.all() else None

    def _steady_state(self) -> tuple[Floats, Floats, _Choice, Floats]:
        """Return a steady state, its action, what is at rest in it, and the usual size of each variable."""
        visited = self._visited()
        size = visited.reshape(-1, visited.shape[2]).std(axis=0)
        moving = [j for j in range(visited.shape[2]) if np.ptp(visited[:, :, j], axis=1).max() > 0]
        names = self._problem.states.labels
        pairs = dict(self._problem.setpoint_places)
        numbers = self._numbers(names, visited[:, 0], visited, pairs)
        middle = visited[:, 0].mean(axis=0)
        for choice in self._choices(visited, size, moving, numbers, pairs):
            rest = self._rest(middle, choice.moving, size, pairs, choice.regulated)
            if rest is not None:
                return *rest, choice, size
        raise SettingError(
            f"No steady state of {self._problem.name} was found at its "
            f"{'set-points' if pairs else 'reference'}: is there an action that holds it there?"
        )

    def result(self) -> LinearPlant:
        state, action, (moving, numbers, _), size = self._steady_state()
        pairs = dict(self._problem.setpoint_places)
        slopes = self._slopes(state, action, moving, size, numbers)
        kept = _relevant(*slopes[::2])
        a = slopes[0][np.ix_(kept, kept)]
        b = slopes[1][kept]
        c = slopes[2][:, kept]
        if len(kept) != len(numbers) or np.linalg.matrix_rank(c / np.abs(c).max()) < len(kept):
            raise SettingError(
                f"{self._problem.name} cannot be controlled by LQR: {len(kept)} numbers of its state "
                f"matter, and they cannot be read from {len(numbers)} observed ones."
            )
        inverse = np.linalg.inv(c)
        a = c @ a @ inverse
        b = c @ b
        observation = np.array([self._observe(tuple(state.tolist()))])
        outputs = tuple(numbers.index((j,)) for j in pairs)
        return LinearPlant(
            a,
            b,
            tuple(numbers),
            outputs,
            tuple(pairs.values()),
            read_numbers(tuple(numbers), observation)[0],
            action,
            observation[0, list(pairs.values())],
            _rest_slope(a, b, outputs),
            np.abs(c) @ size[moving][kept],
            sum(self._plant.disturbances.delay) // 2,
            self._steps,
        )

    def _visited(self) -> Floats:
        """Return states of random episodes: episodes × steps × numbers."""
        episodes = []
        for _ in range(_EPISODES):
            state = self._start(self._rng)
            rows = []
            for t in range(self._problem.horizon):
                if t % _HELD == 0:
                    action = self._rng.uniform(self._low, self._high)
                rows.append(state)
                state = tuple(self._advance(np.array(state), action).tolist())
            episodes.append(rows)
        return np.array(episodes)

    def _advance(self, state: Floats, action: Floats) -> Floats:
        self._steps += 1
        return np.array(self._step(tuple(state.tolist()), action.copy())[0])

    def _observed(self, state: Floats) -> Floats:
        return np.array(self._observe(tuple(state.tolist())))

    def _numbers(
        self, names: tuple[str, ...], starts: Floats, visited: Floats, pairs: dict[int, int]
    ) -> list[tuple[int, ...]]:
        """Return the observed numbers that move, cosine and sine of an angle as one."""
        observations = np.array(
            [[self._observed(state) for state in episode[:: max(1, _HELD // 2)]] for episode in visited]
        )
        numbers: list[tuple[int, ...]] = []
        for j, name in enumerate(names):
            angle = next(
                (
                    declared
                    for declared in self._problem.angles
                    if name in (f"cos({declared})", f"sin({declared})")
                ),
                None,
            )
            if angle is not None:
                at = names.index(f"cos({angle})"), names.index(f"sin({angle})")
                numbers += [] if at in numbers else [at]
            elif j not in pairs.values() and np.ptp(observations[:, :, j], axis=1).max() > 0:
                numbers.append((j,))
        return numbers

    def _choices(
        self, visited: Floats, size: Floats, moving: list[int], numbers: Places, pairs: dict[int, int]
    ) -> Iterator[_Choice]:
        """Yield which state variables are to be at rest.

        First all of them, then without those that nothing depends on: unobserved ones, and observed ones.
        """
        every = list(range(len(self._plant.observations)))
        yield _Choice(moving, numbers, every)
        needed, shown = self._dependence(visited, size, moving, numbers)
        kept: Bools = np.asarray(shown.any(axis=0))
        for _ in moving:
            kept |= needed[kept].any(axis=0)
        yield _Choice([j for j, is_kept in zip(moving, kept, strict=True) if is_kept], numbers, every)
        tracked = [at in [(j,) for j in pairs] for at in numbers]
        kept &= needed.any(axis=0) | shown[tracked].any(axis=0)
        left = [at for at, of in zip(numbers, shown, strict=True) if of[kept].any()]
        yield _Choice(
            [j for j, is_kept in zip(moving, kept, strict=True) if is_kept],
            left,
            sorted(j for at in left for j in at),
        )

    def _dependence(
        self, visited: Floats, size: Floats, moving: list[int], numbers: Places
    ) -> tuple[Bools, Bools]:
        """Return which other state variables (rows), and which observations, depend on each (columns)."""
        states = visited.reshape(-1, visited.shape[2])
        needed = np.zeros((len(moving), len(moving)), np.bool_)
        shown = np.zeros((len(numbers), len(moving)), np.bool_)
        action = (self._low + self._high) / 2
        for state in states[:: max(1, len(states) // _PROBED)]:
            after = self._advance(state, action)
            observation = self._observed(state)
            for k, j in enumerate(moving):
                moved = state.copy()
                moved[j] += _SHARE * size[j]
                needed[:, k] |= (self._advance(moved, action) != after)[moving]
                shown[:, k] |= [(self._observed(moved) != observation)[list(at)].any() for at in numbers]
        np.fill_diagonal(needed, False)
        return needed, shown

    def _rest(
        self, middle: Floats, moving: list[int], size: Floats, pairs: dict[int, int], regulated: list[int]
    ) -> tuple[Floats, Floats] | None:
        """Return a state and an action that stay as they are, by Newton's method from several points."""
        half = (self._high - self._low) / 2
        reference = self._problem.reference

        def lacking(x: Floats) -> Floats:
            state = middle.copy()
            state[moving] = x[: len(moving)] * size[moving]
            action = x[len(moving) :] * half
            change = (self._advance(state, action) - state)[moving] / size[moving]
            observation = self._observed(state)
            if pairs:
                goal = [observation[i] - observation[j] for i, j in pairs.items()]
            else:
                assert reference is not None
                goal = [observation[j] - reference[j] for j in regulated]
            return np.array([*change, *goal])

        rest = np.clip(np.zeros(len(half)), self._low, self._high) / half
        centre = (self._low + self._high) / 2 / half
        first = middle[moving] / size[moving]
        for states in (first, np.zeros(len(moving))):
            for action in (centre, rest):
                x = _solved(lacking, np.concatenate([states, action]))
                if np.abs(lacking(x)).max() < _AT_REST:
                    state = middle.copy()
                    state[moving] = x[: len(moving)] * size[moving]
                    return state, x[len(moving) :] * half
        return None

    def _slopes(
        self, state: Floats, action: Floats, moving: list[int], size: Floats, numbers: list[tuple[int, ...]]
    ) -> tuple[Floats, Floats, Floats]:
        """Return the derivatives of the next state by state and action, and of z by the state."""
        half = _SHARE * (self._high - self._low) / 2
        a = np.empty((len(moving), len(moving)))
        b = np.empty((len(moving), len(action)))
        c = np.empty((len(numbers), len(moving)))
        for k, j in enumerate(moving):
            move = np.zeros(len(state))
            move[j] = _SHARE * size[j]
            up = state + move
            down = state - move
            a[:, k] = (self._advance(up, action) - self._advance(down, action))[moving] / (2 * move[j])
            ends = read_numbers(tuple(numbers), np.array([self._observed(up), self._observed(down)]))
            c[:, k] = within_a_turn(ends[0] - ends[1])
            plain = [len(at) == 1 for at in numbers]
            c[plain, k] = (ends[0] - ends[1])[plain]
            c[:, k] /= 2 * move[j]
        for k in range(len(action)):
            move = np.zeros(len(action))
            move[k] = half[k]
            change = self._advance(state, action + move) - self._advance(state, action - move)
            b[:, k] = change[moving] / (2 * half[k])
        return a, b, c


def _solved(lacking: Callable[[Floats], Floats], x: Floats) -> Floats:
    """Return where a function is 0, or the last point that was tried."""
    value = lacking(x)
    for _ in range(60):
        if np.abs(value).max() < _AT_REST / 10:
            break
        slope = np.stack([(lacking(x + d) - lacking(x - d)) / 2e-5 for d in 1e-5 * np.eye(len(x))], axis=1)
        move = -np.linalg.lstsq(slope, value, rcond=None)[0]
        share = 1.0
        while share > 1e-4 and np.linalg.norm(lacking(x + share * move)) > np.linalg.norm(value):
            share /= 2
        x = x + share * move
        value = lacking(x)
    return x


def _relevant(a: Floats, c: Floats) -> list[int]:
    """Return the numbers of a state on which observations depend, now or later."""
    kept = np.abs(c).max(axis=0) > _INDEPENDENT
    for _ in range(len(a)):
        kept = kept | (np.abs(a[kept]).max(axis=0) > _INDEPENDENT)
    return np.flatnonzero(kept).tolist()


def _rest_slope(a: Floats, b: Floats, outputs: tuple[int, ...]) -> Floats:
    """Return how z and the action at rest move with the set-points."""
    n = len(a)
    m = b.shape[1]
    k = len(outputs)
    system = np.zeros((n + k, n + m))
    system[:n, :n] = a - np.eye(n)
    system[:n, n:] = b
    system[n + np.arange(k), list(outputs)] = 1.0
    goal = np.vstack([np.zeros((n, k)), np.eye(k)])
    return np.asarray(np.linalg.lstsq(system, goal, rcond=None)[0])
