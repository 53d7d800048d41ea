"""Stress tests: how a plant is tested, and episodes from starts that cover a region."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spaql.errors import BadEnvironmentError, MissingExtraError, SettingError
from spaql.evaluation.episodes import Playable, policy_and_problem
from spaql.formatting import counted, number, places
from spaql.problems import Dynamics, EnvironmentLike, Problem
from spaql.simulate.play import StateSetter, play
from spaql.simulate.returns import Episode, EpisodeSummary, Floats, quantiles_of, worst_episodes
from spaql.stats import mean_ci95, wilson_ci95
from spaql.values import real_number, whole_number


@dataclass(frozen=True)
class Success:
    """The criterion by which an episode counts as a success."""

    rule: Callable[[Episode], bool]
    means: str
    """Description of the criterion."""


SURVIVES = Success(lambda episode: not episode.terminated, "the episode is not terminated")
REACHES = Success(lambda episode: episode.terminated, "the goal is reached before the horizon")


def returns_at_least(threshold: float) -> Success:
    """Return the criterion that the return is at least a threshold."""
    threshold = real_number("threshold", threshold)
    return Success(lambda episode: episode.total >= threshold, f"the return is at least {threshold:g}")


@dataclass(frozen=True, kw_only=True)
class Bench:
    """How a plant is tested.

    Parameters
    ----------
    region
        The name of each state variable, with the range of its initial values.
    success
        The criterion of success.
    time_step
        Seconds between two actions, if known.
    axes
        The two state variables on the axes of a map.
    parameters
        Attributes of the environment's `unwrapped` that may differ from training.
    derived
        Attributes that the constructor of the environment computes from the parameters, with the functions.
    set_state
        Sets the state of an environment and returns the observation; by default sets `unwrapped.state`.

    Examples
    --------
    >>> bench = Bench(region={"position [m]": (-1, 1), "speed [m/s]": (-2, 2)}, success=returns_at_least(-50))
    >>> bench.success.means
    'the return is at least -50'
    """

    region: Mapping[str, tuple[float, float]]
    success: Success = SURVIVES
    time_step: float | None = None
    axes: tuple[int, int] = (0, 1)
    parameters: tuple[str, ...] = ()
    derived: Mapping[str, Callable[[Any], float]] = field(default_factory=dict)
    set_state: StateSetter | None = None

    @property
    def low(self) -> Floats:
        """Lower bounds of the state variables."""
        return np.array([low for low, _ in self.region.values()], np.float64)

    @property
    def high(self) -> Floats:
        """Upper bounds of the state variables."""
        return np.array([high for _, high in self.region.values()], np.float64)


def _is_upright(episode: Episode) -> bool:
    """Return whether Pendulum is near the upright position at the end, on average over two seconds."""
    angle = np.unwrap(np.arctan2(episode.observations[:, 1], episode.observations[:, 0]))
    turns = math.tau * round(float(angle[-1]) / math.tau)
    return not episode.terminated and float(np.abs(angle[-40:] - turns).mean()) <= math.radians(20)


_SLOPE = MappingProxyType({"position": (-1.2, 0.4), "speed": (-0.07, 0.07)})

BENCHES: Mapping[str, Bench] = MappingProxyType(
    {
        # Half of the track and of the angle limit; a good linear controller stabilises 98 % of the region.
        "CartPole-v1": Bench(
            region={
                "cart position [m]": (-1.2, 1.2),
                "cart speed [m/s]": (-1.0, 1.0),
                "pole angle [rad]": (-math.radians(6), math.radians(6)),
                "pole speed [rad/s]": (-1.0, 1.0),
            },
            time_step=0.02,
            axes=(2, 3),
            parameters=("gravity", "masscart", "masspole", "length", "force_mag"),
            derived={
                "total_mass": lambda plant: plant.masspole + plant.masscart,
                "polemass_length": lambda plant: plant.masspole * plant.length,
            },
        ),
        "Pendulum-v1": Bench(
            region={"angle [rad]": (-math.pi, math.pi), "speed [rad/s]": (-8.0, 8.0)},
            success=Success(_is_upright, "within 20° of upright on average over the last 2 s"),
            time_step=0.05,
            parameters=("g", "m", "l"),
        ),
        "MountainCar-v0": Bench(region=_SLOPE, success=REACHES, parameters=("force", "gravity")),
        "MountainCarContinuous-v0": Bench(region=_SLOPE, success=REACHES, parameters=("power",)),
        "Acrobot-v1": Bench(
            region={
                "angle 1 [rad]": (-math.pi / 2, math.pi / 2),
                "angle 2 [rad]": (-math.pi / 2, math.pi / 2),
                "speed 1 [rad/s]": (-1.0, 1.0),
                "speed 2 [rad/s]": (-1.0, 1.0),
            },
            success=REACHES,
            time_step=0.2,
            parameters=("LINK_LENGTH_1", "LINK_MASS_1", "LINK_MASS_2", "LINK_MOI"),
        ),
    }
)


@dataclass(frozen=True)
class StressTest:
    """Episodes of a controller from chosen starts."""

    names: tuple[str, ...]
    """Names of the state variables, with their units."""
    starts: Floats
    """States of the plant, one per row."""
    returns: Floats
    lengths: NDArray[np.int64]
    success: NDArray[np.bool_]
    success_means: str

    def __repr__(self) -> str:
        share, low, high = (f"{100 * part:.1f} %" for part in (self.share, *self.share_ci95))
        starts = counted(len(self.returns), "start")
        return (
            f"StressTest({self.success.sum():,} of {starts} succeed: {share}, 95 % interval {low} to {high}; "
            f"worst return {number(self.returns.min(), self.digits)})"
        )

    @property
    def digits(self) -> int:
        """Decimal places of returns (see `spaql.formatting.places`)."""
        return places(*mean_ci95(self.returns))

    @property
    def share(self) -> float:
        """The share of starts that succeed."""
        return float(self.success.mean())

    @property
    def share_ci95(self) -> tuple[float, float]:
        """Wilson's 95 % interval of that share, for the whole region."""
        return wilson_ci95(int(self.success.sum()), len(self.success))

    @property
    def quantiles(self) -> dict[float, float]:
        """Quantiles of the returns: 5, 25, 50, 75 and 95 %."""
        return quantiles_of(self.returns)

    def worst(self, k: int = 10) -> list[EpisodeSummary]:
        """Return the k episodes with the lowest returns, the worst first."""
        return worst_episodes(self.returns, self.lengths, self.starts, k)


def sample_starts(bench: Bench, n: int, seed: int = 0) -> Floats:
    """Return starts that cover the region of a bench, one per row: a scrambled Sobol sequence.

    It needs SciPy: `pip install spaql[stats]`.

    Parameters
    ----------
    bench
        The bench, with the region of starts.
    n
        Number of starts.
    seed
        Seed of the scrambling.

    Examples
    --------
    >>> bench = Bench(region={"x": (0.0, 4.0), "y": (-1.0, 1.0)})
    >>> sample_starts(bench, 5).shape
    (5, 2)
    """
    n = whole_number("The number of starts", n, least=1)
    low = bench.low
    high = bench.high
    if not (np.isfinite(low).all() and np.isfinite(high).all() and np.all(low <= high)):
        raise SettingError(
            "The region of starts needs two finite numbers for each range, the lower one first."
        )
    try:
        from scipy.stats import qmc
    except ImportError as error:
        raise MissingExtraError("Stress tests need SciPy: pip install 'spaql[stats]'.") from error
    sequence = qmc.Sobol(len(low), scramble=True, seed=whole_number("seed", seed, least=0))
    places = np.asarray(sequence.random_base2(max(0, n - 1).bit_length())[:n], np.float64)
    return low + (high - low) * places


def stress(
    agent: Playable,
    env: EnvironmentLike | None = None,
    *,
    bench: Bench | None = None,
    starts: int | ArrayLike = 2_000,
    seed: int = 0,
) -> StressTest:
    """Return an episode from each of many starts, with deterministic actions as in rules and exported code.

    Parameters
    ----------
    agent
        An agent or design; a policy or controller, which needs `env`; or the path of a run folder or file.
    env
        The problem to run it on; the agent's own by default.
    bench
        How the plant is tested; known for CartPole, Pendulum, MountainCar, MountainCarContinuous and Acrobot,
        and for your own plants that declare a range for every state variable.
    starts
        Number of starts in the bench's region, each of an episode; or the starts, one state per row.
    seed
        Seed of the starts.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("pendulum5", seed=0)
    >>> result = stress(agent, starts=64)
    >>> result.starts.shape, len(result.worst(3)), 0 <= result.share <= 1
    ((64, 2), 3, True)
    """
    policy, problem = policy_and_problem(agent, env)
    bench = bench or known_bench(problem)
    if np.ndim(starts) == 0:
        states = sample_starts(bench, whole_number("starts", starts, least=1), seed)
    else:
        states = np.array(starts, np.float64)
        if states.ndim != 2 or states.shape[1] != len(bench.region) or not len(states):
            raise SettingError(
                f"starts has the shape {states.shape}, and must be rows of {len(bench.region)} components."
            )
    totals = np.empty(len(states))
    lengths = np.empty(len(states), np.int64)
    success = []
    for i, episode in enumerate(play(policy, problem, states, bench.set_state)):
        totals[i] = episode.total
        lengths[i] = episode.length
        if not np.isfinite(totals[i]):
            raise BadEnvironmentError(f"The rewards from start {states[i]} add up to {totals[i]}.")
        success.append(bool(bench.success.rule(episode)))
    return StressTest(
        tuple(bench.region),
        states,
        totals,
        lengths,
        np.array(success, np.bool_),
        bench.success.means,
    )


def find_bench(problem: Problem) -> Bench | None:
    """Return the bench of a problem, or None if its region of starts is not known.

    It is known for classic control problems, and for your own plants whose observation is the state, by the
    declared ranges.

    Examples
    --------
    >>> from spaql import make_problem
    >>> list(find_bench(make_problem("pendulum5")).region)
    ['angle [rad]', 'speed [rad/s]']
    """
    bench = BENCHES.get((problem.env or "").removeprefix("spaql/"))
    plant = problem.dynamics
    if bench is None and plant is not None and _declares_its_states(plant):
        bench = Bench(region=plant.observations)
    return bench


def known_bench(problem: Problem) -> Bench:
    """Return the bench of a problem; raise if it has none."""
    bench = find_bench(problem)
    if bench is None:
        raise SettingError(
            f"The region of starts of {problem.name} is not known: give a bench with a range for each "
            "state variable.",
            settings={"low": "X,Y,...", "high": "X,Y,..."},
        )
    return bench


def _declares_its_states(plant: Dynamics) -> bool:
    """Return whether the observation of a plant is its state, everywhere in the declared ranges."""
    low, high = np.array(list(plant.observations.values()), np.float64).T
    if plant.plant_dims != len(low) or not np.isfinite([low, high]).all():
        return False
    states = np.random.default_rng(0).uniform(low, high, (8, len(low)))
    return all(plant.observe(state) == state for state in map(tuple, states.tolist()))
