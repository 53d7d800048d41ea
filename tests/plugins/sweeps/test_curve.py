"""Learning curves: a run that is evaluated while it learns."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest

import spaql
from spaql import Run, SettingError, grid, sweep
from spaql.plugins.sweeps.curve import LearningCurve, fresh_starts
from spaql.plugins.sweeps.execute import execute
from spaql.plugins.sweeps.learning_curves import compute_learning_curves
from spaql.plugins.sweeps.store import RunStore, read_columns, read_history
from spaql.plugins.sweeps.study import check, study_from
from spaql.problems import make_problem


def evaluated(**given: object) -> Run:
    return Run(
        **(
            {"problem": "cartpole200", "algorithm": "spaql", "settings": {"rollouts": 5}, "named": ()}
            | {"fresh_episodes": 6}
            | given
        )
    )


def test_a_budget_of_interactions_counts_evaluations(tmp_path: Path) -> None:
    run = evaluated(total_interactions=3_000)
    execute(run, root=str(tmp_path), checkpoint_every=2)
    taken = read_history(tmp_path / run.id)["interactions"]
    assert taken[-2] < 3_000 <= taken[-1]
    table = spaql.results(tmp_path)
    assert table["total_interactions"].tolist() == [3_000]
    assert table["interactions"].tolist() == [taken[-1]]
    assert not (tmp_path / run.id / "curve.csv").exists()


def test_a_run_by_interactions_goes_on_from_its_checkpoint_to_the_same_bytes(tmp_path: Path) -> None:
    run = evaluated(total_interactions=3_000)
    store = RunStore(tmp_path / "two")
    agent = spaql.SPAQL("cartpole200", seed=run.agent_seed, **run.settings)
    agent.learn(iterations=4, progress_bar=False)
    store.checkpoint(run).parent.mkdir(parents=True)
    agent.save(store.checkpoint(run))
    for name in ("one", "two"):
        execute(run, root=str(tmp_path / name), checkpoint_every=100)
    assert store.digest() == RunStore(tmp_path / "one").digest()


def test_a_run_is_evaluated_at_its_points_and_at_the_end(tmp_path: Path) -> None:
    plain = evaluated(iterations=30)
    run = evaluated(iterations=30, evaluate_at=(900, 1_500))
    for one, name in ((plain, "plain"), (run, "run")):
        execute(one, root=str(tmp_path / name), checkpoint_every=100)
    folder = tmp_path / "run" / run.id
    taken = read_history(folder)["interactions"]
    curve = read_columns(folder / "curve.csv")
    assert list(curve) == ["interactions", "mean_return", "worst_start", "chattering", "size"]
    first, second = (next(steps for steps in taken if steps >= at) for at in (900, 1_500))
    assert curve["interactions"].tolist() == [first, second, taken[-1]]
    # nothing else of the run has changed
    for file in ("policy.spaql", "history.csv"):
        assert (folder / file).read_bytes() == (tmp_path / "plain" / plain.id / file).read_bytes()
    result = {name: RunStore(tmp_path / name).result(run.id)["result"] for name in ("plain", "run")}
    assert result["plain"] == result["run"]
    agent = spaql.load(folder)
    assert curve["size"][-1] == agent.policy.partition.arms


def test_the_points_are_part_of_a_run() -> None:
    run = evaluated(evaluate_at=[2_000, np.int64(500), 500])
    assert run.evaluate_at == (500, 2_000)
    assert run.digest != evaluated().digest
    assert evaluated(total_interactions=5, named=("total_interactions",)).group.endswith(
        "/total_interactions=5"
    )
    for bad in (500, [1.5], [-1]):
        with pytest.raises(SettingError, match="evaluate_at"):
            evaluated(evaluate_at=bad)
    with pytest.raises(SettingError, match="spaql learns from interactions"):
        check([evaluated(total_interactions=0)])


def test_a_study_may_ask_for_curves(tmp_path: Path) -> None:
    study = {
        "problems": ["cartpole200"],
        "algorithms": ["spaql"],
        "total_interactions": 700,
        "evaluate_at": [300],
        "fresh_episodes": 3,
        "rollouts": 3,
    }
    runs = [*study_from(study), *grid(["pendulum"], ["spaql"], iterations=1)]
    assert runs[0] == grid(
        ["cartpole200"],
        ["spaql"],
        total_interactions=700,
        evaluate_at=[300],
        fresh_episodes=3,
        settings={"rollouts": 3},
    )[0]  # fmt: skip
    assert [run.evaluate_at for run in runs] == [(300,), ()]
    sweep(runs, tmp_path, workers=1, progress_bar=False)
    assert [(tmp_path / run.id / "curve.csv").exists() for run in runs] == [True, False]


class Hidden(gymnasium.Env):
    """A plant whose state cannot be set: walk to a target."""

    observation_space = gymnasium.spaces.Box(-2.0, 2.0, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._at = self.np_random.uniform(-1, 1, 1)
        self._steps = 0
        return self._at.copy(), {}

    def step(self, action):
        self._steps += 1
        self._at = np.clip(self._at + (0.1 if action else -0.1), -2, 2)
        return self._at.copy(), -float(abs(self._at[0])), False, self._steps == 10, {}


def test_an_environment_whose_state_cannot_be_set_is_evaluated_too() -> None:
    problem = make_problem(Hidden(), horizon=10)
    run = evaluated(problem="hidden", evaluate_at=(0,))
    assert fresh_starts(problem, 3, 0).size == 0
    agent = spaql.SPAQL(problem, seed=0)
    curve = LearningCurve(run)
    curve.evaluate(0, agent.policy, problem, None)
    (point,) = curve.points
    env = Hidden()
    returns = []
    for i in range(6):
        seen, _ = env.reset(seed=run.agent_seed + 1 + i)
        total = 0.0
        over = False
        while not over:
            action, _ = agent.policy.predict(seen, deterministic=True)
            seen, reward, _, over, _ = env.step(action)
            total += reward
        returns.append(total)
    assert point.mean_return == pytest.approx(np.mean(returns))
    assert point.worst_start == pytest.approx(min(returns))
    assert np.isnan(point.size)
    assert curve.to_csv().splitlines()[1].endswith(",nan")


def test_a_cut_episode_is_not_in_the_results_of_a_run(tmp_path: Path) -> None:
    run = evaluated(
        problem="MountainCar-v0", algorithm="plantree", settings={"effort": 0.02}, total_timesteps=250
    )
    execute(run, root=str(tmp_path), checkpoint_every=100)
    assert np.isnan(read_history(tmp_path / run.id)["mean_return"]).tolist() == [False, True]
    result = RunStore(tmp_path).result(run.id)["result"]
    assert result["best_return"] == -200
    assert "mean_return" not in result
    (panel,) = compute_learning_curves(tmp_path).panels
    assert panel.lines[0].mean == (-200.0,)
