"""What functions accept for a policy."""

import json
from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql.controllers.policy import policy_of
from spaql.evaluation import robustness, size_curve, stress
from spaql.figures import compute_map

QUICK = {"episodes": 3, "seed": 1}


@pytest.fixture(scope="module")
def agent() -> spaql.Agent:
    agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=5, seed=1)
    return agent.learn(iterations=10, progress_bar=False)


@pytest.fixture(scope="module")
def run(agent: spaql.Agent, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    agent.save(folder / "policy.spaql")
    return folder


def test_a_controller_is_a_policy(agent: spaql.Agent) -> None:
    tree = spaql.controller_of(agent)
    assert isinstance(tree, spaql.Policy)
    point = np.array([0.0, 0.0, 0.1, 0.0])
    action, state = tree.predict(point)
    assert (action, state) == (agent.predict(point, deterministic=True)[0], None)
    assert tree.act(point[np.newaxis]).tolist() == [action]
    assert policy_of(tree) is tree


def test_functions_take_an_agent_a_policy_a_tree_or_a_path(agent: spaql.Agent, run: Path) -> None:
    tree = spaql.controller_of(agent)
    problem = agent.problem
    controller = spaql.Design(tree, problem)
    controller.save(run / "controller.spaql")
    alone = [agent, controller, run, str(run / "policy.spaql"), run / "controller.spaql"]
    for source in alone:
        assert str(spaql.controller_of(source)) == str(tree)
        policy = tree if source in (controller, run / "controller.spaql") else agent.policy
        assert spaql.evaluate(source, **QUICK).mean == spaql.evaluate(policy, problem, **QUICK).mean
    for source, env in [(agent, None), (run, None), (agent.policy, problem), (tree, problem)]:
        assert stress(source, env, starts=16).starts.shape == (16, 4)
        assert len(robustness(source, env, parameters=[], episodes=2)) > 1
        assert size_curve(source, env, episodes=2, rounds=1)[-1].tree.n_leaves == tree.n_leaves
        drawn = compute_map(source, 0, 2, env=env, episodes=1, resolution=4)
        assert drawn.values == compute_map(agent, 0, 2, episodes=1, resolution=4).values


def test_a_policy_alone_needs_an_environment(agent: spaql.Agent) -> None:
    for source in (agent.policy, spaql.controller_of(agent)):
        with pytest.raises(spaql.SettingError, match="has no problem to run on: give env"):
            spaql.evaluate(source)


def test_exports_take_what_has_a_policy(agent: spaql.Agent, run: Path, tmp_path: Path) -> None:
    written = set()
    for i, source in enumerate((spaql.controller_of(agent), agent, agent.policy, run)):
        (tmp_path / str(i)).mkdir()
        spaql.export.json(source, tmp_path / str(i) / "controller.json", points=10)
        rules = json.loads((tmp_path / str(i) / "controller.json").read_text())
        del rules["provenance"]  # of a controller alone the plant is not known
        written.add(json.dumps(rules))
    assert len(written) == 1


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(spaql.ArchiveError):
        spaql.evaluate(tmp_path / "nothing.spaql")
