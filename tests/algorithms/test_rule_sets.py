"""The setting `rules`: the authors' code by default, or the paper's text."""

import math
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql import archive
from spaql.agents import agent_types
from spaql.algorithms import SPAQLLearner
from spaql.algorithms.partition_learner import AUTHORS, RULE_SETS, TEXT

PAPERS = ("aql", "spaql", "spaql-ts")


def trained(kind: type[spaql.Agent], iterations: int = 30, **settings: object) -> spaql.Agent:
    agent = kind("cartpole200", horizon=60, seed=0, rollouts=3, **settings)
    return agent.learn(iterations=iterations, progress_bar=False)


@pytest.mark.parametrize("algorithm", PAPERS)
def test_the_authors_rules_are_the_default(algorithm: str) -> None:
    kind = agent_types()[algorithm]
    content = trained(kind, 5).to_bytes()
    assert content == trained(kind, 5, rules="authors").to_bytes()
    assert archive.loads(content).data["settings"]["rules"] == "authors"


@pytest.mark.parametrize("algorithm", PAPERS)
def test_an_agent_by_the_text_is_another_and_goes_on_to_the_same_bytes(
    algorithm: str, tmp_path: Path
) -> None:
    kind = agent_types()[algorithm]
    whole = trained(kind, rules="text")
    assert whole.to_bytes() != trained(kind).to_bytes()
    half = trained(kind, 12, rules="text")
    half.save(tmp_path / "half.spaql")
    loaded = spaql.load(tmp_path / "half.spaql")
    assert loaded.settings.rules == "text"
    assert loaded._learner.rule_set == TEXT
    assert loaded.learn(iterations=18, progress_bar=False).to_bytes() == whole.to_bytes()


def test_a_study_may_vary_the_rules(tmp_path: Path) -> None:
    runs = spaql.grid(["cartpole200"], ["spaql-ts"], iterations=2, rules=["authors", "text"])
    assert [run.group for run in runs] == [f"cartpole200/spaql-ts/rules={name}" for name in RULE_SETS]
    spaql.sweep(runs, tmp_path, workers=1, progress_bar=False)
    assert spaql.results(tmp_path)["rules"].tolist() == ["authors", "text"]


def test_every_field_differs_between_the_sets() -> None:
    assert all(asdict(AUTHORS)[item.name] != asdict(TEXT)[item.name] for item in fields(AUTHORS))


@pytest.mark.parametrize("algorithm", PAPERS)
def test_other_rules_are_refused(algorithm: str) -> None:
    with pytest.raises(spaql.SettingError, match="rules is 'paper', and must be 'authors' or 'text'"):
        agent_types()[algorithm]("cartpole200", rules="paper")


def test_the_metric_is_that_of_the_rules_unless_it_is_named() -> None:
    assert spaql.SPAQLTS("cartpole200").settings.metric == "euclidean"
    assert spaql.SPAQLTS("cartpole200", rules="text").settings.metric == "infinity"
    assert spaql.SPAQLTS("cartpole200", rules="text", metric="euclidean").settings.metric == "euclidean"
    assert spaql.SPAQLTS("cartpole200", metric="infinity").settings.metric == "infinity"


def learner_by(rules: str) -> SPAQLLearner:
    learner = spaql.SPAQL("cartpole200", rules=rules, temperature_damping=0.5)._learner
    assert isinstance(learner, SPAQLLearner)
    learner.assess(100.0)
    return learner


def test_a_tie_is_a_gain_to_the_authors_alone() -> None:
    authors = learner_by("authors")
    text = learner_by("text")
    authors.assess(100.0)
    text.assess(100.0)
    assert (authors.growth, text.growth) == (2.0**0.5, 2.0)
    assert (authors.temperature, text.temperature) == (0.01, 0.02)


def test_without_a_split_the_temperature_rises_by_the_text_alone_and_without_end() -> None:
    authors = learner_by("authors")
    text = learner_by("text")
    for _ in range(2000):
        authors.assess(50.0)
        text.assess(50.0)
    assert authors.temperature == 0.01
    assert 1e300 < text.temperature < math.inf


@pytest.mark.parametrize(
    ("rules", "splits", "resets"),
    [
        ("authors", (1, 1, 0, 1), (0, 1, 0, 0)),
        ("authors", (23, 0, 23), (0, 0, 1)),
        ("text", (1, 1, 0, 1), (0, 0, 0, 1)),
        ("text", (23, 0, 23), (1, 0, 1)),
    ],
)
def test_resets_follow_iterations_or_balls(
    rules: str, splits: tuple[int, ...], resets: tuple[int, ...]
) -> None:
    """The authors' code counts iterations with a split; the text counts splits, of which two are allowed."""
    learner = learner_by(rules)
    for split, reset in zip(splits, resets, strict=True):
        learner.splits = split
        learner.assess(50.0)
        assert learner.resets == reset


@pytest.mark.parametrize("rules", ["authors", "text"])
def test_a_terminal_state_before_the_horizon_has_a_value_to_aql(rules: str) -> None:
    learner = spaql.AQL("cartpole200", horizon=20, scaling=4.0, rules=rules)._learner
    learner.begin(np.zeros(4))
    learner.act(np.random.default_rng(0))
    learner.learn(1.0, np.zeros(4), True)
    assert learner.trainee.balls.q[0] == 25.0
