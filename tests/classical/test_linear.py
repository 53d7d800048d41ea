"""Linear models of plants, and gains of linear regulators."""

import math

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

import spaql
from spaql.classical import linearise, riccati_gains


def test_the_riccati_equation_is_solved_as_scipy_does() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(6, 4, 4))
    b = rng.normal(size=(6, 4, 2))
    q = np.diag([1.0, 0.1, 2.0, 1e-9])
    r = np.diag([0.5, 3.0])
    gains = riccati_gains(a, b, np.broadcast_to(q, a.shape), np.broadcast_to(r, (6, 2, 2)))
    for i in range(6):
        x = solve_discrete_are(a[i], b[i], q, r)
        expected = np.linalg.solve(r + b[i].T @ x @ b[i], b[i].T @ x @ a[i])
        assert np.allclose(gains[i], expected, rtol=1e-6, atol=1e-8)
        assert np.abs(np.linalg.eigvals(a[i] - b[i] @ gains[i])).max() < 1


def test_the_oven_is_of_first_order_with_dead_time() -> None:
    oven = linearise(spaql.make_problem("spaql/Oven-v0"))
    above = oven.rest[0] - 20.0
    assert oven.a.shape == (1, 1)
    assert oven.a[0, 0] == pytest.approx(1.0 - 5.0 / 120.0 * (1.0 + 2 * 0.0006 * above), rel=1e-6)
    assert oven.b[0, 0] == pytest.approx(5.0 / 120.0 * 240.0)
    assert oven.rest_action[0] == pytest.approx((above + 0.0006 * above**2) / 240.0, rel=1e-5)
    assert oven.delay == 3
    assert oven.rest[0] == pytest.approx(oven.rest_goals[0])
    assert oven.rest_slope[0, 0] == pytest.approx(1.0)


def test_the_angle_of_an_upright_pole_is_read_from_its_cosine_and_sine() -> None:
    pole = linearise(spaql.make_problem("spaql/CartPoleSwingUp-v0", measured=False))
    assert pole.numbers == ((0,), (1,), (2, 3), (4,))
    assert np.allclose(pole.rest, 0.0, atol=1e-5)
    assert np.abs(np.linalg.eigvals(pole.a)).max() > 1.1  # it falls
    assert pole.read(np.array([[0.0, 0.0, 0.0, 1.0, 0.0]]))[0, 2] == pytest.approx(math.pi / 2)


def plant(**changes) -> spaql.Problem:
    whole = {
        "id": "test/Linear-v0",
        "start": lambda rng: (rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0)),
        "step": lambda s, a: ((0.5 * s[0] + 0.1 * s[1], 0.8 * s[1] + a[0], s[2]), 0.0, False),
        "observe": lambda state: (state[0], state[2]),
        "observations": {"x": (-9, 9), "goal": (-1, 1)},
        "actions": {"u": (-1, 1)},
        "horizon": 30,
        "setpoints": {"x": "goal"},
    }
    return spaql.make_problem(spaql.Dynamics(**(whole | changes)))


def test_what_cannot_be_linearised_is_said() -> None:
    with pytest.raises(spaql.SettingError, match=r"2 numbers of its state matter.* 1 observed"):
        linearise(plant())
    with pytest.raises(spaql.SettingError, match="no steady state to linearise about"):
        linearise(plant(setpoints={}))
    with pytest.raises(spaql.SettingError, match="actions with a range"):
        linearise(spaql.make_problem("CartPole-v1"))
    with pytest.raises(spaql.SettingError, match="No steady state of test/Linear-v0"):
        linearise(plant(step=lambda s, a: ((s[0] + 1.0, s[1] + a[0], s[2]), 0.0, False)))


OBSERVED = {"x": (-9, 9), "y": (-9, 9), "goal": (-1, 1)}


def clocked(observe, more, **changes) -> spaql.Problem:
    """A plant of second order with a clock and a counter of what the action did; nothing depends on these."""
    return plant(
        start=lambda rng: (rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0), 0.0, 0.0),
        step=lambda s, a: (
            (0.5 * s[0] + 0.1 * s[1], 0.8 * s[1] + a[0], s[2], s[3] + 0.1, s[4] + a[0] ** 2),
            0.0,
            False,
        ),
        observe=observe,
        observations=OBSERVED | more,
        **changes,
    )


def test_a_clock_and_a_counter_need_not_be_at_rest() -> None:
    plain = linearise(plant(observe=lambda s: (s[0], s[1], s[2]), observations=OBSERVED))
    unobserved = linearise(clocked(lambda s: (s[0], s[1], s[2]), {}))
    observed = linearise(clocked(lambda s: s, {"clock": (0, 9), "used": (0, 99)}))
    for found in (unobserved, observed):
        assert found.numbers == plain.numbers == ((0,), (1,))
        np.testing.assert_allclose(found.a, plain.a, atol=1e-9)
        np.testing.assert_allclose(found.b, plain.b, atol=1e-9)
    assert plain.steps < unobserved.steps < observed.steps
