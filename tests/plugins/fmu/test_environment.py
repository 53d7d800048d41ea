"""FMUs as plants: what they declare, how they begin, and what their errors say."""

import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import spaql
from spaql.plugins.fmu import FMUEnv

pytest.importorskip("fmpy", reason="needs fmpy")

from fmus import COST, TANK, heater_fmu, tank_fmu

OPTIONS = {**TANK, "parameters": {"leak": 0.0}, "cost": COST}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fmus")


@pytest.fixture(scope="module")
def tank(folder: Path) -> str:
    return str(tank_fmu(folder))


def episodes(file: str | Path, **more: Any) -> list[Any]:
    """Return all that two environments give in episodes with random actions, each begun twice."""
    problem = spaql.make_problem(str(file), options={**OPTIONS, **more}, measured=False)
    rng = np.random.default_rng(0)
    found = []
    for env in (problem.make(), problem.make()):
        for seed in (1, 2, 1):
            found.append(env.reset(seed=seed)[0].tolist())
            for action in rng.uniform(0, 1, (4, 1)):
                x, reward, *_ = env.step(action)
                found.append([*x.tolist(), reward])
        env.close()
    return found


def test_names_units_ranges_and_times_are_those_of_the_fmu(tank: str) -> None:
    cost = {"cost": "level**2", "setpoints": {"level": [0.5, 1.5]}, "parameters": {"leak": 0}}
    problem = spaql.make_problem(tank, options=cost, measured=False)
    assert problem.states.names == ("level [m]", "rate [m/s]", "level set-point [m]")
    assert problem.actions.names == ("valve",)
    assert problem.setpoints == {"level [m]": "level set-point [m]"}
    assert (problem.sample_time, problem.horizon) == (2.0, 20)  # the default experiment
    assert problem.states.space == gymnasium.spaces.Box(
        np.array([0, -np.inf, 0.5]), np.array([2, np.inf, 1.5]), dtype=np.float64
    )
    assert problem.actions.space == gymnasium.spaces.Box(0.0, 1.0, (1,), dtype=np.float64)


def test_what_is_declared_comes_before_the_fmu(tank: str) -> None:
    options = {
        "cost": "inside",
        "outputs": {"inside": [0, 3]},
        "inputs": {"valve": [0, 0.5], "leak": [0, 0.1]},
    }
    problem = spaql.make_problem(tank, options={**options, "step_size": 0.5, "horizon": 7, "setpoints": {}})
    assert problem.states.names == ("inside [m]",)
    assert problem.actions.names == ("valve", "leak [m3/s]")
    assert (problem.sample_time, problem.horizon) == (0.5, 7)
    assert spaql.make_problem(tank, options=options, horizon=9, sample_time=3.0).horizon == 9


def test_both_versions_of_the_standard_give_the_same_episodes(tank: str, tmp_path: Path) -> None:
    assert episodes(tank_fmu(tmp_path, 3)) == episodes(tank)


def test_a_step_is_computed_as_the_plant_is_written(tank: str) -> None:
    env = FMUEnv(tank, **{**OPTIONS, "start": {"level": 1.0}, "parameters": {"leak": 0.01, "area": 2.0}})
    (level, _, goal), _ = env.reset(seed=0)
    (seen, rate, held), reward, *_ = env.step(np.array([0.25]))
    for _ in range(10):
        level += 0.1 * ((0.3 * 0.25 - 0.01 - 0.1 * np.sqrt(level)) / 2.0)
    assert seen == pytest.approx(level, rel=1e-14)
    assert (held, reward) == (goal, -((seen - goal) ** 2 + 0.01 * 0.25**2))
    assert rate < 0


def test_ranges_are_drawn_anew_and_by_the_seed(tank: str) -> None:
    env = FMUEnv(tank, **{**OPTIONS, "parameters": {"leak": 0.0, "area": [1.0, 3.0]}})
    first = env.reset(seed=3)[0]
    more = np.array([env.reset()[0] for _ in range(50)])
    assert (env.reset(seed=3)[0] == first).all()
    assert np.ptp(more[:, 0]) > 1.0
    assert more[:, 0].min() >= 0.2
    assert more[:, 0].max() <= 1.8
    rates = []
    for seed in range(5):
        env.reset(seed=seed)
        rates.append(env.step(np.zeros(1))[0][1])
    assert len(set(rates)) == 5


def test_a_set_point_may_be_an_output(tank: str) -> None:
    problem = spaql.make_problem(
        tank, options={**OPTIONS, "cost": "level", "setpoints": {"level": "rate"}}, measured=False
    )
    assert problem.setpoints == {"level [m]": "rate [m/s]"}
    assert problem.states.names == ("level [m]", "rate [m/s]")


def test_an_episode_may_end_by_an_expression(tank: str) -> None:
    env = FMUEnv(tank, **OPTIONS, terminated="level < 1.5")
    env.reset(seed=0)
    assert env.step(np.zeros(1))[2]


def test_a_truth_value_as_input_is_a_list_of_actions(tmp_path: Path) -> None:
    options = {"cost": "abs(temperature - 20) + on", "start": {"temperature": [10, 25]}}
    problem = spaql.make_problem(str(heater_fmu(tmp_path)), options=options)
    assert problem.actions.space == gymnasium.spaces.Discrete(2)
    assert problem.actions.names == ("on = 0", "on = 1")
    env = problem.make()
    warm = []
    cold = []
    for action, found in ((1, warm), (0, cold), (1, warm)):
        env.reset(seed=0)
        found.append([env.step(action)[0].tolist() for _ in range(3)])
    assert warm[0] == warm[1]
    assert warm[0] > cold[0]


def test_a_function_may_be_the_cost_of_an_environment_that_is_given(tank: str) -> None:
    env = FMUEnv(tank, **{**OPTIONS, "cost": lambda values: 2 * values["level"] + values["valve"]})
    problem = spaql.make_problem(env, horizon=5, measured=False)
    made = problem.make()
    made.reset(seed=0)
    seen, reward, *_ = made.step(np.array([0.5]))
    assert reward == -(2 * seen[0] + 0.5)
    assert problem.states.names[0] == "level [m]"


@pytest.mark.slow
def test_many_instances_run_in_processes(tank: str) -> None:
    found = []
    for parallel in (False, True):
        problem = spaql.make_problem(tank, options=OPTIONS, measured=False, parallel=parallel)
        envs = problem.make_vector(2)
        seen = [envs.reset(seed=5)[0]]
        seen += [envs.step(np.full((2, 1), 0.4))[0] for _ in range(3)]
        envs.close()
        found.append(np.array(seen).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cost": None}, "tank.fmu needs a cost: an expression of level, rate, level_set_point, valve, such"),
        (
            {"cost": "levels"},
            "The cost 'levels' uses 'levels', which is none of its names: did you mean level?",
        ),
        ({"outputs": ["levels"]}, "outputs names 'levels', which is no variable of .*: did you mean level?"),
        ({"inputs": ["level"]}, "inputs names 'level', which is a variable .output., but not for it, of"),
        ({"parameters": {}}, None),
        ({"start": {"level": [1, 0]}}, "start.level is .1, 0., and must be two numbers, the lower one first"),
        ({"setpoints": {"level": 1.0}}, "setpoints.level is 1.0, and must be two numbers"),
        (
            {"inputs": {"valve": [0, float("inf")]}},
            "The input valve has no finite range in .*inputs = {valve = ",
        ),
        ({"step_size": 0}, "step_size is 0, and must be above 0"),
        ({"stepsize": 1}, "An FMU has no option 'stepsize': did you mean step_size?"),
        ({"inputs": ["valve", "leak"]}, "'leak' is an input to act on, and has a value already"),
    ],
)
def test_what_does_not_fit_the_fmu_is_refused(options: dict[str, Any], said: str | None, tank: str) -> None:
    if said is None:
        assert spaql.make_problem(tank, options={**OPTIONS, **options}, measured=False).actions.names[1:] == (
            "leak [m3/s]",
        )
        return
    with pytest.raises(spaql.SpaqlError, match=said):
        spaql.make_problem(tank, options={**OPTIONS, **options})


def test_errors_name_the_variable_and_the_time(tank: str) -> None:
    env = FMUEnv(tank, **OPTIONS)
    env.reset(seed=0)
    env.step(np.array([0.5]))
    with pytest.raises(
        spaql.BadEnvironmentError, match=r"tank.fmu at 1 s: valve = 1.5 cannot be set \(fmi2SetReal"
    ):
        env.step(np.array([1.5]))
    env.reset(seed=0)  # it goes on after that
    env = FMUEnv(tank, **{**OPTIONS, "start": {"level": -1.0}})
    with pytest.raises(
        spaql.BadEnvironmentError, match="at 0 s: it cannot be initialised with leak = 0, level = -1"
    ):
        env.reset(seed=0)


@pytest.mark.parametrize("version", [2, 3])
def test_a_step_that_fails_is_named_with_its_time_and_the_log(version: int, tmp_path: Path) -> None:
    made = tank_fmu(tmp_path, version)
    env = FMUEnv(made, **{**OPTIONS, "start": {"level": 1.0}, "parameters": {"leak": 0.95}})
    env.reset(seed=0)
    env.step(np.zeros(1))
    said = r"tank.fmu at 1 s: the step to 2 s was not computed \(fmi.DoStep failed .*log: the pump is dry"
    for _ in range(2):
        with pytest.raises(spaql.BadEnvironmentError, match=said):
            env.step(np.zeros(1))
        env.reset(seed=0)
        env.step(np.zeros(1))


def test_numbers_that_are_not_finite_are_named(tank: str) -> None:
    env = FMUEnv(tank, **{**OPTIONS, "cost": "log(valve)"})
    env.reset(seed=0)
    with pytest.raises(
        spaql.BadEnvironmentError, match=r"at 1 s: the cost is -inf for level = .*, valve = 0"
    ):
        env.step(np.zeros(1))
    env = FMUEnv(tank, **{**OPTIONS, "parameters": {"leak": 0.0, "area": 0.0}})
    env.reset(seed=0)
    with pytest.raises(spaql.BadEnvironmentError, match=r"at 1 s: level is nan"):
        env.step(np.zeros(1))


@pytest.mark.parametrize("name", ["../up.txt", "resources/../../up.txt", "/up.txt", "C:up.txt"])
def test_an_archive_is_unpacked_into_its_folder(
    name: str, tank: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    file = tmp_path / "strange.fmu"
    shutil.copy(tank, file)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(name, b"x")
    if name.startswith("/") or ":" in name:
        with pytest.raises(spaql.BadEnvironmentError, match="cannot be unpacked"):
            spaql.make_problem(str(file), options=OPTIONS)
        assert not list(temporary.iterdir())
    else:
        spaql.make_problem(str(file), options=OPTIONS).make().reset()
    assert all(path.is_relative_to(temporary) for path in tmp_path.rglob("up.txt"))


def test_files_that_cannot_be_run_are_refused(tank: str, tmp_path: Path) -> None:
    def refused(file: Path, said: str) -> None:
        with pytest.raises(spaql.BadEnvironmentError, match=said):
            spaql.make_problem(str(file), options=OPTIONS).make().reset()

    refused(tmp_path / "none.fmu", "There is no .*none.fmu: give the path")
    (tmp_path / "text.fmu").write_text("hello")
    refused(tmp_path / "text.fmu", "text.fmu cannot be read as an FMU: it is no ZIP archive")
    with zipfile.ZipFile(tank) as archive:
        text = archive.read("modelDescription.xml").decode()
    for name, changed, said in (
        ("exchange", re.sub("CoSimulation", "ModelExchange", text), "for model exchange only.*co-simulation"),
        ("old", text.replace('fmiVersion="2.0"', 'fmiVersion="1.0"'), "cannot be read|of FMI 1.0"),
        ("foreign", text, "no instance could be made .it has no binary for .*, but for no platform at all"),
    ):
        with zipfile.ZipFile(tmp_path / f"{name}.fmu", "w") as archive:
            archive.writestr("modelDescription.xml", changed)
        refused(tmp_path / f"{name}.fmu", said)


@pytest.mark.slow
def test_a_run_names_its_fmu(tank: str, tmp_path: Path) -> None:
    agent = spaql.PlanTree(tank, options=OPTIONS, seed=0, effort=0.02)
    agent.learn(total_timesteps=300, progress_bar=False).save(tmp_path / "agent.spaql")
    loaded = spaql.load(tmp_path / "agent.spaql")
    assert loaded.problem.options == {"fmu": tank, **OPTIONS}
    assert (loaded.problem.sample_time, loaded.problem.setpoints) == (
        1.0,
        {"level [m]": "level set-point [m]"},
    )
    assert spaql.evaluate(loaded, episodes=3, seed=7).mean == spaql.evaluate(agent, episodes=3, seed=7).mean


def test_constraints_of_an_fmu_are_priced_and_counted(tank: str) -> None:
    constraints = ["level < 1.2", ["valve < 0.5", 3.0]]
    start = {"start": {"level": [0.9, 1.5]}, "horizon": 8}
    problem = spaql.make_problem(tank, options={**OPTIONS, **start, "constraints": constraints})
    assert [one.label for one in problem.constraints] == ["level < 1.2", "valve < 0.5 (3 a step)"]
    env = problem.make()
    goal = env.reset(seed=0)[0][-1]
    seen, reward, *_, info = env.step(np.array([0.75]))
    assert reward == -((seen[0] - goal) ** 2 + 0.01 * 0.75**2) - 3.0
    assert info["broken"].tolist() == [bool(seen[0] >= 1.2), True]
    env.close()
    found = spaql.evaluate(spaql.RandomPolicy(problem.states, problem.actions), problem, episodes=12)
    assert found.violations["valve < 0.5"] == 12
    assert 0 < found.violations["level < 1.2"] < 12
    same = spaql.make_problem(tank, options={**OPTIONS, **start}, constraints=constraints)
    assert same.constraints == problem.constraints
    assert same.stage_cost is None
    with pytest.raises(spaql.SettingError, match="given twice"):
        spaql.make_problem(tank, options=OPTIONS, cost="level")
    with pytest.raises(spaql.SettingError, match="constraint"):
        spaql.make_problem(tank, options={**OPTIONS, "constraints": ["open('f')"]})
