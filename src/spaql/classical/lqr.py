"""Linear regulators, whose weights are tuned by a direct search."""

from __future__ import annotations

import numpy as np

from spaql.classical.linear import Floats, LinearPlant, linearise
from spaql.classical.policies import LQRPolicy
from spaql.classical.riccati import riccati_gains
from spaql.classical.search import Family, Simulator, Tuned, search
from spaql.classical.swing_up import N_NUMBERS, SwingUpPolicy, has_pole, pumping_numbers
from spaql.controllers.arrays import action_range
from spaql.problems import Problem


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
