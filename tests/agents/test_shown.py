"""What agents, controllers and results show in a notebook and at the prompt."""

import inspect
from pathlib import Path

import pytest

import spaql


@pytest.fixture(scope="module")
def agent() -> spaql.SPAQLTS:
    return spaql.SPAQLTS("cartpole200", scaling=20, rollouts=5, seed=0).learn(iterations=5)


def test_before_training_an_agent_says_what_to_do() -> None:
    agent = spaql.SPAQL("cartpole200", seed=3)
    assert repr(agent) == "SPAQL(cartpole200, seed 3, not trained)"
    for kind in (spaql.NotTrainedError, ValueError, AttributeError):  # as scikit-learn's NotFittedError
        with pytest.raises(kind, match="call learn first"):
            agent.predict([0.0, 0.0, 0.0, 0.0])


def test_everything_is_shown_short_and_as_html(agent: spaql.SPAQLTS) -> None:
    design = spaql.zoo.load("pendulum-treesearch")
    result = spaql.evaluate(agent, episodes=2)
    for thing in (agent, agent.policy, agent.problem, agent.history, design, design.policy, result):
        assert len(repr(thing)) < 200
        assert type(thing).__name__ in repr(thing)
        assert repr(thing)[:20] in thing._repr_html_()
    assert "<svg" in agent._repr_html_()
    assert "torque" in design._repr_html_()


def test_an_agent_shows_its_rules_and_writes_its_page(
    agent: spaql.SPAQLTS, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    agent.show(digits=None)
    assert capsys.readouterr().out == f"{spaql.controller_of(agent)}\n"
    agent.page(tmp_path / "page.html")
    assert "<html" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("kind", [spaql.AQL, spaql.SPAQL, spaql.SPAQLTS, spaql.PlanTree, spaql.TreeSearch])
def test_the_help_of_an_agent_has_every_keyword(kind: type[spaql.Agent]) -> None:
    documented = inspect.getdoc(kind).partition("Parameters")[2]
    for name in inspect.signature(kind).parameters:
        assert name in documented.replace(",", " ").split()
