"""The data that the paper's claims are judged by, and a claim before it is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spaql.figures.names import NAMES
from spaql.plugins.paper.criteria import Finding, better
from spaql.plugins.paper.equal_samples import EARLY, Early
from spaql.plugins.paper.study import SCALINGS
from spaql.plugins.paper.tables import Line

Floats = NDArray[np.float64]
Lines = Mapping[tuple[str, str], Line]
Scaling = Mapping[tuple[str, str, float], Floats]
"""Fresh returns of the short runs, by problem, algorithm and xi."""

PROBLEMS = ("pendulum", "cartpole200")
OTHER_TRPO = "The paper used Garage's TRPO, this is sb3-contrib's."
_SHORT = {"pendulum": "Pendulum", "pendulum5": "Pendulum with 5 torques", "cartpole200": "CartPole"}


@dataclass(frozen=True)
class Study:
    """All runs of the paper's studies, under one set of rules."""

    short: Scaling
    lines: Lines
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

    def pooled(self, problem: str, algorithm: str) -> Floats:
        """Return the fresh returns of the short runs of every xi above 0."""
        return np.concatenate([self.short[problem, algorithm, xi] for xi in SCALINGS if xi > 0])

    def by_xi(self, problem: str, algorithm: str) -> Floats:
        """Return the mean return for every xi above 0."""
        return np.array([self.short[problem, algorithm, xi].mean() for xi in SCALINGS if xi > 0])

    def better(self, a: tuple[str, str], b: tuple[str, str]) -> Iterator[Finding]:
        """Compare two algorithms, each given as (problem, algorithm), by both measures."""
        same = a[0] == b[0]
        names = [NAMES[one[1]] if same else f"{NAMES[one[1]]} on {_SHORT[one[0]]}" for one in (a, b)]
        where = f"{_SHORT[a[0]]}: " if same else ""
        for how, ours, theirs in zip(("seen", "fresh"), self.measures(*a), self.measures(*b), strict=True):
            yield better(f"{where}{names[0]} less {names[1]}, {how},", ours, theirs)

    def earlier(self, problem: str, algorithm: str, other: str) -> Iterator[Finding]:
        """Compare the returns of the first batches of two algorithms, by both counts of samples."""
        a = self.early[problem, algorithm]
        b = self.early[problem, other]
        for how, ours, theirs in (
            ("training samples", a.by_samples, b.by_samples),
            ("all steps", a.by_all_steps, b.by_all_steps),
        ):
            name = f"{_SHORT[problem]}, by {how}: {NAMES[algorithm]} less {NAMES[other]}"
            yield better(name, ours[:, :EARLY].mean(1), theirs[:, :EARLY].mean(1))


@dataclass(frozen=True)
class Claimed:
    """A sentence of the paper, and how it is judged."""

    claim: str
    """A quotation of the paper."""
    where: str
    published: str
    criterion: str
    find: Callable[[Study], Sequence[Finding]]
    why: Callable[[Study, Sequence[Finding]], str] = lambda study, findings: ""
    needs_trpo: bool = False
