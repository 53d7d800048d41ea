"""Plants of control engineering: a motor, an oven, four tanks, and a pole on a cart.

Units, ranges, set-points and sample times are declared with each plant; numbers of the equations are its
parameters.
"""

import math

import numpy as np
from numpy.typing import NDArray

from spaql.problems.disturbances import Load, Perturbation
from spaql.problems.dynamics import Dynamics
from spaql.registration import HORIZONS

Action = NDArray[np.float64]
Three = tuple[float, float, float]
Four = tuple[float, float, float, float]
Five = tuple[float, float, float, float, float]
Six = tuple[float, float, float, float, float, float]
INF = math.inf


def start_motor(rng: np.random.Generator) -> Three:
    """Angle of the shaft, its speed, and a set-point for the angle."""
    angle = rng.uniform(-1.0, 1.0)
    return angle, 0.0, rng.uniform(-2.5, 2.5)


def step_motor(state: Three, action: Action, parameters: Three) -> tuple[Three, float, bool]:
    """Apply a voltage for 0.02 s: T w' = K u - w - F tanh(w / 0.05), a first-order motor with dry friction.

    The reward is -error² - 0.001 (u / 12)². Angle and speed are integrated in four steps.
    """
    angle, speed, setpoint = state
    gain, time_constant, friction = parameters
    u = min(max(action[0], -12.0), 12.0)
    for _ in range(4):
        h = 0.02 / 4
        acceleration = (gain * u - speed - friction * math.tanh(speed / 0.05)) / time_constant
        speed += h * acceleration
        angle += h * speed
    error = angle - setpoint
    return (angle, speed, setpoint), -(error * error) - 1e-3 * (u / 12.0) ** 2, False


def start_oven(rng: np.random.Generator) -> Three:
    """Temperature, a set-point for it, and the heat of the step before."""
    temperature = rng.uniform(20.0, 60.0)
    return temperature, rng.uniform(60.0, 120.0), 0.0


def step_oven(state: Three, action: Action, parameters: Three) -> tuple[Three, float, bool]:
    """Heat for 5 s: T Y' = K u - Y - c Y |Y| with Y degrees above a room at 20 °C; losses grow with the heat.

    The reward is -|error| / 20 - 0.02 (change of the heat)². Dead time and the load on the heat, as by a door
    that is opened, are declared with the plant.
    """
    temperature, setpoint, before = state
    gain, time_constant, loss = parameters
    above = temperature - 20.0
    slope = (gain * action[0] - above - loss * above * abs(above)) / time_constant
    temperature = temperature + 5.0 * slope
    change = action[0] - before
    reward = -abs(setpoint - temperature) / 20.0 - 0.02 * change * change
    return (temperature, setpoint, action[0]), reward, False


def observe_oven(state: Three) -> tuple[float, float]:
    """Temperature and set-point."""
    return state[0], state[1]


def start_tanks(rng: np.random.Generator) -> Six:
    """Levels of the lower tanks 1 and 2 and of the upper tanks 3 and 4, and set-points for the lower ones."""
    h1, h2, h3 = rng.uniform(2.0, 18.0), rng.uniform(2.0, 18.0), rng.uniform(0.5, 4.0)
    h4, r1 = rng.uniform(0.5, 4.0), rng.uniform(8.0, 16.0)
    return h1, h2, h3, h4, r1, rng.uniform(8.0, 16.0)


def start_tanks_fixed(rng: np.random.Generator) -> Six:
    """The same with the set-points 12.4 cm and 12.7 cm."""
    h1, h2, h3 = rng.uniform(2.0, 18.0), rng.uniform(2.0, 18.0), rng.uniform(0.5, 4.0)
    return h1, h2, h3, rng.uniform(0.5, 4.0), 12.4, 12.7


def step_tanks(state: Six, action: Action, parameters: tuple[float, float]) -> tuple[Six, float, bool]:
    """Run two pumps for 4 s, in four steps of 1 s: A h' = -outflow + inflow, outflows by Torricelli's law.

    Each pump feeds a lower tank and, diagonally, an upper one, which drains into the other lower tank.
    Outlets, areas and pump gains are those of Johansson (2000); with these valves the zeros lie in the left
    half-plane. The reward is -(|error 1| + |error 2|) / 10.
    """
    h1, h2, h3, h4, r1, r2 = state
    valve1, valve2 = parameters
    v1, v2, g = min(max(action[0], 0.0), 6.0), min(max(action[1], 0.0), 6.0), 2 * 981.0
    for _ in range(4):
        q1 = 0.071 * math.sqrt(g * max(h1, 0.0))
        q2 = 0.057 * math.sqrt(g * max(h2, 0.0))
        q3 = 0.071 * math.sqrt(g * max(h3, 0.0))
        q4 = 0.057 * math.sqrt(g * max(h4, 0.0))
        h1 += 1.0 / 28.0 * (-q1 + q3 + valve1 * 3.33 * v1)
        h2 += 1.0 / 32.0 * (-q2 + q4 + valve2 * 3.35 * v2)
        h3 += 1.0 / 28.0 * (-q3 + (1.0 - valve2) * 3.35 * v2)
        h4 += 1.0 / 32.0 * (-q4 + (1.0 - valve1) * 3.33 * v1)
        h1, h2 = min(max(h1, 0.0), 20.0), min(max(h2, 0.0), 20.0)
        h3, h4 = min(max(h3, 0.0), 20.0), min(max(h4, 0.0), 20.0)
    return (h1, h2, h3, h4, r1, r2), -(abs(h1 - r1) + abs(h2 - r2)) / 10.0, False


def start_swing_up(rng: np.random.Generator) -> Four:
    """Cart position and speed, pole angle (0 is upright) and speed: near the pole hanging down."""
    x, angle = rng.uniform(-0.5, 0.5), math.pi + rng.uniform(-0.3, 0.3)
    return x, 0.0, angle, rng.uniform(-0.3, 0.3)


def step_swing_up(state: Four, action: Action, parameters: Three) -> tuple[Four, float, bool]:
    """Push the cart for 0.04 s, in four steps: equations of Barto, Sutton and Anderson (1983), no friction.

    The reward is (1 + cos angle) / 2 - 0.05 x² - 0.0001 u²; a cart that leaves its 6 m of track ends the
    episode.
    """
    x, v, angle, w = state
    cart, pole, length = parameters
    u = min(max(action[0], -12.0), 12.0)
    for _ in range(4):
        h, sin, cos = 0.04 / 4, math.sin(angle), math.cos(angle)
        push = (u + pole * length * w**2 * sin) / (cart + pole)
        turning = (9.81 * sin - cos * push) / (length * (4 / 3 - pole * cos * cos / (cart + pole)))
        v += h * (push - pole * length * turning * cos / (cart + pole))
        x += h * v
        w += h * turning
        angle += h * w
    w = max(-25.0, min(25.0, w))
    reward = (1 + math.cos(angle)) / 2 - 0.05 * x**2 - 1e-4 * u * u
    return (x, v, angle, w), reward, abs(x) > 3.0


def observe_swing_up(state: Four) -> Five:
    """Position and speed of the cart, cosine and sine of the pole's angle, and its speed."""
    return state[0], state[1], math.cos(state[2]), math.sin(state[2]), state[3]


Dynamics(
    id="spaql/DCMotor-v0",
    start=start_motor,
    step=step_motor,
    observations={"position [rad]": (-INF, INF), "speed [rad/s]": (-36, 36), "set-point [rad]": (-2.5, 2.5)},
    actions={"voltage [V]": (-12, 12)},
    horizon=HORIZONS["spaql/DCMotor-v0"],
    parameters={"gain [rad/s/V]": 3.0, "time constant [s]": 0.15, "friction [rad/s]": 0.6},
    noise={"position [rad]": 0.01 * math.pi, "speed [rad/s]": 0.036},
    setpoints={"position [rad]": "set-point [rad]"},
    sample_time=0.02,
)
Dynamics(
    id="spaql/Oven-v0",
    start=start_oven,
    step=step_oven,
    observe=observe_oven,
    observations={"temperature [°C]": (-40, 300), "set-point [°C]": (60, 120)},
    actions={"heat": (0, 1)},
    horizon=HORIZONS["spaql/Oven-v0"],
    parameters={"gain [K]": 240.0, "time constant [s]": 120.0, "loss [1/K]": 0.0006},
    delay=3,
    disturbance={"heat": Load(size=0.25, begins=(40, 80))},
    setpoints={"temperature [°C]": "set-point [°C]"},
    sample_time=5.0,
    perturbation=Perturbation(noise={"temperature [°C]": 0.3}),
)
_LEVELS = {f"level {j} [cm]": (0, 20) for j in (1, 2, 3, 4)}
for _id, _start in (
    ("spaql/QuadrupleTank-v0", start_tanks),
    ("spaql/QuadrupleTankFixed-v0", start_tanks_fixed),
):
    Dynamics(
        id=_id,
        start=_start,
        step=step_tanks,
        observations={**_LEVELS, "set-point 1 [cm]": (0, 20), "set-point 2 [cm]": (0, 20)},
        actions={"pump 1 [V]": (0, 6), "pump 2 [V]": (0, 6)},
        horizon=HORIZONS[_id],
        parameters={"valve 1": 0.7, "valve 2": 0.6},
        setpoints={"level 1 [cm]": "set-point 1 [cm]", "level 2 [cm]": "set-point 2 [cm]"},
        sample_time=4.0,
        perturbation=Perturbation(noise=dict.fromkeys(_LEVELS, 0.05)),
    )
Dynamics(
    id="spaql/CartPoleSwingUp-v0",
    start=start_swing_up,
    step=step_swing_up,
    observe=observe_swing_up,
    observations={
        "position [m]": (-3, 3),
        "speed [m/s]": (-INF, INF),
        "cos(angle)": (-1, 1),
        "sin(angle)": (-1, 1),
        "pole speed [rad/s]": (-25, 25),
    },
    actions={"force [N]": (-12, 12)},
    horizon=HORIZONS["spaql/CartPoleSwingUp-v0"],
    parameters={"cart [kg]": 1.0, "pole [kg]": 0.2, "half length [m]": 0.5},
    reference=(0.0, 0.0, 1.0, 0.0, 0.0),
    angles=("angle",),
    sample_time=0.04,
    perturbation=Perturbation(
        noise={
            "position [m]": 0.01,
            "speed [m/s]": 0.05,
            "cos(angle)": 0.01,
            "sin(angle)": 0.01,
            "pole speed [rad/s]": 0.05,
        }
    ),
)
