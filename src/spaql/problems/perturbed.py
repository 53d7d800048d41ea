"""A plant that differs from its equations in every episode: for robust design, and to judge one."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.problems.disturbances import Perturbation
from spaql.problems.disturbed import copy_common
from spaql.problems.dynamics import Dynamics
from spaql.problems.stage_cost import LISTED, StageCost
from spaql.values import refuse_unknown


def perturbed(
    dynamics: Dynamics,
    *,
    gain: float | None = None,
    delay: int | None = None,
    noise: Mapping[str, float] | None = None,
    parameters: Mapping[str, tuple[float, float]] | None = None,
    id: str | None = None,
) -> Dynamics:
    """Return a plant with sensor noise of which episodes draw actuator gains, dead time and parameters.

    What is not given is that of the plant's `perturbation`; where it declares none, gains of 1 ± 0.2, a
    sample more or less of dead time where there is any, and the noise that the plant declares. Set-points,
    loads and the spaces are those of the plant, so that a controller for one can be run on the other.

    Parameters
    ----------
    dynamics
        The plant.
    gain
        Gains of the actuators lie between 1 - gain and 1 + gain; for a list of actions there is none.
    delay
        Dead time differs by up to so many samples; without dead time, none is added.
    noise
        Standard deviation of the noise on observations, by their names; others keep what the plant declares.
    parameters
        Ranges of the plant's parameters, by their names.
    id
        The id of the perturbed plant; by default it is derived from the id of the plant and what is drawn.

    Examples
    --------
    >>> import spaql
    >>> oven = perturbed(spaql.make_problem("spaql/Oven-v0").dynamics, gain=0.1)
    >>> oven.gain, oven.delay, dict(oven.noise)
    (0.1, (2, 4), {'temperature [°C]': 0.3})
    """
    usual = dynamics.perturbation or Perturbation()
    ranged = isinstance(dynamics.actions, Mapping)
    gain = (usual.gain if ranged else 0.0) if gain is None else gain
    spread = usual.delay if delay is None else delay
    parameters = {**usual.parameters, **(parameters or {})}
    refuse_unknown(parameters, dynamics.parameters, "parameters", "parameter of the plant")
    least, most = dynamics.disturbances.delay
    if most > 0:
        least = max(0, least - spread)
        most = most + spread
    elif delay:
        raise SettingError(f"{dynamics.id} has no dead time to change: give the plant a delay first.")
    changes = {
        "gain": gain,
        "delay": (least, most) if least < most else most,
        "noise": {**dynamics.noise, **usual.noise, **(noise or {})},
        "parameters": {**dynamics.parameters, **parameters},
    }
    own_id = id or derived_id(dynamics, "perturbed", changes)
    return dataclasses.replace(dynamics, id=own_id, **changes)  # type: ignore[arg-type]


def with_plant_parameters(dynamics: Dynamics, values: Mapping[str, float]) -> Dynamics:
    """Return a plant with other values of its parameters, under an id of its own.

    Examples
    --------
    >>> import spaql
    >>> oven = spaql.problems.find_dynamics("spaql/Oven-v0")
    >>> slow = with_plant_parameters(oven, {"time constant [s]": 180.0})
    >>> slow.parameters["time constant [s]"], slow.parameters["gain [K]"]
    (180.0, 240.0)
    """
    refuse_unknown(values, dynamics.parameters, "parameters", "parameter of the plant")
    changed = {**dynamics.parameters, **values}
    return dataclasses.replace(dynamics, id=derived_id(dynamics, "changed", changed), parameters=changed)


def paired_states(
    dynamics: Dynamics, states: NDArray[np.float64], changed: Dynamics, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return states of a changed plant that differ from those of the plant only in what was changed.

    They have the same starts, loads and noise; what the plant does not draw is drawn.
    """
    rows = changed.draw(len(states), rng)
    copy_common(dynamics.disturbances, states, changed.disturbances, rows, dynamics.plant_dims)
    return rows


def with_other_cost(dynamics: Dynamics, stage: StageCost) -> Dynamics:
    """Return a plant that declares a cost and constraints, under an id of its own.

    Their names may be others than the plant's, for the same numbers.

    Examples
    --------
    >>> import spaql
    >>> pendulum = spaql.problems.find_dynamics("Pendulum-v1")
    >>> stage = StageCost.of("angle_speed**2", [], ["x", "y", "angle speed"], ["torque"])
    >>> with_other_cost(pendulum, stage).cost
    'speed ** 2'
    """
    actions = dynamics.actions if isinstance(dynamics.actions, Mapping) else (LISTED,)
    own = stage.renamed(dynamics.observations, actions)
    own_id = derived_id(dynamics, "cost", own.as_data)
    return dataclasses.replace(dynamics, id=own_id, cost=own.cost, constraints=own.constraints)


def derived_id(dynamics: Dynamics, word: str, changes: object) -> str:
    """Return an id that is the same for the same changes of a plant.

    Examples
    --------
    >>> import spaql
    >>> derived_id(spaql.problems.find_dynamics("spaql/Oven-v0"), "steps", 1)
    'spaql/Oven-steps-6b86b2-v0'
    """
    drawn = hashlib.sha256(repr(changes).encode()).hexdigest()[:6]
    name, _, version = re.fullmatch(r"(.*?)(-v(\d+))?", dynamics.id).groups()  # type: ignore[union-attr]
    return f"{name}-{word}-{drawn}-v{version or 0}"
