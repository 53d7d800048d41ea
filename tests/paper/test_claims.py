"""Verdicts follow the numbers."""

import numpy as np
import pytest

from spaql.experiments.paper import CHOSEN, SCALINGS
from spaql.experiments.paper_claims import judge
from spaql.experiments.paper_tables import PUBLISHED, Line

pytest.importorskip("scipy")


def studies(shift: float = 0.0, seed: int = 0):
    """Make up results like the published ones, SPAQL-TS lower by `shift`."""
    rng = np.random.default_rng(seed)
    lines = {}
    for (problem, algorithm), ((mean, half), arms) in PUBLISHED.items():
        mean -= shift * (algorithm == "spaql-ts")
        values = mean + half / 0.44 * rng.standard_normal(20)
        count = None if arms is None else np.full(20, arms[0])
        lines[problem, algorithm] = Line(problem, algorithm, values, values, count, 1e6)
    for algorithm in ("spaql", "spaql-ts"):
        lines["pendulum5", algorithm] = Line(
            "pendulum5", algorithm, lines["pendulum", algorithm].fresh + 100,
            lines["pendulum", algorithm].fresh + 100,
        )  # fmt: skip
    lines["pendulum", "random"] = Line("pendulum", "random", rng.normal(-1340, 6, 20))
    short = {
        (problem, algorithm, xi): rng.normal(30 if algorithm == "aql" else 150, 3, 20)
        for problem in (*CHOSEN, "pendulum-scaled")
        for algorithm in ("aql", "spaql", "spaql-ts")
        for xi in SCALINGS
    }
    return short, lines


def verdicts(short, lines) -> dict[str, str]:
    return {claim.claim: claim.verdict for claim in judge(short, lines)}


def test_the_published_numbers_agree_with_the_paper() -> None:
    found = verdicts(*studies())
    assert found["CartPole: SPAQL-TS is better than SPAQL."] == "agrees"
    assert found["Pendulum: AQL has two orders of magnitude more arms."] == "agrees"
    assert found["Pendulum: TRPO ends far above SPAQL."] == "agrees"
    order = "Pendulum: AQL is better than random, SPAQL and SPAQL-TS are better than AQL."
    assert found[order] == "agrees"


def test_other_numbers_do_not() -> None:
    found = verdicts(*studies(shift=30.0))
    assert found["CartPole: SPAQL-TS is better than SPAQL."] == "does not agree"
    solved = "CartPole: 1 SPAQL agent and 17 SPAQL-TS agents solve it (mean return of 195 or more)."
    assert found[solved] == "does not agree"


def test_without_trpo_nothing_is_said_of_it() -> None:
    short, lines = studies()
    del lines["pendulum", "trpo"]
    assert not any("TRPO ends" in claim for claim in verdicts(short, lines))
