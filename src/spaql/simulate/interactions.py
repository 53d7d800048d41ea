"""Counts of interactions: every step of a simulator, by phase."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """The purpose of steps."""

    TRAINING = "training"
    """Training steps."""
    OWN_PLAY = "own play"
    """Episodes of a learner's own controllers, to choose among them."""
    EVALUATION = "evaluation"
    """Episodes of the evaluation of an iteration."""
    SEARCH = "search"
    """Episodes of a search over controllers."""
    EXPERT = "expert"
    """Episodes of a policy that is imitated."""


class Interactions:
    """The number of steps in each phase.

    Examples
    --------
    >>> account = Interactions()
    >>> account.add(Phase.TRAINING, 200)
    >>> account.add(Phase.EVALUATION, 4000)
    >>> account[Phase.TRAINING], account.total
    (200, 4200)
    """

    def __init__(self) -> None:
        self._steps = dict.fromkeys(Phase, 0)

    def __getitem__(self, phase: Phase) -> int:
        return self._steps[phase]

    def add(self, phase: Phase, steps: int) -> None:
        """Add steps to a phase."""
        self._steps[phase] += int(steps)

    @property
    def learned_from(self) -> int:
        """Steps of all phases but evaluation."""
        return self.total - self._steps[Phase.EVALUATION]

    @property
    def total(self) -> int:
        """Steps of all phases."""
        return sum(self._steps.values())
