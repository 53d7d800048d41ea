"""The comparison: its runs as data, what is measured of a policy, and what the measurements come to."""

import dataclasses
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import spaql
from spaql import Run, SettingError
from spaql.figures import draw
from spaql.plugins.compare.baselines import CLASSICAL, NETWORKS, ZOO, ClassicalPolicy
from spaql.plugins.compare.ranking import comparisons, standing_at, standings
from spaql.plugins.compare.report import curves
from spaql.plugins.compare.study import ALGORITHMS, FULL, PROBLEMS, QUICK, compare_runs
from spaql.plugins.compare.tables import details_table, returns_table
from spaql.plugins.sweeps.curve import fresh_starts
from spaql.plugins.sweeps.execute import execute
from spaql.plugins.sweeps.store import RunStore
from spaql.problems import make_problem


def small(problem: str, algorithm: str, budget: int, points: list[int], **settings: object) -> Run:
    return Run(
        problem=problem,
        algorithm=algorithm,
        total_interactions=budget,
        seed=3,
        settings=settings,
        named=("total_interactions",),
        fresh_episodes=4,
        evaluate_at=(*points, budget),
    )


def measure(run: Run, root: Path) -> None:
    execute(run, root=str(root), checkpoint_every=100)


def points(store: RunStore, run: Run) -> list[dict[str, float]]:
    head, *rows = (store.folder(run) / "curve.csv").read_text().splitlines()
    return [dict(zip(head.split(","), map(float, row.split(",")), strict=True)) for row in rows]


def replayed(policy: spaql.Policy, env_id: str, starts: np.ndarray) -> tuple[list[float], float]:
    """Play an episode from each start in Gymnasium's own environment, one step after the other."""
    env = gymnasium.make(env_id)
    plant = env.unwrapped
    returns = []
    changes = []
    for start in starts:
        env.reset()
        plant.state = np.array(start)
        look = getattr(plant, "_get_obs", None) or getattr(plant, "_get_ob", None)
        seen = look() if look else start.astype(np.float32)
        total = 0.0
        before = None
        over = False
        while not over:
            action, _ = policy.predict(seen, deterministic=True)
            if before is not None:
                changes.append(np.abs(np.subtract(action, before, dtype=np.float64)).mean())
            seen, reward, terminated, truncated, _ = env.step(action)
            total = total + float(reward)
            before = action
            over = terminated or truncated
        returns.append(total)
    return returns, float(np.mean(changes))


def test_the_first_runs_are_one_of_each_kind() -> None:
    runs = compare_runs(FULL)
    assert len({run.id for run in runs}) == len(runs)
    first = [run for run in runs if run.seed == 6000]
    assert runs[: len(first)] == first
    kinds = {(run.algorithm, run.problem) for run in first}
    assert {kind for kind in kinds if kind[0] in NETWORKS} == set(ZOO)
    assert {problem for algorithm, problem in kinds if algorithm == "classical"} == set(CLASSICAL)
    for algorithm in ("plantree", "spaql", "spaql-ts"):
        assert {problem for name, problem in kinds if name == algorithm} == set(PROBLEMS)
    for run in runs:
        assert run.seed < 6000 + (FULL.network_seeds if run.algorithm in NETWORKS else FULL.seeds)
        assert run.evaluate_at[-1] == run.total_interactions
        assert run.iterations is None


def test_runs_are_chosen_by_algorithm_problem_budget_and_seed() -> None:
    runs = compare_runs(FULL, only=["plantree", "Acrobot-v1"], budgets=[7_000], first_seed=5, seeds=2)
    assert [run.id for run in runs] == [
        f"Acrobot-v1/plantree/total_interactions=7000/seed={seed}" for seed in (5, 6)
    ]
    assert {run.algorithm for run in compare_runs(FULL, only=["CartPole-v1"])} == {
        name for name in ALGORITHMS if name in ("plantree", "spaql", "spaql-ts", "classical")
    } | {name for name, problem in ZOO if problem == "CartPole-v1"}
    with pytest.raises(SettingError, match=r"no ppp: its algorithms are plantree, .*problems Pendulum-v1"):
        compare_runs(FULL, only=["ppp"])


def test_hyperparameters_travel_with_the_run() -> None:
    (run,) = compare_runs(FULL, only=["td3", "Pendulum-v1"], seeds=1)
    assert run.id == "Pendulum-v1/td3/total_interactions=20000/seed=6000"
    assert run.settings["policy_kwargs"] == {"net_arch": [400, 300]}


@pytest.mark.parametrize(("problem", "least"), [("CartPole-v1", 499.0), ("Pendulum-v1", -210.0)])
def test_a_textbooks_controller_works_in_gymnasiums_environment(
    problem: str, least: float, tmp_path: Path
) -> None:
    run = dataclasses.replace(small(problem, "classical", 0, []), fresh_episodes=20)
    measure(run, tmp_path)
    (point,) = points(RunStore(tmp_path), run)
    made = make_problem(problem)
    starts = fresh_starts(made, 20, run.agent_seed + 1)
    returns, change = replayed(ClassicalPolicy(made), problem, starts)
    found = standings(RunStore(tmp_path))
    assert draw(curves(found, problem)).axes  # without a curve
    assert point["interactions"] == 0
    assert np.mean(returns) > least
    assert point["mean_return"] == pytest.approx(np.mean(returns))
    assert point["worst_start"] == pytest.approx(min(returns))
    assert point["chattering"] == pytest.approx(change)


def test_fresh_starts_are_drawn_as_the_environment_draws_them() -> None:
    starts = fresh_starts(make_problem("Pendulum-v1"), 200, seed=1)
    assert np.array_equal(starts, fresh_starts(make_problem("Pendulum-v1"), 200, seed=1))
    assert not np.array_equal(starts, fresh_starts(make_problem("Pendulum-v1"), 200, seed=2))
    assert np.all(np.abs(starts) <= [np.pi, 1.0])
    assert np.all(np.ptp(starts, axis=0) > [5.5, 1.8])


def test_a_run_of_spaql_counts_its_evaluations_and_is_measured_on_the_way(tmp_path: Path) -> None:
    run = small("CartPole-v1", "spaql", 6_000, [1_500, 3_000], rollouts=5)
    for name in ("one", "two"):
        measure(run, tmp_path / name)
    store = RunStore(tmp_path / "one")
    assert store.digest() == RunStore(tmp_path / "two").digest()
    history = np.genfromtxt(store.folder(run) / "history.csv", delimiter=",", names=True)
    taken = history["interactions"]
    expected = [next(steps for steps in taken if steps >= at) for at in (1_500, 3_000, 6_000)]
    measured = points(store, run)
    assert [point["interactions"] for point in measured] == sorted(set(expected))
    agent = spaql.load(store.folder(run))
    starts = fresh_starts(agent.problem, 4, run.agent_seed + 1)
    returns, change = replayed(agent.policy, "CartPole-v1", starts)
    assert measured[-1]["mean_return"] == pytest.approx(np.mean(returns))
    assert measured[-1]["chattering"] == pytest.approx(change)
    assert store.result(run.id)["result"]["interactions"] == taken[-1]


def test_a_run_of_plantree_keeps_to_its_budget(tmp_path: Path) -> None:
    run = small("CartPole-v1", "plantree", 600, [], effort=0.02, leaves=8)
    measure(run, tmp_path)
    (point,) = points(RunStore(tmp_path), run)
    agent = spaql.load(RunStore(tmp_path).folder(run))
    assert point["interactions"] == agent.history["interactions"][-1] == 600
    assert point["size"] == agent.policy.n_leaves
    returns, _ = replayed(agent.policy, "CartPole-v1", fresh_starts(agent.problem, 4, run.agent_seed + 1))
    assert point["mean_return"] == pytest.approx(np.mean(returns))


def put(store: RunStore, run: Run, rows: list[tuple[int, float]], size: int = 7) -> None:
    """Write the folder of a run whose returns are made up."""

    def save(folder: Path) -> None:
        folder.mkdir(parents=True)
        lines = [f"{steps},{value},{value - 10},0.5,{size}" for steps, value in rows]
        head = "interactions,mean_return,worst_start,chattering,size"
        (folder / "curve.csv").write_text("\n".join([head, *lines]) + "\n")

    times = [float(i) for i in range(len(rows))]
    store.finish(run, save, {"fresh_return": 0.0}, {"wall": times, "cpu": times})


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """Three seeds of PlanTree at two budgets, of SAC better at 10,000, and of a SPAQL that overshoots."""
    store = RunStore(tmp_path)
    for seed in range(3):
        at = {"first_seed": seed, "seeds": 1}
        for run in compare_runs(FULL, only=["plantree", "Pendulum-v1"], budgets=[5_000, 10_000], **at):
            put(store, run, [(run.total_interactions, -150.0 - seed)])
        (sac,) = compare_runs(FULL, only=["sac", "Pendulum-v1"], **at)
        put(store, sac, [(at, -1000.0) for at in (1000, 2000, 3000, 5000, 8000)] + [(20_050, -140.0 - seed)])
        (spaql_run,) = compare_runs(FULL, only=["spaql", "Pendulum-v1"], **at)
        put(store, spaql_run, [(4_000, -1200.0), (12_600, -1100.0), (1_000_400, -900.0)])
    return store


def test_standings_are_at_most_a_tenth_beyond(store: RunStore) -> None:
    found = standings(store)
    assert [s.at for s in found["Pendulum-v1", "plantree"]] == [5_000, 10_000]
    # 4,000 is the last point for 5,000 to 10,000, 12,600 for 15,000 to 500,000
    assert [s.at for s in found["Pendulum-v1", "spaql"]] == [5_000, 15_000, 1_000_000]
    assert [s.at for s in found["Pendulum-v1", "sac"]] == [1_000, 2_000, 3_000, 5_000, 8_000, 20_000]
    last = found["Pendulum-v1", "sac"][-1]
    assert last.interactions.tolist() == [20_050] * 3
    assert last.returns.tolist() == [-140.0, -141.0, -142.0]
    assert last.cpu.tolist() == [5.0] * 3
    assert standing_at(found["Pendulum-v1", "spaql"], 4_999) is None


def test_a_comparison_is_with_an_algorithm_of_no_more_interactions(store: RunStore) -> None:
    pairs = {(pair.ours.at, pair.theirs.algorithm): pair for pair in comparisons(standings(store))}
    assert set(pairs) == {(at, other) for at in (5_000, 10_000) for other in ("sac", "spaql")}
    assert {pair.verdict for pair in pairs.values()} == {"ahead"}
    assert pairs[10_000, "sac"].theirs.at == 8_000
    assert pairs[10_000, "spaql"].difference == pytest.approx(1200 - 151)
    for run in compare_runs(FULL, only=["plantree", "Pendulum-v1"], budgets=[20_000], first_seed=0, seeds=3):
        put(store, run, [(20_000, -150.0 - run.seed)])
    verdicts = {(d.ours.at, d.theirs.algorithm): d.verdict for d in comparisons(standings(store))}
    assert verdicts[20_000, "sac"] == "behind"


def test_one_seed_cannot_tell(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    for run in compare_runs(FULL, only=["plantree", "sac", "Pendulum-v1"], budgets=[20_000], seeds=1):
        put(store, run, [(20_000, -150.0 if run.algorithm == "sac" else -900.0)])
    (pair,) = comparisons(standings(store))
    assert pair.difference == -750
    assert pair.verdict == "cannot tell"


@pytest.mark.parametrize(("algorithm", "size"), [("plantree", "1 leaf"), ("spaql", "1 ball")])
def test_one_leaf_is_no_ball(algorithm: str, size: str, tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    for run in compare_runs(FULL, only=[algorithm, "Pendulum-v1"], budgets=[20_000], seeds=1):
        put(store, run, [(20_000, -150.0)], size=1)
    (row,) = details_table(standings(store), "Pendulum-v1")
    assert row["size"] == size


def test_a_folder_of_other_runs_is_refused(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    put(store, Run(problem="Pendulum-v1", algorithm="plantree", settings={"budget": 600}), [(600, -150.0)])
    with pytest.raises(SettingError, match="is no run of this version's comparison: name another folder"):
        standings(store)


def test_tables_leave_blank_what_was_not_measured(store: RunStore) -> None:
    found = standings(store)
    rows = {row["algorithm"]: row for row in returns_table(found, "Pendulum-v1")}
    assert rows["PlanTree"]["10,000"] == "-151.0 ± 2.5"
    assert rows["PlanTree"]["20,000"] == ""
    assert rows["SAC"]["10,000"] == ""
    assert rows["SPAQL"]["with"] == "1,000,400"
    details = details_table(found, "Pendulum-v1")
    ours = next(row for row in details if row["interactions"] == "5,000" and row["algorithm"] == "PlanTree")
    assert ours["worst seed"] == "-152.0"
    assert ours["worst start"] == "-161.0"
    assert ours["worst of all"] == "-162.0"
    assert ours["size"] == "7 leaves"
    assert len(details_table(found, "Pendulum-v1", every_point=True)) == 2 + 6 + 3


def test_the_quick_comparison_has_every_algorithm() -> None:
    assert {run.algorithm for run in compare_runs(QUICK)} == set(ALGORITHMS)
