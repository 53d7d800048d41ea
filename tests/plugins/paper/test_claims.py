"""Verdicts follow the numbers, by criteria that are written beside them."""

import dataclasses
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql.errors import SettingError
from spaql.plugins.paper.claims import judge
from spaql.plugins.paper.criteria import (
    VERDICTS,
    Finding,
    about,
    at_least,
    better,
    not_significant,
    number,
    share,
    small,
    verdict,
)
from spaql.plugins.paper.evidence import BATCH, Early, Study, early_returns
from spaql.plugins.paper.study import CHOSEN, SCALINGS
from spaql.plugins.paper.tables import PUBLISHED, Line
from spaql.plugins.sweeps.store import RunStore, read_history
from spaql.tables import comma_separated

pytest.importorskip("scipy")

BATCHES = BATCH * np.arange(1, 101)


def with_interval(mean: float, half: float, n: int = 20) -> np.ndarray:
    """Make up n runs with exactly this mean and Student's interval."""
    runs = np.random.default_rng(n).standard_normal(n)
    runs = (runs - runs.mean()) / runs.std(ddof=1)
    return mean + half * np.sqrt(n) / {20: 2.0930240544, 5: 2.7764451052}[n] * runs


def learned(rate: float, low: float, high: float, cost: float = 1.0) -> Early:
    """Make up agents that learn at a rate, and of which a sample costs so many steps."""
    runs = np.linspace(0.98, 1.02, 20)[:, None]
    returns = [low + (high - low) * runs * (1 - np.exp(-rate * BATCHES / per)) for per in (1.0, cost)]
    return Early(*returns, np.full(20, 4e5), np.full(20, 4e5 * cost), np.linspace(0.01, 0.03, 20))


def published(**changes: float) -> Study:
    """Make up a study like the published one; `changes` are to the mean return of an algorithm."""
    rng = np.random.default_rng(0)
    lines = {}
    for (problem, algorithm), ((mean, half), arms) in PUBLISHED.items():
        values = with_interval(mean + changes.get(f"{problem}_{algorithm}", 0.0), half)
        count = None if arms is None else with_interval(*arms)
        lines[problem, algorithm] = Line(problem, algorithm, values, values, count, 1e6)
    for algorithm in ("aql", "spaql", "spaql-ts"):
        more = lines["pendulum", algorithm].fresh + 100
        lines["pendulum5", algorithm] = Line("pendulum5", algorithm, more, more)
    lines["pendulum", "random"] = Line("pendulum", "random", with_interval(-1340.43, 6.24))
    short = {
        (problem, algorithm, xi): rng.normal(22 if algorithm == "aql" else 150, 1, 20)
        for problem in (*CHOSEN, "pendulum-scaled")
        for algorithm in ("aql", "spaql", "spaql-ts")
        for xi in SCALINGS
    }
    early = {}
    for problem, low, high in (("pendulum", -1300.0, -200.0), ("cartpole200", 20.0, 200.0)):
        for algorithm in ("spaql", "spaql-ts"):
            early[problem, algorithm] = learned(2e-4, low, (low + high) / 2, cost=21.0)
        early[problem, "aql"] = learned(1e-6, low, high)
        early[problem, "trpo"] = learned(2e-5, low, high)
    return Study(short, lines, early)


def verdicts(study: Study) -> dict[str, str]:
    return {claim.claim: claim.verdict for claim in judge(study)}


def of(found: dict[str, str], words: str) -> str:
    (one,) = (verdict for claim, verdict in found.items() if words in claim)
    return one


def test_the_published_numbers_agree_with_the_paper() -> None:
    found = verdicts(published())
    for words in (
        "time-invariant policies are shown",
        "solves the OpenAI Gym CartPole",
        "Discretizing the action space",
        "not enough to reach the reward levels",
        "Neither SPAQL nor SPAQL-TS",
        "preferable to use them",
        "two orders of magnitude",
        "average cumulative reward at the end",
        "approximately 193 and 199",
        "CartPole: SPAQL-TS is better than SPAQL",
        "around twice the number of arms",
        "TRPO agents perform as well",
        "a random policy scores -1340",
        "around -200",
    ):
        assert of(found, words) == "agrees", words


def test_every_claim_has_its_place_its_criterion_and_one_of_four_verdicts() -> None:
    claims = judge(published())
    assert len({claim.claim for claim in claims}) == len(claims) == 35
    for claim in claims:
        assert claim.verdict in VERDICTS
        assert re.match("Abstract|Conclusions|Results|Table", claim.where)
        assert len(claim.criterion) > 40
        assert claim.measured


def test_criteria_do_not_depend_on_results() -> None:
    one = judge(published())
    other = judge(published(pendulum_spaql=500.0))
    assert [claim.criterion for claim in one] == [claim.criterion for claim in other]
    assert [claim.verdict for claim in one] != [claim.verdict for claim in other]


def test_near_is_not_enough() -> None:
    """189.9 ± 1.9 is not about 193, nor are gains of 204 and 126 about 100."""
    study = published()
    lines = dict(study.lines)
    seen = with_interval(189.9, 1.9)
    lines["cartpole200", "spaql"] = dataclasses.replace(lines["cartpole200", "spaql"], reported=seen)
    for algorithm, gain in (("spaql", 204.0), ("spaql-ts", 126.0)):
        more = lines["pendulum", algorithm].fresh + gain
        lines["pendulum5", algorithm] = Line("pendulum5", algorithm, more, more)
    found = verdicts(dataclasses.replace(study, lines=lines))
    assert of(found, "approximately 193 and 199") == "in part"
    assert of(found, "increased by about 100") == "does not agree"


def test_early_samples_are_counted_twice() -> None:
    """With its evaluations counted, what SPAQL learns quickly it learns slowly."""
    claims = {claim.claim: claim for claim in judge(published())}
    (headline,) = (claim for words, claim in claims.items() if words.startswith("The higher sample-eff"))
    assert headline.verdict == "in part"
    assert "by training samples: SPAQL-TS less TRPO" in headline.measured
    assert headline.why.startswith("The two counts differ")
    slow = published()
    early = {(p, a): slow.early[p, "trpo" if a == "trpo" else "aql"] for p, a in slow.early}
    found = verdicts(dataclasses.replace(slow, early=early))
    assert of(found, "The higher sample-efficiency of SPAQL and SPAQL-TS") == "does not agree"


def test_without_trpo_nothing_is_said_of_it() -> None:
    study = published()
    lines = {key: line for key, line in study.lines.items() if key[1] != "trpo"}
    claims = judge(dataclasses.replace(study, lines=lines))
    silent = [claim for claim in claims if claim.measured == "TRPO was not run"]
    assert len(silent) == 10
    assert {claim.verdict for claim in silent} == {"cannot tell"}


def test_the_rules() -> None:
    ours = with_interval(100.0, 4.0)
    assert number("", ours, (104.0, 1.0)).holds is True
    assert number("", ours, (105.0, 1.0)).holds is False
    assert number("", ours, (110.0, 11.0)).holds is True
    assert number("", with_interval(100.0, 40.0), (110.0, 1.0)).holds is None
    assert number("", with_interval(100.0, 40.0), (160.0, 1.0)).holds is False
    assert about("", 100.0, 95.0, 113.0).holds is True
    assert about("", 100.0, 103.0, 105.0).holds is True
    assert about("", 100.0, 106.0, 112.0).holds is False
    assert about("", 100.0, 9.0, 243.0).holds is None
    assert better("", ours + 10, ours).holds is True
    assert better("", ours, ours + 10).holds is False
    assert better("", ours, ours + 1).holds is None
    assert better("", np.ones(3), np.zeros(3)).holds is None
    assert not_significant("", ours, ours + 1).holds is True
    assert not_significant("", ours, ours + 10).holds is False
    assert not_significant("", np.ones(3), np.ones(3)).holds is True
    assert small("", -4.0, 10.0).holds is True
    assert small("", 5.0, 10.0).holds is False
    assert at_least("", ours, 95.0).holds is True
    assert at_least("", ours, 98.0).holds is None
    assert at_least("", ours, 105.0).holds is False
    assert share("", (20, 20), (17, 20)).holds is True
    assert share("", (20, 20), (14, 20)).holds is False


def test_verdicts_of_several_parts() -> None:
    parts = {"y": Finding("", True), "n": Finding("", False), "?": Finding("", None)}
    expected = {"yy": "agrees", "yn": "in part", "y?": "in part", "n?": "does not agree", "??": "cannot tell"}
    assert {word: verdict([parts[letter] for letter in word]) for word in expected} == expected


def test_returns_at_equal_numbers_of_samples_are_those_of_the_histories(tmp_path: Path) -> None:
    runs = spaql.grid(["cartpole200"], ["aql", "spaql"], seeds=2, iterations=40, rollouts=[20])
    assert not spaql.sweep(runs, tmp_path, workers=1, progress_bar=False).failed
    found = early_returns(RunStore(tmp_path))
    for algorithm, returned, steps in (
        ("aql", "mean_return", "training_steps"),
        ("spaql", "best_return", "interactions"),
    ):
        early = found["cartpole200", algorithm]
        assert early.by_samples.shape == early.by_all_steps.shape == (2, 100)
        for seed in range(2):
            history = read_history(tmp_path / f"cartpole200/{algorithm}/rollouts=20/seed={seed}")
            rows = list(zip(history[steps], history["training_steps"], history[returned], strict=True))
            for i, count in enumerate(BATCHES[:12]):
                taken = [value for all_steps, _, value in rows if all_steps <= count]
                assert early.by_all_steps[seed, i] == (taken[-1] if taken else rows[0][2])
                assert early.by_samples[seed, i] == [value for _, n, value in rows if n <= count][-1]
            assert (early.samples[seed], early.all_steps[seed]) == (rows[-1][1], rows[-1][0])


def test_two_studies_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "benchmarks")
    claims_of = importlib.import_module("claims")
    studies = {"authors": judge(published()), "text": judge(published(pendulum_spaql=500.0))[1:]}
    for name, claims in studies.items():
        (tmp_path / name / "tables").mkdir(parents=True)
        cells = [dataclasses.asdict(claim) for claim in claims]
        (tmp_path / name / "tables" / "claims.csv").write_text(comma_separated(cells), encoding="utf-8")
    rows = claims_of.side_by_side({name: claims_of.read_claims(tmp_path / name) for name in studies})
    assert rows == claims_of.side_by_side(studies)
    assert len(rows) == 35
    assert rows[0]["verdict, text"] == ""
    for row, one, other in zip(rows[1:], studies["authors"][1:], studies["text"], strict=True):
        assert (row["claim"], row["criterion"]) == (one.claim, one.criterion)
        assert (row["verdict, authors"], row["verdict, text"]) == (one.verdict, other.verdict)
    with pytest.raises(SettingError, match="make the report first"):
        claims_of.read_claims(tmp_path)
    (tmp_path / "text" / "tables" / "claims.csv").write_text("claim,verdict\na,b\n", encoding="utf-8")
    with pytest.raises(SettingError, match="columns claim, where, published, criterion"):
        claims_of.read_claims(tmp_path / "text")
