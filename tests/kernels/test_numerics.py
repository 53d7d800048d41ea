"""Sums that do not depend on who adds them up."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaql.kernels.numerics import deviation, mean, means, moments, weighted_sum

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(NUMBERS)
def test_a_mean_is_the_exact_sum_rounded_once(values: list[float]) -> None:
    exact = float(sum(map(Fraction, values)))
    assert mean(np.array(values)) == exact / len(values)
    assert mean(np.array(values[::-1])) == mean(np.array(values))


def test_they_are_what_numpy_means_by_them() -> None:
    rows = np.random.default_rng(0).normal(3.0, 2.0, (50, 4))
    assert np.array(moments(rows)) == pytest.approx(np.array([rows.mean(axis=0), rows.std(axis=0)]))
    assert means(rows) == pytest.approx(rows.mean(axis=1))
    assert deviation(rows[0], ddof=1) == pytest.approx(rows[0].std(ddof=1))
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    assert weighted_sum(rows, weights) == pytest.approx(rows @ weights)
    assert weighted_sum(rows.reshape(5, 10, 4), weights).shape == (5, 10)


@given(NUMBERS)
def test_a_weighted_sum_is_taken_from_the_first_to_the_last(values: list[float]) -> None:
    total = 0.0
    for value in values:
        total += value * 3.0
    assert weighted_sum(np.array(values), np.full(len(values), 3.0)) == total
