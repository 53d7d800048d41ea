"""The account of interactions: every step of a simulator, by what it was taken for."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """What steps are taken for."""

    TRAINING = "training"
    """Steps that are learned from."""
    OWN_PLAY = "own play"
    """Episodes that a learner plays by itself, to choose among its controllers."""
    EVALUATION = "evaluation"
    """Episodes by which an iteration is assessed."""
    SEARCH = "search"
    """Episodes of a search over controllers."""


class Interactions:
    """How many steps were taken in each phase.

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
        """Count steps."""
        self._steps[phase] += int(steps)

    @property
    def total(self) -> int:
        """Steps of all phases."""
        return sum(self._steps.values())
