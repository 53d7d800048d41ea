"""Candidate trees: their structure, their numbers, and their conversion to controllers and back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candidates import candidate_action
from nightly import thorough
from spaql import make_problem
from spaql.algorithms.treesearch.rule_trees import from_rules, idle_controller, to_rules
from spaql.algorithms.treesearch.trees import (
    CandidateTree,
    find_leaf,
    one_leaf,
    random_cut,
    random_tree,
    split,
    switch_like,
    without_cut,
)
from spaql.controllers import Controller, locked
from spaql.controllers.arrays import action_range, frame_of
from spaql.errors import ArchiveError
from spaql.kernels.treesearch.candidates import Units

PROBLEMS = {name: make_problem(name) for name in ("CartPole-v1", "Acrobot-v1", "Pendulum-v1")}


def units_of(problem, rng):
    """Random units, as a search would measure them."""
    dims = problem.states.dims
    ends = action_range(problem.actions.space)
    listed = not len(ends.low)
    rows = int(problem.actions.space.n) if listed else len(ends.low)
    centre = np.zeros(rows) if listed else (ends.low + ends.high) / 2
    half = np.ones(rows) if listed else (ends.high - ends.low) / 2
    units = Units(rng.normal(size=dims), np.exp(rng.normal(size=dims)), centre, half)
    return units, one_leaf(rows, dims, listed=listed)


def action_of(tree, numbers, ends, x):
    """The action of a candidate, by its definition."""
    node = 0
    while tree.left[node] >= 0:
        below = sum(w * s for w, s in zip(numbers[node, 0, 1:], x, strict=True)) < numbers[node, 0, 0]
        node = tree.left[node] + (0 if below else 1)
    values = [row[0] + sum(w * s for w, s in zip(row[1:], x, strict=True)) for row in numbers[node]]
    if tree.listed:
        allowed = [k for k in range(len(values)) if tree.allowed[node, k]]
        return [max(allowed, key=lambda k: (values[k], -k))]
    return [min(max(v, low), high) for v, low, high in zip(values, *ends, strict=True)]


@settings(max_examples=thorough(60))
@given(st.sampled_from(sorted(PROBLEMS)), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_kernel_rule_tree_and_definition_act_alike(name, leaves, seed):
    problem = PROBLEMS[name]
    rng = np.random.default_rng(seed)
    units, base = units_of(problem, rng)
    tree = random_tree(base, leaves, rng.normal(size=(20, problem.states.dims)), rng)
    assert tree.n_leaves == leaves
    ends = action_range(problem.actions.space)
    numbers = tree.raw(units)[0]
    rules = to_rules(tree, units, idle_controller(problem))
    states = units.centre + units.scale * rng.normal(size=(50, problem.states.dims))
    frame = frame_of(problem.states.dims, problem.actions.space)
    for x in states:
        raw = candidate_action(tree.left, tree.allowed, numbers, frame, x)
        np.testing.assert_allclose(raw, action_of(tree, numbers, ends, x), rtol=1e-9, atol=1e-9)
        played = rules.act(x[np.newaxis]).ravel()
        if tree.listed:
            assert played[0] == problem.actions.space.start + raw[0]
        else:
            assert (played == raw.astype(np.float32)).all()


@settings(max_examples=thorough(40))
@given(st.sampled_from(sorted(PROBLEMS)), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_a_rule_tree_comes_back_as_the_same_candidate(name, leaves, seed):
    problem = PROBLEMS[name]
    rng = np.random.default_rng(seed)
    units, base = units_of(problem, rng)
    tree = random_tree(base, leaves, rng.normal(size=(20, problem.states.dims)), rng)
    rules = to_rules(tree, units, idle_controller(problem))
    again = to_rules(from_rules(rules, units, base), units, idle_controller(problem))
    states = units.centre + units.scale * rng.normal(size=(200, problem.states.dims))
    if tree.listed:
        assert (again.act(states) == rules.act(states)).mean() > 0.99  # but for rounding at a boundary
    else:
        np.testing.assert_allclose(again.act(states), rules.act(states), rtol=1e-5, atol=1e-5)


def test_locked_leaves_stay_to_the_last_bit_whatever_the_numbers_are():
    problem = PROBLEMS["Pendulum-v1"]
    rng = np.random.default_rng(3)
    units, base = units_of(problem, rng)
    rules = to_rules(random_tree(base, 4, rng.normal(size=(20, 3)), rng), units, idle_controller(problem))
    rules = locked(rules, 2)
    candidate = from_rules(rules, units, base)
    moved = candidate.with_vector(candidate.vector + rng.normal(size=len(candidate.vector)))
    found = to_rules(moved, units, idle_controller(problem), digits=2)
    states = units.centre + units.scale * rng.normal(size=(4000, 3))
    (lock,) = rules.locks
    numbers = rules.numbers(states)
    inside = ((lock.low <= numbers) & (numbers < lock.high)).all(axis=1)
    assert inside.sum() > 50
    assert (found.act(states[inside]) == rules.act(states[inside])).all()
    assert not (found.act(states[~inside]) == rules.act(states[~inside])).all()
    assert len(found.locks) == 1


def test_a_leaf_with_one_action_may_be_given_others():
    problem = PROBLEMS["Acrobot-v1"]
    rng = np.random.default_rng(0)
    units, base = units_of(problem, rng)
    rules = Controller(
        laws=[2],
        observation_space=problem.states.space,
        action_space=problem.actions.space,
    )
    candidate = from_rules(rules, units, base)
    assert candidate.allowed.all()
    assert candidate.free.all()
    assert to_rules(candidate, units, idle_controller(problem)).constant_action(0) == (2.0,)


def test_a_split_acts_as_before_and_removing_the_cut_undoes_it():
    problem = PROBLEMS["Acrobot-v1"]
    rng = np.random.default_rng(0)
    units, base = units_of(problem, rng)
    tree = random_tree(base, 3, rng.normal(size=(20, 6)), rng)
    state = rng.normal(size=6)
    leaf = find_leaf(tree, state)
    grown = split(tree, leaf, *random_cut(state, rng))
    states = units.centre + units.scale * rng.normal(size=(300, 6))
    before = to_rules(tree, units, idle_controller(problem)).act(states)
    assert grown.n_leaves == 4
    assert (to_rules(grown, units, idle_controller(problem)).act(states) == before).all()
    for side in range(2):
        assert (
            to_rules(without_cut(grown, leaf, side), units, idle_controller(problem)).act(states) == before
        ).all()


def test_numbers_are_rounded_to_digits():
    problem = PROBLEMS["Pendulum-v1"]
    rng = np.random.default_rng(1)
    units, base = units_of(problem, rng)
    rules = to_rules(
        random_tree(base, 2, rng.normal(size=(20, 3)), rng), units, idle_controller(problem), digits=2
    )
    for number in [*rules.laws.gain.ravel(), *rules.laws.offset.ravel(), *rules.combinations.ravel()]:
        assert number == float(f"{number:.2g}")


@pytest.mark.parametrize("fault", ["left", "numbers", "allowed", "free"])
def test_arrays_that_are_no_tree_are_refused(fault):
    problem = PROBLEMS["Acrobot-v1"]
    rng = np.random.default_rng(0)
    _, base = units_of(problem, rng)
    tree = random_tree(base, 3, rng.normal(size=(20, 6)), rng)
    arrays = {name: array.copy() for name, array in tree.arrays().items()}
    assert isinstance(CandidateTree.from_arrays(arrays, base), CandidateTree)
    if fault == "left":
        arrays["left"][0] = 0
    elif fault == "numbers":
        arrays["numbers"][1, 0, 0] = np.nan
    elif fault == "allowed":
        arrays["allowed"][:] = False
    else:
        arrays["free"] = arrays["free"][:-1]
    with pytest.raises(ArchiveError):
        CandidateTree.from_arrays(arrays, base)


@pytest.mark.parametrize("seed", range(8))
def test_the_switch_like_a_tree_is_the_best_of_all_cuts_of_one_number(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states = rng.standard_normal((40, 3)).round(1)
    tree = random_tree(one_leaf(2, 3, listed=False), 3, states, rng)
    found = switch_like(tree, states, 1)
    assert found is not None
    laws = np.array([tree.numbers[find_leaf(tree, state), 1] for state in states])
    actions = np.clip(laws[:, 0] + (laws[:, 1:] * states).sum(axis=1), -1, 1)

    def error(left: np.ndarray) -> float:
        return sum(
            ((actions[side] - actions[side].mean()) ** 2).sum() for side in (left, ~left) if side.any()
        )

    least = min(error(states[:, j] < x) for j in range(3) for x in states[:, j])
    left = np.array([find_leaf(found, state) == 1 for state in states])
    assert error(left) == pytest.approx(least)
    assert found.numbers[1:, 1, 0] == pytest.approx([actions[left].mean(), actions[~left].mean()])
    assert not found.numbers[1:, :, 1:].any()
    assert not found.free[1:, :, 1:].any()


def test_there_is_no_switch_like_a_tree_in_one_state() -> None:
    tree = one_leaf(1, 2, listed=False)
    assert switch_like(tree, np.zeros((5, 2)), 0) is None
