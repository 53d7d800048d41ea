"""Controllers with memory that PlanTree designs in the learned plant, where set-points are declared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import spaql
from spaql.algorithms.plantree import learner
from spaql.algorithms.plantree.design import TrackedCandidates, fit_tracked, new_search
from spaql.cli import main
from spaql.controllers import Controller, Integral, LastAction
from spaql.kernels.plantree.tracking import ALIVE, EPISODE, GAINS, NOISE, SHIFT
from spaql.problems.disturbances import Perturbation
from spaql.simulate import Candidates

STEPS = 2400


def new(env: str = "spaql/Oven-v0", **settings: object) -> spaql.PlanTree:
    return spaql.PlanTree(env, seed=3, effort=0.05, partitions=4, **settings)


@pytest.fixture(scope="module")
def oven() -> spaql.PlanTree:
    return new().learn(STEPS)


def test_an_oven_with_dead_time_gets_integral_action_from_few_steps(oven: spaql.PlanTree) -> None:
    policy = oven.policy
    assert policy.remembers
    assert any(isinstance(one, Integral) for one in policy.features) or policy.form == "velocity"
    assert oven.lags == ["heat a sample before", "heat 2 samples before", "heat 3 samples before"]
    assert oven.history.last()["interactions"] == STEPS
    assert sum(row["chosen"] for row in oven.ladder) == 1
    assert spaql.evaluate(oven, episodes=30, seed=5).mean > -40  # about -80 without memory


def candidates_of(policy: Controller) -> Candidates:
    """Return a controller as the only candidate of a search."""
    arrays, numbers = policy.arrays
    return Candidates(arrays, numbers.constant[np.newaxis], numbers.weight[np.newaxis], policy.frame)


def test_the_learned_plant_plays_recorded_episodes_again(oven: spaql.PlanTree) -> None:
    inner = oven._learner
    tracked = fit_tracked(inner.memory, inner.code, inner.problem, inner.experience.prediction())
    player = TrackedCandidates(tracked, inner.problem, None)
    made = inner.designs[0]
    horizon = inner.problem.horizon
    memory = inner.memory
    again = 0
    for episode, first in enumerate(memory.begins.tolist()):
        start = np.zeros((1, GAINS + 1))
        start[0, EPISODE] = episode
        start[0, ALIVE:] = 1.0
        found = player.play(candidates_of(made.controller), start, visited=horizon).visited[:, 0]
        states = memory.states[first : first + horizon]
        again += np.allclose(found[:10], (states[:, 1] - states[:, 0])[:10], atol=1e-3)
    # The same controller meets the same, until it passes a cut, which is a recorded number, within rounding.
    assert len(made.returns) <= again < len(memory.begins)
    assert made.returns


def test_a_perturbation_is_drawn_as_it_is_declared(oven: spaql.PlanTree) -> None:
    inner = oven._learner
    tracked = fit_tracked(inner.memory, inner.code, inner.problem, inner.experience.prediction())
    starts = TrackedCandidates(tracked, inner.problem, Perturbation(gain=0.3)).starts(
        np.random.default_rng(0), 500
    )
    assert 0.7 <= starts[:, GAINS].min() < 0.75
    assert 1.25 < starts[:, GAINS].max() <= 1.3
    assert set(starts[:, SHIFT]) == {-1, 0, 1}
    plain = TrackedCandidates(tracked, inner.problem, None).starts(np.random.default_rng(0), 500)
    assert not plain[:, [NOISE, SHIFT]].any()
    assert (plain[:, GAINS:] == 1.0).all()


def test_dead_time_is_a_sample_more_or_less(oven: spaql.PlanTree) -> None:
    """A step of the action moves the plant a sample later or earlier."""
    inner = oven._learner
    tracked = fit_tracked(inner.memory, inner.code, inner.problem, inner.experience.prediction())
    plant = tracked._replace(error=np.zeros_like(tracked.error))
    policy = Controller.of_laws(
        [LastAction("before", "heat")],
        {},
        {"heat": 1.0},
        observation_space=inner.problem.states.space,
        action_space=inner.problem.actions.space,
        observations=inner.problem.states.names,
        actions=inner.problem.actions.names,
        sample_time=5.0,
    )
    player = TrackedCandidates(tracked, inner.problem, Perturbation())
    player._plant = plant._replace(noise=np.zeros((1, 1)))
    starts = np.zeros((3, GAINS + 1))
    starts[:, ALIVE:] = 1.0
    starts[:, SHIFT] = (-1, 0, 1)
    early, usual, late = player.play(candidates_of(policy), starts).returns[0]
    assert early != usual != late
    assert (early - usual) * (usual - late) > 0


def test_a_nominal_design_is_asked_for() -> None:
    search = new_search(spaql.make_problem("spaql/Oven-v0", measured=False), nominal=True)
    assert search.ladder is not None
    assert search.ladder.design is None


@pytest.mark.parametrize("stop", [STEPS // 2, int(0.8 * STEPS)])
def test_an_interrupted_training_goes_on_to_the_same_bytes(
    tmp_path: Path, stop: int, oven: spaql.PlanTree
) -> None:
    part = new().learn(STEPS, callback=lambda _, row: row["training_steps"] < stop)
    part.save(tmp_path / "part.spaql")
    resumed = spaql.PlanTree.load(tmp_path / "part.spaql")
    resumed.learn(STEPS - resumed.training_steps)
    assert resumed.to_bytes() == oven.to_bytes()
    assert str(resumed.policy) == str(oven.policy)
    assert resumed.ladder == oven.ladder


def test_of_a_large_budget_treesearch_spends_the_rest_on_the_same_structure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(learner, "OWN_STEPS", STEPS)
    agent = new().learn(STEPS + 100_000)
    assert agent.policy.remembers
    assert agent.lags is None
    assert len(agent.ladder) == 1
    assert agent.training_steps >= STEPS + 100_000
    assert spaql.evaluate(agent, episodes=30, seed=5).mean > -40


def test_the_command_line_says_where_it_was_designed(tmp_path: Path) -> None:
    asked = ["train", "spaql/Oven-v0", "--algo", "plantree", "--steps", str(STEPS), "--seed", "3"]
    asked += ["--quiet", "--effort", "0.05", "--partitions", "4", "--out", str(tmp_path / "run")]
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 0, result.output
    assert "The plant is the learned one" in result.output
    assert "heat 3 samples before" in result.output
