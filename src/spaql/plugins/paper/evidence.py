"""The data that the paper's claims are judged by, criteria on them, and a claim before it is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spaql.figures.names import NAMES
from spaql.plugins.paper.criteria import Finding, better, not_significant, number
from spaql.plugins.paper.equal_samples import EARLY, Early
from spaql.plugins.paper.study import SCALINGS
from spaql.plugins.paper.tables import PUBLISHED, Line

Floats = NDArray[np.float64]
Lines = Mapping[tuple[str, str], Line]
Scaling = Mapping[tuple[str, str, float], Floats]
"""Fresh returns of the short runs, by problem, algorithm and xi."""
Sample = tuple[str, str] | tuple[str, str, float]
"""The arguments of `Study.sample`."""

PROBLEMS = ("pendulum", "cartpole200")
OTHER_TRPO = "The paper used Garage's TRPO, this is sb3-contrib's."
PLACES = {"pendulum": "Pendulum", "pendulum5": "Pendulum with 5 torques", "cartpole200": "CartPole"}


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

    def sample(self, problem: str, algorithm: str, xi: float | None = None) -> Floats:
        """Return fresh returns of the random policy, or of short runs: with xi, or with every xi above 0."""
        if algorithm == "random":
            return self.lines[problem, "random"].fresh
        return self.pooled(problem, algorithm) if xi is None else self.short[problem, algorithm, xi]


Part = Callable[[Study], Iterable[Finding]]
"""One criterion of a claim, applied to a study: a class of this module, or a function of the claim's own."""


@dataclass(frozen=True)
class Better:
    """One algorithm is better than another, each given as (problem, algorithm), by both measures."""

    a: tuple[str, str]
    b: tuple[str, str]

    def __call__(self, study: Study) -> Iterator[Finding]:
        """Return a finding for each measure."""
        same = self.a[0] == self.b[0]
        names = [
            NAMES[algorithm] if same else f"{NAMES[algorithm]} on {PLACES[problem]}"
            for problem, algorithm in (self.a, self.b)
        ]
        where = f"{PLACES[self.a[0]]}: " if same else ""
        measures = study.measures(*self.a), study.measures(*self.b)
        for how, ours, theirs in zip(("seen", "fresh"), *measures, strict=True):
            yield better(f"{where}{names[0]} less {names[1]}, {how},", ours, theirs)


@dataclass(frozen=True)
class BetterEarly:
    """An algorithm is better than another in its first batches, by both counts of samples."""

    problem: str
    algorithm: str
    other: str

    def __call__(self, study: Study) -> Iterator[Finding]:
        """Return a finding for each count."""
        a = study.early[self.problem, self.algorithm]
        b = study.early[self.problem, self.other]
        for how, ours, theirs in (
            ("training samples", a.by_samples, b.by_samples),
            ("all steps", a.by_all_steps, b.by_all_steps),
        ):
            name = f"{PLACES[self.problem]}, by {how}: {NAMES[self.algorithm]} less {NAMES[self.other]}"
            yield better(name, ours[:, :EARLY].mean(1), theirs[:, :EARLY].mean(1))


@dataclass(frozen=True)
class NotSignificant:
    """Two algorithms do not differ significantly, by both measures."""

    problem: str
    a: str
    b: str

    def __call__(self, study: Study) -> Iterator[Finding]:
        """Return a finding for each measure."""
        measures = study.measures(self.problem, self.a), study.measures(self.problem, self.b)
        for how, ours, theirs in zip(("seen", "fresh"), *measures, strict=True):
            yield not_significant(f"{NAMES[self.a]} less {NAMES[self.b]}, {how},", ours, theirs)


@dataclass(frozen=True)
class Compared:
    """A comparison of fresh returns, each given as for `Study.sample`, by a criterion of two samples."""

    criterion: Callable[[str, Floats, Floats], Finding]
    name: str
    a: Sample
    b: Sample

    def __call__(self, study: Study) -> Iterator[Finding]:
        """Return one finding."""
        yield self.criterion(self.name, study.sample(*self.a), study.sample(*self.b))


@dataclass(frozen=True)
class Published:
    """The mean return, as the paper measures, or number of arms is the published one."""

    what: Literal["return", "arms"]
    problem: str
    algorithm: str

    def __call__(self, study: Study) -> Iterator[Finding]:
        """Return one finding, or none if the algorithm was not run."""
        key = self.problem, self.algorithm
        mean_return, arms = PUBLISHED[key]
        if self.what == "arms":
            assert arms is not None
            yield number(NAMES[self.algorithm], study.arms(*key), arms)
        elif key in study.lines:
            yield number(NAMES[self.algorithm], study.measures(*key)[0], mean_return)


@dataclass(frozen=True)
class Claimed:
    """A sentence of the paper, and how it is judged."""

    claim: str
    """A quotation of the paper."""
    where: str
    published: str
    criterion: str
    """Of `parts`, in words."""
    parts: Sequence[Part]
    why: str | Callable[[Study, Sequence[Finding]], str] = ""
    needs_trpo: bool = False
