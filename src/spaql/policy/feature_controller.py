"""Controllers with memory: features, a rule tree of laws over them, and a limiter of the action."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.errors import BadEnvironmentError, SettingError
from spaql.formatting import counted
from spaql.kernels.controller import LARGEST, OBSERVED, ControllerArrays, Floats
from spaql.policy.arrays import Frame, action_range, tree_arrays
from spaql.policy.feature_table import FeatureTable, feature_names, feature_table
from spaql.policy.feature_text import controller_text
from spaql.policy.feature_tree import POSITION, VELOCITY, law_bounds, tree_over_features
from spaql.policy.features import Feature
from spaql.policy.leaves import Laws
from spaql.policy.policy import Policy, Rng
from spaql.policy.tree import RuleTree
from spaql.spaces import action_names, environment_actions, given_names, observation_names, split_unit
from spaql.values import real_number

_MOST_MEMORY = 2**14


class Sample(NamedTuple):
    """What a controller computed from a batch of observations: one row each."""

    features: Floats
    wish: Floats
    """What the laws asked for, before any limit."""
    action: Floats


@dataclass(frozen=True, eq=False)
class FeatureController(Policy):
    """A controller with memory: features, a rule tree of laws over them, and a limiter.

    At every sample the features are computed in their order from the observation and the memory, the tree
    finds a leaf and its laws, and their result is limited: the change to the rate limit, the action to its
    range. Only features remember something, besides the last action and, with hysteresis, the last leaf: the
    tree is a function of the features, and everything that reads rule trees reads this one.

    Examples
    --------
    >>> from spaql.policy import Error, Integral
    >>> controller = FeatureController.of_laws(
    ...     [Error("error", "set-point", "level"), Integral("integral", "error", limit=50.0)],
    ...     {"pump": {"error": 2.0, "integral": 0.5}},
    ...     observation_space=Box(0.0, 1.0, (2,), np.float64),
    ...     action_space=Box(0.0, 10.0, (1,), np.float64),
    ...     observations=("level [m]", "set-point [m]"),
    ...     actions=("pump [V]",),
    ...     sample_time=2.0,
    ... )
    >>> action, state = controller.predict([0.5, 1.0])
    >>> action.tolist(), controller.predict([0.5, 1.0], state)[0].tolist()
    ([1.0], [1.5])
    >>> print(controller)  # doctest: +NORMALIZE_WHITESPACE
    error [m] = set-point - level
    integral [m s] += 2 s * error, from 0, within -50 and 50; waits while it would push a limited
        action further
    <BLANKLINE>
    pump [V] = 2.0 * error [m] + 0.5 * integral [m s]
    <BLANKLINE>
    pump [V]: within 0 and 10; from 0 at a reset
    A sample every 2 s.
    One leaf: a PI controller, Kp = 2, Ti = 4 s.
    """

    features: tuple[Feature, ...]
    """In the order in which they are computed."""
    tree: RuleTree
    """The rules and laws over the features; the laws of the velocity form are changes of the action."""
    observation_space: Box
    action_space: Box
    sample_time: float
    """Seconds between samples."""
    observations: tuple[str, ...] = ()
    """Names of the numbers of an observation, with their units."""
    actions: tuple[str, ...] = ()
    """Names of the numbers of an action, with their units."""
    form: str = POSITION
    """"position": laws are the action; "velocity": laws are its change in a sample."""
    rate_limit: tuple[float, ...] = ()
    """The largest change per second of each number of the action; infinite, the default, for none."""
    dead_band: tuple[float, ...] = ()
    """Changes of each number of the action that are smaller are not made; 0 by default."""
    start: tuple[float, ...] = ()
    """What counts as the last action at a reset; by default the action nearest to 0."""
    hysteresis: tuple[float, ...] = ()
    """For each number that rules compare (features, then sums), the margin by which a condition of the last
    leaf must be missed before it is left; none by default."""

    def __post_init__(self) -> None:
        if not (isinstance(self.observation_space, Box) and isinstance(self.action_space, Box)):
            raise SettingError("A controller with memory has a Box of observations and a Box of actions.")
        seen = observation_names(self.observation_space, self.observations)
        done = action_names(self.action_space, self.actions)
        low, high = self._range()
        nearest = tuple(np.clip(0.0, low, high).tolist())
        set_ = object.__setattr__
        set_(self, "features", tuple(self.features))
        dims = int(np.prod(self.observation_space.shape))
        set_(self, "observations", given_names("observations", seen, dims))
        set_(self, "actions", given_names("actions", done, len(low)))
        set_(self, "sample_time", real_number("sample_time", self.sample_time, above=0))
        set_(self, "rate_limit", self._numbers("rate_limit", (math.inf,) * len(low)))
        set_(self, "dead_band", self._numbers("dead_band", (0.0,) * len(low)))
        set_(self, "start", self._numbers("start", nearest, -math.inf))
        set_(self, "hysteresis", self._numbers("hysteresis", (0.0,) * self.tree.width))
        self._check()

    def _numbers(self, name: str, default: tuple[float, ...], least: float = 0.0) -> tuple[float, ...]:
        """Return the numbers of a field, or the default for an empty one."""
        given = getattr(self, name)
        found = (given,) if isinstance(given, int | float) else tuple(given)
        if not found:
            return default
        numbers = tuple(float(x) for x in found)
        if len(numbers) != len(default) or not all(x >= least for x in numbers):
            ends = "" if least == -math.inf else f" of at least {least:g}"
            raise SettingError(f"{name} is {given!r}, and must be {counted(len(default), 'number')}{ends}.")
        return numbers

    def _range(self) -> tuple[Floats, Floats]:
        return action_range(self.action_space)

    def _check(self) -> None:
        """Refuse what does not fit together."""
        if self.form not in (POSITION, VELOCITY):
            raise SettingError(f"form is {self.form!r}, and must be {POSITION!r} or {VELOCITY!r}.")
        names = feature_names(self.features, self.observations, self.actions)
        low, high = self._range()
        if self.tree.observations != names:
            raise SettingError(
                f"The tree reads {', '.join(self.tree.observations)}, and the features are "
                f"{', '.join(names)}: make it by `tree_over_features`."
            )
        if not isinstance(self.tree.action_space, Box) or self.tree.actions != self.actions:
            raise SettingError(f"The tree must have laws for {', '.join(self.actions)}.")
        bounds = law_bounds(self.action_space, self.form)
        leaves = self.tree.leaves
        if isinstance(leaves, Laws) and not np.array_equal((leaves.low, leaves.high), bounds):
            raise SettingError(
                f"In {self.form} form the laws of the tree are bounded by {bounds[0].tolist()} and "
                f"{bounds[1].tolist()}: the range of the action is part of the limiter."
            )
        if not all(a <= x <= b for a, x, b in zip(low, self.start, high, strict=True)):
            raise SettingError(f"start is {self.start}, and must be an action of {self.action_space}.")
        if not np.isfinite([*self.dead_band, *self.start, *self.hysteresis]).all():
            raise SettingError("dead_band, start and hysteresis are finite numbers.")
        if self.memory_size > _MOST_MEMORY:
            raise SettingError(f"The features remember more than {_MOST_MEMORY} numbers.")
        assert self.arrays  # raises if the tree is too large

    @classmethod
    def of_laws(
        cls,
        features: Sequence[Feature],
        gains: Mapping[str, Mapping[str, float]],
        offsets: Mapping[str, float] | None = None,
        *,
        observation_space: Box,
        action_space: Box,
        observations: Sequence[str] = (),
        actions: Sequence[str] = (),
        form: str = POSITION,
        **settings: Any,
    ) -> FeatureController:
        """Return a controller of one leaf, with the gains of each feature for each number of the action.

        The settings are further fields of `FeatureController`.
        """
        seen = observation_names(observation_space, observations)
        done = action_names(action_space, actions)
        rows, columns = [split_unit(name)[0] for name in done], [one.name for one in features]
        gain, offset = np.zeros((1, len(rows), len(columns))), np.zeros((1, len(rows)))
        for name, terms in gains.items():
            for term, number in terms.items():
                gain[0, _place(name, rows, "action"), _place(term, columns, "feature")] = number
        for name, number in (offsets or {}).items():
            offset[0, _place(name, rows, "action")] = number
        tree = tree_over_features(features, gain, offset, action_space, seen, done, form)
        names: dict[str, Any] = {"observations": seen, "actions": done, "form": form}
        return cls(tuple(features), tree, observation_space, action_space, **names, **settings)

    @cached_property
    def arrays(self) -> ControllerArrays:
        """The controller as the closed loop reads it."""
        return tree_arrays(self.tree, self.frame, hysteresis=self.hysteresis, copied=True)

    @cached_property
    def frame(self) -> Frame:
        """The controller but for its tree."""
        table, memory = self._table
        column, feature, setting = table.computed(len(self.observations))
        low, high = self._range()
        rate = np.array(self.rate_limit) * self.sample_time
        limit = [low, high, rate, np.array(self.dead_band), np.array(self.start), high - low]
        return Frame(
            len(self.observations),
            np.array(limit),
            column,
            len(self.actions),
            feature=feature,
            setting=setting,
            velocity=self.form == VELOCITY,
            remembers=True,
            memory=memory,
        )

    @cached_property
    def _table(self) -> tuple[FeatureTable, int]:
        return feature_table(self.features, self.observations, self.actions, self.sample_time, self.start)

    @property
    def computed_features(self) -> tuple[Feature, ...]:
        """The features that are no observations themselves."""
        return tuple(feature for feature in self.features if feature.kind != OBSERVED)

    @cached_property
    def memory_size(self) -> int:
        """How many numbers the memory of an episode has."""
        return self._table[1]

    def new_memory(self, n: int) -> Floats:
        """Return the memory of n episodes before their first samples, one a row."""
        return self.arrays.new_memories(n)

    def sample(self, observations: NDArray[Any], memory: Floats) -> Sample:
        """Take a sample in each of several episodes, and update their memory in place."""
        batch = np.asarray(observations, np.float64).reshape(len(memory), -1)
        lost = ~(np.abs(batch) <= LARGEST).all(axis=1)
        if lost.any():
            row = int(np.flatnonzero(lost)[0])
            raise BadEnvironmentError(
                f"Observation {row} of the batch is {batch[row]}: a controller with memory takes numbers up "
                f"to {LARGEST:g} only."
            )
        return self.computed(batch, memory)

    def computed(self, batch: Floats, memory: Floats) -> Sample:
        """Take a sample of observations that are not checked."""
        x, wish, action = self.arrays.sample(batch, memory)
        return Sample(x[:, self.frame.columns], wish, action)

    def act(self, observations: Any, steps: NDArray[np.int64] | None = None, rng: Rng | None = None) -> Any:
        """Return the first actions of episodes; for later steps use `for_episodes`, or `predict`."""
        if steps is not None and np.any(steps):
            raise SettingError(
                "This controller has memory, which `act` does not keep: play it with `for_episodes`, or pass "
                "the state of `predict` on."
            )
        return environment_actions(
            self.action_space, self.sample(observations, self.new_memory(len(observations))).action
        )

    def for_episodes(self, n: int) -> Policy:
        """Return the policy that plays n new episodes, one a row of every batch, each with its memory."""
        return _Playing(self, self.new_memory(n))

    def predict(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
        *,
        rng: Rng | None = None,
    ) -> tuple[Any, tuple[NDArray[Any], ...] | None]:
        """Return the action for one observation or a batch of them, and the next state (see `Policy`).

        The state is the memory, one row for each observation.
        """
        batch, single = self._batch(observation)
        fresh = self.new_memory(len(batch))
        memory = fresh if state is None else np.array(state[0], np.float64)
        if memory.shape != fresh.shape:
            raise SettingError(f"The state has the shape {memory.shape}, and must have {fresh.shape}.")
        if episode_start is not None:
            memory = np.where(np.reshape(episode_start, (-1, 1)), fresh, memory)
        actions = environment_actions(self.action_space, self.sample(batch, memory).action)
        return (actions[0] if single else actions), (memory,)

    def features_of(self, observation: Any, state: tuple[NDArray[Any], ...] | None = None) -> Floats:
        """Return the features of one observation, for `tree.explain` and the like; the state stays."""
        memory = self.new_memory(1) if state is None else np.array(state[0], np.float64)
        features: Floats = self.sample(np.asarray(observation)[np.newaxis], memory).features[0]
        return features

    @property
    def n_leaves(self) -> int:
        """Number of leaves of the tree."""
        return self.tree.n_leaves

    def __repr__(self) -> str:
        over = ", ".join(feature.name for feature in self.features)
        size, time = counted(self.n_leaves, "leaf"), f"{self.sample_time:g} s"
        return f"FeatureController({size} over {over}, every {time})"

    def __str__(self) -> str:
        return controller_text(self)


class _Playing(Policy):
    """A controller with the memory of the episodes that it plays."""

    def __init__(self, controller: FeatureController, memory: Floats) -> None:
        self.observation_space, self.action_space = controller.observation_space, controller.action_space
        self._controller, self._memory = controller, memory

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        return environment_actions(
            self.action_space, self._controller.sample(observations, self._memory).action
        )


def _place(name: str, names: Sequence[str], what: str) -> int:
    if name not in names:
        raise SettingError(f"There is no {what} {name!r}: there is {', '.join(names)}.")
    return names.index(name)
