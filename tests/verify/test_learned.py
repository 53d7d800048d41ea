"""What is proven about learned plants, and that it is said to be about these."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import spaql
from learned_plants import Affine
from spaql.cli import main
from spaql.verify import Statement


@pytest.fixture(scope="module")
def agent() -> spaql.PlanTree:
    """Return an agent of an environment without equations."""
    made = spaql.PlanTree(Affine(), seed=0, effort=0.02, horizon=60)
    return made.learn(total_timesteps=600, progress_bar=False)


def test_equations_are_asked_for_unless_the_learned_plant_is_meant(agent: spaql.PlanTree) -> None:
    with pytest.raises(spaql.SettingError, match=r"no equations are known.*--learned"):
        spaql.verify(agent)
    with pytest.raises(spaql.SettingError, match=r"There is no learned plant.*spaql.Dynamics"):
        spaql.verify(spaql.Design(agent.policy, agent.problem), learned=True)
    with pytest.raises(spaql.SettingError, match="leave out env"):
        spaql.verify(agent, "Pendulum-v1", learned=True)


def test_what_is_proven_is_about_the_learned_plant_and_says_so(agent: spaql.PlanTree) -> None:
    names = agent.model.observations
    model = agent.model
    box = dict.fromkeys(names, (-60.0, 60.0))
    asked = Statement(starts=box, allowed=box)
    verdict = spaql.verify(agent, statement=asked, learned=True, levels=5, seconds=10)
    assert "about the learned plant, not the real one" in verdict.text
    assert f"{model.steps} recorded steps" in verdict.text.replace(",", "")
    assert verdict.proven > 0.9
    # Episodes of the learned plant itself, from states that are proven.
    env = spaql.learned_plants.simulator(model).unwrapped
    rng = np.random.default_rng(0)
    tree = agent.policy
    proven = np.argwhere(verdict.status == 0)
    for cell in proven[rng.integers(len(proven), size=20)]:
        size = (verdict.high - verdict.low) / np.array(verdict.status.shape)
        env.reset(seed=0)
        env.state = verdict.low + (cell + rng.uniform(size=2)) * size
        for _ in range(100):
            env.step(tree.act(np.asarray(env.state, np.float32)[None])[0])
            assert np.all(np.abs(env.state) <= 60.0)


def test_the_command_stores_a_verdict_that_says_so(agent: spaql.PlanTree, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    agent.save(tmp_path / "a.spaql")
    words = ["verify", str(tmp_path / "a.spaql"), "--seconds", "3", "--quiet"]
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 1
    assert "--learned" in refused.stderr
    picture = tmp_path / "map.svg"
    done = CliRunner().invoke(main, [*words, "--learned", "--map", str(picture), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["learned"] is True
    assert "learned plant" in picture.read_text()
    assert "not the real one" in picture.read_text().replace("\n", " ")
    from spaql.plugins.page.card import policy_card

    page = policy_card(tmp_path / "a.spaql", agent, episodes=2)
    assert "about the learned plant, not the real one" in page
