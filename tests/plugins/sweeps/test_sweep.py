"""Sweeps as they are: real processes, real files."""

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import spaql
from spaql import Run, SettingError, grid, sweep
from spaql.agents import agent_type
from spaql.cli import main
from spaql.plugins.sweeps.execute import execute
from spaql.plugins.sweeps.store import RunStore

pytestmark = pytest.mark.slow  # all share a study or a training

SMALL = {"rollouts": 5}


def small_grid(seeds: int = 3, iterations: int = 10) -> list[Run]:
    return grid(
        ["cartpole200"], ["spaql", "spaql-ts"], seeds=seeds, iterations=iterations, fresh_episodes=5,
        settings=SMALL, scaling=[0.4, 20],
    )  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sweep with two workers."""
    out = tmp_path_factory.mktemp("store")
    summary = sweep(small_grid(), out, workers=2, progress_bar=False)
    assert (summary.runs, summary.finished, summary.failed) == (12, 12, {})
    return out


PLANT = """
import os, time
import gymnasium, numpy as np

class Plant(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1), {}

    def step(self, action):
        MISHAP
        return np.zeros(1), 1.0, False, False, {}

gymnasium.register("NAME-v0", Plant, max_episode_steps=5)
"""


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Give a function that writes a module with an environment that has a mishap."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, mishap: str) -> str:
        (tmp_path / f"{name}.py").write_text(PLANT.replace("MISHAP", mishap).replace("NAME", name))
        return f"{name}:{name}-v0"

    return write


def test_the_worker_count_does_not_change_a_byte(finished: Path, tmp_path: Path) -> None:
    sweep(small_grid(), tmp_path, workers=1, progress_bar=False)
    assert RunStore(tmp_path).digest() == RunStore(finished).digest()


def test_a_sweep_runs_what_is_missing_and_nothing_else(finished: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*.json") if path.parent != finished}
    summary = sweep(small_grid(seeds=4), finished, workers=2, progress_bar=False)
    assert (summary.runs, summary.finished_before, summary.finished) == (16, 12, 4)
    assert all(path.stat().st_mtime_ns == written for path, written in before.items())
    assert json.loads((finished / "summary.json").read_text())["finished"] == 4


def test_another_study_in_the_same_folders_is_refused(finished: Path) -> None:
    with pytest.raises(SettingError, match="holds a run with iterations = 10, not 20"):
        sweep(small_grid(iterations=20), finished, workers=1, progress_bar=False)


def test_nothing_is_left_in_the_working_folder(finished: Path) -> None:
    assert [path for path in (finished / ".work").rglob("*") if path.is_file()] == []


def test_an_interrupted_run_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    run = small_grid(iterations=30)[0]
    plain = RunStore(tmp_path / "plain")
    broken = RunStore(tmp_path / "broken")
    execute(run, root=str(plain.root), checkpoint_every=100)

    agent = spaql.SPAQL(run.problem, seed=run.agent_seed, **run.settings)
    agent.learn(iterations=17, checkpoint=broken.checkpoint(run), checkpoint_every=8, progress_bar=False)
    assert spaql.load(broken.checkpoint(run)).iterations == 16
    execute(run, root=str(broken.root), checkpoint_every=100)
    assert broken.digest() == plain.digest()


def test_runs_by_steps_go_on_to_the_same_bytes_and_are_in_the_table(tmp_path: Path) -> None:
    quick = {"effort": 0.01, "leaves": 4, "members": 2}
    run = Run(
        problem="CartPole-v1", algorithm="plantree", total_timesteps=400, settings=quick, named=(),
        fresh_episodes=5,
    )  # fmt: skip
    plain = RunStore(tmp_path / "plain")
    broken = RunStore(tmp_path / "broken")
    assert execute(run, root=str(plain.root), checkpoint_every=100).interactions == 400
    agent = spaql.PlanTree(run.problem, seed=run.agent_seed, **quick)
    agent.learn(
        total_timesteps=400,
        callback=lambda _, row: row["training_steps"] < 200,
        checkpoint=broken.checkpoint(run),
        checkpoint_every=1,
        progress_bar=False,
    )
    assert 200 <= spaql.load(broken.checkpoint(run)).training_steps < 400
    execute(run, root=str(broken.root), checkpoint_every=100)
    assert broken.digest() == plain.digest()
    execute(small_grid()[0], root=str(plain.root), checkpoint_every=100)
    table = spaql.results(plain.root)
    assert table["algorithm"].tolist() == ["plantree", "spaql"]
    assert table["total_timesteps"][0] == table["interactions"][0] == 400
    assert np.isnan(table["total_timesteps"][1])
    assert np.isnan(table["iterations"][0])
    assert (table["leaves"][0], table["final_leaves"][0] <= 4) == (4, True)
    shown = CliRunner().invoke(main, ["study", "results", str(plain.root)])
    assert shown.exit_code == 0, shown.output
    assert "total_timesteps" in shown.stdout
    with pytest.raises(SettingError, match="total_timesteps = 400, not 500"):
        plain.missing([dataclasses.replace(run, total_timesteps=500, seed=1)])


def test_a_damaged_checkpoint_is_as_good_as_none(tmp_path: Path) -> None:
    run = small_grid()[0]
    store = RunStore(tmp_path)
    store.checkpoint(run).parent.mkdir(parents=True)
    store.checkpoint(run).write_bytes(b"spaql\0\0\1 nonsense")
    assert execute(run, root=str(tmp_path), checkpoint_every=100).interactions > 0


def test_a_checkpoint_of_another_run_is_not_gone_on_with(tmp_path: Path) -> None:
    run = small_grid()[0]
    other = dataclasses.replace(run, settings={**run.settings, "rollouts": 8})
    assert other.id == run.id
    store = RunStore(tmp_path / "after")
    agent = spaql.SPAQL(run.problem, seed=run.agent_seed, **run.settings)
    agent.learn(iterations=8, checkpoint=store.checkpoint(run), checkpoint_every=8, progress_bar=False)
    for root in ("after", "plain"):
        execute(other, root=str(tmp_path / root), checkpoint_every=100)
    assert store.digest() == RunStore(tmp_path / "plain").digest()


VARIANT = """
from spaql.algorithms import SPAQLLearner
from spaql.agents import SPAQL

class VariantLearner(SPAQLLearner):
    name = "variant"

class Variant(SPAQL):
    learner_type = VariantLearner
"""


def test_a_variant_of_ones_own_goes_on_from_its_checkpoint_in_a_fresh_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_variant.py").write_text(VARIANT)
    run = Run(problem="cartpole200", algorithm="own_variant:variant", iterations=12, settings=SMALL)
    sweep([run], tmp_path / "plain", workers=1, progress_bar=False)
    store = RunStore(tmp_path / "broken")
    # A checkpoint of other experience, so that the result tells whether it was gone on with.
    agent = agent_type(run.algorithm)(run.problem, seed=0, **run.settings)
    agent.learn(iterations=12, checkpoint=store.checkpoint(run), checkpoint_every=8, progress_bar=False)
    sweep([run], store.root, workers=1, progress_bar=False)
    assert store.digest() != RunStore(tmp_path / "plain").digest()


def test_a_run_that_fails_is_reported_and_the_rest_goes_on(tmp_path: Path, plant) -> None:
    bad = Run(problem=plant("raising", 'raise OSError("no power")'), algorithm="spaql", iterations=2)
    good = small_grid(seeds=1)
    summary = sweep([bad, *good], tmp_path / "store", workers=2, progress_bar=False)
    assert summary.finished == len(good)
    assert list(summary.failed) == [bad.id]
    assert "no power" in summary.failed[bad.id]


def test_a_run_that_kills_its_worker_does_not_take_others_with_it(tmp_path: Path, plant) -> None:
    bad = Run(problem=plant("deadly", "os._exit(9)"), algorithm="spaql", iterations=2)
    good = small_grid()
    summary = sweep([bad, *good], tmp_path / "store", workers=2, progress_bar=False)
    assert summary.finished == len(good)
    assert list(summary.failed) == [bad.id]


def test_a_run_that_dies_once_is_tried_again(tmp_path: Path, plant) -> None:
    mishap = f"""
        try:
            os.mkdir({str(tmp_path / "happened")!r})
            os._exit(9)
        except FileExistsError:
            pass"""
    run = Run(problem=plant("unlucky", mishap), algorithm="spaql", iterations=2)
    summary = sweep([run], tmp_path / "store", workers=1, progress_bar=False)
    assert (summary.finished, summary.failed) == (1, {})


@pytest.mark.parametrize("how", ["script", "stdin"])
def test_a_script_that_workers_cannot_import_is_explained(tmp_path: Path, how: str) -> None:
    code = f"""
import spaql
runs = spaql.grid(["cartpole200"], ["spaql"], seeds=9, iterations=1)
spaql.sweep(runs, {str(tmp_path / "store")!r}, workers=1)
"""
    (tmp_path / "script.py").write_text(code)
    command, given = ([str(tmp_path / "script.py")], "") if how == "script" else (["-"], code)
    done = subprocess.run(
        [sys.executable, *command], input=given, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "Every worker process dies" in done.stderr
    if how == "script":
        assert "if __name__ ==" in done.stderr


def test_an_interrupted_sweep_can_be_begun_again_in_the_same_process(tmp_path: Path) -> None:
    runs = small_grid()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spaql.plugins.sweeps.sweeps.SweepProgress.update", interrupt)
        with pytest.raises(KeyboardInterrupt):
            sweep(runs, tmp_path, workers=2, progress_bar=False)
    summary = sweep(runs, tmp_path, workers=2, progress_bar=False)
    assert summary.finished_before + summary.finished == len(runs)


def test_an_error_that_cannot_be_sent_to_another_process_is_told(tmp_path: Path, plant) -> None:
    mishap = """
        class Odd(Exception):
            def __init__(self, a, b):
                super().__init__("the real reason")
        raise Odd(1, 2)"""
    run = Run(problem=plant("odd", mishap), algorithm="spaql", iterations=2)
    summary = sweep([run], tmp_path / "store", workers=1, progress_bar=False)
    assert "the real reason" in summary.failed[run.id]


STUDY = """
problems = ["cartpole200"]
algorithms = ["spaql", "spaql-ts"]
seeds = 6
iterations = 10
fresh_episodes = 5
rollouts = 5
[grid]
scaling = [0.4, 20]
"""


def test_two_drivers_share_the_work(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    command = [sys.executable, "-m", "spaql", "study", "run", str(tmp_path / "study.toml")]
    command += ["--out", str(tmp_path / "store"), "--workers", "1", "--json", "--quiet"]
    drivers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    summaries = [json.loads(driver.communicate(timeout=120)[0]) for driver in drivers]
    assert sum(summary["finished"] for summary in summaries) == 24
    for summary in summaries:
        assert summary["finished_before"] + summary["finished"] + summary["finished_elsewhere"] == 24
    sweep(spaql.read_study(tmp_path / "study.toml"), tmp_path / "alone", workers=1, progress_bar=False)
    assert RunStore(tmp_path / "store").digest() == RunStore(tmp_path / "alone").digest()


def test_workers_die_with_their_driver(tmp_path: Path, plant) -> None:
    plant("slow", "time.sleep(0.2)")
    (tmp_path / "study.toml").write_text('problems = ["slow:slow-v0"]\nalgorithms = ["spaql"]\nseeds = 2\n')
    command = [
        sys.executable,
        "-m",
        "spaql",
        "study",
        "run",
        str(tmp_path / "study.toml"),
        "--out",
        str(tmp_path / "s"),
    ]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    driver = subprocess.Popen([*command, "--workers", "2"], env=environment, start_new_session=True)
    store = RunStore(tmp_path / "s")
    deadline = time.monotonic() + 60
    while len(store.running()) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    driver.kill()
    driver.wait()
    deadline = time.monotonic() + 10
    while (alive := _session(driver.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive == []
    assert store.running() == []


def _session(leader: int) -> list[str]:
    listed = subprocess.run(["ps", "-s", str(leader), "-o", "stat=,args="], capture_output=True, text=True)
    return [line for line in listed.stdout.splitlines() if not line.startswith("Z")]


def test_results_are_a_tidy_table(finished: Path, tmp_path: Path) -> None:
    table = spaql.results(finished)
    names = [
        "problem",
        "algorithm",
        "rollouts",
        "scaling",
        "seed",
        "iterations",
        "fresh_return",
        "fresh_ci95",
    ]
    assert list(table)[:8] == names
    assert table.runs >= 12
    assert table["fresh_return"].dtype == np.float64
    order = list(zip(table["algorithm"], table["scaling"], table["seed"], strict=True))
    assert order == sorted(order)
    assert spaql.results(finished)["arms"].tolist() == table["arms"].tolist()


def test_tables_are_the_same_in_every_form(finished: Path, tmp_path: Path) -> None:
    table = spaql.results(finished)
    table.to_csv(tmp_path / "a.csv")
    table.to_csv(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    pandas = pytest.importorskip("pandas")
    read = pandas.read_csv(tmp_path / "a.csv")
    pandas.testing.assert_frame_equal(read, pandas.DataFrame(table), check_dtype=False)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="There is no folder"):
        spaql.results(tmp_path / "absent")
    (tmp_path / "pendulum" / "spaql" / "seed=0").mkdir(parents=True)
    with pytest.raises(SettingError, match="is not the folder of a finished run"):
        spaql.results(tmp_path)
    assert spaql.results(tmp_path / "pendulum" / "spaql" / "seed=0").runs == 0
