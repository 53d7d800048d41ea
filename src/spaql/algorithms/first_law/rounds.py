"""Rounds of fitting and playing: laws of a model of random steps, and of what the best law visits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.algorithms.first_law.laws import Offer, first_laws, first_trees
from spaql.algorithms.replay import LARGEST, ActionCode, ReplayMemory
from spaql.controllers import Controller, Policy
from spaql.kernels.numerics import Floats, Ints, Rng, mean
from spaql.problems import Dynamics, Problem
from spaql.problems.disturbances import Perturbation
from spaql.simulate import Episode, EpisodeRunner, Phase
from spaql.stats import standard_error

_RANDOM = 0.1
"""The share of the budget for random steps."""
_FEWEST_RANDOM = 500
"""The fewest random steps."""
_MOST_RANDOM = 3000
"""The most random steps."""
_FOLLOWED = 0.04
"""The share of the budget for steps of the best law with noise, in each round."""
_MOST_FOLLOWED = 2000
"""The most such steps."""
_LENGTH = 20
"""Steps of the first episodes of exploration: they are short, so that many starts are seen."""
_MOST_LENGTH = 80
"""Steps of the last ones."""
_ROUNDS = 3
"""Rounds in any case."""
_MOST_ROUNDS = 6
"""Rounds while they find better laws."""
_DOUBTFUL = 2
"""Rounds after which the search may end: one alone may have seen too little of the plant."""
_PLAYED = 0.6
"""The share of the budget by the end of the rounds; the rest is for trees."""
_DECIDED = 0.8
"""The share of the budget by the last comparison of laws, if trees are to come."""
_FEWEST = 4
"""The fewest laws of a race."""
_EACH = 3
"""The episodes for each if there are more laws."""
_MOST_FIRST = 4
"""Starts from which all laws of a race are played, at most."""
_MOST_STARTS = 64
"""Starts from which the best ones are played, at most."""
_FINALISTS = 6
"""Laws of all rounds that are compared once more."""
_ALIKE = 0.003
"""Laws whose actions differ by less, as a share of the range, count as one."""
_TREES = 100
"""Trees are tried if the budget is this many episodes."""
_MOST_LEAVES = 5
"""The most leaves of these trees."""
_ENOUGH = 0.05
"""The share of the gain that a plainer tree may lack."""


class HeldNoise(Policy):
    """A policy with noise that is held for some steps, on average; or random actions that are.

    Parameters
    ----------
    policy
        The policy; with None all is noise.
    space
        The actions.
    size
        Of the noise, as a share of half the range; of discrete actions, how often they are random.
    hold
        Steps for which noise is held.
    """

    def __init__(self, policy: Policy | None, space: Box | Discrete, size: float, hold: float) -> None:
        self.policy = policy
        self.action_space: Box | Discrete = space
        self._code = ActionCode(space)
        self._size = size
        self._hold = hold
        self._noise: Floats | None = None

    def for_episodes(self, n: int) -> Policy:
        """Return the policy without noise so far."""
        return HeldNoise(self.policy, self.action_space, self._size, self._hold)

    def act(self, observations: NDArray[Any], steps: Ints, rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        assert rng is not None
        count = len(steps)
        width = self._code.numbers
        drawn = rng.random((count, 2 + width))
        if self._noise is None:
            self._noise = drawn
        renewed = drawn[:, 0] < 1.0 / self._hold
        self._noise = np.where(renewed[:, np.newaxis], drawn, self._noise)
        level = self._noise[:, 1]
        wish = self._noise[:, 2:]
        if isinstance(self.action_space, Discrete):
            n = int(self.action_space.n)
            start = int(self.action_space.start)
            random = start + np.floor(wish[:, 0] * n).astype(np.int64)
            if self.policy is None:
                return random
            return np.where(level < self._size, random, self.policy.act(observations, steps, None))
        noise = 2.0 * wish - 1.0
        if self.policy is not None:
            chosen = self._code.standard(np.asarray(self.policy.act(observations, steps, None)))
            noise = np.clip(chosen + self._size * noise, -1.0, 1.0)
        raw = self._code.middle + self._code.half * noise
        return raw.reshape((count, *self.action_space.shape)).astype(self.action_space.dtype)


def exploring(policy: Policy | None, problem: Problem) -> HeldNoise:
    """Return random actions, or a policy with noise.

    Random actions are held for three steps: a plant that is slow does not answer to faster ones. The noise
    on a policy is smaller and faster.
    """
    space = problem.actions.space
    assert isinstance(space, Box | Discrete)
    return HeldNoise(policy, space, 1.0, 3.0) if policy is None else HeldNoise(policy, space, 0.3, 2.0)


@dataclass(eq=False)
class PlayedLaw:
    """A law, and its episodes from the first of the common starts."""

    offer: Offer
    returns: Floats = field(default_factory=lambda: np.empty(0))
    visited: list[Floats] = field(default_factory=list)

    @property
    def law(self) -> Controller:
        """The law."""
        return self.offer.law

    @property
    def length(self) -> float:
        """The mean length of its episodes."""
        return sum(map(len, self.visited)) / len(self.visited)

    def value(self, count: int) -> float:
        """Return the mean return from the first starts."""
        return math.fsum(self.returns[:count].tolist()) / count


@dataclass(eq=False)
class FirstLaw:
    """The search for a first law; it plays episodes, and keeps all that it sees.

    The first round fits random steps, the others what the best law visits, with and without what was seen
    before. A law is one of a model, and must win on the plant.
    """

    problem: Problem
    budget: float
    """Steps that it may take."""
    runner: EpisodeRunner
    phase: Phase
    """What its steps count as."""
    rng: Rng
    plant: Dynamics | Perturbation | None = None
    """The plant to design for, if it is not that of the problem."""
    spent: int = 0
    best: PlayedLaw | None = None
    one_leaf: Controller | None = None
    """The best law of one leaf."""

    def __post_init__(self) -> None:
        self._played: list[PlayedLaw] = []
        """All laws that were played."""
        self._code = ActionCode(self.problem.actions.space)
        self.starts = self.runner.candidate_starts(self.rng, _MOST_STARTS, self.plant)
        """From which all laws are played, in this order."""
        self.memory = self._new_memory()
        """All steps."""

    @property
    def law(self) -> Controller | None:
        """The best law so far."""
        return self.best.law if self.best else None

    @property
    def returns(self) -> Floats:
        """Of the best law, from the first of the common starts."""
        return self.best.returns if self.best else np.empty(0)

    @property
    def visited(self) -> Floats:
        """The observations of these episodes; those of exploration if there is no law."""
        return np.concatenate(self.best.visited) if self.best else self.memory.states

    def search(self, leaves: int, promising: Callable[[int], bool] = lambda turn: True) -> None:
        """Search for a law, and for a tree with a few of them where the budget allows that.

        After each of the first rounds it goes on only if its law is promising.
        """
        wanted = min(max(_RANDOM * self.budget, _FEWEST_RANDOM), _MOST_RANDOM, self.budget / 2)
        length = _LENGTH
        self._explore(wanted, length, self.memory)
        followed = self._new_memory()
        for turn in range(_MOST_ROUNDS):
            before = self.best
            offers = first_laws(self.memory, self.problem, self.rng)
            if turn > 0:
                offers = first_laws(followed, self.problem, self.rng) + offers
            room = (_PLAYED * self.budget - self.spent) / max(1, _ROUNDS - turn)
            self._race(self._distinct(offers), room)
            if self.best is None or (turn + 1 >= _ROUNDS and self.best is before):
                break
            if turn < _DOUBTFUL and not promising(turn):
                self.one_leaf = self.law
                return
            wanted = min(_FOLLOWED * self.budget, _MOST_FOLLOWED, _PLAYED * self.budget - self.spent)
            length = min(2 * length, _MOST_LENGTH)
            if wanted < length:
                break
            self._explore(wanted, length, followed)
        grows = leaves > 1 and self.budget >= _TREES * self.problem.horizon
        self._decide((_DECIDED if grows else 1.0) * self.budget)
        self.one_leaf = self.law
        if self.best and grows:
            self._explore(min(_FOLLOWED * self.budget, 3 * _MOST_FOLLOWED), length, followed)
            kind = self.best.offer.kind
            trees = first_trees(followed, self.problem, kind, min(leaves, _MOST_LEAVES), self.rng)
            if trees:
                self._race(trees, self.budget - self.spent)
            else:
                self._decide(self.budget)
                self.one_leaf = self.law

    def _explore(self, steps: float, length: int, memory: ReplayMemory) -> None:
        """Add episodes to a memory: of random actions, or of the best law with noise."""
        length = min(length, self.problem.horizon)
        starts = self.runner.candidate_starts(self.rng, max(1, int(steps) // length), self.plant)
        episodes = self._episodes(exploring(self.law, self.problem), starts, length)
        if memory is not self.memory:
            for episode in episodes:
                memory.add_played(episode, self._code)

    def _race(self, offers: list[Offer], room: float) -> None:
        """Play laws, and keep the best one; without room the less promising are left out."""
        old = self.best
        kind = old.offer.kind if old else -1
        offers = sorted(offers, key=lambda offer: (offer.rank, offer.kind != kind))
        episodes = room / self._episode_length
        half_of_all = (self.budget - self.spent) / self._episode_length / 2
        most = int(max(episodes / _EACH, min(_FEWEST, episodes if old else max(half_of_all, 1))))
        if not offers or most < 1:
            return
        field = [PlayedLaw(offer) for offer in offers[:most]]
        self._played += field
        count = min(max(int(episodes / _EACH / len(field)), 1), _MOST_FIRST)
        field, count = self._halved(field, count, self.budget)
        if old is None:
            self.best = field[0]
        else:
            self._play(old, count)
            self._compare(field, old, count)

    def _decide(self, last: float) -> None:
        """Compare the best laws of all rounds once more, until so many steps are spent."""
        if self.best is None:
            return
        returns = self.best.returns

        def gain(candidate: PlayedLaw) -> float:
            count = min(len(candidate.returns), len(returns))
            return mean(candidate.returns[:count] - returns[:count])

        field = sorted(self._played, key=lambda candidate: -gain(candidate))[:_FINALISTS]
        count = 2 * min(len(candidate.returns) for candidate in field)
        while 4 * count <= _MOST_STARTS and self.spent + 2 * self._cost(field, 2 * count) <= last:
            count *= 2
        if self.spent + self._cost(field, count) <= last:
            self.best = self._halved(field, count, last)[0][0]

    def _halved(self, field: list[PlayedLaw], count: int, last: float) -> tuple[list[PlayedLaw], int]:
        """Play laws from some starts, the better half from twice as many, and so on, while steps last.

        Returns those of the last starts, the best first, and how many starts these are.
        """
        while True:
            for candidate in field:
                self._play(candidate, count)
            field = sorted(field, key=lambda candidate: -candidate.value(count))
            better = field[: (len(field) + 1) // 2]
            enough = len(field) == 1 or 2 * count > len(self.starts)
            if enough or self.spent + self._cost(better, 2 * count) > last:
                return field, count
            field = better
            count = 2 * count

    def _cost(self, field: list[PlayedLaw], count: int) -> float:
        """Return the steps that it takes to play laws from so many of the common starts."""
        return sum(max(0, count - len(candidate.returns)) * candidate.length for candidate in field)

    def _compare(self, field: list[PlayedLaw], old: PlayedLaw, count: int) -> None:
        """Replace the best law so far by the plainest of the best, if that is better by more than chance."""
        gains = [candidate.value(count) - old.value(count) for candidate in field]
        enough = (1.0 - _ENOUGH) * gains[0]
        near = [candidate for candidate, gain in zip(field, gains, strict=True) if gain >= enough]
        new = min(near, key=lambda candidate: candidate.law.n_leaves, default=old)
        differences = new.returns[:count] - old.returns[:count]
        if count > 1 and mean(differences) > standard_error(differences):
            self.best = new

    def _play(self, candidate: PlayedLaw, count: int) -> None:
        """Play a candidate from those of the first common starts that it was not yet played from."""
        starts = self.starts[len(candidate.returns) : count]
        if len(starts):
            episodes = self._episodes(candidate.law, starts)
            returns = np.array([episode.total for episode in episodes])
            returns = np.nan_to_num(returns, nan=-LARGEST, posinf=-LARGEST, neginf=-LARGEST)
            candidate.returns = np.concatenate([candidate.returns, returns])
            candidate.visited += [episode.observations[:-1] for episode in episodes]

    def _distinct(self, offers: list[Offer]) -> list[Offer]:
        """Return the laws without those that act as an earlier one, or the best so far, does."""
        space = self._code.space
        memory = self.memory
        span = max(1.0, float(space.n) - 1.0) if isinstance(space, Discrete) else 2.0
        steps = np.zeros(len(memory), np.int64)
        old = [] if self.best is None else [self.best.offer]
        kept: list[Offer] = []
        known: list[Floats] = []
        for offer in old + offers:
            actions = self._code.standard(np.asarray(offer.law.act(memory.states, steps, None)))
            if all(mean(np.abs(actions - other).ravel()) > _ALIKE * span for other in known):
                kept.append(offer)
                known.append(actions)
        return kept[len(old) :]

    # -- episodes ------------------------------------------------------------------------------------------

    @property
    def _episode_length(self) -> float:
        """About the length of an episode: the horizon, before any was played."""
        return self.best.length if self.best else float(self.problem.horizon)

    def _episodes(self, policy: Policy, starts: Floats, steps: int | None = None) -> list[Episode]:
        """Return an episode from each start, count its steps, and keep them."""
        steps = steps or self.problem.horizon
        with np.errstate(all="ignore"):  # a plant may explode
            episodes = self.runner.record(policy, starts, self.rng, steps, self.phase, self.plant)
        for episode in episodes:
            self.spent += episode.length
            self.memory.add_played(episode, self._code)
        return episodes

    def _new_memory(self) -> ReplayMemory:
        return ReplayMemory(self.problem.states.dims, self._code.numbers)
