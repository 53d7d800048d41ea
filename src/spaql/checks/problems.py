"""The checks of an environment or compiled plant, by episodes of random and of extreme actions."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.checks.report import CheckReport, CheckResult, Requirement, fail, global_seed, run_all, skip
from spaql.errors import SpaqlError
from spaql.problems import EnvironmentLike, Problem, make_problem
from spaql.problems.guard import Guard
from spaql.problems.user_errors import place_of_code

Environment = gymnasium.Env[Any, Any]
EPISODES = 3
STEPS = 300
"""Most steps of an episode."""
DRIVEN_STEPS = 10_000
"""Most steps of all episodes of extreme actions."""
_SEEDS = 5
_PERIODS = (1, 5, 20)
_CORNERS = 4
"""Most components of an action of which all corners are held."""
_LISTED = 20
"""Most discrete actions that are held, and most components of an observation that are driven."""
ActionDriver = Callable[[int, NDArray[np.float64], NDArray[np.float64]], Any]
"""Returns an action for the step, the observation and the one before."""


@dataclass
class Transition:
    """What an environment returned for one step."""

    observation: Any
    reward: Any
    terminated: Any
    truncated: Any
    info: Any
    action: Any


@dataclass
class RawEpisode:
    """What an environment returned in one episode, unchecked."""

    start: Any
    info: Any
    steps: list[Transition] = field(default_factory=list)

    @property
    def observations(self) -> list[Any]:
        """All observations, including the first."""
        return [self.start, *(step.observation for step in self.steps)]


class ProblemCase:
    """A problem with some random episodes."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.actions = copy.deepcopy(problem.actions.space)

    @cached_property
    def episodes(self) -> list[RawEpisode]:
        """Episodes with different seeds."""
        return [self.play(seed) for seed in range(EPISODES)]

    @property
    def all_steps(self) -> list[Transition]:
        """The steps of all episodes."""
        return [step for episode in self.episodes for step in episode.steps]

    @cached_property
    def driven(self) -> list[RawEpisode]:
        """Whole episodes of extreme actions: held, alternated, and timed to excite each number."""
        episodes = []
        left = DRIVEN_STEPS
        for seed in range(_SEEDS):
            for driver in drivers(self.problem):
                if left > 0:
                    episodes.append(self.play(seed, driver, min(self.problem.horizon, left)))
                    left -= len(episodes[-1].steps)
        return episodes

    def play(self, seed: int, driver: ActionDriver | None = None, steps: int = STEPS) -> RawEpisode:
        """Return one episode, of random actions unless a driver chooses them."""
        with closing(self.problem.make()) as env:
            return self.play_in(env, seed, driver, steps)

    def play_in(
        self, env: Environment, seed: int, driver: ActionDriver | None = None, steps: int = STEPS
    ) -> RawEpisode:
        """Return one episode in an environment."""
        self.actions.seed(seed)
        episode = RawEpisode(*env.reset(seed=seed))
        observation = before = _numbers(episode.start)
        for step in range(min(self.problem.horizon, steps)):
            action = self.actions.sample() if driver is None else driver(step, observation, before)
            episode.steps.append(Transition(*env.step(action), action))
            if episode.steps[-1].terminated or episode.steps[-1].truncated:
                break
            observation, before = _numbers(episode.steps[-1].observation), observation
        return episode

    @property
    def observations(self) -> list[Any]:
        """The observations of all random episodes."""
        return [x for episode in self.episodes for x in episode.observations]

    @cached_property
    def standard(self) -> NDArray[np.float64]:
        """The observations of all episodes, in standard coordinates."""
        return np.array([self.problem.states.standardise(x) for x in self.observations])


def drivers(problem: Problem) -> Iterator[ActionDriver]:
    """Yield drivers that take a plant to extremes: actions held, alternated, and timed to its motion."""
    space = problem.actions.space
    if isinstance(space, Discrete):
        ends: list[Any] = [np.int64(space.start + i) for i in range(min(int(space.n), _LISTED))]
    elif space.shape[0] > _CORNERS:
        ends = [space.low, space.high]
    else:
        corners = itertools.product(*zip(space.low, space.high, strict=True))
        ends = [np.array(corner, space.dtype) for corner in corners]
    yield from (_held(end) for end in ends)
    pair = ends[0], ends[-1]
    yield from (_alternated(pair, period) for period in _PERIODS)
    for j in range(min(problem.states.dims, _LISTED)):
        yield from (_timed(pair, j, sign) for sign in (1, -1))


def _held(action: Any) -> ActionDriver:
    return lambda step, observation, before: copy.copy(action)


def _alternated(pair: tuple[Any, Any], period: int) -> ActionDriver:
    return lambda step, observation, before: copy.copy(pair[step // period % 2])


def _timed(pair: tuple[Any, Any], j: int, sign: int) -> ActionDriver:
    """Return a driver that switches the action with the sign of a number's change, to excite resonances."""
    return lambda step, observation, before: copy.copy(pair[int(sign * (observation[j] - before[j]) >= 0)])


def _numbers(observation: Any) -> NDArray[np.float64]:
    return np.asarray(observation, np.float64).ravel()


def check_problem(env: EnvironmentLike, **options: Any) -> CheckReport:
    """Return a report of checks of what algorithms rely on in an environment, plant or problem.

    Parameters
    ----------
    env
        As in `spaql.make_problem`.
    **options
        Options of `spaql.make_problem`, such as `horizon`.

    Examples
    --------
    >>> report = check_problem("cartpole200")
    >>> bool(report), report["rewards are numbers"].outcome
    (True, 'passed')
    """
    subject = env if isinstance(env, str) else getattr(env, "name", None) or getattr(env, "id", None)
    subject = subject or type(env).__name__
    try:
        problem = make_problem(env, **options)
    except SpaqlError as error:
        check = Requirement(can_be_made)
        return CheckReport(subject, (CheckResult(check.name, check.promise, "failed", str(error)),))
    return run_all(problem.name, PROBLEM_CHECKS, ProblemCase(problem))


def can_be_made(case: ProblemCase) -> None:
    """A problem can be made from the environment, and its dynamics, if any, can be compiled."""
    case.problem.make().close()
    if case.problem.dynamics is not None:
        _ = case.problem.dynamics.plant


def resets(case: ProblemCase) -> None:
    """A reset returns an observation and a dictionary."""
    with closing(case.problem.make()) as env:
        result = env.reset(seed=0)
        place = _place(env.unwrapped.reset)
    if not isinstance(result, tuple) or len(result) != 2:
        fail(f"{place}reset returned {result!r}; Gymnasium's is (observation, info).")
    if not isinstance(result[1], dict):
        fail(f"{place}Its second value is {result[1]!r}.")


def steps(case: ProblemCase) -> None:
    """A step returns an observation, a reward, whether it terminated or was truncated, and a dictionary."""
    with closing(case.problem.make()) as env:
        env.reset(seed=0)
        result = env.unwrapped.step(case.actions.sample())  # wrappers would raise their own error
        place = _place(env.unwrapped.step)
    if not isinstance(result, tuple) or len(result) != 5:
        returned = f"{len(result)} values" if isinstance(result, tuple) else repr(result)
        returned += ", as the old Gym's did" if isinstance(result, tuple) and len(result) == 4 else ""
        wanted = "(observation, reward, terminated, truncated, info)"
        fail(f"{place}step returned {returned}; Gymnasium's is {wanted}.")
    _ = case.episodes  # they are played here first


def _place(function: Any) -> str:
    """Return where a method is defined, as the beginning of a sentence."""
    code = getattr(function, "__code__", None)
    return f"{place_of_code(code)}: " if code else ""


def observations_are_sound(case: ProblemCase) -> None:
    """Every observation has the shape of the observation space, and holds neither NaN nor infinity."""
    states = case.problem.states
    for x in case.observations:
        if np.shape(x) != (states.space.shape or ()) or not np.isfinite(np.asarray(x, np.float64)).all():
            fail(f"One is {x}, which is no finite observation of {states.space}.")


def observations_are_of_their_type(case: ProblemCase) -> None:
    """Every observation has the type of the observation space."""
    space = case.problem.states.space
    for x in case.observations:
        dtype = np.asarray(x).dtype
        if dtype != space.dtype and not (isinstance(space, Discrete) and dtype.kind in "iu"):
            fail(f"One has the type {dtype}, not {space.dtype}.")


def observations_are_within_bounds(case: ProblemCase) -> None:
    """Observations lie in their space, except for a little noise and for terminal observations."""
    states = case.problem.states
    guard = Guard(case.problem.name, states.space, "an episode of random or extreme actions", states.names)
    for episode in (*case.episodes, *case.driven):
        ends = [False, *(bool(step.terminated) for step in episode.steps)]
        for guard.step, (x, ended) in enumerate(zip(episode.observations, ends, strict=True)):
            guard.check([x], np.ones(1, np.bool_), np.array([ended]))
    if guard.beyond:
        fail(
            f"With random or extreme actions, {guard.beyond}. Widen the range in the observation space, or "
            "terminate the episode there."
        )


def extreme_actions_can_be_played(case: ProblemCase) -> None:
    """Extreme actions can be played for whole episodes: held, alternated, and timed to the plant's motion."""
    _ = case.driven


def observations_are_their_own(case: ProblemCase) -> None:
    """An observation does not change when the environment is stepped further."""
    with closing(case.problem.make()) as env:
        first, _ = env.reset(seed=0)
        kept = np.array(first)
        for _ in range(3):
            ends = env.step(case.actions.sample())[2:4]
            if not np.array_equal(np.asarray(first), kept):
                fail(f"The first one was {kept}, and became {first}.")
            if any(ends):
                break


def rewards_are_numbers(case: ProblemCase) -> None:
    """Every reward is a real number."""
    for step in case.all_steps:
        if np.ndim(step.reward) or np.asarray(step.reward).dtype.kind not in "fiub":
            fail(f"One is {step.reward!r}.")


def rewards_are_in_their_range(case: ProblemCase) -> None:
    """Every reward is finite, as is its sum over an episode, and lies in the reward range, if any."""
    given = case.problem.reward_range
    low, high = (-np.inf, np.inf) if given == (0.0, 1.0) else given
    for step in (step for episode in (*case.episodes, *case.driven) for step in episode.steps):
        reward = float(step.reward)
        if not np.isfinite(reward * case.problem.horizon):
            fail(f"One is {reward}; its sum over an episode is not finite.")
        if reward < low - 1e-9 or reward > high + 1e-9:
            fail(f"One is {reward}, outside of [{low}, {high}].")


def ends_are_true_or_false(case: ProblemCase) -> None:
    """The flags terminated and truncated are true or false."""
    for step in case.all_steps:
        for flag in (step.terminated, step.truncated):
            if not isinstance(flag, bool | np.bool_):
                fail(f"One is {flag!r}.")


def the_horizon_truncates(case: ProblemCase) -> None:
    """An episode that reaches the horizon is truncated, and does not terminate."""
    horizon = case.problem.horizon
    if horizon > STEPS:
        skip(f"The horizon of {horizon} steps is long.")
    for episode in case.episodes:
        last = episode.steps[-1]
        if len(episode.steps) == horizon and not last.truncated:
            fail(
                f"After {horizon} steps it continued or terminated: time limits must truncate, not terminate."
            )


def termination_is_of_the_plant(case: ProblemCase) -> None:
    """Whether an episode terminates does not depend on how many steps it has had."""
    lengths = [len(episode.steps) for episode in case.episodes if episode.steps[-1].terminated]
    if len(lengths) == EPISODES and len(set(lengths)) == 1 and lengths[0] > 1:
        fail(f"All terminated after {lengths[0]} steps: is that a time limit?")


def seeds_repeat_the_episode(case: ProblemCase) -> None:
    """The same seed and actions repeat the same episode, whatever the state of global random generators."""
    episodes = []
    with closing(case.problem.make()) as env:
        for outside in (1, 2):
            with global_seed(outside):
                episodes.append(case.play_in(env, 7))
    first, second = ([np.asarray(x).tolist() for x in episode.observations] for episode in episodes)
    rewards = [[step.reward for step in episode.steps] for episode in episodes]
    if repr((first, rewards[0])) != repr((second, rewards[1])):  # equal for NaN too
        fail("Two such episodes differ: draw from self.np_random, which reset seeds.")


def copies_are_independent(case: ProblemCase) -> None:
    """Two environments share no state."""
    alone = case.play(3)
    with closing(case.problem.make()) as other, closing(case.problem.make()) as env:
        observations = [env.reset(seed=3)[0]]
        over = False
        other.reset(seed=1)
        for step in alone.steps:
            over = over or any(other.step(step.action)[2:4])
            observations.append(env.step(step.action)[0])
            if over:
                break
    if not all(np.array_equal(a, b) for a, b in zip(alone.observations, observations, strict=False)):
        fail("An episode differs when another environment is stepped in between.")


def actions_are_left_alone(case: ProblemCase) -> None:
    """An action is not modified."""
    if isinstance(case.problem.actions.space, Discrete):
        skip("Its actions are numbers of a list.")
    with closing(case.problem.make()) as env:
        env.reset(seed=0)
        for end in (case.problem.actions.space.high, case.problem.actions.space.low):
            action = np.array(end)
            action.setflags(write=False)
            env.step(action)


def many_are_as_one(case: ProblemCase) -> None:
    """Vectorised environments return a row of the right shape for each."""
    states = case.problem.states
    with closing(case.problem.make_vector(3)) as envs:
        observations, _ = envs.reset(seed=0)
        guard = Guard(case.problem.name, states.space, "an episode")
        guard.check(observations, np.ones(3, np.bool_), np.zeros(3, np.bool_))
        actions = case.problem.actions.restore(np.zeros((3, case.problem.actions.dims)))
        result = envs.step(actions)
    for name, array in zip(("rewards", "terminated", "truncated"), result[1:4], strict=True):
        if np.shape(array) != (3,):
            fail(f"The {name} of three have the shape {np.shape(array)}.")


def standard_observations_use_the_cube(case: ProblemCase) -> None:
    """Every number uses a fair part of its range in the cube, so that a partition can resolve its values."""
    spread = np.ptp(case.standard, axis=0)
    raw = np.array([np.asarray(x, np.float64).ravel() for x in case.observations])
    for j in np.flatnonzero((spread < 1e-4) & (np.ptp(raw, axis=0) > 0)):
        fail(f"Number {j} uses {spread[j] / 2:.1g} of its range: give tighter bounds, or squash it.")


def the_reference_can_be_reached(case: ProblemCase) -> None:
    """The reference is an observation: it lies in the observation space."""
    if case.problem.reference is None:
        skip("The problem has no reference.")
    space = case.problem.states.space
    reference = np.array(case.problem.reference)
    inside = isinstance(space, Discrete) or np.all((space.low <= reference) & (reference <= space.high))
    if not inside or not np.isfinite(reference).all():
        fail(f"{reference} is not in {space}.")


def the_compiled_plant_is_the_written_one(case: ProblemCase) -> None:
    """Compiled dynamics return the same as their functions in plain Python."""
    dynamics = case.problem.dynamics
    if dynamics is None:
        skip("There are no compiled dynamics.")
    start, play, observe = dynamics.functions
    rng = np.random.default_rng(0)
    running = np.ones(1, np.bool_)
    for _ in range(20):
        state = tuple(float(x) for x in start(rng))
        action = case.actions.sample()
        row = np.array(action, np.float64).reshape(1, -1)
        played = int(action) if isinstance(case.problem.actions.space, Discrete) else row[0].copy()
        written, reward, terminated = play(state, played)
        states = np.array([state])
        observations, rewards, ended = dynamics.plant.step_rows(running, row, states)
        pairs = ((states[0], written), (observations[0], np.float32(observe(written))), (rewards[0], reward))
        same = all(np.allclose(a, b, rtol=1e-6, atol=1e-9) for a, b in pairs) and ended[0] == terminated
        if not same:
            fail(
                f"From {state} with {action}: {states[0]} and {rewards[0]} compiled, but {written} and "
                f"{reward} in Python."
            )


_NEEDED = (
    can_be_made,
    resets,
    steps,
    observations_are_sound,
    rewards_are_numbers,
    extreme_actions_can_be_played,
)
PROBLEM_CHECKS: tuple[Requirement[ProblemCase], ...] = tuple(
    Requirement(function, needed=function in _NEEDED)
    for function in (
        *_NEEDED,
        observations_are_of_their_type,
        observations_are_within_bounds,
        observations_are_their_own,
        rewards_are_in_their_range,
        ends_are_true_or_false,
        the_horizon_truncates,
        termination_is_of_the_plant,
        seeds_repeat_the_episode,
        copies_are_independent,
        actions_are_left_alone,
        many_are_as_one,
        standard_observations_use_the_cube,
        the_reference_can_be_reached,
        the_compiled_plant_is_the_written_one,
    )
)
