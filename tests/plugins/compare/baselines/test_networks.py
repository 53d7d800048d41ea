"""Networks of Stable-Baselines3 and sb3-contrib in the same store, by the same evaluations as agents."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql import MissingExtraError, Run, SettingError
from spaql.plugins.compare.baselines import ZOO, make_network, networks
from spaql.plugins.sweeps.curve import LearningCurve
from spaql.plugins.sweeps.execute import execute
from spaql.plugins.sweeps.store import RunStore, read_columns
from spaql.plugins.sweeps.study import check
from spaql.plugins.sweeps.trainers import Trained
from spaql.problems import make_problem


def small(problem: str, algorithm: str, steps: int, points: tuple[int, ...] = (), **settings: object) -> Run:
    return Run(
        problem=problem,
        algorithm=algorithm,
        total_timesteps=steps,
        settings=settings or ZOO[algorithm, problem],
        named=(),
        fresh_episodes=4,
        evaluate_at=points,
    )


def trained(run: Run) -> Trained:
    return networks.network.train(run, LearningCurve(run), Path(), 1)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a batch 400 samples instead of 4,000."""
    pytest.importorskip("sb3_contrib")
    monkeypatch.setattr(networks, "BATCHES", {**networks.BATCHES, "n_steps": 20, "batch_size": 50})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's own
@pytest.mark.parametrize("problem", ["cartpole200", "pendulum"])
@pytest.mark.usefixtures("small_batches")
def test_a_run_of_trpo_is_a_run_like_others(problem: str, tmp_path: Path) -> None:
    run = Run(problem=problem, algorithm="trpo", iterations=2, settings={"rollouts": 3}, fresh_episodes=5)
    for name in ("one", "two"):
        execute(run, root=str(tmp_path / name), checkpoint_every=100)
    assert RunStore(tmp_path / "one").digest() == RunStore(tmp_path / "two").digest()
    table = spaql.results(tmp_path / "one")
    assert table["training_steps"].tolist() == [800]
    assert table["interactions"][0] > 800
    history = (tmp_path / "one" / run.id / "history.csv").read_text().splitlines()
    assert len(history) == 1 + 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("small_batches")
def test_the_policy_is_the_network() -> None:
    left = trained(Run(problem="pendulum", algorithm="trpo", iterations=1, settings={"rollouts": 2}))
    observations = np.random.default_rng(0).uniform(-1, 1, (20, 3)).astype(np.float32)
    expected = left.policy._model.predict(observations, deterministic=True)[0]
    assert np.array_equal(left.policy.predict(observations)[0], expected)
    assert spaql.evaluate(left.policy, "pendulum", episodes=3).mean < 0


NUMBERS = {
    ("sac", "Pendulum-v1"): (3 + 1) * 256 + (256 + 1) * 256 + 256 + 1,
    ("tqc", "MountainCarContinuous-v0"): (2 + 1) * 64 + (64 + 1) * 64 + 64 + 1,
    ("td3", "Pendulum-v1"): (3 + 1) * 400 + (400 + 1) * 300 + 300 + 1,
    ("dqn", "CartPole-v1"): (4 + 1) * 256 + (256 + 1) * 256 + (256 + 1) * 2,
    ("qr-dqn", "MountainCar-v0"): (2 + 1) * 256 + (256 + 1) * 256 + (256 + 1) * 3 * 25,
    ("ppo", "MountainCar-v0"): (2 + 1) * 64 + (64 + 1) * 64 + (64 + 1) * 3,
    ("trpo", "Acrobot-v1"): (6 + 1) * 64 + (64 + 1) * 64 + (64 + 1) * 3,
    ("ars", "CartPole-v1"): 4 * 2,
}
"""That an action is made of: weights and biases, layer by layer."""


@pytest.mark.long
@pytest.mark.usefixtures("untraced")
@pytest.mark.filterwarnings("ignore")  # torch's own
@pytest.mark.parametrize(("algorithm", "problem"), NUMBERS)
def test_a_network_is_trained_and_evaluated_on_the_way(algorithm: str, problem: str, tmp_path: Path) -> None:
    pytest.importorskip("sb3_contrib")
    run = small(problem, algorithm, 300, (100, 200))
    for name in ("one", "two"):
        execute(run, root=str(tmp_path / name), checkpoint_every=100)
    store = RunStore(tmp_path / "one")
    assert store.digest() == RunStore(tmp_path / "two").digest()
    curve = read_columns(store.folder(run) / "curve.csv")
    assert curve["interactions"][:2] == pytest.approx([100, 200], abs=16)
    assert curve["interactions"][-1] >= 300
    assert set(curve["size"]) == {NUMBERS[algorithm, problem]}
    assert json.loads((store.folder(run) / "result.json").read_text())["run"]["settings"] == run.settings


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("algorithm", "problem"), [("dqn", "CartPole-v1"), ("ppo", "MountainCar-v0")])
def test_evaluating_does_not_change_what_is_learned(algorithm: str, problem: str) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("sb3_contrib")
    runs = [small(problem, algorithm, 1_500, points) for points in ((), (400, 900, 1_300))]
    policies = [trained(run).policy for run in runs]
    one, two = (policy._model.policy.state_dict() for policy in policies)
    assert all(torch.equal(one[name], two[name]) for name in one)
    seen = np.random.default_rng(0).normal(size=(50, *policies[0].observation_space.shape))
    assert np.array_equal(*(policy.predict(seen)[0] for policy in policies))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_a_network_that_learned_from_normalised_observations_acts_on_raw_ones() -> None:
    pytest.importorskip("sb3_contrib")
    policy = trained(small("MountainCar-v0", "ppo", 600)).policy
    scale = policy._model.get_vec_normalize_env().obs_rms
    seen = np.random.default_rng(0).uniform([-1.2, -0.07], [0.6, 0.07], (50, 2)).astype(np.float32)
    normalised = np.clip((seen - scale.mean) / np.sqrt(scale.var + 1e-8), -10, 10).astype(np.float32)
    expected = policy._model.predict(normalised, deterministic=True)[0]
    assert np.array_equal(policy.predict(seen)[0], expected)
    assert len(set(expected.tolist())) > 1


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"algorithm": "dqn", "iterations": 5}, "dqn has no iterations: give it total_timesteps"),
        ({"algorithm": "trpo", "iterations": 5, "settings": {"gamma": 0.9}}, "give it total_timesteps"),
        ({"algorithm": "ppo", "total_interactions": 0}, "ppo learns from interactions"),
        ({"algorithm": "classical", "total_interactions": 5}, "classical learns nothing"),
        ({"algorithm": "classical", "problem": "Acrobot-v1"}, "no textbook controller for Acrobot-v1"),
    ],
)
def test_a_run_that_cannot_be_trained_is_refused_at_the_beginning(
    run: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        check([Run(**({"problem": "CartPole-v1"} | run))])


def test_without_the_extra_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sb3_contrib", None)
    with pytest.raises(MissingExtraError, match=r"spaql\[baselines\]"):
        make_network("sac", make_problem("Pendulum-v1"), {}, seed=0)
