"""Numbers as people read them: enough digits at every scale, and none that say nothing."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import spaql
from spaql.cli import main
from spaql.formatting import number, places, range_text, with_interval
from spaql.plugins.sweeps.table import interval, number_cell
from spaql.simulate import Evaluation

SAME = [
    (-146.42, 18.13),
    (200.0, 0.0),
    (97.6, 0.3),
    (-1230.44, 150.2),
    (21.3, 2.06),
    (0.5, 0.3),
    (99_999.9, 812.4),
]
"""Means and intervals which one digit after the point tells."""


@pytest.mark.parametrize(("mean", "half"), SAME)
def test_ordinary_returns_have_one_digit_after_the_point(mean: float, half: float) -> None:
    assert with_interval(mean, half) == f"{mean:.1f} ± {half:.1f}"


@pytest.mark.parametrize(
    ("mean", "half", "shown"),
    [
        (0.0012, 0.0004, "0.0012 ± 0.0004"),
        (-2.314, 0.042, "-2.31 ± 0.04"),
        (0.0012, 0.0, "0.0012 ± 0.0000"),
        (0.0, 0.0, "0.0 ± 0.0"),
        (0.5, 0.0, "0.5 ± 0.0"),
        (0.0, 0.003, "0.000 ± 0.003"),
        (497.3, 1e-9, "497.3 ± 0.0"),
        (-12_345_678.9, 1_234_567.8, "-12,350,000 ± 1,230,000"),
        (12_345_678.9, 12.3, "12,345,679 ± 12"),
        (1.5e20, 3e18, "1.5e+20 ± 3e+18"),
        (1.5e-12, 3e-13, "1.5e-12 ± 3e-13"),
        (math.inf, math.nan, "inf"),
        (-3.0, math.nan, "-3.0"),
    ],
)
def test_other_scales_have_the_digits_they_need(mean: float, half: float, shown: str) -> None:
    assert with_interval(mean, half) == shown


@given(st.floats(-1e14, 1e14), st.floats(1e-8, 1e14))
def test_an_interval_that_says_something_is_never_written_as_zero(mean: float, half: float) -> None:
    if half > 1e-6 * abs(mean):
        assert float(with_interval(mean, half).rpartition("± ")[2].replace(",", "")) > 0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_alone_is_told_from_zero(value: float) -> None:
    assert (float(number(value, places(value)).replace(",", "")) == 0) == (value == 0)


def test_tables_have_whole_thousands() -> None:
    assert interval(-835.99, 26.91) == "-836.0 ± 26.9"
    assert interval(195_032.75, 575.81) == "195,033 ± 576"
    assert interval(1234.5, 0.02) == "1234.50 ± 0.02"
    assert [number_cell(x) for x in (1234.5, -12.34, 0.00123)] == ["1,234", "-12.3", "0.00123"]


def test_an_evaluation_of_small_returns_is_shown() -> None:
    returns = np.array([0.0008, 0.0012, 0.0016])
    shown = repr(Evaluation(returns, np.array([5, 5, 5]), np.zeros((3, 1))))
    assert shown == "Evaluation(return 0.0012 ± 0.0010 of 3 episodes, worst 0.0008 from [0])"


class Scaled(gymnasium.RewardWrapper[Any, Any]):
    """Pendulum with rewards of another unit."""

    def __init__(self, env: gymnasium.Env[Any, Any], unit: float) -> None:
        super().__init__(env)
        self.unit = unit

    def reward(self, reward: Any) -> float:
        return float(reward) * self.unit


def scaled_pendulum(unit: float = 1.0) -> gymnasium.Env[Any, Any]:
    return Scaled(gymnasium.make("Pendulum-v1", max_episode_steps=None).unwrapped, unit)


gymnasium.register("ScaledPendulum-v0", scaled_pendulum, max_episode_steps=20)


@pytest.mark.parametrize("unit", [1e-7, 1e-4, 1e4, 1e9])
def test_commands_tell_returns_of_every_scale_apart(unit: float, tmp_path: Path) -> None:
    problem = spaql.make_problem("ScaledPendulum-v0", options={"unit": unit}, levels=3)
    agent = spaql.SPAQL(problem, seed=0, rollouts=2, scaling=0.01).learn(iterations=3, progress_bar=False)
    agent.save(tmp_path / "agent.spaql")
    run = str(tmp_path / "agent.spaql")
    shown = CliRunner().invoke(main, ["evaluate", run, "--episodes", "20"], catch_exceptions=False).output
    quantiles = [float(x.replace(",", "")) for x in shown.splitlines()[1].split()[2::2]]
    assert len(quantiles) == 5
    assert all(a < b for a, b in pairwise(quantiles)), shown
    assert all(len(word.strip("-").replace(",", "")) <= 16 for word in shown.splitlines()[1].split()), shown
    shown = CliRunner().invoke(main, ["simplify", run, "--episodes", "5"], catch_exceptions=False).output
    mean, half = shown.splitlines()[-2].replace(",", "").split("%")[-1].split("±")
    assert float(mean) < 0 < float(half.split()[0]), shown


@given(low=st.floats(allow_nan=False), high=st.floats(allow_nan=False), wider=st.booleans())
def test_a_printed_range_is_implied_or_implies(low, high, wider):
    low, high = min(low, high), max(low, high)
    first, last = (float(end) for end in range_text(low, high, wider=wider).split(" to "))
    assert first <= last
    assert first <= low <= high <= last if wider else low <= first <= last <= high
