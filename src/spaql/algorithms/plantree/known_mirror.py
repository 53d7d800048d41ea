"""The mirror that PlanTree uses: as given, or as its memory shows it, unless a search is better without."""

from __future__ import annotations

from spaql.algorithms.mirrors.detection import chosen_mirror
from spaql.algorithms.mirrors.mirror import Mirror, mirror_from
from spaql.algorithms.plantree.experience import Experience
from spaql.algorithms.replay.memory import Memory


class KnownMirror:
    """The mirror of some first steps of a memory, and of all."""

    def __init__(self, setting: str, experience: Experience) -> None:
        if setting not in ("auto", "off"):
            mirror_from(setting, experience.problem)  # refuses what it cannot read
        self._setting = setting
        self._experience = experience
        self._mirrors: dict[int, Mirror | None] = {}
        """By the number of first steps."""
        self.dropped_at: int | None = None
        """The steps after which a search without the mirror found a better controller: it is used no more."""

    def of(self, memory: Memory) -> Mirror | None:
        """Return the mirror that was given, or that these first steps of the memory show, or None."""
        if self.dropped_at is not None and len(memory) > self.dropped_at:
            return None
        if len(memory) not in self._mirrors:
            experience = self._experience
            self._mirrors[len(memory)] = chosen_mirror(
                self._setting, memory, experience.code, experience.task
            )
        return self._mirrors[len(memory)]

    @property
    def now(self) -> Mirror | None:
        """The mirror that was given, or that the whole memory shows, or None."""
        memory = self._experience.memory
        return None if self.dropped_at == len(memory) else self.of(memory)

    def drop(self) -> None:
        """Use no mirror from now on."""
        self.dropped_at = len(self._experience.memory)

    def forget(self) -> None:
        """Forget the mirrors of steps that have changed."""
        self._mirrors = {}
