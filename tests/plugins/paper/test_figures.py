"""The paper's figures from a small study: the numbers of the records, and that they can be drawn."""

import csv
import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from spaql import MissingExtraError, SettingError, sweep
from spaql.figures import draw, read, redraw
from spaql.figures.style import _apart
from spaql.plugins.paper import study as paper
from spaql.plugins.paper.curves import CurvesRecord
from spaql.plugins.paper.episodes import EpisodesRecord
from spaql.plugins.paper.figures import FIGURES, paper_figures
from spaql.plugins.paper.scaling import ScalingRecord
from spaql.plugins.sweeps.groups import thinned
from spaql.plugins.sweeps.store import RunStore

pytest.importorskip("matplotlib")

pytestmark = [pytest.mark.slow, pytest.mark.long]  # all share a study or a training

SIZE = paper.Size(seeds=2, scaling_iterations=1, iterations=4, trpo_batches=1, fresh_episodes=3)
DRAWN = 4
"""Files of each figure: the record, and three formats."""


@dataclasses.dataclass(frozen=True)
class Study:
    scaling: RunStore
    long: RunStore
    out: Path

    def record(self, name: str):
        return read(self.out / "data" / f"{name}.json")

    def rows(self, problem: str, algorithm: str) -> list[list[dict[str, float]]]:
        """Read the histories of the long runs, without spaql."""
        scaling = paper.CHOSEN[problem][algorithm]
        tables = []
        for seed in range(SIZE.seeds):
            path = self.long.root / f"{problem}/{algorithm}/scaling={scaling}/seed={seed}/history.csv"
            with path.open() as file:
                tables.append([{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)])
        return tables

    def fresh(self, store: RunStore, group: str) -> np.ndarray:
        files = [store.root / group / f"seed={seed}" / "result.json" for seed in range(SIZE.seeds)]
        return np.array([json.loads(file.read_text())["result"]["fresh_return"] for file in files])


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    root = tmp_path_factory.mktemp("study")
    for name, runs in (("scaling", paper.scaling_runs(SIZE)), ("long", paper.long_runs(SIZE))):
        assert not sweep(runs, root / name, workers=2, progress_bar=False).failed
    study = Study(RunStore(root / "scaling"), RunStore(root / "long"), root / "out")
    assert len(paper_figures(study.scaling, study.long, SIZE, study.out)) == DRAWN * len(FIGURES)
    return study


def half_width(values: np.ndarray) -> float:
    return float(scipy.stats.t.ppf(0.975, len(values) - 1)) * values.std(ddof=1) / math.sqrt(len(values))


def test_every_figure_is_written_in_three_formats(study: Study) -> None:
    for name in FIGURES:
        for suffix, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
            assert (study.out / "figures" / f"{name}.{suffix}").read_bytes().startswith(start)


@pytest.mark.parametrize("problem", ["pendulum", "pendulum5", "cartpole200"])
def test_curves_are_means_over_the_seeds(study: Study, problem: str) -> None:
    names = {"pendulum": "02-curves-pendulum", "pendulum5": "04-curves-pendulum5"}
    record = study.record(names.get(problem, "07-curves-cartpole"))
    assert isinstance(record, CurvesRecord)
    assert [curve.algorithm for curve in record.curves] == ["aql", "spaql", "spaql-ts"]
    for curve in record.curves:
        tables = study.rows(problem, curve.algorithm)
        assert curve.iteration == tuple(range(SIZE.iterations + 1))
        assert curve.shows == ("mean_return" if curve.algorithm == "aql" else "best_return")
        for i in range(SIZE.iterations + 1):
            at = {name: np.array([table[i][name] for table in tables]) for name in tables[0][0]}
            assert curve.mean[i] == pytest.approx(at[curve.shows].mean())
            assert curve.ci95[i] == pytest.approx(half_width(at[curve.shows]))
            assert curve.arms[i] == pytest.approx(at["arms"].mean())
            assert curve.training_steps[i] == pytest.approx(at["training_steps"].mean())
            assert curve.interactions[i] == pytest.approx(at["interactions"].mean())
        scaling = paper.CHOSEN[problem][curve.algorithm]
        fresh = study.fresh(study.long, f"{problem}/{curve.algorithm}/scaling={scaling}")
        assert curve.fresh_mean == pytest.approx(fresh.mean())
        assert curve.fresh_ci95 == pytest.approx(half_width(fresh))
    assert record.random_mean == pytest.approx(paper.random_returns(problem, SIZE).mean())


def test_scaling_is_judged_by_fresh_returns(study: Study) -> None:
    record = study.record("01-scaling-pendulum")
    assert isinstance(record, ScalingRecord)
    assert record.scalings == paper.SCALINGS
    assert [panel.problem for panel in record.panels] == ["pendulum", "pendulum-scaled"]
    for panel in record.panels:
        for series in panel.series:
            fresh = np.array(
                [
                    study.fresh(study.scaling, f"{panel.problem}/{series.algorithm}/scaling={xi}")
                    for xi in paper.SCALINGS
                ]
            )
            np.testing.assert_allclose(series.mean, fresh.mean(1))
            np.testing.assert_allclose(series.ci95, [half_width(row) for row in fresh])
            assert series.level == pytest.approx(fresh[1:].mean())
            assert series.spread == pytest.approx(fresh[1:].mean(1).std(ddof=1))


@pytest.mark.parametrize("name", ["03-episode-pendulum", "05-episode-pendulum5"])
def test_an_episode_of_pendulum_obeys_its_equations(study: Study, name: str) -> None:
    record = study.record(name)
    assert isinstance(record, EpisodesRecord)
    assert [trace.algorithm for trace in record.traces] == ["random", "aql", "spaql", "spaql-ts"]
    for trace in record.traces:
        angle = math.atan2(record.start[1], record.start[0])
        speed = record.start[2]
        total = 0.0
        assert trace.angle[0] == pytest.approx(angle)
        for torque, seen in zip(trace.action, trace.angle[1:], strict=True):
            upright = (angle + math.pi) % math.tau - math.pi
            total -= upright**2 + 0.1 * speed**2 + 0.001 * torque**2
            speed = min(max(speed + (15 * math.sin(angle) + 3 * torque) * 0.05, -8), 8)
            angle += speed * 0.05
            assert seen == pytest.approx(angle, abs=1e-3)
        assert len(trace.action) == 200
        assert trace.total == pytest.approx(total, rel=1e-3)
        assert set(trace.action) <= {-2, -1, 0, 1, 2} or name.endswith("pendulum")


def test_an_episode_shows_the_median_agent(study: Study) -> None:
    record = study.record("08-episode-cartpole")
    assert isinstance(record, EpisodesRecord)
    for trace in record.traces[1:]:
        fresh = study.fresh(study.long, trace.run.rpartition("/")[0])
        assert trace.fresh_return == fresh.min()  # of two
        assert set(trace.action) <= {-10, 10}
        assert bool(trace.ending) == (len(trace.action) < 200)
        assert (abs(trace.angle[-1]) > math.radians(12)) == (trace.ending == "pole falls")


def test_trpo_is_left_out_where_it_was_not_run(study: Study) -> None:
    record = study.record("09-trpo-pendulum")
    assert isinstance(record, CurvesRecord)
    assert [curve.algorithm for curve in record.curves] == ["aql", "spaql", "spaql-ts"]
    assert "2 of its 2 runs are not finished" in record.note
    assert not any(curve.arms for curve in record.curves)


def test_trpo_is_shown_where_it_was_run(study: Study, tmp_path: Path) -> None:
    """With folders as TRPO's runs leave them, which takes neither torch nor time."""
    long = RunStore(tmp_path)
    for run in paper.long_runs(SIZE):
        long.folder(run).parent.mkdir(parents=True, exist_ok=True)
        long.folder(run).symlink_to(study.long.folder(run))
    for run in paper.trpo_runs(SIZE):
        folder = long.folder(run)
        folder.mkdir(parents=True)
        low = 10 + run.seed
        high = 20 + run.seed
        (folder / "history.csv").write_text(
            "iteration,mean_return,best_return,training_steps,interactions\n"
            f"0,{low},{low},0,100\n1,{high},{high},4000,4200\n"
        )
        content = {"run": run.as_data(), "result": {"fresh_return": 30.0 + run.seed}}
        (folder / "result.json").write_text(json.dumps(content))
    paper_figures(study.scaling, long, SIZE, tmp_path / "out", only=["10-trpo-cartpole"])
    record = read(tmp_path / "out" / "data" / "10-trpo-cartpole.json")
    assert isinstance(record, CurvesRecord)
    trpo = record.curves[-1]
    assert (trpo.algorithm, trpo.shows) == ("trpo", "mean_return")
    assert (trpo.mean, trpo.training_steps, trpo.fresh_mean) == ((10.5, 20.5), (0.0, 4000.0), 30.5)
    assert "left out" not in record.note


@pytest.mark.parametrize("name", ["02-curves-pendulum", "08-episode-cartpole"])
def test_equal_studies_give_equal_files(study: Study, tmp_path: Path, name: str) -> None:
    for path in paper_figures(study.scaling, study.long, SIZE, tmp_path, only=[name]):
        assert path.read_bytes() == (study.out / path.relative_to(tmp_path)).read_bytes()


@pytest.mark.parametrize("name", ["06-scaling-cartpole", "07-curves-cartpole"])
def test_a_record_is_enough_to_draw(study: Study, tmp_path: Path, name: str) -> None:
    for path in redraw(study.out / "data" / f"{name}.json", tmp_path):
        assert path.read_bytes() == (study.out / "figures" / path.name).read_bytes()


@pytest.mark.parametrize("name", FIGURES)
def test_axes_are_labelled_and_texts_do_not_overlap(study: Study, name: str) -> None:
    figure = draw(study.record(name))
    figure.draw_without_rendering()
    outer = [ax for ax in figure.axes if ax.get_subplotspec().is_last_row()]
    assert all(ax.get_xlabel() for ax in outer)
    assert all(ax.get_ylabel() for ax in figure.axes if ax.get_subplotspec().is_first_col())
    page = figure.bbox.expanded(1.001, 1.001)
    for ax in figure.axes:
        boxes = [text.get_window_extent() for text in (*ax.texts, ax.title) if text.get_text()]
        assert all(page.contains(*box.min) and page.contains(*box.max) for box in boxes)
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert not any(box.overlaps(ax.get_window_extent()) for box in boxes)


def test_thinning_keeps_both_ends() -> None:
    for n in (1, 2, 200, 201, 2001):
        kept = thinned(n)
        assert len(kept) <= 200
        assert kept[0] == 0
        assert kept[-1] == n - 1
        assert (np.diff(kept) > 0).all()


def test_labels_keep_their_distance() -> None:
    moved = _apart([0.1, 0.5, 0.52, 0.53], 0.1)
    assert (np.diff(moved) > 0.0999).all()
    assert moved[0] == 0.1


def test_what_cannot_be_drawn_is_said(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(tmp_path)
    with pytest.raises(SettingError, match="There is no figure 11"):
        paper_figures(store, store, SIZE, tmp_path, only=["11"])
    with pytest.raises(SettingError, match="6 of 6 runs are not finished"):
        paper_figures(store, store, SIZE, tmp_path, only=["02-curves-pendulum"])
    with pytest.raises(SettingError, match="Cannot read"):
        read(tmp_path / "none.json")
    (tmp_path / "other.json").write_text('{"kind": "curves"}')
    with pytest.raises(SettingError, match="not the record of a figure"):
        read(tmp_path / "other.json")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"spaql\[plot\]"):
        draw(study.record("02-curves-pendulum"))


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = "import sys, spaql.figures; sys.exit(bool({'matplotlib', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
