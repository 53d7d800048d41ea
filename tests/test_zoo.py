"""The zoo: its files are what its entries say, and the same seed leads to the same bytes."""

import dataclasses
import runpy
from pathlib import Path

import pytest

import spaql
from spaql import zoo
from spaql.plugins.compare.study import PROBLEMS
from spaql.registration import HORIZONS
from spaql.zoo import entry_from

ROOT = Path(__file__).parents[1]
CHEAP = ("cartpole-treesearch", "dc-motor-treesearch")
"""Trained again in every test run: a few seconds each."""


def test_it_covers_the_problems_of_the_comparison_and_the_plants() -> None:
    found = {(one.problem, one.algorithm) for one in zoo.entries()}
    assert found >= {(problem, kind) for problem in PROBLEMS for kind in ("plantree", "treesearch")}
    plants = ("DCMotor", "Oven", "QuadrupleTank", "QuadrupleTankFixed", "CartPoleSwingUp")
    assert found >= {(f"spaql/{name}-v0", "treesearch") for name in plants}
    assert {f"spaql/{name}-v0" for name in plants} <= set(HORIZONS)


def test_no_seed_is_selected_and_the_files_are_small() -> None:
    assert {one.seed for one in zoo.entries()} == {0}
    assert sum(len(zoo.content(name)) for name in zoo.names()) < 300_000
    assert {one.file_bytes - len(zoo.content(one.name)) for one in zoo.entries()} == {0}


def test_the_page_has_the_figures_of_the_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    made = runpy.run_path(str(ROOT / "benchmarks" / "zoo.py"))
    found = made["page"](zoo.entries())
    assert found == made["PAGE"].read_text(encoding="utf-8"), "run `python benchmarks/zoo.py --only page`"
    assert list(made["RECIPES"]) == zoo.names()


def test_an_entry_is_read_back_from_plain_data() -> None:
    one = zoo.entry("oven-treesearch")
    assert entry_from(dataclasses.asdict(one)) == one


@pytest.mark.parametrize("name", zoo.names())
def test_a_controller_is_what_its_entry_says(name: str) -> None:
    one = zoo.entry(name)
    design = zoo.load(name)
    controller = design.controller
    assert design.problem.name == one.problem
    assert (controller.n_leaves, controller.n_numbers) == (one.leaves, one.numbers)
    assert design.origin == {
        "algorithm": one.algorithm,
        "seed": one.seed,
        "total_timesteps": one.total_timesteps,
        "interactions": one.interactions,
    }
    fresh = spaql.evaluate(design, episodes=one.episodes, seed=one.evaluation_seed)
    # Another machine may round a sine otherwise, and an episode near a boundary then takes another way.
    assert fresh.mean == pytest.approx(one.mean, abs=max(1e-9 * abs(one.mean), 0.5 * one.ci95))


def test_a_file_can_be_saved_and_read_again(tmp_path: Path) -> None:
    zoo.load("cartpole-treesearch").save(tmp_path / "again.spaql")
    assert (tmp_path / "again.spaql").read_bytes() == zoo.content("cartpole-treesearch")
    assert isinstance(spaql.load(tmp_path / "again.spaql"), spaql.Design)


def retrained(name: str, folder: Path) -> bytes:
    one = zoo.entry(name)
    made = zoo.train(one.problem, one.algorithm, seed=one.seed, total_timesteps=one.total_timesteps)
    made.save(folder / "made.spaql")
    return (folder / "made.spaql").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEAP)
def test_the_same_seed_leads_to_the_same_bytes(name: str, tmp_path: Path) -> None:
    assert retrained(name, tmp_path) == zoo.content(name), "make it again: python benchmarks/zoo.py"


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in zoo.names() if name not in CHEAP])
def test_the_same_seed_leads_to_the_same_bytes_for_the_others(name: str, tmp_path: Path) -> None:
    assert retrained(name, tmp_path) == zoo.content(name), "make it again: python benchmarks/zoo.py"


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(spaql.SettingError, match="did you mean cartpole-treesearch"):
        zoo.load("cartpole-treeserch")
