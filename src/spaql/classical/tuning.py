"""Tuning of textbook controllers on the simulator that a learned one was trained on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.classical.linear import Floats, LinearPlant, linearise
from spaql.classical.policies import N_NUMBERS, LQRPolicy, PIDPolicy, SwingUpPolicy, has_pole, pumping_numbers
from spaql.classical.search import Family, Simulator, Tuned, search
from spaql.controllers import Controller, Error, Feature, FilteredDerivative, Integral, Policy
from spaql.controllers.arrays import action_range
from spaql.controllers.policy import Rng
from spaql.errors import SettingError, nearest
from spaql.problems import Problem
from spaql.spaces import split_unit
from spaql.values import whole_number

_WOUND = 100.0
"""The limit of an integral is as many ranges of the action: it waits long before."""
_FILTER = 0.2
"""Time constant of the filter, of the derivative time, at which the search begins."""


def tuned_pid(problem: Problem, simulator: Simulator, steps: int) -> Tuned:
    """Return a PID controller for each set-point (see `spaql.classical.tune`)."""
    if not problem.setpoints:
        raise SettingError(f"{problem.name} has no set-point for a PID controller: declare setpoints.")
    pairs = problem.setpoint_places
    response, size = _open_loop(problem, simulator, pairs)
    loops = _paired(pairs, response)
    low, high = action_range(problem.actions.space)
    half = (high - low) / 2
    middle = (high + low) / 2
    dt = problem.sample_time or 1.0
    m = len(loops)
    sign = np.array([np.sign(response[i, k]) or 1.0 for i, (_, _, k) in enumerate(loops)])
    usual = sign * half[[k for _, _, k in loops]] / size
    slow = problem.horizon * dt / 10

    def family(vectors: Floats, rows: int) -> PIDPolicy:
        kp, ti, td, filtered = (np.exp(vectors[:, j * m : (j + 1) * m]) for j in range(4))
        kp = usual * kp
        tf = _FILTER * td * np.sqrt(filtered)
        gains = (
            kp,
            kp / (slow * ti),
            kp * dt * td,
            dt * tf,
            np.clip(middle + half * vectors[:, 4 * m :], low, high),
        )
        kp, ki, kd, filter_time, bias = (np.repeat(gain, rows, axis=0) for gain in gains)
        return PIDPolicy(problem, loops, kp=kp, ki=ki, kd=kd, filter_time=filter_time, bias=bias)

    vector, _ = search(simulator, family, 4 * m + len(low), steps - simulator.spent)
    policy = family(vector[None], 1)
    return Tuned(
        "pid",
        pid_controller(problem, policy) or policy,
        _pid_text(problem, policy),
        simulator.spent,
        len(vector),
    )


def pid_controller(problem: Problem, policy: PIDPolicy) -> Controller | None:
    """Return PID controllers as a `Controller`; None for a speed of an angle, which no feature unwraps."""
    if any(policy.turns) or not isinstance(problem.states.space, Box):
        return None
    observations = problem.states.labels
    actions = problem.actions.labels
    low, high = action_range(problem.actions.space)
    features: list[Feature] = []
    gains: dict[str, dict[str, float]] = {}
    offsets = {split_unit(name)[0]: float(x) for name, x in zip(actions, policy.bias[0], strict=True)}
    loops = zip(policy.outputs, policy.goals, policy.actions, strict=True)
    for j, (output, goal, action) in enumerate(loops):
        place, wanted, acted = (
            split_unit(name)[0] for name in (observations[output], observations[goal], actions[action])
        )
        kp, ki, kd = (float(gain[0, j]) for gain in (policy.kp, policy.ki, policy.kd))
        error, integral, slope = (f"{what} of {place}" for what in ("error", "integral", "slope"))
        most = _WOUND * float(high[action] - low[action]) / abs(ki)
        features += [
            Error(error, wanted, place),
            Integral(integral, error, limit=most),
            FilteredDerivative(slope, place, time_constant=float(policy.filter_time[0, j])),
        ]
        gains[acted] = {error: kp, integral: ki, slope: -kd}
    return Controller.of_laws(
        features,
        gains,
        offsets,
        observation_space=problem.states.space,
        action_space=problem.actions.space,
        observations=observations,
        actions=actions,
        sample_time=problem.sample_time or 1.0,
    )


def _open_loop(
    problem: Problem, simulator: Simulator, pairs: Sequence[tuple[int, int]]
) -> tuple[Floats, Floats]:
    """Return how numbers answer to actions held at a quarter and at three quarters, and usual errors."""
    low, high = action_range(problem.actions.space)
    middle = (low + high) / 2
    quarter = (high - low) / 4
    starts = simulator.starts(4)
    answers = np.empty((len(pairs), len(low)))
    size = np.ones(len(pairs))
    for k in range(len(low)):
        ends = []
        for side in (-1.0, 1.0):
            action = middle.copy()
            action[k] += side * quarter[k]
            held = _Held(problem, action)
            simulator.play(held, starts, 4)
            ends.append(held.middle(pairs))
            size = np.maximum(held.first_errors(pairs), 1e-6)
        answers[:, k] = ends[1] - ends[0]
    return answers, size


class _Held(Policy):
    """A constant action that remembers what it saw."""

    def __init__(self, problem: Problem, action: Floats) -> None:
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space
        self._action = action
        self._observations: list[Floats] = []

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        self._observations.append(np.asarray(observations, np.float64).reshape(len(steps), -1).copy())
        return np.tile(self._action, (len(steps), 1)).astype(self.action_space.dtype)

    def middle(self, pairs: Sequence[tuple[int, int]]) -> Floats:
        """Return the numbers a quarter into the episode, before they reach a limit."""
        rows = self._observations[max(1, len(self._observations) // 4)]
        return np.array([rows[:, i].mean() for i, _ in pairs])

    def first_errors(self, pairs: Sequence[tuple[int, int]]) -> Floats:
        """Return the mean distance from the set-points at the start."""
        return np.array(
            [np.abs(self._observations[0][:, i] - self._observations[0][:, j]).mean() for i, j in pairs]
        )


def _paired(pairs: Sequence[tuple[int, int]], response: Floats) -> list[tuple[int, int, int]]:
    """Return the loops: each number with the action of the largest relative gain (Bristol, 1966)."""
    m, n = response.shape
    if m > n:
        raise SettingError(
            f"{m} numbers have a set-point, and there are {n} actions: PID needs one for each."
        )
    relative = response * np.linalg.pinv(response).T
    best = max(itertools.permutations(range(n), m), key=lambda order: sum(relative[range(m), order]))
    return [(i, j, k) for (i, j), k in zip(pairs, best, strict=True)]


def _pid_text(problem: Problem, policy: PIDPolicy) -> str:
    names = problem.states.labels
    actions = problem.actions.labels
    unit = "s" if problem.sample_time else "samples"
    lines = []
    for j, (output, action) in enumerate(zip(policy.outputs, policy.actions, strict=True)):
        kp, ki, kd = (float(gains[0, j]) for gains in (policy.kp, policy.ki, policy.kd))
        lines.append(
            f"{actions[action]}: PID of {names[output]}, Kp = {kp:.3g}, Ti = {kp / ki:.3g} {unit}, "
            f"Td = {kd / kp:.3g} {unit}, filter {policy.filter_time[0, j]:.2g} {unit}, "
            f"bias {policy.bias[0, action]:.3g}"
        )
    return "\n".join(lines)


_DOUBLINGS = 40


def riccati_gains(a: Floats, b: Floats, q: Floats, r: Floats) -> Floats:
    """Return the gains K of u = -K x that are optimal for x'Qx + u'Ru: one problem, or a stack of them.

    The Riccati equation is solved by doubling (Chu, Fan, Lin and Wang, 2004).

    Examples
    --------
    >>> one = np.eye(1)
    >>> round(float(riccati_gains(one, one, one, one)[0, 0]), 4)
    0.618
    """
    r_inverse = np.linalg.inv(r)
    x = q
    g = b @ r_inverse @ np.swapaxes(b, -1, -2)
    closed = a
    eye = np.eye(a.shape[-1])
    for _ in range(_DOUBLINGS):
        w = np.linalg.solve(eye + g @ x, np.broadcast_to(eye, x.shape))
        turned = np.swapaxes(closed, -1, -2)
        grown = x + turned @ x @ w @ closed
        g = g + closed @ w @ g @ turned
        closed = closed @ w @ closed
        if np.allclose(grown, x, rtol=1e-12, atol=0.0):
            break
        x = grown
    bt = np.swapaxes(b, -1, -2)
    return np.asarray(np.linalg.solve(r + bt @ x @ b, bt @ x @ a))


def tuned_lqr(problem: Problem, simulator: Simulator, steps: int) -> Tuned:
    """Return a linear regulator of the linearised plant (see `spaql.classical.tune`)."""
    plant = linearise(problem, simulator.seed)
    simulator.spent += plant.steps
    families = {"LQR": _lqr_family(problem, plant, integral=False)}
    if plant.outputs:
        families["LQR with integral action"] = _lqr_family(problem, plant, integral=True)
    elif has_pole(plant):  # which a regulator alone does not swing up
        families = {"LQR with energy pumping": _swing_up_family(problem, plant)}
    share = (steps - simulator.spent) // len(families)
    tuned = []
    for name, (family, n) in families.items():
        vector, judged = search(simulator, family, n, share)
        tuned.append((judged, name, family(vector[None], 1), n))
    _, name, policy, n = max(tuned, key=lambda entry: entry[0])
    assert isinstance(policy, LQRPolicy)
    gains = np.array2string(policy.gains[0], precision=3).replace("\n", "")
    text = f"{name}, gains {gains}"
    if isinstance(policy, SwingUpPolicy):
        text += f"; pumping {np.array2string(policy.pumping[0], precision=3)}"
    return Tuned("lqr", policy, text, simulator.spent, n)


def _lqr_family(problem: Problem, plant: LinearPlant, *, integral: bool) -> tuple[Family, int]:
    """Return regulators by the logarithms of their weights: of z, of the actions, and of the integrals."""
    n = len(plant.a)
    m = plant.b.shape[1]
    k = len(plant.outputs) if integral else 0
    a, b = augmented(plant, k, problem.sample_time or 1.0)
    low, high = action_range(problem.actions.space)
    half = (high - low) / 2
    slow = problem.horizon * (problem.sample_time or 1.0) / 10
    sizes = plant.scale[list(plant.outputs)] * slow if k else np.ones(0)
    tiny = 1e-9

    def family(vectors: Floats, rows: int) -> LQRPolicy:
        weights = np.exp(vectors)
        q = np.zeros((len(vectors), len(a), len(a)))
        places = np.arange(len(a))
        q[:, places, places] = tiny
        q[:, places[:n], places[:n]] = weights[:, :n] / plant.scale**2
        if k:
            q[:, places[-k:], places[-k:]] = weights[:, n + m :] / sizes**2
        r = np.zeros((len(vectors), m, m))
        r[:, np.arange(m), np.arange(m)] = weights[:, n : n + m] / half**2
        gains = riccati_gains(np.broadcast_to(a, q.shape), np.broadcast_to(b, (len(q), *b.shape)), q, r)
        return LQRPolicy(problem, plant, np.repeat(gains, rows, axis=0))

    return family, n + m + k


def _swing_up_family(problem: Problem, plant: LinearPlant) -> tuple[Family, int]:
    """Return regulators with energy pumping; the numbers of the pumping come last."""
    regulators, n = _lqr_family(problem, plant, integral=False)
    low, high = action_range(problem.actions.space)
    half = float(high[0] - low[0]) / 2

    def family(vectors: Floats, rows: int) -> SwingUpPolicy:
        held = regulators(vectors[:, :n], rows)
        assert isinstance(held, LQRPolicy)
        pumping = pumping_numbers(problem, plant, vectors[:, n:], half)
        return SwingUpPolicy(problem, plant, held.gains, np.repeat(pumping, rows, axis=0))

    return family, n + N_NUMBERS + len(plant.a) - 2


def augmented(plant: LinearPlant, integrals: int, time_step: float) -> tuple[Floats, Floats]:
    """Return the model with the last actions, of dead time, and with the integrals of the errors."""
    n, m = plant.b.shape
    line = plant.delay * m
    k = integrals
    a = np.zeros((n + line + k, n + line + k))
    b = np.zeros((n + line + k, m))
    a[:n, :n] = plant.a
    if line:
        a[:n, n + line - m : n + line] = plant.b
        a[n + m : n + line, n : n + line - m] = np.eye(line - m)
        b[n : n + m] = np.eye(m)
    else:
        b[:n] = plant.b
    for i in range(k):
        a[n + line + i, plant.outputs[i]] = -time_step
        a[n + line + i, n + line + i] = 1.0
    return a, b


METHODS = ("pid", "lqr")
"""The controllers that can be tuned."""


def check_method(method: str) -> None:
    """Refuse the name of a controller that there is not."""
    if method not in METHODS:
        raise SettingError(f"There is no classical controller {method!r}: {nearest(method, METHODS)}")


def tune(problem: Problem, method: str, *, steps: int = 200_000, seed: int = 0) -> Tuned:
    """Return a PID controller or a linear regulator for a problem, tuned for its return by CMA-ES.

    Parameters
    ----------
    problem
        The problem; give that of a perturbed plant to tune for it (see `spaql.problems.perturbed`).
    method
        `pid`: a PID controller for each set-point, with anti-windup and a filtered derivative; its numbers
        are Kp, Ti, Td, the time constant of the filter, and a bias. `lqr`: a linear regulator of the
        linearised plant, with and without integral action, of which the better one is returned; the weights
        are tuned. A pole that falls from its rest gets energy pumping, with the regulator near the top.
    steps
        Simulator steps for it; a little more are made only if one generation needs more.
    seed
        Of the search and its episodes.

    Examples
    --------
    >>> from spaql import make_problem
    >>> oven = tune(make_problem("spaql/Oven-v0"), "pid", steps=40_000)
    >>> oven.name, oven.numbers, oven.steps <= 40_000
    ('pid', 5, True)
    """
    steps = whole_number("steps", steps, least=1)
    check_method(method)
    if isinstance(problem.actions.space, Discrete):
        raise SettingError(f"{method} needs actions with a range, and those of {problem.name} are a list.")
    simulator = Simulator(problem, seed)
    return (tuned_pid if method == "pid" else tuned_lqr)(problem, simulator, steps)
