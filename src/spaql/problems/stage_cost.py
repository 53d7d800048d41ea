"""The cost of a step and constraints on it, as expressions of named observations, actions and set-points.

Observations have their values at the end of the step, actions those that the controller gave for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.program.compiled import FunctionSource
from spaql.program.parser import Formula, renamed
from spaql.spaces import StandardActions, identifier
from spaql.values import real_number

Floats = NDArray[np.float64]
BROKEN = "broken"
"""The key of an environment's info under which it says which constraints the step breaks."""
LISTED = "action"
"""The name, in expressions, of the number of an action of a list."""


@dataclass(frozen=True)
class Constraint:
    """An expression that is to hold after every step.

    Examples
    --------
    >>> Constraint("abs(level - 10) < 5").is_hard, Constraint("valve < 0.9", 0.5).label
    (True, 'valve < 0.9 (0.5 a step)')
    """

    text: str
    price: float | None = None
    """What a step in which it is broken costs; None for a hard constraint, which is only counted."""

    @property
    def is_hard(self) -> bool:
        """Whether it has no price."""
        return self.price is None

    @property
    def label(self) -> str:
        """The text, with the price if there is one."""
        return self.text if self.price is None else f"{self.text} ({self.price:g} a step)"

    @property
    def as_data(self) -> list[Any]:
        """Return it as plain data, which `constraints_of` reads."""
        return [self.text, self.price]


ConstraintLike = str | Sequence[Any] | Constraint
"""An expression that is to hold, or a pair of one and its price."""


def constraints_of(constraints: Iterable[ConstraintLike]) -> tuple[Constraint, ...]:
    """Return constraints: texts, or pairs of a text and a price; others are refused."""
    if isinstance(constraints, str):
        raise SettingError(f"constraints is {constraints!r}, and must be a list: give [{constraints!r}].")
    checked = []
    for constraint in constraints:
        if isinstance(constraint, Constraint):
            constraint = constraint.as_data
        text, price = (constraint, None) if isinstance(constraint, str) else _pair(constraint)
        if price is not None:
            price = real_number(f"The price of the constraint {text!r}", price, above=0.0)
        checked.append(Constraint(text, price))
    texts = [constraint.text for constraint in checked]
    if twice := [text for text in texts if texts.count(text) > 1]:
        raise SettingError(f"The constraint {twice[0]!r} is given twice.")
    return tuple(checked)


def expression_names(actions: StandardActions) -> Sequence[str]:
    """Return the names of the components of an action in expressions: one for discrete actions."""
    if isinstance(actions.space, Discrete):
        return (LISTED,)
    return actions.labels


def _pair(constraint: Any) -> tuple[str, Any]:
    if not isinstance(constraint, Sequence) or len(constraint) != 2 or not isinstance(constraint[0], str):
        raise SettingError(
            f"A constraint is {constraint!r}, and must be an expression, or an expression with the price of "
            "a step in which it is broken."
        )
    return constraint[0], constraint[1]


@dataclass(frozen=True)
class StageCost:
    """A cost and constraints, checked.

    Examples
    --------
    >>> held = ["abs(x) < 2", ("force < 1", 5)]
    >>> spring = StageCost.of("x**2 + 0.1 * force**2", held, ["x [m]"], ["force [N]"])
    >>> spring.rewards(np.zeros(2), np.array([[1.0], [3.0]]), np.array([[0.0], [1.0]])).tolist()
    [-1.0, -14.1]
    >>> spring.broken(np.array([[1.0], [3.0]]), np.array([[0.0], [1.0]])).tolist()
    [[False, False], [True, True]]
    """

    cost: str | None
    """Of a step; None where the reward of the plant stays."""
    constraints: tuple[Constraint, ...]
    observations: tuple[str, ...]
    """Names in expressions."""
    actions: tuple[str, ...]

    @classmethod
    def of(
        cls,
        cost: str | None,
        constraints: Iterable[ConstraintLike],
        observations: Iterable[str],
        actions: Iterable[str],
    ) -> StageCost:
        """Return a cost and constraints over named observations and actions; anything else is refused."""
        stage = cls(
            cost,
            constraints_of(constraints),
            tuple(map(identifier, observations)),
            tuple(map(identifier, actions)),
        )
        names = stage.names
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise SettingError(
                f"Two of the observations and actions are written {twice[0]!r} in expressions: rename one."
            )
        _ = stage._parsed
        return stage

    @property
    def names(self) -> tuple[str, ...]:
        """The names that an expression may use."""
        return (*self.observations, *self.actions)

    @property
    def changes_reward(self) -> bool:
        """Whether there is a cost, or a constraint with a price."""
        return self.cost is not None or not all(constraint.is_hard for constraint in self.constraints)

    @property
    def as_data(self) -> dict[str, Any]:
        """Return cost and constraints as plain data."""
        return {"cost": self.cost, "constraints": [constraint.as_data for constraint in self.constraints]}

    def __str__(self) -> str:
        parts = [] if self.cost is None else [f"the cost {self.cost}"]
        return " and ".join(parts + [f"the constraint {constraint.label}" for constraint in self.constraints])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_parsed"}

    @cached_property
    def _parsed(self) -> tuple[Formula | None, list[Formula]]:
        cost = None if self.cost is None else Formula.parse("cost", self.cost, self.names)
        return cost, [
            Formula.parse("constraint", constraint.text, self.names) for constraint in self.constraints
        ]

    def broken(self, observations: Floats, actions: Floats) -> NDArray[np.bool_]:
        """Return which constraints each step breaks: rows of observations after it, and of its actions."""
        values = self._values(observations, actions)
        broken = np.zeros((len(observations), len(self.constraints)), np.bool_)
        for j, constraint in enumerate(self._parsed[1]):
            held = constraint(values, len(observations))
            broken[:, j] = ~((held != 0.0) & (held == held))  # NaN is broken
        return broken

    def rewards(self, rewards: Floats, observations: Floats, actions: Floats) -> Floats:
        """Return the reward of each step; `rewards` are those of the plant."""
        cost = self._parsed[0]
        total = rewards if cost is None else -cost(self._values(observations, actions), len(observations))
        broken = self.broken(observations, actions)
        for j, constraint in enumerate(self.constraints):
            total = total - np.where(broken[:, j], constraint.price or 0.0, 0.0)
        return total

    def _values(self, observations: Floats, actions: Floats) -> Mapping[str, Floats]:
        return dict(zip(self.names, (*observations.T, *actions.T), strict=True))

    def renamed(self, observations: Iterable[str], actions: Iterable[str]) -> StageCost:
        """Return the same for other names of the same numbers, in their order."""
        new = (*map(identifier, observations), *map(identifier, actions))
        names = dict(zip(self.names, new, strict=True))
        if all(name == now for name, now in names.items()):
            return self
        return StageCost.of(
            None if self.cost is None else renamed(self.cost, names),
            [(renamed(constraint.text, names), constraint.price) for constraint in self.constraints],
            observations,
            actions,
        )


@lru_cache(maxsize=256)
def reward_function(stage: StageCost, *, listed: bool) -> Callable[..., float]:
    """Return a function of the plant's reward, the observation after a step and its action, for kernels.

    Examples
    --------
    >>> spring = StageCost.of("x**2", [("force < 1", 5)], ["x [m]"], ["force [N]"])
    >>> float(reward_function(spring, listed=False)(0.0, (3.0,), [1.0]))
    -14.0
    """
    places = {name: f"seen[{j}]" for j, name in enumerate(stage.observations)}
    places |= {name: "float(action)" if listed else f"action[{j}]" for j, name in enumerate(stage.actions)}
    cost, held = stage._parsed
    source = FunctionSource(places)
    total = source.set("reward") if cost is None else source.set(f"-{source.add(cost.expression)}")
    for expression, constraint in zip(held, stage.constraints, strict=True):
        if constraint.price is not None:
            x = source.add(expression.expression)
            total = source.set(f"{total} - (0.0 if {x} != 0.0 and {x} == {x} else {constraint.price!r})")
    return source.function("stage_reward", "reward, seen, action", total)


def with_stage_cost(
    step: Callable[..., Any], observe: Callable[..., Any], n_plain: int, reward: Callable[..., float]
) -> Callable[..., Any]:
    """Return a step whose reward is that of a stage cost.

    Parameters
    ----------
    step
        Of the plant, disturbances included.
    observe
        The observation of the plant's own state, without noise.
    n_plain
        Length of that state, with which a simulated state begins.
    reward
        See `reward_function`.
    """

    def step_with_cost(state: Any, action: Any) -> Any:
        after, own_reward, terminated = step(state, action)
        return after, reward(own_reward, observe(after[:n_plain]), action), terminated

    return step_with_cost


class StageCostEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment with a cost and constraints as expressions, over its observations as it reports them."""

    def __init__(self, env: gymnasium.Env[Any, Any], stage: StageCost) -> None:
        super().__init__(env)
        self._stage = stage

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Make a step; its reward is minus the cost, and `info` says which constraints are broken."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        observations, done = (np.asarray(x, np.float64).reshape(1, -1) for x in (observation, action))
        total = float(self._stage.rewards(np.array([float(reward)]), observations, done)[0])
        info = (
            {**info, BROKEN: self._stage.broken(observations, done)[0]} if self._stage.constraints else info
        )
        return observation, total, terminated, truncated, info
