"""The classic control problems as dynamics.

Each keeps Gymnasium's order of operations, single precision included where Gymnasium computes in it, so
that the two agree to the last bit; where Gymnasium squares by a power instead of a product, to rounding.
"""

import math

import gymnasium
import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import callable_by_kernels
from spaql.problems.dynamics import DYNAMICS, Dynamics

Two = tuple[float, float]
Four = tuple[float, float, float, float]
Action = NDArray[np.float64]
INF = math.inf


def start_cartpole(rng: np.random.Generator) -> Four:
    """Cart position and speed, pole angle and speed: all near 0."""
    low, high = -0.05, 0.05
    return rng.uniform(low, high), rng.uniform(low, high), rng.uniform(low, high), rng.uniform(low, high)


def step_cartpole(state: Four, action: int) -> tuple[Four, float, bool]:
    """Push the cart with 10 N to the left or to the right for 0.02 s."""
    x, x_dot, theta, theta_dot = state
    gravity, pole_mass, total_mass, length, tau = 9.8, 0.1, 1.1, 0.5, 0.02
    pole_mass_length = pole_mass * length
    force = 10.0 if action == 1 else -10.0
    cos, sin = math.cos(theta), math.sin(theta)
    push = (force + pole_mass_length * (theta_dot * theta_dot) * sin) / total_mass
    theta_acc = (gravity * sin - cos * push) / (length * (4.0 / 3.0 - pole_mass * (cos * cos) / total_mass))
    x_acc = push - pole_mass_length * theta_acc * cos / total_mass
    x = x + tau * x_dot
    x_dot = x_dot + tau * x_acc
    theta = theta + tau * theta_dot
    theta_dot = theta_dot + tau * theta_acc
    limit = 12 * 2 * math.pi / 360
    return (x, x_dot, theta, theta_dot), 1.0, x < -2.4 or x > 2.4 or theta < -limit or theta > limit


def start_pendulum(rng: np.random.Generator) -> Two:
    """Any angle, and a small speed."""
    return rng.uniform(-math.pi, math.pi), rng.uniform(-1.0, 1.0)


def step_pendulum(state: Two, action: Action) -> tuple[Two, float, bool]:
    """Turn the pendulum with at most 2 Nm for 0.05 s; Gymnasium has the torque in single precision."""
    theta, speed = state
    torque = np.float32(min(max(action[0], -2.0), 2.0))
    upright = (theta + math.pi) % (2 * math.pi) - math.pi
    effort = np.float64(np.float32(0.001) * (torque * torque))
    cost = upright * upright + 0.1 * (speed * speed) + effort
    speed = speed + (3 * 10.0 / (2 * 1.0) * math.sin(theta) + np.float64(np.float32(3.0) * torque)) * 0.05
    speed = min(max(speed, -8.0), 8.0)
    return (theta + speed * 0.05, speed), -cost, False


def observe_pendulum(state: Two) -> tuple[float, float, float]:
    """Cosine and sine of the angle, and the speed."""
    return math.cos(state[0]), math.sin(state[0]), state[1]


def start_mountain_car(rng: np.random.Generator) -> Two:
    """At rest in the valley."""
    return rng.uniform(-0.6, -0.4), 0.0


def step_mountain_car(state: Two, action: int) -> tuple[Two, float, bool]:
    """Accelerate left, not at all, or right."""
    position, speed = state
    speed += (action - 1) * 0.001 + math.cos(3 * position) * (-0.0025)
    speed = min(max(speed, -0.07), 0.07)
    position = min(max(position + speed, -1.2), 0.6)
    if position == -1.2 and speed < 0:
        speed = 0.0
    return (position, speed), -1.0, position >= 0.5 and speed >= 0


def step_mountain_car_continuous(state: Two, action: Action) -> tuple[Two, float, bool]:
    """Accelerate with a force between -1 and 1; Gymnasium keeps this state in single precision."""
    position, speed = np.float32(state[0]), np.float32(state[1])
    force = np.float32(min(max(action[0], -1.0), 1.0))
    slope = np.float32(0.0025 * math.cos(np.float64(np.float32(3.0) * position)))
    speed = speed + (force * np.float32(0.0015) - slope)
    speed = min(max(speed, np.float32(-0.07)), np.float32(0.07))
    position = position + speed
    position = min(max(position, np.float32(-1.2)), np.float32(0.6))
    if position == np.float32(-1.2) and speed < 0:
        speed = np.float32(0.0)
    reached = position >= np.float32(0.45) and speed >= 0
    reward = (100.0 if reached else 0.0) - action[0] * action[0] * 0.1
    return (float(position), float(speed)), float(reward), bool(reached)


def start_acrobot(rng: np.random.Generator) -> Four:
    """Both links hang down, almost at rest; Gymnasium draws this state in single precision."""
    low, high = -0.1, 0.1
    return (
        float(np.float32(rng.uniform(low, high))),
        float(np.float32(rng.uniform(low, high))),
        float(np.float32(rng.uniform(low, high))),
        float(np.float32(rng.uniform(low, high))),
    )


@callable_by_kernels
def acrobot_slope(theta1: float, theta2: float, speed1: float, speed2: float, torque: float) -> Four:
    """Time derivative of Acrobot's state: two links of 1 m and 1 kg, by the equations of Sutton's book."""
    g = 9.8
    d1 = 0.25 + (1.0 + 0.25 + 2 * 0.5 * math.cos(theta2)) + 1.0 + 1.0
    d2 = (0.25 + 0.5 * math.cos(theta2)) + 1.0
    phi2 = 0.5 * g * math.cos(theta1 + theta2 - math.pi / 2.0)
    phi1 = (
        -0.5 * (speed2 * speed2) * math.sin(theta2)
        - 2 * 0.5 * speed2 * speed1 * math.sin(theta2)
        + (0.5 + 1.0) * g * math.cos(theta1 - math.pi / 2)
        + phi2
    )
    acc2 = (torque + d2 / d1 * phi1 - 0.5 * (speed1 * speed1) * math.sin(theta2) - phi2) / (
        0.25 + 1.0 - d2 * d2 / d1
    )
    return speed1, speed2, -(d2 * acc2 + phi1) / d1, acc2


@callable_by_kernels
def wrapped(angle: float) -> float:
    """Bring an angle into [-pi, pi]."""
    while angle > math.pi:
        angle = angle - 2 * math.pi
    while angle < -math.pi:
        angle = angle + 2 * math.pi
    return angle


def step_acrobot(state: Four, action: int) -> tuple[Four, float, bool]:
    """Apply a torque of -1, 0 or 1 Nm between the links for 0.2 s: one step of Runge and Kutta."""
    a, b, c, d = state
    torque = float(action - 1)
    dt, half = 0.2, 0.1
    k1 = acrobot_slope(a, b, c, d, torque)
    k2 = acrobot_slope(a + half * k1[0], b + half * k1[1], c + half * k1[2], d + half * k1[3], torque)
    k3 = acrobot_slope(a + half * k2[0], b + half * k2[1], c + half * k2[2], d + half * k2[3], torque)
    k4 = acrobot_slope(a + dt * k3[0], b + dt * k3[1], c + dt * k3[2], d + dt * k3[3], torque)
    sixth = dt / 6.0
    a = wrapped(a + sixth * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0]))
    b = wrapped(b + sixth * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1]))
    c = min(max(c + sixth * (k1[2] + 2 * k2[2] + 2 * k3[2] + k4[2]), -4 * math.pi), 4 * math.pi)
    d = min(max(d + sixth * (k1[3] + 2 * k2[3] + 2 * k3[3] + k4[3]), -9 * math.pi), 9 * math.pi)
    high = -math.cos(a) - math.cos(b + a) > 1.0
    return (a, b, c, d), 0.0 if high else -1.0, high


def observe_acrobot(state: Four) -> tuple[float, float, float, float, float, float]:
    """Cosine and sine of both angles, and their speeds."""
    a, b, c, d = state
    return math.cos(a), math.sin(a), math.cos(b), math.sin(b), c, d


ANGLE = 24 * math.pi / 180

Dynamics(
    id="spaql/CartPole-v1",
    start=start_cartpole,
    step=step_cartpole,
    observations={
        "cart position [m]": (-4.8, 4.8),
        "cart speed [m/s]": (-INF, INF),
        "pole angle [rad]": (-ANGLE, ANGLE),
        "pole speed [rad/s]": (-INF, INF),
    },
    actions=("push left", "push right"),
    horizon=500,
    reference=(0.0, 0.0, 0.0, 0.0),
)
Dynamics(
    id="spaql/Pendulum-v1",
    start=start_pendulum,
    step=step_pendulum,
    observe=observe_pendulum,
    observations={"cos(angle)": (-1, 1), "sin(angle)": (-1, 1), "speed [rad/s]": (-8, 8)},
    actions={"torque [Nm]": (-2, 2)},
    horizon=200,
    reference=(1.0, 0.0, 0.0),
)
Dynamics(
    id="spaql/MountainCar-v0",
    start=start_mountain_car,
    step=step_mountain_car,
    observations={"position": (-1.2, 0.6), "speed": (-0.07, 0.07)},
    actions=("accelerate left", "coast", "accelerate right"),
    horizon=200,
)
Dynamics(
    id="spaql/MountainCarContinuous-v0",
    start=start_mountain_car,
    step=step_mountain_car_continuous,
    observations={"position": (-1.2, 0.6), "speed": (-0.07, 0.07)},
    actions={"force": (-1, 1)},
    horizon=999,
)
Dynamics(
    id="spaql/Acrobot-v1",
    start=start_acrobot,
    step=step_acrobot,
    observe=observe_acrobot,
    observations={
        "cos(angle 1)": (-1, 1),
        "sin(angle 1)": (-1, 1),
        "cos(angle 2)": (-1, 1),
        "sin(angle 2)": (-1, 1),
        "speed 1 [rad/s]": (-4 * math.pi, 4 * math.pi),
        "speed 2 [rad/s]": (-9 * math.pi, 9 * math.pi),
    },
    actions=("torque -1 Nm", "no torque", "torque 1 Nm"),
    horizon=500,
)


def find_dynamics(env: str) -> Dynamics | None:
    """Return the dynamics of this id, or the compiled version of Gymnasium's environment of this id.

    The result is None if another environment has been registered under the id. The module of `module:id` is
    not imported here: before it is, the result is None.
    """
    name = env.rpartition(":")[2]
    if (own := DYNAMICS.get(name)) is not None:
        return own if own.is_registered else None
    compiled = DYNAMICS.get(f"spaql/{name}")
    return compiled if compiled is not None and compiled.is_registered and _is_gymnasiums(name) else None


def _is_gymnasiums(env: str) -> bool:
    """Return whether an id is still that of Gymnasium's own environment, without options or wrappers."""
    spec = gymnasium.registry.get(env)
    if spec is None or spec.kwargs or spec.additional_wrappers:
        return False
    return str(spec.entry_point).startswith("gymnasium.envs.classic_control.")
