"""The data that the paper's claims are judged by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spaql.plugins.paper.equal_samples import Early
from spaql.plugins.paper.study import PROBLEMS, SCALINGS
from spaql.plugins.paper.tables import Line

Floats = NDArray[np.float64]
Scaling = Mapping[tuple[str, str, float], Floats]
"""Fresh returns of the short runs, by problem, algorithm and xi."""


@dataclass(frozen=True)
class Study:
    """All runs of the paper's studies, under one set of rules."""

    short: Scaling
    lines: Mapping[tuple[str, str], Line]
    early: Mapping[tuple[str, str], Early] = field(default_factory=dict)

    @property
    def has_trpo(self) -> bool:
        """Whether TRPO was run on both problems."""
        return all((problem, "trpo") in table for problem in PROBLEMS for table in (self.lines, self.early))

    def measures(self, problem: str, algorithm: str) -> tuple[Floats, Floats]:
        """Return the agents' returns as the paper measures, and in fresh episodes; equal for random."""
        line = self.lines[problem, algorithm]
        return line.fresh if line.reported is None else line.reported, line.fresh

    def arms(self, problem: str, algorithm: str) -> Floats:
        """Return the number of arms of each agent."""
        arms = self.lines[problem, algorithm].arms
        assert arms is not None
        return arms

    def by_xi(self, problem: str, algorithm: str) -> Floats:
        """Return the mean return for every xi above 0."""
        return np.array([self.short[problem, algorithm, xi].mean() for xi in SCALINGS if xi > 0])

    def sample(self, name: str) -> Floats:
        """Return fresh returns of the random policy, or of short runs: with an xi, or with all above 0."""
        problem, algorithm, *xi = name.split("/")
        if algorithm == "random":
            return self.lines[problem, "random"].fresh
        chosen = map(float, xi) if xi else (xi for xi in SCALINGS if xi > 0)
        return np.concatenate([self.short[problem, algorithm, value] for value in chosen])
