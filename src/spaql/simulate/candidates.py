"""Episodes of candidate controllers from given starts, for a search over controllers."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.controllers import Policy
from spaql.controllers.arrays import Frame, candidate_arrays
from spaql.entry_points import load_hook
from spaql.errors import SpaqlError
from spaql.kernels.controller import LEAF, WIDTH, Arrays, ControllerArrays, Numbers
from spaql.kernels.numerics import Floats, Ints
from spaql.problems import Problem
from spaql.problems.guard import Guard, GuardedEnv
from spaql.problems.making import receive, send
from spaql.simulate.loop import GuardedRow, play_rows, play_structure
from spaql.spaces import environment_actions
from spaql.workers import Pool, Workers, cores, sendable

Bools = NDArray[np.bool_]

_ALONE = "leave out parallel"
_PARTS = 4
"""Parts of a batch of episodes for each worker, so that none waits long for another."""


class Candidates(NamedTuple):
    """Controllers of one structure."""

    arrays: Arrays
    constants: Floats
    """Candidates × rows."""
    weights: Floats
    """Candidates × terms."""
    frame: Frame
    """What surrounds the trees."""

    @classmethod
    def of(cls, left: Ints, allowed: Bools, numbers: Floats, frame: Frame) -> Candidates:
        """Return candidates by the numbers of their trees (see `candidate_arrays`)."""
        return cls(*candidate_arrays(left, allowed, numbers, frame), frame)

    def some(self, which: slice) -> Candidates:
        """Return some of them."""
        return self._replace(constants=self.constants[which], weights=self.weights[which])


@dataclass(frozen=True)
class CandidateEpisodes:
    """The episodes of each candidate (rows) from each start (columns)."""

    returns: Floats
    """-infinity where the plant left the finite numbers."""
    movement: Floats
    """The sum of all changes of the action: of a Box in shares of its range, else how often it changed."""
    switches: Floats
    """How often the leaf of a controller with memory changed while no set-point did; 0 for others."""
    steps: int
    visited: Floats
    """What the tree of the first candidate read, in some steps."""
    best_end: float
    """The highest return of an episode that ended before the horizon; -infinity if none did."""

    @property
    def changes(self) -> Floats:
        """What is priced: movement, and switches, each as a change of the action by its whole range."""
        return self.movement + self.switches


class CandidatePlayer(Protocol):
    """Plays candidates somewhere."""

    def starts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw starts of episodes."""

    def corners(self, rng: np.random.Generator, n: int) -> Floats:
        """Return starts near the corners of their distribution; none where it has no corners."""

    def play(self, candidates: Candidates, starts: Floats, visited: int = 0) -> CandidateEpisodes:
        """Play every start with each candidate, and keep so many observations of the first."""

    def close(self) -> None:
        """Free resources."""


_DRAWN = 4096
"""Starts among which those nearest to the corners are found."""


class CompiledCandidates:
    """Candidates in compiled dynamics; a start is a state."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def starts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw starts of episodes."""
        dynamics = self._problem.dynamics
        assert dynamics is not None
        return dynamics.draw(n, rng)

    def corners(self, rng: np.random.Generator, n: int) -> Floats:
        """Return those of many starts that are nearest to the corners of their distribution, by ranks."""
        starts = self.starts(rng, max(n, _DRAWN))
        drawn = starts[:, starts.min(axis=0) < starts.max(axis=0)]
        ranks = drawn.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
        away = np.abs(2 * ranks - (len(starts) - 1)).sum(axis=1)
        return starts[np.argsort(-away, kind="stable")[:n]]

    def play(self, candidates: Candidates, starts: Floats, visited: int = 0) -> CandidateEpisodes:
        """Play every start with each candidate, and keep so many observations of the first."""
        plant = self._problem.dynamics
        assert plant is not None
        assert starts.shape[1:] == (plant.state_dims,)  # the kernel does not check
        return candidate_episodes(plant.plant.addresses, candidates, starts, self._problem.horizon, visited)

    def close(self) -> None:
        """Free resources."""


def candidate_episodes(
    plant: Any, candidates: Candidates, starts: Floats, horizon: int, visited: int
) -> CandidateEpisodes:
    """Play every start with each candidate in a plant of any kind (see `spaql.kernels.plant`)."""
    arrays, constants, weights, frame = candidates
    traced = min(visited, horizon)
    played, steps = play_structure(
        plant, arrays, constants, weights, starts, horizon, setpoints=frame.setpoints, traced=traced
    )
    read = np.empty((0, len(frame.columns)))
    if traced:
        rows = played.trace[:, :-1][:, :, frame.columns]
        taken = np.arange(traced) < played.lengths[0][:, np.newaxis]
        # Of controllers without memory step by step, of all episodes.
        read = rows[taken] if frame.remembers else rows.swapaxes(0, 1)[taken.T]
    ends = played.returns[played.lengths < horizon]
    best_end = float(ends.max(initial=-np.inf))
    return CandidateEpisodes(
        played.returns, played.movement, played.switches, steps, read[:visited], best_end
    )


class EnvironmentCandidates:
    """Candidates in Gymnasium environments: in this process, in workers or on Ray; a start is a seed.

    The episodes do not depend on the number of workers.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._workers: Pool | None = None
        if problem.parallel:
            on_ray = isinstance(problem.parallel, str)
            self._workers = load_hook("ray")(problem.parallel) if on_ray else Workers(cores())
            self._task = functools.partial(_play_apart, send(problem, _ALONE))
        self._env: _Environment | None = None

    def starts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw starts of episodes."""
        return rng.integers(2**31, size=(n, 1)).astype(np.float64)

    def corners(self, rng: np.random.Generator, n: int) -> Floats:
        """Return no starts: seeds have no corners."""
        return np.empty((0, 1))

    def play(self, candidates: Candidates, starts: Floats, visited: int = 0) -> CandidateEpisodes:
        """Play every start with each candidate, and keep so many observations of the first."""
        shape = len(candidates.constants), len(starts)
        returns = np.empty(shape)
        movement = np.empty(shape)
        switches = np.empty(shape)
        steps = 0
        visited_by_part = []
        best_end = -np.inf
        for rows, part in self._parts(candidates, starts, visited):
            returns[rows] = part.returns
            movement[rows] = part.movement
            switches[rows] = part.switches
            steps += part.steps
            best_end = max(best_end, part.best_end)
            if len(part.visited):
                visited_by_part.append((rows[1].start, part.visited))
        some = [observations for _, observations in sorted(visited_by_part, key=lambda pair: pair[0])]
        read = np.concatenate([*some, np.empty((0, len(candidates.frame.columns)))])[:visited]
        return CandidateEpisodes(returns, movement, switches, steps, read, best_end)

    def _parts(
        self, candidates: Candidates, starts: Floats, visited: int
    ) -> Iterator[tuple[tuple[slice, slice], CandidateEpisodes]]:
        """Yield the episodes of each candidate, by candidates and starts; workers play parts of them."""
        n = len(candidates.constants)
        m = len(starts)
        across = 1 if self._workers is None else min(m, max(1, _PARTS * self._workers.size // n))
        places = [
            (slice(i, i + 1), slice(m * k // across, m * (k + 1) // across))
            for i in range(n)
            for k in range(across)
        ]
        jobs = (
            (place, candidates.some(place[0]), starts[place[1]], visited if place[0].start == 0 else 0)
            for place in places
        )
        if self._workers is None:
            self._env = self._env or _Environment(self._problem)
            for place, candidate, some, kept in jobs:
                yield place, self._env.play(candidate, some, kept)
            return
        for answer in self._workers.map(self._task, jobs):
            if answer.error is not None:
                raise SpaqlError(answer.error)
            if isinstance(answer.result, Exception):
                raise answer.result
            assert answer.result is not None
            yield answer.item[0], answer.result

    def close(self) -> None:
        """Close the environment and stop the workers."""
        if self._workers is not None:
            self._workers.close()
        if self._env is not None:
            self._env.close()


class _Environment:
    """One environment, in which candidates are played one after the other."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        # A tree acts on any numbers, and bad candidates may leave the bounds that an environment declares.
        space = problem.states.space
        assert isinstance(space, Box)
        anywhere = Box(-np.inf, np.inf, space.shape, space.dtype)
        guard = Guard(problem.name, anywhere, "an episode of the search")
        spaces = problem.states.space, problem.actions.space
        self._env = GuardedEnv(problem.make, guard, spaces)

    def close(self) -> None:
        self._env.close()

    def play(self, candidate: Candidates, starts: Floats, visited: int) -> CandidateEpisodes:
        """Play every start with one candidate."""
        episodes = []
        read: list[Floats] = []
        for start in starts:
            kept = read if len(read) < visited else None
            episodes.append(self._episode(candidate, int(start[0]), kept))
        returns, movement, switches, taken = np.array(episodes, np.float64).reshape(-1, 4).T
        return CandidateEpisodes(
            returns[np.newaxis],
            movement[np.newaxis],
            switches[np.newaxis],
            int(taken.sum()),
            np.array(read[:visited]).reshape(-1, len(candidate.frame.columns)),
            float(returns[taken < self._problem.horizon].max(initial=-np.inf)),
        )

    def _episode(
        self, candidate: Candidates, seed: int, read: list[Floats] | None
    ) -> tuple[float, float, int, int]:
        """Return the return, the movement, the switches and the steps of an episode."""
        policy = _CandidatePolicy(candidate, self._problem, read)
        total = 0.0
        taken = 0
        first = np.asarray(self._env.reset(seed=seed))[np.newaxis]
        for step in play_rows(policy, GuardedRow(self._env), first, self._problem.horizon, None):
            total += float(step.rewards[0])
            taken += 1
        return total, policy.movement, policy.switches, taken


class _CandidatePolicy(Policy):
    """A candidate in an episode, and how much it moves."""

    def __init__(self, candidate: Candidates, problem: Problem, read: list[Floats] | None) -> None:
        self.action_space = problem.actions.space
        self.movement = 0.0
        self.switches = 0
        """How often the leaf changed while no set-point did."""
        self._controller = ControllerArrays(
            candidate.arrays, Numbers(candidate.constants[0], candidate.weights[0])
        )
        self._frame = candidate.frame
        self._read = read
        self._before: Floats | None = None
        self._goals: Floats | None = None
        self._memory = self._controller.new_memories(1)

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Any) -> Any:
        """Return the action in a batch of one."""
        held = self._memory[0, LEAF]
        batch = np.asarray(observations, np.float64).reshape(1, -1)
        x, _, raw = self._controller.sample(batch, self._memory)
        goals = x[0, self._frame.setpoints]
        steady = self._goals is not None and np.array_equal(goals, self._goals)
        self.switches += int(self._frame.remembers and steady and self._memory[0, LEAF] != held)
        self._goals = goals
        if self._read is not None:
            self._read.append(x[0, self._frame.columns])
        if self._before is not None:
            change = np.abs(raw[0] - self._before)
            share = change[0] > 0 if self._frame.discrete else (change / self._frame.limit[WIDTH]).sum()
            self.movement += float(share)
        self._before = raw[0]
        return environment_actions(self.action_space, raw)


_RECEIVED: dict[str, _Environment] = {}
"""The environment of this worker process, by a hash of the problem."""


def _play_apart(sent: bytes, job: Any) -> CandidateEpisodes | Exception:
    """Play a part of a batch in a worker process; an error is returned, since a retry would not help."""
    _, candidates, starts, visited = job
    try:
        key = hashlib.sha256(sent).hexdigest()
        if key not in _RECEIVED:
            _RECEIVED[key] = _Environment(receive(sent, _ALONE))
        return _RECEIVED[key].play(candidates, starts, visited)
    except Exception as error:
        return sendable(error)
