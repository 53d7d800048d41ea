"""The controller: features, rules, laws and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.controllers.arrays import Frame, action_range, controller_frame, tree_arrays
from spaql.controllers.explanation import Explanation, explained, observed
from spaql.controllers.feature_table import feature_names
from spaql.controllers.features import Feature
from spaql.controllers.laws import Laws
from spaql.controllers.limits import POSITION as POSITION
from spaql.controllers.limits import VELOCITY as VELOCITY
from spaql.controllers.limits import checked_limits
from spaql.controllers.policy import Decisions, Moments, Playing, Policy, Rng
from spaql.controllers.rules import DecisionTree
from spaql.controllers.text import text
from spaql.controllers.wording import sum_text
from spaql.errors import BadEnvironmentError, SettingError
from spaql.formatting import counted
from spaql.kernels.controller import LARGEST, OBSERVED, ControllerArrays
from spaql.kernels.numerics import Floats
from spaql.spaces import (
    action_names,
    count_actions,
    environment_actions,
    find_observation,
    given_names,
    observation_names,
    split_unit,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Controller(DecisionTree, Policy):
    """A controller that can be read: features, a decision tree over them with laws in its leaves, and limits.

    The inputs of rules and laws are the observations, or else declared features of them. Nodes are rows of
    parallel arrays, node 0 the root, children after their parents. Node i asks whether
    `x[feature[i]] < threshold[i]`, in double precision, and goes to `left[i]` if so, else to `right[i]`. The
    numbers x are the inputs, and after them their weighted sums by `combinations`; a sum that is NaN, because
    infinite observations cancel in it, is not below any threshold. A node may be the child of several: equal
    subtrees are stored once in memory, and in a file only equal leaves.

    With a sample time the controller has a memory: of its features, of the last action, which its limits
    compare, and with hysteresis of the last leaf. Only finite observations are taken then.

    Examples
    --------
    A tree with discrete actions:

    >>> tree = Controller(
    ...     feature=[0, -1, -1],
    ...     threshold=[0.5, 0.0, 0.0],
    ...     left=[1, -1, -1],
    ...     right=[2, -1, -1],
    ...     leaf=[-1, 0, 1],
    ...     laws=[0, 1],
    ...     observation_space=Box(-1.0, 1.0, (1,)),
    ...     action_space=Discrete(2),
    ...     observations=("level [m]",),
    ...     actions=("close", "open"),
    ... )
    >>> print(tree)
    if level [m] < 0.5:
        close
    else:
        open
    >>> tree.act(np.array([[0.4], [0.5]]))
    array([0, 1])

    A PI controller:

    >>> from spaql.controllers import Error, Integral
    >>> controller = Controller.of_laws(
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
    integral [m s] = integral of error within -50 and 50, from 0: += 2 s * error; waits while it would push
        a limited action further
    <BLANKLINE>
    pump [V] = 2.0 * error [m] + 0.5 * integral [m s]
    <BLANKLINE>
    pump [V]: within 0 and 10; from 0 at a reset
    A sample every 2 s.
    # a PI controller, Kp = 2, Ti = 4 s
    """

    observation_space: Box | Discrete
    action_space: Box | Discrete
    observations: tuple[str, ...] = ()
    """Names of the components of an observation, with their units."""
    actions: tuple[str, ...] = ()
    """Names of the discrete actions, or of the components of an action, with their units."""
    features: tuple[Feature, ...] = ()
    """The inputs, in the order in which they are computed; none for the observations themselves."""
    sample_time: float | None = None
    """Seconds between samples; None for a controller without memory."""
    form: str = POSITION
    """Whether laws are the action, or in "velocity" form its change in a sample."""
    rate_limit: tuple[float, ...] = ()
    """The largest change of each component of the action in a second; none by default."""
    dead_band: tuple[float, ...] = ()
    """Smaller changes of the action are not made; 0 by default."""
    start: tuple[float, ...] = ()
    """What counts as the last action at a reset; by default the action nearest to 0, or the first one."""
    hysteresis: tuple[float, ...] = ()
    """For each number that rules compare (inputs, then sums), the margin by which a condition of the last
    leaf must be missed before it is left; none by default."""
    smallest: bool = False
    """Whether it is proven that no tree of fewer leaves has the same actions, of those whose rules compare
    single inputs, with leaves from the same table."""
    within: Box | None = None
    """Bounds within which it agrees with the policy that it was made from; None if everywhere."""

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        inputs = observation_names(self.observation_space, self.observations)
        done = action_names(self.action_space, self.actions)
        set_(self, "features", tuple(self.features))
        dims = int(np.prod(self.observation_space.shape or (1,)))
        set_(self, "observations", given_names("observations", inputs, dims))
        set_(self, "actions", given_names("actions", done, count_actions(self.action_space)))
        feature_names(self.features, self.observations, self.components)  # raises if they are not sound
        self._set_nodes()
        if not isinstance(self.laws, Laws):
            set_(self, "laws", Laws.of_actions(self.laws, self.action_space, self.dims))
        for name, value in checked_limits(self).items():
            set_(self, name, value)
        assert self.frame  # raises if its features remember too much
        self._check_nodes()
        self.laws.check(self.dims, self.action_space)
        if self.remembers:
            assert self.arrays  # raises if the tree is too large

    @classmethod
    def of_laws(
        cls,
        features: Sequence[Feature],
        gains: Mapping[str, Mapping[str, float]],
        offsets: Mapping[str, float] | None = None,
        *,
        observation_space: Box,
        action_space: Box | Discrete,
        observations: Sequence[str] = (),
        actions: Sequence[str] = (),
        **settings: Any,
    ) -> Controller:
        """Return a controller of one leaf, with the gains of inputs for each component of the action.

        Of discrete actions these are the gains of their scores. The settings are further fields of
        `Controller`.
        """
        inputs = observation_names(observation_space, observations)
        done = action_names(action_space, actions)
        rows = [split_unit(name)[0] for name in done]
        columns = [feature.name for feature in features] or [split_unit(name)[0] for name in inputs]
        given_names("features" if features else "observations", columns, len(columns))  # raises for doubles
        gain = np.zeros((1, len(rows), len(columns)))
        offset = np.zeros((1, len(rows)))
        for name, terms in gains.items():
            for term, number in terms.items():
                row = find_observation(name, rows, what="action")
                gain[0, row, find_observation(term, columns, what="feature")] = number
        for name, number in (offsets or {}).items():
            offset[0, find_observation(name, rows, what="action")] = number
        return cls(
            laws=Laws(gain, offset),
            observation_space=observation_space,
            action_space=action_space,
            observations=inputs,
            actions=done,
            features=tuple(features),
            **settings,
        )

    @property
    def discrete(self) -> bool:
        """Whether actions are numbers of a list."""
        return isinstance(self.action_space, Discrete)

    @property
    def remembers(self) -> bool:
        """Whether it has a memory, and a sample time."""
        return self.sample_time is not None

    @property
    def action_size(self) -> int:
        """How many components an action has."""
        return 1 if self.discrete else len(self.actions)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of what rules and laws read, with their units: features, or else the observations."""
        if not self.features:
            return self.observations
        return feature_names(self.features, self.observations, self.components)

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the components of an action, with their units."""
        return ("action",) if self.discrete else self.actions

    @property
    def input_space(self) -> Box | Discrete:
        """The range of the inputs; features have none."""
        if not self.features:
            return self.observation_space
        return Box(-np.inf, np.inf, (self.dims,), np.float64)

    @cached_property
    def arrays(self) -> ControllerArrays:
        """The controller as the closed loop reads it."""
        return tree_arrays(self, self.frame, copied=self.remembers)

    @cached_property
    def frame(self) -> Frame:
        """The controller but for its tree."""
        return controller_frame(self)

    @property
    def computed_features(self) -> tuple[Feature, ...]:
        """The features that are no observations themselves."""
        return tuple(feature for feature in self.features if feature.kind != OBSERVED)

    def new_memory(self, n: int) -> Floats:
        """Return the memory of n episodes before their first samples, one a row."""
        return self.arrays.new_memories(n)

    def sample(self, observations: NDArray[Any], memory: Floats) -> Decisions:
        """Take a sample in each of several episodes, and update their memory in place."""
        batch = np.asarray(observations, np.float64).reshape(len(memory), len(self.observations))
        lost = ~(np.abs(batch) <= LARGEST) if self.remembers else np.isnan(batch)
        if lost.any():
            row = int(np.flatnonzero(lost.any(axis=1))[0])
            what = f"holds NaN: {batch[row]}"
            if self.remembers:
                what = f"is {batch[row]}: this controller takes numbers up to {LARGEST:g}"
            raise BadEnvironmentError(f"Observation {row} of the batch {what}.")
        return self.computed(batch, memory)

    def computed(self, batch: Floats, memory: Floats) -> Decisions:
        """Take a sample of observations that are not checked."""
        x, wish, action = self.arrays.sample(batch, memory)
        return Decisions(x[:, self.frame.columns], wish, action)

    def act(self, observations: Any, steps: NDArray[np.int64] | None = None, rng: Rng | None = None) -> Any:
        """Return the actions for a batch of observations, in the form of the action space.

        With memory these are the first actions of episodes; for later steps use `for_episodes`, or `predict`.
        Where infinite observations cancel in a law, the default action is returned.
        """
        if self.remembers and steps is not None and np.any(steps):
            raise SettingError(
                "This controller has memory, which `act` does not keep: play it with `for_episodes`, or pass "
                "the state of `predict` on."
            )
        batch = np.asarray(observations, np.float64).reshape(-1, len(self.observations))
        return environment_actions(self.action_space, self.sample(batch, self.new_memory(len(batch))).action)

    def for_episodes(self, n: int) -> Policy:
        """Return the policy that plays n new episodes, one a row of every batch, each with its memory."""
        return Playing(self, self.new_memory(n)) if self.features or self.remembers else self

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
        if not self.remembers:
            return super().predict(observation, state, episode_start, deterministic, rng=rng)
        batch, single = self._batch(observation)
        memory = self._memory(state, len(batch))
        if episode_start is not None:
            memory = np.where(np.reshape(episode_start, (-1, 1)), self.new_memory(len(batch)), memory)
        actions = environment_actions(self.action_space, self.sample(batch, memory).action)
        return (actions[0] if single else actions), (memory,)

    def _memory(self, state: tuple[NDArray[Any], ...] | None, n: int) -> Floats:
        """Return the memory of a state of `predict`, or the first one."""
        fresh = self.new_memory(n)
        memory = fresh if state is None else np.array(state[0], np.float64)
        if memory.shape != fresh.shape:
            raise SettingError(f"The state has the shape {memory.shape}, and must have {fresh.shape}.")
        return memory

    @property
    def named_actions(self) -> tuple[str, ...]:
        """Names of the discrete actions, or of the components of an action."""
        return self.actions

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the observations, and of the features that are computed."""
        computed = {feature.name for feature in self.computed_features}
        return (*self.observations, *(name for name in self.inputs if split_unit(name)[0] in computed))

    def moments(self, observations: Floats) -> Moments:
        """Return what it knew at each observation of an episode."""
        if not self.remembers:
            x = self.arrays.sample(observations, self.new_memory(len(observations)))[0]
            return Moments(x, np.empty((len(x), 0)))
        memory = self.new_memory(1)
        known = np.empty((len(observations), len(self.known)))
        memories = np.empty((len(observations), memory.shape[1]))
        for i in range(len(observations)):
            memories[i] = memory[0]
            known[i] = self.arrays.sample(observations[i : i + 1], memory)[0][0]
        return Moments(known, memories)

    def inputs_of(self, observation: Any, state: tuple[NDArray[Any], ...] | None = None) -> Floats:
        """Return the inputs of rules and laws for one observation; the state stays as it is."""
        inputs: Floats = self.sample(np.asarray(observation)[np.newaxis], self._memory(state, 1)).inputs[0]
        return inputs

    def explain(self, observation: Any, state: tuple[NDArray[Any], ...] | None = None) -> Explanation:
        """Explain the action for an observation: the rule that was followed, and what would change it.

        With memory it is explained in terms of the features, for a state of `predict`, or the first sample of
        an episode.
        """
        point, _ = observed(observation, self.observations)
        return self.explain_inputs(self.inputs_of(point, state) if self.features else point, state)

    def explain_inputs(self, inputs: Any, state: tuple[NDArray[Any], ...] | None = None) -> Explanation:
        """Explain the action for given inputs of rules and laws (see `explain`)."""
        return explained(self, inputs, self._memory(state, 1))

    def decide(self, inputs: Floats, memory: Floats | None = None) -> Floats:
        """Return the actions for rows of inputs with one memory, that of the first sample by default.

        Discrete actions are numbered as the environment does.
        """
        memory = self.new_memory(1) if memory is None else memory
        x = np.zeros((len(inputs), len(self.observations) + len(self.computed_features)))
        x[:, self.frame.columns] = inputs
        return self.frame.first + self.arrays.decide(x, np.repeat(memory, len(inputs), axis=0))

    @property
    def dims(self) -> int:
        """How many inputs there are."""
        return len(self.features) or len(self.observations)

    def number_names(self, digits: int | None = None) -> tuple[str, ...]:
        """Return the names of the numbers that rules compare; a sum is written out, rounded to digits."""
        sums = (sum_text(row, self.inputs, digits) for row in self.combinations)
        return (*self.inputs, *sums)

    @property
    def size(self) -> tuple[int | None, str]:
        """Its leaves."""
        return self.n_leaves, "leaf"

    @property
    def n_numbers(self) -> int:
        """How many numbers a person has to read to know the tree.

        Those are the threshold of each different rule, the weights of each sum that rules compare, and of
        each different leaf its constants, or the offsets and gains of its laws. Numbers that are 0 do not
        count except as thresholds, nor do actions of a list, nor the bounds that all laws share.
        """
        inner = self.feature >= 0
        sums = np.unique(self.feature[inner & (self.feature >= self.dims)]) - self.dims
        rows = np.unique(self.same_laws[self.leaf[~inner]])
        if self.discrete:
            rows = rows[~self.laws.constant[rows]]
        offset = self.laws.offset[rows]
        laws = np.count_nonzero(self.laws.gain[rows]) + np.count_nonzero(offset[offset > -np.inf])
        return int(np.count_nonzero(inner) + np.count_nonzero(self.combinations[sums]) + laws)

    @cached_property
    def same_laws(self) -> NDArray[np.int64]:
        """For each law, the first in the table that is equal to it (see `Laws.first_equal`)."""
        return self.laws.first_equal(discrete=self.discrete)

    def constant_action(self, row: int) -> tuple[float, ...] | None:
        """Return the action of a law that is constant, None for any other law.

        A discrete one has its number; that of a law in velocity form is its change.
        """
        if not self.laws.constant[row]:
            return None
        if self.discrete:
            return (float(self.frame.first + self.laws.highest[row]),)
        offset = self.laws.offset[row]
        if self.form == VELOCITY:
            return tuple(offset.tolist())
        low, high = action_range(self.action_space)
        return tuple(np.where(offset < low, low, np.where(offset > high, high, offset)).tolist())

    @property
    def default_action(self) -> tuple[float, ...]:
        """The action where none can be computed: the first of a list, or the one nearest to 0."""
        if isinstance(self.action_space, Discrete):
            return (float(self.action_space.start),)
        low, high = action_range(self.action_space)
        return tuple(np.clip(0.0, low, high).tolist())

    def action_number(self, action: Any) -> int:
        """Return the number of an action of a list, given by its number or its name."""
        space = self.action_space
        assert isinstance(space, Discrete)
        first = int(space.start)
        names = list(self.actions)
        if isinstance(action, str) and action in names:
            return first + names.index(action)
        if np.size(action) == 1 and (number := np.ravel(action)[0]) in range(first, first + len(names)):
            return int(number)
        known = ", ".join(f"{first + i} ({name})" for i, name in enumerate(names))
        raise SettingError(f"There is no action {action!r}: there are {known}.")

    def __repr__(self) -> str:
        size = counted(self.n_leaves, "leaf")
        if not self.remembers:
            return f"Controller({size}, depth {self.depth})"
        over = ", ".join(feature.name for feature in self.features)
        return f"Controller({size} over {over}, every {self.sample_time:g} s)"

    def __str__(self) -> str:
        return text(self)
