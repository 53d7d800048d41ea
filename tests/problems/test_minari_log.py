"""Logs from Minari datasets, written by Minari itself."""

import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import spaql
from spaql.problems.log import read_log

minari = pytest.importorskip("minari")


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two episodes of an integrator, of 5 and 3 steps."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    rng = np.random.default_rng(0)
    episodes = []
    buffers = []
    for i, steps in enumerate((5, 3)):
        actions = rng.uniform(-1, 1, (steps, 1)).astype(np.float32)
        states = np.cumsum(np.concatenate([np.ones((1, 1)), 0.5 * actions]), axis=0).astype(np.float32)
        episodes.append((states, actions))
        over = np.arange(steps) == steps - 1
        buffers.append(
            minari.data_collector.EpisodeBuffer(
                id=i,
                observations=states,
                actions=actions,
                rewards=list(np.zeros(steps)),
                terminations=list(np.zeros(steps, bool)),
                truncations=list(over),
            )
        )
    with warnings.catch_warnings():  # Minari advises to name an environment, and there is none
        warnings.simplefilter("ignore")
        minari.create_dataset_from_buffers(
            "integrator/random-v0",
            buffers,
            observation_space=gymnasium.spaces.Box(-9.0, 9.0, (1,), np.float32),
            action_space=gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32),
            algorithm_name="random",
            description="an integrator",
            requirements=[],
            code_permalink="none",
            author="nobody",
            author_email="nobody@example.org",
        )
    return episodes


def test_a_dataset_is_read_by_its_id(dataset: list[tuple[np.ndarray, np.ndarray]]) -> None:
    log = read_log("minari:integrator/random-v0", observations=["obs0"], actions=["action"])
    assert np.flatnonzero(log.first).tolist() == [0, 5]
    assert log.states.ravel().tolist() == [*dataset[0][0][:-1, 0], *dataset[1][0][:-1, 0]]
    assert log.nexts.ravel().tolist() == [*dataset[0][0][1:, 0], *dataset[1][0][1:, 0]]
    assert log.taken.ravel().tolist() == [*dataset[0][1][:, 0], *dataset[1][1][:, 0]]


def test_unknown_datasets_and_columns_are_named(dataset: object) -> None:
    with pytest.raises(spaql.SettingError, match="minari download no/such-v0"):
        read_log("minari:no/such-v0", observations=["obs0"], actions=["action"])
    with pytest.raises(spaql.SettingError, match="no column 'obs7'"):
        read_log("minari:integrator/random-v0", observations=["obs7"], actions=["action"])
