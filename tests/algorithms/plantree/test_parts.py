"""Each part of PlanTree against a definition, or a case whose answer is known."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from spaql.algorithms.plantree.coding import ActionCode, Scale
from spaql.algorithms.plantree.dynamics import fit_plant
from spaql.algorithms.plantree.memory import Memory
from spaql.algorithms.plantree.termination import fit_ends, quadratic
from spaql.kernels.cells import Cells, Options, sweep
from spaql.kernels.controllers import Controller, count_leaves, find_rule, grow_choices, grow_laws, tidy
from spaql.kernels.ends import grow_ends
from spaql.kernels.plants import find, predict, solve
from spaql.kernels.search import Game, play, polish, prune

RNG = np.random.default_rng


def remember(step, states, actions, ended=None) -> Memory:
    memory = Memory(states.shape[1], actions.shape[1])
    memory.begin()
    for i, (s, u) in enumerate(zip(states, actions, strict=True)):
        after, reward = step(s, u)
        memory.add(s, u, reward, after, ended=bool(ended[i]) if ended is not None else False)
    return memory


def everything(memory: Memory, code: ActionCode, squares: bool = False):
    scale = Scale.of(memory)
    return scale, fit_plant(memory, scale, code, [np.arange(len(memory))], squares=squares, cautious=True)


def test_a_memory_keeps_what_it_was_given() -> None:
    rng = RNG(0)
    memory = Memory(2, 1)
    rows = []
    for _ in range(40):
        memory.begin()
        for step in range(50):
            rows.append(
                (rng.normal(size=2), rng.normal(size=1), rng.normal(), rng.normal(size=2), step == 49)
            )
            memory.add(*rows[-1][:4], ended=rows[-1][4])
    assert len(memory) == 2000
    assert memory.longest == 50
    assert memory.begins.tolist() == list(range(0, 2000, 50))
    for column, name in enumerate(("states", "actions", "rewards", "nexts", "ended")):
        assert np.array_equal(getattr(memory, name), np.array([row[column] for row in rows]))
    again = Memory.from_arrays(memory.arrays(), 2, 1, 0)
    again.begin()
    again.add(*rows[0][:4], ended=False)
    assert np.array_equal(again.states[:2000], memory.states)
    empty = Memory.from_arrays(Memory(2, 1).arrays(), 2, 1, 0)
    empty.begin()
    empty.add(*rows[0][:4], ended=False)
    assert len(empty) == 1
    to_go = [
        sum(0.9**k * r for k, r in enumerate(memory.rewards[i : 50 * (i // 50 + 1)])) for i in range(2000)
    ]
    assert memory.best_to_go(0.9) == pytest.approx(max(to_go))


@pytest.mark.parametrize("space", [Discrete(3, start=2), Box(-2.0, 6.0, (1,)), Box(-1.0, 1.0, (2,))])
def test_actions_come_back_from_their_code(space) -> None:
    code = ActionCode(space)
    for action in code.tried():
        raw = code.raw(action)
        assert space.contains(raw)
        assert code.standard(np.asarray(raw)) == pytest.approx(action)


def test_cholesky_solves_what_numpy_solves() -> None:
    rng = RNG(0)
    for n in (1, 3, 9):
        x = rng.normal(size=(2 * n, n))
        right = rng.normal(size=(n, 2))
        assert solve(x.T @ x, 0.3, right) == pytest.approx(np.linalg.solve(x.T @ x + 0.3 * np.eye(n), right))


def test_an_affine_system_is_learned_exactly() -> None:
    rng = RNG(0)
    a, b = np.array([[0.9, 0.2], [-0.1, 0.95]]), np.array([[0.1], [0.3]])
    c = np.array([1.0, -2.0])
    memory = remember(
        lambda s, u: (a @ s + b @ u + 0.5, float(c @ s + 3.0 * u[0] + 7.0)),
        rng.normal(2.0, 3.0, (2000, 2)),
        rng.uniform(-1, 1, (2000, 1)),
    )
    scale, plant = everything(memory, ActionCode(Box(-1.0, 1.0, (1,))))
    assert len(plant.feature) == 1
    after, room = np.empty(2), np.empty(3)
    for s, u in zip(rng.normal(2.0, 1.0, (50, 2)), rng.uniform(-1, 1, (50, 1)), strict=True):
        assert predict(plant, 0, scale.z(s), u, after, room) == 0.0
        assert after * scale.deviation + scale.mean == pytest.approx(a @ s + b @ u + 0.5, abs=1e-3)
        assert room[-1] == pytest.approx(c @ s + 3.0 * u[0] + 7.0, abs=1e-2)


def test_a_plant_with_two_laws_is_cut_between_them() -> None:
    rng = RNG(1)
    memory = remember(
        lambda s, u: (np.array([0.5 * s[0] if s[0] < 0 else -0.5 * s[0]]), abs(s[0])),
        rng.uniform(-1, 1, (4000, 1)),
        np.zeros((4000, 1)),
    )
    scale, plant = everything(memory, ActionCode(Box(-1.0, 1.0, (1,))))
    after, room = np.empty(1), np.empty(2)
    for s in (-0.8, -0.3, 0.3, 0.8):
        predict(plant, 0, scale.z(np.array([s])), np.zeros(1), after, room)
        assert after * scale.deviation + scale.mean == pytest.approx(-0.5 * abs(s), abs=0.01)
        assert room[-1] == pytest.approx(abs(s), abs=0.01)


def test_a_prediction_stays_with_what_was_seen() -> None:
    rng = RNG(2)
    angle = rng.uniform(0.0, 0.5, 500)
    states = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    memory = remember(lambda s, u: (s + 0.1 * u, 0.0), states, rng.uniform(0, 0.1, (500, 1)))
    scale, plant = everything(memory, ActionCode(Box(-1.0, 1.0, (1,))))
    after, room = np.empty(2), np.empty(3)
    predict(plant, 0, np.array([50.0, -50.0]), np.ones(1), after, room)
    seen = scale.z(memory.nexts)
    assert np.all(after > seen.min(axis=0) - 1.0)
    assert np.all(after < seen.max(axis=0) + 1.0)


def test_ends_are_cut_where_gini_says() -> None:
    rng = RNG(3)
    z = rng.normal(size=(60, 2))
    ended = z[:, 1] > 0.7
    feature, threshold, left, chance = grow_ends(z, ended)
    assert feature.tolist() == [1, -1, -1]
    lower, upper = z[~ended, 1].max(), z[ended, 1].min()
    assert lower < threshold[0] <= upper
    assert chance[left[0] : left[0] + 2].tolist() == [0.0, 1.0]


def test_a_bound_that_is_no_box_is_one_cut_of_the_score() -> None:
    z = RNG(4).normal(size=(3000, 3))
    ended = z[:, 0] * z[:, 1] + z[:, 2] > 1.5
    feature, threshold, left, chance, score = fit_ends(z[:2000], ended[:2000])
    assert len(feature) <= 7
    wide = np.concatenate([z, (quadratic(z) @ score)[:, np.newaxis]], axis=1)
    told = np.array([chance[find(feature, threshold, left, 0, row)] for row in wide[2000:]])
    assert np.mean((told > 0.5) == ended[2000:]) > 0.99


def test_sweeps_give_the_values_of_a_known_process() -> None:
    """Staying in 0 pays 1, going to 1 pays 0, staying there pays 2: V1 = 2 / (1 - g), V0 = g V1."""
    g = 0.9
    cells = Cells(
        np.array([0]), np.array([0, -1, -1]), np.array([0.5, 0, 0]), np.array([1, 0, 0]), np.array([2, 1, 1])
    )
    options = Options(
        np.array([[1.0, 0.0], [2.0, 0.0]]), np.full((2, 2), g), np.array([[[1], [2]], [[2], [1]]], np.int32)
    )
    worth = np.zeros(2)
    value = sweep(options, cells, np.array([[1, 2]]), worth, 0.0, False, 1000, 1e-12)
    assert value[1:] == pytest.approx([g * 2 / (1 - g), 2 / (1 - g)], rel=1e-6)


def test_the_first_cut_of_a_tree_is_the_best_of_all_cuts() -> None:
    rng = RNG(5)
    for _ in range(20):
        z, votes = rng.normal(size=(12, 2)), rng.normal(size=(12, 3))
        tree = grow_choices(z, votes, 2, 2)

        def variance(rows: np.ndarray, votes: np.ndarray = votes) -> float:
            return float(((votes[rows] - votes[rows].mean(axis=0)) ** 2).sum())

        cuts = [(j, at) for j in range(2) for at in np.sort(z[:, j])[2:-1]]
        best = min(variance(z[:, j] < at) + variance(z[:, j] >= at) for j, at in cuts)
        if tree.feature[0] < 0:
            continue  # both sides of the best cut do the same
        below = z[:, tree.feature[0]] < tree.threshold[0]
        assert variance(below) + variance(~below) == pytest.approx(best)


def test_a_law_is_fitted_beyond_its_bounds() -> None:
    z = RNG(6).normal(size=(2000, 2))
    wanted = np.clip(z @ [2.0, -1.0] + 0.3, -1.0, 1.0)[:, np.newaxis]
    tree = grow_laws(z, wanted, np.ones(2000), 1, 10, 0.1, 200)
    assert tree.law[0, 0] == pytest.approx([0.3, 2.0, -1.0], abs=0.1)


def small_game(rng: np.random.Generator) -> tuple[Game, Controller]:
    """A double integrator, quadratic cost, and a poor tree of four laws."""
    dt = 0.1

    def step(s: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, float]:
        return np.array([s[0] + dt * s[1], s[1] + dt * u[0]]), -float(s @ s + 0.1 * u @ u)

    memory = remember(step, rng.uniform(-1, 1, (3000, 2)), rng.uniform(-1, 1, (3000, 1)))
    code = ActionCode(Box(-1.0, 1.0, (1,)))
    scale, plant = everything(memory, code, squares=True)
    starts = scale.z(rng.uniform(-0.5, 0.5, (40, 2)))
    game = Game(plant, code.inputs(code.tried(), squares=True), starts, np.zeros(40, np.int64), 60, 0.0)
    tree = Controller(
        np.array([0, 1, 1, -1, -1, -1, -1]),
        np.zeros(7),
        np.array([1, 3, 5, 0, 0, 0, 0]),
        rng.normal(0, 0.3, (7, 1, 3)),
    )
    return game, tree


def test_an_episode_is_control_and_predict_over_and_over() -> None:
    from spaql.kernels.controllers import control

    game, tree = small_game(RNG(7))
    passed = np.zeros(7, np.bool_)
    total, steps = play(game, tree, 3, passed)
    z, action, room, summed = game.starts[3].copy(), np.empty(2), np.empty(3), 0.0
    leaves = set()
    for _ in range(game.steps):
        leaves.add(find_rule(tree, z))
        control(tree, find_rule(tree, z), z, game.actions, action)
        predict(game.plant, 0, z, action, z, room)
        summed += room[-1]
    assert steps == game.steps
    assert total == pytest.approx(summed)
    assert {int(i) for i in np.flatnonzero(passed)} - {0, 1, 2} == leaves


def test_polish_gains_and_prune_makes_smaller() -> None:
    game, tree = small_game(RNG(8))
    before = np.mean([play(game, tree, i, np.zeros(7, np.bool_))[0] for i in range(40)])
    after = polish(game, tree, 500_000, RNG(0))
    assert after == pytest.approx(np.mean([play(game, tree, i, np.zeros(7, np.bool_))[0] for i in range(40)]))
    assert after > before
    assert prune(game, tree, 2, 0) == 2
    assert count_leaves(tree) == 2
    assert len(tidy(tree).feature) == 3
