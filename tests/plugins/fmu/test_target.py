"""Controllers as FMUs: compared in FMPy, and in a closed loop with a plant that is an FMU."""

import gc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box

import spaql
from feature_controllers import random_controller, two_leaf_pi
from random_trees import random_tree
from spaql import SettingError
from spaql.controllers import Controller, Error, Integral, Laws
from spaql.export import EquivalenceError
from spaql.plugins.fmu import target as fmu_target
from spaql.plugins.fmu.simulation import FmuSimulation
from spaql.simulate import Purpose, generator

pytest.importorskip("fmpy", reason="needs fmpy")

import fmpy
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from fmpy.model_description import read_model_description

from fmus import COST, TANK, tank_fmu

OPTIONS = {**TANK, "outputs": ["level"], "parameters": {"leak": 0.0}, "cost": COST}


def opened(file: Path, folder: Path) -> tuple[Any, dict[str, int]]:
    """Return an instance of an FMU in FMPy, ready to step, and its value references by name."""
    model = read_model_description(str(file))
    kind = FMU2Slave if model.fmiVersion == "2.0" else FMU3Slave
    unzipped = fmpy.extract(str(file), folder)
    fmu = kind(
        guid=model.guid, unzipDirectory=str(unzipped), modelIdentifier=model.coSimulation.modelIdentifier
    )
    fmu.instantiate()
    return fmu, {one.name: one.valueReference for one in model.modelVariables}


def begun(fmu: Any) -> None:
    if isinstance(fmu, FMU2Slave):
        fmu.setupExperiment()
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()


@pytest.mark.parametrize("kind", ["constants", "laws", "choices", "switching laws"])
def test_trees_of_every_kind_are_written_and_compared(kind: str, tmp_path: Path) -> None:
    tree = random_tree(np.random.default_rng(1), 3, 8, kind, sums=1)
    found = spaql.export.fmu(tree, tmp_path / "controller.fmu", points=300)
    assert found.points["random points"] == 300
    assert found.tool.startswith("FMPy ")
    with zipfile.ZipFile(tmp_path / "controller.fmu") as archive:
        names = archive.namelist()
    assert names[0] == "modelDescription.xml"
    assert {"sources/controller.c", "sources/controller.h", "sources/fmi2.c"} < {*names}
    assert names[-1].startswith(f"binaries/{fmpy.platform}/controller.")


@pytest.mark.parametrize("seed", [0, 1])
def test_controllers_with_memory_are_compared_with_their_state(seed: int, tmp_path: Path) -> None:
    controller = random_controller(seed) if seed else two_leaf_pi()
    found = spaql.export.fmu(controller, tmp_path / "controller.fmu", points=2000)
    assert found.points["resets"] > 5


def test_the_same_controller_has_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        spaql.export.fmu(two_leaf_pi(), tmp_path / name / "controller.fmu", points=10)
    one, two = ((tmp_path / name / "controller.fmu").read_bytes() for name in ("one", "two"))
    assert one == two


def test_an_fmu_that_differs_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = random_tree(np.random.default_rng(1), 3, 8, "constants")
    text = fmu_target.wrapper
    right = "value[i] = self->action["
    wrong = "value[i] = 1.0 + self->action["
    monkeypatch.setattr(fmu_target, "wrapper", lambda *given: text(*given).replace(right, wrong))
    with pytest.raises(EquivalenceError, match="The exported FMU differs from the policy"):
        spaql.export.fmu(tree, tmp_path / "controller.fmu", points=10)
    assert not list(tmp_path.iterdir())


def test_numbers_are_doubles(tmp_path: Path) -> None:
    tree = random_tree(np.random.default_rng(1), 3, 8, "constants")
    with pytest.raises(SettingError, match="must be 'double' for FMU"):
        spaql.export.write(fmu_target.Fmu(), tree, tmp_path / "controller.fmu", number="float")


def test_names_units_and_ranges_are_declared(tmp_path: Path) -> None:
    spaql.export.fmu(_pi(), tmp_path / "controller.fmu", points=10)
    model = read_model_description(str(tmp_path / "controller.fmu"), validate_model_structure=True)
    found = {one.name: one for one in model.modelVariables}
    assert [name for name in found if not name.startswith("state.")] == ["level", "level set-point", "valve"]
    assert (found["level"].causality, found["level"].unit) == ("input", "m")
    assert (found["valve"].causality, found["valve"].min, found["valve"].max) == ("output", "0.0", "1.0")
    assert any(name.startswith("state.") for name in found)
    assert float(model.defaultExperiment.stepSize) == 1.0


def test_the_action_is_held_between_samples_and_long_steps_are_refused(tmp_path: Path) -> None:
    spaql.export.fmu(_pi(), tmp_path / "controller.fmu", points=10)
    fmu, names = opened(tmp_path / "controller.fmu", tmp_path / "open")
    begun(fmu)
    seen = []
    for k in range(12):
        fmu.setReal([names["level"], names["level set-point"]], [0.4 + 0.01 * k, 0.5])
        fmu.doStep(k * 0.25, 0.25)
        seen += fmu.getReal([names["valve"]])
    assert seen[0] == seen[1] == seen[2] == seen[3]
    assert seen[3] != seen[4] == seen[5] == seen[6] == seen[7] != seen[8]
    saved = fmu.getFMUState()
    before = fmu.getReal(list(names.values()))
    fmu.doStep(3.0, 1.0)
    assert fmu.getReal(list(names.values())) != before
    fmu.setFMUState(saved)
    assert fmu.getReal(list(names.values())) == before
    fmu.reset()
    begun(fmu)
    assert fmu.getReal([names["valve"]]) == [0.0]
    with pytest.raises(fmpy.fmi1.FMICallException):
        fmu.doStep(0.0, 2.0)


def test_messages_go_to_the_simulation_whose_fmu_sent_them(tmp_path: Path) -> None:
    spaql.export.fmu(_pi(), tmp_path / "controller.fmu", points=10)
    one, other = (FmuSimulation(str(tmp_path / "controller.fmu"), 2.0) for _ in range(2))
    for simulation in (one, other):
        simulation.begin({})
    with pytest.raises(spaql.BadEnvironmentError, match="a step of 2 s is longer than the sample time"):
        one.step()
    assert not other._messages


def test_a_freed_simulation_leaves_no_logger_behind(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spaql.export.fmu(_pi(), tmp_path / "controller.fmu", points=10)
    simulation = FmuSimulation(str(tmp_path / "controller.fmu"), 1.0)
    simulation.begin({})
    del simulation
    gc.collect()
    fmu, _ = opened(tmp_path / "controller.fmu", tmp_path / "open")
    begun(fmu)
    with pytest.raises(fmpy.fmi1.FMICallException):
        fmu.doStep(0.0, 2.0)
    assert "a step of 2 s is longer" in capfd.readouterr().out


SEEN = ("level [m]", "level set-point [m]")
DONE = ("valve",)
SPACES = (
    Box(np.array([0.0, 0.5]), np.array([2.0, 1.5]), dtype=np.float64),
    Box(0.0, 1.0, (1,), dtype=np.float64),
)


def _tree() -> Controller:
    """Return a proportional controller with two gains."""
    return Controller(
        observation_space=SPACES[0],
        action_space=SPACES[1],
        feature=np.array([0, -1, -1]),
        threshold=np.array([0.9, 0.0, 0.0]),
        left=np.array([1, -1, -1]),
        right=np.array([2, -1, -1]),
        leaf=np.array([-1, 0, 1]),
        laws=Laws(np.array([[[-2.1, 2.1]], [[-3.3, 3.3]]]), np.array([[0.31], [0.37]])),
        observations=SEEN,
        actions=DONE,
    )


def _pi() -> Controller:
    """Return a PI controller of the level."""
    features = (Error("error", "level set-point", "level"), Integral("integral", "error", limit=20.0))
    return Controller(
        features=features,
        laws=Laws(np.array([[[2.1, 0.13]]]), np.array([[0.05]])),
        observation_space=SPACES[0],
        action_space=SPACES[1],
        sample_time=1.0,
        observations=SEEN,
        actions=DONE,
    )


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("remembers", [False, True])
def test_the_closed_loop_of_two_fmus_is_that_of_an_evaluation(
    version: int, remembers: bool, tmp_path: Path
) -> None:
    plant_file = tank_fmu(tmp_path, version)
    policy = _pi() if remembers else _tree()
    spaql.export.fmu(policy, tmp_path / "controller.fmu", points=10)
    problem = spaql.make_problem(str(plant_file), options=OPTIONS)
    wanted = spaql.evaluate(policy, env=problem, episodes=1, seed=4).returns[0]
    env = problem.make()
    first = generator(4, Purpose.EVALUATION, 0).integers(2**31)  # the seed of the environment
    start, goal = env.reset(seed=int(first))[0].tolist()
    env.close()

    plant, own = opened(plant_file, tmp_path / "plant")
    put, get = (plant.setReal, plant.getReal) if version == 2 else (plant.setFloat64, plant.getFloat64)
    put([own["level"], own["leak"]], [start, 0.0])
    begun(plant)
    controller, names = opened(tmp_path / "controller.fmu", tmp_path / "controller")
    begun(controller)
    total = 0.0
    for k in range(50):
        controller.setReal([names["level"], names["level set-point"]], [*get([own["level"]]), goal])
        controller.doStep(float(k), 1.0)
        (valve,) = controller.getReal([names["valve"]])
        put([own["valve"]], [valve])
        plant.doStep(float(k), 1.0)
        (level,) = get([own["level"]])
        total += -((level - goal) ** 2 + 0.01 * valve**2)
    assert total == wanted
