"""Observations in raw units, and their map into the standard cube of partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box, Discrete
from numpy.typing import ArrayLike, NDArray

from spaql.errors import SettingError, UnsupportedSpaceError
from spaql.kernels.partition.lookup import thresholds
from spaql.kernels.partition.standardise import StateMap, standardise
from spaql.spaces.names import check_names, observation_names

_LARGEST_BOUND = 1e30
"""Larger bounds count as infinite; environments often use the largest float32."""
_KNOWN_LEVELS = 8
"""Depth to which the cuts of a partition are precomputed; deeper ones are rare."""
_SPREAD = 6.0
"""Standard deviations of random steps at which a measured dimension is squashed to tanh(1) = 0.76: a
trained policy may visit states far beyond those of a random one."""


def numbers_recipe(space: Space[Any]) -> str:
    """Return an expression that turns the observations of an environment `env` into a vector of numbers.

    Examples
    --------
    >>> print(numbers_recipe(Discrete(16)))
    gymnasium.wrappers.TransformObservation(env, lambda x: numpy.array([x], "float32"), \
gymnasium.spaces.Box(0, 15, (1,)))
    """
    if not isinstance(space, Discrete):
        return "gymnasium.wrappers.FlattenObservation(env)"
    box = f"gymnasium.spaces.Box({space.start}, {space.start + space.n - 1}, (1,))"
    return f'gymnasium.wrappers.TransformObservation(env, lambda x: numpy.array([x], "float32"), {box})'


def _refuse_unless_supported(space: Space[Any]) -> None:
    if isinstance(space, Discrete):
        return
    if not isinstance(space, Box):
        raise UnsupportedSpaceError(
            f"Observations must be a Box or Discrete space, and this is a {type(space).__name__}: wrap the "
            f"environment, as in {numbers_recipe(space)}"
        )
    if len(space.shape) > 1 or space.shape == ():
        raise UnsupportedSpaceError(
            f"Observations must be a vector, and these have the shape {space.shape}: spaql partitions "
            "the state space, so images and the like need features extracted first."
        )


def space_bounds(space: Box | Discrete) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lowest and the highest value of each component of a space.

    Examples
    --------
    >>> space_bounds(Discrete(3, start=1))
    (array([1.]), array([3.]))
    """
    if isinstance(space, Discrete):
        return np.array([float(space.start)]), np.array([float(space.start + space.n - 1)])
    return space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel()


def _bounds(space: Box | Discrete) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    low, high = space_bounds(space)
    # A discrete state is the centre of a cell of width 1.
    margin = 0.5 if isinstance(space, Discrete) else 0.0
    return low - margin, high + margin


def unbounded(space: Space[Any]) -> NDArray[np.bool_]:
    """Return which dimensions of an observation space have no usable bounds.

    Examples
    --------
    >>> unbounded(Box(np.float32([-1.0, -np.inf]), np.float32([1.0, np.inf])))
    array([False,  True])
    """
    _refuse_unless_supported(space)
    assert isinstance(space, Box | Discrete)
    low, high = _bounds(space)
    return (np.abs(low) > _LARGEST_BOUND) | (np.abs(high) > _LARGEST_BOUND)


@dataclass(frozen=True)
class StandardStates:
    """The map between raw observations and the standard cube [-1, 1]^ds.

    Bounded dimensions are mapped affinely. Unbounded ones are squashed by tanh((x - center) / scale),
    with the centre and scale given or measured.
    """

    space: Box | Discrete
    state_map: StateMap
    names: tuple[str, ...] = ()
    """Name of each dimension, with its unit; empty if they are not known."""

    def __post_init__(self) -> None:
        check_names("observations", self.names)

    @classmethod
    def of(
        cls,
        space: Space[Any],
        squash: Mapping[int, float] | None = None,
        samples: NDArray[np.float64] | None = None,
        names: tuple[str, ...] = (),
    ) -> StandardStates:
        """Return the map of a space.

        Parameters
        ----------
        space
            A Box of one axis, or a Discrete space.
        squash
            Dimensions to squash around 0, each with its scale (1 / m in the paper's phi_m).
        samples
            Observations, one per row, from which the scales of other unbounded dimensions are measured.
        names
            Of the dimensions.

        Examples
        --------
        >>> states = StandardStates.of(Box(-8.0, 8.0, (1,)))
        >>> states.standardise([4.0])
        array([0.5])
        >>> states.restore([0.5])
        array([4.])
        """
        without_bounds = unbounded(space)
        assert isinstance(space, Box | Discrete)
        low, high = _bounds(space)
        dims = len(low)
        squash = dict(squash or {})
        if any(j not in range(dims) or not s > 0 for j, s in squash.items()):
            raise SettingError(f"Squash names dimensions 0 to {dims - 1}, each with a scale above 0.")
        squashed = without_bounds.copy()
        squashed[list(squash)] = True
        center = np.zeros(dims)
        scale = np.ones(dims)
        affine = ~squashed
        center[affine] = (low[affine] + high[affine]) / 2
        scale[affine] = np.where(high > low, (high - low) / 2, 1.0)[affine]
        measured = without_bounds & ~np.isin(np.arange(dims), list(squash))
        if measured.any():
            if samples is None:
                raise SettingError(
                    f"Observation dimensions {np.flatnonzero(measured).tolist()} are unbounded: give "
                    "`squash` for them, or samples to measure them by."
                )
            center[measured] = samples.mean(axis=0)[measured]
            spread = _SPREAD * samples.std(axis=0)[measured]
            scale[measured] = np.where(spread > 0, spread, 1.0)
        for j, s in squash.items():
            scale[j] = s
        return cls(space, StateMap(center, scale, squashed), names)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names, or x0, x1 and so on."""
        return observation_names(self.space, self.names)

    @property
    def dims(self) -> int:
        """The number of dimensions of the cube."""
        return len(self.state_map.center)

    @cached_property
    def thresholds(self) -> NDArray[np.float64]:
        """Cuts of the coarser cells of a partition, in raw units (see `kernels.partition.lookup`)."""
        return thresholds(self.state_map, _KNOWN_LEVELS)

    def batch(self, observations: Any) -> NDArray[np.float64]:
        """Return raw observations, one or many, as rows of float64."""
        return np.ascontiguousarray(observations, np.float64).reshape(-1, self.dims)

    def standardise(self, observation: ArrayLike) -> NDArray[np.float64]:
        """Return the point of the cube for one raw observation."""
        return standardise(self.state_map, self.batch(observation)[0])

    def restore(self, standard: ArrayLike) -> NDArray[np.float64]:
        """Return a point of the cube in raw units; the ends of a squashed dimension are infinite."""
        point = np.asarray(standard, np.float64)
        with np.errstate(divide="ignore"):
            stretched = np.where(self.state_map.squash, np.arctanh(point), point)
        return np.asarray(self.state_map.center + stretched * self.state_map.scale)
