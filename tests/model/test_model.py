"""Learned plants: shown, saved, written as JSON, judged and played in."""

import json
import shutil
from itertools import pairwise
from pathlib import Path

import gymnasium
import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.spaces import Box
from gymnasium.utils.env_checker import check_env

import spaql
from spaql import archive
from spaql.algorithms.plantree.coding import Scale
from spaql.algorithms.plantree.dynamics import fit_plant
from spaql.cli import main
from spaql.kernels.plants import predict
from spaql.model import (
    PlantModel,
    Recorded,
    prediction_errors,
    read_json,
    simulator,
    text,
    write_json,
)
from spaql.model.json_form import SCHEMA
from spaql.training import model_errors, record

ENVIRONMENTS = ["CartPole-v1", "Pendulum-v1", "Acrobot-v1"]


class Affine(gymnasium.Env):
    """A stable plant that is one affine law."""

    observation_space = Box(-100.0, 100.0, (2,), np.float64)
    action_space = Box(-2.0, 4.0, (1,), np.float64)
    a, b, c = np.array([[0.9, 0.2], [-0.1, 0.95]]), np.array([0.1, 0.3]), np.array([0.5, 0.0])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.s = self.np_random.normal(2.0, 3.0, 2)
        return self.s.copy(), {}

    def step(self, u):
        reward = float(self.s @ [1.0, -2.0] + 3.0 * u[0] + 7.0)
        self.s = self.a @ self.s + self.b * u[0] + self.c
        return self.s.copy(), reward, False, False, {}


def experienced(env: object, steps: int = 3000, episode: int = 60) -> spaql.PlanTree:
    """An agent that remembers random steps, and has not searched for a controller."""
    agent = spaql.PlanTree(env, seed=0, **({"horizon": episode} if isinstance(env, gymnasium.Env) else {}))
    memory, code, rng = agent._learner.memory, agent._learner.code, np.random.default_rng(0)
    plant, ended, taken = agent.problem.make(), True, 0
    while len(memory) < steps:
        if ended or taken == episode:
            state, _ = plant.reset(seed=len(memory))
            memory.begin()
            taken = 0
        if taken % 3 == 0:
            action = code.tried()[rng.integers(len(code.tried()))]
            if not code.listed:
                action = rng.uniform(-1.0, 1.0, action.shape)
        after, reward, ended, _, _ = plant.step(code.raw(action))
        memory.add(state, code.standard(np.asarray(code.raw(action))), reward, after, ended=ended)
        state, taken = after, taken + 1
    return agent


@pytest.fixture(scope="module")
def agents() -> dict[str, spaql.PlanTree]:
    found = {env: experienced(env) for env in ENVIRONMENTS[:2]}
    # Random episodes of Acrobot hardly ever end: its bound is put lower.
    found["Acrobot-v1"] = experienced(Low(gymnasium.make("Acrobot-v1").unwrapped), episode=200)
    return found | {"affine": experienced(Affine())}


class Low(gymnasium.Wrapper):
    """Acrobot whose goal is low."""

    def step(self, action):
        observation, _, _, truncated, info = super().step(action)
        c1, s1, c2, s2 = observation[:4]
        ended = bool(-c1 - (c1 * c2 - s1 * s2) > -1.3)
        return observation, 0.0 if ended else -1.0, ended, truncated, info


def some_steps(agent: spaql.PlanTree, count: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """States that were met and others around them, and actions."""
    rng = np.random.default_rng(1)
    memory, space = agent._learner.memory, agent.problem.actions.space
    states = memory.states[rng.integers(len(memory), size=count)]
    states = states + rng.normal(0.0, 0.5, states.shape) * memory.states.std(axis=0)
    if agent._learner.code.listed:
        return states, space.start + rng.integers(0, int(space.n), count)
    return states, rng.uniform(space.low, space.high, (count, *space.shape))


@pytest.mark.parametrize("name", [*ENVIRONMENTS, "affine"])
def test_raw_units_say_what_standardised_ones_do(name: str, agents) -> None:
    agent = agents[name]
    memory, code, model = agent._learner.memory, agent._learner.code, agent.model
    scale = Scale.of(memory)
    plant = fit_plant(memory, scale, code, [np.arange(len(memory))], squares=True, cautious=True)
    states, actions = some_steps(agent)
    told = model.predict(states, actions)
    after, room = np.empty(model.dims), np.empty(model.dims + 1)
    for i, (state, action) in enumerate(zip(states, actions, strict=True)):
        given = code.inputs(code.standard(np.asarray(action))[np.newaxis], squares=True)[0]
        chance = predict(plant, 0, scale.z(state), given, after, room)
        assert told.observations[i] == pytest.approx(after * scale.deviation + scale.mean, abs=1e-8)
        assert told.rewards[i] == pytest.approx(room[-1], abs=1e-8)
        assert told.ends[i] == chance
    one = model.predict(states[0], actions[0])
    assert all(np.array_equal(part[0], alone) for part, alone in zip(told, one, strict=True))
    if name in ("CartPole-v1", "Acrobot-v1"):
        assert {0.0, 1.0} <= set(told.ends.tolist())


def test_an_affine_plant_is_shown_with_its_coefficients(agents) -> None:
    lines = text(agents["affine"].model).splitlines()
    assert lines == [
        "# Affine: one cell, learned from 3,000 steps",
        "# cell 1, 3,000 steps",
        "next x0 = 0.5 + 0.9 * x0 + 0.2 * x1 + 0.1 * u0",
        f"next x1 = {lines[3].split()[3]} - 0.1 * x0 + 0.95 * x1 + 0.3 * u0",
        "reward = 7 + 1 * x0 - 2 * x1 + 3 * u0",
        "",
        "# no episode was seen to end before its time was up",
    ]
    assert abs(float(lines[3].split()[3])) < 1e-3


def test_the_text_has_every_cell_and_where_episodes_end(agents) -> None:
    cartpole = agents["CartPole-v1"].model
    shown = str(cartpole)
    assert shown.count("# cell ") == cartpole.n_cells
    assert "if push right" in shown
    assert "it ends, with reward 1" in shown
    assert "# where an episode ends" in shown
    assert "score = " in str(agents["Acrobot-v1"].model)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_state_lies_in_the_box_of_its_cell(name: str, agents) -> None:
    model = agents[name].model
    states, _ = some_steps(agents[name])
    for state, cell in zip(states, model.find(states), strict=True):
        low, high = model.box(int(cell))
        assert np.all((low <= state) & (state < high))
    memory = agents[name]._learner.memory
    counts = np.bincount(model.find(memory.states[~memory.ended]), minlength=model.n_cells)
    assert counts.tolist() == model.samples.tolist()


def step_by_json(data: dict, s: list[float], a: object) -> tuple[list[float], float, float]:
    """What the description in the schema says, word for word."""
    nodes, dims = data["nodes"], len(s)
    i = 0
    while nodes["feature"][i] != -1:
        i = nodes["left"][i] if s[nodes["feature"][i]] < nodes["threshold"][i] else nodes["right"][i]
    cell = data["cells"][nodes["cell"][i]]
    if data["action_space"]["kind"] == "box":
        space = data["action_space"]
        u = [
            min(max(x, float(lo)), float(hi))
            for x, lo, hi in zip(a, space["low"], space["high"], strict=True)
        ]
        w = u + [x * x for x in u]
    else:
        w = [float(k == a - data["action_space"]["start"]) for k in range(data["action_space"]["n"])]
    y = [
        offset
        + sum(c * x for c, x in zip(row, s, strict=True))
        + sum(c * x for c, x in zip(more, w, strict=True))
        for offset, row, more in zip(cell["offset"], cell["observation"], cell["input"], strict=True)
    ]
    x, reward = y[:dims], y[dims]
    for k in range(dims):
        axis = cell["axes"][k]
        p = sum(axis[j] * (x[j] - cell["centre"][j]) / data["scale"][j] for j in range(dims))
        over = max(p - cell["high"][k], 0.0) + min(p - cell["low"][k], 0.0)
        x = [x[j] - over * axis[j] * data["scale"][j] for j in range(dims)]
    reward = min(max(reward, data["rewards"]["low"]), data["rewards"]["high"])
    ends, i = data["ends"], 0
    looks = list(x)
    if ends["score"]:
        products = [x[i] * x[j] for i in range(dims) for j in range(i, dims)]
        looks.append(sum(c * t for c, t in zip(ends["score"], [1.0, *x, *products], strict=True)))
    while ends["feature"][i] != -1:
        i = ends["left"][i] if looks[ends["feature"][i]] < ends["threshold"][i] else ends["right"][i]
    chance = ends["chance"][i]
    return x, (1 - chance) * reward + chance * data["rewards"]["at_end"], chance


@pytest.mark.parametrize("name", [*ENVIRONMENTS, "affine"])
def test_the_json_alone_predicts_the_same(name: str, agents, tmp_path: Path) -> None:
    model = agents[name].model
    write_json(model, tmp_path / "plant.json")
    data = json.loads((tmp_path / "plant.json").read_text())
    jsonschema.validate(data, json.loads(SCHEMA.read_text()))
    states, actions = some_steps(agents[name])
    told = model.predict(states, actions)
    for i in range(len(states)):
        observation, reward, chance = step_by_json(data, states[i].tolist(), actions[i].tolist())
        assert told.observations[i] == pytest.approx(observation, rel=1e-9, abs=1e-9)
        assert (told.rewards[i], told.ends[i]) == pytest.approx((reward, chance), abs=1e-9)
    again = read_json(tmp_path / "plant.json")
    for one, other in zip(again.predict(states, actions), told, strict=True):
        assert one.tobytes() == other.tobytes()


def test_what_is_no_json_of_a_plant_is_refused(agents, tmp_path: Path) -> None:
    write_json(agents["affine"].model, tmp_path / "plant.json")
    data = json.loads((tmp_path / "plant.json").read_text())
    for change in ({"version": 2}, {"cells": []}, {"scale": [0.0, 1.0]}, {"starts": [[1.0]]}):
        (tmp_path / "bad.json").write_text(json.dumps(data | change))
        with pytest.raises(spaql.ArchiveError):
            read_json(tmp_path / "bad.json")
    with pytest.raises(spaql.ArchiveError, match="Cannot read"):
        read_json(tmp_path / "absent.json")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_saved_model_is_the_same_to_the_bit(name: str, agents, tmp_path: Path) -> None:
    model = agents[name].model
    model.save(tmp_path / "plant.spaql")
    loaded = PlantModel.load(tmp_path / "plant.spaql")
    states, actions = some_steps(agents[name])
    for one, other in zip(loaded.predict(states, actions), model.predict(states, actions), strict=True):
        assert one.tobytes() == other.tobytes()
    loaded.save(tmp_path / "again.spaql")
    agents[name].model.save(tmp_path / "anew.spaql")
    for file in ("again.spaql", "anew.spaql"):
        assert (tmp_path / file).read_bytes() == (tmp_path / "plant.spaql").read_bytes()
    assert text(loaded, None) == text(model, None)
    schema = Path(__file__).parents[2] / "docs" / "model-file.schema.json"
    jsonschema.validate(archive.load(tmp_path / "plant.spaql").data, json.loads(schema.read_text()))


def test_other_files_are_told_apart(agents, tmp_path: Path) -> None:
    agents["affine"].model.save(tmp_path / "plant.spaql")
    for read in (spaql.load, spaql.Controller.load):
        with pytest.raises(spaql.ArchiveError, match=r"spaql\.model\.PlantModel\.load"):
            read(tmp_path / "plant.spaql")
    spaql.SPAQL("cartpole200", seed=0).save(tmp_path / "agent.spaql")
    with pytest.raises(spaql.ArchiveError, match="no plant"):
        PlantModel.load(tmp_path / "agent.spaql")


def test_a_file_that_is_no_sound_plant_is_refused(agents, tmp_path: Path) -> None:
    agents["CartPole-v1"].model.save(tmp_path / "plant.spaql")
    document = archive.load(tmp_path / "plant.spaql")

    def refused(data: dict, arrays: dict) -> None:
        archive.save(tmp_path / "bad.spaql", document.data | data, document.arrays | arrays)
        with pytest.raises(spaql.ArchiveError):
            PlantModel.load(tmp_path / "bad.spaql")

    for name, array in document.arrays.items():
        refused({}, {name: array[..., :-1]} if array.size else {name: np.zeros(3)})
        if array.dtype.kind == "f" and array.size:
            refused({}, {name: np.full(array.shape, np.nan)})
    nodes = len(document.arrays["plant.left"])
    for name in ("plant.left", "plant.end_left"):
        there = document.arrays[name]
        for value in (0, -5, nodes + 10**6):  # a loop, and places that there are not
            refused({}, {name: np.where(there >= 0, value, there)})
    refused({}, {"plant.cell": document.arrays["plant.cell"] + 1})
    refused({}, {"plant.feature": np.where(document.arrays["plant.feature"] >= 0, 4, -1)})
    refused({}, {"plant.end_chance": document.arrays["plant.end_chance"] + 0.5})
    for change in ({"horizon": 0}, {"horizon": 1e9}, {"actions": []}, {"steps": "many"}):
        refused(change, {})


def test_an_affine_plant_is_predicted_without_error(agents) -> None:
    policy = spaql.RandomPolicy(agents["affine"].problem.states, agents["affine"].problem.actions)
    fresh = record(policy, agents["affine"].problem, range(100, 105), np.random.default_rng(0))
    errors = prediction_errors(agents["affine"].model, fresh)
    assert errors.counts == (5 * 60, 5 * 11)
    assert np.all(errors.relative < 1e-3)
    assert errors.ends == (0, 0, 0)
    assert model_errors(agents["affine"], held_out=True).relative.max() < 1e-3


def test_errors_are_those_of_a_plain_loop(agents) -> None:
    agent = agents["Pendulum-v1"]
    model = agent.model
    policy = spaql.RandomPolicy(agent.problem.states, agent.problem.actions)
    fresh = record(policy, agent.problem, range(2), np.random.default_rng(0))
    errors = prediction_errors(model, fresh, steps=(1, 50))
    for row, n in enumerate((1, 50)):
        missed, sums = [], []
        for episode in fresh:
            for t in range(len(episode.rewards) - n + 1):
                state, total = episode.observations[t], 0.0
                for i in range(n):
                    told = model.predict(state, episode.actions[t + i])
                    state, total = told.observations, total + float(told.rewards)
                real = episode.rewards[t : t + n].sum()
                missed.append([*(state - episode.observations[t + n]), total - real])
                sums.append(real)
        spread = [*np.concatenate([e.observations for e in fresh]).std(axis=0), np.std(sums)]
        error = np.sqrt(np.mean(np.square(missed), axis=0))
        assert errors.counts[row] == len(missed)
        assert errors.error[row] == pytest.approx(error, rel=1e-9)
        assert errors.relative[row] == pytest.approx(error / spread, rel=1e-9)
        assert errors.median[row] == pytest.approx(np.median(np.abs(missed), axis=0), rel=1e-9)
    assert "50 steps" in str(errors)


def test_ends_are_counted(agents) -> None:
    model = agents["CartPole-v1"].model
    memory = agents["CartPole-v1"]._learner.memory
    begins = [*memory.begins.tolist(), len(memory)]
    episodes = [
        Recorded(
            np.concatenate([memory.states[a:b], memory.nexts[b - 1 : b]]),
            memory.actions[a:b, 0].astype(np.int64),
            memory.rewards[a:b],
            bool(memory.ended[b - 1]),
        )
        for a, b in pairwise(begins)
    ]
    there, told, wrongly = prediction_errors(model, episodes).ends
    assert there == memory.ended.sum()
    assert told > 0.8 * there
    assert wrongly < 0.02 * len(memory)
    with pytest.raises(spaql.SettingError, match="one at least"):
        prediction_errors(model, [])


def test_held_out_episodes_are_not_learned_from(agents) -> None:
    agent = agents["CartPole-v1"]
    model, others = agent.hold_out()
    memory = agent._learner.memory
    lengths = np.diff([*memory.begins, len(memory)])
    assert [len(one.rewards) for one in others] == lengths[4::5].tolist()
    assert model.steps == len(memory) - lengths[4::5].sum()
    first = int(memory.begins[4])
    assert np.array_equal(others[0].observations[:-1], memory.states[first : first + lengths[4]])
    assert not np.isin(memory.states[first], model.starts).all()


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.filterwarnings("ignore:.*(infinity|symmetric and normalized).*")
def test_a_simulator_keeps_what_environments_promise(name: str, agents) -> None:
    env = simulator(agents[name].model)
    check_env(env.unwrapped, skip_render_check=True)
    report = spaql.check_problem(env)
    assert report, str(report)


def test_a_simulator_does_what_its_model_says(agents) -> None:
    model = agents["CartPole-v1"].model
    env = simulator(model)
    episodes = []
    for _ in range(2):
        observation, _ = env.reset(seed=3)
        rng, rows, over = np.random.default_rng(0), [], False
        assert any(np.array_equal(observation, start.astype(np.float32)) for start in model.starts)
        while not over:
            state, action = np.array(env.unwrapped.state), int(rng.integers(2))
            told = model.predict(state, action)
            observation, reward, terminated, truncated, _ = env.step(action)
            rows.append([*observation.tolist(), reward])
            assert env.unwrapped.state == pytest.approx(told.observations)
            assert terminated == (told.ends == 1.0)
            over = terminated or truncated
        episodes.append(rows)
    assert episodes[0] == episodes[1]
    pendulum = simulator(agents["Pendulum-v1"].model)
    pendulum.reset(seed=0)
    ends = [pendulum.step(np.zeros(1, np.float32))[2:4] for _ in range(200)]
    assert ends == [(False, False)] * 199 + [(False, True)]


def test_other_algorithms_train_in_a_simulator_also_from_a_file(agents, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    agents["Pendulum-v1"].model.save("plant.spaql")
    trained = [
        spaql.SPAQL(env, seed=0, rollouts=2).learn(3, progress_bar=False)
        for env in (simulator(agents["Pendulum-v1"].model), "plant.spaql")
    ]
    assert trained[0].history.to_csv() == trained[1].history.to_csv()
    trained[1].save("agent.spaql")
    assert spaql.load("agent.spaql").learn(1, progress_bar=False).iterations == 4
    real = spaql.evaluate(trained[1], "Pendulum-v1", episodes=3)
    assert len(real.returns) == 3
    spaql.SPAQL("cartpole200", seed=0).save("agent.spaql")
    with pytest.raises(spaql.ArchiveError, match="no plant"):
        spaql.make_problem("agent.spaql")


def test_the_command_shows_writes_and_judges(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)

    def command(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(main, words)
        assert result.exit_code == code, result.output
        return result.output

    agent = spaql.PlanTree("CartPole-v1", seed=0, effort=0.02, leaves=4)
    agent.learn(total_timesteps=500, progress_bar=False).save("agent.spaql")
    assert command("model", "agent.spaql").startswith("# CartPole-v1: ")
    at = command("model", "agent.spaql", "--at", "0,0,0,0")
    assert "<= cart position [m] <" in at
    assert "# cell " in at
    assert command("model", "agent.spaql", "--out", "plant.spaql") == "plant.spaql\n"
    assert command("model", "plant.spaql") == command("model", "agent.spaql")
    command("model", "plant.spaql", "--out", "plant.json")
    assert read_json("plant.json").n_cells == json.loads(command("model", "agent.spaql", "--json"))["cells"]
    shown = command("model", "agent.spaql", "--errors", "--episodes", "3")
    assert "3 fresh episodes of the controller" in shown
    assert "held out while learning" in shown
    found = json.loads(command("model", "agent.spaql", "--errors", "--episodes", "3", "--json"))
    assert [len(one["steps"]["1"]["error"]) for one in found["errors"]] == [5, 5]
    trained = command(
        "train", "plant.spaql", "--iterations", "2", "--rollouts", "2", "--seed", "0", "--quiet"
    )
    assert "fresh return" in trained
    for words, advice in (
        (("model", "plant.spaql", "--errors"), "give the run"),
        (("model", "plant.spaql", "--out", "plant.txt"), "call it .spaql or .json"),
        (("model", "plant.spaql", "--at", "1,2"), "An observation has 4 numbers"),
    ):
        assert advice in command(*words, code=1)
    spaql.SPAQL("cartpole200", seed=0).save("other.spaql")
    assert "--algo plantree" in command("model", "other.spaql", code=1)
    shutil.rmtree("runs")


def test_a_model_needs_steps() -> None:
    with pytest.raises(spaql.SettingError, match="call learn first"):
        _ = spaql.PlanTree("Pendulum-v1", seed=0).model
    agent = experienced("CartPole-v1", 30, episode=30)
    with pytest.raises(spaql.SettingError, match="too few"):
        agent.hold_out()


def test_predictions_refuse_what_is_no_step(agents) -> None:
    with pytest.raises(spaql.BadEnvironmentError, match="NaN"):
        agents["Pendulum-v1"].model.predict([np.nan, 0.0, 0.0], [0.0])
    with pytest.raises(spaql.SettingError, match="action of Discrete"):
        agents["CartPole-v1"].model.predict(np.zeros(4), 2)
    with pytest.raises(spaql.SettingError, match="numbers of an action"):
        agents["Pendulum-v1"].model.predict(np.zeros(3), [0.0, 1.0])
