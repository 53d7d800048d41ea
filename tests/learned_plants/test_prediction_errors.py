"""How far learned plants are from what happens."""

from itertools import pairwise

import numpy as np
import pytest

import spaql
from learned_plants import known
from spaql.evaluation import model_errors, prediction_errors
from spaql.simulate import Episode, record


def test_an_affine_plant_is_predicted_without_error() -> None:
    policy = spaql.RandomPolicy(known("affine").problem.states, known("affine").problem.actions)
    fresh = record(policy, known("affine").problem, range(100, 105), np.random.default_rng(0))
    errors = prediction_errors(known("affine").model, fresh)
    assert errors.counts == (5 * 60, 5 * 11)
    assert np.all(errors.relative < 1e-3)
    assert errors.ends == (0, 0, 0)
    assert model_errors(known("affine"), held_out=True).relative.max() < 1e-3


def test_errors_are_those_of_a_plain_loop() -> None:
    agent = known("Pendulum-v1")
    model = agent.model
    policy = spaql.RandomPolicy(agent.problem.states, agent.problem.actions)
    fresh = record(policy, agent.problem, range(2), np.random.default_rng(0))
    errors = prediction_errors(model, fresh, steps=(1, 50))
    for row, n in enumerate((1, 50)):
        missed = []
        sums = []
        for episode in fresh:
            for t in range(len(episode.rewards) - n + 1):
                state = episode.observations[t]
                total = 0.0
                for i in range(n):
                    told = model.predict(state, episode.actions[t + i])
                    state = told.observations
                    total = total + float(told.rewards)
                real = episode.rewards[t : t + n].sum()
                missed.append([*(state - episode.observations[t + n]), total - real])
                sums.append(real)
        spread = [*np.concatenate([e.observations for e in fresh]).std(axis=0), np.std(sums)]
        error = np.sqrt(np.mean(np.square(missed), axis=0))
        assert errors.counts[row] == len(missed)
        assert errors.error[row] == pytest.approx(error, rel=1e-9)
        assert errors.relative[row] == pytest.approx(error / spread, rel=1e-9)
        assert errors.median[row] == pytest.approx(np.median(np.abs(missed), axis=0), rel=1e-9)
    assert "50 steps (RMS)    median" in str(errors)


def test_ends_are_counted() -> None:
    model = known("CartPole-v1").model
    memory = known("CartPole-v1")._learner.memory
    begins = [*memory.begins.tolist(), len(memory)]
    episodes = [
        Episode(
            np.concatenate([memory.states[a:b], memory.nexts[b - 1 : b]]),
            memory.actions[a:b, 0].astype(np.int64),
            memory.rewards[a:b],
            bool(memory.ended[b - 1]),
        )
        for a, b in pairwise(begins)
    ]
    there, predicted, falsely = prediction_errors(model, episodes).ends
    assert there == memory.ended.sum()
    assert predicted > 0.8 * there
    assert falsely < 0.02 * len(memory)
    with pytest.raises(spaql.SettingError, match="at least one"):
        prediction_errors(model, [])


def test_held_out_episodes_are_not_learned_from() -> None:
    agent = known("CartPole-v1")
    model, others = agent.hold_out()
    memory = agent._learner.memory
    lengths = np.diff([*memory.begins, len(memory)])
    assert [len(one.rewards) for one in others] == lengths[4::5].tolist()
    assert model.steps == len(memory) - lengths[4::5].sum()
    first = int(memory.begins[4])
    assert np.array_equal(others[0].observations[:-1], memory.states[first : first + lengths[4]])
    assert not np.isin(memory.states[first], model.starts).all()
