"""Plants of process engineering: an oven, levels of tanks, and a stirred tank reactor."""

import math

import numpy as np
from numpy.typing import NDArray

from spaql.problems.disturbances import Load, Perturbation
from spaql.problems.dynamics import Dynamics
from spaql.registration import HORIZONS

Action = NDArray[np.float64]
Three = tuple[float, float, float]
Six = tuple[float, float, float, float, float, float]


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


def start_two_tanks(rng: np.random.Generator) -> Three:
    """Levels of the lower and of the upper tank, and a set-point for the lower one."""
    lower, upper = rng.uniform(2.0, 20.0), rng.uniform(2.0, 20.0)
    return lower, upper, rng.uniform(5.0, 20.0)


def step_two_tanks(state: Three, action: Action, parameters: Three) -> tuple[Three, float, bool]:
    """Pump for 1 s into the upper tank, which drains into the lower one: A h' = inflow - a sqrt(2 g h).

    The plant of `spaql new`, with the numbers of Apkarian, Coupled Tanks (Quanser, 2013): tanks of 4.445 cm
    diameter and 30 cm height with outlets of 4.76 mm. The reward is -|error| / 10.
    """
    lower, upper, setpoint = state
    pump, upper_outlet, lower_outlet = parameters
    inflow, g, area, h = pump * min(max(action[0], 0.0), 22.0), 2 * 981.0, 15.518, 1.0 / 2
    for _ in range(2):  # with the flows in the middle of the step
        between = upper_outlet * math.sqrt(g * upper)
        outflow = lower_outlet * math.sqrt(g * lower)
        middle = upper + h / 2 * (inflow - between) / area, lower + h / 2 * (between - outflow) / area
        between = upper_outlet * math.sqrt(g * max(middle[0], 0.0))
        outflow = lower_outlet * math.sqrt(g * max(middle[1], 0.0))
        upper = min(max(upper + h * (inflow - between) / area, 0.0), 30.0)
        lower = min(max(lower + h * (between - outflow) / area, 0.0), 30.0)
    return (lower, upper, setpoint), -abs(lower - setpoint) / 10.0, False


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


def start_reactor(rng: np.random.Generator) -> Three:
    """Temperature, the concentration at rest there, and a set-point for the temperature."""
    temperature = rng.uniform(340.0, 360.0)
    concentration = 1.0 / (1.0 + 7.2e10 * math.exp(-8750.0 / temperature))
    return temperature, concentration, rng.uniform(340.0, 360.0)


def step_reactor(state: Three, action: Action, parameters: Three) -> tuple[Three, float, bool]:
    """Cool a stirred tank reactor, in which A becomes B and heats it, with a jacket at Tc for 0.05 min.

    c' = q / V (cf - c) - k c, T' = q / V (Tf - T) + H / (rho cp) k c + UA / (V rho cp) (Tc - T) and
    k = k0 exp(-E / R T), with the numbers of Seborg, Edgar and Mellichamp, Process Dynamics and Control:
    q = V, H / (rho cp) = 5e4 / 239 K L / mol. Rests from 336 K to 379 K are unstable. The reward is
    -|error| / 10.
    """
    temperature, concentration, setpoint = state
    transfer, feed_temperature, feed = parameters
    jacket, h, heat = min(max(action[0], 280.0), 320.0), 0.05 / 5, 5e4 / 239.0
    for _ in range(5):
        cooled = feed_temperature - temperature + transfer / 23900.0 * (jacket - temperature)
        heated = heat * 7.2e10 * math.exp(-8750.0 / temperature) * concentration
        middle = temperature + h / 2 * (cooled + heated)
        # At the temperature in the middle, the concentration is exact: a runaway burns it within a step.
        rate = 7.2e10 * math.exp(-8750.0 / middle)
        rest, left = feed / (1.0 + rate), math.exp(-h * (1.0 + rate))
        burnt = rate * (h * rest + (concentration - rest) * (1.0 - left) / (1.0 + rate))
        concentration = rest + (concentration - rest) * left
        cooled = feed_temperature - middle + transfer / 23900.0 * (jacket - middle)
        temperature += h * cooled + heat * burnt
    return (temperature, concentration, setpoint), -abs(temperature - setpoint) / 10.0, False


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
Dynamics(
    id="spaql/TwoTanks-v0",
    start=start_two_tanks,
    step=step_two_tanks,
    observations={"lower level [cm]": (0, 30), "upper level [cm]": (0, 30), "set-point [cm]": (5, 20)},
    actions={"pump [V]": (0, 22)},
    horizon=HORIZONS["spaql/TwoTanks-v0"],
    parameters={"pump [cm3/s/V]": 3.3, "upper outlet [cm2]": 0.1781, "lower outlet [cm2]": 0.1781},
    noise={"lower level [cm]": 0.05, "upper level [cm]": 0.05},
    disturbance={"pump [V]": Load(size=1.5, begins=(60, 90))},
    setpoints={"lower level [cm]": "set-point [cm]"},
    sample_time=1.0,
    perturbation=Perturbation(
        parameters={"upper outlet [cm2]": (0.16, 0.196), "lower outlet [cm2]": (0.16, 0.196)}
    ),
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
    id="spaql/CSTR-v0",
    start=start_reactor,
    step=step_reactor,
    observations={
        "temperature [K]": (250, 600),
        "concentration [mol/L]": (0, 1.2),
        "set-point [K]": (340, 360),
    },
    actions={"jacket [K]": (280, 320)},
    horizon=HORIZONS["spaql/CSTR-v0"],
    parameters={"UA [J/min/K]": 5e4, "feed temperature [K]": 350.0, "feed [mol/L]": 1.0},
    noise={"temperature [K]": 0.2, "concentration [mol/L]": 0.005},
    disturbance={"jacket [K]": Load(size=3.0, begins=(40, 80))},
    setpoints={"temperature [K]": "set-point [K]"},
    sample_time=3.0,
    perturbation=Perturbation(  # a gain of an absolute temperature means nothing
        gain=0.0,
        parameters={
            "UA [J/min/K]": (4.5e4, 5.5e4),
            "feed temperature [K]": (348.0, 352.0),
            "feed [mol/L]": (0.95, 1.05),
        },
    ),
)
