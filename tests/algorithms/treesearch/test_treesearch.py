"""TreeSearch as an agent: what it learns, what it counts, and that it can be interrupted and repeated."""

import functools

import numpy as np
import pytest

import spaql
from spaql.agents import TreeSearch
from spaql.algorithms.treesearch.evaluator import CandidateEvaluator
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.search import begin_anew, only_waits
from spaql.controllers import Controller, Error, Integral, Laws, controller_of, locked
from spaql.errors import SettingError, UnsupportedSpaceError
from spaql.simulate import EpisodeRunner, Phase
from spaql.simulate.candidates import CompiledCandidates

STEPS = 200_000


def trained(env="CartPole-v1", steps=STEPS, seed=0, **settings):
    """A small search."""
    return TreeSearch(env, seed=seed, **settings).learn(steps, progress_bar=False)


def test_it_balances_the_pole_with_few_leaves():
    agent = trained(steps=300_000)
    assert not agent.policy.remembers
    assert agent.policy.laws.gain.any()
    assert spaql.evaluate(agent, episodes=100, seed=7).mean > 490


@functools.cache
def searched(env):
    """A search of some steps, which tests only look at."""
    return trained(env)


def test_every_step_is_counted_by_phase():
    agent = searched("CartPole-v1")
    last = agent.history.last()
    assert last["search_steps"] + last["own_play_steps"] == last["training_steps"] == last["interactions"]
    assert last["own_play_steps"] > 0
    assert STEPS <= last["training_steps"] < 1.15 * STEPS  # a generation that was begun is ended


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
def test_an_interrupted_search_goes_on_to_the_same_bytes(env, tmp_path):
    whole = searched(env)
    stops = {1, 3, 5, len(whole.history) - 1}
    for stop in sorted(stop for stop in stops if stop < len(whole.history)):
        part = TreeSearch(env, seed=0)
        part.learn(STEPS, progress_bar=False, callback=lambda agent, row, n=stop: row["iteration"] < n)
        part.save(tmp_path / "part.spaql")
        resumed = TreeSearch.load(tmp_path / "part.spaql")
        resumed.learn(STEPS - resumed.training_steps, progress_bar=False)
        assert resumed.to_bytes() == whole.to_bytes()


def test_the_bytes_do_not_depend_on_the_number_of_workers():
    settings = {"horizon": 40, "compiled": False}
    alone = trained(steps=6_000, **settings)
    apart = trained(steps=6_000, parallel=True, **settings)
    assert apart.to_bytes() == alone.to_bytes()


def test_compiled_and_gymnasium_searches_both_learn():
    agent = trained(steps=40_000, compiled=False)
    assert spaql.evaluate(agent, episodes=20, seed=3).mean > 100


def test_a_search_from_a_tree_does_not_end_worse():
    first = trained("Pendulum-v1", steps=400_000, max_leaves=3)
    begun = first.policy
    better = TreeSearch("Pendulum-v1", seed=1).start_from(begun).learn(100_000, progress_bar=False)
    before, after = (spaql.evaluate(one, "Pendulum-v1", episodes=300, seed=5) for one in (begun, better))
    assert after.mean >= before.mean - 5.0  # the plainer tree may cost the price of a leaf


def test_locked_leaves_are_kept_through_a_search():
    problem = spaql.make_problem("Pendulum-v1")
    laws = Laws([[[0.0, -3.0, -1.0]], [[0.1, 0.2, 0.7]]], np.zeros((2, 1)))
    begun = Controller(
        feature=[0, -1, -1],
        threshold=[0.7, 0.0, 0.0],
        left=[1, -1, -1],
        right=[2, -1, -1],
        leaf=[-1, 1, 0],
        laws=laws,
        observation_space=problem.states.space,
        action_space=problem.actions.space,
    )
    begun = locked(begun, 2)
    found = TreeSearch("Pendulum-v1", seed=1).start_from(begun).learn(50_000, progress_bar=False).policy
    assert len(found.locks) == 1
    batch = np.random.default_rng(0).uniform(-1, 1, (3000, 3)) * problem.states.space.high
    (lock,) = begun.locks
    numbers = begun.numbers(batch)
    inside = ((lock.low <= numbers) & (numbers < lock.high)).all(axis=1)
    assert inside.any()
    assert (found.act(batch[inside]) == begun.act(batch[inside])).all()


def test_a_table_becomes_a_tree_and_is_improved():
    table = spaql.SPAQLTS("CartPole-v1", seed=0).learn(iterations=5, progress_bar=False)
    rules = controller_of(table)
    agent = TreeSearch("CartPole-v1", seed=0, max_leaves=max(6, rules.n_leaves)).start_from(rules)
    assert (agent.policy.act(np.zeros((1, 4))) == rules.act(np.zeros((1, 4)))).all()
    agent.learn(30_000, progress_bar=False)
    assert (
        spaql.evaluate(agent, episodes=50).mean >= spaql.evaluate(rules, "CartPole-v1", episodes=50).mean - 30
    )


def test_more_steps_go_on_from_the_tree_that_was_found():
    agent = trained(steps=100_000)
    before = agent.history["mean_return"][-1]
    agent.learn(50_000, progress_bar=False)
    assert agent.history["mean_return"][-1] >= before - 10
    assert agent.training_steps >= 150_000


def test_what_it_cannot_do_is_refused():
    with pytest.raises(SettingError, match="levels"):
        TreeSearch("Pendulum-v1", seed=0, levels=5)
    with pytest.raises(UnsupportedSpaceError, match="Box of observations"):
        TreeSearch("FrozenLake-v1", seed=0)
    tree = trained(steps=2_000).policy
    with pytest.raises(SettingError, match="maps 4 numbers"):
        TreeSearch("Pendulum-v1", seed=0).start_from(tree)
    with pytest.raises(SettingError, match="already started"):
        trained(steps=2_000).start_from(tree)


def test_a_search_does_not_go_on_in_another_form_of_the_environment(tmp_path):
    agent = TreeSearch("CartPole-v1", seed=0)
    agent.learn(20_000, progress_bar=False, callback=lambda agent, row: False)
    agent.save(tmp_path / "begun.spaql")
    plain = spaql.make_problem("CartPole-v1", compiled=False)
    with pytest.raises(SettingError, match="compiled or not"):
        TreeSearch.load(tmp_path / "begun.spaql", env=plain).learn(20_000, progress_bar=False)


def test_a_plant_that_explodes_is_survived():
    def start(rng):
        return (rng.uniform(-1.0, 1.0),)

    def step(state, action):
        x = state[0] * 1e60 + action[0]
        return (x,), -abs(x), False

    spaql.Dynamics(
        id="test/Explodes-v0",
        start=start,
        step=step,
        observations={"x": (-np.inf, np.inf)},
        actions={"u": (-1.0, 1.0)},
        horizon=20,
    )
    agent = trained("test/Explodes-v0", steps=25_000)
    assert agent.policy.n_leaves >= 1
    assert agent.mirror is None


def test_a_given_tree_stays_to_the_last_bit_unless_another_is_better():
    """Trees that also reach the highest possible return are equal, not better."""
    perfect = Laws([[[0.0] * 4, [1.4, 3.7, 7.3, 6.5]]], [[0.0, -0.37]])
    problem = spaql.make_problem("CartPole-v1")
    given = Controller(
        laws=perfect,
        observation_space=problem.states.space,
        action_space=problem.actions.space,
    )
    assert spaql.evaluate(given, problem, episodes=100).mean == 500
    agent = TreeSearch(problem, seed=0).start_from(given).learn(50_000, progress_bar=False)
    np.testing.assert_array_equal(agent.policy.laws.gain, perfect.gain)
    np.testing.assert_array_equal(agent.policy.laws.offset, perfect.offset)


def evaluator_of(agent: TreeSearch) -> CandidateEvaluator:
    """The evaluator of a search, with an environment to play in."""
    evaluator = agent._learner.search.evaluator
    evaluator.runner = EpisodeRunner(agent.problem, 1)
    return evaluator


def test_hard_starts_are_played_again_where_a_generation_has_few_starts() -> None:
    evaluator = evaluator_of(trained(steps=20_000))
    rng = np.random.default_rng(0)
    evaluator.hard = np.full((1, 4), 0.01)

    def again() -> int:
        return sum(int((evaluator.mixed_starts(rng, 6) == 0.01).all(axis=1).sum()) for _ in range(400))

    evaluator.weighs_worst = True
    assert 240 < again() < 360  # an eighth of them: 300
    evaluator.weighs_worst = False
    assert again() == 0


def test_the_worst_of_a_judgement_are_the_worst_of_its_starts_and_the_hard_ones() -> None:
    agent = trained(steps=20_000)
    evaluator = evaluator_of(agent)
    tree = agent._learner.search.base
    evaluator.judging_starts = evaluator.starts(np.random.default_rng(1), 8)
    evaluator.hard = evaluator.starts(np.random.default_rng(2), 3)
    evaluator.hardness = np.zeros(3)
    evaluator.weighs_worst = False
    found = evaluator.judge(tree)
    assert found.score == pytest.approx(found.values.mean(), rel=1e-12)
    evaluator.weighs_worst = True
    found = evaluator.judge(tree)
    hard = evaluator.play(tree, evaluator.hard, Phase.SEARCH).returns[0]
    worst = sorted([*found.values, *hard])[:2]
    assert found.score == pytest.approx(0.9 * found.values.mean() + 0.1 * np.mean(worst), rel=1e-12)


def boat_start(rng):
    return (rng.uniform(1.0, 2.0),)


def boat_step(x, action):
    away = x[0] + 0.1 * action[0]
    arrived = away < 0.0
    return (away,), -0.01 + 5.0 * arrived, arrived


@pytest.fixture
def boat():
    """A search whose boat may stay where it is, or arrive, which ends the episode."""
    plant = spaql.Dynamics(
        id="spaql/Boat-v0",
        start=boat_start,
        step=boat_step,
        observations={"away": (-1.0, 10.0)},
        actions={"push": (-1.0, 1.0)},
        horizon=50,
    )
    agent = trained(plant, steps=20_000)
    evaluator_of(agent)
    return agent._learner.search


def law(search, push):
    """A racer of a constant."""
    tree = search.base.with_vector(np.array([push, 0.0]))
    return Racer.of(tree)


def test_a_tree_only_waits_if_others_end_better(boat) -> None:
    assert boat.evaluator.best_end == pytest.approx(5.0 - 0.01 * 11, abs=0.03)
    boat.racers = [law(boat, 0.0)]
    assert only_waits(boat)
    boat.evaluator.best_end = -1.0  # as of a pole that fell
    assert not only_waits(boat)
    boat.evaluator.best_end = 5.0
    boat.racers = [law(boat, -1.0)]  # it arrives
    assert not only_waits(boat)


def test_a_law_that_begins_anew_competes_with_one_that_waits(boat) -> None:
    boat.budget = 200_000
    boat.spent = 70_000
    boat.racers = [law(boat, 0.0)]
    boat.incumbent = boat.racers[0].tree
    boat.judgement = boat.evaluator.judge(boat.incumbent)
    boat.stage = "anew"
    begin_anew(boat, np.random.default_rng(0))
    assert boat.stage == "grow"
    assert boat.judgement.mean_return > 4.0


def test_where_actions_are_numbers_some_trees_of_the_race_switch_between_constants() -> None:
    agent = TreeSearch("Pendulum-v1", seed=0)
    agent.learn(4_000_000, progress_bar=False, callback=lambda agent, row: False)
    flat = [racer.tree for racer in agent._learner.search.racers[-2:]]
    assert [tree.n_leaves for tree in flat] == [2, 3]
    assert not any(tree.numbers[tree.left < 0][:, :, 1:].any() for tree in flat)


@pytest.mark.parametrize(("budget", "racers"), [(80_000, 2), (30_000_000, 8)])
def test_trees_whose_numbers_a_budget_cannot_search_do_not_race(budget: int, racers: int) -> None:
    agent = TreeSearch("Acrobot-v1", seed=0)
    agent.learn(budget, progress_bar=False, callback=lambda agent, row: False)
    found = agent._learner.search.racers
    assert len(found) == racers
    assert [racer.tree.n_leaves for racer in found[:2]] == [1, 1]
    assert all(racer.least_steps(500) <= 0.8 * budget for racer in found[2:])


def test_corner_starts_are_further_from_the_middle_than_others() -> None:
    player = CompiledCandidates(spaql.make_problem("CartPole-v1"))
    corners = player.corners(np.random.default_rng(0), 32)
    others = player.starts(np.random.default_rng(1), 32)
    assert corners.shape == others.shape
    assert np.abs(corners).sum(axis=1).min() > np.abs(others).sum(axis=1).mean()
    assert len(np.unique(np.sign(corners), axis=0)) > 4  # of different corners


def test_numbers_that_all_starts_share_do_not_count_for_corners() -> None:
    player = CompiledCandidates(spaql.make_problem("MountainCar-v0"))
    corners = player.corners(np.random.default_rng(0), 8)
    assert (corners[:, 1] == 0.0).all()
    assert (np.abs(corners[:, 0] + 0.5) > 0.099).all()


def test_a_price_of_movement_is_refused_for_a_list_of_actions() -> None:
    with pytest.raises(spaql.SettingError, match="movement_price is for actions that are numbers"):
        spaql.TreeSearch("CartPole-v1", movement_price=0.1)


def _demand_start(rng):
    return (rng.uniform(-1.0, 1.0),)


def _demand_step(state, action, parameters):
    return state, -abs(action[0] - parameters[0]), False


def test_a_declared_perturbation_is_trained_on_without_set_points() -> None:
    plant = spaql.Dynamics(
        id="test/Demand-v0",
        start=_demand_start,
        step=_demand_step,
        observations={"level": (-1, 1)},
        actions={"flow": (0, 4)},
        horizon=10,
        parameters={"demand": 1.0},
        perturbation=spaql.problems.Perturbation(gain=0.0, parameters={"demand": (1.0, 3.0)}),
    )
    flows = {}
    for nominal in (False, True):
        agent = spaql.TreeSearch(plant, seed=0, nominal=nominal, mirror="off")
        agent.learn(20_000, progress_bar=False)
        assert agent.designed_for == ("nominal" if nominal else "perturbed")
        flows[nominal] = float(agent.predict(np.zeros(1, np.float32))[0][0])
    assert flows[True] == pytest.approx(1.0, abs=0.1)  # the demand of the equations
    assert flows[False] == pytest.approx(2.0, abs=0.4)  # the middle of the demands that are declared


def test_a_search_begins_at_a_controller_with_memory(tmp_path):
    """It keeps the features and the limits, improves the law, and goes on where it was saved."""
    problem = spaql.make_problem("spaql/DCMotor-v0")
    slow = Controller.of_laws(
        [Error("error", "set-point", "position"), Integral("integral", "error", limit=10.0)],
        {"voltage": {"error": 0.05, "integral": 0.02}},
        observation_space=problem.states.space,
        action_space=problem.actions.space,
        observations=problem.states.names,
        actions=problem.actions.names,
        sample_time=problem.sample_time,
        rate_limit=300.0,
    )
    agent = TreeSearch(problem, seed=1).start_from(slow).learn(60_000, progress_bar=False)
    found = agent.policy
    assert (found.features, found.rate_limit) == (slow.features, (300.0,))
    before, after = (spaql.evaluate(one, problem, episodes=20).mean for one in (slow, found))
    assert after > before / 3  # returns are negative
    agent.save(tmp_path / "a.spaql")
    again = spaql.load(tmp_path / "a.spaql")
    assert str(again.policy) == str(found)


def test_rules_with_memory_switch_less_where_a_switch_costs():
    """A heater: what it did before is not observed, and a switch costs as much as 0.3 degrees."""

    def start(rng):
        return rng.uniform(12, 26), 0.0, 0.0, rng.uniform(-5, 10), rng.uniform(18, 22)

    def step(state, action):
        warmth, heat, on, outdoor, wanted = state
        cost = 0.3 if action != on else 0.0
        heat = heat + 0.3 * (action - heat)
        warmth = warmth + 0.03 * (outdoor - warmth) + heat
        return (warmth, heat, float(action), outdoor, wanted), -abs(warmth - wanted) - cost, False

    heater = spaql.Dynamics(
        id="heater-v0",
        start=start,
        step=step,
        observe=lambda state: (state[0], state[4]),
        observations={"temperature": (-20, 60), "wanted": (15, 25)},
        actions=["off", "on"],
        horizon=200,
    )
    plain, remembering = (
        TreeSearch(heater, seed=0, memory=memory).learn(300_000, progress_bar=False)
        for memory in (False, True)
    )
    assert remembering.policy.remembers
    assert "last action" in str(remembering.policy)
    without, with_memory = (spaql.evaluate(one, episodes=200) for one in (plain, remembering))
    assert with_memory.mean > without.mean
