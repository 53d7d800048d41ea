"""The engineers' plants against their published equations, integrated by SciPy, and conservation laws."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from spaql.problems import find_dynamics
from spaql.problems.tapes import trace_nominal

Floats = NDArray[np.float64]
G = 9.81


def two_tanks(x: Floats, u: float) -> list[float]:
    """Tanks of 4.445 cm with outlets of 0.47625 cm, by their diameters."""
    area = math.pi * 4.445**2 / 4
    outlet = math.pi * 0.47625**2 / 4
    lower, upper = (outlet * math.sqrt(2 * 981 * level) for level in x[:2])
    return [(upper - lower) / area, (3.3 * u - upper) / area]


def reactor(x: Floats, u: float) -> list[float]:
    """In minutes, with flow, volume, density and heat capacity as they are published."""
    q = 100.0
    v = 100.0
    rho = 1000.0
    cp = 0.239
    heat = 5e4
    ua = 5e4
    k = 7.2e10 * math.exp(-8750 / x[0])
    warmed = q / v * (350 - x[0]) + heat / (rho * cp) * k * x[1] + ua / (v * rho * cp) * (u - x[0])
    return [warmed / 60, (q / v * (1 - x[1]) - k * x[1]) / 60]


def furuta(x: Floats, u: float) -> list[float]:
    """Lagrange's equations M(q) q'' = forces, with a matrix of masses."""
    m = 0.024
    length = 0.129
    r = 0.085
    k = 0.042
    ohm = 8.4
    arm = 0.095 * r**2 / 3
    about = m * length**2 / 3
    cross = m * r * length / 2
    _, v, angle, w = x
    s = math.sin(angle)
    c = math.cos(angle)
    masses = [[arm + m * r**2 + about * s**2, cross * c], [cross * c, about]]
    forces = [
        k * (u - k * v) / ohm - 1e-3 * v - about * math.sin(2 * angle) * v * w + cross * s * w**2,
        about * s * c * v**2 + m * G * length / 2 * s - 5e-5 * w,
    ]
    turned = np.linalg.solve(masses, forces)
    return [v, turned[0], w, turned[1]]


def ball(x: Floats, u: float) -> list[float]:
    """The ball's acceleration from its mass and radius, and a servo of 5 % overshoot after 0.15 s."""
    m = 0.064
    radius = 0.0127
    inertia = 4.129e-6
    gain = m * G * 0.0254 / 0.4255 / (m + inertia / radius**2)
    share = -math.log(0.05)
    damping = share / math.hypot(math.pi, share)
    rate = math.pi / (0.15 * math.sqrt(1 - damping**2))
    return [x[1], gain * math.sin(x[2]), x[3], rate**2 * (u - x[2]) - 2 * damping * rate * x[3]]


def crane(x: Floats, u: float) -> list[float]:
    """Lagrange's equations with a matrix of masses, and dry friction."""
    trolley = 7.0
    load = 1.025
    rope = 0.75
    _, v, angle, w = x
    s = math.sin(angle)
    c = math.cos(angle)
    masses = [[trolley + load, load * rope * c], [load * rope * c, load * rope**2]]
    forces = [u - 4.4 * math.tanh(v / 0.01) + load * rope * w**2 * s, -load * G * rope * s]
    pushed = np.linalg.solve(masses, forces)
    return [v, pushed[0], w, pushed[1]]


def boost(x: Floats, u: float) -> list[float]:
    return [((1 - u) * x[1] - x[0] / 10) / 1e-3, (15 - (1 - u) * x[0]) / 0.5e-3]


def pitch(x: Floats, u: float) -> list[float]:
    """With the pitch rate without a unit, q c / 2 U, as it is published."""
    q = x[1] / 56.7
    return [
        56.7 * q,
        56.7 * (-0.0139 * x[2] - 0.426 * q + 0.0203 * u),
        -0.313 * x[2] + 56.7 * q + 0.232 * u,
    ]


def joint(x: Floats, u: float) -> list[float]:
    link, v, motor, w = x
    turned = 19.5 * (motor - link) - 3.33 * math.sin(link)
    return [v, turned, w, 48.6 * (link - motor) - 1.25 * w + 21.6 * u]


EQUATIONS: dict[str, tuple[Callable[[Floats, float], list[float]], tuple[float, ...], float]] = {
    "TwoTanks": (two_tanks, (8.0, 8.0), 0.005),
    "CSTR": (reactor, (10.0, 0.2), 0.03),
    "Furuta": (furuta, (1.0, 5.0, 3.0, 10.0), 0.03),
    "BallAndBeam": (ball, (0.1, 0.2, 0.5, 5.0), 0.01),
    "Crane": (crane, (1.0, 1.0, 0.5, 1.0), 0.03),
    "BoostConverter": (boost, (10.0, 5.0), 0.002),
    "Pitch": (pitch, (0.2, 0.2, 0.2), 0.002),
    "FlexibleJoint": (joint, (1.0, 3.0, 1.0, 3.0), 0.01),
}
"""The derivative of the state without its set-point, usual deviations from the rest, and the tolerance: the
largest error of a number, as a share of its usual change within a sample."""
RESTS: dict[str, tuple[tuple[float, ...], float]] = {
    "TwoTanks": ((15.0, 15.0), 0.1781 * math.sqrt(2 * 981 * 15) / 3.3),
    "CSTR": ((350.0, 0.5), 300.0),
    "Furuta": ((0.0, 0.0, 0.0, 0.0), 0.0),
    "BallAndBeam": ((0.05, 0.0, 0.0, 0.0), 0.0),
    "Crane": ((0.5, 0.0, 0.0, 0.0), 0.0),
    "BoostConverter": ((30.0, 6.0), 0.5),
    "Pitch": ((0.1, 0.0, 0.0), 0.0),
    "FlexibleJoint": (
        (1.0, 0.0, 1.0 + 3.33 / 19.5 * math.sin(1.0), 0.0),
        48.6 / 21.6 * 3.33 / 19.5 * math.sin(1.0),
    ),
}
"""States at rest, without their set-points, and the action that holds them."""


def stepped(name: str, state: tuple[float, ...], action: float) -> tuple[float, ...]:
    """The next state of the plant without disturbances, and without its set-point."""
    _, step, _ = find_dynamics(f"spaql/{name}-v0").nominal_functions
    n = len(RESTS[name][0])
    goal = () if "Furuta" in name else (0.0,)
    return step((*state, *goal), np.array([action]))[0][:n]


@pytest.mark.parametrize("name", EQUATIONS)
def test_a_step_integrates_the_published_equations(name: str) -> None:
    slope, spread, tolerance = EQUATIONS[name]
    plant = find_dynamics(f"spaql/{name}-v0")
    rng = np.random.default_rng(0)
    rest = np.array(RESTS[name][0])
    ((low, high),) = plant.actions.values()
    before = []
    found = []
    expected = []
    while len(before) < 40:
        x = rest + rng.uniform(-1, 1, len(rest)) * spread
        u = rng.uniform(low, high)
        if name == "BallAndBeam" and abs(x[0]) > 0.15:
            continue  # the stops of the beam are not in the equations
        exact = solve_ivp(lambda _, y, u=u: slope(y, u), (0, plant.sample_time), x, rtol=1e-9, atol=1e-11)
        if name == "BoostConverter" and exact.y[1].min() <= 0:
            continue  # nor is the diode
        before.append(x)
        found.append(stepped(name, tuple(x.tolist()), u))
        expected.append(exact.y[:, -1])
    error = np.array(found) - expected
    change = np.array(expected) - before
    assert (np.abs(error).max(axis=0) / np.sqrt((change**2).mean(axis=0)) < tolerance).all()


@pytest.mark.parametrize("name", RESTS)
def test_a_rest_stays_at_rest(name: str) -> None:
    state, action = RESTS[name]
    assert np.allclose(stepped(name, state, action), state, rtol=1e-3, atol=1e-12)
    slope, spread, _ = EQUATIONS[name]
    assert np.abs(np.array(slope(np.array(state), action)) / spread).max() < 2e-3


def played(name: str, state: tuple[float, ...], action: float, steps: int, **parameters: float) -> Floats:
    """States under a constant action, with other parameters."""
    plant = find_dynamics(f"spaql/{name}-v0")
    numbers = tuple((plant.parameters | parameters).values())
    rows = [state]
    for _ in range(steps):
        rows.append(plant.step(rows[-1], np.array([action]), numbers)[0])
    return np.array(rows)


def test_tanks_lose_no_water() -> None:
    rows = played("TwoTanks", (3.0, 5.0, 10.0), 2.0, 20, **{"lower outlet [cm2]": 0.0})
    assert np.allclose(np.diff(15.518 * rows[:, :2].sum(axis=1)), 2.0 * 3.3)


def test_a_pendulum_keeps_its_energy_without_friction_and_gains_what_the_motor_gives() -> None:
    # The motor's own losses, k (u - k v) / R and 5e-5 w, are no parameters: they are given back.
    m = 0.024
    length = 0.129
    r = 0.085
    about = m * length**2 / 3
    cross = m * r * length / 2
    arm = 0.095 * r**2 / 3
    plant = find_dynamics("spaql/Furuta-v0")
    numbers = (m, length, arm, -(0.042**2) / 8.4)  # no torque without a voltage

    def energy(state: tuple[float, ...]) -> float:
        _, v, angle, w = state
        s = math.sin(angle)
        c = math.cos(angle)
        moving = (arm + m * r**2 + about * s**2) * v**2 / 2 + cross * c * v * w + about * w**2 / 2
        return moving + m * G * length / 2 * c

    state = (0.1, 2.0, 2.5, 3.0)
    lost = 0.0
    first = energy(state)
    for _ in range(40):
        after = plant.step(state, np.array([0.0]), numbers)[0]
        lost += 5e-5 * 0.02 * (state[3] ** 2 + after[3] ** 2) / 2
        state = after
    assert energy(state) + lost == pytest.approx(first, abs=0.01 * 2 * m * G * length / 2)


def test_a_swinging_load_keeps_its_energy_without_friction() -> None:
    rows = played("Crane", (0.0, 0.3, 1.0, 0.0, 0.0), 0.0, 100, **{"friction [N]": 0.0})
    _, v, angle, w, _ = rows.T
    load = 1.025 * ((v + 0.75 * w * np.cos(angle)) ** 2 + (0.75 * w * np.sin(angle)) ** 2) / 2
    energy = 7.0 * v**2 / 2 + load - 1.025 * G * 0.75 * np.cos(angle)
    assert np.ptp(energy) < 0.01 * 1.025 * G * 0.75
    momentum = 8.025 * v + 1.025 * 0.75 * w * np.cos(angle)
    assert np.ptp(momentum) < 0.02 * 8.025 * 0.3


def test_a_joint_keeps_its_energy_without_damping() -> None:
    rows = played("FlexibleJoint", (1.0, 0.0, 0.5, 0.0, 0.0), 0.0, 250, **{"damping [1/s]": 0.0})
    angle, v, motor, w, _ = rows.T
    # inertias, for a spring of 1
    link = 1 / 19.5
    rotor = 1 / 48.6
    energy = link * v**2 / 2 + rotor * w**2 / 2 + (motor - angle) ** 2 / 2 - 3.33 * link * np.cos(angle)
    assert np.ptp(energy) < 0.01 * np.ptp((motor - angle) ** 2 / 2)


def test_a_converter_rests_where_power_is_balanced() -> None:
    voltage, current, _ = played("BoostConverter", (15.0, 1.5, 30.0), 0.5, 2000)[-1]
    assert voltage == pytest.approx(30.0, rel=1e-4)
    assert voltage**2 / 10 == pytest.approx(15 * current, rel=1e-4)


def test_the_reactor_is_unstable_at_its_textbook_rest_and_a_runaway_stays_finite() -> None:
    for nudge, side in ((0.5, 1), (-0.5, -1)):
        temperature = played("CSTR", (350.0 + nudge, 0.5, 350.0), 300.0, 60)[:, 0]
        assert (side * (temperature - 350.0)).max() > 10.0
        assert (side * (temperature - 350.0)).min() > -30.0
    hot = played("CSTR", (430.0, 1.0, 350.0), 320.0, 120)
    assert hot[:, 0].max() < 430.0 + 5e4 / 239.0
    assert hot[:, 1].min() > 0.0


def test_the_ball_stops_at_the_ends_of_the_beam() -> None:
    x, v, angle, _, _ = played("BallAndBeam", (0.0, 0.0, 0.0, 0.0, 0.0), 0.5, 60)[-1]
    assert (x, v) == (0.21, 0.0)
    assert angle == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("name", EQUATIONS)
def test_they_are_traced_as_they_are(name: str) -> None:
    plant = find_dynamics(f"spaql/{name}-v0")
    rng = np.random.default_rng(1)
    start, plain, look = plant.nominal_functions
    step, observe = trace_nominal(plant)
    ((low, high),) = plant.actions.values()
    state = start(rng)
    for _ in range(50):
        action = rng.uniform(low, high, 1)
        after, reward, ended = plain(state, action)
        outputs, flag = step([*state, action[0]])
        assert outputs.tolist() == pytest.approx([*after, reward], rel=1e-12)
        assert flag == ended
        assert observe(state)[0].tolist() == list(look(state))
        state = after
