"""Policies of other libraries: the actions are those of the library, and other objects are refused."""

import sys
from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql.agents.experts import expert_of
from spaql.errors import SettingError

STEPS = np.zeros(50, np.int64)


def observations(problem, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (50, problem.states.dims)).astype(np.float32)


def networks():
    """The algorithms whose policies are built in different ways, with an environment of each."""
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    sb3_contrib = pytest.importorskip("sb3_contrib")
    quick = {"device": "cpu", "seed": 0}
    return {
        "ppo": lambda: stable_baselines3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, **quick),
        "dqn": lambda: stable_baselines3.DQN("MlpPolicy", "CartPole-v1", **quick),
        "sac": lambda: stable_baselines3.SAC(
            "MlpPolicy", "Pendulum-v1", policy_kwargs={"net_arch": [8]}, **quick
        ),
        "td3": lambda: stable_baselines3.TD3(
            "MlpPolicy", "Pendulum-v1", policy_kwargs={"net_arch": [8]}, **quick
        ),
        "sde": lambda: stable_baselines3.PPO("MlpPolicy", "Pendulum-v1", n_steps=64, use_sde=True, **quick),
        "ars": lambda: sb3_contrib.ARS("LinearPolicy", "Pendulum-v1", **quick),
    }


@pytest.mark.parametrize("name", ["ppo", "dqn", "sac", "td3", "sde", "ars"])
def test_a_saved_network_acts_as_the_model_does(name, tmp_path):
    model = networks()[name]()
    model.save(tmp_path / "model.zip")
    problem = spaql.make_problem(model.get_env().envs[0].spec.id)
    expert = expert_of(str(tmp_path / "model.zip"), problem)
    seen = observations(problem)
    wanted = model.predict(seen, deterministic=True)[0]
    np.testing.assert_array_equal(expert.act(seen, STEPS, None), wanted)
    np.testing.assert_array_equal(expert_of(model, problem).act(seen, STEPS, None), wanted)


def test_observations_are_normalised_as_in_training(tmp_path):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    envs = VecNormalize(make_vec_env("Pendulum-v1", 1, seed=0))
    model = PPO("MlpPolicy", envs, n_steps=64, device="cpu", seed=0).learn(64)
    model.save(tmp_path / "model.zip")
    envs.save(str(tmp_path / "envs.pkl"))
    problem = spaql.make_problem("Pendulum-v1")
    seen = observations(problem)
    expert = expert_of(tmp_path / "model.zip", problem, vec_normalize=tmp_path / "envs.pkl")
    wanted = model.predict(envs.normalize_obs(seen), deterministic=True)[0]
    np.testing.assert_array_equal(expert.act(seen, STEPS, None), wanted)
    assert not np.array_equal(expert_of(tmp_path / "model.zip", problem).act(seen, STEPS, None), wanted)


def test_a_network_for_other_spaces_is_refused(tmp_path):
    networks()["ppo"]().save(tmp_path / "model.zip")
    with pytest.raises(SettingError, match=r"model.zip has the observations Box.*Pendulum-v1 has"):
        expert_of(str(tmp_path / "model.zip"), spaql.make_problem("Pendulum-v1"))


def write_network(path: Path, output: str, rows="n", outputs=2):
    """Write a network of one hidden layer with scores for two actions, or an action; returns its weights."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(1)
    first, second = (rng.normal(size=shape).astype(np.float32) for shape in ((4, 8), (8, outputs)))
    helper = onnx.helper
    number = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["obs", "first"], ["hidden"]),
            helper.make_node("Tanh", ["hidden"], ["tanh"]),
            helper.make_node("MatMul", ["tanh", "second"], [output]),
        ],
        "policy",
        [helper.make_tensor_value_info("obs", number, [rows, 4])],
        [helper.make_tensor_value_info(output, number, [rows, outputs])],
        [onnx.numpy_helper.from_array(first, "first"), onnx.numpy_helper.from_array(second, "second")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return first, second


@pytest.mark.parametrize("rows", ["n", 1])
def test_the_highest_score_of_an_onnx_model_is_its_action(rows, tmp_path):
    first, second = write_network(tmp_path / "policy.onnx", "logits", rows)
    problem = spaql.make_problem("CartPole-v1")
    seen = observations(problem)
    done = expert_of(tmp_path / "policy.onnx", problem).act(seen, STEPS, None)
    np.testing.assert_array_equal(done, (np.tanh(seen @ first) @ second).argmax(axis=1))


def test_actions_of_an_onnx_model_of_the_wrong_shape_are_refused(tmp_path):
    write_network(tmp_path / "policy.onnx", "action", outputs=3)
    problem = spaql.make_problem("CartPole-v1")
    with pytest.raises(SettingError, match=r"shape \(50, 3\) for 50 observations"):
        expert_of(tmp_path / "policy.onnx", problem).act(observations(problem), STEPS, None)


def test_an_exported_tree_is_an_expert(tmp_path):
    pytest.importorskip("onnxruntime")
    agent = spaql.TreeSearch("Pendulum-v1", seed=0)
    spaql.export.onnx(agent, tmp_path / "tree.onnx", points=100)
    seen = observations(agent.problem)
    expert = expert_of(tmp_path / "tree.onnx", agent.problem)
    np.testing.assert_array_equal(expert.act(seen, STEPS, None), agent.policy.act(seen))


def test_a_function_is_named_by_its_module(tmp_path, monkeypatch):
    (tmp_path / "proportional.py").write_text(
        "def control(observation):\n    return [-9.0 * observation[1]]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    problem = spaql.make_problem("Pendulum-v1")
    seen = observations(problem)
    expert = expert_of("proportional:control", problem)
    wanted = np.clip(-9.0 * seen[:, 1:2].astype(np.float64), -2, 2)
    np.testing.assert_allclose(expert.act(seen, STEPS, None), wanted, rtol=1e-6)
    assert expert.clipped == np.count_nonzero(np.abs(9.0 * seen[:, 1]) > 2)
    with pytest.raises(SettingError, match="did you mean control"):
        expert_of("proportional:controls", problem)
    sys.modules.pop("proportional")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda seen: 2, "returned the action 2: it must be a whole number from 0 to 1"),
        (lambda seen: 0.5, "returned the action 0.5"),
        (lambda seen: [0, 1], r"returned actions of shape \(50, 2\)"),
    ],
)
def test_what_is_no_action_is_refused(answer, said):
    problem = spaql.make_problem("CartPole-v1")
    with pytest.raises(SettingError, match=said):
        expert_of(answer, problem).act(observations(problem), STEPS, None)


def test_what_is_no_policy_is_refused(tmp_path):
    problem = spaql.make_problem("CartPole-v1")
    (tmp_path / "model.zip").write_bytes(b"no model")
    for given, said in (
        (3, "3 is not a policy"),
        ("missing.zip", "There is no file missing.zip"),
        (tmp_path / "model.zip", "cannot be read as a Stable-Baselines3"),
        (spaql.AQL("cartpole200", seed=0), "depends on time or memory"),
    ):
        with pytest.raises(SettingError, match=said):
            expert_of(given, problem)
