"""The phase of choice: trees are searched for in learned plants, and one of them is chosen."""

from __future__ import annotations

import numpy as np

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.plantree.build import Candidate, choose, keeps_mirror, search
from spaql.algorithms.plantree.experience import Experience
from spaql.algorithms.plantree.explore import Explorer
from spaql.algorithms.plantree.folding import with_smallest_half
from spaql.algorithms.plantree.known_mirror import KnownMirror
from spaql.algorithms.plantree.rule_trees import idle_rules, within_space
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.replay.memory import Memory
from spaql.controllers import Controller


class Candidates:
    """Trees that may be chosen: those of the last search, and those that have played."""

    def __init__(
        self, experience: Experience, mirror: KnownMirror, explorer: Explorer, settings: PlanTreeSettings
    ) -> None:
        self._experience = experience
        self._mirror = mirror
        self._explorer = explorer
        self._settings = settings
        self.players: list[Candidate] = []

    def next_player(self, seed: int, *, anew: bool, last: bool) -> int:
        """Return the index of the next tree to play, after a search if `anew`, which may be the `last`."""
        if anew:
            self.players = self._search(seed, last=last)
        return self.players.index(self._choose(self.players, seed, last=False))

    def controller(self, seed: int, *, anew: bool) -> Controller:
        """Return the controller of all that is known: of a new search, or of those that there are."""
        candidates = [] if anew else self.players
        chosen = self._choose(candidates or self._search(seed, last=True), seed, last=True)
        return with_smallest_half(within_space(chosen.controller), self._mirror.now, self._experience.code)

    def _search(self, seed: int, *, last: bool) -> list[Candidate]:
        """Return the candidates that have played, and those of a new search.

        The last search is also made without the mirror that was found, which is kept only if it is as good.
        """
        experience = self._experience
        played = [candidate for candidate in self.players if candidate.returns]
        if not len(experience.memory):
            return [Candidate(idle_rules(experience.code, experience.task))]
        mirror = self._mirror.now
        controllers = self._search_with(mirror, played, seed)
        if last and mirror is not None and self._settings.mirror == "auto":
            plain = self._search_with(None, played, seed)
            rng = np.random.default_rng((seed, 2))
            if not keeps_mirror(experience.memory, experience.code, self._settings, controllers, plain, rng):
                self._mirror.drop()
                controllers = plain
        return played + [Candidate(controller) for controller in controllers]

    def _search_with(self, mirror: Mirror | None, played: list[Candidate], seed: int) -> list[Controller]:
        """Return the controllers of a search with a mirror, or without one."""
        experience = self._experience
        rng = np.random.default_rng((seed, 0))
        memory = self._mirrored(mirror)
        plan = self._explorer.final_plan(rng, mirror)
        return search(
            memory, plan, experience.code, self._settings, experience.task, played, rng, mirror=mirror
        )

    def _choose(self, candidates: list[Candidate], seed: int, *, last: bool) -> Candidate:
        if len(candidates) == 1:
            return candidates[0]
        rng = np.random.default_rng((seed, 1))
        memory = self._mirrored(self._mirror.now)
        return choose(memory, self._experience.code, self._settings, candidates, rng, last=last)

    def _mirrored(self, mirror: Mirror | None) -> Memory:
        """Return the memory, with its mirror images if there is a mirror."""
        memory = self._experience.memory
        return memory if mirror is None else mirror.memory(memory)
