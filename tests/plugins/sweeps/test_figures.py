"""The figure of a study: learning curves of runs that are made up."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from click.testing import CliRunner

import spaql
from spaql import Run, SettingError, sweep
from spaql.cli import main
from spaql.figures import draw, read
from spaql.figures.drawing import write
from spaql.plugins.sweeps.learning_curves import compute_learning_curves
from spaql.plugins.sweeps.store import RunStore

pytest.importorskip("matplotlib")


def half_width(values: list[float]) -> float:
    return float(scipy.stats.t.ppf(0.975, len(values) - 1)) * np.std(values, ddof=1) / math.sqrt(len(values))


def put(
    store: RunStore, run: Run, files: dict[str, list[tuple[float, ...]]], fresh: float, taken: int
) -> None:
    heads = {
        "curve.csv": "interactions,mean_return,worst_start,chattering,size",
        "history.csv": "iteration,mean_return,best_return,training_steps,interactions",
    }

    def save(folder: Path) -> None:
        folder.mkdir(parents=True)
        for name, rows in files.items():
            lines = [",".join(map(str, row)) for row in rows]
            (folder / name).write_text("\n".join([heads[name], *lines]) + "\n")

    store.finish(run, save, {"fresh_return": fresh, "interactions": taken}, {})


def made_up(root: Path, seeds: int = 2, **settings: object) -> RunStore:
    """Two problems; SPAQL evaluated every 100 steps, PlanTree by its episodes, and SAC on the way."""
    store = RunStore(root)
    for problem, level in (("Pendulum-v1", -1000.0), ("CartPole-v1", 100.0)):
        for seed in range(seeds):
            given = {"problem": problem, "seed": seed}
            rows = [(i, level + 10 * i + seed, level + 99, 20 * i, 100 * (i + 1)) for i in range(5)]
            run = Run(algorithm="spaql", settings=settings, **given)
            put(store, run, {"history.csv": rows}, level + 40 + seed, 500)
            rows = [(i, level + i, level + i, 100 * i, 100 * i) for i in range(1, 121)]
            run = Run(algorithm="plantree", total_timesteps=12_000, **given)
            put(store, run, {"history.csv": rows}, level + 200 + 4 * seed, 12_000)
            points = [(at, level + at / 10, level, 0.5, 9) for at in (1_000, 2_000 + 100 * seed)]
            run = Run(algorithm="sac", total_interactions=2_000, evaluate_at=[1_000], **given)
            put(store, run, {"curve.csv": points}, level + 120 - seed, 2_000 + 100 * seed)
    return store


def test_curves_are_means_over_seeds_with_students_interval(tmp_path: Path) -> None:
    record = compute_learning_curves(made_up(tmp_path).root)
    assert [panel.problem for panel in record.panels] == ["CartPole-v1", "Pendulum-v1"]
    lines = {line.label: line for line in record.panels[1].lines}
    assert {name: line.shows for name, line in lines.items()} == {
        "SPAQL": "evaluations",
        "PlanTree": "training",
        "SAC": "curve",
    }
    spaql_line = lines["SPAQL"]
    plantree = lines["PlanTree"]
    sac = lines["SAC"]
    assert spaql_line.interactions == (100, 200, 300, 400, 500)
    assert spaql_line.mean == pytest.approx([-999.5, -989.5, -979.5, -969.5, -959.5])
    assert spaql_line.ci95 == pytest.approx([half_width([0.0, 1.0])] * 5)
    assert spaql_line.fresh_mean == -959.5
    assert spaql_line.fresh_ci95 == pytest.approx(half_width([0.0, 1.0]))
    # 120 episodes, two to a point
    assert len(plantree.mean) == 60
    assert (plantree.interactions[0], plantree.mean[0]) == (150, -998.5)
    # between two points a run is where the straight line is, and beyond its end where it ended
    assert sac.interactions == (1_000, 2_000, 2_100)
    assert sac.mean == pytest.approx([-900, -800, (-800 - 790) / 2])
    assert sac.end == 2_050
    assert "training episodes as they were played (PlanTree)" in " ".join(record.note.split())
    assert "95 % interval over 2 seeds (Student's t)" in " ".join(record.note.split())


def test_one_seed_has_no_interval_and_the_note_says_so(tmp_path: Path) -> None:
    study = made_up(tmp_path, seeds=1).root
    record = compute_learning_curves(study)
    assert "One seed each: no interval." in " ".join(record.note.split())
    draw(record)
    (curve, *_), *_ = (panel.lines for panel in record.panels)
    assert np.isnan(curve.ci95).all()


def test_groups_of_an_algorithm_are_told_apart_by_their_settings(tmp_path: Path) -> None:
    store = made_up(tmp_path, scaling=0.4, rollouts=5)
    for problem in ("Pendulum-v1", "CartPole-v1"):
        run = Run(problem=problem, algorithm="spaql", settings={"scaling": 20, "rollouts": 5})
        put(store, run, {}, 1.0, 500)
    labels = {line.label for panel in compute_learning_curves(tmp_path).panels for line in panel.lines}
    assert sorted(labels) == ["PlanTree", "SAC", "SPAQL scaling=0.4", "SPAQL scaling=20"]
    # a folder in a study is a study
    part = compute_learning_curves(tmp_path / "CartPole-v1")
    assert [panel.problem for panel in part.panels] == ["CartPole-v1"]


def test_more_groups_than_colours_are_refused(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    for scaling in range(12):
        run = Run(problem="CartPole-v1", algorithm="spaql", settings={"scaling": scaling})
        put(store, run, {}, 100.0 + scaling, 500)
    with pytest.raises(SettingError, match="12 groups of runs on CartPole-v1, and there is room for 8"):
        compute_learning_curves(tmp_path)


def test_texts_are_within_the_page_and_do_not_overlap(tmp_path: Path) -> None:
    store = made_up(tmp_path / "study")
    put(store, Run(problem="CartPole-v1", algorithm="classical", total_interactions=0), {}, 310.0, 0)
    figure = draw(compute_learning_curves(store.root))
    figure.draw_without_rendering()
    page = figure.bbox.expanded(1.001, 1.001)
    for ax in figure.axes:
        boxes = [text.get_window_extent() for text in (*ax.texts, ax.title) if text.get_text()]
        assert all(page.contains(*box.min) and page.contains(*box.max) for box in boxes)
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_a_record_is_data(tmp_path: Path) -> None:
    record = compute_learning_curves(made_up(tmp_path / "study").root)
    write(record, tmp_path / "record.json")
    assert read(tmp_path / "record.json") == record


def test_the_command_draws_a_study_that_a_sweep_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runs = spaql.grid(["cartpole200"], ["spaql", "spaql-ts"], seeds=2, iterations=3, settings={"rollouts": 2})
    sweep(runs, "study", workers=1, progress_bar=False)
    done = CliRunner().invoke(main, ["draw", "study", "curves", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output) == {"file": "curves.svg"}
    assert "SPAQL-TS" in (tmp_path / "curves.svg").read_text()


def test_what_is_no_study_is_explained(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "policy.spaql").touch()
    for words, said in (
        ([str(run), "curves"], "is a single run, and curves needs a study: give a folder written"),
        ([str(tmp_path / "none"), "curves"], "There is no folder"),
        ([str(tmp_path), "curves"], "No run is finished in"),
        ([str(tmp_path), "curves", "--step", "4"], "curves takes --out: leave out --step"),
        ([str(tmp_path), "curve"], "did you mean curves?"),
    ):
        done = CliRunner().invoke(main, ["draw", *words])
        assert done.exit_code in (1, 2)
        assert said in " ".join(done.output.split()), done.output
