"""The ladder of controllers with memory: compiled episodes, resuming, files, and what it chooses."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import spaql
from spaql.algorithms.treesearch.finish import simplify
from spaql.algorithms.treesearch.ladder.block import Block, Usual
from spaql.algorithms.treesearch.ladder.lqr import (
    lqr_law,
    lqr_structure,
    pole_law,
    pumping_law,
    regulator_gains,
    swing_up_racer,
)
from spaql.algorithms.treesearch.ladder.rungs import Rung, choose
from spaql.algorithms.treesearch.ladder.state import Ladder
from spaql.algorithms.treesearch.ladder.structures import PlantSignals, Structure
from spaql.algorithms.treesearch.trees import split
from spaql.classical import LQRPolicy, falling_rate, linearise, operating_point
from spaql.controllers import Controller
from spaql.controllers.controller import POSITION, VELOCITY
from spaql.errors import ArchiveError
from spaql.problems.variants import with_setpoint_steps
from spaql.simulate import EpisodeRunner
from spaql.simulate.candidates import Candidates, CompiledCandidates, EnvironmentCandidates

STRUCTURES = [
    Structure(POSITION, ("error", "integral", "derivative", "low-pass", "last actions", "constant")),
    Structure(POSITION, ("error", "other numbers")),
    Structure(VELOCITY, ("error", "change of the error", "second change")),
]
PLANTS = ["spaql/Oven-v0", "spaql/DCMotor-v0", "spaql/QuadrupleTank-v0"]


SWING_UP = "spaql/CartPoleSwingUp-v0"
POLE = Structure(POSITION, ("regulator at the top", "energy"))


def block_of(env: str, structure: Structure) -> Block:
    signals = PlantSignals.of(spaql.make_problem(env, horizon=40))
    assert signals is not None
    return Block.of(signals, structure, Usual({"error": 20.0}))


def return_of(controller: Controller, plant: spaql.Dynamics, start: NDArray[np.float64]) -> float:
    policy = controller.for_episodes(1)
    states = start[np.newaxis].copy()
    total = 0.0
    for t in range(40):
        seen = plant.plant.observe(states)
        action = np.array(policy.act(seen, np.array([t]), None), np.float64).reshape(1, -1)
        _, reward, over = plant.plant.step_rows(np.ones(1, bool), action, states)
        total += reward[0]
        if over[0]:
            break
    return total


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda one: one.name)
@pytest.mark.parametrize("env", PLANTS)
def test_a_compiled_episode_is_that_of_the_controller_it_stands_for(env: str, structure: Structure) -> None:
    block = block_of(env, structure)
    rng = np.random.default_rng(3)
    if not block.signals.has(structure.kinds):
        return
    tree = block.one_law()
    tree = tree.with_vector(0.3 * rng.standard_normal(int(tree.free.sum())))
    player = CompiledCandidates(block.signals.problem)
    starts = player.starts(rng, 3)
    numbers = tree.raw(block.units)
    found = player.play(Candidates.of(tree.left, tree.allowed, numbers, block.frame), starts, visited=120)
    controller = block.controller(tree)
    plant = block.signals.problem.dynamics
    assert plant is not None
    for i, start in enumerate(starts):
        assert found.returns[0, i] == pytest.approx(return_of(controller, plant, start), rel=1e-12)
    assert found.steps == 120
    assert np.isfinite(found.visited).all()


def test_environments_play_as_compiled_plants_do() -> None:
    block = block_of("spaql/Oven-v0", STRUCTURES[0])
    rng = np.random.default_rng(1)
    problem = spaql.make_problem("spaql/Oven-v0", horizon=40, compiled=False)
    tree = block.one_law()
    tree = tree.with_vector(0.3 * rng.standard_normal(int(tree.free.sum())))
    numbers = tree.raw(block.units)
    player = EnvironmentCandidates(problem)
    found = player.play(
        Candidates.of(tree.left, tree.allowed, numbers, block.frame), np.array([[5.0], [6.0]])
    )
    controller = block.controller(tree)
    for i, seed in enumerate((5, 6)):
        env = problem.make()
        observation = env.reset(seed=seed)[0]
        state = None
        total = 0.0
        for _ in range(40):
            action, state = controller.predict(observation, state)
            observation, reward, *_ = env.step(action)
            total += float(reward)
        assert found.returns[0, i] == pytest.approx(total, rel=1e-12)


def trained(env: str = "spaql/Oven-v0", steps: int = 200_000, **settings: Any) -> spaql.TreeSearch:
    return spaql.TreeSearch(env, seed=1, **settings).learn(total_timesteps=steps, progress_bar=False)


@pytest.mark.parametrize("env", ["spaql/Oven-v0", SWING_UP])
def test_an_interrupted_search_goes_on_to_the_same_bytes(env: str, tmp_path: Path) -> None:
    whole = trained(env)
    for stop in sorted({1, 6, len(whole.history) - 1}):
        part = spaql.TreeSearch(env, seed=1)
        part.learn(200_000, progress_bar=False, callback=lambda agent, row, n=stop: row["iteration"] < n)
        part.save(tmp_path / "part.spaql")
        resumed = spaql.TreeSearch.load(tmp_path / "part.spaql")
        resumed.learn(200_000 - resumed.training_steps, progress_bar=False)
        assert resumed.to_bytes() == whole.to_bytes()


def test_the_chosen_controller_has_an_integral_and_rests_at_the_set_point() -> None:
    agent = trained(steps=1_000_000)
    assert agent.policy.remembers
    assert "integral" in [one.name for one in agent.policy.features] or agent.policy.form == "velocity"
    chosen = next(row for row in agent.ladder if row["chosen"])
    assert chosen["error at rest"] < 0.3  # the noise of the sensor
    assert spaql.evaluate(agent, episodes=50, seed=5).mean > -26  # a tuned PI has -25
    assert {"P", "PI"} <= {row["structure"] for row in agent.ladder}


@pytest.fixture(scope="module")
def searched() -> spaql.TreeSearch:
    return spaql.TreeSearch("spaql/Oven-v0", seed=0).learn(total_timesteps=400_000, progress_bar=False)


def test_a_rung_is_only_replaced_by_a_better_one_of_its_structure(searched: spaql.TreeSearch) -> None:
    agent = copy.deepcopy(searched)
    assert agent.training_steps < 1.05 * 400_000
    ladder = agent._learner.ladder
    assert isinstance(ladder, Ladder)
    kinds = [(rung.structure, rung.tree.n_leaves) for rung in ladder.rungs]
    assert len(kinds) == len(set(kinds))
    count = len(ladder.rungs)
    best = ladder.rungs[ladder.best]
    ladder.climb(replace(best, returns=best.returns - 1.0))
    assert ladder.rungs[ladder.best] is best
    better = replace(best, returns=best.returns + 1.0)
    ladder.climb(better)
    assert ladder.rungs[ladder.best] is better
    assert len(ladder.rungs) == count


def test_a_nominal_design_is_not_perturbed() -> None:
    ladder = trained(nominal=True, steps=20_000)._learner.ladder
    assert ladder is not None
    assert isinstance(ladder.design, spaql.Dynamics)
    assert ladder.design.gain == 0.0
    robust = trained(steps=20_000)._learner.ladder
    assert robust is not None
    assert isinstance(robust.design, spaql.Dynamics)
    assert robust.design.gain == 0.2


def rung(returns: NDArray[np.float64], kinds: tuple[str, ...], leaves: int = 1, changes: float = 0.0) -> Rung:
    block = block_of("spaql/Oven-v0", Structure(POSITION, kinds))
    tree = block.one_law()
    for _ in range(leaves - 1):
        tree = split(tree, len(tree.left) - 1, np.ones(1 + len(block.features)), tree.free[0, 0])
    return Rung(
        block.structure,
        tree,
        block.parameters(tree),
        returns,
        np.full(len(returns), changes),
        price=0.1,
        worst_weight=0.1,
    )


def test_a_larger_structure_must_gain_its_share_and_win_a_paired_test() -> None:
    rng = np.random.default_rng(0)
    returns = -20.0 + rng.standard_normal(40)
    plain = rung(returns, ("error", "integral"))
    noisy = rung(returns + 1.0 + 20.0 * rng.permutation(np.linspace(-1.0, 1.0, 40)), ("error", "integral"), 2)
    assert noisy.score > plain.score or noisy.mean > plain.mean
    assert choose([plain, noisy]) == 0  # 5 % more, and no significant gain
    assert choose([plain, rung(returns + 0.1, ("error", "integral"), 2)]) == 0  # significant, and 0.5 %
    assert choose([plain, rung(returns + 1.0, ("error", "integral"), 2)]) == 1
    assert choose([rung(returns + 0.01, ("error",)), plain]) == 0  # it is never worse than a plainer one


def test_switches_between_leaves_cost() -> None:
    returns = np.linspace(-25.0, -15.0, 40)
    plain = rung(returns, ("error", "integral"))
    assert choose([plain, rung(returns + 1.0, ("error", "integral"), 2, changes=2.0)]) == 1
    assert choose([plain, rung(returns + 1.0, ("error", "integral"), 2, changes=30.0)]) == 0


def test_switches_are_counted_unless_a_set_point_steps() -> None:
    block = block_of("spaql/Oven-v0", Structure(POSITION, ("error",)))
    cut = np.array([0.0, 1.0])
    tree = split(block.one_law(), 0, cut, np.array([True, False]))
    numbers = tree.raw(block.units)
    numbers[0, 1:, 0, 0] = 1.0, 0.0  # heat above the set-point, and none below
    numbers[0, 1:, 0, 1] = 0.0
    plant = block.signals.problem.dynamics
    assert plant is not None
    steps, _ = with_setpoint_steps(plant, [1], 40)
    assert steps is not None
    problem = replace(block.signals.problem, dynamics=steps.plant)
    player = CompiledCandidates(problem)
    starts = player.starts(np.random.default_rng(0), 2)
    starts[:, :2] = [[90.0, 91.0], [20.0, 25.0]]
    starts[:, 3] = 10.0
    starts[:, 5] = [89.0, 15.0]
    numbers[0, 1:, 0, 0] = 0.0  # nothing moves the leaf but cooling, and the step of the set-point
    found = player.play(Candidates.of(tree.left, tree.allowed, numbers, block.frame), starts)
    assert found.switches[0, 1] == 0.0  # at room temperature, only the step of the set-point changes the leaf


def test_the_chosen_row_is_worse_than_no_plainer_one(searched: spaql.TreeSearch) -> None:
    ladder = searched._learner.ladder
    assert isinstance(ladder, Ladder)
    starts = {len(one.returns) for one in ladder.rungs}
    assert starts == {len(ladder.evaluator.judging_starts)}
    best = ladder.rungs[ladder.best]
    for one in ladder.rungs:
        assert one is best or not (one.size <= best.size and one.score > best.score)


def test_features_that_nothing_uses_are_left_out() -> None:
    block = block_of("spaql/Oven-v0", STRUCTURES[0])
    tree = block.one_law()
    numbers = np.zeros(int(tree.free.sum()))
    numbers[[0, 2]] = 1.0
    controller = block.controller(tree.with_vector(numbers))
    assert [one.name for one in controller.features] == ["error", "integral"]


def test_a_structure_loses_the_kinds_of_features_that_nothing_uses() -> None:
    block = block_of(
        "spaql/Oven-v0", Structure(POSITION, ("error", "integral", "derivative", "set-point weights"))
    )
    tree = block.one_law()
    tree = tree.with_vector(np.array([1.0, 0.5, 0.0, 0.0]))
    assert block.plainer(tree) == Structure(POSITION, ("error", "integral"))
    less = block_of("spaql/Oven-v0", block.plainer(tree)).like(tree, block)
    assert less.numbers[0, 0].tolist() == [0.0, 1.0, 0.5]
    assert [one.name for one in block.controller(tree).features] == ["error", "integral"]


def test_a_damaged_ladder_is_refused() -> None:
    agent = trained(steps=20_000)
    ladder = agent._learner.ladder
    assert ladder is not None
    data, arrays = ladder.state()
    for change in ({"stage": "climb"}, {"racers": [["sideways", ["error"]]]}, {"best": 99}):
        with pytest.raises(ArchiveError):
            ladder.restore({**data, **change}, arrays)
    for hardness in (np.zeros(1), np.full(2, np.nan)):
        with pytest.raises(ArchiveError):
            ladder.restore(data, {**arrays, "hard": np.zeros((2, 1)), "hardness": hardness})


@pytest.mark.parametrize("env", PLANTS)
def test_the_law_of_a_regulator_acts_as_the_regulator(env: str) -> None:
    problem = spaql.make_problem(env)
    signals = PlantSignals.of(problem)
    plant = linearise(problem)
    assert signals is not None
    sizes = {f"error{of}": 100.0 for _, _, of in signals.pairs}  # no integral is cut
    usual = Usual.about(operating_point(problem))._replace(sizes=sizes)
    block = Block.of(signals, lqr_structure(signals, plant), usual)
    count = sum(plant.b.shape) + len(plant.outputs)
    weights = np.exp(np.random.default_rng(1).standard_normal(count))
    controller = block.controller(lqr_law(block, plant, weights))
    k = regulator_gains(block, plant, weights)
    policy = LQRPolicy(problem, plant, k[np.newaxis])
    own = controller.for_episodes(4)
    rng = np.random.default_rng(0)
    seen = np.array([problem.make().reset(seed=i)[0] for i in range(4)], np.float64)
    for t in range(5):
        steps = np.full(4, t)
        expected = np.asarray(policy.act(seen, steps, None), np.float64).reshape(4, -1)
        found = np.asarray(own.act(seen, steps, None), np.float64).reshape(4, -1)
        half = block.units.action_scale
        assert np.abs(found - expected).max() < 0.005 * half.max()  # gains have four digits
        seen = seen + 0.01 * rng.standard_normal(seen.shape)


def test_problems_without_set_points_and_without_a_pole_have_no_ladder() -> None:
    for env in ("Pendulum-v1", "MountainCarContinuous-v0"):
        assert PlantSignals.of(spaql.make_problem(env)) is None


def test_a_compiled_episode_of_a_pole_is_that_of_its_controller() -> None:
    block = block_of(SWING_UP, POLE)
    rng = np.random.default_rng(3)
    pole = block.signals.pole
    assert pole is not None
    tree = block.with_cut(pole_law(block, pole.plant, np.ones(5)), 0.8)
    tree = tree.with_vector(tree.vector + 0.3 * rng.standard_normal(int(tree.free.sum())))
    numbers = tree.raw(block.units)
    player = CompiledCandidates(block.signals.problem)
    starts = player.starts(rng, 3)
    found = player.play(Candidates.of(tree.left, tree.allowed, numbers, block.frame), starts)
    controller = block.controller(tree)
    plant = block.signals.problem.dynamics
    assert plant is not None
    for i, start in enumerate(starts):
        assert found.returns[0, i] == pytest.approx(return_of(controller, plant, start), rel=1e-12)


def test_laws_of_a_pole_are_odd_and_its_cuts_even() -> None:
    block = block_of(SWING_UP, POLE)
    assert block.signals.pole is not None
    tree = block.with_cut(pole_law(block, block.signals.pole.plant, np.ones(5)), 0.8)
    tree = tree.with_vector(np.random.default_rng(0).standard_normal(int(tree.free.sum())))
    controller = block.controller(tree)
    rng = np.random.default_rng(1)
    for _ in range(200):
        x, v, angle, w = rng.uniform(-3, 3, 4)
        seen = np.array([x, v, np.cos(angle), np.sin(angle), w])
        mirrored = np.array([-x, -v, np.cos(angle), -np.sin(angle), -w])
        assert controller.predict(seen)[0] == -controller.predict(mirrored)[0]


@pytest.mark.parametrize("env", [SWING_UP, "spaql/Furuta-v0"])
def test_pumping_brings_energy_into_a_pole_below_the_top(env: str) -> None:
    block = block_of(env, POLE)
    pole = block.signals.pole
    plant = block.signals.problem.dynamics
    assert pole is not None
    assert plant is not None
    rate = falling_rate(block.signals.problem, pole.plant)
    controller = block.controller(pumping_law(block, pole, rate))
    _, step, observe = plant.functions

    def energy(state: tuple[float, ...]) -> float:
        return 0.5 * (state[3] / rate) ** 2 + np.cos(state[2]) - 1.0

    rng = np.random.default_rng(0)
    tried = 0
    for _ in range(200):
        state = plant.functions[0](rng)
        state = (0.0, 0.0, rng.uniform(-np.pi, np.pi), rng.uniform(-rate, rate), *state[4:])
        if energy(state) > -0.2 or abs(np.cos(state[2]) * state[3]) < 0.3 * rate:
            continue  # it has enough, or the action hardly turns it
        action = np.asarray(controller.predict(np.array(observe(state)))[0], np.float64)
        more, less = (energy(step(state, given)[0]) for given in (action, -action))
        assert more > less
        tried += 1
    assert tried > 20


@pytest.mark.parametrize("env", [SWING_UP, "spaql/Furuta-v0"])
def test_a_swing_up_begins_with_pumping_and_a_regulator(env: str) -> None:
    block = block_of(env, POLE)
    rng = np.random.default_rng(0)
    pole = block.signals.pole
    plant = block.signals.problem.dynamics
    assert pole is not None
    assert plant is not None
    rate = falling_rate(block.signals.problem, pole.plant)
    pumping = pumping_law(block, pole, rate)
    regulator = pole_law(block, pole.plant, np.ones(5))
    controller = block.controller(swing_up_racer(block, pole).found)
    below = block.controller(pumping)
    above = block.controller(regulator)
    acted = {True: 0, False: 0}
    for _ in range(200):
        state = plant.functions[0](rng)
        angle = rng.uniform(-np.pi, np.pi)
        seen = np.array(plant.functions[2]((rng.normal(), rng.normal(), angle, rng.normal(), *state[4:])))
        is_above = bool(np.cos(angle) > 0.8)
        expected = (above if is_above else below).predict(seen)[0]
        assert controller.predict(seen)[0] == pytest.approx(expected, rel=1e-12)
        acted[is_above] += 1
    assert min(acted.values()) > 20


@pytest.mark.parametrize("env", [SWING_UP, "spaql/Furuta-v0"])
def test_a_pole_is_swung_up_and_held(env: str) -> None:
    agent = trained(env, steps=1_000_000)
    assert agent.policy.remembers
    assert agent.policy.n_leaves == 2
    found = spaql.evaluate(agent, episodes=50, seed=10**6)
    assert found.mean > 205.0  # 250 is the most; without features 148 at 10 million steps


def test_a_simplification_that_rests_elsewhere_is_rejected() -> None:
    calls = []

    def keeps(tree: Any) -> bool:
        calls.append(tree)
        return False

    agent = trained(steps=60_000)
    ladder = agent._learner.ladder
    assert isinstance(ladder, Ladder)
    rung = ladder.rungs[ladder.best]
    ladder.use(rung.structure)
    evaluator = ladder.evaluator
    evaluator.runner = EpisodeRunner(agent.problem, 1)
    assert simplify(evaluator, rung.tree, -1e9, 1e9, 1.0, keeps) is rung.tree
    assert calls
