"""Learned plants: shown, saved, and written as JSON."""

import numpy as np
import pytest

import spaql
from learned_plants import ENVIRONMENTS, experienced, known, some_steps
from spaql.algorithms.plantree.learned_plant import CAUTIOUS, fit_plant
from spaql.algorithms.replay import Scale
from spaql.kernels.plantree.pwa_model import predict
from spaql.learned_plants import PlantModel, text
from spaql.spaces import describe_space

pytestmark = pytest.mark.slow  # all share a study or a training


@pytest.mark.parametrize("name", [*ENVIRONMENTS, "affine"])
def test_raw_units_say_what_standardised_ones_do(name: str) -> None:
    agent = known(name)
    memory = agent._learner.memory
    code = agent._learner.code
    model = agent.model
    scale = Scale.of(memory)
    plant = fit_plant(memory, scale, code, [np.arange(len(memory))], squares=True, margin=CAUTIOUS)
    states, actions = some_steps(agent)
    told = model.predict(states, actions)
    after = np.empty(model.dims)
    room = np.empty(model.dims + 1)
    for i, (state, action) in enumerate(zip(states, actions, strict=True)):
        given = code.inputs(code.standard(np.asarray(action)[np.newaxis]), squares=True)[0]
        chance, reward, _ = predict(plant, 0, scale.z(state), given, after, room)
        assert told.observations[i] == pytest.approx(after * scale.deviation + scale.mean, abs=1e-8)
        assert told.rewards[i] == pytest.approx(reward, abs=1e-8)
        assert told.ends[i] == chance
    one = model.predict(states[0], actions[0])
    assert all(np.array_equal(part[0], alone) for part, alone in zip(told, one, strict=True))
    if name in ("CartPole-v1", "Acrobot-v1"):
        assert {0.0, 1.0} <= set(told.ends.tolist())


def test_an_affine_plant_is_shown_with_its_coefficients() -> None:
    lines = text(known("affine").model).splitlines()
    assert lines == [
        "# Affine: 1 cell, learned from 3,000 steps",
        "# cell 1, 3,000 steps",
        "next x0 = 0.5 + 0.9 * x0 + 0.2 * x1 + 0.1 * u0",
        f"next x1 = {lines[3].split()[3]} - 0.1 * x0 + 0.95 * x1 + 0.3 * u0",
        "reward = 7 + 1 * x0 - 2 * x1 + 3 * u0",
        "",
        "# no episode was seen to end before its time was up",
    ]
    assert abs(float(lines[3].split()[3])) < 1e-3


def test_the_text_has_every_cell_and_where_episodes_end() -> None:
    cartpole = known("CartPole-v1").model
    shown = str(cartpole)
    assert shown.count("# cell ") == cartpole.n_cells
    assert "if push right" in shown
    assert "it ends, with reward 1" in shown
    assert "# where an episode ends" in shown
    assert "score = " in str(known("Acrobot-v1").model)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_state_lies_in_the_box_of_its_cell(name: str) -> None:
    model = known(name).model
    states, _ = some_steps(known(name))
    for state, cell in zip(states, model.find(states), strict=True):
        low, high = model.box(int(cell))
        assert np.all((low <= state) & (state < high))
    memory = known(name)._learner.memory
    counts = np.bincount(model.find(memory.states[~memory.ended]), minlength=model.n_cells)
    assert counts.tolist() == model.samples.tolist()


def step_by_hand(data: dict, s: list[float], a: object) -> tuple[list[float], float, float]:
    """What the page on model files says, word for word."""
    nodes = data["nodes"]
    dims = len(s)
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
    x = y[:dims]
    reward = y[dims]
    for k in range(dims):
        axis = cell["axes"][k]
        p = sum(axis[j] * (x[j] - cell["centre"][j]) / data["scale"][j] for j in range(dims))
        over = max(p - cell["high"][k], 0.0) + min(p - cell["low"][k], 0.0)
        x = [x[j] - over * axis[j] * data["scale"][j] for j in range(dims)]
    reward = min(max(reward, data["rewards"]["low"]), data["rewards"]["high"])
    ends = data["ends"]
    i = 0
    looks = list(x)
    if ends["score"]:
        products = [x[i] * x[j] for i in range(dims) for j in range(i, dims)]
        looks.append(sum(c * t for c, t in zip(ends["score"], [1.0, *x, *products], strict=True)))
    while ends["feature"][i] != -1:
        i = ends["left"][i] if looks[ends["feature"][i]] < ends["threshold"][i] else ends["right"][i]
    chance = ends["chance"][i]
    return x, (1 - chance) * reward + chance * data["rewards"]["at_end"], chance


def described(model: PlantModel) -> dict:
    plant = model.plant
    dims = model.dims
    return {
        "action_space": describe_space(model.action_space),
        "nodes": {
            part: getattr(plant, part).tolist() for part in ("feature", "threshold", "left", "right", "cell")
        },
        "cells": [
            {
                "offset": plant.law[i, :, 0].tolist(),
                "observation": plant.law[i, :, 1 : 1 + dims].tolist(),
                "input": plant.law[i, :, 1 + dims :].tolist(),
                **{part: getattr(plant, part)[i].tolist() for part in ("centre", "axes", "low", "high")},
            }
            for i in range(model.n_cells)
        ],
        "scale": plant.scale.tolist(),
        "rewards": dict(zip(("low", "high", "at_end"), plant.rewards.tolist(), strict=True)),
        "ends": {
            part: getattr(plant, f"end_{part}").tolist()
            for part in ("feature", "threshold", "left", "right", "chance", "score")
        },
    }


@pytest.mark.parametrize("name", [*ENVIRONMENTS, "affine"])
def test_predictions_follow_from_the_arrays(name: str) -> None:
    model = known(name).model
    states, actions = some_steps(known(name))
    told = model.predict(states, actions)
    for i in range(len(states)):
        observation, reward, chance = step_by_hand(described(model), states[i].tolist(), actions[i].tolist())
        assert told.observations[i] == pytest.approx(observation, rel=1e-9, abs=1e-9)
        assert (told.rewards[i], told.ends[i]) == pytest.approx((reward, chance), abs=1e-9)


def test_a_model_needs_steps() -> None:
    with pytest.raises(spaql.SettingError, match="call learn first"):
        _ = spaql.PlanTree("Pendulum-v1", seed=0).model
    agent = experienced("CartPole-v1", 30, episode=30)
    with pytest.raises(spaql.SettingError, match="too few"):
        agent.hold_out()


def test_predictions_refuse_what_is_no_step() -> None:
    with pytest.raises(spaql.BadEnvironmentError, match="NaN"):
        known("Pendulum-v1").model.predict([np.nan, 0.0, 0.0], [0.0])
    with pytest.raises(spaql.SettingError, match="action of Discrete"):
        known("CartPole-v1").model.predict(np.zeros(4), 2)
    with pytest.raises(spaql.SettingError, match="numbers of an action"):
        known("Pendulum-v1").model.predict(np.zeros(3), [0.0, 1.0])
    with pytest.raises(spaql.SettingError, match="3 numbers"):
        known("Pendulum-v1").model.predict(np.zeros(4), [0.0])
