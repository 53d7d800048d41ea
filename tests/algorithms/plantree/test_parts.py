"""Each part of PlanTree against a definition, or a case whose answer is known."""

import math

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import example, given
from hypothesis import strategies as st

import spaql
from plantree_simulations import double_integrator, everything, remember
from spaql.algorithms.plantree.candidates import CandidateController, choose
from spaql.algorithms.plantree.rule_trees import to_rules
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.replay import ActionCode, ReplayMemory, Scale
from spaql.kernels.numerics import principal_axes, solve, sorted_rows
from spaql.kernels.plantree.controllers import ControllerTree, grow_choices, grow_laws
from spaql.kernels.plantree.pwa_model import best_cut, find, predict
from spaql.kernels.plantree.termination import fit_termination, grow_termination, logistic, quadratic
from spaql.kernels.plantree.value_cells import (
    Options,
    ValueCells,
    grow_cells,
    look_ahead,
    mean_values,
    nearest,
    sweep,
    try_options,
)

RNG = np.random.default_rng


def test_a_memory_keeps_what_it_was_given() -> None:
    rng = RNG(0)
    memory = ReplayMemory(2, 1)
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
    again = ReplayMemory.from_arrays(memory.arrays(), 2, 1, 0)
    again.begin()
    again.add(*rows[0][:4], ended=False)
    assert np.array_equal(again.states[:2000], memory.states)
    empty = ReplayMemory.from_arrays(ReplayMemory(2, 1).arrays(), 2, 1, 0)
    empty.begin()
    empty.add(*rows[0][:4], ended=False)
    assert len(empty) == 1
    to_go = [
        sum(0.9**k * r for k, r in enumerate(memory.rewards[i : 50 * (i // 50 + 1)])) for i in range(2000)
    ]
    assert memory.best_to_go(0.9) == pytest.approx(max(to_go))


def test_a_goal_is_seen_when_rewards_depend_on_more_than_the_action() -> None:
    memory = ReplayMemory(1, 1)
    memory.begin()
    assert not memory.goal_seen
    for i in range(40):
        action = np.array([(i % 5) / 2 - 1])
        memory.add(np.array([float(i)]), action, -0.1 * float(action[0]) ** 2, np.zeros(1), ended=False)
    assert not memory.goal_seen
    memory.add(np.zeros(1), np.zeros(1), 0.01, np.zeros(1), ended=False)
    assert memory.goal_seen
    ended = ReplayMemory(1, 1)
    ended.begin()
    ended.add(np.zeros(1), np.zeros(1), 1.0, np.zeros(1), ended=True)
    assert ended.goal_seen


@pytest.mark.parametrize("seed", range(20))
def test_noise_on_an_action_that_costs_is_no_goal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    memory = ReplayMemory(2, 1)
    rewarded = ReplayMemory(2, 1)
    for one in (memory, rewarded):
        one.begin()
    for i in range(3_000):
        state = np.array([math.sin(i / 30), math.cos(i / 30)])
        action = np.array([rng.integers(-2, 3) / 2])
        done = np.clip(action[0] + 0.1 * rng.standard_normal(), -1, 1)
        memory.add(state, action, -0.1 * done**2, state, ended=False)
        rewarded.add(state, action, 0.05 * state[0] - 0.1 * done**2, state, ended=False)
    assert not memory.goal_seen
    assert rewarded.goal_seen


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0.0, 1.5e-9, 1.0, 1.0 + 3e-9])), max_size=60),
    st.integers(0, 5),
)
@example([(0, 0.0)] * 24 + [(0, 1.5e-9)] * 4, 0)
@example([(0, 0.0), (0, 1.0)] * 30, 1)
def test_a_goal_once_seen_stays_seen_and_is_told_from_the_steps_alone(
    steps: list[tuple[int, float]], seed: int
) -> None:
    memory = ReplayMemory(1, 1)
    seen = False
    rng = np.random.default_rng(seed)
    memory.begin()
    for i, (action, reward) in enumerate(steps):
        state = np.array([reward + rng.random()])
        memory.add(state, np.array([float(action)]), reward, np.zeros(1), ended=False)
        assert memory.goal_seen >= seen
        seen = memory.goal_seen
        again = ReplayMemory.from_arrays(memory.arrays(), 1, 1, 2)
        assert again.goal_seen == memory.until(i + 1).goal_seen == seen


@pytest.mark.parametrize("space", [Discrete(3, start=2), Box(-2.0, 6.0, (1,)), Box(-1.0, 1.0, (2,))])
def test_actions_come_back_from_their_code(space) -> None:
    code = ActionCode(space)
    for action in code.tried():
        raw = code.raw(action)
        assert space.contains(raw)
        assert code.standard(np.asarray(raw)[np.newaxis])[0] == pytest.approx(action)


def test_cholesky_solves_what_numpy_solves() -> None:
    rng = RNG(0)
    for n in (1, 3, 9):
        x = rng.normal(size=(2 * n, n))
        right = rng.normal(size=(n, 2))
        expected = np.linalg.solve(x.T @ x + 0.3 * np.eye(n), right)
        solve(x.T @ x, 0.3, right, np.empty((n, n)))
        assert right == pytest.approx(expected)


@given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.booleans())
def test_principal_axes_are_eigenvectors(n: int, seed: int, degenerate: bool) -> None:
    x = RNG(seed).normal(size=(2 * n, n)) * 10.0 ** RNG(seed).integers(-6, 7)
    if degenerate:
        x[:, n // 2 :] = 0.0
    matrix = x.T @ x
    axes = np.empty((n, n))
    principal_axes(matrix.copy(), axes)
    assert axes @ axes.T == pytest.approx(np.eye(n), abs=1e-12)
    turned = axes @ matrix @ axes.T
    largest = np.abs(matrix).max(initial=1e-300)
    assert turned / largest == pytest.approx(np.diag(np.diag(turned)) / largest, abs=1e-12)
    assert np.sort(np.diag(turned)) / largest == pytest.approx(
        np.linalg.eigvalsh(matrix) / largest, abs=1e-12
    )


@given(st.lists(st.one_of(st.floats(-10, 10), st.sampled_from([0.0, -0.0, 1.0])), max_size=40))
def test_rows_are_sorted_as_a_stable_sort_does(values: list[float]) -> None:
    order = np.empty(2 * len(values), np.int64)
    sorted_rows(np.array(values), len(values), order)
    assert order[: len(values)].tolist() == sorted(range(len(values)), key=values.__getitem__)


def test_a_logistic_regression_is_the_one_whose_slope_is_0() -> None:
    rng = RNG(17)
    x = np.concatenate([np.ones((300, 1)), rng.normal(size=(300, 2))], axis=1)
    ended = rng.random(300) < 1 / (1 + np.exp(-(x @ [-2.0, 1.0, 0.5])))
    weights = logistic(x, ended, 0.01)
    weight = 300 * np.where(ended, 0.5 / ended.sum(), 0.5 / (~ended).sum())
    chance = 1 / (1 + np.exp(-x @ weights))
    assert x.T @ (weight * (ended - chance)) == pytest.approx(0.01 * weights, abs=1e-8)


def test_an_affine_system_is_learned_exactly() -> None:
    rng = RNG(0)
    a = np.array([[0.9, 0.2], [-0.1, 0.95]])
    b = np.array([[0.1], [0.3]])
    c = np.array([1.0, -2.0])
    memory = remember(
        lambda s, u: (a @ s + b @ u + 0.5, float(c @ s + 3.0 * u[0] + 7.0)),
        rng.normal(2.0, 3.0, (2000, 2)),
        rng.uniform(-1, 1, (2000, 1)),
    )
    scale, plant = everything(memory, ActionCode(Box(-1.0, 1.0, (1,))))
    assert len(plant.feature) == 1
    after = np.empty(2)
    room = np.empty(3)
    for s, u in zip(rng.normal(2.0, 1.0, (50, 2)), rng.uniform(-1, 1, (50, 1)), strict=True):
        chance, reward, _ = predict(plant, 0, scale.z(s), u, after, room)
        assert chance == 0.0
        assert after * scale.deviation + scale.mean == pytest.approx(a @ s + b @ u + 0.5, abs=1e-4)
        assert reward == pytest.approx(c @ s + 3.0 * u[0] + 7.0, abs=1e-3)


def test_a_cell_is_cut_where_two_laws_leave_the_least() -> None:
    rng = RNG(15)
    for _ in range(10):
        x = np.concatenate([np.ones((60, 1)), rng.normal(size=(60, 3))], axis=1)
        y = np.stack([np.abs(x[:, 1] - rng.normal()), np.sin(2 * x[:, 2])], axis=1)
        prior = rng.normal(size=(4, 2))
        ridge = 0.3

        def left(rows: np.ndarray, x=x, rest=y - x @ prior, ridge=ridge) -> float:
            """The squared error of a law with a ridge towards the prior."""
            law = np.linalg.solve(x[rows].T @ x[rows] + ridge * np.eye(4), x[rows].T @ rest[rows])
            return float(((rest[rows] - x[rows] @ law) ** 2).sum())

        cuts = [(dim, np.sort(x[:, 1 + dim])[60 * q // 4]) for dim in range(2) for q in (1, 2, 3)]
        best = min(cuts, key=lambda cut: left(x[:, 1 + cut[0]] < cut[1]) + left(x[:, 1 + cut[0]] >= cut[1]))
        assert best_cut(x, y, np.arange(60), 0, 60, 2, 10, ridge, prior) == best


def test_a_plant_with_two_laws_is_cut_between_them() -> None:
    rng = RNG(1)
    memory = remember(
        lambda s, u: (np.array([0.5 * s[0] if s[0] < 0 else -0.5 * s[0]]), abs(s[0])),
        rng.uniform(-1, 1, (4000, 1)),
        np.zeros((4000, 1)),
    )
    scale, plant = everything(memory, ActionCode(Box(-1.0, 1.0, (1,))))
    after = np.empty(1)
    room = np.empty(2)
    for s in (-0.8, -0.3, 0.3, 0.8):
        _, reward, _ = predict(plant, 0, scale.z(np.array([s])), np.zeros(1), after, room)
        assert after * scale.deviation + scale.mean == pytest.approx(-0.5 * abs(s), abs=0.01)
        assert reward == pytest.approx(abs(s), abs=0.01)


def test_a_prediction_stays_with_what_was_seen() -> None:
    rng = RNG(2)
    angle = rng.uniform(0.0, 0.5, 50)
    states = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    memory = remember(lambda s, u: (s + 0.1 * u, 0.0), states, rng.uniform(0, 0.1, (50, 1)))
    scale, plant = everything(memory, ActionCode(Box(-1.0, 1.0, (1,))))
    assert len(plant.feature) == 1
    seen = scale.z(memory.nexts)
    axes = np.linalg.eigh(np.cov(seen.T))[1]
    along = (seen - seen.mean(axis=0)) @ axes
    low = along.min(axis=0)
    high = along.max(axis=0)
    after = np.empty(2)
    room = np.empty(3)
    for far in RNG(3).normal(0.0, 50.0, (20, 2)):
        _, _, cut = predict(plant, 0, far, np.ones(1), after, room)
        told = (after - seen.mean(axis=0)) @ axes
        allowed = low - 0.5 * (high - low), high + 0.5 * (high - low)
        wished = (room[:2] - seen.mean(axis=0)) @ axes
        assert told == pytest.approx(np.clip(wished, *allowed))
        assert cut == pytest.approx(np.abs(wished - told).max())


def test_ends_are_cut_where_gini_says() -> None:
    rng = RNG(3)
    z = rng.normal(size=(60, 2))
    ended = z[:, 1] > 0.7
    feature, threshold, left, chance = grow_termination(z, ended)
    assert feature.tolist() == [1, -1, -1]
    lower = z[~ended, 1].max()
    upper = z[ended, 1].min()
    assert lower < threshold[0] <= upper
    assert chance[left[0] : left[0] + 2].tolist() == [0.0, 1.0]


def test_a_bound_that_is_no_box_is_one_cut_of_the_score() -> None:
    z = RNG(4).normal(size=(3000, 3))
    ended = z[:, 0] * z[:, 1] + z[:, 2] > 1.5
    feature, threshold, left, chance, score = fit_termination(z[:2000], ended[:2000])
    assert len(feature) <= 7
    wide = np.concatenate([z, (quadratic(z) @ score)[:, np.newaxis]], axis=1)
    told = np.array([chance[find(feature, threshold, left, 0, row)] for row in wide[2000:]])
    assert np.mean((told > 0.5) == ended[2000:]) > 0.99


def test_sweeps_give_the_values_of_a_known_process() -> None:
    """Staying in 0 pays 1, going to 1 pays 0, staying there pays 2: V1 = 2 / (1 - g), V0 = g V1."""
    g = 0.9
    cells = ValueCells(
        np.array([0]), np.array([0, -1, -1]), np.array([0.5, 0, 0]), np.array([1, 0, 0]), np.array([2, 1, 1])
    )
    options = Options(
        np.array([[1.0, 0.0], [2.0, 0.0]]), np.full((2, 2), g), np.array([[[1], [2]], [[2], [1]]], np.int32)
    )
    worth = np.zeros(2)
    value = sweep(options, cells, np.array([[1, 2]]), worth, 0.0, False, 1000, 1e-12)
    assert value[1:] == pytest.approx([g * 2 / (1 - g), 2 / (1 - g)], rel=1e-6)


@pytest.mark.parametrize(
    ("optimistic", "pays", "value"), [(True, 50.0, 90.0), (False, 5.0, 10.0), (False, 50.0, 50.0)]
)
def test_the_unknown_draws_those_who_hope_and_an_end_is_worth_its_reward(
    optimistic: bool, pays: float, value: float
) -> None:
    """Staying pays 1 a step, going leads to the unknown, said to be worth 100, and the last option ends."""
    cells = ValueCells(
        np.array([0]), np.array([0, -1, -1]), np.array([0.5, 0, 0]), np.array([1, 0, 0]), np.array([1, 1, 0])
    )
    reached = np.array([[[1], [2], [1]]], np.int32)
    options = Options(np.array([[1.0, 0.0, pays]]), np.array([[0.9, 0.9, 0.0]]), reached)
    found = sweep(options, cells, np.array([[1]]), np.zeros(1), 100.0, optimistic, 1000, 1e-12)
    assert found[1] == pytest.approx(value, rel=1e-6)


def test_the_first_cut_of_a_tree_is_the_best_of_all_cuts() -> None:
    rng = RNG(5)
    for _ in range(20):
        z = rng.normal(size=(12, 2))
        votes = rng.normal(size=(12, 3))
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
    z = RNG(6).normal(size=(400, 2))
    wanted = np.clip(z @ [2.0, -1.0] + 0.3, -1.0, 1.0)[:, np.newaxis]
    tree = grow_laws(z, wanted, np.ones(400), 1, 10, 0.1, 200)
    assert tree.law[0, 0] == pytest.approx([0.3, 2.0, -1.0], abs=0.1)


def test_options_and_mean_values_are_those_of_their_definition() -> None:
    rng = RNG(9)
    simulation = double_integrator(rng)
    z = rng.normal(size=(150, 2))
    cells, member = grow_cells(z, z.min(axis=0) - 1, z.max(axis=0) + 1, 3, 4, 6.0, rng)
    value = rng.normal(size=len(cells.points))

    def cell(partition: int, state: np.ndarray) -> int:
        return find(cells.feature, cells.threshold, cells.left, cells.roots[partition], state)

    assert all(member[m, i] == cell(m, z[i]) for m in range(3) for i in range(150))
    means = mean_values(cells, value, True, z, 0.0)
    assert means == pytest.approx([np.mean([value[cell(m, one)] for m in range(3)]) for one in z])
    far = rng.normal(0, 3, (150, 2))
    known = [[value[cell(m, one)] for m in range(3) if cells.points[cell(m, one)]] for one in far]
    plain = mean_values(cells, value, False, far, -7.0)
    assert plain == pytest.approx([np.mean(some) if some else -7.0 for some in known])
    options = try_options(simulation.plant, cells, z, simulation.actions, 0.9)
    i = 140
    a = 2
    room = np.empty(3)
    state = z[i].copy()
    total = 0.0
    for step in range(8):
        chance, reward, _ = predict(simulation.plant, 0, state, simulation.actions[a], state, room)
        assert chance == 0.0
        total += 0.9**step * reward
        if step + 1 in (1, 2, 4, 8):
            option = 4 * a + (step + 1).bit_length() - 1
            assert options.reward[i, option] == pytest.approx(total)
            assert options.discount[i, option] == pytest.approx(0.9 ** (step + 1))
            assert options.cell[i, option].tolist() == [cell(m, state) for m in range(3)]
    q = look_ahead(simulation.plant, cells, value, simulation.actions, True, 0.9, z)
    ahead = options.reward + options.discount * value[options.cell].mean(axis=2)
    assert q == pytest.approx(ahead.reshape(150, 5, 4).max(axis=2))


@pytest.mark.parametrize("coarse", [6.0, 1e9])
@pytest.mark.parametrize("dims", [1, 8, 24])
def test_partitions_of_many_dimensions_keep_to_their_own_nodes(dims: int, coarse: float) -> None:
    """Most cuts have all points on one side there; where no cell is small enough, there is no end to them."""
    z = 1e-3 * RNG(dims).normal(size=(60, dims))
    cells, member = grow_cells(z, np.full(dims, -9.0), np.full(dims, 9.0), 4, 4, coarse, RNG(0))
    ends = [*cells.roots[1:], len(cells.feature)]
    for partition, (root, end) in enumerate(zip(cells.roots, ends, strict=True)):
        leaves = np.flatnonzero(cells.feature[root:end] < 0) + root
        assert end - root == 2 * len(leaves) - 1
        assert cells.points[leaves].sum() == 60
        found = [find(cells.feature, cells.threshold, cells.left, root, one) for one in z]
        assert member[partition].tolist() == found


def test_the_nearest_state_is_the_one_least_far_away() -> None:
    z = RNG(10).normal(size=(200, 3))
    points = RNG(11).normal(size=(50, 3))
    apart = ((points[:, np.newaxis] - z) ** 2).sum(axis=2)
    assert nearest(z, points).tolist() == apart.argmin(axis=1).tolist()


def step_to_zero(s: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, float]:
    return np.array([0.9 * s[0] + 0.1 * u[0], 0.5 * s[1]]), -float(abs(s[0]))


def steps_to_zero() -> ReplayMemory:
    rng = RNG(12)
    return remember(step_to_zero, rng.uniform(-1, 1, (300, 2)), rng.uniform(-1, 1, (300, 1)))


@pytest.mark.slow
@pytest.mark.parametrize(("spread", "leaves"), [(0.0, 2), (200.0, 1)])
def test_of_two_that_cannot_be_told_apart_the_last_choice_is_the_smaller(spread: float, leaves: int) -> None:
    memory = steps_to_zero()
    problem = spaql.make_problem("MountainCarContinuous-v0")
    code = ActionCode(Box(-1.0, 1.0, (1,)))
    scale = Scale.of(memory)

    def candidate(feature: list[int], offset: float) -> CandidateController:
        laws = np.tile(np.array([offset, -2.0, 0.0]), (len(feature), 1, 1))
        tree = ControllerTree(
            np.array(feature), np.zeros(len(feature)), np.eye(len(feature), dtype=int)[0], laws
        )
        rules = to_rules(tree, scale, code, problem)
        starts = list(memory.states[:20])
        returns = []
        for i, start in enumerate(starts):
            s = start.copy()
            total = 0.0
            for _ in range(memory.longest):
                z = (s[:1] - scale.mean[:1]) / scale.deviation[:1]
                s, reward = step_to_zero(s, np.clip(offset - 2.0 * z, -1, 1))
                total += reward
            returns.append(total + spread * (-1) ** i)
        return CandidateController(rules, starts, returns)

    small = candidate([-1], 0.5)
    large = candidate([0, -1, -1], 0.0)

    def chosen(*, last: bool) -> int:
        settings = PlanTreeSettings(effort=0.05)
        return choose(memory, code, settings, [large, small], RNG(0), last=last).controller.n_leaves

    assert (chosen(last=False), chosen(last=True)) == (2, leaves)


@pytest.mark.slow
def test_what_has_played_and_fell_short_is_left_and_what_kept_its_word_is_preferred() -> None:
    memory = steps_to_zero()
    problem = spaql.make_problem("MountainCarContinuous-v0")
    step = step_to_zero
    code = ActionCode(Box(-1.0, 1.0, (1,)))
    scale = Scale.of(memory)

    def law(offset: float, gain: float) -> CandidateController:
        numbers = np.array([[[offset, gain, 0.0]]])
        tree = ControllerTree(np.array([-1]), np.zeros(1), np.zeros(1, np.int64), numbers)
        return CandidateController(to_rules(tree, scale, code, problem))

    good = law(0.0, -2.0)
    same = law(0.0, -2.0)
    bad = law(0.5, 0.0)
    lightly = PlanTreeSettings(effort=0.05)

    def chosen(*some: CandidateController, last: bool) -> CandidateController:
        return choose(memory, code, lightly, list(some), RNG(0), last=last)

    assert chosen(bad, good, last=False) is good
    good.starts = [memory.states[0], memory.states[1]]
    good.returns = [-1e6, -1e6]
    assert chosen(good, same, last=False) is same
    bad.starts = good.starts
    bad.returns = [-1e3, -1e3]
    assert chosen(good, bad, last=True) is bad
    good.starts = []
    good.returns = []
    for start in (memory.states[0], memory.states[1]):
        s = start.copy()
        total = 0.0
        for _ in range(memory.longest):
            s, reward = step(s, np.clip(-2.0 * (s[:1] - scale.mean[:1]) / scale.deviation[:1], -1, 1))
            total += reward
        good.starts.append(start)
        good.returns.append(total)
    assert chosen(same, good, last=True) is good
