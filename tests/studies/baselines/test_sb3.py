"""TRPO in the same run store and by the same evaluations as our agents."""

import sys
from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql import MissingExtraError, Run
from spaql.experiments import RunStore
from spaql.experiments.execute import execute
from spaql.studies.baselines import sb3, train_baseline


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a batch 400 samples instead of 4,000."""
    pytest.importorskip("sb3_contrib")
    monkeypatch.setattr(sb3, "BATCH", 400)
    monkeypatch.setattr(sb3, "COMMON", {**sb3.COMMON, "n_steps": 50, "batch_size": 50})


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
    trained = train_baseline("trpo", "pendulum", iterations=1, rollouts=2, seed=0)
    observations = np.random.default_rng(0).uniform(-1, 1, (20, 3)).astype(np.float32)
    expected = trained.model.predict(observations, deterministic=True)[0]
    assert np.array_equal(trained.policy.predict(observations)[0], expected)
    assert spaql.evaluate(trained, episodes=3).mean < 0


def test_without_the_extra_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sb3_contrib", None)
    with pytest.raises(MissingExtraError, match=r"spaql\[baselines\]"):
        train_baseline("trpo", "pendulum", iterations=1, rollouts=2, seed=0)
