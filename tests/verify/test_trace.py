import math

import numba
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import spaql
from nightly import thorough
from spaql.problems.classic import find_dynamics
from spaql.problems.tapes import trace_observe, trace_step
from spaql.verify.closed_loop import periods, state_names
from verify_programs import plant, program

CLASSIC = ("CartPole-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1")


def made(step, **named):
    settings = {"observations": {"x": (-9, 9), "y": (-9, 9)}, "actions": {"u": (-1, 1)}, "horizon": 10}
    return spaql.Dynamics(
        id="traced/Plant-v0", start=lambda rng: (0.5, 0.25), step=step, **(settings | named)
    )


def refusal(step) -> str:
    with pytest.raises(spaql.SettingError) as caught:
        trace_step(made(step))
    return str(caught.value)


@pytest.mark.parametrize("env", CLASSIC)
def test_shipped_plants_trace_as_they_are(env):
    dynamics = find_dynamics(env)
    rng = np.random.default_rng(0)
    step = trace_step(dynamics)
    observe = trace_observe(dynamics)
    listed = not isinstance(dynamics.actions, dict)
    width = np.array([3.2, 3.2, 5.0, 5.0] if env == "Acrobot-v1" else [1.3, 0.1, 0.3, 2.0])
    for _ in range(300):
        state = tuple(rng.uniform(-width, width)[: dynamics.state_dims].tolist())
        action = int(rng.integers(len(dynamics.actions))) if listed else rng.uniform(-2, 2, 1)
        after, _, ended = dynamics.step(state, action)
        outputs, flag = step([*state, float(action if listed else action[0])])
        assert outputs.tolist() == list(after)
        assert flag == ended
        assert observe(state)[0].tolist() == list(dynamics.observe(state))


@settings(max_examples=thorough(60), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_tape_is_the_function_bit_for_bit(seed):
    rng = np.random.default_rng(seed)
    source = program(rng, int(rng.integers(2, 9)), 4)
    assume("float32" not in source)  # there, Numba rounds where NumPy does not
    dynamics = plant(source)
    tape = trace_step(dynamics)
    for _ in range(20):
        state = tuple(rng.uniform(-2, 2, 2).tolist())
        action = rng.uniform(-1, 1, 1)
        after, _, ended = dynamics.step(state, action)
        outputs, flag = tape([*state, action[0]])
        assert np.array_equal(outputs, after, equal_nan=True)
        assert flag == ended


def test_parameters_that_are_numbers_are_traced_and_disturbances_refused() -> None:
    def step(state, action, parameters):
        x, y = state
        return (x + parameters[0] * action[0], y + parameters[1]), -x, False

    tape = trace_step(made(step, parameters={"gain": 0.5, "drift": 0.25}))
    fixed = trace_step(made(lambda s, u: ((s[0] + 0.5 * u[0], s[1] + 0.25), -s[0], False)))
    assert repr(tape) == repr(fixed)
    for declared in (
        {"noise": {"x": 0.1}, "delay": 2, "parameters": {"gain": 0.5, "drift": 0.25}},
        {"parameters": {"gain": (0.4, 0.6), "drift": 0.25}},
    ):
        with pytest.raises(spaql.SettingError, match="declares disturbances, such as noise"):
            trace_step(made(step, **declared))


def test_helpers_arrays_tables_and_loops():
    @numba.njit
    def root(x):
        return math.sqrt(x) if x > 0 else 0.0

    table = np.array([0.5, -1.0, 2.0])
    matrix = np.array([[1.0, 0.1], [0.0, 1.0]])

    def step(state, action):
        x = matrix @ np.array(state) + 0.1 * np.array([state[1], action[0]])
        v = x[1]
        for _ in range(5):
            v += 0.01 * (action[0] - 0.1 * v * abs(v))
        friction = 0.05 if v > 0 else -0.05
        level = table[int(min(max(x[0], 0.0), 2.0))]
        return (root(x[0]) + level, np.clip(v - friction, -1, 1) + math.hypot(v, 1.0)), 0.0, False

    dynamics = made(step)
    rng = np.random.default_rng(1)
    tape = trace_step(dynamics)
    for _ in range(200):
        state = tuple(rng.uniform(-3, 3, 2).tolist())
        action = rng.uniform(-1, 1, 1)
        assert np.allclose(tape([*state, action[0]])[0], dynamics.step(state, action)[0], rtol=1e-15, atol=0)


def test_what_is_not_needed_is_left_out():
    def step(state, action):
        reward = math.exp(state[0]) if state[1] > 0 else 0.0
        return (state[0] + 1.0, state[1] * action[0]), reward, False

    tape = trace_step(made(step))
    assert (tape.rows, tape.paths) == (6, 1)
    assert tape.needed([0]) == {0}
    assert tape.needed([1]) == {1, 2}


def test_a_loop_over_a_state_may_return_anything():
    tape = trace_step(find_dynamics("Acrobot-v1"))
    assert tape.paths > 100
    outputs, _ = tape([60.0, 0.0, 0.0, 0.0, 1.0])  # more turns than are followed
    assert math.isnan(outputs[0])


def test_a_delayed_action_waits_in_the_state():
    dynamics = find_dynamics("Pendulum-v1")
    tape = trace_step(dynamics, delayed=True)
    outputs, _ = tape([1.0, 0.5, 1.5, -2.0])
    assert outputs.tolist() == [*dynamics.step((1.0, 0.5), np.array([1.5]))[0], -2.0]
    cart = find_dynamics("CartPole-v1")
    tape = trace_step(cart, delayed=True)
    start = (0.1, 0.2, -0.05, 0.3)
    for waiting, applied in ((0.0, 0), (0.4, 0), (0.6, 1), (1.0, 1), (-3.0, 0), (9.0, 1)):
        outputs, _ = tape([*start, waiting, 1.0])
        assert outputs.tolist() == [*cart.step(start, applied)[0], 1.0]


def test_refusals_name_the_line_and_what_to_write():
    def power(state, action):
        return (state[0], state[1] ** action[0]), 0.0, False

    said = refusal(power)
    assert "return (state[0], state[1] ** action[0])" in said
    assert "constant whole exponent" in said
    assert "test_trace.py, line " in said

    assert "clip it" in refusal(lambda s, a: ((s[0], (1.0, 2.0)[int(s[1])]), 0.0, False))
    assert "math.floor(x + 0.5)" in refusal(lambda s, a: ((s[0], float(round(s[1]))), 0.0, False))
    assert "not known for sets" in refusal(lambda s, a: ((s[0], math.erf(s[1])), 0.0, False))
    assert "write np.float64(x)" in refusal(
        lambda s, a: ((s[0], float(np.sin(np.float32(s[1])))), 0.0, False)
    )
    assert "positive constant" in refusal(lambda s, a: ((s[0], s[0] % (s[1] + 3.0)), 0.0, False))
    assert "must be constant" in refusal(
        lambda s, a: ((s[0], np.interp(s[0], (0.0, 1.0 + abs(s[1])), (0.0, 1.0))), 0.0, False)
    )


def test_too_many_paths_are_refused():
    lines = "".join(
        f"    total += 1.0 if {i}.5 * state[0] > state[1] + {i * i} else -1.0\n" for i in range(14)
    )
    source = f"def step(state, action):\n    total = 0.0\n{lines}    return (total, state[1]), 0.0, False\n"
    with pytest.raises(spaql.SettingError, match="more than 4096 paths"):
        trace_step(plant(source))


def test_angles_have_a_period_where_the_tape_shows_it():
    pendulum = find_dynamics("Pendulum-v1")
    tapes = trace_step(pendulum), trace_observe(pendulum)
    assert periods(*tapes, 2).tolist() == [2 * math.pi, 0.0]
    assert state_names(tapes[1], tuple(pendulum.observations), 2) == ("angle [rad]", "speed [rad/s]")
    for step in (
        lambda s, a: ((s[0] + s[1], s[1] + math.sin(s[0]) + 1e-9 * s[0]), 0.0, False),
        lambda s, a: ((s[0] + s[1], s[1] + math.sin(1.5 * s[0])), 0.0, False),
        lambda s, a: ((1.1 * s[0], s[1] + math.sin(s[0])), 0.0, False),
        lambda s, a: ((s[0] + s[1], s[1] + (math.sin(s[0]) if s[0] > 0 else 0.0)), 0.0, False),
    ):
        plain = made(step, observe=lambda s: (math.sin(s[0]), s[1]))
        assert periods(trace_step(plain), trace_observe(plain), 2)[0] == 0.0
    seen = made(lambda s, a: ((s[0] + s[1], s[1]), 0.0, False))
    assert periods(trace_step(seen), trace_observe(seen), 2)[0] == 0.0
    degrees = made(
        lambda s, a: ((s[0] + s[1], s[1] + math.sin(math.radians(s[0]))), 0.0, False),
        observe=lambda s: (math.cos(math.radians(s[0])), s[1]),
    )
    assert periods(trace_step(degrees), trace_observe(degrees), 2)[0] == 360.0


def test_powers_are_products():
    def step(state, action):
        x, y = state
        return (x**2 + y**3 - x**5, (abs(x) + 0.5) ** -2 + (abs(y) + 0.1) ** 0.5), 0.0, False

    dynamics = made(step)
    rng = np.random.default_rng(2)
    tape = trace_step(dynamics)
    for _ in range(100):
        state = tuple(rng.uniform(-3, 3, 2).tolist())
        assert np.allclose(
            tape([*state, 0.0])[0], dynamics.step(state, np.zeros(1))[0], rtol=1e-14, atol=1e-13
        )


@pytest.mark.parametrize(
    "value",
    [
        lambda x, y: min(x, y, x * y),
        lambda x, y: max(x, y, x * y, 0.1),
        lambda x, y: min((y, x, -x)),
        lambda x, y: math.hypot(x, y),
        lambda x, y: math.copysign(x, -2.0),
        lambda x, y: float(np.sign(x)),
        lambda x, y: float(math.trunc(3.0 * x)),
        lambda x, y: float(math.ceil(3.0 * x)),
        lambda x, y: float(math.floor(3.0 * x)),
        lambda x, y: float(int(3.0 * x)),
        lambda x, y: math.fmod(3.0 * x, 1.5),
        lambda x, y: math.atan2(x, y),
        lambda x, y: float(np.clip(x, -0.5, y)),
        lambda x, y: float(np.interp(x, (-1.0, 0.2, 1.0), (0.2, 0.9, -0.4))),
        lambda x, y: math.degrees(x) + math.radians(y) + math.fabs(x),
    ],
)
def test_a_function_is_traced_as_it_computes(value):
    dynamics = made(lambda state, action: ((value(*state), 0.0), 0.0, False))
    tape = trace_step(dynamics)
    rng = np.random.default_rng(3)
    for _ in range(200):
        state = tuple(rng.uniform(-2, 2, 2).tolist())
        assert tape([*state, 0.0])[0][0] == pytest.approx(value(*state), rel=1e-15, abs=1e-300)
