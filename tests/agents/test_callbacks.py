"""What is called after every iteration, and what cannot be."""

from typing import Any

import pytest

import spaql


def test_all_of_a_list_are_called_and_each_can_end_the_training() -> None:
    seen: list[int] = []
    agent = spaql.SPAQL("cartpole200", rollouts=1, seed=0)
    agent.learn(
        iterations=9,
        callback=[lambda agent, row: row["iteration"] < 2, lambda agent, row: seen.append(agent.iterations)],
        progress_bar=False,
    )
    assert seen == [0, 1, 2]
    assert agent.iterations == 2


class Watcher:
    def on_step(self) -> None: ...


@pytest.mark.parametrize(
    "callback",
    [Watcher(), Watcher, "stop", 3, [print, "stop"], lambda agent: True, lambda: None],
    ids=["object", "class", "text", "number", "list", "one argument", "none"],
)
def test_what_cannot_be_called_is_refused_before_any_step(callback: Any) -> None:
    agent = spaql.SPAQL("cartpole200", rollouts=1, seed=0)
    with pytest.raises(spaql.SettingError, match="must be a function of the agent and the new row"):
        agent.learn(iterations=1, callback=callback, progress_bar=False)
    assert len(agent.history) == 0


def test_progress_is_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    spaql.SPAQL("cartpole200", seed=0, rollouts=2).learn(iterations=2)
    assert capsys.readouterr().err == ""
    spaql.SPAQL("cartpole200", seed=0, rollouts=2).learn(iterations=2, progress_bar=True)
    assert "iteration 2" in capsys.readouterr().err
