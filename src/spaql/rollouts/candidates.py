"""Episodes of candidate controllers from given starts, for a search over controllers."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.errors import SpaqlError
from spaql.kernels.features import LEAF, FeatureTable, Limiter, control, reset_memory
from spaql.kernels.treesearch.candidates import ActionRange, Bools, Floats, Ints, choose
from spaql.problems import Problem
from spaql.problems.guard import Guard, GuardedEnv
from spaql.problems.sending import receive, send
from spaql.workers import RayWorkers, Workers, cores, sendable

_ALONE = "leave out parallel"
_PARTS = 4
"""Parts of a batch of episodes for each worker, so that none waits long for another."""


class FeatureBlock(NamedTuple):
    """What surrounds the tree of a controller with memory (see `spaql.kernels.features`)."""

    table: FeatureTable
    limiter: Limiter
    memory: int
    """Numbers of the memory of an episode."""
    setpoints: Ints
    """The places of the set-points in an observation."""


class Candidates(NamedTuple):
    """Controllers of one structure, in raw units (see `spaql.kernels.treesearch.candidates`)."""

    left: Ints
    allowed: Bools
    numbers: Floats
    """Candidates × nodes × rows × (1 + numbers of an observation, or features)."""
    block: FeatureBlock | None = None
    """Of controllers with memory: their trees are over features."""


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
    """Some observations of the first candidate; of a controller with memory some features, in their order."""

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


def action_range(problem: Problem) -> ActionRange:
    """Return the range of each number of an action; empty for a list of actions."""
    space = problem.actions.space
    if isinstance(space, Discrete):
        return ActionRange(np.empty(0), np.empty(0))
    return ActionRange(space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel())


_DRAWN = 4096
"""Starts among which those nearest to the corners are found."""


class CompiledCandidates:
    """Candidates in compiled dynamics; a start is a state."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._ends = problem, action_range(problem)

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
        problem = self._problem
        assert problem.dynamics is not None
        assert starts.shape[1:] == (problem.dynamics.state_dims,)  # the kernel does not check
        shape = len(candidates.numbers), len(starts)
        returns, movement, switches = np.empty(shape), np.empty(shape), np.zeros(shape)
        seen = np.empty((visited, candidates.numbers.shape[3] - 1))
        loops, (left, allowed, numbers, block) = problem.dynamics.loops, candidates
        if block is None:
            trees = left, allowed, numbers, self._ends
            steps, kept = loops.play_candidates(*trees, starts, problem.horizon, returns, movement, seen)
        else:
            memory = np.empty(block.memory)
            controller = block.table, block.limiter, memory, block.setpoints, left, numbers
            measures = returns, movement, switches, seen
            steps, kept = loops.play_controllers(*controller, starts, problem.horizon, *measures)
        return CandidateEpisodes(returns, movement, switches, steps, seen[:kept])

    def close(self) -> None:
        """Free resources."""


class EnvironmentCandidates:
    """Candidates in Gymnasium environments: in this process, in workers or on Ray; a start is a seed.

    The episodes do not depend on the number of workers.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._workers: Workers | RayWorkers | None = None
        if problem.parallel:
            self._workers = (
                RayWorkers(problem.parallel) if isinstance(problem.parallel, str) else Workers(cores())
            )
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
        shape = len(candidates.numbers), len(starts)
        returns, movement, switches = np.empty(shape), np.empty(shape), np.empty(shape)
        steps, seen = 0, []
        for rows, part in self._parts(candidates, starts, visited):
            returns[rows] = part.returns
            movement[rows] = part.movement
            switches[rows] = part.switches
            steps += part.steps
            if len(part.visited):
                seen.append((rows[1].start, part.visited))
        some = [observations for _, observations in sorted(seen, key=lambda pair: pair[0])]
        dims = candidates.numbers.shape[3] - 1
        return CandidateEpisodes(
            returns, movement, switches, steps, np.concatenate([*some, np.empty((0, dims))])[:visited]
        )

    def _parts(
        self, candidates: Candidates, starts: Floats, visited: int
    ) -> Iterator[tuple[tuple[slice, slice], CandidateEpisodes]]:
        if self._workers is None:
            if self._env is None:
                self._env = _Environment(self._problem)
            yield (slice(None), slice(0, None)), self._env.play(candidates, starts, visited)
            return
        n, m = len(candidates.numbers), len(starts)
        across = min(m, max(1, _PARTS * self._workers.size // n))
        places = [
            (slice(i, i + 1), slice(m * k // across, m * (k + 1) // across))
            for i in range(n)
            for k in range(across)
        ]
        jobs = (
            (
                place,
                candidates._replace(numbers=candidates.numbers[place[0]]),
                starts[place[1]],
                visited if place[0].start == 0 else 0,
            )
            for place in places
        )
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
        self._problem, self._ends = problem, action_range(problem)
        # A tree acts on any numbers, and bad candidates may leave the bounds that an environment declares.
        space = problem.states.space
        assert isinstance(space, Box)
        anywhere = Box(-np.inf, np.inf, space.shape, space.dtype)
        guard = Guard(problem.name, anywhere, "an episode of the search")
        spaces = problem.states.space, problem.actions.space
        self._env = GuardedEnv(problem.make, guard, spaces, problem.step_timeout)
        self._raw = np.empty(max(1, len(self._ends.low)))

    def close(self) -> None:
        self._env.close()

    def play(self, candidates: Candidates, starts: Floats, visited: int) -> CandidateEpisodes:
        shape = len(candidates.numbers), len(starts)
        returns, movement, switches, steps = np.empty(shape), np.empty(shape), np.empty(shape), 0
        seen: list[Floats] = []
        for c, numbers in enumerate(candidates.numbers):
            one = candidates._replace(numbers=numbers)
            for i, start in enumerate(starts):
                kept = seen if c == 0 and len(seen) < visited else None
                found = self._episode(one, int(start[0]), kept)
                returns[c, i], movement[c, i], switches[c, i], taken = found
                steps += taken
        observations = np.array(seen[:visited]).reshape(-1, candidates.numbers.shape[3] - 1)
        return CandidateEpisodes(returns, movement, switches, steps, observations)

    def _episode(
        self, one: Candidates, seed: int, seen: list[Floats] | None
    ) -> tuple[float, float, int, int]:
        raw, ends, space = self._raw, self._ends, self._problem.actions.space
        listed = isinstance(space, Discrete)
        before: Floats | None = None
        total, movement = 0.0, 0.0
        observation = self._env.reset(seed=seed)
        sample = None if one.block is None else _Sample(one.block, one)
        taken = 0
        while taken < self._problem.horizon:
            taken += 1
            x = np.asarray(observation, np.float64).ravel()
            if sample is None:
                choose(one.left, one.allowed, one.numbers, ends, x, raw)
            else:
                x = sample.take(x, raw)
            if seen is not None:
                seen.append(x)
            action: Any
            if isinstance(space, Discrete):
                action = int(space.start) + int(raw[0])
            else:
                action = raw.astype(space.dtype).reshape(space.shape)
            if before is not None:
                change = np.abs(raw - before)
                movement += float(change[0] > 0) if listed else float((change / (ends.high - ends.low)).sum())
            before = raw.copy()
            observation, reward, terminated, truncated = self._env.step(action)
            total += reward
            if terminated or truncated:
                break
        return total, movement, sample.switches if sample else 0, taken


class _Sample:
    """A controller with memory in an episode."""

    def __init__(self, block: FeatureBlock, one: Candidates) -> None:
        self._block, self._one = block, one
        self._memory, self._none = np.empty(block.memory), np.empty(0)
        self._wish, self._target = np.empty((2, len(block.limiter.low)))
        self._goals: Floats | None = None
        self.switches = 0
        """How often the leaf changed while no set-point did."""
        reset_memory(block.table, block.limiter, self._memory)

    def take(self, observation: Floats, action: Floats) -> Floats:
        """Write the action; returns the features."""
        (table, limiter, _, setpoints), tree = self._block, self._one
        x = np.empty(len(table.kind))
        goals = observation[setpoints]
        steady = self._goals is not None and np.array_equal(goals, self._goals)
        held = int(self._memory[LEAF])
        scratch = self._memory, x, self._wish, self._target
        leaf = control(table, limiter, tree.left, tree.numbers, self._none, observation, *scratch, action)
        self.switches += int(steady and leaf != held)
        self._goals = goals
        return x


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
