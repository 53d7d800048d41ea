"""The claims of the paper's results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from spaql.figures.names import NAMES
from spaql.plugins.paper.criteria import (
    ABOUT,
    BETTER,
    BOTH_MEASURES,
    NOT_SIGNIFICANT,
    NUMBER,
    SHARE,
    SMALL,
    Finding,
    about,
    better,
    not_significant,
    number,
    share,
    small,
)
from spaql.plugins.paper.equal_samples import BATCH
from spaql.plugins.paper.evidence import (
    OTHER_TRPO,
    PLACES,
    PROBLEMS,
    Better,
    Claimed,
    Compared,
    NotSignificant,
    Published,
    Study,
)
from spaql.plugins.paper.study import ALGORITHMS, SCALINGS, SOLVED, VARIANTS
from spaql.plugins.paper.tables import PUBLISHED_SOLVED
from spaql.plugins.sweeps.table import interval
from spaql.stats import mean_ci95, welch

_PENDULUM = "Results, Pendulum"
_CARTPOLE = "Results, CartPole"
_TRPO = "Results, TRPO"
_BEST_OF_ALL = 200.0


def _gap(study: Study) -> float:
    return float(study.by_xi("pendulum", "spaql").mean() - study.by_xi("pendulum", "aql").mean())


def _xi_matters_little(study: Study) -> list[Finding]:
    gap = _gap(study)
    spreads = {a: float(study.by_xi("pendulum", a).std(ddof=1)) for a in ALGORITHMS}
    found = [small(NAMES[a], spread, gap) for a, spread in spreads.items()]
    return [*found[:-1], Finding(f"{found[-1].text}; SPAQL less AQL {gap:,.0f}", found[-1].holds)]


def _reward_scaling(study: Study) -> list[Finding]:
    plain, scaled = (
        {a: study.pooled(problem, a) for a in ALGORITHMS} for problem in ("pendulum", "pendulum-scaled")
    )
    found = [
        small(f"{NAMES[a]} with less without", float(scaled[a].mean() - plain[a].mean()), _gap(study))
        for a in ALGORITHMS
    ]
    turned = []
    for a, b in combinations(ALGORITHMS, 2):
        before = welch(plain[a], plain[b])
        after = welch(scaled[a], scaled[b])
        if (before.low > 0 and after.high < 0) or (before.high < 0 and after.low > 0):
            turned.append(f"{NAMES[a]} and {NAMES[b]}")
    return [*found, Finding(f"order reversed: {', '.join(turned) or 'no pair'}", not turned)]


def _arms_ratio(study: Study) -> Iterator[Finding]:
    for a in VARIANTS:
        times = float(study.arms("pendulum", "aql").mean() / study.arms("pendulum", a).mean())
        yield Finding(f"AQL over {NAMES[a]} {times:,.0f} times", 10**1.5 < times < 10**2.5)


def _fresh_note(problem: str, algorithms: Sequence[str], study: Study) -> str:
    lines = [study.lines[problem, a] for a in algorithms if (problem, a) in study.lines]
    shown = ", ".join(f"{NAMES[line.algorithm]} {interval(*mean_ci95(line.fresh))}" for line in lines)
    return f"The paper's measure is biased upwards where it is the best evaluation. Fresh: {shown}."


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


def _solved(study: Study) -> list[Finding]:
    seen = {a: study.measures("cartpole200", a)[0] for a in VARIANTS}
    found = [
        share(NAMES[a], (int((seen[a] >= SOLVED).sum()), len(seen[a])), (PUBLISHED_SOLVED[a], 20))
        for a in VARIANTS
    ]
    top = int((seen["spaql-ts"] >= _BEST_OF_ALL).sum())
    return [*found, share("SPAQL-TS with 200", (top, len(seen["spaql-ts"])), (14, 20))]


def _solved_fresh(study: Study, findings: Sequence[Finding]) -> str:
    lines = [study.lines["cartpole200", a] for a in VARIANTS]
    counts = " and ".join(f"{line.solved} of {len(line.fresh)}" for line in lines)
    return f"By fresh episodes, which chose nothing: {counts}."


def _random_on_pendulum(study: Study) -> Iterator[Finding]:
    yield number("torques from [-2, 2] Nm", study.lines["pendulum", "random"].fresh, (-1340.43, 6.24))


def _half_of_the_torques(study: Study, findings: Sequence[Finding]) -> str:
    half = interval(*mean_ci95(study.lines["pendulum", "random-published"].fresh))
    return f"The authors' code draws random torques from [0, 2] Nm alone, which comes to {half} here."


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


BODY = (
    Claimed(
        "Pendulum: the scaling parameter has little impact on the three algorithms.",
        _PENDULUM,
        "figure only",
        f"the standard deviation of the mean return over the twelve xi above 0 is little: {SMALL}",
        [_xi_matters_little],
    ),
    Claimed(
        "Pendulum: setting xi to 0 seems to be beneficial to both SPAQL and SPAQL-TS.",
        _PENDULUM,
        "figure only",
        f"each is better with xi = 0 than with all xi above 0 together: {BETTER}",
        [
            Compared(better, f"{NAMES[a]} with xi = 0 less with xi > 0", ("pendulum", a, 0), ("pendulum", a))
            for a in VARIANTS
        ],
    ),
    Claimed(
        "Pendulum, after 100 iterations: both algorithms are learning, with SPAQL learning more than AQL. "
        "There "
        "is no difference between the two variants of SPAQL.",
        _PENDULUM,
        "figure only",
        "over all xi above 0, AQL and SPAQL are better than random, and SPAQL than AQL: "
        f"{BETTER}; of the variants, {NOT_SIGNIFICANT}",
        [
            Compared(better, "AQL less random", ("pendulum", "aql"), ("pendulum", "random")),
            Compared(better, "SPAQL less random", ("pendulum", "spaql"), ("pendulum", "random")),
            Compared(better, "SPAQL less AQL", ("pendulum", "spaql"), ("pendulum", "aql")),
            Compared(not_significant, "SPAQL less SPAQL-TS", ("pendulum", "spaql"), ("pendulum", "spaql-ts")),
        ],
    ),
    Claimed(
        "Pendulum: reward scaling does not greatly impact the results; the relative positions remain the "
        "same.",
        _PENDULUM,
        "figure only",
        f"the change of the mean raw return over all xi above 0 is not great: {SMALL}; and Welch's test "
        "orders no pair of algorithms the other way round",
        [_reward_scaling],
    ),
    Claimed(
        "Pendulum: both AQL and SPAQL distance themselves from the random policy.",
        _PENDULUM,
        "random -1340, AQL -1287, SPAQL -836",
        f"AQL and SPAQL are better than random torques from [-2, 2] Nm, {BOTH_MEASURES}: {BETTER}",
        [Better(("pendulum", a), ("pendulum", "random")) for a in ("aql", "spaql")],
    ),
    Claimed(
        "Pendulum: average cumulative reward at the end of training.",
        "Table, Pendulum",
        "AQL -1287.31 ± 5.79, SPAQL -835.99 ± 26.91, SPAQL-TS -873.40 ± 39.94",
        f"as the paper measures, {NUMBER}",
        [Published("return", "pendulum", a) for a in ALGORITHMS],
        lambda study, findings: (
            f"{_fresh_note('pendulum', ALGORITHMS, study)} The paper ran Gym's Pendulum-v0, which clips "
            "the "
            "speed after the angle has moved; how much of the difference that is was not measured."
        ),
    ),
    Claimed(
        "Pendulum: the average number of arms of the AQL agents is two orders of magnitude higher than that "
        "of "
        "the SPAQL and SPAQL-TS agents.",
        _PENDULUM,
        "195,033 ± 576, 1,278 ± 169 and 1,083 ± 91",
        f"of each number of arms, {NUMBER}; and AQL has between 10^1.5 and 10^2.5 times as many",
        [*(Published("arms", "pendulum", a) for a in ALGORITHMS), _arms_ratio],
    ),
    Claimed(
        "Pendulum: there is not enough evidence to support the claim that SPAQL is better than SPAQL-TS, and "
        "vice versa.",
        _PENDULUM,
        "no significant difference at 5 %",
        f"{NOT_SIGNIFICANT}, {BOTH_MEASURES}",
        [NotSignificant("pendulum", "spaql", "spaql-ts")],
    ),
    Claimed(
        "Pendulum with five torques: the cumulative reward achieved by SPAQL and SPAQL-TS at the end of "
        "training "
        "increased by about 100.",
        _PENDULUM,
        "about 100",
        f"of each increase, as the paper measures, {ABOUT}",
        [_five_torques],
    ),
    Claimed(
        "CartPole: when xi = 0, AQL performs worse than a random policy, and SPAQL as well as a random "
        "policy. "
        "0.4 immediately solves this problem. SPAQL-TS is not affected.",
        _CARTPOLE,
        "figure only",
        f"random is better than AQL with xi = 0, and SPAQL better with 0.4 than with 0: {BETTER}; of SPAQL "
        "with "
        f"0 and random, and of SPAQL-TS with 0.4 and 0, {NOT_SIGNIFICANT}",
        [
            Compared(better, "random less AQL with 0", ("cartpole200", "random"), ("cartpole200", "aql", 0)),
            Compared(
                not_significant,
                "SPAQL with 0 less random",
                ("cartpole200", "spaql", 0),
                ("cartpole200", "random"),
            ),
            Compared(
                better,
                "SPAQL with 0.4 less with 0",
                ("cartpole200", "spaql", 0.4),
                ("cartpole200", "spaql", 0),
            ),
            Compared(
                not_significant,
                "SPAQL-TS with 0.4 less with 0",
                ("cartpole200", "spaql-ts", 0.4),
                ("cartpole200", "spaql-ts", 0),
            ),
        ],
    ),
    Claimed(
        "CartPole: the AQL policies are barely distinguishable from random ones, independently of xi.",
        _CARTPOLE,
        "22.40 ± 0.60 after 2,000 iterations, random 22.15 ± 0.64",
        f"of AQL and random, in the long runs and in the short ones with every xi above 0, {NOT_SIGNIFICANT}",
        [_aql_on_cartpole],
    ),
    Claimed(
        "CartPole: the SPAQL and SPAQL-TS agents achieve average cumulative rewards of approximately 193 "
        "and 199.",
        f"{_CARTPOLE}; Table, CartPole",
        "192.57 ± 0.94 and 198.53 ± 1.55",
        f"as the paper measures, {NUMBER}",
        [Published("return", "cartpole200", a) for a in VARIANTS],
        lambda study, findings: _fresh_note("cartpole200", VARIANTS, study),
    ),
    Claimed(
        "CartPole: only one SPAQL agent solved the system, and seventeen SPAQL-TS agents, out of which "
        "fourteen "
        "scored the maximum of 200.",
        _CARTPOLE,
        "1, 17 and 14 of 20",
        f"of each number, counted as the paper measures, {SHARE}",
        [_solved],
        _solved_fresh,
    ),
    Claimed(
        "CartPole: SPAQL-TS is better than SPAQL.",
        _CARTPOLE,
        "p of the order of 1e-6 (Welch)",
        f"SPAQL-TS is better than SPAQL, {BOTH_MEASURES}: {BETTER}",
        [Better(("cartpole200", "spaql-ts"), ("cartpole200", "spaql"))],
    ),
    Claimed(
        "CartPole: SPAQL-TS agents end the training with around twice the number of arms of SPAQL, AQL "
        "agents "
        "with 25 times more.",
        _CARTPOLE,
        "32,989 ± 187, 558 ± 55 and 1,290 ± 151",
        f"of each number of arms, {NUMBER}",
        [Published("arms", "cartpole200", a) for a in ALGORITHMS],
    ),
    Claimed(
        "Pendulum: a random policy scores -1340.",
        "Table, Pendulum",
        "-1340.43 ± 6.24",
        NUMBER,
        [_random_on_pendulum],
        _half_of_the_torques,
    ),
    Claimed(
        "400 thousand training samples [of TRPO], the same amount used when training AQL and SPAQL agents.",
        _TRPO,
        "400,000",
        "SPAQL's samples are within 5 % of 400,000: training samples, and all steps, which include the "
        "evaluations that choose the agent",
        [_samples],
        "Evaluation is not free: 20 or 100 episodes after each training episode decide which agent is kept.",
    ),
    Claimed(
        "Pendulum: the TRPO agents continue learning until stabilizing the cumulative reward around -200.",
        f"{_TRPO}; Table, Pendulum",
        "-176.76 ± 15.79",
        f"as the paper measures, {NUMBER}",
        [Published("return", "pendulum", "trpo")],
        OTHER_TRPO,
        needs_trpo=True,
    ),
    Claimed(
        "The SPAQL variants take the lead, but TRPO catches up after 200 batches (40 thousand samples), on "
        "Pendulum and on CartPole.",
        _TRPO,
        "40,000 samples",
        "TRPO's mean return reaches that of SPAQL and of SPAQL-TS first after 20,000 to 80,000 training "
        "samples, "
        "within a factor of two",
        [_trpo_catches_up],
        OTHER_TRPO,
        needs_trpo=True,
    ),
    Claimed(
        "CartPole: in the end, TRPO agents perform as well as SPAQL-TS agents.",
        _TRPO,
        "197.27 ± 3.17 and 198.53 ± 1.55",
        f"{NOT_SIGNIFICANT}, {BOTH_MEASURES}",
        [NotSignificant("cartpole200", "trpo", "spaql-ts")],
        OTHER_TRPO,
        needs_trpo=True,
    ),
)
