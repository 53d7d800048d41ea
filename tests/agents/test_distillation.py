"""Distillation: small trees that return what a network does, with every step counted."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import spaql
from spaql.cli import main
from spaql.controllers import Controller
from spaql.errors import SettingError, UnsupportedSpaceError

QUICK = {"rounds": 1, "episodes": 10, "judged_episodes": 20, "total_timesteps": 0, "progress_bar": False}


def balance(observation):
    """A linear law that balances the pole."""
    x, v, angle, turning = observation
    return int(0.1 * x + 0.2 * v + angle + 0.3 * turning > 0)


def swing_up(observation):
    """Energy to swing a pendulum up, and a linear law to hold it there."""
    cosine, sine, speed = (float(x) for x in observation)
    if cosine > 0.8:
        return [-15 * np.arctan2(sine, cosine) - 4 * speed]
    return [2 * np.sign(speed) if speed * speed / 6 + 5 * (cosine - 1) < 0 else -2 * np.sign(speed)]


def test_a_linear_law_becomes_one_leaf():
    found = spaql.distil(balance, "CartPole-v1", **QUICK)
    assert found.tree.discrete
    assert found.tree.n_leaves == 1
    assert found.agreement > 0.9
    assert found.kept > 0.98
    assert not found.tree.laws.gain[:, 0].any()  # scores are relative to the first action


def test_a_swing_up_is_cut_into_laws_and_improved():
    found = spaql.distil(swing_up, "Pendulum-v1", **QUICK | {"rounds": 3, "total_timesteps": 100_000})
    assert not found.tree.discrete
    assert not found.tree.laws.constant.all()
    assert found.tree.n_leaves <= 10
    assert found.returned.mean > found.expert_returned.mean - 0.1 * abs(found.expert_returned.mean)
    assert found.expert.clipped > 0


def test_every_step_is_counted_by_phase():
    found = spaql.distil(balance, "cartpole200", **QUICK | {"total_timesteps": 20_000})
    steps = found.steps
    last = found.agent.history.last()
    assert 0 < steps["expert"] <= 10 * 200
    assert 0 < steps["trees"] <= 10 * 200
    assert steps["search"] == last["training_steps"] > 0
    assert steps["comparison"] > steps["trees"]
    learned = sum(taken for phase, taken in steps.items() if phase != "judgement")
    assert last["interactions"] == learned
    judged = (found.expert_returned, found.imitation_returned, found.returned)
    assert steps["judgement"] == sum(one.steps for one in judged)
    np.testing.assert_array_equal(judged[0].starts, judged[2].starts)


def test_the_same_seed_makes_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        spaql.distil(balance, "cartpole200", seed=3, **QUICK).save(tmp_path / name)
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_states_that_trees_reach_are_labelled():
    """The expert stays at the top; trees that fall from there must be shown the way back."""
    none = spaql.distil(swing_up, "Pendulum-v1", **QUICK | {"rounds": 0})
    more = spaql.distil(swing_up, "Pendulum-v1", **QUICK | {"rounds": 2})
    assert none.labelled == none.steps["expert"] == 2000
    assert more.labelled == more.steps["expert"] + more.steps["trees"] == 6000


def test_lists_of_observations_are_refused_before_anything_is_played():
    with pytest.raises(UnsupportedSpaceError):
        spaql.distil(lambda seen: pytest.fail("it was played"), "FrozenLake-v1", **QUICK)
    with pytest.raises(SettingError, match="max_leaves"):
        spaql.distil(balance, "CartPole-v1", **QUICK | {"max_leaves": 0})


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A network that has learned to balance for a while, in some seconds."""
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    model = stable_baselines3.PPO(
        "MlpPolicy", "CartPole-v1", n_steps=512, batch_size=128, learning_rate=2e-3, seed=0, device="cpu"
    )
    path = tmp_path_factory.mktemp("network") / "model.zip"
    model.learn(6_000).save(path)
    return path


def test_a_network_becomes_a_run_that_every_command_takes(network, tmp_path):
    run = str(tmp_path / "run")
    words = ["distil", str(network), "--env", "CartPole-v1", "--out", run, "--steps", "30000", "--quiet"]
    words += ["--rounds", "2", "--episodes", "50"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "model.zip" in done.stdout
    assert "steps      expert " in done.stdout
    report = json.loads((tmp_path / "run" / "distillation.json").read_text())
    assert report["tree"]["leaves"] <= 10
    assert report["kept"] > 0.98
    tree = spaql.load(run).policy
    assert isinstance(tree, Controller)
    assert spaql.evaluate(run, episodes=50, seed=0).mean == report["tree"]["mean"]
    for words in (
        ["show", run],
        ["evaluate", run, "--episodes", "2"],
        ["export", run, "--to", "python", "--points", "100", "--out", str(tmp_path / "code")],
        ["draw", run, "tree", "--out", str(tmp_path / "tree.svg")],
    ):
        again = CliRunner().invoke(main, words)
        assert again.exit_code == 0, again.output
    again = CliRunner().invoke(main, ["distil", str(network), "--env", "CartPole-v1", "--out", run])
    assert "already exists" in again.output


def test_without_improvement_the_imitation_is_the_run(tmp_path):
    found = spaql.distil(balance, "cartpole200", **QUICK)
    found.save(tmp_path / "run")
    seen = np.random.default_rng(0).normal(size=(100, 4))
    np.testing.assert_array_equal(spaql.load(tmp_path / "run").policy.act(seen), found.imitation.act(seen))
