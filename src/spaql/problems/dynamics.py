"""Dynamics: a plant as three small functions, compiled and registered as a Gymnasium environment."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import gymnasium
import numba
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError, UncachedPlantWarning
from spaql.kernels.draws import Draws
from spaql.kernels.jit import ENABLED, NumbaError, cache_by, callable_by_kernels, njit
from spaql.kernels.plant import Plant, compile_plant
from spaql.problems.content import Content, content_of, plain_function, sha256
from spaql.problems.disturbances import Disturbances, Functions, Load, Perturbation, checked, extras_of
from spaql.problems.disturbed import disturbed
from spaql.problems.meaning import Meaning, check_meaning
from spaql.problems.stage_cost import LISTED, ConstraintLike, StageCost, reward_function, with_stage_cost
from spaql.problems.user_errors import describe_error, try_functions
from spaql.registration import ENTRY_POINT, register

State = tuple[float, ...]


def the_state(state: State) -> State:
    """Observe the state as it is."""
    return state


@dataclass(frozen=True, kw_only=True)
class Dynamics:
    """A plant as three small functions.

    States are tuples of floats. The functions are compiled by Numba, so they are written in the plain Python
    and `math` that it supports; functions that they call must be decorated with `numba.njit`.

    Parameters
    ----------
    id
        Its id in Gymnasium and in model files, such as `DCMotor-v0`. No other environment may have it; a
        plant that is made again replaces the first.
    start
        `start(rng)` returns the first state of an episode, drawn by a `numpy.random.Generator`.
    step
        `step(state, action)` returns the next state, the reward, and whether the episode has terminated. The
        action is an index for a list of actions, and an array of numbers for ranges. It may take
        `parameters`, a tuple of those declared, and `rng`, which draws one number by `random()`,
        `uniform(low, high)`, `normal(mean, std)` or `integers(low, high)`: `step(state, action, parameters,
        rng)`.
    observe
        `observe(state)` returns the observation of a state, a tuple of floats; the state itself by default.
    observations
        The name of each number of an observation, with its range; infinite where there is none.
    actions
        The names of the actions; or the name of each number of an action, with its range.
    horizon
        Steps of an episode.
    reference
        The observation to regulate to, if there is one.
    parameters
        The parameters that `step` takes, by name: a number, or a range of which every episode draws one.
    noise
        Standard deviation of the noise on observations, by their names; cut at a tenth of the range.
    late_observations
        Whether an observation is that of the step before; the first one is observed twice.
    action_noise
        Standard deviation of the noise on actions, by their names, before the actuator; of discrete actions,
        the probability that a random action replaces one.
    delay
        Dead time of the action in samples; of a range, such as `(2, 4)`, every episode draws one. Before the
        first action the actuator rests at 0, or at the end of its range next to 0: one in absolute units
        begins there, and not where it holds the plant. Declare deviations if that is not meant.
    rate_limit
        The largest change of an action within a sample, by the names of actions.
    gain
        Every episode draws the gain of each actuator between 1 - gain and 1 + gain; the range of the action
        holds behind it.
    disturbance
        Loads by the names of the actions to which they are added, behind the actuator.
    setpoints
        Which observed number is to follow which observed set-point, both by name.
    angles
        Observations that are angles in radians; or `x`, if cos(x) and sin(x) are observed.
    sample_time
        Seconds between two actions.
    perturbation
        How the plant may differ from its equations: what `spaql.problems.perturbed` draws. TreeSearch designs
        for such plants wherever this is declared, and with set-points or a pole in any case.
    cost
        Of a step, an expression of observations at its end, without noise, and of the action that was given:
        names without units, with `_` for what is no letter or digit, and `action` for the number of an action
        of a list. The reward is minus the cost, and that of `step` is ignored.
    constraints
        Expressions that are to hold after every step. Evaluations count the episodes in which one is broken.
        A pair `("abs(speed) < 2", 5.0)` has a price, by which each step that breaks it costs more.

    Noise, loads and gains are drawn by the episode's start: the same in training, evaluation and stress
    tests.

    Examples
    --------
    >>> import math
    >>> def start(rng):
    ...     return (rng.uniform(-1.0, 1.0), 0.0)
    >>> def step(state, action):
    ...     x, v = state
    ...     v += 0.1 * action[0]
    ...     return (x + 0.1 * v, v), -x * x, abs(x) > 5.0
    >>> cart = Dynamics(
    ...     id="example/Cart-v0",
    ...     start=start,
    ...     step=step,
    ...     observations={"position [m]": (-5, 5), "speed [m/s]": (-math.inf, math.inf)},
    ...     actions={"force [N]": (-1, 1)},
    ...     horizon=100,
    ... )
    >>> gymnasium.make("example/Cart-v0").action_space
    Box(-1.0, 1.0, (1,), float32)
    """

    id: str
    start: Callable[[np.random.Generator], State]
    step: Callable[..., tuple[State, float, bool]]
    observe: Callable[[Any], tuple[float, ...]] = the_state
    observations: Mapping[str, tuple[float, float]]
    actions: Sequence[str] | Mapping[str, tuple[float, float]]
    horizon: int
    reference: tuple[float, ...] | None = None
    parameters: Mapping[str, float | tuple[float, float]] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)
    late_observations: bool = False
    action_noise: Mapping[str, float] = field(default_factory=dict)
    delay: int | tuple[int, int] = 0
    rate_limit: Mapping[str, float] = field(default_factory=dict)
    gain: float = 0.0
    disturbance: Mapping[str, Load] = field(default_factory=dict)
    setpoints: Mapping[str, str] = field(default_factory=dict)
    angles: tuple[str, ...] = ()
    sample_time: float | None = None
    perturbation: Perturbation | None = None
    cost: str | None = None
    constraints: Sequence[ConstraintLike] = ()
    plant_dims: int = field(init=False, repr=False, default=0)
    """Length of a state as `start` returns it."""
    state_dims: int = field(init=False, repr=False, default=0)
    """Length of a simulated state, which holds what the disturbances remember as well."""

    def __post_init__(self) -> None:
        spec = gymnasium.registry.get(self.id)
        if spec is not None and spec.entry_point != ENTRY_POINT:
            raise SettingError(
                f"{self.id} is the id of another environment already ({spec.entry_point}): give the plant an "
                f"id of its own, such as own/{self.id.rpartition('/')[2]}."
            )
        check_meaning(list(self.observations), self.setpoints, self.angles, self.sample_time)
        _ = self.stage_cost
        self._cache_by_content()
        disturbed = self.disturbances.is_needed  # an error in the declaration comes before one in a function
        start, step, observe = self._plain_functions
        object.__setattr__(self, "plant_dims", self._tried(start, self._with_all(step), observe))
        state_dims = self._tried(*self.functions) if disturbed else self.plant_dims
        object.__setattr__(self, "state_dims", state_dims)
        DYNAMICS[self.id] = self
        register(self.id, self.horizon)

    def __deepcopy__(self, memo: dict[int, Any]) -> Dynamics:
        """Return the dynamics themselves: they are immutable, so copied environments share them."""
        return self

    @property
    def is_registered(self) -> bool:
        """Whether the id still makes this plant, and no other plant or environment."""
        spec = gymnasium.registry.get(self.id)
        own = spec is not None and (spec.entry_point, spec.kwargs) == (ENTRY_POINT, {"dynamics": self.id})
        return own and DYNAMICS.get(self.id) is self

    @property
    def observation_space(self) -> Box:
        """The Gymnasium space of the observations, in single precision."""
        bounds = np.array(list(self.observations.values()), np.float32)
        return Box(bounds[:, 0], bounds[:, 1], dtype=np.float32)

    @property
    def action_space(self) -> Box | Discrete:
        """The Gymnasium space of the actions."""
        if isinstance(self.actions, Mapping):
            bounds = np.array(list(self.actions.values()), np.float32)
            return Box(bounds[:, 0], bounds[:, 1], dtype=np.float32)
        return Discrete(len(self.actions))

    @cached_property
    def disturbances(self) -> Disturbances:
        """What disturbs the plant, as numbers."""
        extras = extras_of(self.step)
        if bool(self.parameters) != ("parameters" in extras):
            what = f"{', '.join(self.parameters)} and" if self.parameters else "no parameters, but"
            takes = "does not take them" if self.parameters else "takes them"
            raise SettingError(f"The plant declares {what} step {takes}: step(state, action, parameters).")
        return checked(
            self.observations,
            self.actions,
            noise=self.noise,
            late_observations=self.late_observations,
            action_noise=self.action_noise,
            delay=self.delay,
            rate_limit=self.rate_limit,
            gain=self.gain,
            disturbance=self.disturbance,
            parameters=self.parameters,
            extras=extras,
        )

    @property
    def middle_parameters(self) -> dict[str, float]:
        """The parameters in the middle of their ranges."""
        ranges = self.disturbances.parameters
        return {name: (low + high) / 2 for name, (low, high) in zip(self.parameters, ranges, strict=True)}

    @property
    def meaning(self) -> Meaning:
        """What it declares of its observations and actions."""
        return Meaning(
            observations=tuple(self.observations),
            actions=tuple(self.actions),
            setpoints=self.setpoints,
            angles=self.angles,
            sample_time=self.sample_time,
            constraints=self.stage_cost.constraints if self.stage_cost else (),
        )

    @property
    def declares_more(self) -> bool:
        """Whether disturbances, parameters or set-points are declared."""
        return bool(self.disturbances.is_needed or self.parameters or self.setpoints)

    @cached_property
    def stage_cost(self) -> StageCost | None:
        """The declared cost and constraints, if there are any."""
        if self.cost is None and not self.constraints:
            return None
        actions = self.actions if isinstance(self.actions, Mapping) else (LISTED,)
        return StageCost.of(self.cost, self.constraints, self.observations, actions)

    def broken(self, states: NDArray[np.float64], actions: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which constraints are broken in simulated states, after these actions, one per row."""
        if self.stage_cost is None:
            return np.zeros((len(states), 0), np.bool_)
        observe = plain_function(self.observe)
        observations = [observe(tuple(row)) for row in states[:, : self.plant_dims].tolist()]
        return self.stage_cost.broken(np.array(observations, np.float64), actions)

    def _with_cost(self, step: Callable[..., Any], observe: Callable[..., Any]) -> Callable[..., Any]:
        """Return a step with the declared cost; one without is returned as it is."""
        stage = self.stage_cost
        if stage is None or not stage.changes_reward:
            return step
        reward = reward_function(stage, listed=not isinstance(self.actions, Mapping))
        inner = step if hasattr(step, "py_func") else callable_by_kernels(step)
        return with_stage_cost(inner, observe, self.plant_dims, reward)

    @property
    def _plain_functions(self) -> Functions:
        return plain_function(self.start), plain_function(self.step), plain_function(self.observe)

    @cached_property
    def functions(self) -> Functions:
        """The `start`, `step` and `observe` that are simulated, disturbances included, not compiled."""
        start, step, observe = disturbed(self.disturbances, self._plain_functions, self.plant_dims)
        return start, self._with_cost(step, plain_function(self.observe)), observe

    @property
    def nominal_functions(self) -> Functions:
        """`start`, `step` and `observe` without disturbances; parameters in the middle of their ranges."""
        start, step, observe = self._plain_functions
        return start, self._with_cost(self._with_all(step), observe), observe

    def simulated(self, states: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return states of the plant, one per row, as the loops take them, with disturbances drawn."""
        if states.shape[1] != self.plant_dims or self.plant_dims == self.state_dims:
            return states
        rows = self.draw(len(states), rng)
        rows[:, : self.plant_dims] = states
        return rows

    def draw(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw states in which episodes start, one per row, as the loops take them."""
        return self.plant.draw(n, rng)

    def _tried(self, *functions: Callable[..., Any]) -> int:
        """Call `start`, `step` and `observe` once; returns the length of a state."""
        return try_functions(functions, self.action_space, len(self.observations), self.reference)

    def _with_all(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """Return `step` as a function of the state and the action alone."""
        values = {
            "parameters": tuple(self.middle_parameters.values()),
            "rng": Draws(np.zeros(2, np.int64)),
        }
        extras = tuple(values[name] for name in self.disturbances.extras)
        return lambda state, action: step(state, action, *extras)

    @property
    def content(self) -> Content:
        """The functions that are simulated and all that they refer to, as they are now."""
        declared = {"start": self.start, "observe": self.observe, "step": self.step}
        simulated = dict(
            zip(("simulated start", "simulated step", "simulated observe"), self.functions, strict=True)
        )
        return content_of(simulated | declared)

    @property
    def digest(self) -> str:
        """A hash of `content`, the same in every process with the same versions of Python and libraries."""
        return _key(self.content)

    @cached_property
    def _compiled_from(self) -> Content:
        """The content when the functions were compiled, which is that of the compiled code from then on."""
        content = self.content
        for name, what in list(content.unknown.items())[:1] if ENABLED else ():
            warnings.warn(
                f"{self.id} is compiled in every process: it depends on {name} ({what}), and a change of "
                "that would not be noticed in compiled code on disk.",
                UncachedPlantWarning,
                stacklevel=2,
            )
        return content

    def refuse_if_changed(self) -> None:
        """Refuse a plant of which something was changed in this process after it was compiled."""
        if not ENABLED or "_compiled_from" not in vars(self):
            return
        before = self._compiled_from.parts
        now = self.content.parts
        if other := sorted(name for name in {**before, **now} if before.get(name) != now.get(name)):
            raise SettingError(
                f"{self.id} was compiled before a change of {', '.join(other)}: make the plant again, or "
                "restart Python."
            )

    def _cache_by_content(self) -> None:
        """Replace Numba's cache of the functions that it reaches, which knows one file for each."""
        if ENABLED:
            content = content_of({"start": self.start, "step": self.step, "observe": self.observe})
            for function in content.numba_cached:
                cache_by(function, _key(content), cached=content.is_cacheable)

    @cached_property
    def plant(self) -> Plant:
        """The functions that are simulated, as kernels call them: compiled, or taken from the cache."""
        return compile_plant(
            *self.compiled_functions,
            n_state=self.state_dims,
            n_seen=len(self.observations),
            n_actions=len(self.actions) if isinstance(self.actions, Mapping) else 0,
            depends_on=_key(self._compiled_from),
            cached=self._compiled_from.is_cacheable,
        )

    @cached_property
    def compiled_functions(self) -> Functions:
        """The compiled `start`, `step` and `observe` that are simulated, disturbances included."""
        cached = self._compiled_from.is_cacheable
        declared: list[Callable[..., Any]] = [self.start, self.step, self.observe]
        contents = [content_of({"function": function}) for function in declared]
        # Cached code is linked by name. So where one of the three calls others, all are of one process.
        joint = sha256([_key(content) for content in contents])
        keys = [_key(content) if len(content.parts) == 1 else joint for content in contents]
        start, step, observe = (
            _compiled(f, key, cached=cached) for f, key in zip(declared, keys, strict=True)
        )
        compiled = start, step, observe
        try:
            # Errors in the loops would hide the location of the fault.
            self._tried(compiled[0], self._with_all(compiled[1]), compiled[2])
        except NumbaError as error:
            raise SettingError(describe_error(error)) from error
        start, step, observe = disturbed(self.disturbances, compiled, self.plant_dims)
        wrapped = start, self._with_cost(step, compiled[2]), observe
        return tuple(self._compiled_wrapper(f) if f not in compiled else f for f in wrapped)  # type: ignore[return-value]

    def _compiled_wrapper(self, function: Callable[..., Any]) -> Callable[..., Any]:
        key = _key(self._compiled_from)
        function.__qualname__ += f"_{key[:16]}"  # cached code is linked by name
        return njit(function, depends_on=key, cached=self._compiled_from.is_cacheable)


DYNAMICS: dict[str, Dynamics] = {}
"""All dynamics by their id."""


def _key(content: Content) -> str:
    """Return a hash of content and of the libraries that are followed by name."""
    return sha256((content.digest, np.__version__, numba.__version__))


def _compiled(function: Callable[..., Any], depends_on: str, *, cached: bool) -> Callable[..., Any]:
    """Return the compiled function; one that is compiled already is returned as it is."""
    if not ENABLED or hasattr(function, "py_func"):
        return function
    return njit(function, depends_on=depends_on, cached=cached)
