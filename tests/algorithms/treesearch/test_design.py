"""What a design is for: an operating point, steps of set-points, and no kick of the derivative."""

import numpy as np
import pytest

import spaql
from spaql.algorithms.treesearch.ladder.block import Block, Usual
from spaql.algorithms.treesearch.ladder.structures import PlantSignals, Structure
from spaql.classical import PIDPolicy, operating_point
from spaql.controllers.controller import POSITION, VELOCITY
from spaql.controllers.law_names import law_names
from spaql.problems.variants import with_setpoint_steps

PID = Structure(POSITION, ("error", "integral", "derivative"))
VELOCITY_PID = Structure(VELOCITY, ("error", "change of the error", "second change"))


def column(action_at_rest: float, output_at_rest: float) -> spaql.Dynamics:
    """Return a distillation column: two lags from the reflux to the purity, about a steady state."""

    def start(rng: np.random.Generator) -> tuple[float, float, float]:
        purity = output_at_rest + rng.uniform(-1.0, 1.0)
        return purity, purity, output_at_rest + rng.uniform(-2.0, 2.0)

    def step(state: tuple[float, ...], action: np.ndarray) -> tuple[tuple[float, ...], float, bool]:
        purity, tray, setpoint = state
        wanted = output_at_rest + 0.1 * (action[0] - action_at_rest)
        tray += 0.1 * (wanted - tray)
        purity += 0.1 * (tray - purity)
        return (purity, tray, setpoint), -abs(setpoint - purity), False

    def observe(state: tuple[float, ...]) -> tuple[float, float]:
        return state[0], state[2]

    return spaql.Dynamics(
        id=f"test/Column{int(action_at_rest)}-v0",
        start=start,
        step=step,
        observe=observe,
        observations={
            "purity [%]": (output_at_rest - 10, output_at_rest + 10),
            "set-point [%]": (output_at_rest - 3, output_at_rest + 3),
        },
        actions={"reflux": (action_at_rest - 50, action_at_rest + 50)},
        horizon=100,
        setpoints={"purity [%]": "set-point [%]"},
        sample_time=1.0,
    )


def test_absolute_units_are_as_good_as_deviations() -> None:
    absolute = column(300.0, 90.0)
    deviations = column(0.0, 0.0)
    found = operating_point(spaql.make_problem(absolute))
    assert found is not None
    assert found.action[0] == pytest.approx(300.0, abs=20.0)
    returns = []
    for plant in (absolute, deviations):
        agent = spaql.TreeSearch(plant, seed=100).learn(total_timesteps=100_000, progress_bar=False)
        returns.append(spaql.evaluate(agent, episodes=100, seed=5).mean)
    assert returns[0] > 1.1 * returns[1]


@pytest.mark.parametrize("structure", [PID, VELOCITY_PID], ids=lambda one: one.name)
def test_a_step_of_the_set_point_does_not_kick_the_derivative(structure: Structure) -> None:
    signals = PlantSignals.of(spaql.make_problem("spaql/Oven-v0"))
    assert signals is not None
    block = Block.of(signals, structure, Usual({"error": 20.0}))
    tree = block.one_law()
    controller = block.controller(tree.with_vector(np.full(int(tree.free.sum()), 0.1)))
    names = [one.name for one in controller.features]
    memory = controller.new_memory(1)
    derivative = "derivative" if structure is PID else "second change"
    for setpoint in (80.0, 80.0, 90.0, 90.0, 90.0):
        sample = controller.sample(np.array([[75.0, setpoint]]), memory)
        assert sample.inputs[0, names.index(derivative)] == 0.0


def test_a_pid_controller_does_not_kick() -> None:
    problem = spaql.make_problem("spaql/Oven-v0")
    one = np.ones((1, 1))
    pid = PIDPolicy(problem, [(0, 1, 0)], kp=0 * one, ki=0 * one, kd=one, filter_time=one, bias=0.3 * one)
    for t, setpoint in enumerate((80.0, 80.0, 90.0, 90.0)):
        assert pid.act(np.array([[75.0, setpoint]]), np.array([t]), None) == pytest.approx(0.3)
    assert pid.act(np.array([[76.0, 90.0]]), np.array([4]), None) < 0.3


def test_laws_are_named_with_the_weight_of_the_set_point() -> None:
    signals = PlantSignals.of(spaql.make_problem("spaql/Oven-v0"))
    assert signals is not None
    structure = PID.with_kinds((*PID.kinds, "set-point weights"))
    block = Block.of(signals, structure, Usual({}, (90.0, 90.0), (0.25,)))
    tree = block.one_law()
    numbers = tree.numbers.copy()
    half = block.units.action_scale[0]
    wanted = {"error": 0.05, "integral": 0.001, "derivative": -0.5, "set-point": -0.02}
    for j, one in enumerate(block.features):
        numbers[0, 0, 1 + j] = wanted[one.name] * block.units.scale[j] / half
    controller = block.controller(tree.with_vector(numbers[tree.free]), digits=4)
    (name,) = law_names(controller)
    assert name.startswith("a PID controller, Kp = 0.05, Ti = 50 s, Td = 10 s, filter 5 s, b = 0.6")
    action = controller.predict(np.array([90.0, 90.0]))[0]
    assert action[0] == pytest.approx(0.25)  # the operating point


def test_set_points_step_in_half_of_the_training_episodes() -> None:
    plant = spaql.problems.find_dynamics("spaql/Oven-v0")
    assert plant is not None
    found, _ = with_setpoint_steps(plant, [1], 150)
    assert found is not None
    states = found.plant.draw(400, np.random.default_rng(0))
    setpoints = []
    for _ in range(150):
        setpoints.append(found.plant.plant.observe(states)[:, 1])
        actions = np.full((400, 1), 0.3)
        found.plant.plant.step_rows(np.ones(400, bool), actions, states)
    changes = np.diff(np.array(setpoints), axis=0) != 0
    assert set(changes.sum(axis=0).tolist()) == {0, 1}
    assert 0.4 < changes.any(axis=0).mean() < 0.6
    when = np.flatnonzero(changes.any(axis=1)) + 1
    assert found.begins[0] <= when.min()
    assert when.max() < found.begins[1]
    agent = spaql.TreeSearch("spaql/Oven-v0", seed=1)
    assert "half of the training episodes" in agent.design_notes[0]
    assert agent.problem.dynamics is plant  # it is evaluated as it was given


def test_set_points_that_are_fixed_or_change_by_themselves_are_left_alone() -> None:
    fixed = spaql.problems.find_dynamics("spaql/QuadrupleTankFixed-v0")
    assert fixed is not None
    assert with_setpoint_steps(fixed, [4, 5], 100)[0] is None

    def step(state: tuple[float, ...], action: np.ndarray) -> tuple[tuple[float, ...], float, bool]:
        level, setpoint, time = state
        setpoint = setpoint if time < 20.0 else 3.0
        return (level + 0.1 * action[0], setpoint, time + 1.0), -abs(level - setpoint), False

    moving = spaql.Dynamics(
        id="test/Moving-v0",
        start=lambda rng: (0.0, rng.uniform(0.0, 1.0), 0.0),
        step=step,
        observe=lambda state: (state[0], state[1]),
        observations={"level": (-9, 9), "set-point": (0, 5)},
        actions={"valve": (-1, 1)},
        horizon=50,
        setpoints={"level": "set-point"},
    )
    found, steps = with_setpoint_steps(moving, [1], 50)
    assert found is None
    assert steps > 20
