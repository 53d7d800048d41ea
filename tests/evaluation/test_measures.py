"""Closed-loop measures of signals whose answers are known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaql.evaluation import measure
from spaql.evaluation.measures import (
    chattering,
    effort,
    limit_cycle,
    overshoot,
    settling_time,
    steady_state_error,
    switches,
)

DT = 0.001


def test_a_decaying_exponential_settles_when_it_has_fallen_to_the_band() -> None:
    times = np.arange(0, 5, DT)
    for rate, band in ((1.0, 0.05), (3.0, 0.02)):
        expected = math.log(1 / band) / rate
        signal = 2.0 + np.exp(-rate * times)
        assert settling_time(signal, 2.0, band, DT) == pytest.approx(expected, abs=DT)
        assert overshoot(signal, 2.0) == 0.0


@pytest.mark.parametrize("damping", [0.2, 0.5, 0.8])
def test_a_second_order_step_response_overshoots_as_the_book_says(damping: float) -> None:
    times = np.arange(0, 40, DT)
    natural = 3.0
    damped = natural * math.sqrt(1 - damping**2)
    swing = np.cos(damped * times) + damping * natural / damped * np.sin(damped * times)
    response = 1 - np.exp(-damping * natural * times) * swing
    expected = math.exp(-math.pi * damping / math.sqrt(1 - damping**2))
    assert overshoot(response, 1.0) == pytest.approx(expected, rel=1e-4)
    assert overshoot(5 - 2 * response, 3.0) == pytest.approx(2 * expected, rel=1e-4)
    envelope = math.log(1 / (0.02 * math.sqrt(1 - damping**2))) / (damping * natural)
    assert envelope - math.pi / damped <= settling_time(response, 1.0, 0.02, DT) <= envelope + DT


def test_a_sine_never_settles_and_its_amplitude_is_found() -> None:
    times = np.arange(0, 10, DT)
    signal = 0.3 + 0.7 * np.sin(math.tau * times)
    assert settling_time(signal, 0.3, 0.5, DT) == math.inf or abs(signal[-1] - 0.3) <= 0.5
    assert settling_time(signal + 2.0, 0.3, 0.5, DT) == math.inf
    assert settling_time(signal, 0.3, 0.71, DT) == 0.0
    assert limit_cycle(signal, 2000) == pytest.approx(0.7, abs=1e-5)
    assert steady_state_error(signal, 0.0, 2000) == pytest.approx(0.3, abs=1e-9)


def test_what_is_done_is_counted_and_summed() -> None:
    square = np.where(np.arange(1000) // 50 % 2, 2.0, -2.0)
    assert effort(square, 0.01) == pytest.approx(4.0 * 10.0)
    assert switches(square, 0.01) == pytest.approx(19 / 10.0)
    assert chattering(square) == pytest.approx(19 * 4.0 / 999)
    both = np.stack([square, np.zeros(1000)], axis=1)
    assert (effort(both, 0.01), switches(both, 0.01)) == (effort(square, 0.01), switches(square, 0.01))
    assert chattering([3.0]) == 0.0


def test_a_signal_that_begins_at_the_set_point_has_no_far_side() -> None:
    assert overshoot([0.0, -0.4, 0.2], 0.0) == 0.4


@given(
    st.lists(st.floats(-5, 5), min_size=2, max_size=30),
    st.floats(0.01, 3),
    st.floats(-2, 2),
)
def test_settled_is_what_its_definition_says(signal: list[float], band: float, setpoint: float) -> None:
    time = settling_time(signal, setpoint, band)
    inside = [abs(x - setpoint) <= band for x in signal]
    expected = next((float(k) for k in range(len(signal)) if all(inside[k:])), math.inf)
    assert time == expected


def test_all_of_them_together() -> None:
    signal = 0.5 ** np.arange(10)
    actions = np.ones(9)
    result = measure(signal, actions, setpoint=0.0, band=0.1, tail=2, time_step=0.1)
    assert result.settling_time == pytest.approx(0.4)
    assert result.steady_state_error == pytest.approx((0.5**8 + 0.5**9) / 2)
    assert result.limit_cycle == pytest.approx((0.5**8 - 0.5**9) / 2)
    assert result.effort == pytest.approx(0.9)
