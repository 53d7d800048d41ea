"""The criteria that `claims.toml` names: each returns findings on a study, for the arguments beside it there.

A sample is `problem/algorithm`, or with a value of xi `problem/algorithm/xi`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np

from spaql.figures.style import NAMES
from spaql.plugins.paper.criteria import (
    Finding,
    about,
    at_least,
    better,
    not_significant,
    number,
    share,
    small,
)
from spaql.plugins.paper.evidence import BATCH, EARLY, Floats, Study
from spaql.plugins.paper.study import ALGORITHMS, PROBLEMS, SCALINGS, SOLVED, VARIANTS
from spaql.plugins.paper.tables import PUBLISHED, PUBLISHED_SOLVED
from spaql.plugins.sweeps.table import interval
from spaql.stats import mean_ci95, welch

PLACES = {"pendulum": "Pendulum", "pendulum5": "Pendulum with 5 torques", "cartpole200": "CartPole"}
_MEASURES = ("seen", "fresh")
_BEST_OF_ALL = 200.0


def _better(study: Study, a: str, b: str) -> Iterator[Finding]:
    """Return whether one algorithm is better than another, by both measures."""
    samples = [sample.split("/") for sample in (a, b)]
    same = samples[0][0] == samples[1][0]
    names = [NAMES[of] if same else f"{NAMES[of]} on {PLACES[problem]}" for problem, of in samples]
    where = f"{PLACES[samples[0][0]]}: " if same else ""
    measures = (study.measures(*sample) for sample in samples)
    for how, ours, theirs in zip(_MEASURES, *measures, strict=True):
        yield better(f"{where}{names[0]} less {names[1]}, {how},", ours, theirs)


def _better_early(study: Study, problem: str, algorithm: str, other: str) -> Iterator[Finding]:
    """Return whether an algorithm is better in its first batches, by both counts of samples."""
    ours = study.early[problem, algorithm]
    theirs = study.early[problem, other]
    for how, mine, others in (
        ("training samples", ours.by_samples, theirs.by_samples),
        ("all steps", ours.by_all_steps, theirs.by_all_steps),
    ):
        name = f"{PLACES[problem]}, by {how}: {NAMES[algorithm]} less {NAMES[other]}"
        yield better(name, mine[:, :EARLY].mean(1), others[:, :EARLY].mean(1))


def _not_significant(study: Study, problem: str, a: str, b: str) -> Iterator[Finding]:
    """Return whether two algorithms do not differ significantly, by both measures."""
    measures = study.measures(problem, a), study.measures(problem, b)
    for how, ours, theirs in zip(_MEASURES, *measures, strict=True):
        yield not_significant(f"{NAMES[a]} less {NAMES[b]}, {how},", ours, theirs)


def _of_fresh(criterion: Callable[[str, Floats, Floats], Finding]) -> Callable[..., list[Finding]]:
    """Return a criterion of two samples of fresh returns."""
    return lambda study, name, a, b: [criterion(name, study.sample(a), study.sample(b))]


def _published_return(study: Study, problem: str, algorithm: str) -> Iterator[Finding]:
    if (problem, algorithm) in study.lines:
        mean_return = PUBLISHED[problem, algorithm][0]
        yield number(NAMES[algorithm], study.measures(problem, algorithm)[0], mean_return)


def _published_arms(study: Study, problem: str, algorithm: str) -> Iterator[Finding]:
    arms = PUBLISHED[problem, algorithm][1]
    assert arms is not None
    yield number(NAMES[algorithm], study.arms(problem, algorithm), arms)


def _at_most(mean: float, half: float, most: float) -> bool | None:
    """Return whether a number is at most another with its whole interval; None if that is not decided."""
    return True if mean + half <= most else False if mean - half > most else None


def _readable(study: Study, rows: int) -> Iterator[Finding]:
    mean, half = mean_ci95(study.arms("cartpole200", "spaql") / 2)
    yield Finding("a policy is a table of state cells with an action each", True)
    yield Finding(f"CartPole: at least {mean:,.0f} rows", _at_most(mean, half, rows))


def _saturates(study: Study, most: float) -> Iterator[Finding]:
    for problem in PROBLEMS:
        gain, half = mean_ci95(study.early[problem, "spaql"].late_gain)
        text = f"{PLACES[problem]}: the second half adds {gain:.0%} of SPAQL's gain"
        yield Finding(text, _at_most(gain, half, most))


def _of_the_way(study: Study) -> Iterator[Finding]:
    """Compare the returns on the two problems, in per cent of the way from random to TRPO."""
    for algorithm in VARIANTS:
        for i, how in enumerate(_MEASURES):
            parts = {}
            for problem in PROBLEMS:
                random, trpo = (study.measures(problem, a)[i].mean() for a in ("random", "trpo"))
                parts[problem] = 100 * (study.measures(problem, algorithm)[i] - random) / (trpo - random)
            name = f"{NAMES[algorithm]}, {how}, per cent of the way on CartPole less on Pendulum"
            yield better(name, parts["cartpole200"], parts["pendulum"])


def _solves(study: Study, least: float) -> Iterator[Finding]:
    for how, returns in zip(_MEASURES, study.measures("cartpole200", "spaql-ts"), strict=True):
        yield at_least(how, returns, least)


def _gap(study: Study) -> float:
    return float(study.by_xi("pendulum", "spaql").mean() - study.by_xi("pendulum", "aql").mean())


def _xi_matters_little(study: Study) -> list[Finding]:
    gap = _gap(study)
    found = [small(NAMES[a], float(study.by_xi("pendulum", a).std(ddof=1)), gap) for a in ALGORITHMS]
    return [*found[:-1], Finding(f"{found[-1].text}; SPAQL less AQL {gap:,.0f}", found[-1].holds)]


def _reward_scaling(study: Study) -> Iterator[Finding]:
    plain, scaled = (
        {a: study.sample(f"{problem}/{a}") for a in ALGORITHMS} for problem in ("pendulum", "pendulum-scaled")
    )
    for a in ALGORITHMS:
        change = float(scaled[a].mean() - plain[a].mean())
        yield small(f"{NAMES[a]} with less without", change, _gap(study))
    turned = []
    for a, b in combinations(ALGORITHMS, 2):
        before = welch(plain[a], plain[b])
        after = welch(scaled[a], scaled[b])
        if (before.low > 0 and after.high < 0) or (before.high < 0 and after.low > 0):
            turned.append(f"{NAMES[a]} and {NAMES[b]}")
    yield Finding(f"order reversed: {', '.join(turned) or 'no pair'}", not turned)


def _ratio_of_arms(study: Study) -> Iterator[Finding]:
    for a in VARIANTS:
        times = float(study.arms("pendulum", "aql").mean() / study.arms("pendulum", a).mean())
        yield Finding(f"AQL over {NAMES[a]} {times:,.0f} times", 10**1.5 < times < 10**2.5)


def _five_torques(study: Study) -> Iterator[Finding]:
    for a in VARIANTS:
        test = welch(study.measures("pendulum5", a)[0], study.measures("pendulum", a)[0])
        yield about(f"{NAMES[a]} by", 100.0, test.low, test.high)


def _aql_on_cartpole(study: Study) -> Iterator[Finding]:
    random = study.lines["cartpole200", "random"].fresh
    tests = {xi: welch(study.short["cartpole200", "aql", xi], random) for xi in SCALINGS if xi > 0}
    significant = [f"{xi:g}" for xi, test in tests.items() if test.p < 0.05]
    means = study.by_xi("cartpole200", "aql")
    yield not_significant("long runs: AQL less random", study.lines["cartpole200", "aql"].fresh, random)
    yield Finding(
        f"short runs: {means.min():.1f} to {means.max():.1f} over xi, random {random.mean():.1f}, "
        f"significant difference with xi = {', '.join(significant) or 'none'}",
        not significant,
    )


def _solved(study: Study) -> Iterator[Finding]:
    seen = {a: study.measures("cartpole200", a)[0] for a in VARIANTS}
    for a, returns in seen.items():
        yield share(NAMES[a], (int((returns >= SOLVED).sum()), len(returns)), (PUBLISHED_SOLVED[a], 20))
    top = int((seen["spaql-ts"] >= _BEST_OF_ALL).sum())
    yield share("SPAQL-TS with 200", (top, len(seen["spaql-ts"])), (14, 20))


def _random_on_pendulum(study: Study) -> Iterator[Finding]:
    yield number("torques from [-2, 2] Nm", study.lines["pendulum", "random"].fresh, (-1340.43, 6.24))


def _samples(study: Study) -> Iterator[Finding]:
    for problem in PROBLEMS:
        runs = study.early[problem, "spaql"]
        for how, steps in (("training samples", runs.samples.mean()), ("all steps", runs.all_steps.mean())):
            yield Finding(f"{PLACES[problem]}: {steps:,.0f} {how}", bool(abs(steps / 400_000 - 1) <= 0.05))


def _trpo_catches_up(study: Study) -> Iterator[Finding]:
    for problem in PROBLEMS:
        trpo = study.early[problem, "trpo"].by_samples.mean(0)
        for a in VARIANTS:
            behind = np.flatnonzero(trpo >= study.early[problem, a].by_samples.mean(0))
            samples = BATCH * (int(behind[0]) + 1) if behind.size else None
            text = "never" if samples is None else f"at {samples:,}"
            holds = samples is not None and 20_000 <= samples <= 80_000
            yield Finding(f"{PLACES[problem]}, {NAMES[a]}: {text}", holds)


PARTS: Mapping[str, Callable[..., Iterable[Finding]]] = MappingProxyType(
    {
        "better": _better,
        "better early": _better_early,
        "not significant": _not_significant,
        "fresh better": _of_fresh(better),
        "fresh not significant": _of_fresh(not_significant),
        "published return": _published_return,
        "published arms": _published_arms,
        "readable": _readable,
        "saturates": _saturates,
        "of the way": _of_the_way,
        "solves": _solves,
        "xi matters little": _xi_matters_little,
        "reward scaling": _reward_scaling,
        "ratio of arms": _ratio_of_arms,
        "five torques": _five_torques,
        "aql on cartpole": _aql_on_cartpole,
        "solved": _solved,
        "random on pendulum": _random_on_pendulum,
        "samples": _samples,
        "trpo catches up": _trpo_catches_up,
        "nothing": lambda study: [Finding("nothing", None)],
    }
)


def _counts_differ(study: Study, findings: Sequence[Finding]) -> str:
    by_samples, by_all_steps = (
        [finding.holds for finding in findings if f"by {count}" in finding.text]
        for count in ("training samples", "all steps")
    )
    if by_samples == by_all_steps:
        return ""
    return "The two counts differ: the evaluations that choose SPAQL's agents are most of its steps."


def _fresh_returns(study: Study, findings: Sequence[Finding], problem: str, *algorithms: str) -> str:
    lines = [study.lines[problem, a] for a in algorithms if (problem, a) in study.lines]
    shown = ", ".join(f"{NAMES[line.algorithm]} {interval(*mean_ci95(line.fresh))}" for line in lines)
    return f"The paper's measure is biased upwards where it is the best evaluation. Fresh: {shown}."


def _solved_fresh(study: Study, findings: Sequence[Finding]) -> str:
    lines = [study.lines["cartpole200", a] for a in VARIANTS]
    counts = " and ".join(f"{line.solved} of {len(line.fresh)}" for line in lines)
    return f"By fresh episodes, which chose nothing: {counts}."


def _half_of_the_torques(study: Study, findings: Sequence[Finding]) -> str:
    half = interval(*mean_ci95(study.lines["pendulum", "random-published"].fresh))
    return f"The authors' code draws random torques from [0, 2] Nm alone, which comes to {half} here."


NOTES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "counts differ": _counts_differ,
        "fresh returns": _fresh_returns,
        "solved in fresh episodes": _solved_fresh,
        "half of the torques": _half_of_the_torques,
    }
)
