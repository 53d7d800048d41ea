"""Costs and constraints on the command line: train, and evaluate."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from spaql.cli import main


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.slow
def test_a_run_is_trained_with_a_cost_and_judged_by_its_constraints(tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    given = ["--cost", "cart_position**2", "--constraint", "abs(pole_angle) < 0.01"]
    given += ["--constraint", "abs(cart_position) < 2"]
    words = ["train", "CartPole-v1", "--steps", "200", "--effort", "0.02", "--seed", "0", *given]
    shown = run(*words, "--quiet", "--out", folder)
    assert "constraint    abs(pole_angle) < 0.01: violated in " in shown
    data = json.loads(run("evaluate", folder, "--episodes", "9", "--json"))
    assert set(data["violations"]) == {"abs(pole_angle) < 0.01", "abs(cart_position) < 2"}
    assert data["violations"]["abs(pole_angle) < 0.01"] > 0
    assert data["mean"] <= 0
    text = run("evaluate", folder, "--episodes", "9")
    count = data["violations"]["abs(pole_angle) < 0.01"]
    assert f"abs(pole_angle) < 0.01: violated in {count} of 9 episodes" in text
    assert "abs(cart_position) < 2: " in text
    other = json.loads(run("evaluate", folder, "--episodes", "3", "--env", "CartPole-v1", "--json"))
    assert other["mean"] <= 0
    assert set(other["violations"]) == set(data["violations"])
    refused = run(*words[: -len(given)], "--quiet", "--resume", "--out", folder, code=1)
    assert "stage_cost" in refused


def test_a_wrong_expression_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    shown = run("train", "CartPole-v1", "--cost", "pole_angel**2", "--out", str(tmp_path / "run"), code=1)
    assert "did you mean pole_angle?" in shown
    assert not list(tmp_path.iterdir())
