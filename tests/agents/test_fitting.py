"""Controllers from logs: a real plant, logged by a detuned controller, and what the verdict says."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import gymnasium
import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.wrappers import TimeLimit

import spaql
from spaql import archive
from spaql.cli import main

ROOT = Path(__file__).parents[2]
QUICK = {"effort": 0.01, "leaves": 4, "members": 2, "partitions": 2}
"""Settings of a search that is enough for one state variable."""
COST = "atan2(sin, cos)**2 + 0.1 * speed**2 + 0.001 * torque**2"


def detuned(observation: np.ndarray, rng: np.random.Generator) -> float:
    """Swing up by energy with 70 % of the torque, then hold by low gains; with noise."""
    cos, sin, speed = map(float, observation)
    angle = math.atan2(sin, cos)
    energy = speed**2 / 6 + 5 * (cos - 1)
    u = -8 * angle - speed if abs(angle) < 0.6 else -1.4 * math.copysign(1.0, speed * energy)
    return float(np.clip(u + rng.normal(0, 0.8), -2, 2))


def pendulum_log(path: Path, episodes: int) -> None:
    """Write a log; the last row of an episode has no action."""
    rng = np.random.default_rng(0)
    with gymnasium.make("Pendulum-v1") as env, path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["run", "time [s]", "cos", "sin", "speed [rad/s]", "torque [N m]"])
        for run in range(episodes):
            observation, _ = env.reset(seed=run)
            for step in range(200):
                torque = detuned(observation, rng)
                rows.writerow([run, 0.05 * step, *map(float, observation), torque])
                observation = env.step(np.array([torque], np.float32))[0]
            rows.writerow([run, 10.0, *map(float, observation), ""])


def spaql_json(*words: object) -> Any:
    done = CliRunner().invoke(main, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("fit")
    pendulum_log(folder / "log.csv", 15)
    words = ["fit", folder / "log.csv", "--observations", "cos,sin,speed", "--action", "torque"]
    words += ["--action-range", "-2,2", "--episode", "run", "--time", "time", "--horizon", "200"]
    words += ["--cost", COST, "--effort", "0.02", "--anyway", "--out", folder / "run"]
    words += ["--mirror", "sin,speed:torque"]
    return folder / "run", spaql_json(*words)


def test_a_log_becomes_a_run_with_a_verdict(fitted: tuple[Path, dict[str, Any]]) -> None:
    run, data = fitted
    assert data["verdict"] in ("supported", "doubtful", "not supported by the data")
    assert (data["episodes"], data["steps"], data["notes"]) == (15, 3000, [])
    assert 0 <= data["clipped"] <= 1
    assert data["mirror"] == "sin,speed:torque"
    assert data["predicted"]["half_width"] > 0
    assert json.loads((run / "fit.json").read_text())["verdict"] == data["verdict"]
    agent = spaql.load(run)
    assert agent.problem.sample_time == pytest.approx(0.05)
    assert agent.problem.log["cost"] == COST
    assert agent.history["training_steps"][-1] == 3000


def test_the_file_is_as_the_published_schema_says(fitted: tuple[Path, dict[str, Any]]) -> None:
    schema = json.loads((ROOT / "docs" / "model-file.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(archive.load(fitted[0] / "policy.spaql").data, schema)


def test_logged_costs_are_those_of_the_environment(fitted: tuple[Path, dict[str, Any]]) -> None:
    """The returns of the log, by the cost as an expression, are the returns of the episodes in Gymnasium."""
    rng = np.random.default_rng(0)
    real = []
    with gymnasium.make("Pendulum-v1") as env:
        for run in range(15):
            observation, _ = env.reset(seed=run)
            total = 0.0
            for _ in range(200):
                observation, reward, *_ = env.step(np.array([detuned(observation, rng)], np.float32))
                total += float(reward)
            real.append(total)
    assert spaql.load(fitted[0]).history["mean_return"] == pytest.approx(real, rel=1e-4)


def test_commands_take_the_run(fitted: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    run, data = fitted
    shown = CliRunner().invoke(main, ["show", str(run), "--digits", "3"]).output
    assert f"# fitted to log.csv, 3,000 steps: {data['verdict']}" in shown
    assert "torque [N m] = " in shown
    assert spaql_json("model", run)["steps"] == 3000
    assert spaql_json("export", run, "--to", "python", "--points", "200", "--out", tmp_path / "code")
    real = spaql_json("evaluate", run, "--env", "Pendulum-v1", "--episodes", "20")
    pendulum = spaql.make_problem("Pendulum-v1")
    random = spaql.evaluate(spaql.RandomPolicy(pendulum.states, pendulum.actions), pendulum, episodes=20)
    assert real["mean"] > random.mean + 300
    refused = CliRunner().invoke(main, ["evaluate", str(run)])
    assert refused.exit_code == 1
    assert "fitted to a log" in refused.output


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("CartPole-v1", "observes 3 components, and CartPole-v1 has others .cart position"),
        ("MountainCarContinuous-v0", "observes"),
    ],
)
def test_an_unlike_environment_is_refused(
    env: str, message: str, fitted: tuple[Path, dict[str, Any]]
) -> None:
    with pytest.raises(spaql.SettingError, match=message):
        spaql.evaluate(fitted[0], env, episodes=2)


def test_actions_outside_the_range_of_an_environment_are_refused() -> None:
    found = fit_integrator(integrator(20, 0.3), action_range=[-3, 3], extrapolate=True, anyway=True)
    assert found.agent is not None
    narrow = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    with pytest.raises(spaql.SettingError, match="some of them outside Box"):
        spaql.evaluate(found.agent, TimeLimit(Integrator(narrow), 20), episodes=2)
    with pytest.raises(spaql.SettingError, match="takes Discrete"):
        spaql.evaluate(found.agent, TimeLimit(Integrator(gymnasium.spaces.Discrete(3)), 20), episodes=2)
    wide = gymnasium.spaces.Box(-3.0, 3.0, (1,), np.float32)
    assert spaql.evaluate(found.agent, TimeLimit(Integrator(wide), 20), episodes=2).mean < 0


def test_a_drawing_needs_no_environment(fitted: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    spaql_json("draw", fitted[0], "tree", "--out", tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").exists()


def test_maps_are_over_the_states_of_the_log(fitted: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plane = ("--x", "cos", "--y", "speed")
    spaql_json("draw", fitted[0], "map", *plane, "--out", tmp_path / "map.svg")
    assert (tmp_path / "map.svg").exists()
    refused = CliRunner().invoke(main, ["draw", str(fitted[0]), "phase", *plane])
    assert refused.exit_code == 1
    assert "fitted to a log, and has no environment" in refused.output
    assert "Draw one of tree, map, counterexample." in refused.output


class Integrator(gymnasium.Env[np.ndarray, Any]):
    """x' = x + u / 2."""

    def __init__(self, actions: gymnasium.spaces.Space[Any]) -> None:
        self.observation_space = gymnasium.spaces.Box(-9.0, 9.0, (1,), np.float64)
        self.action_space = actions

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin at random."""
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-2, 2, 1)
        return self.x, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Move."""
        cost = float(self.x[0]) ** 2
        self.x = np.clip(self.x + 0.5 * np.ravel(action), -9.0, 9.0)
        return self.x, -cost, False, False, {}


def integrator(
    episodes: int, noise: float, *, gain: float = -0.3, reach: float = 2.0
) -> dict[str, list[float]]:
    """Log x' = x + u / 2, by a proportional controller with noise."""
    rng = np.random.default_rng(1)
    rows: dict[str, list[float]] = {"run": [], "x": [], "u": []}
    for run in range(episodes):
        x = rng.uniform(-reach, reach)
        for _ in range(21):
            u = float(np.clip(gain * x + rng.normal(0, noise), -1, 1))
            for name, value in (("run", run), ("x", x), ("u", u)):
                rows[name].append(value)
            x += 0.5 * u
    return rows


def fit_integrator(rows: dict[str, list[float]], **more: Any) -> spaql.Fitted:
    given: dict[str, Any] = {"cost": "x**2", "action_range": [-1, 1], "episode": "run"} | QUICK | more
    return spaql.fit(rows, observations=["x"], action="u", **given)


def test_rich_data_support_a_controller_that_keeps_its_promise() -> None:
    found = fit_integrator(integrator(30, 0.3))
    assert (found.verdict, found.reasons) == ("supported", ())
    assert found.predicted > found.logged[0]
    assert found.agent is not None
    rng = np.random.default_rng(2)
    real = []
    for _ in range(200):
        x = rng.uniform(-2, 2)
        total = 0.0
        for _ in range(20):
            total -= x**2
            x += 0.5 * float(found.agent.predict(np.array([x]))[0][0])
        real.append(total)
    error = 2 * np.std(real) / math.sqrt(len(real))
    assert abs(np.mean(real) - found.predicted) <= found.half + error


def test_what_the_log_has_not_tried_is_not_supported() -> None:
    """Beyond 0.4 the plant reverses, which a log of small actions cannot tell."""
    rows = integrator(30, 0.1)
    rows["u"] = [min(max(u, -0.4), 0.4) for u in rows["u"]]
    x = 0.0
    for i, (run, u) in enumerate(zip(rows["run"], rows["u"], strict=True)):
        x = rows["x"][i] if i == 0 or run != rows["run"][i - 1] else x
        rows["x"][i] = x
        x += 0.5 * u
    limited = fit_integrator(rows)
    assert limited.untried == 0.0
    assert limited.notes == ("u is limited to -0.4 to 0.4, which the log has tried, of -1 to 1",)
    assert limited.agent is not None
    actions = [float(limited.agent.predict(np.array([x]))[0][0]) for x in (-5.0, -1.0, 1.0, 5.0)]
    assert max(map(abs, actions)) <= 0.4
    beyond = fit_integrator(rows, extrapolate=True, anyway=True)
    assert beyond.untried > 0.0
    assert beyond.verdict == "not supported by the data"
    assert "outside those that the log has tried: extrapolation" in beyond.reasons[0]


def test_copies_are_no_evidence() -> None:
    rows = integrator(4, 0.3)
    copied = {name: [value for _ in range(20) for value in values] for name, values in rows.items()}
    copied["run"] = [i // 21 for i in range(len(copied["run"]))]
    found = fit_integrator(copied)
    assert (found.episodes, found.steps) == (4, 80)
    assert "76 of 80 episodes are copies: counted once" in found.notes[0]
    assert found.verdict != "supported"
    assert "the log has only 4 episodes" in found.reasons


def drifting() -> dict[str, list[float]]:
    """Log x' = x + 0.3 + u / 10 for three steps at a time: what comes after them, nobody has seen."""
    rng = np.random.default_rng(1)
    rows: dict[str, list[float]] = {"run": [], "x": [], "u": []}
    for run in range(60):
        x = rng.uniform(-1, 1)
        for _ in range(4):
            u = float(rng.uniform(-1, 1))
            for name, value in (("run", run), ("x", x), ("u", u)):
                rows[name].append(value)
            x += 0.3 + 0.1 * u
    return rows


def test_a_controller_that_leans_on_the_edge_of_the_data_is_not_supported() -> None:
    """Within 20 steps, x is driven out of the data by any controller; the plant keeps it at their edge."""
    found = fit_integrator(drifting(), horizon=20)
    assert found.verdict == "not supported by the data"
    assert "edge of the data" in found.reasons[0]
    assert found.agent is None
    with pytest.raises(spaql.SettingError, match="no controller to save"):
        found.save("nowhere")
    again = fit_integrator(drifting(), horizon=20, anyway=True)
    assert again.agent is not None
    assert again.agent.problem.log["verdict"] == again.verdict == found.verdict


def test_actions_that_were_not_logged_are_counted() -> None:
    """The log moves slowly, and the cost asks for speed."""
    found = fit_integrator(integrator(30, 0.05, gain=-0.1), extrapolate=True, anyway=True)
    assert found.unseen > 0
    assert found.untried > 0


def test_a_log_without_differences_in_cost_supports_nothing() -> None:
    found = fit_integrator(integrator(8, 0.3), cost="1")
    assert found.verdict == "not supported by the data"
    assert "no reward in the log depends" in found.reasons[0]


def test_the_same_seed_has_the_same_bytes(tmp_path: Path) -> None:
    one, other = (fit_integrator(integrator(8, 0.3), seed=3, anyway=True) for _ in range(2))
    assert one.agent.to_bytes() == other.agent.to_bytes()
    assert one.as_data() == other.as_data()
    one.agent.save(tmp_path / "a.spaql")
    assert spaql.load(tmp_path / "a.spaql").to_bytes() == one.agent.to_bytes()


def test_one_episode_cannot_be_judged() -> None:
    with pytest.raises(spaql.SettingError, match="one episode"):
        fit_integrator(integrator(1, 0.3))
    assert fit_integrator(integrator(1, 0.3), horizon=5, anyway=True).episodes == 4


def test_set_points_are_held_in_the_model() -> None:
    rows = integrator(20, 0.3)
    rows["goal"] = [float(run % 3) - 1 for run in rows["run"]]
    given: dict[str, Any] = {"cost": "abs(x - goal)", "action_range": [-1, 1], "episode": "run"}
    found = spaql.fit(
        rows, observations=["x", "goal"], action="u", setpoints={"x": "goal"}, effort=0.01, anyway=True,
        **given,
    )  # fmt: skip
    assert found.agent is not None
    predicted = found.agent.model.predict([[0.3, -1.0], [0.3, 0.5]], [[0.0], [0.1]]).observations
    assert predicted[:, 1] == pytest.approx([-1.0, 0.5])
    assert found.agent.problem.setpoints == {"x": "goal"}


def test_the_learned_plant_knows_an_end_condition_that_no_row_shows(tmp_path: Path) -> None:
    """The expression is known everywhere, so that the search avoids what it describes."""
    found = fit_integrator(integrator(20, 0.3), end="abs(x) > 2.2", cost="1 + 50 * ended", horizon=20)
    assert (found.verdict, len(found.reasons)) == ("doubtful", 1)
    assert "never holds in the log" in found.reasons[0]
    assert found.agent is not None
    assert found.agent.model.plant.end_chance.max() == 1.0
    found.save(tmp_path / "run")
    again = spaql.load(tmp_path / "run")
    assert again.model.plant.end_threshold.tolist() == found.agent.model.plant.end_threshold.tolist()
    assert found.predicted == pytest.approx(-20.0)  # it never ends by itself


def test_a_cost_must_be_finite_where_an_episode_ends() -> None:
    with pytest.raises(spaql.SettingError, match="not finite where an episode ends"):
        fit_integrator(integrator(8, 0.3), end="abs(x) > 50", cost="x**2 / (1 - ended)")


def test_a_cost_must_be_finite_in_predicted_states() -> None:
    """The log has no negative distance, but predictions have errors."""
    rows = integrator(20, 0.3)
    rows["x"] = [x - min(rows["x"]) for x in rows["x"]]
    with pytest.raises(spaql.SettingError, match="must be finite there, too"):
        fit_integrator(rows, cost="sqrt(x)")
    assert math.isfinite(fit_integrator(rows, cost="sqrt(max(x, 0))", anyway=True).predicted)


def test_a_cost_of_ends_may_be_undefined_elsewhere(tmp_path: Path) -> None:
    """The log has x of both signs; the logarithm is only due where the episode ends."""
    given = {"end": "x > 2.2", "cost": "log(next_x) if ended else x**2", "anyway": True}
    fit_integrator(integrator(8, 0.3), **given).save(tmp_path / "run")
    assert math.isfinite(spaql.load(tmp_path / "run").problem.log["end_reward"])


@pytest.mark.parametrize(
    "log",
    [
        {"files": "log.csv", "rows": 1, "steps": 1, "end": None, "end_reward": 0.0, "verdict": "supported"},
        {"files": [], "rows": -1, "steps": 1, "end": None, "end_reward": 0.0, "verdict": "supported"},
        {"files": [], "rows": 1, "steps": 1, "end": "x.real", "end_reward": 0.0, "verdict": "supported"},
        {"files": [], "rows": 1, "steps": 1, "end": None, "end_reward": 0.0},
        7,
    ],
)
def test_a_damaged_description_of_a_log_is_an_archive_error(
    log: Any, fitted: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    document = archive.load(fitted[0] / "policy.spaql")
    document.data["problem"]["log"] = log
    archive.save(tmp_path / "bad.spaql", document.data, document.arrays)
    with pytest.raises(spaql.ArchiveError):
        spaql.load(tmp_path / "bad.spaql")
