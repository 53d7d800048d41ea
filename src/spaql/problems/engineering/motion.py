"""Plants of motion control: a crane, a ball on a beam, a flexible joint, and the pitch of an aircraft."""

import math

import numpy as np
from numpy.typing import NDArray

from spaql.problems.disturbances import Load, Perturbation
from spaql.problems.dynamics import Dynamics
from spaql.registration import HORIZONS

Action = NDArray[np.float64]
Four = tuple[float, float, float, float]
Five = tuple[float, float, float, float, float]
INF = math.inf


def start_crane(rng: np.random.Generator) -> Five:
    """Position and speed of the trolley, swing angle and speed of its load, and a set-point."""
    position, angle = rng.uniform(-1.0, 1.0), rng.uniform(-0.1, 0.1)
    return position, 0.0, angle, 0.0, rng.uniform(-1.0, 1.0)


def step_crane(state: Five, action: Action, parameters: Four) -> tuple[Five, float, bool]:
    """Push the trolley of an overhead crane, from which a load hangs, for 0.05 s, in ten steps.

    (M + m) x'' + m l (a'' cos a - a'² sin a) = u - F tanh(x' / 0.01), l a'' + x'' cos a + g sin a = 0:
    equations and numbers of the rig of Sun, Fang, Zhang and Ma (2012), with its dry friction. The reward is
    -|error of the load| - 0.001 (u / 20)², where the load is at x + l sin a.
    """
    x, v, angle, w, setpoint = state
    trolley, load, rope, friction = parameters
    u, h = min(max(action[0], -20.0), 20.0), 0.05 / 10
    for _ in range(10):
        x, angle = x + h / 2 * v, angle + h / 2 * w
        sin, cos = math.sin(angle), math.cos(angle)
        force = u - friction * math.tanh(v / 0.01) + load * sin * (rope * w**2 + 9.81 * cos)
        push = force / (trolley + load * sin**2)
        v, w = v + h * push, w - h * (push * cos + 9.81 * sin) / rope
        x, angle = x + h / 2 * v, angle + h / 2 * w
    error = x + rope * math.sin(angle) - setpoint
    return (x, v, angle, w, setpoint), -abs(error) - 1e-3 * (u / 20.0) ** 2, False


def start_ball(rng: np.random.Generator) -> Five:
    """Position and speed of the ball, angle and speed of the servo, and a set-point."""
    position = rng.uniform(-0.15, 0.15)
    return position, 0.0, 0.0, 0.0, rng.uniform(-0.1, 0.1)


def step_ball(state: Five, action: Action, parameters: tuple[float, float]) -> tuple[Five, float, bool]:
    """Set the angle q of the servo that tilts the beam for 0.05 s, in ten steps: x'' = K sin q.

    The servo follows with q'' = w² (u - q) - 2 0.69 w q'. Numbers of Apkarian, Lévis and Gurocak, Ball and
    Beam (Quanser, 2011): K of a 64 g ball on a beam of 43 cm with a lever of 2.54 cm, and w of a servo with
    its peak after 0.15 s. A stop at each end of the beam takes the ball's speed. The reward is
    -|error| / 0.1 - 0.01 (u / 0.98)².
    """
    x, v, angle, w, setpoint = state
    gain, rate = parameters
    u, h = min(max(action[0], -0.98), 0.98), 0.05 / 10
    for _ in range(10):
        x, angle = x + h / 2 * v, angle + h / 2 * w
        v += h * gain * math.sin(angle)
        damping = 0.69 * rate * h
        w = ((1.0 - damping) * w + h * rate**2 * (u - angle)) / (1.0 + damping)
        x, angle = x + h / 2 * v, angle + h / 2 * w
    if abs(x) > 0.21:
        x, v = min(max(x, -0.21), 0.21), 0.0
    reward = -abs(x - setpoint) / 0.1 - 0.01 * (u / 0.98) ** 2
    return (x, v, angle, w, setpoint), reward, False


def start_joint(rng: np.random.Generator) -> Five:
    """Angle and speed of the link, angle and speed of the motor, and a set-point for the link."""
    angle = rng.uniform(-1.0, 1.0)
    return angle, 0.0, angle, 0.0, rng.uniform(-1.5, 1.5)


def step_joint(state: Five, action: Action, parameters: Four) -> tuple[Five, float, bool]:
    """Turn a link through a spring by a motor with a voltage for 0.02 s, in four steps.

    q'' = 19.5 (p - q) - 3.33 sin q for the link and p'' = 48.6 (q - p) - 1.25 p' + 21.6 u for the motor: the
    flexible joint of Spong (1987) with the numbers of Raghavan and Hedrick (1994). The reward is
    -|error| - 0.01 (u / 3)².
    """
    angle, v, motor, w, setpoint = state
    spring, gravity, damping, torque = parameters
    u, h = min(max(action[0], -3.0), 3.0), 0.02 / 4
    for _ in range(4):
        angle, motor = angle + h / 2 * v, motor + h / 2 * w
        twist = spring * (motor - angle)
        v += h * (19.5 * twist - gravity * math.sin(angle))
        w += h * (torque * u - 48.6 * twist - damping * w)
        angle, motor = angle + h / 2 * v, motor + h / 2 * w
    reward = -abs(angle - setpoint) - 0.01 * (u / 3.0) ** 2
    return (angle, v, motor, w, setpoint), reward, False


def start_pitch(rng: np.random.Generator) -> Four:
    """Pitch angle, pitch rate and angle of attack, and a set-point for the pitch angle."""
    return rng.uniform(-0.1, 0.1), 0.0, 0.0, rng.uniform(-0.2, 0.2)


def step_pitch(state: Four, action: Action, parameters: Four) -> tuple[Four, float, bool]:
    """Hold the elevator for 0.1 s, in ten steps: the short period of an airliner in cruise.

    a' = -0.313 a + q + 0.232 u, q' = -0.788 a - 0.426 q + 1.151 u, angle' = q, the numbers of the Control
    Tutorials for MATLAB and Simulink (University of Michigan), with the pitch rate q in rad/s. The reward is
    -|error| / 0.2 - 0.01 (u / 0.436)².
    """
    angle, rate, attack, setpoint = state
    lift, stability, damping, elevator = parameters
    u, h = min(max(action[0], -0.436), 0.436), 0.1 / 10
    for _ in range(10):
        angle, attack = angle + h / 2 * rate, attack + h / 2 * (rate - lift * attack + 0.232 * u)
        half = damping * h / 2
        rate = ((1.0 - half) * rate + h * (elevator * u - stability * attack)) / (1.0 + half)
        angle, attack = angle + h / 2 * rate, attack + h / 2 * (rate - lift * attack + 0.232 * u)
    reward = -abs(angle - setpoint) / 0.2 - 0.01 * (u / 0.436) ** 2
    return (angle, rate, attack, setpoint), reward, False


Dynamics(
    id="spaql/Crane-v0",
    start=start_crane,
    step=step_crane,
    observations={
        "position [m]": (-INF, INF),
        "speed [m/s]": (-INF, INF),
        "swing angle [rad]": (-INF, INF),
        "swing speed [rad/s]": (-INF, INF),
        "set-point [m]": (-1, 1),
    },
    actions={"force [N]": (-20, 20)},
    horizon=HORIZONS["spaql/Crane-v0"],
    parameters={"trolley [kg]": 7.0, "load [kg]": 1.025, "rope [m]": 0.75, "friction [N]": 4.4},
    noise={
        "position [m]": 0.002,
        "speed [m/s]": 0.01,
        "swing angle [rad]": 0.005,
        "swing speed [rad/s]": 0.02,
    },
    disturbance={"force [N]": Load(size=2.0, begins=(80, 120))},
    setpoints={"position [m]": "set-point [m]"},
    sample_time=0.05,
    perturbation=Perturbation(
        parameters={"load [kg]": (0.5, 2.0), "rope [m]": (0.65, 0.85), "friction [N]": (3.5, 5.3)}
    ),
)
Dynamics(
    id="spaql/BallAndBeam-v0",
    start=start_ball,
    step=step_ball,
    observations={
        "position [m]": (-0.21, 0.21),
        "speed [m/s]": (-INF, INF),
        "servo angle [rad]": (-INF, INF),
        "servo speed [rad/s]": (-INF, INF),
        "set-point [m]": (-0.1, 0.1),
    },
    actions={"wanted angle [rad]": (-0.98, 0.98)},
    horizon=HORIZONS["spaql/BallAndBeam-v0"],
    parameters={"ball [m/s2]": 0.418, "servo [rad/s]": 28.9},
    noise={
        "position [m]": 0.001,
        "speed [m/s]": 0.005,
        "servo angle [rad]": 0.002,
        "servo speed [rad/s]": 0.02,
    },
    disturbance={"wanted angle [rad]": Load(size=0.05, begins=(80, 120))},
    setpoints={"position [m]": "set-point [m]"},
    sample_time=0.05,
    perturbation=Perturbation(parameters={"servo [rad/s]": (23.0, 35.0)}),
)
Dynamics(
    id="spaql/FlexibleJoint-v0",
    start=start_joint,
    step=step_joint,
    observations={
        "link angle [rad]": (-INF, INF),
        "link speed [rad/s]": (-INF, INF),
        "motor angle [rad]": (-INF, INF),
        "motor speed [rad/s]": (-INF, INF),
        "set-point [rad]": (-1.5, 1.5),
    },
    actions={"voltage [V]": (-3, 3)},
    horizon=HORIZONS["spaql/FlexibleJoint-v0"],
    parameters={
        "spring": 1.0,
        "gravity [1/s2]": 3.33,
        "damping [1/s]": 1.25,
        "torque [rad/s2/V]": 21.6,
    },
    noise={
        "link angle [rad]": 0.002,
        "link speed [rad/s]": 0.02,
        "motor angle [rad]": 0.002,
        "motor speed [rad/s]": 0.02,
    },
    disturbance={"voltage [V]": Load(size=0.3, begins=(100, 150))},
    setpoints={"link angle [rad]": "set-point [rad]"},
    sample_time=0.02,
    perturbation=Perturbation(
        parameters={"spring": (0.8, 1.2), "gravity [1/s2]": (2.7, 4.0), "damping [1/s]": (0.9, 1.6)}
    ),
)
Dynamics(
    id="spaql/Pitch-v0",
    start=start_pitch,
    step=step_pitch,
    observations={
        "pitch angle [rad]": (-INF, INF),
        "pitch rate [rad/s]": (-INF, INF),
        "angle of attack [rad]": (-INF, INF),
        "set-point [rad]": (-0.2, 0.2),
    },
    actions={"elevator [rad]": (-0.436, 0.436)},
    horizon=HORIZONS["spaql/Pitch-v0"],
    parameters={
        "lift [1/s]": 0.313,
        "stability [1/s2]": 0.788,
        "damping [1/s]": 0.426,
        "elevator [1/s2]": 1.151,
    },
    noise={"pitch angle [rad]": 0.001, "pitch rate [rad/s]": 0.002, "angle of attack [rad]": 0.002},
    rate_limit={"elevator [rad]": 0.1},
    disturbance={"elevator [rad]": Load(size=0.02, begins=(80, 120))},
    setpoints={"pitch angle [rad]": "set-point [rad]"},
    sample_time=0.1,
    perturbation=Perturbation(
        parameters={
            "lift [1/s]": (0.27, 0.36),
            "stability [1/s2]": (0.65, 0.93),
            "damping [1/s]": (0.35, 0.5),
        }
    ),
)
