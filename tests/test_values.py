"""NumPy's numbers are numbers wherever a number is given, and what is none is refused in a sentence."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spaql
from spaql.agents.run_folder import save_run
from spaql.evaluation import size_curve, stress
from spaql.values import plain, real_number, whole_number

WHOLE = (np.int64(3), np.int32(3), np.uint8(3), np.array(3))
NOT_WHOLE = (3.5, "three", None, True, np.True_, np.nan, np.inf, [3], np.arange(2), 1j)


@pytest.mark.parametrize("value", WHOLE, ids=repr)
def test_numpys_whole_numbers_are_python_ints(value: Any) -> None:
    assert type(whole_number("seed", value)) is int


@pytest.mark.parametrize("value", NOT_WHOLE, ids=repr)
def test_what_is_no_whole_number_is_refused(value: Any) -> None:
    with pytest.raises(spaql.SettingError, match=r"^seed is .* must be a whole number.$"):
        whole_number("seed", value)


@pytest.mark.parametrize("value", [3.0, np.float64(3.0), "3"], ids=repr)
def test_what_could_be_meant_is_said(value: Any) -> None:
    with pytest.raises(spaql.SettingError, match=r"^seed is .*, at least 0: give 3.$"):
        whole_number("seed", value, least=0)


def test_the_ends_of_a_range_belong_to_it() -> None:
    assert whole_number("step", 5, 0, 5) == 5
    with pytest.raises(spaql.SettingError, match=r"step is 6, .* at least 0 and at most 5.$"):
        whole_number("step", 6, 0, 5)


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), 0.5])
def test_numpys_numbers_are_python_floats(value: Any) -> None:
    assert type(real_number("scaling", value)) is float
    for wrong in ("0.5", np.nan, True, None):
        with pytest.raises(spaql.SettingError, match=r"^scaling is .* must be a number.$"):
            real_number("scaling", wrong)


def test_plain_data_is_left_as_it_is() -> None:
    data = {"a": [1, 2.5, None, "x"], "b": (True,)}
    assert plain(data) == data
    assert json.dumps(plain({"a": np.float32(0.5), "b": [np.arange(2), (np.bool_(1),)]}))


def test_an_agent_of_numpy_numbers_is_saved_as_that_of_pythons(tmp_path: Path) -> None:
    one = spaql.SPAQL(
        "Pendulum-v1",
        seed=np.int64(3),
        horizon=np.int32(20),
        levels=np.int64(3),
        reward_range=np.array([-16.3, 0.0]),
        rollouts=np.int16(2),
        scaling=np.float64(4.0),
        parallel=np.False_,
    )
    half = tmp_path / "half.spaql"
    one.learn(iterations=np.int64(2), checkpoint=half, checkpoint_every=np.int64(1), progress_bar=False)
    one.learn(total_timesteps=np.int64(20), progress_bar=False)
    other = spaql.SPAQL(
        "Pendulum-v1", seed=3, horizon=20, levels=3, reward_range=(-16.3, 0.0), rollouts=2, scaling=4.0
    )
    other.learn(iterations=2, progress_bar=False).learn(total_timesteps=20, progress_bar=False)
    for name, agent in (("one", one), ("other", other)):
        save_run(agent, tmp_path / name)
    for file in ("policy.spaql", "settings.json", "history.csv"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()


def test_options_and_origins_may_hold_numpy_numbers(tmp_path: Path) -> None:
    problem = spaql.make_problem("Pendulum-v1", options={"g": np.float64(9.81)})
    agent = spaql.SPAQL(problem, seed=0, rollouts=1).learn(iterations=1, progress_bar=False)
    agent.save(tmp_path / "agent.spaql")
    assert spaql.load(tmp_path / "agent.spaql").problem.options == {"g": 9.81}
    controller = spaql.Design(spaql.controller_of(agent), problem, {"seed": np.int64(3)})
    controller.save(tmp_path / "controller.spaql")
    assert spaql.Design.load(tmp_path / "controller.spaql").origin == {"seed": 3}


@pytest.mark.parametrize("seeds", [np.arange(3), np.int64(3), [np.int64(0), 1, np.uint8(2)], range(3)])
def test_a_grid_takes_seeds_from_numpy(seeds: Any) -> None:
    wanted = spaql.grid(["cartpole200"], ["spaql"], seeds=3, iterations=2, scaling=[4.0])
    runs = spaql.grid(
        ["cartpole200"],
        ["spaql"],
        seeds=seeds,
        root_seed=np.int64(0),
        iterations=np.int64(2),
        fresh_episodes=np.int32(100),
        scaling=np.array([4.0]),
    )
    assert [run.digest for run in runs] == [run.digest for run in wanted]


@pytest.mark.parametrize("seeds", [3.0, "3", [0.5], True, np.array([0.0, 1.0]), -1, [-1]], ids=repr)
def test_a_grid_refuses_what_are_no_seeds(seeds: Any) -> None:
    with pytest.raises(spaql.SettingError, match="seeds"):
        spaql.grid(["cartpole200"], ["spaql"], seeds=seeds)


def test_episodes_are_counted_by_numpy_numbers() -> None:
    agent = spaql.SPAQL("cartpole200", seed=0, rollouts=1)
    three = np.int64(3)
    assert len(spaql.evaluate(agent, episodes=three, seed=three).returns) == 3
    assert len(stress(agent, starts=np.int64(4), seed=three).returns) == 4
    assert size_curve(agent, episodes=three, rounds=np.int64(1), seed=three)


@pytest.mark.parametrize("seed", [3.0, "3", -1, None, True], ids=repr)
def test_seeds_that_are_none_are_refused_before_anything_is_done(seed: Any) -> None:
    agent = spaql.SPAQL("cartpole200", seed=0, rollouts=1)
    with pytest.raises(spaql.SettingError, match=r"^seed is .* must be a whole number, at least 0"):
        spaql.evaluate(agent, episodes=2, seed=seed)
    if seed is not None:  # which has one drawn
        with pytest.raises(spaql.SettingError, match=r"^seed is .* must be a whole number, at least 0"):
            spaql.SPAQL("cartpole200", seed=seed)


@pytest.mark.parametrize("budget", [{"iterations": 2.0}, {"total_timesteps": "9"}, {"total_timesteps": 1e4}])
def test_budgets_that_are_no_whole_numbers_are_refused(budget: dict[str, Any]) -> None:
    with pytest.raises(spaql.SettingError, match="must be a whole number, at least 1: give"):
        spaql.SPAQL("cartpole200", seed=0).learn(**budget)


@pytest.mark.parametrize("given", [{"horizon": 20.0}, {"horizon": "20"}, {"levels": 3.0}, {"rollouts": 2.0}])
def test_settings_of_another_type_are_refused(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(spaql.SettingError, match=f"^{name} is .* must be a"):
        spaql.SPAQL("Pendulum-v1", seed=0, **given)
