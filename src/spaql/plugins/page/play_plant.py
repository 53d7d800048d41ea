"""The plant of an interactive page, in JavaScript: from its equations, or as it was learned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.evaluation.step_test import StepPlan
from spaql.languages import in_script
from spaql.learned_plants import PlantModel
from spaql.problems import Dynamics

Floats = NDArray[np.float64]

_DRAWS = """
const scrambled = (word) => {
  word = Math.imul(word ^ (word >>> 16), 0x7FEB352D);
  word = Math.imul(word ^ (word >>> 15), 0x846CA68B);
  return word ^ (word >>> 16);
};
const stepKey = (key, count) => scrambled(scrambled(key * 4294967296) + Math.imul(0x9E3779B9, count + 1));
const uniformAt = (key, place) =>
  ((scrambled(scrambled(key ^ 0x5BD1E995) + Math.imul(0x85EBCA6B, place + 1)) >>> 0) + 0.5) / 4294967296;
const drawn = (key, count) => {
  const now = scrambled(stepKey(key, count) + 1), made = [];
  for (let k = 0; k < DRAWS; k++) {
    const [u, v] = [uniformAt(now, 2 * k), uniformAt(now, 2 * k + 1)];
    made.push(u, Math.sqrt(-2 * Math.log(u)) * Math.cos(2 * Math.PI * v));
  }
  return made;
};
"""
"""What `spaql.kernels.draws` draws at a step, each number as a uniform and as a normal one."""
_STARTS = 20
"""Fixed starts of a page."""


@dataclass(frozen=True, eq=False)
class PagePlant:
    """A plant that a page can run."""

    note: str
    """Which plant it is, for people."""
    code: str
    """JavaScript that evaluates to an object with `step(state, action)` and `observe(state)`.

    A step returns the next state, the reward, and whether the episode has terminated, as one array.
    """
    names: tuple[str, ...]
    """Of the numbers of a state, but for those at its end that only disturbances use."""
    angles: tuple[bool, ...]
    """Which of them are angles whose cosine and sine are observed."""
    starts: Floats
    """Fixed starts, one per row."""


def nominal(dynamics: Dynamics) -> Dynamics:
    """Return a plant without its declared disturbances; `step` still draws what it draws."""
    return replace(
        dynamics,
        id=f"{dynamics.id.rpartition('-v')[0]}-nominal-v0",
        noise={},
        late_observations=False,
        action_noise={},
        delay=0,
        rate_limit={},
        gain=0.0,
        disturbance={},
        parameters=dynamics.middle_parameters,
    )


def equations(dynamics: Dynamics, plain: Dynamics, seed: int) -> PagePlant:
    """Return a plant by its equations, without disturbances (`plain`: see `nominal`).

    Raises `SettingError` if they cannot be traced.
    """
    rng = np.random.default_rng(seed)
    starts = np.array([plain.functions[0](rng) for _ in range(_STARTS)])
    left_out = replace(dynamics.disturbances, extras=()).is_needed
    note = f"The plant runs by its equations{_draws(dynamics)}"
    note += ", without its disturbances" * left_out + _middle(dynamics)
    return _traced_plant(plain, starts, f"{note}.")


def quiet(dynamics: Dynamics, plan: StepPlan, seed: int) -> PagePlant:
    """Return the plant of a step test by its equations, with its dead time, rate limits and a load.

    Each of the fixed starts has a load as the plant declares it. Raises `SettingError` if the equations
    cannot be traced.
    """
    declared = dynamics.disturbances
    rng = np.random.default_rng(seed)
    at = plan.load_place
    starts = np.array([plan.plant.functions[0](rng) for _ in range(_STARTS)])
    _, size, first, end = (declared.loads or ((0, 0.0, 0, 1),))[0]
    starts[:, at] = rng.integers(first, end, _STARTS)
    starts[:, at + 1] = rng.uniform(-size, size, _STARTS)
    has = ["its dead time"] * (declared.delay[1] > 0) + ["its rate limit"] * declared.limits_rate
    has += ["a load in each of the fixed starts"] * bool(declared.loads)
    drawn = {
        "noise": any((*declared.noise, *declared.action_noise)),
        "late observations": declared.late_observations,
        "changes of the actuators' gain": declared.gain > 0.0,
        "further loads": len(declared.loads) > 1,
    }
    lacks = [name for name, is_so in drawn.items() if is_so]
    note = f"The plant runs by its equations{_draws(dynamics)}"
    note += f", with {' and '.join(has)}" * bool(has) + f", without {' and '.join(lacks)}" * bool(lacks)
    return _traced_plant(plan.plant, starts, f"{note}{_middle(dynamics)}.")


def _draws(dynamics: Dynamics) -> str:
    drawn = "rng" in dynamics.disturbances.extras
    return ", with the random numbers that its step draws" if drawn else ""


def _middle(dynamics: Dynamics) -> str:
    drawn = dynamics.disturbances.draws_parameters
    return ", with parameters in the middle of their ranges" if drawn else ""


def _traced_plant(dynamics: Dynamics, starts: Floats, note: str) -> PagePlant:
    from spaql.problems.tapes import trace_nominal
    from spaql.program.tape import JAVASCRIPT_HELPERS, javascript_function

    step, observe = trace_nominal(dynamics, simulated=True)
    kinds = {row[0] for tape in (step, observe) for row in tape.operations}
    if "unknown" in kinds and step.paths == 1:
        raise SettingError(f"The equations of {dynamics.id} are not known completely.")
    names, angles = _state_names(dynamics, starts[:, : dynamics.plant_dims])
    inputs = "...s, ...a"
    draws = ""
    if step.draws:  # a state ends with the key of its episode and its steps
        inputs += ", ...drawn(...s.slice(-2))"
        draws = _DRAWS.replace("DRAWS", str(step.draws))
    code = (
        f"(() => {{{JAVASCRIPT_HELPERS}{draws}"
        f"{javascript_function('after', step, ended=True)}{javascript_function('seen', observe, ended=False)}"
        f"return {{step: (s, a) => after([{inputs}]), observe: seen}}; }})()"
    )
    return PagePlant(note, code, names, angles, starts)


def learned(model: PlantModel, seed: int) -> PagePlant:
    """Return a learned plant; its state is the observation."""
    plant = {name: np.asarray(array).tolist() for name, array in model.plant._asdict().items()}
    space = model.observation_space
    plant |= {"seen_low": _finite(space.low), "seen_high": _finite(space.high)}
    plant["listed"] = not isinstance(model.action_space, Box)
    if isinstance(model.action_space, Box):
        plant |= {"from": _finite(model.action_space.low), "to": _finite(model.action_space.high)}
    else:
        plant["n"] = int(model.action_space.n)
    rng = np.random.default_rng(seed)
    starts = model.starts[rng.permutation(len(model.starts))[:_STARTS]]
    note = (
        f"The plant was learned from {model.steps:,} steps ({model.n_cells} cells): it is not the simulator, "
        "and an episode ends where that is more likely than not."
    )
    code = f"learnedPlant({in_script(plant)})"
    return PagePlant(note, code, model.observations, (False,) * model.dims, starts)


def _finite(bounds: NDArray[Any]) -> list[float | None]:
    return [x if math.isfinite(x) else None for x in bounds.astype(np.float64).ravel().tolist()]


def _state_names(dynamics: Dynamics, starts: Floats) -> tuple[tuple[str, ...], tuple[bool, ...]]:
    """Return names of the numbers of a state, and which are angles, by comparing states and observations."""
    rng = np.random.default_rng(0)
    states = rng.uniform(-1.0, 1.0, (8, dynamics.plant_dims)) * (0.1 + np.abs(starts).max(axis=0))
    observe = dynamics.nominal_functions[2]
    seen = np.array([observe(tuple(state)) for state in states.tolist()])
    observed = list(dynamics.observations)
    names = []
    angles = []
    for j, column in enumerate(states.T):
        same = _column(seen, column)
        cosine = _column(seen, np.cos(column))
        sine = _column(seen, np.sin(column))
        turns = same is None and cosine is not None and sine is not None
        angles.append(turns)
        if same is not None:
            names.append(observed[same])
        elif turns and observed[cosine or 0].startswith("cos("):
            names.append(f"{observed[cosine or 0].removeprefix('cos(').removesuffix(')')} [rad]")
        else:
            names.append(f"state {j + 1}")
    return tuple(names), tuple(angles)


def _column(rows: Floats, wanted: Sequence[float] | Floats) -> int | None:
    return next((k for k, row in enumerate(rows.T) if np.allclose(row, wanted, rtol=1e-9, atol=1e-12)), None)
