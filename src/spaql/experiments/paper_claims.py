"""The claims of the paper, each with what was published, what was measured, and whether they agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spaql.experiments.paper import ALGORITHMS, SCALINGS
from spaql.experiments.paper_tables import NAMES, Line
from spaql.experiments.store import RunStore
from spaql.experiments.table import interval, results
from spaql.stats import WelchTest, mean_ci95, welch

Lines = Mapping[tuple[str, str], Line]
Scaling = Mapping[tuple[str, str, float], NDArray[np.float64]]
"""Fresh returns of the short runs, by problem, algorithm and xi."""


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, held against the measurement."""

    claim: str
    published: str
    measured: str
    verdict: str
    why: str = ""


def short_runs(scaling: RunStore) -> Scaling:
    """Give the fresh returns of the runs that compare values of xi."""
    table = results(scaling.root)
    keys = zip(table["problem"].tolist(), table["algorithm"].tolist(), table["scaling"].tolist(), strict=True)
    found: dict[tuple[str, str, float], list[float]] = {}
    for key, value in zip(keys, table["fresh_return"].tolist(), strict=True):
        found.setdefault(key, []).append(value)
    return {key: np.array(values) for key, values in found.items()}


def judge(short: Scaling, lines: Lines) -> list[Claim]:
    """Hold every claim of the paper against the measurement."""
    claims = [
        _xi_matters_little(short),
        _no_bonus_on_pendulum(short),
        _learn_early(short),
        _reward_scaling(short),
        _pendulum_order(lines),
        _arms_of_aql(lines),
        _variants_on_pendulum(lines),
        _five_torques(lines),
        _no_bonus_on_cartpole(short),
        _aql_on_cartpole(short, lines),
        _cartpole_returns(lines),
        _cartpole_solved(lines),
        _variants_on_cartpole(lines),
        _arms_on_cartpole(lines),
        _random_on_pendulum(lines),
        _samples(lines),
    ]
    if ("pendulum", "trpo") in lines:
        claims.append(_trpo_on_pendulum(lines))
    if ("cartpole200", "trpo") in lines:
        claims.append(_trpo_on_cartpole(lines))
    return claims


def _shown(values: NDArray[np.float64]) -> str:
    return interval(*mean_ci95(values))


def _agree(holds: bool) -> str:
    return "agrees" if holds else "does not agree"


def _said(test: WelchTest, a: str, b: str) -> str:
    p = f"p = {test.p:.0e}" if test.p < 0.001 else f"p = {test.p:.3f}"
    interval = f"95 % interval {test.low:,.1f} to {test.high:,.1f}"
    return f"{a} less {b}: {test.difference:,.1f} ({interval}; {p}, Welch)"


def _means(short: Scaling, problem: str, algorithm: str) -> NDArray[np.float64]:
    """Give the mean return for every xi above 0."""
    return np.array([short[problem, algorithm, xi].mean() for xi in SCALINGS if xi > 0])


def _mean_arms(lines: Lines, problem: str) -> dict[str, float]:
    arms = {a: lines[problem, a].arms for a in ALGORITHMS}
    return {a: float(values.mean()) for a, values in arms.items() if values is not None}


def _xi_matters_little(short: Scaling) -> Claim:
    spreads = {a: _means(short, "pendulum", a).std(ddof=1) for a in ALGORITHMS}
    gap = _means(short, "pendulum", "spaql").mean() - _means(short, "pendulum", "aql").mean()
    return Claim(
        "Pendulum: xi has little impact on the three algorithms.",
        "figure only",
        "standard deviation over the twelve xi above 0: "
        + ", ".join(f"{NAMES[a]} {s:.0f}" for a, s in spreads.items())
        + f"; SPAQL is {gap:.0f} above AQL",
        _agree(max(spreads.values()) < gap / 2),
        "" if max(spreads.values()) < gap / 2 else "The spread over xi is of the size of the difference.",
    )


def _no_bonus_on_pendulum(short: Scaling) -> Claim:
    parts, better = [], []
    for a in ("spaql", "spaql-ts"):
        test = welch(
            short["pendulum", a, 0], np.concatenate([short["pendulum", a, xi] for xi in SCALINGS if xi])
        )
        parts.append(_said(test, f"{NAMES[a]} with xi = 0", "with xi > 0"))
        better.append(test.low > 0)
    return Claim(
        "Pendulum: xi = 0 seems beneficial to SPAQL and SPAQL-TS.",
        "figure only",
        "; ".join(parts),
        "agrees" if all(better) else "in part" if any(better) else "cannot tell",
        "" if all(better) else "Not more than the noise of so many agents for at least one of them.",
    )


def _learn_early(short: Scaling) -> Claim:
    pooled = {a: np.concatenate([short["pendulum", a, xi] for xi in SCALINGS]) for a in ALGORITHMS}
    test, variants = welch(pooled["spaql"], pooled["aql"]), welch(pooled["spaql"], pooled["spaql-ts"])
    return Claim(
        "Pendulum: after 100 iterations SPAQL has learned more than AQL; its two variants do not differ.",
        "figure only",
        f"{_said(test, 'SPAQL', 'AQL')}; {_said(variants, 'SPAQL', 'SPAQL-TS')}",
        "agrees" if test.low > 0 and variants.p >= 0.05 else "in part" if test.low > 0 else "does not agree",
        "" if variants.p >= 0.05 else "Over all xi together, 260 agents each, the variants do differ.",
    )


def _reward_scaling(short: Scaling) -> Claim:
    parts, same = [], []
    for a in ALGORITHMS:
        plain, scaled = _means(short, "pendulum", a).mean(), _means(short, "pendulum-scaled", a).mean()
        parts.append(f"{NAMES[a]} {plain:,.0f} and {scaled:,.0f}")
        same.append((plain, scaled))
    order = [sorted(range(3), key=lambda i: same[i][side])[0] for side in (0, 1)]
    return Claim(
        "Pendulum: scaling rewards to [0, 1] does not greatly change the results.",
        "figure only",
        "mean raw return without and with scaling: " + ", ".join(parts),
        _agree(order[0] == order[1] and max(abs(a - b) for a, b in same) < 150),
        "",
    )


def _pendulum_order(lines: Lines) -> Claim:
    fresh = {a: lines["pendulum", a].fresh for a in ("random", "aql", "spaql", "spaql-ts")}
    above_random = welch(fresh["aql"], fresh["random"])
    above_aql = min(welch(fresh[a], fresh["aql"]).low for a in ("spaql", "spaql-ts"))
    return Claim(
        "Pendulum: AQL is better than random, SPAQL and SPAQL-TS are better than AQL.",
        "random -1340, AQL -1287, SPAQL -836, SPAQL-TS -873",
        "fresh: " + ", ".join(f"{NAMES[a]} {_shown(values)}" for a, values in fresh.items()),
        _agree(above_random.low > 0 and above_aql > 0),
        "Where returns are higher than published, so are those of the authors' own code on today's "
        "Gymnasium. The gap lies in the published run, for one in Pendulum-v0, which clips the speed later.",
    )


def _arms_of_aql(lines: Lines) -> Claim:
    means = _mean_arms(lines, "pendulum")
    ratio = means["aql"] / max(means["spaql"], means["spaql-ts"])
    return Claim(
        "Pendulum: AQL has two orders of magnitude more arms.",
        "195,033 against 1,278 and 1,083",
        f"{means['aql']:,.0f} against {means['spaql']:,.0f} and {means['spaql-ts']:,.0f}",
        _agree(ratio > 50),
    )


def _variants_on_pendulum(lines: Lines) -> Claim:
    test = welch(lines["pendulum", "spaql"].fresh, lines["pendulum", "spaql-ts"].fresh)
    return Claim(
        "Pendulum: Welch's test does not tell SPAQL and SPAQL-TS apart.",
        "no significant difference at 5 %",
        _said(test, "SPAQL", "SPAQL-TS"),
        _agree(test.p >= 0.05),
        "" if test.p >= 0.05 else "On fresh episodes SPAQL is better; the paper compares best-seen returns.",
    )


def _five_torques(lines: Lines) -> Claim:
    gains = {
        a: welch(_reported(lines, "pendulum5", a), _reported(lines, "pendulum", a))
        for a in ("spaql", "spaql-ts")
    }
    return Claim(
        "Five torques instead of an interval raise the return of SPAQL and SPAQL-TS by about 100.",
        "about 100",
        "best seen: " + ", ".join(f"{NAMES[a]} by {t.difference:.0f}" for a, t in gains.items()),
        "agrees" if all(t.low > 0 for t in gains.values()) else "in part",
        "The gain is larger here than published." if min(t.low for t in gains.values()) > 100 else "",
    )


def _reported(lines: Lines, problem: str, algorithm: str) -> NDArray[np.float64]:
    reported = lines[problem, algorithm].reported
    assert reported is not None
    return reported


def _no_bonus_on_cartpole(short: Scaling) -> Claim:
    zero = {a: short["cartpole200", a, 0] for a in ALGORITHMS}
    low = {a: short["cartpole200", a, 0.4] for a in ALGORITHMS}
    falls = welch(low["spaql"], zero["spaql"])
    stays = welch(low["spaql-ts"], zero["spaql-ts"])
    return Claim(
        "CartPole: xi = 0 ruins SPAQL and hurts AQL, and does not affect SPAQL-TS.",
        "SPAQL as good as random with xi = 0",
        "xi = 0 against 0.4: "
        + ", ".join(f"{NAMES[a]} {_shown(zero[a])} against {_shown(low[a])}" for a in zero),
        "agrees" if falls.low > 0 and stays.p >= 0.05 else "in part" if falls.low > 0 else "does not agree",
    )


def _aql_on_cartpole(short: Scaling, lines: Lines) -> Claim:
    means = _means(short, "cartpole200", "aql")
    random = float(lines["cartpole200", "random"].fresh.mean())
    return Claim(
        "CartPole: AQL is barely distinguishable from random, whatever xi.",
        "22.40 ± 0.60 after 2,000 iterations, random 22.15 ± 0.64",
        f"{means.min():.1f} to {means.max():.1f} over xi in the short runs, "
        f"{_shown(lines['cartpole200', 'aql'].fresh)} in the long ones, random {random:.1f}",
        _agree(abs(float(lines["cartpole200", "aql"].fresh.mean()) - random) < 5),
    )


def _cartpole_returns(lines: Lines) -> Claim:
    spaql, ts = lines["cartpole200", "spaql"], lines["cartpole200", "spaql-ts"]
    return Claim(
        "CartPole: SPAQL reaches about 193 and SPAQL-TS about 199, which solves it.",
        "192.57 ± 0.94 and 198.53 ± 1.55 (best seen)",
        f"best seen {_shown(_reported(lines, 'cartpole200', 'spaql'))} and "
        f"{_shown(_reported(lines, 'cartpole200', 'spaql-ts'))}; fresh {_shown(spaql.fresh)} and "
        f"{_shown(ts.fresh)}",
        _agree(float(ts.fresh.mean()) >= 195),
        "Best seen is the best of many noisy means, and biased upwards: new episodes tell the truth.",
    )


def _cartpole_solved(lines: Lines) -> Claim:
    spaql, ts = lines["cartpole200", "spaql"], lines["cartpole200", "spaql-ts"]
    return Claim(
        "CartPole: 1 SPAQL agent and 17 SPAQL-TS agents solve it (mean return of 195 or more).",
        "1 of 20 and 17 of 20",
        f"{spaql.solved} of {len(spaql.fresh)} and {ts.solved} of {len(ts.fresh)}, on fresh episodes",
        _agree((ts.solved or 0) >= 0.75 * len(ts.fresh) and (spaql.solved or 0) <= 0.15 * len(spaql.fresh)),
    )


def _variants_on_cartpole(lines: Lines) -> Claim:
    test = welch(lines["cartpole200", "spaql-ts"].fresh, lines["cartpole200", "spaql"].fresh)
    return Claim(
        "CartPole: SPAQL-TS is better than SPAQL.",
        "p of the order of 1e-6 (Welch)",
        _said(test, "SPAQL-TS", "SPAQL"),
        _agree(test.low > 0),
    )


def _arms_on_cartpole(lines: Lines) -> Claim:
    means = _mean_arms(lines, "cartpole200")
    return Claim(
        "CartPole: SPAQL-TS ends with about twice the arms of SPAQL, AQL with 25 times those.",
        "558, 1,290 and 32,989",
        f"{means['spaql']:,.0f}, {means['spaql-ts']:,.0f} and {means['aql']:,.0f}",
        _agree(1.5 < means["spaql-ts"] / means["spaql"] < 3.5 and means["aql"] > 10 * means["spaql-ts"]),
    )


def _random_on_pendulum(lines: Lines) -> Claim:
    return Claim(
        "Pendulum: a random policy scores -1340.",
        "-1340.43 ± 6.24",
        f"{_shown(lines['pendulum', 'random'].fresh)}; torques from [0, 2] Nm only: "
        f"{_shown(lines['pendulum', 'random-published'].fresh)}",
        "does not agree",
        "The published baseline drew torques from [0, 2] Nm; the whole range is [-2, 2] Nm.",
    )


def _samples(lines: Lines) -> Claim:
    spent = {p: lines[p, "spaql"].interactions for p in ("pendulum", "cartpole200")}
    return Claim(
        "SPAQL uses 400,000 samples, as many as TRPO.",
        "200 samples an iteration",
        f"interactions with the evaluations that pick the best agent: {spent['pendulum']:,.0f} on Pendulum, "
        f"{spent['cartpole200']:,.0f} on CartPole",
        "does not agree",
        "Evaluation is not free: 20 or 100 episodes after each training episode decide which agent is kept.",
    )


def _trpo_on_pendulum(lines: Lines) -> Claim:
    trpo, spaql = lines["pendulum", "trpo"].fresh, lines["pendulum", "spaql"].fresh
    return Claim(
        "Pendulum: TRPO ends far above SPAQL.",
        "-176.76 ± 15.79",
        f"TRPO {_shown(trpo)}, SPAQL {_shown(spaql)}",
        _agree(welch(trpo, spaql).low > 0),
        "The paper used Garage's TRPO, this is sb3-contrib's.",
    )


def _trpo_on_cartpole(lines: Lines) -> Claim:
    test = welch(lines["cartpole200", "trpo"].fresh, lines["cartpole200", "spaql-ts"].fresh)
    return Claim(
        "CartPole: Welch's test does not tell TRPO and SPAQL-TS apart.",
        "197.27 ± 3.17 and 198.53 ± 1.55",
        _said(test, "TRPO", "SPAQL-TS"),
        _agree(not test.p < 0.05),
        "The paper used Garage's TRPO, this is sb3-contrib's." if test.p < 0.05 else "",
    )
