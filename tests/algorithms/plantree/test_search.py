"""Playing, polishing and pruning controllers, each against its definition."""

import itertools

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, Space

import spaql
from plantree_simulations import double_integrator, four_leaves, game_of
from spaql.algorithms.plantree.distil import _votes
from spaql.algorithms.plantree.polish import SIZES, LocalSearch
from spaql.algorithms.plantree.rule_trees import from_rules, to_rules
from spaql.algorithms.replay import ActionCode, Scale
from spaql.kernels.plantree.controllers import ControllerTree, controls, count_leaves, grow_laws, tidy
from spaql.kernels.plantree.pwa_model import find, move, predict
from spaql.kernels.plantree.rollout import Simulation, play, play_all, polish, prune

RNG = np.random.default_rng
SPACES = [Discrete(3), Box(-1.0, 1.0, (1,)), Box(-1.0, 1.0, (2,))]
LINE = SPACES[1]


def played(simulation: Simulation, tree: ControllerTree, start: int) -> tuple[float, int, set[int]]:
    """The return, the length, and the leaves of an episode, step by step."""
    numbers = tree.law.shape[1]
    listed = tree.law.shape[2] == 1
    z = simulation.starts[start].copy()
    room = np.empty(3)
    total = 0.0
    going = 1.0
    before = None
    leaves = set()
    for taken in range(1, simulation.steps + 1):
        leaves.add(find(tree.feature, tree.threshold, tree.left, 0, z))
        action = controls(tree, z[np.newaxis], simulation.actions)[0]
        if before is not None and not listed:
            total -= going * simulation.price * np.abs(action[:numbers] - before).sum()
        before = action[:numbers].copy()
        chance, reward, _ = predict(
            simulation.plant, simulation.plant.roots[simulation.member[start]], z, action, z, room
        )
        total += going * reward
        going *= 1.0 - chance
        if going < 1e-3:
            return total, taken, leaves
    return total, simulation.steps, leaves


def charged(simulation: Simulation, tree: ControllerTree, start: int) -> float:
    """The penalty of an episode without ends: a tenth of a deviation that is cut costs it in full."""
    plant = simulation.plant
    z = simulation.starts[start].copy()
    room = np.empty(3)
    total = 0.0
    root = plant.roots[simulation.member[start]]
    for _ in range(simulation.steps):
        action = controls(tree, z[np.newaxis], simulation.actions)[0]
        cell = find(plant.feature, plant.threshold, plant.left, root, z)
        predict(plant, root, z, action, z, room)
        cut = np.abs(plant.axes[cell] @ (room[:2] - z)).max()
        total += simulation.edge * min(1.0, cut / 0.1)
    return total


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_steps_that_leave_the_data_cost_their_penalty(space: Space) -> None:
    free = game_of(space, RNG(7), ends=False)
    tree = four_leaves(space, RNG(8))
    free = free._replace(starts=3.0 * free.starts)
    priced = free._replace(edge=3.0)
    penalties = []
    for start in range(40):
        passed = np.zeros(7, np.bool_)
        without, steps = play(free, tree, start, passed)
        penalties.append(without - play(priced, tree, start, passed)[0])
        assert steps == free.steps
        assert penalties[-1] == pytest.approx(charged(priced, tree, start), abs=1e-9)
    assert max(penalties) > 0


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("ends", [False, True])
def test_an_episode_is_control_and_predict_over_and_over(space: Space, ends: bool) -> None:
    simulation = game_of(space, RNG(7), ends=ends)
    tree = four_leaves(space, RNG(8))
    lengths = set()
    assert len(simulation.plant.end_score) == (6 if ends else 0)
    for start in range(40):
        passed = np.zeros(7, np.bool_)
        total, steps = play(simulation, tree, start, passed)
        summed, taken, leaves = played(simulation, tree, start)
        assert (total, steps) == (pytest.approx(summed), taken)
        assert {int(i) for i in np.flatnonzero(passed)} - {0, 1, 2} == leaves
        lengths.add(steps)
    assert (min(lengths) < simulation.steps) == ends


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_states_step_together_as_one_by_one(space: Space) -> None:
    simulation = game_of(space, RNG(15))
    tree = four_leaves(space, RNG(16))
    rng = RNG(17)
    z = rng.normal(size=(30, 2))
    root = rng.choice(simulation.plant.roots, 30)
    actions = controls(tree, z, simulation.actions)
    chance = np.empty(30)
    room = np.empty(3)
    after = z.copy()
    move(simulation.plant, root, after, actions, chance, np.empty_like(chance))
    for i in range(30):
        assert predict(simulation.plant, root[i], z[i], actions[i], z[i], room)[0] == chance[i]
        assert np.array_equal(z[i], after[i])


def removals(tree: ControllerTree) -> list[ControllerTree]:
    """All trees with a leaf less: a leaf's sibling takes their parent's place, or the mean of two leaves."""
    found = []
    for node, way in itertools.product(np.flatnonzero(tree.feature >= 0), range(3)):
        child = int(tree.left[node])
        leaves = tree.feature[[child, child + 1]] < 0
        one = ControllerTree(*(array.copy() for array in tree))
        if way < 2 and leaves[1 - way]:
            for array in one:
                array[node] = array[child + way]
        elif way == 2 and leaves.all() and tree.law[0].size > 1:
            one.feature[node] = -1
            one.law[node] = tree.law[[child, child + 1]].mean(axis=0)
        else:
            continue
        found.append(one)
    return found


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_the_leaf_that_is_pruned_is_the_one_that_costs_least(space: Space) -> None:
    simulation = game_of(space, RNG(9))
    tree = four_leaves(space, RNG(10))
    returns = sorted(play_all(simulation, one).mean() for one in removals(tree))
    assert prune(simulation, tree, 1, 0) == 1
    assert count_leaves(tree) == 3
    assert play_all(simulation, tree).mean() == pytest.approx(returns[-1])


def test_polish_gains_and_prune_makes_smaller() -> None:
    simulation = double_integrator(RNG(8))
    tree = four_leaves(LINE, RNG(8))
    before = play_all(simulation, tree).mean()
    after = polish(simulation, tree, 50_000, RNG(0)).mean()
    assert after == play_all(simulation, tree).mean()
    assert after > before
    assert prune(simulation, tree, 2, 0) == 2
    assert count_leaves(tree) == 2
    assert len(tidy(tree).feature) == 3


def test_a_polished_leaf_does_the_best_of_the_listed_actions() -> None:
    simulation = game_of(Discrete(3), RNG(11))
    simulation = simulation._replace(starts=simulation.starts[:8], member=simulation.member[:8])

    def always(action: int) -> ControllerTree:
        return ControllerTree(
            np.array([-1]), np.zeros(1), np.zeros(1, np.int64), np.full((1, 1, 1), float(action))
        )

    returns = [play_all(simulation, always(action)).mean() for action in range(3)]
    for first in range(3):
        tree = always(first)
        assert polish(simulation, tree, 10_000, RNG(0)).mean() == pytest.approx(max(returns))
        assert tree.law[0, 0, 0] == np.argmax(returns)


def test_a_workshop_gives_ever_smaller_controllers_and_keeps_hard_starts() -> None:
    simulation = double_integrator(RNG(12))
    rng = RNG(13)
    z = rng.normal(size=(800, 2))
    wide = grow_laws(z, np.sign(z[:, :1] * z[:, 1:]), np.ones(800), 20, 10, 0.1, 2)
    assert count_leaves(wide) == 20
    local_search = LocalSearch(simulation, 0.001, rng)
    sizes = [count_leaves(tree) for tree in local_search.descend(wide, last=2)]
    assert sizes == list(SIZES)
    assert count_leaves(wide) == 20
    returns = np.zeros(300)
    returns[::7] -= 1.0 + np.arange(43)
    many = simulation._replace(starts=rng.normal(size=(300, 2)), member=np.zeros(300, np.int64))
    local_search = LocalSearch(many, 1.0, rng)
    local_search._best = np.zeros(300)
    taken = {tuple(start) for start in local_search._some(returns).starts}
    assert all(tuple(start) in taken for start in many.starts[::7])


@pytest.mark.parametrize("env", ["CartPole-v1", "MountainCarContinuous-v0"])
def test_a_controller_comes_back_from_its_rules(env: str) -> None:
    problem = spaql.make_problem(env)
    rng = RNG(14)
    code = ActionCode(problem.actions.space)
    dims = problem.states.dims
    scale = Scale(rng.normal(size=dims), rng.uniform(0.5, 2.0, dims))
    tree = four_leaves(problem.actions.space, rng)
    if code.listed:
        tree = tree._replace(law=np.minimum(tree.law, 1.0))
    tree = tree._replace(threshold=np.where(tree.feature >= 0, rng.normal(size=7), 0.0))
    again = from_rules(to_rules(tree, scale, code, problem), scale, code)
    assert np.array_equal(again.feature, tree.feature)
    assert np.array_equal(again.left, tree.left)
    assert again.threshold == pytest.approx(tree.threshold)
    leaves = tree.feature < 0
    assert again.law[leaves] == pytest.approx(tree.law[leaves])


def test_votes_say_what_an_action_loses() -> None:
    q = np.array([[1.0, 5.0, 4.0], [0.0, -1.0, -4.0]])
    assert _votes(q, 0).tolist() == [[-4.0, 0.0, -1.0], [0.0, -1.0, -4.0]]
    assert _votes(q, 1).tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    assert _votes(q, 2).tolist() == [[-2.0, 0.0, -1.0], [0.0, -1.0, -2.0]]
