"""What a controller is compared with after its training, and when training says that it failed."""

import numpy as np
import pytest

import spaql
from spaql.evaluation.beside import ONE_LEAF, PlainControllers, failure, is_rising
from spaql.simulate import Evaluation


def fresh(returns: list[float]) -> Evaluation:
    """Fresh episodes with these returns."""
    count = len(returns)
    return Evaluation(np.array(returns), np.full(count, 10), np.zeros((count, 1)))


def plain(**returns: float) -> PlainControllers:
    """Plain controllers with these mean returns, and a standard error of 1."""
    named = {name.replace("_", " "): value for name, value in returns.items()}
    return PlainControllers(named, dict.fromkeys(named, 1.0), 100, 1000)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        (plain(random=-50.0, always_on=-40.0), ""),
        (plain(random=-50.0, always_on=-10.0), "always on is better"),
        (plain(random=-11.0, always_on=-40.0), "random is not significantly worse"),
        (plain(random=-9.0, always_on=-11.0), "random is better"),
        (plain(random=-50.0, a_law_of_one_leaf=-10.5), ""),  # it may be no better
        (plain(random=-50.0, a_law_of_one_leaf=-1.0), f"{ONE_LEAF} is better"),
    ],
)
def test_what_is_better_is_named(others: PlainControllers, said: str) -> None:
    assert others.better(fresh([-10.0, -12.0] * 50)) == said


def test_a_failed_training_says_so_and_what_to_do() -> None:
    agent = spaql.TreeSearch("CartPole-v1", seed=0).learn(2_000, progress_bar=False)
    failed = failure(agent, fresh([9.0] * 100), plain(random=22.0))
    assert failed.startswith("Training seems to have failed: random is better.")
    assert "--tries 8" in failed
    assert "--algo plantree" in failed
    assert failure(agent, fresh([500.0] * 100), plain(random=22.0)) in (
        "",
        "The returns were still rising when the budget ended. Try more steps (--steps), several seeds "
        "(--tries 8), or --algo plantree.",
    )


@pytest.mark.parametrize(("last", "rising"), [(5.0, True), (1.0, False)])
def test_rising_returns_are_seen(last: float, rising: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = spaql.TreeSearch("CartPole-v1", seed=0).learn(2_000, progress_bar=False)
    history = {"mean_return": np.array([0.0] * 4 + [1.0] * 4 + [last] * 2)}
    monkeypatch.setattr(agent, "history", history)
    assert is_rising(agent) is rising


def test_the_best_constant_and_random_actions_are_evaluated() -> None:
    agent = spaql.TreeSearch("MountainCarContinuous-v0", seed=0).learn(5_000, progress_bar=False)
    found = spaql.evaluation.plain_controllers(agent, seed=1)
    constant = next(name for name in found.returns if name.startswith("always"))
    assert constant == "always 0.0"
    assert found.returns[constant] == 0.0
    assert found.returns["random"] < -20.0
    assert found.text.startswith("random -")
    assert found.steps >= found.episodes * 2 * 999
