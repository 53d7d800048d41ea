"""Sets against points: no state that a program can compute lies outside of the set that was computed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaql.kernels.verify.forms import HIGH, LOW, A, C, R
from spaql.kernels.verify.points import OPERATIONS, run_point
from spaql.kernels.verify.sets import WORK, run_set
from spaql.problems.classic import find_dynamics
from spaql.problems.tapes import trace_step
from verify_programs import plant, program

CLASSIC = ("CartPole-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0")


def evaluated(tape, low, high):
    """Return the rows of a tape on a box, with a symbol for each input."""
    n = tape.inputs
    m = np.zeros((WORK + n + tape.rows, A + n))
    for j in range(n):
        middle = 0.5 * (low[j] + high[j])
        m[WORK + j, [C, LOW, HIGH]] = middle, low[j], high[j]
        m[WORK + j, A + j] = max(high[j] - middle, middle - low[j]) * (1 + 2**-50)
    run_set(tape.arrays, m, WORK + n, WORK, 0)
    return m[WORK + n :], m[WORK : WORK + n]


def outside(rows, inputs, point, values):
    """Return the rows whose set does not hold the value that a point leads to, of those that have one."""
    e = (point - inputs[:, C]) / np.where(inputs[:, A:].diagonal() > 0, inputs[:, A:].diagonal(), 1.0)
    rounding = 1e-15 * np.abs(rows[:, [C, *range(A, rows.shape[1])]]).sum(axis=1)  # of this test
    with np.errstate(invalid="ignore"):
        form = np.abs(values - rows[:, C] - rows[:, A:] @ e) <= rows[:, R] + rounding
        form |= ~np.isfinite(rows[:, R])
        interval = (values >= rows[:, LOW]) & (values <= rows[:, HIGH])
    return np.flatnonzero(np.isfinite(values) & ~(form & interval))


def points(rng, low, high, count):
    """Return points of a box: its ends, and anywhere."""
    drawn = rng.uniform(low, high, (count, len(low)))
    ends = np.where(
        rng.random((count, len(low))) < 0.3, low, np.where(rng.random(drawn.shape) < 0.5, high, drawn)
    )
    return np.concatenate([drawn, ends])


def check(tape, rng, low, high, count=25):
    rows, inputs = evaluated(tape, low, high)
    values = np.empty(tape.rows)
    for point in points(rng, low, high, count):
        run_point(tape.arrays, point, values)
        bad = outside(rows, inputs, point, values)
        names = [OPERATIONS[tape.arrays.code[i]] for i in bad]
        assert not names, (names[0], point, values[bad[0]], rows[bad[0]])


def boxes(rng, n, centre, width):
    """Return a box: some of its sides are points, some small, some wide."""
    middle = rng.uniform(-centre, centre, n)
    half = width * rng.choice([0.0, 1e-9, 1e-4, 1e-2, 0.2, 1.0], n)
    return middle - half, middle + half


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_plants(seed):
    rng = np.random.default_rng(seed)
    tape = trace_step(plant(program(rng, int(rng.integers(2, 10)), 3)))
    for _ in range(4):
        check(tape, rng, *boxes(rng, 3, 2.0, 1.0))


def test_angles_where_they_jump():
    source = "def step(state, action):\n    return (math.atan2(state[1], state[0]), 0.0), 0.0, False\n"
    tape = trace_step(plant(source))
    rng = np.random.default_rng(0)
    for low, high in (([-2, -0.5], [-1, 0.5]), ([-2, -0.5], [1, 0.5]), ([-2, 0.0], [-1, 0.5])):
        check(tape, rng, np.array([*low, 0.0]), np.array([*high, 0.0]))


@pytest.mark.parametrize("env", CLASSIC)
def test_shipped_plants(env):
    tape = trace_step(find_dynamics(env))
    rng = np.random.default_rng(0)
    scale = np.array([0.07, 1.0] if env.startswith("Mountain") else [3.0, 3.0, 0.3, 3.0])
    for _ in range(60):
        low, high = boxes(rng, tape.inputs, 1.0, 0.5)
        scales = np.concatenate([np.resize(scale, tape.inputs - 1), [1.0]])
        check(tape, rng, low * scales, high * scales, 15)


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (0.0, 1.0), (-1.0, 0.0)])
def test_a_quotient_by_a_set_that_holds_0_is_anything(ends):
    source = "def step(state, action):\n    x, y = state\n    return (x / (y - 3.0), y), 0.0, False\n"
    low = np.array([1.0, 3.0 + ends[0], 0.0])
    high = np.array([2.0, 3.0 + ends[1], 0.0])
    rows, _ = evaluated(trace_step(plant(source)), low, high)
    assert np.any((rows[:, LOW] == -np.inf) & (rows[:, HIGH] == np.inf))


def test_the_functions_of_the_machine_are_right_within_4_ulp():
    """Of what `forms` trusts, by ball arithmetic of high precision."""
    flint = pytest.importorskip("flint")
    flint.ctx.prec = 200
    rng = np.random.default_rng(0)
    functions = {
        "sin": (flint.arb.sin, 1e5),
        "cos": (flint.arb.cos, 1e5),
        "tan": (flint.arb.tan, 1.57),
        "exp": (flint.arb.exp, 700.0),
        "log": (flint.arb.log, 1e6),
        "atan": (flint.arb.atan, 1e3),
        "tanh": (flint.arb.tanh, 20.0),
        "sqrt": (flint.arb.sqrt, 1e6),
    }
    from spaql.kernels.verify.points import function

    for name, (exact, largest) in functions.items():
        for x in rng.uniform(-1, 1, 400) * 10 ** rng.uniform(-6, math.log10(largest), 400):
            x = abs(x) if name in ("log", "sqrt") else x
            value = function(OPERATIONS.index(name), x)
            error = abs(flint.arb(value) - exact(flint.arb(x)))
            assert float(error) <= 4 * math.ulp(value), (name, x)


def balls(tape, point, flint):
    """Return the rows of a tape for a point in real arithmetic, None where it has none."""
    arb = flint.arb
    rows = []
    pairs = zip(tape.arrays.code, tape.arrays.first, tape.arrays.second, tape.arrays.value, strict=True)
    for code, first, second, value in pairs:
        name = OPERATIONS[code]
        if name in ("const", "input"):
            rows.append(arb(float(value)) if name == "const" else arb(float(point[first])))
            continue
        x = rows[first] if name != "unknown" else None
        y = rows[second] if second >= 0 and name != "interp" else None
        rows.append(None if x is None or (y is None and second >= 0) else _ball(name, x, y, flint))
    return rows


def _ball(name, x, y, flint):
    plain = ("sin", "cos", "tan", "exp", "log", "atan", "tanh", "sqrt")
    if name in plain:
        found = getattr(x, name)()
        return found if found.is_finite() else None
    operations = {"add": "__add__", "sub": "__sub__", "mul": "__mul__", "div": "__truediv__"}
    if name in operations:
        found = getattr(x, operations[name])(y)
        return found if found.is_finite() else None
    if name in ("min", "max"):
        return (x if x < y else y) if (name == "min") else (x if x > y else y)
    if name == "atan2":
        return flint.arb.atan2(x, y)
    return {"neg": -x, "abs": abs(x), "square": x * x, "single": x}.get(name)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_sets_hold_what_real_arithmetic_returns(seed):
    """An independent oracle: rows that a ball encloses in high precision overlap their set."""
    flint = pytest.importorskip("flint")
    flint.ctx.prec = 160
    rng = np.random.default_rng(seed)
    tape = trace_step(plant(program(rng, int(rng.integers(2, 9)), 2)))
    low, high = boxes(rng, 3, 2.0, 0.5)
    rows, _ = evaluated(tape, low, high)
    for point in points(rng, low, high, 5):
        for row, ball in zip(rows, balls(tape, point, flint), strict=True):
            if ball is not None and math.isfinite(row[LOW]) and math.isfinite(row[HIGH]):
                assert ball.upper() >= flint.arb(row[LOW])
                assert ball.lower() <= flint.arb(row[HIGH])
