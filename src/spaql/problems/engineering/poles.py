"""Poles that are swung up and held: on a cart, and on a turning arm (Furuta)."""

import math

import numpy as np
from numpy.typing import NDArray

from spaql.problems.disturbances import Perturbation
from spaql.problems.dynamics import Dynamics
from spaql.registration import HORIZONS

Action = NDArray[np.float64]
Three = tuple[float, float, float]
Four = tuple[float, float, float, float]
Five = tuple[float, float, float, float, float]
INF = math.inf


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


def start_furuta(rng: np.random.Generator) -> Four:
    """Angle and speed of the arm, pendulum angle (0 is upright) and speed: near the pendulum hanging down."""
    arm, angle = rng.uniform(-0.3, 0.3), math.pi + rng.uniform(-0.3, 0.3)
    return arm, 0.0, angle, rng.uniform(-0.3, 0.3)


def step_furuta(state: Four, action: Action, parameters: Four) -> tuple[Four, float, bool]:
    """Apply a voltage to the motor of the arm for 0.02 s, in eight steps: Furuta's rotary pendulum.

    (J + m r² + I sin² a) q'' + m r l cos a a'' + I sin 2a q' a' - m r l sin a a'² = k (u - k q') / R - b q',
    m r l cos a q'' + I a'' - I sin a cos a q'² - m g l sin a = -c a', with I = m L² / 3 and l = L / 2:
    equations as in Cazzolato and Prime (2011), numbers of Quanser's QUBE-Servo 2. The reward is
    (1 + cos a) / 2 - 0.05 q² - 0.0001 u²; an arm that turns by more than 2.5 rad ends the episode.
    """
    arm, v, angle, w = state
    mass, length, inertia, friction = parameters
    u, h, r, about = min(max(action[0], -10.0), 10.0), 0.02 / 8, 0.085, mass * length**2 / 3
    for _ in range(8):
        arm, angle = arm + h / 2 * v, angle + h / 2 * w
        sin, cos, cross = math.sin(angle), math.cos(angle), mass * r * length / 2
        torque = 0.042 * (u - 0.042 * v) / 8.4 - friction * v
        first = torque - 2 * about * sin * cos * v * w + cross * sin * w**2
        second = about * sin * cos * v**2 + mass * 9.81 * length / 2 * sin - 5e-5 * w
        whole, coupled = inertia + mass * r**2 + about * sin**2, cross * cos
        v, w = (
            v + h * (about * first - coupled * second) / (about * whole - coupled**2),
            w + h * (whole * second - coupled * first) / (about * whole - coupled**2),
        )
        arm, angle = arm + h / 2 * v, angle + h / 2 * w
    w = max(-60.0, min(60.0, w))
    reward = (1 + math.cos(angle)) / 2 - 0.05 * arm**2 - 1e-4 * u * u
    return (arm, v, angle, w), reward, abs(arm) > 2.5


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
Dynamics(
    id="spaql/Furuta-v0",
    start=start_furuta,
    step=step_furuta,
    observe=observe_swing_up,
    observations={
        "arm angle [rad]": (-2.5, 2.5),
        "arm speed [rad/s]": (-INF, INF),
        "cos(angle)": (-1, 1),
        "sin(angle)": (-1, 1),
        "pendulum speed [rad/s]": (-60, 60),
    },
    actions={"voltage [V]": (-10, 10)},
    horizon=HORIZONS["spaql/Furuta-v0"],
    parameters={
        "pendulum [kg]": 0.024,
        "pendulum [m]": 0.129,
        "arm [kg m2]": 0.095 * 0.085**2 / 3,
        "friction [N m s]": 1e-3,
    },
    noise={"arm angle [rad]": 0.003, "arm speed [rad/s]": 0.05, "pendulum speed [rad/s]": 0.05},
    reference=(0.0, 0.0, 1.0, 0.0, 0.0),
    angles=("angle",),
    sample_time=0.02,
    perturbation=Perturbation(
        noise={"cos(angle)": 0.003, "sin(angle)": 0.003},
        parameters={
            "pendulum [kg]": (0.022, 0.026),
            "pendulum [m]": (0.122, 0.136),
            "friction [N m s]": (7e-4, 1.3e-3),
        },
    ),
)
