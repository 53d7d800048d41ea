"""An FMU as a Gymnasium environment."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.archive import file_sha256
from spaql.errors import SettingError, nearest
from spaql.plugins.fmu.declaration import Declared, Named, Quantity, declared
from spaql.plugins.fmu.description import read_description
from spaql.plugins.fmu.simulation import FmuSimulation
from spaql.problems.meaning import Meaning
from spaql.problems.stage_cost import BROKEN, ConstraintLike, StageCost
from spaql.program.parser import Formula
from spaql.spaces import identifier
from spaql.values import whole_number

ENVIRONMENT = "spaql/FMU-v0"
Function = Callable[[Mapping[str, float]], float]
Observation = NDArray[np.float64]


class FMUEnv(gymnasium.Env[Any, Any]):
    """A plant that is an FMU for co-simulation.

    Observations are outputs of the FMU, and set-points after them; actions are its inputs, which are held
    during a step. All numbers are doubles. The reward of a step is minus its cost.

    Parameters
    ----------
    fmu
        Path of the FMU.
    cost
        Of a step: an expression of the variables at its end and the inputs during it, such as
        `"(level - level_set_point)**2 + 0.1 * valve**2"`, see `spaql.program.parser`; or a function of
        a dictionary of these values, with which a model file cannot name the environment.
    step_size
        Seconds of a step; that of the FMU's default experiment if it is not given.
    horizon
        Steps of an episode; those of the default experiment if it is not given.
    inputs
        The inputs to act on: names, or names with ranges. All that have no value in `parameters` if it is
        not given, with the ranges that the FMU declares. One whole number or truth value becomes a list of
        actions.
    outputs
        The variables to observe: names, or names with ranges. All outputs if it is not given.
    parameters
        Values of parameters, and of inputs that are not acted on: a number, or a range of which every episode
        draws one.
    start
        Start values of variables, in the same way.
    setpoints
        Set-points by the names of the outputs that are to follow them: a range, of which every episode draws
        one, or the name of another output. One that is drawn is observed as `level set-point`.
    angles
        Outputs that are angles in radians.
    terminated
        An expression that ends the episode where it holds, if there is one.
    constraints
        Expressions that are to hold after every step, or pairs of one and the price of a step that breaks it.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self,
        fmu: str | os.PathLike[str],
        *,
        cost: str | Function | None = None,
        step_size: float | None = None,
        horizon: int | None = None,
        inputs: Named | None = None,
        outputs: Named | None = None,
        parameters: Mapping[str, Any] | None = None,
        start: Mapping[str, Any] | None = None,
        setpoints: Mapping[str, Any] | None = None,
        angles: tuple[str, ...] = (),
        terminated: str | None = None,
        constraints: Iterable[ConstraintLike] = (),
        **unknown: Any,
    ) -> None:
        file = os.fspath(fmu)
        for name in unknown:
            known = [one for one in inspect.signature(FMUEnv).parameters if one not in ("fmu", "unknown")]
            raise SettingError(f"An FMU has no option {name!r}: {nearest(name, known)}")
        self._plant: Declared = declared(
            read_description(file),
            step_size=step_size,
            horizon=None if horizon is None else whole_number("horizon", horizon, least=1),
            inputs=inputs,
            outputs=outputs,
            parameters=parameters or {},
            start=start or {},
            setpoints=setpoints or {},
        )
        self._outputs = [one.variable.name for one in self._plant.outputs]
        self._simulation = FmuSimulation(file, self._plant.step_size)
        self.action_space, actions = _actions(self._plant.inputs)
        ranges = [one.range for one in self._plant.outputs] + [one.range for one in self._plant.setpoints]
        low, high = np.array(ranges, np.float64).T
        self.observation_space = Box(low, high, dtype=np.float64)
        seen = self._plant.observations
        self._names = [*map(identifier, seen), *(identifier(one.variable.name) for one in self._plant.inputs)]
        if twice := sorted({name for name in self._names if self._names.count(name) > 1}):
            raise SettingError(f"Two variables of {file} are written {twice[0]!r} in expressions: use one.")
        if cost is None:
            raise SettingError(
                f"{file} needs a cost: an expression of {', '.join(self._names)}, such as cost = "
                f'"{self._names[0]}**2".'
            )
        self._cost = cost if callable(cost) else Formula.parse("cost", cost, self._names)
        self._terminated = (
            None if terminated is None else Formula.parse("end (terminated)", terminated, self._names)
        )
        self._stage = StageCost.of(None, constraints, seen, [one.variable.name for one in self._plant.inputs])
        labels = {one.variable.name: one.variable.label for one in self._plant.outputs}
        self.meaning = Meaning(
            observations=seen,
            actions=actions,
            setpoints=dict(self._plant.followed),
            angles=tuple(labels.get(name, name) for name in angles),
            sample_time=self._plant.step_size,
            horizon=self._plant.horizon,
            constraints=self._stage.constraints,
            plant={"file": file_sha256(file)},
        )
        self._goals: list[float] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode, with values drawn from their ranges."""
        super().reset(seed=seed)
        variables = self._simulation.description.variables
        rng = self.np_random
        values = {}
        for name, (low, high) in self._plant.values.items():
            if low == high:
                values[name] = low
            elif variables[name].is_real:
                values[name] = float(rng.uniform(low, high))
            else:
                values[name] = float(rng.integers(int(low), int(high) + 1))
        self._goals = [float(rng.uniform(*one.range)) for one in self._plant.setpoints]
        self._simulation.begin(values)
        return self._observed(), {"time": self._simulation.time}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Make a step with the inputs held."""
        if isinstance(self.action_space, Discrete):
            numbers = [float(action)]
        else:
            numbers = np.asarray(action, np.float64).ravel().tolist()
        inputs = {one.variable.name: x for one, x in zip(self._plant.inputs, numbers, strict=True)}
        self._simulation.set(inputs)
        self._simulation.step()
        seen = self._observed()
        values = dict(zip(self._names, [*seen.tolist(), *numbers], strict=True))
        cost = self._value(self._cost, values)
        if not math.isfinite(cost):
            given = ", ".join(f"{name} = {x:g}" for name, x in values.items())
            raise self._simulation.failure(f"the cost is {cost} for {given}")
        ended = self._terminated is not None and self._value(self._terminated, values) != 0.0
        info: dict[str, Any]
        reward = -cost
        info = {"time": self._simulation.time}
        if self._stage.constraints:
            rows = seen[np.newaxis], np.array([numbers])
            reward = float(self._stage.rewards(np.array([reward]), *rows)[0])
            info[BROKEN] = self._stage.broken(*rows)[0]
        return seen, reward, ended, False, info

    def close(self) -> None:
        """End the instance of the FMU."""
        self._simulation.close()

    def _value(self, of: Formula | Function, values: Mapping[str, float]) -> float:
        if isinstance(of, Formula):
            return float(of({name: np.array([x]) for name, x in values.items()})[0])
        return float(of(values))

    def _observed(self) -> Observation:
        numbers = self._simulation.get(self._outputs)
        for name, x in zip(self._outputs, numbers, strict=True):
            if not math.isfinite(x):
                raise self._simulation.failure(f"{name} is {x}")
        return np.array([*numbers, *self._goals], np.float64)


def _actions(inputs: tuple[Quantity, ...]) -> tuple[Box | Discrete, tuple[str, ...]]:
    """Return the space of the actions, and their names."""
    if all(one.variable.is_real for one in inputs):
        low, high = np.array([one.range for one in inputs], np.float64).T
        return Box(low, high, dtype=np.float64), tuple(one.variable.label for one in inputs)
    if len(inputs) > 1:
        raise SettingError(
            f"The inputs {', '.join(one.variable.name for one in inputs)} are not all real: act on real "
            "numbers, or on one input of another type, and give the others values in parameters."
        )
    variable, (low, high) = inputs[0].variable, inputs[0].range
    first = math.ceil(low)
    last = math.floor(high)
    names = tuple(f"{variable.name} = {n}" for n in range(first, last + 1))
    return Discrete(last - first + 1, start=first), names
