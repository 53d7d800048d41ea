"""What the action for an observation does not depend on, whichever algorithm learned the policy."""

from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql.agents import agent_types

QUICK = {
    "aql": {"rollouts": 3},
    "spaql": {"rollouts": 3},
    "spaql-ts": {"rollouts": 3},
    "plantree": {"effort": 0.01, "leaves": 4, "members": 2},
    "treesearch": {"max_leaves": 2},
}


@pytest.fixture(scope="module", params=QUICK)
def agent(request: pytest.FixtureRequest) -> spaql.Agent:
    kind = agent_types()[request.param]
    return kind("cartpole200", seed=0, **QUICK[request.param]).learn(iterations=4, progress_bar=False)


@pytest.fixture
def observations() -> np.ndarray:
    return np.random.default_rng(0).uniform(-2, 2, (50, 4)).astype(np.float32)


def actions(agent: spaql.Agent, observations: object) -> np.ndarray:
    return np.asarray(agent.predict(observations, deterministic=True)[0])


def test_nor_on_the_others_of_a_batch_nor_on_earlier_calls(
    agent: spaql.Agent, observations: np.ndarray
) -> None:
    forth = actions(agent, observations)
    assert np.array_equal(forth, actions(agent, observations[::-1])[::-1])
    assert np.array_equal(forth, actions(agent, observations))
    assert len(actions(agent, observations[:0])) == 0
    steps = np.zeros(len(observations), np.int64)
    assert np.array_equal(agent.policy.act(observations, steps, None), forth)


def test_nor_on_the_form_of_an_observation(agent: spaql.Agent, observations: np.ndarray) -> None:
    x = observations[0]
    for form in (x.tolist(), x.astype(np.float64), np.asfortranarray(np.stack([x, x]))[0]):
        assert actions(agent, form) == actions(agent, x)
    read_only = observations.copy()
    read_only.setflags(write=False)
    assert np.array_equal(actions(agent, read_only), actions(agent, observations))


def test_what_is_no_observation_is_refused(agent: spaql.Agent, observations: np.ndarray) -> None:
    observations[1] = np.nan
    with pytest.raises(spaql.BadEnvironmentError):
        actions(agent, observations)
    for shape in ((9,), (3, 8), (2, 2, 4)):
        with pytest.raises(spaql.SpaqlError):
            actions(agent, np.zeros(shape))


def test_saving_during_training_writes_one_file_and_changes_nothing(
    agent: spaql.Agent, tmp_path: Path
) -> None:
    agent.save(tmp_path / "agent.spaql")
    assert [path.name for path in tmp_path.iterdir()] == ["agent.spaql"]
    name = agent.learner_type.name
    results = []
    for saved in (True, False):
        other = agent_types()[name]("cartpole200", seed=0, **QUICK[name])
        checkpoint = tmp_path / "checkpoint.spaql" if saved else None
        other.learn(iterations=2, checkpoint=checkpoint, checkpoint_every=2, progress_bar=False)
        other.save(tmp_path / "half.spaql")
        if saved:
            assert (tmp_path / "checkpoint.spaql").read_bytes() == (tmp_path / "half.spaql").read_bytes()
        other.learn(iterations=2, progress_bar=False).save(tmp_path / "whole.spaql")
        results.append((tmp_path / "whole.spaql").read_bytes())
    assert results[0] == results[1]
