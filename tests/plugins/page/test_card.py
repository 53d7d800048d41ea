"""The policy card says what is so, on one page that needs no other file."""

import hashlib
import html
import re
from pathlib import Path

import pytest

import spaql

pytest.importorskip("matplotlib")

AGENTS = {
    "cartpole200": lambda: spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1),
    "pendulum5": lambda: spaql.SPAQL("pendulum5", rollouts=5, seed=1),
}


def make_card(source: spaql.Agent | spaql.Design, path: Path) -> str:
    from spaql.plugins.page.card import policy_card

    source.save(path)
    return policy_card(path, spaql.load(path), episodes=20)


@pytest.mark.parametrize("name", ["cartpole200", pytest.param("pendulum5", marks=pytest.mark.long)])
def test_it_holds_all_that_was_measured(name: str, tmp_path: Path) -> None:
    agent = AGENTS[name]().learn(iterations=50, progress_bar=False)
    page = make_card(agent, tmp_path / "a.spaql")
    fresh = spaql.evaluate(agent, episodes=20)
    assert f"{fresh.mean:.1f} ± {fresh.ci95:.1f}" in page
    assert hashlib.sha256((tmp_path / "a.spaql").read_bytes()).hexdigest() in page
    assert html.escape(str(spaql.controller_of(agent))) in page
    assert f"{int(agent.history.last()['interactions']):,}" in page
    for part in ("What it controls", "What it returns"):
        assert f"<h2>{part}</h2>" in page
    assert not re.search(r'(src|href)="(?!#|data:)|url\((?!#)|@import', page)


@pytest.mark.long
def test_a_controller_and_a_plant_of_ones_own_have_cards_too(tmp_path: Path) -> None:
    agent = AGENTS["cartpole200"]().learn(iterations=20, progress_bar=False)
    controller = spaql.Design(spaql.controller_of(agent), agent.problem, {"changed": "<by hand>"})
    assert "changed &lt;by hand&gt;" in make_card(controller, tmp_path / "c.spaql")
    other = spaql.SPAQL("MountainCar-v0", horizon=50, rollouts=2, seed=0).learn(
        iterations=2, progress_bar=False
    )
    assert "The exact rules" in make_card(other, tmp_path / "m.spaql")


def test_a_policy_of_many_steps_is_described_without_rules(tmp_path: Path) -> None:
    agent = spaql.AQL("cartpole200", rollouts=2, seed=0).learn(iterations=2, progress_bar=False)
    page = make_card(agent, tmp_path / "aql.spaql")
    assert "spaql show --step" in page
    assert "The exact rules" not in page


@pytest.mark.slow
def test_the_ladder_is_on_the_page(tmp_path: Path) -> None:
    agent = spaql.TreeSearch("spaql/Oven-v0", seed=0).learn(total_timesteps=20_000, progress_bar=False)
    assert "<h2>The ladder</h2>" in make_card(agent, tmp_path / "oven.spaql")


def test_broken_constraints_are_on_the_page(tmp_path: Path) -> None:
    problem = spaql.make_problem("CartPole-v1", cost="cart_position**2", constraints=["pole_angle < 0.001"])
    agent = spaql.PlanTree(problem, seed=0, effort=0.02).learn(200)
    page = make_card(agent, tmp_path / "agent.spaql")
    assert "<span>episodes that violate pole_angle &lt; 0.001</span>" in page
