"""One episode, or one run, has no interval: no command prints ± of it, and JSON has null."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import spaql
from spaql.agents.tries import Try, shown_try, tries_csv
from spaql.cli import main
from spaql.evaluation.result_tables import robustness_cells
from spaql.evaluation.robustness import RobustnessRow

pytestmark = pytest.mark.slow  # all share a study or a training


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("single")
    agent = spaql.SPAQL("cartpole200", rollouts=2, seed=0).learn(iterations=3, progress_bar=False)
    agent.save(folder / "one.spaql")
    runs = spaql.grid(["cartpole200"], ["spaql"], seeds=1, iterations=2, fresh_episodes=1, rollouts=[2])
    assert not spaql.sweep(runs, folder / "study", workers=1, progress_bar=False).failed
    return folder


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("evaluate one.spaql --episodes 1", ["ci95"]),
        ("simplify one.spaql --episodes 1", ["trees", 0, "ci95"]),
        ("study results study", ["groups", 0, "fresh_return", "ci95"]),
    ],
)
def test_commands_print_the_value_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: str, keys: list[str | int]
) -> None:
    monkeypatch.chdir(folder)
    shown = CliRunner().invoke(main, words.split())
    assert shown.exit_code == 0, shown.output
    assert "±" not in shown.stdout
    data = json.loads(CliRunner().invoke(main, [*words.split(), "--json"]).stdout)
    for key in keys:
        data = data[key]
    assert data is None


def test_the_store_and_its_table_hold_no_interval(folder: Path) -> None:
    (file,) = (folder / "study").rglob("result.json")
    assert '"fresh_ci95": null' in file.read_text(encoding="utf-8")
    assert math.isnan(spaql.results(folder / "study")["fresh_ci95"][0])


def test_a_try_of_one_selection_episode() -> None:
    one = Try(7, np.array([4.0]), 20, 4, "leaf", 600, 600)
    assert shown_try(0, 2, one) == "try 1 of 2: seed 7, 4.0 in 1 selection episode, 4 leaves"
    assert "nan" not in tries_csv([7], [one], 0)


def test_a_changed_plant_that_was_tried_once() -> None:
    rows = [RobustnessRow(name, 5.0, math.nan, 5.0, -1.0, math.nan) for name in ("nominal", "noise 1 %")]
    cells = robustness_cells(rows)[1]
    assert (cells["return"], cells["against nominal"]) == ("5.0", "-1.0")


def test_a_card_of_one_episode(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("scipy")
    from spaql.plugins.page.card import policy_card

    file = folder / "one.spaql"
    page = policy_card(file, spaql.load(file), episodes=1)
    returned = spaql.evaluate(spaql.load(file), episodes=1).mean
    assert f"<b>{returned:.1f}</b><span>return of 1 fresh episode" in page
