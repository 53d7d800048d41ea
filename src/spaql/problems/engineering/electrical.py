"""Electrical plants: a DC motor that turns to a position, and a boost converter."""

import math

import numpy as np
from numpy.typing import NDArray

from spaql.problems.disturbances import Load, Perturbation
from spaql.problems.dynamics import Dynamics
from spaql.registration import HORIZONS

Action = NDArray[np.float64]
Three = tuple[float, float, float]
Four = tuple[float, float, float, float]
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


def start_boost(rng: np.random.Generator) -> Three:
    """Voltage of the output and current of the coil at rest with some duty cycle, and a set-point."""
    off = 1.0 - rng.uniform(0.2, 0.6)
    return 15.0 / off, 1.5 / off**2, rng.uniform(20.0, 40.0)


def step_boost(state: Three, action: Action, parameters: Four) -> tuple[Three, float, bool]:
    """Switch with a duty cycle d for 0.2 ms: L i' = E - (1 - d) v, C v' = (1 - d) i - v / R, averaged.

    The numbers are those of Bacha, Munteanu and Bratcu, Power Electronic Converters Modeling and Control
    (2014), 8.6. From duty cycle to voltage it has a zero in the right half-plane. The diode blocks negative
    currents. The reward is -|error| / 10.
    """
    voltage, current, setpoint = state
    source, resistance, coil, capacitor = parameters
    off, h = 1.0 - min(max(action[0], 0.1), 0.9), 2e-4 / 8
    for _ in range(8):
        voltage += h / 2 * (off * current - voltage / resistance) / capacitor
        current = max(current + h * (source - off * voltage) / coil, 0.0)
        voltage += h / 2 * (off * current - voltage / resistance) / capacitor
    return (voltage, current, setpoint), -abs(voltage - setpoint) / 10.0, False


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
    id="spaql/BoostConverter-v0",
    start=start_boost,
    step=step_boost,
    observations={"voltage [V]": (0, 400), "current [A]": (0, 400), "set-point [V]": (20, 40)},
    actions={"duty cycle": (0.1, 0.9)},
    horizon=HORIZONS["spaql/BoostConverter-v0"],
    parameters={"source [V]": 15.0, "load [Ohm]": 10.0, "coil [H]": 5e-4, "capacitor [F]": 1e-3},
    noise={"voltage [V]": 0.05, "current [A]": 0.05},
    disturbance={"duty cycle": Load(size=0.03, begins=(80, 120))},
    setpoints={"voltage [V]": "set-point [V]"},
    sample_time=2e-4,
    perturbation=Perturbation(
        gain=0.05,
        parameters={"source [V]": (14.0, 16.0), "load [Ohm]": (8.0, 14.0), "coil [H]": (4e-4, 6e-4)},
    ),
)
