"""Controllers with their problems, on disk and in use."""

from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql import archive
from spaql.controllers import Controller, Error, Laws, edited, locked


@pytest.fixture(scope="module")
def agent() -> spaql.Agent:
    return spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1).learn(
        iterations=100, progress_bar=False
    )


@pytest.fixture(scope="module")
def design(agent: spaql.Agent) -> spaql.Design:
    tree = locked(edited(spaql.controller_of(agent), 1, "push right"), 2)
    return spaql.Design(tree, agent.problem, {"by": "hand"})


def test_it_is_read_as_it_was_written(design: spaql.Design, tmp_path: Path) -> None:
    design.save(tmp_path / "a.spaql")
    twin = spaql.load(tmp_path / "a.spaql")
    assert isinstance(twin, spaql.Design)
    points = np.random.default_rng(0).normal(size=(1000, 4))
    assert np.array_equal(twin.predict(points)[0], design.predict(points)[0])
    assert str(twin.controller) == str(design.controller)
    assert twin.origin == {"by": "hand"}
    assert np.array_equal(twin.controller.locks[0].high, design.controller.locks[0].high)
    twin.save(tmp_path / "b.spaql")
    assert (tmp_path / "a.spaql").read_bytes() == (tmp_path / "b.spaql").read_bytes()


def test_a_file_is_read_once(
    agent: spaql.Agent, design: spaql.Design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.save(tmp_path / "policy.spaql")
    design.save(tmp_path / "controller.spaql")
    files: list[Path] = []
    load = archive.load
    monkeypatch.setattr(archive, "load", lambda path: files.append(path) or load(path))
    assert isinstance(spaql.load(tmp_path), spaql.SPAQLTS)
    assert isinstance(spaql.load(tmp_path / "controller.spaql"), spaql.Design)
    assert [file.name for file in files] == ["policy.spaql", "controller.spaql"]


def test_it_is_evaluated_like_an_agent(design: spaql.Design) -> None:
    assert spaql.evaluate(design, episodes=5).returns.shape == (5,)


def test_a_law_is_kept_to_the_bit(tmp_path: Path) -> None:
    problem = spaql.make_problem("pendulum")
    rng = np.random.default_rng(0)
    box = problem.actions.space
    tree = spaql.Controller(
        feature=[0, -1, -1],
        threshold=[0.5, 0, 0],
        left=[1, -1, -1],
        right=[2, -1, -1],
        leaf=[-1, 0, 1],
        laws=Laws(rng.normal(size=(2, 1, 3)), rng.normal(size=(2, 1))),
        observation_space=problem.states.space,
        action_space=box,
    )
    spaql.Design(tree, problem).save(tmp_path / "law.spaql")
    points = rng.normal(size=(1000, 3))
    twin = spaql.Design.load(tmp_path / "law.spaql")
    assert np.array_equal(twin.controller.act(points), tree.act(points))


def test_the_wrong_reader_says_which_is_right(
    agent: spaql.Agent, design: spaql.Design, tmp_path: Path
) -> None:
    agent.save(tmp_path / "agent.spaql")
    design.save(tmp_path / "controller.spaql")
    with pytest.raises(spaql.ArchiveError, match=r"spaql\.load"):
        spaql.Design.load(tmp_path / "agent.spaql")
    with pytest.raises(spaql.SettingError, match=r"contains Design, not SPAQL: .* spaql\.load"):
        spaql.SPAQL.load(tmp_path / "controller.spaql")


def test_a_tree_for_another_problem_is_refused(design: spaql.Design) -> None:
    with pytest.raises(spaql.SettingError, match="other observations"):
        spaql.Design(design.controller, spaql.make_problem("pendulum"))


def test_a_controller_that_samples_at_another_rate_is_refused() -> None:
    oven = spaql.make_problem("spaql/Oven-v0")  # a step every 5 s
    slow = Controller.of_laws(
        [Error("error", "set-point", "temperature")],
        {"heat": {"error": 0.1}},
        observation_space=oven.states.space,
        action_space=oven.actions.space,
        observations=oven.states.names,
        actions=oven.actions.names,
        sample_time=50.0,
    )
    for use in (
        lambda: spaql.Design(slow, oven),
        lambda: spaql.evaluate(slow, "spaql/Oven-v0", episodes=2),
        lambda: spaql.TreeSearch(oven, seed=0).start_from(slow),
    ):
        with pytest.raises(spaql.SettingError, match=r"every 50 s, and .* every 5 s"):
            use()


def test_arrays_that_are_no_tree_are_refused(design: spaql.Design, tmp_path: Path) -> None:
    design.save(tmp_path / "a.spaql")
    whole = archive.load(tmp_path / "a.spaql")
    for name, array in whole.arrays.items():
        if not name.startswith("controller."):
            continue
        for bad in (None, array[:-1], np.full_like(array, 99), array.astype(np.float32).reshape(-1, 1)):
            arrays = {k: v for k, v in whole.arrays.items() if k != name}
            if bad is not None:
                arrays[name] = bad
            archive.save(tmp_path / "b.spaql", whole.data, arrays)
            try:
                loaded = spaql.Design.load(tmp_path / "b.spaql")
            except spaql.ArchiveError:
                continue
            assert loaded.predict(np.zeros(4))[0] in (0, 1)  # another tree, but a tree
